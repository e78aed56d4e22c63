"""The end of a training: learning curve, scores, facts and next commands, or one JSON object."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from arboost.cli.console import Console, seconds_text, size_text
from arboost.cli.row_record import RowRecord
from arboost.cli.scores import Evaluation, score_json, score_tables
from arboost.cli.tables import format_options

if TYPE_CHECKING:
    from arboost.cli.training.fit import FitPlan
    from arboost.cli.training.run import TrainOptions
    from arboost.cli.training.task import Task

__all__ = ["Trained", "show_training"]


@dataclass(frozen=True, kw_only=True)
class Trained:
    """Result of a training.

    Attributes
    ----------
    options : TrainOptions
    plan : FitPlan
    task : Task
    estimator : fitted estimator
    evaluation : Evaluation or None
    record : RowRecord
    split_text : str
        How rows were held out.
    n_rows, n_train, n_bytes : int
        Rows of the table, rows of the saved model, size of its file.
    seconds : mapping of str to float
        Times of the steps.
    """

    options: TrainOptions
    plan: FitPlan
    task: Task
    estimator: Any
    evaluation: Evaluation | None
    record: RowRecord
    split_text: str
    n_rows: int
    n_train: int
    n_bytes: int
    seconds: Mapping[str, float]

    @property
    def curves(self) -> dict[str, dict[str, list[float]]]:
        """Learning curves by set and metric; empty where the model has none."""
        return dict(getattr(self.estimator, "evals_result_", None) or {})


def show_training(console: Console, trained: Trained) -> None:
    """Write the result of a training to the standard output."""
    console.emit(_as_json(trained))
    if console.as_json:
        return
    from arboost.cli.charts import learning_curve

    curve = learning_curve(trained.curves, console.width) if console.has_blocks else None
    if curve is not None:
        console.show(curve)
    if trained.evaluation is not None:
        scores, text = trained.evaluation.scores, trained.evaluation.baseline_text
        console.show_widest(*score_tables(scores, "Scores on held-out rows", text))
    console.show(_facts(trained), _next_commands(trained))


def _facts(trained: Trained) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    times = ", ".join(f"{name} {seconds_text(one)}" for name, one in trained.seconds.items())
    rows = f"{trained.n_train:,} of {trained.n_rows:,} trained on"
    if trained.n_train == trained.n_rows:
        rows = f"all {trained.n_rows:,} trained on"
    oob_score = getattr(trained.estimator, "oob_score_", None)
    facts = [] if oob_score is None else [("out of bag", f"score {oob_score:.4g}")]
    for name, text in (
        ("model", f"{trained.options.model}, {_size(trained.estimator)}"),
        ("task", f"{trained.task.name}: {trained.task.reason.partition(';')[0]}"),
        ("rows", f"{rows}; {trained.split_text}"),
        ("features", f"{trained.estimator.n_features_in_:,}"),
        *facts,
        ("time", times),
        ("file", f"{trained.options.output} ({size_text(trained.n_bytes)})"),
    ):
        table.add_row(Text(name, style="bold"), Text(text))
    return table


def _size(estimator: Any) -> str:
    model: Any = getattr(estimator, "model_", None)
    if hasattr(model, "n_trees"):
        rounds = f"{model.n_rounds:,} rounds, " if model.trees_per_round > 1 else ""
        reason = getattr(estimator, "stop_reason_", None)
        ended = f", ended by {_reason(reason)}" if reason not in (None, "n_estimators") else ""
        return f"{rounds}{model.n_trees:,} {'tree' if model.n_trees == 1 else 'trees'}{ended}"
    members = getattr(estimator, "estimators_", ())
    return f"{len(members):,} members"


def _reason(reason: str) -> str:
    """Return the end of a fit in words, with parameters as options: preset="best" is an option."""
    if reason == "n_iter_no_change":
        return "early stopping"
    return re.sub(r'(\w+)="(\w+)"', lambda hit: f"--{hit[1].replace('_', '-')} {hit[2]}", reason)


def _next_commands(trained: Trained) -> str:
    options = trained.options
    form = format_options(options.form)
    model, data = shlex.quote(options.output), " ".join(map(shlex.quote, options.data)) + form
    lines = [f"arboost predict {model} NEW.csv{form} -o predictions.csv"]
    if options.data != ("-",):
        lines.append(f"arboost explain {model} {data}")
        weight = "" if options.weight is None else f" --weight {shlex.quote(options.weight)}"
        rows = f"{data} --held-out" if len(trained.record.held_out.keys) else f"NEW.csv{form}"
        lines.append(f"arboost report {model} {rows}{weight} -o report.html")
    return "next: " + "\n      ".join(lines)


def _as_json(trained: Trained) -> dict[str, Any]:
    evaluation = trained.evaluation
    estimator = trained.estimator
    model = getattr(estimator, "model_", None)
    return {
        "model_file": trained.options.output,
        "bytes": trained.n_bytes,
        "model": trained.options.model,
        "task": trained.task.name,
        "reason": trained.task.reason,
        "target": trained.options.target,
        "parameters": dict(trained.plan.params),
        "rows": trained.n_rows,
        "training_rows": trained.n_train,
        "split": trained.split_text,
        "held_out_rows": trained.record.held_out.n_rows,
        "features": estimator.n_features_in_,
        "trees": getattr(model, "n_trees", None),
        "stop_reason": getattr(estimator, "stop_reason_", None),
        "oob_score": getattr(estimator, "oob_score_", None),
        "scores": [] if evaluation is None else score_json(evaluation.scores),
        "baseline": None if evaluation is None else evaluation.baseline_text,
        "learning_curves": trained.curves,
        "seconds": dict(trained.seconds),
    }
