"""CART trees: limits, splits without gain, random cuts, and criteria."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import _core
from support.cart import Cart, encode, grow
from support.cart_cases import NAMES, assert_same_as_sklearn, dense, one_hot, problem, sklearn_tree

LIMITS = [
    {},
    {"min_samples_split": 25},
    {"min_samples_leaf": 7},
    {"min_samples_split": 30, "min_samples_leaf": 4, "max_depth": 4},
]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize(("kind", "criterion"), NAMES)
def test_the_tree_of_scikit_learn(kind, criterion, limits, exact):
    n = 600 if criterion == "absolute_error" else 1500
    codes, target = problem(kind, n)
    weight = np.random.default_rng(1).integers(1, 4, len(codes)).astype(float)
    tree, _ = grow(encode(codes, exact=exact), target, weight, criterion=criterion, **limits)
    cart = Cart(codes, target, weight, criterion=criterion, **limits)
    model = sklearn_tree(codes, target, weight, criterion=NAMES[kind, criterion], **limits)
    # Small nodes are full of ties: of one hundred nodes and more, these remain to compare.
    least = min(15, model.tree_.node_count)
    assert_same_as_sklearn(cart, tree, model, least_compared=least)


@pytest.mark.parametrize(("kind", "criterion"), NAMES)
def test_one_feature_leaves_no_ties_and_the_tree_is_the_same_to_the_last_leaf(kind, criterion):
    codes, target = problem(kind, 700, features=2, values=250, seed=3)
    codes = dense(codes[:, :1])
    weight = np.ones(len(codes))
    tree, _ = grow(encode(codes), target, weight, criterion=criterion)
    cart = Cart(codes, target, weight, criterion=criterion)
    model = sklearn_tree(codes, target, weight, criterion=NAMES[kind, criterion])
    least = 0.9 * model.tree_.node_count
    assert_same_as_sklearn(cart, tree, model, least_compared=int(least))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
@pytest.mark.parametrize(("kind", "criterion"), NAMES)
def test_every_split_is_the_best_of_its_node(kind, criterion, limits, missing, exact):
    codes, target = problem(kind, 90, values=14, seed=5, missing=missing)
    weight = np.random.default_rng(2).choice([1.0, 2.0, 5.0], len(codes))
    tree, _ = grow(encode(codes, exact=exact), target, weight, criterion=criterion, **limits)
    assert Cart(codes, target, weight, criterion=criterion, **limits).check(tree) >= 3


@pytest.mark.parametrize(("kind", "criterion"), NAMES)
def test_every_split_is_the_best_of_its_node_with_histograms(kind, criterion):
    """Four features of five values: from about 8 rows on a histogram is cheaper than the rows."""
    codes, target = problem(kind, 400, features=4, values=5, seed=6)
    weight = np.ones(len(codes))
    tree, _ = grow(encode(codes), target, weight, criterion=criterion, max_depth=4)
    assert Cart(codes, target, weight, criterion=criterion, max_depth=4).check(tree) >= 10


def test_a_table_of_exclusive_or_is_split_without_any_gain():
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 3)
    y = codes[:, :1] ^ codes[:, 1:]
    weight = np.ones(len(codes))
    tree, leaf = grow(encode(codes), y, weight)
    assert len(tree["left"]) == 7
    np.testing.assert_array_equal(tree["value"][leaf], y[:, 0])
    assert tree["gain"][0] == 0
    greedy, _ = grow(encode(codes), y, weight, allow_zero_gain=False)
    assert len(greedy["left"]) == 1


@pytest.mark.parametrize("n", [300, 40_000])
def test_rows_that_want_the_same_value_are_a_leaf(n):
    """For any weights, and any rounding of the gradients."""
    rng = np.random.default_rng(7)
    codes = rng.integers(0, 7, (n, 3))
    y = rng.normal(size=7)[codes[:, :1]]
    tree, leaf = grow(encode(codes), y, rng.uniform(0.1, 3.0, n))
    assert (tree["left"] == 0).sum() == 7
    np.testing.assert_allclose(tree["value"][leaf], y[:, 0], rtol=1e-6)


def test_a_gain_may_equal_the_least_one():
    """Halves of 0 and 1: the root's impurity falls by 1/4 of the weight, exactly."""
    codes = np.arange(16)[:, np.newaxis]
    y = (codes >= 8).astype(float)
    for weight in (np.ones(16), np.full(16, 3.0)):
        reached, _ = grow(encode(codes), y, weight, min_gain_share=0.25)
        above, _ = grow(encode(codes), y, weight, min_gain_share=np.nextafter(0.25, 1) + 1e-9)
        assert (len(reached["left"]), len(above["left"])) == (3, 1)


@pytest.mark.parametrize(("kind", "criterion"), NAMES)
@pytest.mark.parametrize("share", [0.01, 0.03])
def test_the_least_decrease_of_impurity_of_scikit_learn(kind, criterion, share):
    codes, target = problem(kind, 400, seed=8)
    weight = np.random.default_rng(3).integers(1, 4, len(codes)).astype(float)
    settings = {"criterion": criterion, "min_gain_share": share}
    tree, _ = grow(encode(codes), target, weight, **settings)
    model = sklearn_tree(
        codes, target, weight, criterion=NAMES[kind, criterion], min_impurity_decrease=share
    )
    full, _ = grow(encode(codes), target, weight, criterion=criterion)
    assert 1 < len(tree["left"]) == model.tree_.node_count < len(full["left"])
    cart = Cart(codes, target, weight, **settings)
    assert_same_as_sklearn(cart, tree, model, least_compared=3)


def test_two_classes_in_one_output_gain_twice_the_decrease_of_gini():
    codes, target = problem("classes", 400, seed=9)
    y = target[:, 1:2]
    weight = np.ones(len(codes))
    tree, _ = grow(encode(codes), 2 * y - 1, weight, min_gain_share=2 * 0.004)
    model = sklearn_tree(codes, one_hot(y[:, 0]), weight, min_impurity_decrease=0.004)
    assert 3 < len(tree["left"]) == model.tree_.node_count


@pytest.mark.parametrize("exact", [False, True])
def test_entropy_of_two_classes_in_one_output(exact):
    """The same splits, gains and limits as with one output for each class."""
    codes, target = problem("classes", 500, seed=22, missing=0.1)
    y = target[:, 1:2]
    weight = np.random.default_rng(6).choice([1.0, 2.0, 5.0], len(codes))
    table = encode(codes, exact=exact)
    settings = {"criterion": "entropy", "min_gain_share": 0.005}
    one, one_leaf = grow(table, 2 * y - 1, weight, **settings)
    two, two_leaf = grow(table, np.hstack([1 - y, y]), weight, **settings)
    assert len(one["left"]) > 10
    np.testing.assert_array_equal(one_leaf, two_leaf)
    np.testing.assert_allclose(one["gain"], two["gain"], rtol=1e-6)
    np.testing.assert_allclose((one["value"] + 1) / 2, two["value"][1::2], atol=1e-7)
    with pytest.raises(ValueError, match="a target is beyond -1 and 1"):
        grow(table, 3 * y - 1, weight, **settings)


# Random cuts.


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize(("kind", "criterion"), NAMES)
def test_random_cuts_grow_full_trees_too(kind, criterion, missing, exact):
    codes, target = problem(kind, 150, values=20, seed=10, missing=missing)
    weight = np.random.default_rng(4).choice([1.0, 2.0], len(codes))
    settings = {"criterion": criterion, "random_cuts": True}
    table = encode(codes, exact=exact)
    seen = set()
    for number in range(4):
        tree, _ = grow(table, target, weight, tree=number, **settings)
        assert Cart(codes, target, weight, criterion=criterion).check(tree, best=False) >= 5
        seen.add((tree["feature"][0], tree["bin"][0]))
    assert len(seen) > 1


def test_random_cuts_are_uniform_in_value():
    """Bins have width 1 up to 50, and width 10 above: so have the probabilities of a cut."""
    values = np.concatenate([np.arange(50.0), 50 + 10 * np.arange(40.0)])
    columns = _core.Columns(len(values))
    columns.add_matrix(values[:, np.newaxis])
    codes = _core.encode(columns, None, [(values[1:] + values[:-1]) / 2], 1)
    y = np.random.default_rng(0).normal(size=(len(values), 1))
    cuts = np.empty(3000)
    for number in range(len(cuts)):
        tree, _ = grow(codes, y, np.ones(len(y)), tree=number, random_cuts=True, max_depth=1)
        cuts[number] = tree["bin"][0]
    # Of 440 units of value, 50 have cuts after bins 0 .. 49.
    assert abs((cuts < 50).mean() - 50 / 440) < 4 * np.sqrt(0.11 * 0.89 / len(cuts))
    # Uniform within each part: chi-squared of 13 groups of three bins.
    counts = np.histogram(cuts[cuts >= 50], bins=np.arange(50, 90, 3))[0]
    expected = counts.sum() / len(counts)
    assert ((counts - expected) ** 2 / expected).sum() < 35


def test_features_that_are_constant_in_a_node_are_replaced():
    """One of twenty features varies, and one is drawn per node: further ones are, as in sklearn."""
    rng = np.random.default_rng(11)
    codes = np.zeros((200, 20), dtype=int)
    codes[:, 13] = rng.permutation(200)
    y = rng.normal(size=(200, 1))
    for random_cuts in (False, True):
        settings = {"colsample_bynode": 0.05, "random_cuts": random_cuts}
        tree, _ = grow(encode(codes), y, np.ones(200), **settings)
        assert (tree["left"] == 0).sum() == 200
        greedy, _ = grow(encode(codes), y, np.ones(200), allow_zero_gain=False, **settings)
        assert len(greedy["left"]) == 1


# The same bytes for any way of computation.
