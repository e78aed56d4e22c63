"""Plot of the SHAP values of many rows: a swarm of dots for each of the most important features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.explain.shap import score_name, shown_columns
from arboost.pictures.plots.axes import (
    COLOURS,
    GREY,
    LIGHT,
    bar_axes,
    bar_name,
    check_count,
    finish,
    matplotlib,
)
from arboost.pictures.plots.models import chosen_outputs, engine_model, output_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_shap_summary"]

Floats = NDArray[np.float64]

_MOST_ROWS = 2000
_MOST_OUTPUTS = 6
_MOST_VECTORS = 500  # dots of a feature; more are pixels in SVG and PDF files
_LEAST_HEIGHT = 2.4  # inches, for the colour bar
_N_BINS = 100  # of SHAP values, whose rows are spread over the height of a feature
_HALF_HEIGHT = 0.4
_ENDS = (5, 95)  # percentiles of a feature's values with the first and the last colour


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
    most = check_count("n_features", n_features)
    fitted = engine_model(model, "plot_shap_summary")
    values = fitted.shap_values(X, background=background)
    if not len(values):
        raise ValueError("X has no rows, but the plot has a dot for each. Pass some.")
    values = values.reshape(*values.shape[:2], -1)
    names = output_names(fitted, values.shape[2])
    chosen = chosen_outputs(output, values.shape[2])
    size = np.abs(values[:, :, chosen]).mean(axis=0).sum(axis=1)
    order = np.argsort(-size, kind="stable")
    shown, rest = order[:most], order[most:]
    labels = [bar_name(fitted.feature_names[i]) for i in shown]
    labels += [f"{len(rest):,} others"] if len(rest) else []
    axes = bar_axes(ax, labels, _LEAST_HEIGHT)
    if len(chosen) > 1:
        _draw_bars(axes, values, names, shown, rest)
        axes.set_xlabel("mean of the absolute SHAP values")
        return finish(axes)
    picked = np.unique(np.linspace(0, len(values) - 1, _MOST_ROWS).astype(np.intp))
    columns = shown_columns(X, fitted.schema)
    drawn = values[picked, :, chosen[0]]
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    for place, feature in enumerate(shown):
        is_category = fitted.schema.levels_of(feature) is not None
        colour = _colour_places(columns[feature], is_category=is_category)[picked]
        _draw_swarm(axes, place, drawn[:, feature], colour)
    if len(rest):
        none = np.full(len(picked), np.nan)
        _draw_swarm(axes, len(shown), drawn[:, rest].sum(axis=1), none)
    _draw_colour_bar(axes)
    of = f" of {names[chosen[0]]}" if fitted.kind == "classifier" or len(names) > 1 else ""
    axes.set_xlabel(f"SHAP value: contribution to the {score_name(fitted)}{of}")
    return finish(axes, has_legend=False)


def _draw_bars(
    axes: Axes, values: Floats, names: list[str], shown: NDArray[Any], rest: NDArray[Any]
) -> None:
    """Draw the mean absolute values of the outputs side by side, the largest output first."""
    means = np.abs(values).mean(axis=0)
    means = np.vstack(
        [means[shown], means[rest].sum(axis=0, keepdims=True)][: 2 if len(rest) else 1]
    )
    order = np.argsort(-means.sum(axis=0), kind="stable")
    n_own = len(order) if len(order) <= _MOST_OUTPUTS else _MOST_OUTPUTS - 1
    parts = [(names[i], means[:, i]) for i in order[:n_own]]
    if n_own < len(order):
        parts.append((f"{len(order) - n_own} others", means[:, order[n_own:]].sum(axis=1)))
    left = np.zeros(len(means))
    for (name, lengths), colour in zip(parts, COLOURS, strict=False):
        axes.barh(range(len(means)), lengths, 0.7, left, color=colour, label=name)
        left += lengths


def _colour_places(column: NDArray[Any], *, is_category: bool) -> Floats:
    """Return a place from 0 to 1 among the colours for each value; NaN for grey."""
    none = np.full(len(column), np.nan)
    if is_category:
        return none
    if column.dtype == object:  # times
        present = np.array([one is not None for one in column], np.bool_)
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


def _draw_swarm(axes: Axes, place: int, values: Floats, colour: Floats) -> None:
    """Draw a dot for each row; rows of about the same value are spread over the height."""
    offset = _spread(values)
    size = 8.0 if len(values) < _MOST_ROWS // 2 else 5.0
    is_grey = np.isnan(colour)
    style: dict[str, Any] = {"s": size, "linewidths": 0, "rasterized": len(values) > _MOST_VECTORS}
    axes.scatter(values[is_grey], place + offset[is_grey], color=LIGHT, **style)
    axes.scatter(
        values[~is_grey],
        place + offset[~is_grey],
        c=colour[~is_grey],
        cmap=_colour_map(),
        vmin=0.0,
        vmax=1.0,
        **style,
    )


def _spread(values: Floats) -> Floats:
    """Return offsets that keep the dots of equal values apart, as far as there is room."""
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
    return matplotlib().colormaps["plasma"]


def _draw_colour_bar(axes: Axes) -> None:
    from matplotlib.cm import ScalarMappable

    bar = axes.figure.colorbar(ScalarMappable(cmap=_colour_map()), ax=axes, aspect=40, pad=0.02)
    bar.set_ticks([0.0, 1.0], labels=["low", "high"])
    bar.ax.tick_params(length=0)
    bar.set_label("value of the feature", labelpad=-12)
    bar.outline.set_visible(False)
