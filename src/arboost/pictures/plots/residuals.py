"""Plot of residuals over predictions, with the interval of models that predict quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.data.feature_names import split_target
from arboost.data.target import numbers_of, target
from arboost.pictures.plots.axes import BLUE, GREY, RED, SKY, finish, new_axes
from arboost.pictures.plots.models import kind_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_residuals"]

Floats = NDArray[np.float64]

_MOST_POINTS = 4000
_MOST_BINS, _ROWS_OF_BIN = 20, 10  # of means and intervals along the predictions
_MEDIAN = 0.5


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
    if kind_of(model) == "classifier":
        raise TypeError(
            "plot_residuals draws a regressor, but model is of type "
            f"{type(model).__name__}, a classifier. Use plot_calibration."
        )
    X, y, _ = split_target(X, y)
    options = {} if offset is None else {"offset": offset}
    found = _predicted(model, X, coverage, target_index, options)
    values = np.asarray(y) if target_index is None else np.asarray(y)[:, target_index]
    truth = numbers_of(target(values, len(found.middle)))
    residual = truth - found.middle
    axes = new_axes(ax)
    picked = np.unique(np.linspace(0, len(truth) - 1, _MOST_POINTS).astype(np.intp))
    size = 9.0 if len(picked) < _MOST_POINTS // 4 else 4.0
    axes.scatter(
        found.middle[picked], residual[picked], s=size, color=BLUE, alpha=0.35, linewidths=0
    )
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    _draw_means(axes, found, truth)
    axes.set_xlabel(found.name)
    axes.set_ylabel("residual: y less prediction")
    return finish(axes)


def _predicted(
    model: Any, X: object, coverage: float, index: int | None, options: dict[str, object]
) -> _Predicted:
    """Return the predictions of one target or the median, and the interval if there is one."""
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


def _draw_means(axes: Axes, found: _Predicted, truth: Floats) -> None:
    """Draw the mean residual, and the mean interval, in bins of equally many rows."""
    order = np.argsort(found.middle, kind="stable")
    n_bins = int(np.clip(len(order) // _ROWS_OF_BIN, 1, _MOST_BINS))
    bins = np.array_split(order, n_bins)
    place = [found.middle[rows].mean() for rows in bins]
    # A single bin is a level, drawn over all predictions.
    across = [found.middle.min(), found.middle.max()] if n_bins == 1 else place

    def along(values: Floats) -> list[float]:
        means = [float(values[rows].mean()) for rows in bins]
        return means * 2 if n_bins == 1 else means

    if found.interval is not None:
        low, high = found.interval
        share = np.mean((truth >= low) & (truth <= high))
        axes.fill_between(
            across,
            along(low - found.middle),
            along(high - found.middle),
            color=SKY,
            alpha=0.3,
            linewidth=0,
            label=f"{found.coverage:.0%} interval, covers {share:.0%}",
        )
    residual = truth - found.middle
    axes.plot(across, along(residual), color=RED, linewidth=1.6, label="mean residual")
