"""Fits on batches: the bytes of the model are those of the fit on the whole table."""

import numpy as np
import pandas as pd
import pytest

import arboost
from arboost import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    Dataset,
    DecisionTreeClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from arboost.data.memory import MemoryPlan
from support.streamed import N_ROWS, features, frame, model_bytes, written

pyarrow = pytest.importorskip("pyarrow")

FITS = [
    (GradientBoostingRegressor(n_estimators=8), "number"),
    (GradientBoostingRegressor(n_estimators=4, max_bins=700, bundling=False), "number"),
    (GradientBoostingRegressor(n_estimators=4, tree_method="approx"), "number"),
    (GradientBoostingClassifier(n_estimators=3, tree_method="approx", sketch_eps=0.1), "three"),
    (
        GradientBoostingClassifier(
            n_estimators=3, tree_method="approx", sketch_scope="local", sketch_eps=0.1
        ),
        "three",
    ),
    (
        GradientBoostingRegressor(
            n_estimators=9, tree_method="approx", subsample=0.5, n_iter_no_change=3, sketch_eps=0.03
        ),
        "number",
    ),
    (
        GradientBoostingRegressor(
            n_estimators=3, tree_method="approx", sketch_scope="local", loss="absolute_error"
        ),
        "number",
    ),
    (GradientBoostingClassifier(n_estimators=6, subsample=0.7), "two"),
    (GradientBoostingClassifier(n_estimators=4, max_bins=20), "three"),
    (GradientBoostingClassifier(preset="fast"), "two"),
    (GradientBoostingRegressor(n_estimators=9, n_iter_no_change=3), "number"),
    (GradientBoostingClassifier(n_estimators=9, n_iter_no_change=3), "three"),
    (GradientBoostingClassifier(n_estimators=4, class_weight="balanced"), "three"),
    (GradientBoostingClassifier(n_estimators=4, scale_pos_weight=3.0), "two"),
    (RandomForestClassifier(n_estimators=3, max_depth=5, class_weight="balanced"), "three"),
    (
        RandomForestClassifier(
            n_estimators=3, max_depth=5, class_weight="balanced_subsample", bootstrap=False
        ),
        "two",
    ),
    (AdaBoostClassifier(n_estimators=9, n_iter_no_change=2), "two"),
    (AdaBoostClassifier(n_estimators=3, class_weight={0: 1.0, 1: 2.0, 2: 3.0}), "three"),
    (RandomForestClassifier(n_estimators=4, max_depth=6), "three"),
    (ExtraTreesRegressor(n_estimators=3, max_depth=5), "number"),
    (AdaBoostClassifier(n_estimators=5), "three"),
    (AdaBoostRegressor(n_estimators=4), "number"),
    (DecisionTreeClassifier(max_depth=5), "two"),
]


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("model", "target"), FITS, ids=lambda one: str(one)[:60])
def test_model_is_that_of_the_whole_table(model, target, weighted, tmp_path):
    table = features(frame(), target)
    weight = table["weight"] if weighted else None
    if not weighted:
        table = table.drop(columns="weight")
    X = table.drop(columns="weight") if weighted else table
    model.fit(X, target, weight)
    expected = model_bytes(model, tmp_path)
    pattern = written(table, tmp_path, [400, 900, 200])
    model.fit(pattern, target, "weight" if weighted else None)
    assert model_bytes(model, tmp_path) == expected


@pytest.mark.parametrize("batch_rows", [64, 100, 333, 1000, 5000])
@pytest.mark.parametrize("sizes", [[N_ROWS], [1, 1498, 1], [500] * 3], ids=str)
@pytest.mark.usefixtures("place")
def test_batches_and_files_make_no_difference(batch_rows, sizes, tmp_path, monkeypatch):
    table = features(frame(), "three")
    model = GradientBoostingClassifier(n_estimators=3)
    expected = model_bytes(
        model.fit(table.drop(columns="weight"), "three", table["weight"]), tmp_path
    )
    monkeypatch.setattr(MemoryPlan, "batch_rows", batch_rows)
    if batch_rows < N_ROWS:
        monkeypatch.setattr(MemoryPlan, "block_rows", batch_rows // 64 * 64)
    pattern = written(table, tmp_path, sizes)
    model.fit(pattern, "three", "weight", memory_limit="1GB")
    assert model_bytes(model, tmp_path) == expected


def test_large_samples(tmp_path):
    """Beyond 200,000 rows the edges come from a sample."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(260_000, 3))
    X[:, 1] = rng.integers(0, 100, len(X))
    y, weight = X[:, 0] + X[:, 1] / 50, rng.random(len(X)) + 0.5
    model = GradientBoostingRegressor(n_estimators=2, max_depth=3, max_bins=63)
    expected = model_bytes(model.fit(X, y, weight), tmp_path)

    def batches():
        for rows in np.array_split(np.arange(len(X)), 7):
            yield X[rows], y[rows], weight[rows]

    assert model_bytes(model.fit(batches), tmp_path) == expected
    assert model_bytes(model.fit(lambda: [X], y, weight), tmp_path) == expected


def test_dataset_is_that_of_the_whole_table(tmp_path):
    table = features(frame(), "number")
    pattern = written(table, tmp_path, [700, 800])
    data = Dataset.from_files(pattern, "number", weight="weight", max_bins=63)
    X = table.drop(columns=["number", "weight"])
    whole = Dataset(X, table["number"], sample_weight=table["weight"], max_bins=63)
    np.testing.assert_array_equal(data.binned.codes.to_numpy(), whole.binned.codes.to_numpy())
    np.testing.assert_array_equal(data.y, whole.y)
    np.testing.assert_array_equal(data.sample_weight, whole.sample_weight)
    assert data.schema == whole.schema
    assert data.schema.target == "number"
    some = Dataset.from_files(pattern, "number", columns=["few", "real"])
    assert some.schema.names == ("few", "real")


def test_types_of_batches(tmp_path):
    """Columns without values in a batch take the type of the others."""
    rows = [
        {"a": [None, None], "b": [1, 2], "y": [0.0, 1.0]},
        {"b": [3.5, 4.0], "a": ["x", None], "y": [2.0, 3.0]},
        {"a": ["y", "x"], "b": [None, None], "y": [4.0, 5.0]},
    ] * 20
    frames = [pd.DataFrame(one) for one in rows]
    whole = pd.concat([pd.DataFrame(one)[["a", "b", "y"]] for one in rows], ignore_index=True)
    whole["b"] = whole["b"].astype(float)
    model = GradientBoostingRegressor(n_estimators=3, min_samples_leaf=1)
    expected = model_bytes(model.fit(whole, "y"), tmp_path)
    assert model_bytes(model.fit(lambda: frames, "y"), tmp_path) == expected


def test_dictionaries_of_batches(tmp_path):
    """Batches may have dictionaries of their own."""
    rng = np.random.default_rng(3)
    names = np.array(["d", "a", "c", "b", "f"])[rng.integers(0, 5, 900)]
    y = rng.normal(size=900) + (names == "c")
    parts = [
        pyarrow.record_batch(
            {"x": pyarrow.array(names[rows]).dictionary_encode(), "y": pyarrow.array(y[rows])}
        )
        for rows in np.array_split(np.arange(900), 4)
    ]
    model = GradientBoostingRegressor(n_estimators=3)
    whole = pd.DataFrame({"x": pd.Categorical(names), "y": y})
    expected = model_bytes(model.fit(whole, "y"), tmp_path)
    assert model_bytes(model.fit(lambda: parts, "y"), tmp_path) == expected


def test_named_categories_and_missing_numbers(tmp_path):
    rng = np.random.default_rng(4)
    X = rng.integers(0, 9, (1000, 3)).astype(np.float64)
    y = X[:, 0] % 3 + rng.normal(size=1000)
    model = GradientBoostingRegressor(n_estimators=3, categorical_features=[0], missing=4)
    expected = model_bytes(model.fit(X, y), tmp_path)
    batches = [(X[:300], y[:300]), (X[300:], y[300:])]
    assert model_bytes(model.fit(lambda: batches), tmp_path) == expected


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("encoding", ["groups", "mean"])
@pytest.mark.parametrize("target", ["number", "two", "three"])
def test_categories_of_many_levels(encoding, target, tmp_path):
    table = features(frame(), target)
    rng = np.random.default_rng(6)
    table["many"] = [f"level {one}" for one in rng.zipf(1.3, N_ROWS) % 400]
    model = (GradientBoostingRegressor if target == "number" else GradientBoostingClassifier)(
        n_estimators=4, category_encoding=encoding
    )
    expected = model_bytes(
        model.fit(table.drop(columns="weight"), target, table["weight"]), tmp_path
    )
    pattern = written(table, tmp_path, [600, 900])
    assert model_bytes(model.fit(pattern, target, "weight"), tmp_path) == expected


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "params", [{"preset": "fast"}, {"n_estimators": 9, "n_iter_no_change": 3}], ids=str
)
@pytest.mark.parametrize("encoding", ["groups", "mean"])
def test_held_out_rows_with_many_levels(params, encoding, tmp_path):
    """Held-out rows are encoded again, by the training rows alone."""
    table = features(frame(), "number").drop(columns="weight")
    rng = np.random.default_rng(6)
    table["many"] = [f"level {one}" for one in rng.zipf(1.3, N_ROWS) % 400]
    model = GradientBoostingRegressor(category_encoding=encoding, max_depth=3, **params)
    model.fit(table, "number")
    expected = model.evals_result_, model_bytes(model, tmp_path)
    model.fit(written(table, tmp_path, [600, 900]), "number")
    assert (model.evals_result_, model_bytes(model, tmp_path)) == expected


def test_unique_strings_are_ignored(tmp_path):
    table = features(frame(), "number").assign(key=[f"k{i}" for i in range(N_ROWS)])
    pattern = written(table, tmp_path, [600, 900])
    model = GradientBoostingRegressor(n_estimators=2)
    with pytest.warns(arboost.DataWarning, match="No string occurs twice"):
        expected = model_bytes(model.fit(table, "number"), tmp_path)
    with pytest.warns(arboost.DataWarning, match="No string occurs twice"):
        model.fit(pattern, "number")
    assert model_bytes(model, tmp_path) == expected


@pytest.mark.usefixtures("place")
def test_bundles_that_later_rows_break(tmp_path):
    """Rows outside the sample may conflict in a bundle: the plan changes, the model does not."""
    n_rows = 4000
    kind = np.arange(n_rows) % 5
    X = (kind[:, None] == np.arange(3)) * (np.arange(n_rows) % 2 == 0)[:, None] * 1.0
    X[-1], X[-500, 0] = [1.0, 1.0, np.nan], np.nan
    y = X @ [1.0, 2.0, 3.0]
    y[np.isnan(y)] = 0.0
    model = GradientBoostingRegressor(n_estimators=3, min_samples_leaf=1)
    expected = model_bytes(model.fit(X, y), tmp_path)
    batches = [(X[:1000], y[:1000]), (X[1000:3000], y[1000:3000]), (X[3000:], y[3000:])]
    assert model_bytes(model.fit(lambda: batches), tmp_path) == expected


@pytest.mark.parametrize("cache", [None, "cache"])
def test_groups_are_a_column(cache, tmp_path):
    table = features(frame(), "number")
    table["group"] = [f"g{one}" for one in np.random.default_rng(8).integers(0, 30, N_ROWS)]
    model = GradientBoostingRegressor(preset="fast", validation_split="group")
    X = table.drop(columns=["weight", "group"])
    model.fit(X, "number", table["weight"], groups=table["group"])
    expected = model_bytes(model, tmp_path)
    pattern = written(table, tmp_path, [700, 800])
    cache = None if cache is None else tmp_path / cache
    for _ in range(2):
        model.fit(pattern, "number", "weight", groups="group", cache=cache)
        assert model_bytes(model, tmp_path) == expected
    data = Dataset.from_files(pattern, "number", weight="weight", groups="group")
    model.fit(data, groups=data.groups)
    assert model_bytes(model, tmp_path) == expected
    with pytest.raises(ValueError, match="groups='grp' names no column of X"):
        model.fit(pattern, "number", groups="grp")


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("target", ["number", "three"])
def test_evaluation_sets_in_batches(target, tmp_path):
    """An evaluation set may be another source, whatever the training rows are."""
    table, other = features(frame(), target), features(frame(400, seed=1), target)
    many = np.random.default_rng(6).integers(0, 300, N_ROWS + 400)
    table["many"] = [f"level {one}" for one in many[:N_ROWS]]
    other["many"] = [f"level {one}" for one in many[N_ROWS:]]
    (tmp_path / "train").mkdir()
    (tmp_path / "other").mkdir()
    pattern = written(table, tmp_path / "train", [N_ROWS])
    others = written(other, tmp_path / "other", [100, 300])
    cls = GradientBoostingRegressor if target == "number" else GradientBoostingClassifier
    model = cls(n_estimators=6, max_depth=3)
    X, X_val = table.drop(columns="weight"), other.drop(columns="weight")
    sets = [(X, target, table["weight"]), (X_val, target, other["weight"])]
    model.fit(X, target, table["weight"], eval_set=sets)
    expected = model.evals_result_, model_bytes(model, tmp_path)
    sources = [(pattern, target, "weight"), (others, target, "weight")]
    model.fit(pattern, target, "weight", eval_set=sources)
    assert (model.evals_result_, model_bytes(model, tmp_path)) == expected
    model.fit(pattern, target, "weight", eval_set=[sources[0], sets[1]])
    assert (model.evals_result_, model_bytes(model, tmp_path)) == expected
    model.fit(X, target, table["weight"], eval_set=[sets[0], (lambda: [other], *sources[1][1:])])
    assert (model.evals_result_, model_bytes(model, tmp_path)) == expected
