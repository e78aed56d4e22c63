"""What the training rows in a leaf have for y: quantiles from forests.

A forest that predicts means knows more: the rows of a leaf are a sample of y where x is. For a row
each tree gives the training rows in its leaf equal shares of 1 (or such as their weights say), and
the average of the trees is an estimate of the whole distribution of y (Meinshausen 2006).

`arboost.model.leaf_distributions` says what is kept of it.
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

__all__ = [
    "LeafDistributions",
    "distributions_of",
    "leaf_distributions",
    "predict_quantiles",
    "table_quantiles",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_WEIGHT_BITS = 62  # of the sum of all weights, as integers


def leaf_distributions(
    model: Model, table: Table, y: Floats, weight: Floats | None = None, *, n_threads: int
) -> LeafDistributions:
    """Return the y of the training rows by leaf, of all rows whatever the trees' samples were.

    Parameters
    ----------
    model : Model
    table : Table
        The training rows, with the columns of the model's schema.
    y : float64 array of shape (n_rows,)
        Finite.
    weight : float64 array of shape (n_rows,), optional
        Finite and not negative; None for equal ones. Rows of weight 0 are left out.
    n_threads : int

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.data.table import ingest
    >>> X, y = [[0], [1], [2]], np.array([5.0, 3.0, 9.0])
    >>> model = GradientBoostingRegressor(n_estimators=1, max_depth=1).fit(X, y).model_
    >>> known = leaf_distributions(model, ingest(X, model.schema), y, n_threads=1)
    >>> known.values, known.start, known.rank
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
    # Tree by tree: the leaves of all rows in all trees would take twice the memory of the answer.
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
    """Return quantiles of y for rows that are in these leaves.

    The quantile q is the smallest y at which the shares of the training rows, averaged over the
    trees, reach q: always the y of a training row. Trees whose leaf holds no row are left out; a
    row for which all are has NaN.

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
    >>> known = leaf_distributions(model, ingest(X, model.schema), y, n_threads=1)
    >>> predict_quantiles(known, np.array([[1], [2]]), [0.5, 0.9], n_threads=1)
    array([[3., 5.],
           [9., 9.]])
    """
    wanted = _checked(quantiles)
    if leaves.ndim != 2 or leaves.shape[1] != distributions.n_trees:  # noqa: PLR2004
        raise ValueError(
            f"leaves has shape {leaves.shape}, but the distributions are those of "
            f"{distributions.n_trees} trees. Pass the leaves of all trees."
        )
    answer = np.empty((len(leaves), len(wanted)))
    core.leaf_quantiles(
        distributions=distributions,
        leaves=np.ascontiguousarray(leaves, np.int32),
        quantiles=wanted,
        out=answer,
        n_threads=n_threads,
    )
    return answer if np.ndim(quantiles) else answer[:, 0]


def table_quantiles(
    model: Model,
    table: Table,
    distributions: LeafDistributions,
    quantiles: float | Sequence[float],
    *,
    n_threads: int,
) -> Floats:
    """Return what `predict_quantiles` does for the rows of a table, without all their leaves.

    Parameters
    ----------
    model : Model
    table : Table
        With the columns of the model's schema.
    distributions : LeafDistributions
        Those of the model.
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
    >>> known = leaf_distributions(model, table, y, n_threads=1)
    >>> table_quantiles(model, table, known, 0.5, n_threads=1)
    array([3., 3., 9.])
    """
    wanted = _checked(quantiles)
    answer = np.empty((table.n_rows, len(wanted)))
    core.traverse_quantiles(
        columns=table.columns,
        forest=model.forest,
        distributions=distributions,
        quantiles=wanted,
        out=answer,
        n_threads=n_threads,
    )
    return answer if np.ndim(quantiles) else answer[:, 0]


def distributions_of(model: Model) -> LeafDistributions:
    """Return what the leaves of a model know of y; raise ValueError where they know nothing."""
    if model.distributions is None:
        raise ValueError(
            "predict_quantiles needs the values of y in the leaves, which this model does not "
            "have: only forests of numbers that are fitted with quantiles=True keep them. Fit with "
            "quantiles=True."
        )
    return model.distributions


def _stable_order(codes: Integers) -> NDArray[np.intp]:
    """Return the order of the codes, of equal ones that in which they are.

    NumPy sorts 16 bits by counting, several times faster than by comparing.
    """
    low = codes.astype(np.uint16)
    order = np.argsort(low, kind="stable")
    high = codes >> 16
    while high.any():
        order = order[np.argsort(high[order].astype(np.uint16), kind="stable")]
        high = high >> 16
    return order


def _as_units(weight: Floats) -> Integers:
    """Return the weights times a power of 2, as integers whose sum still is one.

    Whole numbers and their like stay exact.
    """
    if not (np.isfinite(weight).all() and (weight >= 0).all() and (weight > 0).any()):
        raise ValueError(
            "weight has values that are negative or not finite, or all are 0. Pass weights from 0 "
            "on, of which one is above 0."
        )
    _, exponent = np.frexp(weight.max())
    bits = _WEIGHT_BITS - int(exponent) - len(weight).bit_length()
    return np.rint(np.ldexp(weight, bits)).astype(np.int64)


def _shares(units: Integers, count: Integers) -> Integers:
    """Return the cumulated shares of each leaf's weight, for rows leaf by leaf."""
    total = np.concatenate([[0], np.cumsum(units)])
    end = np.cumsum(count)
    before, after = (np.repeat(total[ends], count) for ends in (end - count, end))
    shares: Floats = np.rint((total[1:] - before) / (after - before) * SHARE_UNITS)
    return shares.astype(np.int64)


def _checked(quantiles: float | Sequence[float]) -> Floats:
    try:
        wanted = np.atleast_1d(np.asarray(quantiles, np.float64))
    except (TypeError, ValueError):
        wanted = np.array([np.nan])
    if wanted.ndim != 1 or not ((wanted >= 0) & (wanted <= 1)).all():
        raise ValueError(
            f"quantiles={quantiles!r} is not allowed: quantiles are numbers from 0 to 1. Pass one "
            "of them, or a list."
        )
    return wanted


def _check_rows(table: Table, values: Floats, name: str) -> None:
    if values.shape != (table.n_rows,):
        raise ValueError(
            f"{name} has shape {values.shape}, but the table has {table.n_rows} rows. Pass one "
            "number for each row."
        )
