"""tune: limits, interrupts, studies of users, failures, logs and bad arguments."""

import logging

import numpy as np
import optuna
import pytest
from sklearn.linear_model import LogisticRegression

import arboost
from arboost import tune


def numbers(n_rows=200, n_features=4):
    return np.random.default_rng(0).random((n_rows, n_features))


def noisy(X):
    return X[:, 0] + np.random.default_rng(1).random(len(X))


def classes(X):
    return (noisy(X) > 1.0).astype(int)


def test_a_time_limit_ends_the_search():
    X = numbers(100)
    found = tune(arboost.DecisionTreeRegressor(), X, noisy(X), seconds=0.2, verbose=0)
    assert found.stop_reason == "seconds"
    assert len(found.trials) > 1
    both = tune(arboost.DecisionTreeRegressor(), X, noisy(X), seconds=1e-9, trials=9, verbose=0)
    assert (len(both.trials), both.stop_reason) == (1, "seconds")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_returns_the_best_so_far(n_jobs):
    X, calls = numbers(100), []

    def metric(y, score, weight):
        calls.append(1)
        if len(calls) > 800:
            raise KeyboardInterrupt
        return float(np.mean((y - score) ** 2))

    options = {"metric": metric, "folds": 2, "n_jobs": n_jobs, "verbose": 0}
    booster = arboost.GradientBoostingRegressor(n_estimators=20)
    found = tune(booster, X, noisy(X), trials=200, **options)
    assert found.stop_reason == "interrupted"
    assert 1 < len(found.trials) < 200
    assert found.trials[-1]["state"] in ("fail", "pruned")
    with pytest.raises(KeyboardInterrupt):
        tune(booster, X, noisy(X), trials=2, **options)


def test_a_study_is_continued():
    X = numbers(100)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=3))
    tree = arboost.DecisionTreeRegressor()
    first = tune(tree, X, noisy(X), trials=4, study=study, verbose=0)
    second = tune(tree, X, noisy(X), trials=3, study=study, verbose=0)
    assert first.study is second.study is study
    assert len(second.trials) == 7
    assert [one["number"] for one in second.trials if not one["params"]] == [0]
    assert second.score <= first.score
    with pytest.raises(ValueError, match="direction minimize"):
        tune(tree, X, noisy(X), trials=2, metric="r2", study=study)
    with pytest.raises(TypeError, match=r"optuna\.Study"):
        tune(tree, X, noisy(X), trials=2, study="sqlite:///tune.db")


def test_trials_that_fail_are_counted_and_named():
    X = numbers(100)

    class Fragile(LogisticRegression):
        def fit(self, X, y):
            if self.C > 1:
                raise RuntimeError("too loose")
            return super().fit(X, y)

    found = tune(Fragile(), X, classes(X), trials=12, space={"C": [0.5, 2.0]}, verbose=0)
    failed = [one for one in found.trials if one["state"] == "fail"]
    assert failed
    assert all(one["reason"] == "RuntimeError: too loose" for one in failed)
    for trials in (12, 3):
        with pytest.raises(ValueError, match=r"no trial of the search space.*too loose"):
            tune(Fragile(), X, classes(X), trials=trials, space={"C": [2.0, 3.0]}, verbose=0)
    with pytest.raises(RuntimeError, match="too loose"):
        tune(Fragile(C=2.0), X, classes(X), trials=2, space={"C": [0.5]}, verbose=0)


def test_optuna_is_silent_unless_asked(caplog, monkeypatch):
    X = numbers(60)
    monkeypatch.setattr(logging.getLogger("optuna"), "propagate", True)
    level = optuna.logging.get_verbosity()
    tune(arboost.DecisionTreeRegressor(), X, noisy(X), trials=2)
    assert not caplog.records
    tune(arboost.DecisionTreeRegressor(), X, noisy(X), trials=2, verbose=2)
    assert "study created" in caplog.text
    assert optuna.logging.get_verbosity() == level


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"estimator": arboost.DecisionTreeRegressor}, "must be an estimator"),
        ({"estimator": "random_forest"}, "must be an estimator"),
        ({"estimator": LogisticRegression()}, "Pass space="),
        ({"seconds": 0}, "above 0"),
        ({"seconds": "60"}, "above 0"),
        ({"seconds": np.nan}, "finite"),
        ({"seconds": None, "trials": None}, "never end"),
        ({"trials": 0}, "at least 1"),
        ({"trials": 2.5}, "at least 1"),
        ({"folds": 1}, "folds=1"),
        ({"folds": "many"}, "folds='many'"),
        ({"metric": "auc"}, "regressor"),
        ({"space": {"depth": (1, 2)}}, "max_depth"),
        ({"n_trials": 3}, "trials"),
        ({"X": "table.parquet"}, "in memory"),
        ({"y": ["a"] * 20}, "regressor needs numbers"),
        ({"verbose": -1}, "verbose"),
    ],
)
def test_bad_arguments(arguments, message):
    given = {"estimator": arboost.DecisionTreeRegressor(), "trials": 2}
    given |= {"X": numbers(20), "y": numbers(20)[:, 0]} | arguments
    with pytest.raises((TypeError, ValueError), match=message):
        tune(**given)
