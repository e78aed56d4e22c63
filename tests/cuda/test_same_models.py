"""Trees of a CUDA device equal those of the CPU, byte for byte."""

import numpy as np
import pytest

import arboost
from support.cuda import emulated, has_device

if not has_device():
    pytest.skip("no CUDA device: its models are not compared", allow_module_level=True)

WAVES = arboost.CustomLoss(
    name="waves",
    gradients=lambda y, score, weight: (
        weight * np.tanh(score - y),
        weight * (1 - np.tanh(score - y) ** 2),
    ),
)
LEAVES = {"max_depth": None, "grow_policy": "leafwise"}
SETTINGS = {
    "plain": {},
    "leaves": {"max_leaves": 40, **LEAVES},
    "leaf size": {"min_samples_leaf": 15},
    "two-byte bins": {"max_bins": 600},
    "approx": {"tree_method": "approx", "sketch_eps": 0.02},
    "approx, leaf size, rows": {"tree_method": "approx", "min_samples_leaf": 9, "subsample": 0.5},
    "approx, many candidates": {"tree_method": "approx", "sketch_eps": 0.002, "rate_drop": 0.5},
    "approx, held out": {
        "tree_method": "approx",
        "loss": "absolute_error",
        "n_iter_no_change": 3,
        "categorical_features": [1, 2],
    },
    "approx by node": {"tree_method": "approx", "sketch_scope": "local", "sketch_eps": 0.05},
    "approx by node, weights": {
        "tree_method": "approx",
        "sketch_scope": "local",
        "loss": "poisson",
        "min_samples_leaf": 5,
    },
    "penalties": {"reg_alpha": 1.0, "gamma": 0.2, "max_delta_step": 0.4},
    "monotone": {"monotone_constraints": {0: 1, 4: -1}},
    "interactions": {"interaction_constraints": [[0, 1, 2], [3, 4, 5, 6, 7]]},
    "rows": {"subsample": 0.5},
    "GOSS": {"sampling_method": "goss", "learning_rate": 0.5},
    "gradient-based": {"sampling_method": "gradient_based", "subsample": 0.3},
    "columns": {"colsample_bytree": 0.7, "colsample_bylevel": 0.8, "colsample_bynode": 0.6},
    "DART": {"rate_drop": 0.5},
    "Friedman": {"boosting": "gradient"},
    "line search": {"boosting": "gradient", "line_search": "round", "loss": "huber"},
    "custom loss, GOSS": {"loss": WAVES, "sampling_method": "goss", "learning_rate": 0.5},
    "custom loss, rows by gradient": {
        "loss": WAVES,
        "sampling_method": "gradient_based",
        "subsample": 0.3,
        "boosting": "newton",
    },
    "custom loss, Friedman": {"loss": WAVES, "boosting": "gradient", "subsample": 0.5},
    "line search, rows": {"boosting": "gradient", "line_search": "round", "subsample": 0.5},
    "Huber, rows by gradient": {
        "loss": "huber",
        "sampling_method": "gradient_based",
        "subsample": 0.3,
    },
    "Huber, GOSS": {
        "loss": "huber",
        "boosting": "gradient",
        "sampling_method": "goss",
        "learning_rate": 0.5,
    },
    "DART of quantiles": {"rate_drop": 0.4, "loss": "quantile", "alpha": [0.2, 0.8]},
    "DART, parallel trees": {"rate_drop": 0.4, "subsample": 0.5, "num_parallel_tree": 2},
    "poisson": {"loss": "poisson"},
    "absolute error": {"loss": "absolute_error"},
    "two quantiles": {"loss": "quantile", "alpha": [0.2, 0.8]},
    "categories": {"categorical_features": [1, 2]},
    "early stopping": {"n_estimators": 40, "n_iter_no_change": 3},
}


def table(rows):
    rng = np.random.default_rng(0)
    X = rng.integers(-500, 500, (rows, 8)) / 4
    X[:, 1], X[:, 2] = rng.integers(0, 4, rows), rng.integers(0, 30, rows)
    X[rng.random(X.shape) < 0.03] = np.nan
    return X, 1 + (np.nan_to_num(X[:, 0]) > 10) * 3 + rng.integers(0, 64, rows) / 16


def file_of(model, folder):
    path = folder / "model.arb"
    model.save(path)
    return path.read_bytes()


def assert_same(make, fit, folder):
    one, other = fit(make(device="cpu")), fit(make(device="cuda"))
    assert file_of(one, folder) == file_of(other, folder)


@pytest.mark.filterwarnings("ignore:The loss 'waves'")
@pytest.mark.parametrize("rows", [300, 40_000])
@pytest.mark.parametrize("name", list(SETTINGS))
def test_regressor(name, rows, tmp_path):
    X, y = table(rows if emulated() is None else min(rows, 4500))
    params = {"n_estimators": 5, "verbose": 0} | SETTINGS[name]
    assert_same(
        lambda device: arboost.GradientBoostingRegressor(**params, device=device),
        lambda model: model.fit(X, y),
        tmp_path,
    )


@pytest.mark.parametrize("params", [{}, {"loss": "listwise", "n_iter_no_change": 3}], ids=str)
def test_ranker(params, tmp_path):
    X, y = table(3000)
    grades, query = np.digitize(y, [3, 5]), np.arange(len(y)) // 25
    assert_same(
        lambda device: arboost.GradientBoostingRanker(
            n_estimators=5, min_child_weight=0.01, verbose=0, device=device, **params
        ),
        lambda model: model.fit(X, grades, qid=query),
        tmp_path,
    )


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classifier(n_classes, strategy, tmp_path):
    X, y = table(5000)
    assert_same(
        lambda device: arboost.GradientBoostingClassifier(
            n_estimators=5, verbose=0, multi_strategy=strategy, device=device
        ),
        lambda model: model.fit(X, np.floor(y).astype(int) % n_classes),
        tmp_path,
    )


@pytest.mark.parametrize("strategy", ["one_output_per_tree", "multi_output_tree"])
@pytest.mark.parametrize("scope", ["global", "local"])
def test_approximate_classifier(scope, strategy, tmp_path):
    X, y = table(5000)
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    assert_same(
        lambda device: arboost.GradientBoostingClassifier(
            n_estimators=3,
            verbose=0,
            tree_method="approx",
            sketch_scope=scope,
            sketch_eps=0.05,
            multi_strategy=strategy,
            device=device,
        ),
        lambda model: model.fit(X, np.floor(y).astype(int) % 3, weight),
        tmp_path,
    )


@pytest.mark.parametrize(
    "name",
    ["categories", "rows", "GOSS", "gradient-based", "absolute error", "Friedman", "approx"],
)
def test_model_does_not_depend_on_threads(name, tmp_path, monkeypatch):
    monkeypatch.setattr("arboost.data.bins._DEVICE_CELLS", 0)  # bins on the device, too
    X, y = table(25_000)  # enough for four threads in each stage
    params = {"n_estimators": 3, "max_depth": 4, "verbose": 0} | SETTINGS[name]
    files = {
        file_of(
            arboost.GradientBoostingRegressor(**params, device="cuda", n_jobs=n_jobs).fit(X, y),
            tmp_path,
        )
        for n_jobs in (1, 2, 4)
    }
    assert len(files) == 1


def test_continued_fit_may_change_its_device(tmp_path):
    X, y = table(3000)

    def fit(first, second):
        model = arboost.GradientBoostingRegressor(
            n_estimators=4, warm_start=True, verbose=0, device=first
        ).fit(X, y)
        return model.set_params(n_estimators=9, device=second).fit(X, y)

    assert file_of(fit("cpu", "cuda"), tmp_path) == file_of(fit("cuda", "cpu"), tmp_path)


@pytest.mark.parametrize("params", [{}, {"subsample": 0.7}, {"sampling_method": "goss"}])
def test_narrow_sums_of_large_tables(params, tmp_path):
    X, y = table(70_000)
    assert_same(
        lambda device: arboost.GradientBoostingRegressor(
            n_estimators=2, learning_rate=0.9, max_depth=3, verbose=0, device=device, **params
        ),
        lambda model: model.fit(X[:, :3], y),
        tmp_path,
    )


@pytest.mark.parametrize("params", [{}, {"subsample": 0.6}, {"alpha": [0.1, 0.5]}])
@pytest.mark.parametrize("weighted", [False, True])
def test_quantiles_of_leaves(weighted, params, tmp_path):
    X, y = table(2000)
    y = np.round(y)  # many equal residuals: medians between two values
    weight = np.random.default_rng(1).integers(0, 4, len(y)) / 2 if weighted else None
    assert_same(
        lambda device: arboost.GradientBoostingRegressor(
            n_estimators=4,
            max_depth=3,
            loss="quantile",
            verbose=0,
            device=device,
            **{"alpha": 0.5} | params,
        ),
        lambda model: model.fit(X, y, sample_weight=weight),
        tmp_path,
    )


@pytest.mark.parametrize("params", [{}, {"subsample": 0.6}, {"n_iter_no_change": 2}])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_friedman_of_classes(n_classes, params, tmp_path):
    X, y = table(1500)
    assert_same(
        lambda device: arboost.GradientBoostingClassifier(
            n_estimators=4, max_depth=3, boosting="gradient", verbose=0, device=device, **params
        ),
        lambda model: model.fit(X, np.floor(y).astype(int) % n_classes),
        tmp_path,
    )


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie", "huber"])
def test_friedman_of_losses(loss, tmp_path):
    X, y = table(1500)
    assert_same(
        lambda device: arboost.GradientBoostingRegressor(
            n_estimators=4, max_depth=3, boosting="gradient", loss=loss, verbose=0, device=device
        ),
        lambda model: model.fit(X, y, sample_weight=np.arange(len(y)) % 3 + 1.0),
        tmp_path,
    )
