"""``arboost tune``: search for the parameters of a model, and save it fitted with the best ones."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from arboost.cli import options as opt
from arboost.cli.console import Console, new_table, seconds_text
from arboost.cli.errors import DataFailure, failures_as, writing_output
from arboost.cli.model_files import check_output, save_model
from arboost.cli.models import new_estimator
from arboost.cli.parameters import ModelSpec, ParameterCommand, parameters_of, training_options
from arboost.cli.tables import RowSpec
from arboost.errors import needs_packages
from arboost.progress import steps_reported
from arboost.text import counted, size_text
from arboost.write import write_file

if TYPE_CHECKING:
    from arboost import Tuning
    from arboost.cli.rows import TrainingRows

_HELP = """Search for the best parameters of a model, and save it trained on all rows.

The first trial has the given parameters, so the result is at least as good on the held-out rows.
Parameters of the estimator that are given, such as --max-depth 4 or --set max_depth=4, are not
searched. Ctrl-C ends the search and keeps the best parameters so far.
"""
_HOLD_OUT_ROWS = 5_000  # from here on one split of the rows in the order of time, below it folds
_USUAL_FOLDS = 5
_RUN_PARAMETERS = ("n_jobs", "random_state", "device")  # which no search sets


@dataclass(frozen=True, kw_only=True)
class _TuneSpec(ModelSpec):
    """Checked options of the command, under their names; `parameters` are not searched."""

    params_out: str | None
    seconds: float | None
    trials: int | None
    folds: int | None
    metric: str | None
    jobs: int | None
    seed: int

    def check(self) -> None:
        """Raise UsageFailure for options that do not fit together, and wrong parameters."""
        super().check()
        if self.params_out is not None:
            check_output(self.params_out, (".toml",))


@click.command(cls=ParameterCommand, help=_HELP)
@training_options(
    time="Score on rows later than those trained on by this column, which is not a feature.",
    groups="Hold out whole groups of this column, which is not a feature.",
    assignments="Parameter of the estimator that is not searched; several are allowed.",
)
@click.option(
    "--params-out",
    type=click.Path(),
    metavar="PATH",
    help="Write the best parameters to a .toml file for arboost train --config.",
)
@click.option(
    "--seconds",
    type=float,
    metavar="S",
    help="Time of the search.  [default: 60, or no limit with --trials]",
)
@click.option("--trials", type=int, metavar="N", help="Number of trials.")
@click.option(
    "--folds", type=int, metavar="K", help="Folds; one hold-out from 5,000 rows on by default."
)
@click.option("--metric", metavar="NAME", help="Metric to optimise; the model's own by default.")
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of search and model."
)
@opt.jobs_option
@opt.console_options()
@click.pass_context
def tune(ctx: click.Context, console: Console, /, rows: RowSpec, **options: Any) -> None:
    """Search for the best parameters of a model, and save it trained on all rows."""
    from arboost.cli.rows import read_training_rows, record_rows

    parameters = parameters_of(ctx, options.pop("assignments"))
    spec = _TuneSpec.of_options(ctx, rows, parameters, **options)
    with needs_packages("tune", "arboost tune"):
        import optuna  # noqa: F401
    source = spec.open_table(console, *filter(None, [spec.params_out]))
    training = read_training_rows(console, rows, source, spec.asked_task)
    tuning, seconds = _search(console, training, spec)
    n_bytes = save_model(tuning.estimator, spec.output, record_rows(training))
    if spec.params_out is not None:
        _write_settings(spec, spec.params_out, training.task.name, tuning)
    console.emit(
        {
            "model_file": spec.output,
            "model": spec.model,
            "task": training.task.name,
            "target": rows.target,
            "metric": tuning.metric,
            "greater_is_better": tuning.greater_is_better,
            "score": tuning.score,
            "default_score": tuning.default_score,
            "params": tuning.params,
            "trials": tuning.trials,
            "stop_reason": tuning.stop_reason,
            "seconds": seconds,
        }
    )
    _show(console, tuning, spec, n_bytes)


def _search(console: Console, training: TrainingRows, spec: _TuneSpec) -> tuple[Tuning, float]:
    """Result of the search and its seconds."""
    import arboost

    params = spec.values((training.task.name,))
    seed = {"random_state": spec.seed} if spec.model not in ("voting", "stacking") else {}
    names = {"seconds", "trials", "folds", "metric", "eval_metric", "random_state", *params}
    with (
        console.phase("tuning") as phase,
        failures_as(DataFailure, names),
        steps_reported(phase.step),
    ):
        tuning = arboost.tune(
            new_estimator(spec.model, training.task.name, seed | params),
            training.X,
            spec.rows.target,
            seconds="auto" if spec.seconds is None else spec.seconds,
            trials=spec.trials,
            folds=_folds(training, spec),
            metric=spec.metric,
            sample_weight=training.weights,
            offset=spec.rows.offset or None,
            groups=training.groups,
            random_state=spec.seed,
            n_jobs=spec.jobs,
        )
        count = counted(len(tuning.trials), "trial")
        reason = {"interrupted": "Ctrl-C"}.get(tuning.stop_reason, f"--{tuning.stop_reason}")
        phase.result = f"{count} in {seconds_text(phase.seconds)}, ended by {reason}"
    return tuning, phase.seconds


def _folds(training: TrainingRows, spec: _TuneSpec) -> Any:
    """Folds of the search: in the order of time, the rows to score come last."""
    from arboost.cli.rows import fold_rows, hold_out_latest

    if spec.rows.time_column is None:
        return "auto" if spec.folds is None else spec.folds
    n_rows = training.table.num_rows
    if spec.folds is None and n_rows >= _HOLD_OUT_ROWS:
        splits = [hold_out_latest(n_rows)]
    else:
        n_folds = min(_USUAL_FOLDS, n_rows // 2) if spec.folds is None else spec.folds
        splits = fold_rows(training, n_folds, spec.seed)
    return [(split.train, split.test) for split in splits]


# ---- result ----


def _show(console: Console, tuning: Tuning, spec: _TuneSpec, n_bytes: int) -> None:
    from rich.text import Text

    table = new_table("Best parameters", ["parameter", "value"])
    for name, value in tuning.params.items():
        table.add_row(Text(name), Text(f"{value:.6g}" if isinstance(value, float) else repr(value)))
    if not tuning.params:
        table.add_row(Text("(the given ones)"), Text(""))
    console.show(
        table,
        f"{tuning.metric} {tuning.score:.6g} on held-out rows; "
        f"{tuning.default_score:.6g} with the given parameters",
        f"file: {spec.output} ({size_text(n_bytes)}), trained on all rows",
        _next_command(spec),
    )


def _next_command(spec: _TuneSpec) -> str:
    rows = spec.rows
    if spec.params_out is None:
        return "next: --params-out best.toml writes the parameters for arboost train --config"
    options = [role for role in rows.roles if role[0] != "--offset"]
    if rows.task is not None:
        options.append(("--task", rows.task))
    options.append(("--config", spec.params_out))
    if spec.seed:
        options.append(("--seed", str(spec.seed)))
    options += [("--offset", name) for name in rows.offset]
    options += [("--ignore", name) for name in rows.ignore]
    words = [f"{option} {shlex.quote(value)}" for option, value in options]
    if rows.drop_missing_target:
        words.append("--drop-missing-target")
    data = " ".join(map(shlex.quote, rows.data))
    return f"next: arboost train {data}{rows.form.command_line} {' '.join(words)}"


def _write_settings(spec: _TuneSpec, path: str, task: str, tuning: Tuning) -> None:
    """Write the parameters as settings of ``arboost train``; a failure leaves no file."""
    chosen = spec.values((task,))
    chosen = {name: value for name, value in chosen.items() if name not in _RUN_PARAMETERS}
    chosen |= {name: value for name, value in tuning.params.items() if "__" not in name}
    lines = [
        f"# {tuning.metric} {tuning.score:.6g} on held-out rows",
        f"model = {json.dumps(spec.model)}",
        "",
        "[parameters]",
        *(f"{name} = {_toml(value)}" for name, value in chosen.items()),
    ]
    with writing_output(path):
        write_file(path, ("\n".join(lines) + "\n").encode())


def _toml(value: Any) -> str:
    """Value as TOML, which has no null: ``--config`` reads "none" as null."""
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else json.dumps(value)
