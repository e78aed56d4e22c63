"""Which rows each tree or member of an ensemble is trained on, and what is said of the others.

What is drawn depends on the seed and the number of the tree or member alone, so that any thread can
train any of them, and a draw can be made again instead of being kept.
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
    """Rows of one tree or member.

    Attributes
    ----------
    rows : uint32 array
        Rows that were drawn, ascending, each of them once.
    counts : float64 array, or None
        How often each was; None where all were drawn once.
    """

    rows: Rows
    counts: Floats | None

    def repeated(self) -> NDArray[np.intp]:
        """Return the rows as often as they were drawn."""
        rows = self.rows.astype(np.intp)
        return rows if self.counts is None else np.repeat(rows, self.counts.astype(np.intp))


@dataclass(frozen=True, kw_only=True, eq=False)
class RowDraws:
    """How rows are drawn: with replacement (Efron 1979), as counts, or without. None is copied.

    Attributes
    ----------
    n_rows, n_draws : int
        Training rows, and how many times one of them is drawn.
    seed : int
    repeats : bool
        Whether they are drawn with replacement.
    weight : float64 array of shape (n_rows,), or None
        What the chances of rows that are drawn with replacement are proportional to; None where
        they are equal. A row of weight 2 is then as two rows of weight 1, and what is trained on
        the draws knows no weights.
    """

    n_rows: int
    n_draws: int
    seed: int
    repeats: bool = True
    weight: Floats | None = None

    @property
    def takes_all(self) -> bool:
        """Whether every row is drawn once."""
        return self.n_draws == self.n_rows and not self.repeats

    def sample(self, number: int, n_threads: int = 1) -> core.Sample:
        """Return rows that are drawn with replacement, as trees take them."""
        sample = core.Sample()
        if self.weight is None:
            sample.draw_with_replacement(self.n_rows, self.n_draws, self.seed, number, n_threads)
        else:
            sample.draw_by_weight(self.weight, self.seed, number, n_threads, self.n_draws)
        return sample

    def drawn(self, number: int) -> Drawn:
        """Return the rows of the tree or member of this number."""
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
    """Where the rows of a fitted tree or member came from.

    Attributes
    ----------
    draws : RowDraws
    number : int
    kept : uint32 array, or None for all
        Which of the rows that were given had a weight above 0, and were drawn from.
    """

    draws: RowDraws
    number: int
    kept: Rows | None

    def rows(self) -> NDArray[np.intp]:
        """Return rows of the table that was given, ascending, each as often as it was drawn."""
        rows = self.draws.drawn(self.number).repeated()
        return rows if self.kept is None else self.kept[rows].astype(np.intp)


def others(rows: NDArray[np.integer], n_rows: int) -> Rows:
    """Return the rows of a table that are not among some, ascending.

    Examples
    --------
    >>> others(np.array([1, 1, 3]), 5)
    array([0, 2, 4], dtype=uint32)
    """
    is_other = np.ones(n_rows, np.bool_)
    is_other[rows] = False
    return np.flatnonzero(is_other).astype(np.uint32)


def smallest(bits: NDArray[np.uint64], wanted: int) -> NDArray[np.intp]:
    """Return the places of the smallest of some random bits, ascending: a draw of places."""
    return np.sort(np.argsort(bits, kind="stable")[:wanted])


def draw_size(max_samples: float | None, n_rows: int) -> int:
    """Return the number of draws for a tree: as many as rows, a number, or a share of the rows.

    Examples
    --------
    >>> draw_size(None, 150), draw_size(20, 150), draw_size(0.1, 150)
    (150, 20, 15)
    """
    if max_samples is None:
        return n_rows
    return max_samples if isinstance(max_samples, int) else max(1, round(max_samples * n_rows))


class Unseen:
    """Sums of what trees or members say of rows that they have not seen, in their order.

    Threads add what they have when they are done. What comes before its turn waits here, not the
    thread: sums of doubles depend on their order, and this one is that of the numbers, from 0 on.

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
        """Add what one says of some rows, shape (len(rows), n_outputs)."""
        with self._lock:
            self._early[number] = rows, values
            while self._next in self._early:
                rows, values = self._early.pop(self._next)
                self._sums[rows] += values
                self._counts[rows] += 1
                self._next += 1

    def heard(self) -> NDArray[np.bool_]:
        """Return for which rows there was one that had not seen them."""
        return self._counts > 0

    def means(self) -> Floats:
        """Return the mean of what was said of each row; NaN where nothing was."""
        counts = self._counts[:, np.newaxis]
        means = np.full_like(self._sums, np.nan)
        np.divide(self._sums, counts, out=means, where=counts > 0)
        return means
