"""Rows to train on and rows to score: a random share, whole groups, the latest rows, or folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.cli.console import Console
from arboost.cli.errors import DataFailure, UsageFailure

__all__ = ["HOLDOUT", "Split", "check_weights", "divide", "folds_of", "in_time_order", "time_order"]

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
