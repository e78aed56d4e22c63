"""Quantile predictions of regression forests, from the y of the training rows in each leaf.

The training rows of a leaf are a sample of y given x. For a row, each tree gives the training rows
in its leaf equal shares of 1 (or shares in proportion to their weights), and the mean over the
trees estimates the whole distribution of y (quantile regression forests, Meinshausen 2006).

`arboost.model.leaf_distributions` has the stored arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.table import Table
from arboost.model.leaf_distributions import SHARE_UNITS, LeafDistributions
from arboost.model.leaves import forest_leaves
from arboost.model.model import Model
from arboost.model.on_device import refuse_device

__all__ = [
    "LeafDistributions",
    "distributions_of",
    "leaf_distributions",
    "predict_quantiles",
    "table_quantiles",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_WEIGHT_BITS = 62  # bits of the sum of all weights, as integers


def leaf_distributions(
    model: Model, table: Table, y: Floats, weight: Floats | None = None, *, n_threads: int
) -> LeafDistributions:
    """Return the y of all training rows by leaf, whether or not a tree was grown on the row.

    Parameters
    ----------
    model : Model
    table : Table
        The training rows, with the columns of the model's schema.
    y : float64 array of shape (n_rows,)
        Finite.
    weight : float64 array of shape (n_rows,), optional
        Finite and not negative; None for equal weights. Rows of weight 0 are left out.
    n_threads : int

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.data.table import ingest
    >>> X, y = [[0], [1], [2]], np.array([5.0, 3.0, 9.0])
    >>> model = GradientBoostingRegressor(n_estimators=1, max_depth=1).fit(X, y).model_
    >>> in_leaves = leaf_distributions(model, ingest(X, model.schema), y, n_threads=1)
    >>> in_leaves.values, in_leaves.start, in_leaves.rank
    (array([3., 5., 9.]), array([0, 0, 2, 3]), array([0, 1, 2], dtype=int32))
    """
    _check_rows(table, y, "y")
    units = None
    if weight is not None:
        _check_rows(table, weight, "weight")
        units = _as_units(weight)
    values, inverse = np.unique(y, return_inverse=True)
    ascending = np.argsort(inverse, kind="stable")
    if units is not None:
        ascending = ascending[units[ascending] > 0]
        units = units[ascending]
    rank = inverse[ascending].astype(np.int32)
    forest, n_trees, size = model.forest, model.n_trees, len(ascending)
    n_nodes = np.diff(forest.tree_start)
    ranks = np.empty(n_trees * size, np.int32)
    upto = np.empty(0 if units is None else n_trees * size, np.int64)
    counts = []
    # Tree by tree: the leaves of all rows in all trees would take twice the memory of the result.
    for tree in range(n_trees):
        leaf = forest_leaves(forest.only(tree), table, n_threads=n_threads)[ascending, 0]
        by_leaf = _stable_order(leaf)
        count = np.bincount(leaf, minlength=int(n_nodes[tree]))
        own = slice(tree * size, (tree + 1) * size)
        ranks[own] = rank[by_leaf]
        if units is not None:
            upto[own] = _shares(units[by_leaf], count)
        counts.append(count)
    start = np.concatenate([[0], *counts]).cumsum()
    return LeafDistributions(
        tree_start=forest.tree_start, start=start, rank=ranks, upto=upto, values=values
    )


def predict_quantiles(
    distributions: LeafDistributions,
    leaves: Integers,
    quantiles: float | Sequence[float],
    *,
    n_threads: int,
) -> Floats:
    """Return quantiles of y for rows, given their leaves.

    The quantile q is the smallest y at which the shares of the training rows, averaged over the
    trees, reach q: always the y of a training row. Trees whose leaf holds no training row are left
    out; a row for which all trees are left out gets NaN.

    Parameters
    ----------
    distributions : LeafDistributions
    leaves : int32 array of shape (n_rows, n_trees)
        As `arboost.model.leaves.leaf_ids` returns them.
    quantiles : float or sequence of float
        Between 0 and 1.
    n_threads : int

    Returns
    -------
    float64 array of shape (n_rows, n_quantiles), or (n_rows,) for one float

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.data.table import ingest
    >>> X, y = [[0], [1], [2]], np.array([5.0, 3.0, 9.0])
    >>> model = GradientBoostingRegressor(n_estimators=1, max_depth=1).fit(X, y).model_
    >>> in_leaves = leaf_distributions(model, ingest(X, model.schema), y, n_threads=1)
    >>> predict_quantiles(in_leaves, np.array([[1], [2]]), [0.5, 0.9], n_threads=1)
    array([[3., 5.],
           [9., 9.]])
    """
    checked = _checked(quantiles)
    if leaves.ndim != 2 or leaves.shape[1] != distributions.n_trees:  # noqa: PLR2004
        raise ValueError(
            f"leaves has shape {leaves.shape}, but the distributions are those of "
            f"{distributions.n_trees} trees. Pass the leaves of all trees."
        )
    result = np.empty((len(leaves), len(checked)))
    core.leaf_quantiles(
        distributions=distributions,
        leaves=np.ascontiguousarray(leaves, np.int32),
        quantiles=checked,
        out=result,
        n_threads=n_threads,
    )
    return result if np.ndim(quantiles) else result[:, 0]


def table_quantiles(
    model: Model,
    table: Table,
    distributions: LeafDistributions,
    quantiles: float | Sequence[float],
    *,
    n_threads: int,
) -> Floats:
    """Return quantiles of y, as `predict_quantiles` does, without an array of all rows' leaves.

    Parameters
    ----------
    model : Model
    table : Table
        With the columns of the model's schema.
    distributions : LeafDistributions
        Distributions of the model's leaves.
    quantiles : float or sequence of float
        Between 0 and 1.
    n_threads : int

    Returns
    -------
    float64 array of shape (n_rows, n_quantiles), or (n_rows,) for one float

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.data.table import ingest
    >>> X, y = [[0], [1], [2]], np.array([5.0, 3.0, 9.0])
    >>> model = GradientBoostingRegressor(n_estimators=1, max_depth=1).fit(X, y).model_
    >>> table = ingest(X, model.schema)
    >>> in_leaves = leaf_distributions(model, table, y, n_threads=1)
    >>> table_quantiles(model, table, in_leaves, 0.5, n_threads=1)
    array([3., 3., 9.])
    """
    refuse_device(model, "predict_quantiles")
    checked = _checked(quantiles)
    result = np.empty((table.n_rows, len(checked)))
    core.traverse_quantiles(
        columns=table.columns,
        forest=model.forest,
        distributions=distributions,
        quantiles=checked,
        out=result,
        n_threads=n_threads,
    )
    return result if np.ndim(quantiles) else result[:, 0]


def distributions_of(model: Model) -> LeafDistributions:
    """Return the leaf distributions of a model; raise ValueError if it has none."""
    if model.distributions is None:
        raise ValueError(
            "predict_quantiles needs the values of y in the leaves, which this model does not "
            "have: only forest regressors that are fitted with quantiles=True keep them. Fit with "
            "quantiles=True."
        )
    return model.distributions


def _stable_order(codes: Integers) -> NDArray[np.intp]:
    """Return the indices that sort the codes, stably.

    NumPy has a radix sort for 16 bits, several times faster than one by comparisons.
    """
    low = codes.astype(np.uint16)
    order = np.argsort(low, kind="stable")
    high = codes >> 16
    while high.any():
        order = order[np.argsort(high[order].astype(np.uint16), kind="stable")]
        high = high >> 16
    return order


def _as_units(weight: Floats) -> Integers:
    """Return the weights times a power of 2, as integers whose sum still fits an int64.

    Integers and short binary fractions stay exact.
    """
    if not (np.isfinite(weight).all() and (weight >= 0).all() and (weight > 0).any()):
        raise ValueError(
            "weight has values that are negative or not finite, or all are 0. Pass weights of at "
            "least 0, one of them above 0."
        )
    _, exponent = np.frexp(weight.max())
    bits = _WEIGHT_BITS - int(exponent) - len(weight).bit_length()
    return np.rint(np.ldexp(weight, bits)).astype(np.int64)


def _shares(units: Integers, count: Integers) -> Integers:
    """Return the cumulative shares of each leaf's weight, for rows sorted by leaf."""
    total = np.concatenate([[0], np.cumsum(units)])
    end = np.cumsum(count)
    before, after = (np.repeat(total[ends], count) for ends in (end - count, end))
    shares: Floats = np.rint((total[1:] - before) / (after - before) * SHARE_UNITS)
    return shares.astype(np.int64)


def _checked(quantiles: float | Sequence[float]) -> Floats:
    try:
        checked = np.atleast_1d(np.asarray(quantiles, np.float64))
    except (TypeError, ValueError):
        checked = np.array([np.nan])
    if checked.ndim != 1 or not ((checked >= 0) & (checked <= 1)).all():
        raise ValueError(
            f"quantiles={quantiles!r} is not allowed: quantiles are numbers from 0 to 1. Pass one "
            "of them, or a list."
        )
    return checked


def _check_rows(table: Table, values: Floats, name: str) -> None:
    if values.shape != (table.n_rows,):
        raise ValueError(
            f"{name} has shape {values.shape}, but the table has {table.n_rows} rows. Pass one "
            "number for each row."
        )
