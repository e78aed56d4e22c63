"""Trees, forests and AdaBoost of a CUDA device equal those of the CPU, byte for byte."""

from functools import partial

import numpy as np
import pytest

import arboost
from arboost.data.cuda import CudaArray
from support.cuda import emulated, has_device

if not has_device():
    pytest.skip("no CUDA device: its models are not compared", allow_module_level=True)

pytestmark = pytest.mark.filterwarnings("ignore:.*drawn for every")  # few trees
ROWS = 130  # nodes of more rows than a warp has lanes, and of fewer
REGRESSORS = {
    "plain": {},
    "all features": {"max_features": None, "bootstrap": False},
    "some draws": {"max_samples": 0.4, "max_features": 3},
    "depth": {"max_depth": 3},
    "leaf size": {"min_samples_leaf": 5},
    "node size": {"min_samples_split": 30},
    "leaf weight": {"min_weight_fraction_leaf": 0.05},
    "impurity decrease": {"min_impurity_decrease": 0.05},
    "pruned": {"ccp_alpha": 0.05},
    "leaves": {"max_leaf_nodes": 12},
    "poisson": {"criterion": "poisson"},
    "poisson, leaf size": {"criterion": "poisson", "min_samples_leaf": 3},
    "monotone": {"monotone_constraints": {0: 1, 4: -1}},
    "two-byte bins": {"max_bins": 300},
    "categories": {"categorical_features": [1, 2]},
    "quantiles": {"quantiles": True},
    "out of bag": {"oob_score": True},
    "out of bag, pruned": {"oob_score": True, "ccp_alpha": 0.05},
}
CLASSIFIERS = {
    "gini": {},
    "entropy": {"criterion": "entropy"},
    "error": {"criterion": "error"},
    "gain ratio": {"criterion": "gain_ratio"},
    "log loss, leaf size": {"criterion": "log_loss", "min_samples_leaf": 4},
    "class weights": {"class_weight": {0: 1.0, 1: 2.5}},
    "balanced": {"class_weight": "balanced"},
    "balanced subsample": {"class_weight": "balanced_subsample"},
    "all rows": {"bootstrap": False, "max_features": None},
    "out of bag": {"oob_score": True, "max_features": 0.5},
    "leaves": {"max_leaf_nodes": 9},
    "missing levels": {"categorical_features": [1, 2]},
}
FORESTS = {
    "random forest": (arboost.RandomForestRegressor, arboost.RandomForestClassifier),
    "extra trees": (arboost.ExtraTreesRegressor, arboost.ExtraTreesClassifier),
}


def table(rows=ROWS):
    rng = np.random.default_rng(5)
    X = rng.integers(-500, 500, (rows, 8)) / 4
    X[:, 1], X[:, 2] = rng.integers(0, 4, rows), rng.integers(0, 30, rows)
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 7] = 1  # constant
    y = 1 + (np.nan_to_num(X[:, 0]) > 10) * 3 + rng.integers(0, 8, rows)
    return X, y.astype(float)


def results(model, folder):
    path = folder / "model.arb"
    model.save(path)
    of_rows = ("oob_prediction_", "oob_decision_function_", "oob_score_")
    return [path.read_bytes(), *(np.asarray(getattr(model, name, 0)).tobytes() for name in of_rows)]


def assert_same(make, X, y, folder, **fit_params):
    on = {device: make(device=device).fit(X, y, **fit_params) for device in ("cpu", "cuda")}
    assert results(on["cuda"], folder) == results(on["cpu"], folder)


@pytest.mark.parametrize("forest", list(FORESTS))
@pytest.mark.parametrize("name", list(REGRESSORS))
def test_regression(name, forest, tmp_path):
    params = {"n_estimators": 2, "verbose": 0, "bootstrap": True} | REGRESSORS[name]
    X, y = table()
    assert_same(lambda device: FORESTS[forest][0](**params, device=device), X, y, tmp_path)


@pytest.mark.parametrize(("forest", "n_classes"), [("random forest", 2), ("extra trees", 3)])
@pytest.mark.parametrize("name", list(CLASSIFIERS))
def test_classification(name, forest, n_classes, tmp_path):
    params = {"n_estimators": 2, "verbose": 0, "bootstrap": True} | CLASSIFIERS[name]
    X, y = table()
    labels = y.astype(int) % n_classes
    assert_same(lambda device: FORESTS[forest][1](**params, device=device), X, labels, tmp_path)


def forest(device, **params):
    return arboost.RandomForestRegressor(n_estimators=2, verbose=0, device=device, **params)


def test_several_targets(tmp_path):
    X, y = table()
    several = np.c_[y, -y, np.nan_to_num(X[:, 3])]
    assert_same(forest, X, several, tmp_path)


def test_row_weights(tmp_path):
    X, y = table()
    weight = np.random.default_rng(6).integers(0, 5, len(y)) / 2
    for bootstrap in (True, False):
        assert_same(
            lambda device, draws=bootstrap: forest(device, bootstrap=draws),
            X,
            y,
            tmp_path,
            sample_weight=weight,
        )


def test_targets_of_very_different_sizes(tmp_path):
    X, y = table()
    assert_same(forest, X, np.exp(5 * y), tmp_path)


@pytest.mark.parametrize("several", [False, True])
def test_heavy_tails(several, tmp_path):
    X, y = table()
    y[:3] = 1e9, -1e7, 1e20
    y = np.nan_to_num(np.c_[y, -X[:, 1]] if several else y)
    assert_same(forest, X, y, tmp_path)
    of_array = forest("cuda").fit(CudaArray.of(X), y)
    assert results(of_array, tmp_path) == results(forest("cuda").fit(X, y), tmp_path)


def test_huge_weights(tmp_path):
    X, y = table()
    weight = np.ones(len(y))
    weight[:3] = 1e12, 3e12, 1e24

    def tree(device, **params):
        return arboost.DecisionTreeClassifier(device=device, **params)

    def extra_trees(device):
        return arboost.ExtraTreesRegressor(n_estimators=2, device=device)

    for n_classes, criterion in ((2, "gini"), (3, "gini"), (2, "entropy"), (3, "entropy")):
        make = partial(tree, criterion=criterion)
        labels = y.astype(int) % n_classes
        assert_same(make, X, labels, tmp_path, sample_weight=weight)
    assert_same(extra_trees, X, y, tmp_path, sample_weight=weight)


def table_of_levels(rows):
    """Categories of 2, 9 and 90 levels, a number, and missing values."""
    rng = np.random.default_rng(8)
    X = np.c_[[rng.integers(0, n, rows) for n in (2, 9, 90, 40)]].T.astype(float)
    y = np.sin(X[:, 1]) + np.cos(7 * X[:, 2]) + X[:, 3] / 20 + rng.normal(size=rows)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, 2 + np.nan_to_num(y)


LEVEL_FITS = {
    "plain": {},
    "all features": {"max_features": None},
    "leaf size": {"min_samples_leaf": 6, "max_features": 0.5},
    "counts": {"criterion": "poisson"},
}
# Rows: those of nodes that a warp, a block and many blocks split.
LEVEL_ROWS = {500: {}, 5000: {"max_depth": 3}}


@pytest.mark.parametrize("rows", list(LEVEL_ROWS))
@pytest.mark.parametrize("forest", list(FORESTS))
@pytest.mark.parametrize("name", list(LEVEL_FITS))
def test_levels(name, forest, rows, tmp_path):
    params = {"n_estimators": 2, "verbose": 0, "categorical_features": [0, 1, 2]}
    params |= LEVEL_FITS[name] | LEVEL_ROWS[rows]
    X, y = table_of_levels(rows)
    y = np.maximum(np.round(y), 0) if "criterion" in params else y
    assert_same(lambda device: FORESTS[forest][0](**params, device=device), X, y, tmp_path)


@pytest.mark.parametrize("rows", list(LEVEL_ROWS))
@pytest.mark.parametrize("forest", list(FORESTS))
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_levels_of_classes(n_classes, criterion, forest, rows, tmp_path):
    params = {"n_estimators": 2, "verbose": 0, "categorical_features": [0, 1, 2]}
    params |= {"criterion": criterion} | LEVEL_ROWS[rows]
    X, y = table_of_levels(rows)
    labels = (3 * y).astype(int) % n_classes
    assert_same(lambda device: FORESTS[forest][1](**params, device=device), X, labels, tmp_path)


def test_levels_of_other_tables(tmp_path):
    X, y = table_of_levels(300)
    weight = np.random.default_rng(6).integers(0, 4, len(y)) / 2
    params = {"n_estimators": 2, "verbose": 0, "categorical_features": [0, 1, 2]}
    make = partial(arboost.RandomForestRegressor, **params)
    several = np.c_[y, -(y**2), np.nan_to_num(X[:, 2])]
    assert_same(lambda device: make(device=device), X, several, tmp_path)
    assert_same(lambda device: make(device=device), X, y, tmp_path, sample_weight=weight)
    # Rare levels share columns with others.
    X[:, :3] = np.where(np.random.default_rng(1).random((300, 3)) < 0.9, 0.0, X[:, :3])
    assert_same(lambda device: make(device=device), X, y, tmp_path)
    for splitter in ("best", "random"):
        tree = partial(arboost.DecisionTreeRegressor, categorical_features=[0, 1, 2])
        assert_same(lambda device, s=splitter: tree(splitter=s, device=device), X, y, tmp_path)  # noqa: B023
    boosted = partial(arboost.AdaBoostRegressor, n_estimators=2, max_depth=4, verbose=0)
    assert_same(
        lambda device: boosted(categorical_features=[0, 1, 2], device=device), X, y, tmp_path
    )


@pytest.mark.skipif(emulated() is None, reason="counts of the emulator")
@pytest.mark.parametrize("forest", list(FORESTS))
def test_rows_and_histograms_stay_on_the_device(forest):
    """A tree is copied to the host: neither leaves and samples of rows, nor histograms."""
    rows, n_trees = 20_000, 4
    X, y = table_of_levels(rows)
    data = arboost.Dataset(X, categorical_features=[0, 1, 2])
    model = FORESTS[forest][0](
        n_estimators=1, max_depth=5, bootstrap=True, verbose=0, n_jobs=1, device="cuda"
    )

    def copied(n_estimators):
        before = emulated().emulator_sent_bytes(), emulated().emulator_fetched_bytes()
        model.set_params(n_estimators=n_estimators).fit(data, y)
        after = emulated().emulator_sent_bytes(), emulated().emulator_fetched_bytes()
        return np.subtract(after, before)

    sent, fetched = (copied(1 + n_trees) - copied(1)) / n_trees
    assert sent < rows / 10
    assert fetched < 4 * rows


def test_many_rows(tmp_path):
    X, y = table(33_000)
    labels = y.astype(int) % 2
    assert_same(
        lambda device: arboost.RandomForestClassifier(
            n_estimators=1, max_depth=2, bootstrap=False, verbose=0, device=device
        ),
        X,
        labels,
        tmp_path,
    )


def test_sparse_and_shared_columns(tmp_path):
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(7)
    X = np.where(rng.random((ROWS, 12)) < 0.1, rng.integers(1, 6, (ROWS, 12)), 0).astype(float)
    y = X[:, 0] + X[:, 3] + rng.integers(0, 3, ROWS)
    for given in (X, sparse.csr_array(X)):
        assert_same(forest, given, y, tmp_path)


@pytest.mark.parametrize("splitter", ["best", "random"])
def test_decision_trees(splitter, tmp_path):
    X, y = table(100)
    for make, target in (
        (arboost.DecisionTreeRegressor, y),
        (arboost.DecisionTreeClassifier, y.astype(int)),
    ):
        assert_same(
            lambda device, make=make: make(splitter=splitter, device=device), X, target, tmp_path
        )


@pytest.mark.parametrize(
    "params",
    [{}, {"max_depth": 3}, {"max_leaves": 5}, {"resample": True, "oob_score": True}],
    ids=str,
)
def test_adaboost(params, tmp_path):
    X, y = table()
    some = {"n_estimators": 3, "verbose": 0} | params
    assert_same(
        lambda device: arboost.AdaBoostClassifier(**some, device=device),
        X,
        y.astype(int) % 3,
        tmp_path,
    )
    assert_same(lambda device: arboost.AdaBoostRegressor(**some, device=device), X, y, tmp_path)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_adaboost_by_errors(n_classes, tmp_path):
    X, y = table()
    params = {"n_estimators": 3, "criterion": "error", "max_depth": 2, "verbose": 0}
    assert_same(
        lambda device: arboost.AdaBoostClassifier(**params, device=device),
        X,
        y.astype(int) % n_classes,
        tmp_path,
    )


def test_members_have_devices(tmp_path):
    X, y = table()
    tree = arboost.DecisionTreeRegressor
    assert_same(
        lambda device: arboost.BaggingRegressor(
            tree(max_depth=4, device=device), n_estimators=2, verbose=0
        ),
        X,
        y,
        tmp_path,
    )
    predicted = [
        arboost.AdaBoostRegressor(tree(max_depth=2, device=device), n_estimators=2, verbose=0)
        .fit(X, y)
        .predict(X)
        for device in ("cpu", "cuda")
    ]
    assert np.array_equal(*predicted)


@pytest.mark.parametrize("params", [{"oob_score": True}, {"quantiles": True}, {"max_depth": 3}])
@pytest.mark.parametrize("make", ["random forest", "extra trees"])
def test_forest_does_not_depend_on_threads(make, params, tmp_path):
    some = {"n_estimators": 4, "bootstrap": True, "verbose": 0, "device": "cuda"} | params
    X, y = table()
    files = {
        tuple(results(FORESTS[make][0](**some, n_jobs=n_jobs).fit(X, y), tmp_path))
        for n_jobs in (1, 2, 4)
    }
    assert len(files) == 1


def test_warm_start_may_change_its_device(tmp_path):
    X, y = table()

    def fit(first, second):
        model = forest(first, warm_start=True).fit(X, y)
        return model.set_params(n_estimators=3, device=second).fit(X, y)

    assert results(fit("cpu", "cuda"), tmp_path) == results(fit("cuda", "cpu"), tmp_path)


def test_absolute_error_and_exact_trees_name_themselves():
    X, y = table()
    with pytest.raises(arboost.DeviceError, match='criterion="absolute_error" does not run'):
        forest("cuda", criterion="absolute_error").fit(X, y)
    with pytest.raises(arboost.DeviceError, match='tree_method="exact" does not run'):
        forest("cuda", tree_method="exact").fit(X, y)


@pytest.mark.parametrize("forest", list(FORESTS))
def test_a_bin_for_each_value(forest, tmp_path):
    """More values than 255 bins tell apart."""
    X = np.random.default_rng(2).permutation(np.arange(400.0)).reshape(-1, 1)
    params = {"n_estimators": 1, "verbose": 0, "bootstrap": False}
    assert_same(
        lambda device: FORESTS[forest][1](**params, device=device), X, np.arange(400) % 2, tmp_path
    )
    model = FORESTS[forest][1](**params, device="cuda").fit(X, np.arange(400) % 2)
    assert model.model_.params["max_bins"] == 65_535
