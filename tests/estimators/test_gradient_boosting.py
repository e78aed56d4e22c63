"""GradientBoostingRegressor and GradientBoostingClassifier: the public interface."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import arboost
from arboost import Dataset, GradientBoostingClassifier, GradientBoostingRegressor
from arboost.models.files.model_file import to_bytes
from arboost.models.importances import importances

STRATEGIES = ["one_output_per_tree", "multi_output_tree"]


@pytest.fixture(scope="module")
def regression():
    return train_test_split(*load_diabetes(return_X_y=True), random_state=0)


@pytest.fixture(scope="module")
def binary():
    return train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)


@pytest.fixture(scope="module")
def multiclass():
    return train_test_split(*load_iris(return_X_y=True), random_state=0)


def test_regression(regression):
    X, X_test, y, y_test = regression
    model = GradientBoostingRegressor(n_estimators=60, max_depth=3).fit(X, y)
    assert model.score(X_test, y_test) > 0.25
    assert model.score(X, y) > 0.7
    assert model.predict(X).dtype == np.float64
    assert model.n_iter_ == 60
    assert model.n_features_in_ == X.shape[1]
    assert not hasattr(model, "feature_names_in_")


def test_binary(binary):
    X, X_test, y, y_test = binary
    model = GradientBoostingClassifier().fit(X, y)
    assert model.score(X_test, y_test) > 0.93
    proba = model.predict_proba(X_test)
    assert proba.shape == (len(X_test), 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-15)
    decision = model.decision_function(X_test)
    assert decision.shape == (len(X_test),)
    np.testing.assert_array_equal(decision > 0, model.predict(X_test) == 1)
    assert log_loss(y_test, proba) < 0.25


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_multiclass(multiclass, strategy):
    X, X_test, y, y_test = multiclass
    model = GradientBoostingClassifier(n_estimators=30, multi_strategy=strategy).fit(X, y)
    assert model.score(X_test, y_test) > 0.9
    proba = model.predict_proba(X_test)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-15)
    assert model.decision_function(X_test).shape == (len(X_test), 3)
    assert model.n_iter_ == 30
    assert model.model_.n_trees == (90 if strategy == "one_output_per_tree" else 30)


def test_start_is_the_mean(regression):
    X, _, y, _ = regression
    weight = np.linspace(1, 3, len(y))
    model = GradientBoostingRegressor(n_estimators=1).fit(X, y, weight)
    assert model.model_.base_score[0] == pytest.approx(np.average(y, weights=weight))


def test_start_is_the_log_odds(binary):
    X, _, y, _ = binary
    model = GradientBoostingClassifier(n_estimators=1).fit(X, y)
    odds = y.mean() / (1 - y.mean())
    assert model.model_.base_score[0] == pytest.approx(np.log(odds))


def test_start_is_the_log_frequency(multiclass):
    X, _, y, _ = multiclass
    model = GradientBoostingClassifier(n_estimators=1).fit(X, y)
    np.testing.assert_allclose(model.model_.base_score, np.log(np.bincount(y) / len(y)))


def test_base_score(regression, binary):
    X, _, y, _ = regression
    model = GradientBoostingRegressor(n_estimators=1, base_score=-7).fit(X, y)
    np.testing.assert_array_equal(model.model_.truncated(0).predict(X), np.full(len(X), -7.0))
    X, _, y, _ = binary
    model = GradientBoostingClassifier(n_estimators=1, base_score=0.2).fit(X, y)
    np.testing.assert_allclose(model.model_.truncated(0).predict_proba(X)[:, 1], 0.2)


@pytest.mark.parametrize("base_score", [0, 1, -0.5, 2.0])
def test_base_score_is_a_probability(base_score):
    model = GradientBoostingClassifier(base_score=base_score)
    with pytest.raises(ValueError, match=r"base_score=.*probability of the second"):
        model.fit([[0], [1]], [0, 1])


def test_base_score_of_many_classes(multiclass):
    X, _, y, _ = multiclass
    with pytest.raises(ValueError, match="with 3 classes it is a list of their 3 probabilities"):
        GradientBoostingClassifier(base_score=0.5).fit(X, y)
    for base_score, scores in (
        (0, [0.0, 0.0, 0.0]),
        ([0.5, 0.25, 0.25], np.log([0.5, 0.25, 0.25])),
    ):
        model = GradientBoostingClassifier(base_score=base_score, n_estimators=2).fit(X, y)
        np.testing.assert_allclose(model.model_.base_score, scores, rtol=1e-15)
        assert model.model_.params["base_score"] == base_score


def test_staged(multiclass):
    X, X_test, y, _ = multiclass
    model = GradientBoostingClassifier(n_estimators=4).fit(X, y)
    for staged, final in (
        (model.staged_predict, model.predict),
        (model.staged_predict_proba, model.predict_proba),
        (model.staged_decision_function, model.decision_function),
    ):
        stages = list(staged(X_test))
        assert len(stages) == 4
        np.testing.assert_array_equal(stages[-1], final(X_test))
        assert stages[0].shape == final(X_test).shape


def test_staged_regression(regression):
    X, _, y, _ = regression
    model = GradientBoostingRegressor(n_estimators=8).fit(X, y)
    errors = [np.mean((y - stage) ** 2) for stage in model.staged_predict(X)]
    assert len(errors) == 8
    assert all(later < earlier for earlier, later in itertools.pairwise(errors))


LABELS = [
    np.array(["red", "blue", "green"]),
    np.array(["red", "blue", "green"], dtype=object),
    np.array([-1, 5, 100_000_000_000]),
    np.array([2, 0, 1], dtype=np.uint8),
    np.array([1.0, 3.0, -2.0]),
    np.array([1.0, 3.0, -2.0], dtype=np.float32),
    np.array([1e300, -1e300, 0.0]),
    np.array([False, True, True]),
]


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: f"{labels.dtype}{labels}")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels(multiclass, labels, n_classes, tmp_path):
    X, _, codes, _ = multiclass
    y = labels[np.minimum(codes, n_classes - 1)]
    model = GradientBoostingClassifier(n_estimators=20).fit(X, y)
    assert model.classes_.dtype == y.dtype
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    predicted = model.predict(X)
    assert predicted.dtype == y.dtype
    assert np.mean(predicted == y) > 0.95
    model.save(tmp_path / "model.arb")
    loaded = arboost.load(tmp_path / "model.arb")
    assert loaded.classes.dtype == y.dtype
    np.testing.assert_array_equal(loaded.predict(X), predicted)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_labels_of_other_machines(multiclass):
    """classes_ has native dtypes that a model file can store on every platform."""
    X, _, y, _ = multiclass
    for given, kept in ((">i4", "=i4"), (">U3", "=U3"), (np.longdouble, float)):
        model = GradientBoostingClassifier(n_estimators=2).fit(X, y.astype(given))
        assert model.classes_.dtype == np.dtype(kept)
        assert model.predict(X).dtype == np.dtype(kept)


def test_classes_cannot_be_changed(multiclass):
    X, _, y, _ = multiclass
    model = GradientBoostingClassifier(n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match="read-only"):
        model.classes_[0] = 7


@pytest.mark.filterwarnings("ignore:y has one class only")
@pytest.mark.parametrize("label", ["yes", 3, 2.0, True])
def test_one_class(label):
    X = np.arange(6.0).reshape(-1, 1)
    model = GradientBoostingClassifier().fit(X, [label] * 6)
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((6, 1)))
    np.testing.assert_array_equal(model.predict(X), [label] * 6)
    assert model.decision_function(X).shape == (6,)
    np.testing.assert_array_equal(model.feature_importances_, [0.0])


def test_class_of_weight_zero_is_absent():
    model = GradientBoostingClassifier(n_estimators=5)
    model.fit([[0], [1], [2], [3]], [0, 0, 1, 2], sample_weight=[1, 1, 1, 0])
    np.testing.assert_array_equal(model.classes_, [0, 1])


def test_constant_target():
    X = np.arange(20.0).reshape(-1, 2)
    model = GradientBoostingRegressor().fit(X, np.full(10, 3.7))
    np.testing.assert_array_equal(model.predict(X), np.full(10, 3.7))


def test_large_offset_of_the_target():
    X = np.arange(200.0).reshape(-1, 1)
    y = 1e9 + np.sign(X[:, 0] - 100)
    assert GradientBoostingRegressor().fit(X, y).score(X, y) > 0.99


def test_weights_are_repetitions(regression):
    X, X_test, y, _ = regression
    times = np.arange(len(y)) % 3
    weighted = GradientBoostingRegressor(n_estimators=20, max_depth=3)
    repeated = GradientBoostingRegressor(n_estimators=20, max_depth=3)
    weighted.fit(X, y, sample_weight=times)
    repeated.fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(weighted.predict(X_test), repeated.predict(X_test), rtol=1e-6)


def test_importances(regression):
    X, _, y, _ = regression
    model = GradientBoostingRegressor(n_estimators=10).fit(X, y)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert (model.feature_importances_ >= 0).all()
    splits = importances(model.model_, "split")
    assert splits.sum() == model.model_.forest.is_split.sum()
    np.testing.assert_array_equal(splits > 0, importances(model.model_, "cover") > 0)
    with pytest.raises(ValueError, match=r"kind='weight' .*gain, cover, split"):
        importances(model.model_, "weight")


def test_importance_of_the_only_useful_feature(rng):
    X = rng.normal(size=(300, 5))
    model = GradientBoostingRegressor(n_estimators=10, max_depth=1).fit(X, X[:, 3] > 0)
    assert model.feature_importances_[3] > 0.99


@pytest.mark.parametrize("changes", [{"n_jobs": 1}, {"n_jobs": 4}, {"verbose": 1}])
def test_bytes_do_not_depend_on_how_it_ran(binary, changes):
    X, _, y, _ = binary
    first = GradientBoostingClassifier(n_estimators=5).fit(X, y)
    other = GradientBoostingClassifier(n_estimators=5, **changes).fit(X, y)
    assert to_bytes(first.model_) == to_bytes(other.model_)


def test_parameters_are_kept_in_the_model(regression):
    X, _, y, _ = regression
    seed = np.random.RandomState(0)
    model = GradientBoostingRegressor(n_estimators=2, gamma=1, random_state=seed).fit(X, y)
    assert model.model_.params["gamma"] == 1.0
    assert isinstance(model.model_.params["random_state"], int)
    assert "n_jobs" not in model.model_.params


@pytest.mark.parametrize("weighted", [False, True])
def test_dataset_gives_the_same_model(binary, weighted):
    X, _, y, _ = binary
    weight = np.linspace(0, 2, len(y)).round() if weighted else None
    direct = GradientBoostingClassifier(n_estimators=5).fit(X, y, weight)
    data = Dataset(X, y, sample_weight=weight)
    shared = GradientBoostingClassifier(n_estimators=5).fit(data)
    assert to_bytes(direct.model_) == to_bytes(shared.model_)


def test_dataset_with_another_target(binary):
    X, _, y, _ = binary
    data = Dataset(X, y)
    model = GradientBoostingRegressor(n_estimators=5).fit(data, X[:, 0])
    assert to_bytes(model.model_) == to_bytes(model.fit(X, X[:, 0]).model_)
    weight = np.linspace(1, 2, len(y))
    model.fit(data, sample_weight=weight)
    assert model.model_.base_score[0] == pytest.approx(np.average(y, weights=weight))


def test_refit_forgets(regression, binary):
    model = GradientBoostingRegressor(n_estimators=3).fit(regression[0], regression[2])
    model.fit(binary[0], binary[2])
    assert model.n_features_in_ == binary[0].shape[1]
    assert model.model_.n_rounds == 3


def test_failed_refit_keeps_the_old_model(regression):
    X, X_test, y, _ = regression
    model = GradientBoostingRegressor(n_estimators=3).fit(X, y)
    before = model.predict(X_test)
    with pytest.raises(ValueError, match="gamma"):
        model.set_params(gamma=-1).fit(X, y)
    np.testing.assert_array_equal(model.predict(X_test), before)


def test_progress_bar(regression, monkeypatch, capsys):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    X, _, y, _ = regression
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.setattr("arboost.progress._DELAY", 0.0)
    GradientBoostingRegressor(n_estimators=7, verbose=1).fit(X, y)
    assert "7/7" in screen.getvalue()
    assert screen.getvalue().endswith("\n")
    quiet = io.StringIO()
    monkeypatch.setattr("sys.stderr", quiet)
    GradientBoostingRegressor(n_estimators=7, verbose=1).fit(X, y)
    assert quiet.getvalue() == ""
    assert capsys.readouterr().out == ""
