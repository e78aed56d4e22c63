"""Plots of explanations: importances, partial dependence, SHAP values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost import PartialDependence, Predictor, permutation_importances
from arboost.data.feature_names import split_target
from arboost.errors import InputTypeError
from arboost.models.importances import SPLIT_KINDS, feature_labels
from arboost.models.shap import score_name, shown_columns
from arboost.plots import drawing
from arboost.plots.drawing import Floats, label
from arboost.plots.palette import BLUE, GREY, LIGHT, ORANGE, SERIES
from arboost.text import number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Importances
_TITLES = {
    "gain": "share of the gain of all splits",
    "cover": "share of the cover of all splits",
    "split": "share of the number of splits",
    "permutation": "increase of the metric by permutation",
    "shap": "mean of the absolute SHAP values",
}

# Partial dependence
_MOST_CURVES = 200  # of individual rows
_MAX_LEVEL = 16  # characters
_FEW_LEVELS = 8
_MOST_LEVELS = 20  # with a point of their own
_GAP = 1 / 12  # between numbers and the missing value, as a share of the range

# SHAP values
_MOST_ROWS = 2000
_MOST_OUTPUTS = 6
_MOST_VECTORS = 500  # dots of a feature; more are pixels in SVG and PDF files
_LEAST_HEIGHT = 2.4  # inches, for the colour bar
_N_BINS = 100  # of SHAP values, whose rows are spread over the height of a feature
_HALF_HEIGHT = 0.4
_ENDS = (5, 95)  # percentiles of a feature's values with the first and the last colour
_MAX_NAME = 28  # characters of a name, next to its value
_DIGITS = 4
_ROUNDING = 1e-9  # share of the range below which a step is 0


def plot_importances(
    model: Any,
    ax: Axes | None = None,
    *,
    kind: str = "gain",
    X: object = None,
    y: object = None,
    n_features: int = 20,
) -> Axes:
    """Draw the importances of the features as bars, the largest first.

    Parameters
    ----------
    model : fitted estimator, Predictor, or anything else with ``predict``
        Ensembles of models, pipelines and models of other libraries have the kind "permutation".
    ax : matplotlib Axes, optional
        Axes to draw on; None makes a new figure.
    kind : {"gain", "cover", "split", "permutation", "shap"}, default="gain"
        Kind of importance, as in ``model.importances``.
    X : table of shape (n_rows, n_features), optional
        Rows, for "permutation" and "shap".
    y : array of shape (n_rows,), optional
        True values or labels, for "permutation".
    n_features : int, default=20
        Largest number of features with a bar of their own; the last bar is the sum of all others.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.plots import plot_importances
    >>> model = GradientBoostingRegressor(n_estimators=5).fit([[0, 5], [1, 5]], [0, 1])
    >>> [text.get_text() for text in plot_importances(model).get_yticklabels()]
    ['x0', 'x1']
    """
    most = drawing.check_count("n_features", n_features)
    features, values = _importances(model, kind, X, y)
    is_share = kind in SPLIT_KINDS and values.sum() > 0
    if is_share:
        values = values / values.sum()
    order = np.argsort(-values, kind="stable")
    shown, rest = order[:most], order[most:]
    lengths = [*values[shown].tolist()]
    names = [label(features[i], drawing.MAX_BAR_NAME) for i in shown]
    if len(rest):
        lengths.append(float(values[rest].sum()))
        names.append(f"{len(rest):,} others")
    axes = drawing.bar_axes(ax, names)
    colours = [BLUE] * len(shown) + [LIGHT] * (len(names) - len(shown))
    axes.barh(range(len(names)), lengths, height=0.7, color=colours)
    texts = [f"{length:.1%}" if is_share else number_text(length, 3) for length in lengths]
    for row, (text, length) in enumerate(zip(texts, lengths, strict=True)):
        # To the right also of a negative bar: on its left is the name of the feature.
        text_style: dict[str, Any] = {"va": "center", "fontsize": "small", "color": GREY}
        axes.annotate(
            text, (max(length, 0.0), row), (3, 0), textcoords="offset points", **text_style
        )
    low, high = min(0.0, *lengths), max(0.0, *lengths)
    axes.set_xlim(low, high + 0.15 * (high - low) or 1.0)
    if low < 0.0:
        axes.axvline(0.0, color=GREY, linewidth=0.8)
    if is_share:
        axes.xaxis.set_major_formatter(lambda row, _: f"{row:.0%}")
    axes.set_xlabel(_TITLES[kind])
    return drawing.finish(axes, has_legend=False)


def _importances(model: Any, kind: str, X: Any, y: Any) -> tuple[Sequence[str], NDArray[Any]]:
    """Names of the features, and their importances."""
    if hasattr(model, "_fitted_model"):
        model._fitted_model()  # or raises NotFittedError
    fitted = getattr(model, "model_", model)
    if isinstance(fitted, Predictor):
        names: Sequence[str] = fitted.feature_names
        return names, drawing.engine_model(model, "plot_importances").importances(kind, X, y)
    if kind != "permutation" or X is None or y is None:
        raise InputTypeError(
            f"plot_importances(kind={kind!r}) is not available for a "
            f"{type(model).__name__}, which is not a single model of trees. Use "
            'plot_importances(model, kind="permutation", X=X, y=y).'
        )
    X, y, _ = split_target(X, y)
    return feature_labels(model, X), permutation_importances(model, X, y).mean(axis=0)


def plot_partial_dependence(
    found: PartialDependence, ax: Axes | None = None, *, output: int | None = None
) -> Axes:
    """Draw partial dependence on one feature (lines) or two (colours).

    Individual rows are thin lines; of many rows some are drawn. Levels of a category are dots,
    as there are no values between them; so are missing values, to the right of all numbers. Of more
    than 20 levels, the ten of the largest and the ten of the smallest predictions are drawn, the
    largest first, and the mean of all others between them.

    Parameters
    ----------
    found : PartialDependence
        Result of `arboost.Predictor.partial_dependence`.
    ax : matplotlib Axes, optional
        Axes to draw on; None makes a new figure.
    output : int, optional
        Index of the output (class, target, quantile) to draw; None draws a line for each output,
        or the colours of the first.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.plots import plot_partial_dependence
    >>> X = [[0, 0], [1, 0], [2, 1], [3, 1]]
    >>> model = GradientBoostingRegressor().fit(X, [0, 1, 2, 3]).model_
    >>> plot_partial_dependence(model.partial_dependence(X, 0)).get_xlabel()
    'x0'
    """
    if not isinstance(found, PartialDependence):
        raise InputTypeError(
            "plot_partial_dependence draws a PartialDependence, but found is of type "
            f"{type(found).__name__}. Pass the result of model.partial_dependence(X, features)."
        )
    chosen = drawing.chosen_outputs(output, len(found.outputs))
    axes = drawing.new_axes(ax)
    for i, points in enumerate(found.grid):
        if points.dtype == object and len(points) > _MOST_LEVELS + 1:
            found = _condensed(found, i, chosen[0])
    scales = [_Scale.of(points) for points in found.grid]
    if len(scales) == 1:
        for number in chosen:
            _draw_lines(axes, found, number, scales[0], is_alone=len(chosen) == 1)
        name = label(found.outputs[chosen[0]]) if len(chosen) == 1 else "output"
        axes.set_ylabel(name)
    else:
        _draw_colours(axes, found, chosen[0], scales)
        scales[1].mark(axes.yaxis)
        axes.set_ylabel(label(found.names[1]))
    scales[0].mark(axes.xaxis)
    axes.set_xlabel(label(found.names[0]))
    return drawing.finish(axes, has_legend=len(scales) == 1 and len(chosen) > 1)


@dataclass(frozen=True)
class _Scale:
    """Positions of the points of a feature on an axis.

    Attributes
    ----------
    place : array of shape (n_points,)
    joined : bool array of shape (n_points,)
        True for points that a line connects: numbers that are not missing.
    names : tuple of str
        Labels of category levels; empty for numbers.
    """

    place: NDArray[Any]
    joined: NDArray[np.bool_]
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, points: NDArray[Any]) -> _Scale:
        none = np.zeros(len(points), np.bool_)
        if points.dtype == object:
            names = ("missing" if point is None else label(point, _MAX_LEVEL) for point in points)
            return cls(np.arange(len(points)), none, tuple(names))
        is_present = ~np.isnat(points) if points.dtype.kind in "mM" else ~np.isnan(points)
        if is_present.all():
            return cls(points, is_present)
        if not is_present.any():
            return cls(np.arange(len(points)), none, ("missing",) * len(points))
        low, high = points[is_present].min(), points[is_present].max()
        away = (
            high + (high - low) * _GAP if high > low else high + np.ones(1, (high - low).dtype)[0]
        )
        return cls(np.where(is_present, points, away), is_present)

    def mark(self, axis: Any) -> None:
        """Label the levels and the missing value on an axis of a plot."""
        if self.names:
            axis.set_ticks(np.arange(len(self.names)), self.names)
            if axis.axis_name == "x" and len(self.names) > _FEW_LEVELS:
                axis.set_tick_params(rotation=90)
            return
        if self.place.dtype.kind == "M":
            from matplotlib import dates

            formatter: Any = dates.ConciseDateFormatter
            axis.set_major_formatter(formatter(axis.get_major_locator()))
        text_style: dict[str, Any] = {"color": GREY, "fontsize": "small"}
        for position in self.place[~self.joined]:
            if axis.axis_name == "x":
                across = axis.axes.get_xaxis_transform()
                axis.axes.text(
                    position, 1.01, "missing", ha="center", transform=across, **text_style
                )
            else:
                across = axis.axes.get_yaxis_transform()
                axis.axes.text(
                    1.01, position, "missing", va="center", transform=across, **text_style
                )


def _condensed(dependence: PartialDependence, axis: int, output: int) -> PartialDependence:
    """Result with the levels of extreme predictions, and the mean of all others."""
    points = dependence.grid[axis]
    missing = np.flatnonzero([point is None for point in points])
    levels = np.flatnonzero([point is not None for point in points])
    values = dependence.individual if dependence.average is None else dependence.average[None]
    assert values is not None
    of_points = np.moveaxis(_of_output(values, dependence, output), axis + 1, 0)
    means = of_points.reshape(len(points), -1).mean(axis=1)
    order = levels[np.argsort(-means[levels], kind="stable")]
    first, others, last = np.split(order, [_MOST_LEVELS // 2, len(order) - _MOST_LEVELS // 2])
    groups = [*first[:, None], others, *last[:, None], *missing[:, None]]
    labels = np.empty(len(groups), object)
    labels[:] = [points[group[0]] for group in groups]
    labels[len(first)] = f"{len(others)} others"

    def grouped(values: Floats | None, at: int) -> Floats | None:
        if values is None:
            return None
        parts = [values.take(group, at).mean(axis=at) for group in groups]
        return np.stack(parts, axis=at)

    return replace(
        dependence,
        grid=tuple(labels if i == axis else grid for i, grid in enumerate(dependence.grid)),
        average=grouped(dependence.average, axis),
        individual=grouped(dependence.individual, axis + 1),
    )


def _draw_lines(
    axes: Axes, dependence: PartialDependence, output: int, scale: _Scale, *, is_alone: bool
) -> None:
    colour = SERIES[output % len(SERIES)]
    if dependence.individual is not None:
        rows = _of_output(dependence.individual, dependence, output)
        picked = np.unique(np.linspace(0, len(rows) - 1, _MOST_CURVES).astype(np.intp))
        thin: dict[str, Any] = {"linewidth": 0.6, "alpha": 0.35, "markersize": 2.5}
        thin["color"] = GREY if is_alone and dependence.average is not None else colour
        _draw(axes, scale, rows[picked].T, thin)
    if dependence.average is not None:
        values = _of_output(dependence.average, dependence, output)
        thick: dict[str, Any] = {"color": colour, "linewidth": 2.0, "markersize": 6}
        thick["label"] = label(dependence.outputs[output])
        if dependence.individual is not None:
            from matplotlib import patheffects

            edge = patheffects.withStroke(linewidth=3.5, foreground="white")
            thick["path_effects"] = [edge]
        _draw(axes, scale, values[:, None], thick)


def _draw(axes: Axes, scale: _Scale, values: Floats, style: dict[str, Any]) -> None:
    joined = scale.joined
    if joined.any():
        axes.plot(scale.place[joined], values[joined], **style)
        style = style | {"label": None}
    if not joined.all():
        dots = style | {"marker": "o", "linestyle": "", "markeredgewidth": 0}
        axes.plot(scale.place[~joined], values[~joined], **dots)


def _draw_colours(
    axes: Axes, dependence: PartialDependence, output: int, scales: list[_Scale]
) -> None:
    if dependence.average is None:
        raise ValueError(
            "found has no average, and individual rows cannot be drawn for two features. Use "
            'kind="average" or kind="both".'
        )
    values = _of_output(dependence.average, dependence, output)
    drawn = axes.pcolormesh(
        scales[0].place, scales[1].place, values.T, shading="nearest", cmap="viridis"
    )
    axes.figure.colorbar(drawn, ax=axes, label=label(dependence.outputs[output]))


def _of_output(values: Floats, dependence: PartialDependence, output: int) -> Floats:
    return values if len(dependence.outputs) == 1 else values[..., output]


def plot_shap_summary(
    model: Any,
    X: object,
    ax: Axes | None = None,
    *,
    output: int | None = None,
    n_features: int = 20,
    background: object = None,
) -> Axes:
    """Draw the SHAP values of the rows of X: a dot for each row and feature.

    The features with the largest mean of absolute values come first; the last line is the sum of
    all others. The colour of a dot is the value of the feature: grey for missing values and for
    categories, which have no order. Of many rows, 2,000 are drawn. For several outputs, bars have
    the mean of the absolute values for each output instead.

    Parameters
    ----------
    model : fitted estimator or Predictor
    X : table of shape (n_rows, n_features)
    ax : matplotlib Axes, optional
        Axes to draw on; None makes a new figure.
    output : int, optional
        Index of the output (class, target, quantile) to draw; None draws bars for all of several.
    n_features : int, default=20
        Largest number of features with a line of their own.
    background : table, optional
        Rows that supply the values of absent features, as in ``shap_values``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.plots import plot_shap_summary
    >>> X, y = [[0, 5], [1, 5], [2, 5]], [0, 1, 2]
    >>> model = GradientBoostingRegressor(n_estimators=5).fit(X, y)
    >>> plot_shap_summary(model, X).get_xlabel()
    'SHAP value: contribution to the raw score'
    """
    most = drawing.check_count("n_features", n_features)
    fitted = drawing.engine_model(model, "plot_shap_summary")
    values = fitted.shap_values(X, background=background)
    if not len(values):
        raise ValueError("X has no rows, but the plot has a dot for each. Pass some.")
    values = values.reshape(*values.shape[:2], -1)
    names = drawing.output_names(fitted, values.shape[2])
    chosen = drawing.chosen_outputs(output, values.shape[2])
    size = np.abs(values[:, :, chosen]).mean(axis=0).sum(axis=1)
    order = np.argsort(-size, kind="stable")
    shown, rest = order[:most], order[most:]
    labels = [label(fitted.feature_names[i], drawing.MAX_BAR_NAME) for i in shown]
    labels += [f"{len(rest):,} others"] if len(rest) else []
    axes = drawing.bar_axes(ax, labels, _LEAST_HEIGHT)
    if len(chosen) > 1:
        _draw_bars(axes, values, names, shown, rest)
        axes.set_xlabel("mean of the absolute SHAP values")
        return drawing.finish(axes)
    picked = np.unique(np.linspace(0, len(values) - 1, _MOST_ROWS).astype(np.intp))
    columns = shown_columns(X, fitted.schema)
    drawn = values[picked, :, chosen[0]]
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    for row, feature in enumerate(shown):
        is_category = fitted.schema.levels_of(feature) is not None
        colour = _colour_places(columns[feature], is_category=is_category)[picked]
        _draw_swarm(axes, row, drawn[:, feature], colour)
    if len(rest):
        none = np.full(len(picked), np.nan)
        _draw_swarm(axes, len(shown), drawn[:, rest].sum(axis=1), none)
    _draw_colour_bar(axes)
    axes.set_xlabel(f"SHAP value: contribution to the {_score_of(fitted, names, chosen[0])}")
    return drawing.finish(axes, has_legend=False)


def _draw_bars(
    axes: Axes, values: Floats, names: list[str], shown: NDArray[Any], rest: NDArray[Any]
) -> None:
    """Draw the mean absolute values of the outputs side by side, the largest output first."""
    means = np.abs(values).mean(axis=0)
    means = np.vstack([means[shown], means[rest].sum(axis=0)][: 2 if len(rest) else 1])
    order = np.argsort(-means.sum(axis=0), kind="stable")
    n_single = len(order) if len(order) <= _MOST_OUTPUTS else _MOST_OUTPUTS - 1
    parts = [(names[i], means[:, i]) for i in order[:n_single]]
    if n_single < len(order):
        parts.append((f"{len(order) - n_single} others", means[:, order[n_single:]].sum(axis=1)))
    left = np.zeros(len(means))
    for (name, lengths), colour in zip(parts, SERIES, strict=False):
        axes.barh(range(len(means)), lengths, 0.7, left, color=colour, label=name)
        left += lengths


def _colour_places(column: NDArray[Any], *, is_category: bool) -> Floats:
    """Place from 0 to 1 among the colours for each value; NaN for grey."""
    none = np.full(len(column), np.nan)
    if is_category:
        return none
    if column.dtype == object:  # times
        present = np.array([time is not None for time in column], np.bool_)
        distinct, codes = np.unique(column[present], return_inverse=True)
        none[present] = codes / max(len(distinct) - 1, 1)
        return none
    finite = np.isfinite(column)
    if not finite.any():
        return none
    low, high = np.percentile(column[finite], _ENDS)
    if low == high:  # nearly all rows have one value
        low, high = column[finite].min(), column[finite].max()
    if low == high:
        none[finite] = 0.5
        return none
    places: Floats = (np.clip(column, low, high) - low) / (high - low)
    return places


def _draw_swarm(axes: Axes, row: int, values: Floats, colour: Floats) -> None:
    """Draw a dot for each row; rows of about the same value are spread over the height."""
    offset = _spread(values)
    size = 8.0 if len(values) < _MOST_ROWS // 2 else 5.0
    is_grey = np.isnan(colour)
    style: dict[str, Any] = {"s": size, "linewidths": 0, "rasterized": len(values) > _MOST_VECTORS}
    axes.scatter(values[is_grey], row + offset[is_grey], color=LIGHT, **style)
    axes.scatter(
        values[~is_grey],
        row + offset[~is_grey],
        c=colour[~is_grey],
        cmap=_colour_map(),
        vmin=0.0,
        vmax=1.0,
        **style,
    )


def _spread(values: Floats) -> Floats:
    """Vertical offsets that keep the dots of equal values apart, as far as the height allows."""
    low, high = values.min(), values.max()
    bins = (
        ((values - low) / (high - low) * _N_BINS).round() if high > low else np.zeros(len(values))
    )
    order = np.lexsort((values, bins))
    starts = np.flatnonzero(np.diff(bins[order], prepend=-1.0))
    counts = np.diff(np.append(starts, len(values)))
    number = np.arange(len(values)) - np.repeat(starts, counts)
    side = np.where(number % 2 == 0, 1.0, -1.0) * ((number + 1) // 2)
    offset = np.empty(len(values))
    offset[order] = side
    return offset * min(_HALF_HEIGHT / max(float(np.abs(offset).max()), 1.0), 0.1)


def _colour_map() -> Any:
    return drawing.matplotlib().colormaps["plasma"]


def _draw_colour_bar(axes: Axes) -> None:
    from matplotlib.cm import ScalarMappable

    bar = axes.figure.colorbar(ScalarMappable(cmap=_colour_map()), ax=axes, aspect=40, pad=0.02)
    bar.set_ticks([0.0, 1.0], labels=["low", "high"])
    bar.ax.tick_params(length=0)
    bar.set_label("value of the feature", labelpad=-12)
    bar.outline.set_visible(False)


def plot_shap_waterfall(
    model: Any,
    X: object,
    ax: Axes | None = None,
    *,
    output: int | None = None,
    n_features: int = 10,
    background: object = None,
) -> Axes:
    """Draw the SHAP values of one row as steps from the expected value to its score.

    Features have their values in the row, as the table has them. The largest step is on top; the
    last one is the sum of all other features.

    Parameters
    ----------
    model : fitted estimator or Predictor
    X : table of one row
        A frame or an array of one row, a dict, or a row of pandas, as ``predict`` takes it.
    ax : matplotlib Axes, optional
        Axes to draw on; None makes a new figure.
    output : int, optional
        Index of the output (class, target, quantile) to draw; None takes the one with the largest
        score.
    n_features : int, default=10
        Largest number of features with a step of their own.
    background : table, optional
        Rows that supply the values of absent features, as in ``shap_values``.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from arboost import DecisionTreeRegressor
    >>> from arboost.plots import plot_shap_waterfall
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> model = DecisionTreeRegressor().fit(X, [0, 0, 2, 6])
    >>> axes = plot_shap_waterfall(model, [[1, 1]])
    >>> [text.get_text() for text in axes.get_yticklabels()]
    ['x0 = 1', 'x1 = 1']
    """
    most = drawing.check_count("n_features", n_features)
    fitted = drawing.engine_model(model, "plot_shap_waterfall")
    values = fitted.shap_values(X, background=background)
    if len(values) != 1:
        raise ValueError(
            f"X has {len(values)} rows, but a waterfall shows one. Pass X.iloc[[i]] of a frame, "
            "X[i : i + 1] of an array, or a dict."
        )
    values = values.reshape(values.shape[1], -1)
    expected = fitted.expected_value(background=background)
    largest = int(np.argmax(expected + values.sum(axis=0)))
    chosen = largest if output is None else drawing.chosen_outputs(output, values.shape[1])[0]
    start, steps = float(expected[chosen]), values[:, chosen]
    order = np.argsort(-np.abs(steps), kind="stable")
    shown, rest = order[:most], order[most:]
    columns, truth_values = shown_columns(X, fitted.schema), drawing.boolean_names(X)
    names = []
    for i in shown:
        name = fitted.feature_names[i]
        value = drawing.value_text(columns[i][0], is_boolean=name in truth_values)
        names.append(f"{label(name, _MAX_NAME)} = {value}")
    lengths = [*steps[shown].tolist()]
    if len(rest):
        names.append(f"{len(rest):,} others")
        lengths.append(float(steps[rest].sum()))
    axes = drawing.bar_axes(ax, names)
    _draw_steps(axes, start, lengths, score_name(fitted))
    outputs = drawing.output_names(fitted, values.shape[1])
    axes.set_xlabel(_score_of(fitted, outputs, chosen))
    return drawing.finish(axes, has_legend=False)


def _score_of(model: Any, outputs: list[str], output: int) -> str:
    """Name of the score of an output, with the output where there may be several."""
    suffix = f" of {outputs[output]}" if model.kind == "classifier" or len(outputs) > 1 else ""
    return f"{score_name(model)}{suffix}"


def _draw_steps(axes: Axes, start: float, lengths: list[float], score: str) -> None:
    """Draw the steps, the last one first: the largest ends at the score, on top."""
    ends = start + np.cumsum(lengths[::-1])[::-1]
    begins = np.append(ends[1:], start)
    low, high = min(start, *ends), max(start, *ends)
    scale = (high - low) or 1.0
    for row, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        step = 0.0 if abs(end - begin) < _ROUNDING * scale else float(end - begin)
        colour = ORANGE if step > 0 else BLUE if step < 0 else GREY
        axes.barh(row, step, 0.7, begin, color=colour)
        text = f"{'+' if step > 0 else ''}{number_text(step, _DIGITS - 1)}"
        text_style: dict[str, Any] = {"fontsize": "small", "va": "center", "color": colour}
        axes.text(max(begin, end) + 0.01 * scale, row, text, **text_style)
        # Thin lines join the end of a step to the next one, which is above it.
        above = row - 1.0 if row else -0.6
        axes.plot([end, end], [above, row], color=GREY, linewidth=0.6, zorder=0.5)
    axes.set_xlim(low - 0.04 * scale, high + 0.2 * scale)
    below = len(lengths) - 0.2
    axes.set_ylim(below + 0.3, -0.6)
    axes.plot([start, start], [len(lengths) - 1, below], color=GREY, linewidth=0.6, zorder=0.5)
    text_style = {"color": GREY, "fontsize": "small"}
    # Each text is on the side of its line that has more room.
    for value, name, up in ((start, "expected", below), (ends[0], score, -0.65)):
        text = f" {name} {number_text(float(value), _DIGITS)} "
        on_left = value > (low + high) / 2
        side = "right" if on_left else "left"
        axes.text(value, up, text, ha=side, va="bottom" if up < 0 else "center", **text_style)
