"""Scores with confidence intervals, next to a baseline, and differences of two models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.losses.intervals import Replicates, interval, rows_to_draw, wilson
from arboost.losses.metric_functions import RANK_METRICS
from arboost.report.inputs import ReportInput
from arboost.report.models import Predictions, ReportModel
from arboost.report.table import rounded_number

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

Floats = NDArray[np.float64]

_SMALLEST = float(np.finfo(np.float64).eps)  # probability; the bound of the metric log_loss
_TWO = 2


def row_summands(
    inputs: ReportInput, predicted: Predictions, place: int, rows: NDArray[np.intp]
) -> dict[str, NDArray[Any]]:
    """Return the summands of some rows, weighted, of shape (n_rows,) or (n_rows, n_classes)."""
    truth, own = inputs.truth[rows], predicted.take(rows)
    weight = np.ones(len(rows)) if inputs.weight is None else inputs.weight[rows]
    parts = {"weight": weight}
    parts |= {name: part * weight for name, part in _parts(inputs, own, truth, place).items()}
    if inputs.classes is None:
        return parts
    assert own.codes is not None
    every = np.arange(len(inputs.classes))
    parts["truth"] = np.where(truth[:, np.newaxis] == every, weight[:, np.newaxis], 0.0)
    parts["chosen"] = np.where(own.codes[:, np.newaxis] == every, weight[:, np.newaxis], 0.0)
    parts["hits"] = np.where(own.codes[:, np.newaxis] == truth[:, np.newaxis], parts["truth"], 0.0)
    return parts


def all_sums(inputs: ReportInput, predicted: Predictions, place: int) -> Sums:
    """Return the sums of the summands over all rows."""
    truth, weight = inputs.truth, inputs.weight
    parts = _parts(inputs, predicted, truth, place)
    own = np.ones(inputs.n_rows) if weight is None else weight
    sums: Sums = {"weight": own.sum()}
    sums |= {name: (part * own).sum() for name, part in parts.items()}
    if inputs.classes is None:
        return sums
    assert predicted.codes is not None
    n_classes = len(inputs.classes)
    right = predicted.codes == truth
    sums["truth"] = np.bincount(truth, weight, n_classes)
    sums["chosen"] = np.bincount(predicted.codes, weight, n_classes)
    sums["hits"] = np.bincount(truth[right], None if weight is None else own[right], n_classes)
    return sums


def sample_sums(summands: Mapping[str, NDArray[Any]]) -> Sums:
    """Return the sums of given summands."""
    return {name: part.sum(axis=0) for name, part in summands.items()}


def n_summands(inputs: ReportInput) -> int:
    """Return the number of summands of a row, about."""
    return 8 if inputs.classes is None else 4 + 3 * len(inputs.classes)


def _parts(
    inputs: ReportInput, predicted: Predictions, truth: NDArray[Any], place: int
) -> dict[str, NDArray[Any]]:
    """Return the parts of each row, without weights, of shape (n_rows,)."""
    if inputs.classes is None:
        return _of_values(truth, predicted, inputs.models[place])
    assert predicted.codes is not None
    parts: dict[str, NDArray[Any]] = {"right": (predicted.codes == truth).astype(np.float64)}
    if predicted.proba is not None:
        parts["log_loss"] = log_losses(truth, predicted.proba)
        parts["brier"] = _brier(truth, predicted.proba)
    return parts


def log_losses(truth: NDArray[np.intp], proba: Floats) -> Floats:
    """Return the negative logarithm of the probability of each row's class."""
    right = np.take_along_axis(proba, truth[:, np.newaxis], axis=1)[:, 0]
    losses: Floats = -np.log(right.clip(min=_SMALLEST))
    return losses


def _brier(truth: NDArray[np.intp], proba: Floats) -> Floats:
    if proba.shape[1] == _TWO:
        squares: Floats = np.square(proba[:, 1] - truth)
        return squares
    right = np.take_along_axis(proba, truth[:, np.newaxis], axis=1)[:, 0]
    total: Floats = np.square(proba).sum(axis=1) - np.square(right) + np.square(right - 1.0)
    return total


def _of_values(
    truth: Floats, predicted: Predictions, model: ReportModel
) -> dict[str, NDArray[Any]]:
    assert predicted.values is not None
    error = predicted.values - truth
    centred = truth - truth.mean()  # sums of squares keep their digits
    parts = {
        "squared": np.square(error),
        "absolute": np.abs(error),
        "values": centred,
        "squares": np.square(centred),
    }
    params = {} if model.engine is None else model.engine.params
    loss = params.get("loss")
    if loss == "quantile":
        alphas = np.atleast_1d(np.asarray(params["alpha"], np.float64))
        columns = predicted.quantiles
        if columns is None:
            columns = np.repeat(predicted.values[:, np.newaxis], len(alphas), axis=1)
        parts = {"pinball": pinball(truth, columns, np.sort(alphas)), **parts}
    deviance = _DEVIANCES.get(str(loss))
    if deviance is not None and (predicted.values > 0).all():
        found = deviance(truth, predicted.values, params)
        if found is not None:
            parts = {"deviance": found, **parts}
    return parts


def pinball(truth: Floats, quantiles: Floats, alphas: Floats) -> Floats:
    """Return the mean pinball loss of the quantiles of each row."""
    error = truth[:, np.newaxis] - quantiles
    losses: Floats = np.maximum(alphas * error, (alphas - 1.0) * error).mean(axis=1)
    return losses


def _poisson(y: Floats, mean: Floats, params: Mapping[str, Any]) -> Floats | None:
    if (y < 0).any():
        return None
    logs = np.where(y > 0, np.log(np.where(y > 0, y, 1.0) / mean), 0.0)
    found: Floats = 2.0 * (y * logs - y + mean)
    return found


def _gamma(y: Floats, mean: Floats, params: Mapping[str, Any]) -> Floats | None:
    if (y <= 0).any():
        return None
    found: Floats = 2.0 * (np.log(mean / y) + y / mean - 1.0)
    return found


def _tweedie(y: Floats, mean: Floats, params: Mapping[str, Any]) -> Floats | None:
    power = float(params.get("tweedie_power", 1.5))
    if (y < 0).any() or not 1.0 < power < _TWO:
        return None
    low, high = 1.0 - power, 2.0 - power
    found: Floats = 2.0 * (y**high / (low * high) - y * mean**low / low + mean**high / high)
    return found


_DEVIANCES: Mapping[str, Callable[[Floats, Floats, Mapping[str, Any]], Floats | None]] = {
    "poisson": _poisson,
    "gamma": _gamma,
    "tweedie": _tweedie,
}

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
                "value": rounded_number(score.value),
                "low": rounded_number(low),
                "high": rounded_number(high),
                "baseline": rounded_number(constant.get(score.name)),
                "higher_is_better": score.higher_is_better,
                "text": score.text,
            }
        )
    return found


def score_rows(
    inputs: ReportInput, predicted: Predictions, place: int = 0, *, has_replicates: bool = True
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


def _rank_scores(
    inputs: ReportInput, predicted: Predictions, *, has_replicates: bool
) -> list[Score]:
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


def baseline(inputs: ReportInput) -> tuple[Predictions, str]:
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
        return Predictions(values=np.full(n_rows, middle)), f"always predicts the mean{of}"
    counts = np.bincount(own, weight, minlength=len(inputs.classes))
    shares = counts / counts.sum()
    codes = np.full(n_rows, int(shares.argmax()), np.intp)
    proba = np.broadcast_to(shares, (n_rows, len(shares)))
    text = (
        f"always predicts the most frequent class{of}, with the class frequencies as probabilities"
    )
    return Predictions(codes=codes, proba=proba), text


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
                "a": rounded_number(first.value),
                "b": rounded_number(second.value),
                "difference": rounded_number(second.value - first.value),
                "low": rounded_number(low),
                "high": rounded_number(high),
                "higher_is_better": first.higher_is_better,
                "better": better,
            }
        )
    return {
        "names": names,
        "scores": rows,
        "agreement": rounded_number(_agreement(inputs)),
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
