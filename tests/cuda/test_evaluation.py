"""Evaluation sets on a CUDA device: the CPU's metrics, to the last bit."""

import numpy as np
import pytest

import arboost
from arboost.data.cuda import CudaArray
from support.cuda import has_device

if not has_device():
    pytest.skip("no CUDA device: its metrics are not compared", allow_module_level=True)

SETTINGS = {
    "squared error": {},
    "deep": {"max_depth": 7, "min_child_weight": 0},
    "categories": {"categorical_features": [1, 2]},
    "two-byte bins": {"max_bins": 600},
    "poisson": {"loss": "poisson"},
    "gamma": {"loss": "gamma"},
    "tweedie": {"loss": "tweedie"},
    "absolute error": {"loss": "absolute_error"},
    "huber": {"loss": "huber"},
    "quantiles": {"loss": "quantile", "alpha": [0.2, 0.8]},
    "several metrics": {"eval_metric": ["rmse", "squared_error", "mae"]},
    "parallel trees": {"num_parallel_tree": 2, "subsample": 0.5},
    "DART": {"rate_drop": 0.5},
    "Friedman": {"boosting": "gradient"},
    "line search": {"boosting": "gradient", "line_search": "round"},
}


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(-500, 500, (rows, 6)) / 4
    X[:, 1], X[:, 2] = rng.integers(0, 4, rows), rng.integers(0, 30, rows)
    X[rng.random(X.shape) < 0.03] = np.nan
    return X, 1 + (np.nan_to_num(X[:, 0]) > 10) * 3 + rng.integers(0, 64, rows) / 16


def same_fits(make, X, y, tmp_path, **fit):
    models = [make(device).fit(X, y, **fit) for device in ("cpu", "cuda")]
    one, other = models
    assert one.evals_result_ == other.evals_result_
    assert (one.best_iteration_, one.stop_reason_) == (other.best_iteration_, other.stop_reason_)
    files = []
    for model in models:
        model.save(tmp_path / "model.arb")
        files.append((tmp_path / "model.arb").read_bytes())
    assert files[0] == files[1]
    return other


@pytest.mark.parametrize("name", list(SETTINGS))
def test_regressors(name, tmp_path):
    params = {"n_estimators": 5, "verbose": 0, "max_depth": 3} | SETTINGS[name]
    X, y = table(900)
    held_out, weight = table(700, 1), np.random.default_rng(2).random(700)
    same_fits(
        lambda device: arboost.GradientBoostingRegressor(**params, device=device),
        X,
        y,
        tmp_path,
        eval_set=[(X[:300], y[:300]), held_out, (*held_out, weight)],
    )


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classifiers_that_stop_early(n_classes, strategy, tmp_path):
    X, y = table(2000)
    same_fits(
        lambda device: arboost.GradientBoostingClassifier(
            n_estimators=30,
            learning_rate=0.8,
            max_depth=2,
            n_iter_no_change=2,
            verbose=0,
            multi_strategy=strategy,
            device=device,
        ),
        X,
        np.floor(y).astype(int) % n_classes,
        tmp_path,
    )


def test_metrics_of_the_host_see_the_scores(tmp_path):
    X, y = table(800)
    classes = (y > 2).astype(int)
    same_fits(
        lambda device: arboost.GradientBoostingClassifier(
            n_estimators=6,
            eval_metric=["auc", "log_loss", "accuracy"],
            n_iter_no_change=3,
            verbose=0,
            device=device,
        ),
        X,
        classes,
        tmp_path,
    )


def test_many_rows_are_added_in_chunks(tmp_path):
    X, y = table(20_000)
    same_fits(
        lambda device: arboost.GradientBoostingRegressor(
            n_estimators=2, max_depth=2, verbose=0, device=device
        ),
        X[:500],
        y[:500],
        tmp_path,
        eval_set=[(X, y)],
    )


def test_checkpoint_keeps_scores_of_the_device(tmp_path):
    X, y = table(600)

    def fit(device, folder):
        params = {"max_depth": 2, "n_iter_no_change": 50, "verbose": 0, "device": device}
        path = tmp_path / folder
        arboost.GradientBoostingRegressor(n_estimators=3, **params).fit(X, y, checkpoint=path)
        return arboost.GradientBoostingRegressor(n_estimators=6, **params).fit(
            X, y, checkpoint=path
        )

    one, other = fit("cpu", "one"), fit("cuda", "other")
    assert one.evals_result_ == other.evals_result_
    assert len(one.evals_result_["validation"]["squared_error"]) > 3


def test_device_arrays_as_evaluation_sets(tmp_path):
    X, y = table(700)
    model = same_fits(
        lambda device: arboost.GradientBoostingRegressor(
            n_estimators=4, max_depth=3, verbose=0, device=device
        ),
        X,
        y,
        tmp_path,
        eval_set=[table(300, 1)],
    )
    X_val, y_val = table(300, 1)
    there = arboost.GradientBoostingRegressor(
        n_estimators=4, max_depth=3, verbose=0, device="cuda"
    ).fit(CudaArray.of(X), CudaArray.of(y), eval_set=[(CudaArray.of(X_val), y_val)])
    assert there.evals_result_ == model.evals_result_
