"""Columns of every type: the same values give the same numbers from every library."""

import datetime
import decimal
import warnings

import numpy as np
import pytest

from arboost.data.table import ingest
from arboost.errors import DataWarning, SchemaError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

Decimal = decimal.Decimal
UTC = datetime.UTC


def column(table, schema=None):
    """Return the values of the only column in the core."""
    return ingest(table, schema).columns.read(0)


def same(given, expected):
    np.testing.assert_array_equal(given, np.array(expected, float))


INSTANTS = [
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999),
    datetime.datetime(2024, 2, 29, 12, 30, 15, 123_456),
    None,
    datetime.datetime(1800, 1, 1),
    datetime.datetime(2024, 2, 29, 12, 30, 15, 123_457),
]
SECONDS = [-1e-6, 1_709_209_815.123456, np.nan, -5_364_662_400.0, 1_709_209_815.123457]


def instants():
    micro = np.array(INSTANTS, dtype="M8[us]")
    aware = [None if one is None else one.replace(tzinfo=UTC) for one in INSTANTS]
    yield "numpy", micro.reshape(-1, 1)
    yield "numpy, two columns", np.column_stack([micro, micro])[:, :1]
    yield "lists", [[one] for one in INSTANTS]
    yield "pandas", pd.DataFrame({"a": micro})
    yield "pandas objects", pd.DataFrame({"a": pd.Series(INSTANTS, dtype=object)})
    yield "pandas aware objects", pd.DataFrame({"a": pd.Series(aware, dtype=object)})
    zone = pd.Series(micro).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    yield "pandas with a zone", pd.DataFrame({"a": zone})
    yield (
        "pandas with Arrow",
        pd.DataFrame({"a": pd.Series(micro).astype("timestamp[us][pyarrow]")}),
    )
    yield "polars", pl.DataFrame({"a": pl.Series(INSTANTS, dtype=pl.Datetime("us"))})
    yield (
        "polars with a zone",
        pl.DataFrame({"a": pl.Series(aware, dtype=pl.Datetime("us", "UTC"))}),
    )
    yield "arrow", pa.table({"a": pa.array(INSTANTS, pa.timestamp("us"))})
    yield "arrow with a zone", pa.table({"a": pa.array(aware, pa.timestamp("us", "Asia/Tokyo"))})
    chunks = [
        pa.array(INSTANTS[:2], pa.timestamp("us")),
        pa.array(INSTANTS[2:], pa.timestamp("us")),
    ]
    yield "arrow chunks", pa.table({"a": pa.chunked_array(chunks)})


class TestTimes:
    @pytest.mark.parametrize(
        ("name", "table"), list(instants()), ids=[name for name, _ in instants()]
    )
    def test_instants_are_seconds(self, name, table):
        read = ingest(table)
        assert read.schema.units == ("datetime",), name
        values = read.columns.read(0)
        np.testing.assert_allclose(values, SECONDS, rtol=1e-15, atol=1e-12)
        same(values, column(pa.table({"a": pa.array(INSTANTS, pa.timestamp("us"))})))

    @pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
    def test_any_unit_gives_the_same_numbers(self, unit):
        days = np.array(["1950-05-17", "NaT", "2024-02-29", "2100-01-01"], dtype="M8[D]")
        fine = days.astype(f"M8[{unit}]")
        expected = column(days.reshape(-1, 1))
        same(expected, [-619_401_600, np.nan, 1_709_164_800, 4_102_444_800])
        same(column(fine.reshape(-1, 1)), expected)
        same(column(pd.DataFrame({"a": fine})), expected)
        same(column(pl.DataFrame({"a": fine.astype("M8[ns]")})), expected)
        same(column(pa.table({"a": pa.array(days).cast(pa.timestamp(unit))})), expected)
        same(column(pa.table({"a": pa.array(days, pa.date32())})), expected)
        same(column(pa.table({"a": pa.array(days, pa.date32()).cast(pa.date64())})), expected)
        same(column(pl.DataFrame({"a": pl.Series(days.tolist(), dtype=pl.Date)})), expected)
        same(column([[day] for day in days.tolist()]), expected)
        months = np.array(["1950-05", "2024-02"], dtype="M8[M]").reshape(-1, 1)
        same(column(months), [-620_784_000, 1_706_745_600])

    def test_fractions_do_not_depend_on_the_unit(self):
        rng = np.random.default_rng(0)
        micro = rng.integers(-(2**51), 2**51, 1000)
        expected = column(micro.astype("M8[us]").reshape(-1, 1))
        for unit, factor in (("ns", 10**3), ("us", 1)):
            ticks = pa.array(micro * factor).cast(pa.timestamp(unit))
            same(column(pa.table({"a": ticks})), expected)
        np.testing.assert_allclose(expected, micro / 1e6, rtol=1e-15)
        assert len(np.unique(expected)) == len(np.unique(micro))

    def test_durations_and_times_of_day(self):
        spans = [datetime.timedelta(days=-1, microseconds=5), None, datetime.timedelta(hours=3)]
        expected = [-86_399.999995, np.nan, 10_800]
        for table in (
            [[one] for one in spans],
            np.array(spans, "m8[us]").reshape(-1, 1),
            pd.DataFrame({"a": spans}),
            pl.DataFrame({"a": spans}),
            pa.table({"a": pa.array(spans, pa.duration("ns"))}),
        ):
            read = ingest(table)
            assert read.schema.units == ("duration",)
            same(read.columns.read(0), expected)
        clock = [datetime.time(1, 2, 3, 500_000), None, datetime.time(23)]
        for table in (
            [[one] for one in clock],
            pd.DataFrame({"a": clock}),
            pl.DataFrame({"a": clock}),
            pa.table({"a": pa.array(clock, pa.time64("us"))}),
            pa.table({"a": pa.array(clock, pa.time32("ms"))}),
        ):
            read = ingest(table)
            assert read.schema.units == ("time",)
            same(read.columns.read(0), [3723.5, np.nan, 82_800])

    def test_periods_and_numpy_scalars(self):
        same(
            column(pd.DataFrame({"a": pd.period_range("2024-01", periods=2, freq="M")})),
            [1_704_067_200, 1_706_745_600],
        )
        mixed = [[np.datetime64("1970-01-01")], [None], [np.datetime64("1970-01-01T00:00:01")]]
        same(column(np.array(mixed, object)), [0, np.nan, 1])

    def test_a_warning_where_doubles_cannot_tell_instants_apart(self):
        start = np.datetime64("2024-01-01T00:00:00", "ns")
        fine = (start + np.arange(3)).reshape(-1, 1)
        for table in (fine, pd.DataFrame(fine, columns=["a"]), pl.DataFrame({"a": fine[:, 0]})):
            with pytest.warns(DataWarning, match="0.2 microseconds"):
                ingest(table)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ingest((start + 1000 * np.arange(3)).reshape(-1, 1))
            ingest(np.arange(3).astype("m8[ns]").reshape(-1, 1))

    def test_kinds_of_times_are_told_apart(self):
        days = pd.DataFrame({"day": np.array(["2024-01-01", "2024-01-02"], "M8[s]")})
        schema = ingest(days).schema
        with pytest.raises(SchemaError, match=r"'day' of X holds numbers, .* dates or datetimes"):
            ingest(pd.DataFrame({"day": [1.0, 2.0]}), schema)
        with pytest.raises(SchemaError, match="holds durations, but it held dates"):
            ingest(pd.DataFrame({"day": np.array([1, 2], "m8[s]")}), schema)
        numbers = ingest(pd.DataFrame({"day": [1.0, 2.0]})).schema
        with pytest.raises(SchemaError, match=r"'day' of X holds dates or datetimes.* numbers"):
            ingest(days, numbers)
        with pytest.raises(TypeError, match="several kinds"):
            ingest([[datetime.date(2024, 1, 1)], [datetime.time(1)]])
        same(column(pd.DataFrame({"day": [np.nan, None]}), schema), [np.nan, np.nan])


class TestDecimals:
    VALUES = (Decimal("0.1"), None, Decimal("-12345678901234567.89"), Decimal("1e-7"))

    def test_nearest_doubles(self):
        expected = [0.1, np.nan, -12345678901234567.89, 1e-7]
        arrow = pa.array(self.VALUES, pa.decimal128(38, 10))
        for table in (
            [[one] for one in self.VALUES],
            pd.DataFrame({"a": self.VALUES}),
            pd.DataFrame({"a": pd.Series(arrow, dtype=pd.ArrowDtype(arrow.type))}),
            pl.DataFrame({"a": pl.Series(self.VALUES, dtype=pl.Decimal(38, 10))}),
            pa.table({"a": arrow}),
            pa.table({"a": arrow.cast(pa.decimal256(76, 10))}),
        ):
            same(column(table), expected)

    @pytest.mark.parametrize("kind", ["decimal32", "decimal64", "decimal128", "decimal256"])
    def test_every_width(self, kind):
        if not hasattr(pa, kind):
            pytest.skip("this PyArrow has no such type")
        values = [Decimal("1234.567"), Decimal("-0.001"), Decimal(0), None]
        table = pa.table({"a": pa.array(values, getattr(pa, kind)(7, 3))})
        same(column(table), [1234.567, -0.001, 0.0, np.nan])

    def test_wide_ones_are_rounded_correctly(self):
        rng = np.random.default_rng(1)
        digits = ["".join(map(str, rng.integers(0, 10, 70))) for _ in range(200)]
        values = [Decimal(f"{'-' if i % 2 else ''}{one}e-40") for i, one in enumerate(digits)]
        with decimal.localcontext() as context:
            context.prec = 76
            table = pa.table({"a": pa.array(values, pa.decimal256(76, 40))})
        same(column(table), [float(one) for one in values])

    def test_scales_below_zero(self):
        table = pa.table({"a": pa.array([Decimal("12e3"), None], pa.decimal128(5, -3))})
        same(column(table), [12_000.0, np.nan])


class TestObjects:
    def test_kinds_within_one_table(self):
        table = np.array([[1, "x", True, None], [2.5, None, False, None]], dtype=object)
        read = ingest(table)
        assert [one is not None for one in read.schema.levels] == [False, True, False, True]
        assert len(read.schema.levels[3]) == 0
        assert ingest(table.tolist()).schema == read.schema

    def test_strange_missing_values(self):
        table = pd.DataFrame(
            {"a": pd.Series(["x", np.float32("nan"), pd.NaT, pd.NA], dtype=object)}
        )
        same(column(table), [0, np.nan, np.nan, np.nan])

    def test_booleans_are_numbers(self):
        for table in (
            [[True], [None], [False]],
            pd.DataFrame({"a": pd.array([True, None, False], dtype="boolean")}),
            pd.DataFrame({"a": pd.Series([True, None, False], dtype=object)}),
            pl.DataFrame({"a": [True, None, False]}),
            pa.table({"a": [True, None, False]}),
        ):
            read = ingest(table)
            assert read.schema.levels == ()
            same(read.columns.read(0), [1, np.nan, 0])

    @pytest.mark.parametrize(
        "value",
        [[1, 2], {"a": 1}, {1, 2}, (1, 2), object(), np.zeros(2), 1j],
        ids=lambda value: type(value).__name__,
    )
    def test_what_is_neither(self, value):
        series = pd.Series([None, None], dtype=object)
        series.iloc[1] = value
        with pytest.raises(TypeError, match=r"'bad' of X.*drop"):
            ingest(pd.DataFrame({"ok": [1, 2], "bad": series}))

    def test_masked_strings(self):
        table = np.ma.MaskedArray([["x"], ["y"]], mask=[[True], [False]])
        same(column(table), [np.nan, 0])
