"""Means of trees: scores, probabilities, several targets; against sums in plain Python."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from arboost.models.prediction import raw_scores, staged_raw_scores
from arboost.trees.forest import Forest
from support.mean_models import mean_of, votes_model
from support.random_models import make_model, random_forest, random_table, walk


def expected_scores(model, X, n_trees):
    """Base score plus mean, from the sums of a walk in Python."""
    unbased = replace(model, base_score=np.zeros(model.n_outputs))
    rounds = n_trees // model.trees_per_round
    return model.base_score + walk(unbased, X, n_trees) / max(rounds, 1)


@pytest.mark.parametrize("n_rows", [1, 300])
@pytest.mark.parametrize(("n_outputs", "width", "per_round"), [(1, 1, 1), (3, 1, 3), (3, 3, 2)])
def test_mean_is_the_sum_by_the_rounds(rng, n_outputs, width, per_round, n_rows):
    forest = random_forest(rng, 12, 5, n_outputs, width)
    model = mean_of(make_model(forest, 5, n_outputs, per_round))
    model.validate()
    X = random_table(rng, n_rows, 5)
    scores = raw_scores(model, X, n_threads=1)
    np.testing.assert_array_equal(scores, expected_scores(model, X, 12))
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=2), scores)
    assert repr(model) == "Predictor(regressor, 5 features, mean of 12 trees)"


def test_staged_means(rng):
    model = mean_of(make_model(random_forest(rng, 12, 4, 3, 1), 4, 3, trees_per_round=3))
    X = random_table(rng, 40, 4)
    stages = list(staged_raw_scores(model, X, n_threads=1))
    assert len(stages) == model.n_rounds == 4
    for rounds, stage in enumerate(stages, start=1):
        np.testing.assert_array_equal(stage, expected_scores(model, X, 3 * rounds))
        shorter = model.truncated(rounds)
        np.testing.assert_array_equal(stage, raw_scores(shorter, X, n_threads=1))


def test_no_trees_give_the_base_score():
    model = mean_of(make_model(Forest.empty(), 2, 1))
    np.testing.assert_array_equal(model.predict([[1, 2], [3, 4]]), [-1.0, -1.0])


@pytest.mark.parametrize(("votes", "label"), [([1, 1, -1], "yes"), ([1, -1], "no"), ([-1], "no")])
def test_share_of_two(votes, label):
    classes = np.array(["no", "yes"])
    model = votes_model(np.c_[votes], link="share_of_two", classes=classes)
    second = votes.count(1) / len(votes)
    np.testing.assert_allclose(model.predict_proba([[0]]), [[1 - second, second]])
    assert model.predict([[0], [1]]).tolist() == [label, label]


def test_shares():
    model = votes_model([[0, 0.5, 0.5], [0, 1, 0], [1, 0, 0]], classes=np.array([7, 8, 9]))
    np.testing.assert_allclose(model.predict_proba([[0]]), [[1 / 3, 1 / 2, 1 / 6]])
    assert model.predict([[0]]).tolist() == [8]


def test_several_targets():
    """The second target has two classes in one output, the third target a single class."""
    values = [[0.2, 0.8, 0, 0.5, 1], [0, 0.4, 0.6, -1, 1]]
    classes = (np.array([1, 2, 3]), np.array([0, 5]), np.array([4]))
    model = votes_model(values, classes=classes, targets=(3, 1, 1))
    proba = model.predict_proba([[0], [1]])
    assert [part.shape for part in proba] == [(2, 3), (2, 2), (2, 1)]
    np.testing.assert_allclose(proba[0][0], [0.1, 0.6, 0.3])
    np.testing.assert_allclose(proba[1][0], [0.625, 0.375])
    np.testing.assert_allclose(proba[2][0], [1.0])
    predictions = model.predict([[0], [1]])
    assert predictions.dtype == np.dtype(int)
    assert predictions.tolist() == [[2, 0, 4], [2, 0, 4]]


def test_labels_of_several_kinds_stay_what_they_are():
    classes = (np.array(["a", "b", "c"]), np.array([10, 20]))
    model = votes_model([[0, 0.8, 0.2, 0.5]], classes=classes, targets=(3, 1))
    assert model.predict([[0]]).tolist() == [["b", 20]]


def test_several_numbers():
    fields = {"kind": "regressor", "link": "identity", "classes": None, "targets": (1, 1)}
    model = votes_model([[1, 2], [3, 6]], **fields)
    assert model.predict([[0], [1]]).tolist() == [[2, 4], [2, 4]]
    with pytest.raises(TypeError, match="asked of a regressor"):
        model.predict_proba([[0]])
