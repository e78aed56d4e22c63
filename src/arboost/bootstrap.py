"""Which rows each tree of a forest is grown on, and what trees say of those they have not seen.

What is drawn for a tree depends on the seed and the tree's number alone, so that any thread can
grow any tree, and a draw can be made again instead of being kept.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core

__all__ = ["Bags", "Draws", "Unseen", "draw_size"]

Floats = NDArray[np.float64]
Rows = NDArray[np.uint32]


@dataclass(frozen=True, kw_only=True, eq=False)
class Draws:
    """Draws with replacement (Efron 1979), as counts: no row is copied.

    Attributes
    ----------
    n_rows, n_draws : int
        Training rows, and how many times one of them is drawn for each tree.
    seed : int
    weight : float64 array of shape (n_rows,), or None
        What the chances of the rows are proportional to; None where they are equal. A row of weight
        2 is then as two rows of weight 1, and the trees themselves know no weights.
    """

    n_rows: int
    n_draws: int
    seed: int
    weight: Floats | None = None

    def sample(self, tree: int, n_threads: int) -> core.Sample:
        """Return the rows of a tree, with the number of times that each was drawn."""
        sample = core.Sample()
        if self.weight is None:
            sample.draw_with_replacement(self.n_rows, self.n_draws, self.seed, tree, n_threads)
        else:
            sample.draw_by_weight(self.weight, self.seed, tree, n_threads, self.n_draws)
        return sample

    def unseen(self, sample: core.Sample) -> Rows:
        """Return the rows that are not in a sample, ascending."""
        is_unseen = np.ones(self.n_rows, np.bool_)
        is_unseen[sample.positions()] = False
        return np.flatnonzero(is_unseen).astype(np.uint32)


@dataclass(frozen=True, eq=False)
class Bags:
    """Which rows the trees of a fitted forest have seen.

    Attributes
    ----------
    draws : tuple with a Draws or None for each tree
        None for trees that have seen all rows.
    n_rows : int
        Rows that counted in the last fit.
    kept : uint32 array, or None for all
        Which of the rows that were given these are.
    first : int
        Number of the first of these trees.
    """

    draws: tuple[Draws | None, ...] = ()
    n_rows: int = 0
    kept: Rows | None = None
    first: int = 0

    def samples(self) -> list[NDArray[np.int64]]:
        """Return the rows of each tree, ascending, each as often as it was drawn."""
        given = np.arange(self.n_rows) if self.kept is None else self.kept.astype(np.int64)
        found = []
        for tree, draws in enumerate(self.draws, self.first):
            rows = given
            if draws is not None:
                sample = draws.sample(tree, 1)
                rows = np.repeat(given[sample.positions()], sample.weights().astype(np.int64))
            found.append(rows)
        return found


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
    """Sums of what trees say of the rows that they have not seen, in the order of the trees.

    Threads add their trees when they are done. One that comes before its turn waits here, not the
    thread: sums of doubles depend on their order, and this one is that of the trees' numbers.

    Parameters
    ----------
    n_rows, n_outputs : int
    first_tree : int
        Number of the first tree to come.
    """

    def __init__(self, n_rows: int, n_outputs: int, first_tree: int = 0) -> None:
        self._sums = np.zeros((n_rows, n_outputs))
        self._counts = np.zeros(n_rows, np.int64)
        self._next = first_tree
        self._early: dict[int, tuple[Rows, Floats]] = {}
        self._lock = threading.Lock()

    def add(self, tree: int, rows: Rows, values: Floats) -> None:
        """Add what a tree says of some rows, shape (len(rows), n_outputs)."""
        with self._lock:
            self._early[tree] = rows, values
            while self._next in self._early:
                rows, values = self._early.pop(self._next)
                self._sums[rows] += values
                self._counts[rows] += 1
                self._next += 1

    def means(self) -> Floats:
        """Return the mean over the trees that have not seen a row; NaN where all have."""
        counts = self._counts[:, np.newaxis]
        means = np.full_like(self._sums, np.nan)
        np.divide(self._sums, counts, out=means, where=counts > 0)
        return means
