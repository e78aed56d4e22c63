"""tune: trial 0, pruning, the same result for any threads, the refitted estimator."""

import warnings

import numpy as np
import optuna
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score

import arboost
from arboost import Metric, cv, tune
from arboost.selection import search
from arboost.training.splits import folds as make_folds


def numbers(n_rows=200, n_features=4):
    return np.random.default_rng(0).random((n_rows, n_features))


def noisy(X):
    return X[:, 0] + np.random.default_rng(1).random(len(X))


def classes(X, n_classes=2):
    return np.minimum((noisy(X) / 2 * n_classes).astype(int), n_classes - 1)


def summary(found):
    return [(one["state"], one["score"], one["rounds"], one["params"]) for one in found.trials]


def stack(kind):
    members = [("rf", getattr(arboost, f"RandomForest{kind}")(n_estimators=5))]
    members.append(("tree", getattr(arboost, f"DecisionTree{kind}")()))
    return members


CLASSIFIERS = [
    arboost.GradientBoostingClassifier(),
    arboost.AdaBoostClassifier(),
    arboost.RandomForestClassifier(n_estimators=10),
    arboost.ExtraTreesClassifier(n_estimators=10),
    arboost.DecisionTreeClassifier(),
    arboost.BaggingClassifier(n_estimators=3),
    arboost.StackingClassifier(stack("Classifier")),
    arboost.VotingClassifier(stack("Classifier"), voting="soft"),
]
REGRESSORS = [
    arboost.GradientBoostingRegressor(loss="quantile", alpha=0.8),
    arboost.AdaBoostRegressor(),
    arboost.RandomForestRegressor(n_estimators=10),
    arboost.ExtraTreesRegressor(n_estimators=10),
    arboost.DecisionTreeRegressor(),
    arboost.BaggingRegressor(arboost.DecisionTreeRegressor(), n_estimators=3),
    arboost.StackingRegressor(stack("Regressor")),
]


def name(estimator):
    return type(estimator).__name__


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name)
def test_every_classifier(estimator):
    X = numbers(90)
    found = tune(estimator, X, classes(X, 3), trials=4, folds=2, verbose=0)
    check_result(found, estimator, X)


@pytest.mark.parametrize("estimator", REGRESSORS, ids=name)
def test_every_regressor(estimator):
    X = numbers(90)
    found = tune(estimator, X, noisy(X), trials=4, folds=2, verbose=0)
    check_result(found, estimator, X)


def check_result(found, estimator, X):
    assert [one["number"] for one in found.trials] == [0, 1, 2, 3]
    assert found.trials[0]["params"] == {}
    assert found.trials[0]["score"] == found.default_score
    assert not any(one["reason"] for one in found.trials)
    sign = -1 if found.greater_is_better else 1
    complete = [sign * one["score"] for one in found.trials if one["state"] == "complete"]
    assert sign * found.score == min(complete)
    assert found.stop_reason == "trials"
    again = type(estimator)(**estimator.get_params(deep=False)).set_params(**found.params)
    assert found.estimator.get_params().keys() == again.get_params().keys()
    assert len(found.estimator.predict(X)) == len(X)
    assert found.metric in repr(found)
    assert type(estimator).__name__ in found._repr_html_()
    assert not hasattr(estimator, "model_")


def test_the_first_trial_is_a_cross_validation_of_the_given_estimator():
    X = numbers()
    y, booster = classes(X), arboost.GradientBoostingClassifier(max_leaves=5)
    found = tune(booster, X, y, trials=1, folds=3, random_state=7, verbose=0)
    expected = cv(booster, X, y, folds=make_folds(y, 3, seed=7, stratify=True))
    assert found.score == expected.best_score
    assert found.params["n_estimators"] == expected.best_index + 1
    plain = arboost.GradientBoostingClassifier(n_estimators=30)
    last = cv(plain, X, y, folds=make_folds(y, 3, seed=7, stratify=True)).mean["log_loss"][-1]
    assert tune(plain, X, y, trials=1, folds=3, random_state=7, verbose=0).score == last


def test_a_worse_space_returns_the_default():
    X = numbers(100)
    tree = arboost.DecisionTreeRegressor()
    found = tune(tree, X, X[:, 0], trials=5, space={"max_depth": [1]}, verbose=0)
    assert found.score == found.default_score
    assert found.params == {}
    expected = tree.fit(X, X[:, 0]).predict(X)
    assert np.array_equal(found.estimator.predict(X), expected)


def test_the_estimator_has_the_rounds_and_values_of_the_best_trial():
    X = numbers(300)
    y = classes(X)
    found = tune(arboost.GradientBoostingClassifier(), X, y, trials=6, folds=2, verbose=0)
    best = min(
        (one for one in found.trials if one["state"] == "complete"), key=lambda one: one["score"]
    )
    assert found.estimator.n_iter_ == best["rounds"] == found.params["n_estimators"]
    assert found.params.items() >= best["params"].items()
    assert "auto" not in found.params.values()
    again = arboost.GradientBoostingClassifier(**found.params).fit(X, y)
    assert np.array_equal(again.predict_proba(X), found.estimator.predict_proba(X))


def test_early_stopping_finds_the_rounds_of_adaboost():
    X = numbers(300)
    boosted = arboost.AdaBoostRegressor()
    found = tune(boosted, X, noisy(X), trials=6, folds=2, verbose=0)
    assert not any("n_estimators" in one["params"] for one in found.trials)
    assert found.trials[0]["rounds"] == 50
    assert found.estimator.n_iter_ <= found.params["n_estimators"] <= 500
    given = tune(boosted, X, noisy(X), trials=3, space={"n_estimators": [7]}, verbose=0)
    assert {one["rounds"] for one in given.trials[1:]} <= {*range(1, 8)}
    fixed = arboost.AdaBoostRegressor(n_estimators=9)
    found = tune(fixed, X, noisy(X), trials=3, verbose=0)
    assert all(one["rounds"] <= 9 for one in found.trials)


def test_bins_may_be_searched():
    X = numbers(200)
    for estimator in (
        arboost.GradientBoostingRegressor(n_estimators=20),
        arboost.DecisionTreeRegressor(),
    ):
        space = {"max_bins": [4, 64]}
        found = tune(estimator, X, noisy(X), trials=6, folds=2, space=space, verbose=0)
        scores = {one["params"]["max_bins"]: one["score"] for one in found.trials[1:]}
        assert len(set(scores.values())) == 2


def test_members_are_silent_and_have_the_threads(monkeypatch):
    seen = []
    fit = arboost.DecisionTreeClassifier.fit

    def spied(self, *args, **options):
        seen.append((self.n_jobs, self.verbose))
        return fit(self, *args, **options)

    monkeypatch.setattr(arboost.DecisionTreeClassifier, "fit", spied)
    X = numbers(60)
    members = [("tree", arboost.DecisionTreeClassifier())]
    for estimator in (
        arboost.BaggingClassifier(arboost.DecisionTreeClassifier(), n_estimators=2),
        arboost.VotingClassifier(members),
    ):
        seen.clear()
        tune(estimator, X, classes(X), trials=1, folds=2, n_jobs=1, verbose=0)
        assert {jobs for jobs, _ in seen[:2]} == {1}
        assert {verbose for _, verbose in seen[:2]} == {0}


@pytest.mark.parametrize(
    "estimator",
    [arboost.GradientBoostingClassifier(), arboost.RandomForestClassifier(n_estimators=8)],
    ids=name,
)
def test_the_result_does_not_depend_on_threads(estimator):
    X = numbers(300)
    y = classes(X)
    found = [tune(estimator, X, y, trials=14, n_jobs=jobs, verbose=0) for jobs in (1, 2, 5)]
    assert summary(found[0]) == summary(found[1]) == summary(found[2])
    assert len({str(dict(one.params)) for one in found}) == 1


def test_pruned_trials_stop_early(monkeypatch):
    monkeypatch.setattr(search, "_STARTUP_TRIALS", 1)
    X = numbers(400)
    counts = []

    def counted(y, score, weight):
        counts.append(len(y))
        return float(np.mean((y - score) ** 2))

    booster = arboost.GradientBoostingRegressor(learning_rate=0.1)
    space = {"max_delta_step": [0.001, 0.0]}
    found = tune(booster, X, noisy(X), trials=9, space=space, metric=counted, folds=2, verbose=0)
    pruned = [one for one in found.trials if one["state"] == "pruned"]
    assert pruned
    assert all(one["params"] == {"max_delta_step": 0.001} for one in pruned)
    # Two folds a round; without pruning, each of these trials would improve for 300 rounds.
    assert len(counts) < 2 * (300 + 9 * 60)
    steps = found.study.trials[pruned[0]["number"]].intermediate_values
    assert max(steps) <= 4


def test_trials_of_forests_are_pruned_between_folds():
    X, fitted = numbers(150), []

    class Spy(LogisticRegression):
        def fit(self, X, y):
            fitted.append(self.C)
            return super().fit(X, y)

    values = [1e-9, 1e3]
    found = tune(Spy(C=10), X, classes(X), trials=30, space={"C": values}, folds=5, verbose=0)
    states = [(one["state"], one["params"].get("C")) for one in found.trials]
    assert ("pruned", 1e-9) in states
    assert len(fitted) < 30 * 5


def test_metrics_and_directions():
    X = numbers()
    y = classes(X)
    forest = arboost.RandomForestClassifier(n_estimators=5)
    found = tune(forest, X, y, trials=3, metric=accuracy_score, verbose=0)
    assert (found.metric, found.greater_is_better) == ("accuracy", True)
    assert found.score >= found.default_score
    assert found.study.direction == optuna.study.StudyDirection.MAXIMIZE
    booster = arboost.GradientBoostingClassifier(eval_metric="auc")
    found = tune(booster, X, y, trials=3, folds=2, verbose=0)
    assert (found.metric, found.greater_is_better) == ("auc", True)
    assert found.params["eval_metric"] is None  # no rows to measure it on
    own = Metric("own", lambda y, score, weight: float(np.abs(y - score).mean()))
    assert tune(forest, X, y, trials=2, metric=wide(own), verbose=0).metric == "own"


def wide(metric):
    """Return a metric of class probabilities."""
    return Metric(metric.name, lambda y, p, weight: metric.function(y, p[:, 1], weight))


def test_strings_missing_values_weights_and_groups():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.random(240), "b": rng.choice(["x", "y", None], 240)})
    table["y"] = np.where((table["a"] > 0.5) ^ (table["b"] == "x"), "yes", "no")
    table.loc[::9, "a"] = np.nan
    weight = rng.integers(0, 3, 240)
    groups = rng.integers(0, 12, 240)
    for estimator in (arboost.GradientBoostingClassifier(), arboost.DecisionTreeClassifier()):
        options = {"sample_weight": weight, "groups": groups, "folds": 3, "verbose": 0}
        found = tune(estimator, table, "y", trials=5, **options)
        assert found.estimator.score(table, "y") > 0.75
        assert list(found.estimator.feature_names_in_) == ["a", "b"]
        kept = weight > 0
        options |= {"sample_weight": weight[kept], "groups": groups[kept]}
        alone = tune(estimator, table[kept], "y", trials=5, **options)
        assert alone.score == found.score


def test_encodings_of_categories_do_not_see_held_out_targets():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": [f"u{i}" for i in rng.integers(0, 400, 1200)]})
    for y in (rng.integers(0, 2, 1200), rng.integers(0, 3, 1200)):
        for estimator in (
            arboost.GradientBoostingClassifier(),
            arboost.DecisionTreeClassifier(max_depth=6),
        ):
            found = tune(estimator, table, y, trials=3, metric="auc", folds=3, verbose=0)
            assert abs(found.score - 0.5) < 0.08


def test_one_hold_out_from_5000_rows_on():
    X = numbers(5000, 2)
    sizes = set()

    def counted(y, score, weight):
        sizes.add(len(y))
        return float(np.mean((y - score) ** 2))

    tree = arboost.DecisionTreeRegressor(max_depth=2)
    tune(tree, X, noisy(X), trials=2, metric=counted, verbose=0)
    assert sizes == {1000}
    sizes.clear()
    groups = np.repeat(np.arange(50), 100)
    tune(tree, X, noisy(X), trials=2, metric=counted, groups=groups, verbose=0)
    assert sizes == {1000}


def test_tiny_tables():
    X = numbers(6, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", arboost.DataWarning)
        found = tune(arboost.DecisionTreeClassifier(), X, [0, 1] * 3, trials=2, folds=2, verbose=0)
    assert len(found.trials) == 2
