"""CART trees: the same for any threads, storage and samples; categories; refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from arboost import _core
from support.cart import Cart, cart_params, encode, grow
from support.cart_cases import (
    CRITERIA,
    assert_same_as_sklearn,
    assert_same_bytes,
    one_hot,
    problem,
    sklearn_tree,
)
from support.level_sets import levels_of, table_of
from support.stored import every_storage, mixed_table


@pytest.mark.parametrize("random_cuts", [False, True])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("kind", "criterion"), CRITERIA)
def test_same_bytes_for_any_number_of_threads(kind, criterion, exact, random_cuts):
    n = 3000 if criterion == "absolute_error" else 20_000
    codes, target = problem(kind, n, features=5, values=200, seed=12, missing=0.05)
    weight = np.random.default_rng(5).integers(1, 4, n).astype(float)
    table = encode(codes, exact=exact)
    settings = {"criterion": criterion, "random_cuts": random_cuts, "colsample_bynode": 0.5}
    one, _ = grow(table, target, weight, max_depth=9, **settings)
    for n_threads in (2, 4):
        many, _ = grow(table, target, weight, max_depth=9, n_threads=n_threads, **settings)
        assert_same_bytes(one, many)


@pytest.mark.parametrize("random_cuts", [False, True])
@pytest.mark.parametrize(("kind", "criterion"), CRITERIA)
def test_subtrees_that_are_grown_at_once_are_the_same(kind, criterion, random_cuts):
    """With few values, so that drawn features are often constant and further ones are drawn."""
    codes, target = problem(kind, 2000, features=6, values=9, seed=23, missing=0.05)
    settings = {"criterion": criterion, "random_cuts": random_cuts, "colsample_bynode": 0.2}
    for policy in ({}, {"best_first": True, "max_leaves": 300}, {"min_samples_leaf": 3}):
        trees = [
            grow(encode(codes), target, np.ones(2000), subtree_rows=rows, **policy, **settings)[0]
            for rows in (0, 50, 4000)
        ]
        assert len(trees[0]["left"]) > 200
        for other in trees[1:]:
            assert_same_bytes(trees[0], other)


DIGEST = """
import hashlib
import numpy as np
from support.cart import encode, grow
from support.cart_cases import CRITERIA, problem
from support.stored import ARRAYS
from arboost import _core
digest = hashlib.sha256()
for kind, criterion in CRITERIA:
    codes, target = problem(kind, 1500, values=100, seed=13, missing=0.1)
    for exact in (False, True):
        for random_cuts in (False, True):
            settings = {"criterion": criterion, "random_cuts": random_cuts}
            tree, _ = grow(encode(codes, exact=exact), target, np.ones(len(codes)), **settings)
            for name in ARRAYS:
                digest.update(tree[name].tobytes())
print(_core.instruction_set(), digest.hexdigest())
"""


def test_same_bytes_for_any_instruction_set(instruction_sets):
    actual = dict(instruction_sets.run(isa, DIGEST).split() for isa in ("baseline", "avx2", None))
    assert len(set(actual.values())) == 1


@pytest.mark.parametrize("random_cuts", [False, True])
@pytest.mark.parametrize(("kind", "criterion"), CRITERIA)
def test_same_trees_however_columns_are_stored(kind, criterion, random_cuts):
    rng = np.random.default_rng(14)
    matrix = mixed_table(rng, 2500)
    signal = np.nan_to_num(matrix, nan=-0.5) @ rng.normal(size=matrix.shape[1])
    y = {
        "values": signal,
        "counts": rng.poisson(np.exp(signal / 4)).astype(float),
        "classes": np.digitize(signal, [-2.0, 2.0]),
    }[kind]
    target = one_hot(y) if kind == "classes" else y[:, np.newaxis]
    edges = []
    for column in matrix.T:
        values = np.unique(column[~np.isnan(column)])
        values = values[:: max(1, len(values) // 200)]
        edges.append((values[1:] + values[:-1]) / 2)
    trees = [
        grow(codes, target, np.ones(len(y)), criterion=criterion, random_cuts=random_cuts)[0]
        for codes in every_storage(matrix, edges).values()
    ]
    assert len(trees[0]["left"]) > 100
    for other in trees[1:]:
        assert_same_bytes(trees[0], other)


@pytest.mark.parametrize(("kind", "criterion"), CRITERIA)
def test_codes_of_two_bytes(kind, criterion):
    """700 values: the same splits of small nodes, of histograms and of sorted rows."""
    codes, target = problem(kind, 1800, features=2, values=700, seed=15)
    assert codes.max() > 255
    for random_cuts in (False, True):
        bins, ranks = (
            grow(
                encode(codes, exact=exact),
                target,
                np.ones(len(codes)),
                criterion=criterion,
                random_cuts=random_cuts,
            )[0]
            for exact in (False, True)
        )
        assert len(bins["left"]) > 300
        assert_same_bytes(bins, ranks)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("kind", "criterion"), CRITERIA)
def test_a_sample_with_replacement_is_a_tree_with_counts_for_weights(kind, criterion, exact):
    codes, target = problem(kind, 300, values=40, seed=16)
    sample = _core.Sample()
    sample.draw_with_replacement(len(codes), len(codes), 3, 0, 1)
    drawn, counts = sample.positions(), sample.weights().astype(float)
    assert counts.max() > 2
    table = encode(codes, exact=exact)
    tree, _ = grow(table, target, np.ones(len(codes)), sample=sample, criterion=criterion)
    cart = Cart(codes[drawn], target[drawn], counts, criterion=criterion)
    assert cart.check(tree, best=criterion != "gain_ratio") > 20


@pytest.mark.parametrize(("kind", "criterion"), CRITERIA)
def test_a_tree_of_some_of_the_tables_rows(kind, criterion):
    codes, target = problem(kind, 300, values=40, seed=17)
    rows = np.flatnonzero(np.random.default_rng(0).random(300) < 0.5).astype(np.uint32)
    weight = np.ones(len(rows))
    tree, _ = grow(encode(codes), target[rows], weight, rows=rows, criterion=criterion)
    cart = Cart(codes[rows], target[rows], weight, criterion=criterion)
    assert cart.check(tree, best=criterion != "gain_ratio") > 20


def test_several_targets_of_regression_and_of_classes():
    codes, values = problem("values", 150, values=30, seed=18)
    two = np.hstack([values, np.cos(3 * values)])
    weight = np.ones(len(codes))
    for criterion in ("quadratic", "absolute_error"):
        tree, _ = grow(encode(codes), two, weight, criterion=criterion, min_samples_leaf=5)
        cart = Cart(codes, two, weight, criterion=criterion, min_samples_leaf=5)
        assert cart.check(tree) > 5
    classes = np.hstack([one_hot((two[:, k] > 0.3).astype(int)) for k in range(2)])
    tree, _ = grow(encode(codes), classes, weight, criterion="entropy")
    # The entropies of two targets add up, as those of their outputs do.
    assert Cart(codes, classes, weight, criterion="entropy").check(tree) > 5


def test_counts_of_many_rows_are_rounded_but_unbiased():
    """From 32,768 rows on, 15 bits of each count are stored with the rows."""
    rng = np.random.default_rng(19)
    codes = rng.integers(0, 50, (50_000, 2))
    y = rng.poisson(np.exp(np.sin(codes[:, 0] / 8) + (codes[:, 1] > 20)))[:, np.newaxis]
    tree, _ = grow(encode(codes), y, np.ones(len(y)), criterion="poisson", max_depth=4)
    model = sklearn_tree(codes, y.astype(float), None, criterion="poisson", max_depth=4)
    cart = Cart(codes, y.astype(float), np.ones(len(y)), criterion="poisson", max_depth=4)
    assert_same_as_sklearn(cart, tree, model, least_compared=31)


# Categories.


@pytest.mark.parametrize("method", ["hist", "exact"])
@pytest.mark.parametrize(("kind", "criterion"), CRITERIA)
def test_categories(kind, criterion, method):
    rng = np.random.default_rng(20)
    matrix = rng.integers(0, 7, (300, 2)).astype(float)
    matrix[rng.random(300) < 0.1, 0] = np.nan
    codes = np.nan_to_num(matrix, nan=-1).astype(int)
    effect = np.array([0.1, 2.0, 0.3, 1.2, 0.7, 2.5, 0.0, 1.0])[codes[:, 0]]
    y = {
        "values": effect + 0.1 * rng.normal(size=300),
        "counts": rng.poisson(np.exp(effect)),
        "classes": rng.random(300) < 0.1 + effect / 4,
    }[kind]
    target = one_hot(y) if kind == "classes" else y[:, np.newaxis].astype(float)
    table, weight = table_of(matrix, [7, 0], method), np.ones(300)
    if criterion == "absolute_error":
        with pytest.raises(ValueError, match="encode them as numbers"):
            grow(table, target, weight, criterion=criterion)
        return
    cart = Cart(codes, target, weight, criterion=criterion)
    for random_cuts in (False, True):
        settings = {"criterion": criterion, "random_cuts": random_cuts}
        tree, _ = grow(table, target, weight, **settings)
        assert (tree["set"] >= 0).sum() > 1
        assert cart.check(tree, best=False) > 20
        many, _ = grow(table, target, weight, n_threads=4, **settings)
        assert_same_bytes(tree, many)
    # One target, or two classes: the best of all level sets, missing values included, is found.
    tree, _ = grow(table_of(matrix[:, :1], [7], method), target, weight, criterion=criterion)
    sets = itertools.chain.from_iterable(
        itertools.combinations(range(-1, 7), k) for k in (1, 2, 3, 4)
    )
    rows = np.arange(300)
    gains = [cart.gain(rows, np.isin(codes[:, 0], chosen)) for chosen in sets]
    np.testing.assert_allclose(tree["gain"][0], max(gains), rtol=1e-6)


def test_random_sets_hold_each_level_half_of_the_time():
    matrix = np.arange(6.0).repeat(5)[:, np.newaxis]
    y = np.random.default_rng(21).normal(size=(30, 1))
    table = table_of(matrix, [6])
    held = np.zeros(6)
    for number in range(2000):
        tree, _ = grow(table, y, np.ones(30), tree=number, random_cuts=True, max_depth=1)
        chosen = levels_of(tree["sets"][0]) & set(range(6))
        assert 0 < len(chosen) < 6
        held[sorted(chosen)] += 1
    assert (np.abs(held / 2000 - 0.5) < 4 * 0.5 / np.sqrt(2000)).all()


# Refusals.


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"criterion": "entropy", "reg_lambda": 1.0}, "must be 0 for this criterion"),
        ({"criterion": "poisson", "reg_alpha": 0.1}, "must be 0 for this criterion"),
        ({"criterion": "absolute_error", "max_delta_step": 1.0}, "must be 0 for this criterion"),
        ({"criterion": "poisson", "monotone": [1, 0, 0]}, "monotone constraints need"),
        ({"criterion": "gini"}, 'criterion is "gini", but must be one of "quadratic", "entropy"'),
    ],
)
def test_what_a_criterion_does_not_know_is_refused(settings, message):
    codes, target = problem("counts", 50)
    with pytest.raises(ValueError, match=message):
        grow(encode(codes), target, np.ones(50), **settings)


@pytest.mark.parametrize("settings", [{"random_cuts": True}, {"criterion": "absolute_error"}])
def test_sketches_for_each_node_are_refused_where_they_are_of_no_use(settings):
    codes, _ = problem("values", 50)
    params = {"candidates": _core.Candidates.per_node} | settings
    with pytest.raises(ValueError, match="sketches for each node have no "):
        _core.Grower(encode(codes, exact=True), 1, cart_params(**params))


@pytest.mark.parametrize(("criterion", "outputs"), [("entropy", 2), ("poisson", 1)])
def test_targets_below_zero_are_refused(criterion, outputs):
    codes, target = problem("values", 50)
    with pytest.raises(ValueError, match="a target is below 0"):
        grow(encode(codes), np.repeat(target, outputs, 1), np.ones(50), criterion=criterion)
