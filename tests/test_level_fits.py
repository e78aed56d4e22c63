"""Whole fits on categories: what training, prediction, files and checkpoints make of sets."""

from __future__ import annotations

import numpy as np
import pytest

import arboost
from arboost import Dataset, GradientBoostingClassifier, GradientBoostingRegressor
from arboost.binning import bin_table
from arboost.checkpoint import Checkpoint
from arboost.ingest import ingest
from leveled import random_problem


def dataset(matrix, n_levels, y, tree_method="hist"):
    """A Dataset of columns of which some are codes of levels."""
    data = Dataset(matrix, y, tree_method=tree_method)
    table = ingest(matrix)
    data.binned = bin_table(
        table,
        max_bins=255,
        rows=None,
        weights=None,
        n_threads=1,
        tree_method=tree_method,
        n_levels=n_levels,
    )
    return data


def noisy_effects(seed, n, outputs=1):
    """Levels with effects of their own, beside numbers that matter a little."""
    rng = np.random.default_rng(seed)
    n_levels = [80, 0, 12]
    matrix, g, _ = random_problem(rng, n, n_levels, outputs)
    return matrix, n_levels, g


@pytest.mark.parametrize("tree_method", ["hist", "exact", "approx"])
def test_predictions_on_codes_are_the_scores_of_training(tree_method):
    """Evaluation on the training rows themselves: by walks over codes, and by prediction."""
    matrix, n_levels, g = noisy_effects(0, 3000)
    data = dataset(matrix, n_levels, g[:, 0], tree_method)
    model = GradientBoostingRegressor(n_estimators=20, tree_method=tree_method, subsample=0.5)
    model.fit(data, X_val=matrix, y_val=g[:, 0], callbacks=[])
    error = np.mean((model.predict(matrix) - g[:, 0]) ** 2)
    (results,) = model.evals_result_["validation"].values()
    np.testing.assert_allclose(results[-1], error, rtol=1e-12)
    assert model.model_.forest.has_sets


def test_categories_beat_the_order_of_their_codes():
    matrix, n_levels, g = noisy_effects(1, 6000)
    half = np.arange(6000) < 3000
    model = GradientBoostingRegressor(n_estimators=60, max_depth=4)
    plain = model.fit(matrix[half], g[half, 0]).predict(matrix[~half])
    sets = model.fit(dataset(matrix[half], n_levels, g[half, 0])).predict(matrix[~half])
    errors = [np.mean((found - g[~half, 0]) ** 2) for found in (plain, sets)]
    assert errors[1] < 0.9 * errors[0]


def test_model_files_keep_sets(tmp_path):
    matrix, n_levels, g = noisy_effects(2, 2000)
    seen = set()
    for n_jobs in (1, 2, 4):
        model = GradientBoostingRegressor(n_estimators=5, n_jobs=n_jobs)
        model.fit(dataset(matrix, n_levels, g[:, 0])).save(tmp_path / "model.arb")
        seen.add((tmp_path / "model.arb").read_bytes())
        loaded = arboost.load(tmp_path / "model.arb")
        np.testing.assert_array_equal(loaded.predict(matrix), model.predict(matrix))
        short = loaded.truncated(2)
        np.testing.assert_array_equal(short.predict_raw(matrix), list(loaded.staged_raw(matrix))[1])
    assert len(seen) == 1


def test_unknown_levels_are_missing_in_prediction():
    matrix, n_levels, g = noisy_effects(3, 2000)
    model = GradientBoostingRegressor(n_estimators=10).fit(dataset(matrix, n_levels, g[:, 0]))
    missing = matrix.copy()
    missing[:, 0] = np.nan
    for odd in (80.0, 254.0, 255.0, 0.5, -1.0, np.inf):
        unknown = matrix.copy()
        unknown[:, 0] = odd
        np.testing.assert_array_equal(model.predict(unknown), model.predict(missing))


def test_classes_with_vector_leaves_and_importances():
    matrix, n_levels, g = noisy_effects(4, 2000, outputs=3)
    y = g.argmin(axis=1)
    for strategy in ("one_output_per_tree", "multi_output_tree"):
        model = GradientBoostingClassifier(n_estimators=15, multi_strategy=strategy)
        model.fit(dataset(matrix, n_levels, y))
        assert model.score(matrix, y) > 0.7
        assert (model.feature_importances_[[0, 2]] > 0.1).all()


def test_a_fit_goes_on_from_its_checkpoint(tmp_path):
    matrix, n_levels, g = noisy_effects(5, 2000)
    data = dataset(matrix, n_levels, g[:, 0])
    whole = GradientBoostingRegressor(n_estimators=8, random_state=0).fit(data)

    def stop(done):
        if done.index == 4:
            raise InterruptedError

    path = tmp_path / "fit.ckpt"
    again = GradientBoostingRegressor(n_estimators=8, random_state=0)
    with pytest.raises(InterruptedError):
        again.fit(data, callbacks=[stop], checkpoint=Checkpoint(path, every=2))
    assert path.exists()
    again.fit(data, checkpoint=Checkpoint(path, every=2))
    np.testing.assert_array_equal(again.predict(matrix), whole.predict(matrix))
