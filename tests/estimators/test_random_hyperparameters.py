"""Hyperparameters of row and column sampling, constraints and parallel trees."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from arboost import GradientBoostingClassifier, GradientBoostingRegressor
from arboost.models.files.model_file import to_bytes
from support.trees import Tree, trees_of

METHODS = ["hist", "exact"]
N_FEATURES = 10


@pytest.fixture(scope="module")
def regression():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def all_useful():
    """Ten equally informative columns: a tree uses every column that is offered to it."""
    X = np.random.default_rng(1).normal(size=(600, N_FEATURES))
    return X, np.sign(X).sum(axis=1)


def regressor(**params):
    plain = {"n_estimators": 1, "learning_rate": 1.0, "base_score": 0.0}
    return GradientBoostingRegressor(**plain | params)


# ---- rows ----


@pytest.mark.parametrize("method", METHODS)
def test_subsample_is_a_share_of_the_rows(method, rng):
    X, y = rng.normal(size=(4000, 2)), rng.normal(size=4000)
    model = regressor(tree_method=method, subsample=0.3, n_estimators=6, learning_rate=0.1)
    # The hessian is 1: the root's cover is its number of rows.
    covers = [tree.cover[0] for tree in trees_of(model.fit(X, y))]
    assert all(abs(cover - 1200) < 5 * np.sqrt(4000 * 0.3 * 0.7) for cover in covers)


@pytest.mark.parametrize("method", METHODS)
def test_rows_outside_the_sample_do_not_matter(method, rng):
    """A changed target changes the tree only if its row is in the sample."""
    n = 60
    X, y = rng.normal(size=(n, 3)), rng.uniform(1, 2, n)
    y[0] = 2.0  # remains the largest gradient, which sets the scale of the integers

    def tree_bytes(target):
        model = regressor(tree_method=method, subsample=0.5, max_depth=3).fit(X, target)
        return to_bytes(model.model_)

    before = tree_bytes(y)
    drawn = []
    for i in range(1, n):
        changed = y.copy()
        changed[i] = 1.0 + (y[i] - 1.0) / 2
        drawn.append(tree_bytes(changed) != before)
    cover = Tree(regressor(tree_method=method, subsample=0.5, max_depth=3).fit(X, y)).cover[0]
    assert 15 <= cover <= 45
    assert sum(drawn) in (cover, cover - 1)  # row 0 is not changed


def test_each_tree_draws_anew(regression):
    X, y = regression
    model = regressor(subsample=0.5, n_estimators=2, learning_rate=1e-12, max_depth=3).fit(X, y)
    first, second = trees_of(model)  # the tiny learning rate leaves the gradients unchanged
    same_shape = len(first.left) == len(second.left)
    assert not (same_shape and np.array_equal(first.threshold, second.threshold))


def test_gradient_based_sampling_keeps_sums(rng):
    """Sampled rows have the weight 1 / probability: the expected gain is that of all rows.

    Leaf values and covers come from all rows.
    """
    n = 20_000
    X = rng.normal(size=(n, 4))
    y = X[:, 0] + rng.standard_t(3, n)
    settings = {"max_depth": 2, "learning_rate": 1.0, "n_estimators": 1}
    full = Tree(regressor(**settings).fit(X, y))
    settings |= {"subsample": 0.2, "sampling_method": "gradient_based"}
    covers, gains = [], []
    for seed in range(10):
        tree = Tree(regressor(random_state=seed, **settings).fit(X, y))
        covers.append(tree.cover[0])
        gains.append(tree.gain[0])
    np.testing.assert_allclose(covers, n, rtol=1e-6)
    assert np.mean(gains) == pytest.approx(full.gain[0], rel=0.05)
    assert len(set(gains)) > 1


def test_gradient_based_sampling_prefers_large_gradients(rng):
    """The row of by far the largest gradient is always drawn; uniform sampling mostly misses it."""
    X = np.arange(500.0).reshape(-1, 1)
    y = rng.normal(size=500)
    y[250] = 1e4
    found = {"uniform": 0, "gradient_based": 0}
    for method in found:
        for seed in range(20):
            model = regressor(
                subsample=0.1, sampling_method=method, random_state=seed, reg_lambda=0.01
            )
            found[method] += model.fit(X, y).predict(X[250:251])[0] > 10
    assert found["gradient_based"] == 20
    assert found["uniform"] <= 8


# ---- columns ----


@pytest.mark.parametrize("method", METHODS)
def test_colsample_bytree(all_useful, method):
    settings = {"max_depth": 6, "n_estimators": 12, "learning_rate": 0.1}
    model = regressor(tree_method=method, colsample_bytree=0.3, **settings).fit(*all_useful)
    sets = [frozenset(tree.used) for tree in trees_of(model)]
    assert all(len(used) == 3 for used in sets)
    assert len(set(sets)) > 4
    assert frozenset.union(*sets) == set(range(N_FEATURES))


@pytest.mark.parametrize("method", METHODS)
def test_colsample_bylevel(all_useful, method):
    settings = {"max_depth": 6, "n_estimators": 6, "learning_rate": 0.1}
    model = regressor(tree_method=method, colsample_bylevel=0.2, **settings).fit(*all_useful)
    changes = 0
    for tree in trees_of(model):
        by_level = [
            {int(f) for f in tree.feature[~tree.is_leaf & (tree.depth == level)]}
            for level in range(6)
        ]
        assert all(1 <= len(used) <= 2 for used in by_level)
        changes += len({frozenset(used) for used in by_level[2:]}) > 1
        assert len(tree.used) > 2
    assert changes > 3


@pytest.mark.parametrize("method", METHODS)
def test_colsample_bynode(rng, method):
    """One column in ten per node: a tenth of the roots can use the only informative column."""
    X = rng.normal(size=(300, N_FEATURES))
    y = np.sign(X[:, 4])
    settings = {"max_depth": 2, "n_estimators": 300, "learning_rate": 1e-9}
    model = regressor(tree_method=method, colsample_bynode=0.1, **settings).fit(X, y)
    trees = trees_of(model)
    roots = np.array([tree.feature[0] for tree in trees])
    assert 10 <= (roots == 4).sum() <= 55
    assert len(set(roots)) == N_FEATURES
    # Nodes of one level have independent samples: most pairs of siblings differ.
    pairs = [tree.feature[1:3] for tree in trees if not tree.is_leaf[1:3].any()]
    assert np.mean([left != right for left, right in pairs]) > 0.6


@pytest.mark.parametrize("method", METHODS)
def test_column_samples_are_drawn_from_each_other(all_useful, method):
    """Nested samples: half of the columns per tree, half of those per level, half per node."""
    X, y = all_useful
    shares = dict.fromkeys(("colsample_bytree", "colsample_bylevel", "colsample_bynode"), 0.5)
    settings = {"max_depth": 6, "n_estimators": 5, "learning_rate": 0.1}
    model = regressor(tree_method=method, **shares, **settings).fit(X[:, :8], y)
    for tree in trees_of(model):
        assert len(tree.used) <= 4
        for level in range(6):
            assert len(set(tree.feature[~tree.is_leaf & (tree.depth == level)])) <= 2


# ---- constraints ----


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sign", [1, -1])
def test_monotone_constraints(method, sign, rng):
    X = rng.uniform(-3, 3, size=(800, 3))
    y = sign * (X[:, 0] + 2 * np.sin(3 * X[:, 0])) + X[:, 1] * X[:, 2] + rng.normal(size=800)
    free = GradientBoostingRegressor(tree_method=method, n_estimators=30).fit(X, y)
    held = GradientBoostingRegressor(
        tree_method=method, n_estimators=30, monotone_constraints={0: sign}
    ).fit(X, y)
    grid = np.linspace(-3.5, 3.5, 300)
    for model, kept in ((free, False), (held, True)):
        worst = 0.0
        for row in X[:20]:
            line = np.repeat(row[None], len(grid), axis=0)
            line[:, 0] = grid
            worst = min(worst, (sign * np.diff(model.predict(line))).min())
        assert (worst >= 0) == kept
    assert held.score(X, y) > 0.5


def test_monotone_constraints_by_name_and_position(regression):
    pandas = pytest.importorskip("pandas")
    X, y = regression
    table = pandas.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    settings = {"n_estimators": 5}
    by_name = GradientBoostingRegressor(monotone_constraints={"x2": 1, "x3": -1}, **settings)
    sequence = [0, 0, 1, -1, 0, 0, 0, 0, 0, 0]
    by_place = GradientBoostingRegressor(monotone_constraints=sequence, **settings)
    expected = by_place.fit(X, y).predict(X)
    np.testing.assert_array_equal(by_name.fit(table, y).predict(table), expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("constraints", "allowed"),
    [
        ([[0, 1, 2], [2, 3], [4, 5, 6, 7, 8, 9]], None),
        ("pairwise", 2),
        ("no_interactions", 1),
    ],
)
def test_interaction_constraints(all_useful, method, constraints, allowed):
    """The features on a path lie in one group, or do not exceed the allowed number."""
    model = GradientBoostingRegressor(
        tree_method=method, n_estimators=15, interaction_constraints=constraints
    ).fit(*all_useful)
    paths = [path for tree in trees_of(model) for path in tree.paths()]
    if allowed is not None:
        assert max(len(path) for path in paths) == allowed
        return
    assert all(any(path <= set(group) for group in constraints) for path in paths)
    assert max(len(path) for path in paths) > 2
    assert set().union(*paths) == set(range(N_FEATURES))


# ---- parallel trees ----


@pytest.mark.parametrize("method", METHODS)
def test_num_parallel_tree_without_sampling_changes_nothing(regression, method):
    """Three equal trees, each with a third of the leaf values."""
    X, y = regression
    one = GradientBoostingRegressor(tree_method=method, n_estimators=4).fit(X, y)
    three = GradientBoostingRegressor(tree_method=method, n_estimators=4, num_parallel_tree=3)
    three.fit(X, y)
    assert three.model_.n_trees == 12
    assert three.n_iter_ == 4
    np.testing.assert_allclose(three.predict(X), one.predict(X), rtol=1e-9)
    values = [tree.value for tree in trees_of(three)[:3]]
    np.testing.assert_allclose(values[0], trees_of(one)[0].value / 3, rtol=1e-12)
    np.testing.assert_array_equal(values[0], values[2])


def test_num_parallel_tree_is_a_forest_a_round(regression):
    """A forest per round: trees on separate row samples and the same gradients."""
    X, y = regression
    model = regressor(num_parallel_tree=25, subsample=0.6, colsample_bynode=0.5, max_depth=8)
    model.fit(X, y)
    trees = trees_of(model)
    assert len(trees) == 25
    assert len({tree.threshold.tobytes() for tree in trees}) == 25
    mean = np.mean([25 * tree.value[tree.leaf_of(X)] for tree in trees], axis=0)
    np.testing.assert_allclose(model.predict(X), mean, rtol=1e-9)


def test_num_parallel_tree_of_many_classes():
    X, y = load_wine(return_X_y=True)
    settings = {"n_estimators": 3, "num_parallel_tree": 4, "subsample": 0.7}
    model = GradientBoostingClassifier(**settings).fit(X, y)
    assert model.model_.n_trees == 3 * 4 * 3
    counts = np.bincount(model.model_.forest.output)
    np.testing.assert_array_equal(counts, [12, 12, 12])
    assert len(list(model.staged_predict(X))) == 3
    assert model.score(X, y) > 0.9


def test_samples_do_not_depend_on_threads():
    X, y = load_breast_cancer(return_X_y=True)
    settings = {
        "n_estimators": 5,
        "subsample": 0.5,
        "colsample_bytree": 0.7,
        "colsample_bylevel": 0.7,
        "colsample_bynode": 0.7,
        "num_parallel_tree": 2,
    }
    models = [GradientBoostingClassifier(n_jobs=n, **settings).fit(X, y) for n in (1, 3)]
    assert to_bytes(models[0].model_) == to_bytes(models[1].model_)
