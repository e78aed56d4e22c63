"""Scores of predictions with confidence intervals, next to a baseline, and of two models.

Most scores are functions of sums over rows: of all rows for the score, of weighted rows for its
bootstrap replicates. The area under the ROC curve and average precision are functions of ranks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.losses.metric_functions import RANK_METRICS
from arboost.report.bootstrap import Replicates, interval, rows_to_draw, wilson
from arboost.report.inputs import ReportInput
from arboost.report.predicted import Predicted
from arboost.report.rounding import one
from arboost.report.score_kinds import F1_SCORES, RANK_SCORES, SCORES, ScoreKind, Sums, ratio
from arboost.report.sections.summands import all_sums, n_summands, row_summands, sample_sums

__all__ = ["Score", "baseline", "comparison", "score_rows", "scores_section"]

Floats = NDArray[np.float64]
Index = NDArray[np.intp]

_MOST_RANKED = 30  # classes up to which ranks are scored one against the rest
_FEWEST_ROWS = 10  # that replicates can be drawn from
_FEWEST_RANKED = 2000  # rows drawn for the ranks of a class


@dataclass(frozen=True, eq=False, kw_only=True)
class Score:
    """A score of all rows, with its bootstrap replicates.

    Attributes
    ----------
    name, text : str
    higher_is_better : bool
    value : float
    replicates : float64 array of shape (n_replicates,)
    centre, scale : float
        Score of the rows that replicates draw from, and the factor on deviations from it.
    n_shared : float
        Number of rows of a score that is a share of them, as many as weights are worth; else 0.
    """

    name: str
    text: str
    higher_is_better: bool
    value: float
    replicates: Floats
    centre: float
    scale: float
    n_shared: float = 0.0

    def interval(self) -> tuple[float, float]:
        """Return the 95 % confidence interval; NaN for too few rows.

        Replicates of a share of 0 or 1 are all alike: its interval is Wilson's.
        """
        if len(self.replicates) and self.n_shared and self.value in (0.0, 1.0):
            low, high = wilson(np.array([self.value]), np.array([self.n_shared]))
            return float(low[0]), float(high[0])
        return interval(self.value, self.replicates, self.centre, self.scale)


def scores_section(
    inputs: ReportInput, scores: list[Score], base: list[Score]
) -> list[dict[str, Any]]:
    """Return the scores of a model for the payload."""
    constant = {score.name: score.value for score in base}
    found = []
    for score in scores:
        low, high = score.interval()
        found.append(
            {
                "name": score.name,
                "value": one(score.value),
                "low": one(low),
                "high": one(high),
                "baseline": one(constant.get(score.name)),
                "higher_is_better": score.higher_is_better,
                "text": score.text,
            }
        )
    return found


def score_rows(
    inputs: ReportInput, predicted: Predicted, place: int = 0, *, has_replicates: bool = True
) -> list[Score]:
    """Return the scores of predictions of all rows, the most telling first."""
    has_replicates = has_replicates and inputs.n_rows >= _FEWEST_ROWS
    whole = all_sums(inputs, predicted, place)
    draws = inputs.replicates(rows_to_draw(n_summands(inputs))) if has_replicates else None
    sample: Sums | None = None
    drawn: Sums | None = None
    if draws is not None:
        own = row_summands(inputs, predicted, place, draws.rows)
        sample, drawn = sample_sums(own), _drawn(draws, own)
    kinds = [*SCORES]
    if inputs.task in F1_SCORES:
        kinds.insert(4, F1_SCORES[inputs.task])
    found = _rank_scores(inputs, predicted, has_replicates=has_replicates)
    for kind in kinds:
        if kind.needs not in whole:
            continue
        value = float(kind.of_sums(whole))
        if not np.isfinite(value):
            continue
        score = _exact(kind, value)
        if draws is not None and sample is not None and drawn is not None:
            score = replace(
                score,
                replicates=np.asarray(kind.of_sums(drawn), np.float64),
                centre=float(kind.of_sums(sample)),
                scale=draws.scale,
                n_shared=_n_effective(inputs) if kind.needs == "right" else 0.0,
            )
        found.append(score)
    return found


def _n_effective(inputs: ReportInput) -> float:
    """Return the number of equal rows that the weights are worth."""
    weight = inputs.weight
    if weight is None:
        return float(inputs.n_rows)
    return float(weight.sum() ** 2 / np.square(weight).sum())


def _exact(kind: ScoreKind, value: float) -> Score:
    """Return a score of all rows, without replicates."""
    return Score(
        name=kind.name,
        text=kind.text,
        higher_is_better=kind.higher_is_better,
        value=value,
        replicates=np.empty(0),
        centre=value,
        scale=1.0,
    )


def _drawn(draws: Replicates, summands: Mapping[str, NDArray[Any]]) -> Sums:
    """Return the sums of every replicate, by name."""
    parts = [part.reshape(len(part), -1).astype(np.float64) for part in summands.values()]
    sums = draws.sums(np.concatenate(parts, axis=1))
    found: Sums = {}
    first = 0
    for (name, part), flat in zip(summands.items(), parts, strict=True):
        own = sums[:, first : first + flat.shape[1]]
        found[name] = own[:, 0] if part.ndim == 1 else own
        first += flat.shape[1]
    return found


def _rank_scores(inputs: ReportInput, predicted: Predicted, *, has_replicates: bool) -> list[Score]:
    """Return the scores of ranks; of several classes one-vs-rest, weighted by their rows."""
    proba = predicted.proba
    if proba is None or inputs.task == "regression":
        return []
    classes = [1] if inputs.task == "binary" else list(range(proba.shape[1]))
    codes, weight = inputs.truth, inputs.weight
    shares = np.bincount(codes, weight, minlength=proba.shape[1])
    classes = [k for k in classes if 0 < shares[k] < shares.sum()]
    if not classes or len(classes) > _MOST_RANKED:
        return []
    own = shares[classes] / shares[classes].sum()
    replicates = None
    if has_replicates:
        replicates = _rank_replicates(inputs, proba, classes, own)
    found = []
    for kind in RANK_SCORES:
        if kind.needs != "auc" and inputs.task != "binary":
            continue
        values = [RANK_METRICS[kind.needs](codes == k, proba[:, k], weight) for k in classes]
        score = _exact(kind, float((own * values).sum()))
        if replicates is not None:
            drawn, scale = replicates[kind.needs]
            score = replace(score, replicates=drawn[1:], centre=float(drawn[0]), scale=scale)
        found.append(score)
    return found


def _rank_replicates(
    inputs: ReportInput, proba: Floats, classes: list[int], shares: Floats
) -> dict[str, tuple[Floats, float]]:
    """Return the rank scores of the sample and of each replicate, and the factor on deviations."""
    draws = inputs.replicates(max(rows_to_draw(1) // len(classes), _FEWEST_RANKED))
    rows = draws.rows
    weight = None if inputs.weight is None else inputs.weight[rows]
    auc: Any = 0.0
    precision: Any = 0.0
    for k, share in zip(classes, shares, strict=True):
        positive, other = draws.ranks(inputs.truth[rows] == k, proba[rows, k], weight)
        above, beside = np.cumsum(positive, axis=1), np.cumsum(other, axis=1)
        n_positive, n_other = above[:, -1], beside[:, -1]
        pairs = (other * (above - positive / 2)).sum(axis=1)
        auc = auc + share * ratio(pairs, n_positive * n_other)
        filled = np.where(above + beside > 0, above + beside, 1.0)
        precise = (positive * above / filled).sum(axis=1)
        precision = precision + share * ratio(precise, n_positive)
    return {"auc": (auc, draws.scale), "average_precision": (precision, draws.scale)}


def baseline(inputs: ReportInput) -> tuple[Predicted, str]:
    """Return a constant prediction for all rows, and its text.

    It is learnt from the training rows where their target is known, else from the rows themselves.
    """
    training = inputs.training
    known = None if training is None else training.truth
    own = inputs.truth if known is None else known
    weight = inputs.weight if known is None else None
    of = "" if known is None else " of the training rows"
    n_rows = inputs.n_rows
    if inputs.classes is None:
        middle = float(np.average(own, weights=weight))
        return Predicted(values=np.full(n_rows, middle)), f"always predicts the mean{of}"
    counts = np.bincount(own, weight, minlength=len(inputs.classes))
    shares = counts / counts.sum()
    codes = np.full(n_rows, int(shares.argmax()), np.intp)
    proba = np.broadcast_to(shares, (n_rows, len(shares)))
    text = (
        f"always predicts the most frequent class{of}, with the class frequencies as probabilities"
    )
    return Predicted(codes=codes, proba=proba), text


def comparison(inputs: ReportInput, scores: list[list[Score]], names: list[str]) -> dict[str, Any]:
    """Return the differences of two models' scores, by replicates of the same rows."""
    rows = []
    for first, second in zip(*_paired(scores), strict=True):
        low, high = interval(
            second.value - first.value,
            second.replicates - first.replicates,
            second.centre - first.centre,
            first.scale,
        )
        better: int | None = None
        if low > 0 or high < 0:
            better = int((low > 0) == first.higher_is_better)
        rows.append(
            {
                "name": first.name,
                "a": one(first.value),
                "b": one(second.value),
                "difference": one(second.value - first.value),
                "low": one(low),
                "high": one(high),
                "higher_is_better": first.higher_is_better,
                "better": better,
            }
        )
    return {
        "names": names,
        "scores": rows,
        "agreement": one(_agreement(inputs)),
        "text": "Differences are those of the second model less the first, on the same rows; "
        "intervals are of 95 %, by bootstrap replicates that both models share.",
    }


def _paired(scores: list[list[Score]]) -> tuple[list[Score], list[Score]]:
    second = {score.name: score for score in scores[1]}
    firsts = [score for score in scores[0] if score.name in second]
    return firsts, [second[score.name] for score in firsts]


def _agreement(inputs: ReportInput) -> float:
    """Return the share of equal classes, or the correlation of predicted values."""
    first, second = inputs.predicted
    if first.codes is not None and second.codes is not None:
        return float(np.average(first.codes == second.codes, weights=inputs.weight))
    if first.values is None or second.values is None:
        return float("nan")
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.corrcoef(first.values, second.values)[0, 1] if inputs.n_rows > 1 else np.nan
    return float(found)
