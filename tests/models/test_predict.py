"""Prediction from hand-made and random trees, against a walk in plain Python."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from arboost.data.schema import Schema
from arboost.losses.links import LINKS, predictions, probabilities
from arboost.models.prediction import raw_scores, staged_raw_scores
from arboost.models.predictor import Predictor
from arboost.trees.forest import Forest
from support.random_models import (
    ODD_CODES,
    THRESHOLDS,
    make_model,
    random_forest,
    random_table,
    walk,
)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_rows", [1, 7, 8, 9, 65, 300])
@pytest.mark.parametrize(("n_outputs", "width"), [(1, 1), (3, 1), (3, 3)])
def test_same_as_a_plain_walk(rng, n_outputs, width, n_rows, missing):
    forest = random_forest(rng, 12, 5, n_outputs, width)
    model = make_model(forest, 5, n_outputs)
    X = random_table(rng, n_rows, 5, missing)
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=1), walk(model, X))


@pytest.mark.parametrize("n_rows", [1, 9, 300])
@pytest.mark.parametrize(("n_outputs", "width"), [(1, 1), (3, 1), (3, 3)])
def test_sets_of_levels_same_as_a_plain_walk(rng, n_outputs, width, n_rows):
    """Level codes, and invalid codes, which are missing values."""
    forest = random_forest(rng, 12, 5, n_outputs, width, categories=[1, 3])
    model = make_model(forest, 5, n_outputs, categories=[1, 3])
    X = random_table(rng, n_rows, 5)
    X[:, [1, 3]] = rng.integers(0, 255, (n_rows, 2))
    X[:, [1, 3]] = np.where(
        rng.random((n_rows, 2)) < 0.3, rng.choice(ODD_CODES, (n_rows, 2)), X[:, [1, 3]]
    )
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=1), walk(model, X))
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=2), walk(model, X))


def test_values_exactly_at_thresholds(rng):
    model = make_model(random_forest(rng, 30, 3, 1, 1), 3, 1)
    finite = THRESHOLDS[np.isfinite(THRESHOLDS)]
    at = np.concatenate([finite, np.nextafter(finite, np.inf), np.nextafter(finite, -np.inf)])
    X = rng.choice(np.concatenate([at, THRESHOLDS]), (200, 3))
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=1), walk(model, X))


@pytest.mark.parametrize("n_threads", [2, 4])
def test_threads_do_not_matter(rng, n_threads):
    model = make_model(random_forest(rng, 50, 6, 3, 3), 6, 3)
    X = random_table(rng, 20_000, 6)
    one = raw_scores(model, X, n_threads=1)
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=n_threads), one)


def test_neighbours_do_not_matter(rng):
    model = make_model(random_forest(rng, 50, 6, 1, 1), 6, 1)
    X = random_table(rng, 500, 6)
    whole = raw_scores(model, X, n_threads=1)
    for rows in (slice(0, 1), slice(3, 20), slice(499, 500)):
        np.testing.assert_array_equal(raw_scores(model, X[rows], n_threads=1), whole[rows])


def test_many_columns(rng):
    """So many columns that a block holds few rows, and most columns are never read."""
    n_features = 5000
    model = make_model(random_forest(rng, 40, n_features, 1, 1), n_features, 1)
    X = random_table(rng, 50, n_features)
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=2), walk(model, X))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, np.uint16, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_types_and_orders(rng, dtype, order):
    model = make_model(random_forest(rng, 20, 4, 1, 1), 4, 1)
    X = np.asarray(rng.integers(0, 2, (60, 4)), dtype=dtype, order=order)
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=1), walk(model, X.astype(float)))


def test_staged(rng):
    model = make_model(random_forest(rng, 12, 4, 3, 1), 4, 3, trees_per_round=3)
    X = random_table(rng, 40, 4)
    stages = list(staged_raw_scores(model, X, n_threads=1))
    assert len(stages) == model.n_rounds == 4
    for rounds, stage in enumerate(stages, start=1):
        np.testing.assert_array_equal(stage, walk(model, X, 3 * rounds))
        shorter = model.truncated(rounds)
        np.testing.assert_array_equal(stage, raw_scores(shorter, X, n_threads=1))


def test_no_trees():
    model = make_model(Forest.empty(), 2, 1)
    np.testing.assert_array_equal(model.predict([[1, 2], [3, 4]]), [-1.0, -1.0])


@pytest.mark.filterwarnings("ignore:y has one class only")
def test_one_class():
    model = Predictor(
        forest=Forest.empty(),
        schema=Schema(names=None, n_features=1),
        base_score=np.zeros(1),
        link="softmax",
        classes=np.array(["only"]),
        trees_per_round=1,
        params={},
        kind="classifier",
    )
    model.validate()
    np.testing.assert_array_equal(model.predict_proba([[1], [2]]), [[1.0], [1.0]])
    np.testing.assert_array_equal(model.predict([[1], [2]]), ["only", "only"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left": [9, 0, 0]}, "a child outside its tree"),
        ({"feature": [7, -1, -1]}, "a split on an unknown column"),
        ({"output": [1]}, "a tree for an unknown output"),
        ({"tree_start": [0, 4]}, "trees outside the nodes"),
        ({"gain": [0, 0, 0], "threshold": [0, 0]}, "differ in length"),
        ({"value": np.zeros((3, 2))}, "leaves that do not fit"),
        ({"level_set": [1, -1, -1], "level_sets": np.zeros((1, 4))}, "an unknown set of levels"),
        ({"level_set": [0, -1, -1]}, "an unknown set of levels"),
        ({"level_set": [0, -1], "level_sets": np.zeros((1, 4))}, "differ in length"),
        ({"level_set": [0, -1, -1], "level_sets": np.zeros((1, 3))}, "differ in length"),
    ],
)
def test_core_refuses_broken_trees(changes, message):
    """Even with a forest that was not validated the core stays inside its arrays."""
    arrays = {
        "tree_start": [0, 3],
        "feature": [0, -1, -1],
        "threshold": [0, 0, 0],
        "left": [1, 0, 0],
        "default_left": [True, False, False],
        "value": np.zeros((3, 1)),
        "gain": [0, 0, 0],
        "cover": [0, 0, 0],
        "output": [0],
    }
    forest = Forest(**{name: np.array(value) for name, value in (arrays | changes).items()})
    model = make_model(Forest.empty(), 1, 1)
    object.__setattr__(model, "forest", forest)
    with pytest.raises(ValueError, match=message):
        model.predict([[0.0]])


def test_links_are_stable():
    raw = np.array([[-1000.0], [-40.0], [0.0], [40.0], [1000.0]])
    both = LINKS["logistic"](raw)
    np.testing.assert_allclose(both[1:, 1], 1 / (1 + np.exp(-raw[1:, 0])))
    np.testing.assert_array_equal(both[:, 0], both[::-1, 1])
    assert both[1, 1] > 0
    scores = np.array([[1e308, -1e308, 0.0], [700.0, 710.0, 720.0], [-5e3, -5e3, -5e3]])
    with np.errstate(over="ignore"):
        assert np.isfinite(LINKS["softmax"](scores)).all()
    np.testing.assert_allclose(LINKS["softmax"](scores[1:]).sum(axis=1), 1.0)
    assert LINKS["identity"](raw) is raw


def test_predictions_follow_probabilities(rng):
    model = make_model(random_forest(rng, 12, 4, 3, 1), 4, 3, trees_per_round=3)
    raw = raw_scores(model, random_table(rng, 200, 4), n_threads=1)
    np.testing.assert_array_equal(predictions(model, raw), probabilities(model, raw).argmax(axis=1))


def test_regressor_has_no_probabilities():
    model = make_model(Forest.empty(), 2, 1)
    with pytest.raises(TypeError, match=r"predict_proba was asked of a regressor.*Use predict"):
        model.predict_proba([[1, 2]])


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, "2", True])
def test_n_jobs_is_checked(n_jobs):
    model = make_model(Forest.empty(), 2, 1)
    with pytest.raises((TypeError, ValueError), match="n_jobs="):
        model.predict([[1, 2]], n_jobs=n_jobs)


def test_copies(rng):
    model = make_model(random_forest(rng, 12, 4, 1, 1), 4, 1)
    X = random_table(rng, 40, 4)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert repr(pickle.loads(pickle.dumps(model))) == "Predictor(regressor, 4 features, 12 trees)"
