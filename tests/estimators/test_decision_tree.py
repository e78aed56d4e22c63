"""Decision trees: equal to scikit-learn's on few distinct values, except for ties; own features."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn import tree as theirs
from sklearn.datasets import load_iris

from arboost import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreesRegressor

RNG = np.random.default_rng(5)
ROWS = 600
# At most 250 distinct values, so that every value has its own bin.
X = RNG.integers(0, 250, (ROWS, 4)).astype(float)
Y = np.sin(X[:, 0] / 40) + (X[:, 1] > 100) * X[:, 2] / 200 + 0.3 * RNG.normal(size=ROWS)
TWO = (RNG.random(ROWS) < 1 / (1 + np.exp(-3 * Y))).astype(int)
THREE = np.digitize(Y + 0.5 * RNG.normal(size=ROWS), [0.0, 1.0])
# Row weights break the ties of classification splits. Multiples of 1/1024 sum exactly: with other
# weights scikit-learn finds impurities of 1e-16 in pure nodes, and splits them.
WEIGHT = RNG.integers(100, 1000, ROWS) / 1024

KINDS = {
    "numbers": (DecisionTreeRegressor, theirs.DecisionTreeRegressor, Y),
    "two classes": (DecisionTreeClassifier, theirs.DecisionTreeClassifier, TWO),
    "three classes": (DecisionTreeClassifier, theirs.DecisionTreeClassifier, THREE),
    "two numbers": (
        DecisionTreeRegressor,
        theirs.DecisionTreeRegressor,
        np.column_stack([Y, np.cos(X[:, 3] / 60) + Y]),
    ),
    "two targets": (
        DecisionTreeClassifier,
        theirs.DecisionTreeClassifier,
        np.column_stack([TWO, THREE]),
    ),
    "two pairs of classes": (
        DecisionTreeClassifier,
        theirs.DecisionTreeClassifier,
        np.column_stack([TWO, THREE > 0]).astype(int),
    ),
}


def node_value(model, value):
    """Return a node's value in scikit-learn's form: target values, or class probabilities."""
    if model.classes is None:
        return value
    classes = model.classes if isinstance(model.classes, tuple) else (model.classes,)
    shares, first = [], 0
    for outputs, labels in zip(model.targets or (len(value),), classes, strict=True):
        of_target = value[first : first + outputs]
        if len(labels) == 2 and outputs == 1:
            of_target = np.array([1 - of_target[0], 1 + of_target[0]]) / 2
        shares.append(of_target)
        first += outputs
    return np.concatenate(shares)


def assert_same_tree(ours, other):
    """Assert equal features, covers and values, node by node."""
    model, other = ours.model_, other.tree_
    forest = model.forest
    assert forest.n_nodes == other.node_count
    pairs = [(0, 0)]
    while pairs:
        mine, its = pairs.pop()
        assert forest.cover[mine] == pytest.approx(other.weighted_n_node_samples[its], rel=1e-6)
        values = [row[: other.n_classes[k]] for k, row in enumerate(other.value[its])]
        expected = np.concatenate(values)
        np.testing.assert_allclose(node_value(model, forest.value[mine]), expected, atol=2e-7)
        assert (forest.left[mine] == 0) == (other.children_left[its] == -1)
        if forest.left[mine]:
            assert forest.feature[mine] == other.feature[its]
            pairs.append((forest.left[mine], other.children_left[its]))
            pairs.append((forest.left[mine] + 1, other.children_right[its]))


# Limits on small nodes, where several features split the rows alike and the choice is arbitrary.
LIMITS = {
    "leaves of 12": {"min_samples_leaf": 12},
    "share of rows": {"min_samples_leaf": 0.03},
    "depth": {"max_depth": 4, "min_samples_leaf": 8},
    "best first": {"max_leaf_nodes": 17, "min_samples_leaf": 8},
    "nodes of 60": {"min_samples_split": 60, "min_samples_leaf": 8},
    "share of weight": {"min_weight_fraction_leaf": 0.04},
    "decrease": {"min_impurity_decrease": 0.01, "min_samples_leaf": 8},
}


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_tree(kind, limits):
    own, other, y = KINDS[kind]
    ours = own(**LIMITS[limits]).fit(X, y, WEIGHT)
    scikit = other(**LIMITS[limits], random_state=0).fit(X, y, WEIGHT)
    assert scikit.tree_.node_count > 5
    assert_same_tree(ours, scikit)
    np.testing.assert_allclose(ours.feature_importances_, scikit.feature_importances_, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_tree_at_full_depth(kind):
    """Tables of one feature, which has no ties between features."""
    own, other, y = KINDS[kind]
    ours = own().fit(X[:, :1], y, WEIGHT)
    assert_same_tree(ours, other().fit(X[:, :1], y, WEIGHT))


COUNTS = RNG.poisson(np.exp(Y))
CRITERIA = {
    "entropy of two": ("entropy", TWO),
    "entropy of three": ("entropy", THREE),
    "log_loss": ("log_loss", THREE),
    "entropy of two targets": ("entropy", np.column_stack([TWO, THREE])),
    "poisson": ("poisson", COUNTS.astype(float)),
    "absolute error": ("absolute_error", Y),
    "absolute error of counts": ("absolute_error", COUNTS.astype(float)),
}


def pair(criterion, **params):
    classes = criterion in ("gini", "entropy", "log_loss")
    name = "DecisionTreeClassifier" if classes else "DecisionTreeRegressor"
    own = DecisionTreeClassifier if classes else DecisionTreeRegressor
    return own(criterion=criterion, **params), getattr(theirs, name)(criterion=criterion, **params)


@pytest.mark.parametrize("case", CRITERIA)
@pytest.mark.parametrize("limits", ["leaves of 12", "best first", "decrease"])
def test_the_same_tree_by_other_criteria(case, limits):
    criterion, y = CRITERIA[case]
    ours, other = pair(criterion, **LIMITS[limits])
    weight = None if case == "absolute error of counts" else WEIGHT
    if weight is None:  # many ties between features: take one feature
        ours, other = pair(criterion, min_samples_leaf=12)
    columns = X[:, :1] if weight is None else X
    assert_same_tree(ours.fit(columns, y, weight), other.fit(columns, y, weight))


def test_medians_in_leaves():
    x = np.array([0.0, 0, 0, 1, 1])[:, np.newaxis]
    tree = DecisionTreeRegressor(criterion="absolute_error").fit(x, [1.0, 2.0, 30.0, 5.0, 8.0])
    np.testing.assert_array_equal(tree.predict([[0], [1]]), [2.0, 6.5])
    tree.fit(x, [1.0, 2.0, 30.0, 5.0, 8.0], [1, 1, 5, 3, 1])
    np.testing.assert_array_equal(tree.predict([[0], [1]]), [30.0, 5.0])


def test_criteria_that_do_not_fit():
    table = pd.DataFrame({"level": list("abcdefghij"), "x": range(10)})
    with pytest.raises(ValueError, match=r"'level'.*absolute_error"):
        DecisionTreeRegressor(criterion="absolute_error").fit(table, range(10))
    poisson = DecisionTreeRegressor(criterion="poisson")
    with pytest.raises(ValueError, match="y goes down to -1"):
        poisson.fit(X[:3], [1.0, 2.0, -1.0])
    with pytest.raises(ValueError, match="y is 0 in every row"):
        poisson.fit(X[:3], [0.0, 0.0, 0.0])
    for criterion in ("poisson", "absolute_error"):
        tree = DecisionTreeRegressor(criterion=criterion, monotonic_cst=[1, 0, 0, 0])
        with pytest.raises(ValueError, match="Monotone constraints are not allowed with criterion"):
            tree.fit(X, COUNTS)


# Pruning


@pytest.mark.parametrize(
    ("criterion", "y"),
    [
        ("squared_error", Y),
        ("gini", TWO),
        ("gini", THREE),
        ("gini", np.column_stack([TWO, THREE])),
        ("entropy", THREE),
        ("poisson", COUNTS),
        ("absolute_error", Y),
    ],
    ids=str,
)
def test_the_same_pruning(criterion, y):
    ours, other = pair(criterion, min_samples_leaf=12)
    path = ours.cost_complexity_pruning_path(X, y, WEIGHT)
    scikit = other.cost_complexity_pruning_path(X, y, WEIGHT)
    np.testing.assert_allclose(path.ccp_alphas, scikit.ccp_alphas, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(path.impurities, scikit.impurities, rtol=1e-6, atol=1e-7)
    middle = len(path.ccp_alphas) // 2
    alpha = (path.ccp_alphas[middle] + path.ccp_alphas[middle + 1]) / 2
    ours.set_params(ccp_alpha=alpha).fit(X, y, WEIGHT)
    assert_same_tree(ours, other.set_params(ccp_alpha=alpha).fit(X, y, WEIGHT))
    assert ours.get_n_leaves() < ours.set_params(ccp_alpha=0.0).fit(X, y, WEIGHT).get_n_leaves()


@pytest.mark.parametrize("criterion", ["error", "gain_ratio"])
@pytest.mark.parametrize("y", [TWO, THREE, np.column_stack([TWO, THREE])], ids=["2", "3", "2, 3"])
def test_pruning_by_criteria_of_no_other_library(criterion, y):
    """Along the path, impurities are those of the leaves, and the root's is that of all rows."""
    tree = DecisionTreeClassifier(criterion=criterion, min_samples_leaf=12)
    path = tree.cost_complexity_pruning_path(X, y, WEIGHT)
    assert len(path.ccp_alphas) > 3
    for alpha, impurity in list(zip(path.ccp_alphas, path.impurities, strict=True))[::2]:
        pruned = tree.set_params(ccp_alpha=alpha * (1 + 1e-9)).fit(X, y, WEIGHT).tree_
        leaf = pruned.children_left < 0
        shares = pruned.weighted_n_node_samples[leaf] / WEIGHT.sum()
        np.testing.assert_allclose(shares @ pruned.impurity[leaf], impurity, atol=1e-7)
    counts = [np.bincount(one, WEIGHT) / WEIGHT.sum() for one in y.reshape(len(y), -1).T]
    of_all = [1 - p.max() if criterion == "error" else -p @ np.log2(p) for p in counts]
    np.testing.assert_allclose(path.impurities[-1], np.mean(of_all))


@pytest.mark.parametrize("criterion", ["error", "gain_ratio"])
@pytest.mark.parametrize("splitter", ["best", "random"])
def test_criteria_of_no_other_library_grow_until_leaves_are_pure(criterion, splitter):
    tree = DecisionTreeClassifier(criterion=criterion, splitter=splitter)
    assert tree.fit(X, THREE).score(X, THREE) == 1.0
    targets = np.column_stack([TWO, THREE])
    np.testing.assert_array_equal(tree.fit(X, targets).predict(X), targets)
    few = DecisionTreeClassifier(criterion=criterion, splitter=splitter, max_leaf_nodes=7)
    assert few.fit(X, THREE).get_n_leaves() == 7
    assert few.score(X, THREE) > np.bincount(THREE).max() / len(THREE)


def test_a_stump_of_the_smallest_error():
    for y in (TWO, THREE):
        stump = DecisionTreeClassifier(criterion="error", max_depth=1).fit(X, y, WEIGHT)
        wrong = WEIGHT @ (stump.predict(X) != y)
        least = min(
            WEIGHT.sum() - sum(np.bincount(y[side], WEIGHT[side]).max() for side in (left, ~left))
            for column in X.T
            for value in np.unique(column)[:-1]
            if (left := column <= value).any()
        )
        np.testing.assert_allclose(wrong, least, rtol=1e-6)


# Leaves, paths, text and pictures


def test_leaves_and_paths():
    ours = DecisionTreeRegressor(min_samples_leaf=12).fit(X, Y, WEIGHT)
    scikit = theirs.DecisionTreeRegressor(min_samples_leaf=12).fit(X, Y, WEIGHT)
    assert (ours.get_depth(), ours.get_n_leaves()) == (scikit.get_depth(), scikit.get_n_leaves())
    leaf, other = ours.apply(X), scikit.apply(X)
    assert leaf.shape == (ROWS,)
    assert len(set(zip(leaf.tolist(), other.tolist(), strict=True))) == ours.get_n_leaves()
    paths, others = ours.decision_path(X), scikit.decision_path(X)
    assert paths.shape == others.shape
    np.testing.assert_array_equal(paths.sum(axis=1), others.sum(axis=1))
    assert (paths[np.arange(ROWS), leaf] == 1).all()


def test_text_and_picture():
    X, y = load_iris(return_X_y=True, as_frame=True)
    tree = DecisionTreeClassifier(max_depth=2).fit(X, y)
    text = tree.text()
    assert "petal" in text
    assert "3 leaves" in text
    assert tree.picture(max_depth=1).startswith("<svg")


def test_the_same_exact_tree():
    values = RNG.normal(size=(ROWS, 3))
    ours = DecisionTreeRegressor(tree_method="exact", min_samples_leaf=12).fit(values, Y)
    scikit = theirs.DecisionTreeRegressor(min_samples_leaf=12).fit(values, Y)
    assert_same_tree(ours, scikit)


def test_full_trees_split_what_gains_nothing():
    """XOR: the first split has zero gain, yet a full tree separates the classes."""
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    y = [0, 1, 1, 0]
    assert DecisionTreeClassifier().fit(corners, y).score(corners, y) == 1.0


def test_numbers_of_very_different_sizes():
    """Leaf values are means of y to nine digits, also next to much larger targets."""
    y = np.concatenate([np.linspace(1.0, 2.0, 99), [1e6]])
    x = np.arange(100.0)[:, np.newaxis]
    np.testing.assert_allclose(DecisionTreeRegressor().fit(x, y).predict(x), y, rtol=1e-9)


@pytest.mark.parametrize(("n", "n_features"), [(40_000, 1), (30_000, 3)])
def test_purity_does_not_depend_on_the_order_of_rows(n, n_features):
    """Near one huge target, small ones are within rounding of each other, but not transitively."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    y = rng.integers(0, 4, len(X)).astype(float)
    y[n // 2] = 2**30 - 1
    orders = [np.arange(len(X)), np.arange(len(X))[::-1], rng.permutation(len(X))]
    trees = [
        DecisionTreeRegressor(n_jobs=n_jobs).fit(X[order], y[order])
        for order, n_jobs in zip([orders[0], *orders], [1, 2, 2, 1], strict=True)
    ]
    assert len({tree.get_n_leaves() for tree in trees}) == 1
    answers = [tree.predict(X[:1000]) for tree in trees]
    np.testing.assert_allclose(answers[1:], [answers[0]] * 3, rtol=1e-12)


def test_importances_are_shares():
    X, y = load_iris(return_X_y=True)
    model = DecisionTreeClassifier(max_depth=3).fit(X, y)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.feature_importances_.argmax() in (2, 3)


def test_missing_values_have_a_side():
    x = np.array([0.0, 1, 2, 3, np.nan, np.nan])[:, np.newaxis]
    y = [0, 0, 0, 1, 1, 1]
    model = DecisionTreeClassifier().fit(x, y)
    np.testing.assert_array_equal(model.predict(x), y)
    assert model.model_.forest.n_nodes == 3


def test_sets_of_levels():
    """One split separates any two sets of category levels."""
    level = np.tile(np.array(list("abcdefgh")), 20)
    y = np.isin(level, ["b", "c", "f", "h"])
    model = DecisionTreeClassifier().fit(pd.DataFrame({"level": level}), y)
    assert model.model_.forest.n_nodes == 3
    numbers = np.where(level == "a", 5.0, np.where(y, 1.0, 3.0))
    model = DecisionTreeRegressor().fit(pd.DataFrame({"level": level}), numbers)
    assert model.model_.forest.n_nodes == 5


def test_random_cuts():
    """Random thresholds lie between the extremes and depend on the seed; full trees fit exactly."""
    x = np.array([0.0, 1.0, 2.0, 3.0, 100.0])[:, np.newaxis]
    y = np.arange(5.0)
    roots = set()
    for seed in range(30):
        model = DecisionTreeRegressor(splitter="random", random_state=seed).fit(x, y)
        np.testing.assert_array_equal(model.predict(x), y)
        roots.add(float(model.model_.forest.threshold[0]))
    # Uniform over the range of values: nearly always between 3 and 100, a gap with one threshold.
    assert 51.5 in roots
    assert len(roots) <= 3
    best = DecisionTreeRegressor(max_depth=1).fit(x, y)
    assert best.model_.forest.threshold[0] < 3


def test_extra_trees_are_trees_of_random_cuts():
    model = ExtraTreesRegressor(10, max_depth=3).fit(X, Y)
    assert {one.splitter for one in model.estimators_} == {"random"}
    thresholds = {float(one.model_.forest.threshold[0]) for one in model.estimators_}
    assert len(thresholds) > 5
    one = model.estimators_[4]
    np.testing.assert_allclose(
        np.mean([each.predict(X) for each in model.estimators_], axis=0), model.predict(X)
    )
    assert one.get_params()["max_depth"] == 3


def test_one_tree_sees_all_rows():
    """A single tree trains on all rows, so the seed matters only where features are sampled."""
    models = [DecisionTreeRegressor(random_state=seed).fit(X, Y) for seed in (0, 1)]
    np.testing.assert_array_equal(*(model.predict(X) for model in models))
    drawn = [
        DecisionTreeRegressor(random_state=seed, max_features=1, max_depth=3).fit(X, Y)
        for seed in (0, 1)
    ]
    assert not np.array_equal(*(model.predict(X) for model in drawn))
