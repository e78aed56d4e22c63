"""Splits by the weighted error, and by gain ratio, against brute force on small tables."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import _core
from support.cart import Cart, encode, grow, impurity
from support.cart_cases import one_hot, problem
from support.local_workers import run_workers
from support.shared_codes import shared

LIMITS = [
    {},
    {"min_samples_leaf": 7},
    {"min_samples_split": 30, "min_samples_leaf": 4, "max_depth": 4},
]


def table(n_classes=3, n=90, *, seed=0, values=14, missing=0.2):
    """Return codes, one-hot targets and weights."""
    codes, target = problem("classes", n, values=values, seed=seed, missing=missing)
    y = target.argmax(axis=1) % n_classes
    weight = np.random.default_rng(seed + 1).integers(1, 9, n).astype(float)
    return codes, one_hot(y), weight


def signed(target):
    """Return the one output of two classes: -1 and 1."""
    return target[:, 1:] - target[:, :1]


class TwoKeys(Cart):
    """The best split has the smallest error and, of equal ones, the smallest Gini impurity."""

    def keys(self, rows, left):
        sides = rows[left], rows[~left]
        errors = sum(impurity("error", self.target[side], self.weight[side]) for side in sides)
        gini = sum(impurity("quadratic", self.target[side], self.weight[side]) for side in sides)
        return round(errors, 6), round(gini, 6)

    def best_keys(self, rows):
        return min(
            self.keys(rows, left)
            for left in self.splits(rows)
            if 0 < left.sum() < len(rows) and self.gain(rows, left) is not None
        )


class Ratios(Cart):
    """Of each feature the best split by entropy; of these, gain ratios from the mean gain on."""

    def of_feature(self, rows, feature):
        """Return the largest gain of a feature, and the least ratio of splits of this gain."""
        one = Ratios(self.codes[:, [feature]], self.target, self.weight, self.criterion)
        one.min_samples_leaf = self.min_samples_leaf
        actual = [
            (self.gain(rows, left), self.ratio(rows, left))
            for left in one.splits(rows)
            if 0 < left.sum() < len(rows) and self.gain(rows, left) is not None
        ]
        if not actual:
            return None
        best = max(gain for gain, _ in actual)
        return best, min(ratio for gain, ratio in actual if gain >= best - 1e-9)

    def ratio(self, rows, left):
        weight = self.weight[rows]
        share = weight[left].sum() / weight.sum()
        entropy = -sum(p * np.log2(p) for p in (share, 1 - share))
        return self.gain(rows, left) / weight.sum() / entropy

    def check_ratio(self, rows, feature, left):
        actual = [self.of_feature(rows, f) for f in range(self.codes.shape[1])]
        actual = [one for one in actual if one is not None]
        mean = np.mean([gain for gain, _ in actual])
        least = max(ratio for gain, ratio in actual if gain >= mean - 1e-9)
        gain = self.gain(rows, left)
        assert gain >= mean - 1e-9
        assert gain >= self.of_feature(rows, feature)[0] - 1e-9
        assert self.ratio(rows, left) >= least - 1e-9


def nodes_of(cart, tree):
    """Yield node, rows and left rows of each split."""
    waiting = [(0, np.arange(len(cart.codes)))]
    while waiting:
        node, rows = waiting.pop()
        if tree["left"][node] == 0:
            continue
        left = cart.goes_left(tree, node, rows)
        yield node, rows, left
        child = int(tree["left"][node])
        waiting += [(child, rows[left]), (child + 1, rows[~left])]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_every_split_has_the_smallest_error_then_gini(limits, n_classes, exact):
    codes, target, weight = table(n_classes)
    of_tree = signed(target) if n_classes == 2 else target
    tree, _ = grow(encode(codes, exact=exact), of_tree, weight, criterion="error", **limits)
    cart = TwoKeys(codes, target, weight, criterion="error", **limits)
    assert cart.check(tree) >= 3
    for _, rows, left in nodes_of(cart, tree):
        assert cart.keys(rows, left) == cart.best_keys(rows)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("limits", LIMITS, ids=str)
def test_every_split_has_the_best_gain_ratio(limits, n_classes, exact):
    codes, target, weight = table(n_classes, seed=3)
    of_tree = signed(target) if n_classes == 2 else target
    tree, _ = grow(encode(codes, exact=exact), of_tree, weight, criterion="gain_ratio", **limits)
    cart = Ratios(codes, target, weight, criterion="gain_ratio", **limits)
    assert cart.check(tree, best=False) >= 3
    for node, rows, left in nodes_of(cart, tree):
        cart.check_ratio(rows, int(tree["feature"][node]), left)


@pytest.mark.parametrize("criterion", ["error", "gain_ratio"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_histograms(criterion, n_classes):
    """Four features of five values: from about 8 rows on a histogram is cheaper than the rows."""
    codes, target = problem("classes", 400, features=4, values=5, seed=6)
    target = one_hot(target.argmax(axis=1) % n_classes)
    weight = np.ones(len(codes))
    of_tree = signed(target) if n_classes == 2 else target
    tree, _ = grow(encode(codes), of_tree, weight, criterion=criterion, max_depth=4)
    if criterion == "error":
        assert TwoKeys(codes, target, weight, criterion=criterion, max_depth=4).check(tree) >= 10
        return
    cart = Ratios(codes, target, weight, criterion=criterion)
    for node, rows, left in nodes_of(cart, tree):
        cart.check_ratio(rows, int(tree["feature"][node]), left)


@pytest.mark.parametrize("criterion", ["error", "gain_ratio"])
def test_two_classes_in_one_output_are_two_outputs(criterion):
    codes, target, weight = table(2, 300, seed=5)
    depth = None if criterion == "error" else 3  # below, equal gains are rounded in other ways
    one, _ = grow(encode(codes), signed(target), weight, criterion=criterion, max_depth=depth)
    two, _ = grow(encode(codes), target, weight, criterion=criterion, max_depth=depth)
    for name in ("feature", "bin", "left", "default_left"):
        np.testing.assert_array_equal(one[name], two[name])
    np.testing.assert_allclose(one["gain"], two["gain"], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("criterion", ["error", "gain_ratio"])
@pytest.mark.parametrize("allow_zero_gain", [False, True])
def test_a_table_of_exclusive_or(criterion, allow_zero_gain):
    """No split lowers the error; CART splits all the same."""
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 3)
    y = 2 * (codes[:, :1] ^ codes[:, 1:]) - 1
    weight = np.ones(len(codes))
    tree, _ = grow(encode(codes), y, weight, criterion=criterion, allow_zero_gain=allow_zero_gain)
    assert len(tree["left"]) == (7 if allow_zero_gain else 1)
    assert tree["gain"][0] == 0


def test_a_plateau_of_errors_is_left_by_gini():
    """All rows have the same majority at first: a greedy tree by errors alone would not grow."""
    x = np.arange(12)
    y = np.where(np.isin(x, [0, 1, 2]), 1.0, -1.0)[:, np.newaxis]
    weight = np.where(x < 3, 1.0, 2.0)
    far = np.column_stack([x, (x > 5).astype(int)])
    tree, leaf = grow(encode(far), y, weight, criterion="error", allow_zero_gain=False)
    np.testing.assert_array_equal(np.sign(tree["value"].ravel()[leaf]), y[:, 0])


def test_gains_are_decreases_of_the_weighted_error():
    codes, target, weight = table(2, 200, seed=9, missing=0.0)
    tree, leaf = grow(encode(codes), signed(target), weight, criterion="error")
    value = tree["value"].ravel()
    wrong = weight @ (np.sign(value[leaf]) != signed(target)[:, 0])
    assert (value[leaf] != 0).all()
    assert tree["gain"].sum() == pytest.approx((weight @ target).min() - wrong)


def test_errors_of_several_targets_add_up():
    codes, target, weight = table(3, 80, seed=2, missing=0.0)
    other = one_hot(np.random.default_rng(4).integers(0, 2, 80))
    tree, _ = grow(
        encode(codes),
        np.hstack([target, other]),
        weight,
        criterion="error",
        target_ends=[3, 5],
        max_depth=1,
    )
    cart = Cart(codes, target, weight, criterion="error")
    second = Cart(codes, other, weight, criterion="error")
    rows = np.arange(80)
    gains = [
        cart.gain(rows, left) + second.gain(rows, left)
        for left in cart.splits(rows)
        if 0 < left.sum() < 80
    ]
    assert tree["gain"][0] == pytest.approx(max(gains))
    with pytest.raises(ValueError, match="outputs of the targets"):
        grow(encode(codes), target, weight, criterion="error", target_ends=[2])


@pytest.mark.parametrize("criterion", ["error", "gain_ratio"])
def test_equal_features_are_split_by_the_first(criterion):
    codes, target, weight = table(2, 120, seed=1, missing=0.0)
    twice = np.hstack([codes, codes])
    tree, _ = grow(encode(twice), target, weight, criterion=criterion)
    assert tree["feature"][tree["left"] > 0].max() < codes.shape[1]


def test_a_ratio_does_not_take_a_feature_of_little_gain():
    """One row alone has an entropy near 0, and so a large ratio; its gain is below the mean."""
    n = 400
    y = (np.arange(n) % 2 == 0).astype(int)
    strong = np.where(np.arange(n) % 10 == 0, 1 - y, y)
    rare = (np.arange(n) == 0).astype(int)
    codes = np.column_stack([rare, strong])
    tree, _ = grow(encode(codes), one_hot(y), np.ones(n), criterion="gain_ratio", max_depth=1)
    assert tree["feature"][0] == 1


def test_a_ratio_prefers_a_split_of_one_side():
    """Of two features of nearly the same gain, the less even split has the better ratio."""
    y = np.repeat([0, 1], [60, 20])
    even = (np.arange(80) >= 40).astype(int)
    uneven = (np.arange(80) >= 66).astype(int)
    codes = np.column_stack([even, uneven])
    weight = np.ones(80)
    cart = Ratios(codes, one_hot(y), weight, criterion="entropy")
    rows = np.arange(80)
    by_gain = [cart.gain(rows, codes[:, f] == 0) for f in range(2)]
    by_ratio = [cart.ratio(rows, codes[:, f] == 0) for f in range(2)]
    for criterion, values in (("entropy", by_gain), ("gain_ratio", by_ratio)):
        tree, _ = grow(encode(codes), one_hot(y), weight, criterion=criterion, max_depth=1)
        assert tree["feature"][0] == int(np.argmax(values))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sets_of_levels_of_the_smallest_error(n_classes):
    """Of two classes the best of all sets is found."""
    rng = np.random.default_rng(n_classes)
    level = rng.integers(0, 6, 70)
    y = rng.integers(0, n_classes, 70)
    weight = rng.integers(1, 9, 70).astype(float)
    columns = _core.Columns(70)
    columns.add(level.astype(float))
    codes = _core.encode(columns, None, [np.arange(5) + 0.5], 1, [True])
    target = one_hot(y)
    _, leaf = grow(
        codes,
        signed(target) if n_classes == 2 else target,
        weight,
        criterion="error",
        max_depth=1,
        max_cat_to_onehot=2,
        max_cat_threshold=256,
    )
    right = leaf == leaf.max()
    errors = sum(impurity("error", target[side], weight[side]) for side in (right, ~right))
    best = min(
        sum(impurity("error", target[side], weight[side]) for side in (inside, ~inside))
        for subset in range(1, 31)
        if 0 < (inside := (subset >> level) & 1 == 1).sum() < 70
    )
    if n_classes == 2:
        assert errors == pytest.approx(best)
    assert errors >= best - 1e-9


@pytest.mark.parametrize("criterion", ["error", "gain_ratio"])
@pytest.mark.parametrize("random_cuts", [False, True])
@pytest.mark.parametrize("n", [300, 6000])
def test_bytes_do_not_depend_on_threads_subtrees_and_workers(criterion, random_cuts, n):
    codes, target, weight = table(3, n, values=40)
    settings = {"criterion": criterion, "random_cuts": random_cuts, "colsample_bynode": 0.7}
    encoded = encode(codes)
    one, leaf = grow(encoded, target, weight, **settings)
    others = [
        grow(encoded, target, weight, n_threads=n_threads, subtree_rows=rows, **settings)
        for n_threads, rows in ((2, 0), (4, 50))
    ]
    others += run_workers(
        3, lambda w: grow(shared(encoded, w, [0.5, 0.2, 0.3]), target, weight, **settings)
    )
    for other, other_leaf in others:
        np.testing.assert_array_equal(other_leaf, leaf)
        for name in one:
            assert one[name].tobytes() == other[name].tobytes(), name
