"""Samples of the training rows of a tree or an ensemble member.

`RowSampling` draws rows for trees of boosting, by chance or by gradient; `RowDraws` draws with or
without replacement for forests and bagging. Each draw is a hash of the seed, the number of the draw
and the row, so any thread can repeat it and none is stored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.trees.forest import Floats


@dataclass(frozen=True, kw_only=True)
class RowSampling:
    """Row sampling scheme of a fit.

    Attributes
    ----------
    method : {"uniform", "gradient_based", "goss"}
        Rows of equal probability; or of probability in proportion to the norm sqrt(g^2 + lambda
        h^2) of the gradient, with the inverse probability as weight; or the rows of the largest
        gradients and a sample of the others, weighted up to their number (Ke et al. 2017,
        "LightGBM", section 3).
        "goss" uses first-order gradients only, as the paper does: with hessians in the norm, rows
        of uncertain predictions would not be the largest.
    rate : float
        Share of the rows, in (0, 1]; always 1 with "goss".
    reg_lambda : float
        The lambda of the norm.
    top_rate, other_rate : float
        With "goss": shares of the rows that are kept for their gradients, and at random.
    full_rounds : int
        With "goss": number of first rounds on all rows, because first gradients say little.
    ordered_leaves : bool
        Leaf values are order statistics, which ignore the weights of a sample.
    """

    method: str = "uniform"
    rate: float = 1.0
    reg_lambda: float = 1.0
    top_rate: float = 0.2
    other_rate: float = 0.1
    full_rounds: int = 0
    ordered_leaves: bool = False

    @property
    def leaves_from_all_rows(self) -> bool:
        """Whether leaf values come from all rows, and only splits from the sample.

        A tree of many leaves on few rows fits their noise, and large weights of rare rows make it
        worse. Leaf values from all rows cost one pass, and leave only the splits to chance. "goss"
        takes leaf values from its weighted sample, as published.
        """
        return self.method == "gradient_based" or (self.method == "goss" and self.ordered_leaves)

    def in_core(self) -> core.RowSampling:
        """Scheme for rounds in the core, whose draws are those of `draw`."""
        sampling = core.RowSampling()
        sampling.method = getattr(core.SamplingMethod, self.method)
        for name in ("rate", "reg_lambda", "top_rate", "other_rate", "full_rounds"):
            setattr(sampling, name, getattr(self, name))
        sampling.leaves_from_all_rows = self.leaves_from_all_rows
        return sampling

    def draw(
        self,
        gradients: core.Gradients,
        out: core.Sample,
        *,
        seed: int,
        round_: int,
        draw: int,
        n_threads: int,
    ) -> core.Sample | None:
        """Sample number ``draw`` of the rows, in ``out``; or None for all rows.

        ``round_`` is the number of earlier rounds, those before a warm start included.
        """
        if self.method == "goss":
            if round_ < self.full_rounds:
                return None
            out.draw_one_side(gradients, self.top_rate, self.other_rate, seed, draw, n_threads)
        elif self.rate >= 1.0:
            return None
        elif self.method == "uniform":
            out.draw(gradients.n_rows, self.rate, seed, draw, n_threads)
        else:
            out.draw_by_gradient(gradients, self.rate, self.reg_lambda, seed, draw, n_threads)
        return out


Index = NDArray[np.uint32]


class DrawnRows(NamedTuple):
    """Drawn rows of one tree or member.

    Attributes
    ----------
    rows : uint32 array
        Drawn rows, ascending, each once.
    counts : float64 array, or None
        Number of times that each row was drawn; None where all were drawn once.
    """

    rows: Index
    counts: Floats | None

    def repeated(self) -> NDArray[np.intp]:
        """Rows, ascending, each as often as it was drawn."""
        rows = self.rows.astype(np.intp)
        return rows if self.counts is None else np.repeat(rows, self.counts.astype(np.intp))


@dataclass(frozen=True, kw_only=True, eq=False)
class RowDraws:
    """Draws of rows with replacement (the bootstrap, Efron 1979) or without; no row is copied.

    Attributes
    ----------
    n_rows, n_draws : int
        Number of training rows, and number of draws from them.
    seed : int
    repeats : bool
        Whether rows are drawn with replacement.
    weight : float64 array of shape (n_rows,), or None
        Weights that the chances of rows drawn with replacement are proportional to; None for equal
        chances. A row of weight 2 then counts as two rows of weight 1, and members trained on the
        draws get no weights.
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

    def sample(
        self, number: int, n_threads: int = 1, out: core.Sample | None = None
    ) -> core.Sample:
        """Draw with replacement, in the form that trees are grown on.

        ``out`` is a sample that is no longer needed: its memory is used again.
        """
        sample = core.Sample() if out is None else out
        if self.weight is None:
            sample.draw_with_replacement(self.n_rows, self.n_draws, self.seed, number, n_threads)
        else:
            sample.draw_by_weight(self.weight, self.seed, number, n_threads, self.n_draws)
        return sample

    def drawn(self, number: int) -> DrawnRows:
        """Drawn rows of a tree or member by its number."""
        if self.repeats:
            sample = self.sample(number)
            counts = sample.weights().astype(np.float64)
            return DrawnRows(sample.positions(), None if (counts == 1.0).all() else counts)
        if self.takes_all:
            return DrawnRows(np.arange(self.n_rows, dtype=np.uint32), None)
        bits = core.counter_hash("bag", self.seed, 2 * number, self.n_rows)
        return DrawnRows(smallest_indices(bits, self.n_draws).astype(np.uint32), None)


@dataclass(frozen=True, eq=False)
class DrawOrigin:
    """Origin of the training rows of a fitted tree or member.

    Attributes
    ----------
    draws : RowDraws
    number : int
        Number of the tree or member.
    kept : uint32 array, or None for all
        Index of nonzero weight in the table of the fit: the rows that were drawn from.
    """

    draws: RowDraws
    number: int
    kept: Index | None

    def rows(self) -> NDArray[np.intp]:
        """Drawn rows of the table of the fit, ascending, with repetitions."""
        rows = self.draws.drawn(self.number).repeated()
        return rows if self.kept is None else self.kept[rows].astype(np.intp)


def undrawn_rows(rows: NDArray[np.integer], n_rows: int) -> Index:
    """Rows of a table that are not among the given rows, ascending.

    Examples
    --------
    >>> undrawn_rows(np.array([1, 1, 3]), 5)
    array([0, 2, 4], dtype=uint32)
    """
    is_undrawn = np.ones(n_rows, np.bool_)
    is_undrawn[rows] = False
    return np.flatnonzero(is_undrawn).astype(np.uint32)


def smallest_indices(bits: NDArray[np.uint64], count: int) -> NDArray[np.intp]:
    """Indices of the smallest random numbers, ascending: a draw without replacement."""
    return np.sort(np.argsort(bits, kind="stable")[:count])


def draw_size(max_samples: float | None, n_rows: int) -> int:
    """Number of draws of a tree, from None for n_rows, a count, or a share of the rows.

    Examples
    --------
    >>> draw_size(None, 150), draw_size(20, 150), draw_size(0.1, 150)
    (150, 20, 15)
    """
    if max_samples is None:
        return n_rows
    return max_samples if isinstance(max_samples, int) else max(1, round(max_samples * n_rows))
