"""Raw scores -> answers: what a link makes of the sum of the trees.

A link takes float64 scores of shape (n_rows, n_outputs):

================== ============ =====================================================
link               n_outputs    answer
================== ============ =====================================================
identity           any          the scores themselves
exp                any          e^score: means of counts and amounts
ordered            n_quantiles  the scores of each row, sorted: quantiles never cross
logistic           1            (n_rows, 2) probabilities of the two classes
logistic_of_double 1            the same of twice the score: those of exponential loss
softmax            n_classes    (n_rows, n_classes) probabilities
share_of_two       1            (n_rows, 2) probabilities whose difference is the score
shares             n_classes    (n_rows, n_classes) probabilities: the scores themselves
================== ============ =====================================================

Finite scores have finite answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "LARGEST_EXPONENT",
    "LINKS",
    "exp",
    "identity",
    "logistic",
    "logistic_of_double",
    "ordered",
    "score_of",
    "share_of_two",
    "shares",
    "softmax",
]

Scores = NDArray[np.float64]

# The logarithm of the largest double, rounded down.
LARGEST_EXPONENT = 709.782712893384


def identity(raw: Scores) -> Scores:
    """Return the scores unchanged."""
    return raw


def exp(raw: Scores) -> Scores:
    """Return e^score; from a score of 709.78 on, where doubles end, the answer stays the same.

    Examples
    --------
    >>> exp(np.array([[0.0], [1.0]]))
    array([[1.        ],
           [2.71828183]])
    """
    answer: Scores = np.exp(np.minimum(raw, LARGEST_EXPONENT))
    return answer


def ordered(raw: Scores) -> Scores:
    """Return the scores of each row, sorted.

    Sorting brings no quantile further from its truth: the mean pinball loss cannot grow by it
    (Chernozhukov, Fernandez-Val and Galichon, 2010).

    Examples
    --------
    >>> ordered(np.array([[1.0, 3.0, 2.0]]))
    array([[1., 2., 3.]])
    """
    return np.sort(raw, axis=1)


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


def logistic_of_double(raw: Scores) -> Scores:
    """Return the probabilities of both classes for scores that are half log-odds.

    Examples
    --------
    >>> logistic_of_double(np.array([[0.0], [-400.0]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    # Probabilities are 0 and 1 long before; the double of a larger score might not be finite.
    return logistic(2.0 * raw.clip(-LARGEST_EXPONENT, LARGEST_EXPONENT))


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


def share_of_two(raw: Scores) -> Scores:
    """Return the probabilities of both classes for scores that are their difference.

    Examples
    --------
    >>> share_of_two(np.array([[0.5], [-1.0]]))
    array([[0.25, 0.75],
           [1.  , 0.  ]])
    """
    half = 0.5 * raw.clip(-1.0, 1.0)  # means of differences leave the range by rounding only
    return np.concatenate([0.5 - half, 0.5 + half], axis=1)


def shares(raw: Scores) -> Scores:
    """Return the scores, where rounding has not brought them out of the range of probabilities.

    Examples
    --------
    >>> shares(np.array([[0.25, 0.75, -1e-17]]))
    array([[0.25, 0.75, 0.  ]])
    """
    return raw.clip(0.0, 1.0)


LINKS: Mapping[str, Callable[[Scores], Scores]] = {
    "identity": identity,
    "exp": exp,
    "ordered": ordered,
    "logistic": logistic,
    "logistic_of_double": logistic_of_double,
    "softmax": softmax,
    "share_of_two": share_of_two,
    "shares": shares,
}


def score_of(link: str, value: float) -> float:
    """Return the raw score whose answer is ``value``, a user's ``base_score``.

    With two classes the value is the probability of the second.

    Examples
    --------
    >>> score_of("exp", 1.0)
    0.0
    """
    if link in ("identity", "ordered"):
        return value
    if link == "exp":
        if not 0.0 < value < math.inf:
            raise ValueError(
                f"base_score={value!r} is not allowed: with this loss it is a mean, above 0. Use "
                "base_score=None to take it from the data."
            )
        return math.log(value)
    if link in ("softmax", "shares"):
        raise ValueError(
            f"base_score={value!r} is not allowed: a classifier has a base score only with two "
            "classes, and y has more. Use base_score=None."
        )
    if not 0.0 < value < 1.0:
        raise ValueError(
            f"base_score={value!r} is not allowed: with two classes it is the probability of the "
            "second, above 0 and below 1. Use base_score=None to take it from the data."
        )
    if link == "share_of_two":
        return 2 * value - 1
    log_odds = math.log(value) - math.log1p(-value)
    return log_odds / 2 if link == "logistic_of_double" else log_odds
