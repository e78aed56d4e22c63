"""Folds of fits with an offset: cv and tune."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from arboost import (
    AdaBoostRegressor,
    Dataset,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
    cv,
)

N = 600
RNG = np.random.default_rng(2)
X = pd.DataFrame(RNG.normal(size=(N, 3)), columns=["a", "b", "c"])
OFFSET = RNG.uniform(-2.0, 2.0, N)
COUNTS = RNG.poisson(np.exp(0.5 * X["a"].to_numpy() + OFFSET)).astype(float)
NAMED = X.assign(start=OFFSET)


def booster(**params):
    return GradientBoostingRegressor(loss="poisson", n_estimators=5, max_bins=1000, **params)


def folds():
    rows = np.arange(N)
    return [(rows[rows % 3 != fold], rows[rows % 3 == fold]) for fold in range(3)]


@pytest.mark.parametrize("given", ["array", "column", "dataset"])
def test_folds_are_fits_with_their_offsets(given):
    arguments = {
        "array": ((X, COUNTS), {"offset": OFFSET}),
        "column": ((NAMED, COUNTS), {"offset": "start"}),
        "dataset": ((Dataset(NAMED, COUNTS, offset="start", max_bins=1000),), {}),
    }
    data, options = arguments[given]
    result = cv(booster(), *data, folds=folds(), return_models=True, **options)
    for fold, (train, held_out) in enumerate(folds()):
        alone = booster().fit(
            X.iloc[train],
            COUNTS[train],
            offset=OFFSET[train],
            X_val=X.iloc[held_out],
            y_val=COUNTS[held_out],
            offset_val=OFFSET[held_out],
        )
        curve = alone.evals_result_["validation"]["poisson"]
        np.testing.assert_allclose(result.scores["poisson"][fold], curve, rtol=2e-2)
        model = result.models[fold]
        assert model.model_.base_score == alone.model_.base_score
        raw = model.predict_raw(NAMED) if given != "array" else model.predict_raw(X, offset=OFFSET)
        np.testing.assert_allclose(raw[:, 0], alone.predict_raw(X, offset=OFFSET)[:, 0], atol=0.5)


def test_weights_of_zero_leave_out_rows_of_the_offset():
    weight = (np.arange(N) % 4 > 0).astype(float)
    kept = weight > 0
    offset = np.where(kept, OFFSET, -1e9)
    one = cv(booster(), X, COUNTS, folds=3, sample_weight=weight, offset=offset)
    other = cv(booster(), X[kept], COUNTS[kept], folds=3, offset=OFFSET[kept])
    np.testing.assert_array_equal(one.scores["poisson"], other.scores["poisson"])


def test_only_boosters_have_an_offset():
    with pytest.raises(TypeError, match="offset is not allowed with AdaBoostRegressor"):
        cv(AdaBoostRegressor(n_estimators=2), X, COUNTS, offset=OFFSET)
    labels = np.arange(N) % 3
    with pytest.raises(ValueError, match="shift the raw scores of all 3 classes"):
        cv(GradientBoostingClassifier(n_estimators=2), X, labels, offset=OFFSET)


@pytest.mark.parametrize("given", ["array", "column"])
def test_tune_scores_with_the_offset(given):
    pytest.importorskip("optuna")
    from arboost import tune

    table, offset = (X, OFFSET) if given == "array" else (NAMED, "start")
    options = {"trials": 2, "folds": folds(), "verbose": 0}
    found = tune(booster(), table, COUNTS, offset=offset, **options)
    known = cv(booster(), X, COUNTS, offset=OFFSET, folds=folds())
    assert found.default_score == known.mean["poisson"][-1]
    start = OFFSET if given == "array" else None
    assert found.estimator.score(table, COUNTS, offset=start) > 0.5
    assert found.estimator.n_features_in_ == 3
    with pytest.raises(TypeError, match="offset is not allowed with RandomForestRegressor"):
        tune(RandomForestRegressor(n_estimators=2), table, COUNTS, offset=offset, **options)
