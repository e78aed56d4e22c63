"""``arboost evaluate``: scores of a model on a table with known targets, as tables and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, nan
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

import click

from arboost.cli import options as opt
from arboost.cli.console import Console, new_table, seconds_text
from arboost.cli.errors import DataFailure, failures_as
from arboost.cli.model_files import load_model
from arboost.cli.tables import RowSpec
from arboost.text import counted

if TYPE_CHECKING:
    from arboost import Evaluation

_MOST_CLASSES = 50  # lines of the table of classes
_INTERVAL = "95 % interval"
_CLASS_SCORES = ("rows", "precision", "recall", "f1")


@click.command(
    cls=opt.SectionedCommand,
    help="Score a model on a table with known targets, next to a constant baseline.",
)
@opt.model_argument
@opt.scored_rows
@opt.column_option("--qid", text="Query of each row, for a ranker.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Metric to add, such as kappa or mape; several are allowed.",
)
@opt.run_options
@opt.console_options()
def evaluate(
    console: Console,
    *,
    model: str,
    rows: RowSpec,
    metrics: Sequence[str],
    device: str | None,
    jobs: int | None,
) -> None:
    """Score a model on a table with known targets."""
    from arboost.cli.rows import read_scored_rows

    loaded = load_model(model, device, has_target=True)
    scored = read_scored_rows(console, loaded, rows)
    count = counted(scored.table.num_rows, "row")
    with console.phase(f"scoring {count}") as phase, failures_as(DataFailure):
        scores = loaded.evaluate(
            scored.table,
            scored.target,
            sample_weight=scored.weights,
            offset=scored.offset or None,
            qid=scored.qid,
            metrics=metrics,
            n_jobs=jobs,
        )
        for note in scores.notes:
            console.say(note)
        phase.result = f"scored in {seconds_text(phase.seconds)}"
    kind = "held-out row" if rows.held_out else "row"
    title = f"{model} on {scored.source.label}, {counted(scores.n_rows, kind)}"
    console.show_widest(*score_tables(scores, title))
    if scores.classes:
        console.show(_class_table(scores))
    console.emit(
        {
            "model_file": model,
            "target": scored.target,
            "rows": scores.n_rows,
            "held_out": rows.held_out,
            "trained_share": scored.trained_share,
            "scores": score_json(scores),
            "baseline": scores.baseline,
            "classes": [
                {"class": score.label} | {name: getattr(score, name) for name in _CLASS_SCORES}
                for score in scores.classes
            ],
        }
    )


def _class_table(scores: Evaluation) -> Any:
    from rich.text import Text

    table = new_table("Classes", ["class"], ["rows", "precision", "recall", "F1"])
    for score in scores.classes[:_MOST_CLASSES]:
        ratios = (score.precision, score.recall, score.f1)
        table.add_row(Text(str(score.label)), f"{score.rows:,}", *map(number_text, ratios))
    if len(scores.classes) > _MOST_CLASSES:
        table.caption = f"and {len(scores.classes) - _MOST_CLASSES} more classes; --json has all"
    return table


# ---- scores as tables and as JSON, and their means over folds ----


def score_tables(scores: Evaluation, title: str) -> list[Any]:
    """Scores as tables of Rich, the widest first; narrow ones have fewer columns."""
    widest = ("value", _INTERVAL, "baseline", "better")
    choices = (widest, widest[:3], ("value", "baseline"))
    return [_score_table(scores, title, columns) for columns in choices]


def _score_table(scores: Evaluation, title: str, columns: Sequence[str]) -> Any:
    from rich.text import Text

    table = new_table(title, ["score"], columns)
    if "better" in columns:
        table.columns[-1].justify = "left"
    for score in scores.scores:
        interval = f"{number_text(score.low)} to {number_text(score.high)}"
        cells = {
            "value": number_text(score.value),
            _INTERVAL: interval if isfinite(score.low) else "",
            "baseline": "" if score.baseline is None else number_text(score.baseline),
            "better": "higher" if score.higher_is_better else "lower",
        }
        table.add_row(Text(score.name), *(cells[name] for name in columns))
    if scores.baseline:
        table.caption = f"baseline: {scores.baseline}"
    return table


def score_json(scores: Evaluation) -> list[dict[str, Any]]:
    """Scores for JSON."""
    names = ("name", "value", "low", "high", "baseline", "higher_is_better")
    return [{name: getattr(score, name) for name in names} for score in scores.scores]


def number_text(value: float) -> str:
    """Text of a number with four significant digits, so that a column of numbers lines up.

    Examples
    --------
    >>> number_text(0.91234), number_text(123456.7), number_text(12.5), number_text(0.0)
    ('0.9123', '123,457', '12.50', '0')
    """
    if not isfinite(value):
        return "-"
    thousand = 1000
    if value == 0 or abs(value) >= thousand:
        return f"{value:,.0f}"
    return f"{value:#.4g}"


def fold_scores(folds: Sequence[Evaluation]) -> Evaluation:
    """Means of scores over folds; intervals are by the standard error of the folds."""
    from scipy.stats import t as student

    means = []
    for first in folds[0].scores:
        parts = [score for fold in folds for score in fold.scores if score.name == first.name]
        values = [score.value for score in parts]
        baselines = [score.baseline for score in parts if score.baseline is not None]
        mean, width = fmean(values), nan
        if len(values) > 1:
            width = student.ppf(0.975, len(values) - 1) * stdev(values) / len(values) ** 0.5
        baseline = fmean(baselines) if baselines else None
        means.append(
            replace(first, value=mean, low=mean - width, high=mean + width, baseline=baseline)
        )
    return replace(folds[0], scores=tuple(means))
