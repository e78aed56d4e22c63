"""The run of ``arboost tune``: read, search, fit the best parameters to all rows, save."""

from __future__ import annotations

import json
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arboost.cli.console import Console, seconds_text, size_text
from arboost.cli.errors import writing_output
from arboost.cli.fit import as_failures, check_offset_model
from arboost.cli.model_files import check_model_output, check_output, default_model_path, save_model
from arboost.cli.models import TASKS, new_estimator
from arboost.cli.parameters import check_parameters
from arboost.cli.row_record import RowRecord, RowSample, row_hashes
from arboost.cli.rows import RowOptions, SelectedRows, divide, folds_of, read_selected
from arboost.cli.tables import format_options, refuse_input

_HOLD_OUT_ROWS = 5_000  # from here on one split of the rows in the order of time, below it folds
_HOLD_OUT_SHARE = 0.2
_USUAL_FOLDS = 5
_RUN = ("n_jobs", "random_state", "device")  # parameters that no search sets


@dataclass(frozen=True, kw_only=True)
class TuneOptions:
    """Options of the search, under the names of the command line.

    Attributes
    ----------
    model : str
    output : str
    params_out : str or None
    parameters : mapping of str to object
        Parameters of the estimator that are not searched, as texts or values of a TOML file.
    seconds : float or None
    trials, folds, jobs : int or None
    metric : str or None
    seed : int
    settings : sequence of str
        Files of settings that the options are from.
    """

    model: str
    output: str
    params_out: str | None
    parameters: Mapping[str, Any]
    seconds: float | None
    trials: int | None
    folds: int | None
    metric: str | None
    jobs: int | None
    seed: int
    settings: Sequence[str] = ()

    def check(self) -> None:
        """Raise for wrong parameters and outputs, before any work."""
        check_parameters(self.model, self.parameters, TASKS)
        check_model_output(self.output, self.model)
        if self.params_out is not None:
            check_output(self.params_out, (".toml",))

    @classmethod
    def of(cls, data: tuple[str, ...], output: str | None, **options: Any) -> TuneOptions:
        """Return the options of a command line, checked."""
        found = cls(output=default_model_path(data) if output is None else output, **options)
        found.check()
        return found


def tune_model(console: Console, rows: RowOptions, options: TuneOptions) -> None:
    """Tune a model, save it and write the result."""
    from arboost.selection.tune import require_optuna

    require_optuna()
    check_offset_model(rows.offset, options.model)
    selected = read_selected(console, rows)
    inputs = [*selected.loaded.paths, *options.settings]
    refuse_input(options.output, inputs)
    if options.params_out is not None:
        refuse_input(options.params_out, inputs)
    found, seconds = _searched(console, selected, rows, options)
    columns = [name for name in selected.X.column_names if name not in rows.offset]
    hashes = row_hashes(selected.X, columns)
    record = RowRecord.of(selected.target, RowSample(hashes))
    n_bytes = save_model(found.estimator, options.output, record)
    if options.params_out is not None:
        _write_settings(options, selected.task.name, found)
    console.emit(_as_json(found, options, selected, seconds))
    if not console.as_json:
        _show(console, found, rows, options, n_bytes)


def _folds(rows: RowOptions, selected: SelectedRows, options: TuneOptions) -> Any:
    """Return the folds of the search: in the order of time, the rows to score come last."""
    if rows.time_column is None:
        return "auto" if options.folds is None else options.folds
    n_rows = selected.X.num_rows
    if options.folds is None and n_rows >= _HOLD_OUT_ROWS:
        splits = [divide(n_rows, _HOLD_OUT_SHARE, options.seed, by_time=True)]
    else:
        n_folds = min(_USUAL_FOLDS, n_rows // 2) if options.folds is None else options.folds
        splits = folds_of(n_rows, n_folds, options.seed, by_time=True)
    return [(split.train, split.test) for split in splits]


def _searched(
    console: Console, selected: SelectedRows, rows: RowOptions, options: TuneOptions
) -> tuple[Any, float]:
    """Return the result of the search and its seconds."""
    from arboost.progress import steps_reported
    from arboost.selection.tune import tune

    params = check_parameters(options.model, options.parameters, (selected.task.name,))
    known = {"random_state": options.seed} if options.model not in ("voting", "stacking") else {}
    names = {"seconds", "trials", "folds", "metric", "eval_metric", "random_state", *params}
    with (
        console.phase("tuning") as phase,
        as_failures(dict.fromkeys(names)),
        steps_reported(phase.step),
    ):
        estimator = new_estimator(options.model, selected.task.name, known | params)
        found = tune(
            estimator,
            selected.X,
            selected.target,
            seconds="auto" if options.seconds is None else options.seconds,
            trials=options.trials,
            folds=_folds(rows, selected, options),
            metric=options.metric,
            sample_weight=selected.weight,
            offset=list(rows.offset) or None,
            groups=selected.groups,
            random_state=options.seed,
            n_jobs=options.jobs,
        )
        count = f"{len(found.trials)} trials in {seconds_text(phase.seconds)}"
        reason = {"interrupted": "Ctrl-C"}.get(found.stop_reason, f"--{found.stop_reason}")
        phase.result = f"{count}, ended by {reason}"
    return found, phase.seconds


def _show(
    console: Console, found: Any, rows: RowOptions, options: TuneOptions, n_bytes: int
) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(title="Best parameters", title_justify="left")
    table.add_column("parameter", no_wrap=True)
    table.add_column("value")
    for name, value in found.params.items():
        table.add_row(Text(name), Text(f"{value:.6g}" if isinstance(value, float) else repr(value)))
    if not found.params:
        table.add_row(Text("(the given ones)"), Text(""))
    console.show(
        table,
        f"{found.metric} {found.score:.6g} on held-out rows; "
        f"{found.default_score:.6g} with the given parameters",
        f"file: {options.output} ({size_text(n_bytes)}), trained on all rows",
        _next_command(rows, options),
    )


def _next_command(rows: RowOptions, options: TuneOptions) -> str:
    if options.params_out is None:
        return "next: --params-out best.toml writes the parameters for arboost train --config"
    data = " ".join(map(shlex.quote, rows.data))
    given = {**rows.named(), "--task": rows.task, "--config": options.params_out}
    if options.seed:
        given["--seed"] = str(options.seed)
    words = [f"{option} {shlex.quote(one)}" for option, one in given.items() if one is not None]
    words += [f"--offset {shlex.quote(name)}" for name in rows.offset]
    words += [f"--ignore {shlex.quote(name)}" for name in rows.ignore]
    if rows.drop_missing_target:
        words.append("--drop-missing-target")
    return f"next: arboost train {data}{format_options(rows.form)} {' '.join(words)}"


def _write_settings(options: TuneOptions, task: str, found: Any) -> None:
    """Write the parameters as settings of ``arboost train``; a failure leaves no file."""
    assert options.params_out is not None
    given = check_parameters(options.model, options.parameters, (task,))
    given = {name: one for name, one in given.items() if name not in _RUN}
    params = {name: value for name, value in found.params.items() if "__" not in name}
    lines = [
        f"# {found.metric} {found.score:.6g} on held-out rows",
        f"model = {json.dumps(options.model)}",
        "",
        "[parameters]",
        *(f"{name} = {_toml(value)}" for name, value in (given | params).items()),
    ]
    path = options.params_out
    with writing_output(path):
        folder = os.path.dirname(os.path.realpath(path))
        handle, scratch = tempfile.mkstemp(dir=folder, suffix=".toml")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write("\n".join(lines) + "\n")
            os.replace(scratch, path)
        except BaseException:
            os.unlink(scratch)
            raise


def _toml(value: Any) -> str:
    """Return a value as TOML, which has no null: ``--config`` reads "none" as one."""
    if value is None:
        return '"none"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, int | float) else json.dumps(value)


def _as_json(
    found: Any, options: TuneOptions, selected: SelectedRows, seconds: float
) -> dict[str, Any]:
    return {
        "model_file": options.output,
        "model": options.model,
        "task": selected.task.name,
        "target": selected.target,
        "metric": found.metric,
        "greater_is_better": found.greater_is_better,
        "score": found.score,
        "default_score": found.default_score,
        "params": dict(found.params),
        "trials": list(found.trials),
        "stop_reason": found.stop_reason,
        "seconds": seconds,
    }
