"""Permutation importances of anything that predicts: ensembles of models, pipelines, other models.

Each shuffle is a prediction of the whole table, in the type that the user passed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.data.feature_names import names_of
from arboost.data.messages import listing
from arboost.data.scipy_sparse import is_sparse
from arboost.data.table import as_array, is_records
from arboost.data.target import codes_of, numbers_of, target
from arboost.losses.metrics import Metric, of_predictions
from arboost.losses.sklearn_metrics import is_sklearn

__all__ = ["column_labels", "increases_of_any"]

Floats = NDArray[np.float64]
Order = NDArray[np.int64]


def increases_of_any(
    model: Any, X: Any, y: object, weight: Floats | None, metric: object, orders: Any
) -> Floats:
    """Return the increases of a metric of predictions, shape (n_repeats, n_features).

    Parameters
    ----------
    model : object with ``predict``, and ``predict_proba`` where classes have probabilities
    X : table of shape (n_rows, n_features)
    y : array of shape (n_rows,) or (n_rows, n_targets)
    weight : float64 array of shape (n_rows,), or None
    metric : str, callable, arboost.Metric or None
    orders : callable
        Orders of the rows for a feature, one for each repeat.
    """
    table = X if names_of(X) is not None or is_sparse(X) else as_array(X)
    columns, rate = _columns(model, table), _rating(model, table, y, weight, metric)
    start = rate(table)
    losses = [
        [rate(_shuffled(table, column, order)) for order in orders(i)]
        for i, column in enumerate(columns)
    ]
    increases: Floats = np.array(losses).T - start
    return increases


def column_labels(model: Any, X: Any) -> list[str]:
    """Return the names of the features, in the order of `increases_of_any`."""
    names = names_of(X)
    columns = _columns(model, X if names is not None or is_sparse(X) else as_array(X))
    return [f"x{i}" if names is None else str(names[i]) for i in columns]


def _columns(model: Any, X: Any) -> list[int]:
    """Return the places of the features in a table, in their order in fit."""
    names = names_of(X)
    if names is None:
        return list(range(X.shape[1]))
    schema = getattr(model, "schema", None)
    known = getattr(model, "feature_names_in_", None) if schema is None else schema.columns
    if known is None:
        return list(range(len(names)))
    missing = [name for name in known if name not in names]
    if missing:
        raise ValueError(
            f"X lacks the columns {listing(map(repr, missing))} of fit. Pass a table that has them."
        )
    return [names.index(name) for name in known]


def _shuffled(X: Any, column: int, order: Order) -> Any:
    """Return a table with the rows of one column in another order, in the type of the table."""
    if is_sparse(X):
        shuffled = X.tocsc(copy=True)
        entries = slice(shuffled.indptr[column], shuffled.indptr[column + 1])
        shuffled.indices[entries] = np.argsort(order)[shuffled.indices[entries]]
        shuffled.has_sorted_indices = False
        return shuffled.asformat(X.format)
    if isinstance(X, Mapping):
        name = list(X)[column]
        return {**X, name: [X[name][row] for row in order.tolist()]}
    if is_records(X):
        name = (names_of(X) or [])[column]
        pairs = zip(X, order.tolist(), strict=True)
        return [{**own, name: X[row].get(name)} for own, row in pairs]
    if hasattr(X, "set_column"):  # of PyArrow
        return X.set_column(column, X.schema.field(column), X.column(column).take(order))
    if hasattr(X, "to_series"):  # of Polars
        return X.with_columns(X.to_series(column).gather(order))
    shuffled = X.copy()
    if hasattr(X, "iloc"):
        shuffled.isetitem(column, X.iloc[order, column].array)
    else:
        shuffled[:, column] = X[order, column]
    return shuffled


def _rating(model: Any, X: Any, y: Any, weight: Floats | None, metric: object) -> Any:
    """Return the metric of the predictions of a table, lower is better."""
    if not callable(getattr(model, "predict", None)):
        raise TypeError(
            f"model is a {type(model).__name__} without a method predict: pass a fitted estimator, "
            "or the result of arboost.load."
        )
    n_rows = len(y) if hasattr(y, "__len__") else None
    classes = getattr(model, "classes_", getattr(model, "classes", None))
    if isinstance(classes, list | tuple):
        raise TypeError(
            "Permutation importances of several targets with classes are there for models of trees "
            "alone. Pass the members."
        )
    several = classes is None and np.ndim(y) > 1
    given = target(y, n_rows or 0, several=several)
    truth: NDArray[Any]
    if classes is None:
        truth = numbers_of(given)
    else:
        truth = codes_of(given, np.asarray(classes), "y", "model").astype(np.intp)
    has_shares = _has_probabilities(model, X)

    def predicted(table: Any) -> Floats:
        if classes is None:
            return np.asarray(model.predict(table), np.float64)
        if has_shares:
            return np.asarray(model.predict_proba(table), np.float64)
        labels = np.asarray(model.predict(table))[:, np.newaxis]
        votes: Floats = np.equal(labels, classes).astype(np.float64)
        return votes

    if callable(metric) and not is_sklearn(metric):
        custom = metric if isinstance(metric, Metric) else Metric("metric", metric)
        custom_sign = -1.0 if custom.greater_is_better else 1.0
        values = truth.astype(np.float64)
        return lambda table: custom_sign * custom(values, predicted(table), weight)
    usual = "rmse" if classes is None else "log_loss" if has_shares else "accuracy"
    function, greater = of_predictions(metric or usual, of_classes=classes is not None)
    sign = -1.0 if greater else 1.0

    def rate(table: Any) -> float:
        found = predicted(table)
        if classes is not None or found.ndim == 1:
            return sign * float(function(truth, found, weight))
        pairs = zip(truth.T, found.T, strict=True)
        return sign * float(np.mean([function(one, values, weight) for one, values in pairs]))

    return rate


def _has_probabilities(model: Any, X: Any) -> bool:
    """Whether a model has class probabilities; hard votes have the method alone."""
    try:
        return callable(getattr(model, "predict_proba", None)) and len(model.predict_proba(X)) > 0
    except (AttributeError, TypeError):
        return False
