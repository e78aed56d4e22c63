"""Rows with equal codes: their keys, and those that have other targets."""

import numpy as np
import pytest

from arboost import Dataset, _core
from support.stored import every_storage, mixed_table


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
