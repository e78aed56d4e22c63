"""Tables for exclusive feature bundling, in every storage: for the tests of storage."""

from __future__ import annotations

import numpy as np

from arboost import _core
from arboost.data.bins import storage_plan
from support.ranked import gradients_of, params_of

ARRAYS = (
    "tree_start",
    "feature",
    "bin",
    "left",
    "default_left",
    "set",
    "sets",
    "value",
    "gain",
    "cover",
)


def one_hot(rng: np.random.Generator, n: int, levels: int, rare: float = 0.0) -> np.ndarray:
    """Return the flags of a category; with `rare`, most rows have no flag."""
    level = rng.integers(0, levels, n)
    level[rng.random(n) < rare] = -1
    return (level[:, None] == np.arange(levels)).astype(float)


def mixed_table(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return one-hot groups, few values, missing values, constants, rare and dense numbers."""
    few = rng.integers(0, 4, (n, 3)).astype(float)
    few[rng.random(few.shape) < 0.1] = np.nan
    rare = np.where(rng.random((n, 3)) < 0.02, rng.normal(size=(n, 3)).round(1), 0.0)
    mostly_missing = np.where(rng.random((n, 1)) < 0.05, 1.0 + rng.integers(0, 3, (n, 1)), np.nan)
    mostly_one = (rng.random((n, 2)) < 0.97).astype(float)
    parts = [
        one_hot(rng, n, 12),
        rng.normal(size=(n, 2)),
        few,
        rare,
        np.full((n, 1), 3.0),
        one_hot(rng, n, 30, rare=0.6),
        mostly_missing,
        mostly_one,
        np.full((n, 1), np.nan),
        one_hot(rng, n, 3, rare=0.5) * 2 - 1,
    ]
    return np.hstack(parts)


def dense(matrix: np.ndarray) -> _core.Columns:
    columns = _core.Columns(len(matrix))
    columns.add_matrix(matrix)
    return columns


def sparse(matrix, *, stored: float = 0.5, fill_with: float | None = None) -> _core.Columns:
    """Return the columns, sparse where at most `stored` of the rows differ from the fill value.

    The fill value is the most frequent value, or `fill_with`.
    """
    columns = _core.Columns(len(matrix))
    for column in matrix.T:
        values, counts = np.unique(column, return_counts=True)
        fill = values[counts.argmax()] if fill_with is None else fill_with
        rows = np.flatnonzero((column != fill) & ~(np.isnan(column) & np.isnan(fill)))
        if len(rows) > stored * len(matrix):
            columns.add(column)
        else:
            columns.add_sparse(rows.astype(np.uint32), column[rows], float(fill))
    return columns


def encode(columns, edges, *, rows=None, bundling=True, rate=0.0, categorical=(), n_threads=1):
    plan = storage_plan(
        columns,
        rows,
        edges,
        categorical=categorical,
        bundling=bundling,
        max_conflict_rate=rate,
        n_threads=n_threads,
    )
    return _core.encode(columns, rows, edges, n_threads, list(categorical), plan)


def every_storage(matrix, edges, *, rows=None, categorical=()):
    """Return the codes of a table by storage: plain, bundled, sparse, and both with two fills."""
    more = {"rows": rows, "categorical": categorical}
    return {
        "plain": _core.encode(dense(matrix), rows, edges, 1, list(categorical)),
        "shared": encode(dense(matrix), edges, **more),
        "sparse": encode(sparse(matrix), edges, bundling=False, **more),
        "both": encode(sparse(matrix), edges, **more),
        "zeros": encode(sparse(matrix, stored=1.0, fill_with=0.0), edges, **more),
    }


def target(rng: np.random.Generator, matrix: np.ndarray, outputs: int):
    """Return gradients and hessians that depend on all kinds of columns."""
    known = np.nan_to_num(matrix, nan=-0.5)
    weights = rng.normal(size=(matrix.shape[1], outputs))
    signal = known @ weights + (known[:, :1] * known[:, 12:13])
    return signal + rng.normal(size=signal.shape), rng.uniform(0.1, 1.0, signal.shape)


def trees_of(codes, g, h, *, rows=None, sample=None, n_trees=3, n_threads=1, validation=(), **kw):
    """Return tree arrays, leaves of the training rows, and scores of validation tables.

    Gradients change from tree to tree, as in a fit.
    """
    grower = _core.Grower(codes, g.shape[1], params_of(_core.Candidates.bins, **kw), rows)
    scores = [np.zeros((part.n_rows, g.shape[1])) for part in validation]
    for tree in range(n_trees):
        gradients = gradients_of(np.roll(g, tree, axis=0), h)
        grower.grow(
            gradients,
            0,
            seed=5,
            tree=tree,
            rate=0.5,
            turn=7 * tree,
            sample=sample,
            n_threads=n_threads,
        )
        for part, out in zip(validation, scores, strict=True):
            grower.add_tree(tree, 1.0, part, None, out, 0, n_threads)
    return grower.trees(), grower.leaf_of_row(), scores


def assert_same(one, other) -> None:
    for name in ARRAYS:
        assert one[0][name].tobytes() == other[0][name].tobytes(), name
    np.testing.assert_array_equal(one[1], other[1])
    for a, b in zip(one[2], other[2], strict=True):
        np.testing.assert_array_equal(a, b)
