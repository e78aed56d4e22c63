"""Tables that workers read a share of each, compared with the table that one process reads."""

import numpy as np

from arboost.data.batch_rows import BinningSpec, RowColumns
from arboost.data.binned_source import bin_source
from arboost.data.table import ColumnOptions
from arboost.workers import Share
from support.local_workers import run_workers


def read(X, *, y=None, weight=None, groups=None, encoding="groups", **options):
    reading = {
        name: options.pop(name) for name in ("memory_limit", "cache", "columns") if name in options
    }
    max_bins = options.pop("max_bins", 63)
    spec = {
        "columns": RowColumns(y, weight, groups),
        "options": ColumnOptions(category_encoding=encoding),
        "bundling": True,
        "n_threads": 1,
    }
    return bin_source(
        X,
        BinningSpec(**spec | options),
        max_bins=max_bins,
        **{"memory_limit": "1GB"} | reading,
    )


def batches(table, sizes):
    """Return for each worker a function that yields its rows in batches of some size."""
    ends = np.cumsum(sizes)

    def source(first, last):
        return lambda: (table.iloc[i : min(i + 170, last)] for i in range(first, last, 170))

    return [source(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def feature_codes(codes):
    return codes.take(None, 1).to_numpy() if codes.is_stored else codes.to_numpy()


def assert_same(found, expected):
    """Check the results of all workers against that of one process."""
    table, binned = expected
    for own, shared in found:
        assert own.schema == table.schema
        assert own.n_rows == table.n_rows == shared.codes.n_rows
        assert own.level_classes == table.level_classes
        for name in ("y", "weight", "groups"):
            one, other = getattr(own.rows, name), getattr(table.rows, name)
            assert (one is None) == (other is None)
            if one is not None:
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)
        for one, other in zip(own.edges, table.edges, strict=True):
            np.testing.assert_array_equal(one, other)
        assert_same_encoding(own.encoded_table, table.encoded_table)
        np.testing.assert_array_equal(shared.codes.own.has_missing, binned.codes.has_missing)
        assert shared.codes.own.shared_columns == found[0][1].codes.own.shared_columns
        np.testing.assert_array_equal(shared.codes.own.first_slot, found[0][1].codes.own.first_slot)
    sizes = [one.codes.own.n_rows for _, one in found]
    assert [one.codes.first_row for _, one in found] == [0, *np.cumsum(sizes)[:-1]]
    codes = np.concatenate([feature_codes(one.codes.own) for _, one in found])
    np.testing.assert_array_equal(codes, feature_codes(binned.codes))


def assert_same_encoding(found, expected):
    assert (found is None) == (expected is None)
    for one, other in zip(
        () if found is None else found.sources,
        () if expected is None else expected.sources,
        strict=True,
    ):
        assert one.feature == other.feature
        np.testing.assert_array_equal(one.codes, other.codes)
        np.testing.assert_array_equal(one.target, other.target)
        np.testing.assert_array_equal(
            found.columns.read(one.feature), expected.columns.read(one.feature)
        )


def check(table, sizes, **options):
    parts = batches(table, sizes)
    expected = read(lambda: [table], **options)
    found = run_workers(len(sizes), lambda w: read(Share(parts[w.rank], w), **options))
    assert_same(found, expected)
    return expected, found
