"""Trees as CART has them: limits, splits without gain, random cuts, and criteria."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from arboost import _core
from cart import Cart, cart_params, encode, grow
from leveled import levels_of, table_of
from stored import ARRAYS, every_storage, mixed_table


def one_hot(y: np.ndarray) -> np.ndarray:
    return np.eye(int(y.max()) + 1)[y.astype(int)]


def dense(codes: np.ndarray) -> np.ndarray:
    """The same order of values in codes without gaps: ranks and bins are one then."""
    result = np.stack([np.unique(column, return_inverse=True)[1] for column in codes.T], axis=1)
    return result - (codes.min(axis=0) < 0)


def problem(kind: str, n: int, features: int = 3, values: int = 60, *, seed: int = 0, missing=0.0):
    """Codes, and targets of regression, counts or three classes that depend on them."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, values, (n, features))
    signal = np.sin(codes[:, 0] / 9.0) + (codes[:, 1] > values / 2) * codes[:, 0] / values
    codes[rng.random(codes.shape) < missing] = -1
    if kind == "classes":
        y = np.digitize(signal + 0.7 * rng.normal(size=n), [0.0, 0.9])
        return dense(codes), one_hot(y)
    if kind == "counts":
        return dense(codes), rng.poisson(np.exp(signal))[:, np.newaxis].astype(float)
    return dense(codes), (signal + 0.5 * rng.normal(size=n))[:, np.newaxis]


def assert_same_bytes(one, other) -> None:
    for name in ARRAYS:
        assert one[name].tobytes() == other[name].tobytes(), name


def sklearn_tree(codes, target, weight, **settings):
    """Its tree on the same rows; classes for one-hot targets."""
    if target.shape[1] > 1:
        return DecisionTreeClassifier(random_state=0, **settings).fit(
            codes, target.argmax(axis=1), sample_weight=weight
        )
    return DecisionTreeRegressor(random_state=0, **settings).fit(
        codes, target[:, 0], sample_weight=weight
    )


def assert_same_as_sklearn(cart: Cart, tree, model, *, least_compared: int) -> None:
    """The same splits and values from the root down, up to splits that are equally good."""
    theirs = model.tree_
    value = theirs.value[:, 0, :] if theirs.n_outputs == 1 else theirs.value[:, :, 0]
    waiting, compared = [(0, 0, np.arange(len(cart.codes)))], 0
    while waiting:
        ours, other, rows = waiting.pop()
        compared += 1
        if cart.criterion != "absolute_error":  # whose medians are set by the caller
            own = tree["value"].reshape(len(tree["left"]), -1)[ours]
            np.testing.assert_allclose(own, value[other], rtol=1e-6, atol=1e-7)
        child = int(tree["left"][ours])
        assert (child == 0) == (theirs.children_left[other] < 0)
        if child == 0:
            continue
        left = cart.goes_left(tree, ours, rows)
        their_left = cart.codes[rows, theirs.feature[other]] <= theirs.threshold[other]
        if (left != their_left).any():
            gain, their_gain = cart.gain(rows, left), cart.gain(rows, their_left)
            np.testing.assert_allclose(gain, their_gain, rtol=1e-9, atol=1e-9)
            continue
        waiting.append((child, theirs.children_left[other], rows[left]))
        waiting.append((child + 1, theirs.children_right[other], rows[~left]))
    assert compared >= least_compared


NAMES = {  # of scikit-learn, by kind of problem
    ("classes", "quadratic"): "gini",
    ("classes", "entropy"): "entropy",
    ("values", "quadratic"): "squared_error",
    ("values", "absolute_error"): "absolute_error",
    ("counts", "poisson"): "poisson",
}
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
    # Small nodes are full of ties: of one hundred nodes and more these are left to compare.
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
    """Whatever their weights are, and however their gradients were rounded."""
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
    """The same splits, gains and limits as with an output for each of them."""
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
    """Bins are one wide up to 50, and then ten times that: so are the chances of a cut."""
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
    # Evenly within each part: chi-squared of 13 groups of three bins.
    counts = np.histogram(cuts[cuts >= 50], bins=np.arange(50, 90, 3))[0]
    expected = counts.sum() / len(counts)
    assert ((counts - expected) ** 2 / expected).sum() < 35


def test_features_that_are_constant_in_a_node_are_replaced():
    """One of twenty features varies, and one is drawn for each node: scikit-learn looks on."""
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


# The same bytes, whatever computes them.


@pytest.mark.parametrize("random_cuts", [False, True])
@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(("kind", "criterion"), NAMES)
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
@pytest.mark.parametrize(("kind", "criterion"), NAMES)
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
from cart import encode, grow
from test_criteria import ARRAYS, NAMES, problem
from arboost import _core
digest = hashlib.sha256()
for kind, criterion in NAMES:
    codes, target = problem(kind, 1500, values=100, seed=13, missing=0.1)
    for exact in (False, True):
        for random_cuts in (False, True):
            settings = {"criterion": criterion, "random_cuts": random_cuts}
            tree, _ = grow(encode(codes, exact=exact), target, np.ones(len(codes)), **settings)
            for name in ARRAYS:
                digest.update(tree[name].tobytes())
print(_core.instruction_set(), digest.hexdigest())
"""


def test_same_bytes_for_any_instruction_set():
    found = {}
    for isa in ("baseline", "avx2", None):
        env = dict(os.environ) | ({} if isa is None else {"ARBOOST_ISA": isa})
        env["PYTHONPATH"] = os.pathsep.join([os.path.dirname(__file__), *sys.path])
        command = [sys.executable, "-c", DIGEST]
        done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
        name, digest = done.stdout.split()
        found[name] = digest
    assert len(set(found.values())) == 1


@pytest.mark.parametrize("random_cuts", [False, True])
@pytest.mark.parametrize(("kind", "criterion"), NAMES)
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


@pytest.mark.parametrize(("kind", "criterion"), NAMES)
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
@pytest.mark.parametrize(("kind", "criterion"), NAMES)
def test_a_sample_with_replacement_is_a_tree_with_counts_for_weights(kind, criterion, exact):
    codes, target = problem(kind, 300, values=40, seed=16)
    sample = _core.Sample()
    sample.draw_with_replacement(len(codes), len(codes), 3, 0, 1)
    drawn, counts = sample.positions(), sample.weights().astype(float)
    assert counts.max() > 2
    table = encode(codes, exact=exact)
    tree, _ = grow(table, target, np.ones(len(codes)), sample=sample, criterion=criterion)
    cart = Cart(codes[drawn], target[drawn], counts, criterion=criterion)
    assert cart.check(tree) > 20


@pytest.mark.parametrize(("kind", "criterion"), NAMES)
def test_a_tree_of_some_of_the_tables_rows(kind, criterion):
    codes, target = problem(kind, 300, values=40, seed=17)
    rows = np.flatnonzero(np.random.default_rng(0).random(300) < 0.5).astype(np.uint32)
    weight = np.ones(len(rows))
    tree, _ = grow(encode(codes), target[rows], weight, rows=rows, criterion=criterion)
    assert Cart(codes[rows], target[rows], weight, criterion=criterion).check(tree) > 20


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
    """From 32,768 rows on, 15 bits of each travel with the rows."""
    rng = np.random.default_rng(19)
    codes = rng.integers(0, 50, (50_000, 2))
    y = rng.poisson(np.exp(np.sin(codes[:, 0] / 8) + (codes[:, 1] > 20)))[:, np.newaxis]
    tree, _ = grow(encode(codes), y, np.ones(len(y)), criterion="poisson", max_depth=4)
    model = sklearn_tree(codes, y.astype(float), None, criterion="poisson", max_depth=4)
    cart = Cart(codes, y.astype(float), np.ones(len(y)), criterion="poisson", max_depth=4)
    assert_same_as_sklearn(cart, tree, model, least_compared=31)


# Categories.


@pytest.mark.parametrize("method", ["hist", "exact"])
@pytest.mark.parametrize(("kind", "criterion"), NAMES)
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
    # One target, or two classes: the best of all sets of levels, missing ones among them, is found.
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


# What is refused.


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
    with pytest.raises(ValueError, match="no use"):
        _core.Grower(encode(codes, exact=True), 1, cart_params(**params))


@pytest.mark.parametrize(("criterion", "outputs"), [("entropy", 2), ("poisson", 1)])
def test_targets_below_zero_are_refused(criterion, outputs):
    codes, target = problem("values", 50)
    with pytest.raises(ValueError, match="a target is below 0"):
        grow(encode(codes), np.repeat(target, outputs, 1), np.ones(50), criterion=criterion)
