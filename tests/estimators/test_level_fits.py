"""Fits on categories: level sets in training, prediction, model files and checkpoints."""

from __future__ import annotations

import numpy as np
import pytest

import arboost
from arboost import Dataset, GradientBoostingClassifier, GradientBoostingRegressor
from arboost.training.checkpoint import Checkpoint
from support.level_sets import random_problem


def noisy_effects(seed, n, outputs=1):
    """Return a table with level effects in columns 0 and 2, numbers in column 1, and targets."""
    matrix, g, _ = random_problem(np.random.default_rng(seed), n, [80, 0, 12], outputs)
    return matrix, g


def regressor(**params):
    return GradientBoostingRegressor(
        **({"n_estimators": 8, "categorical_features": [0, 2]} | params)
    )


@pytest.mark.parametrize("as_dataset", [False, True])
@pytest.mark.parametrize("tree_method", ["hist", "exact", "approx"])
def test_predictions_are_the_scores_of_training(tree_method, as_dataset):
    """Training rows as validation set: scores from bin codes equal those of prediction."""
    X, g = noisy_effects(0, 3000)
    how = {"tree_method": tree_method, "categorical_features": [0, 2]}
    given = Dataset(X, **how) if as_dataset else X
    model = regressor(tree_method=tree_method, subsample=0.5)
    model.fit(given, g[:, 0], X_val=X, y_val=g[:, 0])
    assert model.model_.forest.has_sets
    error = np.mean((model.predict(X) - g[:, 0]) ** 2)
    (results,) = model.evals_result_["validation"].values()
    np.testing.assert_allclose(results[-1], error, rtol=1e-12)


def test_levels_that_only_rows_of_no_weight_have():
    """Such levels are in the schema but not in any level set: they predict as unknown levels do."""
    X, g = noisy_effects(1, 2000)
    weight = np.where(np.isin(X[:, 0], [0, 7, 33, 79]), 0.0, 1.0)
    weightless, unknown = X.copy(), X.copy()
    weightless[1:, 0] = 7
    unknown[1:, 0] = 1000
    for tree_method in ("hist", "exact", "approx"):
        model = regressor(tree_method=tree_method).fit(X, g[:, 0], sample_weight=weight)
        np.testing.assert_array_equal(model.predict(weightless), model.predict(unknown))


def test_categories_beat_the_order_of_their_codes():
    X, g = noisy_effects(1, 6000)
    half = np.arange(6000) < 3000
    errors = []
    for categories in ("from_dtype", [0, 2]):
        model = regressor(n_estimators=60, max_depth=4, categorical_features=categories)
        found = model.fit(X[half], g[half, 0]).predict(X[~half])
        errors.append(np.mean((found - g[~half, 0]) ** 2))
    assert errors[1] < 0.9 * errors[0]


def test_model_files_keep_sets(tmp_path):
    X, g = noisy_effects(2, 2000)
    seen = set()
    for n_jobs in (1, 2, 4):
        model = regressor(n_jobs=n_jobs).fit(X, g[:, 0])
        model.save(tmp_path / "model.arb")
        seen.add((tmp_path / "model.arb").read_bytes())
        loaded = arboost.load(tmp_path / "model.arb")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        short = loaded.truncated(2)
        np.testing.assert_array_equal(short.predict_raw(X), list(loaded.staged_raw(X))[1])
    assert len(seen) == 1


def test_unknown_levels_are_missing_in_prediction():
    X, g = noisy_effects(3, 2000)
    model = regressor().fit(X, g[:, 0])
    missing = X.copy()
    missing[1:, 0] = np.nan  # row 0 stays known: a column without known levels raises a warning
    for odd in (80.0, 254.0, 255.0, 0.5, -1.0, np.inf):
        unknown = X.copy()
        unknown[1:, 0] = odd
        np.testing.assert_array_equal(model.predict(unknown), model.predict(missing))


def test_training_goes_on_with_a_model():
    X, g = noisy_effects(4, 2000)
    first = regressor(n_estimators=3).fit(X, g[:, 0])
    both = regressor(n_estimators=2).fit(X, g[:, 0], init_model=first)
    assert both.model_.n_rounds == 5
    np.testing.assert_array_equal(
        both.model_.truncated(3).predict_raw(X), first.model_.predict_raw(X)
    )


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
def test_classes_and_importances(strategy):
    X, g = noisy_effects(4, 5000, outputs=3)
    y = g.argmin(axis=1)
    model = GradientBoostingClassifier(
        n_estimators=15, multi_strategy=strategy, categorical_features=[0, 2]
    )
    model.fit(X, y)
    assert model.score(X, y) > 0.7
    assert (model.feature_importances_[[0, 2]] > 0.1).all()


def test_a_fit_goes_on_from_its_checkpoint(tmp_path):
    X, g = noisy_effects(5, 2000)
    whole = regressor().fit(X, g[:, 0])

    def stop(done):
        if done.index == 4:
            raise InterruptedError

    checkpoint = Checkpoint(tmp_path / "fit.arc", every=2)
    again = regressor()
    with pytest.raises(InterruptedError):
        again.fit(X, g[:, 0], callbacks=[stop], checkpoint=checkpoint)
    assert (tmp_path / "fit.arc").exists()
    again.fit(X, g[:, 0], checkpoint=checkpoint)
    np.testing.assert_array_equal(again.predict(X), whole.predict(X))


def test_categories_are_not_monotone():
    X, g = noisy_effects(6, 500)
    message = r"names the feature 2, but that is a category.*no order.*Leave it out"
    with pytest.raises(ValueError, match=f"monotone_constraints {message}"):
        regressor(monotone_constraints={2: 1}).fit(X, g[:, 0])
    model = regressor(monotone_constraints={1: 1}).fit(X, g[:, 0])
    assert model.model_.forest.has_sets
    (proof,) = model.model_.verify_monotone()
    assert proof.holds
    with pytest.raises(ValueError, match=f"features {message}"):
        model.model_.verify_monotone({2: -1})


def test_constraints_and_samples_of_columns_know_categories():
    X, g = noisy_effects(7, 2000)
    model = regressor(interaction_constraints=[[0], [1], [2]], colsample_bynode=0.7)
    forest = model.fit(X, g[:, 0]).model_.forest
    for tree in range(forest.n_trees):
        nodes = slice(*forest.tree_start[tree : tree + 2])
        assert len(np.unique(forest.feature[nodes][forest.is_split[nodes]])) <= 1


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("max_cat_to_onehot", (1, 40)),
        ("max_cat_threshold", (1, 64)),
        ("min_cat_weight", (0.0, 50.0)),
        ("cat_smooth", (0.0, 50.0)),
        ("cat_l2", (0.0, 200.0)),
    ],
)
def test_every_parameter_of_set_splits_counts(name, values):
    X, g = noisy_effects(8, 1000)
    alone = {"min_cat_weight": 0.0}
    one, two = (regressor(**(alone | {name: v})).fit(X, g[:, 0]).predict(X) for v in values)
    assert (one != two).any()
