"""Scores of a report: values of scikit-learn, intervals that cover, baselines, comparisons."""

import numpy as np
import pytest
from sklearn import metrics

import arboost
from arboost.report.inputs import ReportOptions, read_input
from arboost.report.scores import score_rows
from support.reported import fitted, halves, report, table


def truth_of(task):
    _, targets = table()
    return targets[task][halves()[1]]


def test_binary_scores_are_those_of_scikit_learn():
    frame, _ = table()
    model, y = fitted("GradientBoosting", "binary"), truth_of("binary")
    X = frame[halves()[1]]
    proba, label = model.predict_proba(X)[:, 1], model.predict(X)
    expected = {
        "ROC AUC": metrics.roc_auc_score(y == "yes", proba),
        "average precision": metrics.average_precision_score(y == "yes", proba),
        "log loss": metrics.log_loss(y == "yes", proba),
        "Brier score": metrics.brier_score_loss(y == "yes", proba),
        "accuracy": metrics.accuracy_score(y, label),
        "balanced accuracy": metrics.balanced_accuracy_score(y, label),
        "F1": metrics.f1_score(y, label, pos_label="yes"),
    }
    assert report().scores == pytest.approx(expected, rel=1e-4)


def test_multiclass_scores_are_those_of_scikit_learn():
    frame, _ = table()
    model, y = fitted("GradientBoosting", "multiclass"), truth_of("multiclass")
    X = frame[halves()[1]]
    proba, label = model.predict_proba(X), model.predict(X)
    expected = {
        "ROC AUC": metrics.roc_auc_score(y, proba, multi_class="ovr", average="weighted"),
        "log loss": metrics.log_loss(y, proba, labels=model.classes_),
        "accuracy": metrics.accuracy_score(y, label),
        "balanced accuracy": metrics.balanced_accuracy_score(y, label),
        "macro F1": metrics.f1_score(y, label, average="macro"),
    }
    found = report(task="multiclass").scores
    assert {name: found[name] for name in expected} == pytest.approx(expected, rel=1e-4)


def test_regression_scores_are_those_of_scikit_learn():
    frame, _ = table()
    y = truth_of("regression")
    predicted = fitted("GradientBoosting", "regression").predict(frame[halves()[1]])
    expected = {
        "RMSE": metrics.root_mean_squared_error(y, predicted),
        "MAE": metrics.mean_absolute_error(y, predicted),
        "R²": metrics.r2_score(y, predicted),
    }
    assert report(task="regression").scores == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_weights_count_as_repeated_rows(task):
    frame, targets = table()
    test = np.flatnonzero(halves()[1])
    weight = np.arange(len(test)) % 3
    model, y = fitted("GradientBoosting", task), targets[task]
    repeated = np.repeat(test, weight)
    weighted = model.report(frame.iloc[test], y[test], sample_weight=weight)
    plain = model.report(frame.iloc[repeated], y[repeated])
    assert weighted.scores == pytest.approx(plain.scores, rel=1e-4)
    parts = ("confusion", "classes") if task != "regression" else ()
    for part in parts:
        one, two = (each.payload["models"][0][part] for each in (weighted, plain))
        if part == "confusion":
            assert one["matrix"] == two["matrix"]
        else:
            names = ("precision", "recall", "f1", "auc")
            assert [[k[n] for n in names] for k in one] == [[k[n] for n in names] for k in two]


@pytest.mark.parametrize(
    ("loss", "metric"),
    [("poisson", metrics.mean_poisson_deviance), ("gamma", metrics.mean_gamma_deviance)],
)
def test_deviances_are_those_of_scikit_learn(loss, metric, rng):
    X = rng.normal(size=(150, 2))
    y = np.exp(X[:, 0]) + 0.1
    model = arboost.GradientBoostingRegressor(loss=loss, n_estimators=5).fit(X, y)
    expected = metric(y, model.predict(X))
    assert model.report(X, y).scores["deviance"] == pytest.approx(expected, rel=1e-4)


def test_tweedie_deviance_is_that_of_scikit_learn(rng):
    X = rng.normal(size=(150, 2))
    y = np.maximum(X[:, 0], 0.0)
    model = arboost.GradientBoostingRegressor(loss="tweedie", tweedie_power=1.3, n_estimators=5)
    model.fit(X, y)
    expected = metrics.mean_tweedie_deviance(y, model.predict(X), power=1.3)
    assert model.report(X, y).scores["deviance"] == pytest.approx(expected, rel=1e-4)


def test_pinball_loss_is_that_of_scikit_learn(rng):
    X = rng.normal(size=(150, 2))
    y = X[:, 0] + rng.normal(size=150)
    alphas = [0.1, 0.5, 0.9]
    model = arboost.GradientBoostingRegressor(loss="quantile", alpha=alphas, n_estimators=9)
    model.fit(X, y)
    columns = model.predict(X).T
    pairs = zip(alphas, columns, strict=True)
    expected = np.mean([metrics.mean_pinball_loss(y, one, alpha=a) for a, one in pairs])
    found = model.report(X, y)
    assert found.scores["pinball loss"] == pytest.approx(expected, rel=1e-4)
    assert found.scores["MAE"] == pytest.approx(metrics.mean_absolute_error(y, columns[1]), 1e-4)


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_intervals_hold_the_score(task):
    for score in report(task=task).payload["models"][0]["scores"]:
        assert score["low"] <= score["value"] <= score["high"]
        assert score["low"] < score["high"]


def test_baselines():
    scores = {one["name"]: one for one in report().payload["models"][0]["scores"]}
    assert scores["ROC AUC"]["baseline"] == 0.5
    train, test = halves()
    y = table()[1]["binary"]
    share = (y[train] == "yes").mean()
    loss = metrics.log_loss(y[test] == "yes", np.full(test.sum(), share))
    assert scores["log loss"]["baseline"] == pytest.approx(loss, rel=1e-4)
    model = report(task="regression").payload["models"][0]
    assert model["baseline_text"] == "always predicts the mean of the training rows"


def test_baseline_without_training_rows_is_of_the_rows_themselves(rng):
    X = rng.normal(size=(60, 1))
    model = arboost.DecisionTreeRegressor().fit(X, X[:, 0])
    found = model.report(X, X[:, 0]).payload["models"][0]
    assert found["baseline_text"] == "always predicts the mean"
    scores = {one["name"]: one for one in found["scores"]}
    assert scores["RMSE"]["baseline"] == pytest.approx(X.std(), rel=1e-4)
    assert scores["R²"]["baseline"] == pytest.approx(0.0, abs=1e-9)


def test_comparison_is_paired():
    """Two nearly equal models differ by far less than each score varies."""
    frame, targets = table()
    test = halves()[1]
    first = fitted("GradientBoosting", "regression").model_
    found = first.report(
        frame[test], targets["regression"][test], compare=first.truncated(first.n_rounds - 1)
    ).payload
    assert found["comparison"]["names"] == [one["name"] for one in found["models"]]
    own = found["models"][0]["scores"][0]
    paired = found["comparison"]["scores"][0]
    assert paired["name"] == own["name"] == "RMSE"
    assert paired["difference"] == pytest.approx(paired["b"] - paired["a"], abs=1e-4)
    assert paired["low"] < paired["difference"] < paired["high"]
    assert paired["high"] - paired["low"] < (own["high"] - own["low"]) / 2


def test_comparison_names_the_better_model():
    frame, targets = table()
    test = halves()[1]
    good = fitted("GradientBoosting", "regression").model_
    found = good.report(frame[test], targets["regression"][test], compare=good.truncated(1))
    for one in found.payload["comparison"]["scores"]:
        assert one["better"] == 0
    found = good.report(frame[test], targets["regression"][test], compare=good)
    for one in found.payload["comparison"]["scores"]:
        assert one["better"] is None
        assert one["difference"] == one["low"] == one["high"] == 0


def test_scores_of_a_table_with_two_rows_of_one_class():
    frame, targets = table()
    model = fitted("GradientBoosting", "binary")
    one_class = np.flatnonzero(targets["binary"] == "yes")[:2]
    options = ReportOptions()
    inputs = read_input(model, frame.iloc[one_class], targets["binary"][one_class], options)
    names = [score.name for score in score_rows(inputs.model_rows[0])]
    assert "ROC AUC" not in names
    assert "log loss" in names


def test_few_rows_have_no_interval():
    frame, targets = table()
    found = fitted("GradientBoosting", "regression").report(frame[:9], targets["regression"][:9])
    for score in found.payload["models"][0]["scores"]:
        assert score["low"] is None
        assert score["high"] is None


def test_interval_of_a_perfect_share_is_wilsons(rng):
    X = rng.normal(size=(40, 1))
    y = X[:, 0] > 0
    model = arboost.DecisionTreeClassifier().fit(X, y)
    scores = {one["name"]: one for one in model.report(X, y).payload["models"][0]["scores"]}
    accuracy = scores["accuracy"]
    assert accuracy["value"] == accuracy["high"] == 1
    assert accuracy["low"] == pytest.approx(1 / (1 + 1.96**2 / 40), abs=1e-4)
