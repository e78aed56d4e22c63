"""Out-of-bag predictions: means over the trees or members that were not trained on a row."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.errors import warn_caller
from arboost.losses.base import Floats
from arboost.training.splits import Index

_TWO_CLASSES = 2
_SUM_BITS = 62  # of the largest sum
_LARGEST_ERROR = 4.0  # of a row; predictions are means of y, within its range
_LARGEST_EXPONENT = 1024


@dataclass(frozen=True, eq=False)
class OutOfBagTruth:
    """Truth of one target, with the outputs that predict it.

    Attributes
    ----------
    y : float64 array of shape (n_rows,)
        Values, or class codes.
    n_outputs : int
        Number of outputs of the target, which lie next to each other.
    n_classes : int or None
        None for regression. A single output of two classes is positive for the second.
    """

    y: Floats
    n_outputs: int
    n_classes: int | None

    @property
    def exponent(self) -> int:
        """Power of two that no squared error exceeds by much; 0 for errors of classes."""
        if self.n_classes is not None or not len(self.y):
            return 0
        with np.errstate(over="ignore"):
            spread = float(np.ptp(self.y))
        return math.frexp(spread)[1] if math.isfinite(spread) else _LARGEST_EXPONENT

    def errors(self, means: Floats, rows: Any) -> Floats | NDArray[np.bool_]:
        """The error of each row: whether its class is wrong, or the square, by `exponent`."""
        y = self.y[rows]
        if self.n_classes is None:
            with np.errstate(over="ignore", invalid="ignore"):
                errors = np.square(np.ldexp(means[:, 0] - y, -self.exponent))
            bounded: Floats = np.fmin(errors, _LARGEST_ERROR)
            return bounded
        if self.n_outputs == 1 and self.n_classes == _TWO_CLASSES:
            is_wrong: NDArray[np.bool_] = (means[:, 0] > 0.0) != y
        else:
            is_wrong = means.argmax(axis=1) != y
        return is_wrong

    def score(self, mean_error: float) -> float:
        """The error rate, or the root of the mean squared error."""
        if self.n_classes is not None:
            return mean_error
        return math.ldexp(math.sqrt(mean_error), self.exponent)


class OutOfBagCurve:
    """Error of the out-of-bag predictions of the first trees, for some numbers of trees.

    It is the error rate for classes, the root of the mean squared error for regression, of the rows
    that were out of bag for one of these trees at least. Sums are integers, so that they depend
    neither on the order of the rows nor on their division between workers.

    Parameters
    ----------
    truths : sequence of OutOfBagTruth
        One for each target.
    weight : float64 array of shape (n_rows,), or None
    numbers : sequence of int
        Numbers of trees, ascending.
    """

    def __init__(
        self, truths: Sequence[OutOfBagTruth], weight: Floats | None, numbers: Sequence[int]
    ) -> None:
        self._truths = tuple(truths)
        self._weight = weight
        n_rows = len(truths[0].y)
        largest = 1.0 if weight is None or not n_rows else float(weight.max())
        self._shift = _SUM_BITS - math.frexp(largest * _LARGEST_ERROR * max(n_rows, 1))[1]
        self._sums = {number: np.zeros(len(truths) + 1, np.int64) for number in numbers}
        self.part = slice(0, n_rows)  # rows that this process measures

    @property
    def metric(self) -> str:
        """Name of the error: "error" or "rmse"."""
        return "rmse" if self._truths[0].n_classes is None else "error"

    def measure(self, number: int, sums: Floats, counts: NDArray[np.int64]) -> None:
        """Measure the predictions of the first `number` trees, if the curve has a point there."""
        if number not in self._sums:
            return
        counts = counts[self.part]
        known: NDArray[np.bool_] = counts > 0
        rows: Any = self.part if known.all() else np.flatnonzero(known) + self.part.start
        counts = counts if known.all() else counts[known]
        weight = None if self._weight is None else self._weight[rows]
        means = sums[rows] / counts[:, np.newaxis]
        total = self._sums[number]
        total[0] = len(means) << self._shift if weight is None else self._whole(weight)
        first = 0
        for position, truth in enumerate(self._truths, 1):
            errors = truth.errors(means[:, first : first + truth.n_outputs], rows)
            total[position] = self._whole(errors if weight is None else errors * weight)
            first += truth.n_outputs

    def add_up(self, after: int, add: Callable[[NDArray[np.int64]], object]) -> None:
        """Add up the parts of all workers, for more than `after` trees.

        `add` replaces an array by its sum over the workers.
        """
        for number, total in self._sums.items():
            if number > after:
                add(total)

    def points(self) -> tuple[list[int], list[list[float]]]:
        """The numbers of trees with an out-of-bag row, and the errors of each target."""
        sums = {number: total.tolist() for number, total in self._sums.items() if total[0]}
        errors = [
            [truth.score(total[position] / total[0]) for total in sums.values()]
            for position, truth in enumerate(self._truths, 1)
        ]
        return list(sums), errors

    def _whole(self, values: Floats | NDArray[np.bool_]) -> int:
        """The sum of numbers, each rounded to a multiple of one small unit."""
        if values.dtype == np.bool_:
            return int(np.count_nonzero(values)) << self._shift
        return int(np.rint(np.ldexp(values, self._shift)).astype(np.int64).sum())


class OutOfBagSums:
    """Sums of the predictions of trees or members for their out-of-bag rows.

    Threads add predictions as they finish. Sums of doubles depend on their order, so predictions
    that arrive early wait here, and are added in the order of the members' numbers, from 0 on. The
    thread does not wait.

    Parameters
    ----------
    n_rows, n_outputs : int
    curve : OutOfBagCurve, optional
        Measures the predictions of the first members as they are added.
    """

    def __init__(self, n_rows: int, n_outputs: int, curve: OutOfBagCurve | None = None) -> None:
        self.curve = curve
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
                if self.curve is not None:
                    self.curve.measure(self._next, self._sums, self._counts)

    def rows(self, part: slice) -> tuple[Floats, NDArray[np.int64]]:
        """The sums and counts of some rows."""
        return self._sums[part], self._counts[part]

    def put(self, part: slice, rows: tuple[Floats, NDArray[np.int64]]) -> None:
        """Replace the sums and counts of some rows by those that another process has added."""
        self._sums[part], self._counts[part] = rows

    def has_some(self) -> NDArray[np.bool_]:
        """The mask of the rows that were out of bag at least once."""
        return self._counts > 0

    def means(self) -> Floats:
        """The mean out-of-bag prediction of each row; NaN where there is none."""
        counts = self._counts[:, np.newaxis]
        means = np.full_like(self._sums, np.nan)
        np.divide(self._sums, counts, out=means, where=counts > 0)
        return means


def warn_never_out_of_bag(n_never: int, n_rows: int, learner: str) -> None:
    """Warn of rows without an out-of-bag prediction, if there are any.

    Parameters
    ----------
    n_never : int
        Number of rows that every tree or member has drawn.
    n_rows : int
    learner : str
        "tree" or "member".
    """
    if n_never == 0:
        return
    warn_caller(
        f"{n_never} of {n_rows} rows were drawn for every {learner}: their out-of-bag predictions "
        "are NaN, and they do not count in oob_score_. Use a larger n_estimators."
    )


def scores_of_all(scores: Floats, index: Index | None, n_rows: int) -> Floats:
    """Out-of-bag scores of all rows of a table; NaN for rows outside the index."""
    if index is None:
        return scores
    wide = np.full((n_rows, scores.shape[1]), np.nan)
    wide[index] = scores
    return wide
