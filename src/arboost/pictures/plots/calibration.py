"""Plot of calibration: the share of a class among rows, over its predicted probability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.data.feature_names import split_target
from arboost.data.target import codes_of, target, weights
from arboost.pictures.plots.axes import (
    COLOURS,
    GREY,
    LIGHT,
    check_count,
    finish,
    label,
    new_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_calibration"]

Floats = NDArray[np.float64]

_TWO = 2
_MOST_CURVES = 6
_Z = 1.96  # of an interval of 95 %


class _Curve(NamedTuple):
    """Reliability of some probabilities in bins; only bins with rows are kept."""

    name: str
    probability: Floats  # mean of the bin
    share: Floats  # of the class among the rows of the bin
    low: Floats  # interval of the share
    high: Floats
    counts: NDArray[Any]  # rows of all bins


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
    check_count("n_bins", n_bins)
    classes = _classes(model)
    X, y, _ = split_target(X, y)
    options = {} if offset is None else {"offset": offset}
    proba = np.asarray(model.predict_proba(X, **options), dtype=np.float64)
    codes = codes_of(target(y, len(proba)), classes, "y", "model").astype(np.intp)
    weight = weights(sample_weight, len(proba))
    weight = np.ones(len(proba)) if weight is None else weight
    edges = np.linspace(0.0, 1.0, n_bins + 1)
    curves = [
        _curve(name, values.ravel(), hits.ravel(), np.broadcast_to(by, values.shape).ravel(), edges)
        for name, values, hits, by in _parts(proba, codes, classes, weight)
    ]
    axes = new_axes(ax, 4.8)
    axes.plot([0.0, 1.0], [0.0, 1.0], color=LIGHT, linewidth=1.0)
    for place, curve in enumerate(curves):
        _draw(axes, curve, COLOURS[place], has_intervals=len(curves) == 1)
    axes.set_xlim(-0.02, 1.02)
    axes.set_ylim(-0.02, 1.02)
    is_one = len(curves) == 1
    axes.set_xlabel(f"predicted probability of {curves[0].name if is_one else 'the class'}")
    axes.set_ylabel(f"share of {curves[0].name if is_one else 'the class'}")
    _draw_counts(axes, curves, edges)
    return finish(axes, has_legend=not is_one)


def _classes(model: Any) -> NDArray[Any]:
    """Return the labels of a classifier; raise TypeError for other models."""
    if hasattr(model, "fit"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model)
    classes = getattr(model, "classes_", getattr(model, "classes", None))
    if classes is None or not hasattr(model, "predict_proba"):
        raise TypeError(
            "plot_calibration draws probabilities of a classifier, but model is of type "
            f"{type(model).__name__}, which has none. Pass a classifier with predict_proba, or use "
            "plot_residuals for a regressor."
        )
    if isinstance(classes, list | tuple):
        raise TypeError(
            f"plot_calibration draws one target, but the model has {len(classes)}. Fit a "
            "classifier for each target."
        )
    return np.asarray(classes)


def _parts(
    proba: Floats, codes: NDArray[np.intp], classes: NDArray[Any], weight: Floats
) -> list[tuple[str, Floats, NDArray[np.bool_], Floats]]:
    """Return name, probabilities, hits and weights of each curve."""
    names = [label(one) for one in classes.tolist()]
    hits = codes[:, None] == np.arange(len(classes))
    if len(classes) == _TWO:
        return [(names[1], proba[:, 1], hits[:, 1], weight)]
    order = np.argsort(-np.bincount(codes, weight, len(classes)), kind="stable")
    n_own = len(classes) if len(classes) <= _MOST_CURVES else _MOST_CURVES - 1
    parts = [(names[i], proba[:, i], hits[:, i], weight) for i in order[:n_own]]
    rest = order[n_own:]
    if len(rest):
        parts.append((f"{len(rest)} others", proba[:, rest], hits[:, rest], weight[:, None]))
    return parts


def _curve(
    name: str, proba: Floats, hits: NDArray[np.bool_], weight: Floats, edges: Floats
) -> _Curve:
    place = np.clip(np.searchsorted(edges, proba, side="right") - 1, 0, len(edges) - 2)
    counts = np.bincount(place, minlength=len(edges) - 1)
    sums = np.bincount(place, weight, len(edges) - 1)
    kept = sums > 0
    total = sums[kept]
    mean = np.bincount(place, weight * proba, len(edges) - 1)[kept] / total
    share = np.bincount(place, weight * hits, len(edges) - 1)[kept] / total
    rows = counts[kept]
    # Wilson's interval of a share of so many rows.
    middle = (share + _Z**2 / (2 * rows)) / (1 + _Z**2 / rows)
    half = _Z / (1 + _Z**2 / rows) * np.sqrt(share * (1 - share) / rows + (_Z / (2 * rows)) ** 2)
    return _Curve(name, mean, share, middle - half, middle + half, counts)


def _draw(axes: Axes, curve: _Curve, colour: str, *, has_intervals: bool) -> None:
    if has_intervals:
        axes.vlines(curve.probability, curve.low, curve.high, color=colour, linewidth=1.0)
    axes.plot(
        curve.probability,
        curve.share,
        color=colour,
        linewidth=1.4,
        marker="o",
        markersize=4,
        label=curve.name,
    )


def _draw_counts(axes: Axes, curves: list[_Curve], edges: Floats) -> None:
    """Draw the number of rows of each bin above the curves."""
    above = axes.inset_axes((0.0, 1.03, 1.0, 0.2), sharex=axes)
    for curve, colour in zip(curves, COLOURS, strict=False):
        above.stairs(curve.counts, edges, color=colour, fill=len(curves) == 1, linewidth=1.2)
    above.set_ylabel("rows")
    above.tick_params(axis="x", labelbottom=False, length=0)
    above.tick_params(color=GREY)
    above.spines[["top", "right", "bottom"]].set_visible(False)
    above.set_ylim(bottom=0)
