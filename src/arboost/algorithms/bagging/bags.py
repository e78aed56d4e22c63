"""Which rows and features each member of an ensemble gets: its bag.

A bag is a function of the seed and of the member's number alone, so that it never has to be kept,
and does not depend on what was drawn before or at the same time.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.errors import DataWarning
from arboost.grow.bootstrap import RowDraws, smallest

__all__ = ["Draws", "make_draws"]

Floats = NDArray[np.float64]

_FEW_DRAWS = 10  # of fewer rows there is little to learn


@dataclass(frozen=True, eq=False, kw_only=True)
class Draws:
    """How bags are drawn.

    Attributes
    ----------
    rows : RowDraws
    n_features, n_drawn_features : int
        Of the table, and of a bag.
    repeats_features : bool
        Whether they are drawn with replacement.
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
        """Return the features of one member, ascending; some may come several times."""
        if self.takes_all_features:
            return np.arange(self.n_features)
        wanted = self.n_drawn_features
        if not self.repeats_features:
            return smallest(self._bits(number, self.n_features), wanted)
        # The upper half of a product with 32 random bits is a random number below n_features.
        bits = self._bits(number, wanted) >> np.uint64(32)
        return np.sort(((bits * np.uint64(self.n_features)) >> np.uint64(32)).astype(np.intp))

    def _bits(self, number: int, count: int) -> NDArray[np.uint64]:
        # Rows have the even numbers.
        bits: NDArray[np.uint64] = core.counter_hash("bag", self.rows.seed, 2 * number + 1, count)
        return bits


def make_draws(
    params: Mapping[str, Any], n_rows: int, n_features: int, weight: Floats | None
) -> Draws:
    """Return how bags are drawn, by the parameters of bagging.

    `weight` has a number above 0 for each row, or is None.
    """
    repeats, given = params["bootstrap"], params["max_samples"]
    chances = weight if repeats else None
    if given is None:
        n_draws = n_rows
    else:
        n_draws = _wanted(given, n_rows if chances is None else float(chances.sum()))
    if isinstance(given, float) and n_draws < max(_FEW_DRAWS, n_rows ** (1 / 3)):
        whole = f"{n_rows} rows" if chances is None else f"a total weight of {chances.sum():g}"
        warnings.warn(
            f"max_samples={given} of {whole} is {n_draws} drawn rows for each member, from which "
            "there is little to learn. Pass the number of draws itself, for example "
            f"max_samples={n_rows}.",
            DataWarning,
            stacklevel=5,
        )
    if not repeats and n_draws > n_rows:
        raise ValueError(
            f"max_samples={n_draws} is not allowed with bootstrap=False: each of the {n_rows} rows "
            "can be drawn once. Use a smaller number, a share, or bootstrap=True."
        )
    if params["oob_score"] and not repeats and n_draws == n_rows:
        raise ValueError(
            "oob_score=True is not allowed with bootstrap=False and all rows in every bag: none is "
            "out of bag. Use bootstrap=True, or for example max_samples=0.5."
        )
    n_drawn_features = _wanted(params["max_features"], n_features)
    if n_drawn_features > n_features:
        raise ValueError(
            f"max_features={n_drawn_features} is not allowed: X has {n_features} features. Use a "
            "smaller number, or a share such as 0.5."
        )
    rows = RowDraws(
        n_rows=n_rows,
        n_draws=n_draws,
        seed=params["random_state"],
        repeats=repeats,
        weight=chances,
    )
    return Draws(
        rows=rows,
        n_features=n_features,
        n_drawn_features=n_drawn_features,
        repeats_features=params["bootstrap_features"],
    )


def _wanted(given: int | float, total: float) -> int:
    """Return how many to draw, by a number of them or a share of the total; at least 1.

    Examples
    --------
    >>> _wanted(0.29, 100), _wanted(7, 100), _wanted(0.001, 100)
    (29, 7, 1)
    """
    if isinstance(given, int):
        return given
    # Products such as 0.29 * 100 = 28.999999999999996 are whole numbers to their users.
    return max(int(round(given * total, 6)), 1)
