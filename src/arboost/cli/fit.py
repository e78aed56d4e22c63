"""The run of ``arboost train``: fits in memory and in batches, scores and the summary."""

from __future__ import annotations

import math
import os
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import click
import numpy as np

from arboost.cli.console import Console, seconds_text, size_text
from arboost.cli.errors import DataFailure, UsageFailure, reading_data
from arboost.cli.model_files import ENSEMBLES, check_model_output, default_model_path, save_model
from arboost.cli.models import MODELS, TASKS, declarations, new_estimator
from arboost.cli.parameters import check_parameters, given_parameters, settings_files
from arboost.cli.row_record import RowRecord, RowSample, row_hashes
from arboost.cli.rows import (
    HOLDOUT,
    Split,
    Task,
    check_weights,
    divide,
    find_task,
    folds_of,
    in_time_order,
    say_keys,
    time_order,
    with_target,
)
from arboost.cli.scores import Evaluation, evaluate_rows, fold_scores, score_json, score_tables
from arboost.cli.tables import (
    STANDARD_INPUT,
    Loaded,
    format_options,
    input_label,
    open_rows,
    read_table,
    refuse_input,
    require_columns,
    resolve_names,
)
from arboost.data.memory import limit_bytes
from arboost.data.source import BY_NAME, FileFormat
from arboost.errors import MissingPackageError

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


_FEWEST_TREES = 50  # all of which draw one row in 10 billion


@dataclass(frozen=True)
class FitPlan:
    """Estimator and columns of the fits of a command.

    Attributes
    ----------
    model : str
        Name of the model on the command line.
    task : str
    params : mapping of str to object
        Checked parameters.
    target : str
    weight, groups : str or None
        Columns of weights and groups, which are no features.
    offset : tuple of str
        Columns of the offset, which are not features.
    dropped : frozenset of str
        Other columns that are no features.
    by_time : bool
        Whether rows are in the order of time.
    """

    model: str
    task: str
    params: Mapping[str, Any]
    target: str
    weight: str | None = None
    groups: str | None = None
    offset: tuple[str, ...] = ()
    dropped: frozenset[str] = frozenset()
    by_time: bool = False

    def features(self, names: list[str]) -> list[str]:
        """Return the columns that are features, in their order."""
        left_out = {self.target, self.weight, self.groups, *self.offset, *self.dropped}
        return [name for name in names if name not in left_out]

    def rows(self, table: Any) -> Any:
        """Return the columns that an estimator reads by name: features, offset and target."""
        return table.select([*self.features(table.column_names), *self.offset, self.target])

    @property
    def starts(self) -> dict[str, Any]:
        """The offset among the arguments of `fit`, where there is one."""
        return {"offset": list(self.offset)} if self.offset else {}

    def new_estimator(self) -> Any:
        """Return an estimator whose own validation holds out rows as the command does.

        Forests that draw rows measure out-of-bag errors, for the curve of their reports.
        """
        params = dict(self.params)
        if self._measures_out_of_bag:
            params.setdefault("oob_score", True)
        if "validation_split" in declarations(self.model, self.task) and self.splits_rows:
            if self.groups is not None:
                params.setdefault("validation_split", "group")
            elif self.by_time:
                params.setdefault("validation_split", "time")
        with as_failures(self.params):
            return new_estimator(self.model, self.task, params)

    @property
    def splits_rows(self) -> bool:
        """Whether the fit holds out rows itself, to stop early."""
        values = self._values
        is_auto = values.get("n_estimators") == "auto"
        return is_auto or values.get("n_iter_no_change") is not None

    @property
    def _values(self) -> dict[str, Any]:
        """Values of all parameters, with the defaults of those that were not given."""
        known = declarations(self.model, self.task)
        return {name: param.default for name, param in known.items()} | dict(self.params)

    @property
    def _measures_out_of_bag(self) -> bool:
        """Whether out-of-bag errors are measured by default: cheap, and known of every row."""
        if MODELS[self.model].module != "forest":
            return False
        values = self._values
        has_enough = values.get("n_estimators", 1) >= _FEWEST_TREES
        return bool(values.get("bootstrap")) and has_enough and values["ccp_alpha"] == 0.0

    def takes(self, estimator: Any, argument: str) -> bool:
        """Whether `fit` of the estimator has an argument."""
        import inspect

        return argument in inspect.signature(estimator.fit).parameters


def check_offset_model(offset: Sequence[str], model: str) -> None:
    """Raise UsageFailure for --offset with a model that starts from none."""
    if offset and MODELS[model].module != "boosting":
        raise UsageFailure(
            f"--offset is for gradient_boosting, whose trees are added to it, but the model is "
            f"{model}. Leave it out, or use --model gradient_boosting."
        )


def fit_rows(
    console: Console, plan: FitPlan, table: Any, label: str = "", watched: Any = None
) -> tuple[Any, float]:
    """Return a fitted estimator and the seconds of its fit.

    Parameters
    ----------
    console : Console
    plan : FitPlan
    table : pyarrow.Table
        Training rows, with all columns of the plan.
    label : str
        First word of the line of progress.
    watched : pyarrow.Table, optional
        Held-out rows, for the learning curve of a fit that holds out none itself. They stop no fit.
    """
    from arboost.progress import steps_reported

    with console.phase(f"loading {plan.model}"):
        estimator = plan.new_estimator()
    X = plan.rows(table)
    options = plan.starts
    if plan.splits_rows:
        if plan.groups is not None and plan.takes(estimator, "groups"):
            options["groups"] = table.column(plan.groups).to_numpy()
    elif watched is not None and plan.takes(estimator, "eval_set"):
        rows = (plan.rows(watched), plan.target, *_weights(plan, watched))
        options["eval_set"] = [rows]
        options["eval_names"] = ["held-out"]
    before = f"{label}: " if label else ""
    with console.phase(f"{before}binning") as phase, as_failures(plan.params):
        with steps_reported(lambda step: phase.step(step, before)):
            estimator.fit(X, plan.target, *_weights(plan, table), **options)
        seconds = phase.seconds
        phase.result = f"{before}fitted {plan.model} in {seconds_text(seconds)}"
    return estimator, seconds


def score_rows(
    console: Console, plan: FitPlan, estimator: Any, table: Any
) -> tuple[Evaluation, float]:
    """Return the scores of a fitted estimator on held-out rows, and the seconds."""
    weight = None if plan.weight is None else table.column(plan.weight).to_numpy()
    with console.phase(f"scoring {table.num_rows:,} rows") as phase, reading_data():
        found = evaluate_rows(estimator, plan.rows(table), plan.target, weight=weight)
        return found, phase.seconds


def _weights(plan: FitPlan, table: Any) -> tuple[Any, ...]:
    return () if plan.weight is None else (table.column(plan.weight).to_numpy(),)


@contextmanager
def as_failures(params: Mapping[str, Any]) -> Iterator[None]:
    """Errors of a fit are failures: of a parameter where the message names one that was given."""
    try:
        yield
    except MissingPackageError:
        raise
    except (ValueError, TypeError, ImportError, RuntimeError) as error:
        text = str(error)
        is_device = type(error).__name__ == "DeviceError"
        is_sentence = text.endswith(".")  # as all messages of the library
        if isinstance(error, TypeError | RuntimeError) and not (is_sentence or is_device):
            raise
        names_one = any(re.search(rf"\b{re.escape(name)}\b", text) for name in params)
        raise (UsageFailure if names_one or is_device else DataFailure)(text) from error


_COPIES = 3.0  # of the table: rows to train on, rows to score, and codes
_TEXT_FACTOR = 1.5  # bytes in memory for a byte of text
_RATIO = 6.0  # of compressed text
_SHARE_OF_LIMIT = 4.0  # held-out rows take at most a fourth of the memory limit
_SMALL = 50e6  # bytes of files that need no estimate
_COUNTED = (".parquet", ".pq", ".parq")  # files that tell their number of rows


def train_in_batches(console: Console, options: TrainOptions, started: float) -> None:
    """Train on files within the memory limit, save the model and write the summary."""
    _check(options)
    label = input_label(options.data)
    stream, paths = open_rows(console, options.data, form=options.form)
    refuse_input(options.output, paths)
    names = stream.schema.names
    for option, name in (
        ("--target", options.target),
        ("--weight", options.weight),
        ("--groups", options.groups),
        *(("--offset", one) for one in options.offset),
        ("--time-column", options.time_column),
    ):
        if name is not None:
            require_columns([name], names, option)
    dropped = set(resolve_names(options.ignore, names, "--ignore"))
    if options.time_column is not None:
        dropped.add(options.time_column)
    task, split = _task(console, options, label)
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
    _say_keys(console, options, plan.features(names))
    estimator, seconds = _fit_batches(console, plan, options, names, label, split)
    record, held_out = _record_batches(console, options, plan, names, split)
    times = {"reading and fitting": seconds}
    evaluation = None
    if held_out is not None:
        evaluation, times["scoring"] = score_rows(console, plan, estimator, held_out)
    n_bytes = save_model(estimator, options.output, record)
    n_train = estimator.model_.provenance.get("rows", 0)
    show_training(
        console,
        Trained(
            options=options,
            plan=plan,
            task=task,
            estimator=estimator,
            evaluation=evaluation,
            record=record,
            split_text=_split_text(estimator) if split is None else split.text,
            n_rows=n_train if split is None else len(split.train) + len(split.test),
            n_train=n_train,
            n_bytes=n_bytes,
            seconds={**times, "total": time.monotonic() - started},
        ),
    )


def fits_in_memory(console: Console, options: TrainOptions) -> bool:
    """Whether a fit can hold the table; said aloud where it cannot.

    A table that needs to be in memory, for the model or the held-out rows, is read anyway.
    """
    from arboost.data.memory import available_bytes

    if STANDARD_INPUT in options.data:
        return True
    needed, free = _COPIES * _table_bytes(options), available_bytes()
    if needed <= free:
        return True
    sizes = f"about {size_text(needed)}, more than the {size_text(free)} that are free"
    if options.model in ENSEMBLES or _options_of_tables(options):
        console.warn(f"the fit may need {sizes}; --memory-limit reads the table in batches")
        return True
    console.say(f"a fit in memory may need {sizes}: the table is read in batches")
    return False


def _table_bytes(options: TrainOptions) -> float:
    """Return the size of the table in memory, about."""
    from arboost.data.files import compression_of, find_files
    from arboost.data.source import open_files

    with reading_data():
        paths = [file.path for file in find_files(list(options.data), options.form.kind)]
        size = float(sum(os.path.getsize(path) for path in paths))
        if size < _SMALL:
            return 0.0
        if paths[0].lower().endswith(_COUNTED):
            source = open_files(list(options.data), None, options.form)
            return float((source.n_rows or 0) * (source.row_bytes or 0))
    return size * _TEXT_FACTOR * (_RATIO if compression_of(paths[0]) is not None else 1.0)


def _check(options: TrainOptions) -> None:
    if options.model in ENSEMBLES:
        others = ", ".join(name for name in MODELS if name not in ENSEMBLES)
        raise UsageFailure(
            f"--memory-limit is not for {options.model}, which needs the table in memory. Use "
            f"another model ({others}), or leave it out."
        )
    needing = _options_of_tables(options)
    if needing:
        raise UsageFailure(
            f"{needing[0]} needs the table in memory: leave it or --memory-limit out, and score "
            "other files with arboost evaluate."
        )


def _options_of_tables(options: TrainOptions) -> list[str]:
    """Return the given options that need the table in memory."""
    given = {
        "--holdout": None if options.time_column is not None else options.holdout,
        "--folds": options.folds,
        "--refit": options.refit,
        "--drop-missing-target": options.drop_missing_target,
    }
    return [option for option, value in given.items() if value]


def _task(console: Console, options: TrainOptions, label: str) -> tuple[Task, Split | None]:
    """Return the task of the target, and the split by time; their columns alone are read."""
    import pyarrow

    times = options.time_column
    with console.phase(f"reading the target of {label}") as phase, reading_data():
        stream, _ = open_rows(
            console,
            options.data,
            form=options.form,
            columns=[options.target, *([] if times is None else [times])],
            progress=phase.update_bytes,
        )
        table = pyarrow.Table.from_batches(list(stream), stream.schema)
        task = find_task(table.column(options.target), options.target, *options.asked_task)
        phase.result = f"read the target of {label} in {seconds_text(phase.seconds)}"
    console.say(f"task: {task.name} ({task.reason})")
    if times is None:
        return task, None
    order = time_order(console, table.column(times), times)
    if order is not None:
        row = int(np.flatnonzero(np.diff(np.argsort(order)) < 0)[0]) + 2
        raise DataFailure(
            f"--time-column {times}: with --memory-limit the rows must be in the order of time, "
            f"but row {row:,} is earlier than the row before it. Sort the files by this column, or "
            "leave --memory-limit out."
        )
    share = HOLDOUT if options.holdout is None else options.holdout
    return task, divide(table.num_rows, share, options.seed, by_time=True) if share else None


def _fit_batches(
    console: Console,
    plan: FitPlan,
    options: TrainOptions,
    names: list[str],
    label: str,
    split: Split | None,
) -> tuple[Any, float]:
    from arboost.progress import steps_reported

    with console.phase(f"loading {plan.model}"):
        estimator = plan.new_estimator()
    source: Any = list(options.data)
    if plan.dropped or options.form != BY_NAME:
        # A stream of the wanted columns is stored once; its columns still have their names.
        kept = [name for name in names if name not in plan.dropped]
        source, _ = open_rows(console, options.data, form=options.form, columns=kept)
        if split is not None:
            source = _first_rows(source, len(split.train))
    has_groups = plan.groups is not None and plan.splits_rows and plan.takes(estimator, "groups")
    arguments = plan.starts | ({"groups": plan.groups} if has_groups else {})
    if plan.groups is not None and not has_groups:
        raise UsageFailure("--groups is for early stopping here: leave it or --memory-limit out.")
    limit = options.memory_limit or "auto"
    within = "" if limit == "auto" else f" within {limit}"
    text = "no rows are held out" if split is None else split.text
    console.say(f"{label} is read in batches{within}; {text}")
    with (
        console.phase(f"reading {label}") as phase,
        as_failures({**plan.params, "memory_limit": 0}),
    ):
        with steps_reported(phase.step):
            estimator.fit(
                source,
                plan.target,
                plan.weight,
                memory_limit=limit,
                **arguments,
            )
        seconds = phase.seconds
        phase.result = f"read {label} and fitted {plan.model} in {seconds_text(seconds)}"
    return estimator, seconds


def _say_keys(console: Console, options: TrainOptions, features: list[str]) -> None:
    """Name the features that look like keys in the first batch."""
    import pyarrow

    stream, _ = open_rows(console, options.data, form=options.form, columns=features)
    with reading_data():
        first = next(iter(stream), None)
    if first is not None:
        say_keys(console, pyarrow.Table.from_batches([first]), features)


def _first_rows(stream: Any, n_rows: int) -> Any:
    """Return a stream of the first rows of another one."""
    import pyarrow

    def batches() -> Iterator[Any]:
        left = n_rows
        for batch in stream:
            yield batch.slice(0, left)
            left -= min(left, batch.num_rows)
            if not left:
                return

    return pyarrow.RecordBatchReader.from_batches(stream.schema, batches())


def _record_batches(
    console: Console,
    options: TrainOptions,
    plan: FitPlan,
    names: list[str],
    split: Split | None,
) -> tuple[RowRecord, Any]:
    """Return the record of the rows, which are read once more, and the held-out rows to score.

    Where the held-out rows would take more than a share of the memory limit, they are a sample.
    """
    import pyarrow

    columns = [*plan.features(names), plan.target]
    others = [*plan.offset, *([] if plan.weight is None else [plan.weight])]
    trained, held_out, start = RowSample(), RowSample(), 0
    step = 1
    parts: list[Any] = []
    with console.phase("noting the rows") as phase, reading_data():
        stream, _ = open_rows(
            console,
            options.data,
            form=options.form,
            columns=[*columns, *others],
            progress=phase.update_bytes,
        )
        for batch in stream:
            hashes = row_hashes(batch, columns)
            n_train = len(hashes) if split is None else max(len(split.train) - start, 0)
            start += len(hashes)
            trained.add(hashes[:n_train])
            if n_train < len(hashes):
                assert split is not None
                if not parts:
                    n_bytes = batch.nbytes / len(hashes) * len(split.test)
                    most = limit_bytes(options.memory_limit or "auto") / _SHARE_OF_LIMIT
                    step = math.ceil(n_bytes / most)
                held_out.add(hashes[n_train:])
                parts.append(_every(batch.slice(n_train), step))
    if split is None:
        return RowRecord.of(plan.target, trained), None
    table = pyarrow.Table.from_batches(parts)
    if step > 1:
        console.say(f"{table.num_rows:,} of {held_out.n_rows:,} held-out rows are scored")
    return RowRecord.of(plan.target, trained, held_out), table


def _every(batch: Any, step: int) -> Any:
    """Return every n-th row of a batch."""
    return batch if step == 1 else batch.take(np.arange(0, batch.num_rows, step))


def _split_text(estimator: Any) -> str:
    facts = estimator.model_.provenance
    if "best_score" in facts:
        return (
            f"{facts['metric']} {facts['best_score']:.5g} on rows that early stopping held out; "
            "arboost evaluate scores other files"
        )
    return "none scored; arboost evaluate scores other files"


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
    from arboost.cli.console import learning_curve

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
