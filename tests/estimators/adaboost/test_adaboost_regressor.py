"""AdaBoostRegressor: AdaBoost.R2 against a reference, ends of training, warm starts, out-of-bag."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from arboost import AdaBoostClassifier, AdaBoostRegressor, load
from arboost.backend import core
from arboost.models.files import model_file
from support.boosted import close

LOSSES = ["linear", "square", "exponential"]
TREE = DecisionTreeRegressor(max_depth=2)
LEARNERS = {"engine": None, "scikit-learn": TREE}


def table(n_rows=300):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 40, size=(n_rows, 5)).astype(float)
    return X, np.sin(X[:, 0] / 6) + X[:, 1] / 40 + rng.normal(scale=0.3, size=n_rows)


def fit(learner="engine", **params):
    X, y = table()
    return AdaBoostRegressor(LEARNERS[learner], **{"n_estimators": 8} | params).fit(X, y), X, y


def losses(y, predicted, kind):
    missed = np.abs(y - predicted)
    share = missed / missed.max()
    return {"linear": share, "square": share**2, "exponential": 1 - np.exp(-share)}[kind]


def r2(model, X, y, weight=None):
    """Return errors and distributions D of AdaBoost.R2, from the predictions of the learners.

    D is given before each round and after the last.

    epsilon = sum of D L, beta = epsilon / (1 - epsilon), D <- D beta^(rate (1 - L)) / Z.
    """
    distribution = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    distributions = [distribution / distribution.sum()]
    errors = []
    for learner in model.estimators_:
        lost = losses(y, learner.predict(X), model.loss)
        errors.append(distributions[-1] @ lost)
        beta = errors[-1] / (1 - errors[-1])
        grown = distributions[-1] * beta ** (model.learning_rate * (1 - lost))
        distributions.append(grown / grown.sum())
    return np.array(errors), distributions


def median(values, weights):
    """Return the weighted medians: the smallest values whose cumulative weight reaches one half."""
    order = np.argsort(values, axis=1, kind="stable")
    reached = np.cumsum(weights[order], axis=1)
    place = (reached >= reached[:, -1:] / 2).argmax(axis=1)
    row = np.arange(len(values))
    return values[row, order[row, place]]


# ---- the algorithm ----


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize(("rate", "weighted"), [(1.0, False), (0.5, True)])
@pytest.mark.parametrize("resample", [False, True], ids=["weights", "draws"])
def test_rounds_by_hand(loss, learner, rate, weighted, resample):
    X, y = table()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    model = AdaBoostRegressor(
        LEARNERS[learner], n_estimators=8, loss=loss, learning_rate=rate, resample=resample
    ).fit(X, y, sample_weight=weight)
    assert model.n_iter_ == 8
    errors, _ = r2(model, X, y, weight)
    assert (errors < 0.5).all()
    close(model.estimator_errors_, errors)
    close(model.estimator_weights_, rate * np.log((1 - errors) / errors))
    values = np.stack([learner.predict(X) for learner in model.estimators_], axis=1)
    np.testing.assert_array_equal(model.predict(X), median(values, model.estimator_weights_))
    for rounds, stage in enumerate(model.staged_predict(X), start=1):
        weights = model.estimator_weights_[:rounds]
        np.testing.assert_array_equal(stage, median(values[:, :rounds], weights))


class Recorder(DecisionTreeRegressor):
    """Tree that records its sample weights."""

    def fit(self, X, y, sample_weight=None):
        self.weight_ = sample_weight
        return super().fit(X, y, sample_weight=sample_weight)


def test_learners_get_the_distribution():
    X, y = table()
    model = AdaBoostRegressor(Recorder(max_depth=2), n_estimators=8).fit(X, y)
    _, distributions = r2(model, X, y)
    for tree, distribution in zip(model.estimators_, distributions, strict=False):
        close(tree.weight_, distribution * len(y))


def test_trees_of_the_engine_get_the_distribution():
    X, y = table()
    model = AdaBoostRegressor(n_estimators=6, max_depth=2).fit(X, y)
    _, distributions = r2(model, X, y)
    for tree, distribution in zip(model.estimators_, distributions, strict=False):
        alone = AdaBoostRegressor(n_estimators=1, max_depth=2)
        alone.fit(X, y, sample_weight=distribution)
        np.testing.assert_array_equal(tree.forest.feature, alone.model_.forest.feature)
        np.testing.assert_allclose(tree.predict(X), alone.predict(X), rtol=1e-6, atol=1e-7)


def test_the_exponential_loss_has_its_sign():
    """1 - exp(-d) grows with the error; some lecture notes have 1 - exp(d), which is negative."""
    model, X, y = fit(loss="exponential", n_estimators=1)
    missed = np.abs(y - model.predict(X))
    share = missed / missed.max()
    close(model.estimator_errors_, [np.mean(1 - np.exp(-share))])


@settings(max_examples=200)
@given(
    st.integers(0, 2**32 - 1).map(np.random.default_rng),
    st.sampled_from(LOSSES),
    st.sampled_from([0.3, 1.0]),
    st.booleans(),
)
def test_rounds_of_any_table(rng, loss, rate, resample):
    n_rows = int(rng.integers(2, 30))
    X = rng.integers(0, 4, size=(n_rows, 2)).astype(float)
    y = rng.normal(size=n_rows) * 10.0 ** rng.integers(-3, 4) + 10.0 ** rng.integers(-3, 4)
    model = AdaBoostRegressor(
        n_estimators=5, loss=loss, learning_rate=rate, resample=resample, max_depth=2
    ).fit(X, y)
    predicted = model.predict(X)
    assert np.isfinite(predicted).all()
    assert (predicted >= y.min() - 1e-6 * np.ptp(y)).all()
    assert (predicted <= y.max() + 1e-6 * np.ptp(y)).all()
    assert (model.estimator_weights_ > 0).all()
    errors = model.estimator_errors_
    is_alone = model.n_iter_ == 1 and errors[0] >= 0.5 - 1e-9
    assert is_alone or (errors < 0.5).all()
    assert (errors[:-1] > 0).all()
    if (errors > 1e-9).all() and not is_alone:
        np.testing.assert_allclose(errors, r2(model, X, y)[0], rtol=1e-6)


# ---- ends of training ----

STEP = np.arange(8.0).reshape(-1, 1)


@pytest.mark.parametrize("estimator", [None, DecisionTreeRegressor()], ids=str)
def test_a_perfect_learner(estimator):
    y = np.where(STEP[:, 0] > 3, 5.0, 1.0)
    model = AdaBoostRegressor(estimator).fit(STEP, y)
    assert (model.stop_reason_, model.n_iter_) == ("perfect learner", 1)
    assert model.estimator_errors_.tolist() == [0.0]
    close(model.estimator_weights_, [np.log(1e10)])
    np.testing.assert_array_equal(model.predict(STEP), y)


class Constant(RegressorMixin, BaseEstimator):
    """Regressor that predicts 0; fit takes no weights."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


def test_the_very_first_learner_stays_however_bad():
    """Equal errors on all rows: the mean loss is 1."""
    y = np.where(STEP[:, 0] > 3, 1.0, -1.0)
    model = AdaBoostRegressor(Constant(), resample=True).fit(STEP, y)
    assert (model.stop_reason_, model.n_iter_) == ("no better than chance", 1)
    assert model.estimator_errors_.tolist() == model.estimator_weights_.tolist() == [1.0]
    assert model.predict(STEP).tolist() == [0.0] * 8


class Worsening(RegressorMixin, BaseEstimator):
    """Unweighted tree; after `good` fits, a constant far from all targets."""

    fits = 0

    def __init__(self, good=3, random_state=None):
        self.good = good
        self.random_state = random_state

    def fit(self, X, y):
        type(self).fits += 1
        self.is_good_ = type(self).fits <= self.good
        self.tree_ = DecisionTreeRegressor(max_depth=2).fit(X, y)
        return self

    def predict(self, X):
        return self.tree_.predict(X) if self.is_good_ else np.full(len(X), 1e6)


@pytest.mark.parametrize("restarts", [0, 5])
def test_no_better_than_chance(restarts):
    Worsening.fits = 0
    X, y = table()
    model = AdaBoostRegressor(Worsening(), resample=True, max_restarts=restarts).fit(X, y)
    assert (model.stop_reason_, model.n_iter_) == ("no better than chance", 3)
    assert Worsening.fits == 3 + 1 + restarts


def test_learners_that_take_no_weights_need_draws():
    X, y = table()
    with pytest.raises(ValueError, match=r"doesn't support sample_weight.*Use resample=True"):
        AdaBoostRegressor(KNeighborsRegressor()).fit(X, y)
    model = AdaBoostRegressor(KNeighborsRegressor(), n_estimators=5, resample=True).fit(X, y)
    assert model.n_iter_ == 5


def test_a_constant_target():
    model = AdaBoostRegressor().fit(STEP, np.full(8, 7.5))
    assert model.predict(STEP).tolist() == [7.5] * 8


@pytest.mark.parametrize("given", [True, False], ids=["data", "split"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_early_stopping(given, learner):
    X, y = table()
    model = AdaBoostRegressor(LEARNERS[learner], n_estimators=300, n_iter_no_change=3)
    options = {"X_val": X[200:], "y_val": y[200:]} if given else {}
    model.fit(X[:200], y[:200], **options)
    curve = model.evals_result_["validation"]["squared_error"]
    assert model.stop_reason_ == "n_iter_no_change"
    assert model.best_iteration_ == int(np.argmin(curve))
    assert model.n_iter_ == model.best_iteration_ + 1 == len(curve) - 3
    assert len(model.estimator_weights_) == len(model.estimators_) == model.n_iter_
    if given:
        missed = [np.mean((p - y[200:]) ** 2) for p in model.staged_predict(X[200:])]
        close(curve[: model.n_iter_], missed)


# ---- warm starts ----


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_is_one_long_fit(learner, loss):
    whole, X, y = fit(learner, loss=loss, n_estimators=12)
    model = AdaBoostRegressor(LEARNERS[learner], loss=loss, n_estimators=5, warm_start=True)
    model.fit(X, y)
    model.set_params(n_estimators=12).fit(X, y)
    assert model.n_iter_ == whole.n_iter_ == 12
    close(model.estimator_errors_, whole.estimator_errors_)
    close(model.estimator_weights_, whole.estimator_weights_)
    close(model.predict(X), whole.predict(X))
    if learner == "engine":
        by_one = AdaBoostRegressor(loss=loss, n_estimators=12, warm_start=True).fit(X, y)
        assert model_file.to_bytes(model.model_) == model_file.to_bytes(by_one.model_)


@pytest.mark.parametrize("learner", LEARNERS)
def test_init_model(learner):
    whole, X, y = fit(learner, n_estimators=10)
    first, _, _ = fit(learner, n_estimators=6)
    model = AdaBoostRegressor(LEARNERS[learner], n_estimators=4).fit(X, y, init_model=first)
    assert (model.n_iter_, first.n_iter_) == (10, 6)
    close(model.estimator_weights_, whole.estimator_weights_)
    close(model.predict(X), whole.predict(X))
    with pytest.raises(TypeError, match="only a fitted AdaBoostRegressor has"):
        AdaBoostRegressor().fit(X, y, init_model=AdaBoostClassifier())
    with pytest.raises(ValueError, match=r"loss='square' .*trained with loss='linear'"):
        AdaBoostRegressor(LEARNERS[learner], loss="square").fit(X, y, init_model=first)


# ---- weights ----


@pytest.mark.parametrize("learner", LEARNERS)
def test_weights_are_repeated_rows(learner):
    X, y = table()
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    model = AdaBoostRegressor(LEARNERS[learner], n_estimators=6).fit(X, y, sample_weight=weight)
    many = AdaBoostRegressor(LEARNERS[learner], n_estimators=6)
    many.fit(np.repeat(X, weight, 0), np.repeat(y, weight))
    np.testing.assert_allclose(model.estimator_errors_, many.estimator_errors_, rtol=1e-6)
    np.testing.assert_allclose(model.predict(X), many.predict(X), rtol=1e-6, atol=1e-7)


# ---- out of bag ----


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_out_of_bag_by_brute_force(learner, weighted):
    """Reference: the bootstrap samples are drawn again from the distributions of the rounds."""
    X, y = table()
    weight = np.random.default_rng(2).integers(1, 4, len(y)).astype(float) if weighted else None
    model = AdaBoostRegressor(
        LEARNERS[learner], n_estimators=6, resample=True, oob_score=True, max_restarts=1
    ).fit(X, y, sample_weight=weight)
    _, distributions = r2(model, X, y, weight)
    values = np.stack([learner.predict(X) for learner in model.estimators_], axis=1)
    for t in range(model.n_iter_):
        sample = core.Sample()
        sample.draw_by_weight(distributions[t], 0, 2 * t, 1)  # no restart was needed
        values[sample.positions(), t] = np.nan
    expected = np.full(len(y), np.nan)
    for i, row in enumerate(values):
        heard = ~np.isnan(row)
        if heard.any():
            expected[i] = median(row[None, heard], model.estimator_weights_[heard])[0]
    close(model.oob_prediction_, expected)
    heard = ~np.isnan(expected)
    assert 0.8 < heard.mean() < 1
    weight = None if weight is None else weight[heard]
    close(model.oob_score_, r2_score(y[heard], expected[heard], sample_weight=weight))


def test_out_of_bag_needs_draws():
    X, y = table()
    with pytest.raises(ValueError, match="oob_score=True is not allowed with resample=False"):
        AdaBoostRegressor(oob_score=True).fit(X, y)


# ---- the weighted mean ----


@pytest.mark.parametrize("learner", LEARNERS)
def test_mean_of_the_learners_by_their_weights(learner):
    model, X, _ = fit(learner, aggregation="mean", n_estimators=12)
    of_medians, _, _ = fit(learner, n_estimators=12)
    columns = np.array([one.predict(X) for one in model.estimators_])
    expected = np.array([one.predict(X) for one in of_medians.estimators_])
    np.testing.assert_array_equal(columns, expected)  # the same learners
    weights = model.estimator_weights_
    for rounds, staged in enumerate(model.staged_predict(X), 1):
        total = weights[:rounds].sum()
        np.testing.assert_allclose(staged, weights[:rounds] @ columns[:rounds] / total, rtol=1e-12)
    np.testing.assert_array_equal(staged, model.predict(X))


def test_means_are_truncated_saved_and_explained(tmp_path):
    model, X, _ = fit(aggregation="mean", n_estimators=12)
    for rounds, staged in enumerate(model.staged_predict(X), 1):
        np.testing.assert_allclose(model.model_.truncated(rounds).predict(X), staged, rtol=1e-12)
    for name in ("model.arb", "model.json"):
        model.save(tmp_path / name)
        np.testing.assert_array_equal(load(tmp_path / name).predict(X), model.predict(X))
    np.testing.assert_array_equal(
        [model.model_.predict(row[None])[0] for row in X], model.predict(X)
    )
    shares = model.shap_values(X).sum(axis=1) + model.expected_value()
    np.testing.assert_allclose(shares, model.predict(X), rtol=1e-10)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("params", [{}, {"resample": True}], ids=["weights", "draws"])
def test_continued_means_are_those_of_one_fit(learner, params):
    model, X, y = fit(learner, aggregation="mean", n_estimators=12, **params)
    part, _, _ = fit(learner, aggregation="mean", n_estimators=5, warm_start=True, **params)
    part.set_params(n_estimators=12).fit(X, y)
    np.testing.assert_array_equal(part.predict(X), model.predict(X))
    other = part.set_params(n_estimators=14, aggregation="median").fit(X, y)
    plain, _, _ = fit(learner, n_estimators=14, **params)
    np.testing.assert_array_equal(other.predict(X), plain.predict(X))


def test_validation_scores_and_out_of_bag_predictions_of_means():
    X, y = table()
    model = AdaBoostRegressor(
        n_estimators=20, aggregation="mean", resample=True, oob_score=True, eval_metric="rmse"
    ).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    history = model.evals_result_["validation"]["rmse"]
    for rmse, staged in zip(history, model.staged_predict(X[200:]), strict=True):
        assert rmse == pytest.approx(np.sqrt(np.mean((staged - y[200:]) ** 2)), rel=1e-9)
    out = ~np.isnan(model.oob_prediction_)
    assert model.oob_score_ == pytest.approx(r2_score(y[:200][out], model.oob_prediction_[out]))
