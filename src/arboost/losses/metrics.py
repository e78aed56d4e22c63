"""Metrics: raw scores -> one number, for evaluation and early stopping.

A metric is a name of any library, a function of scikit-learn, a user's function or a `Metric`. The
default metric of a fit is the loss itself.
"""

from __future__ import annotations

import functools
import inspect
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from arboost.errors import InputTypeError, ParameterError, ParameterTypeError, listing
from arboost.losses.base import Floats, Loss, Target, read_only
from arboost.losses.links import CLASS_LINKS, LINKS
from arboost.losses.losses import FromFunctions
from arboost.losses.metric_functions import (
    PROBABILITY_METRICS,
    RANK_METRICS,
    VALUE_METRICS,
    tweedie_deviance,
)
from arboost.params.suggestions import is_metric, metric_name, metric_suggestion

Function = Callable[[Any, Floats, Floats | None], float]

_MOST_NAMES = 20  # in a message
_FUNCTION_ADVICE = "A function of (y, score, weight) or an arboost.Metric is allowed, too."
_TWO_CLASSES = 2


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
        """The metric of raw scores of shape (n_rows, n_outputs) or (n_rows,).

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
            raise InputTypeError(
                f"the metric {self.name!r} returned {result!r} ({type(result).__name__}), but a "
                "metric must return one number. Return a float."
            )
        return float(result)


class _BuiltIn(Metric):
    """A built-in metric: without weights it counts rows, faster and exactly."""

    _needs_weights = False


@dataclass(frozen=True)
class LossMetric(_BuiltIn):
    """The loss itself, times a factor, as a metric; one of `core.loss_value`.

    `kernel` and `parameters` are its arguments.
    """

    factor: float = 1.0
    kernel: str = ""
    parameters: tuple[float, ...] = ()


def find_metric(metric: object, loss: Loss, n_threads: int = 1) -> Metric:
    """Metric of a user's argument: a name, a function, a Metric, or None for the loss.

    Raises
    ------
    ValueError
        A name that is unknown, or that does not fit the loss; None for a loss without values.
    TypeError
        Something else.
    """
    if metric is None:
        return _loss_metric(loss, n_threads)
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        return _named_metric(metric, loss, n_threads)
    if is_sklearn(metric):
        return _sklearn_metric_of_scores(metric, loss, n_threads)
    if callable(metric):
        return Metric(getattr(metric, "__name__", type(metric).__name__), metric)
    raise ParameterTypeError(
        f"eval_metric={metric!r} ({type(metric).__name__}) is not allowed: it must be a name, a "
        "function of (y, score, weight), an arboost.Metric, or a list of them. Use one of "
        f"{listing(_allowed(loss), _MOST_NAMES)}.",
        parameter="eval_metric",
    )


def find_metrics(metrics: object, loss: Loss, n_threads: int = 1) -> tuple[Metric, ...]:
    """Metrics of an argument of `find_metric`, or of a list of them; their names differ."""
    several: Sequence[object] = metrics if isinstance(metrics, list | tuple) else [metrics]
    if not several:
        raise ParameterError(
            "eval_metric=[] is not allowed: the list must hold a metric. Use eval_metric=None for "
            "the loss itself.",
            parameter="eval_metric",
        )
    checked = tuple(find_metric(metric, loss, n_threads) for metric in several)
    names = [metric.name for metric in checked]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(
                f"eval_metric holds {names.count(name)} metrics called {name!r}, but results go by "
                "name. Leave one out, or give it another name with arboost.Metric(name, function).",
                parameter="eval_metric",
            )
    return checked


def prediction_metric(metric: object, *, of_classes: bool) -> tuple[Function, bool]:
    """A metric's function (y, predicted, weight), and whether greater is better.

    The metric is a name, or a function of scikit-learn. Predictions are class probabilities
    (n_rows, n_classes), with y the index of the class, or else values (n_rows,). No loss is needed,
    so any kind of model can be evaluated.
    """
    if is_sklearn(metric):
        wrapped = sklearn_metric(metric, of_classes=of_classes)
        if not isinstance(wrapped, str):
            return wrapped[1:]
        metric = wrapped
    if not isinstance(metric, str):
        raise InputTypeError(
            f"metric={metric!r} ({type(metric).__name__}) is not allowed: it must be a name, a "
            "function of (y, score, weight), an arboost.Metric, or None."
        )
    metrics = PROBABILITY_METRICS if of_classes else VALUE_METRICS
    name = metric_name(metric)
    if name is None:
        reason = metric_suggestion(metric, list(metrics))
        problem = f"metric={metric!r} is not allowed: {reason}"
        raise ParameterError(problem, _FUNCTION_ADVICE, parameter="metric")
    if name not in metrics:
        kind = "classifier" if of_classes else "regressor"
        raise ParameterError(
            f"metric={metric!r} is not allowed for a {kind}: use one of "
            f"{listing(metrics, _MOST_NAMES)}.",
            _FUNCTION_ADVICE,
            parameter="metric",
        )
    rank_metric, built_in = RANK_METRICS.get(name), metrics[name]

    def value(y: Floats, predicted: Floats, weight: Floats | None) -> float:
        if rank_metric is not None and predicted.shape[1] == _TWO_CLASSES:
            return rank_metric(y == 1, predicted[:, 1], weight)  # of the second class, as in a fit
        return float(built_in.function(y, predicted, weight))

    return value, built_in.greater_is_better


def _loss_metric(loss: Loss, n_threads: int) -> Metric:
    if isinstance(loss, FromFunctions) and loss.functions.value is None:
        raise ParameterError(
            f"the loss {loss.name!r} has no function `value`, so there is nothing to measure "
            "on the validation rows. Give it one, or name another eval_metric.",
            parameter="eval_metric",
        )
    # The metric "squared_error" is the mean of squares; the loss has a factor of 1/2.
    scale = 2.0 if loss.name == "squared_error" else 1.0
    in_core = getattr(type(loss), "value", None) is Loss.value and loss.in_core

    def value(y: Floats, score: Floats, weight: Floats | None) -> float:
        return scale * loss.value(Target(y, weight), score.reshape(len(y), -1), n_threads)

    if not in_core:
        return _BuiltIn(loss.name, value)
    nothing = np.empty((0, loss.n_outputs))
    parameters = loss.parameters(Target(np.empty(0), None), nothing, n_threads)
    return LossMetric(loss.name, value, factor=scale, kernel=loss.kernel, parameters=parameters)


def _named_metric(metric: str, loss: Loss, n_threads: int) -> Metric:
    allowed, name = _allowed(loss), metric_name(metric)
    if loss.name in (metric, name):
        return _loss_metric(loss, n_threads)
    if name not in allowed:
        if not is_metric(metric):
            reason = metric_suggestion(metric, allowed)
            raise ParameterError(
                f"eval_metric={metric!r} is not allowed: {reason}", parameter="eval_metric"
            )
        raise ParameterError(
            f"eval_metric={metric!r} is not allowed: it does not fit loss={loss.name!r}. Use one "
            f"of {listing(allowed, _MOST_NAMES)}, a function of (y, score, weight), or an "
            "arboost.Metric.",
            parameter="eval_metric",
        )
    built_in = VALUE_METRICS.get(name) or PROBABILITY_METRICS[name]
    return _BuiltIn(name, _function_of_scores(name, loss), built_in.greater_is_better)


def _sklearn_metric_of_scores(metric: object, loss: Loss, n_threads: int) -> Metric:
    """A metric function of scikit-learn, or the built-in metric of that name."""
    of_classes = loss.link in CLASS_LINKS
    wrapped = sklearn_metric(metric, of_classes=of_classes)
    if isinstance(wrapped, str):
        return _named_metric(wrapped, loss, n_threads)
    name, function, greater_is_better = wrapped
    if not of_classes and loss.n_outputs > 1:
        raise ParameterError(
            f"eval_metric={name} is not allowed: it does not fit loss={loss.name!r}, which has "
            f"{loss.n_outputs} outputs. Use a function of (y, score, weight).",
            parameter="eval_metric",
        )
    apply = _of_probabilities if of_classes else _of_values
    return _BuiltIn(name, apply(function, loss), greater_is_better)


def _allowed(loss: Loss) -> list[str]:
    if loss.link in CLASS_LINKS:
        return list(dict.fromkeys([loss.name, *PROBABILITY_METRICS]))
    if loss.n_outputs > 1:  # several quantiles, none of which is the prediction
        return [loss.name]
    # The Tweedie deviance needs the power of the loss.
    has_power = loss.name == "tweedie"
    names = [name for name in VALUE_METRICS if has_power or name != "tweedie_deviance"]
    return [loss.name, *names]


def _function_of_scores(name: str, loss: Loss) -> Function:
    """Built-in metric as a function of (y, raw scores, weight)."""
    if name == "tweedie_deviance":
        return _of_values(partial(tweedie_deviance, power=vars(loss)["tweedie_power"]), loss)
    if name in VALUE_METRICS:
        return _of_values(VALUE_METRICS[name].function, loss)
    if loss.n_outputs == 1 and name in RANK_METRICS:
        # Scores have the order of the probabilities, and no ties where these round to 0 or 1.
        rank_metric = RANK_METRICS[name]
        return lambda y, score, weight: rank_metric(y == 1, score, weight)
    return _of_probabilities(PROBABILITY_METRICS[name].function, loss)


def _of_values(function: Function, loss: Loss) -> Function:
    link = LINKS[loss.link]
    return lambda y, score, weight: function(y, link(score.reshape(-1, 1)).ravel(), weight)


def _of_probabilities(function: Function, loss: Loss) -> Function:
    link = LINKS[loss.link]
    return lambda y, score, weight: function(
        y.astype(np.intp), link(score.reshape(len(y), -1)), weight
    )


# ---- metrics of scikit-learn ----

_SCORES = ("y_score", "y_prob", "y_proba")
_OF_PROBABILITIES = ("log_loss", "d2_log_loss_score")  # although they call these y_pred


def is_sklearn(metric: object) -> bool:
    """Whether a metric is an object of sklearn.metrics, or a functools.partial of one."""
    if isinstance(metric, functools.partial):
        metric = metric.func
    module = getattr(metric, "__module__", None) or ""
    return module.partition(".")[0] == "sklearn"


def sklearn_metric(metric: Any, *, of_classes: bool) -> str | tuple[str, Function, bool]:
    """The name here of a metric of scikit-learn; else its name, function and direction.

    The function is one of (y, predictions, weight), with class codes and probabilities of shape
    (n_rows, n_classes) for classes. Names of scikit-learn that end in "_score" are of metrics to
    maximise, all others of metrics to minimise.
    """
    function = metric.func if isinstance(metric, functools.partial) else metric
    if not inspect.isfunction(function):
        raise ParameterTypeError(
            f"eval_metric={metric!r} ({type(metric).__name__}) is not allowed: a scorer needs an "
            "estimator and X, but metrics are taken of predictions. Pass the metric function "
            "itself, such as sklearn.metrics.f1_score.",
            parameter="eval_metric",
        )
    name = function.__name__
    ours = metric_name(name)
    if ours is not None and function is metric:
        return ours
    parameters = list(inspect.signature(function).parameters)
    takes_weights = "sample_weight" in parameters
    if of_classes and parameters[1] == "pred_decision":
        raise ParameterTypeError(
            f"eval_metric={name} is not allowed: it needs raw scores. Pass a function of "
            "(y, score, weight) that calls it.",
            parameter="eval_metric",
        )
    takes_scores = parameters[1] in _SCORES or name in _OF_PROBABILITIES

    def value(y: Any, predicted: Floats, weight: Floats | None) -> float:
        if of_classes and not takes_scores:
            predicted = predicted.argmax(axis=1)
        elif of_classes and predicted.shape[1] == _TWO_CLASSES:
            predicted = predicted[:, 1]
        options = {"sample_weight": weight} if takes_weights else {}
        return float(np.asarray(metric(y, predicted, **options)))

    return name, value, name.endswith("_score")
