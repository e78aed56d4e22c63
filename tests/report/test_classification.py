"""Curves, calibration, thresholds, confusion matrix and classes, against scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve

import arboost
from arboost.losses.intervals import wilson
from arboost.report.performance import calibration_bins
from support.reported import fitted, halves, section, table


def rows(task="binary"):
    frame, targets = table()
    test = halves()[1]
    return frame[test], targets[task][test]


def test_roc_is_that_of_scikit_learn():
    X, y = rows()
    proba = fitted("GradientBoosting", "binary").predict_proba(X)[:, 1]
    fpr, tpr, _ = metrics.roc_curve(y == "yes", proba, drop_intermediate=False)
    found = section("binary", "binary")["roc"]
    assert found["fpr"] == pytest.approx(fpr, abs=1e-5)
    assert found["tpr"] == pytest.approx(tpr, abs=1e-5)


def test_precision_recall_is_that_of_scikit_learn():
    X, y = rows()
    proba = fitted("GradientBoosting", "binary").predict_proba(X)[:, 1]
    precision, recall, _ = metrics.precision_recall_curve(y == "yes", proba)
    found = section("binary", "binary")["pr"]
    n = len(found["recall"])  # scikit-learn stops where the recall is full, ours goes on
    assert found["recall"] == pytest.approx(recall[:-1][::-1][:n], abs=1e-5)
    assert found["precision"] == pytest.approx(precision[:-1][::-1][:n], abs=1e-5)
    assert found["prevalence"] == pytest.approx((y == "yes").mean(), abs=1e-5)


def test_long_curves_are_thinned_evenly(rng):
    positive = rng.random(5000) < 0.3
    X = (positive + rng.normal(size=5000))[:, None]
    model = arboost.GradientBoostingClassifier(n_estimators=60).fit(X, positive)
    curve = model.report(X, positive).payload["models"][0]["binary"]["roc"]
    assert len(curve["fpr"]) <= 202
    assert [curve["fpr"][0], curve["tpr"][0], curve["fpr"][-1], curve["tpr"][-1]] == [0, 0, 1, 1]
    area = np.trapezoid(curve["tpr"], curve["fpr"])
    exact = metrics.roc_auc_score(positive, model.predict_proba(X)[:, 1])
    assert area == pytest.approx(exact, abs=2e-3)


def test_calibration_is_that_of_scikit_learn():
    X, y = rows()
    proba = fitted("GradientBoosting", "binary").predict_proba(X)[:, 1]
    share, mean = calibration_curve(y == "yes", proba, n_bins=10, strategy="quantile")
    found = section("binary", "binary")["calibration"]
    assert [one["observed"] for one in found] == pytest.approx(share, abs=0.1)
    assert [one["predicted"] for one in found] == pytest.approx(mean, abs=0.05)
    assert sum(one["n"] for one in found) == len(y)
    total = sum(one["n"] * one["observed"] for one in found)
    assert total == pytest.approx((y == "yes").sum(), abs=0.01)
    assert all(one["low"] <= one["observed"] <= one["high"] for one in found)


def test_calibration_of_equal_scores_is_one_bin():
    found = calibration_bins(np.array([True, False, True, True] * 10), np.full(40, 0.7), None)
    assert [(one["n"], one["predicted"], one["observed"]) for one in found] == [(40, 0.7, 0.75)]


def test_wilson_interval():
    """8 of 10: the values of the textbook."""
    low, high = wilson(np.array([0.8]), np.array([10.0]))
    assert (low[0], high[0]) == pytest.approx((0.4902, 0.9433), abs=1e-3)


def test_thresholds_count_rows():
    X, y = rows()
    proba = fitted("GradientBoosting", "binary").predict_proba(X)[:, 1]
    found = section("binary", "binary")["thresholds"]
    assert found["t"] == sorted(set(found["t"]))
    assert {0, 0.5, 1} <= set(found["t"])
    for i in range(0, len(found["t"]), 7):
        chosen = proba >= found["t"][i]
        tn, fp, fn, tp = metrics.confusion_matrix(y == "yes", chosen, labels=[False, True]).ravel()
        assert [found[name][i] for name in ("tn", "fp", "fn", "tp")] == [tn, fp, fn, tp]


def test_histogram_holds_all_rows():
    _, y = rows()
    found = section("binary", "binary")["histogram"]
    assert sum(found["positive"]) == (y == "yes").sum()
    assert sum(found["negative"]) == (y == "no").sum()
    assert len(found["edges"]) == len(found["positive"]) + 1


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_confusion_and_classes_are_those_of_scikit_learn(task):
    X, y = rows(task)
    model = fitted("GradientBoosting", task)
    predicted = model.predict(X)
    matrix = metrics.confusion_matrix(y, predicted, labels=model.classes_)
    assert section(task, "confusion")["matrix"] == matrix.tolist()
    assert section(task, "confusion")["names"] == model.classes_.tolist()
    expected = metrics.precision_recall_fscore_support(y, predicted, labels=model.classes_)
    found = section(task, "classes")
    for name, values in zip(("precision", "recall", "f1", "n"), expected, strict=True):
        assert [one[name] for one in found] == pytest.approx(values, abs=1e-5)
    proba = model.predict_proba(X)
    for k, one in enumerate(found):
        area = metrics.roc_auc_score(y == model.classes_[k], proba[:, k])
        assert one["auc"] == pytest.approx(area, abs=1e-5)


def test_curves_of_several_classes():
    X, y = rows("multiclass")
    model = fitted("GradientBoosting", "multiclass")
    found = section("multiclass", "multiclass")
    assert {one["class"] for one in found["roc"]} == set(model.classes_)
    for one in found["roc"]:
        k = model.classes_.tolist().index(one["class"])
        proba = model.predict_proba(X)[:, k]
        fpr, tpr, _ = metrics.roc_curve(y == one["class"], proba, drop_intermediate=False)
        assert one["fpr"] == pytest.approx(fpr, abs=1e-5)
        assert one["tpr"] == pytest.approx(tpr, abs=1e-5)
    assert sum(one["n"] for one in found["calibration"]) == len(y)


def test_confusion_of_many_classes_ends_with_others():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 40, 800)
    X = y[:, None] + 0.4 * rng.normal(size=(800, 1))
    model = arboost.DecisionTreeClassifier(max_depth=8).fit(X, y)
    found = model.report(X, y).payload["models"][0]
    assert len(found["confusion"]["names"]) == 30
    assert found["confusion"]["names"][-1] == "other"
    assert np.sum(found["confusion"]["matrix"]) == 800
    assert len(found["classes"]) == 40
    shown = [k for k in range(40) if str(k) in found["confusion"]["names"]]
    first = found["confusion"]["matrix"][0][0]
    assert first == ((y == shown[0]) & (model.predict(X) == shown[0])).sum()
