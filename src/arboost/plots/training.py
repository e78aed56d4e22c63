"""Plots of a fit: learning curves; bounds, errors and margins of AdaBoost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.errors import InputTypeError
from arboost.losses.curves import margin_distribution, margins
from arboost.plots import drawing
from arboost.plots.drawing import Floats, label
from arboost.plots.palette import BLACK, BLUE, GREEN, GREY, LIGHT, ORANGE, PURPLE, SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT, _LEAST_HEIGHT = 2.6, 4.0  # inches of a panel, and of a figure
_STYLES = ("-", "--", ":")
_SCALES = ("log", "linear")
_BELOW_ERRORS = 10.0  # ratio of the smallest error to the end of a log scale, at most
_MOST_STAGES = 4


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
    curves, text, best = _learning_curves(model)
    metrics = list(dict.fromkeys(metric for scores in curves.values() for metric in scores))
    panels = _panels(ax, metrics)
    for panel, metric in zip(panels, metrics, strict=True):
        for number, (name, scores) in enumerate(curves.items()):
            if metric in scores:
                _draw(panel, scores[metric], label(name), number)
        panel.axvline(best + 1, color=GREY, linewidth=1.0, linestyle=":", label=text)
        drawing.whole_rounds(panel)
        panel.set_ylabel(label(metric))
        drawing.finish(panel, has_legend=panel is panels[0])
    panels[-1].set_xlabel("round")
    return panels[0]


def _learning_curves(model: Any) -> tuple[dict[str, dict[str, Floats]], str, int]:
    """Curves by evaluation set and metric, the label of the best round, and the round.

    A curve has the shape (n_rounds,), or (n_folds, n_rounds) for a cross-validation.
    """
    if hasattr(model, "best_index") and hasattr(model, "scores"):  # of `arboost.cv`
        folds = {metric: np.asarray(values) for metric, values in model.scores.items()}
        return {"mean of the folds": folds}, f"best: round {model.best_index + 1}", model.best_index
    if not hasattr(model, "evals_result_"):
        drawing.check_fitted(model)
    if not hasattr(model, "evals_result_"):
        raise InputTypeError(
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
        name: {metric: np.asarray(values) for metric, values in scores.items()}
        for name, scores in model.evals_result_.items()
    }
    # Curves of a search for rounds, or of continued training, count other rounds than the model.
    last_curve = next(iter(list(curves.values())[-1].values()))
    best, n_rounds = int(np.flatnonzero(last_curve == model.best_score_)[0]), model.n_iter_
    text = f"kept: {n_rounds:,} rounds"
    if n_rounds != best + 1:
        text = f"best: round {best + 1:,}\n(the model has {n_rounds:,})"
    return curves, text, best


def _panels(ax: Any, metrics: Sequence[str]) -> list[Axes]:
    """Axes for each metric; new ones are stacked."""
    drawing.matplotlib()
    if ax is None:
        from matplotlib import pyplot

        height = max(_HEIGHT * len(metrics), _LEAST_HEIGHT)
        grid = pyplot.subplots(
            len(metrics), sharex=True, squeeze=False, figsize=(6.4, height), layout="constrained"
        )[1]
        return list(grid[:, 0])
    panels = list(np.atleast_1d(np.asarray(ax, dtype=object)).ravel())
    if len(panels) != len(metrics):
        raise ValueError(
            f"ax holds {len(panels)} axes, but the fit has {len(metrics)} metrics "
            f"({', '.join(metrics)}). Pass one for each, or None for a new figure."
        )
    return panels


def _draw(panel: Axes, values: Floats, name: str, number: int) -> None:
    colour = SERIES[number % len(SERIES)]
    style = _STYLES[number // len(SERIES) % len(_STYLES)]
    rounds = np.arange(1, values.shape[-1] + 1)
    marker = "o" if len(rounds) == 1 else ""  # a line of a single point is invisible
    if values.ndim > 1:
        panel.plot(rounds, values.T, color=LIGHT, linewidth=0.7)
        values = values.mean(axis=0)
    panel.plot(
        rounds, values, color=colour, linestyle=style, linewidth=1.6, marker=marker, label=name
    )


def plot_bound(model: Any, ax: Axes | None = None, *, scale: str = "log") -> Axes:
    """Draw the theoretical bounds of the training error and the errors after each round.

    Lines without values are left out: a bound where there is none, the exponential loss where it
    is the bound itself, the validation error of a fit without a validation set (or with an
    ``eval_metric`` other than "error").

    Parameters
    ----------
    model : AdaBoostClassifier
        Fitted.
    ax : matplotlib Axes, optional
        Axes to draw on; None makes a new figure.
    scale : {"log", "linear"}, default="log"
        Scale of the errors. On a log scale bounds that fall exponentially are straight lines; an
        error of 0 is drawn at the lower edge, and the legend names the first of these rounds.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from arboost import AdaBoostClassifier
    >>> from arboost.plots import plot_bound
    >>> model = AdaBoostClassifier(n_estimators=3).fit([[0], [1], [2]], [1, 0, 1])
    >>> plot_bound(model).get_xlabel()
    'round'
    """
    if scale not in _SCALES:
        raise ValueError(f"scale={scale!r} is not allowed: use one of {', '.join(_SCALES)}.")
    _check_model(model, "plot_bound")
    axes = drawing.new_axes(ax)
    curves = _error_curves(model)
    lowest = _lowest_shown(curves) if scale == "log" else 0.0
    for curve in curves:
        curve.draw(axes, lowest)
    axes.set_yscale(scale)
    axes.set_ylim(lowest, min(1.0, axes.get_ylim()[1]))
    drawing.whole_rounds(axes)
    axes.set_xlabel("round")
    axes.set_ylabel("error and its bounds")
    return drawing.finish(axes)


def plot_margins(
    model: Any, X: object, y: object, rounds: Iterable[int] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the cumulative distribution of the margins after some of the rounds.

    A line crosses margin 0 at the error of the model after that number of rounds. Its course to the
    right shows more than the error: rounds that no longer change the error still increase the
    margins of the least certain rows.

    Parameters
    ----------
    model : AdaBoostClassifier
        Fitted.
    X : table of shape (n_rows, n_features)
    y : array of shape (n_rows,)
        True labels.
    rounds : iterable of int, optional
        Numbers of rounds, between 1 and ``model.n_iter_``; None takes up to four, the last round
        among them.
    ax : matplotlib Axes, optional
        Axes to draw on; None makes a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from arboost import AdaBoostClassifier
    >>> from arboost.plots import plot_margins
    >>> X, y = [[0], [1], [2]], [1, 0, 1]
    >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y)
    >>> len(plot_margins(model, X, y, rounds=[1, 3]).get_legend().get_texts())
    2
    """
    _check_model(model, "plot_margins")
    chosen = _chosen_rounds(rounds, len(model.vote_range_))
    colours = drawing.matplotlib().colormaps["viridis"](np.linspace(0.85, 0.0, len(chosen)))
    stages = list(_stages(model, X, y, chosen))
    axes = drawing.new_axes(ax)
    axes.axvline(0.0, color=GREY, linewidth=0.8)
    for (number, values), colour in zip(stages, colours, strict=True):
        margin, share = margin_distribution(values)
        # A distribution function is defined everywhere: from the left edge to the right one.
        margin, share = np.r_[-1.0, margin, 1.0], np.r_[0.0, share, 1.0]
        label = f"{number} round{'s' if number > 1 else ''}"
        axes.plot(margin, share, color=colour, drawstyle="steps-post", linewidth=1.8, label=label)
    axes.set_xlim(-1.0, 1.0)
    axes.set_xticks([-1.0, -0.5, 0.0, 0.5, 1.0])
    axes.set_ylim(0.0, 1.0)
    text_style: dict[str, Any] = {"color": GREY, "fontsize": "small", "va": "bottom"}
    axes.text(-0.02, 1.01, "wrong", ha="right", transform=axes.get_xaxis_transform(), **text_style)
    axes.text(0.02, 1.01, "right", ha="left", transform=axes.get_xaxis_transform(), **text_style)
    axes.set_xlabel("margin")
    axes.set_ylabel("share of rows with at most this margin")
    return drawing.finish(axes, title="after")


@dataclass(frozen=True)
class _Curve:
    """One line over the rounds."""

    label: str
    values: Floats
    colour: str
    style: str = "-"
    is_error: bool = False

    def draw(self, axes: Axes, lowest: float) -> None:
        """Draw the line. The legend names errors of 0 and bounds above 1, outside the axes."""
        label, values = self.label, self.values
        last = int(np.flatnonzero(values).max(initial=-1)) + 1
        if last < len(values):
            label += f" (0 from round {last + 1} on)"
        elif (values > 1.0).all():
            label += " (above 1: says nothing)"
        axes.plot(
            np.arange(1, len(values) + 1),
            np.maximum(values, lowest) if self.is_error else values,
            color=self.colour,
            linestyle=self.style,
            linewidth=1.8 if self.is_error else 1.4,
            marker="o" if len(values) == 1 else "",  # a line of a single point is invisible
            label=label,
        )


def _error_curves(model: Any) -> list[_Curve]:
    """Lines, usually from the highest to the lowest."""
    bound, edges, loss = (
        np.asarray(getattr(model, name), dtype=np.float64)
        for name in ("training_error_bound_", "edge_bound_", "exponential_loss_")
    )
    is_loss = np.allclose(bound, loss, rtol=1e-6, atol=0.0)
    curves = [
        _Curve("bound by the edges", edges, PURPLE, "--"),
        _Curve("exponential loss", loss, BLACK, ":"),
        _Curve("bound = exponential loss" if is_loss else "bound", bound, BLUE, "-."),
    ]
    if is_loss:
        del curves[1]
    validation = model.evals_result_.get("validation", {}).get("error")
    if validation is not None:
        values = np.asarray(validation, dtype=np.float64)
        curves.append(_Curve("validation error", values, GREEN, is_error=True))
    values = np.asarray(model.training_error_, dtype=np.float64)
    curves.append(_Curve("training error", values, ORANGE, is_error=True))
    return [curve for curve in curves if np.isfinite(curve.values).any()]


def _lowest_shown(curves: list[_Curve]) -> float:
    """Lower end of a log scale: close below the smallest nonzero error.

    Bounds of an error of 0 keep falling, and would press all other lines to the top.
    """
    positive = np.concatenate([curve.values[curve.values > 0.0] for curve in curves])
    errors = np.concatenate([curve.values for curve in curves if curve.is_error])
    least = errors[errors > 0.0].min(initial=1.0)
    return float(max(positive.min(initial=1.0), least / _BELOW_ERRORS)) / 1.5


def _chosen_rounds(rounds: Iterable[int] | None, n_rounds: int) -> list[int]:
    if rounds is None:
        # Some of 1, 5, 10, 50, 100, ..., evenly spread, and the last round.
        usual = [k * 10**power for power in range(len(str(n_rounds))) for k in (1, 5)]
        candidates = [*(number for number in usual if 2 * number <= n_rounds), n_rounds]
        places = np.linspace(0, len(candidates) - 1, _MOST_STAGES).round()
        return [candidates[index] for index in sorted({int(index) for index in places})]
    chosen = sorted({int(number) for number in rounds})
    if not chosen or chosen[0] < 1 or chosen[-1] > n_rounds:
        raise ValueError(
            f"rounds={chosen} is not allowed: the model has {n_rounds} rounds. Pass numbers "
            f"between 1 and {n_rounds}, or None to have some chosen."
        )
    return chosen


def _stages(model: Any, X: object, y: object, chosen: list[int]) -> Iterator[tuple[int, Floats]]:
    """Yield each chosen round with the margins after it."""
    totals = np.cumsum(model.vote_range_)
    codes: NDArray[np.intp] | None = None
    for number, decision in enumerate(model.staged_decision_function(X), start=1):
        if codes is None:
            codes = drawing.class_codes(y, len(decision), model.classes_)
        if number in chosen:
            scores = decision.reshape(len(decision), -1)
            yield number, margins(scores, codes, float(totals[number - 1]))
        if number == chosen[-1]:
            return


def _check_model(model: Any, name: str) -> None:
    if not hasattr(model, "training_error_bound_"):
        drawing.check_fitted(model)
        raise InputTypeError(
            f"{name} draws a fitted AdaBoostClassifier, but model is of type "
            f"{type(model).__name__}, which has neither bounds nor votes. Pass the classifier."
        )
    if not len(model.vote_range_):
        raise ValueError(
            f"{name} has nothing to draw: the model has no rounds, as it was fitted on rows of "
            "one class. Fit it on two or more."
        )
