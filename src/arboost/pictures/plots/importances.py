"""Plot of importances: a bar for each of the most important features, and one for the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.data.feature_names import split_target
from arboost.explain.importances import SPLIT_KINDS
from arboost.explain.permutation import permutation_importances
from arboost.explain.permutation_of_any import column_labels
from arboost.model.model import Model
from arboost.pictures.plots.axes import (
    BLUE,
    GREY,
    LIGHT,
    bar_axes,
    bar_name,
    check_count,
    finish,
)
from arboost.pictures.plots.models import engine_model
from arboost.pictures.tree_words import number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_importances"]

_TITLES = {
    "gain": "share of the gain of all splits",
    "cover": "share of the cover of all splits",
    "split": "share of the number of splits",
    "permutation": "increase of the metric by permutation",
    "shap": "mean of the absolute SHAP values",
}


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
    most = check_count("n_features", n_features)
    features, values = _importances(model, kind, X, y)
    is_share = kind in SPLIT_KINDS and values.sum() > 0
    if is_share:
        values = values / values.sum()
    order = np.argsort(-values, kind="stable")
    shown, rest = order[:most], order[most:]
    lengths = [*values[shown].tolist()]
    names = [bar_name(features[i]) for i in shown]
    if len(rest):
        lengths.append(float(values[rest].sum()))
        names.append(f"{len(rest):,} others")
    axes = bar_axes(ax, names)
    colours = [BLUE] * len(shown) + [LIGHT] * (len(names) - len(shown))
    axes.barh(range(len(names)), lengths, height=0.7, color=colours)
    texts = [f"{one:.1%}" if is_share else number_text(one, 3) for one in lengths]
    for place, (text, length) in enumerate(zip(texts, lengths, strict=True)):
        # To the right also of a negative bar: on its left is the name of the feature.
        words: dict[str, Any] = {"va": "center", "fontsize": "small", "color": GREY}
        axes.annotate(text, (max(length, 0.0), place), (3, 0), textcoords="offset points", **words)
    low, high = min(0.0, *lengths), max(0.0, *lengths)
    axes.set_xlim(low, high + 0.15 * (high - low) or 1.0)
    if low < 0.0:
        axes.axvline(0.0, color=GREY, linewidth=0.8)
    if is_share:
        axes.xaxis.set_major_formatter(lambda place, _: f"{place:.0%}")
    axes.set_xlabel(_TITLES[kind])
    return finish(axes, has_legend=False)


def _importances(model: Any, kind: str, X: Any, y: Any) -> tuple[Sequence[str], NDArray[Any]]:
    """Return the names of the features, and their importances."""
    if hasattr(model, "_fitted_model"):
        model._fitted_model()  # or raises NotFittedError
    fitted = getattr(model, "model_", model)
    if isinstance(fitted, Model):
        names: Sequence[str] = fitted.feature_names
        return names, engine_model(model, "plot_importances").importances(kind, X, y)
    if kind != "permutation" or X is None or y is None:
        raise TypeError(
            f"plot_importances(kind={kind!r}) was asked of a {type(model).__name__}, which is no "
            'single model of trees. Use plot_importances(model, kind="permutation", X=X, y=y).'
        )
    X, y, _ = split_target(X, y)
    return column_labels(model, X), permutation_importances(model, X, y).mean(axis=0)
