"""Out-of-bag means: order of summation, and rows without an out-of-bag prediction."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import DataWarning
from arboost.training.out_of_bag import OutOfBagSums, warn_never_out_of_bag

ROWS = np.arange(2, dtype=np.uint32)


def test_predictions_are_added_in_the_order_of_numbers():
    first, second = np.array([[0.1], [1e16]]), np.array([[1.0], [-1e16]])
    in_order, early = OutOfBagSums(2, 1), OutOfBagSums(2, 1)
    for number, values in ((0, first), (1, second)):
        in_order.add(number, ROWS, values)
    for number, values in ((1, second), (0, first)):
        early.add(number, ROWS, values)
    np.testing.assert_array_equal(in_order.means(), early.means())


def test_rows_that_are_never_out_of_bag_have_no_mean():
    sums = OutOfBagSums(2, 3)
    sums.add(0, ROWS[:1], np.array([[1.0, 2.0, 3.0]]))
    sums.add(1, ROWS[:0], 0.0)
    np.testing.assert_array_equal(sums.has_some(), [True, False])
    np.testing.assert_array_equal(sums.means(), [[1.0, 2.0, 3.0], [np.nan] * 3])


def test_warning():
    warn_never_out_of_bag(0, 10, "tree")
    with pytest.warns(DataWarning, match=r"3 of 10 rows were drawn for every tree: .* are NaN"):
        warn_never_out_of_bag(3, 10, "tree")
