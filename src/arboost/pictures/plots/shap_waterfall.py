"""Plot of the SHAP values of one row: from the expected value to its score, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.explain.shap import score_name, shown_columns
from arboost.pictures.plots.axes import BLUE, GREY, RED, bar_axes, check_count, finish, label
from arboost.pictures.plots.models import (
    boolean_names,
    chosen_outputs,
    engine_model,
    output_names,
    value_text,
)
from arboost.pictures.tree_words import number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_shap_waterfall"]

Floats = NDArray[np.float64]

_MAX_NAME = 28  # characters of a name, next to its value
_DIGITS = 4
_ROUNDING = 1e-9  # share of the range below which a step is 0


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
    most = check_count("n_features", n_features)
    fitted = engine_model(model, "plot_shap_waterfall")
    values = fitted.shap_values(X, background=background)
    if len(values) != 1:
        raise ValueError(
            f"X has {len(values)} rows, but a waterfall shows one. Pass X.iloc[[i]] of a frame, "
            "X[i : i + 1] of an array, or a dict."
        )
    values = values.reshape(values.shape[1], -1)
    expected = fitted.expected_value(background=background)
    chosen = _chosen_output(output, expected + values.sum(axis=0))
    start, steps = float(expected[chosen]), values[:, chosen]
    order = np.argsort(-np.abs(steps), kind="stable")
    shown, rest = order[:most], order[most:]
    columns, truth_values = shown_columns(X, fitted.schema), boolean_names(X)
    names = []
    for i in shown:
        name = fitted.feature_names[i]
        value = value_text(columns[i][0], is_boolean=name in truth_values)
        names.append(f"{label(name, _MAX_NAME)} = {value}")
    lengths = [*steps[shown].tolist()]
    if len(rest):
        names.append(f"{len(rest):,} others")
        lengths.append(float(steps[rest].sum()))
    axes = bar_axes(ax, names)
    _draw_steps(axes, start, lengths, score_name(fitted))
    name = output_names(fitted, values.shape[1])[chosen]
    of = f" of {name}" if fitted.kind == "classifier" or values.shape[1] > 1 else ""
    axes.set_xlabel(f"{score_name(fitted)}{of}")
    return finish(axes, has_legend=False)


def _chosen_output(output: int | None, scores: Floats) -> int:
    if output is None:
        return int(np.argmax(scores))
    return chosen_outputs(output, len(scores))[0]


def _draw_steps(axes: Axes, start: float, lengths: list[float], score: str) -> None:
    """Draw the steps, the last one first: the largest ends at the score, on top."""
    ends = start + np.cumsum(lengths[::-1])[::-1]
    begins = np.append(ends[1:], start)
    low, high = min(start, *ends), max(start, *ends)
    scale = (high - low) or 1.0
    for place, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        step = 0.0 if abs(end - begin) < _ROUNDING * scale else float(end - begin)
        colour = RED if step > 0 else BLUE if step < 0 else GREY
        axes.barh(place, step, 0.7, begin, color=colour)
        text = f"{'+' if step > 0 else ''}{number_text(step, _DIGITS - 1)}"
        words: dict[str, Any] = {"fontsize": "small", "va": "center", "color": colour}
        axes.text(max(begin, end) + 0.01 * scale, place, text, **words)
        # Thin lines join the end of a step to the next one, which is above it.
        above = place - 1.0 if place else -0.6
        axes.plot([end, end], [above, place], color=GREY, linewidth=0.6, zorder=0.5)
    axes.set_xlim(low - 0.04 * scale, high + 0.2 * scale)
    below = len(lengths) - 0.2
    axes.set_ylim(below + 0.3, -0.6)
    axes.plot([start, start], [len(lengths) - 1, below], color=GREY, linewidth=0.6, zorder=0.5)
    words = {"color": GREY, "fontsize": "small"}
    # Each text is on the side of its line that has more room.
    for value, name, up in ((start, "expected", below), (ends[0], score, -0.65)):
        text = f" {name} {number_text(float(value), _DIGITS)} "
        on_left = value > (low + high) / 2
        side = "right" if on_left else "left"
        axes.text(value, up, text, ha=side, va="bottom" if up < 0 else "center", **words)
