"""Scores as functions of sums over rows: names, directions and texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["F1_SCORES", "RANK_SCORES", "SCORES", "ScoreKind", "Sums", "ratio"]

Sums = dict[str, Any]  # of each replicate or of all rows, by the name of the summand


def _none(sums: Sums) -> Any:
    """Return NaN: a score of ranks is no function of sums."""
    return np.nan


class ScoreKind(NamedTuple):
    """A score.

    Attributes
    ----------
    name : str
    needs : str
        Name of the summand without which there is no such score; of a rank score, its metric.
    of_sums : callable
        Function of sums over rows.
    higher_is_better : bool
    text : str
        One sentence for readers.
    """

    name: str
    needs: str
    of_sums: Callable[[Sums], Any] = _none
    higher_is_better: bool = True
    text: str = ""


def ratio(above: Any, below: Any) -> Any:
    """Return the quotient; NaN or infinite where the divisor is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(above, np.float64) / np.asarray(below, np.float64)


def _mean(name: str) -> Callable[[Sums], Any]:
    return lambda sums: ratio(sums[name], sums["weight"])


def _f1(sums: Sums) -> Any:
    scores = ratio(2 * sums["hits"], sums["truth"] + sums["chosen"])
    return scores[..., 1]


def _macro_f1(sums: Sums) -> Any:
    scores = ratio(2 * sums["hits"], sums["truth"] + sums["chosen"])
    present = sums["truth"] + sums["chosen"] > 0
    return ratio(np.where(present, scores, 0.0).sum(axis=-1), present.sum(axis=-1))


def _balanced(sums: Sums) -> Any:
    present = sums["truth"] > 0
    recalls = np.where(present, ratio(sums["hits"], sums["truth"]), 0.0)
    return ratio(recalls.sum(axis=-1), present.sum(axis=-1))


def _r2(sums: Sums) -> Any:
    spread = sums["squares"] - ratio(np.square(sums["values"]), sums["weight"])
    # Rounding leaves a constant target with a spread near 0 in place of 0.
    spread = np.where(spread > 1e-12 * sums["squares"], spread, np.nan)
    return 1.0 - ratio(sums["squared"], spread)


SCORES = (
    ScoreKind(
        "log loss",
        "log_loss",
        _mean("log_loss"),
        higher_is_better=False,
        text="Mean negative logarithm of the probability of the true class: 0 is perfect, and "
        "confident mistakes cost most.",
    ),
    ScoreKind(
        "Brier score",
        "brier",
        _mean("brier"),
        higher_is_better=False,
        text="Mean squared error of the probabilities: 0 is perfect.",
    ),
    ScoreKind(
        "accuracy",
        "right",
        _mean("right"),
        higher_is_better=True,
        text="Share of the rows whose predicted class is the true one.",
    ),
    ScoreKind(
        "balanced accuracy",
        "hits",
        _balanced,
        higher_is_better=True,
        text="Mean over the classes of the share of their rows that is found.",
    ),
    ScoreKind(
        "pinball loss",
        "pinball",
        _mean("pinball"),
        higher_is_better=False,
        text="Mean loss of the predicted quantiles, the loss that quantile models minimise.",
    ),
    ScoreKind(
        "deviance",
        "deviance",
        _mean("deviance"),
        higher_is_better=False,
        text="Mean deviance of the distribution that the model assumes for the target: 0 is "
        "perfect.",
    ),
    ScoreKind(
        "RMSE",
        "squared",
        lambda sums: np.sqrt(_mean("squared")(sums)),
        higher_is_better=False,
        text="Root of the mean squared error, in units of the target; large errors count most.",
    ),
    ScoreKind(
        "MAE",
        "absolute",
        _mean("absolute"),
        higher_is_better=False,
        text="Mean absolute error, in units of the target.",
    ),
    ScoreKind(
        "R\N{SUPERSCRIPT TWO}",
        "squares",
        _r2,
        higher_is_better=True,
        text="Share of the target's variance that predictions explain: 1 is perfect, 0 is a "
        "constant.",
    ),
)
F1_SCORES = {
    "binary": ScoreKind(
        "F1",
        "hits",
        _f1,
        higher_is_better=True,
        text="Harmonic mean of precision and recall of the positive class.",
    ),
    "multiclass": ScoreKind(
        "macro F1",
        "hits",
        _macro_f1,
        higher_is_better=True,
        text="Mean over the classes of F1, the harmonic mean of precision and recall.",
    ),
}
RANK_SCORES = (
    ScoreKind(
        "ROC AUC",
        "auc",
        higher_is_better=True,
        text="Probability that a random positive row scores above a random negative one: 0.5 is "
        "chance, 1 is perfect. Multiclass: one-vs-rest, weighted by class frequency.",
    ),
    ScoreKind(
        "average precision",
        "average_precision",
        higher_is_better=True,
        text="Mean precision over all recalls: the share of the class is chance, 1 is perfect. Of "
        "several classes, the mean weighted by their shares.",
    ),
)
