"""Metrics: raw scores -> one number, for evaluation and early stopping.

Each built-in metric is a few lines of NumPy and one pass, or one sort, over the rows. The default
metric of a fit is the loss itself.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.messages import listing
from arboost.losses import Loss, Target
from arboost.losses.base import Floats, read_only
from arboost.model.links import LINKS
from arboost.model.outputs import CLASS_LINKS

__all__ = ["Metric", "find", "find_all", "of_predictions"]

Function = Callable[[Floats, Floats, Floats | None], float]

# The log loss of a probability of 0 would be infinite; this is scikit-learn's bound.
_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Metric:
    """A metric: its name, its function of raw scores, and whether greater is better.

    Parameters
    ----------
    name : str
        Name of the results in ``evals_result_``.
    function : callable (y, score, weight) -> float
        `y` holds numbers, for a classifier the index of the class; `score` the raw scores before
        the link, of shape (n_rows,), or (n_rows, n_outputs) where there are several outputs;
        `weight` the weights of the rows, 1 where none were given.
    greater_is_better : bool, default=False

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import Metric
    >>> worst = Metric("worst", lambda y, score, weight: np.abs(y - score).max())
    >>> worst(np.array([1.0, 2.0]), np.array([1.5, 2.0]), None)
    0.5
    """

    name: str
    function: Function
    greater_is_better: bool = False

    _needs_weights: ClassVar[bool] = True

    def __call__(self, y: Floats, score: Floats, weight: Floats | None) -> float:
        """Return the metric of raw scores of shape (n_rows, n_outputs) or (n_rows,).

        The function gets read-only arrays: training continues from the same scores.
        """
        # One output as a vector: an (n, 1) matrix minus a vector would be an n x n matrix.
        flat = score[:, 0] if score.ndim > 1 and score.shape[1] == 1 else score
        if weight is None and self._needs_weights:
            weight = np.broadcast_to(1.0, y.shape)  # costs no memory
        result = self.function(
            read_only(y), read_only(flat), None if weight is None else read_only(weight)
        )
        if isinstance(result, np.ndarray) and result.ndim == 0:
            result = result.item()
        if isinstance(result, bool | np.bool_) or not isinstance(result, numbers.Real):
            raise TypeError(
                f"the metric {self.name!r} returned {result!r} ({type(result).__name__}), but a "
                "metric must return one number. Return a float."
            )
        return float(result)


class _BuiltIn(Metric):
    """A built-in metric: without weights it counts rows, faster and exactly."""

    _needs_weights = False


def find(metric: object, loss: Loss, *, n_threads: int = 1) -> Metric:
    """Return the metric of a user's argument: a name, a function, a Metric, or None for the loss.

    Raises
    ------
    ValueError
        A name that is unknown, or that does not fit the loss.
    TypeError
        Something else.
    """
    if metric is None:
        return _own(loss, n_threads)
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        return _by_name(metric, loss, n_threads)
    if callable(metric):
        return Metric(getattr(metric, "__name__", type(metric).__name__), metric)
    raise TypeError(
        f"eval_metric={metric!r} ({type(metric).__name__}) is not allowed: it must be a name, a "
        "function of (y, score, weight), an arboost.Metric, or a list of them. Use one of "
        f"{listing(_allowed(loss), 20)}."
    )


def find_all(metrics: object, loss: Loss, *, n_threads: int = 1) -> tuple[Metric, ...]:
    """Return the metrics of one argument of `find`, or of a list of them; their names differ."""
    given: Sequence[object] = metrics if isinstance(metrics, list | tuple) else [metrics]
    if not given:
        raise ValueError(
            "eval_metric=[] is not allowed: the list must hold a metric. Use eval_metric=None for "
            "the loss itself."
        )
    found = tuple(find(metric, loss, n_threads=n_threads) for metric in given)
    names = [metric.name for metric in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(
                f"eval_metric holds {names.count(name)} metrics called {name!r}, but results go by "
                "name. Leave one out, or give it another name with arboost.Metric(name, function)."
            )
    return found


def of_predictions(name: str, *, of_classes: bool) -> tuple[Function, bool]:
    """Return a metric's function (y, predicted, weight), and whether greater is better.

    Predictions are class probabilities (n_rows, n_classes), with y the index of the class, or else
    values (n_rows,). No loss is needed, so any kind of model can be evaluated.
    """
    metrics: Mapping[str, Any] = _PROBABILITY_METRICS if of_classes else _VALUE_METRICS
    if name not in metrics:
        raise ValueError(
            f"metric={name!r} is not allowed for a {'classifier' if of_classes else 'regressor'}: "
            f"use one of {listing(metrics, 20)}, a function of (y, score, weight), or an "
            "arboost.Metric."
        )
    of_ranks, function = _RANK_METRICS.get(name), metrics[name]

    def value(y: Floats, predicted: Floats, weight: Floats | None) -> float:
        if of_ranks is not None and predicted.shape[1] == 2:  # noqa: PLR2004
            return of_ranks(y == 1, predicted[:, 1], weight)  # of the second class, as in a fit
        return float(function(y, predicted, weight))

    return value, name in _GREATER_IS_BETTER


def _own(loss: Loss, n_threads: int) -> Metric:
    # The metric "squared_error" is the mean of squares; the loss has a factor of 1/2.
    scale = 2.0 if loss.name == "squared_error" else 1.0

    def value(y: Floats, score: Floats, weight: Floats | None) -> float:
        return scale * loss.value(Target(y, weight), score.reshape(len(y), -1), n_threads)

    return _BuiltIn(loss.name, value)


def _by_name(name: str, loss: Loss, n_threads: int) -> Metric:
    own = _own(loss, n_threads)
    if name == own.name:
        return own
    allowed = _allowed(loss)
    if name not in allowed:
        exists = name in {*_VALUE_METRICS, *_PROBABILITY_METRICS}
        reason = f"it does not fit loss={own.name!r}" if exists else "there is no such metric"
        raise ValueError(
            f"eval_metric={name!r} is not allowed: {reason}. Use one of "
            f"{listing(allowed, 20)}, a function of (y, score, weight), or an arboost.Metric."
        )
    return _BuiltIn(name, _function(name, loss), name in _GREATER_IS_BETTER)


def _allowed(loss: Loss) -> list[str]:
    if loss.link in CLASS_LINKS:
        return list(dict.fromkeys([loss.name, *_PROBABILITY_METRICS]))
    if loss.n_outputs > 1:  # several quantiles: no one of them is the prediction
        return [loss.name]
    # The Tweedie deviance needs the power of the loss.
    has_power = loss.name == "tweedie"
    return [loss.name, *(one for one in _VALUE_METRICS if has_power or one != "tweedie_deviance")]


def _function(name: str, loss: Loss) -> Function:
    link = LINKS[loss.link]
    if name in _VALUE_METRICS:
        of_values = _VALUE_METRICS[name]
        if name == "tweedie_deviance":
            of_values = partial(_tweedie_deviance, power=vars(loss)["tweedie_power"])
        return lambda y, score, weight: of_values(y, link(score.reshape(-1, 1)).ravel(), weight)
    if loss.n_outputs == 1 and name in _RANK_METRICS:
        # Scores have the order of the probabilities, and no ties where these round to 0 or 1.
        of_ranks = _RANK_METRICS[name]
        return lambda y, score, weight: of_ranks(y == 1, score, weight)
    of_probabilities = _PROBABILITY_METRICS[name]
    return lambda y, score, weight: of_probabilities(
        y.astype(np.intp), link(score.reshape(len(y), -1)), weight
    )


def _mean(values: NDArray[Any], weight: Floats | None) -> float:
    return float(np.average(values, weights=weight))


# ---- metrics of predicted values ----


def _rmse(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    return float(np.sqrt(_mean(np.square(predicted - y), weight)))


def _mae(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    return _mean(np.abs(predicted - y), weight)


def _mape(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    scale = np.maximum(np.abs(y), np.finfo(np.float64).eps)
    return _mean(np.abs(predicted - y) / scale, weight)


def _r2(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    spread = _mean(np.square(y - _mean(y, weight)), weight)
    error = _mean(np.square(predicted - y), weight)
    if spread == 0.0:  # y is constant: 1 for perfect predictions, else 0, as in scikit-learn
        return float(error == 0.0)
    return 1.0 - error / spread


def _poisson_deviance(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    _require_above_zero("poisson_deviance", "predictions", predicted)
    _require_above_zero("poisson_deviance", "y", y, zero_too=True)
    log_ratio = core.log(np.where(y > 0.0, y, predicted) / predicted)
    return 2.0 * _mean(y * log_ratio - y + predicted, weight)


def _gamma_deviance(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    _require_above_zero("gamma_deviance", "predictions", predicted)
    _require_above_zero("gamma_deviance", "y", y)
    return 2.0 * _mean(core.log(predicted / y) + y / predicted - 1.0, weight)


def _tweedie_deviance(
    y: Floats, predicted: Floats, weight: Floats | None, power: float = 1.5
) -> float:
    """Deviance of powers above 1 and below 2; y >= 0."""
    _require_above_zero("tweedie_deviance", "predictions", predicted)
    _require_above_zero("tweedie_deviance", "y", y, zero_too=True)
    one, two = 1.0 - power, 2.0 - power
    log_y, log_predicted = core.log(y), core.log(predicted)
    terms = (
        core.exp(two * log_y) / (one * two)
        - y * core.exp(one * log_predicted) / one
        + core.exp(two * log_predicted) / two
    )
    return 2.0 * _mean(terms, weight)


def _require_above_zero(name: str, what: str, values: Floats, *, zero_too: bool = False) -> None:
    lowest = float(values.min())
    if lowest < 0.0 or (lowest == 0.0 and not zero_too):
        allowed = "of at least 0" if zero_too else "above 0"
        raise ValueError(
            f"eval_metric={name!r} needs {what} {allowed}, but the lowest is {lowest:g}. Use a "
            'loss of positive predictions such as "poisson", or another metric.'
        )


# ---- metrics of class probabilities (n_rows, n_classes) ----


def _log_loss(y: NDArray[np.intp], p: Floats, weight: Floats | None) -> float:
    right = np.take_along_axis(p, y[:, None], axis=1)[:, 0]
    return -_mean(core.log(right.clip(min=_SMALLEST_PROBABILITY)), weight)


def _accuracy(y: NDArray[np.intp], p: Floats, weight: Floats | None) -> float:
    return _mean(p.argmax(axis=1) == y, weight)


def _error(y: NDArray[np.intp], p: Floats, weight: Floats | None) -> float:
    return _mean(p.argmax(axis=1) != y, weight)


def _brier(y: NDArray[np.intp], p: Floats, weight: Floats | None) -> float:
    """Mean square of p - onehot(y): of one column for two classes, else summed over all columns."""
    if p.shape[1] == 2:  # noqa: PLR2004
        return _mean(np.square(p[:, 1] - y), weight)
    errors = p.copy()
    np.put_along_axis(errors, y[:, None], np.take_along_axis(p, y[:, None], axis=1) - 1.0, axis=1)
    return _mean(np.square(errors).sum(axis=1), weight)


# ---- metrics of the ranks of the scores ----


def _steps(
    positive: NDArray[np.bool_], score: Floats, weight: Floats | None
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


def _auc(positive: NDArray[np.bool_], score: Floats, weight: Floats | None) -> float:
    """Probability that a positive row has a higher score than a negative one; ties count half."""
    above, others = _steps(positive, score, weight)
    _require_both("auc", above[-1], others[-1])
    before = np.concatenate(([0], above[:-1]))
    pairs = ((above + before) * np.diff(others, prepend=0)).sum()
    return float(pairs / (2.0 * above[-1] * others[-1]))


def _average_precision(positive: NDArray[np.bool_], score: Floats, weight: Floats | None) -> float:
    """Mean precision over the positive rows, each at the threshold that just includes it."""
    above, others = _steps(positive, score, weight)
    _require_both("average_precision", above[-1], others[-1])
    precision = above / (above + others)
    return float((np.diff(above, prepend=0) * precision).sum() / above[-1])


def _require_both(name: str, positive: float, other: float) -> None:
    if positive == 0 or other == 0:
        raise ValueError(
            f"eval_metric={name!r} is not defined where all rows are of one class, as in the "
            "evaluation data. Pass data that holds several classes, or use log_loss."
        )


def _one_vs_rest(
    of_ranks: Callable[[NDArray[np.bool_], Floats, Floats | None], float],
    y: NDArray[np.intp],
    p: Floats,
    weight: Floats | None,
) -> float:
    """One-vs-rest mean over the classes, weighted by their weight in y."""
    shares = np.bincount(y, weight, minlength=p.shape[1])
    present = np.flatnonzero(shares)
    values = [of_ranks(y == k, p[:, k], weight) for k in present]
    return float(np.average(values, weights=shares[present]))


_VALUE_METRICS: Mapping[str, Callable[[Floats, Floats, Floats | None], float]] = {
    "rmse": _rmse,
    "mae": _mae,
    "mape": _mape,
    "r2": _r2,
    "poisson_deviance": _poisson_deviance,
    "gamma_deviance": _gamma_deviance,
    "tweedie_deviance": _tweedie_deviance,
}
_RANK_METRICS: Mapping[str, Callable[[NDArray[np.bool_], Floats, Floats | None], float]] = {
    "auc": _auc,
    "average_precision": _average_precision,
}
_PROBABILITY_METRICS: Mapping[str, Callable[[NDArray[np.intp], Floats, Floats | None], float]] = {
    "log_loss": _log_loss,
    "auc": partial(_one_vs_rest, _auc),
    "average_precision": partial(_one_vs_rest, _average_precision),
    "accuracy": _accuracy,
    "error": _error,
    "brier": _brier,
}
_GREATER_IS_BETTER = frozenset(("auc", "average_precision", "accuracy", "r2"))
