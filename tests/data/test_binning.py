"""Bin edges and bin codes, independent of threads, chunks and the kind of table; mixed rows."""

import doctest
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import arboost.data.bins
from arboost import Dataset, _core
from arboost.backend import core
from arboost.data.bins import bin_table
from arboost.data.table import ingest
from support.stored import every_storage, mixed_table

MAX = np.finfo(np.float64).max
SAMPLE = 200_000  # rows of the sample for quantiles

# Few distinct numbers, neighbouring numbers, extreme numbers and ordinary ones, all with NaN.
numbers = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, np.nextafter(1, 2), -1.0, MAX, -MAX, np.inf, -np.inf, 5e-324]),
    st.integers(-5, 5).map(float),
    st.floats(allow_nan=True),
)
columns = st.lists(numbers, min_size=1, max_size=200)


def column_of(values):
    """Return a table of one column."""
    return ingest(np.asarray(values, dtype=float).reshape(-1, 1))


def edges_of(values, *, max_bins=255, weights=None, n_threads=1):
    """Return the edges of one column."""
    [edges] = core.quantiles(column_of(values).columns, None, weights, max_bins, n_threads)
    return edges


def codes_of(values, edges, n_threads=1):
    """Return the codes of one column."""
    return core.encode(column_of(values).columns, None, [edges], n_threads).to_numpy()[:, 0]


def distinct_of(values):
    """Return the distinct values, ascending, without NaN."""
    values = np.asarray(values, dtype=float) + 0.0
    return np.unique(values[~np.isnan(values)])


class TestEdges:
    def test_midpoints_of_distinct_values(self):
        assert edges_of([3.0, 1.0, 2.0, np.nan, 1.0]).tolist() == [1.5, 2.5]

    def test_constant_and_all_missing_columns_have_one_bin(self):
        assert len(edges_of([7.0, 7.0, np.nan])) == 0
        assert len(edges_of([np.nan, np.nan])) == 0

    def test_infinity_is_an_ordinary_extreme(self):
        values = [-np.inf, 0.0, np.inf]
        edges = edges_of(values)
        assert np.isfinite(edges).all()
        assert codes_of(values, edges).tolist() == [0, 1, 2]

    @given(columns, st.integers(2, 300))
    @example([-np.inf, -MAX], 255)
    @example([-MAX, MAX, np.inf, -np.inf], 255)
    @example([0.0, 5e-324, -5e-324, -0.0], 255)
    def test_distinct_values_that_fit_have_bins_of_their_own(self, values, max_bins):
        edges, distinct = edges_of(values, max_bins=max_bins), distinct_of(values)
        assert len(edges) < max_bins
        if len(distinct) <= max_bins:
            assert len(edges) == max(0, len(distinct) - 1)
            assert (distinct[:-1] <= edges).all()
            assert (edges < distinct[1:]).all()

    @given(columns, st.integers(2, 20), st.integers(0, 2**32 - 1))
    def test_bins_are_never_empty_and_edges_ascend(self, values, max_bins, seed):
        weights = np.random.default_rng(seed).exponential(size=len(values))
        for given_weights in (None, weights):
            edges = edges_of(values, max_bins=max_bins, weights=given_weights)
            assert (edges[:-1] < edges[1:]).all()
            codes = codes_of(values, edges)
            present = set(codes[~np.isnan(np.asarray(values))].tolist())
            assert present == set(range(len(edges) + 1)) or not present
            # As many bins as there are values for.
            assert len(edges) + 1 >= min(max_bins, len(distinct_of(values)))

    def test_continuous_values_are_spread_evenly(self, rng):
        values = rng.normal(size=10_000)
        counts = np.bincount(codes_of(values, edges_of(values, max_bins=100)))
        assert len(counts) == 100
        assert counts.min() >= 99
        assert counts.max() <= 101

    def test_heavy_values_have_bins_of_their_own(self, rng):
        values = rng.normal(size=20_000)
        values[:9_000] = 0.0
        values[9_000:12_000] = 1.5
        edges = edges_of(values, max_bins=64)
        codes = codes_of(values, edges)
        assert len(edges) == 63
        assert (codes == codes[0]).sum() == 9_000
        assert (codes == codes[9_000]).sum() == 3_000
        light = np.delete(np.bincount(codes), [codes[0], codes[9_000]])
        assert light.max() < 1.6 * light.mean()

    def test_more_heavy_values_than_spare_bins(self):
        heavy = np.repeat(np.arange(0, 400, 2, dtype=float), 1000)
        values = np.concatenate([heavy, np.arange(1, 400, 2)])
        edges = edges_of(values, max_bins=220)
        codes = codes_of(values, edges)
        assert len(edges) < 220
        assert len(np.unique(codes[: len(heavy)])) == 200

    def test_weights_count_as_repeated_rows(self, rng):
        values, repeats = rng.normal(size=3000), rng.integers(1, 5, size=3000)
        weighted = edges_of(values, max_bins=50, weights=repeats.astype(float))
        repeated = edges_of(np.repeat(values, repeats), max_bins=50)
        assert weighted.tolist() == repeated.tolist()

    def test_weights_move_the_edges(self):
        values = np.arange(1000, dtype=float)
        weights = np.where(values < 100, 9.0, 0.1)
        edges = edges_of(values, max_bins=10, weights=weights)
        assert (edges < 100).sum() >= 8

    def test_float32_edges_separate_neighbouring_float32_values(self, rng):
        values = rng.normal(size=(5000, 1)).astype(np.float32)
        wide = core.quantiles(ingest(values.astype(float)).columns, None, None, 255, 1)
        narrow = core.quantiles(ingest(values).columns, None, None, 255, 1)
        assert wide[0].tolist() == narrow[0].tolist()


class TestLargeColumns:
    def test_rare_values_beside_the_sample_are_found(self):
        values = np.zeros(2 * SAMPLE)
        values[:: SAMPLE // 5] = np.arange(10) + 1.0
        edges = edges_of(values)
        assert edges.tolist() == (np.arange(10) + 0.5).tolist()

    def test_sample_covers_the_distribution(self, rng):
        values = rng.normal(size=5 * SAMPLE)
        counts = np.bincount(codes_of(values, edges_of(values)))
        assert len(counts) == 255
        assert 0.85 < counts.min() / counts.mean() < counts.max() / counts.mean() < 1.15

    @pytest.mark.parametrize("max_bins", [255, 1000])
    def test_any_number_of_threads_gives_the_same_bits(self, rng, max_bins):
        n = 2 * SAMPLE
        values = np.column_stack(
            [
                rng.normal(size=n),
                rng.integers(0, 40, size=n),
                np.where(rng.random(n) < 0.7, 0.0, rng.exponential(size=n)),
                np.full(n, np.nan),
            ]
        )
        values[::7, 0] = np.nan
        weights = rng.exponential(size=n) + 0.1
        table = ingest(values)
        seen = []
        for n_threads in (1, 2, 4):
            binned = bin_table(
                table, max_bins=max_bins, rows=None, weights=weights, n_threads=n_threads
            )
            seen.append(
                (
                    [edges.tobytes() for edges in binned.edges],
                    binned.codes.by_row.tobytes(),
                    binned.codes.by_column.tobytes(),
                    binned.codes.first_slot.tobytes(),
                )
            )
        assert seen[0] == seen[1] == seen[2]


class TestCodes:
    @given(columns, columns, st.integers(2, 40))
    def test_agree_with_searchsorted(self, values, others, max_bins):
        edges = edges_of(values, max_bins=max_bins)
        others = np.array(others)
        expected = np.where(np.isnan(others), len(edges) + 1, np.searchsorted(edges, others))
        assert codes_of(others, edges).tolist() == expected.tolist()

    @given(
        st.lists(st.floats(allow_nan=False), min_size=1, max_size=60, unique_by=lambda x: x + 0.0),
        st.sampled_from([10, 500, 5000]),
        st.integers(0, 2**32 - 1),
    )
    def test_agree_with_searchsorted_for_any_edges(self, edges, n, seed):
        # Many values, so that every layout of the lookup is used.
        rng = np.random.default_rng(seed)
        edges = np.unique(np.array(edges))
        with np.errstate(over="ignore", under="ignore"):
            below, above = np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)
        around = np.concatenate([edges, below, above])
        values = np.concatenate([rng.choice(around, size=n), rng.normal(size=n)])
        values = values[~np.isnan(values)]
        assert codes_of(values, edges).tolist() == np.searchsorted(edges, values).tolist()

    @pytest.mark.parametrize("scale", ["normal", "lognormal", "clustered", "integers"])
    @pytest.mark.parametrize("max_bins", [3, 255, 256, 5000])
    def test_agree_with_searchsorted_on_many_rows(self, rng, scale, max_bins):
        values = rng.normal(size=50_000)
        if scale == "lognormal":
            values = np.exp(8 * values)
        elif scale == "clustered":
            values = np.where(rng.random(50_000) < 0.5, 1e9 + 1e-6 * values, values)
        elif scale == "integers":
            values = np.round(100 * values)
        edges = edges_of(values, max_bins=max_bins)
        assert codes_of(values, edges).tolist() == np.searchsorted(edges, values).tolist()

    @given(columns)
    def test_are_monotone_in_the_values(self, values):
        codes = codes_of(values, edges_of(values, max_bins=5)).astype(int)
        values = np.array(values)
        order = np.argsort(values, kind="stable")[: (~np.isnan(values)).sum()]
        assert (np.diff(codes[order]) >= 0).all()

    @pytest.mark.parametrize(("max_bins", "width"), [(255, 1), (256, 2), (65_535, 2)])
    def test_layout(self, rng, max_bins, width):
        values = rng.normal(size=(70_000, 3))
        values[5, 1] = np.nan
        codes = bin_table(
            ingest(values), max_bins=max_bins, rows=None, weights=None, n_threads=2
        ).codes
        assert codes.width == width
        assert codes.n_bins.tolist() == [max_bins] * 3
        assert codes.has_missing.tolist() == [0, 1, 0]
        assert (
            codes.first_slot.tolist() == np.cumsum([0, max_bins, max_bins + 1, max_bins]).tolist()
        )
        assert (codes.by_row == codes.by_column).all()
        assert codes.by_row[5, 1] == max_bins

    def test_rows_are_those_of_a_smaller_table(self, rng):
        values = rng.normal(size=(1000, 4))
        rows = np.flatnonzero(rng.random(1000) < 0.5).astype(np.uint32)
        some = bin_table(ingest(values), max_bins=20, rows=rows, weights=None, n_threads=2)
        small = bin_table(ingest(values[rows]), max_bins=20, rows=None, weights=None, n_threads=2)
        assert [e.tolist() for e in some.edges] == [e.tolist() for e in small.edges]
        assert (some.codes.to_numpy() == small.codes.to_numpy()).all()

    def test_core_refuses_what_would_crash_it(self):
        table = column_of([1.0, 2.0]).columns
        with pytest.raises(ValueError, match="beyond the table"):
            core.encode(table, np.array([2], np.uint32), [np.array([1.5])], 1)
        with pytest.raises(ValueError, match="ascend"):
            core.encode(table, None, [np.array([2.0, 1.0])], 1)
        with pytest.raises(ValueError, match="every column"):
            core.encode(table, None, [], 1)
        with pytest.raises(ValueError, match="one weight"):
            core.quantiles(table, None, np.ones(3), 255, 1)
        with pytest.raises(ValueError, match="max_bins"):
            core.quantiles(table, None, None, 1, 1)


class TestSameAnswer:
    @pytest.fixture
    def values(self, rng):
        values = rng.normal(size=(3000, 5))
        values[:, 1] = rng.integers(0, 9, size=3000)
        values[rng.random((3000, 5)) < 0.05] = np.nan
        return values

    @staticmethod
    def bits(table):
        """Return edges and codes as bytes."""
        binned = Dataset(table, max_bins=63, n_jobs=2).binned
        return [edges.tobytes() for edges in binned.edges], binned.codes.by_row.tobytes()

    def test_numpy_orders_and_strides(self, values):
        wide = np.zeros((6000, 10))
        wide[::2, ::2] = values
        backwards = values[::-1, ::-1].copy()[::-1, ::-1]
        frozen = values.copy()
        frozen.flags.writeable = False
        expected = self.bits(values)
        for other in (np.asfortranarray(values), wide[::2, ::2], backwards, frozen):
            assert self.bits(other) == expected
        assert self.bits(values.astype(">f8")) == expected
        assert self.bits(np.ma.masked_invalid(values)) == expected
        assert self.bits(values.tolist()) == expected

    def test_dataframes(self, values):
        pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
        names = list("abcde")
        expected = self.bits(values)
        table = pa.table({name: values[:, i] for i, name in enumerate(names)})
        batches = table.to_batches(max_chunksize=171)
        nulls = pa.table({n: pa.array(values[:, i], from_pandas=True) for i, n in enumerate(names)})
        tables = {
            "pandas": pd.DataFrame(values, columns=names),
            "pandas by column": pd.DataFrame({n: values[:, i] for i, n in enumerate(names)}),
            "pandas nullable": pd.DataFrame(values, columns=names).astype("Float64"),
            "pandas pyarrow": pd.DataFrame(values, columns=names).astype("double[pyarrow]"),
            "polars": pl.DataFrame(values, schema=names),
            "polars chunked": pl.concat(
                [
                    pl.DataFrame(values[:999], schema=names),
                    pl.DataFrame(values[999:], schema=names),
                ],
                rechunk=False,
            ),
            "pyarrow": table,
            "pyarrow nulls": nulls,
            "pyarrow chunked": pa.Table.from_batches(batches),
            "pyarrow sliced": pa.concat_tables([nulls.slice(0, 13), nulls.slice(13)]),
            "pyarrow batch": table.combine_chunks().to_batches()[0],
        }
        for kind, other in tables.items():
            assert self.bits(other) == expected, kind

    @pytest.mark.filterwarnings("ignore:all (values|columns) of X are")
    @given(st.data())
    def test_chunks_do_not_matter(self, data):
        pa = pytest.importorskip("pyarrow")
        values = data.draw(st.lists(st.one_of(st.none(), st.integers(-9, 9)), min_size=2))
        cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=4)))
        for dtype in (pa.int8(), pa.float32(), pa.bool_()):
            plain = [None if v is None else (v > 0 if dtype == pa.bool_() else v) for v in values]
            whole = pa.table({"a": pa.array(plain, dtype)})
            bounds = [0, *cuts, len(values)]
            parts = [whole.slice(a, b - a) for a, b in pairwise(bounds)]
            expected = np.array([[np.nan if v is None else float(v)] for v in plain])
            assert self.bits(pa.concat_tables(parts)) == self.bits(whole) == self.bits(expected)

    def test_integers_and_booleans_of_every_width(self, rng):
        values = rng.integers(0, 100, size=(500, 3))
        expected = self.bits(values.astype(float))
        for dtype in "bhilBHILefd":
            assert self.bits(values.astype(dtype)) == expected, dtype
        assert self.bits(values > 50) == self.bits((values > 50).astype(float))


class TestDataset:
    def test_holds_what_a_fit_needs(self):
        data = Dataset([[1, 2], [3, None]], ["a", "b"], sample_weight=[1, 2])
        assert (data.n_rows, data.n_features, data.max_bins) == (2, 2, 255)
        assert data.y.tolist() == ["a", "b"]
        assert data.sample_weight.tolist() == [1.0, 2.0]
        assert repr(data) == "Dataset(2 rows, 2 features, max_bins=255)"

    def test_rows_of_weight_zero_are_left_out(self, rng):
        values, y = rng.normal(size=(400, 3)), rng.normal(size=400)
        weight = rng.integers(0, 3, size=400).astype(float)
        kept = weight > 0
        data = Dataset(values, y, sample_weight=weight, max_bins=16)
        small = Dataset(values[kept], y[kept], sample_weight=weight[kept], max_bins=16)
        assert data.y.tolist() == small.y.tolist()
        assert data.sample_weight.tolist() == small.sample_weight.tolist()
        assert [e.tolist() for e in data.binned.edges] == [e.tolist() for e in small.binned.edges]
        assert (data.binned.codes.to_numpy() == small.binned.codes.to_numpy()).all()

    def test_equal_weights_are_no_weights(self, rng):
        values = rng.normal(size=(999, 2))
        plain, weighted = (
            Dataset(values, max_bins=9),
            Dataset(values, sample_weight=0.1, max_bins=9),
        )
        assert [e.tolist() for e in plain.binned.edges] == [
            e.tolist() for e in weighted.binned.edges
        ]

    @pytest.mark.parametrize("max_bins", [1, 0, -3, 65_536])
    def test_max_bins_out_of_range(self, max_bins):
        with pytest.raises(ValueError, match="max_bins"):
            Dataset([[1.0]], max_bins=max_bins)

    @pytest.mark.parametrize("max_bins", ["255", 10.5, None, True])
    def test_max_bins_of_another_type(self, max_bins):
        with pytest.raises(TypeError, match="max_bins"):
            Dataset([[1.0]], max_bins=max_bins)

    def test_example_in_the_docstring(self):
        assert doctest.testmod(arboost.data.bins).failed == 0


def keys_of(matrix):
    return Dataset(matrix).binned.codes.row_keys()


def test_keys_are_equal_where_all_codes_are():
    """However columns are stored: by themselves, together or sparsely."""
    matrix = mixed_table(np.random.default_rng(3), 2500)
    matrix = np.vstack([matrix, matrix[:100]])
    edges = []
    for column in matrix.T:
        values = np.unique(column[~np.isnan(column)])[::50]
        edges.append((values[1:] + values[:-1]) / 2)
    for name, codes in every_storage(matrix, edges).items():
        _, expected = np.unique(codes.to_numpy(), axis=0, return_inverse=True)
        _, found = np.unique(codes.row_keys(), return_inverse=True)
        assert found.max() == expected.max(), name
        pairs = np.unique(np.column_stack([found, expected]), axis=0)
        assert len(pairs) == found.max() + 1, name


def test_mixed_rows():
    keys = keys_of(np.array([[1.0], [2.0], [1.0], [np.nan], [np.nan], [2.0], [7.0]]))
    y = np.array([0.0, 3.0, 1.0, -0.0, 0.0, 3.0, 5.0])[:, np.newaxis]
    np.testing.assert_array_equal(_core.mixed_rows(keys, y), [0, 2])
    several = np.hstack([np.zeros((7, 1)), np.array([[0, 1, 0, 1, 0, 2, 0]]).T])
    np.testing.assert_array_equal(_core.mixed_rows(keys, several), [1, 3, 4, 5])
    assert len(_core.mixed_rows(keys[:0], y[:0])) == 0


def test_refusals():
    with pytest.raises(ValueError, match="not as many targets as keys"):
        _core.mixed_rows(keys_of(np.eye(3)), np.zeros((2, 1)))
    ranks = Dataset(np.eye(3), tree_method="exact").binned.codes
    with pytest.raises(ValueError, match="no row keys"):
        ranks.row_keys()
