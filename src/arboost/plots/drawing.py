"""Axes, labels, and checks of arguments, as all plots share them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.data.target import encode_known_labels, target
from arboost.errors import InputTypeError, needs_packages
from arboost.plots.palette import GREY
from arboost.text import number_text, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]

_SIZE = (6.4, 4.0)  # inches
_BAR, _AROUND_BARS = 0.27, 1.0  # heights of a bar with its gap, and of title and axis
MAX_BAR_NAME, _MAX_NAME, _MAX_VALUE = 32, 40, 24  # characters; a bar needs room, too
_DIGITS = 5  # of a value of a feature


def matplotlib() -> ModuleType:
    """The package matplotlib, or an error that says how to install it."""
    with needs_packages("plots", "arboost.plots"):
        return import_module("matplotlib")


def new_axes(ax: Axes | None, height: float = _SIZE[1]) -> Axes:
    """`ax`, or new axes of a height in inches."""
    matplotlib()
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(_SIZE[0], height), layout="constrained")[1]


def bar_axes(ax: Axes | None, names: list[str], least_height: float = 1.8) -> Axes:
    """Axes with room for a horizontal bar for each name, the first on top."""
    axes = new_axes(ax, max(_BAR * len(names) + _AROUND_BARS, least_height))
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    return axes


def finish(axes: Axes, title: str | None = None, *, has_legend: bool = True) -> Axes:
    """Hide the top and right spines, add the legend, and return the axes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(which="both", color=GREY)
    legend_style: dict[str, Any] = {"fontsize": "small", "title": title, "title_fontsize": "small"}
    if has_legend:
        axes.legend(frameon=False, alignment="left", **legend_style)
    return axes


def whole_rounds(axes: Axes) -> None:
    """Put the ticks of an axis of rounds at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(x=0.02)


def label(name: object, most: int = _MAX_NAME) -> str:
    r"""Name of at most `most` characters, cut in its middle.

    Dollar signs, which would start a formula in matplotlib, are escaped.

    Examples
    --------
    >>> label("distance to the nearest river", 16)
    'distance… river'
    """
    text = printable(str(name))
    if len(text) > most:  # names that begin alike differ at their ends
        text = f"{text[: most // 2 + 1].rstrip()}\N{HORIZONTAL ELLIPSIS}{text[-(most // 2 - 2) :]}"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text  # legends leave out such names


def check_count(name: str, value: object) -> int:
    """Number of things to draw; raise ValueError unless it is at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}={value!r} is not allowed: use a whole number from 1 on.")
    return value


def engine_model(model: Any, plot: str) -> Any:
    """Model of a fitted estimator, or a loaded model itself.

    It has the attribute ``schema``, and most often the methods of explanations.
    """
    for method in ("_engine_model", "_predictor"):  # of estimators, and of ensembles of members
        if hasattr(model, method):
            return getattr(model, method)(plot)
    if hasattr(model, "schema"):
        return model
    raise InputTypeError(
        f"{plot} draws a model of arboost, but model is of type {type(model).__name__}. Pass a "
        "fitted estimator of arboost, or the result of arboost.load."
    )


def check_fitted(model: Any) -> None:
    """Raise NotFittedError for an estimator that is not fitted."""
    if hasattr(model, "fit"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model)


def class_codes(y: object, n_rows: int, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Index of the class of each row."""
    return encode_known_labels(target(y, n_rows), classes, "y", "model").astype(np.intp)


def output_names(model: Any, n_outputs: int) -> list[str]:
    """Names of the outputs of SHAP values: classes, targets, quantiles."""
    classes = getattr(model, "classes", None)
    if classes is not None and not isinstance(classes, tuple):
        if len(classes) == n_outputs:
            return [label(name) for name in classes.tolist()]
        return [label(classes.tolist()[-1])]
    return ["prediction"] if n_outputs == 1 else [f"output {i}" for i in range(n_outputs)]


def chosen_outputs(output: int | None, n_outputs: int) -> list[int]:
    """Indices of the outputs to draw: one, or all."""
    if output is None:
        return list(range(n_outputs))
    if isinstance(output, bool) or not 0 <= output < n_outputs:
        raise ValueError(
            f"output={output!r} is not allowed: there are {n_outputs} outputs. Use a number from "
            f"0 to {n_outputs - 1}, or None for all."
        )
    return [output]


def boolean_names(X: Any) -> set[object]:
    """Names of the boolean columns of a frame or of one row by name."""
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
    """Value of a table as text; "missing" for None and NaN.

    Examples
    --------
    >>> import datetime
    >>> [value_text(value) for value in ("Oslo", 2.50, 12345678.0, None, datetime.date(2024, 5, 1))]
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
