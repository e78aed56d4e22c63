"""Scores of a model on rows with a known target: values, intervals, a baseline, and each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from arboost.data.feature_names import split_offset, split_target
from arboost.losses import intervals
from arboost.losses.metrics import (
    QueryScores,
    confusion_matrix,
    f1,
    precision,
    prediction_metric,
    recall,
)
from arboost.params.suggestions import metric_name
from arboost.report.inputs import ModelRows, ReportOptions, read_input
from arboost.report.scores import ScoreResult, baseline, metric_score, score_results, score_rows
from arboost.report.table import Floats

_FEWEST_QUERIES = 10  # that replicates can be drawn from


@dataclass(frozen=True)
class ClassResult:
    """Scores of one class: its number of rows, precision, recall and F1; 0 without rows."""

    label: Any
    rows: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Scores of a model on rows with a known target; the result of ``model.evaluate(X, y)``.

    Attributes
    ----------
    scores : tuple of ScoreResult
        Each has the attributes `name`, `value`, `low` and `high` (of its 95 % interval),
        `baseline`, `higher_is_better` and `text`.
    classes : tuple of ClassResult
        Of a classifier: `label`, `rows`, `precision`, `recall` and `f1` of each class.
    baseline : str
        The constant prediction of the baseline.
    n_rows : int
        Rows that are scored.
    notes : tuple of str
        Rows that are left out, and the reason.
    """

    scores: tuple[ScoreResult, ...]
    classes: tuple[ClassResult, ...]
    baseline: str
    n_rows: int
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        lines = [f"Scores on {self.n_rows:,} rows; the baseline {self.baseline}"]
        width = max(len(score.name) for score in self.scores)
        for score in self.scores:
            text = f"  {score.name:{width}}  {score.value:.4g}"
            if np.isfinite(score.low):
                text += f"  ({score.low:.4g} to {score.high:.4g})"
            lines.append(text + ("" if score.baseline is None else f"  {score.baseline:.4g}"))
        return "\n".join(lines)


def evaluate_model(
    model: Any, X: object, y: object, options: ReportOptions, metrics: str | Sequence[str]
) -> Evaluation:
    """Score a model; `report.inputs` checks the arguments."""
    inputs = read_input(model, X, y, options)
    rows = inputs.model_rows[0]
    constant, text = baseline(rows)
    scores = score_results(score_rows(rows), score_rows(constant, has_replicates=False))
    for name in [metrics] if isinstance(metrics, str) else metrics:
        function, is_greater = prediction_metric(name, of_classes=bool(rows.classes))
        result = metric_score(rows, function)
        if result is not None:
            scores.append(ScoreResult(metric_name(name) or name, "", is_greater, *result))
    return Evaluation(tuple(scores), _score_classes(rows), text, inputs.n_rows, tuple(inputs.notes))


_RANK_SCORES = {
    "ndcg@5": "Gain of the first 5 documents, discounted by rank, over that of the best order.",
    "ndcg@10": "The same of the first 10 documents.",
    "map@10": "Mean over the relevant documents of the precision at their ranks, up to 10.",
    "mrr": "Mean of 1 / rank of the first relevant document.",
}


def evaluate_ranking(
    model: Any,
    X: object,
    y: object,
    qid: object,
    options: ReportOptions,
    metrics: str | Sequence[str],
) -> Evaluation:
    """Score a ranker: means over queries, with intervals by draws of queries.

    The baseline has equal scores for all documents: the mean over all orders.
    """
    if options.target_index is not None:
        raise ValueError("target_index is for models of several targets, but this is a ranker.")
    gain = getattr(model, "model_", model).params["gain"]
    X, y, _ = split_target(X, y)
    X, qid = split_offset(X, qid, "qid")
    scores = np.asarray(model.predict(X, offset=options.offset), np.float64)
    names = [*_RANK_SCORES, *([metrics] if isinstance(metrics, str) else metrics)]
    rows = QueryScores.of(y, scores, qid, options.sample_weight, gain)
    results = []
    for name in dict.fromkeys(map(QueryScores.checked, names)):
        low, high = _interval_of_mean(rows.values(name), rows.weight)
        title = name.capitalize() if name.startswith("precision") else name.upper()
        result = ScoreResult(
            name=title,
            text=_RANK_SCORES.get(name, ""),
            higher_is_better=True,
            value=rows.mean(name),
            low=low,
            high=high,
            baseline=rows.mean_of_orders(name),
        )
        results.append(result)
    return Evaluation(tuple(results), (), "orders documents at random", rows.n_rows, ())


def _interval_of_mean(values: Floats, weight: Floats | None) -> tuple[float, float]:
    """95 % interval of the mean of a metric over queries; NaN for few of them."""
    if len(values) < _FEWEST_QUERIES:
        return float("nan"), float("nan")
    weight = np.ones(len(values)) if weight is None else weight
    draws = intervals.Replicates.of(len(values), intervals.rows_to_draw(2))
    summands = np.stack([values * weight, weight], axis=1)
    totals, drawn = draws.sums(summands[draws.rows]), summands[draws.rows].sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        replicates = totals[:, 0] / totals[:, 1]
    value = float(np.average(values, weights=weight))
    return intervals.interval(value, replicates, float(drawn[0] / drawn[1]), draws.scale)


def _score_classes(rows: ModelRows) -> tuple[ClassResult, ...]:
    """Rows, precision, recall and F1 of each class, in the order of the model."""
    labels, codes = rows.model.classes, rows.predicted.codes
    if labels is None or codes is None:
        return ()
    matrix = confusion_matrix(rows.truth, codes, rows.n_classes, rows.weight)
    counts = np.bincount(rows.truth, minlength=rows.n_classes)
    columns = (labels, counts, precision(matrix), recall(matrix), f1(matrix))
    return tuple(
        ClassResult(*row) for row in zip(*(column.tolist() for column in columns), strict=True)
    )
