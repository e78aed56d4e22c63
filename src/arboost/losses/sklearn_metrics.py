"""Metric functions of scikit-learn, passed as they are: ``eval_metric=sklearn.metrics.f1_score``.

Functions are known by their module, so that scikit-learn itself is not imported here.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from arboost.losses.base import Floats
from arboost.names.answers import metric_name

__all__ = ["is_sklearn", "sklearn_metric"]

Function = Callable[[Any, Floats, Floats | None], float]

_TWO_CLASSES = 2
_SCORES = ("y_score", "y_prob", "y_proba")
_OF_PROBABILITIES = ("log_loss", "d2_log_loss_score")  # although they call these y_pred


def is_sklearn(metric: object) -> bool:
    """Whether a metric is an object of sklearn.metrics, or a functools.partial of one."""
    if isinstance(metric, functools.partial):
        metric = metric.func
    module = getattr(metric, "__module__", None) or ""
    return module.partition(".")[0] == "sklearn"


def sklearn_metric(metric: Any, *, of_classes: bool) -> str | tuple[str, Function, bool]:
    """Return the name here of a metric of scikit-learn; else its name, function and direction.

    The function is one of (y, predictions, weight), with class codes and probabilities of shape
    (n_rows, n_classes) for classes. Names of scikit-learn that end in "_score" are of metrics to
    maximise, all others of metrics to minimise.
    """
    function = metric.func if isinstance(metric, functools.partial) else metric
    if not inspect.isfunction(function):
        raise TypeError(
            f"eval_metric={metric!r} ({type(metric).__name__}) is not allowed: a scorer needs an "
            "estimator and X, but metrics are taken of predictions. Pass the metric function "
            "itself, such as sklearn.metrics.f1_score."
        )
    name = function.__name__
    ours = metric_name(name)
    if ours is not None and function is metric:
        return ours
    parameters = list(inspect.signature(function).parameters)
    takes_weights = "sample_weight" in parameters
    if of_classes and parameters[1] == "pred_decision":
        raise TypeError(
            f"eval_metric={name} is not allowed: it needs raw scores. Pass a function of "
            "(y, score, weight) that calls it."
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
