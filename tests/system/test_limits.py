"""Processes that run out of threads or memory: fewer threads or a MemoryError, never an abort."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import arboost
from arboost.backend import startable_threads

# Fits under each limit on the address space, and then again without a limit.
LIMITED = """
import resource, sys
import numpy as np
import arboost

rng = np.random.default_rng(0)
X = rng.normal(size=(20_000, 8))
y = X[:, 0] + rng.normal(size=20_000)
model = getattr(arboost, sys.argv[1])(n_estimators=4, max_depth=8, random_state=0)
model.set_params(n_jobs=1).fit(X[:100], y[:100]).predict(X)  # loads all modules
model.set_params(n_jobs=8)
outcomes = set()

def used():
    with open("/proc/self/status") as status:
        (line,) = (line for line in status if line.startswith("VmSize"))
    return int(line.split()[1]) * 1024

for megabytes in map(float, sys.argv[2:]):
    limit = used() + int(megabytes * 2**20)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    try:
        model.fit(X, y).predict(X)
        outcomes.add("done")
    except MemoryError:
        outcomes.add("MemoryError")
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
found = model.fit(X, y).predict(X)
assert np.array_equal(found, model.set_params(n_jobs=1).fit(X, y).predict(X))
print(*sorted(outcomes))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
@pytest.mark.parametrize("name", ["GradientBoostingRegressor", "ExtraTreesRegressor"])
def test_little_memory(name):
    limits = ["0.3", "2", "5", "12", "25", "40", "66", "110"]
    result = subprocess.run(
        [sys.executable, "-c", LIMITED, name, *limits], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.split()[-1] in ("MemoryError", "done")


@pytest.fixture(params=[0, 1, 3])
def few_threads(request, monkeypatch):
    """A system that can start only a number of further Python threads."""
    start, before = threading._start_new_thread, threading.active_count()

    def limited(*arguments):
        if threading.active_count() - before > request.param:  # a thread that starts counts
            raise RuntimeError("can't start new thread")
        return start(*arguments)

    monkeypatch.setattr(threading, "_start_new_thread", limited)
    return request.param


RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 8))
Y = X[:, 0] + RNG.normal(size=4000)
MODELS = [
    arboost.RandomForestRegressor(n_estimators=6, max_depth=4, random_state=0),
    arboost.BaggingRegressor(
        arboost.DecisionTreeRegressor(max_depth=4), n_estimators=6, random_state=0
    ),
]
EXPECTED = [model.set_params(n_jobs=1).fit(X, Y).predict(X) for model in MODELS]


def test_few_python_threads(few_threads):
    assert startable_threads(8) == max(few_threads, 1)
    for model, values in zip(MODELS, EXPECTED, strict=True):
        np.testing.assert_array_equal(model.set_params(n_jobs=4).fit(X, Y).predict(X), values)


def test_few_python_threads_of_importances(few_threads):
    forest = MODELS[0].set_params(n_jobs=1).fit(X, Y)
    one = arboost.permutation_importances(forest, X, Y, n_repeats=2, n_jobs=1)
    several = arboost.permutation_importances(forest, X, Y, n_repeats=2, n_jobs=4)
    np.testing.assert_array_equal(several, one)
