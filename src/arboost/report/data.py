"""Data of a report: kind, range, missing values and distribution of each column, and drift."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.losses.intervals import sample_rows
from arboost.report.inputs import ReportInput
from arboost.report.table import (
    Column,
    Floats,
    Index,
    ReportTable,
    level_text,
    rounded,
    shown_level,
)
from arboost.text import counted, number_text

_MOST_COLUMNS = 500
_MOST_CELLS = 10_000_000  # values that are described
_FEWEST_ROWS = 1000
_BINS = 20
_TAILS = (0.005, 0.995)  # quantiles between which bins are equal
_MOST_LEVELS = 12
_DRIFT_BINS = 10


def data_section(inputs: ReportInput, important: Sequence[int]) -> dict[str, Any]:
    """Data of the payload; of many columns the important ones."""
    table = inputs.model_rows[0].table
    train = None if inputs.training is None else inputs.training.table
    notes = list(inputs.notes)
    features = list(range(table.n_features))
    if len(features) > _MOST_COLUMNS:
        features = sorted(important[:_MOST_COLUMNS])
        notes.append(
            f"{_MOST_COLUMNS:,} of {table.n_features:,} columns are shown: those of the largest "
            "importances."
        )
    rows = _described_rows(table, len(features))
    if len(rows) < table.n_rows:
        notes.append(f"Columns are described by {len(rows):,} rows, chosen by hash.")
    columns = _columns(table, features)
    train_columns = [None] * len(features) if train is None else _columns(train, features)
    pairs = zip(columns, train_columns, strict=True)
    return {
        "n_rows": inputs.n_rows,
        "n_train_rows": None if train is None else train.n_rows,
        "n_features": table.n_features,
        "n_weighted": inputs.weight is not None,
        "notes": notes,
        "columns": [_described(*pair) for pair in pairs],
        "target": _target(inputs),
    }


def _described_rows(table: ReportTable, n_features: int) -> Index:
    most = max(_MOST_CELLS // max(n_features, 1), _FEWEST_ROWS)
    return sample_rows(table.n_rows, most)


def _columns(table: ReportTable, features: Sequence[int]) -> Iterator[Column]:
    rows = _described_rows(table, len(features))
    for feature in features:
        column = table.column(feature)
        yield column if len(rows) == table.n_rows else column.take(rows)


def _target(inputs: ReportInput) -> dict[str, Any]:
    rows = inputs.model_rows[0]
    name, kind = inputs.target or "target", "category" if rows.classes else "number"

    def column(truth: NDArray[Any]) -> Column:
        return Column(name, kind, truth.astype(np.float64), tuple(rows.classes))

    train = None if inputs.training is None else inputs.training.truth
    return _described(column(rows.truth), None if train is None else column(train))


def _described(column: Column, train: Column | None) -> dict[str, Any]:
    present = column.numbers[~column.missing]
    ordered = np.sort(present)
    n_distinct = int(len(ordered) > 0) + int(np.count_nonzero(ordered[1:] != ordered[:-1]))
    section: dict[str, Any] = {
        "name": column.name,
        "kind": column.kind,
        "missing": _missing_share(column),
        "n_distinct": n_distinct,
        "summary": "",
        "bins": None,
        "levels": None,
        "missing_train": None if train is None else _missing_share(train),
        "drift": None if train is None else rounded(drift(column, train)),
    }
    if column.unit:
        section["unit"] = column.unit
    if column.has_levels:
        levels = section["levels"] = column_levels(column, train)
        section["summary"] = _most_frequent(levels, len(present), n_distinct)
    else:
        section["summary"] = _range(column, present[np.isfinite(present)])
        section["bins"] = column_bins(column, train)
    return section


def _missing_share(column: Column) -> float | int | None:
    return rounded(column.missing.mean()) if len(column.numbers) else None


def _range(column: Column, finite: Floats) -> str:
    if not len(finite):
        return "no values"
    low, middle, high = (column.text(x) for x in (finite.min(), np.median(finite), finite.max()))
    return f"constant: {low}" if low == high else f"{low} to {high}, median {middle}"


def _most_frequent(levels: dict[str, Any], n_present: int, n_distinct: int) -> str:
    if not n_present:
        return "no values"
    top = int(np.argmax(levels["test"]))
    share = number_text(100 * levels["test"][top] / n_present, 3)
    return f"{counted(n_distinct, 'level')}, most often {levels['names'][top]} ({share}%)"


def bin_edges(numbers: Floats) -> Floats:
    """Edges of equal bins for finite numbers; values beyond go to the last ones."""
    finite = np.sort(numbers[np.isfinite(numbers)])
    if not len(finite):
        return np.empty(0)
    low, high = np.quantile(finite, _TAILS)
    distinct = finite[np.flatnonzero(np.diff(finite, prepend=-np.inf))]
    if len(distinct) <= _BINS and len(distinct) > 1:
        between = distinct[:-1] + np.diff(distinct) / 2
        ends = distinct[0] - np.diff(distinct)[0] / 2, distinct[-1] + np.diff(distinct)[-1] / 2
        return np.concatenate([[ends[0]], between, [ends[1]]])
    if not low < high:
        low, high = float(finite[0]), float(finite[-1])
    if not low < high:
        width = abs(low) * 1e-3 or 0.5
        return np.array([low - width, low + width])
    edges = np.linspace(low, high, _BINS + 1)
    edges[0], edges[-1] = min(low, edges[0]), max(high, edges[-1])
    return edges if (np.diff(edges) > 0).all() else np.array([low, high])


def bin_counts(numbers: Floats, edges: Floats) -> list[int]:
    """Number of finite values of each bin; values beyond count in the last ones."""
    finite = numbers[np.isfinite(numbers)]
    index = np.clip(np.searchsorted(edges, finite, side="right") - 1, 0, len(edges) - 2)
    counts: list[int] = np.bincount(index, minlength=len(edges) - 1).tolist()
    return counts


def column_bins(column: Column, train: Column | None) -> dict[str, Any] | None:
    """Histogram of a column of numbers or times."""
    edges = bin_edges(column.numbers)
    if not len(edges) and train is not None:
        edges = bin_edges(train.numbers)
    if not len(edges):
        return None
    return {
        "edges": rounded(edges, column.digits),
        "test": bin_counts(column.numbers, edges),
        "train": None if train is None else bin_counts(train.numbers, edges),
    }


def column_levels(column: Column, train: Column | None) -> dict[str, Any]:
    """Counts of the most frequent levels of a category or of truth values."""
    test_counts = _level_counts(column)
    train_counts = {} if train is None else _level_counts(train)
    names = sorted(
        test_counts | train_counts,
        key=lambda name: (-test_counts.get(name, 0), -train_counts.get(name, 0), name),
    )
    shown, rest = names[:_MOST_LEVELS], names[_MOST_LEVELS:]
    section: dict[str, Any] = {"names": [shown_level(name) for name in shown], "n_other": len(rest)}
    for part, counts in (("test", test_counts), ("train", train_counts)):
        section[part] = [counts.get(name, 0) for name in shown]
        section[f"other_{part}"] = sum(counts.get(name, 0) for name in rest)
    return section if train is not None else section | {"train": None, "other_train": None}


def _level_counts(column: Column) -> dict[str, int]:
    """Number of rows of each level that occurs."""
    present = column.numbers[~column.missing].astype(np.intp)
    counts = np.bincount(present, minlength=len(column.levels))
    by_name: dict[str, int] = {}
    for code in np.flatnonzero(counts).tolist():
        text = level_text(column.levels[code])
        by_name[text] = by_name.get(text, 0) + int(counts[code])
    return by_name


def drift(column: Column, train: Column) -> float:
    """Population stability index of a column between training and test rows.

    It is the sum over bins of (p - q) ln(p / q), where p and q are the shares of the test and of
    the training rows: deciles of the training rows for numbers, levels for categories, and a bin
    of missing values. Half a row is added to each bin, so that empty ones count.
    """
    parts = (column, train)
    if column.has_levels:
        by_name = [_level_counts(part) for part in parts]
        names = sorted(by_name[0] | by_name[1])
        counts = [[part.get(name, 0) for name in names] for part in by_name]
    else:
        finite = train.numbers[np.isfinite(train.numbers)]
        cuts = np.arange(1, _DRIFT_BINS) / _DRIFT_BINS
        edges = np.unique(
            np.quantile(finite if len(finite) else np.zeros(1), cuts, method="inverted_cdf")
        )
        indices = (np.searchsorted(edges, part.numbers[~part.missing]) for part in parts)
        counts = [np.bincount(index, minlength=len(edges) + 1).tolist() for index in indices]
    n_missing = [int(part.missing.sum()) for part in parts]
    if any(n_missing):
        counts = [[*part, n] for part, n in zip(counts, n_missing, strict=True)]
    totals = np.asarray(counts, dtype=np.float64) + 0.5
    test, training = totals / totals.sum(axis=1, keepdims=True)
    return float(((test - training) * np.log(test / training)).sum())
