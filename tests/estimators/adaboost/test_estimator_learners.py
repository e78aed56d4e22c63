"""Learners that are estimators: their training data, and votes from their predictions."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from arboost.backend import core
from arboost.estimators.adaboost.estimator_learners import check_learner
from support.member_cases import (
    ALGORITHMS,
    CLASSES,
    REGRESSION,
    Drawn,
    Wrong,
    class_votes,
    classes_data,
    learners_of,
    model_of,
    rows_of,
)

# ---- reference boosting ----


def unit_votes(p, n_rows, algorithm):
    """Return the votes of class probabilities (n, K): a second implementation."""
    k = p.shape[1]
    if algorithm == "discrete":
        votes = np.eye(k)[p.argmax(axis=1)] - 1 / k
        return votes * (2 if k == 2 else 1)  # scores of two classes are -F and F
    if algorithm == "gentle":
        return (k * p - 1) / (k - 1)
    logs = np.log((p * n_rows + 1 / k) / (n_rows + 1))
    return logs - logs.mean(axis=1, keepdims=True)


def boost_by_hand(X, y, n_classes, algorithm, n_rounds, depth):
    """Return scores (n, K), weights and errors of AdaBoost with scikit-learn's trees."""
    scores, weights, errors = np.zeros((len(y), n_classes)), [], []
    for number in range(n_rounds):
        margin = scores[np.arange(len(y)), y.astype(int)]
        weight = np.exp(-margin)
        weight *= len(y) / weight.sum()
        # Equal random states, because trees break ties at random.
        state = np.random.SeedSequence([0, number]).generate_state(1)[0] >> 1
        tree = DecisionTreeClassifier(max_depth=depth, random_state=state)
        tree.fit(X, y, sample_weight=weight)
        wrong = tree.predict(X) != y
        error = np.average(wrong, weights=weight)
        alpha = 1.0
        if algorithm == "discrete":
            odds = np.log((1 - error) / error)
            alpha = odds / 2 if n_classes == 2 else odds + np.log(n_classes - 1)
        scores += alpha * unit_votes(tree.predict_proba(X), len(y), algorithm)
        weights.append(alpha)
        errors.append(error)
    return scores, weights, errors


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_members_boost_as_by_hand(n_classes, algorithm):
    X, y = classes_data(n_classes)
    expected, expected_weights, expected_errors = boost_by_hand(X, y, n_classes, algorithm, 10, 2)
    member_votes = class_votes(n_classes, algorithm)
    learners = learners_of(DecisionTreeClassifier(max_depth=2), X, y, member_votes)
    n_outputs = 1 if n_classes == 2 else n_classes
    scores, weight = np.zeros((len(y), n_outputs)), np.empty(len(y))
    weights, errors = [], []
    for number in range(10):
        core.class_distribution(y, None, scores, weight, 1)
        learners.learn(weight, None, number)
        votes = learners.votes()
        errors.append(core.weighted_error(y, weight, votes, 1))
        weights.append(member_votes.scheme.weight(errors[-1]))
        learners.keep(weights[-1])
        scores += weights[-1] * votes
    np.testing.assert_allclose(errors, expected_errors, rtol=1e-10)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-10)
    model = model_of(learners, weights, member_votes, X, len(y))
    np.testing.assert_allclose(scores, expected[:, -n_outputs:], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.predict_raw(X), scores)
    np.testing.assert_array_equal(model.predict(X), CLASSES[n_classes][expected.argmax(axis=1)])
    np.testing.assert_array_equal(list(model.staged_raw(X))[-1], scores)


def test_kept_votes_are_those_of_the_sum():
    X, y = classes_data(3)
    member_votes = class_votes(3, "real")
    learners = learners_of(DecisionTreeClassifier(max_depth=2), X, y, member_votes)
    for number, factor in enumerate((0.5, 2.0)):
        learners.learn(np.ones(len(y)), None, number)
        learners.keep(factor)
    rows = np.array([3, 4, 100], np.uint32)
    total = learners.kept_votes(0, rows) + learners.kept_votes(1, rows)
    model = model_of(learners, [0.5, 2.0], member_votes, X, len(y))
    np.testing.assert_array_equal(total, model.predict_raw(X[rows]))


def test_evaluation_sets_have_votes_of_their_own():
    X, y = classes_data(2)
    member_votes = class_votes(2)
    parts = [rows_of(X, y).take(np.arange(i, i + 5, dtype=np.uint32)) for i in (0, 20)]
    learners = learners_of(
        DecisionTreeClassifier(max_depth=2), X, y, member_votes, evaluations=parts
    )
    learners.learn(np.ones(len(y)), None, 0)
    votes = learners.votes()
    learners.keep(1.0)
    np.testing.assert_array_equal(learners.votes(0), votes[:5])
    np.testing.assert_array_equal(learners.votes(1), votes[20:25])


def test_dropped_learners_are_forgotten():
    X, y = classes_data(2)
    learners = learners_of(DecisionTreeClassifier(max_depth=2), X, y, class_votes(2))
    for number in range(4):
        learners.learn(np.ones(len(y)), None, number)
        if number % 2:
            learners.keep(1.0)
        else:
            learners.drop()
    assert len(learners.fitted(2)) == 2
    states = [member.random_state for member in learners.fitted(2)]
    assert states != [learners.fitted(1)[0].random_state] * 2


# ---- training of learners ----


class Recorder(ClassifierMixin, BaseEstimator):
    """Classifier that records the arguments of fit and predicts the first class."""

    def fit(self, X, y, sample_weight=None):
        self.X_, self.y_, self.weight_ = X, y, sample_weight
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


def test_the_first_learner_sees_the_users_weights():
    X, y = classes_data(2, 30)
    weight = np.linspace(1.0, 9.0, 30)
    learners = learners_of(Recorder(), X, y, class_votes(2), weight=weight)
    learners.learn(weight / weight.mean(), None, 0)
    learners.keep(1.0)
    np.testing.assert_allclose(learners.fitted(1)[0].weight_, weight)


def test_weights_are_copied_and_labels_are_the_users():
    X, y = classes_data(2, 30)
    learners = learners_of(Recorder(), X, y, class_votes(2))
    weight = np.linspace(0.5, 1.5, 30)
    learners.learn(weight, None, 0)
    learners.keep(1.0)
    weight[:] = 0
    (member,) = learners.fitted(1)
    np.testing.assert_allclose(member.weight_, np.linspace(0.5, 1.5, 30))
    np.testing.assert_array_equal(member.y_, CLASSES[2][y.astype(int)])
    assert member.X_ is X


def test_drawn_rows_come_as_often_as_they_were_drawn():
    X, y = classes_data(2, 50)
    X[:, 0] = np.arange(50)
    learners = learners_of(Recorder(), X, y, class_votes(2))
    sample = Drawn(np.arange(50))
    learners.learn(None, sample, 0)
    learners.keep(1.0)
    (member,) = learners.fitted(1)
    counts = np.bincount(member.X_[:, 0].astype(int), minlength=50)
    expected = np.zeros(50)
    expected[sample.positions()] = sample.weights()
    np.testing.assert_array_equal(counts, expected)
    assert counts.sum() == 50
    assert counts.max() > 1
    assert member.weight_ is None
    np.testing.assert_array_equal(member.y_, CLASSES[2][y[member.X_[:, 0].astype(int)].astype(int)])


def test_random_states_depend_on_seed_and_number_alone():
    nested = make_pipeline(
        make_pipeline(SplineTransformer(), PCA(random_state=5)), DecisionTreeClassifier()
    )
    names = ["pipeline__pca__random_state", "decisiontreeclassifier__random_state"]
    X, y = classes_data(2, 50)

    def states(seed, number):
        learners = learners_of(nested, X, y, class_votes(2), seed=seed)
        learners.learn(None, Drawn(np.ones(50)), number)
        learners.keep(1.0)
        return [learners.fitted(1)[0].get_params()[name] for name in names]

    assert states(0, 0) == states(0, 0)
    seen = [state for seed in range(3) for number in range(3) for state in states(seed, number)]
    assert len(set(seen)) == 18
    assert all(0 <= state < 2**31 for state in seen)
    assert [nested.get_params()[name] for name in names] == [5, None]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_samples_that_lack_a_class(algorithm):
    X, y = classes_data(3)
    member_votes = class_votes(3, algorithm)
    learners = learners_of(DecisionTreeClassifier(max_depth=3), X, y, member_votes)
    learners.learn(None, Drawn(y != 1), 0)
    learners.keep(1.0)
    (member,) = learners.fitted(1)
    assert member.classes_.tolist() == ["a", "c"]
    votes = learners.votes()
    p = np.zeros((len(y), 3))
    p[:, [0, 2]] = member.predict_proba(X)
    np.testing.assert_allclose(votes, unit_votes(p, len(y), algorithm))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_samples_of_one_class_make_a_constant(algorithm):
    X, y = classes_data(2)
    learners = learners_of(LogisticRegression(), X, y, class_votes(2, algorithm))
    learners.learn(None, Drawn(y == 1), 0)
    assert (learners.votes() > 0).all()
    assert np.ptp(learners.votes()) == 0


def test_weights_reach_the_end_of_a_pipeline():
    X, y = classes_data(2)
    weight = np.where(y == 1, 1.9, 0.1)
    pipeline = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=1))
    check_learner(pipeline, class_votes(2), resample=False)
    learners = learners_of(pipeline, X, y, class_votes(2))
    learners.learn(weight, None, 0)
    alone = DecisionTreeClassifier(max_depth=1).fit(
        StandardScaler().fit_transform(X), y, sample_weight=weight
    )
    predicted = alone.predict(StandardScaler().fit_transform(X))
    np.testing.assert_array_equal(learners.votes()[:, 0] > 0, predicted == 1)


@pytest.mark.parametrize(
    "learner",
    [
        KNeighborsClassifier(),
        make_pipeline(StandardScaler(), KNeighborsClassifier()),
    ],
)
def test_learners_without_weights_are_refused_or_resampled(learner):
    with pytest.raises(ValueError, match=r"doesn't support sample_weight.*Use resample=True"):
        check_learner(learner, class_votes(2), resample=False)
    check_learner(learner, class_votes(2), resample=True)


def test_probabilities_are_asked_for_only_where_needed():
    learner = SVC()
    assert not hasattr(learner, "predict_proba")
    check_learner(learner, class_votes(2), resample=False)
    for algorithm in ("real", "gentle"):
        with pytest.raises(ValueError, match=f'algorithm="{algorithm}" needs class probabilities'):
            check_learner(learner, class_votes(2, algorithm), resample=False)


@pytest.mark.parametrize(
    ("algorithm", "predictions", "message"),
    [
        ("discrete", np.array(["no", "what", "yes"]), "the label .what., but y has "),
        ("discrete", np.array(["no"]), r"shape \(1,\) for 3 rows"),
        ("real", np.full((3, 2), np.nan), "not probabilities"),
        ("real", np.full((3, 2), 1.5), "not probabilities"),
        ("gentle", np.zeros((3, 2)), "not probabilities"),
        ("real", np.full((3, 3), 1 / 3), r"shape \(3, 3\) for 3 rows and 2 classes"),
        (None, np.array([0.0, np.inf, 1.0]), "predicts inf"),
        (None, np.array([[0.0, 1.0]] * 3), r"shape \(3, 2\) for 3 rows"),
    ],
)
def test_meaningless_predictions_are_refused(algorithm, predictions, message):
    member_votes = REGRESSION if algorithm is None else class_votes(2, algorithm)
    with pytest.raises(ValueError, match=message):
        member_votes.from_member(Wrong(predictions), np.zeros((3, 1)), 3.0)


# ---- regression ----


def test_regressors_predict_and_medians_are_weighted(rng):
    X = rng.normal(size=(60, 3))
    y = X[:, 0] + rng.normal(size=60)
    learners = learners_of(DecisionTreeRegressor(max_depth=2), X, y, REGRESSION)
    weights = [0.5, 1.5, 0.25, 0.9]
    for number in range(4):
        learners.learn(rng.uniform(0.5, 1.5, 60), None, number)
        predicted = learners.votes()
        assert predicted.shape == (60, 1)
        learners.keep(1.0)
        rows = np.array([1, 5], np.uint32)
        np.testing.assert_array_equal(learners.kept_votes(number, rows), predicted[rows])
    model = model_of(learners, weights, REGRESSION, X, 60)
    columns = np.stack([member.predict(X) for member in model.members], axis=1)
    np.testing.assert_array_equal(model.columns(X), columns)
    assert model.kind == "regressor"
    for rounds, raw in enumerate(model.staged_raw(X), 1):
        expected = [smallest_half(row[:rounds], weights[:rounds]) for row in columns]
        np.testing.assert_array_equal(raw[:, 0], expected)
    np.testing.assert_array_equal(model.predict(X), expected)
    np.testing.assert_array_equal(model.truncated(2).predict_raw(X), list(model.staged_raw(X))[1])


def smallest_half(values, weights):
    """Return the weighted median: the smallest value whose cumulative weight reaches one half."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(np.asarray(weights)[order])
    return values[order][np.argmax(reached >= reached[-1] / 2)]


def test_columns_of_predictions_are_taken_as_vectors():
    votes = REGRESSION.from_member(Wrong(np.array([[1], [2]])), np.zeros((2, 1)), 2.0)
    assert votes.tolist() == [[1.0], [2.0]]
