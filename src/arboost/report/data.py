"""Data of a report: kind, range, missing values and distribution of each column, and drift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.losses.intervals import sample_rows
from arboost.report.inputs import ReportInput
from arboost.report.table import (
    MORE_DIGITS,
    Column,
    ReportTable,
    level_text,
    rounded,
    rounded_number,
    shown_level,
)
from arboost.text import number_text

Floats = NDArray[np.float64]

MOST_COLUMNS = 500
_MOST_CELLS = 10_000_000  # values that are described
_FEWEST_ROWS = 1000
_BINS = 20
_TAILS = (0.005, 0.995)  # quantiles between which bins are equal
_MOST_LEVELS = 12
_DRIFT_BINS = 10


def data_section(inputs: ReportInput, important: Sequence[int]) -> dict[str, Any]:
    """Return the data of the payload; of many columns the important ones."""
    table = inputs.tables[0]
    train = None if inputs.training is None else inputs.training.table
    notes = list(inputs.notes)
    features = list(range(table.n_features))
    if len(features) > MOST_COLUMNS:
        features = sorted(important[:MOST_COLUMNS])
        notes.append(
            f"{MOST_COLUMNS:,} of {table.n_features:,} columns are shown: those of the largest "
            "importances."
        )
    rows = _described_rows(table, len(features))
    train_rows = None if train is None else _described_rows(train, len(features))
    if len(rows) < table.n_rows:
        notes.append(f"Columns are described by {len(rows):,} rows, chosen by hash.")
    columns = []
    for feature in features:
        own = _some(table, feature, rows)
        other = None
        if train is not None and train_rows is not None:
            other = _some(train, feature, train_rows)
        columns.append(_described(own, other))
    return {
        "n_rows": inputs.n_rows,
        "n_train_rows": None if train is None else train.n_rows,
        "n_features": table.n_features,
        "n_weighted": inputs.weight is not None,
        "notes": notes,
        "columns": columns,
        "target": _target(inputs),
    }


def _described_rows(table: ReportTable, n_features: int) -> NDArray[np.intp]:
    most = max(_MOST_CELLS // max(n_features, 1), _FEWEST_ROWS)
    return sample_rows(table.n_rows, most)


def _some(table: ReportTable, feature: int, rows: NDArray[np.intp]) -> Column:
    column = table.column(feature)
    return column if len(rows) == table.n_rows else column.take(rows)


def _target(inputs: ReportInput) -> dict[str, Any]:
    name = inputs.target or "target"
    known = None if inputs.training is None else inputs.training.truth
    if inputs.classes is None:
        other = None if known is None else Column(name, "number", known)
        return _described(Column(name, "number", inputs.truth), other)
    labels = tuple(str(label) for label in inputs.classes.tolist())
    own = Column(name, "category", inputs.truth.astype(np.float64), labels)
    other = None if known is None else Column(name, "category", known.astype(np.float64), labels)
    return _described(own, other)


def _described(column: Column, train: Column | None) -> dict[str, Any]:
    numbers = column.numbers
    present = numbers[~np.isnan(numbers)]
    found: dict[str, Any] = {
        "name": column.name,
        "kind": column.kind,
        "missing": _missing(column),
        "n_distinct": _n_distinct(present),
        "summary": "",
        "bins": None,
        "levels": None,
        "missing_train": None if train is None else _missing(train),
        "drift": None if train is None else rounded_number(drift(column, train)),
    }
    if column.unit:
        found["unit"] = column.unit
    if column.kind in ("number", "time"):
        finite = present[np.isfinite(present)]
        found["summary"] = _range(column, finite)
        found["bins"] = column_bins(column, train)
    else:
        levels = column_levels(column, train)
        found["levels"] = levels
        found["summary"] = _most_frequent(levels, len(present), found["n_distinct"])
    return found


def _missing(column: Column) -> float | int | None:
    if not len(column.numbers):
        return None
    return rounded_number(float(np.isnan(column.numbers).mean()))


def _n_distinct(present: Floats) -> int:
    ordered = np.sort(present)
    return int(len(ordered) > 0) + int(np.count_nonzero(ordered[1:] != ordered[:-1]))


def _range(column: Column, finite: Floats) -> str:
    if not len(finite):
        return "no values"
    low, middle, high = (column.text(x) for x in (finite.min(), np.median(finite), finite.max()))
    return f"constant: {low}" if low == high else f"{low} to {high}, median {middle}"


def _most_frequent(levels: dict[str, Any], n_present: int, n_distinct: int) -> str:
    if not n_present:
        return "no values"
    order = np.argsort(-np.asarray(levels["test"]), kind="stable")
    top = int(order[0])
    share = levels["test"][top] / n_present
    count = f"{n_distinct:,} level{'' if n_distinct == 1 else 's'}"
    return f"{count}, most often {levels['names'][top]} ({number_text(100 * share, 3)} %)"


def bin_edges(numbers: Floats) -> Floats:
    """Return the edges of equal bins for finite numbers; values beyond go to the last ones."""
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


def binned(numbers: Floats, edges: Floats) -> NDArray[np.int64]:
    """Return the number of finite values of each bin; values beyond count in the last ones."""
    finite = numbers[np.isfinite(numbers)]
    place = np.clip(np.searchsorted(edges, finite, side="right") - 1, 0, len(edges) - 2)
    return np.bincount(place, minlength=len(edges) - 1).astype(np.int64)


def column_bins(column: Column, train: Column | None) -> dict[str, Any] | None:
    """Return a histogram of a column of numbers or times."""
    edges = bin_edges(column.numbers)
    if not len(edges) and train is not None:
        edges = bin_edges(train.numbers)
    if not len(edges):
        return None
    digits = 15 if column.kind == "time" else MORE_DIGITS
    return {
        "edges": rounded(edges, digits),
        "test": binned(column.numbers, edges).tolist(),
        "train": None if train is None else binned(train.numbers, edges).tolist(),
    }


def column_levels(column: Column, train: Column | None) -> dict[str, Any]:
    """Return the counts of the most frequent levels of a category or of truth values."""
    own = _counts(column)
    other = {} if train is None else _counts(train)
    names = sorted(own | other, key=lambda name: (-own.get(name, 0), -other.get(name, 0), name))
    shown = names[:_MOST_LEVELS]
    rest = names[_MOST_LEVELS:]
    return {
        "names": [shown_level(name) for name in shown],
        "test": [own.get(name, 0) for name in shown],
        "train": None if train is None else [other.get(name, 0) for name in shown],
        "other_test": sum(own.get(name, 0) for name in rest),
        "other_train": None if train is None else sum(other.get(name, 0) for name in rest),
        "n_other": len(rest),
    }


def _counts(column: Column) -> dict[str, int]:
    """Return the number of rows of each level that occurs."""
    present = column.numbers[~np.isnan(column.numbers)].astype(np.intp)
    if column.kind == "bool":
        labels: Sequence[str | float] = ("False", "True")
    else:
        labels = column.labels
    counts = np.bincount(present, minlength=len(labels))
    found: dict[str, int] = {}
    for code in np.flatnonzero(counts).tolist():
        text = level_text(labels[code])
        found[text] = found.get(text, 0) + int(counts[code])
    return found


def drift(column: Column, train: Column) -> float:
    """Return the population stability index of a column between training and test rows.

    It is the sum over bins of (p - q) ln(p / q), where p and q are the shares of the test and of
    the training rows: deciles of the training rows for numbers, levels for categories, and a bin
    of missing values. Half a row is added to each bin, so that empty ones count.
    """
    if column.kind in ("category", "bool"):
        own, other = _counts(column), _counts(train)
        names = sorted(own | other)
        pairs = [(own.get(name, 0), other.get(name, 0)) for name in names]
    else:
        cuts = np.arange(1, _DRIFT_BINS) / _DRIFT_BINS
        edges = np.unique(np.quantile(_finite(train), cuts, method="inverted_cdf"))
        pairs = list(zip(_by_edges(column, edges), _by_edges(train, edges), strict=True))
    missing = [int(np.isnan(one_of.numbers).sum()) for one_of in (column, train)]
    if any(missing):
        pairs.append((missing[0], missing[1]))
    counts = np.asarray(pairs, dtype=np.float64).reshape(-1, 2) + 0.5
    shares = counts / counts.sum(axis=0)
    return float(((shares[:, 0] - shares[:, 1]) * np.log(shares[:, 0] / shares[:, 1])).sum())


def _finite(column: Column) -> Floats:
    finite = column.numbers[np.isfinite(column.numbers)]
    return finite if len(finite) else np.zeros(1)


def _by_edges(column: Column, edges: Floats) -> list[int]:
    present = column.numbers[~np.isnan(column.numbers)]
    place = np.searchsorted(edges, present, side="left")
    found: list[int] = np.bincount(place, minlength=len(edges) + 1).tolist()
    return found
