"""Raw scores -> predictions: the link functions.

A link takes float64 scores of shape (n_rows, n_outputs):

================== ============ =====================================================
link               n_outputs    prediction
================== ============ =====================================================
identity           any          the scores themselves
exp                any          e^score: means of counts and amounts
ordered            n_quantiles  the scores of each row, sorted: quantiles never cross
logistic           1            (n_rows, 2) probabilities of the two classes
logistic_of_double 1            the same for twice the score: exponential loss
softmax            n_classes    (n_rows, n_classes) probabilities
share_of_two       1            (n_rows, 2) probabilities whose difference is the score
shares             n_classes    (n_rows, n_classes) probabilities: the scores themselves
================== ============ =====================================================

Finite scores have finite predictions. The core computes them: the same bytes on every machine, and
for a row alone as among others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core

__all__ = [
    "LARGEST_EXPONENT",
    "LINKS",
    "exp",
    "identity",
    "logistic",
    "logistic_of_double",
    "ordered",
    "scores_of",
    "share_of_two",
    "shares",
    "softmax",
]

Scores = NDArray[np.float64]

# The logarithm of the largest double, rounded down.
LARGEST_EXPONENT = 709.782712893384

_SUM_ROUNDING = 1e-6  # of probabilities that a user writes down


def identity(raw: Scores) -> Scores:
    """Return the scores unchanged."""
    return raw


def exp(raw: Scores) -> Scores:
    """Return e^score; from a score of 709.78 on, where doubles end, the result stays the same.

    Examples
    --------
    >>> exp(np.array([[0.0], [1.0]]))
    array([[1.        ],
           [2.71828183]])
    """
    return _linked("exp", raw, raw.shape[1])


def ordered(raw: Scores) -> Scores:
    """Return the scores of each row, sorted.

    Sorting never increases the mean pinball loss (Chernozhukov, Fernandez-Val and Galichon, 2010).

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
    return _linked("logistic", raw, 2)


def logistic_of_double(raw: Scores) -> Scores:
    """Return the probabilities of both classes for scores that are half log-odds.

    Examples
    --------
    >>> logistic_of_double(np.array([[0.0], [-400.0]]))
    array([[0.5, 0.5],
           [1. , 0. ]])
    """
    return _linked("logistic_of_double", raw, 2)


def softmax(raw: Scores) -> Scores:
    """Return the probabilities of all classes.

    Examples
    --------
    >>> softmax(np.array([[1000.0, 1000.0, 0.0]]))
    array([[0.5, 0.5, 0. ]])
    """
    return _linked("softmax", raw, raw.shape[1])


def share_of_two(raw: Scores) -> Scores:
    """Return the probabilities of both classes for scores that are their difference.

    Examples
    --------
    >>> share_of_two(np.array([[0.5], [-1.0]]))
    array([[0.25, 0.75],
           [1.  , 0.  ]])
    """
    return _linked("share_of_two", raw, 2)


def shares(raw: Scores) -> Scores:
    """Return the scores, clipped to [0, 1] where rounding brought them out of it.

    Examples
    --------
    >>> shares(np.array([[0.25, 0.75, -1e-17]]))
    array([[0.25, 0.75, 0.  ]])
    """
    return _linked("shares", raw, raw.shape[1])


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


def scores_of(link: str, value: float | Sequence[float], n_outputs: int) -> Scores:
    """Return the raw scores whose prediction is ``value``, a user's ``base_score``.

    With two classes the value is the probability of the second; with more, the probabilities of
    all, or 0 for scores of 0.

    Examples
    --------
    >>> scores_of("exp", 1.0, 1).tolist()
    [0.0]
    >>> scores_of("softmax", 0.0, 3).tolist()
    [0.0, 0.0, 0.0]
    """
    if link in ("softmax", "shares"):
        return _class_scores(value, n_outputs)
    several = value if isinstance(value, Sequence) else [value] * n_outputs
    if len(several) != n_outputs:
        raise ValueError(
            f"base_score={value!r} is not allowed: it has {len(several)} numbers, and the model "
            f"has {n_outputs} raw {'score' if n_outputs == 1 else 'scores'}. Use one number, or "
            "base_score=None to take it from the data."
        )
    return np.array([_score_of(link, one) for one in several])


def _class_scores(value: float | Sequence[float], n_classes: int) -> Scores:
    """Return the logarithms of the probabilities of three or more classes."""
    if not isinstance(value, Sequence) and value == 0.0:
        return np.zeros(n_classes)
    probabilities = np.array(value)
    if probabilities.shape != (n_classes,) or not (
        (probabilities > 0.0).all() and abs(probabilities.sum() - 1.0) <= _SUM_ROUNDING
    ):
        raise ValueError(
            f"base_score={value!r} is not allowed: with {n_classes} classes it is a list of their "
            f"{n_classes} probabilities, each above 0 and together 1, or 0 for raw scores of 0. "
            "Use base_score=None to take it from the data."
        )
    return core.log(probabilities)


def _score_of(link: str, value: float) -> float:
    """Return the raw score whose prediction is a number."""
    if link in ("identity", "ordered"):
        return value
    if link == "exp":
        if not 0.0 < value < math.inf:
            raise ValueError(
                f"base_score={value!r} is not allowed: with this loss it is a mean, above 0. Use "
                "base_score=None to take it from the data."
            )
        return core.log(value)
    if not 0.0 < value < 1.0:
        raise ValueError(
            f"base_score={value!r} is not allowed: with two classes it is the probability of the "
            "second, above 0 and below 1. Use base_score=None to take it from the data."
        )
    if link == "share_of_two":
        return 2 * value - 1
    log_odds = core.log(value) - core.log1p(-value)
    return log_odds / 2 if link == "logistic_of_double" else log_odds


def _linked(name: str, raw: Scores, width: int) -> Scores:
    out = np.empty((len(raw), width))
    core.link(name, np.ascontiguousarray(raw, np.float64), out)
    return out
