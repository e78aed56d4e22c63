"""Determinism: the same data, parameters and seed give the same model file, byte for byte."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from scipy import sparse

from arboost import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    Dataset,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

# Enough rows for several threads, for gradients stored with the row indices, and for bin edges from
# a sample of the rows.
ROWS = 36_000
NAMES = ["a", "b", "c", "d", "e"]


def make_table(n=ROWS):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, len(NAMES))).astype(np.float32)
    X[:, 3] = np.round(X[:, 3] * 2)
    X[rng.random(X.shape) < 0.05] = np.nan
    score = np.nan_to_num(X[:, 0] * X[:, 1] + X[:, 3])
    return X, (score + rng.normal(size=n)).astype(np.float64)


X, TARGET = make_table()
LABELS = np.digitize(TARGET, [-1.0, 1.0])

MODELS = {
    "regressor": (GradientBoostingRegressor(n_estimators=4), TARGET),
    "binary, best first": (
        GradientBoostingClassifier(
            n_estimators=4, grow_policy="leafwise", max_depth=None, max_leaves=40
        ),
        LABELS > 0,
    ),
    "three classes": (GradientBoostingClassifier(n_estimators=2), LABELS),
    "vector leaves": (
        GradientBoostingClassifier(n_estimators=3, multi_strategy="multi_output_tree"),
        LABELS,
    ),
    "counted leaves": (GradientBoostingRegressor(n_estimators=3, min_samples_leaf=30), TARGET),
    "two-byte codes": (GradientBoostingRegressor(n_estimators=2, max_bins=1000), TARGET),
    "exact": (GradientBoostingRegressor(n_estimators=2, tree_method="exact"), TARGET),
    "approximate": (GradientBoostingRegressor(n_estimators=3, tree_method="approx"), TARGET),
    "approximate by node": (
        GradientBoostingClassifier(
            n_estimators=2, tree_method="approx", sketch_scope="local", sketch_eps=0.02
        ),
        LABELS > 0,
    ),
    "sampled": (
        GradientBoostingClassifier(
            n_estimators=4, subsample=0.3, colsample_bytree=0.7, colsample_bynode=0.7
        ),
        LABELS,
    ),
    "sampled by gradient": (
        GradientBoostingClassifier(
            n_estimators=4, subsample=0.2, sampling_method="gradient_based", num_parallel_tree=2
        ),
        LABELS > 0,
    ),
    "one-side sampled": (
        GradientBoostingClassifier(n_estimators=4, learning_rate=0.5, sampling_method="goss"),
        LABELS,
    ),
    "Friedman": (GradientBoostingClassifier(n_estimators=3, boosting="gradient"), LABELS),
    "absolute error": (GradientBoostingRegressor(n_estimators=3, loss="absolute_error"), TARGET),
    "Huber": (GradientBoostingRegressor(n_estimators=3, loss="huber", boosting="gradient"), TARGET),
    "Tweedie": (GradientBoostingRegressor(n_estimators=3, loss="tweedie"), np.exp(TARGET / 4)),
    "quantiles": (
        GradientBoostingRegressor(n_estimators=2, loss="quantile", alpha=[0.1, 0.9]),
        TARGET,
    ),
    "constrained": (
        GradientBoostingRegressor(
            n_estimators=3, monotone_constraints=[1, 0, 0, -1, 0], interaction_constraints=[[0, 1]]
        ),
        TARGET,
    ),
    "steps by line search": (
        GradientBoostingRegressor(
            n_estimators=6, boosting="gradient", line_search="round", loss="huber", subsample=0.7
        ),
        TARGET,
    ),
    "dropped rounds": (GradientBoostingRegressor(n_estimators=6, rate_drop=0.5), TARGET),
    "parallel trees": (
        GradientBoostingRegressor(n_estimators=3, num_parallel_tree=2, subsample=0.5),
        TARGET,
    ),
    "weighted dropout": (
        GradientBoostingClassifier(
            n_estimators=5, rate_drop=0.5, sample_type="weighted", normalize_type="forest"
        ),
        LABELS,
    ),
    "stopped early": (
        GradientBoostingClassifier(n_estimators=30, learning_rate=1.0, n_iter_no_change=2),
        LABELS,
    ),
    "forest of numbers": (RandomForestRegressor(n_estimators=5, max_samples=0.2), TARGET),
    "forest of two classes": (
        RandomForestClassifier(n_estimators=5, class_weight="balanced_subsample"),
        LABELS > 0,
    ),
    "forest of numbers, out of bag": (
        RandomForestRegressor(n_estimators=40, max_samples=0.1, max_depth=4, oob_score=True),
        TARGET,
    ),
    "forest of classes, out of bag": (
        RandomForestClassifier(n_estimators=40, max_samples=0.1, max_depth=4, oob_score=True),
        LABELS,
    ),
    "forest of three classes": (
        RandomForestClassifier(n_estimators=3, max_leaf_nodes=200),
        LABELS,
    ),
    "extra trees": (ExtraTreesClassifier(n_estimators=3, min_samples_leaf=5), LABELS),
    "full extra trees": (ExtraTreesClassifier(n_estimators=3), LABELS > 0),
    "extra trees of numbers": (ExtraTreesRegressor(n_estimators=3, max_features=0.2), TARGET),
    "trees of absolute errors": (
        RandomForestRegressor(
            n_estimators=3, criterion="absolute_error", max_samples=0.05, min_samples_leaf=5
        ),
        TARGET,
    ),
    "entropy": (RandomForestClassifier(n_estimators=2, criterion="entropy"), LABELS > 0),
    "error": (RandomForestClassifier(n_estimators=2, criterion="error"), LABELS),
    "gain ratio": (RandomForestClassifier(n_estimators=2, criterion="gain_ratio"), LABELS),
    "AdaBoost by errors": (AdaBoostClassifier(n_estimators=3, criterion="error"), LABELS > 0),
    "decision tree": (DecisionTreeRegressor(min_samples_leaf=20), TARGET),
    "AdaBoost": (AdaBoostClassifier(n_estimators=6), LABELS > 0),
    "AdaBoost, three classes": (AdaBoostClassifier(n_estimators=4, max_depth=3), LABELS),
    "real AdaBoost": (AdaBoostClassifier(n_estimators=4, algorithm="real", max_depth=2), LABELS),
    "gentle AdaBoost": (AdaBoostClassifier(n_estimators=4, algorithm="gentle"), LABELS > 0),
    "AdaBoost that draws": (
        AdaBoostClassifier(n_estimators=4, resample=True, oob_score=True, max_depth=2),
        LABELS,
    ),
    "AdaBoost, stopped early": (
        AdaBoostClassifier(n_estimators=15, n_iter_no_change=2, max_depth=2),
        LABELS,
    ),
    "R2": (AdaBoostRegressor(n_estimators=4), TARGET),
    "R2 that draws": (
        AdaBoostRegressor(n_estimators=4, loss="exponential", resample=True, oob_score=True),
        TARGET,
    ),
    "R2 by means": (
        AdaBoostRegressor(n_estimators=4, aggregation="mean", n_iter_no_change=2),
        TARGET,
    ),
    "R2, exact": (
        AdaBoostRegressor(n_estimators=2, loss="square", tree_method="exact"),
        TARGET,
    ),
}


def digest(model, data, y, tmp_path, **params):
    path = tmp_path / "model.arb"
    model.__class__(**{**model.get_params(), **params}).fit(data, y).save(path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", MODELS)
def test_threads(name, tmp_path):
    model, y = MODELS[name]
    digests = {digest(model, X, y, tmp_path, n_jobs=n_jobs) for n_jobs in (1, 2, 4)}
    assert len(digests) == 1


@pytest.mark.parametrize("name", MODELS)
def test_memory_order_and_precision(name, tmp_path):
    """float32 values are exact in float64: the same table in other memory layouts."""
    model, y = MODELS[name]
    every_second = np.repeat(X, 2, axis=1)[:, ::2]
    tables = [X, np.asfortranarray(X), X.astype(np.float64), every_second, X[::-1][::-1]]
    assert len({digest(model, table, y, tmp_path) for table in tables}) == 1


@pytest.mark.parametrize("name", MODELS)
def test_weights(name, tmp_path):
    """Weighted quantiles and gradients, and rows of weight 0, for any number of threads."""
    model, y = MODELS[name]
    weight = np.random.default_rng(1).integers(0, 4, ROWS) / 3

    def weighted(table, n_jobs):
        path = tmp_path / "model.arb"
        params = {**model.get_params(), "n_jobs": n_jobs}
        model.__class__(**params).fit(table, y, sample_weight=weight).save(path)
        return path.read_bytes()

    one = weighted(X, 1)
    assert all(weighted(X, n_jobs) == one for n_jobs in (2, 4))
    assert weighted(np.asfortranarray(X), 2) == one
    kept = weight > 0
    path = tmp_path / "kept.arb"
    fresh = model.__class__(**model.get_params())
    fresh.fit(X[kept], y[kept], sample_weight=weight[kept]).save(path)
    assert path.read_bytes() == one


CURVES = [
    "regressor",
    "three classes",
    "dropped rounds",
    "Huber",
    "steps by line search",
    "AdaBoost",
    "R2",
]


@pytest.mark.parametrize("name", CURVES)
def test_curves(name, tmp_path):
    """Files keep the metrics of all rounds on the training rows and on others."""
    model, y = MODELS[name]
    files = set()
    for n_jobs in (1, 2, 4):
        fresh = model.__class__(**{**model.get_params(), "n_jobs": n_jobs})
        fresh.fit(X[:30_000], y[:30_000], eval_set=[(X[:30_000], y[:30_000]), (X, y)])
        (run,) = fresh.model_.provenance["history"]["runs"]
        assert [curve["set"] for curve in run["curves"]] == ["train", "validation"]
        fresh.save(tmp_path / "model.arb")
        files.add((tmp_path / "model.arb").read_bytes())
    assert len(files) == 1


def real_tables():
    """Return tables with set splits, target encoding, shared bytes and sparse storage."""
    rng = np.random.default_rng(3)
    levels = rng.integers(0, [30, 4000], size=(ROWS, 2))
    strings = np.char.add("level ", levels.astype(str)).astype(object)
    flags = (rng.integers(0, 12, ROWS)[:, None] == np.arange(12)).astype(np.float64)
    counts = sparse.csr_array(np.where(rng.random((ROWS, 40)) < 0.02, rng.integers(1, 9, 40), 0))
    return {"few and many levels": strings, "flags that share a byte": flags, "sparse": counts}


REAL_TABLES = real_tables()


@pytest.mark.parametrize("kind", REAL_TABLES)
@pytest.mark.parametrize("rounds", [4, "auto"])
def test_threads_on_real_tables(kind, rounds, tmp_path):
    """The automatic fit finds its number of rounds, and samples rows and columns."""
    model = GradientBoostingClassifier(n_estimators=rounds, learning_rate=0.5)
    y = LABELS if rounds == 4 else LABELS > 0
    digests = {digest(model, REAL_TABLES[kind], y, tmp_path, n_jobs=n) for n in (1, 2, 4)}
    assert len(digests) == 1


def frames():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    columns = {name: X[:, j] for j, name in enumerate(NAMES)}
    whole = pyarrow.table({name: pyarrow.array(v, from_pandas=True) for name, v in columns.items()})
    third = ROWS // 3
    chunked = pyarrow.concat_tables(
        [whole.slice(0, 7), whole.slice(7, third), whole.slice(7 + third)]
    )
    return {
        "pandas": pandas.DataFrame(columns),
        "pandas, nullable": pandas.DataFrame(columns).convert_dtypes(),
        "Polars": polars.DataFrame(columns),
        "Polars, nulls": polars.DataFrame(columns).fill_nan(None),
        "Arrow": whole,
        "Arrow, chunked": chunked,
    }


@pytest.mark.parametrize("name", ["binary, best first", "AdaBoost", "R2 that draws"])
def test_kinds_of_tables(name, tmp_path):
    model, y = MODELS[name]
    digests = {kind: digest(model, frame, y, tmp_path) for kind, frame in frames().items()}
    assert len(set(digests.values())) == 1, digests


@pytest.mark.parametrize("name", ["three classes", "AdaBoost, three classes"])
def test_dataset_and_table(name, tmp_path):
    model, y = MODELS[name]
    assert digest(model, Dataset(X, y), None, tmp_path) == digest(model, X, y, tmp_path)


def test_edges_from_a_sample_of_rows(tmp_path):
    """The sample of rows for the bin edges depends neither on threads nor on chunks."""
    pyarrow = pytest.importorskip("pyarrow")
    long, y = make_table(250_000)
    model = GradientBoostingRegressor(n_estimators=1, max_depth=3)
    columns = [pyarrow.array(long[:, j], from_pandas=True) for j in range(5)]
    whole = pyarrow.table(columns, names=NAMES)
    pieces = pyarrow.concat_tables([whole.slice(0, 100_001), whole.slice(100_001)])
    one = digest(model, whole, y, tmp_path, n_jobs=1)
    assert one == digest(model, pieces, y, tmp_path, n_jobs=4)


def test_the_seed_is_the_only_source_of_chance(tmp_path):
    """From 32,768 rows on the rounding of gradients is random: only it depends on the seed."""
    model, y = MODELS["regressor"]
    first = digest(model, X, y, tmp_path, random_state=1)
    assert first == digest(model, X, y, tmp_path, random_state=1)
    assert first != digest(model, X, y, tmp_path, random_state=2)


def test_row_order_does_not_change_small_models():
    """Sums are exact, so the order of the rows has no effect."""
    small, y = X[:3000], TARGET[:3000]
    order = np.random.default_rng(0).permutation(len(y))
    forests = [
        GradientBoostingRegressor(n_estimators=3, base_score=0.0).fit(a, b).model_.forest
        for a, b in ((small, y), (small[order], y[order]))
    ]
    for name in ("feature", "threshold", "left", "value"):
        np.testing.assert_array_equal(getattr(forests[0], name), getattr(forests[1], name))
