"""Warnings of data that can be fitted, but hardly as the user expects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from arboost.data.table import Table
from arboost.errors import warn_caller

__all__ = [
    "warn_constant_columns",
    "warn_target_scale",
    "warn_weight_scale",
]

_FLOAT32 = np.finfo(np.float32)
_FEWEST_ROWS = 2  # fewer are always constant


def warn_constant_columns(
    table: Table, rows: NDArray[np.uint32] | None, edges: Sequence[NDArray[np.float64]]
) -> None:
    """Warn where no column can be split: all are constant, or have no values.

    Parameters
    ----------
    table : Table
    rows : uint32 array, or None for all
        Training rows.
    edges : sequence of float64 arrays
        Bin edges of each column.
    """
    n_rows = table.n_rows if rows is None else len(rows)
    if n_rows < _FEWEST_ROWS or any(map(len, edges)):
        return
    kinds = set()
    for feature in range(table.schema.n_features):
        column = table.columns.read(feature)
        missing = np.isnan(column if rows is None else column[rows])
        if missing.any() and not missing.all():
            return  # a split can separate the missing values
        kinds.add(bool(missing.all()))
    if not kinds:
        return
    found = "all values of X are missing" if kinds == {True} else "all columns of X are constant"
    warn_caller(
        f"{found} in the {n_rows} training rows, so there is nothing to split on, and the model "
        "predicts a constant. Check how X was read, and the parameter `missing`."
    )


def warn_target_scale(name: str, largest: float) -> None:
    """Warn where a target leaves the range of float32."""
    if largest > float(_FLOAT32.max):
        warn_caller(
            f"{name} reaches {largest:g} in size, beyond the range of float32: squared errors may "
            "overflow, and predictions are infinite where they become float32, as in ONNX. Bring "
            f"{name} to a smaller scale."
        )


def warn_weight_scale(
    weight: NDArray[np.float64] | None, min_child_weight: float, *, grew: bool
) -> None:
    """Warn where weights are too small for a booster, to which their scale matters.

    Parameters
    ----------
    weight : float64 array of shape (n_rows,), or None
    min_child_weight : float
    grew : bool
        Whether any tree has a split.
    """
    if weight is None:
        return
    total, largest = float(weight.sum()), float(weight.max())
    if not grew and total < 2 * min_child_weight:
        warn_caller(
            f"no tree has a split: sample_weight adds up to {total:g}, and each leaf needs "
            f"min_child_weight={min_child_weight:g}. Scale the weights to a mean of 1, or lower "
            "min_child_weight."
        )
    elif largest < float(_FLOAT32.tiny):
        warn_caller(
            f"sample_weight is at most {largest:g}, so small that reg_lambda outweighs all rows, "
            "and that sums lose digits. Scale the weights to a mean of 1."
        )
