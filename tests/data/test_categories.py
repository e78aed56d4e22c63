"""Categories: their columns, their levels, and level codes of new values."""

import pickle
import time
import warnings

import numpy as np
import pytest

import arboost
from arboost.backend import core
from arboost.data.levels import Levels
from arboost.data.schema import Schema
from arboost.data.table import ColumnOptions, ingest
from arboost.errors import DataWarning, ModelFormatError, SchemaError
from arboost.models.files.model_file import from_bytes, to_bytes

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

CITIES = ["Rom", "Āgra", None, "", "Rom", "Zürich", "rom", "🌍" * 9, "a" * 40]
SORTED = ["", "Rom", "Zürich", "a" * 40, "rom", "Āgra", "🌍" * 9]
CODES = [1, 5, np.nan, 0, 1, 2, 4, 6, 3]


def named(*features):
    return ColumnOptions(list(features))


def labels(levels):
    return [levels.label(code) for code in range(len(levels))]


def string_tables(values):
    """Yield tables of one column that all hold the same strings."""
    yield "numpy objects", np.array(values, dtype=object).reshape(-1, 1)
    yield "lists", [[one] for one in values]
    yield "pandas", pd.DataFrame({"a": values})
    yield "pandas objects", pd.DataFrame({"a": pd.Series(values, dtype=object)})
    for storage in ("python", "pyarrow"):
        dtype = pd.StringDtype(storage)
        yield f"pandas {storage}", pd.DataFrame({"a": pd.Series(values, dtype=dtype)})
    yield "pandas Arrow", pd.DataFrame({"a": pd.Series(values, dtype=pd.ArrowDtype(pa.string()))})
    backwards = [one for one in dict.fromkeys(reversed(values)) if one is not None]
    category = pd.Categorical(values, categories=["unused", *backwards])
    yield "pandas categories", pd.DataFrame({"a": category})
    plain = pd.Index(["unused", *backwards], dtype=object)
    yield "pandas object categories", pd.DataFrame({"a": pd.Categorical(values, categories=plain)})
    yield "polars", pl.DataFrame({"a": values})
    yield "polars categories", pl.DataFrame({"a": pl.Series(values, dtype=pl.Categorical)})
    for kind in ("string", "large_string", "string_view", "binary", "large_binary"):
        yield (
            f"arrow {kind}",
            pa.table({"a": pa.array(values, pa.string()).cast(getattr(pa, kind)())}),
        )
    for index in ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"):
        kind = pa.dictionary(getattr(pa, index)(), pa.string())
        array = pa.array(values).dictionary_encode()
        indices = array.indices.cast(getattr(pa, index)())
        array = pa.DictionaryArray.from_arrays(indices, array.dictionary)
        assert array.type == kind
        yield f"arrow dictionary of {index}", pa.table({"a": array})
    chunks = [pa.array(values[:4]).dictionary_encode(), pa.array(values[4:]).dictionary_encode()]
    yield "arrow dictionaries", pa.table({"a": pa.chunked_array(chunks)})
    yield "arrow slices", pa.table({"a": pa.array(["x", *values, "y"])[1:-1]})
    views = pa.array(["x" * 50, *values, "y"]).cast(pa.string_view())[1:-1]
    yield "arrow slices of views", pa.table({"a": views})


STRING_TABLES = list(string_tables(CITIES))


class TestLevels:
    @pytest.mark.parametrize(("name", "table"), STRING_TABLES, ids=[n for n, _ in STRING_TABLES])
    def test_same_levels_from_every_library(self, name, table):
        read = ingest(table)
        (levels,) = read.schema.levels
        assert labels(levels) == SORTED == sorted(SORTED, key=str.encode), name
        np.testing.assert_array_equal(read.columns.read(0), CODES)
        assert read.schema.categorical == (True,)
        assert levels == Levels.of_text(core.Text.of_objects(CITIES)[0])[0]
        again = ingest(table, read.schema)
        np.testing.assert_array_equal(again.columns.read(0), CODES)

    @pytest.mark.parametrize(("name", "table"), STRING_TABLES, ids=[n for n, _ in STRING_TABLES])
    def test_values_are_matched_whatever_holds_them(self, name, table):
        schema = ingest([["Rom"], ["rom"], ["Zürich"], ["Wien"]]).schema
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "X has feature names")
            codes = ingest(table, schema).columns.read(0)
        expected = [0, np.nan, np.nan, np.nan, 0, 2, 3, np.nan, np.nan]
        np.testing.assert_array_equal(codes, expected, name)

    def test_fixed_strings_of_numpy(self):
        for dtype in ("U3", "S3"):
            read = ingest(np.array([["b"], ["abc"], ["b"]], dtype=dtype))
            assert labels(read.schema.levels[0]) == ["abc", "b"]
        fixed = pa.array([b"xy", None, b"ab"], pa.binary(2))
        np.testing.assert_array_equal(
            ingest(pa.table({"a": fixed})).columns.read(0), [1, np.nan, 0]
        )

    def test_strings_that_are_no_unicode(self):
        read = ingest([["\ud800"], ["a"], ["\ud800"]])
        np.testing.assert_array_equal(read.columns.read(0), [1, 0, 1])

    def test_numbers_as_levels(self):
        table = pd.DataFrame({"a": [3, 1, 3, -7], "b": [0.5, np.nan, -0.0, 0.0]})
        read = ingest(table, options=named("a", "b"))
        assert [labels(one) for one in read.schema.levels] == [[-7.0, 1.0, 3.0], [0.0, 0.5]]
        np.testing.assert_array_equal(read.columns.read(0), [2, 1, 2, 0])
        np.testing.assert_array_equal(read.columns.read(1), [1, np.nan, 0, 0])

    @pytest.mark.parametrize(
        "categories",
        [[3, 1, 2], [0.5, 2.5, -1.0], [True, False], pd.to_datetime(["2024-01-02", "2024-01-01"])],
        ids=["integers", "floats", "booleans", "dates"],
    )
    def test_categories_of_numbers(self, categories):
        values = pd.Categorical.from_codes([1, -1, 0], categories=categories)
        read = ingest(pd.DataFrame({"a": values}))
        assert read.schema.levels[0].kind == "number"
        np.testing.assert_array_equal(
            read.columns.read(0),
            [1, np.nan, 0] if categories[1] > categories[0] else [0, np.nan, 1],
        )
        plain = ingest(pd.DataFrame({"a": list(values)}), read.schema)
        np.testing.assert_array_equal(plain.columns.read(0), read.columns.read(0))

    def test_categories_of_anything(self):
        cut = pd.cut(pd.Series([0.5, 2.5, np.nan, 1.5]), [0, 1, 2, 3])
        read = ingest(pd.DataFrame({"a": cut}))
        assert labels(read.schema.levels[0]) == ["(0, 1]", "(1, 2]", "(2, 3]"]
        np.testing.assert_array_equal(read.columns.read(0), [0, 2, np.nan, 1])
        mixed = pd.Categorical(["1", 1], categories=pd.Index(["1", 1], dtype=object))
        with pytest.raises(TypeError, match="'a' of X holds values of several kinds"):
            ingest(pd.DataFrame({"a": mixed}))

    def test_arrow_dictionaries_of_other_types(self):
        for array in (
            pa.array([3, None, 1]).dictionary_encode(),
            pa.array([3.0, None, 1.0], pa.float32()).dictionary_encode(),
            pa.array([3, None, 1]).cast(pa.decimal128(22, 2)).dictionary_encode(),
            pa.array([3, None, 1], pa.date32()).dictionary_encode(),
        ):
            read = ingest(pa.table({"a": array}))
            assert read.schema.levels[0].kind == "number", array.type
            np.testing.assert_array_equal(read.columns.read(0), [1, np.nan, 0])

    def test_columns_without_values(self):
        for dtype in ("category", "string", "string[pyarrow]"):
            read = ingest(pd.DataFrame({"a": pd.Series([None, None], dtype=dtype)}))
            assert len(read.schema.levels[0]) == 0
            np.testing.assert_array_equal(read.columns.read(0), [np.nan] * 2)
        assert len(ingest([[None], [None]]).schema.levels[0]) == 0

    def test_levels_can_be_copied_and_compared(self):
        levels, _ = Levels.of_text(core.Text.of_objects(CITIES)[0])
        text, _ = core.Text.of_objects(["Rom"])
        assert levels.codes_of_text(text).tolist() == [1]
        other = pickle.loads(pickle.dumps(levels))
        assert other == levels
        assert other.codes_of_text(text).tolist() == [1]
        assert levels != Levels.of_numbers(np.arange(7.0))[0]
        with pytest.raises(ValueError, match="read-only"):
            other.values[0] = 1

    def test_a_million_levels_are_fast(self):
        rng = np.random.default_rng(0)
        users = pa.array(rng.permutation(1_000_000)).cast(pa.string())
        table = pa.table({"user": users})
        start = time.process_time()
        read = ingest(table, options=named("user"))
        ingest(table, read.schema)
        assert time.process_time() - start < 5
        assert len(read.schema.levels[0]) == 1_000_000
        codes = read.columns.read(0).astype(int)
        place = np.argsort(users.to_numpy(zero_copy_only=False).astype("S7"))
        np.testing.assert_array_equal(codes[place], np.arange(1_000_000))


class TestWhichColumns:
    TABLE = pd.DataFrame({"a": [1, 2, 1], "b": [True, False, True], "c": ["x", "y", "x"]})

    @pytest.mark.parametrize(
        ("given", "expected"),
        [
            ("from_dtype", (False, False, True)),
            ([], (False, False, True)),
            (["a"], (True, False, True)),
            ([0, -2], (True, True, True)),
            ([False, True, False], (False, True, True)),
            (["c"], (False, False, True)),
        ],
    )
    def test_names_indices_and_masks(self, given, expected):
        assert ingest(self.TABLE, options=ColumnOptions(given)).schema.categorical == expected

    @pytest.mark.parametrize(
        ("given", "text"),
        [
            (["z"], "does not have: 'z'; X has the indices 0 to 2 and the names 'a', 'b', 'c'"),
            ([3, -4], "does not have: 3, -4;"),
            ([True], "1 truth values, but X has 3 columns"),
        ],
    )
    def test_columns_that_are_not_there(self, given, text):
        model = arboost.GradientBoostingRegressor(categorical_features=given)
        with pytest.raises(ValueError, match=text):
            model.fit(self.TABLE, [1, 2, 3])

    @pytest.mark.parametrize("given", [None, 3, [1.5], [True, 1], [["a"]], b"a"])
    def test_what_is_no_list_of_columns(self, given):
        model = arboost.GradientBoostingRegressor(categorical_features=given)
        with pytest.raises(TypeError, match="categorical_features must be"):
            model.fit(self.TABLE, [1, 2, 3])
        with pytest.raises(ValueError, match="categorical_features must be"):
            arboost.GradientBoostingRegressor(categorical_features="a").fit(self.TABLE, [1, 2, 3])

    def test_numbers_as_text_are_doubted(self):
        table = pd.DataFrame({"a": ["1", "2.5", None]})
        with pytest.warns(DataWarning, match=r"Numbers as strings in X: 'a' \(such as '1'\)"):
            ingest(table)
        ingest(table, options=named("a"))
        ingest(table.astype("category"))


class TestMatching:
    def test_numbers_match_numbers(self):
        schema = ingest(pd.DataFrame({"a": [1, 2, 3]}), options=named("a")).schema
        for values in ([2.0, 4.0, np.nan], pd.array([2, 4, None], dtype="Int8")):
            codes = ingest(pd.DataFrame({"a": values}), schema).columns.read(0)
            np.testing.assert_array_equal(codes, [1, np.nan, np.nan])

    def test_other_types_are_refused(self):
        words = ingest(pd.DataFrame({"a": ["x", "y"]})).schema
        with pytest.raises(SchemaError, match="'a' of X holds numbers, but it held strings"):
            ingest(pd.DataFrame({"a": [1, 2]}), words)
        with pytest.raises(SchemaError, match="holds numbers, but it held strings"):
            ingest(pd.DataFrame({"a": pd.Categorical([1, 2])}), words)
        for schema in (
            ingest(pd.DataFrame({"a": [1, 2]})).schema,
            ingest(pd.DataFrame({"a": [1, 2]}), options=named("a")).schema,
        ):
            with pytest.raises(SchemaError, match="'a' of X holds strings, but it held numbers"):
                ingest(pl.DataFrame({"a": ["1", "2"]}), schema)

    def test_missing_columns_are_of_any_type(self):
        words = ingest(pd.DataFrame({"a": ["x", "y"]})).schema
        numbers = ingest(pd.DataFrame({"a": [1, 2]})).schema
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for schema in (words, numbers):
                for values in ([None, None], [np.nan, np.nan], pd.array([None] * 2, "string")):
                    codes = ingest(pd.DataFrame({"a": values}), schema).columns.read(0)
                    np.testing.assert_array_equal(codes, [np.nan, np.nan])

    def test_a_warning_where_no_level_is_known(self):
        schema = ingest(pd.DataFrame({"a": ["x", "y"]})).schema
        with pytest.warns(DataWarning, match="None of the 2 values in the column 'a'"):
            ingest(pd.DataFrame({"a": ["X", None, "Y"]}), schema)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ingest(pd.DataFrame({"a": ["X", "x"]}), schema)
            ingest(pd.DataFrame({"a": pd.Series([], dtype=str)}), schema)

    def test_columns_in_another_order(self):
        table = pd.DataFrame({"n": [1, 2], "a": ["x", "y"], "t": np.array([0, 1], "M8[s]")})
        read = ingest(table)
        turned = ingest(table[["t", "n", "a"]], read.schema)
        for i in range(3):
            np.testing.assert_array_equal(turned.columns.read(i), read.columns.read(i))

    def test_statistics_stand_for_their_levels(self):
        (levels,) = ingest([["x"], ["y"]]).schema.levels
        rated = Levels("string", levels.values, levels.offsets, np.array([0.25, -4.0]))
        schema = Schema(None, 1, levels=(rated,))
        assert schema.categorical == (False,)
        values = ingest([["y"], ["z"], ["x"], [None]], schema).columns.read(0)
        np.testing.assert_array_equal(values, [-4.0, np.nan, 0.25, np.nan])


class TestModels:
    @staticmethod
    def frame(n=300):
        rng = np.random.default_rng(5)
        return pd.DataFrame(
            {
                "city": rng.choice(["Rom", "Wien", "Bonn", "Oslo"], n),
                "kind": rng.integers(0, 5, n),
                "day": np.datetime64("2024-01-01", "ms") + rng.integers(0, 10**9, n),
                "x": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            }
        )

    def fitted(self, table, **params):
        y = self.frame().pipe(lambda f: f.x.fillna(0) + f.kind + (f.city == "Wien") * 3)
        model = arboost.GradientBoostingRegressor(
            n_estimators=10, categorical_features=["kind"], **params
        )
        return model.fit(table, y)

    def test_same_bytes_from_every_library(self):
        table = self.frame()
        expected = to_bytes(self.fitted(table).model_)
        for other in (
            pl.from_pandas(table),
            pl.from_pandas(table).with_columns(pl.col("city").cast(pl.Categorical)),
            pa.Table.from_pandas(table),
            table.astype({"city": "category", "kind": "category"}),
            table.astype({"city": object, "kind": "Int16", "day": "M8[ns]"}),
            table.convert_dtypes(dtype_backend="pyarrow"),
        ):
            assert to_bytes(self.fitted(other).model_) == expected

    def test_saved_and_loaded(self, tmp_path):
        table = self.frame()
        model = self.fitted(table, missing=-1.0)
        model.save(tmp_path / "model.arb")
        loaded = arboost.load(tmp_path / "model.arb")
        assert loaded.schema == model.model_.schema
        assert loaded.schema.missing == -1.0
        assert loaded.schema.units[:4] == ("", "", "datetime", "")
        np.testing.assert_array_equal(loaded.predict(table), model.predict(table))
        changed = table.assign(city=["Wien", "?"] * 150, kind=table.kind.astype(str).astype(float))
        np.testing.assert_array_equal(loaded.predict(changed), model.predict(changed))

    @pytest.mark.parametrize(
        ("levels", "text"),
        [
            (Levels("string", np.frombuffer(b"ba", np.uint8), np.array([0, 1, 2])), "ascending"),
            (Levels("string", np.frombuffer(b"ab", np.uint8), np.array([0, 5, 2])), "outside"),
            (Levels("string", np.frombuffer(b"ab", np.uint8), np.array([0, 1])), "fill"),
            (Levels("string", np.zeros(0, np.uint8), np.array([0, 0, 0])), "ascending"),
            (Levels("string", np.zeros(2, np.float64), np.array([0, 2])), "of type float64"),
            (Levels("string", np.zeros(2, np.uint8)), "kind"),
            (Levels("number", np.array([2.0, 1.0])), "ascending"),
            (Levels("number", np.array([1.0, np.nan])), "ascending"),
            (Levels("color", np.array([1.0])), "kind"),
            (Levels("number", np.array([1.0]), statistic=np.zeros(2)), "statistics"),
        ],
    )
    def test_hostile_levels_are_refused(self, levels, text):
        model = self.fitted(self.frame()).model_.truncated(0)  # no split that levels must fit
        schema = Schema(model.schema.columns, 4, levels=(levels, None, None, None))
        bad = type(model)(**{**model.fields(), "schema": schema})
        with pytest.raises(ModelFormatError, match=text):
            from_bytes(to_bytes(bad))

    def test_dataset_and_folds_read_alike(self):
        table = self.frame()
        y = table.x.fillna(0)
        data = arboost.Dataset(table, y, categorical_features=["kind"], missing=2.0)
        assert data.binned.schema.categorical[:4] == (True, True, False, False)
        model = arboost.GradientBoostingRegressor(n_estimators=3)
        assert model.fit(data).model_.schema == data.binned.schema
        with pytest.raises(ValueError, match=r"missing=0.0 is not allowed: the Dataset .*=2\.0"):
            model.set_params(missing=0).fit(data)
        model.set_params(categorical_features=["kind"], missing=float("nan"))
        fold = arboost.cv(model, table, y, folds=2, return_models=True).models[0]
        assert fold.model_.schema.categorical[:4] == (True, True, False, False)

    def test_training_goes_on_with_the_same_levels(self):
        table = self.frame()
        y = table.x.fillna(0)
        model = self.fitted(table)
        more = arboost.GradientBoostingRegressor(n_estimators=2, categorical_features=["kind"])
        more.fit(table.assign(city=["Wien", "?"] * 150), y, init_model=model)
        assert more.model_.schema == model.model_.schema
        with pytest.raises(ValueError, match="categorical_features names 'x', but init_model"):
            more.set_params(categorical_features=["x"]).fit(table, y, init_model=model)
        with pytest.raises(ValueError, match=r"missing=0.0 is not allowed: init_model"):
            more.set_params(categorical_features=[], missing=0).fit(table, y, init_model=model)
