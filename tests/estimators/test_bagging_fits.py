"""Bagging: row weights, warm starts and refused input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from arboost import (
    BaggingClassifier,
    BaggingRegressor,
    Dataset,
    DataWarning,
    GradientBoostingRegressor,
    SchemaError,
)
from arboost.estimators import member_fits
from support.bagged import DIABETES, IRIS, Unweighted, Witness, numbered

N_MEMBERS = 1000

# ---- weights ----


def test_weights_are_counts_in_law():
    """Bags of weighted rows and bags of repeated rows have the same distribution.

    The mean of y in a bag of sum(w) draws has the weighted mean and 1/sum(w) of the variance.
    """
    rng = np.random.default_rng(0)
    y, weight = rng.normal(size=40), rng.integers(0, 5, 40)
    repeated = np.repeat(y, weight)
    spreads = []
    for target, of_rows in ((y, weight), (repeated, None)):
        model = BaggingRegressor(
            DummyRegressor(), n_estimators=N_MEMBERS, max_samples=1.0, n_jobs=1
        )
        model.fit(np.zeros((len(target), 1)), target, sample_weight=of_rows)
        means = np.array([member.constant_[0, 0] for member in model])
        error = repeated.std() / np.sqrt(len(repeated))
        assert means.mean() == pytest.approx(repeated.mean(), abs=5 * error / np.sqrt(N_MEMBERS))
        spreads.append(means.std() / error)
    np.testing.assert_allclose(spreads, 1, atol=5 / np.sqrt(2 * N_MEMBERS))


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize(
    "estimator", [DecisionTreeRegressor(), GradientBoostingRegressor(n_estimators=3)]
)
def test_rows_of_weight_zero_are_absent(estimator, bootstrap):
    X, y = DIABETES
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    kept = weight > 0
    model = BaggingRegressor(estimator, n_estimators=4, bootstrap=bootstrap)
    whole = model.fit(X, np.where(kept, y, 1e6), sample_weight=weight)
    answer, samples = whole.predict(X), whole.estimators_samples_
    part = model.fit(X[kept], y[kept], sample_weight=weight[kept])
    np.testing.assert_array_equal(answer, part.predict(X))
    for rows, of_part in zip(samples, part.estimators_samples_, strict=True):
        np.testing.assert_array_equal(rows, np.flatnonzero(kept)[of_part])


def test_rows_of_weight_zero_do_not_count_in_the_out_of_bag_score():
    X, y = DIABETES
    weight = np.where(np.arange(len(y)) < 300, 1.0, 0.0)
    model = BaggingRegressor(n_estimators=40, oob_score=True)
    whole = model.fit(X, np.where(weight > 0, y, 1e6), sample_weight=weight)
    score, prediction = whole.oob_score_, whole.oob_prediction_
    part = model.fit(X[:300], y[:300])
    assert score == part.oob_score_
    np.testing.assert_array_equal(prediction[:300], part.oob_prediction_)
    np.testing.assert_array_equal(prediction[300:], part.predict(X[300:]))


def test_weights_are_passed_on_without_replacement():
    X, y = numbered()
    weight = np.random.default_rng(0).uniform(0.5, 2, 50)
    model = BaggingRegressor(Witness(), n_estimators=3, max_samples=0.6, bootstrap=False)
    model.fit(X, y, sample_weight=weight)
    for member, rows in zip(model, model.estimators_samples_, strict=True):
        assert len(np.unique(rows)) == 30
        np.testing.assert_array_equal(member.weight_, weight[rows])
    scaled = make_pipeline(StandardScaler(), Witness())
    model = BaggingRegressor(scaled, n_estimators=2, bootstrap=False)
    model.fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model[0][-1].weight_, weight)
    with pytest.raises(ValueError, match="Unweighted doesn't support sample_weight"):
        BaggingRegressor(Unweighted(), bootstrap=False).fit(X, y, sample_weight=weight)


def test_weights_decide_how_often_rows_are_drawn():
    X, y = numbered()
    weight = np.where(y < 10, 9.0, 1.0)
    model = BaggingRegressor(Unweighted(), n_estimators=200).fit(X, y, sample_weight=weight)
    rows = np.concatenate(model.estimators_samples_)
    assert len(rows) == 200 * 50
    assert np.mean(rows < 10) == pytest.approx(90 / 130, abs=5 * np.sqrt(0.25 / len(rows)))


# ---- warm starts ----


def test_warm_start():
    X, y = IRIS
    model = BaggingClassifier(n_estimators=4, warm_start=True, max_samples=0.5).fit(X, y)
    first = model.estimators_[:]
    model.set_params(n_estimators=9).fit(X, y)
    assert model.estimators_[:4] == first
    whole = BaggingClassifier(n_estimators=9, max_samples=0.5).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), whole.predict_proba(X))
    for one, other in zip(model.estimators_samples_, whole.estimators_samples_, strict=True):
        np.testing.assert_array_equal(one, other)
    with pytest.warns(DataWarning, match="n_estimators=9 is the number of members"):
        model.fit(X, y)
    with pytest.raises(ValueError, match="keeps the 9 members"):
        model.set_params(n_estimators=8).fit(X, y)
    with pytest.raises(ValueError, match="y holds labels that the earlier fit does not have"):
        model.set_params(n_estimators=10).fit(X, y + 1)
    with pytest.raises(SchemaError, match="X has 3 features"):
        model.fit(X[:, :3], y)
    assert len(model) == 9


def test_warm_start_on_other_rows():
    X, y = DIABETES
    model = BaggingRegressor(n_estimators=2, warm_start=True).fit(X, y)
    model.set_params(n_estimators=4).fit(X[:50], y[:50])
    assert [rows.max() >= 50 for rows in model.estimators_samples_] == [True, True, False, False]
    with pytest.raises(ValueError, match=r"y has 2 target\(s\), but the members that are kept"):
        model.set_params(n_estimators=5).fit(X, np.column_stack([y, y]))


def test_a_failed_fit_changes_nothing():
    X, y = IRIS
    model = BaggingClassifier(LogisticRegression(max_iter=1000), n_estimators=2).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(np.full_like(X, np.nan), y)
    assert vars(model) == before


def test_attributes_of_an_earlier_fit_are_gone():
    X, y = IRIS
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = BaggingClassifier(n_estimators=30, oob_score=True).fit(frame, y)
    assert {"oob_score_", "oob_decision_function_", "feature_names_in_"} <= set(vars(model))
    model.set_params(oob_score=False).fit(X, y)
    assert not {"oob_score_", "oob_decision_function_", "feature_names_in_"} & set(vars(model))


# ---- refusals ----


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"estimator": LogisticRegression}, TypeError, "must be an estimator with the methods fit"),
        ({"n_estimators": 0}, ValueError, "n_estimators must be an integer of at least 1"),
        ({"max_samples": 0}, ValueError, "max_samples=0"),
        ({"max_samples": 1.5}, ValueError, "a float above 0 and at most 1, or None"),
        ({"max_samples": "all"}, TypeError, "max_samples='all'"),
        ({"max_features": None}, TypeError, "max_features=None"),
        ({"max_features": 0.0}, ValueError, "max_features=0.0"),
        ({"max_features": True}, TypeError, "max_features=True"),
        ({"max_features": 5}, ValueError, "max_features=5 is not allowed: X has 4 features"),
        (
            {"max_samples": 151, "bootstrap": False},
            ValueError,
            "max_samples=151 is not allowed with bootstrap=False",
        ),
        ({"bootstrap": "yes"}, TypeError, "bootstrap must be True or False"),
        ({"oob_score": True, "bootstrap": False}, ValueError, "no row is out of bag"),
        ({"oob_score": True, "warm_start": True}, ValueError, "not allowed with warm_start=True"),
        ({"random_state": -1}, ValueError, "random_state"),
        ({"n_jobs": 0}, ValueError, "n_jobs"),
    ],
    ids=repr,
)
def test_refused_parameters(settings, error, message):
    with pytest.raises(error, match=message):
        BaggingClassifier(**settings).fit(*IRIS)


def test_refused_data():
    X, y = IRIS
    with pytest.raises(TypeError, match="X is a Dataset"):
        BaggingClassifier().fit(Dataset(X, y))
    with pytest.raises(ValueError, match="the target y is None"):
        BaggingRegressor().fit(X)
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        BaggingClassifier().fit(X, X[:, 0])
    with pytest.raises(NotFittedError):
        BaggingClassifier().predict(X)
    with pytest.raises(NotFittedError):
        BaggingRegressor().estimators_samples_  # noqa: B018


def test_few_draws_give_a_warning():
    X, y = IRIS
    with pytest.warns(DataWarning, match="total weight of 1.5 is 1 drawn rows"):
        BaggingClassifier(max_samples=1.0).fit(X, y, sample_weight=np.full(150, 0.01))


def test_invalid_probabilities_are_refused():
    class Odd(DummyClassifier):
        def predict_proba(self, X):
            return super().predict_proba(X) + 1

    X, y = IRIS
    with pytest.raises(ValueError, match="returned rows that are not probabilities"):
        BaggingClassifier(Odd()).fit(X, y).predict(X)


def test_dataset_is_not_made_for_other_members(monkeypatch):
    monkeypatch.setattr(member_fits, "make_dataset", None)
    X, y = IRIS
    assert len(BaggingClassifier(DecisionTreeClassifier(), n_estimators=2).fit(X, y)) == 2
