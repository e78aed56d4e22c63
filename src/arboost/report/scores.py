"""Scores with confidence intervals, next to a baseline, and differences of two models.

Most scores are functions of sums over rows: of all rows for the score, of weighted rows for its
bootstrap replicates. The area under the ROC curve and average precision are functions of ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.losses import intervals, metrics
from arboost.report.inputs import ModelRows, ReportInput, pinball_losses
from arboost.report.models import Predictions
from arboost.report.table import Floats, Index, rounded

_MOST_RANKED = 30  # classes up to which ranks are scored one against the rest
_FEWEST_ROWS = 10  # that replicates can be drawn from
_FEWEST_RANKED = 2000  # rows drawn for the ranks of a class
_TWO = 2

Sums = dict[str, Any]  # of each replicate or of all rows, by the name of the summand


class ScoreKind(NamedTuple):
    """A score.

    Attributes
    ----------
    name : str
    needs : str
        Name of the summand without which the score is undefined; of a rank score, its metric.
    text : str
        One sentence for readers.
    of_sums : callable, optional
        Function of sums over rows; None for the mean of the summand, and for rank scores.
    higher_is_better : bool
    task : str
        Only task that has the score; "" for all.
    """

    name: str
    needs: str
    text: str
    of_sums: Callable[[Sums], Any] | None = None
    higher_is_better: bool = True
    task: str = ""

    def value(self, sums: Sums) -> Any:
        """Score from the sums over the rows, of all rows or of each replicate."""
        if self.of_sums is not None:
            return self.of_sums(sums)
        return ratio(sums[self.needs], sums["weight"])


def ratio(above: Any, below: Any) -> Any:
    """Quotient; NaN or infinite where the divisor is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(above, np.float64) / np.asarray(below, np.float64)


def _mean_of(scores: Any, present: Any) -> Any:
    """Mean over the classes that are present."""
    return ratio(np.where(present, scores, 0.0).sum(axis=-1), present.sum(axis=-1))


def _f1(sums: Sums) -> Any:
    return ratio(2 * sums["hits"], sums["truth"] + sums["chosen"])


def _r2(sums: Sums) -> Any:
    spread = sums["squares"] - ratio(np.square(sums["values"]), sums["weight"])
    # Rounding leaves a constant target with a spread near 0 in place of 0.
    spread = np.where(spread > 1e-12 * sums["squares"], spread, np.nan)
    return 1.0 - ratio(sums["squared"], spread)


SCORES = (
    ScoreKind(
        "log loss",
        "log_loss",
        "Mean negative logarithm of the probability of the true class: 0 is perfect, and "
        "confident mistakes cost most.",
        higher_is_better=False,
    ),
    ScoreKind(
        "Brier score",
        "brier",
        "Mean squared error of the probabilities: 0 is perfect.",
        higher_is_better=False,
    ),
    ScoreKind("accuracy", "right", "Share of the rows whose predicted class is the true one."),
    ScoreKind(
        "balanced accuracy",
        "hits",
        "Mean recall over the classes.",
        lambda sums: _mean_of(ratio(sums["hits"], sums["truth"]), sums["truth"] > 0),
    ),
    ScoreKind(
        "F1",
        "hits",
        "Harmonic mean of precision and recall of the positive class.",
        lambda sums: _f1(sums)[..., 1],
        task="binary",
    ),
    ScoreKind(
        "macro F1",
        "hits",
        "Mean over the classes of F1, the harmonic mean of precision and recall.",
        lambda sums: _mean_of(_f1(sums), sums["truth"] + sums["chosen"] > 0),
        task="multiclass",
    ),
    ScoreKind(
        "pinball loss",
        "pinball",
        "Mean loss of the predicted quantiles, the loss that quantile models minimise.",
        higher_is_better=False,
    ),
    ScoreKind(
        "deviance",
        "deviance",
        "Mean deviance of the distribution that the model assumes for the target: 0 is perfect.",
        higher_is_better=False,
    ),
    ScoreKind(
        "RMSE",
        "squared",
        "Root of the mean squared error, in units of the target; large errors count most.",
        lambda sums: np.sqrt(ratio(sums["squared"], sums["weight"])),
        higher_is_better=False,
    ),
    ScoreKind(
        "MAE",
        "absolute",
        "Mean absolute error, in units of the target.",
        higher_is_better=False,
    ),
    ScoreKind(
        "R\N{SUPERSCRIPT TWO}",
        "squares",
        "Share of the target's variance that predictions explain: 1 is perfect, 0 is a constant.",
        _r2,
    ),
)
RANK_SCORES = (
    ScoreKind(
        "ROC AUC",
        "auc",
        "Probability that a random positive row scores above a random negative one: 0.5 is "
        "chance, 1 is perfect. Multiclass: one-vs-rest, weighted by class frequency.",
    ),
    ScoreKind(
        "average precision",
        "average_precision",
        "Mean precision over all recalls: chance is the frequency of the class, 1 is perfect.",
        task="binary",
    ),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class Score:
    """A score of all rows, with its bootstrap replicates.

    Attributes
    ----------
    kind : ScoreKind
    value : float
    replicates : float64 array of shape (n_replicates,), or None
    centre, scale : float
        Score of the rows that replicates draw from, and the factor on deviations from it.
    n_shared : float
        Number of rows of a score that is a share of them, as many as weights are worth; else 0.
    """

    kind: ScoreKind
    value: float
    replicates: Floats | None = None
    centre: float = float("nan")
    scale: float = 1.0
    n_shared: float = 0.0

    @property
    def name(self) -> str:
        """Name for readers."""
        return self.kind.name

    def interval(self) -> tuple[float, float]:
        """95 % confidence interval; NaN for too few rows.

        Replicates of a share of 0 or 1 are all alike: its interval is Wilson's.
        """
        if self.replicates is None:
            return float("nan"), float("nan")
        if self.n_shared and self.value in (0.0, 1.0):
            low, high = intervals.wilson(np.array([self.value]), np.array([self.n_shared]))
            return float(low[0]), float(high[0])
        return intervals.interval(self.value, self.replicates, self.centre, self.scale)


@dataclass(frozen=True)
class ScoreResult:
    """A score for readers.

    Attributes
    ----------
    name, text : str
    higher_is_better : bool
    value, low, high : float
        Score and its 95 % interval; NaN where there is none.
    baseline : float or None
        Score of a constant prediction.
    """

    name: str
    text: str
    higher_is_better: bool
    value: float
    low: float
    high: float
    baseline: float | None


def score_results(scores: list[Score], base: list[Score]) -> list[ScoreResult]:
    """Scores of a model next to those of a constant prediction."""
    constant = {score.name: score.value for score in base}
    return [
        ScoreResult(
            score.name,
            score.kind.text,
            score.kind.higher_is_better,
            score.value,
            *score.interval(),
            constant.get(score.name),
        )
        for score in scores
    ]


def scores_section(scores: list[Score], base: list[Score]) -> list[dict[str, Any]]:
    """Scores of a model for the payload."""
    rounding = ("value", "low", "high", "baseline")
    return [
        vars(result) | {name: rounded(getattr(result, name)) for name in rounding}
        for result in score_results(scores, base)
    ]


def score_rows(rows: ModelRows, *, has_replicates: bool = True) -> list[Score]:
    """Scores of predictions of all rows, the most telling first."""
    has_replicates = has_replicates and rows.n_rows >= _FEWEST_ROWS
    whole = _all_sums(rows)
    draws, sample, drawn = None, Sums(), Sums()
    if has_replicates:
        n_summands = 4 + 3 * rows.n_classes if rows.n_classes else 8
        draws = rows.inputs.replicates(intervals.rows_to_draw(n_summands))
        summands = _summands(rows, draws.rows)
        sample = {name: part.sum(axis=0) for name, part in summands.items()}
        drawn = _drawn_sums(draws, summands)
    scores = _rank_scores(rows, has_replicates=has_replicates)
    for kind in SCORES:
        if kind.needs not in whole or kind.task not in ("", rows.model.task):
            continue
        value = float(kind.value(whole))
        if not np.isfinite(value):
            continue
        score = Score(kind=kind, value=value)
        if draws is not None:
            score = replace(
                score,
                replicates=np.asarray(kind.value(drawn), np.float64),
                centre=float(kind.value(sample)),
                scale=draws.scale,
                n_shared=intervals.n_effective(rows.weights()) if kind.needs == "right" else 0.0,
            )
        scores.append(score)
    return scores


def metric_score(
    rows: ModelRows, metric: Callable[[Any, Floats, Floats | None], float]
) -> tuple[float, float, float, float] | None:
    """Value, 95 % interval and baseline of any metric; None without probabilities."""
    parts = [reported.predicted for reported in (rows, baseline(rows)[0])]
    predicted, constant = (part.proba if rows.classes else part.values for part in parts)
    if predicted is None or constant is None:
        return None
    value = float(metric(rows.truth, predicted, rows.weight))
    ends = intervals.metric_interval(metric, value, rows.truth, predicted, rows.weight)
    return value, *ends, float(metric(rows.truth, np.ascontiguousarray(constant), rows.weight))


def _all_sums(rows: ModelRows) -> Sums:
    """Sums of the summands over all rows."""
    weight, codes = rows.weights(), rows.predicted.codes
    sums: Sums = {"weight": weight.sum()}
    parts = _row_parts(rows, rows.truth, rows.predicted)
    sums |= {name: (part * weight).sum() for name, part in parts.items()}
    if codes is not None:
        hits = np.bincount(rows.truth, weight * (codes == rows.truth), rows.n_classes)
        sums |= {"truth": rows.class_totals(), "chosen": rows.class_totals(codes), "hits": hits}
    return sums


def _summands(rows: ModelRows, sampled: Index) -> dict[str, NDArray[Any]]:
    """Summands of some rows, weighted, of shape (n_rows,) or (n_rows, n_classes)."""
    truth, predicted, weight = (
        rows.truth[sampled],
        rows.predicted.take(sampled),
        rows.weights(sampled),
    )
    parts = {"weight": weight}
    parts |= {name: part * weight for name, part in _row_parts(rows, truth, predicted).items()}
    if predicted.codes is not None:
        every = np.arange(rows.n_classes)
        codes, truth = predicted.codes[:, np.newaxis], truth[:, np.newaxis]
        parts["truth"] = np.where(truth == every, weight[:, np.newaxis], 0.0)
        parts["chosen"] = np.where(codes == every, weight[:, np.newaxis], 0.0)
        parts["hits"] = np.where(codes == truth, parts["truth"], 0.0)
    return parts


def _drawn_sums(draws: intervals.Replicates, summands: Mapping[str, NDArray[Any]]) -> Sums:
    """Sums of every replicate, by name."""
    flat = [part.reshape(len(part), -1).astype(np.float64) for part in summands.values()]
    ends = np.cumsum([part.shape[1] for part in flat])[:-1]
    parts = np.split(draws.sums(np.concatenate(flat, axis=1)), ends, axis=1)
    return {
        name: drawn[:, 0] if part.ndim == 1 else drawn
        for (name, part), drawn in zip(summands.items(), parts, strict=True)
    }


def _row_parts(rows: ModelRows, truth: NDArray[Any], predicted: Predictions) -> dict[str, Floats]:
    """Parts of each row, without weights, of shape (n_rows,)."""
    if predicted.codes is not None:
        parts = {"right": (predicted.codes == truth).astype(np.float64)}
        if predicted.proba is not None:
            parts["log_loss"] = metrics.log_losses(truth, np.asarray(predicted.proba))
            parts["brier"] = metrics.brier_scores(truth, predicted.proba)
        return parts
    assert predicted.values is not None
    error = predicted.values - truth
    centred = truth - truth.mean()  # sums of squares keep their digits
    parts = {
        "squared": np.square(error),
        "absolute": np.abs(error),
        "values": centred,
        "squares": np.square(centred),
    }
    params = rows.model.params
    if params.get("loss") == "quantile":
        alphas = np.sort(np.atleast_1d(np.asarray(params["alpha"], np.float64)))
        quantiles = predicted.quantiles
        if quantiles is None:
            quantiles = np.repeat(predicted.values[:, np.newaxis], len(alphas), axis=1)
        parts["pinball"] = pinball_losses(truth, quantiles, alphas)
    deviance = _deviance(params, truth, predicted.values)
    return parts if deviance is None else parts | {"deviance": deviance}


def _deviance(params: Mapping[str, Any], truth: Floats, mean: Floats) -> Floats | None:
    """Deviance of each row for the loss of the fit; None where it is undefined."""
    loss, power = params.get("loss"), float(params.get("tweedie_power", 1.5))
    if not (mean > 0).all() or (truth < 0).any():
        return None
    if loss == "poisson":
        return metrics.poisson_deviances(truth, mean)
    if loss == "gamma" and (truth > 0).all():
        return metrics.gamma_deviances(truth, mean)
    if loss == "tweedie" and 1.0 < power < _TWO:
        return metrics.tweedie_deviances(truth, mean, power)
    return None


def _rank_scores(rows: ModelRows, *, has_replicates: bool) -> list[Score]:
    """Scores of ranks; of several classes one-vs-rest, weighted by their rows."""
    proba = rows.predicted.proba
    if proba is None:
        return []
    totals = rows.class_totals()
    classes = [1] if rows.model.task == "binary" else range(rows.n_classes)
    classes = [k for k in classes if 0 < totals[k] < totals.sum()]
    if not classes or len(classes) > _MOST_RANKED:
        return []
    shares = totals[classes] / totals[classes].sum()
    scale = 1.0
    replicates: dict[str, Floats] = {}
    if has_replicates:
        replicates, scale = _rank_replicates(rows, proba, classes, shares)
    scores = []
    for kind in RANK_SCORES:
        if kind.task not in ("", rows.model.task):
            continue
        metric = metrics.RANK_METRICS[kind.needs]
        values = [metric(rows.truth == k, proba[:, k], rows.weight) for k in classes]
        score = Score(kind=kind, value=float((shares * values).sum()))
        if has_replicates:
            drawn = replicates[kind.needs]
            score = replace(score, replicates=drawn[1:], centre=float(drawn[0]), scale=scale)
        scores.append(score)
    return scores


def _rank_replicates(
    rows: ModelRows, proba: Floats, classes: list[int], shares: Floats
) -> tuple[dict[str, Floats], float]:
    """Rank scores of the sample and of each replicate, and the factor on deviations."""
    draws = rows.inputs.replicates(max(intervals.rows_to_draw(1) // len(classes), _FEWEST_RANKED))
    sampled = draws.rows
    weight = None if rows.weight is None else rows.weight[sampled]
    auc: Any = 0.0
    precision: Any = 0.0
    for k, share in zip(classes, shares, strict=True):
        positive, negative = draws.ranks(rows.truth[sampled] == k, proba[sampled, k], weight)
        above, beside = np.cumsum(positive, axis=1), np.cumsum(negative, axis=1)
        n_positive, n_negative = above[:, -1], beside[:, -1]
        pairs = (negative * (above - positive / 2)).sum(axis=1)
        auc = auc + share * ratio(pairs, n_positive * n_negative)
        filled = np.where(above + beside > 0, above + beside, 1.0)
        precise = (positive * above / filled).sum(axis=1)
        precision = precision + share * ratio(precise, n_positive)
    return {"auc": auc, "average_precision": precision}, draws.scale


def baseline(rows: ModelRows) -> tuple[ModelRows, str]:
    """The rows with a constant prediction, and its text.

    It is learnt from the training rows where their target is known, else from the rows themselves.
    """
    training = rows.inputs.training
    if training is None or training.truth is None:
        truth, weight, origin = rows.truth, rows.weight, ""
    else:
        truth, weight, origin = training.truth, None, " of the training rows"
    if rows.model.task == "regression":
        values = np.full(rows.n_rows, np.average(truth, weights=weight))
        text = f"always predicts the mean{origin}"
        return replace(rows, predicted=Predictions(values=values)), text
    counts = np.bincount(truth, weight, minlength=rows.n_classes)
    shares = counts / counts.sum()
    codes = np.full(rows.n_rows, int(shares.argmax()), np.intp)
    proba = np.broadcast_to(shares, (rows.n_rows, len(shares)))
    text = (
        f"always predicts the most frequent class{origin}, with the class frequencies as "
        "probabilities"
    )
    return replace(rows, predicted=Predictions(codes=codes, proba=proba)), text


def comparison(inputs: ReportInput, scores: list[list[Score]], names: list[str]) -> dict[str, Any]:
    """Differences of two models' scores, by replicates of the same rows."""
    seconds = {score.name: score for score in scores[1]}
    section = []
    for first in scores[0]:
        second = seconds.get(first.name)
        if second is None:
            continue
        low = high = float("nan")
        if first.replicates is not None and second.replicates is not None:
            low, high = intervals.interval(
                second.value - first.value,
                second.replicates - first.replicates,
                second.centre - first.centre,
                first.scale,
            )
        better = int((low > 0) == first.kind.higher_is_better) if low > 0 or high < 0 else None
        section.append(
            {
                "name": first.name,
                "a": rounded(first.value),
                "b": rounded(second.value),
                "difference": rounded(second.value - first.value),
                "low": rounded(low),
                "high": rounded(high),
                "higher_is_better": first.kind.higher_is_better,
                "better": better,
            }
        )
    return {
        "names": names,
        "scores": section,
        "agreement": rounded(_agreement(inputs)),
        "text": "Score of the second model less that of the first, on the same rows, with 95% "
        "confidence intervals from bootstrap replicates that both models share.",
    }


def _agreement(inputs: ReportInput) -> float:
    """Share of equal classes, or the correlation of predicted values."""
    first, second = (rows.predicted for rows in inputs.model_rows)
    if first.codes is not None and second.codes is not None:
        return float(np.average(first.codes == second.codes, weights=inputs.weight))
    if first.values is None or second.values is None or inputs.n_rows == 1:
        return float("nan")
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.corrcoef(first.values, second.values)[0, 1])
