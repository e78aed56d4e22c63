"""Labels of any type become sorted classes and their indices, on any number of threads."""

import numpy as np
import pytest

from arboost.backend import core
from arboost.data.target import Task, encode_labels

TYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "?", ">i4", ">f8")


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("dtype", TYPES)
def test_classes_of_every_type(rng, dtype, n_threads):
    y = rng.choice([0, 1, 3, 90, 119], 150_000).astype(dtype)
    classes, codes = encode_labels(y, n_threads)
    expected, index = np.unique(y, return_inverse=True)
    assert classes.dtype == y.dtype.newbyteorder("=")
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, index)


@pytest.mark.parametrize(
    "y",
    [
        np.array([-(2**63), -(2**63) + 3]),
        np.array([2**64 - 1, 2**64 - 5], np.uint64),
        np.array([0, 10**6, -(10**6)]),
        np.array([-(2.0**60), 2.0**60]),
        np.array([7, 7]),
    ],
)
def test_labels_far_apart_and_at_the_ends_of_their_type(y):
    classes, codes = encode_labels(y)
    np.testing.assert_array_equal(classes, np.unique(y))
    np.testing.assert_array_equal(classes[codes.astype(int)], y)


def test_strided_labels():
    classes, codes = encode_labels(np.array([5, 0, 2, 0, 5, 0])[::2])
    assert classes.tolist() == [2, 5]
    assert codes.tolist() == [1.0, 0.0, 1.0]


def test_zero_keeps_the_sign_of_its_last_row():
    assert np.signbit(encode_labels(np.array([0.0, 1.0, -0.0]))[0]).tolist() == [True, False]
    assert np.signbit(encode_labels(np.array([-0.0, 1.0, 0.0]))[0]).tolist() == [False, False]


@pytest.mark.parametrize("y", [np.array([0.5, 1.0]), np.array([0.0, np.inf]), np.array([np.nan])])
def test_no_whole_numbers(y):
    assert core.index_labels(y, 2.0**16, np.empty(len(y)), 1) is None


def test_rows_of_each_class(rng):
    y = rng.integers(0, 5, 200_000)
    task = Task.of("classifier", y)
    for n_threads in (1, 3):
        assert task.class_counts(n_threads).tolist() == np.bincount(y).tolist()
    with pytest.raises(ValueError, match="no class"):
        core.class_counts(np.array([0.0, 2.0]), 2, 1)
