"""Means and medians of y over the rows of each node, set by the core."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import Dataset, _core
from arboost.params.boosting import LEVELS
from arboost.trees.grower import TreeParams, make_grower

ROWS = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 3))
Y = np.column_stack([X[:, 0] + RNG.normal(size=ROWS), 1e5 * RNG.normal(size=ROWS)])
WEIGHT = RNG.random(ROWS) + 0.5


def grown(width=2, sample=None, rows=None):
    data = Dataset(X)
    params = TreeParams(
        max_depth=4,
        max_leaves=None,
        grow_policy="depthwise",
        min_child_weight=0.0,
        min_samples_leaf=5,
        gamma=0.0,
        reg_lambda=0.0,
        reg_alpha=0.0,
        max_delta_step=0.0,
        **{name: param.default for name, param in LEVELS.items()},
    )
    grower = make_grower(data.binned, params, width, rows)
    n = ROWS if rows is None else len(rows)
    gradients = _core.Gradients(n, width, by_row=width > 1)
    target = Y[:n, :width] if rows is None else Y[rows, :width]
    _core.set_gradients(-np.ascontiguousarray(target), np.ones((n, width)), gradients, 1)
    grower.grow(gradients, 0, seed=0, tree=0, rate=1.0, sample=sample, n_threads=1)
    return grower, data


def by_hand(grower, weight, centre):
    """The mean or median of y over the rows of each node, from the leaves up."""
    trees, node = grower.trees(), grower.leaf_of_row().astype(np.int64)
    n_nodes = len(trees["left"])
    parent = np.full(n_nodes, -1)
    for inner in np.flatnonzero(trees["left"]):
        parent[trees["left"][inner] : trees["left"][inner] + 2] = inner
    members = [[] for _ in range(n_nodes)]
    for row in np.flatnonzero(node < n_nodes):
        at = node[row]
        while at >= 0:
            members[at].append(row)
            at = parent[at]
    return np.array([[centre(Y[rows, k], weight[rows]) for k in (0, 1)] for rows in members])


def median(values, weight):
    order = np.argsort(values)
    reached = np.cumsum(weight[order])
    place = np.flatnonzero(reached >= reached[-1] / 2)[0]
    if reached[place] > reached[-1] / 2:
        return values[order[place]]
    return values[order[place : place + 2]].mean()


def mean(values, weight):
    return np.average(values, weights=weight)


@pytest.mark.parametrize("centre", [mean, median])
@pytest.mark.parametrize("drawn", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_centres(centre, drawn, weighted):
    sample, count = None, np.ones(ROWS)
    if drawn:
        sample = _core.Sample()
        sample.draw_with_replacement(ROWS, ROWS, 0, 0, 1)
        count = np.zeros(ROWS)
        count[sample.positions()] = sample.weights()
    grower, _ = grown(sample=sample)
    set_values = grower.set_means if centre is mean else grower.set_medians
    set_values(_core.LeafTarget(Y, WEIGHT if weighted else None), sets_covers=drawn)
    expected = by_hand(grower, count * (WEIGHT if weighted else 1.0), centre)
    trees = grower.trees()
    actual = trees["value"].reshape(-1, 2)
    assert len(actual) > 10
    np.testing.assert_allclose(actual, expected, rtol=1e-10)
    total = (count * WEIGHT).sum() if weighted and drawn else ROWS  # else those of the gradients
    np.testing.assert_allclose(trees["cover"][0], total, rtol=1e-10)


def test_what_does_not_fit():
    grower, _ = grown()
    others = ((Y[:, :1].copy(), None), (Y[:9], None), (Y, WEIGHT[:9]))
    for set_values in (grower.set_means, grower.set_medians):
        for y, weight in others:
            with pytest.raises(ValueError, match="do not fit"):
                set_values(_core.LeafTarget(y, weight))
    grower.drop_last()
    with pytest.raises(ValueError, match="rows are not known"):
        grower.set_means(_core.LeafTarget(Y, None))
