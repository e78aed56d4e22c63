"""warm_start of boosters, and the fitted attributes that other ensembles have, too."""

import numpy as np
import pytest

import arboost
from arboost import DataWarning, GradientBoostingClassifier, GradientBoostingRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = X[:, 0] + 0.3 * RNG.normal(size=200)
CLASSES = np.array(["a", "b", "c"])[RNG.integers(0, 3, 200)]


def test_rounds_are_added():
    model = GradientBoostingRegressor(n_estimators=5, warm_start=True).fit(X, Y)
    model.set_params(n_estimators=12).fit(X, Y)
    assert model.n_iter_ == model.model_.n_rounds == 12
    whole = GradientBoostingRegressor(n_estimators=12).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=1e-6)
    by_model = GradientBoostingRegressor(n_estimators=5).fit(X, Y)
    longer = GradientBoostingRegressor(n_estimators=7).fit(X, Y, init_model=by_model)
    np.testing.assert_array_equal(model.predict(X), longer.predict(X))


def test_without_it_a_fit_starts_anew():
    model = GradientBoostingRegressor(n_estimators=5).fit(X, Y)
    assert model.set_params(n_estimators=3).fit(X, Y).n_iter_ == 3


def test_nothing_to_add():
    model = GradientBoostingRegressor(n_estimators=5, warm_start=True).fit(X, Y)
    before = model.predict(X)
    with pytest.warns(DataWarning, match="number of rounds that warm_start=True keeps"):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), before)
    with pytest.raises(ValueError, match="warm_start=True keeps the 5 rounds"):
        model.set_params(n_estimators=3).fit(X, Y)


def test_early_stopping_continues():
    model = GradientBoostingRegressor(n_estimators=50, n_iter_no_change=3, warm_start=True)
    model.fit(X, Y)
    n_kept = model.n_iter_
    assert n_kept < 50
    model.fit(X, Y)
    assert n_kept < model.n_iter_ <= 50


def test_automatic_number_of_rounds_continues():
    model = GradientBoostingRegressor(warm_start=True, learning_rate=0.3).fit(X, Y)
    n_kept = model.n_iter_
    assert model.fit(X, Y).n_iter_ > n_kept


def test_init_model_comes_first():
    first = GradientBoostingRegressor(n_estimators=2).fit(X, Y)
    model = GradientBoostingRegressor(n_estimators=3, warm_start=True).fit(X, Y)
    assert model.fit(X, Y, init_model=first).n_iter_ == 5


def test_files_do_not_depend_on_it(tmp_path):
    for name, warm_start in (("a", False), ("b", True)):
        model = GradientBoostingRegressor(n_estimators=3, warm_start=warm_start).fit(X, Y)
        model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    loaded = GradientBoostingRegressor.load(tmp_path / "a").set_params(warm_start=True)
    assert loaded.set_params(n_estimators=5).fit(X, Y).n_iter_ == 5


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_trees_sum_to_the_raw_scores(strategy):
    model = GradientBoostingClassifier(n_estimators=4, multi_strategy=strategy).fit(X, CLASSES)
    trees = model.estimators_
    assert trees.shape == (4, 3 if strategy == "one_output_per_tree" else 1)
    total = sum(np.column_stack([tree.predict(X) for tree in row]) for row in trees)
    np.testing.assert_allclose(total + model.model_.base_score, model.predict_raw(X), rtol=1e-9)
    assert model.n_classes_ == 3


def test_trees_of_a_regressor():
    model = GradientBoostingRegressor(n_estimators=4, num_parallel_tree=2).fit(X, Y)
    assert model.estimators_.shape == (4, 2)
    total = sum(tree.predict(X) for tree in model.estimators_.ravel())
    np.testing.assert_allclose(total + model.model_.base_score, model.predict(X), rtol=1e-9)
    assert isinstance(model.estimators_[0, 0], arboost.Predictor)


def test_one_class_has_no_trees():
    with pytest.warns(DataWarning, match="one class only"):
        model = GradientBoostingClassifier(n_estimators=2).fit(X, np.zeros(200))
    assert model.estimators_.shape == (0, 1)
    assert model.n_classes_ == 1


# ---- monotone constraints ----

MONOTONE = [
    GradientBoostingRegressor(n_estimators=5),
    arboost.RandomForestRegressor(n_estimators=5),
    arboost.ExtraTreesRegressor(n_estimators=5),
    arboost.DecisionTreeRegressor(),
]


@pytest.mark.parametrize("model", MONOTONE, ids=lambda one: type(one).__name__)
def test_monotone_constraints_have_two_names(model, tmp_path):
    files = []
    for name in ("monotone_constraints", "monotonic_cst"):
        fitted = type(model)(**model.get_params() | {name: {0: 1}}).fit(X, Y)
        assert all(proof.holds for proof in fitted.verify_monotone())
        fitted.save(tmp_path / name)
        files.append((tmp_path / name).read_bytes())
    assert files[0] == files[1]
    with pytest.raises(ValueError, match="are one parameter, but both are set"):
        fitted.set_params(monotone_constraints={0: 1}).fit(X, Y)
