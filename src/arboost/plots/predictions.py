"""Plots of predictions against the truth: calibration and residuals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.data.feature_names import split_target
from arboost.data.target import numeric_target, target, weights
from arboost.errors import InputTypeError
from arboost.losses.curves import CalibrationBins, calibration_bins
from arboost.plots import drawing
from arboost.plots.drawing import Floats, label
from arboost.plots.palette import BLUE, GREY, LIGHT, ORANGE, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TWO = 2
_MOST_CURVES = 6
_MOST_POINTS = 4000
_MOST_BINS, _ROWS_OF_BIN = 20, 10  # of means and intervals along the predictions
_MEDIAN = 0.5


def plot_calibration(
    model: Any,
    X: object,
    y: object,
    ax: Axes | None = None,
    *,
    n_bins: int = 10,
    sample_weight: object = None,
    offset: object = None,
) -> Axes:
    """Draw a reliability curve: the share of each class over its predicted probability.

    Rows are grouped into bins of equal width by the predicted probability. On the diagonal,
    probabilities are shares: of the rows with a probability of 0.8, eight in ten are of the class.
    A histogram above the curve has the number of rows of each bin. For two classes the second one
    is drawn, with intervals of 95 % (Wilson's); for more, each against all others, and beyond six
    the largest classes and the pool of all others.

    Parameters
    ----------
    model : fitted classifier or Predictor
    X : table of shape (n_rows, n_features)
        Held-out rows: of training rows the curve is too good.
    y : array of shape (n_rows,), or the name of a column of X
        True labels.
    ax : matplotlib Axes, optional
        Axes to draw on; None makes a new figure.
    n_bins : int, default=10
    sample_weight : array of shape (n_rows,), optional
    offset : array, str or list of str, optional
        Offset of the rows, for a model that was fitted with one, as `predict` takes it.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from arboost import RandomForestClassifier
    >>> from arboost.plots import plot_calibration
    >>> X, y = [[0], [1], [2], [3]], ["no", "no", "yes", "yes"]
    >>> model = RandomForestClassifier(10, random_state=0).fit(X, y)
    >>> plot_calibration(model, X, y).get_xlabel()
    'predicted probability of yes'
    """
    drawing.check_count("n_bins", n_bins)
    classes = _classes(model)
    X, y, _ = split_target(X, y)
    options = {} if offset is None else {"offset": offset}
    proba = np.asarray(model.predict_proba(X, **options), dtype=np.float64)
    codes = drawing.class_codes(y, len(proba), classes)
    weight = weights(sample_weight, len(proba))
    weight = np.ones(len(proba)) if weight is None else weight
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    hits = codes[:, None] == np.arange(len(classes))
    names = [label(name) for name in classes.tolist()]
    curves = _curves(proba, hits, names, weight, edges)
    axes = drawing.new_axes(ax, 4.8)
    axes.plot([0.0, 1.0], [0.0, 1.0], color=LIGHT, linewidth=1.0)
    is_one = len(curves) == 1
    for (name, bins), colour in zip(curves, SERIES, strict=False):
        filled = bins.n_rows > 0
        if is_one:
            ends = bins.low[filled], bins.high[filled]
            axes.vlines(bins.probability[filled], *ends, color=colour, linewidth=1.0)
        style: dict[str, Any] = {"color": colour, "label": name, "marker": "o", "markersize": 4}
        axes.plot(bins.probability[filled], bins.share[filled], linewidth=1.4, **style)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    name = curves[0][0] if is_one else "the class"
    axes.set_xlabel(f"predicted probability of {name}")
    axes.set_ylabel(f"share of {name}")
    _draw_counts(axes, [bins.n_rows for _, bins in curves], edges)
    return drawing.finish(axes, has_legend=not is_one)


def _classes(model: Any) -> NDArray[Any]:
    """Labels of a classifier; raise TypeError for other models."""
    drawing.check_fitted(model)
    classes = getattr(model, "classes_", getattr(model, "classes", None))
    if classes is None or not hasattr(model, "predict_proba"):
        raise InputTypeError(
            "plot_calibration draws probabilities of a classifier, but model is of type "
            f"{type(model).__name__}, which has none. Pass a classifier with predict_proba, or use "
            "plot_residuals for a regressor."
        )
    if isinstance(classes, list | tuple):
        raise InputTypeError(
            f"plot_calibration draws one target, but the model has {len(classes)}. Fit a "
            "classifier for each target."
        )
    return np.asarray(classes)


def _curves(
    proba: Floats, hits: NDArray[np.bool_], names: list[str], weight: Floats, edges: Floats
) -> list[tuple[str, CalibrationBins]]:
    """Name and bins of each curve: of two classes the second, of many the largest and a pool."""
    order = np.argsort(-(weight @ hits), kind="stable") if len(names) != _TWO else np.ones(1, int)
    n_single = len(order) if len(order) <= _MOST_CURVES else _MOST_CURVES - 1
    groups = [(names[i], np.array([i])) for i in order[:n_single]]
    if n_single < len(order):
        groups.append((f"{len(order) - n_single} others", order[n_single:]))
    return [
        (
            name,
            calibration_bins(
                hits[:, group].ravel(),
                proba[:, group].ravel(),
                np.repeat(weight, len(group)),
                edges[1:-1],
            ),
        )
        for name, group in groups
    ]


def _draw_counts(axes: Axes, counts: list[NDArray[np.intp]], edges: Floats) -> None:
    """Draw the number of rows of each bin above the curves."""
    above = axes.inset_axes((0.0, 1.03, 1.0, 0.2), sharex=axes)
    for n_rows, colour in zip(counts, SERIES, strict=False):
        above.stairs(n_rows, edges, color=colour, fill=len(counts) == 1, linewidth=1.2)
    above.set_ylabel("rows")
    above.tick_params(axis="x", labelbottom=False, length=0)
    above.tick_params(color=GREY)
    above.spines[["top", "right", "bottom"]].set_visible(False)
    above.set_ylim(bottom=0)


class _Predicted(NamedTuple):
    """Predictions of rows, and an interval of y around each, if there is one."""

    middle: Floats
    name: str
    interval: tuple[Floats, Floats] | None = None
    coverage: float = 0.0  # nominal, of the interval


def plot_residuals(
    model: Any,
    X: object,
    y: object,
    ax: Axes | None = None,
    *,
    coverage: float = 0.9,
    target_index: int | None = None,
    offset: object = None,
) -> Axes:
    """Draw residuals, y less prediction, over the predictions.

    A line follows their mean. Models that predict quantiles also have a band: the mean interval of
    the rows around each prediction, with its nominal and its true coverage in the legend. Forests
    have it with ``quantiles=True``, boosters with ``loss="quantile"`` and several ``alpha``.

    Parameters
    ----------
    model : fitted regressor or Predictor
    X : table of shape (n_rows, n_features)
        Held-out rows: residuals of training rows are too small.
    y : array of shape (n_rows,) or (n_rows, n_targets), or the name of a column of X
        True values.
    ax : matplotlib Axes, optional
        Axes to draw on; None makes a new figure.
    coverage : float, default=0.9
        Nominal coverage of the interval of a forest. The interval of a booster is that between its
        first and last quantile.
    target_index : int, optional
        Target to draw, of a model of several.
    offset : array, str or list of str, optional
        Offset of the rows, for a model that was fitted with one, as `predict` takes it.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from arboost import RandomForestRegressor
    >>> from arboost.plots import plot_residuals
    >>> X, y = [[0], [1], [2], [3]], [0, 1, 2, 3]
    >>> model = RandomForestRegressor(10, quantiles=True, random_state=0).fit(X, y)
    >>> plot_residuals(model, X, y).get_ylabel()
    'residual: y less prediction'
    """
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage={coverage!r} is not allowed: use a number between 0 and 1.")
    if hasattr(model, "classes_") or getattr(model, "kind", "") == "classifier":
        raise InputTypeError(
            "plot_residuals draws a regressor, but model is of type "
            f"{type(model).__name__}, a classifier. Use plot_calibration."
        )
    if getattr(getattr(model, "model_", model), "kind", "") == "ranker":
        raise InputTypeError(
            "plot_residuals draws a regressor, but the model is a ranker, whose scores are no "
            "values of y. Use arboost.rank_metrics."
        )
    X, y, _ = split_target(X, y)
    options = {} if offset is None else {"offset": offset}
    predicted = _predicted(model, X, coverage, target_index, options)
    values = np.asarray(y) if target_index is None else np.asarray(y)[:, target_index]
    truth = numeric_target(target(values, len(predicted.middle)))
    residual = truth - predicted.middle
    axes = drawing.new_axes(ax)
    picked = np.unique(np.linspace(0, len(truth) - 1, _MOST_POINTS).astype(np.intp))
    size = 9.0 if len(picked) < _MOST_POINTS // 4 else 4.0
    axes.scatter(
        predicted.middle[picked], residual[picked], s=size, color=BLUE, alpha=0.35, linewidths=0
    )
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    _draw_means(axes, predicted, truth)
    axes.set_xlabel(predicted.name)
    axes.set_ylabel("residual: y less prediction")
    return drawing.finish(axes)


def _predicted(
    model: Any, X: object, coverage: float, index: int | None, options: dict[str, object]
) -> _Predicted:
    """Predictions of one target or the median, and the interval if there is one."""
    fitted = getattr(model, "model_", model)
    params = getattr(fitted, "params", {})
    values = np.asarray(model.predict(X, **options), dtype=np.float64)
    if params.get("loss") == "quantile" and values.ndim > 1:
        alphas = np.atleast_1d(np.asarray(params["alpha"], dtype=np.float64))
        middle = int(np.argmin(np.abs(alphas - _MEDIAN)))
        name = f"predicted quantile {alphas[middle]:g}"
        ends = (values[:, alphas.argmin()], values[:, alphas.argmax()])
        return _Predicted(values[:, middle], name, ends, float(np.ptp(alphas)))
    if values.ndim > 1:
        if index is None:
            raise ValueError(
                f"plot_residuals draws one target, but the model has {values.shape[1]}. Pass "
                "target_index, the number of one, from 0."
            )
        return _Predicted(values[:, index], "prediction")
    if index is not None:
        raise ValueError(
            f"target_index={index!r} is not allowed: the model has one target. Leave it out."
        )
    if getattr(fitted, "distributions", None) is None:
        return _Predicted(values, "prediction")
    tail = (1.0 - coverage) / 2
    low, high = model.predict_quantiles(X, [tail, 1.0 - tail]).T
    return _Predicted(values, "prediction", (low, high), coverage)


def _draw_means(axes: Axes, predicted: _Predicted, truth: Floats) -> None:
    """Draw the mean residual, and the mean interval, in bins of equally many rows."""
    order = np.argsort(predicted.middle, kind="stable")
    n_bins = int(np.clip(len(order) // _ROWS_OF_BIN, 1, _MOST_BINS))
    bins = np.array_split(order, n_bins)
    middles = [predicted.middle[rows].mean() for rows in bins]
    # A single bin is a level, drawn over all predictions.
    across = [predicted.middle.min(), predicted.middle.max()] if n_bins == 1 else middles

    def along(values: Floats) -> list[float]:
        means = [float(values[rows].mean()) for rows in bins]
        return means * 2 if n_bins == 1 else means

    if predicted.interval is not None:
        low, high = predicted.interval
        share = np.mean((truth >= low) & (truth <= high))
        axes.fill_between(
            across,
            along(low - predicted.middle),
            along(high - predicted.middle),
            color=BLUE,
            alpha=0.15,
            linewidth=0,
            label=f"{predicted.coverage:.0%} interval, covers {share:.0%}",
        )
    residual = truth - predicted.middle
    axes.plot(across, along(residual), color=ORANGE, linewidth=1.6, label="mean residual")
