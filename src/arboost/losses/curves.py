"""Curves of predictions and their truth: ROC, precision and recall, calibration, margins.

The margin of a row is the share of the votes for its class, less that for the strongest other
class. It is 1 where all agree on the truth, above 0 where the row is classified correctly, below 0
where it is not, and -1 where all agree on the same wrong class. It measures confidence: a bound of
the error on new rows depends on the distribution of the margins, and not on the number of voters
(Schapire, Freund, Bartlett and Lee, 1998).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.losses.base import Floats
from arboost.losses.intervals import wilson

Mask = NDArray[np.bool_]


# ---- curves of ranks ----


def rank_steps(
    positive: Mask, score: Floats, weight: Floats | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Weight of the positive and of the other rows at or above each distinct score, descending.

    Without weights these are counts: exact in any order of equal scores. With weights the sort is
    stable, so that sums round the same way on every machine.
    """
    order = np.argsort(-score, kind=None if weight is None else "stable")
    score, positive = score[order], positive[order]
    last_of_equals = np.append(np.flatnonzero(score[1:] != score[:-1]), len(score) - 1)
    if weight is None:
        above = np.cumsum(positive, dtype=np.int64)[last_of_equals]
        return above, last_of_equals + 1 - above
    weight = weight[order]
    above_positive = np.cumsum(np.where(positive, weight, 0.0))[last_of_equals]
    above_other = np.cumsum(np.where(positive, 0.0, weight))[last_of_equals]
    return above_positive, above_other


def roc_curve(positive: Mask, score: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """False and true positive rates at each distinct score, descending, from (0, 0) on.

    Rows of both kinds are needed.

    Examples
    --------
    >>> import numpy as np
    >>> roc_curve(np.array([True, False, True]), np.array([3.0, 2.0, 1.0]), None)
    (array([0., 0., 1., 1.]), array([0. , 0.5, 0.5, 1. ]))
    """
    true, false = rank_steps(positive, score, weight)
    return np.append(0.0, false / false[-1]), np.append(0.0, true / true[-1])


def precision_recall_curve(
    positive: Mask, score: Floats, weight: Floats | None
) -> tuple[Floats, Floats]:
    """Precision and recall at each distinct score, descending; the last precision is the share.

    A positive row is needed.

    Examples
    --------
    >>> import numpy as np
    >>> precision_recall_curve(np.array([True, False]), np.array([2.0, 1.0]), None)
    (array([1. , 0.5]), array([1., 1.]))
    """
    true, false = rank_steps(positive, score, weight)
    return true / (true + false), true / true[-1]


# ---- calibration ----


class CalibrationBins(NamedTuple):
    """Reliability of probabilities in bins; NaN where a bin has no weight.

    Attributes
    ----------
    probability, share : float64 array of shape (n_bins,)
        Mean probability, and share of hits.
    low, high : float64 array of shape (n_bins,)
        Wilson's interval of the share, for as many equal rows as the weights are worth.
    n_rows : int array of shape (n_bins,)
    """

    probability: Floats
    share: Floats
    low: Floats
    high: Floats
    n_rows: NDArray[np.intp]


def calibration_bins(
    hits: Mask, probability: Floats, weight: Floats | None, edges: Floats
) -> CalibrationBins:
    """Mean probability and share of hits in bins.

    Parameters
    ----------
    hits : bool array of shape (n_rows,)
        Whether each prediction came true.
    probability : float64 array of shape (n_rows,)
    weight : float64 array of shape (n_rows,), or None
    edges : float64 array
        Edges between the bins, ascending; a probability on an edge is in the bin below.

    Examples
    --------
    >>> import numpy as np
    >>> hits, probability = np.array([False, True, True]), np.array([0.2, 0.4, 0.9])
    >>> calibration_bins(hits, probability, None, np.array([0.5])).share
    array([0.5, 1. ])
    """
    n_bins = len(edges) + 1
    index = np.searchsorted(edges, probability, side="left")
    weights = np.ones(len(probability)) if weight is None else weight
    total = np.bincount(index, weights, n_bins)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.bincount(index, weights * probability, n_bins) / total
        share = np.bincount(index, weights * hits, n_bins) / total
        low, high = wilson(share, total**2 / np.bincount(index, weights**2, n_bins))
    return CalibrationBins(mean, share, low, high, np.bincount(index, minlength=n_bins))


# ---- margins ----


def margins(scores: Floats, codes: NDArray[Any], total: float) -> Floats:
    """The margins, float64 of shape (n_rows,), each between -1 and 1.

    Parameters
    ----------
    scores : float64 array of shape (n_rows, n_outputs)
        One column F for two classes, positive for the second; else one column for each class. A
        constant added to all columns of a row does not matter.
    codes : array of shape (n_rows,)
        Index of the true class of each row.
    total : float
        The largest margin of the scores that the votes allow: the sum of the weights where every
        learner votes for one class. 0 where there was no vote; the margins then are 0, too.

    Examples
    --------
    Two classes, votes worth 3 in all; then three classes.

    >>> import numpy as np
    >>> margins(np.array([[3.0], [1.5], [1.5]]), np.array([1, 1, 0]), 3.0)
    array([ 1. ,  0.5, -0.5])
    >>> margins(np.array([[2.0, 1.0, 0.0]]), np.array([2]), 4.0)
    array([-0.5])
    """
    if total == 0.0:
        return np.zeros(len(scores))
    index = codes.astype(np.intp)
    if scores.shape[1] == 1:
        lead = np.where(index == 1, scores[:, 0], -scores[:, 0])
    else:
        row = np.arange(len(scores))
        others = scores.copy()
        others[row, index] = -np.inf
        lead = scores[row, index] - others.max(axis=1)
    # The scores and their total were summed in other orders: 1 may come out an ulp too large.
    return np.clip(lead / total, -1.0, 1.0)


def margin_distribution(values: Floats) -> tuple[Floats, Floats]:
    """The distinct margins, ascending, and the share of rows with at most each of them.

    Parameters
    ----------
    values : float64 array of shape (n_rows,)

    Examples
    --------
    >>> import numpy as np
    >>> margin_distribution(np.array([0.5, -0.5, 0.5, 1.0]))
    (array([-0.5,  0.5,  1. ]), array([0.25, 0.75, 1.  ]))
    """
    distinct, count = np.unique(values, return_counts=True)
    return distinct, np.cumsum(count) / len(values)
