"""tune of pipelines: nested names, and no step that sees a held-out row."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder

import arboost
from arboost import tune
from arboost.losses.metrics import prediction_metric

N_ROWS = 240


class Spy(TransformerMixin, BaseEstimator):
    """A step that notes the rows it is fitted to, by the last column."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y=None):
        type(self).seen.append(frozenset(np.asarray(X)[:, -1].astype(int).tolist()))
        return self

    def transform(self, X):
        return np.asarray(X)[:, :-1]


def _rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, 4))
    X[:, -1] = np.arange(N_ROWS)
    return X, (X[:, 0] + 0.5 * rng.normal(size=N_ROWS) > 0).astype(int)


def _pipeline(**params):
    model = arboost.GradientBoostingClassifier(**{"n_estimators": 5, **params})
    return Pipeline([("spy", Spy()), ("model", model)])


def test_steps_see_training_rows_only():
    X, y = _rows()
    Spy.seen.clear()
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    found = tune(
        _pipeline(), X, y, trials=3, folds=folds, space={"model__max_leaves": (2, 16)}, verbose=0
    )
    allowed = {frozenset(train.tolist()) for train, _ in folds}
    assert set(Spy.seen[:-1]) == allowed
    assert Spy.seen[-1] == frozenset(range(N_ROWS))  # the last fit is that of the result
    assert list(found.params) in ([], ["model__max_leaves"])
    assert found.estimator["model"].max_leaves == found.params.get("model__max_leaves", "auto")


def test_score_is_that_of_scikit_learn():
    X, y = _rows()
    folds = KFold(4, shuffle=True, random_state=0)
    pipeline = make_pipeline(StandardScaler(), _pipeline()["model"])
    found = tune(pipeline, X, y, trials=1, folds=folds, verbose=0)
    proba = cross_val_predict(pipeline, X, y, cv=folds, method="predict_proba")
    loss, _ = prediction_metric("log_loss", of_classes=True)
    parts = [loss(y[held], proba[held], None) for _, held in folds.split(X)]
    assert found.score == found.default_score == pytest.approx(np.mean(parts))


def test_leaks_are_measured():
    """Target encoding of a key: fitted to all rows, it would look perfect."""
    rng = np.random.default_rng(0)
    X, y = (
        rng.integers(0, 10**9, (N_ROWS, 1)).astype(str).astype(object),
        rng.integers(0, 2, N_ROWS),
    )
    encode = TargetEncoder(smooth=0.001, cv=2)
    pipeline = make_pipeline(encode, arboost.DecisionTreeClassifier(max_depth=2))
    found = tune(pipeline, X, y, trials=2, metric="auc", verbose=0)
    assert found.score < 0.6


def test_declared_ranges_of_the_last_step():
    X, y = _rows()
    found = tune(_pipeline(), X, y, trials=4, verbose=0)
    tried = {name for trial in found.trials for name in trial["params"]}
    assert "model__learning_rate" in tried
    assert "model__n_estimators" not in tried  # it was set by the user
    fresh = Pipeline([("spy", Spy()), ("model", arboost.GradientBoostingClassifier(max_depth=2))])
    found = tune(fresh, X, y, trials=3, folds=2, verbose=0)
    tried = {name for trial in found.trials for name in trial["params"]}
    assert not {"model__n_estimators", "model__max_depth"} & tried
    assert found.estimator["model"].n_estimators == "auto"
    again = clone(fresh).set_params(**found.params).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), found.estimator.predict_proba(X))


def test_frames_weights_groups_and_names():
    X, y = _rows()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(town=np.tile(["u", "v"], N_ROWS // 2), y=y)
    encode = ColumnTransformer([("one", OneHotEncoder(), ["town"])], remainder="passthrough")
    model = arboost.GradientBoostingClassifier(n_estimators=40, validation_split="group")
    model.set_params(n_iter_no_change=5)
    pipeline = Pipeline([("encode", encode), ("model", model)])
    weight = np.arange(N_ROWS) % 3
    common = {"groups": np.arange(N_ROWS) // 8, "trials": 3, "folds": 3, "verbose": 0}
    space = {"model__max_leaves": [4, 8], "encode__one__max_categories": [2, 5]}
    found = tune(pipeline, frame, "y", sample_weight=weight, space=space, n_jobs=1, **common)
    assert found.estimator["model"].n_jobs == 1
    assert found.estimator.predict(frame).shape == (N_ROWS,)
    kept = weight > 0
    part = common | {"groups": common["groups"][kept]}
    other = tune(
        pipeline,
        frame[kept].drop(columns="y"),
        y[kept],
        sample_weight=weight[kept],
        space=space,
        **part,
    )
    assert (other.score, other.params) == (found.score, found.params)


def test_other_estimators_of_scikit_learn():
    X, _ = _rows()
    tree = arboost.DecisionTreeRegressor()
    found = tune(TransformedTargetRegressor(tree), X, X[:, 0], trials=3, verbose=0)
    assert any(name.startswith("regressor__") for trial in found.trials for name in trial["params"])
    ridge = make_pipeline(StandardScaler(), Ridge())
    found = tune(ridge, X, X[:, 0], trials=3, space={"ridge__alpha": (0.1, 10.0)}, verbose=0)
    assert found.score <= found.default_score
    with pytest.raises(ValueError, match=r"Pass space=\{\.\.\.\}"):
        tune(ridge, X, X[:, 0], trials=3, verbose=0)
    skipped = Pipeline([("off", "passthrough"), ("model", tree)])
    assert tune(skipped, X, X[:, 0], trials=2, verbose=0).estimator["model"].get_n_leaves() > 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("max_leaves", r"not a parameter of Pipeline. Did you mean 'model__max_leaves'\?"),
        ("modl__max_leaves", r"Did you mean 'model__max_leaves'\?"),
        ("model__num_leaves", r"Invalid parameter 'num_leaves' for estimator .*max_leaves"),
        ("spy__what", "not a parameter of Pipeline"),
    ],
)
def test_unknown_names(name, message):
    X, y = _rows()
    with pytest.raises(ValueError, match=message):
        tune(_pipeline(), X, y, trials=1, space={name: (2, 8)}, verbose=0)


def test_values_are_checked_by_the_step():
    X, y = _rows()
    with pytest.raises(ValueError, match="max_leaves"):
        tune(_pipeline(), X, y, trials=1, space={"model__max_leaves": (-3, 8)}, verbose=0)


def test_threads_do_not_change_the_result():
    X, y = _rows()
    results = [tune(_pipeline(), X, y, trials=4, n_jobs=n, verbose=0) for n in (1, 2, 4)]
    assert len({(one.score, repr(dict(one.params))) for one in results}) == 1


def test_no_weights_and_no_offset():
    X, y = _rows()
    knn = make_pipeline(StandardScaler(), Spy())
    with pytest.raises(TypeError, match="offset is not allowed with Pipeline"):
        tune(_pipeline(), X, y, offset=np.zeros(N_ROWS), trials=1, verbose=0)
    with pytest.raises(TypeError, match="sample_weight is given, but the fit of 'Pipeline'"):
        tune(knn, X, y, sample_weight=np.ones(N_ROWS), space={"standardscaler__with_std": [True]})
