"""Random problems on values, and trees of the core on their ranks: for the tests of exact trees."""

from __future__ import annotations

import numpy as np

from arboost import _core

TREE_ARRAYS = ("tree_start", "feature", "bin", "left", "default_left", "value", "gain", "cover")


def columns_of(matrix: np.ndarray) -> _core.Columns:
    columns = _core.Columns(len(matrix))
    columns.add_matrix(matrix)
    return columns


def fine_edges(matrix: np.ndarray, n_threads: int = 1) -> list[np.ndarray]:
    """Return the bin edges of the approximate method."""
    return _core.quantiles(columns_of(matrix), None, None, 65535, n_threads)


def fine_codes(matrix: np.ndarray, n_threads: int = 1) -> _core.Codes:
    """Return the codes of the approximate method: a column for each feature, of many bins."""
    edges, plan = fine_edges(matrix, n_threads), _core.StoragePlan()
    return _core.encode(columns_of(matrix), None, edges, n_threads, plan=plan)


def random_values(rng: np.random.Generator, n: int, missing: float = 0.1) -> np.ndarray:
    """Return four features: distinct values, few values, one dominant value, one value only."""
    matrix = np.stack(
        [rng.normal(size=n), rng.integers(0, 7, n), rng.exponential(size=n), np.zeros(n)], axis=1
    )
    matrix[rng.random(n) < 0.5, 2] = 0.2
    matrix[rng.random(matrix.shape) < missing] = np.nan
    return matrix


def random_gradients(
    rng: np.random.Generator, matrix: np.ndarray, outputs: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    signal = np.nan_to_num(matrix[:, :1]) * (np.nan_to_num(matrix[:, 1:2]) > 2) + (
        np.nan_to_num(matrix[:, 2:3], nan=3.0) > 0.2
    )
    shape = (len(matrix), outputs)
    return rng.normal(size=shape) - signal, rng.uniform(0.1, 1.0, shape)


def params_of(candidates: _core.Candidates, **settings: object) -> _core.TreeParams:
    params = _core.TreeParams()
    params.candidates = candidates
    for name, value in settings.items():
        setattr(params, name, value)
    return params


def gradients_of(g: np.ndarray, h: np.ndarray) -> _core.Gradients:
    gradients = _core.Gradients(*g.shape, by_row=True)
    _core.set_gradients(g, h, gradients, 1)
    return gradients


def grow(codes, gradients, params, *, rows=None, sample=None, n_trees=1, n_threads=1):
    """Return the arrays of one grower's trees, all on the same gradients."""
    grower = _core.Grower(codes, gradients.to_numpy().shape[1], params, rows)
    for tree in range(n_trees):
        grower.propose(gradients, n_threads)
        grower.grow(gradients, 0, seed=5, tree=tree, rate=0.5, sample=sample, n_threads=n_threads)
    return grower.trees()


def assert_same_bytes(one, other) -> None:
    for name in TREE_ARRAYS:
        assert one[name].tobytes() == other[name].tobytes(), name
