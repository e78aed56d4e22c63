"""Trees that fail half-way, for want of memory or by a signal: the grower can be used again."""

from __future__ import annotations

import signal
import sys

import numpy as np
import pytest

from arboost import _core
from support.core_trees import encode, gradients_of
from support.paths import TESTS
from support.processes import run

OUT_OF_MEMORY = """
    import ctypes, resource, sys
    sys.path.insert(0, sys.argv[1])
    import numpy as np
    from arboost import _core
    from support import stored

    CASES = {
        "plain": {"max_depth": 6},
        "sparse": {"max_depth": 6},
        "ranks": {"max_depth": 6, "candidates": _core.Candidates.values},
        "subtrees": {"max_depth": 8, "subtree_rows": 10**9},
    }

    # Freed memory goes back to the system, so that the limit is felt.
    for option, value in ((-3, 4096), (-1, 0)):  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
        ctypes.CDLL(None).mallopt(option, value)
    rng = np.random.default_rng(0)
    n = 20_000
    X = np.where(rng.random((n, 8)) < 0.3, rng.integers(1, 9, (n, 8)), 0).astype(float)
    columns = stored.sparse(X) if sys.argv[2] == "sparse" else stored.dense(X)
    if sys.argv[2] == "ranks":
        codes = _core.rank(columns, None, 1)
    else:
        codes = stored.encode(columns, [np.arange(8) + 0.5] * 8, bundling=False)
    params = _core.TreeParams()
    for name, value in CASES[sys.argv[2]].items():
        setattr(params, name, value)
    gradients = _core.Gradients(n, 1, by_row=False)
    _core.set_gradients(rng.normal(size=(n, 1)) + X[:, :1] * X[:, 1:2], np.ones((n, 1)),
                        gradients, 1)
    sample = _core.Sample()
    sample.draw(n, 0.5, 1, 1, 1)

    def grow(grower, number):
        grower.grow(gradients, 0, seed=1, tree=number, rate=1.0, sample=sample,
                    leaves_from_all_rows=True, n_threads=1)

    NO_LIMIT = (-1, -1)

    def limit(room):  # of the memory that the process may still take
        pages = int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + room, -1))

    def no_limit():  # allocates nothing, because nothing may be left
        resource.setrlimit(resource.RLIMIT_AS, NO_LIMIT)

    whole = _core.Grower(codes, 1, params)
    for number in range(2):
        grow(whole, number)
    expected = whole.trees()
    n_failed = 0
    for room in range(0, 1_000_000, 2048):
        grower = _core.Grower(codes, 1, params)
        limit(room)
        try:
            grow(grower, 0)
        except MemoryError:
            n_failed += 1
            no_limit()
            assert grower.n_trees == 0
            grow(grower, 0)
        no_limit()
        grow(grower, 1)
        trees = grower.trees()
        assert all(trees[name].tobytes() == expected[name].tobytes() for name in trees), room
    print(n_failed)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory limits of Linux")
@pytest.mark.parametrize("kind", ["plain", "sparse", "ranks", "subtrees"])
def test_a_tree_that_memory_does_not_suffice_for_leaves_the_grower_as_it_was(kind):
    """The limit rises step by step, so that each allocation of a tree fails once."""
    assert int(run(OUT_OF_MEMORY, str(TESTS), kind)) > 30


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_signal_ends_a_tree_inside_a_subtree_and_the_grower_stays_usable(n_threads):
    """The whole tree is one subtree, on one thread, of some hundred milliseconds."""
    rng = np.random.default_rng(0)
    n = 400_000
    codes = encode(rng.integers(0, 200, (n, 10)), [200] * 10)
    gradients = gradients_of(rng.normal(size=(n, 1)), np.ones((n, 1)))
    params = _core.TreeParams()
    for name, value in {
        "max_depth": None,
        "min_child_weight": 0.0,
        "reg_lambda": 0.0,
        "allow_zero_gain": True,
        "random_cuts": True,
        "subtree_rows": n,
    }.items():
        setattr(params, name, value)
    grower = _core.Grower(codes, 1, params)

    def grow(tree):
        grower.grow(gradients, 0, seed=1, tree=tree, rate=1.0, n_threads=n_threads)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        with pytest.raises(KeyboardInterrupt):
            grow(0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert grower.n_trees == 0
    grow(0)
    again, trees = _core.Grower(codes, 1, params), grower.trees()
    again.grow(gradients, 0, seed=1, tree=0, rate=1.0, n_threads=1)
    for name, expected in again.trees().items():
        assert trees[name].tobytes() == expected.tobytes(), name


def test_a_stopped_grower_grows_no_more(rng):
    """Forests stop the growers of other threads on Ctrl-C, which only the main thread sees."""
    n = 400_000
    codes = encode(rng.integers(0, 200, (n, 2)), [200] * 2)
    gradients = gradients_of(rng.normal(size=(n, 1)), np.ones((n, 1)))
    params = _core.TreeParams()
    params.max_depth, params.subtree_rows, params.min_child_weight = None, n, 0.0
    grower = _core.Grower(codes, 1, params)
    grower.stop()
    with pytest.raises(RuntimeError, match="stopped"):
        grower.grow(gradients, 0, seed=1, tree=0, rate=1.0, n_threads=1)
    assert grower.n_trees == 0
