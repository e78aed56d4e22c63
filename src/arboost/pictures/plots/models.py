"""The fitted model behind an argument of a plot, and the values of its features as text."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from arboost.model.model import Model
from arboost.pictures.plots.axes import label
from arboost.pictures.tree_words import number_text

__all__ = [
    "boolean_names",
    "chosen_outputs",
    "engine_model",
    "kind_of",
    "output_names",
    "value_text",
]

_DIGITS = 5
_MAX_VALUE = 24  # characters


def engine_model(model: Any, plot: str) -> Any:
    """Return the model of a fitted estimator, or a loaded model itself.

    It has the attribute ``schema``, and most often the methods of explanations.
    """
    for method in ("_engine_model", "_predictor"):  # of estimators, and of ensembles of members
        if hasattr(model, method):
            return getattr(model, method)(plot)
    if isinstance(model, Model) or hasattr(model, "schema"):
        return model
    raise TypeError(
        f"{plot} draws a model of arboost, but model is of type {type(model).__name__}. Pass a "
        "fitted estimator of arboost, or the result of arboost.load."
    )


def kind_of(model: Any) -> str:
    """Return "classifier" or "regressor", of an estimator or a loaded model."""
    kind = getattr(model, "kind", None)  # of a loaded model
    if kind is None:
        kind = "classifier" if hasattr(model, "classes_") else "regressor"
    return str(kind)


def output_names(model: Any, n_outputs: int) -> list[str]:
    """Return the names of the outputs of SHAP values: classes, targets, quantiles."""
    classes = getattr(model, "classes", None)
    if classes is not None and not isinstance(classes, tuple):
        if len(classes) == n_outputs:
            return [label(one) for one in classes.tolist()]
        return [label(classes.tolist()[-1])]
    return ["prediction"] if n_outputs == 1 else [f"output {i}" for i in range(n_outputs)]


def chosen_outputs(output: int | None, n_outputs: int) -> list[int]:
    """Return the index of an output to draw, in a list; or of all outputs."""
    if output is None:
        return list(range(n_outputs))
    if isinstance(output, bool) or not 0 <= output < n_outputs:
        raise ValueError(
            f"output={output!r} is not allowed: there are {n_outputs} outputs. Use a number from "
            f"0 to {n_outputs - 1}, or None for all."
        )
    return [output]


def boolean_names(X: Any) -> set[object]:
    """Return the names of the columns of truth values, of a frame or of one row by name."""
    if isinstance(X, Mapping) or hasattr(X, "to_frame"):  # a dict, or a series of pandas
        return {name for name, value in X.items() if isinstance(value, bool | np.bool_)}
    schema: Any = getattr(X, "schema", None)
    if hasattr(schema, "items"):  # of Polars
        types = dict(schema.items())
    elif schema is not None:  # of PyArrow
        types = dict(zip(schema.names, schema.types, strict=True))
    else:  # of pandas, or none
        types = dict(getattr(X, "dtypes", {}))
    return {name for name, kind in types.items() if str(kind).lower().startswith("bool")}


def value_text(value: object, *, is_boolean: bool = False) -> str:
    """Return a value of a table as text: the user's own, "missing" where there is none.

    Examples
    --------
    >>> import datetime
    >>> [value_text(one) for one in ("Oslo", 2.50, 12345678.0, None, datetime.date(2024, 5, 1))]
    ['Oslo', '2.5', '12,345,678', 'missing', '2024-05-01']
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "missing"
    if isinstance(value, float):
        return str(bool(value)) if is_boolean else number_text(value, _DIGITS)
    text = str(value)
    if isinstance(value, datetime.datetime):
        text = text.removesuffix(" 00:00:00")
    return label(text, _MAX_VALUE)
