"""Ordered categories: features whose levels are split by thresholds on their order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import arboost
from arboost import GradientBoostingRegressor, SchemaError
from arboost.data.levels import Levels, merged_order
from arboost.data.table import ingest
from arboost.models.files.model_file import from_bytes, to_bytes

SIZES = ["small", "medium", "large", "huge"]  # not in the order of their bytes
DTYPE = pd.CategoricalDtype([*SIZES, "vast"], ordered=True)  # no row is vast
N_ROWS = 600


def make_table():
    rng = np.random.default_rng(3)
    ranks = rng.integers(0, len(SIZES), N_ROWS)
    values = np.array(SIZES, object)[ranks]
    values[rng.random(N_ROWS) < 0.1] = None
    X = pd.DataFrame({"size": values, "x": rng.normal(size=N_ROWS)})
    return X, ranks * 2.0 + X["x"].to_numpy()


X, Y = make_table()
ORDERED = X.astype({"size": DTYPE})


def model_of(X, **params):
    return GradientBoostingRegressor(n_estimators=5, max_depth=3, **params).fit(X, Y)


def libraries():
    yield "pandas", ORDERED
    object_index = pd.Index(DTYPE.categories, dtype=object)
    objects = pd.Categorical(X["size"], categories=object_index, ordered=True)
    yield "pandas objects", ORDERED.assign(size=objects)
    table = pa.Table.from_pandas(ORDERED)
    yield "arrow", table
    yield "arrow chunks", pa.concat_tables([table[:100], table[100:]])
    enum = pl.Enum(DTYPE.categories.tolist())
    yield "polars", pl.from_pandas(X).with_columns(pl.col("size").cast(enum))


@pytest.mark.parametrize(("name", "table"), list(libraries()))
def test_every_library_gives_the_order(name, table):
    (levels, _) = ingest(table).schema.levels
    assert [levels.label(code) for code in levels.by_rank] == [*SIZES, "vast"], name
    assert not ingest(table).schema.is_category(0)
    assert to_bytes(model_of(table).model_) == to_bytes(model_of(ORDERED).model_)


def test_splits_are_those_of_ranks():
    ranks = X["size"].map({size: float(rank) for rank, size in enumerate(SIZES)})
    forest, expected = model_of(ORDERED).model_.forest, model_of(X.assign(size=ranks)).model_.forest
    np.testing.assert_array_equal(forest.threshold, expected.threshold)
    np.testing.assert_array_equal(forest.value, expected.value)
    assert not forest.has_sets


def test_rows_to_predict():
    model = model_of(ORDERED)
    # By value, whatever the type; a level that no row had in fit has its place in the order.
    np.testing.assert_array_equal(model.predict(X), model.predict(ORDERED))
    rows = pd.DataFrame({"size": ["vast", "huge", "unknown", None], "x": 0.0})
    vast, huge, unknown, missing = model.predict(rows)
    assert vast == huge
    assert unknown == missing
    one_row = [model.predict({"size": size, "x": 0.0})[0] for size in ("vast", "unknown")]
    assert one_row == [vast, unknown]


def test_numbers_have_the_order_of_their_categories():
    sizes = pd.Categorical([3, 1, 2, 1], categories=[2, 3, 1], ordered=True)
    table = ingest(pd.DataFrame({"size": sizes}))
    assert table.columns.read(0).tolist() == [1.0, 2.0, 0.0, 2.0]


def test_intervals_of_cut_are_ordered():
    frame = pd.DataFrame({"age": pd.cut([15, 30, 101, 70], [0, 20, 50, 100, 200])})
    assert ingest(frame).columns.read(0).tolist() == [0.0, 1.0, 3.0, 2.0]


def test_categorical_features_takes_the_order_away():
    named = model_of(ORDERED, categorical_features=["size"])
    assert named.model_.schema == model_of(X).model_.schema
    np.testing.assert_array_equal(named.predict(X), model_of(X).predict(X))


def test_many_ordered_levels_are_not_encoded_by_targets():
    names = [f"{i * 7919 % 1000:03}" for i in range(300)]
    table = ORDERED.assign(size=pd.Categorical(names * 2, categories=names, ordered=True))
    (levels, _) = model_of(table).model_.schema.levels
    assert not levels.is_encoded
    assert len(levels) == 300


def test_monotone_constraints():
    model = model_of(ORDERED, monotone_constraints={"size": -1})
    rows = pd.DataFrame({"size": DTYPE.categories, "x": 0.0})
    assert (np.diff(model.predict(rows)) <= 0).all()
    with pytest.raises(ValueError, match="or as an ordered category"):
        model_of(X, monotone_constraints={"size": -1})


@pytest.mark.parametrize("parts", [(N_ROWS,), (250, 0, 350)])
def test_files_give_the_bytes_of_memory(tmp_path, parts):
    expected = to_bytes(
        GradientBoostingRegressor(n_estimators=5).fit(ORDERED.assign(y=Y), "y").model_
    )
    table, first = pa.Table.from_pandas(ORDERED.assign(y=Y)), 0
    for number, size in enumerate(parts):
        parquet.write_table(table[first : first + size], tmp_path / f"{number}.parquet")
        first += size
    pattern = f"{tmp_path}/*.parquet"
    for n_jobs in (1, 2, 4):
        model = GradientBoostingRegressor(n_estimators=5, n_jobs=n_jobs).fit(pattern, "y")
        assert to_bytes(model.model_) == expected


class TestDictionariesOfBatches:
    def batches(self, *dictionaries):
        def make():
            for number, order in enumerate(dictionaries):
                rng = np.random.default_rng(number)
                values = rng.choice(order, 100)
                dtype = pd.CategoricalDtype(order, ordered=True)
                yield pd.DataFrame(
                    {"size": pd.Series(values, dtype=dtype), "x": rng.normal(size=100), "y": 1.0}
                )

        return make

    def fit(self, *dictionaries):
        return GradientBoostingRegressor(n_estimators=1).fit(self.batches(*dictionaries), "y")

    def test_parts_of_one_order_are_merged(self):
        model = self.fit(SIZES[1:], SIZES[:3]).model_
        (levels, _) = model.schema.levels
        assert [levels.label(code) for code in levels.by_rank] == SIZES

    @pytest.mark.parametrize(
        "orders", [(SIZES, SIZES[::-1]), (SIZES[:2], SIZES[2:])], ids=["against", "open"]
    )
    def test_orders_that_do_not_fit(self, orders):
        with pytest.raises(SchemaError, match="column 'size' of X have no single order"):
            self.fit(*orders)


def test_merged_order():
    assert merged_order([(3, 1), (1, 2)]) == (3, 1, 2)
    assert merged_order([(1, 2), (1, 3)]) is None
    assert merged_order([(1, 2), (2, 1)]) is None
    assert merged_order([(1, 2, 1)]) is None


def test_model_files_keep_the_order(tmp_path):
    model = model_of(ORDERED).model_
    assert from_bytes(to_bytes(model)).schema == model.schema
    for name in ("model.arb", "model.json"):
        model.save(tmp_path / name)
        loaded = arboost.load(tmp_path / name)
        assert to_bytes(loaded) == to_bytes(model)
        np.testing.assert_array_equal(loaded.predict(X), model.predict(ORDERED))


def test_damaged_ranks_are_refused():
    levels = Levels.ordered((b"b", b"a"))
    levels.validate()
    broken = Levels("string", levels.values, levels.offsets, ranks=np.array([1, 1], np.int32))
    with pytest.raises(ValueError, match="do not order their levels"):
        broken.validate()


class TestPictures:
    def test_trees_name_the_levels(self):
        model = GradientBoostingRegressor(n_estimators=1, max_depth=1).fit(ORDERED[["size"]], Y)
        assert "size <= medium" in model.tree_text(0)
        assert "size > medium" in model.tree_text(0)
        assert model.tree_table()["levels"][0] == ["small", "medium"]
        assert "ordered, 5 levels" in str(model.summary())

    def test_partial_dependence_has_the_order(self):
        dependence = model_of(ORDERED).partial_dependence(ORDERED, "size")
        assert list(dependence.grid[0]) == [*SIZES, "vast"]

    def test_description(self):
        line = arboost.describe(ORDERED).columns[0]
        assert line.use == "ordered: small, medium, large, huge, vast"
