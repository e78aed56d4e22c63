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

__all__ = ["Bag", "Draws", "make_draws"]

Index = NDArray[np.uint32]
Floats = NDArray[np.float64]

_FEW_DRAWS = 10  # of fewer rows there is little to learn


@dataclass(frozen=True)
class Bag:
    """Rows and features of one member.

    Attributes
    ----------
    rows : uint32 array
        Rows that were drawn, ascending, each of them once.
    counts : float64 array, or None
        How often each was; None where all were drawn once.
    features : int array
        Features, ascending; some may come several times.
    """

    rows: Index
    counts: Floats | None
    features: NDArray[np.intp]

    def repeated(self) -> NDArray[np.intp]:
        """Return the rows as often as they were drawn."""
        rows = self.rows.astype(np.intp)
        return rows if self.counts is None else np.repeat(rows, self.counts.astype(np.intp))


@dataclass(frozen=True, eq=False, kw_only=True)
class Draws:
    """How bags are drawn.

    Attributes
    ----------
    seed : int
    n_rows, n_features : int
        Of the table.
    n_draws, n_drawn_features : int
        Of a bag.
    repeats_rows, repeats_features : bool
        Whether they are drawn with replacement.
    weight : float64 array of shape (n_rows,), or None
        Rows that are drawn with replacement are so in proportion to it; None draws all with the
        same chance.
    """

    seed: int
    n_rows: int
    n_features: int
    n_draws: int
    n_drawn_features: int
    repeats_rows: bool
    repeats_features: bool
    weight: Floats | None = None

    @property
    def takes_all_features(self) -> bool:
        """Whether every bag has every feature once."""
        return self.n_drawn_features == self.n_features and not self.repeats_features

    def bag(self, number: int) -> Bag:
        """Return the bag of one member."""
        rows, counts = self._repeated_rows(number) if self.repeats_rows else self._rows(number)
        return Bag(rows, counts, self.features(number))

    def _repeated_rows(self, number: int) -> tuple[Index, Floats | None]:
        sample = core.Sample()
        if self.weight is None:
            sample.draw_with_replacement(self.n_rows, self.n_draws, self.seed, number, 1)
        else:
            sample.draw_by_weight(self.weight, self.seed, number, 1, self.n_draws)
        counts = sample.weights().astype(np.float64)
        return sample.positions(), None if (counts == 1.0).all() else counts

    def _rows(self, number: int) -> tuple[Index, None]:
        if self.n_draws == self.n_rows:
            return np.arange(self.n_rows, dtype=np.uint32), None
        drawn = _first(self._bits(2 * number, self.n_rows), self.n_draws)
        return drawn.astype(np.uint32), None

    def features(self, number: int) -> NDArray[np.intp]:
        """Return the features of one member, ascending; some may come several times."""
        if self.takes_all_features:
            return np.arange(self.n_features)
        wanted = self.n_drawn_features
        if not self.repeats_features:
            return _first(self._bits(2 * number + 1, self.n_features), wanted)
        # The upper half of a product with 32 random bits is a random number below n_features.
        bits = self._bits(2 * number + 1, wanted) >> np.uint64(32)
        return np.sort(((bits * np.uint64(self.n_features)) >> np.uint64(32)).astype(np.intp))

    def _bits(self, number: int, count: int) -> NDArray[np.uint64]:
        bits: NDArray[np.uint64] = core.counter_hash("bag", self.seed, number, count)
        return bits


def _first(bits: NDArray[np.uint64], wanted: int) -> NDArray[np.intp]:
    """Return the places of the smallest bits, ascending."""
    return np.sort(np.argsort(bits, kind="stable")[:wanted])


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
    return Draws(
        seed=params["random_state"],
        n_rows=n_rows,
        n_features=n_features,
        n_draws=n_draws,
        n_drawn_features=n_drawn_features,
        repeats_rows=repeats,
        repeats_features=params["bootstrap_features"],
        weight=chances,
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
