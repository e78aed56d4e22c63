"""Best constant of a loss on top of an offset: the base score of a fit with an offset.

Losses of y - F know it from y - offset; losses with a log link and the exponential loss have a
closed form; the log losses are solved by iterations. All values depend neither on
the number of threads nor on the instruction set.
"""

from __future__ import annotations

import numpy as np

from arboost.backend import core
from arboost.losses.base import Floats, Loss, Target
from arboost.losses.classification import Exponential, Logistic, Softmax
from arboost.losses.custom import FromFunctions
from arboost.losses.regression import LogLink
from arboost.model.links import LINKS

__all__ = ["start_from"]

_MOST_STEPS = 100
_SMALLEST_STEP = 1e-12
_LARGEST_LOG = 36.0  # of a ratio of sums one of which is 0


def start_from(loss: Loss, target: Target, offset: Floats | None) -> Floats:
    """Return the scores of the best constant model on top of an offset, shape (n_outputs,).

    A custom loss starts where its function `start` says, whatever the offset.

    Parameters
    ----------
    loss : Loss
    target : Target
    offset : float64 array of shape (n_rows, 1) or (n_rows, n_outputs), or None

    Examples
    --------
    >>> from arboost.losses import make
    >>> target = Target(np.array([1.0, 6.0]), None)
    >>> start_from(make("squared_error"), target, np.array([[0.0], [4.0]]))
    array([1.5])
    >>> exposure = np.array([[1.0], [6.0]])
    >>> start_from(make("poisson"), target, core.log(exposure)).round(12) + 0.0
    array([0.])
    """
    if offset is None or isinstance(loss, FromFunctions):
        return loss.start(target)
    if isinstance(loss, Softmax):
        return _softmax_start(loss, target, np.broadcast_to(offset, (len(offset), loss.n_outputs)))
    if isinstance(loss, Logistic):
        return np.array([_logistic_start(loss, target, offset[:, 0])])
    if isinstance(loss, Exponential):
        return np.array([_exponential_start(target, offset[:, 0])])
    if isinstance(loss, LogLink):
        return np.array([_log_link_start(loss, target, offset[:, 0])])
    columns = np.broadcast_to(offset, (len(offset), loss.n_outputs)).T
    starts = [loss.start(Target(target.y - column, target.weight)) for column in columns]
    return np.array([start[k] for k, start in enumerate(starts)])


def _log_link_start(loss: LogLink, target: Target, offset: Floats) -> float:
    """Return log(sum w y e^((1-p) offset) / sum w e^((2-p) offset)), p the loss's power."""
    above = _log_sum(target, target.y, (1.0 - loss.power) * offset)
    return above - _log_sum(target, np.ones(len(offset)), (2.0 - loss.power) * offset)


def _exponential_start(target: Target, offset: Floats) -> float:
    """Return half the logarithm of the ratio of both classes' losses at the offset."""
    second = _log_sum(target, target.y, -offset)
    first = _log_sum(target, 1.0 - target.y, offset)
    return float(np.clip(second - first, -_LARGEST_LOG, _LARGEST_LOG)) / 2


def _log_sum(target: Target, factor: Floats, exponent: Floats) -> float:
    """Return log(sum w factor e^exponent) without overflow."""
    highest = float(exponent.max())
    terms = core.exp(exponent - highest) * factor
    total = float(terms.sum() if target.weight is None else (terms * target.weight).sum())
    return highest + core.log(total)


def _logistic_start(loss: Logistic, target: Target, offset: Floats) -> float:
    """Return the constant with which the mean probability is the share of the second class.

    Newton's method between bounds: the log-odds of y minus the largest and the smallest offset.
    """
    log_odds = float(loss.start(target)[0])
    low, high = log_odds - float(offset.max()), log_odds - float(offset.min())
    share = float(np.average(target.y, weights=target.weight))
    score = low + (high - low) / 2
    for _ in range(_MOST_STEPS):
        p = LINKS[loss.link]((offset + score)[:, np.newaxis])[:, 1]
        gap = share - float(np.average(p, weights=target.weight))
        slope = float(np.average(p * (1 - p), weights=target.weight))
        low, high = (score, high) if gap > 0 else (low, score)
        moved = score + gap / slope if slope > 0 else high
        if not low <= moved <= high:
            moved = low + (high - low) / 2
        if abs(moved - score) <= _SMALLEST_STEP * max(1.0, abs(score)):
            break
        score = moved
    return score


def _softmax_start(loss: Softmax, target: Target, offset: Floats) -> Floats:
    """Return constants with which the mean probabilities are the shares of the classes.

    Iterative scaling: each step adds the logarithm of the ratio of both, and lowers the loss.
    """
    log_shares = loss.start(target)
    scores = log_shares.copy()
    for _ in range(_MOST_STEPS):
        p = LINKS[loss.link](offset + scores)
        means = np.average(p, axis=0, weights=target.weight)
        steps = log_shares - core.log(means).clip(min=-_LARGEST_LOG)
        if float(np.abs(steps).max()) <= _SMALLEST_STEP:
            break
        scores = scores + steps
    return scores
