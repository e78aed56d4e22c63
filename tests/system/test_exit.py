"""The end of the interpreter while daemon threads are in the core."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

CORE = Path(__file__).parents[2] / "cpp"

BUSY = """
import sys, threading, time
import numpy as np
import arboost

X = np.random.default_rng(0).normal(size=(3000, 8))
y = X[:, 0] + X[:, 1] ** 2
fit = lambda: arboost.GradientBoostingRegressor(n_estimators=30, n_jobs=2).fit(X, y)
model = fit()

def repeat(task):
    while True:
        task()

for task in (fit, lambda: model.predict(X), lambda: model.shap_values(X)):
    for _ in range(2):
        threading.Thread(target=repeat, args=(task,), daemon=True).start()
time.sleep(float(sys.argv[1]))
"""


@pytest.mark.parametrize("first", [0.0, 0.15])
def test_exit_while_daemon_threads_fit_predict_and_explain(first):
    delays = [first, first + 0.03, first + 0.06]
    children = [
        subprocess.Popen([sys.executable, "-c", BUSY, str(delay)], stderr=subprocess.PIPE)
        for delay in delays
    ]
    ends = [(child.communicate(timeout=120)[1], child.returncode) for child in children]
    assert ends == [(b"", 0)] * len(delays)


TEARDOWN = """
import sys
import numpy as np
import arboost
from arboost.backend import core

X = np.random.default_rng(0).normal(size=(500, 3))
model = arboost.GradientBoostingRegressor(n_estimators=5).fit(X, X[:, 0])
model.predict(X)  # imports what it needs

class Last:
    def __del__(self, sys=sys, model=model, X=X):
        assert sys.is_finalizing()
        print(model.predict(X).shape, flush=True)

last = Last()
columns = core.Columns(500)
columns.add_matrix(X)
codes = core.encode(columns, None, core.quantiles(columns, None, None, 9, 1), 1)
grower = core.Grower(codes, 1, core.TreeParams(), None, core.Workspace())  # gives it back last
"""


def test_predict_while_the_interpreter_ends():
    # The thread that ends the interpreter keeps the GIL, and must not sleep.
    done = subprocess.run(
        [sys.executable, "-c", TEARDOWN], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "(500,)\n"), done.stderr


def test_only_the_own_guards_release_and_acquire_the_gil():
    guards = re.compile(r"gil_scoped_|Py_BEGIN_ALLOW_THREADS|PyEval_SaveThread|PyGILState_Ensure")
    users = {path.name for path in CORE.rglob("*.[hc]*") if guards.search(path.read_text("utf-8"))}
    assert users == {"gil.h"}
