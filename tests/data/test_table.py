"""Ingest of every kind of table, and of every kind of bad input."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from arboost.backend import core
from arboost.data.schema import Schema
from arboost.data.table import ingest
from arboost.data.target import target, weights
from arboost.errors import DataWarning, SchemaError

NAMED = Schema(("a", "b", "c"), 3)


def values_of(table):
    """Return the ranks of the values in the core: equal values share a rank, NaN is -1."""
    edges = core.quantiles(table.columns, None, None, 65_535, 1)
    codes = core.encode(table.columns, None, edges, 1)
    ranks = codes.to_numpy().astype(int)
    ranks[ranks == codes.n_bins] = -1
    return ranks.tolist()


def frame(library, **columns):
    """Return a table of pandas, polars or pyarrow, or skip the test."""
    module = pytest.importorskip(library)
    return module.table(columns) if library == "pyarrow" else module.DataFrame(columns)


class TestNumpy:
    def test_half_precision_and_subnormals(self):
        values = np.array([[-np.inf, -2, -6e-8, -0.0, 0, 6e-8, 1e-5, 1, 65504, np.inf, np.nan]])
        half = values.T.astype(np.float16)
        assert values_of(ingest(half)) == values_of(ingest(half.astype(float)))

    def test_masked_values_are_missing(self):
        masked = np.ma.MaskedArray([[1, 2], [3, 4]], mask=[[False, True], [False, False]])
        assert values_of(ingest(masked)) == [[0, -1], [1, 0]]

    def test_packed_records_are_converted(self):
        records = np.zeros(3, dtype=[("flag", "i1"), ("pair", "f8", (2,))])
        records["pair"] = [[1, 2], [2, 1], [3, 0]]
        assert values_of(ingest(records["pair"])) == [[0, 2], [1, 1], [2, 0]]

    def test_long_double_and_broadcast_rows(self):
        assert values_of(ingest(np.array([[1], [2]], dtype=np.longdouble))) == [[0], [1]]
        assert values_of(ingest(np.broadcast_to([1.0, 2.0], (3, 2)))) == [[0, 0]] * 3

    def test_objects_that_are_numbers(self):
        objects = np.array([[1, None], [2.5, np.nan], [True, 3]], dtype=object)
        assert values_of(ingest(objects)) == [[0, -1], [1, -1], [0, 0]]

    def test_pandas_na_among_objects(self):
        pd = pytest.importorskip("pandas")
        assert values_of(ingest(np.array([[1], [pd.NA]], dtype=object))) == [[0], [-1]]

    def test_lists_and_things_that_turn_into_arrays(self):
        class Convertible:
            def __array__(self, dtype=None, copy=None):
                return np.array([[2.0], [1.0]])

        assert values_of(ingest([[2], [1]])) == [[1], [0]]
        assert values_of(ingest(((2.0, None), (1.0, 5)))) == [[1, -1], [0, 0]]
        assert values_of(ingest(Convertible())) == [[1], [0]]

    def test_input_is_not_copied(self):
        values = np.zeros((4, 2))
        table = ingest(values)
        values[:] = [[1, 8], [2, 7], [3, 6], [4, 5]]
        assert values_of(table) == [[0, 3], [1, 2], [2, 1], [3, 0]]

    def test_table_keeps_the_array_alive(self):
        table = ingest(np.arange(60_000.0).reshape(-1, 1))
        np.zeros(60_000)  # would reuse freed memory
        assert values_of(table)[-2:] == [[59_998], [59_999]]

    @pytest.mark.parametrize(
        ("X", "error", "text"),
        [
            (np.zeros(3), ValueError, r"got 1D array instead, of shape \(3,\)\. Reshape"),
            (3.0, ValueError, r"Expected 2D array, got scalar array instead: X is 3.0 \(float\)"),
            ("a.csv", TypeError, r"X is the path 'a.csv', but it must be a table\. Read the file"),
            (b"a", ValueError, r"instead: X is b'a' \(bytes\)\. Pass rows and columns"),
            (np.zeros((2, 2, 2)), ValueError, "Found array with dim 3"),
            (
                np.zeros((0, 3)),
                ValueError,
                r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1",
            ),
            (np.zeros((5, 0)), ValueError, r"0 feature\(s\) \(shape=\(5, 0\)\) while a minimum of"),
            (np.zeros((2, 2), complex), ValueError, "Complex data not supported"),
            (np.array([[{}, 1]], dtype=object), TypeError, "argument must be .* string.* number"),
            (np.array([[1], ["x"]], dtype=object), TypeError, r"'x' \(str\) and 1 \(int\)"),
            (np.zeros((2, 2), "m8[M]"), TypeError, r"0 \(timedelta64\[M\]\)"),
            (np.zeros((2, 2), "V4"), TypeError, "types that cannot be used"),
            ([[1, 2], [3]], ValueError, "Pass rows of equal length"),
        ],
    )
    def test_bad_arrays(self, X, error, text):
        with pytest.raises(error, match=text):
            ingest(X)

    def test_large_integers_warn_once(self):
        values = np.array([[0, 2**53 + 1, 2**62], [1, 5, -(2**60)]])
        with pytest.warns(DataWarning, match=r"columns 1, 2\.") as caught:
            table = ingest(values)
        assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ingest(values, table.schema)
            ingest(np.array([[2**53 - 1]]))


class TestDataframes:
    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_names_and_values(self, library):
        table = ingest(frame(library, a=[1.5, None, 0.5], b=[3, 2, 1], c=[True, False, True]))
        assert table.schema == NAMED
        assert values_of(table) == [[1, 2, 1], [-1, 1, 0], [0, 0, 1]]

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_any_name_is_a_name(self, library):
        names = ("", " ", "a\nb", '{"x": [1]}', "grün", "数")
        assert ingest(frame(library, **{name: [1, 2] for name in names})).schema.names == names

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_columns_that_cannot_be_used_are_named(self, library):
        table = frame(library, ok=[1.0], pair=[[1, 2]])
        with pytest.raises(TypeError, match=r"'pair'.*columns of their own") as caught:
            ingest(table)
        assert "'ok'" not in str(caught.value)

    @pytest.mark.parametrize("library", ["pandas", "polars"])
    def test_a_series_is_no_table(self, library):
        series = pytest.importorskip(library).Series([1.0, 2.0])
        with pytest.raises(ValueError, match=r"2-dimensional container(.|\n)*Reshape your data"):
            ingest(series)

    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_empty_tables(self, library):
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            ingest(frame(library, a=np.zeros(0)))
        with pytest.raises(ValueError, match=r"0 feature\(s\)"):
            ingest(frame(library))

    def test_pandas_kinds_of_columns(self):
        pd = pytest.importorskip("pandas")
        table = pd.DataFrame(
            {
                "nullable": pd.array([3, None, 1], dtype="Int64"),
                "flag": pd.array([True, None, False], dtype="boolean"),
                "small": np.array([1, 2, 3], dtype=np.int8),
                "float": np.array([0.5, np.nan, -np.inf], dtype=np.float32),
            }
        )
        assert values_of(ingest(table)) == [[1, 1, 0, 1], [-1, -1, 1, -1], [0, 0, 2, 0]]
        pytest.importorskip("pyarrow")
        arrow = table.astype({"nullable": "int64[pyarrow]", "flag": "bool[pyarrow]"})
        assert values_of(ingest(arrow)) == values_of(ingest(table))

    @pytest.mark.parametrize("kind", ["complex", "interval"])
    def test_pandas_columns_of_other_kinds(self, kind):
        pd = pytest.importorskip("pandas")
        bad = np.zeros(2, complex) if kind == "complex" else pd.interval_range(0, 2)
        with pytest.raises(TypeError, match=rf"'bad' \({kind}.*drop them"):
            ingest(pd.DataFrame({"ok": [1.0, 2.0], "bad": bad}))

    def test_pandas_works_without_pyarrow(self):
        pytest.importorskip("pandas")
        code = (
            "import sys; sys.modules['pyarrow'] = None\n"
            "import pandas as pd; from arboost.data.table import ingest\n"
            "df = pd.DataFrame({'a': [1.0, None], 'b': pd.array([1, None], dtype='Int64')})\n"
            "assert ingest(df).schema.names == ('a', 'b')"
        )
        subprocess.run([sys.executable, "-c", code], check=True)

    def test_large_pandas_columns_are_not_copied(self):
        pd = pytest.importorskip("pandas")
        values = np.zeros((60_000, 2))
        table = ingest(pd.DataFrame(values, columns=["a", "b"], copy=False))
        values[:, 0] = 1.0
        values[0, 0] = 0.0
        assert values_of(table)[:2] == [[0, 0], [1, 0]]

    def test_names_that_are_not_strings(self):
        pd = pytest.importorskip("pandas")
        assert ingest(pd.DataFrame([[1, 2]], columns=[0, 1])).schema == Schema(None, 2)
        with pytest.raises(TypeError, match=r"\['int', 'str'\].*astype\(str\)"):
            ingest(pd.DataFrame([[1, 2]], columns=[0, "a"]))

    def test_duplicate_names(self):
        pd, pa = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
        one = np.array([1.0])
        for table in (
            pd.DataFrame([[1, 2, 3, 4]], columns=list("abab")),
            pa.Table.from_arrays([one] * 4, names=list("abab")),
        ):
            with pytest.raises(ValueError, match="same name: 'a', 'b'"):
                ingest(table)

    def test_arrow_types(self):
        pa = pytest.importorskip("pyarrow")
        numbers = [2, None, 1]
        for kind in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
            table = pa.table({"a": pa.array(numbers, getattr(pa, kind)())})
            assert values_of(ingest(table)) == [[1], [-1], [0]], kind
        for kind in ("float16", "float32", "float64"):
            array = pa.array([None if x is None else np.float16(x) for x in numbers])
            table = pa.table({"a": array.cast(getattr(pa, kind)())})
            assert values_of(ingest(table)) == [[1], [-1], [0]], kind
        assert values_of(ingest(pa.table({"a": pa.nulls(2)}))) == [[-1], [-1]]
        for kind, array in {
            "nested": pa.array([[1], [2]]),
            "Arrow type tin": pa.array([(1, 2, 3)], pa.month_day_nano_interval()),
        }.items():
            with pytest.raises(TypeError, match=rf"'a' \({kind}\)"):
                ingest(pa.table({"a": array}))

    def test_sliced_struct_arrays(self):
        pa = pytest.importorskip("pyarrow")
        bits = [True, False, None] * 7
        whole = pa.StructArray.from_arrays(
            [pa.array(range(21)), pa.array(bits)], names=["number", "bit"]
        )
        part = pa.chunked_array([whole[3:5], whole[9:20]])
        rows = [*range(3, 5), *range(9, 20)]
        expected = np.array([[r, np.nan if bits[r] is None else bits[r]] for r in rows], float)
        assert values_of(ingest(part)) == values_of(ingest(expected))


class TestSchema:
    @pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
    def test_columns_are_matched_by_name(self, library):
        table = frame(library, c=[3.0, 9.0], a=[1.0, 2.0], b=[5.0, 4.0])
        assert values_of(ingest(table, NAMED)) == [[0, 1, 0], [1, 0, 1]]

    def test_missing_and_extra_columns(self):
        table = frame("pandas", a=[1.0], x=[1.0], y=[1.0])
        with pytest.raises(SchemaError) as caught:
            ingest(table, NAMED)
        assert str(caught.value).startswith(
            "The feature names should match those that were passed during fit.\n"
            "Feature names unseen at fit time:\n- x\n- y\n"
            "Feature names seen at fit time, yet now missing:\n- b\n- c\n"
        )

    def test_number_of_columns(self):
        text = "X has 2 features, but Booster is expecting 3 features as input"
        with pytest.raises(SchemaError, match=text):
            ingest(np.zeros((1, 2)), Schema(None, 3), caller="Booster")

    def test_names_on_one_side_only(self):
        with pytest.warns(
            UserWarning, match="valid feature names, but Booster .* Pass a data frame"
        ):
            ingest(np.zeros((1, 3)), NAMED, caller="Booster")
        with pytest.warns(UserWarning, match="X has feature names, but Booster .* Fit on a data"):
            ingest(frame("pandas", a=[1.0]), Schema(None, 1), caller="Booster")

    def test_no_rows_are_fine_at_predict(self):
        assert ingest(np.zeros((0, 3)), Schema(None, 3)).n_rows == 0
        assert ingest(frame("pandas", a=[], b=[], c=[]).astype(float), NAMED).n_rows == 0
        assert ingest(frame("pyarrow", a=np.zeros(0)), Schema(("a",), 1)).n_rows == 0


class TestTarget:
    def test_labels_keep_their_type(self):
        assert target([1, 2], 2).dtype.kind == "i"
        assert target(["a", "b"], 2).tolist() == ["a", "b"]
        pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
        assert target(pd.Series([1, 2], dtype="Int64"), 2).dtype.kind == "i"
        assert target(pd.Series(["a", "b"], dtype="category"), 2).tolist() == ["a", "b"]
        assert target(pl.Series([1.5, 2.5]), 2).tolist() == [1.5, 2.5]

    @pytest.mark.parametrize(
        "y",
        [
            [1.0, np.nan],
            [1.0, np.inf],
            [1.0, None],
            ["a", None],
            ["a", np.nan],
            np.array(["a", np.inf], dtype=object),
            np.ma.MaskedArray([1.0, 2.0], mask=[False, True]),
        ],
    )
    def test_missing_and_infinite_values(self, y):
        with pytest.raises(ValueError, match=r"complete"):
            target(y, 2)

    def test_nullable_pandas(self):
        pd = pytest.importorskip("pandas")
        with pytest.raises(ValueError, match="first in row 1"):
            target(pd.Series([1, None], dtype="Int64"), 2)

    @pytest.mark.parametrize(
        ("y", "error", "text"),
        [
            (None, ValueError, "requires y to be passed, but the target y is None"),
            ([1, 2, 3], ValueError, "X has 2 rows, but y has 3 values"),
            (np.zeros((2, 2)), ValueError, r"y should be a 1d array, got .* shape \(2, 2\)"),
            (5, ValueError, "y should be a 1d array"),
            ([1j, 2], ValueError, "Complex data not supported"),
            (np.zeros(2, "M8[s]"), TypeError, "numbers or labels"),
        ],
    )
    def test_bad_targets(self, y, error, text):
        with pytest.raises(error, match=text):
            target(y, 2)

    def test_column_vectors_are_flattened_with_a_warning(self):
        exceptions = pytest.importorskip("sklearn.exceptions")
        with pytest.warns(exceptions.DataConversionWarning, match="A column-vector y was passed"):
            assert target([[1], [2]], 2).tolist() == [1, 2]


class TestWeights:
    def test_any_vector_of_numbers(self):
        assert weights(None, 3) is None
        assert weights([1, 0, 2], 3).tolist() == [1.0, 0.0, 2.0]
        assert weights(2, 3).tolist() == [2.0, 2.0, 2.0]
        assert weights(np.ones(6, np.float32)[::2], 3).flags.c_contiguous
        pd = pytest.importorskip("pandas")
        assert weights(pd.Series([1, 2], dtype="Int64"), 2).dtype == np.float64

    @pytest.mark.parametrize(
        ("given", "error", "text"),
        [
            ([1, -1], ValueError, "first -1.0 in row 1"),
            ([np.nan, 1], ValueError, "NaN"),
            ([np.inf, 1], ValueError, "infinite"),
            ([0, 0], ValueError, "weight.*zero"),
            (0, ValueError, "weight.*zero"),
            ([1, 2, 3], ValueError, "X has 2 rows, but sample_weight has 3 values"),
            ([[1], [2]], ValueError, r"shape \(2, 1\).*1-D"),
            (["a", "b"], ValueError, "must be numbers"),
            ([{}, 1], TypeError, "must be numbers"),
        ],
    )
    def test_bad_weights(self, given, error, text):
        with pytest.raises(error, match=text):
            weights(given, 2)


class TestColumns:
    def test_core_refuses_what_does_not_fit(self):
        columns = core.Columns(3)
        with pytest.raises(ValueError, match="A column has 2 rows, but the table has 3"):
            columns.add(np.zeros(2))
        with pytest.raises(ValueError, match="A mask has 4 rows"):
            columns.add(np.zeros(3), np.zeros(4, bool))
        with pytest.raises(ValueError, match="A matrix has 2 rows"):
            columns.add_matrix(np.zeros((2, 2)))
        with pytest.raises(ValueError, match="one dimension"):
            columns.add(np.zeros((3, 1)))
        with pytest.raises(TypeError):
            columns.add(np.zeros(3, complex))
        with pytest.raises(IndexError):
            columns.select([0])
        assert columns.n_columns == 0

    def test_columns_of_several_tables(self):
        columns = core.Columns(2)
        columns.add(np.array([1.0, 2.0]))
        columns.extend(columns)
        columns.add_matrix(np.array([[4, 5], [5, 4]]))
        assert columns.n_columns == 4
        picked = columns.select([3, 0])
        del columns
        table = type("Table", (), {"columns": picked})
        assert values_of(table) == [[1, 0], [0, 1]]


def test_import_loads_no_dataframe_library():
    code = (
        "import sys, arboost, arboost.data.bins, arboost.data.table\n"
        "heavy = {'pandas', 'polars', 'pyarrow', 'sklearn', 'scipy'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
