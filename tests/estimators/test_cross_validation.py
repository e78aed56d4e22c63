"""Cross-validation: each fold equals a separate fit, while all folds share one binned table."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

import arboost
from arboost import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
    cv,
)
from arboost.models.files import model_file

R, C = GradientBoostingRegressor, GradientBoostingClassifier
DART = {"rate_drop": 0.3, "one_drop": True}


@pytest.fixture(scope="module")
def data():
    """Return a table of few distinct values, so that every fold has the same bin edges."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 8, size=(400, 5)).astype(float)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, np.nan_to_num(X[:, 0]) - np.nan_to_num(X[:, 1]) ** 2 / 4 + rng.normal(size=400)


def target_of(estimator, values, n_classes=2):
    if isinstance(estimator, R | AdaBoostRegressor):
        return values
    return np.searchsorted(np.quantile(values, np.arange(1, n_classes) / n_classes), values)


ESTIMATORS = {
    "plain": (R(n_estimators=8), 2),
    "two classes": (C(n_estimators=8), 2),
    "three classes": (C(n_estimators=8), 3),
    "vector leaves": (C(n_estimators=8, multi_strategy="multi_output_tree"), 3),
    "balanced": (C(n_estimators=8, class_weight="balanced"), 3),
    "sampled": (R(n_estimators=8, subsample=0.5, colsample_bytree=0.6), 2),
    "one side": (C(n_estimators=8, learning_rate=0.5, sampling_method="goss"), 2),
    "by gradient": (C(n_estimators=8, subsample=0.4, sampling_method="gradient_based"), 2),
    "dart": (R(n_estimators=12, **DART), 2),
    "line search": (C(n_estimators=12, boosting="gradient", line_search="round"), 2),
    "friedman": (C(n_estimators=8, boosting="gradient"), 2),
    "quantiles": (R(n_estimators=8, loss="quantile", alpha=[0.2, 0.8]), 2),
    "exact": (R(n_estimators=8, tree_method="exact"), 2),
    "approx": (R(n_estimators=8, tree_method="approx"), 2),
    "AdaBoost": (AdaBoostClassifier(n_estimators=8), 2),
    "AdaBoost, three classes": (AdaBoostClassifier(n_estimators=8, max_depth=2), 3),
    "real AdaBoost": (AdaBoostClassifier(n_estimators=8, algorithm="real"), 3),
    "AdaBoost that draws": (AdaBoostClassifier(n_estimators=8, resample=True, max_depth=2), 3),
    "R2": (AdaBoostRegressor(n_estimators=8), 2),
    "R2 that draws": (AdaBoostRegressor(n_estimators=8, resample=True, loss="square"), 2),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_folds_are_separate_fits(data, name, weighted):
    """Same model bytes as a fit on the fold's training rows, same metrics on its held-out rows."""
    estimator, n_classes = ESTIMATORS[name]
    X, values = data
    y = target_of(estimator, values, n_classes)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X)) if weighted else None
    result = cv(estimator, X, y, folds=3, sample_weight=weight, return_models=True)
    assert len(result.models) == len(result.folds) == 3
    for fold, (train, held_out) in enumerate(result.folds):
        alone = type(estimator)(**estimator.get_params())
        alone.fit(
            X[train],
            y[train],
            sample_weight=None if weight is None else weight[train],
            X_val=X[held_out],
            y_val=y[held_out],
            sample_weight_val=None if weight is None else weight[held_out],
        )
        model = result.models[fold]
        assert model_file.to_bytes(model.model_) == model_file.to_bytes(alone.model_)
        assert model.evals_result_ == alone.evals_result_
        for metric, curve in alone.evals_result_["validation"].items():
            assert result.scores[metric][fold].tolist() == curve
        np.testing.assert_array_equal(model.predict(X), alone.predict(X))


def test_result(data):
    X, y = data
    result = cv(R(n_estimators=7, eval_metric=["mae", "rmse"]), X, y, folds=4)
    assert list(result.scores) == ["mae", "rmse"]
    for name, scores in result.scores.items():
        assert scores.shape == (4, 7)
        np.testing.assert_allclose(result.mean[name], scores.mean(axis=0), rtol=1e-14)
        np.testing.assert_allclose(result.std[name], scores.std(axis=0), rtol=1e-14)
    assert result.best_index == result.mean["mae"].argmin()
    assert result.best_score == result.mean["mae"].min()
    assert result.stop_reason == "n_estimators"
    assert result.models is None
    assert repr(result).startswith("CrossValidation(4 folds, 7 rounds, best mae ")


def test_stratified_folds_of_a_classifier(data):
    X, values = data
    y = (values > np.quantile(values, 0.9)).astype(int)
    result = cv(C(n_estimators=2), X, y, folds=5, metrics="auc")
    assert [int(y[held_out].sum()) for _, held_out in result.folds] == [8] * 5
    assert list(result.scores) == ["auc"]
    assert result.best_score == result.mean["auc"].max()


@pytest.mark.parametrize("extra", [{}, DART, {"subsample": 0.5}], ids=["plain", "dart", "sampled"])
def test_early_stopping_on_the_mean(data, extra):
    X, y = data
    estimator = R(n_estimators=300, learning_rate=0.5, n_iter_no_change=3, **extra)
    result = cv(estimator, X, y, folds=3, return_models=True)
    mean = result.mean["squared_error"]
    assert result.stop_reason == "n_iter_no_change"
    assert len(mean) == result.best_index + 4
    assert result.best_index == mean.argmin()
    for fold, (_, held_out) in enumerate(result.folds):
        model = result.models[fold]
        assert model.n_iter_ == result.best_index + 1
        assert model.best_iteration_ == result.best_index
        # The model ends at the best round, with its tree weights, which later dropout changes.
        loss = np.mean((model.predict(X[held_out]) - y[held_out]) ** 2)
        assert loss == pytest.approx(result.scores["squared_error"][fold, result.best_index])


@pytest.mark.parametrize("folds", [KFold(4), StratifiedKFold(3), [([0, 1, 2, 3], [4, 5, 9])]])
def test_given_folds(data, folds):
    X, values = data
    y = (values > 0).astype(int)
    result = cv(C(n_estimators=2), X, y, folds=folds)
    expected = list(folds.split(X, y)) if hasattr(folds, "split") else folds
    for found, given in zip(result.folds, expected, strict=True):
        for side in range(2):
            np.testing.assert_array_equal(found[side], np.sort(given[side]))


@pytest.mark.parametrize("folds", [3, GroupKFold(3)], ids=repr)
def test_groups(data, folds):
    X, y = data
    groups = np.random.default_rng(0).integers(0, 12, len(X))
    for train, held_out in cv(R(n_estimators=2), X, y, folds=folds, groups=groups).folds:
        assert not set(groups[train]) & set(groups[held_out])


@pytest.mark.parametrize("folds", [3, KFold(3), "listed", "groups"], ids=str)
def test_rows_of_weight_0_are_absent(data, folds):
    X, y = data
    rng = np.random.default_rng(1)
    weight = rng.integers(0, 3, len(X)).astype(float)
    kept = np.flatnonzero(weight)
    groups = rng.integers(0, 9, len(X)) if folds == "groups" else None
    options, without = {"folds": folds}, {"folds": folds}
    if folds == "groups":
        options, without = {"folds": 3, "groups": groups}, {"folds": 3, "groups": groups[kept]}
    if folds == "listed":
        mask = np.arange(len(X)) < 200
        options, without = {"folds": [(mask, ~mask)]}, {"folds": [(mask[kept], ~mask[kept])]}
    result = cv(R(n_estimators=5), X, y, sample_weight=weight, **options)
    alone = cv(R(n_estimators=5), X[kept], y[kept], sample_weight=weight[kept], **without)
    np.testing.assert_array_equal(result.scores["squared_error"], alone.scores["squared_error"])
    for found, other in zip(result.folds, alone.folds, strict=True):
        for side in range(2):
            np.testing.assert_array_equal(found[side], kept[other[side]])


def test_dataset_is_shared(data):
    X, y = data
    dataset = arboost.Dataset(X, y)
    first = cv(R(n_estimators=4), dataset, folds=3)
    second = cv(R(n_estimators=4), X, y, folds=3)
    np.testing.assert_array_equal(first.scores["squared_error"], second.scores["squared_error"])


def test_same_for_any_number_of_threads(data):
    X, y = data
    results = [cv(R(n_estimators=5, subsample=0.5, n_jobs=n), X, y, folds=3) for n in (1, 3)]
    curves = [result.scores["squared_error"].tobytes() for result in results]
    assert curves[0] == curves[1]


def test_callbacks_get_the_means(data):
    X, y = data
    rounds = []

    def stop_after_three(done):
        rounds.append(done)
        return done.index == 2

    result = cv(R(n_estimators=50), X, y, folds=3, callbacks=[stop_after_three])
    assert result.stop_reason == "callback stop_after_three"
    assert [done.results["validation"]["squared_error"] for done in rounds] == result.mean[
        "squared_error"
    ].tolist()


def test_estimator_stays_as_it_is(data):
    X, y = data
    estimator = R(n_estimators=3)
    before = dict(vars(estimator))
    cv(estimator, X, y, folds=2, return_models=True)
    assert vars(estimator) == before


def test_nothing_is_copied():
    """Five folds of a table of 40 MB allocate less than 10 MB in Python."""
    X = np.random.default_rng(0).normal(size=(50_000, 100))
    dataset = arboost.Dataset(X, X[:, 0])
    tracemalloc.start()
    cv(R(n_estimators=1, max_depth=2), dataset, folds=5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6


@pytest.mark.parametrize("max_bins", [255, 400])
def test_codes_of_some_rows(max_bins):
    X = np.random.default_rng(0).normal(size=(700, 9))
    codes = arboost.Dataset(X, max_bins=max_bins).binned.codes
    rows = np.arange(1, 700, 3, dtype=np.uint32)
    some = codes.take(rows, 2)
    for layout in ("by_row", "by_column"):
        np.testing.assert_array_equal(getattr(some, layout), codes.to_numpy()[rows])
    with pytest.raises(ValueError, match="row outside the table"):
        codes.take(np.array([700], np.uint32), 1)
    with pytest.raises(ValueError, match="Ranks are not copied"):
        arboost.Dataset(X, tree_method="exact").binned.codes.take(rows, 1)


@pytest.mark.parametrize(
    ("estimator", "options", "error", "message"),
    [
        (LinearRegression(), {}, TypeError, "needs a booster of arboost"),
        (AdaBoostRegressor(LinearRegression()), {}, TypeError, "on its own trees"),
        (RandomForestRegressor(), {}, TypeError, "needs a booster of arboost"),
        (R(), {"folds": 1}, ValueError, "folds=1 is not allowed"),
        (R(), {"folds": "5"}, TypeError, "folds='5'"),
        (R(), {"metrics": "auc"}, ValueError, "does not fit loss='squared_error'"),
        (R(gamma=-1), {}, ValueError, "gamma=-1"),
        (R(), {"groups": [1, 2]}, ValueError, r"groups have the shape \(2,\)"),
        (R(), {"callbacks": [3]}, TypeError, "callbacks hold 3"),
        (R(), {"callbacks": print}, TypeError, r"list of functions .* Use callbacks=\["),
    ],
)
def test_bad_input(data, estimator, options, error, message):
    X, y = data
    with pytest.raises(error, match=message):
        cv(estimator, X, y, **options)


@pytest.mark.filterwarnings("ignore:y has one class only")
def test_one_class(data):
    X, _ = data
    with pytest.raises(ValueError, match="y has one class"):
        cv(C(), X, np.zeros(len(X)))
