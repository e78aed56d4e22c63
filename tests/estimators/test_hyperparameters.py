"""Hyperparameters of a single tree: each has its documented effect.

Hyperparameters of row, column and tree sampling are in test_random_hyperparameters.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from arboost import GradientBoostingClassifier, GradientBoostingRegressor
from arboost.models.files.model_file import to_bytes
from support.trees import Tree, leaves_of

METHODS = ["hist", "exact"]


@pytest.fixture(scope="module")
def regression():
    return load_diabetes(return_X_y=True)


@pytest.fixture(scope="module")
def binary():
    return load_breast_cancer(return_X_y=True)


def regressor(**params):
    """One tree without shrinkage, regularisation or start score: leaf values are means of y."""
    plain = {"n_estimators": 1, "learning_rate": 1.0, "reg_lambda": 0.0, "base_score": 0.0}
    return GradientBoostingRegressor(**plain | params)


def test_n_estimators(regression):
    models = [GradientBoostingRegressor(n_estimators=n).fit(*regression) for n in (3, 7)]
    assert [model.model_.n_trees for model in models] == [3, 7]
    expected = models[1].model_.truncated(3).predict(regression[0])
    np.testing.assert_array_equal(models[0].predict(regression[0]), expected)


@pytest.mark.parametrize("method", METHODS)
def test_learning_rate_scales_the_values(regression, method):
    full = Tree(regressor(tree_method=method).fit(*regression))
    tenth = Tree(regressor(tree_method=method, learning_rate=0.1).fit(*regression))
    np.testing.assert_array_equal(full.threshold, tenth.threshold)
    np.testing.assert_allclose(tenth.value, 0.1 * full.value, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("max_depth", [1, 2, 5])
def test_max_depth(regression, method, max_depth):
    tree = Tree(regressor(tree_method=method, max_depth=max_depth).fit(*regression))
    assert tree.depth.max() == max_depth
    deeper = Tree(regressor(tree_method=method, max_depth=max_depth + 1).fit(*regression))
    assert deeper.n_leaves > tree.n_leaves


@pytest.mark.parametrize("method", METHODS)
def test_max_leaves_and_grow_policy(regression, method):
    """Leafwise growth takes the split of highest gain next; depthwise growth completes levels."""
    settings = {"tree_method": method, "max_leaves": 12, "max_depth": None}
    by_gain = Tree(regressor(grow_policy="leafwise", **settings).fit(*regression))
    by_level = Tree(regressor(grow_policy="depthwise", **settings).fit(*regression))
    assert by_gain.n_leaves == by_level.n_leaves == 12
    assert by_level.depth.max() == 4  # 8 leaves fill three levels
    assert by_gain.gain.sum() > by_level.gain.sum()
    unlimited = Tree(regressor(tree_method=method, max_depth=None).fit(*regression))
    kept = np.sort(by_gain.gain[~by_gain.is_leaf])
    parents = np.sort(unlimited.gain[~unlimited.is_leaf])
    assert kept[-1] == parents[-1]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("least", [1.0, 10.0, 60.0])
def test_min_child_weight_is_of_hessians(binary, method, least):
    X, y = binary
    settings = {"n_estimators": 1, "min_child_weight": least, "max_depth": None}
    tree = Tree(GradientBoostingClassifier(tree_method=method, **settings).fit(X, y))
    assert tree.n_leaves > 1
    p = y.mean()
    for leaf, members in leaves_of(X, y, tree):
        hessians = p * (1 - p) * len(members)
        assert hessians >= least
        assert tree.cover[leaf] == pytest.approx(hessians, rel=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("least", [1, 7, 50])
def test_min_samples_leaf_is_of_rows(regression, method, least):
    X, y = regression
    weight = np.where(np.arange(len(y)) % 2 == 0, 0.01, 100.0)
    model = regressor(tree_method=method, min_samples_leaf=least, min_child_weight=0, max_depth=8)
    sizes = [len(rows) for _, rows in leaves_of(X, y, Tree(model.fit(X, y, weight)))]
    assert min(sizes) >= least
    if least > 1:
        more = regressor(tree_method=method, min_child_weight=0, max_depth=8).fit(X, y, weight)
        assert min(len(rows) for _, rows in leaves_of(X, y, Tree(more))) < least


@pytest.mark.parametrize("method", METHODS)
def test_gamma_is_the_gain_to_exceed(regression, method):
    free = Tree(regressor(tree_method=method, max_depth=4).fit(*regression))
    gains = np.sort(free.gain[~free.is_leaf])
    gamma = gains[len(gains) // 2] * 0.999
    held = Tree(regressor(tree_method=method, max_depth=4, gamma=gamma).fit(*regression))
    assert (held.gain[~held.is_leaf] > gamma).all()
    assert 1 < held.n_leaves < free.n_leaves
    none = Tree(regressor(tree_method=method, gamma=1.001 * free.gain.max()).fit(*regression))
    assert none.n_leaves == 1


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("reg_lambda", "reg_alpha", "max_delta_step"),
    [(0.0, 0.0, 0.0), (9.0, 0.0, 0.0), (1.0, 500.0, 0.0), (2.0, 0.0, 20.0), (3.0, 400.0, 30.0)],
)
def test_leaf_value_and_gain(regression, method, reg_lambda, reg_alpha, max_delta_step):
    """Leaf value -S(G) / (H + lambda); the gain is twice the decrease of the objective.

    With max_delta_step the objective keeps its L1 term; XGBoost drops the term there.
    """
    X, y = regression
    penalties = {
        "reg_lambda": reg_lambda,
        "reg_alpha": reg_alpha,
        "max_delta_step": max_delta_step,
    }
    start = 100.0
    model = regressor(tree_method=method, max_depth=3, base_score=start, **penalties).fit(X, y)
    tree = Tree(model)

    def step_and_score(rows):
        g, h = (start - rows).sum(), len(rows) + reg_lambda
        size = max(abs(g) - reg_alpha, 0.0) / h
        size = min(size, max_delta_step or np.inf)
        step = -np.sign(g) * size
        return step, -(2 * g * step + h * step**2 + 2 * reg_alpha * abs(step))

    for leaf, rows in leaves_of(X, y, tree):
        assert tree.value[leaf] == pytest.approx(step_and_score(rows)[0], rel=1e-7, abs=1e-9)
    below = X[:, tree.feature[0]] <= tree.threshold[0]
    scores = [step_and_score(rows)[1] for rows in (y[below], y[~below], y)]
    assert tree.gain[0] == pytest.approx(scores[0] + scores[1] - scores[2], rel=1e-6)


def test_max_bins_is_the_number_of_candidates(regression):
    X, y = regression
    model = regressor(max_bins=4, max_depth=None, min_samples_leaf=1).fit(X, y)
    tree = Tree(model)
    used = {
        (f, t)
        for f, t, leaf in zip(tree.feature, tree.threshold, tree.is_leaf, strict=True)
        if not leaf
    }
    per_feature = [sum(f == feature for f, _ in used) for feature in range(X.shape[1])]
    assert max(per_feature) == 3


def test_tree_methods_agree_when_all_values_are_candidates(regression):
    """Few values, and a sketch finer than their weights: all methods have the same candidates."""
    X, y = regression
    X = np.round(X, 2)
    settings = {"n_estimators": 5, "learning_rate": 0.3}
    exact = GradientBoostingRegressor(tree_method="exact", **settings).fit(X, y)
    others = [
        {"tree_method": "hist"},
        {"tree_method": "approx", "sketch_eps": 1e-4, "sketch_scope": "global"},
        {"tree_method": "approx", "sketch_eps": 1e-4, "sketch_scope": "local"},
    ]
    for other in others:
        model = GradientBoostingRegressor(**settings | other).fit(X, y)
        np.testing.assert_allclose(model.predict(X), exact.predict(X), rtol=1e-6)


@pytest.mark.parametrize("scope", ["global", "local"])
def test_sketch_eps_bounds_the_candidates(scope, rng):
    """About 1 / eps candidates: with eps = 0.25 the root cannot separate the first 30 rows."""
    X = rng.permutation(1000.0 * np.arange(1000)).reshape(-1, 1)
    y = (X[:, 0] < 30_000).astype(float)  # the first 30 rows

    def size_of_left(eps):
        model = regressor(tree_method="approx", sketch_eps=eps, sketch_scope=scope, max_depth=1)
        tree = Tree(model.fit(X, y))
        return int((X[:, 0] <= tree.threshold[0]).sum())

    assert size_of_left(0.001) == 30
    assert size_of_left(0.25) >= 100


def test_local_sketch_is_renewed_in_every_node(rng):
    """Local scope gives small nodes their own candidates; global candidates are too coarse."""
    X = rng.permutation(np.arange(1000.0)).reshape(-1, 1)
    y = np.where(X[:, 0] < 500, 100.0, 0.0) + (X[:, 0] == 499) * 50 + (X[:, 0] < 250) * 3.0
    settings = {"tree_method": "approx", "sketch_eps": 0.1, "max_depth": 6}
    loss = {
        scope: np.mean((regressor(sketch_scope=scope, **settings).fit(X, y).predict(X) - y) ** 2)
        for scope in ("global", "local")
    }
    assert loss["local"] < loss["global"]


def test_base_score_is_where_scores_begin(regression, binary):
    X, y = regression
    root = regressor(base_score=50.0, gamma=1e12).fit(X, y)
    assert root.model_.base_score[0] == 50.0
    np.testing.assert_allclose(root.predict(X), y.mean(), rtol=1e-9)  # one leaf: the mean residual
    X, y = binary
    model = GradientBoostingClassifier(base_score=0.2, n_estimators=1, gamma=1e12).fit(X, y)
    assert model.model_.base_score[0] == pytest.approx(np.log(0.2 / 0.8))


def test_base_score_of_a_log_link():
    X, y = np.arange(20.0).reshape(-1, 1), np.arange(20.0)
    model = GradientBoostingRegressor(loss="poisson", base_score=3.0, n_estimators=1).fit(X, y)
    assert model.model_.base_score[0] == pytest.approx(np.log(3.0))
    np.testing.assert_allclose(model.model_.truncated(0).predict(X), 3.0)


@pytest.mark.parametrize(
    ("setting", "weights"),
    [
        ({"scale_pos_weight": 3.0}, (1.0, 3.0)),
        ({"class_weight": {0: 0.5, 1: 2.0}}, (0.5, 2.0)),
        ({"class_weight": "balanced"}, (569 / (2 * 212), 569 / (2 * 357))),
    ],
)
def test_class_weights_are_sample_weights(binary, setting, weights):
    X, y = binary
    given = GradientBoostingClassifier(n_estimators=5, **setting).fit(X, y)
    weighted = GradientBoostingClassifier(n_estimators=5).fit(X, y, np.take(weights, y))
    np.testing.assert_array_equal(given.decision_function(X), weighted.decision_function(X))
    plain = GradientBoostingClassifier(n_estimators=5).fit(X, y)
    assert not np.allclose(given.decision_function(X), plain.decision_function(X))


def test_class_weight_multiplies_sample_weight(binary):
    X, y = binary
    weight = np.linspace(0.5, 2.0, len(y))
    given = GradientBoostingClassifier(n_estimators=5, class_weight={0: 2.0, 1: 0.25})
    weighted = GradientBoostingClassifier(n_estimators=5).fit(X, y, weight * np.take([2, 0.25], y))
    given.fit(X, y, weight)
    np.testing.assert_array_equal(given.decision_function(X), weighted.decision_function(X))


def test_multi_strategy():
    X, y = load_wine(return_X_y=True)
    by_class = GradientBoostingClassifier(n_estimators=4).fit(X, y).model_
    vectors = GradientBoostingClassifier(n_estimators=4, multi_strategy="multi_output_tree")
    vectors = vectors.fit(X, y).model_
    assert (by_class.n_trees, by_class.forest.width) == (12, 1)
    assert (vectors.n_trees, vectors.forest.width) == (4, 3)


def test_random_state_changes_only_what_is_drawn(regression):
    models = [
        GradientBoostingRegressor(n_estimators=5, random_state=seed, **params).fit(*regression)
        for params in ({}, {"subsample": 0.5})
        for seed in (0, 1, 0)
    ]
    scores = [model.predict(regression[0]) for model in models]
    np.testing.assert_array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[3], scores[4])
    assert to_bytes(models[3].model_) == to_bytes(models[5].model_)


def test_tweedie_power(rng):
    """Power 1 is Poisson and power 2 gamma: powers close to them give the same trees."""
    X = rng.normal(size=(400, 3))
    y = rng.gamma(2.0, np.exp(X[:, 0]))

    def scores(loss, **params):
        model = GradientBoostingRegressor(loss=loss, n_estimators=10, **params).fit(X, y)
        return model.predict(X)

    near = {1.00001: scores("poisson"), 1.99999: scores("gamma")}
    for power, expected in near.items():
        other = scores("tweedie", tweedie_power=power)
        np.testing.assert_allclose(other, expected, rtol=1e-3)
    middle = scores("tweedie", tweedie_power=1.5)
    for expected in near.values():
        assert not np.allclose(middle, expected, rtol=0.01)


def test_alpha_is_hubers_share(regression):
    """alpha near 1 clips no residual and equals squared error; 0.5 clips half of the rows."""
    X, y = regression
    settings = {"n_estimators": 10, "base_score": 150.0}
    squared = GradientBoostingRegressor(**settings).fit(X, y).predict(X)
    alpha = 1 - 0.5 / len(y)  # alpha=1 is refused: it would be an alias of squared error
    whole = GradientBoostingRegressor(loss="huber", alpha=alpha, **settings).fit(X, y).predict(X)
    half = GradientBoostingRegressor(loss="huber", alpha=0.5, **settings).fit(X, y).predict(X)
    np.testing.assert_allclose(whole, squared, rtol=1e-6)
    assert not np.allclose(half, squared, rtol=1e-3)
