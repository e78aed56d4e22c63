"""``arboost train``: a table and a target -> a model file, scored on held-out rows."""

from __future__ import annotations

import re
import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from arboost.cli import options as opt
from arboost.cli.console import Console, learning_curve, seconds_text
from arboost.cli.errors import UsageFailure
from arboost.cli.evaluate import score_json, score_tables
from arboost.cli.model_files import save_model
from arboost.cli.parameters import ModelSpec, ParameterCommand, parameters_of, training_options
from arboost.cli.tables import RowSpec
from arboost.text import counted, size_text

if TYPE_CHECKING:
    from arboost.cli.training import Trained

_HELP = """Train a model on a table and save it.

The task is inferred from the target. A share of the rows is held out to score the model; gradient
boosting finds its number of rounds by itself.

Any parameter of the estimator is an option under its Python name, for example --learning-rate 0.05
or --set learning_rate=0.05; --help-params lists them.
"""
# Options with names of the command line -> parameters of estimators.
_RUN_PARAMETERS = {"jobs": "n_jobs", "seed": "random_state", "device": "device"}


def _checked_share(
    _ctx: click.Context, _param: click.Parameter, value: float | None
) -> float | None:
    """Share of the rows; raise for numbers out of range, NaN among them."""
    if value is not None and not 0 <= value < 1:
        raise click.BadParameter(f"{value:g} is not a share. Use a number from 0 to below 1.")
    return value


@click.command(cls=ParameterCommand, help=_HELP)
@training_options(
    time="Hold out the latest rows by this column, which is not a feature.",
    groups="Hold out whole groups of this column, which is not a feature.",
    assignments="Parameter of the estimator; several are allowed.",
    ranks=True,
)
@click.option(
    "--holdout",
    type=float,
    callback=_checked_share,
    metavar="SHARE",
    help="Share of the rows to score the model on, 0 for none.  [default: 0.2]",
)
@click.option(
    "--folds", type=int, metavar="K", help="Score by cross-validation, then train on all rows."
)
@click.option("--refit", is_flag=True, help="Train again on all rows after scoring.")
@click.option(
    "--memory-limit",
    metavar="SIZE",
    help="Read files in batches within a memory such as 2GB; rows are held out by --time-column "
    "only.",
)
@click.option("--seed", type=int, metavar="N", help="Seed of the model and of the held-out rows.")
@opt.run_options
@opt.console_options()
@click.pass_context
def train(ctx: click.Context, console: Console, /, rows: RowSpec, **options: Any) -> None:
    """Train a model on a table, score and save it."""
    from arboost.cli.training import train_model

    started = time.monotonic()
    parameters = parameters_of(ctx, options.pop("assignments"))
    for option, name in _RUN_PARAMETERS.items():
        value = options.pop(option)
        if value is None:
            continue
        if name in parameters and str(parameters[name]) != str(value):
            raise UsageFailure(
                f"--{option} {value} and {name}={parameters[name]} contradict. Keep one."
            )
        parameters[name] = value
    spec = TrainSpec.of_options(ctx, rows, parameters, **options)
    trained = train_model(console, spec)
    n_bytes = save_model(trained.estimator, spec.output, trained.record)
    trained.seconds["total"] = time.monotonic() - started
    _show(console, spec, trained, n_bytes)


# ---- options ----


@dataclass(frozen=True, kw_only=True)
class TrainSpec(ModelSpec):
    """Checked options of the command, under their names."""

    holdout: float | None
    folds: int | None
    refit: bool
    memory_limit: str | None

    def check(self) -> None:
        """Raise UsageFailure for options that do not fit together, and wrong parameters."""
        if self.folds is not None and self.holdout is not None:
            raise UsageFailure("--folds and --holdout are two ways to score: use one of them.")
        if self.folds is not None and self.refit:
            raise UsageFailure("--refit is for --holdout: --folds always ends on all rows.")
        if self.holdout == 0 and self.refit:
            raise UsageFailure("--refit with --holdout 0 would train twice: leave it out.")
        super().check()

    @property
    def seed(self) -> int:
        """Seed of the held-out rows."""
        value = self.parameters.get("random_state", 0)
        return int(value) if str(value).isdigit() else 0


# ---- result ----


def _show(console: Console, spec: TrainSpec, trained: Trained, n_bytes: int) -> None:
    """Write learning curve, scores, facts and next commands, or one JSON object."""
    console.emit(_as_json(spec, trained, n_bytes))
    curve = learning_curve(trained.curves, console.width) if console.has_blocks else None
    if curve is not None:
        console.show(curve)
    if trained.scores is not None:
        title = "Scores on held-out rows"
        console.show_widest(*score_tables(trained.scores, title))
    console.show(_facts(spec, trained, n_bytes), _next_commands(spec, trained))


def _facts(spec: TrainSpec, trained: Trained, n_bytes: int) -> Any:
    from rich.table import Table
    from rich.text import Text

    rows = f"{trained.n_train:,} of {trained.n_rows:,} trained on"
    if trained.n_train == trained.n_rows:
        rows = f"all {trained.n_rows:,} trained on"
    facts = {
        "model": f"{spec.model}, {_size(trained.estimator)}",
        "task": f"{trained.task.name}: {trained.task.reason.partition(';')[0]}",
        "rows": f"{rows}; {trained.split_text}",
        "features": f"{trained.estimator.n_features_in_:,}",
    }
    oob_score = getattr(trained.estimator, "oob_score_", None)
    if oob_score is not None:
        facts["out of bag"] = f"score {oob_score:.4g}"
    steps = trained.seconds.items()
    facts["time"] = ", ".join(f"{name} {seconds_text(seconds)}" for name, seconds in steps)
    facts["file"] = f"{spec.output} ({size_text(n_bytes)})"
    table = Table.grid(padding=(0, 2))
    for name, text in facts.items():
        table.add_row(Text(name, style="bold"), Text(text))
    return table


def _size(estimator: Any) -> str:
    model: Any = getattr(estimator, "model_", None)
    if hasattr(model, "n_trees"):
        rounds = f"{model.n_rounds:,} rounds, " if model.trees_per_round > 1 else ""
        reason = getattr(estimator, "stop_reason_", None)
        ended = f", ended by {_stop_text(reason)}" if reason not in (None, "n_estimators") else ""
        return f"{rounds}{counted(model.n_trees, 'tree')}{ended}"
    return counted(len(getattr(estimator, "estimators_", ())), "member")


def _stop_text(reason: str) -> str:
    """End of a fit in words, with parameters as options: preset="best" is --preset best."""
    if reason == "n_iter_no_change":
        return "early stopping"
    return re.sub(r'(\w+)="(\w+)"', lambda hit: f"--{hit[1].replace('_', '-')} {hit[2]}", reason)


def _next_commands(spec: TrainSpec, trained: Trained) -> str:
    rows = spec.rows
    form = rows.form.command_line
    model, data = shlex.quote(spec.output), " ".join(map(shlex.quote, rows.data)) + form
    lines = [f"arboost predict {model} NEW.csv{form} -o predictions.csv"]
    if rows.data != ("-",):
        lines.append(f"arboost explain {model} {data}")
        weight = "" if rows.weight is None else f" --weight {shlex.quote(rows.weight)}"
        scored = f"{data} --held-out" if len(trained.record.held_out.keys) else f"NEW.csv{form}"
        if rows.qid is None:
            lines.append(f"arboost report {model} {scored}{weight} -o report.html")
        else:  # reports know no queries
            qid = shlex.quote(rows.qid)
            lines.append(f"arboost evaluate {model} {scored}{weight} --qid {qid}")
    return "next: " + "\n      ".join(lines)


def _as_json(spec: TrainSpec, trained: Trained, n_bytes: int) -> dict[str, Any]:
    scores, estimator = trained.scores, trained.estimator
    return {
        "model_file": spec.output,
        "bytes": n_bytes,
        "model": spec.model,
        "task": trained.task.name,
        "reason": trained.task.reason,
        "target": spec.rows.target,
        "parameters": spec.values((trained.task.name,)),
        "rows": trained.n_rows,
        "training_rows": trained.n_train,
        "split": trained.split_text,
        "held_out_rows": trained.record.held_out.n_rows,
        "features": estimator.n_features_in_,
        "trees": getattr(getattr(estimator, "model_", None), "n_trees", None),
        "stop_reason": getattr(estimator, "stop_reason_", None),
        "oob_score": getattr(estimator, "oob_score_", None),
        "scores": [] if scores is None else score_json(scores),
        "baseline": None if scores is None else scores.baseline,
        "learning_curves": trained.curves,
        "seconds": trained.seconds,
    }
