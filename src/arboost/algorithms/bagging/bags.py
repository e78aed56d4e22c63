"""Bags: the rows and features of each member.

A bag depends only on the seed and the member's number. So bags are never stored, and do not depend
on other bags.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.errors import warn_caller
from arboost.grow.bootstrap import RowDraws, smallest
from arboost.losses.base import Floats
from arboost.params.records import ParamRecord

__all__ = ["BagParams", "Bags", "make_bags"]

_FEW_DRAWS = 10  # a member learns little from fewer rows


@dataclass(frozen=True, kw_only=True)
class BagParams(ParamRecord):
    """Parameters that bags depend on."""

    max_samples: int | float | None
    max_features: int | float
    bootstrap: bool
    bootstrap_features: bool
    oob_score: bool
    random_state: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Bags:
    """Draws of rows and features, by the number of the member.

    Attributes
    ----------
    rows : RowDraws
    n_features, n_drawn_features : int
        Number of features of the table, and of a bag.
    repeats_features : bool
        Whether features are drawn with replacement.
    """

    rows: RowDraws
    n_features: int
    n_drawn_features: int
    repeats_features: bool

    @property
    def takes_all_features(self) -> bool:
        """Whether every bag has every feature once."""
        return self.n_drawn_features == self.n_features and not self.repeats_features

    def features(self, number: int) -> NDArray[np.intp]:
        """Return the features of one member, ascending, with repetitions."""
        if self.takes_all_features:
            return np.arange(self.n_features)
        wanted = self.n_drawn_features
        if not self.repeats_features:
            return smallest(self._bits(number, self.n_features), wanted)
        # The upper half of a product with 32 random bits is a random number below n_features.
        bits = self._bits(number, wanted) >> np.uint64(32)
        return np.sort(((bits * np.uint64(self.n_features)) >> np.uint64(32)).astype(np.intp))

    def _bits(self, number: int, count: int) -> NDArray[np.uint64]:
        # Odd hash rounds; draws of rows have the even ones.
        bits: NDArray[np.uint64] = core.counter_hash("bag", self.rows.seed, 2 * number + 1, count)
        return bits


def make_bags(params: BagParams, n_rows: int, n_features: int, weight: Floats | None) -> Bags:
    """Return the bags of a fit.

    Parameters
    ----------
    params : BagParams
    n_rows, n_features : int
    weight : float64 array of shape (n_rows,), or None
        Weights above 0.
    """
    repeats, given = params.bootstrap, params.max_samples
    chances = weight if repeats else None
    if given is None:
        n_draws = n_rows
    else:
        n_draws = _draw_count(given, n_rows if chances is None else float(chances.sum()))
    if isinstance(given, float) and n_draws < max(_FEW_DRAWS, n_rows ** (1 / 3)):
        whole = f"{n_rows} rows" if chances is None else f"a total weight of {chances.sum():g}"
        warn_caller(
            f"max_samples={given} of {whole} is {n_draws} drawn rows for each member, from which "
            "a member learns little. Pass the number of draws itself, for example "
            f"max_samples={n_rows}.",
        )
    if not repeats and n_draws > n_rows:
        raise ValueError(
            f"max_samples={n_draws} is not allowed with bootstrap=False: each of the {n_rows} rows "
            "can be drawn once. Use a smaller number, a share, or bootstrap=True."
        )
    if params.oob_score and not repeats and n_draws == n_rows:
        raise ValueError(
            "oob_score=True is not allowed with bootstrap=False and all rows in every bag: no row "
            "is out of bag. Use bootstrap=True, or for example max_samples=0.5."
        )
    n_drawn_features = _draw_count(params.max_features, n_features)
    if n_drawn_features > n_features:
        raise ValueError(
            f"max_features={n_drawn_features} is not allowed: X has {n_features} features. Use a "
            "smaller number, or a share such as 0.5."
        )
    rows = RowDraws(
        n_rows=n_rows,
        n_draws=n_draws,
        seed=params.random_state,
        repeats=repeats,
        weight=chances,
    )
    return Bags(
        rows=rows,
        n_features=n_features,
        n_drawn_features=n_drawn_features,
        repeats_features=params.bootstrap_features,
    )


def _draw_count(given: int | float, total: float) -> int:
    """Return the number of draws, from a count or a share of the total; at least 1.

    Examples
    --------
    >>> _draw_count(0.29, 100), _draw_count(7, 100), _draw_count(0.001, 100)
    (29, 7, 1)
    """
    if isinstance(given, int):
        return given
    # Rounded first: 0.29 * 100 is 28.999999999999996, but users mean 29.
    return max(int(round(given * total, 6)), 1)
