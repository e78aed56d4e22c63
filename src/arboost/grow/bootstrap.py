"""Row samples of each tree or member of an ensemble, and sums of out-of-bag predictions.

A sample depends only on the seed and the number of the tree or member, so that any thread can train
any of them, and a sample can be drawn again instead of being stored.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core

__all__ = ["Drawn", "Origin", "RowDraws", "Unseen", "draw_size", "others", "smallest"]

Floats = NDArray[np.float64]
Rows = NDArray[np.uint32]


class Drawn(NamedTuple):
    """Sample of the rows for one tree or member.

    Attributes
    ----------
    rows : uint32 array
        Distinct rows of the sample, ascending.
    counts : float64 array, or None
        Number of draws of each; None where all were drawn once.
    """

    rows: Rows
    counts: Floats | None

    def repeated(self) -> NDArray[np.intp]:
        """Return the rows, each repeated by its number of draws."""
        rows = self.rows.astype(np.intp)
        return rows if self.counts is None else np.repeat(rows, self.counts.astype(np.intp))


@dataclass(frozen=True, kw_only=True, eq=False)
class RowDraws:
    """Scheme of the row samples: with replacement (Efron 1979), as counts, or without.

    Attributes
    ----------
    n_rows, n_draws : int
        Number of training rows, and size of a sample.
    seed : int
    repeats : bool
        Whether rows are drawn with replacement.
    weight : float64 array of shape (n_rows,), or None
        Draws with replacement have probabilities in proportion to these weights; None for equal
        probabilities. A row of weight 2 is then like two rows of weight 1, and trees or members are
        fitted to the sample without weights.
    """

    n_rows: int
    n_draws: int
    seed: int
    repeats: bool = True
    weight: Floats | None = None

    @property
    def takes_all(self) -> bool:
        """Whether every sample is all rows, once each."""
        return self.n_draws == self.n_rows and not self.repeats

    def sample(self, number: int, n_threads: int = 1) -> core.Sample:
        """Return a sample with replacement, in the core's type."""
        sample = core.Sample()
        if self.weight is None:
            sample.draw_with_replacement(self.n_rows, self.n_draws, self.seed, number, n_threads)
        else:
            sample.draw_by_weight(self.weight, self.seed, number, n_threads, self.n_draws)
        return sample

    def drawn(self, number: int) -> Drawn:
        """Return the sample of the tree or member of this number."""
        if self.repeats:
            sample = self.sample(number)
            counts = sample.weights().astype(np.float64)
            return Drawn(sample.positions(), None if (counts == 1.0).all() else counts)
        if self.takes_all:
            return Drawn(np.arange(self.n_rows, dtype=np.uint32), None)
        bits = core.counter_hash("bag", self.seed, 2 * number, self.n_rows)
        return Drawn(smallest(bits, self.n_draws).astype(np.uint32), None)


@dataclass(frozen=True, eq=False)
class Origin:
    """Origin of the sample of a fitted tree or member.

    Attributes
    ----------
    draws : RowDraws
    number : int
    kept : uint32 array, or None for all
        The given rows of nonzero weight, from which samples are drawn.
    """

    draws: RowDraws
    number: int
    kept: Rows | None

    def rows(self) -> NDArray[np.intp]:
        """Return the sample as rows of the given table, ascending, repeated by their draws."""
        rows = self.draws.drawn(self.number).repeated()
        return rows if self.kept is None else self.kept[rows].astype(np.intp)


def others(rows: NDArray[np.integer], n_rows: int) -> Rows:
    """Return the complement of some rows in a table of n_rows, ascending.

    Examples
    --------
    >>> others(np.array([1, 1, 3]), 5)
    array([0, 2, 4], dtype=uint32)
    """
    is_other = np.ones(n_rows, np.bool_)
    is_other[rows] = False
    return np.flatnonzero(is_other).astype(np.uint32)


def smallest(bits: NDArray[np.uint64], size: int) -> NDArray[np.intp]:
    """Return the indices of the smallest of some random bits, ascending: a sample of indices."""
    return np.sort(np.argsort(bits, kind="stable")[:size])


def draw_size(max_samples: float | None, n_rows: int) -> int:
    """Return the sample size for `max_samples`: a number, a share of the rows, or None for all.

    Examples
    --------
    >>> draw_size(None, 150), draw_size(20, 150), draw_size(0.1, 150)
    (150, 20, 15)
    """
    if max_samples is None:
        return n_rows
    return max_samples if isinstance(max_samples, int) else max(1, round(max_samples * n_rows))


class Unseen:
    """Sums of the out-of-bag predictions of trees or members, in the order of their numbers.

    Threads add predictions in any order. Predictions that come early wait here, so that no thread
    has to: sums of doubles depend on their order, which is that of the numbers, from 0 on.

    Parameters
    ----------
    n_rows, n_outputs : int
    """

    def __init__(self, n_rows: int, n_outputs: int) -> None:
        self._sums = np.zeros((n_rows, n_outputs))
        self._counts = np.zeros(n_rows, np.int64)
        self._next = 0
        self._early: dict[int, tuple[Rows, Floats | float]] = {}
        self._lock = threading.Lock()

    def add(self, number: int, rows: Rows, values: Floats | float) -> None:
        """Add the predictions of one tree or member for its out-of-bag rows.

        Their shape is (len(rows), n_outputs).
        """
        with self._lock:
            self._early[number] = rows, values
            while self._next in self._early:
                rows, values = self._early.pop(self._next)
                self._sums[rows] += values
                self._counts[rows] += 1
                self._next += 1

    def heard(self) -> NDArray[np.bool_]:
        """Return the mask of the rows that were out of bag at least once."""
        return self._counts > 0

    def means(self) -> Floats:
        """Return the mean out-of-bag prediction of each row; NaN for rows that have none."""
        counts = self._counts[:, np.newaxis]
        means = np.full_like(self._sums, np.nan)
        np.divide(self._sums, counts, out=means, where=counts > 0)
        return means
