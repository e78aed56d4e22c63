"""The run of ``arboost train``: read, choose rows, fit, score, save."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import click
import numpy as np

from arboost.cli.console import Console
from arboost.cli.errors import DataFailure, UsageFailure
from arboost.cli.models import TASKS, declarations
from arboost.cli.outputs import check_model_output, default_model_path, save_model
from arboost.cli.parameters import check_parameters, given_parameters, settings_files
from arboost.cli.row_record import RowRecord, RowSample, row_hashes
from arboost.cli.scores import Evaluation, fold_scores
from arboost.cli.tables import Loaded, read_table, refuse_input, require_columns, resolve_names
from arboost.cli.training.batches import fits_in_memory, train_in_batches
from arboost.cli.training.fit import FitPlan, check_offset_model, fit_rows, score_rows
from arboost.cli.training.keys import say_keys
from arboost.cli.training.rows import (
    HOLDOUT,
    Split,
    check_weights,
    divide,
    folds_of,
    in_time_order,
)
from arboost.cli.training.summary import Trained, show_training
from arboost.cli.training.task import Task, find_task, with_target
from arboost.sources.file_source import FileFormat

__all__ = ["TrainOptions", "train"]

# Options with names of their own -> parameters of estimators.
_RUN = {"jobs": "n_jobs", "seed": "random_state", "device": "device"}


@dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """Checked options of the command.

    Attributes
    ----------
    data : tuple of str
    output : str
    parameters : dict of str to object
        Parameters of the estimator, as texts or values of a TOML file.

    All others are options of the same names.
    """

    data: tuple[str, ...]
    target: str
    output: str
    model: str
    task: str | None
    parameters: Mapping[str, Any]
    holdout: float | None
    folds: int | None
    refit: bool
    time_column: str | None
    groups: str | None
    weight: str | None
    offset: tuple[str, ...]
    ignore: tuple[str, ...]
    drop_missing_target: bool
    memory_limit: str | None
    form: FileFormat

    @classmethod
    def of(cls, ctx: click.Context, options: dict[str, Any]) -> TrainOptions:
        """Return the options of a command line; raise UsageFailure for contradictions."""
        given = given_parameters(ctx, options.pop("assignments"))
        for option, name in _RUN.items():
            value = options.pop(option)
            if value is None:
                continue
            if name in given and str(given[name]) != str(value):
                raise UsageFailure(
                    f"--{option} {value} and {name}={given[name]} contradict. Keep one."
                )
            given[name] = value
        output = options.pop("output")
        if output is None:
            output = default_model_path(options["data"])
        refuse_input(output, settings_files(ctx))
        found = cls(output=output, parameters=given, **options)
        found.check()
        return found

    def check(self) -> None:
        """Raise UsageFailure for options that do not fit together, and wrong parameters."""
        if self.folds is not None and self.holdout is not None:
            raise UsageFailure("--folds and --holdout are two ways to score: use one of them.")
        if self.folds is not None and self.refit:
            raise UsageFailure("--refit is for --holdout: --folds always ends on all rows.")
        if self.holdout == 0 and self.refit:
            raise UsageFailure("--refit with --holdout 0 would train twice: leave it out.")
        if self.time_column is not None and self.groups is not None:
            raise UsageFailure("--time-column and --groups are two splits: use one of them.")
        own: list[tuple[str, str | None]]
        own = [("--weight", self.weight), ("--groups", self.groups)]
        own += [("--time-column", self.time_column), *(("--offset", one) for one in self.offset)]
        check_offset_model(self.offset, self.model)
        for option, name in own:
            if name == self.target:
                raise UsageFailure(f"{option} {name} is also the target. Use another column.")
        self.values(TASKS if self.task is None else (self.task,))
        check_model_output(self.output, self.model)

    def values(self, tasks: tuple[str, ...]) -> dict[str, Any]:
        """Return the values of the parameters, allowed for one of the tasks."""
        given = dict(self.parameters)
        shared = {}
        if self.model == "voting":  # it has no randomness itself, but its members have
            shared = {name: int(given.pop(name)) for name in ["random_state"] if name in given}
        return check_parameters(self.model, given, tasks) | shared

    @property
    def asked_task(self) -> tuple[str | None, str]:
        """Task that the options ask for, and the option: --task, or a parameter of one task."""
        if self.task is not None:
            return self.task, "--task"
        for name, text in self.parameters.items():
            allowed = [task for task in TASKS if self._allows(name, text, task)]
            if len(allowed) == 1:
                return allowed[0], f"{name}={text}"
        return None, ""

    def _allows(self, name: str, text: Any, task: str) -> bool:
        if name not in declarations(self.model, task):
            return name == "random_state"  # of the members of a vote
        try:
            check_parameters(self.model, {name: text}, (task,))
        except UsageFailure:
            return False
        return True

    @property
    def seed(self) -> int:
        """Seed of the held-out rows."""
        value = self.parameters.get("random_state", 0)
        return int(value) if str(value).isdigit() else 0


@dataclass
class _Run:
    """State of a run: rows and times."""

    console: Console
    options: TrainOptions
    loaded: Loaded
    task: Task
    plan: FitPlan
    record: RowRecord | None = None
    seconds: dict[str, float] = field(default_factory=dict)


def train(console: Console, options: TrainOptions) -> None:
    """Train, score and save a model; write the summary."""
    started = time.monotonic()
    if options.memory_limit is not None or not fits_in_memory(console, options):
        train_in_batches(console, options, started)
        return
    loaded = read_table(console, options.data, form=options.form)
    refuse_input(options.output, loaded.paths)
    with console.phase("looking at the columns"):
        run = _prepared(console, options, loaded)
    run.seconds["reading"] = loaded.seconds
    estimator, n_train, evaluation, split_text = _fit_and_score(run)
    assert run.record is not None
    n_bytes = save_model(estimator, options.output, run.record)
    run.seconds["total"] = time.monotonic() - started
    show_training(
        console,
        Trained(
            options=options,
            plan=run.plan,
            task=run.task,
            estimator=estimator,
            evaluation=evaluation,
            record=run.record,
            split_text=split_text,
            n_rows=run.loaded.table.num_rows,
            n_train=n_train,
            n_bytes=n_bytes,
            seconds=run.seconds,
        ),
    )


def _prepared(console: Console, options: TrainOptions, loaded: Loaded) -> _Run:
    """Return the run with its task, said aloud, and its columns, checked."""
    table = loaded.table
    names = table.column_names
    for option, name in (
        ("--target", options.target),
        ("--weight", options.weight),
        ("--groups", options.groups),
        ("--time-column", options.time_column),
        *(("--offset", one) for one in options.offset),
    ):
        if name is not None:
            require_columns([name], names, option)
    dropped = set(resolve_names(options.ignore, names, "--ignore"))
    if options.target in dropped:
        raise UsageFailure(f"--ignore {options.target} is also the target. Leave it out.")
    if options.drop_missing_target:
        table = with_target(console, table, options.target)
    if options.time_column is not None:
        table = in_time_order(console, table, options.time_column)
        dropped.add(options.time_column)
    loaded = Loaded(table, loaded.label, loaded.seconds, loaded.paths)
    if options.weight is not None:
        check_weights(table.column(options.weight), options.weight)
    task = find_task(table.column(options.target), options.target, *options.asked_task)
    console.say(f"task: {task.name} ({task.reason})")
    plan = FitPlan(
        model=options.model,
        task=task.name,
        params=options.values((task.name,)),
        target=options.target,
        weight=options.weight,
        groups=options.groups,
        offset=options.offset,
        dropped=frozenset(dropped),
        by_time=options.time_column is not None,
    )
    if not plan.features(names):
        raise DataFailure(f"{loaded.label} has no column but the target. Add features.")
    say_keys(console, table, plan.features(names))
    return _Run(console, options, loaded, task, plan)


def _fit_and_score(run: _Run) -> tuple[Any, int, Evaluation | None, str]:
    """Return the model to save, its number of rows, its scores, and how rows were held out."""
    options, table, console = run.options, run.loaded.table, run.console
    if options.folds is not None:
        return _cross_validate(run)
    share = HOLDOUT if options.holdout is None else options.holdout
    if share == 0:
        _record(run)
        estimator = _fit(run, table)
        return estimator, table.num_rows, None, "none scored"
    with console.phase("holding out rows"):
        split = divide(table.num_rows, share, options.seed, **_kinds_of_rows(run))
        console.say(split.text + _advice(options))
        _record(run, None if options.refit else split)
        training, held_out = _taken(table, split.train), _taken(table, split.test)
    estimator = _fit(run, training, watched=held_out)
    evaluation = _score(run, estimator, held_out)
    if not options.refit:
        return estimator, len(split.train), evaluation, split.text
    estimator = _fit(run, table, "all rows")
    text = f"{split.text}; the saved model is trained on all rows"
    return estimator, table.num_rows, evaluation, text


def _record(run: _Run, split: Split | None = None) -> None:
    """Keep which rows train the saved model, and which are held out; without a split all train."""
    plan, table = run.plan, run.loaded.table
    hashes = row_hashes(table, [*plan.features(table.column_names), plan.target])
    trained = hashes if split is None else hashes[split.train]
    held_out = None if split is None else RowSample(hashes[split.test])
    run.record = RowRecord.of(plan.target, RowSample(trained), held_out)


def _advice(options: TrainOptions) -> str:
    if options.holdout is not None or options.refit:
        return ""
    return "; --refit trains on all rows afterwards, --holdout changes the share"


def _cross_validate(run: _Run) -> tuple[Any, int, Evaluation | None, str]:
    table, options = run.loaded.table, run.options
    assert options.folds is not None
    _record(run)
    splits = folds_of(table.num_rows, options.folds, options.seed, **_kinds_of_rows(run))
    run.console.say(splits[0].text)
    found = []
    for number, split in enumerate(splits, 1):
        label = f"fold {number} of {len(splits)}"
        estimator = _fit(run, _taken(table, split.train), label)
        found.append(_score(run, estimator, _taken(table, split.test)))
    estimator = _fit(run, table, "all rows")
    return estimator, table.num_rows, fold_scores(found), splits[0].text


def _kinds_of_rows(run: _Run) -> dict[str, Any]:
    """Return classes or groups of the rows, as `divide` and `folds_of` take them."""
    options, table = run.options, run.loaded.table
    if options.time_column is not None:
        return {"by_time": True}
    if options.groups is not None:
        return {"groups": _codes(table.column(options.groups))}
    if run.task.is_classification:
        return {"classes": _codes(table.column(options.target))}
    return {}


def _codes(column: Any) -> Any:
    """Return the distinct values of a column as numbers from 0; missing values are one of them."""
    import pyarrow.compute as pc

    encoded = pc.dictionary_encode(column.combine_chunks(), null_encoding="encode")
    return np.asarray(encoded.indices, np.intp)


def _taken(table: Any, rows: Any) -> Any:
    """Return some rows, in ascending order; consecutive ones without a copy."""
    import pyarrow

    if rows[-1] - rows[0] + 1 == len(rows):
        return table.slice(rows[0], len(rows))
    mask = np.zeros(table.num_rows, np.bool_)
    mask[rows] = True
    return table.filter(pyarrow.array(mask))


def _fit(run: _Run, table: Any, label: str = "", watched: Any = None) -> Any:
    estimator, seconds = fit_rows(run.console, run.plan, table, label, watched)
    run.seconds["fitting"] = run.seconds.get("fitting", 0.0) + seconds
    return estimator


def _score(run: _Run, estimator: Any, table: Any) -> Evaluation:
    evaluation, seconds = score_rows(run.console, run.plan, estimator, table)
    run.seconds["scoring"] = run.seconds.get("scoring", 0.0) + seconds
    return evaluation
