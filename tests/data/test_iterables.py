"""Iterables of batches as sources."""

import numpy as np
import pytest

from arboost.data.source import is_source, open_source, row_count


class Batches:
    """Arrays of some numbers of rows, with targets, from the first one on."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __iter__(self):
        for size in self.sizes:
            yield np.zeros((size, 3)), np.zeros(size)


def test_every_pass_starts_again():
    source = open_source(Batches([3, 0, 5]))
    assert source.names is None
    assert source.n_rows is None
    for _ in range(2):
        found = [(batch.first_row, batch.n_rows, batch.file) for batch in source.batches(2)]
        assert found == [(0, 3, "batch 0 of the Batches"), (3, 5, "batch 2 of the Batches")]
        assert source.n_rows == 8


def test_functions():
    source = open_source(lambda: iter([np.zeros((4, 1))]))
    assert [[batch.n_rows for batch in source.batches(9)] for _ in range(2)] == [[4], [4]]


def test_other_rows_in_the_second_pass():
    batches = Batches([3, 5])
    source = open_source(batches)
    assert len(list(source.batches(9))) == 2
    batches.sizes = [3, 4]
    with pytest.raises(ValueError, match="had 8 rows, but 7 when it was read again"):
        list(source.batches(9))


def test_generators_are_refused():
    generator = iter(Batches([1]))
    assert is_source(generator)
    with pytest.raises(TypeError, match="is a generator, whose batches can be read only once"):
        open_source(generator)


def test_columns_are_for_files():
    with pytest.raises(ValueError, match=r"columns=\['x'\] is not allowed with an iterable"):
        open_source(Batches([1]), ["x"])


def test_tables_are_no_iterables():
    import pandas as pd
    import polars as pl

    frame = pd.DataFrame({"x": [1]})
    for X in (frame, frame["x"], pl.from_pandas(frame), {1}, range(3), "x", np.float64(1), Batches):
        if not isinstance(X, str):
            assert not is_source(X)
    with pytest.raises(TypeError, match="X is a DataFrame, which is no source"):
        open_source(frame)


def test_rows_of_tables():
    import polars as pl

    tables = (np.zeros((2, 1)), pl.DataFrame({"x": [1, 2]}), {"x": [1, 2]}, [[1], [2]])
    assert [row_count(table) for table in tables] == [2] * 4
    assert row_count(({"x": [1, 2]}, [1, 2])) == 2
