"""Cost-complexity pruning of scikit-learn's trees, and the definition by brute force."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from arboost import _core
from arboost.trees.forest import Forest
from arboost.trees.pruning import mean_decreases, pruned, pruning_path
from support.random_models import random_forest


def impurity_decreases(forest, impurity):
    """Decrease of impurity of each split times the weight of its node, of a single tree."""
    split = np.flatnonzero(forest.is_split)
    left = forest.left[split]
    amount = forest.cover * impurity
    decrease = np.zeros(forest.n_nodes)
    decrease[split] = amount[split] - amount[left] - amount[left + 1]
    return decrease


def converted(estimator, *, two_as_one=False):
    """A fitted tree of scikit-learn as a Forest: nodes level by level, siblings adjacent."""
    tree = estimator.tree_
    order, left = [0], []
    for node in order:
        is_leaf = tree.children_left[node] < 0
        left.append(0 if is_leaf else len(order))
        if not is_leaf:
            order += [tree.children_left[node], tree.children_right[node]]
    value = tree.value[order].reshape(len(order), -1)
    if two_as_one:
        value = value[:, 1:] - value[:, :1]
    forest = Forest(
        tree_start=[0, len(order)],
        feature=np.where(left, tree.feature[order], 0),
        threshold=np.where(left, tree.threshold[order], 0.0),
        left=left,
        default_left=np.zeros(len(order), bool),
        value=value,
        gain=np.zeros(len(order)),
        cover=tree.weighted_n_node_samples[order],
        output=[0],
    )
    return forest, tree.impurity[order]


def assert_same_tree(actual, expected):
    """The same tree up to the order of nodes of equal depth."""
    for name in ("feature", "threshold", "left", "cover", "value"):
        np.testing.assert_allclose(getattr(actual, name), getattr(expected, name), rtol=1e-12)


def continuous(load):
    """Rows of random features and weights, so that hardly two splits have equal decreases."""
    X, y = load(return_X_y=True)
    rng = np.random.default_rng(5)
    X = X + rng.normal(scale=0.5 * X.std(axis=0), size=X.shape)
    return X, y, rng.uniform(0.5, 2.0, len(y))


TREES = {
    "gini, three classes": (DecisionTreeClassifier, load_iris, 1.0, False),
    "gini, two classes": (DecisionTreeClassifier, load_breast_cancer, 1.0, False),
    "gini, two classes in one": (DecisionTreeClassifier, load_breast_cancer, 0.5, True),
    "squared error": (DecisionTreeRegressor, load_diabetes, 1.0, False),
}


@pytest.mark.parametrize("case", TREES)
def test_scikit_learns_trees(case):
    kind, load, scale, two_as_one = TREES[case]
    X, y, weight = continuous(load)
    whole = kind(random_state=0).fit(X, y, weight)
    forest, impurity = converted(whole, two_as_one=two_as_one)
    decrease = mean_decreases(forest, scale)
    np.testing.assert_allclose(
        decrease, impurity_decreases(forest, impurity), rtol=1e-6, atol=1e-7 * impurity[0]
    )
    path = pruning_path(forest, decrease, impurity[0])
    expected = kind(random_state=0).cost_complexity_pruning_path(X, y, weight)
    np.testing.assert_allclose(path.ccp_alphas, expected.ccp_alphas, rtol=1e-6, atol=1e-10)
    tolerance = 1e-9 * impurity[0]
    np.testing.assert_allclose(path.impurities, expected.impurities, rtol=1e-6, atol=tolerance)

    between = (expected.ccp_alphas[:-1] + expected.ccp_alphas[1:]) / 2
    chosen = between[np.linspace(0, len(between) - 1, 8).astype(int)]
    # Splits of decrease 0 have alphas of rounding size, which differ from scikit-learn's.
    for alpha in [*chosen[chosen > 1e-12], expected.ccp_alphas[-1] * 2]:
        smaller = kind(random_state=0, ccp_alpha=alpha).fit(X, y, weight)
        expected_tree, _ = converted(smaller, two_as_one=two_as_one)
        assert_same_tree(pruned(forest, decrease, alpha), expected_tree)


def test_other_criteria_by_impurities_of_nodes():
    X, y, weight = continuous(load_iris)
    params = {"criterion": "entropy", "random_state": 0}
    whole = DecisionTreeClassifier(**params).fit(X, y, weight)
    forest, impurity = converted(whole)
    decrease = impurity_decreases(forest, impurity)
    path = pruning_path(forest, decrease, impurity[0])
    expected = DecisionTreeClassifier(**params).cost_complexity_pruning_path(X, y, weight)
    np.testing.assert_allclose(path.ccp_alphas, expected.ccp_alphas, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(path.impurities, expected.impurities, rtol=1e-9, atol=1e-12)
    alpha = path.ccp_alphas[len(path.ccp_alphas) // 2] * 1.0001
    smaller = DecisionTreeClassifier(**params, ccp_alpha=alpha).fit(X, y, weight)
    assert_same_tree(pruned(forest, decrease, alpha), converted(smaller)[0])


def test_several_targets_are_averaged():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.stack([X[:, 0] + rng.normal(size=200), X[:, 1] ** 2], axis=1)
    forest, impurity = converted(DecisionTreeRegressor(random_state=0).fit(X, y))
    path = pruning_path(forest, mean_decreases(forest, 0.5), impurity[0])
    expected = DecisionTreeRegressor(random_state=0).cost_complexity_pruning_path(X, y)
    np.testing.assert_allclose(path.ccp_alphas, expected.ccp_alphas, rtol=1e-6, atol=1e-10)
    np.testing.assert_array_equal(mean_decreases(forest, [0.5, 0.5]), mean_decreases(forest, 0.5))


def test_alphas_of_the_path_lead_to_its_trees():
    whole = DecisionTreeRegressor(random_state=0).fit(*load_diabetes(return_X_y=True))
    forest, impurity = converted(whole)
    decrease = mean_decreases(forest)
    path = pruning_path(forest, decrease, impurity[0])
    for step in np.unique(np.linspace(0, len(path.ccp_alphas) - 1, 25).astype(int)):
        alpha = path.ccp_alphas[step]
        last = np.flatnonzero(path.ccp_alphas <= alpha)[-1] if alpha else 0  # equal ones all go
        tree = pruned(forest, decrease, alpha)
        tree.validate(10, 1)
        left_over = impurity[0] - mean_decreases(tree).sum() / tree.cover[0]
        assert left_over == pytest.approx(path.impurities[last], abs=1e-9 * impurity[0])
    assert tree.n_nodes == 1
    assert path.impurities[-1] == impurity[0]


def subtrees(left, decrease, node=0):
    """Every way to prune a branch: (kept decrease, number of splits)."""
    if left[node] == 0:
        return [(Fraction(0), 0)]
    ways = [(Fraction(0), 0)]
    for a in subtrees(left, decrease, left[node]):
        for b in subtrees(left, decrease, left[node] + 1):
            ways += [(decrease[node] + a[0] + b[0], 1 + a[1] + b[1])]
    return ways


@st.composite
def small_trees(draw):
    left, leaves = [0], [0]
    for _ in range(draw(st.integers(0, 6))):
        node = leaves.pop(draw(st.integers(0, len(leaves) - 1)))
        left[node] = len(left)
        leaves += [len(left), len(left) + 1]
        left += [0, 0]
    # Small integers: many branches have equal decreases.
    return left, draw(st.lists(st.integers(0, 4), min_size=len(left), max_size=len(left)))


@settings(max_examples=200)
@given(tree=small_trees(), alpha=st.fractions(Fraction(1, 4), 5, max_denominator=4))
def test_the_smallest_of_the_cheapest_trees(tree, alpha):
    left, decrease = tree
    n_nodes = len(left)
    forest = Forest(
        tree_start=[0, n_nodes],
        feature=np.zeros(n_nodes),
        threshold=np.arange(n_nodes),
        left=left,
        default_left=np.zeros(n_nodes, bool),
        value=np.arange(n_nodes)[:, None],
        gain=np.array(decrease, float),
        cover=np.ones(n_nodes),
        output=[0],
    )
    worth, size = max(
        subtrees(left, [Fraction(one) for one in decrease]),
        key=lambda way: (way[0] - alpha * way[1], -way[1]),
    )
    actual = pruned(forest, np.array(decrease, float), float(alpha))
    assert actual.is_split.sum() == size
    assert actual.gain[actual.is_split].sum() == worth


def test_forests_are_pruned_tree_by_tree(rng):
    forest = random_forest(rng, 15, 4, 1, 1, n_splits=30, categories=[1])
    decrease = rng.random(forest.n_nodes)
    actual = pruned(forest, decrease, 0.45)
    actual.validate(4, 1)
    assert 15 < actual.n_nodes < forest.n_nodes
    assert 0 < len(actual.level_sets) < len(forest.level_sets)
    for tree in range(15):
        span = slice(*forest.tree_start[tree : tree + 2])
        alone = pruned(forest.single_tree(tree), decrease[span], 0.45)
        for name in ("left", "feature", "threshold", "value", "cover", "level_set", "level_sets"):
            expected, one = getattr(actual.single_tree(tree), name), getattr(alone, name)
            np.testing.assert_array_equal(one, expected)
        # Every kept node has the same split as before, or is a leaf.
        before = {(*forest.value[node],): node for node in range(span.start, span.stop)}
        for node, value in enumerate(alone.value):
            old = before[(*value,)]
            if alone.left[node]:
                assert alone.feature[node] == forest.feature[old]
                assert alone.threshold[node] == forest.threshold[old]
                if alone.level_set[node] >= 0:
                    np.testing.assert_array_equal(
                        alone.level_sets[alone.level_set[node]],
                        forest.level_sets[forest.level_set[old]],
                    )


def test_nothing_and_everything(rng):
    forest = random_forest(rng, 5, 4, 1, 1)
    decrease = rng.random(forest.n_nodes) + 0.1
    decrease[np.flatnonzero(forest.is_split)[-1]] = 0.0  # of decrease 0, and kept with ccp_alpha=0
    assert pruned(forest, decrease, 0.0) is forest
    slightly = pruned(forest, decrease, 1e-9)
    assert slightly.n_nodes == forest.n_nodes - 2
    roots = pruned(forest, decrease, np.inf)
    assert roots.n_nodes == 5
    np.testing.assert_array_equal(roots.value, forest.value[forest.tree_start[:-1]])
    lone = pruning_path(roots, np.zeros(5), 0.7, tree=3)
    assert lone.ccp_alphas.tolist() == [0.0]
    assert lone.impurities.tolist() == [0.7]


def test_deep_chains_do_not_overflow():
    """Splits below each other, each with a leaf: as deep as trees can be."""
    n = 5_000
    left = np.zeros(2 * n + 1, np.int32)
    left[np.concatenate([[0], np.arange(2, 2 * n, 2)])] = np.arange(1, 2 * n, 2)
    nodes, alphas, kept = _core.prune_order(left, np.arange(2 * n + 1, 0, -1.0))
    assert len(nodes) == len(alphas) == len(kept) - 1 == n
    assert nodes[-1] == 0
    assert kept[-1] == 0


def test_bad_input():
    forest = random_forest(np.random.default_rng(0), 2, 2, 1, 1)
    with pytest.raises(ValueError, match="one decrease for each node"):
        pruned(forest, np.zeros(1), 0.1)
    bad = {"a lost node": [0, 0], "outside": [1, 0], "two parents": [1, 3, 3, 0, 0, 0]}
    for what, left in bad.items():
        with pytest.raises(ValueError, match=what):
            _core.prune_order(np.array(left, np.int32), np.zeros(len(left)))
    with pytest.raises(ValueError, match="without nodes"):
        _core.prune_order(np.zeros(0, np.int32), np.zeros(0))
    with pytest.raises(ValueError, match="another number of nodes"):
        _core.prune_order(np.zeros(1, np.int32), np.zeros(2))
