"""Raw scores -> answers: what a link makes of the sum of the trees.

A link takes float64 scores of shape (n_rows, n_outputs):

======== ========= ==================================================
link     n_outputs answer
======== ========= ==================================================
identity any       the scores themselves
logistic 1         (n_rows, 2) probabilities of the two classes
softmax  n_classes (n_rows, n_classes) probabilities
======== ========= ==================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["LINKS", "identity", "logistic", "softmax"]

Scores = NDArray[np.float64]


def identity(raw: Scores) -> Scores:
    """Return the scores unchanged."""
    return raw


def logistic(raw: Scores) -> Scores:
    """Return the probabilities of both classes; exact in both tails.

    Examples
    --------
    >>> logistic(np.array([[0.0], [-800.0]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    score = raw[:, 0]
    # exp only of what is not positive: it cannot overflow, and 1 - p never cancels.
    small = np.exp(-np.abs(score))
    likely = 1.0 / (1.0 + small)
    unlikely = small / (1.0 + small)
    second = score > 0
    answer = np.empty((len(score), 2))
    answer[:, 0] = np.where(second, unlikely, likely)
    answer[:, 1] = np.where(second, likely, unlikely)
    return answer


def softmax(raw: Scores) -> Scores:
    """Return the probabilities of all classes.

    Examples
    --------
    >>> softmax(np.array([[1000.0, 1000.0, 0.0]]))
    array([[0.5, 0.5, 0. ]])
    """
    answer: Scores = np.exp(raw - raw.max(axis=1, keepdims=True))
    answer /= answer.sum(axis=1, keepdims=True)
    return answer


LINKS: Mapping[str, Callable[[Scores], Scores]] = {
    "identity": identity,
    "logistic": logistic,
    "softmax": softmax,
}
