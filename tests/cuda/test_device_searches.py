"""Searches on the device: categories, shared and sparse columns, vector leaves."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import arboost
from support.cuda import has_device

if not has_device():
    pytest.skip("no CUDA device: nothing is searched there", allow_module_level=True)

FEW = {"n_estimators": 2, "max_depth": 3, "verbose": 0}
LEAVES = {"max_leaves": 12, "max_depth": None, "grow_policy": "leafwise"}
SETTINGS = {
    "plain": {},
    "leaf size": {"min_samples_leaf": 9},
    "penalties": {"reg_alpha": 0.5, "max_delta_step": 0.4},
    "no penalty": {"reg_lambda": 0.0},
    "columns": {"colsample_bynode": 0.6},
    "rows": {"subsample": 0.6},
    "leaves": LEAVES,
}
OF_CATEGORIES = SETTINGS | {
    "monotone": {"monotone_constraints": {4: 1}},
    "one-hot": {"max_cat_to_onehot": 30},
    "short sets": {"max_cat_threshold": 3},
    "no smoothing": {"cat_smooth": 0.0, "cat_l2": 0.0},
    "child weight": {"min_child_weight": 20.0},
}


def files_of(estimator, X, y, folder, **params):
    """Return the files of the fits on both devices."""
    files = set()
    for device in ("cpu", "cuda"):
        path = folder / f"{device}.arb"
        estimator(**FEW | params, device=device).fit(X, y).save(path)
        files.add(path.read_bytes())
    return files


def categories(rng, rows):
    """Return categories of 3, 20, 90 and more than 100 levels, a number, and a target."""
    X = np.empty((rows, 5))
    for column, levels in enumerate((3, 20, 90)):
        X[:, column] = rng.integers(0, levels, rows)
    X[:, 3] = (rng.pareto(1.2, rows) * 9).astype(int) % 240
    X[:, 4] = rng.integers(-50, 50, rows) / 4
    X[rng.random(X.shape) < 0.04] = np.nan
    known = np.nan_to_num(X)
    y = known[:, 1] * 7 % 5 + known[:, 2] * 13 % 11 + known[:, 3] * 31 % 17 + known[:, 4]
    return X, y / 8 + rng.integers(0, 32, rows) / 16


@pytest.mark.parametrize("rows", [450, 2500])
@pytest.mark.parametrize("name", OF_CATEGORIES)
def test_categories(name, rows, rng, tmp_path):
    X, y = categories(rng, rows)
    params = OF_CATEGORIES[name] | {"categorical_features": [0, 1, 2, 3]}
    assert len(files_of(arboost.GradientBoostingRegressor, X, y, tmp_path, **params)) == 1


def flags(rng, rows):
    """Return columns that share stored columns: one-hot, rare and few values, some missing."""
    one_hot = rng.integers(0, 15, rows)[:, None] == np.arange(15)
    rare = np.where(rng.random((rows, 6)) < 0.02, rng.integers(1, 6, (rows, 6)), 0)
    few = rng.integers(0, 4, (rows, 3))
    X = np.hstack([one_hot, rare, few, rng.integers(0, 300, (rows, 1))]).astype(float)
    y = X @ rng.integers(-3, 4, X.shape[1]) / 4 + rng.integers(0, 16, rows) / 8
    return X, y


@pytest.mark.parametrize("name", SETTINGS)
def test_shared_columns(name, rng, tmp_path):
    X, y = flags(rng, 9000)
    X[rng.random(X.shape) < 0.005] = np.nan
    assert arboost.Dataset(X).binned.codes.shared_columns
    params = SETTINGS[name] | {"categorical_features": [21, 22]}
    assert len(files_of(arboost.GradientBoostingRegressor, X, y, tmp_path, **params)) == 1


@pytest.mark.parametrize("name", ["plain", "leaf size", "penalties"])
def test_sparse_columns(name, rng, tmp_path):
    X, y = flags(rng, 6000)
    table = csr_array(X[:, :21])
    assert arboost.Dataset(table).binned.codes.sparse_features
    params = SETTINGS[name]
    assert len(files_of(arboost.GradientBoostingRegressor, table, y, tmp_path, **params)) == 1


@pytest.mark.parametrize("name", [*SETTINGS, "monotone"])
def test_many_bins(name, rng, tmp_path):
    """More than 255, in some columns: numbers of one and of several blocks, and categories."""
    X, y = categories(rng, 2500)
    X = np.column_stack([X, rng.standard_normal((2500, 2))])
    X[rng.random(2500) < 0.1, 5] = np.nan
    params = OF_CATEGORIES[name] | {"categorical_features": [1, 3], "max_bins": 700}
    assert len(files_of(arboost.GradientBoostingRegressor, X, y, tmp_path, **params)) == 1


@pytest.mark.parametrize(("rows", "classes"), [(400, 3), (3000, 7), (9000, 4)])
@pytest.mark.parametrize("name", SETTINGS)
def test_vector_leaves(name, rows, classes, rng, tmp_path):
    X = np.column_stack([rng.standard_normal((rows, 2)), rng.integers(0, 4, (rows, 4))])
    X[rng.random(X.shape) < 0.05] = np.nan
    label = np.nan_to_num(2 * X[:, 0] + X[:, 3]).round().astype(int) + rng.integers(0, 2, rows)
    params = SETTINGS[name] | {"multi_strategy": "multi_output_tree"}
    files = files_of(arboost.GradientBoostingClassifier, X, label % classes, tmp_path, **params)
    assert len(files) == 1
