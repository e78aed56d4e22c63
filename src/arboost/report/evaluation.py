"""Scores of a model on rows with a known target: values, intervals, a baseline, and each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from arboost.losses.metrics import confusion_matrix, f1, precision, prediction_metric, recall
from arboost.params.suggestions import metric_name
from arboost.report.inputs import ModelRows, ReportOptions, read_input
from arboost.report.scores import ScoreResult, baseline, metric_score, score_results, score_rows


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
