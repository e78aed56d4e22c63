"""Whole fits by each tree method: thresholds of the forest agree with the codes of training."""

from __future__ import annotations

import numpy as np
import pytest

from arboost.data.bins import bin_table
from arboost.data.table import ingest
from arboost.estimators.boosting_rounds import BoostingRecipe, BoostingRounds, Dropout
from arboost.losses import Target, make
from arboost.params.boosting import LEVELS
from arboost.training.sets import EvaluationSet, TrainingSet
from arboost.trees.grower import TreeParams
from arboost.trees.samples import RowSampling
from support.ranked import random_gradients, random_values

METHODS = [
    {"tree_method": "hist"},
    {"tree_method": "exact"},
    {"tree_method": "approx"},
    {"tree_method": "approx", "sketch_scope": "local", "sketch_eps": 0.05},
]


def tree_params(**more) -> TreeParams:
    return TreeParams(
        max_depth=5,
        max_leaves=None,
        grow_policy="depthwise",
        min_child_weight=1.0,
        min_samples_leaf=1,
        gamma=0.0,
        reg_lambda=1.0,
        reg_alpha=0.0,
        max_delta_step=0.0,
        **{name: param.default for name, param in LEVELS.items()},
        **more,
    )


def walk(forest, matrix):
    """Scores of the rows by the thresholds of a forest, one tree and one step after the other."""
    scores = np.zeros((len(matrix), forest.value.shape[1]))
    for start in forest.tree_start[:-1]:
        at = np.full(len(matrix), start)
        while (forest.left[at] > 0).any():
            x = matrix[np.arange(len(matrix)), forest.feature[at]]
            left = np.where(np.isnan(x), forest.default_left[at], x <= forest.threshold[at])
            inner = forest.left[at] > 0
            at = np.where(inner, start + forest.left[at] + ~left, at)
        scores += forest.value[at]
    return scores


def train(method, *, n_threads=1, **recipe):
    rng = np.random.default_rng(0)
    matrix, other = random_values(rng, 3000), random_values(rng, 500)
    y, y_other = -random_gradients(rng, matrix)[0][:, 0], -random_gradients(rng, other)[0][:, 0]
    binned = bin_table(
        ingest(matrix),
        max_bins=255,
        rows=None,
        weights=None,
        n_threads=n_threads,
        tree_method=method["tree_method"],
    )
    training = BoostingRounds(
        BoostingRecipe(
            loss=make("squared_error"),
            learning_rate=0.3,
            tree=tree_params(**method),
            **recipe,
        ),
        TrainingSet(binned, Target(y, rng.uniform(0.5, 2.0, len(y)))),
        [EvaluationSet(binned.encode(ingest(other), 1), Target(y_other, None))],
        n_threads=n_threads,
        seed=4,
    )
    for _ in range(6):
        training.run_rounds()
    return training, matrix, other


@pytest.mark.parametrize("method", METHODS, ids=str)
@pytest.mark.parametrize(
    "recipe",
    [
        {},
        {"rows": RowSampling(rate=0.5), "parallel_trees": 2},
        {"dropout": Dropout(rate_drop=0.5, one_drop=True)},
    ],
    ids=["plain", "sampled", "dropout"],
)
def test_the_forest_scores_values_as_training_scored_codes(method, recipe):
    training, matrix, other = train(method, **recipe)
    fitted = training.fitted(training.weights)
    for table, scores in ((matrix, training.scores), (other, training.evaluation_scores[0])):
        expected = fitted.base_score + walk(fitted.forest, table)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-12)
    errors = training.data.target.y - training.scores[:, 0]
    assert np.var(errors) < 0.8 * np.var(training.data.target.y)


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_same_scores_for_any_number_of_threads(method):
    one, *_ = train(method, rows=RowSampling(rate=0.7))
    two, *_ = train(method, rows=RowSampling(rate=0.7), n_threads=3)
    assert one.scores.tobytes() == two.scores.tobytes()


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_a_fit_goes_on_from_its_state(method):
    whole, *_ = train(method)
    parts, *_ = train(method)
    state = {name: array.copy() for name, array in parts.state().items()}
    parts.run_rounds()
    again, *_ = train(method)
    again.restore(state)
    again.run_rounds()
    assert parts.scores.tobytes() == again.scores.tobytes() != whole.scores.tobytes()


def test_same_scores_for_any_instruction_set(instruction_sets):
    """On a CPU with fewer of them, the library falls back to those that it has."""
    script = (
        "import trees.test_tree_methods as t\n"
        "for method in t.METHODS:\n"
        "    print(t.train(method)[0].scores.tobytes().hex())\n"
    )
    wishes = ("baseline", "avx2", "avx512")
    actual = {instruction_sets.run(wish, script) for wish in wishes}
    assert len(actual) == 1
    assert len(set(actual.pop().split())) == len(METHODS)
