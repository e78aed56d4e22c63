"""Plots of partial dependence: lines for one feature, a colour map for two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.explain.partial_dependence import PartialDependence
from arboost.pictures.plots.axes import COLOURS, GREY, finish, label, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_partial_dependence"]

_MOST_CURVES = 200  # of individual rows
_MAX_LEVEL = 16  # characters
_FEW_LEVELS = 8
_MOST_LEVELS = 20  # with a point of their own
_GAP = 1 / 12  # between numbers and the missing value, as a share of the range


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
        raise TypeError(
            "plot_partial_dependence draws a PartialDependence, but found is of type "
            f"{type(found).__name__}. Pass the result of model.partial_dependence(X, features)."
        )
    n_outputs = len(found.outputs)
    if output is not None and not 0 <= output < n_outputs:
        raise ValueError(
            f"output={output} is not allowed: there are {n_outputs} outputs. Use a number from 0 "
            f"to {n_outputs - 1}, or None for all."
        )
    axes = new_axes(ax)
    chosen = list(range(n_outputs)) if output is None else [output]
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
    return finish(axes, has_legend=len(scales) == 1 and len(chosen) > 1)


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
            names = ("missing" if one is None else label(one, _MAX_LEVEL) for one in points)
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
        words: dict[str, Any] = {"color": GREY, "fontsize": "small"}
        for place in self.place[~self.joined]:
            if axis.axis_name == "x":
                across = axis.axes.get_xaxis_transform()
                axis.axes.text(place, 1.01, "missing", ha="center", transform=across, **words)
            else:
                across = axis.axes.get_yaxis_transform()
                axis.axes.text(1.01, place, "missing", va="center", transform=across, **words)


def _condensed(found: PartialDependence, axis: int, output: int) -> PartialDependence:
    """Return the result with the levels of extreme predictions, and the mean of all others."""
    points = found.grid[axis]
    missing = np.flatnonzero([one is None for one in points])
    levels = np.flatnonzero([one is not None for one in points])
    values = found.individual if found.average is None else found.average[None]
    assert values is not None
    of_points = np.moveaxis(_of_output(values, found, output), axis + 1, 0)
    means = of_points.reshape(len(points), -1).mean(axis=1)
    order = levels[np.argsort(-means[levels], kind="stable")]
    first, others, last = np.split(order, [_MOST_LEVELS // 2, len(order) - _MOST_LEVELS // 2])
    groups = [*first[:, None], others, *last[:, None], *missing[:, None]]
    labels = np.empty(len(groups), object)
    labels[:] = [points[group[0]] for group in groups]
    labels[len(first)] = f"{len(others)} others"

    def grouped(values: NDArray[np.float64] | None, at: int) -> NDArray[np.float64] | None:
        if values is None:
            return None
        parts = [values.take(group, at).mean(axis=at) for group in groups]
        return np.stack(parts, axis=at)

    return replace(
        found,
        grid=tuple(labels if i == axis else one for i, one in enumerate(found.grid)),
        average=grouped(found.average, axis),
        individual=grouped(found.individual, axis + 1),
    )


def _draw_lines(
    axes: Axes, found: PartialDependence, output: int, scale: _Scale, *, is_alone: bool
) -> None:
    colour = COLOURS[output % len(COLOURS)]
    if found.individual is not None:
        rows = _of_output(found.individual, found, output)
        picked = np.unique(np.linspace(0, len(rows) - 1, _MOST_CURVES).astype(np.intp))
        thin: dict[str, Any] = {"linewidth": 0.6, "alpha": 0.35, "markersize": 2.5}
        thin["color"] = GREY if is_alone and found.average is not None else colour
        _draw(axes, scale, rows[picked].T, thin)
    if found.average is not None:
        values = _of_output(found.average, found, output)
        thick: dict[str, Any] = {"color": colour, "linewidth": 2.0, "markersize": 6}
        thick["label"] = label(found.outputs[output])
        if found.individual is not None:
            from matplotlib import patheffects

            edge = patheffects.withStroke(linewidth=3.5, foreground="white")
            thick["path_effects"] = [edge]
        _draw(axes, scale, values[:, None], thick)


def _draw(axes: Axes, scale: _Scale, values: NDArray[np.float64], style: dict[str, Any]) -> None:
    joined = scale.joined
    if joined.any():
        axes.plot(scale.place[joined], values[joined], **style)
        style = style | {"label": None}
    if not joined.all():
        dots = style | {"marker": "o", "linestyle": "", "markeredgewidth": 0}
        axes.plot(scale.place[~joined], values[~joined], **dots)


def _draw_colours(axes: Axes, found: PartialDependence, output: int, scales: list[_Scale]) -> None:
    if found.average is None:
        raise ValueError(
            "found has no average, and individual rows cannot be drawn for two features. Use "
            'kind="average" or kind="both".'
        )
    values = _of_output(found.average, found, output)
    drawn = axes.pcolormesh(
        scales[0].place, scales[1].place, values.T, shading="nearest", cmap="viridis"
    )
    axes.figure.colorbar(drawn, ax=axes, label=label(found.outputs[output]))


def _of_output(
    values: NDArray[np.float64], found: PartialDependence, output: int
) -> NDArray[np.float64]:
    return values if len(found.outputs) == 1 else values[..., output]
