"""Plot of learning curves: every metric on every evaluation set, after each round."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.pictures.plots.axes import (
    COLOURS,
    GREY,
    LIGHT,
    finish,
    label,
    matplotlib,
    whole_rounds,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_learning_curves"]

Floats = NDArray[np.float64]

_HEIGHT, _LEAST_HEIGHT = 2.6, 4.0  # inches of a panel, and of a figure
_STYLES = ("-", "--", ":")


def plot_learning_curves(model: Any, ax: Any = None) -> Axes:
    """Draw the metrics of a fit after each round, with a line for each evaluation set.

    A vertical line marks the best round of the first metric on the last evaluation set; its label
    gives the number of rounds that the model keeps.

    Parameters
    ----------
    model : fitted booster or AdaBoost estimator, or the result of `arboost.cv`
        Of a cross-validation, the mean over the folds is drawn, with a line for each fold.
    ax : matplotlib Axes, or a sequence of them, optional
        Axes for each metric; None makes a new figure.

    Returns
    -------
    matplotlib Axes
        Of the first metric. Of several metrics, a new figure has the Axes of all in their order:
        ``axes.figure.axes``.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.plots import plot_learning_curves
    >>> X, y = [[0], [1], [2], [3]], [0, 1, 2, 3]
    >>> model = GradientBoostingRegressor(n_estimators=5).fit(X, y, eval_set=[(X, y)])
    >>> plot_learning_curves(model).get_ylabel()
    'squared_error'
    """
    curves, text, best = _curves(model)
    metrics = list(dict.fromkeys(metric for of in curves.values() for metric in of))
    panels = _panels(ax, metrics)
    for panel, metric in zip(panels, metrics, strict=True):
        for place, (name, of) in enumerate(curves.items()):
            if metric in of:
                _draw(panel, of[metric], label(name), place)
        panel.axvline(best + 1, color=GREY, linewidth=1.0, linestyle=":", label=text)
        whole_rounds(panel)
        panel.set_ylabel(label(metric))
        finish(panel, has_legend=panel is panels[0])
    panels[-1].set_xlabel("round")
    return panels[0]


def _curves(model: Any) -> tuple[dict[str, dict[str, Floats]], str, int]:
    """Return the curves by evaluation set and metric, the label of the best round, and the round.

    A curve has the shape (n_rounds,), or (n_folds, n_rounds) for a cross-validation.
    """
    if hasattr(model, "best_index") and hasattr(model, "scores"):  # of `arboost.cv`
        folds = {metric: np.asarray(values) for metric, values in model.scores.items()}
        return {"mean of the folds": folds}, f"best: round {model.best_index + 1}", model.best_index
    if hasattr(model, "fit") and not hasattr(model, "evals_result_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model)
    if not hasattr(model, "evals_result_"):
        raise TypeError(
            "plot_learning_curves draws the metrics of a fit, but model is of type "
            f"{type(model).__name__}, which has none. Pass a fitted booster (a loaded model has no "
            "curves), or the result of arboost.cv."
        )
    if not model.evals_result_:
        raise ValueError(
            "plot_learning_curves has nothing to draw: the fit had no evaluation set. Pass "
            "eval_set=[(X_val, y_val)] to fit, or set validation_fraction and n_iter_no_change."
        )
    curves = {
        name: {metric: np.asarray(values) for metric, values in of.items()}
        for name, of in model.evals_result_.items()
    }
    # Curves of a search for rounds, or of continued training, count other rounds than the model.
    watched = next(iter(list(curves.values())[-1].values()))
    best, n_rounds = int(np.flatnonzero(watched == model.best_score_)[0]), model.n_iter_
    text = f"kept: {n_rounds:,} rounds"
    if n_rounds != best + 1:
        text = f"best: round {best + 1:,}\n(the model has {n_rounds:,})"
    return curves, text, best


def _panels(ax: Any, metrics: Sequence[str]) -> list[Axes]:
    """Return axes for each metric, one above the other where they are new."""
    matplotlib()
    if ax is None:
        from matplotlib import pyplot

        height = max(_HEIGHT * len(metrics), _LEAST_HEIGHT)
        found = pyplot.subplots(
            len(metrics), sharex=True, squeeze=False, figsize=(6.4, height), layout="constrained"
        )[1]
        return list(found[:, 0])
    panels = list(np.atleast_1d(np.asarray(ax, dtype=object)).ravel())
    if len(panels) != len(metrics):
        raise ValueError(
            f"ax holds {len(panels)} axes, but the fit has {len(metrics)} metrics "
            f"({', '.join(metrics)}). Pass one for each, or None for a new figure."
        )
    return panels


def _draw(panel: Axes, values: Floats, name: str, place: int) -> None:
    colour = COLOURS[place % len(COLOURS)]
    style = _STYLES[place // len(COLOURS) % len(_STYLES)]
    rounds = np.arange(1, values.shape[-1] + 1)
    marker = "o" if len(rounds) == 1 else ""  # a single point is no line
    if values.ndim > 1:
        panel.plot(rounds, values.T, color=LIGHT, linewidth=0.7)
        values = values.mean(axis=0)
    panel.plot(
        rounds, values, color=colour, linestyle=style, linewidth=1.6, marker=marker, label=name
    )
