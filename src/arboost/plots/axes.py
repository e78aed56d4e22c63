"""Axes, colours and labels of all plots, and the fitted model behind an argument."""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from arboost.errors import needs_packages
from arboost.models.model import Model
from arboost.models.tree_nodes import number_text, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Palette of Okabe and Ito, safe for colour-blind readers; line styles differ for grey prints.
BLACK, BLUE, SKY, RED, GREEN = "#000000", "#0072b2", "#56b4e9", "#d55e00", "#009e73"
GREY, LIGHT = "#707070", "#b0b0b0"
COLOURS = (BLUE, RED, GREEN, SKY, BLACK, GREY)

_SIZE = (6.4, 4.0)  # inches
_BAR, _AROUND_BARS = 0.27, 1.0  # heights of a bar with its gap, and of title and axis
_MAX_NAME, _MAX_BAR_NAME = 40, 32  # characters


def matplotlib() -> ModuleType:
    """Return the package matplotlib, or raise an error that says how to install it."""
    with needs_packages("plots", "arboost.plots"):
        return import_module("matplotlib")


def new_axes(ax: Axes | None, height: float = _SIZE[1]) -> Axes:
    """Return the given axes, or new ones of a height in inches."""
    matplotlib()
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(_SIZE[0], height), layout="constrained")[1]


def bar_name(name: object) -> str:
    """Return a name next to a bar, of which the figure has to be left some room."""
    return label(name, _MAX_BAR_NAME)


def bar_axes(ax: Axes | None, names: list[str], least_height: float = 1.8) -> Axes:
    """Return axes with a horizontal bar's place for each name, the first on top."""
    axes = new_axes(ax, max(_BAR * len(names) + _AROUND_BARS, least_height))
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    return axes


def finish(axes: Axes, title: str | None = None, *, has_legend: bool = True) -> Axes:
    """Return the axes without the top and right spines, and with the legend."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(which="both", color=GREY)
    words: dict[str, Any] = {"fontsize": "small", "title": title, "title_fontsize": "small"}
    if has_legend:
        axes.legend(frameon=False, alignment="left", **words)
    return axes


def whole_rounds(axes: Axes) -> None:
    """Put the ticks of an axis of rounds at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(x=0.02)


def label(name: object, most: int = _MAX_NAME) -> str:
    r"""Return a name of at most so many characters, cut in its middle.

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
    """Return a number of things to draw; raise ValueError unless it is at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}={value!r} is not allowed: use a whole number from 1 on.")
    return value


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
