"""Out-of-bag predictions: means over the trees or members that were not trained on a row."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from arboost.errors import warn_caller

__all__ = ["OutOfBagSums", "scores_of_all", "warn_never_out_of_bag"]

Floats = NDArray[np.float64]
Index = NDArray[np.uint32]


class OutOfBagSums:
    """Sums of the predictions of trees or members for their out-of-bag rows.

    Threads add predictions as they finish. Sums of doubles depend on their order, so predictions
    that arrive early wait here, and are added in the order of the members' numbers, from 0 on. The
    thread does not wait.

    Parameters
    ----------
    n_rows, n_outputs : int
    """

    def __init__(self, n_rows: int, n_outputs: int) -> None:
        self._sums = np.zeros((n_rows, n_outputs))
        self._counts = np.zeros(n_rows, np.int64)
        self._next = 0
        self._early: dict[int, tuple[Index, Floats | float]] = {}
        self._lock = threading.Lock()

    def add(self, number: int, rows: Index, values: Floats | float) -> None:
        """Add the predictions of one member for its out-of-bag rows.

        Parameters
        ----------
        number : int
            Number of the tree or member.
        rows : uint32 array
            Out-of-bag rows, each once.
        values : float64 array of shape (len(rows), n_outputs), or a number for all
        """
        with self._lock:
            self._early[number] = rows, values
            while self._next in self._early:
                rows, values = self._early.pop(self._next)
                self._sums[rows] += values
                self._counts[rows] += 1
                self._next += 1

    def rows(self, part: slice) -> tuple[Floats, NDArray[np.int64]]:
        """Return the sums and counts of some rows."""
        return self._sums[part], self._counts[part]

    def put(self, part: slice, rows: tuple[Floats, NDArray[np.int64]]) -> None:
        """Replace the sums and counts of some rows by those that another process has added."""
        self._sums[part], self._counts[part] = rows

    def has_some(self) -> NDArray[np.bool_]:
        """Return the mask of the rows that were out of bag at least once."""
        return self._counts > 0

    def means(self) -> Floats:
        """Return the mean out-of-bag prediction of each row; NaN where there is none."""
        counts = self._counts[:, np.newaxis]
        means = np.full_like(self._sums, np.nan)
        np.divide(self._sums, counts, out=means, where=counts > 0)
        return means


def warn_never_out_of_bag(n_never: int, n_rows: int, what: str) -> None:
    """Warn of rows without an out-of-bag prediction, if there are any.

    Parameters
    ----------
    n_never : int
        Number of rows that every tree or member has drawn.
    n_rows : int
    what : str
        "tree" or "member".
    """
    if n_never == 0:
        return
    warn_caller(
        f"{n_never} of {n_rows} rows were drawn for every {what}: their out-of-bag predictions are "
        f"NaN, and they do not count in oob_score_. Use a larger n_estimators."
    )


def scores_of_all(
    scores: NDArray[np.float64], index: NDArray[np.uint32] | None, n_rows: int
) -> NDArray[np.float64]:
    """Return out-of-bag scores of all rows of a table; NaN for rows outside the index."""
    if index is None:
        return scores
    wide = np.full((n_rows, scores.shape[1]), np.nan)
    wide[index] = scores
    return wide
