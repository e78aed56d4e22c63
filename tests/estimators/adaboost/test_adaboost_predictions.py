"""AdaBoostClassifier: predictions, margins, out-of-bag scores, importances, kinds of tables."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.metrics import accuracy_score
from sklearn.naive_bayes import ComplementNB, GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import arboost
from arboost import AdaBoostClassifier, Dataset
from arboost.backend import core
from arboost.models.files import model_file
from support.boosted import close, noisy_table, recomputed, unit_votes

ALGORITHMS = ["discrete", "real", "gentle"]
TREE = DecisionTreeClassifier(max_depth=2)
LEARNERS = {"engine": None, "scikit-learn": TREE}


def fit(n_classes=2, **params):
    X, y = noisy_table(n_classes=n_classes)
    return AdaBoostClassifier(**{"n_estimators": 8} | params).fit(X, y), X, y


every_kind = [
    pytest.mark.parametrize("learner", LEARNERS),
    pytest.mark.parametrize("n_classes", [2, 3]),
    pytest.mark.parametrize("algorithm", ALGORITHMS),
]


def each(test):
    for mark in every_kind:
        test = mark(test)
    return test


@each
def test_stages_are_shorter_fits(learner, n_classes, algorithm):
    params = {"estimator": LEARNERS[learner], "algorithm": algorithm}
    model, X, y = fit(n_classes, **params)
    stages = [
        list(stages)
        for stages in (
            model.staged_decision_function(X),
            model.staged_predict_proba(X),
            model.staged_predict(X),
            model.staged_score(X, y),
        )
    ]
    assert [len(stage) for stage in stages] == [model.n_iter_] * 4
    for rounds in (1, 3, model.n_iter_):
        short, _, _ = fit(n_classes, n_estimators=rounds, **params)
        np.testing.assert_array_equal(stages[0][rounds - 1], short.decision_function(X))
        np.testing.assert_array_equal(stages[1][rounds - 1], short.predict_proba(X))
        np.testing.assert_array_equal(stages[2][rounds - 1], short.predict(X))
        assert stages[3][rounds - 1] == short.score(X, y)


@each
def test_scores_are_weighted_votes(learner, n_classes, algorithm):
    """F is the sum of alpha_t h_t; its sign or largest column gives the class."""
    model, X, _ = fit(n_classes, estimator=LEARNERS[learner], algorithm=algorithm)
    scores = model.decision_function(X)
    if learner == "engine" or algorithm == "discrete":
        votes = unit_votes(model, X)
        summed = sum(a * v for a, v in zip(model.estimator_weights_, votes, strict=True))
        close(scores, summed[:, 0] if n_classes == 2 else summed)
    else:
        p = [member.predict_proba(X) for member in model.estimators_]
        close(scores, sum(votes_of_probabilities(one, algorithm, len(X)) for one in p))
    if n_classes == 2:
        chosen, p = scores > 0, 1 / (1 + np.exp(-2 * scores))
        close(model.predict_proba(X), np.stack([1 - p, p], axis=1))
    else:
        np.testing.assert_allclose(scores.sum(axis=1), 0, atol=1e-12)
        chosen, p = scores.argmax(axis=1), np.exp(scores)
        close(model.predict_proba(X), p / p.sum(axis=1, keepdims=True))
    np.testing.assert_array_equal(model.predict(X), chosen)
    np.testing.assert_array_equal(model.predict_proba(X).argmax(axis=1), chosen)


def votes_of_probabilities(p, algorithm, n_rows):
    k = p.shape[1]
    if algorithm == "gentle":
        votes = (k * p - 1) / (k - 1)
    else:
        smooth = np.log((p * n_rows + 1 / k) / (n_rows + 1))
        votes = smooth - smooth.mean(axis=1, keepdims=True)
    return votes[:, 1] if k == 2 else votes


def test_predicted_probabilities_are_odds_of_the_loss():
    """On repeated rows, gentle boosting of full trees converges to the class shares."""
    X = np.repeat(np.arange(4.0), 100).reshape(-1, 1)
    share = np.array([0.1, 0.4, 0.65, 0.9])
    y = (np.tile(np.arange(100), 4) < np.repeat(100 * share, 100)).astype(int)
    model = AdaBoostClassifier(algorithm="gentle", max_depth=None, n_estimators=200).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X[::100])[:, 1], share, atol=1e-3)


# ---- margins ----


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_margins_by_hand(learner, n_classes):
    """Margin: votes for the true class minus the most votes for another, divided by all votes."""
    model, X, y = fit(n_classes, estimator=LEARNERS[learner])
    alpha = model.estimator_weights_
    votes = np.zeros((len(y), n_classes))
    for weight, unit in zip(alpha, unit_votes(model, X), strict=True):
        chosen = unit[:, 0] > 0 if n_classes == 2 else unit.argmax(axis=1)
        votes[np.arange(len(y)), chosen.astype(int)] += weight
    right = votes[np.arange(len(y)), y].copy()
    votes[np.arange(len(y)), y] = -np.inf
    margins = model.margins(X, y)
    np.testing.assert_allclose(margins, (right - votes.max(axis=1)) / alpha.sum(), atol=1e-12)
    close(model.vote_range_, alpha)
    undecided = np.abs(margins) < 1e-12
    np.testing.assert_array_equal((margins > 0)[~undecided], (model.predict(X) == y)[~undecided])


@each
def test_margins_are_between_minus_1_and_1(learner, n_classes, algorithm):
    model, X, y = fit(n_classes, estimator=LEARNERS[learner], algorithm=algorithm)
    margins = model.margins(X, y)
    assert margins.shape == (len(y),)
    assert -1 <= margins.min() < 0 < margins.max() <= 1
    assert len(model.vote_range_) == model.n_iter_
    with pytest.raises(ValueError, match="y holds labels that fit does not have: 77"):
        model.margins(X, np.full(len(y), 77))


def test_margins_grow_after_the_training_error_is_gone():
    """Margins still grow at zero training error (Schapire et al. 1998)."""
    X, y = load_breast_cancer(return_X_y=True)
    few, many = (AdaBoostClassifier(n_estimators=n).fit(X, y) for n in (60, 600))
    assert few.training_error_[-1] == many.training_error_[-1] == 0
    assert many.margins(X, y).min() > 1.5 * few.margins(X, y).min() > 0


# ---- out of bag ----


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_out_of_bag_scores_by_brute_force(learner, n_classes, weighted):
    """Reference: the bootstrap samples are drawn again from the distributions of the rounds."""
    X, y = noisy_table(n_classes=n_classes)
    weight = np.random.default_rng(2).integers(1, 4, len(y)).astype(float) if weighted else None
    model = AdaBoostClassifier(
        LEARNERS[learner], n_estimators=6, resample=True, oob_score=True, max_restarts=2
    ).fit(X, y, sample_weight=weight)
    distributions = recomputed(model, X, y, weight).distributions
    expected = np.zeros((len(y), 1 if n_classes == 2 else n_classes))
    has_votes = np.zeros(len(y), bool)
    for t, (alpha, votes) in enumerate(
        zip(model.estimator_weights_, unit_votes(model, X), strict=True)
    ):
        sample = core.Sample()
        sample.draw_by_weight(distributions[t] * len(y), 0, 3 * t, 1)  # no restart was needed
        out = np.ones(len(y), bool)
        out[sample.positions()] = False
        assert 0.2 < out.mean() < 0.8
        expected[out] += alpha * votes[out]
        has_votes |= out
    expected[~has_votes] = np.nan
    found = model.oob_decision_function_
    close(found, expected[:, 0] if n_classes == 2 else expected)
    chosen = expected[has_votes, 0] > 0 if n_classes == 2 else expected[has_votes].argmax(axis=1)
    rows = None if weight is None else weight[has_votes]
    close(model.oob_score_, accuracy_score(y[has_votes], chosen, sample_weight=rows))


def test_out_of_bag_rows_that_all_have_drawn_are_nan():
    X, y = noisy_table()
    model = AdaBoostClassifier(n_estimators=1, resample=True, oob_score=True).fit(X, y)
    missing = np.isnan(model.oob_decision_function_)
    assert 0.5 < missing.mean() < 0.75  # 1 - 1/e of the rows
    model.set_params(oob_score=False).fit(X, y)
    assert not hasattr(model, "oob_score_")
    assert not hasattr(model, "oob_decision_function_")


# ---- importances ----


@pytest.mark.parametrize("n_classes", [2, 3])
def test_importances_by_hand(n_classes):
    """Reference: gain shares of each tree, averaged with the tree weights."""
    model, _, _ = fit(n_classes, max_depth=2)
    forest = model.model_.forest
    total = np.zeros(5)
    for tree, weight in enumerate(model.estimator_weights_):
        one = forest.single_tree(tree)
        inner = one.left >= 0
        gains = np.bincount(one.feature[inner], one.gain[inner], 5)
        total += weight * gains / gains.sum()
    close(model.feature_importances_, total / model.estimator_weights_.sum())
    close(model.feature_importances_.sum(), 1.0)
    assert model.feature_importances_[0] == model.feature_importances_.max()


def test_importances_are_those_of_exact_trees():
    X, y = noisy_table(1500)
    ours = AdaBoostClassifier(max_depth=2, n_estimators=6).fit(X, y)
    exact = AdaBoostClassifier(TREE, n_estimators=6).fit(X, y)
    np.testing.assert_allclose(ours.feature_importances_, exact.feature_importances_, rtol=1e-5)


def test_learners_without_importances_have_none():
    model, _, _ = fit(estimator=GaussianNB())
    with pytest.raises(AttributeError, match="feature_importances_"):
        _ = model.feature_importances_


# ---- learners of all kinds ----


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("learner", [GaussianNB(), ComplementNB()], ids=str)
def test_learners_that_are_no_trees(learner, algorithm):
    X, y = load_iris(return_X_y=True)
    model = AdaBoostClassifier(learner, n_estimators=10, algorithm=algorithm).fit(X, y)
    assert model.score(X, y) >= model.estimators_[0].score(X, y)
    assert all(type(member) is type(learner) for member in model.estimators_)
    with pytest.raises(TypeError, match=r"Use joblib\.dump"):
        model.save("never.arb")


def test_a_learner_without_probabilities():
    X, y = noisy_table()
    assert AdaBoostClassifier(SVC(), n_estimators=3).fit(X, y).score(X, y) > 0.7
    with pytest.raises(ValueError, match='"real" needs class probabilities, but SVC has no'):
        AdaBoostClassifier(SVC(), algorithm="real").fit(X, y)


# ---- tables ----


def test_labels_of_all_kinds():
    X, y = noisy_table(n_classes=3)
    plain = AdaBoostClassifier(n_estimators=5).fit(X, y)
    for labels in (["x", "y", "z"], [-5, 0, 9], [1.0, 2.0, 4.0]):
        names = np.array(labels)
        model = AdaBoostClassifier(n_estimators=5).fit(X, names[y])
        np.testing.assert_array_equal(model.classes_, names)
        np.testing.assert_array_equal(model.predict(X), names[plain.predict(X)])
        np.testing.assert_array_equal(model.decision_function(X), plain.decision_function(X))
        np.testing.assert_array_equal(model.margins(X, names[y]), plain.margins(X, y))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_missing_values_go_where_they_help(algorithm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] > 0).astype(int)
    X[y == 1, 0] = np.where(rng.random(int(y.sum())) < 0.5, np.nan, X[y == 1, 0])
    model = AdaBoostClassifier(algorithm=algorithm).fit(X, y)
    assert (model.stop_reason_, model.score(X, y)) == ("perfect learner", 1.0)
    coded = AdaBoostClassifier(algorithm=algorithm, missing=-999.0)
    coded.fit(np.nan_to_num(X, nan=-999.0), y)
    np.testing.assert_array_equal(
        coded.decision_function(np.nan_to_num(X, nan=-999.0)), model.decision_function(X)
    )


def test_categories_are_split_by_sets():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    town = rng.choice(["Ulm", "Oslo", "Bern", "Rome", "Kyiv"], 400)
    table = pandas.DataFrame({"town": pandas.Categorical(town), "noise": rng.normal(size=400)})
    y = np.isin(town, ["Ulm", "Bern"])
    model = AdaBoostClassifier().fit(table, y)
    assert (model.stop_reason_, model.n_iter_, model.score(table, y)) == ("perfect learner", 1, 1.0)
    assert model.feature_importances_.tolist() == [1.0, 0.0]
    assert model.feature_names_in_.tolist() == ["town", "noise"]
    codes = np.stack([np.unique(town, return_inverse=True)[1], table["noise"]], axis=1)
    by_number = AdaBoostClassifier(categorical_features=[0]).fit(codes, y)
    assert by_number.score(codes, y) == 1.0


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_sparse_tables(learner, kind):
    rng = np.random.default_rng(0)
    X = rng.integers(1, 9, size=(300, 6)) * (rng.random((300, 6)) < 0.2).astype(float)
    y = (X.sum(axis=1) + rng.normal(size=300) > 5).astype(int)
    dense = AdaBoostClassifier(LEARNERS[learner], n_estimators=8).fit(X, y)
    model = AdaBoostClassifier(LEARNERS[learner], n_estimators=8).fit(kind(X), y)
    close(model.estimator_errors_, dense.estimator_errors_)
    close(model.decision_function(kind(X)), dense.decision_function(X))


def test_a_dataset_trains_the_same_model():
    X, y = noisy_table(n_classes=3)
    weight = np.linspace(0.5, 2.0, len(y))
    model = AdaBoostClassifier(n_estimators=6).fit(X, y, sample_weight=weight)
    shared = AdaBoostClassifier(n_estimators=6).fit(Dataset(X, y, sample_weight=weight))
    assert model_file.to_bytes(shared.model_) == model_file.to_bytes(model.model_)
    with pytest.raises(TypeError, match="estimators need the values"):
        AdaBoostClassifier(TREE).fit(Dataset(X, y))


# ---- copies and files ----


@each
@pytest.mark.parametrize("how", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies(learner, n_classes, algorithm, how):
    model, X, y = fit(n_classes, estimator=LEARNERS[learner], algorithm=algorithm)
    other = how(model)
    np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(other.margins(X, y), model.margins(X, y))
    np.testing.assert_array_equal(other.normalizers_, model.normalizers_)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_files(n_classes, algorithm, tmp_path):
    model, X, _ = fit(n_classes, algorithm=algorithm, max_depth=2)
    model.save(tmp_path / "model.arb")
    loaded = arboost.load(tmp_path / "model.arb")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    raw = loaded.predict_raw(X)
    np.testing.assert_array_equal(raw[:, 0] if n_classes == 2 else raw, model.decision_function(X))
    assert loaded.params["algorithm"] == algorithm
