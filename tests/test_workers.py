"""Calls in which the workers of a fit meet."""

import pytest

from arboost.errors import DataWarning, WorkerError, warn_caller
from arboost.workers import even_ranges, run_collective, warn_on_first_worker
from support.local_workers import run_workers


@pytest.mark.parametrize("size", [1, 2, 5])
def test_values_are_exchanged_by_rank(size):
    def program(w):
        return w.exchange([(w.rank, rank) for rank in range(size)])

    for rank, found in enumerate(run_workers(size, program)):
        assert found == [(other, rank) for other in range(size)]


def test_ranges_cover_all():
    assert [list(part) for part in even_ranges(5, 2)] == [[0, 1], [2, 3, 4]]
    assert [len(part) for part in even_ranges(2, 4)] == [0, 1, 0, 1]


def test_work_in_one_process():
    assert run_collective(None, lambda: 3) == 3
    with pytest.raises(KeyError):
        run_collective(None, {}.popitem)


def test_first_error_by_rank_is_that_of_all():
    def program(w):
        def work():
            if w.rank:
                raise ValueError(f"row {w.rank}")
            return 7

        with pytest.raises(ValueError, match="row 1") as caught:
            run_collective(w, work)
        assert run_collective(w, lambda: w.rank) == w.rank  # in step again
        return caught.value.__notes__

    for notes in run_workers(3, program):
        assert notes == ["Error of worker 1 of 3, on its own rows."]


def test_error_that_cannot_be_sent():
    class LocalError(Exception):
        """Unknown to pickle."""

    def program(w):
        def work():
            if w.rank == 0:
                raise LocalError("here")

        with pytest.raises(WorkerError if w.rank else LocalError, match="here"):
            run_collective(w, work)

    run_workers(2, program)


def test_first_worker_warns():
    def program(w):
        with warn_on_first_worker(w):
            warn_caller(f"of {w.rank}")

    with pytest.warns(DataWarning, match="of 0") as caught:
        run_workers(3, program)
    assert len(caught) == 1
