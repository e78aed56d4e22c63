"""Trees of the core on random codes and gradients."""

from __future__ import annotations

import numpy as np

from arboost import _core
from support.reference import Settings

TREE_ARRAYS = ("tree_start", "feature", "bin", "left", "default_left", "value", "gain", "cover")


def encode(codes: np.ndarray, n_bins: list[int]) -> _core.Codes:
    """Return the core's codes of a matrix of codes; -1 is missing."""
    values = np.where(codes < 0, np.nan, codes.astype(float))
    columns = _core.Columns(len(codes))
    columns.add_matrix(values)
    edges = [np.arange(n - 1) + 0.5 for n in n_bins]
    return _core.encode(columns, None, edges, 1)


def core_params(s: Settings, **more: object) -> _core.TreeParams:
    params = _core.TreeParams()
    for name, value in (vars(s) | more).items():
        setattr(params, name, None if value == np.inf else value)
    return params


def grow(codes, n_bins, g, h, s, *, n_threads=1, seed=0, turn=0, **more):
    """Return tree arrays, leaf of each row and gradients for matrices g, h (n, outputs)."""
    gradients = _core.Gradients(*g.shape, by_row=True)
    _core.set_gradients(g, h, gradients, n_threads)
    grower = _core.Grower(encode(codes, n_bins), g.shape[1], core_params(s, **more))
    grower.grow(gradients, 0, seed=seed, tree=0, rate=1.0, turn=turn, n_threads=n_threads)
    return grower.trees(), grower.leaf_of_row(), gradients


def wide_problem(n=60_000, features=9, outputs=1, seed=6):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 200, (n, features))
    codes[rng.random(codes.shape) < 0.05] = -1
    g = rng.normal(size=(n, outputs)) + np.sin(codes[:, :1] / 9) * (codes[:, 1:2] > 90)
    return codes, [200] * features, g, rng.uniform(0.1, 1, g.shape)


def gradients_of(g, h):
    out = _core.Gradients(*g.shape, by_row=g.shape[1] > 1)
    _core.set_gradients(g, h, out, 1)
    return out
