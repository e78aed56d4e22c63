"""Trees on rows that workers share: the same as in memory, for every kind of row and sum."""

import numpy as np
import pytest

from arboost import _core
from arboost.workers import Workers
from support.core_trees import encode, gradients_of, wide_problem
from support.local_workers import run_workers
from support.memory import needs_proc
from support.processes import run
from support.shared_trees import PARTS, assert_same, grown, grown_by_workers, sample_of


# From 32,768 rows on, gradients are rounded at random, by the position of a row among all rows.
@pytest.mark.parametrize("parts", PARTS, ids=len)
@pytest.mark.parametrize("sample", ["none", "bootstrap", "one side", "by gradient"])
@pytest.mark.parametrize(
    "params",
    [
        {"max_depth": None, "max_leaves": 40, "best_first": True},
        {"max_depth": 4, "monotone": [1, -1] + [0] * 7},
        {"max_depth": 6, "min_samples_leaf": 50, "colsample_bynode": 0.5},
        {"max_depth": 5, "random_cuts": True, "allow_zero_gain": True},
    ],
    ids=["best first", "monotone", "leaf size", "random cuts"],
)
def test_many_rows(parts, sample, params):
    codes, n_bins, g, h = wide_problem(n=40_000)
    table, gradients = encode(codes, n_bins), gradients_of(g, h)
    drawn = sample_of(sample, gradients)
    expected = grown(table, gradients, 1, sample=drawn, **params)
    for actual in grown_by_workers(table, gradients, 1, parts, sample=drawn, **params):
        assert_same(expected, actual)


@pytest.mark.parametrize("parts", PARTS, ids=len)
def test_vector_leaves_and_little_memory(parts):
    codes, n_bins, g, h = wide_problem(n=3000, outputs=3)
    table, gradients = encode(codes, n_bins), gradients_of(g, h)
    params = {"max_depth": None, "max_leaves": 60, "histogram_bytes": 1}
    expected = grown(table, gradients, 3, **params)
    for actual in grown_by_workers(table, gradients, 3, parts, **params):
        assert_same(expected, actual)


def test_parts_without_rows_of_a_sample():
    codes, n_bins, g, h = wide_problem(n=50)
    table, gradients = encode(codes, n_bins), gradients_of(g, h)
    sample = _core.Sample()
    sample.draw(50, 0.05, 1, 0, 1)
    expected = grown(table, gradients, 1, sample=sample)
    for actual in grown_by_workers(table, gradients, 1, [1.0] * 20, sample=sample):
        assert_same(expected, actual)


def test_a_worker_that_fails_ends_the_others():
    codes, n_bins, g, h = wide_problem(n=400)
    table = encode(codes, n_bins)
    wrong = -np.abs(g)
    wrong[-1] = 1.0  # a negative target, in the rows of the last worker
    gradients = gradients_of(wrong, h)
    with pytest.raises(ValueError, match="below 0"):
        grown_by_workers(
            table, gradients, 1, [1.0] * 3, criterion="poisson", reg_lambda=0.0, cat_l2=0.0
        )


@pytest.mark.parametrize(("first", "n_rows"), [(1, 50), (0, 49), (60, 100)])
def test_rows_outside_the_table(first, n_rows):
    codes, n_bins, *_ = wide_problem(n=50)

    def program(workers: Workers):
        return _core.SharedCodes(encode(codes, n_bins), first, n_rows, workers.core)

    with pytest.raises(ValueError, match="inside the table"):
        run_workers(1, program)


def test_medians_need_all_rows_in_one_process():
    codes, n_bins, g, h = wide_problem(n=50)
    with pytest.raises(ValueError, match="all rows in the memory of one process"):
        grown_by_workers(
            encode(codes, n_bins),
            gradients_of(g, h),
            1,
            [1.0, 1.0],
            criterion="absolute_error",
            reg_lambda=0.0,
        )


def test_ranks_are_not_shared():
    columns = _core.Columns(50)
    columns.add_matrix(np.arange(50.0)[:, None])
    ranks = _core.rank(columns, None, 1)
    with pytest.raises(ValueError, match="must be bins"):
        run_workers(1, lambda workers: _core.SharedCodes(ranks, 0, 50, workers.core))


@pytest.mark.parametrize("n_numbers", [1, 5, 700, 70_000])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_sums_of_numbers(n_numbers, size):
    """Small and large sums take different ways; extremes take 8 bytes, zeros none."""
    rng = np.random.default_rng(n_numbers)
    own = rng.integers(-(2**62) // size, 2**62 // size, (size, n_numbers))
    own[:, rng.random(n_numbers) < 0.7] = 0
    own[:, ::7] //= 2**50

    def program(workers: Workers):
        numbers = own[workers.rank].copy()
        workers.core.sum(numbers)
        return numbers

    for actual in run_workers(size, program):
        np.testing.assert_array_equal(actual, own.sum(axis=0))


@needs_proc
def test_memory_of_many_nodes_in_many_windows():
    """Nodes of few rows are in few windows; 8 bytes for each node and window would be 400 MB."""
    grown_bytes = run(
        """
        import tempfile
        import numpy as np
        from arboost import _core

        def peak():
            with open("/proc/self/status") as status:
                (line,) = (line for line in status if line.startswith("VmHWM"))
            return int(line.split()[1]) * 1024

        n = 30_000
        rng = np.random.default_rng(0)
        columns = _core.Columns(n)
        columns.add_matrix(rng.random((n, 3)))
        codes = _core.encode(columns, None, [np.arange(1, 200) / 200] * 3, 1)
        with tempfile.TemporaryFile() as file:
            writer = _core.CodesWriter(file.fileno(), 32)
            writer.append(codes)
            codes = writer.finish()
        gradients = _core.Gradients(n, 1, by_row=True)
        _core.set_gradients(rng.normal(size=(n, 1)), np.ones((n, 1)), gradients, 1)
        params = _core.TreeParams()
        params.max_depth, params.max_leaves = None, None
        params.min_child_weight = params.reg_lambda = params.sample_bytes = 0
        grower = _core.Grower(codes, 1, params)
        before = peak()
        grower.grow(gradients, 0, seed=1, tree=0, rate=0.1, n_threads=1)
        assert len(grower.trees()["left"]) > 50_000
        print(peak() - before)
        """
    )
    assert int(grown_bytes) < 100e6
