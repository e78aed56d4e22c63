"""Bagging: rows, features and arguments of the members."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from arboost import (
    BaggingClassifier,
    BaggingRegressor,
    DataWarning,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
    SchemaError,
)
from arboost.estimators import bagging as bagging_base
from arboost.models.files.model_file import to_bytes
from support.bagged import DIABETES, IRIS, Unweighted, Witness, numbered

# ---- rows and features ----


def test_members_get_their_rows_alone():
    """Members that take weights get each row once, others as often as it was drawn."""
    X, y = numbered()
    weighted = BaggingRegressor(Witness(), n_estimators=3).fit(X, y)
    plain = BaggingRegressor(Unweighted(), n_estimators=3).fit(X, y)
    for one, other, rows in zip(weighted, plain, weighted.estimators_samples_, strict=True):
        assert len(rows) == 50
        distinct, counts = np.unique(rows, return_counts=True)
        np.testing.assert_array_equal(one.X_, X[distinct])
        np.testing.assert_array_equal(one.y_, distinct)
        np.testing.assert_array_equal(one.weight_, counts)
        np.testing.assert_array_equal(other.X_, X[rows])
        np.testing.assert_array_equal(other.y_, rows)
    first, second = weighted.estimators_samples_[:2]
    assert not np.array_equal(first, second)


@pytest.mark.parametrize("max_features", [1.0, 2])
def test_validation_tables_with_as_many_rows_as_x(max_features):
    """A validation table is not indexed by the rows of the bag."""
    X, y = IRIS
    booster = GradientBoostingClassifier(n_estimators=5, n_iter_no_change=2)
    bagging = BaggingClassifier(booster, n_estimators=2, max_features=max_features)
    X_val = X[:, :2] if max_features == 2 else X
    model = bagging.fit(X, y, X_val=X_val, y_val=y)
    for member, features in zip(model, model.estimators_features_, strict=True):
        rows = X_val if max_features == 2 else X[:, features]
        shares = member.predict_proba(rows)
        loss = -np.log(shares[np.arange(len(y)), y]).mean()
        scores = np.array(next(iter(member.evals_result_["validation"].values())))
        assert np.isclose(scores, loss, rtol=1e-9).any()


@pytest.mark.parametrize(
    "params",
    [
        {"monotone_constraints": {0: 1}},
        {"interaction_constraints": [[0, 1]]},
        {"categorical_features": [0]},
    ],
)
def test_parameters_that_refer_to_columns(params):
    """The first column of a bag is not the first column of X."""
    X, y = DIABETES
    booster = GradientBoostingRegressor(n_estimators=2, **params)
    with pytest.raises(ValueError, match=rf"{next(iter(params))}=.* refers to columns of X"):
        BaggingRegressor(booster, n_estimators=2, max_features=0.5).fit(X, y)
    with pytest.raises(ValueError, match=r"Use max_features=1\.0 and bootstrap_features=False"):
        BaggingRegressor(booster, n_estimators=2, bootstrap_features=True).fit(X, y)
    if "categorical_features" not in params:
        assert len(BaggingRegressor(booster, n_estimators=2).fit(X, y)) == 2


def test_members_do_not_see_other_rows():
    """The default gamma of an SVC is one over the variance of its training rows."""
    X, y = IRIS
    model = BaggingClassifier(SVC(), n_estimators=5).fit(X, y)
    for member, rows in zip(model, model.estimators_samples_, strict=True):
        assert member._gamma == pytest.approx(1 / (4 * X[np.unique(rows)].var()), rel=1e-12)


def test_a_bag_of_all_rows_is_no_copy():
    X, y = numbered()
    model = BaggingRegressor(Witness(), n_estimators=2, bootstrap=False).fit(X, y)
    assert all(member.X_ is X and member.weight_ is None for member in model)


@pytest.mark.parametrize("repeats", [False, True])
def test_members_get_their_features(repeats):
    X, y = numbered()
    model = BaggingRegressor(
        Witness(), n_estimators=9, max_features=3, bootstrap=False, bootstrap_features=repeats
    ).fit(X, y)
    model.predict(X)
    for member, features in zip(model, model.estimators_features_, strict=True):
        np.testing.assert_array_equal(member.X_, X[:, features])
        np.testing.assert_array_equal(member.asked_, X[:, features])
    drawn = [len(np.unique(features)) for features in model.estimators_features_]
    assert (min(drawn) < 3) == repeats


FRAMES = {
    "pandas": pd.DataFrame,
    "Polars": lambda columns: pl.DataFrame(dict(columns)),
    "PyArrow": lambda columns: pa.table(dict(columns)),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_members_get_data_frames(kind):
    X, y = numbered()
    frame = FRAMES[kind]({name: X[:, i] for i, name in enumerate("abcde")})
    model = BaggingRegressor(
        Unweighted(), n_estimators=12, max_features=4, bootstrap_features=True
    ).fit(frame, y)
    np.testing.assert_array_equal(model.feature_names_in_, list("abcde"))
    model.predict(frame)
    bags = zip(model, model.estimators_samples_, model.estimators_features_, strict=True)
    seen = set()
    for member, rows, features in bags:
        for table, of_rows in ((member.X_, rows), (member.asked_, slice(None))):
            assert isinstance(table, type(frame))
            np.testing.assert_array_equal(np.asarray(table), X[of_rows][:, features])
            names = table.column_names if kind == "PyArrow" else list(table.columns)
            assert len(set(names)) == 4
            assert [name[0] for name in names] == ["abcde"[feature] for feature in features]
            seen |= set(names)
    assert any(name.endswith(" (2)") for name in seen)


def test_columns_are_matched_by_name():
    X, y = DIABETES
    frame = pd.DataFrame(X, columns=list("abcdefghij"))
    model = BaggingRegressor(n_estimators=3).fit(frame, y)
    np.testing.assert_array_equal(model.predict(frame[list("jihgfedcba")]), model.predict(frame))
    with pytest.raises(SchemaError, match="Feature names seen at fit time, yet now missing"):
        model.predict(frame.drop(columns="b"))
    with pytest.raises(SchemaError, match="X has 3 features, but BaggingRegressor is expecting 10"):
        model.predict(X[:, :3])
    model = BaggingRegressor(Witness(), n_estimators=3).fit(frame, y)
    with pytest.warns(DataWarning, match="X does not have valid feature names, but BaggingReg"):
        model.predict(X)


def test_pipelines_by_column_names():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"color": rng.choice(["red", "green"], 200), "x": rng.normal(size=200)})
    y = frame["x"] + (frame["color"] == "red")
    encode = make_column_transformer(
        (OneHotEncoder(), make_column_selector(dtype_exclude=float)), remainder="passthrough"
    )
    model = BaggingRegressor(make_pipeline(encode, LinearRegression()), n_estimators=3)
    assert model.fit(frame, y).score(frame, y) == pytest.approx(1.0)


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize(
    "estimator", [LogisticRegression(), GradientBoostingClassifier(n_estimators=3)]
)
def test_sparse(form, estimator):
    X, y = IRIS
    X = np.where(X > 2, X, 0.0)
    settings = {"n_estimators": 9, "max_features": 0.8, "oob_score": True, "max_samples": 50}
    dense = BaggingClassifier(estimator, **settings).fit(X, y)
    model = BaggingClassifier(estimator, **settings).fit(sparse.csr_matrix(X).asformat(form), y)
    np.testing.assert_allclose(
        model.predict_proba(sparse.csr_matrix(X)), dense.predict_proba(X), rtol=1e-6
    )
    np.testing.assert_allclose(
        model.oob_decision_function_, dense.oob_decision_function_, rtol=1e-6
    )


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("verbose", [0, 1])
def test_progress(monkeypatch, verbose, n_jobs):
    shown = []

    class Recorder(bagging_base.Bar):
        def __init__(self, total, label, *, visible):
            shown.append((total, label, visible))
            super().__init__(total, label, visible=visible)

        def show(self, done, results=None):
            shown.append(done)

    monkeypatch.setattr(bagging_base, "Bar", Recorder)
    BaggingClassifier(n_estimators=4, n_jobs=n_jobs, verbose=verbose).fit(*IRIS)
    assert shown == [(4, "fitting", verbose == 1), 1, 2, 3, 4]


def test_random_states_of_members():
    X, y = IRIS
    pipeline = make_pipeline(StandardScaler(), DecisionTreeClassifier())
    model = BaggingClassifier(pipeline, n_estimators=5).fit(X, y)
    seeds = [member[-1].random_state for member in model]
    assert len(set(seeds)) == 5
    again = BaggingClassifier(pipeline, n_estimators=5, random_state=1).fit(X, y)
    assert not set(seeds) & {member[-1].random_state for member in again}
    assert pipeline[-1].random_state is None


# ---- members of arboost ----


@pytest.fixture
def tables_binned(monkeypatch):
    """Calls that bin a table."""
    calls = []
    for home in ("arboost.data.dataset", "arboost.training.sets"):
        module = __import__(home, fromlist=["bin_table"])
        real = module.bin_table

        def count(*args, real=real, **kwargs):
            calls.append(args)
            return real(*args, **kwargs)

        monkeypatch.setattr(module, "bin_table", count)
    return calls


def test_members_share_their_bins(tables_binned):
    X, y = DIABETES
    BaggingRegressor(GradientBoostingRegressor(n_estimators=3), n_estimators=8).fit(X, y)
    assert len(tables_binned) == 1


def test_members_with_drawn_features_do_not_share_bins(tables_binned):
    X, y = DIABETES
    booster = GradientBoostingRegressor(n_estimators=3)
    BaggingRegressor(booster, n_estimators=8, max_features=0.5).fit(X, y)
    assert len(tables_binned) == 8


def test_members_equal_fits_to_their_rows():
    X, y = DIABETES
    X = np.round(10 * X)  # few values: bins of a bag are those of the table
    booster = GradientBoostingRegressor(n_estimators=10, subsample=0.5)
    model = BaggingRegressor(booster, n_estimators=3).fit(X, y)
    for member, rows in zip(model, model.estimators_samples_, strict=True):
        distinct, counts = np.unique(rows, return_counts=True)
        plain = clone(booster).set_params(random_state=member.random_state)
        plain.fit(X[distinct], y[distinct], sample_weight=counts)
        np.testing.assert_allclose(plain.predict(X), member.predict(X), rtol=1e-12)


def test_target_encoding_does_not_leak():
    """Target encoding of a key of many levels must not carry the targets of out-of-bag rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"key": [f"k{i}" for i in rng.integers(0, 900, 2000)]})
    y = rng.normal(size=2000)
    booster = GradientBoostingRegressor(n_estimators=20)
    model = BaggingRegressor(booster, n_estimators=20, oob_score=True).fit(frame, y)
    assert model.oob_score_ < 0.03


def test_many_threads_give_the_same_members():
    X, y = DIABETES
    booster = GradientBoostingRegressor(n_estimators=10)
    bytes_of = [
        [
            to_bytes(member.model_)
            for member in BaggingRegressor(booster, n_estimators=4, n_jobs=n_jobs).fit(X, y)
        ]
        for n_jobs in (1, 2, 5)
    ]
    assert bytes_of[0] == bytes_of[1] == bytes_of[2]
    member = BaggingRegressor(booster, n_estimators=1, n_jobs=2).fit(X, y)[0]
    assert (member.n_jobs, member.verbose) == (2, 0)


@pytest.mark.parametrize("estimator", [DecisionTreeClassifier(), LogisticRegression(), SVC()])
def test_threads_change_nothing(estimator):
    X, y = IRIS
    one, other = (
        BaggingClassifier(
            estimator, n_estimators=9, oob_score=True, max_samples=0.5, n_jobs=n_jobs
        ).fit(X, y)
        for n_jobs in (1, 4)
    )
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))
    np.testing.assert_array_equal(one.oob_decision_function_, other.oob_decision_function_)


def test_pickles():
    X, y = IRIS
    model = BaggingClassifier(GradientBoostingClassifier(n_estimators=3), n_estimators=3).fit(X, y)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    for one, two in zip(other.estimators_samples_, model.estimators_samples_, strict=True):
        np.testing.assert_array_equal(one, two)


# ---- more arguments ----


class Marked(Witness):
    """Takes more arguments."""

    def fit(self, X, y, sample_weight=None, marks=None, word=None):
        self.marks_, self.word_ = marks, word
        return super().fit(X, y, sample_weight)

    def predict(self, X, word=None):
        self.asked_word_ = word
        return super().predict(X)


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("as_list", [False, True])
def test_arguments_are_passed_on(routing, as_list):
    X, y = numbered()
    weight = np.where(y < 5, 0.0, 1.0)
    marks = list(range(50)) if as_list else np.arange(50)
    with sklearn.config_context(enable_metadata_routing=routing):
        member = Marked()
        if routing:
            member.set_fit_request(marks=True, word=True, sample_weight=True)
            member.set_predict_request(word=True)
        model = BaggingRegressor(member, n_estimators=3)
        model.fit(X, y, sample_weight=weight, marks=marks, word="yes")
        model.predict(X, word="again")
    for one, rows in zip(model, model.estimators_samples_, strict=True):
        np.testing.assert_array_equal(one.marks_, np.unique(rows))
        assert (one.word_, one.asked_word_) == ("yes", "again")


def test_arguments_of_boosters():
    X, y = DIABETES
    booster = GradientBoostingRegressor(n_estimators=50, n_iter_no_change=2)
    model = BaggingRegressor(booster, n_estimators=2)
    model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    for member in model:
        assert min(member.evals_result_["validation"]["squared_error"]) == member.best_score_


def test_forests_that_keep_quantiles(rng):
    """They look at values, not at shared bins."""
    X = rng.normal(size=(60, 2))
    forest = RandomForestRegressor(3, quantiles=True, random_state=0)
    bag = BaggingRegressor(forest, n_estimators=2, random_state=0).fit(X, X[:, 0])
    assert bag.estimators_[0].predict_quantiles(X, [0.1, 0.9]).shape == (60, 2)
