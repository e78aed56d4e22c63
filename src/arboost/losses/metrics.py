"""Scores -> one number that says how good they are: what evaluation and early stopping look at.

Each built-in metric is a few lines of NumPy and one pass, or one sort, over the rows. The metric of
a fit where none is named is the loss itself.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from arboost.data.messages import listing
from arboost.losses import Loss, Target
from arboost.model.links import LINKS
from arboost.model.outputs import CLASS_LINKS

__all__ = ["Metric", "find", "find_all", "of_predictions"]

Floats = NDArray[np.float64]
Function = Callable[[Floats, Floats, Floats | None], float]

# A probability of 0 would cost infinitely much; scikit-learn's bound.
_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Metric:
    """A name, a function that rates raw scores, and which way is up.

    Parameters
    ----------
    name : str
        What the results are called in ``evals_result_``.
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

        The function gets arrays that it cannot change: the scores are those that training goes on
        with.
        """
        # One output as a vector: an (n, 1) matrix minus a vector would be an n x n matrix.
        flat = score[:, 0] if score.ndim > 1 and score.shape[1] == 1 else score
        if weight is None and self._needs_weights:
            weight = np.broadcast_to(1.0, y.shape)  # costs no memory
        result = self.function(
            _locked(y), _locked(flat), None if weight is None else _locked(weight)
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
    """A metric of ours: without weights it counts, faster and exactly."""

    _needs_weights = False


def find(metric: object, loss: Loss, *, n_threads: int = 1) -> Metric:
    """Return the metric that a user means: a name, a function, a Metric, or None for the loss.

    Raises
    ------
    ValueError
        A name that does not exist, or that makes no sense with this loss.
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
    """Return the metrics of one or a list of what `find` takes; no two have the same name."""
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
    """Return the function (y, answers, weight) of a name, and whether greater is better.

    Answers are probabilities (n_rows, n_classes), with y the index of the class, or else values
    (n_rows,). It needs no loss, and so serves models of any kind.
    """
    known: Mapping[str, Any] = _OF_PROBABILITIES if of_classes else _OF_VALUES
    if name not in known:
        raise ValueError(
            f"metric={name!r} is not allowed for a {'classifier' if of_classes else 'regressor'}: "
            f"use one of {listing(known, 20)}, a function of (y, score, weight), or an "
            "arboost.Metric."
        )
    of_order, function = _OF_ORDER.get(name), known[name]

    def rate(y: Floats, answers: Floats, weight: Floats | None) -> float:
        if of_order is not None and answers.shape[1] == 2:  # noqa: PLR2004
            return of_order(y == 1, answers[:, 1], weight)  # as in a fit: of the second class
        return float(function(y, answers, weight))

    return rate, name in _GREATER_IS_BETTER


def _locked(array: Floats) -> Floats:
    view = array.view()
    view.flags.writeable = False
    return view


def _own(loss: Loss, n_threads: int) -> Metric:
    # A mean of squares under this name is taken for the whole of it; the loss has a factor 1/2.
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
        exists = name in {*_OF_VALUES, *_OF_PROBABILITIES}
        reason = f"it does not fit loss={own.name!r}" if exists else "there is no such metric"
        raise ValueError(
            f"eval_metric={name!r} is not allowed: {reason}. Use one of "
            f"{listing(allowed, 20)}, a function of (y, score, weight), or an arboost.Metric."
        )
    return _BuiltIn(name, _function(name, loss), name in _GREATER_IS_BETTER)


def _allowed(loss: Loss) -> list[str]:
    if loss.link in CLASS_LINKS:
        return list(dict.fromkeys([loss.name, *_OF_PROBABILITIES]))
    if loss.n_outputs > 1:  # several quantiles: no one of them is the prediction
        return [loss.name]
    # A deviance of unknown power is none.
    known = [name for name in _OF_VALUES if name != "tweedie_deviance" or loss.name == "tweedie"]
    return [loss.name, *known]


def _function(name: str, loss: Loss) -> Function:
    link = LINKS[loss.link]
    if name in _OF_VALUES:
        of_values = _OF_VALUES[name]
        if name == "tweedie_deviance":
            of_values = partial(_tweedie_deviance, power=vars(loss)["tweedie_power"])
        return lambda y, score, weight: of_values(y, link(score.reshape(-1, 1)).ravel(), weight)
    if loss.n_outputs == 1 and name in _OF_ORDER:
        # The order of the scores is that of the probabilities, but these reach 0 and 1.
        of_order = _OF_ORDER[name]
        return lambda y, score, weight: of_order(y == 1, score, weight)
    of_probabilities = _OF_PROBABILITIES[name]
    return lambda y, score, weight: of_probabilities(
        y.astype(np.intp), link(score.reshape(len(y), -1)), weight
    )


def _mean(values: NDArray[Any], weight: Floats | None) -> float:
    return float(np.average(values, weights=weight))


# ---- of predicted values ----


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
    if spread == 0.0:  # y is constant: perfect or worth nothing, as scikit-learn says
        return float(error == 0.0)
    return 1.0 - error / spread


def _poisson_deviance(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    _require_above_zero("poisson_deviance", "predictions", predicted)
    _require_above_zero("poisson_deviance", "y", y, zero_too=True)
    log_ratio = np.log(np.where(y > 0.0, y, predicted) / predicted)
    return 2.0 * _mean(y * log_ratio - y + predicted, weight)


def _gamma_deviance(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    _require_above_zero("gamma_deviance", "predictions", predicted)
    _require_above_zero("gamma_deviance", "y", y)
    return 2.0 * _mean(np.log(predicted / y) + y / predicted - 1.0, weight)


def _tweedie_deviance(
    y: Floats, predicted: Floats, weight: Floats | None, power: float = 1.5
) -> float:
    """Deviance of powers above 1 and below 2; y >= 0."""
    _require_above_zero("tweedie_deviance", "predictions", predicted)
    _require_above_zero("tweedie_deviance", "y", y, zero_too=True)
    one, two = 1.0 - power, 2.0 - power
    terms = y**two / (one * two) - y * predicted**one / one + predicted**two / two
    return 2.0 * _mean(terms, weight)


def _require_above_zero(name: str, what: str, values: Floats, *, zero_too: bool = False) -> None:
    lowest = float(values.min())
    if lowest < 0.0 or (lowest == 0.0 and not zero_too):
        allowed = "of at least 0" if zero_too else "above 0"
        raise ValueError(
            f"eval_metric={name!r} needs {what} {allowed}, but the lowest is {lowest:g}. Use a "
            'loss of positive predictions such as "poisson", or another metric.'
        )


# ---- of probabilities (n_rows, n_classes) ----


def _log_loss(y: NDArray[np.intp], p: Floats, weight: Floats | None) -> float:
    right = np.take_along_axis(p, y[:, None], axis=1)[:, 0]
    return -_mean(np.log(right.clip(min=_SMALLEST_PROBABILITY)), weight)


def _accuracy(y: NDArray[np.intp], p: Floats, weight: Floats | None) -> float:
    return _mean(p.argmax(axis=1) == y, weight)


def _error(y: NDArray[np.intp], p: Floats, weight: Floats | None) -> float:
    return _mean(p.argmax(axis=1) != y, weight)


def _brier(y: NDArray[np.intp], p: Floats, weight: Floats | None) -> float:
    """Mean square of p - onehot(y): of one column for two classes, summed over all for more."""
    if p.shape[1] == 2:  # noqa: PLR2004
        return _mean(np.square(p[:, 1] - y), weight)
    errors = p.copy()
    np.put_along_axis(errors, y[:, None], np.take_along_axis(p, y[:, None], axis=1) - 1.0, axis=1)
    return _mean(np.square(errors).sum(axis=1), weight)


# ---- of the order of the scores ----


def _steps(
    positive: NDArray[np.bool_], score: Floats, weight: Floats | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Weight of the positive and of the other rows at or above each distinct score, from the top.

    Without weights these are counts: exact, in whatever order equal scores come. With them the sort
    is stable, so that sums round the same way on every machine.
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
    """Chance that a positive row has a higher score than another one; half for equal scores."""
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


def _one_against_rest(
    of_order: Callable[[NDArray[np.bool_], Floats, Floats | None], float],
    y: NDArray[np.intp],
    p: Floats,
    weight: Floats | None,
) -> float:
    """Mean over the classes, each against all others, by their weight in y."""
    shares = np.bincount(y, weight, minlength=p.shape[1])
    present = np.flatnonzero(shares)
    values = [of_order(y == k, p[:, k], weight) for k in present]
    return float(np.average(values, weights=shares[present]))


_OF_VALUES: Mapping[str, Callable[[Floats, Floats, Floats | None], float]] = {
    "rmse": _rmse,
    "mae": _mae,
    "mape": _mape,
    "r2": _r2,
    "poisson_deviance": _poisson_deviance,
    "gamma_deviance": _gamma_deviance,
    "tweedie_deviance": _tweedie_deviance,
}
_OF_ORDER: Mapping[str, Callable[[NDArray[np.bool_], Floats, Floats | None], float]] = {
    "auc": _auc,
    "average_precision": _average_precision,
}
_OF_PROBABILITIES: Mapping[str, Callable[[NDArray[np.intp], Floats, Floats | None], float]] = {
    "log_loss": _log_loss,
    "auc": partial(_one_against_rest, _auc),
    "average_precision": partial(_one_against_rest, _average_precision),
    "accuracy": _accuracy,
    "error": _error,
    "brier": _brier,
}
_GREATER_IS_BETTER = frozenset(("auc", "average_precision", "accuracy", "r2"))
