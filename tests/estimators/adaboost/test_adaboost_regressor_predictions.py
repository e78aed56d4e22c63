"""AdaBoostRegressor: predictions, importances, kinds of tables, copies, files and errors."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.metrics import r2_score
from sklearn.tree import DecisionTreeRegressor

import arboost
from arboost import AdaBoostRegressor, Dataset
from arboost.models.files import model_file
from support.boosted import close

TREE = DecisionTreeRegressor(max_depth=2)
LEARNERS = {"engine": None, "scikit-learn": TREE}


def table(n_rows=300):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, size=(n_rows, 5)).astype(float)
    return X, np.sin(X[:, 0] / 6) + X[:, 1] / 40 + rng.normal(scale=0.3, size=n_rows)


def fit(learner="engine", **params):
    X, y = table()
    return AdaBoostRegressor(LEARNERS[learner], **{"n_estimators": 8} | params).fit(X, y), X, y


def test_predictions_are_those_of_one_learner():
    """Each predicted median is the prediction of one learner, without interpolation."""
    model, X, _ = fit()
    of_learners = np.stack([learner.predict(X) for learner in model.estimators_], axis=1)
    assert (of_learners == model.predict(X)[:, None]).any(axis=1).all()


def test_an_outlier_moves_a_median_little():
    X, y = table()
    y[0] = 1e6
    model = AdaBoostRegressor(n_estimators=30, loss="linear").fit(X, y)
    assert np.median(np.abs(model.predict(X) - y)) < 1.0


def test_staged_scores():
    model, X, y = fit()
    scores = list(model.staged_score(X, y))
    close(scores, [r2_score(y, p) for p in model.staged_predict(X)])
    assert scores[-1] == model.score(X, y)


def test_importances_by_hand():
    model, _, _ = fit(max_depth=2)
    total = np.zeros(5)
    for tree, weight in enumerate(model.estimator_weights_):
        one = model.model_.forest.single_tree(tree)
        inner = one.left >= 0
        gains = np.bincount(one.feature[inner], one.gain[inner], 5)
        total += weight * gains / gains.sum()
    close(model.feature_importances_, total / model.estimator_weights_.sum())
    assert model.feature_importances_[:2].sum() > 0.7


def test_learners_that_are_no_trees():
    X, y = load_diabetes(return_X_y=True)
    model = AdaBoostRegressor(Ridge(), n_estimators=10, loss="square").fit(X, y)
    assert model.n_iter_ == 10
    assert model.score(X, y) > 0.4


def test_missing_values_and_categories():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    town = rng.choice(["Ulm", "Oslo", "Bern", "Rome", "Kyiv"], 400)
    height = np.where(rng.random(400) < 0.3, np.nan, rng.normal(size=400))
    y = np.where(np.isin(town, ["Ulm", "Rome"]), 3.0, 0.0) + np.isnan(height)
    frame = pandas.DataFrame({"town": pandas.Categorical(town), "height": height})
    model = AdaBoostRegressor(max_depth=2).fit(frame, y)
    np.testing.assert_allclose(model.predict(frame), y, atol=1e-8)


@pytest.mark.parametrize("learner", LEARNERS)
def test_sparse_tables(learner):
    rng = np.random.default_rng(0)
    X = rng.integers(1, 9, size=(300, 6)) * (rng.random((300, 6)) < 0.2).astype(float)
    y = X.sum(axis=1) + rng.normal(size=300)
    dense = AdaBoostRegressor(LEARNERS[learner], n_estimators=8).fit(X, y)
    model = AdaBoostRegressor(LEARNERS[learner], n_estimators=8).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(model.predict(sparse.csr_array(X)), dense.predict(X))


def test_a_dataset_trains_the_same_model():
    model, X, y = fit()
    shared = AdaBoostRegressor(n_estimators=8).fit(Dataset(X, y))
    assert model_file.to_bytes(shared.model_) == model_file.to_bytes(model.model_)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("how", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies(learner, how):
    model, X, _ = fit(learner)
    np.testing.assert_array_equal(how(model).predict(X), model.predict(X))


def test_files(tmp_path):
    model, X, _ = fit()
    model.save(tmp_path / "model.arb")
    loaded = arboost.load(tmp_path / "model.arb")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.combine == "median"


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"loss": "huber"}, ValueError, "loss='huber' .*is not allowed"),
        ({"n_estimators": 0}, ValueError, "n_estimators=0 .*is not allowed"),
        ({"estimator": TREE, "max_depth": 5}, ValueError, "max_depth=5 .*with an estimator"),
        ({"algorithm": "real"}, TypeError, "algorithm"),
        ({"eval_metric": "auc", "n_iter_no_change": 2}, ValueError, "auc"),
    ],
    ids=str,
)
def test_wrong_parameters(params, error, message):
    X, y = table()
    with pytest.raises(error, match=message):
        AdaBoostRegressor(**params).fit(X, y)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("learner", LEARNERS)
def test_targets_must_be_finite(learner, bad):
    X, y = table()
    y[3] = bad
    with pytest.raises(ValueError, match="y"):
        AdaBoostRegressor(LEARNERS[learner]).fit(X, y)
