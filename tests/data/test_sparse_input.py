"""Sparse tables: every format of scipy and pandas gives the codes of the dense table."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

import arboost
from arboost.backend import core
from arboost.data.table import ColumnOptions, ingest
from arboost.models.files.model_file import to_bytes

sparse = pytest.importorskip("scipy.sparse")
pd = pytest.importorskip("pandas")

FORMATS = ("csr", "csc", "coo", "lil", "dok", "dia", "bsr")


def dense(n_rows=60, n_columns=7, seed=0, dtype=float):
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, (n_rows, n_columns)) / (2 if dtype is float else 1)
    return np.where(rng.random(values.shape) < 0.3, values, 0).astype(dtype)


def read(table, **options):
    columns = ingest(table, **options).columns
    return np.column_stack([columns.read(i) for i in range(columns.n_columns)])


class TestFormats:
    @pytest.mark.parametrize("kind", FORMATS)
    @pytest.mark.parametrize("make", ["array", "matrix"])
    def test_every_format(self, kind, make):
        X = dense()
        table = getattr(sparse, f"{kind}_{make}")(X)
        np.testing.assert_array_equal(read(table), X)

    @pytest.mark.parametrize("kind", ["csr", "csc"])
    @pytest.mark.parametrize(
        "dtype",
        ["bool", "int8", "uint8", "int16", "int32", "int64", "uint64", "float32", "float64"],
    )
    def test_every_type(self, kind, dtype):
        X = np.abs(dense()).astype(dtype)
        np.testing.assert_array_equal(read(sparse.csr_array(X).asformat(kind)), X.astype(float))

    @pytest.mark.parametrize("kind", ["csr", "csc"])
    @pytest.mark.parametrize("index", [np.int32, np.int64])
    def test_unsorted_indices_duplicates_and_stored_zeros(self, kind, index):
        rng = np.random.default_rng(1)
        rows, columns = rng.integers(0, 50, 400), rng.integers(0, 6, 400)
        values = rng.integers(-2, 3, 400).astype(float)
        table = sparse.coo_array((values, (rows, columns)), shape=(50, 6))
        plain = table.toarray()
        table = table.asformat(kind)
        table = type(table)(
            (table.data, table.indices.astype(index), table.indptr.astype(index)), shape=(50, 6)
        )
        np.testing.assert_array_equal(read(table), plain)
        # In descending order within every row or column, and with duplicates to sum.
        doubled = [np.repeat(array, 2) for array in (table.data / 2, table.indices)]
        starts = 2 * table.indptr
        backwards = np.concatenate([np.arange(b, a, -1) - 1 for a, b in pairwise(starts)])
        messy = type(table)(
            (doubled[0][backwards], doubled[1][backwards].astype(index), starts.astype(index)),
            shape=(50, 6),
        )
        before = messy.indices.copy()
        np.testing.assert_array_equal(read(messy), plain)
        np.testing.assert_array_equal(messy.indices, before)

    @pytest.mark.parametrize(
        "values",
        [
            [1, 1, 1],
            [1, -128, 127],
            [1, 2, 300],
            [0.5, 1.5, 2**-30],
            [0.1, 1, 2],
            [-0.0, 1, np.nan],
        ],
    )
    def test_narrow_values_stay_exact(self, values):
        table = sparse.csr_array((np.array(values, float), [0, 2, 1], [0, 1, 1, 3]), shape=(3, 3))
        np.testing.assert_array_equal(read(table), table.toarray())

    def test_columns_are_views_where_they_can_be(self):
        table = sparse.csc_array(dense())
        columns = ingest(table).columns
        table.data[:] = 9.0
        assert set(columns.stored(0)[1]) == {9.0}

    def test_empty_tables(self):
        assert not read(sparse.csr_array((5, 3))).any()
        assert not read(sparse.csc_array((5, 3))).any()
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            ingest(sparse.csr_array((0, 3)))
        with pytest.raises(ValueError, match="Expected 2D array"):
            ingest(sparse.coo_array(np.arange(3)))


class TestPandas:
    @pytest.mark.parametrize("fill", [0.0, np.nan, 2.0, -1])
    def test_any_fill_beside_dense_columns(self, fill):
        X = dense(n_columns=2)
        X[5:30, 1] = fill
        X[40, 1] = np.nan
        column = pd.arrays.SparseArray(X[:, 1], fill_value=fill)
        table = pd.DataFrame({"dense": X[:, 0], "thin": column, "flag": X[:, 0] > 0})
        np.testing.assert_array_equal(read(table)[:, :2], X)

    def test_booleans_integers_and_other_types(self):
        table = pd.DataFrame(
            {
                "flag": pd.arrays.SparseArray([True, False, False]),
                "count": pd.arrays.SparseArray([0, 0, 7]),
            }
        )
        np.testing.assert_array_equal(read(table), [[1, 0], [0, 0], [0, 7]])
        with pytest.raises(TypeError, match=r"'a' \(Sparse"):
            ingest(pd.DataFrame({"a": pd.arrays.SparseArray(["x", "y"], fill_value="x")}))

    def test_frames_of_scipy_matrices(self):
        X = dense()
        frame = pd.DataFrame.sparse.from_spmatrix(sparse.csr_array(X), columns=list("abcdefg"))
        np.testing.assert_array_equal(read(frame), X)


class TestMissing:
    def test_zeros_may_mean_missing(self):
        X = dense()
        expected = np.where(X == 0, np.nan, X)
        zero = ColumnOptions(missing=0.0)
        for table in (X, sparse.csr_array(X), sparse.csc_array(X), pd.DataFrame(X)):
            np.testing.assert_array_equal(read(table, options=zero), expected)
        schema = ingest(X, options=zero).schema
        np.testing.assert_array_equal(read(sparse.csr_array(X), schema=schema), expected)

    def test_times_and_strings_are_no_such_numbers(self):
        table = pd.DataFrame({"x": [0, 1], "t": np.array([0, 1], "M8[s]"), "c": ["0", "a"]})
        given = read(table, options=ColumnOptions(missing=0.0))
        np.testing.assert_array_equal(given, [[np.nan, 0, 0], [1, 1, 1]])

    def test_a_missing_number_is_no_level(self):
        read_table = ingest([[-999, 2, 2]] * 2, options=ColumnOptions([0, 1], missing=-999.0))
        assert [None if one is None else len(one) for one in read_table.schema.levels] == [
            0,
            1,
            None,
        ]

    @pytest.mark.parametrize(
        ("given", "error"), [("0", TypeError), (None, TypeError), (np.inf, ValueError)]
    )
    def test_what_is_no_number(self, given, error):
        model = arboost.GradientBoostingRegressor(missing=given)
        with pytest.raises(error, match="missing must be a finite number or NaN"):
            model.fit([[0], [1]], [0, 1])


class TestLevels:
    def test_sparse_categories_stay_sparse(self):
        X = dense()
        for table in (sparse.csr_array(X), sparse.csc_array(X)):
            given = ingest(table, options=ColumnOptions(list(range(7))))
            expected = ingest(X, options=ColumnOptions(list(range(7))))
            assert given.schema == expected.schema
            for i in range(7):
                assert given.columns.stored(i) is not None
                np.testing.assert_array_equal(given.columns.read(i), expected.columns.read(i))
            again = ingest(table, expected.schema)
            np.testing.assert_array_equal(again.columns.read(3), expected.columns.read(3))


class TestModels:
    def test_same_bytes_as_the_dense_table(self):
        X = dense(500)
        y = X[:, 0] * 2 - X[:, 3] + (X[:, 5] == 0)
        expected = arboost.GradientBoostingRegressor(n_estimators=10).fit(X, y)
        for kind in ("csr", "csc", "coo"):
            table = sparse.csr_array(X).asformat(kind)
            model = arboost.GradientBoostingRegressor(n_estimators=10).fit(table, y)
            assert to_bytes(model.model_) == to_bytes(expected.model_)
            np.testing.assert_array_equal(model.predict(table), expected.predict(X))

    def test_nothing_is_densified(self):
        table = sparse.random_array((200_000, 400), density=0.001, rng=2, format="csr")
        tracemalloc.start()
        columns = ingest(table).columns
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert columns.n_columns == 400
        assert peak < 20 * 2**20  # dense it takes 640 MB


class TestBrokenTables:
    @pytest.mark.parametrize("kind", ["csr", "csc"])
    @pytest.mark.parametrize("index", [10_000, -1])
    def test_places_outside_the_table(self, kind, index):
        matrix = sparse.random_array((40, 40), density=0.5, rng=0, format=kind)
        matrix.indices[3] = index
        matrix.has_canonical_format = True  # so that scipy skips its check
        with pytest.raises(ValueError, match=r"outside its shape"):
            ingest(matrix)

    @pytest.mark.parametrize("kind", ["csr", "csc"])
    def test_places_stored_twice(self, kind):
        matrix = sparse.random_array((40, 40), density=0.5, rng=0, format=kind)
        matrix.indices[1] = matrix.indices[0]
        matrix.has_canonical_format = True
        with pytest.raises(ValueError, match=r"two values for one cell|must ascend"):
            ingest(matrix)

    def test_core_refuses_what_does_not_fit(self):
        columns = core.Columns(3)
        rows, values = np.array([0, 1], np.uint32), np.array([1.0, 2.0])
        for starts in ([0, 3], [1, 2], [], [0, 5, 2], [0, -1, 2]):
            with pytest.raises(ValueError, match="sparse table"):
                columns.add_csc(np.array(starts, np.int32), rows, values, 0.0)
        for starts in ([0, 1, 2, 3], [0, 2], [0, 2, 1, 2], [], [0, 3, 3, 2]):
            with pytest.raises(ValueError, match=r"[Ss]parse table"):
                columns.add_csr(np.array(starts, np.int32), np.zeros(2, np.int32), values, 2, 0.0)
        with pytest.raises(ValueError, match="as many"):
            columns.add_csr(np.array([0, 1, 1, 1]), np.zeros(1, np.int64), values, 2, 0.0)
        assert columns.n_columns == 0
        with pytest.raises(TypeError):
            columns.add_csr(np.array([0.0]), np.zeros(2), values, 2, 0.0)

    def test_complex_values_and_objects(self):
        with pytest.raises(ValueError, match="Complex data not supported"):
            ingest(sparse.eye_array(3, dtype=complex))
