"""Confidence intervals of scores: bootstrap replicates, and formulas for shares and means.

A replicate weights each row by a Poisson draw of mean 1, a hash of its number, so that equal rows
have equal intervals. Scores that are functions of sums over rows need one product of the draws with
the summands; rank scores sort the rows once, and add up the draws of each replicate in bins of
equal scores. Of more rows than a limit, replicates draw from a sample, and their deviations are
scaled to the number of all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.losses.base import Floats

Index = NDArray[np.intp]

N_REPLICATES = 300
_MOST_ROWS = 50_000
_MOST_CELLS = 20_000_000  # summands in memory
_FEWEST_ROWS = 2_000  # of a sample, however many summands a row has
_BLOCK = 8192  # rows of a product
_MOST_BINS = 1000  # of ranks
_LEVELS = (0.025, 0.975)
_Z = 1.96  # of an interval of 95 %

_SEED = 0x7265706F7274  # "report" in ASCII: other draws of "validation" have other seeds
_SAMPLES, _REPLICATES = 0, 1  # first rounds of each kind of draw
_STEPS = 1 << 16
_NO_DRAW = 0.36787944117144233  # exp(-1): share of the rows that a replicate leaves out


@dataclass(frozen=True, eq=False)
class Replicates:
    """Bootstrap weights of the rows of a table, the same for every score and every model.

    Attributes
    ----------
    rows : int array
        Rows that replicates draw from.
    draws : uint8 array of shape (n_replicates, len(rows))
    scale : float
        Factor on deviations: root of the share of the rows that replicates draw from.
    """

    rows: Index
    draws: NDArray[np.uint8]
    scale: float

    @classmethod
    def of(cls, n_rows: int, most: int, n_replicates: int = N_REPLICATES) -> Replicates:
        """Replicates of a number of rows that draw from at most `most` of them."""
        rows = sample_rows(n_rows, most)
        draws = poisson_counts(n_replicates, len(rows))
        return cls(rows, draws, float(np.sqrt(len(rows) / n_rows)))

    def sums(self, summands: Floats) -> Floats:
        """Weighted sums of each replicate, shape (n_replicates, n_summands).

        `summands` has a row for each of `rows`.
        """
        total = np.zeros((len(self.draws), summands.shape[1]))
        for begin in range(0, len(self.rows), _BLOCK):
            block = slice(begin, begin + _BLOCK)
            total += self.draws[:, block].astype(np.float64) @ summands[block]
        return total

    def ranks(
        self, positive: NDArray[np.bool_], score: Floats, weight: Floats | None
    ) -> tuple[Floats, Floats]:
        """Weight of positive and of other rows in bins of descending scores.

        Both have the shape (n_replicates, n_bins). The first replicate is the sample itself.
        """
        order = np.argsort(-score, kind="stable")
        starts = _bin_starts(score[order])
        draws = np.concatenate([np.ones((1, len(order)), np.uint8), self.draws], axis=0)
        draws = draws[:, order]
        row_weight = np.ones(len(order)) if weight is None else weight[order]
        hits = positive[order]
        positive_sums, other_sums = np.empty((2, len(draws), len(starts)))
        for sums, mask in ((positive_sums, hits), (other_sums, ~hits)):
            weights = np.where(mask, row_weight, 0.0)
            for i, row in enumerate(draws):  # one row of float64 at a time
                sums[i] = np.add.reduceat(row * weights, starts)
        return positive_sums, other_sums


def _bin_starts(ordered: Floats) -> Index:
    """First position of each bin: equal scores share one, and bins are about equal."""
    first_of_equals = np.flatnonzero(np.diff(ordered, prepend=np.nan) != 0.0)
    if len(first_of_equals) <= _MOST_BINS:
        return first_of_equals
    starts = np.linspace(0, len(ordered), _MOST_BINS, endpoint=False).astype(np.intp)
    nearest = np.searchsorted(first_of_equals, starts, side="right") - 1
    return np.unique(first_of_equals[nearest])


def rows_to_draw(n_summands: int) -> int:
    """Largest number of rows that replicates draw from, where a row has `n_summands`."""
    return max(min(_MOST_ROWS, _MOST_CELLS // max(n_summands, 1)), _FEWEST_ROWS)


def interval(value: float, replicates: Floats, centre: float, scale: float) -> tuple[float, float]:
    """95 % percentile interval of a score.

    Parameters
    ----------
    value : float
        The score of all rows.
    replicates : float64 array of shape (n_replicates,)
        Scores of the replicates; NaN where a replicate has none.
    centre : float
        The score that the replicates vary about.
    scale : float
        Factor on their deviations.
    """
    finite = replicates[np.isfinite(replicates)]
    if not len(finite) or len(finite) < len(replicates) // 2 or not np.isfinite(value):
        return float("nan"), float("nan")
    low, high = np.quantile(finite, _LEVELS)
    return value + scale * (float(low) - centre), value + scale * (float(high) - centre)


def wilson(share: Floats, n_rows: Floats) -> tuple[Floats, Floats]:
    """Wilson's interval of 95 % of a share of `n_rows` rows."""
    middle = (share + _Z**2 / (2 * n_rows)) / (1 + _Z**2 / n_rows)
    half = (
        _Z / (1 + _Z**2 / n_rows) * np.sqrt(share * (1 - share) / n_rows + (_Z / 2 / n_rows) ** 2)
    )
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)


def n_effective(weight: Floats) -> float:
    """Number of equal rows that weights are worth."""
    return float(weight.sum()) ** 2 / float(np.square(weight).sum())


def mean_interval(values: Floats, weight: Floats) -> tuple[float, float]:
    """Interval of 95 % of a weighted mean; NaN for a single row."""
    total = float(weight.sum())
    mean = float((values * weight).sum()) / total
    n_rows = n_effective(weight)
    if n_rows <= 1.0 + 1e-9:
        return float("nan"), float("nan")
    variance = float((weight * np.square(values - mean)).sum()) / total
    half = _Z * float(np.sqrt(variance / (n_rows - 1.0)))
    return mean - half, mean + half


def metric_interval(
    metric: Callable[[Any, Floats, Floats | None], float],
    value: float,
    truth: NDArray[Any],
    predicted: Floats,
    weight: Floats | None,
    n_replicates: int = 100,
) -> tuple[float, float]:
    """95 % interval of the value of any metric of weighted rows."""
    draws = Replicates.of(len(truth), _MOST_ROWS, n_replicates)
    rows = draws.rows
    truth, predicted = truth[rows], predicted[rows]
    weight = np.ones(len(rows)) if weight is None else weight[rows]
    values = np.full(n_replicates, np.nan)
    for i, draw in enumerate(draws.draws):
        drawn = draw > 0
        with suppress(ValueError):  # a metric of two classes, of rows of one
            values[i] = metric(truth[drawn], predicted[drawn], (weight * draw)[drawn])
    centre = float(metric(truth, predicted, weight))
    return interval(value, values, centre, draws.scale)


def sample_rows(n_rows: int, most: int) -> Index:
    """At most `most` of the rows, chosen by hash, ascending.

    A smaller sample of the same rows is part of a larger one.

    Examples
    --------
    >>> sample_rows(5, 10)
    array([0, 1, 2, 3, 4])
    """
    if n_rows <= most:
        return np.arange(n_rows)
    bits = core.counter_hash("validation", _SEED, _SAMPLES, n_rows)
    chosen = np.argsort(bits, kind="stable")[:most]
    return np.sort(chosen)


def poisson_counts(n_replicates: int, n_rows: int) -> NDArray[np.uint8]:
    """Draws from the Poisson distribution of mean 1, shape (n_replicates, n_rows).

    For many rows the multinomial counts of a sample with replacement have this distribution.
    """
    n_words = -(-n_replicates * n_rows // 4)  # a hash of 64 bits has four draws
    bits = core.counter_hash("validation", _SEED, _REPLICATES, n_words)
    draws = _poisson_table()[bits.view(np.uint16)]
    return draws[: n_replicates * n_rows].reshape(n_replicates, n_rows)


def _poisson_table() -> NDArray[np.uint8]:
    """Count of each of 65,536 equally likely outcomes."""
    position = (np.arange(_STEPS) + 0.5) / _STEPS
    table = np.zeros(_STEPS, np.uint8)
    term = total = _NO_DRAW
    count = 0
    while total < position[-1]:
        table[position > total] = count + 1
        count += 1
        term /= count
        total += term
    return table
