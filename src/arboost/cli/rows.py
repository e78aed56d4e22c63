"""Rows of a command.

To train on: weights, order of time, columns that look like keys, task, and splits. For a model:
the columns that it reads, its offset, and the rows that were held out when it was trained.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from arboost.cli.console import Console
from arboost.cli.errors import DataFailure, UsageFailure, failures_as
from arboost.cli.row_record import Hashes, RowRecord, RowSample, row_hashes
from arboost.cli.tables import InputTable, RowSpec, open_table, require_columns
from arboost.params.suggestions import did_you_mean
from arboost.text import counted
from arboost.training import splits

Index = NDArray[np.integer[Any]]

_HOLDOUT = 0.2  # share of the rows to score by default
_FEWEST = 2  # rows of either side
_FEW_STRINGS = 20  # distinct strings that are classes whatever the number of rows
_MANY_CLASSES = 1000
_SHOWN = 3  # names or values in a message
_FEWEST_KEYS = 100  # distinct numbers; fewer do not indicate a key
_FIRST_ROWS = 1_000  # that are searched for keys before all others
_CHANCE = 0.02  # share of equal rows that means nothing


def read_weights(table: Any, name: str | None) -> NDArray[np.float64] | None:
    """Weights of the rows of a table, in the column of --weight; None without the option."""
    if name is None:
        return None
    column, kind = table.column(name), table.column(name).type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise DataFailure(f"--weight {name} is of type {kind}. Weights must be numbers.")
    values = np.asarray(column.cast("float64"), np.float64)
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= 0)))
    if len(wrong):
        raise DataFailure(
            f"--weight {name} is missing, negative or infinite in {len(wrong):,} rows, the first "
            f"of them row {wrong[0] + 1:,}. Correct them; the weight 0 leaves a row out."
        )
    if not values.any():
        raise DataFailure(f"--weight {name} is 0 in all rows. Some must be above 0.")
    return values


# ---- rows to train on ----


@dataclass(frozen=True)
class TrainingRows:
    """Rows with a target, in the order of time where there is a column of times.

    Attributes
    ----------
    spec : RowSpec
    table : pyarrow.Table
    features : list of str
    task : Task
    """

    spec: RowSpec
    table: Any
    features: list[str]
    task: Task

    @property
    def X(self) -> Any:  # as in the library
        """Columns that an estimator reads by name: features, offset and target."""
        return self.table.select([*self.features, *self.spec.offset, self.spec.target])

    @property
    def weights(self) -> NDArray[np.float64] | None:
        """Weights of the rows; None without --weight."""
        return read_weights(self.table, self.spec.weight)

    @property
    def groups(self) -> Any:
        """Groups of the rows; None without --groups."""
        return None if self.spec.groups is None else self.table.column(self.spec.groups).to_numpy()

    @property
    def queries(self) -> dict[str, Any]:
        """Queries among the arguments of a ranker; empty for other tasks."""
        qid = self.spec.qid
        return {} if qid is None else {"qid": self.table.column(qid).to_numpy()}

    def take(self, rows: Index) -> TrainingRows:
        """Some rows, in ascending order; consecutive ones without a copy."""
        if rows[-1] - rows[0] + 1 == len(rows):
            return replace(self, table=self.table.slice(rows[0], len(rows)))
        mask = np.zeros(self.table.num_rows, np.bool_)
        mask[rows] = True
        return replace(self, table=self.table.filter(pyarrow.array(mask)))


def read_training_rows(
    console: Console, spec: RowSpec, source: InputTable, asked: tuple[str | None, str] | None = None
) -> TrainingRows:
    """Read and check the rows of a command, and print their task.

    `asked` is the task that the options ask for, and the option; that of --task by default.
    """
    features = spec.features(source)
    table = source.read()
    with console.phase("looking at the columns"):
        if spec.drop_missing_target:
            table = with_target(console, table, spec.target)
        if spec.time_column is not None:
            order = time_order(console, table.column(spec.time_column), spec.time_column)
            table = table if order is None else table.take(order)
        read_weights(table, spec.weight)
        task = find_task(table.column(spec.target), spec.target, *(asked or (spec.task, "--task")))
        console.say(f"task: {task.name} ({task.reason})")
        say_keys(console, table, features)
    return TrainingRows(spec, table, features, task)


def with_target(console: Console, table: Any, name: str) -> Any:
    """Rows of a table that have a target; prints the number of others."""
    known = table.filter(pc.invert(_missing(table.column(name))))
    n_dropped = table.num_rows - known.num_rows
    if n_dropped:
        console.say(f"{counted(n_dropped, 'row')} without {name} left out")
    return known if known.num_rows else table  # the check of the target has the message


def time_order(console: Console, times: Any, column: str) -> NDArray[np.intp] | None:
    """Rows in the order of their times, equal times as they are; None where they are in order."""
    if times.type == "string":
        console.warn(
            f"--time-column {column} holds strings, such as {times[0].as_py()!r}: rows are in "
            "alphabetical order."
        )
    n_missing = pc.sum(pc.is_null(times, nan_is_null=True)).as_py() or 0
    if n_missing:
        raise DataFailure(
            f"--time-column {column} has {n_missing:,} missing values: these rows have no place in "
            "time. Remove them, or choose another column."
        )
    if not pc.any(pc.not_equal(times, times[0])).as_py():
        raise DataFailure(
            f"--time-column {column} has one value only: there is no order in time. Choose another "
            "column."
        )
    numbers = np.asarray(pc.rank(times, tiebreaker="first"))
    order = np.argsort(numbers, kind="stable")
    return None if np.array_equal(order, np.arange(len(order))) else order


def say_keys(console: Console, table: Any, features: Sequence[str]) -> None:
    """Name the features that hold another whole number in each row; a fit uses them.

    Strings that never occur twice are left out by the fit itself, which says so.
    """
    kinds = {name: kind for name in features if (kind := _key_kind(table.column(name)))}
    if not kinds:
        return
    shown = " and ".join(
        f"{', '.join(names)} {text if len(names) > 1 else text_of_one}"
        for kind, text_of_one, text in (
            ("number", "is a row number", "are row numbers"),
            ("key", "has another whole number in each row", "have other whole numbers in each row"),
        )
        if (names := [name for name, kind_of_name in kinds.items() if kind_of_name == kind])
    )
    option = shlex.quote(",".join(kinds))
    console.warn(
        f"{shown}: key-like columns say nothing about new rows; --ignore {option} leaves "
        f"{'them' if len(kinds) > 1 else 'it'} out"
    )


def _key_kind(column: Any) -> str:
    """Either "number" for a row number, "key" for other distinct whole numbers, or nothing."""
    is_number = types.is_integer(column.type) or types.is_floating(column.type)
    if not is_number or len(column) - column.null_count <= _FEWEST_KEYS:
        return ""
    for part in (column.slice(0, _FIRST_ROWS), column):
        values = pc.drop_null(part).to_numpy()
        values = values[np.isfinite(values)]
        is_distinct = len(values) and len(np.unique(values)) == len(values)
        if not is_distinct or not (values == np.floor(values)).all():
            return ""
    steps = np.diff(values.astype(np.float64))
    return "number" if len(values) == len(column) and (np.abs(steps) == 1).all() else "key"


# ---- task ----


@dataclass(frozen=True)
class Task:
    """A task and the sentence that says why.

    Attributes
    ----------
    name : {"classification", "regression", "ranking"}
    reason : str
    """

    name: str
    reason: str

    @property
    def is_classification(self) -> bool:
        """Whether classes are predicted."""
        return self.name == "classification"


def find_task(column: Any, name: str, asked: str | None, asked_by: str = "--task") -> Task:
    """Task of a target column.

    Strings, truth values and few distinct integers are classes; other numbers are amounts.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    name : str
        Name of the column, for messages.
    asked : {"classification", "regression", "ranking"} or None
        Task that the user asks for.
    asked_by : str
        Option that asks for it, for messages.

    Raises
    ------
    DataFailure
        The column cannot be a target: missing values, one value, numbers with a text among them.
    """
    _check_missing(column, name)
    if types.is_nested(column.type):
        raise DataFailure(
            f"the target {name!r} is of type {column.type}. Convert it to numbers or strings."
        )
    values = pc.unique(column)
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if len(values) == 1:
        raise DataFailure(
            f"the target {name!r} has one value only, {values[0].as_py()!r}: there is nothing to "
            "learn. Check the column and the rows."
        )
    is_text = types.is_string(kind) or types.is_large_string(kind)
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    if is_text and asked != "classification":
        _refuse_numbers(values, name)
    if asked in ("regression", "ranking") and not (is_number or types.is_boolean(kind)):
        raise DataFailure(
            f"{asked_by} is for {asked}, which needs numbers, but the target {name!r} holds "
            f"values of type {kind}. Use --task classification, or convert the column."
        )
    if asked is not None:
        return Task(asked, f"{asked_by} asks for it; {name} holds {len(values):,} distinct values")
    if is_text:
        _refuse_many(len(values), len(column), name)
        return Task("classification", f"{name} holds {len(values):,} distinct strings")
    if types.is_boolean(kind):
        return Task("classification", f"{name} holds truth values")
    if not is_number:
        raise DataFailure(
            f"the target {name!r} is of type {kind}, which is neither numbers nor classes. Convert "
            "it to numbers or strings."
        )
    from arboost import infer_task

    numbers = np.asarray(column.cast("float64", safe=False) if column.type != "int64" else column)
    if not np.array_equal(numbers, np.floor(numbers)):
        return Task("regression", f"{name} holds decimal numbers")
    task = infer_task(numbers)
    change = "regression" if task == "classification" else "classification"
    return Task(
        task, f"{name} holds {len(values):,} distinct whole numbers; --task {change} changes it"
    )


def _missing(column: Any) -> Any:
    """Mask of missing values, empty strings included."""
    missing = pc.is_null(column, nan_is_null=True)
    if types.is_string(column.type) or types.is_large_string(column.type):
        missing = pc.or_(missing, pc.equal(pc.fill_null(column, ""), ""))
    return missing


def _check_missing(column: Any, name: str) -> None:
    """Raise DataFailure for missing and infinite values, with the first row."""
    missing = _missing(column)
    n_missing = pc.sum(missing).as_py() or 0
    if n_missing == len(column):
        raise DataFailure(f"the target {name!r} has no value in any row. Check --target.")
    if n_missing:
        row = pc.index(missing, True).as_py() + 1
        raise DataFailure(
            f"the target {name!r} is missing in {n_missing:,} of {len(column):,} rows, the first "
            f"of them row {row:,}. Use --drop-missing-target to leave these rows out, or fill them."
        )
    if types.is_floating(column.type):
        infinite = pc.is_inf(column)
        if pc.any(infinite).as_py():
            row = pc.index(infinite, True).as_py() + 1
            raise DataFailure(
                f"the target {name!r} is infinite in row {row:,}. Remove the row, or correct it."
            )


def _refuse_numbers(values: Any, name: str) -> None:
    """Raise DataFailure for numbers with a few texts among them, which are strings by mistake."""
    texts = values.to_pylist()
    others = [text for text in texts if not _is_number(text)]
    if others and len(others) <= len(texts) // 2 and len(texts) > _FEW_STRINGS:
        shown = ", ".join(repr(text) for text in others[:_SHOWN])
        raise DataFailure(
            f"the target {name!r} holds numbers, but also the text {shown}. Remove these rows or "
            "correct them, or use --task classification for classes."
        )


def _refuse_many(n_distinct: int, n_rows: int, name: str) -> None:
    if n_distinct > _MANY_CLASSES or (n_distinct > _FEW_STRINGS and n_distinct > n_rows // 2):
        raise DataFailure(
            f"the target {name!r} holds {n_distinct:,} distinct strings in {n_rows:,} rows, too "
            "many for classes. Check --target; use --task classification to train anyway."
        )


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


# ---- splits: those of the library, with sentences that say how ----


@dataclass(frozen=True)
class Split:
    """Rows of training and rows of scoring, ascending, and the sentence that says how."""

    train: Index
    test: Index
    text: str


def hold_out_rows(rows: TrainingRows, share: float | None, seed: int) -> Split:
    """Hold out about a share of the rows: the latest, whole groups, or a share of each class."""
    n_rows, spec = rows.table.num_rows, rows.spec
    if spec.time_column is not None:
        return hold_out_latest(n_rows, share)
    share = _checked_share(n_rows, share)
    percent = f"{100 * share:g} %"
    codes = _split_codes(rows)
    if spec.groups is not None or spec.qid is not None:
        n_groups = int(codes.max()) + 1
        option, kind, kinds = "--groups", "group", "groups"
        if spec.qid is not None:
            option, kind, kinds = "--qid", "query", "queries"
        if n_groups < _FEWEST:
            raise DataFailure(
                f"{option} has one {kind} only. Choose a column with several {kinds}."
            )
        train, test = splits.split(codes, how="group", fraction=share, seed=seed, groups=codes)
        text = (
            f"{len(np.unique(codes[test])):,} of {n_groups:,} {kinds}, {len(test):,} rows (about "
            f"{percent}), are held out to score the model"
        )
        return Split(train, test, text)
    # The row of a class of one row is trained on.
    repeated = np.flatnonzero(np.bincount(codes)[codes] > 1)
    if len(repeated) < _FEWEST:
        raise DataFailure(
            "nearly every class has one row only, which cannot be both trained on and scored. "
            "Check --target and --task, or use --holdout 0."
        )
    is_stratified = rows.task.is_classification
    _, chosen = splits.split(codes[repeated], fraction=share, seed=seed, stratify=is_stratified)
    held_out = repeated[chosen]
    text = f"{len(held_out):,} random rows ({percent}) are held out to score the model"
    return Split(np.setdiff1d(np.arange(n_rows), held_out), held_out, text)


def hold_out_latest(n_rows: int, share: float | None = None) -> Split:
    """Hold out the last rows, about a share of them."""
    share = _checked_share(n_rows, share)
    train, test = splits.split(np.zeros(n_rows), how="time", fraction=share, seed=0)
    text = f"the latest {len(test):,} rows ({100 * share:g} %) are held out to score the model"
    return Split(train, test, text)


def _checked_share(n_rows: int, share: float | None) -> float:
    """Share of the rows to hold out; raise UsageFailure where a side has too few rows."""
    share = _HOLDOUT if share is None else share
    n_test = math.ceil(share * n_rows)
    if n_test < _FEWEST or n_rows - n_test < _FEWEST:
        raise UsageFailure(
            f"--holdout {share:g} of {n_rows:,} rows leaves {n_test:,} to score and "
            f"{n_rows - n_test:,} to train on, but both need {_FEWEST}. Use more rows, --folds, or "
            "--holdout 0."
        )
    return share


def fold_rows(rows: TrainingRows, n_folds: int, seed: int) -> list[Split]:
    """Splits of a cross-validation; every row is scored once, but not by time."""
    from sklearn.model_selection import TimeSeriesSplit

    n_rows, spec = rows.table.num_rows, rows.spec
    if not _FEWEST <= n_folds <= n_rows // _FEWEST:
        raise UsageFailure(
            f"--folds {n_folds} is not allowed with {n_rows:,} rows: use from 2 to "
            f"{max(n_rows // _FEWEST, _FEWEST)}."
        )
    is_stratified = False
    if spec.time_column is not None:
        text = f"{n_folds} folds, each after the rows it is trained on, score the model"
    elif spec.groups is not None or spec.qid is not None:
        text = f"{n_folds} folds of whole {'groups' if spec.qid is None else 'queries'}"
        text += " score the model"
    elif is_stratified := rows.task.is_classification:
        text = f"{n_folds} folds score the model, each class with its share in all of them"
    else:
        text = f"{n_folds} random folds score the model"
    codes = _split_codes(rows)
    labels = rows.table.column(spec.target).to_numpy() if is_stratified else codes
    with failures_as(DataFailure):
        pairs = splits.folds(
            labels,
            n_folds if spec.time_column is None else TimeSeriesSplit(n_folds),
            seed=seed,
            stratify=is_stratified,
            groups=None if spec.groups is None and spec.qid is None else codes,
            name="--folds",
        )
    return [Split(train, test, text) for train, test in pairs]


def _split_codes(rows: TrainingRows) -> NDArray[np.intp]:
    """Groups or classes of the rows as numbers from 0; zeros where neither divides the rows."""
    column = rows.spec.groups or rows.spec.qid
    if column is None and rows.task.is_classification:
        column = rows.spec.target
    if column is None or rows.spec.time_column is not None:
        return np.zeros(rows.table.num_rows, np.intp)
    values = rows.table.column(column).combine_chunks()
    encoded = pc.dictionary_encode(values, null_encoding="encode")  # missing values are a group
    return np.asarray(encoded.indices, np.intp)


def record_rows(rows: TrainingRows, split: Split | None = None) -> RowRecord:
    """Record which rows train the saved model, and which are held out; by default all train."""
    target = rows.spec.target
    hashes = row_hashes(rows.table, [*rows.features, target])
    if split is None:
        return RowRecord.of(target, RowSample(hashes))
    return RowRecord.of(target, RowSample(hashes[split.train]), RowSample(hashes[split.test]))


# ---- rows for a model ----


def find_offset(model: Any, columns: Sequence[str]) -> tuple[str, ...]:
    """Columns of the offset: those of --offset, or those of the training; often none."""
    fitted = model.schema.offset
    if columns and fitted is None:
        raise UsageFailure(
            f"--offset {','.join(columns)} was passed, but the model was trained without an "
            "offset. Leave it out."
        )
    if fitted == () and not columns:
        raise UsageFailure(
            "the model was trained with an offset, whose columns its file does not tell. Add "
            "--offset COLUMN."
        )
    return tuple(columns or fitted or ())


def needed_columns(model: Any, source: InputTable) -> list[str]:
    """Columns of a model; all of the table for a model of columns without names.

    Raises
    ------
    DataFailure
        The table lacks some of them.
    """
    names: list[str] = source.files.names
    if model.schema.names is None:
        return names
    needed = list(model.schema.columns)
    missing = [name for name in needed if name not in names]
    if missing:
        shown = ", ".join(repr(name) for name in missing[:_SHOWN])
        more = f" and {len(missing) - _SHOWN:,} more" if len(missing) > _SHOWN else ""
        others = [name for name in names if name not in needed]
        near = did_you_mean(missing[0], others) if len(missing) == 1 else ""
        raise DataFailure(
            f"{source.label} has no {'column' if len(missing) == 1 else 'columns'} {shown}{more}, "
            f"which the model needs.{near} Use a table with the columns of the training."
        )
    return needed


def read_model_rows(model: Any, spec: RowSpec, source: InputTable) -> Any:
    """Table of the features of a model, and the offset, target and weights of a spec.

    Text is read with the types of the training, labels as strings where the model has strings.
    """
    if spec.weight is not None and spec.weight == spec.target:
        raise UsageFailure(f"--weight {spec.weight} is also the target. Use another column.")
    if spec.target in (model.schema.names or ()):
        fitted = model.schema.target
        known = "" if fitted is None else f" Its target is {fitted!r}."
        raise UsageFailure(f"--target {spec.target} is a feature of the model.{known}")
    names = source.files.names
    if spec.target and spec.target not in names:
        raise DataFailure(
            f"{source.label} has no column {spec.target!r}, the target of the model. Add it, or "
            "name another one by --target."
        )
    for option, name in spec.roles[1:]:
        require_columns([name], names, option)
    columns = [*needed_columns(model, source), *(name for _, name in spec.roles if name)]
    has_labels = model.classes is not None and all(isinstance(k, str) for k in model.classes)
    read_as = {spec.target: "string"} if spec.target and has_labels else None
    return source.select(list(dict.fromkeys(columns)), like=model, types=read_as).read()


@dataclass(frozen=True)
class ScoredRows:
    """Rows to score with a model.

    Attributes
    ----------
    table : pyarrow.Table
        Features, offset and target: of all rows, or of those that were held out.
    target : str
    weights : float64 array or None
    offset : tuple of str
    source : InputTable
    trained_share : float
        Share of the rows that the model was trained on.
    note : str
        Sentence about held-out or trained rows; empty where there is nothing to say.
    qid : array or None
        Queries of the rows.
    """

    table: Any
    target: str
    weights: NDArray[np.float64] | None
    offset: tuple[str, ...]
    source: InputTable
    trained_share: float
    note: str
    qid: Any = None


def read_scored_rows(console: Console, model: Any, spec: RowSpec) -> ScoredRows:
    """Read the rows to score: all, with a warning where they were trained on, or the held-out ones.

    Raises
    ------
    UsageFailure
        --held-out, with a model that held out no rows.
    DataFailure
        No row of the table was held out.
    """
    target = spec.target or model.schema.target
    if target is None:
        raise UsageFailure(
            "the model file does not tell the name of its target. Add --target COLUMN."
        )
    spec = replace(spec, target=str(target), offset=find_offset(model, spec.offset))
    record, trained_share, note = RowRecord.of_model(model), 0.0, ""
    if spec.held_out:
        _check_held_out(record, spec.target)
    source = open_table(console, spec.data, spec.form)
    table = read_model_rows(model, spec, source)
    if record is not None and record.target == spec.target:
        names = [*dict.fromkeys(name for name in model.schema.columns if name != target), target]
        with console.phase(f"finding the rows of the training in {source.label}"):
            hashes = row_hashes(table, names)
        if spec.held_out:
            table, note = _held_out_rows(console, record, table, source.label, hashes)
        else:
            trained_share, note = _trained_share(console, record, source.label, hashes)
    weights = read_weights(table, spec.weight)
    if spec.weight is not None and spec.weight not in model.feature_names:
        table = table.drop_columns([spec.weight])
    qid = None
    if spec.qid is not None:
        qid = table.column(spec.qid).to_numpy()
        table = table.drop_columns([spec.qid])
    return ScoredRows(table, spec.target, weights, spec.offset, source, trained_share, note, qid)


def _check_held_out(record: RowRecord | None, target: str) -> None:
    """Raise UsageFailure for --held-out with a model that held out no rows for this target."""
    if record is None:
        raise UsageFailure(
            "--held-out needs a model of arboost train, which keeps the rows that it held out, "
            "but this one has no such record. Leave it out."
        )
    if record.target != target:
        raise UsageFailure(
            f"--held-out finds rows by the target {record.target!r}, but --target is {target!r}. "
            "Leave one of them out."
        )
    if not record.held_out.n_rows:
        raise UsageFailure(
            "--held-out has nothing to score: the model was trained on all rows, because of "
            "--holdout 0, --refit, --folds, --memory-limit or arboost tune. Leave it out, and "
            "score a table of new rows."
        )
    if not len(record.held_out.keys):
        raise UsageFailure(
            "--held-out has nothing to score: every held-out row has the values of a row that was "
            "trained on. Leave it out, and score a table of new rows."
        )


def _held_out_rows(
    console: Console, record: RowRecord, table: Any, label: str, hashes: Hashes
) -> tuple[Any, str]:
    """Held-out rows of a table, and a sentence on their number."""
    mask = record.held_out.has(hashes)
    n_chosen, n_held_out = int(mask.sum()), record.held_out.n_rows
    if not n_chosen:
        raise DataFailure(
            f"{label} has none of the {n_held_out:,} rows that were held out when the model was "
            "trained. --held-out is for the table of the training: use that one, or leave the "
            "option out."
        )
    known = f", of {n_held_out:,} that were held out" if n_held_out > n_chosen else ""
    note = f"{n_chosen:,} held-out rows of {table.num_rows:,}{known}"
    if known:
        console.say(f"{label}: {note}")
    return table.filter(pyarrow.array(mask)), f"The rows are {note}."


def _trained_share(
    console: Console, record: RowRecord, label: str, hashes: Hashes
) -> tuple[float, str]:
    """Share of rows that the model was trained on, with a warning and a sentence where it is."""
    share = record.trained_share(hashes)
    if share <= _CHANCE + 2 * record.repeated:
        return 0.0, ""
    advice = "--held-out scores the held-out rows alone"
    if not len(record.held_out.keys):
        advice = "score rows that are new to it"
    note = f"the model was trained on {share:.0%} of the rows of {label}: scores are too good"
    console.warn(f"{note}; {advice}")
    return share, f"{note[0].upper()}{note[1:]}."
