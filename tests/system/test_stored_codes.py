"""Codes in a file give the recorded models.

Every recorded fit on full columns of bins is grown again with its codes in a file, read in windows
of three sizes; samples of rows are streamed, or copied to memory.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import arboost
from support.recorded_fits import all_fits, digests_of, grows_on_bins
from support.stored_codes import codes_in_files

RECORDED = json.loads(Path(__file__).with_name("recorded_answers.json").read_text("utf-8"))
ON_BINS = [name for name in RECORDED if grows_on_bins(name)]


@pytest.fixture(params=[(64, 0), (999, 1 << 20), (1 << 20, 0)], ids=str)
def stored(request):
    with codes_in_files(*request.param) as made:
        yield made


@pytest.mark.filterwarnings("ignore::arboost.DataWarning")
@pytest.mark.parametrize("name", ON_BINS)
def test_models_are_those_in_memory(name, stored, tmp_path):
    assert digests_of(all_fits()[name](), tmp_path) == RECORDED[name]
    assert stored or "sparse" in name or "bundle" in name, name


FITS = {
    "plain": {},
    "samples": {"subsample": 0.5},
    "gradient-based samples": {"subsample": 0.2, "sampling_method": "gradient_based"},
    "approx": {"tree_method": "approx", "sketch_eps": 0.02, "min_samples_leaf": 9},
    "approx, local": {"tree_method": "approx", "sketch_scope": "local", "sketch_eps": 0.05},
    "leaf sizes": {"min_samples_leaf": 20, "grow_policy": "leafwise", "max_leaves": 15},
}


@pytest.mark.parametrize("params", FITS.values(), ids=FITS.keys())
def test_threads_make_no_difference(params, tmp_path):
    """40,000 rows of three classes: several threads share each window."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 8)).astype(np.float32)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.5])

    def model(n_jobs):
        fitted = arboost.GradientBoostingClassifier(
            n_estimators=2, max_depth=5, n_jobs=n_jobs, random_state=0, **params
        ).fit(X, y)
        fitted.save(tmp_path / "model.arb")
        return (tmp_path / "model.arb").read_bytes()

    expected = model(1)
    for sample_bytes in (0, 1 << 20):
        with codes_in_files(9000, sample_bytes) as made:
            assert all(model(n_jobs) == expected for n_jobs in (1, 2, 4))
            assert made
