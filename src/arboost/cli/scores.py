"""Scores of a model on a table: values, intervals and a baseline, as a table and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

_INTERVAL = "95 % interval"


@dataclass(frozen=True)
class Scored:
    """One score.

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


@dataclass(frozen=True)
class Evaluation:
    """Scores of one model on some rows.

    Attributes
    ----------
    scores : list of Scored
    baseline_text : str
    inputs : ReportInput
        Rows, truth and predictions.
    """

    scores: list[Scored]
    baseline_text: str
    inputs: Any


def evaluate_rows(
    model: Any,
    table: Any,
    target: str,
    *,
    weight: Any = None,
    offset: Sequence[str] = (),
    n_jobs: int | None = None,
) -> Evaluation:
    """Return the scores of a model on a table with the target among its columns.

    Parameters
    ----------
    model : Predictor, EnsemblePredictor or fitted estimator
    table : pyarrow.Table
    target : str
    weight : array, optional
    offset : sequence of str
        Columns of the offset, where the model does not know them.
    n_jobs : int or None
    """
    from arboost.report.inputs import ReportOptions, read_input
    from arboost.report.scores import baseline, score_rows

    options = ReportOptions(sample_weight=weight, offset=list(offset) or None, n_jobs=n_jobs)
    inputs = read_input(model, table, target, options)
    rows = inputs.model_rows[0]
    constant, text = baseline(rows)
    known = {score.name: score.value for score in score_rows(constant, has_replicates=False)}
    scores = [
        Scored(
            score.name,
            score.kind.text,
            score.kind.higher_is_better,
            score.value,
            *score.interval(),
            known.get(score.name),
        )
        for score in score_rows(rows)
    ]
    return Evaluation(scores, text, inputs)


def metric_scores(inputs: Any, metrics: Sequence[str]) -> list[Scored]:
    """Return the scores of metrics by name, with bootstrap intervals.

    Raises
    ------
    UsageFailure
        An unknown metric, with the nearest name, or one of another task.
    """
    from arboost.cli.errors import using_parameters
    from arboost.losses.metrics import prediction_metric
    from arboost.params.suggestions import metric_name
    from arboost.report.scores import metric_score

    rows = inputs.model_rows[0]
    scores = []
    for name in metrics:
        with using_parameters():
            function, greater = prediction_metric(name, of_classes=bool(rows.classes))
        score = metric_score(rows, function)
        if score is not None:
            scores.append(Scored(metric_name(name) or name, "", greater, *score))
    return scores


def score_tables(scores: Sequence[Scored], title: str, baseline_text: str) -> list[Any]:
    """Return the scores as tables of Rich, the widest first; narrow ones have fewer columns."""
    every = ("value", _INTERVAL, "baseline", "better")
    return [
        _score_table(scores, title, baseline_text, columns)
        for columns in (every, every[:3], ("value", "baseline"))
    ]


def _score_table(
    scores: Sequence[Scored], title: str, baseline_text: str, columns: Sequence[str]
) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    table.add_column("score", no_wrap=True)
    for name in columns:
        table.add_column(name, justify="left" if name == "better" else "right", no_wrap=True)
    for score in scores:
        cells = {
            "value": number_text(score.value),
            _INTERVAL: _interval_text(score),
            "baseline": "" if score.baseline is None else number_text(score.baseline),
            "better": "higher" if score.higher_is_better else "lower",
        }
        table.add_row(Text(score.name), *(cells[name] for name in columns))
    if baseline_text:
        table.caption = f"baseline: {baseline_text}"
        table.caption_justify = "left"
    return table


def score_json(scores: Sequence[Scored]) -> list[dict[str, Any]]:
    """Return the scores for JSON."""
    return [
        {
            "name": score.name,
            "value": score.value,
            "low": score.low,
            "high": score.high,
            "baseline": score.baseline,
            "higher_is_better": score.higher_is_better,
        }
        for score in scores
    ]


def number_text(value: float) -> str:
    """Return a number of four significant digits, so that a column of numbers lines up.

    Examples
    --------
    >>> number_text(0.91234), number_text(123456.7), number_text(12.5), number_text(0.0)
    ('0.9123', '123,457', '12.50', '0')
    """
    if not np.isfinite(value):
        return "-"
    thousand = 1000
    if value == 0 or abs(value) >= thousand:
        return f"{value:,.0f}"
    return f"{value:#.4g}"


def _interval_text(score: Scored) -> str:
    if not np.isfinite(score.low):
        return ""
    return f"{number_text(score.low)} to {number_text(score.high)}"


def fold_scores(folds: Sequence[Evaluation]) -> Evaluation:
    """Return the means over folds; intervals are by the standard error of the folds."""
    names = [score.name for score in folds[0].scores]
    found = []
    for name in names:
        parts = [score for fold in folds for score in fold.scores if score.name == name]
        values = np.array([score.value for score in parts])
        bases = [score.baseline for score in parts if score.baseline is not None]
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        width = _student(len(values) - 1) * error
        mean = float(values.mean())
        found.append(
            Scored(
                name,
                parts[0].text,
                parts[0].higher_is_better,
                mean,
                mean - width,
                mean + width,
                float(np.mean(bases)) if bases else None,
            )
        )
    return Evaluation(found, folds[0].baseline_text, folds[0].inputs)


def _student(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's distribution."""
    from scipy.stats import t

    return float(t.ppf(0.975, max(freedom, 1)))
