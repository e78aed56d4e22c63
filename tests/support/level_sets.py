"""Random problems with categories, and trees of the core on them: for tests of level sets."""

from __future__ import annotations

import numpy as np

from arboost import _core
from arboost.data.levels import Levels
from arboost.data.schema import Schema
from support.ranked import columns_of, gradients_of, params_of

TREE_ARRAYS = (
    "tree_start feature bin left default_left set sets value gain cover".split()  # noqa: SIM905
)
METHODS = ("hist", "exact", "per_round", "per_node")


def schema_of(n_levels, names=None):
    """Return a schema of numeric columns, and of categories with the levels 0, 1, ..."""
    levels = tuple(Levels("number", np.arange(float(n))) if n else None for n in n_levels)
    return Schema(names=names, n_features=len(n_levels), levels=levels if any(n_levels) else ())


def table_of(matrix, n_levels, method="hist"):
    """Return the codes of a matrix; NaN is missing, n_levels[f] is 0 for numeric columns."""
    columns = columns_of(np.asarray(matrix, float))
    if method == "exact":
        return _core.rank(columns, None, 1, n_levels)
    n_bins = [n or int(np.nanmax(matrix[:, f], initial=0)) + 1 for f, n in enumerate(n_levels)]
    edges = [np.arange(n - 1) + 0.5 for n in n_bins]
    return _core.encode(columns, None, edges, 1, [n > 0 for n in n_levels])


def core_params(s, method="hist", **more):
    kinds = _core.Candidates
    candidates = {"hist": kinds.bins, "exact": kinds.values}.get(method)
    given_ = {name: None if value == np.inf else value for name, value in vars(s).items()}
    if candidates is None:
        candidates = getattr(kinds, method)
    return params_of(candidates, **given_, **more)


def grow(codes, g, h, params, n_threads=1):
    gradients = gradients_of(g, h)
    grower = _core.Grower(codes, g.shape[1], params)
    grower.propose(gradients, n_threads)
    grower.grow(gradients, 0, seed=0, tree=0, rate=1.0, n_threads=n_threads)
    return grower, gradients


def levels_of(words):
    return frozenset(c for c in range(256) if int(words[c // 64]) >> (c % 64) & 1)


def random_problem(rng, n, n_levels, outputs=1, missing=0.1):
    tops = [levels or 20 for levels in n_levels]
    matrix = np.stack([rng.integers(0, top, n) for top in tops], axis=1).astype(float)
    effects = [rng.normal(size=(top, outputs)) for top in tops]
    g = sum(effect[column.astype(int)] for effect, column in zip(effects, matrix.T, strict=True))
    g = g + rng.normal(size=(n, outputs))
    matrix[rng.random(matrix.shape) < missing] = np.nan
    return matrix, g, rng.uniform(0.1, 1.0, (n, outputs))


def wide_problem(outputs=1):
    n_levels = [255, 0, 40, 3, 0, 120]
    return n_levels, *random_problem(np.random.default_rng(6), 60_000, n_levels, outputs, 0.05)
