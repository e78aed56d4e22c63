"""Curves, calibration, confusion, residuals, coverage and segments, against scikit-learn."""

import numpy as np
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve

import arboost
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


def residuals():
    frame, targets = table()
    test = halves()[1]
    predicted = fitted("GradientBoosting", "regression").predict(frame[test])
    return predicted, targets["regression"][test] - predicted


def test_points_and_residuals():
    predicted, residual = residuals()
    found = section("regression", "regression")
    assert found["points"]["predicted"] == pytest.approx(predicted, rel=1e-4)
    assert sum(found["residuals"]["counts"]) == len(residual)
    middle = {one["probability"]: one["residual"] for one in found["quantiles"]}
    assert middle[0.5] == pytest.approx(np.median(residual), rel=1e-4)


def test_means_by_prediction():
    predicted, residual = residuals()
    found = section("regression", "regression")["by_prediction"]
    assert sum(one["n"] for one in found) == len(residual)
    total = sum(one["n"] * one["mean_residual"] for one in found)
    assert total == pytest.approx(residual.sum(), abs=1e-2)
    order = np.argsort(predicted)
    first = order[: found[0]["n"]]
    assert found[0]["mean_residual"] == pytest.approx(residual[first].mean(), rel=1e-3)


def test_coverage_of_quantile_boosters(rng):
    X = rng.normal(size=(400, 2))
    y = X[:, 0] + rng.normal(size=400)
    alphas = [0.05, 0.25, 0.5, 0.75, 0.95]
    model = arboost.GradientBoostingRegressor(loss="quantile", alpha=alphas, n_estimators=30)
    columns = model.fit(X, y).predict(X)
    found = model.report(X, y).payload["models"][0]["regression"]["coverage"]
    assert [one["nominal"] for one in found] == pytest.approx([0.5, 0.9])
    inside = (y >= columns[:, 1]) & (y <= columns[:, 3])
    assert found[0]["observed"] == pytest.approx(inside.mean(), abs=1e-4)
    assert found[0]["width"] == pytest.approx((columns[:, 3] - columns[:, 1]).mean(), rel=1e-4)


def test_coverage_of_quantile_forests(rng):
    X = rng.normal(size=(300, 2))
    y = X[:, 0] + rng.normal(size=300)
    model = arboost.RandomForestRegressor(15, quantiles=True, random_state=0)
    model.fit(X[:150], y[:150])
    found = model.report(X[150:], y[150:]).payload["models"][0]["regression"]["coverage"]
    assert [one["nominal"] for one in found] == pytest.approx([0.5, 0.8, 0.9, 0.95])
    low, high = model.predict_quantiles(X[150:], [0.1, 0.9]).T
    inside = (y[150:] >= low) & (y[150:] <= high)
    assert found[1]["observed"] == pytest.approx(inside.mean(), abs=1e-4)


def test_no_coverage_without_quantiles():
    assert section("regression", "regression")["coverage"] is None


def test_segments_are_means_of_losses():
    frame, targets = table()
    test = halves()[1]
    X, y = frame[test], targets["regression"][test]
    losses = np.abs(fitted("GradientBoosting", "regression").predict(X) - y)
    found = section("regression", "segments")
    assert found["metric"] == "mean absolute error"
    assert found["overall"] == pytest.approx(losses.mean(), rel=1e-4)
    by_name = {(one["feature"], one["segment"]): one for one in found["list"]}
    for level in ("Rome", "Oslo"):
        rows = (X["city"] == level).to_numpy()
        one = by_name["city", level]
        assert one["n"] == rows.sum()
        assert one["score"] == pytest.approx(losses[rows].mean(), rel=1e-4)
        assert one["observed"] == pytest.approx(y[rows].mean(), rel=1e-4)
        assert one["low"] < one["score"] < one["high"]
        assert one["difference"] == pytest.approx(one["score"] - found["overall"], abs=1e-4)


@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_worst_come_first_and_none_is_tiny(task):
    found = section(task, "segments")
    scores = [one["score"] for one in found["list"]]
    assert scores == sorted(scores, reverse=True)
    assert found["fewest_rows"] == 30
    assert all(one["n"] >= 30 for one in found["list"])
    assert found["n_segments"] >= len(found["list"])


def test_a_bad_segment_is_found(rng):
    """Rows of one level have labels at random: it leads the list."""
    n = 2000
    X = rng.normal(size=(n, 3))
    group = rng.choice(["a", "b", "c", "d"], n)
    y = np.where(group == "c", rng.random(n) < 0.5, X[:, 0] > 0).astype(int)
    columns = {"x": X[:, 0], "u": X[:, 1], "v": X[:, 2], "group": group.astype(object)}
    half = n // 2
    train = {name: values[:half] for name, values in columns.items()}
    test = {name: values[half:] for name, values in columns.items()}
    model = arboost.GradientBoostingClassifier(n_estimators=30).fit(train, y[:half])
    worst = model.report(test, y[half:]).payload["models"][0]["segments"]["list"][0]
    assert (worst["feature"], worst["segment"]) == ("group", "c")
    assert worst["low"] > 0.3


def test_ranges_and_missing_values_divide_the_rows(rng):
    X = rng.normal(size=(400, 1))
    X[:80] = np.nan
    y = np.where(np.isnan(X[:, 0]), 1.0, X[:, 0])
    model = arboost.GradientBoostingRegressor(n_estimators=5).fit(X, y)
    found = model.report(X, y).payload["models"][0]["segments"]["list"]
    sizes = {one["segment"]: one["n"] for one in found}
    assert sizes["missing"] == 80
    assert sum(sizes.values()) == 400
    assert len(sizes) == 5


def test_chosen_features_are_always_shown():
    """Sixteen more features fill the list; the one that is asked for is in it all the same."""
    frame, targets = table()
    train, test = halves()
    y = targets["regression"]
    many = frame.assign(**{f"n{i}": np.arange(len(frame)) % (i + 2) for i in range(16)})
    model = arboost.GradientBoostingRegressor(n_estimators=5).fit(many[train], y[train])
    plain = model.report(many[test], y[test]).payload["models"][0]["segments"]
    shown = {one["feature"] for one in plain["list"]}
    absent = next(name for name in ("n0", "n1", "n2", "n3") if name not in shown)
    found = model.report(many[test], y[test], segments=[absent]).payload["models"][0]["segments"]
    assert absent in {one["feature"] for one in found["list"]}
    with pytest.raises(ValueError, match="segments names features that the model does not have"):
        model.report(many[test], y[test], segments=["nothing"])


def test_segments_of_a_second_model_go_by_name():
    """The columns of the two models are in another order."""
    frame, targets = table()
    train, test = halves()
    y = targets["regression"]
    first = fitted("GradientBoosting", "regression")
    other = arboost.GradientBoostingRegressor(n_estimators=5)
    other.fit(frame[frame.columns[::-1]][train], y[train])
    found = first.report(frame[test], y[test], compare=other, segments=["city"]).payload
    sizes = [
        {one["segment"]: one["n"] for one in model["segments"]["list"] if one["feature"] == "city"}
        for model in found["models"]
    ]
    assert sizes[0] == sizes[1]
    assert sizes[0]["Rome"] == (frame[test]["city"] == "Rome").sum()
