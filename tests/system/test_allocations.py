"""Each allocation of a call fails once: MemoryError, and never the end of the process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from support.processes import ForkServer

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
HAS_GLIBC = sys.platform == "linux" and os.confstr("CS_GNU_LIBC_VERSION") is not None
pytestmark = pytest.mark.skipif(
    COMPILER is None or not HAS_GLIBC, reason="needs a C compiler and glibc"
)

# malloc that fails once: at the n-th call of the thread after arm(n).
SHIM = """
#include <stddef.h>
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
static __thread long left;
static int fails(void) { return left > 0 && --left == 0; }
void arm(long n) { left = n; }
long disarm(void) { long rest = left; left = 0; return rest; }
void* malloc(size_t n) { return fails() ? NULL : __libc_malloc(n); }
void* calloc(size_t n, size_t m) { return fails() ? NULL : __libc_calloc(n, m); }
void* realloc(void* p, size_t n) { return fails() ? NULL : __libc_realloc(p, n); }
"""

# Runs CALLS[argv[1]] with each allocation failing (every argv[2]-th), and prints which was last.
CHILD = """
import ctypes, sys
import numpy as np
import arboost
from arboost.backend import core

lib = ctypes.PyDLL(None)
lib.arm.argtypes, lib.disarm.restype = [ctypes.c_long], ctypes.c_long
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
X[:, 3] = rng.integers(0, 5, 300)
y = X[:, 0]
columns = core.Columns(300)
columns.add_matrix(X)
edges = core.quantiles(columns, None, None, 15, 1)
codes = core.encode(columns, None, edges, 1)
plan_state = ([[(1, 2, 3)] * 5] * 5, [0] * 9, 300, 0.5)
params = core.TreeParams()
gradients = core.Gradients(300, 1, by_row=False)
core.set_gradients(y[:, np.newaxis], np.ones((300, 1)), gradients, 1)
sample = core.Sample()
sample.draw(300, 0.5, 0, 0, 1)
workspace = core.Workspace()

def grow():
    grower = core.Grower(codes, 1, core.TreeParams(), None, workspace)
    grower.grow(gradients, 0, seed=0, tree=0, rate=0.1, sample=sample, n_threads=1)

model = arboost.GradientBoostingRegressor(n_estimators=3, n_jobs=1).fit(X, y)
CALLS = {
    "groups of levels": lambda: setattr(params, "grouped", {1: (list(range(99)), [1, 2])}),
    "lists of lists": lambda: setattr(params, "interactions", [[0, 1, 2, 3]] * 9),
    "columns": lambda: columns.select([0, 1, 2, 3] * 9),
    "edges": lambda: core.encode(columns, None, edges, 1, [False] * 4),
    "plan": lambda: core.StoragePlan.__new__(core.StoragePlan).__setstate__(plan_state),
    "grower": grow,
    "predict": lambda: model.predict(X),
    "shap": lambda: model.shap_values(X),
    "booster": lambda: arboost.GradientBoostingRegressor(
        n_estimators=3, n_jobs=1, monotone_constraints=[1, 0, 0, 0],
        interaction_constraints=[[0, 1], [2, 3]], categorical_features=[3],
    ).fit(X, y),
    "forest": lambda: arboost.RandomForestRegressor(n_estimators=2, n_jobs=1).fit(X, y),
}
call, step = CALLS[sys.argv[1]], int(sys.argv[2])
call()
lib.arm(10**9)
call()
total = 10**9 - lib.disarm()
for n in range(1, total + 2, step):
    print(n, flush=True)
    try:
        try:
            lib.arm(n)
            call()
        finally:
            lib.disarm()
    except MemoryError:
        pass
    except (SystemError, RuntimeError):  # of NumPy and Python, which lose the reason
        assert sys.argv[1] in ("predict", "shap", "booster", "forest")
print("of", total)
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    made = [COMPILER, "-shared", "-fPIC", "-O1", "shim.c", "-o", "shim.so"]
    if subprocess.run(made, cwd=folder, check=False, capture_output=True).returncode:
        pytest.skip("the compiler makes no shared library")
    server = ForkServer(folder, LD_PRELOAD=str(folder / "shim.so"))
    yield server
    server.close()


@pytest.mark.parametrize(
    ("call", "step"),
    [
        *((name, 1) for name in ("groups of levels", "lists of lists", "columns", "edges")),
        *((name, 1) for name in ("plan", "grower", "predict", "shap")),
        ("booster", 7),
        ("forest", 7),
    ],
)
def test_no_failed_allocation_ends_the_process(server, call, step):
    done = server.run(CHILD, call, step, timeout=300)
    assert done.returncode == 0, f"{done.stdout.split()[-1:]}: {done.stderr[-2000:]}"
    assert done.stdout.split()[-2] == "of"
