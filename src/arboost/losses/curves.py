"""Scores of a vote -> margins: the signed lead of each row's true class.

The margin of a row is the share of the votes for its class, less that for the strongest other
class. It is 1 where all agree on the truth, above 0 where the row is classified correctly, below 0
where it is not, and -1 where all agree on the same wrong class. It measures confidence: a bound of
the error on new rows depends on the distribution of the margins, and not on the number of voters
(Schapire, Freund, Bartlett and Lee, 1998).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def margins(scores: Floats, codes: NDArray[Any], total: float) -> Floats:
    """Return the margins, float64 of shape (n_rows,), each between -1 and 1.

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
    """Return the distinct margins, ascending, and the share of rows with at most each of them.

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
