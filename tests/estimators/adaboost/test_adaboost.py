"""AdaBoostClassifier: ends of training, warm starts, and weights of rows and classes."""

from __future__ import annotations

import time
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from arboost import AdaBoostClassifier, AdaBoostRegressor, GradientBoostingClassifier
from arboost.models.files import model_file
from support.boosted import close, noisy_table

ALGORITHMS = ["discrete", "real", "gentle"]
ROUND_STATS = [
    "estimator_errors_",
    "estimator_weights_",
    "normalizers_",
    "edges_",
    "exponential_loss_",
    "training_error_",
    "training_error_bound_",
    "edge_bound_",
    "vote_range_",
]


def noisy(n_classes=2, n_rows=400):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, size=(n_rows, 5)).astype(float)
    signal = X[:, 0] + 0.5 * X[:, 1] + rng.normal(scale=8.0, size=n_rows)
    cuts = np.quantile(signal, np.arange(1, n_classes) / n_classes)
    return X, np.searchsorted(cuts, signal)


def round_stats(model):
    return {name: getattr(model, name) for name in ROUND_STATS}


def same_round_stats(model, other, rtol=1e-9):
    for name, values in round_stats(model).items():
        np.testing.assert_allclose(values, getattr(other, name), rtol=rtol, err_msg=name)


# ---- ends of training ----

STEP = np.arange(8.0).reshape(-1, 1)
IS_HIGH = (STEP[:, 0] > 3).astype(int)
TWICE = (np.array([[0.0], [0], [0], [1], [1], [1]]), np.array([0, 0, 1, 1, 1, 0]))


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(max_depth=1)], ids=str)
def test_a_perfect_learner_ends_training_with_a_finite_weight(estimator):
    model = AdaBoostClassifier(estimator).fit(STEP, IS_HIGH)
    assert model.stop_reason_ == "perfect learner"
    assert model.n_iter_ == 1
    assert model.estimator_errors_.tolist() == [0.0]
    # The error is clipped to 1e-10.
    close(model.estimator_weights_, [np.log(1e10) / 2])
    assert model.training_error_.tolist() == [0.0]
    np.testing.assert_array_equal(model.predict(STEP), IS_HIGH)
    p = model.predict_proba(STEP)
    assert ((p > 0) & (p < 1)).all()


def test_a_perfect_learner_of_three_classes():
    X, y = STEP, np.array([0, 0, 0, 1, 1, 1, 2, 2])
    model = AdaBoostClassifier(max_depth=2).fit(X, y)
    assert model.stop_reason_ == "perfect learner"
    close(model.estimator_weights_, [np.log(1e10) + np.log(2)])


@pytest.mark.parametrize("algorithm", ["real", "gentle"])
def test_a_perfect_learner_of_other_algorithms(algorithm):
    model = AdaBoostClassifier(algorithm=algorithm).fit(STEP, IS_HIGH)
    assert (model.stop_reason_, model.n_iter_) == ("perfect learner", 1)
    # Smoothing adds one row per leaf, divided equally among the classes: odds of 4.5 : 0.5.
    expected = {"real": np.log(9) / 2, "gentle": 1.0}[algorithm]
    close(np.abs(model.decision_function(STEP)), np.full(8, expected))


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(max_depth=1)], ids=str)
def test_no_better_than_chance(estimator):
    """After one stump, the wrong rows have half of the total weight."""
    model = AdaBoostClassifier(estimator).fit(*TWICE)
    assert model.stop_reason_ == "no better than chance"
    assert model.n_iter_ == len(model.estimators_) == 1
    close(model.estimator_errors_, [1 / 3])
    np.testing.assert_array_equal(model.predict(TWICE[0]), [0, 0, 0, 1, 1, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"the first learner is worse than random, or no better.*stronger"),
        ({"resample": True, "max_restarts": 3}, r"4 first learners, each on another draw of rows"),
    ],
    ids=["weights", "draws"],
)
@pytest.mark.filterwarnings("ignore:all columns of X are constant")
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_useless_first_learner_is_an_error(n_classes, options, message):
    X, y = np.ones((8, 2)), np.arange(8) % n_classes
    model = AdaBoostClassifier(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "model_")


class Fickle(ClassifierMixin, BaseEstimator):
    """Unweighted stump; fits whose index is in `bad` predict the opposite class."""

    seeds: ClassVar[list[int]] = []  # random states of all fits, in order

    def __init__(self, bad=(), random_state=None):
        self.bad = bad
        self.random_state = random_state

    def fit(self, X, y):
        self.number_ = len(self.seeds)
        self.seeds.append(self.random_state)
        self.classes_ = np.unique(y)
        self.stump_ = DecisionTreeClassifier(max_depth=1).fit(X, y)
        return self

    def predict(self, X):
        predicted = self.stump_.predict(X)
        if self.number_ in self.bad:
            return self.classes_[1 - np.searchsorted(self.classes_, predicted)]
        return predicted


@pytest.fixture
def seeds():
    Fickle.seeds.clear()
    return Fickle.seeds


def test_learners_no_better_than_chance_are_drawn_again(seeds):
    X, y = load_breast_cancer(return_X_y=True)
    model = AdaBoostClassifier(Fickle({1, 2, 4}), n_estimators=6, resample=True, max_restarts=2)
    model.fit(X, y)
    assert model.stop_reason_ == "n_estimators"
    assert [member.number_ for member in model.estimators_] == [0, 3, 5, 6, 7, 8]
    assert len(set(seeds)) == len(seeds) == 9
    assert (model.estimator_errors_ < 0.5).all()
    assert (model.training_error_ <= model.training_error_bound_).all()


@pytest.mark.parametrize("restarts", [0, 4])
def test_restarts_can_be_used_up(seeds, restarts):
    X, y = load_breast_cancer(return_X_y=True)
    model = AdaBoostClassifier(Fickle(range(3, 99)), resample=True, max_restarts=restarts)
    model.fit(X, y)
    assert model.stop_reason_ == "no better than chance"
    assert model.n_iter_ == 3
    assert len(seeds) == 3 + 1 + restarts


def test_learners_that_take_no_weights_need_draws():
    X, y = noisy()
    with pytest.raises(ValueError, match=r"doesn't support sample_weight.*Use resample=True"):
        AdaBoostClassifier(KNeighborsClassifier()).fit(X, y)
    model = AdaBoostClassifier(KNeighborsClassifier(), n_estimators=5, resample=True).fit(X, y)
    assert model.n_iter_ == 5


@pytest.mark.filterwarnings("ignore:y has one class only")
def test_one_class():
    model = AdaBoostClassifier().fit(STEP, np.full(8, "only"))
    assert model.stop_reason_ == "one class"
    assert model.n_iter_ == len(model.estimator_weights_) == 0
    assert model.predict(STEP).tolist() == ["only"] * 8
    np.testing.assert_array_equal(model.predict_proba(STEP), np.ones((8, 1)))


@pytest.mark.parametrize("given", [True, False], ids=["data", "split"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_early_stopping(given, algorithm):
    X, y = noisy()
    model = AdaBoostClassifier(
        n_estimators=300, algorithm=algorithm, max_depth=3, n_iter_no_change=5
    )
    options = {"X_val": X[200:], "y_val": y[200:]} if given else {}
    model.fit(X[:200], y[:200], **options)
    curve = model.evals_result_["validation"]["error"]
    assert model.stop_reason_ == "n_iter_no_change"
    assert model.best_iteration_ == int(np.argmin(curve))
    assert model.n_iter_ == model.best_iteration_ + 1 == len(curve) - 5
    assert model.best_score_ == min(curve)
    assert all(len(values) == model.n_iter_ for values in round_stats(model).values())
    if given:
        close(np.mean(model.predict(X[200:]) != y[200:]), model.best_score_)


def test_max_time():
    X, y = noisy()

    def slow(done):
        time.sleep(0.05)

    model = AdaBoostClassifier(n_estimators=10_000, max_time=0.2).fit(X, y, callbacks=[slow])
    assert model.stop_reason_ == "max_time"
    assert 1 <= model.n_iter_ <= 5


# ---- warm starts ----

LEARNERS = [None, DecisionTreeClassifier(max_depth=2)]


@pytest.mark.parametrize("estimator", LEARNERS, ids=["engine", "scikit-learn"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_warm_start_is_one_long_fit(estimator, algorithm, n_classes):
    X, y = noisy(n_classes)
    params = {"estimator": estimator, "algorithm": algorithm}
    whole = AdaBoostClassifier(n_estimators=15, **params).fit(X, y)
    model = AdaBoostClassifier(n_estimators=4, warm_start=True, **params).fit(X, y)
    model.set_params(n_estimators=9).fit(X, y)
    model.set_params(n_estimators=15).fit(X, y)
    assert model.n_iter_ == 15
    same_round_stats(model, whole)
    close(model.decision_function(X), whole.decision_function(X))
    if estimator is None:
        np.testing.assert_array_equal(model.model_.forest.feature, whole.model_.forest.feature)
    before = model.model_
    assert model.fit(X, y).model_ is before
    with pytest.raises(ValueError, match=r"n_estimators=3 .*keeps the 15 learners"):
        model.set_params(n_estimators=3).fit(X, y)


def test_warm_start_with_the_bytes_of_one_long_fit():
    X, y = noisy(3)
    whole = AdaBoostClassifier(n_estimators=9, warm_start=True, resample=True).fit(X, y)
    model = AdaBoostClassifier(n_estimators=4, warm_start=True, resample=True).fit(X, y)
    model.set_params(n_estimators=9).fit(X, y)
    assert model_file.to_bytes(model.model_) == model_file.to_bytes(whole.model_)


@pytest.mark.parametrize("estimator", LEARNERS, ids=["engine", "scikit-learn"])
def test_init_model(estimator):
    X, y = noisy(3)
    whole = AdaBoostClassifier(estimator, n_estimators=10).fit(X, y)
    first = AdaBoostClassifier(estimator, n_estimators=6).fit(X, y)
    model = AdaBoostClassifier(estimator, n_estimators=4).fit(X, y, init_model=first)
    assert (model.n_iter_, first.n_iter_) == (10, 6)
    same_round_stats(model, whole)
    close(model.decision_function(X), whole.decision_function(X))


def test_init_model_must_fit():
    X, y = noisy()
    first = AdaBoostClassifier(n_estimators=3).fit(X, y)
    with pytest.raises(TypeError, match="only a fitted AdaBoostClassifier has"):
        AdaBoostClassifier().fit(X, y, init_model=GradientBoostingClassifier())
    with pytest.raises(ValueError, match=r"algorithm='real' .*trained with algorithm='discrete'"):
        AdaBoostClassifier(algorithm="real").fit(X, y, init_model=first)
    with pytest.raises(
        ValueError, match="the rows that the first learners have drawn are not kept"
    ):
        AdaBoostClassifier(resample=True, oob_score=True).fit(X, y, init_model=first)


# ---- weights ----


@pytest.mark.parametrize("estimator", LEARNERS, ids=["engine", "scikit-learn"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weights_are_repeated_rows(estimator, n_classes):
    X, y = noisy(n_classes, 200)
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    params = {"estimator": estimator, "n_estimators": 10}
    weighted = AdaBoostClassifier(**params).fit(X, y, sample_weight=weight)
    repeated = AdaBoostClassifier(**params).fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    same_round_stats(weighted, repeated)
    close(weighted.decision_function(X), repeated.decision_function(X), rtol=1e-8)


@pytest.mark.parametrize("estimator", LEARNERS, ids=["engine", "scikit-learn"])
def test_rows_of_weight_0_are_absent(estimator):
    X, y = noisy(2, 200)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    kept = weight > 0
    model = AdaBoostClassifier(estimator, n_estimators=8).fit(X, y, sample_weight=weight)
    alone = AdaBoostClassifier(estimator, n_estimators=8)
    alone.fit(X[kept], y[kept], sample_weight=weight[kept])
    np.testing.assert_equal(round_stats(model), round_stats(alone))
    np.testing.assert_array_equal(model.decision_function(X), alone.decision_function(X))


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_only_the_shares_of_weights_count(scale):
    X, y = noisy(3)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    model = AdaBoostClassifier(n_estimators=8).fit(X, y, sample_weight=weight)
    scaled = AdaBoostClassifier(n_estimators=8).fit(X, y, sample_weight=weight * scale)
    same_round_stats(model, scaled)


@pytest.mark.parametrize("estimator", LEARNERS, ids=["engine", "scikit-learn"])
@pytest.mark.parametrize("class_weight", [{"b": 5.0}, "balanced"], ids=str)
def test_class_weight(estimator, class_weight):
    X, codes = noisy(3)
    y = np.array(["a", "b", "c"])[codes]
    X, y = X[100:], y[100:]
    counts = {label: np.mean(y == label) for label in "abc"}
    factor = {label: 1 / (3 * counts[label]) for label in "abc"}
    factor = {"a": 1.0, "b": 5.0, "c": 1.0} if class_weight != "balanced" else factor
    model = AdaBoostClassifier(estimator, n_estimators=8, class_weight=class_weight).fit(X, y)
    by_row = AdaBoostClassifier(estimator, n_estimators=8)
    by_row.fit(X, y, sample_weight=[factor[label] for label in y])
    same_round_stats(model, by_row)
    close(model.decision_function(X), by_row.decision_function(X), rtol=1e-8)


@pytest.mark.parametrize("estimator", [None, DecisionTreeRegressor(max_depth=2)], ids=str)
@pytest.mark.parametrize("resample", [False, True])
def test_a_learner_that_is_perfect_but_for_rounding(estimator, resample):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(400, 1)).astype(float)
    y = np.array([3.0, 4, 0, 1])[X[:, 0].astype(int)]
    depth = {"max_depth": 2} if estimator is None else {}
    model = AdaBoostRegressor(estimator, resample=resample, **depth).fit(X, y)
    assert (model.stop_reason_, model.n_iter_) == ("perfect learner", 1)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-8)


def test_validation_without_early_stopping_only_measures():
    X, y = noisy_table(400, 3)
    model = AdaBoostClassifier(n_estimators=12, eval_metric=["error", "log_loss"])
    model.fit(X[:300], y[:300], X_val=X[300:], y_val=y[300:])
    curves = model.evals_result_["validation"]
    expected = [np.mean(p != y[300:]) for p in model.staged_predict(X[300:])]
    close(curves["error"], expected)
    row = np.arange(100)
    losses = [-np.log(p[row, y[300:]]).mean() for p in model.staged_predict_proba(X[300:])]
    close(curves["log_loss"], losses)
    assert (model.n_iter_, model.stop_reason_) == (12, "n_estimators")


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(max_depth=1)], ids=str)
def test_callbacks(estimator):
    X, y = noisy_table()
    seen = []

    def after_four(done):
        seen.append((done.index, done.results["validation"]["error"]))
        return done.index == 3

    model = AdaBoostClassifier(estimator).fit(X, y, X_val=X, y_val=y, callbacks=[after_four])
    assert model.stop_reason_ == "callback after_four"
    assert [index for index, _ in seen] == [0, 1, 2, 3]
    assert [error for _, error in seen] == model.evals_result_["validation"]["error"]
    close([error for _, error in seen], model.training_error_)
