"""AdaBoost with scikit-learn estimators as learners: data, fitted attributes, early stopping."""

import pickle
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.ensemble
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import r2_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from arboost import AdaBoostClassifier, AdaBoostRegressor
from arboost.errors import SchemaError
from arboost.estimators.adaboost.estimator_learners import EstimatorModel
from support.member_cases import classes_data

STUMP = DecisionTreeClassifier(max_depth=1)
TREE = DecisionTreeClassifier(max_depth=2, min_samples_leaf=5)
ROUND_STATS = (
    "estimator_weights_",
    "estimator_errors_",
    "normalizers_",
    "exponential_loss_",
    "training_error_",
    "vote_range_",
    "edges_",
    "training_error_bound_",
)


def assert_same_fit(one, other, X):
    for name in ROUND_STATS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))


def numbers_data(n_rows=120):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_rows, 4))
    return X, X[:, 0] * 2 + np.sin(3 * X[:, 1]) + rng.normal(scale=0.2, size=n_rows)


@pytest.mark.filterwarnings("ignore:y has one class only")
@parametrize_with_checks(
    [
        AdaBoostClassifier(
            DecisionTreeClassifier(max_depth=3, min_weight_fraction_leaf=0.01), n_estimators=5
        ),
        AdaBoostClassifier(LogisticRegression(C=0.01), n_estimators=3),
        AdaBoostRegressor(DecisionTreeRegressor(max_depth=3), n_estimators=5),
        AdaBoostRegressor(Ridge(), n_estimators=5),
    ]
)
def test_scikit_learn_checks(estimator, check):
    # 15 rows of 30 features have many splits of equal gain, and weight sums are rounded differently
    # from those of repeated rows.
    if "sample_weight_equivalence" in check.func.__name__ and isinstance(
        estimator.estimator, DecisionTreeClassifier | DecisionTreeRegressor
    ):
        pytest.skip("splits of equal gain")
    if check.func.__name__ == "check_class_weight_classifiers":
        pytest.skip("it sets min_weight_fraction_leaf, which is refused with an estimator")
    check(estimator)


# ---- parity with scikit-learn ----


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris, load_wine])
@pytest.mark.parametrize("rate", [1.0, 0.5])
def test_same_as_scikit_learn(load, rate):
    X, y = load(return_X_y=True)
    # Noise breaks ties between splits, which depend on the random states of the trees.
    X = X + np.random.default_rng(0).normal(scale=1e-3, size=X.shape) * X.std(axis=0)
    ours = AdaBoostClassifier(STUMP, n_estimators=20, learning_rate=rate).fit(X, y)
    theirs = sklearn.ensemble.AdaBoostClassifier(
        STUMP, n_estimators=20, learning_rate=rate, random_state=0
    ).fit(X, y)
    factor = 2.0 if len(ours.classes_) == 2 else 1.0
    np.testing.assert_allclose(ours.estimator_errors_, theirs.estimator_errors_, rtol=1e-10)
    np.testing.assert_allclose(
        factor * ours.estimator_weights_, theirs.estimator_weights_, rtol=1e-10
    )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    for one, other in zip(ours.staged_predict(X), theirs.staged_predict(X), strict=True):
        np.testing.assert_array_equal(one, other)


def r2_by_hand(X, y, weight, n_rounds, seed):
    """Reference AdaBoost.R2: return tree weights, mean losses of the trees, and predictions."""
    d, weights, errors, columns = weight / weight.sum(), [], [], []
    for number in range(n_rounds):
        state = np.random.SeedSequence([seed, number]).generate_state(1)[0] >> 1
        tree = DecisionTreeRegressor(max_depth=3, random_state=state)
        columns.append(tree.fit(X, y, sample_weight=d * len(y)).predict(X))
        loss = np.abs(y - columns[-1])
        loss /= loss.max()
        errors.append(d @ loss)
        beta = errors[-1] / (1 - errors[-1])
        weights.append(np.log(1 / beta))
        d = d * beta ** (1 - loss)
        d /= d.sum()
    columns, weights = np.array(columns).T, np.array(weights)
    order = np.argsort(columns, axis=1, kind="stable")
    reached = np.cumsum(weights[order], axis=1)
    place = np.argmax(reached >= reached[:, -1:] / 2, axis=1)
    chosen = order[np.arange(len(y)), place]
    return weights, np.array(errors), columns[np.arange(len(y)), chosen]


def test_regressors_are_boosted_as_by_hand():
    X, y = numbers_data()
    weight = np.random.default_rng(2).uniform(0.5, 2, len(y))
    model = AdaBoostRegressor(DecisionTreeRegressor(max_depth=3), n_estimators=8, random_state=3)
    model.fit(X, y, weight)
    weights, errors, predicted = r2_by_hand(X, y, weight, 8, 3)
    np.testing.assert_allclose(model.estimator_weights_, weights, rtol=1e-9)
    np.testing.assert_allclose(model.estimator_errors_, errors, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), predicted, rtol=1e-12)
    assert isinstance(model.model_, EstimatorModel)
    assert [type(member) for member in model.estimators_] == [DecisionTreeRegressor] * 8
    np.testing.assert_allclose(model.feature_importances_.sum(), 1.0)


# ---- training data of the learners ----


def test_zero_weights_leave_rows_out():
    X, y = classes_data(3)
    weight = np.arange(len(y)) % 3.0
    fit = AdaBoostClassifier(TREE, n_estimators=6).fit(X, y, weight)
    kept = weight > 0
    assert_same_fit(
        fit, AdaBoostClassifier(TREE, n_estimators=6).fit(X[kept], y[kept], weight[kept]), X
    )


def test_class_weights_multiply_weights():
    X, y = classes_data(2)
    one = AdaBoostClassifier(TREE, n_estimators=6, class_weight={1: 3.0}).fit(X, y)
    other = AdaBoostClassifier(TREE, n_estimators=6).fit(X, y, np.where(y == 1, 3.0, 1.0))
    assert_same_fit(one, other, X)


@pytest.mark.parametrize("algorithm", ["discrete", "real", "gentle"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_learners_without_weights_learn_from_draws(n_classes, algorithm):
    X, y = classes_data(n_classes)
    learner = KNeighborsClassifier(15)
    with pytest.raises(ValueError, match="KNeighborsClassifier doesn't support sample_weight"):
        AdaBoostClassifier(learner, algorithm=algorithm).fit(X, y)
    model = AdaBoostClassifier(
        learner, n_estimators=10, algorithm=algorithm, resample=True, oob_score=True
    ).fit(X, y)
    assert model.n_iter_ == len(model.estimators_) > 1
    assert model.score(X, y) > 0.6
    assert 0.4 < model.oob_score_ <= 1.0
    n_outputs = 1 if n_classes == 2 else n_classes
    assert model.oob_decision_function_.reshape(len(y), -1).shape == (len(y), n_outputs)
    again = AdaBoostClassifier(
        learner, n_estimators=10, algorithm=algorithm, resample=True, n_jobs=1
    ).fit(X, y)
    assert_same_fit(model, again, X)


def test_out_of_bag_scores_of_numbers():
    X, y = numbers_data()
    weight = np.ones(len(y))
    weight[::10] = 0.0
    model = AdaBoostRegressor(
        KNeighborsRegressor(3), n_estimators=20, resample=True, oob_score=True
    ).fit(X, y, weight)
    heard = ~np.isnan(model.oob_prediction_)
    assert not heard[::10].any()
    assert heard.sum() > 80
    assert model.oob_score_ == pytest.approx(r2_score(y[heard], model.oob_prediction_[heard]))
    assert 0.5 < model.oob_score_ < model.score(X, y)


def test_small_classes_may_be_missing_in_a_draw():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(3.0, size=(2, 2))])
    y = np.array(["many"] * 40 + ["few"] * 2)
    model = AdaBoostClassifier(LogisticRegression(), n_estimators=8, resample=True)
    model.fit(X, y, np.where(y == "few", 0.01, 1.0))
    kinds = {type(member) for member in model.estimators_}
    assert DummyClassifier in kinds
    assert LogisticRegression in kinds
    assert (model.predict(X) == y).mean() > 0.95


def test_frames_reach_the_learners():
    X, y = classes_data(2)
    frame = pd.DataFrame(X[:, :2], columns=["x", "z"])
    frame["colour"] = np.where(X[:, 2] > 0, "red", "blue")
    columns = make_column_transformer((OneHotEncoder(), ["colour"]), (StandardScaler(), ["x", "z"]))
    learner = make_pipeline(columns, DecisionTreeClassifier(max_depth=2))
    model = AdaBoostClassifier(learner, n_estimators=5, n_iter_no_change=5).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["x", "z", "colour"]
    assert model.score(frame, y) > 0.7
    turned = frame[["colour", "z", "x"]]
    np.testing.assert_array_equal(model.predict_proba(turned), model.predict_proba(frame))
    with pytest.raises(SchemaError, match="Feature names seen at fit time, yet now missing"):
        model.predict(frame[["x"]])
    with pytest.raises(SchemaError, match=r"^X_val: X has 2 features, but Model is expecting 3"):
        model.fit(frame, y, X_val=frame[["x", "z"]].to_numpy(), y_val=y)


@pytest.mark.parametrize("fmt", ["csc", "coo", "lil"])
def test_sparse_tables_reach_the_learners(fmt):
    X, y = classes_data(3)
    X[np.abs(X) < 1] = 0
    sparse = scipy.sparse.csr_array(X).asformat(fmt)
    one = AdaBoostClassifier(TREE, n_estimators=4, resample=True).fit(sparse, y)
    assert_same_fit(one, AdaBoostClassifier(TREE, n_estimators=4, resample=True).fit(X, y), X)


def test_tables_of_three_dimensions():
    X, y = classes_data(2)
    cube = X.reshape(len(y), 3, 2)
    flatten = FlatTree(max_depth=2)
    model = AdaBoostClassifier(flatten, n_estimators=4).fit(cube, y)
    flat = AdaBoostClassifier(DecisionTreeClassifier(max_depth=2), n_estimators=4).fit(X, y)
    np.testing.assert_array_equal(model.decision_function(cube), flat.decision_function(X))
    assert model.n_features_in_ == 3


class FlatTree(DecisionTreeClassifier):
    """Tree that flattens tables of any number of dimensions."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X.reshape(len(X), -1), y, sample_weight)

    def predict(self, X):
        return super().predict(X.reshape(len(X), -1))


# ---- validation, warm starts and ends of training ----


def test_validation_rows_are_watched():
    X, y = classes_data(2, 400)
    labels = np.where(y == 1, "yes", "no")
    model = AdaBoostClassifier(TREE, n_estimators=60, n_iter_no_change=5)
    model.fit(X[:300], labels[:300], X_val=X[300:], y_val=labels[300:])
    curve = model.evals_result_["validation"]["error"]
    assert model.best_score_ == min(curve) == pytest.approx(1 - model.score(X[300:], labels[300:]))
    assert model.n_iter_ == model.best_iteration_ + 1 == np.argmin(curve) + 1
    staged = [np.mean(one != labels[300:]) for one in model.staged_predict(X[300:])]
    np.testing.assert_allclose(curve[: model.n_iter_], staged)
    assert len(model.estimators_) == len(model.estimator_weights_) == model.n_iter_
    own_rows = AdaBoostClassifier(TREE, n_estimators=60, n_iter_no_change=3).fit(X, labels)
    assert own_rows.stop_reason_ == "n_iter_no_change"
    with pytest.raises(ValueError, match="y_val holds labels that y does not have: 'maybe'"):
        model.fit(X, labels, X_val=X[:1], y_val=["maybe"])
    with pytest.raises(ValueError, match="X_val came without y_val"):
        model.fit(X, labels, X_val=X)


def test_numbers_are_watched_at_their_medians():
    X, y = numbers_data()
    model = AdaBoostRegressor(LinearRegression(), n_estimators=6, eval_metric="mae")
    model.fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:])
    curve = [np.abs(one - y[80:]).mean() for one in model.staged_predict(X[80:])]
    np.testing.assert_allclose(model.evals_result_["validation"]["mae"], curve)


@pytest.mark.parametrize("resample", [False, True])
def test_training_goes_on(resample):
    X, y = classes_data(3)

    def fresh(rounds, **changes):
        return AdaBoostClassifier(TREE, n_estimators=rounds, resample=resample, **changes)

    whole = fresh(8).fit(X, y)
    first = fresh(5).fit(X, y)
    assert_same_fit(fresh(3).fit(X, y, init_model=first), whole, X)
    assert first.n_iter_ == 5
    warm = fresh(5, warm_start=True).fit(X, y)
    assert_same_fit(warm.set_params(n_estimators=8).fit(X, y), whole, X)
    with pytest.raises(ValueError, match="of the engine, but this fit has an estimator"):
        fresh(3).fit(X, y, init_model=AdaBoostClassifier(n_estimators=2).fit(X, y))
    with pytest.raises(ValueError, match="algorithm='real' is not allowed"):
        fresh(3, algorithm="real").fit(X, y, init_model=first)


def test_training_of_medians_goes_on():
    X, y = numbers_data()
    tree = DecisionTreeRegressor(max_depth=2)
    whole = AdaBoostRegressor(tree, n_estimators=6).fit(X, y, X_val=X[:9], y_val=y[:9])
    first = AdaBoostRegressor(tree, n_estimators=4).fit(X, y)
    more = AdaBoostRegressor(tree, n_estimators=2)
    more.fit(X, y, init_model=first, X_val=X[:9], y_val=y[:9])
    np.testing.assert_array_equal(more.estimator_weights_, whole.estimator_weights_)
    np.testing.assert_array_equal(more.predict(X), whole.predict(X))
    curves = [one.evals_result_["validation"]["squared_error"] for one in (more, whole)]
    assert curves[0] == curves[1][4:]
    assert more.best_iteration_ == 4 + np.argmin(curves[0])


def test_perfect_and_useless_learners_end_a_fit():
    X, y = classes_data(2)
    perfect = AdaBoostClassifier(DecisionTreeClassifier(), n_estimators=9).fit(X, y)
    assert (perfect.n_iter_, perfect.stop_reason_) == (1, "perfect learner")
    assert np.isfinite(perfect.estimator_weights_).all()
    rarer = np.bincount(y.astype(int)).argmin()
    with pytest.raises(ValueError, match="worse than random"):
        AdaBoostClassifier(DummyClassifier(strategy="constant", constant=rarer)).fit(X, y)


def test_callbacks_stop_a_fit():
    X, y = classes_data(2)
    seen = []
    model = AdaBoostClassifier(TREE, n_estimators=9)
    model.fit(X, y, callbacks=[lambda done: seen.append(done.index) or done.index == 2])
    assert (seen, model.n_iter_, model.stop_reason_) == ([0, 1, 2], 3, "callback <lambda>")
    with pytest.raises(TypeError, match="callbacks hold 3"):
        model.fit(X, y, callbacks=[3])


@pytest.mark.filterwarnings("ignore:y has one class only")
def test_one_class_needs_no_learner():
    model = AdaBoostClassifier(SVC()).fit([[0.0], [1.0]], ["a", "a"])
    assert model.predict([[5.0]]).tolist() == ["a"]
    assert model.predict_proba([[5.0]]).tolist() == [[1.0]]
    assert (model.n_iter_, model.stop_reason_, model.estimators_) == (0, "one class", [])


def test_probabilities_are_needed_for_some_algorithms():
    X, y = classes_data(2)
    with pytest.raises(ValueError, match='algorithm="real" needs class probabilities, but SVC'):
        AdaBoostClassifier(SVC(), algorithm="real").fit(X, y)
    assert AdaBoostClassifier(SVC(), n_estimators=2).fit(X, y).score(X, y) > 0.8


def test_fits_are_saved_by_pickle_and_not_by_files(tmp_path):
    X, y = classes_data(2)
    model = AdaBoostClassifier(TREE, n_estimators=3).fit(X, y)
    assert_same_fit(pickle.loads(pickle.dumps(model)), model, X)
    with pytest.raises(TypeError, match="joblib"):
        model.save(tmp_path / "model.arb")
    with pytest.raises(TypeError, match="a checkpoint holds trees of the engine"):
        model.fit(X, y, checkpoint=tmp_path / "fit.arb")


@pytest.mark.parametrize("y", [np.arange(3) % 2, np.zeros(3), "unread"])
def test_a_checkpoint_is_refused_before_anything_is_read(y):
    with pytest.raises(TypeError, match="a checkpoint holds trees of the engine"):
        AdaBoostClassifier(TREE).fit(np.empty((3, 0)), y, checkpoint="fit.arb")


def test_max_time_includes_the_reading_of_tables():
    X, y = classes_data(2)

    class SlowTable:
        reads = 0

        def __array__(self, dtype=None, copy=None):
            time.sleep(0 if self.reads else 0.5)
            self.reads += 1
            return X

    model = AdaBoostClassifier(TREE, n_estimators=3, max_time=0.5).fit(SlowTable(), y)
    assert model.stop_reason_ == "max_time"


def test_a_failed_fit_changes_nothing():
    X, y = classes_data(2)
    model = AdaBoostClassifier(TREE, n_estimators=3).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="y has 3 values"):
        model.fit(X, y[:3])
    np.testing.assert_array_equal(model.decision_function(X), before)
