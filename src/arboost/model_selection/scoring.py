"""Fitted estimator + held-out rows -> one number, the same for estimators of any library."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.algorithms.members.answers import class_choice, class_shares, predicted_numbers
from arboost.losses.base import Floats
from arboost.losses.metrics import Metric, of_predictions
from arboost.losses.sklearn_metrics import is_sklearn
from arboost.names.answers import metric_name

__all__ = ["Scorer", "predict"]


@dataclass(frozen=True)
class Scorer:
    """A metric of predictions: class probabilities (n_rows, n_classes), or values (n_rows,).

    Attributes
    ----------
    name : str
    function : callable (y, predictions, weight) -> float
        y holds values, or the index of the class.
    greater_is_better : bool
    """

    name: str
    function: Callable[[Floats, Floats, Floats | None], float]
    greater_is_better: bool

    @classmethod
    def of(cls, metric: object, kind: str, usual: str) -> Self:
        """Return the scorer of a user's metric; None for the usual one.

        Parameters
        ----------
        metric : str, callable, Metric or None
            A name that ``eval_metric`` takes, a function of scikit-learn, a function of (y,
            predictions, weight) of which lower is better, or a `Metric` of predictions.
        kind : {"classifier", "regressor"}
        usual : str
        """
        if metric is None:
            metric = usual
        if isinstance(metric, Metric):
            return cls(metric.name, metric.function, metric.greater_is_better)
        if callable(metric) and not is_sklearn(metric):
            name = getattr(metric, "__name__", type(metric).__name__)
            return cls(name, metric, greater_is_better=False)
        function, greater = of_predictions(metric, of_classes=kind == "classifier")
        own = getattr(metric, "__name__", "") if not isinstance(metric, str) else metric
        return cls(metric_name(own) or own, function, greater)

    def value(self, y: Floats, predicted: Floats, weight: Floats | None) -> float:
        """Return the metric; raise ValueError where it is not a number."""
        found = float(self.function(y, predicted, weight))
        if math.isnan(found):
            raise ValueError(
                f"the metric {self.name!r} is not a number (NaN) on these rows. Use another "
                "metric, or folds with every class among the held-out rows."
            )
        return found

    def is_better(self, one: float, other: float) -> bool:
        """Whether one score is better than another."""
        return one > other if self.greater_is_better else one < other


def predict(estimator: Any, X: Any, classes: NDArray[Any] | None) -> tuple[Floats, float]:
    """Return the predictions of a fitted estimator as scorers read them, and the seconds taken.

    An estimator without probabilities gives its predicted class the probability 1.
    """
    started = time.perf_counter()
    if classes is None:
        predicted = predicted_numbers(estimator, X)[:, 0]
    elif callable(getattr(estimator, "predict_proba", None)):
        predicted = class_shares(estimator, X, classes, "an estimator without predict_proba")
    else:
        predicted = class_choice(estimator, X, classes)
    seconds = time.perf_counter() - started
    return np.ascontiguousarray(predicted), seconds
