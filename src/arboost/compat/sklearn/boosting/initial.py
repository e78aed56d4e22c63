"""The parameter `init` of GradientBoosting: the model whose predictions the trees correct."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor

from arboost.backend import core

__all__ = ["constant_init", "fitted_init", "init_scores"]

Floats = NDArray[np.float64]

_NEAREST = float(np.finfo(np.float32).eps)  # of a probability to 0 and 1, as scikit-learn has it


def constant_init(kind: str, loss: str, alpha: float) -> Any:
    """Return scikit-learn's model for ``init=None``: class shares, mean, median or quantile."""
    if kind == "classifier":
        return DummyClassifier(strategy="prior")
    if loss == "squared_error":
        return DummyRegressor(strategy="mean")
    return DummyRegressor(strategy="quantile", quantile=alpha if loss == "quantile" else 0.5)


def fitted_init(init: Any, X: Any, y: NDArray[Any], sample_weight: Any) -> Any:
    """Return a fitted clone; raise ValueError where weights are given that it does not take."""
    model = clone(init)
    if sample_weight is None:
        return model.fit(X, y)
    refusal = (
        f"The initial estimator {type(model).__name__} does not support sample weights. Fit without"
        " sample_weight, or use another init."
    )
    try:
        return model.fit(X, y, sample_weight=sample_weight)
    except TypeError as error:
        if "unexpected keyword argument 'sample_weight'" in str(error):
            raise ValueError(refusal) from error
        raise
    except ValueError as error:
        if "stepname__parameter" in str(error):  # how a pipeline refuses them
            raise ValueError(refusal) from error
        raise


def init_scores(model: Any, X: object, kind: str, link: str) -> Floats:
    """Return the raw scores of a model's predictions, shape (n_rows, n_outputs)."""
    if kind == "regressor":
        return np.asarray(model.predict(X), np.float64).reshape(-1, 1)
    shares = np.clip(np.asarray(model.predict_proba(X), np.float64), _NEAREST, 1.0 - _NEAREST)
    logs = core.log(np.ascontiguousarray(shares))
    if link == "softmax":
        centred: Floats = logs - logs.mean(axis=1, keepdims=True)
        return centred
    odds = logs[:, 1] - core.log1p(np.ascontiguousarray(-shares[:, 1]))
    scores: Floats = odds / 2 if link == "logistic_of_double" else odds
    return scores[:, np.newaxis]
