"""Rows of a command: roles of columns, task, split, and columns that look like keys."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.cli.console import Console
from arboost.cli.errors import DataFailure, UsageFailure
from arboost.cli.tables import Loaded, read_table, require_columns, resolve_names
from arboost.data.levels import MAX_SET_LEVELS
from arboost.data.source import FileFormat


@dataclass(frozen=True, kw_only=True)
class RowOptions:
    """Options on the rows, under the names of the command line.

    Attributes
    ----------
    data : tuple of str
    target : str
    form : FileFormat
    task : str or None
    weight, groups, time_column : str or None
        Columns that are no features.
    offset : tuple of str
        Columns of the offset, which are not features.
    ignore : tuple of str
    drop_missing_target : bool
    """

    data: tuple[str, ...]
    target: str
    form: FileFormat
    task: str | None
    weight: str | None
    groups: str | None
    ignore: tuple[str, ...]
    drop_missing_target: bool
    time_column: str | None = None
    offset: tuple[str, ...] = ()

    def named(self) -> dict[str, str]:
        """Return the columns with a role, by option."""
        given = {
            "--target": self.target,
            "--weight": self.weight,
            "--groups": self.groups,
            "--time-column": self.time_column,
        }
        return {option: name for option, name in given.items() if name is not None}


@dataclass(frozen=True)
class SelectedRows:
    """Rows of a command.

    Attributes
    ----------
    X : pyarrow.Table
        Features and target.
    target : str
    weight, groups : array or None
    task : Task
    loaded : Loaded
    """

    X: Any
    target: str
    weight: Any
    groups: Any
    task: Task
    loaded: Loaded


def read_selected(console: Console, options: RowOptions) -> SelectedRows:
    """Return the rows of a command, checked; the task is said aloud."""
    named = options.named()
    if options.time_column is not None and options.groups is not None:
        raise UsageFailure("--time-column and --groups are two splits: use one of them.")
    for option, name in [*named.items(), *(("--offset", one) for one in options.offset)]:
        if option != "--target" and name == options.target:
            raise UsageFailure(f"{option} {name} is also the target. Use another column.")
    loaded = read_table(console, options.data, form=options.form)
    names = loaded.table.column_names
    for option, name in named.items():
        require_columns([name], names, option)
    require_columns(options.offset, names, "--offset")
    left_out = set(resolve_names(options.ignore, names, "--ignore"))
    if options.target in left_out:
        raise UsageFailure(f"--ignore {options.target} is also the target. Leave it out.")
    left_out |= {name for option, name in named.items() if option != "--target"}
    table = loaded.table
    if options.drop_missing_target:
        table = with_target(console, table, options.target)
    if options.time_column is not None:
        table = in_time_order(console, table, options.time_column)
    kept = [name for name in names if name not in left_out]
    if not set(kept) - {options.target, *options.offset}:
        raise DataFailure(f"{loaded.label} has no column but the target. Add features.")
    task = find_task(table.column(options.target), options.target, options.task)
    console.say(f"task: {task.name} ({task.reason})")
    say_keys(
        console, table, [name for name in kept if name not in (options.target, *options.offset)]
    )
    return SelectedRows(
        X=table.select(kept),
        target=options.target,
        weight=None if options.weight is None else _numbers(table, options.weight),
        groups=None if options.groups is None else table.column(options.groups).to_numpy(),
        task=task,
        loaded=loaded,
    )


def _numbers(table: Any, name: str) -> Any:
    from pyarrow import types

    column = table.column(name)
    if not (types.is_integer(column.type) or types.is_floating(column.type)):
        raise DataFailure(
            f"--weight {name} holds values of type {column.type}, but weights are numbers. Choose "
            "another column."
        )
    return column.to_numpy()


_FEW = 20  # distinct strings that are classes whatever the number of rows
_MANY_CLASSES = 1000
_SHOWN = 3


@dataclass(frozen=True)
class Task:
    """A task and the sentence that says why.

    Attributes
    ----------
    name : {"classification", "regression"}
    reason : str
    """

    name: str
    reason: str

    @property
    def is_classification(self) -> bool:
        """Whether classes are predicted."""
        return self.name == "classification"


def find_task(column: Any, name: str, given: str | None, asked_by: str = "--task") -> Task:
    """Return the task of a target.

    Strings, truth values and few distinct integers are classes; other numbers are amounts.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    name : str
        Name of the column, for messages.
    given : {"classification", "regression"} or None
        Task that the user asks for.
    asked_by : str
        Option that asks for it, for messages.

    Raises
    ------
    DataFailure
        The column cannot be a target: missing values, one value, numbers with a text among them.
    """
    import pyarrow.compute as pc
    from pyarrow import types

    _check_missing(column, name)
    if types.is_nested(column.type):
        raise DataFailure(
            f"the target {name!r} is of type {column.type}. Convert it to numbers or strings."
        )
    values = pc.unique(column)
    n_distinct = len(values)
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if n_distinct == 1:
        raise DataFailure(
            f"the target {name!r} has one value only, {values[0].as_py()!r}: there is nothing to "
            "learn. Check the column and the rows."
        )
    is_text = types.is_string(kind) or types.is_large_string(kind)
    if is_text and given != "classification":
        _refuse_numbers(values, name)
    if given is not None:
        return _asked(given, kind, name, n_distinct, asked_by)
    distinct = f"{n_distinct:,} distinct"
    if is_text:
        _refuse_many(n_distinct, len(column), name)
        return Task("classification", f"{name} holds {distinct} strings")
    if types.is_boolean(kind):
        return Task("classification", f"{name} holds truth values")
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return _of_numbers(column, name, distinct)
    raise DataFailure(
        f"the target {name!r} is of type {kind}, which is neither numbers nor classes. Convert it "
        "to numbers or strings."
    )


def _of_numbers(column: Any, name: str, distinct: str) -> Task:
    """Return the task of numbers, by the rule of `arboost.compare`."""
    import numpy as np

    from arboost.estimators.folds import estimator_kind

    values = np.asarray(column.cast("float64", safe=False) if column.type != "int64" else column)
    if not np.array_equal(values, np.floor(values)):
        return Task("regression", f"{name} holds decimal numbers")
    if estimator_kind(values) == "classifier":
        return Task(
            "classification", f"{name} holds {distinct} whole numbers; --task regression changes it"
        )
    return Task(
        "regression", f"{name} holds {distinct} whole numbers; --task classification changes it"
    )


def _asked(given: str, kind: Any, name: str, n_distinct: int, asked_by: str) -> Task:
    from pyarrow import types

    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
    if given == "regression" and not (is_number or types.is_boolean(kind)):
        raise DataFailure(
            f"{asked_by} is for regression, which needs numbers, but the target {name!r} holds "
            f"values of type {kind}. Use --task classification, or convert the column."
        )
    return Task(given, f"{asked_by} asks for it; {name} holds {n_distinct:,} distinct values")


def with_target(console: Console, table: Any, name: str) -> Any:
    """Return the rows of a table that have a target; the number of others is said aloud."""
    import pyarrow.compute as pc

    kept = table.filter(pc.invert(_missing(table.column(name))))
    n_dropped = table.num_rows - kept.num_rows
    if n_dropped:
        rows = "row" if n_dropped == 1 else "rows"
        console.say(f"{n_dropped:,} {rows} without {name} left out")
    return kept if kept.num_rows else table  # the check of the target has the message


def _missing(column: Any) -> Any:
    """Return which values are missing, empty strings included."""
    import pyarrow.compute as pc
    from pyarrow import types

    missing = pc.is_null(column, nan_is_null=True)
    if types.is_string(column.type) or types.is_large_string(column.type):
        missing = pc.or_(missing, pc.equal(pc.fill_null(column, ""), ""))
    return missing


def _check_missing(column: Any, name: str) -> None:
    """Raise DataFailure for missing values, with the first row."""
    import pyarrow.compute as pc
    from pyarrow import types

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
    if others and len(others) <= len(texts) // 2 and len(texts) > _FEW:
        shown = ", ".join(repr(text) for text in others[:_SHOWN])
        raise DataFailure(
            f"the target {name!r} holds numbers, but also the text {shown}. Remove these rows or "
            "correct them, or use --task classification for classes."
        )


def _refuse_many(n_distinct: int, n_rows: int, name: str) -> None:
    if n_distinct > _MANY_CLASSES or (n_distinct > _FEW and n_distinct > n_rows // 2):
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


Index = NDArray[np.intp]

HOLDOUT = 0.2  # share of the rows to score by default
_FEWEST = 2  # rows of either side


@dataclass(frozen=True)
class Split:
    """Rows of training and rows of scoring, ascending, and the sentence that says how."""

    train: Index
    test: Index
    text: str


def in_time_order(console: Console, table: Any, column: str) -> Any:
    """Return the table sorted by a column of times; equal times keep their order."""
    order = time_order(console, table.column(column), column)
    return table if order is None else table.take(order)


def time_order(console: Console, times: Any, column: str) -> NDArray[np.intp] | None:
    """Return the rows in the order of their times; None where they are in order already."""
    import pyarrow.compute as pc

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


def check_weights(column: Any, name: str) -> None:
    """Raise DataFailure for weights that are no numbers of at least 0, with the first row."""
    from pyarrow import types

    kind = column.type
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
        raise DataFailure(f"--weight {name} is 0 in all rows. At least one must be above 0.")


def divide(
    n_rows: int,
    share: float,
    seed: int,
    *,
    classes: Any = None,
    groups: Any = None,
    by_time: bool = False,
) -> Split:
    """Return a split with about a share of the rows to score.

    Parameters
    ----------
    n_rows : int
    share : float
    seed : int
    classes : int array of shape (n_rows,), optional
        Classes, each of which keeps its share.
    groups : int array of shape (n_rows,), optional
        Groups, which stay together.
    by_time : bool
        Whether the last rows are scored, in the order of the table.
    """
    n_test = round(share * n_rows)
    if n_test < _FEWEST or n_rows - n_test < _FEWEST:
        raise UsageFailure(
            f"--holdout {share:g} of {n_rows:,} rows leaves {n_test:,} to score and "
            f"{n_rows - n_test:,} to train on, but both need {_FEWEST}. Use more rows, --folds, or "
            "--holdout 0."
        )
    rows = np.arange(n_rows)
    percent = f"{100 * share:g} %"
    if by_time:
        text = f"the latest {n_test:,} rows ({percent}) are held out to score the model"
        return Split(rows[: n_rows - n_test], rows[n_rows - n_test :], text)
    if groups is not None:
        return _by_groups(groups, n_test, percent, seed)
    random = np.random.default_rng(seed).random(n_rows)
    held_out = np.zeros(n_rows, np.bool_)
    if classes is None:
        held_out[np.argsort(random)[:n_test]] = True
    else:
        order = np.lexsort((random, classes))
        counts = np.bincount(classes)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        place = np.arange(n_rows) - starts[classes[order]]
        taken = np.floor(share * counts + 0.5).astype(np.intp)
        held_out[order[place < np.minimum(taken, counts - 1)[classes[order]]]] = True
    if held_out.sum() < _FEWEST:
        raise DataFailure(
            "nearly every class has one row only, which cannot be both trained on and scored. "
            "Check --target and --task, or use --holdout 0."
        )
    text = f"{held_out.sum():,} random rows ({percent}) are held out to score the model"
    return Split(np.flatnonzero(~held_out), np.flatnonzero(held_out), text)


def _by_groups(groups: Any, n_test: int, percent: str, seed: int) -> Split:
    counts = np.bincount(groups)
    if len(counts) < _FEWEST:
        raise DataFailure("--groups has one group only. Choose a column with several groups.")
    order = np.random.default_rng(seed).permutation(len(counts))
    n_groups = int(np.searchsorted(np.cumsum(counts[order]), n_test)) + 1
    chosen = order[: min(n_groups, len(counts) - 1)]
    held_out = np.isin(groups, chosen)
    text = (
        f"{len(chosen):,} of {len(counts):,} groups, {held_out.sum():,} rows (about {percent}), "
        "are held out to score the model"
    )
    return Split(np.flatnonzero(~held_out), np.flatnonzero(held_out), text)


def folds_of(
    n_rows: int,
    n_folds: int,
    seed: int,
    *,
    classes: Any = None,
    groups: Any = None,
    by_time: bool = False,
) -> list[Split]:
    """Return the splits of a cross-validation; every row is scored once, but not by time."""
    from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit

    if not _FEWEST <= n_folds <= n_rows // _FEWEST:
        raise UsageFailure(
            f"--folds {n_folds} is not allowed with {n_rows:,} rows: use from 2 to "
            f"{max(n_rows // _FEWEST, _FEWEST)}."
        )
    rows = np.zeros((n_rows, 1))
    if by_time:
        pairs = TimeSeriesSplit(n_folds).split(rows)
        text = f"{n_folds} folds, each after the rows it is trained on, score the model"
    elif groups is not None:
        if int(groups.max()) + 1 < n_folds:
            raise DataFailure(
                f"--groups has {int(groups.max()) + 1} groups, too few for --folds {n_folds}."
            )
        pairs = GroupKFold(n_folds).split(rows, groups=groups)
        text = f"{n_folds} folds of whole groups score the model"
    elif classes is not None:
        fewest = int(np.bincount(classes).min())
        if fewest < n_folds:
            raise DataFailure(
                f"a class has {fewest} {'row' if fewest == 1 else 'rows'}, fewer than --folds "
                f"{n_folds}. Use fewer folds or --holdout, or remove the class."
            )
        splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
        pairs = splitter.split(rows, classes)
        text = f"{n_folds} folds score the model, each class with its share in all of them"
    else:
        pairs = KFold(n_folds, shuffle=True, random_state=seed).split(rows)
        text = f"{n_folds} random folds score the model"
    return [Split(train, test, text) for train, test in pairs]


_FIRST = 1_000  # rows that are looked at before all others


def say_keys(console: Console, table: Any, features: Sequence[str]) -> None:
    """Name the features that hold another whole number in each row; a fit uses them.

    Strings that never occur twice are left out by the fit itself, which says so.
    """
    kinds = {name: kind for name in features if (kind := _kind(table.column(name)))}
    if not kinds:
        return
    shown = " and ".join(
        f"{', '.join(names)} {text if len(names) > 1 else text_of_one}"
        for kind, text_of_one, text in (
            ("number", "is a row number", "are row numbers"),
            ("key", "has another whole number in each row", "have other whole numbers in each row"),
        )
        if (names := [name for name, found in kinds.items() if found == kind])
    )
    option = shlex.quote(",".join(kinds))
    console.warn(
        f"{shown}: key-like columns say nothing about new rows; --ignore {option} leaves "
        f"{'them' if len(kinds) > 1 else 'it'} out"
    )


def _kind(column: Any) -> str:
    """Return "number" for a row number, "key" for other distinct whole numbers, else nothing."""
    from pyarrow import compute, types

    kind = column.type
    is_number = types.is_integer(kind) or types.is_floating(kind)
    if not is_number or len(column) - column.null_count <= MAX_SET_LEVELS:
        return ""
    for part in (column.slice(0, _FIRST), column):
        values = compute.drop_null(part).to_numpy()
        values = values[np.isfinite(values)]
        is_distinct = len(values) and len(np.unique(values)) == len(values)
        if not is_distinct or not (values == np.floor(values)).all():
            return ""
    steps = np.diff(values.astype(np.float64))
    return "number" if len(values) == len(column) and (np.abs(steps) == 1).all() else "key"
