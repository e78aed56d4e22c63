"""Edges and columns -> how codes are stored: which features share a column of bytes.

Columns of few codes are digits of one number of at most 256 values: two with three codes each take
a byte with nine. Columns that are hardly ever away from their usual code, such as the flags of a
one-hot encoding, share one digit as long as no row, or hardly any, has two of them at once: a
bundle (Ke et al. 2017, "LightGBM", section 4). Sparse columns that fit no well-filled bundle are
stored as rows and codes. Trees never see any of this: they speak of the columns of the table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core

__all__ = ["storage_plan"]


def storage_plan(
    columns: core.Columns,
    rows: NDArray[np.uint32] | None,
    edges: Sequence[NDArray[np.float64]],
    *,
    categorical: Sequence[bool] = (),
    bundling: bool = True,
    max_conflict_rate: float = 0.0,
    n_threads: int = 1,
) -> core.StoragePlan:
    """Return how the codes of a table are best stored.

    What is looked at are about 30,000 rows, chosen by a hash; ``core.encode`` sees all, and gives
    columns that turn out not to fit places of their own.

    Parameters
    ----------
    columns : core.Columns
    rows : uint32 array, or None for all
        Rows to use, ascending.
    edges : sequence of float64 arrays
        Between the bins of each column.
    categorical : sequence of bool
        Which columns are codes of levels; empty for none.
    bundling : bool
        False stores every column on its own, and sparse ones sparsely.
    max_conflict_rate : float
        Share of all rows in which more than one feature of a bundle may be away from its usual
        code. The first of them, in the order of the table, is then kept; the others count as having
        their usual code.
    n_threads : int
        The answer does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from arboost.ingest import ingest
    >>> kind = np.arange(1000) % 3
    >>> one_hot = (kind[:, None] == np.arange(3)).astype(float)
    >>> one_hot[kind != 0] = one_hot[kind != 0] * (np.arange(1000)[kind != 0] % 5 == 0)[:, None]
    >>> plan = storage_plan(ingest(one_hot[:, 1:]).columns, None, [np.array([0.5])] * 2)
    >>> plan.digits
    [[0, 1]]
    """
    return core.plan_storage(
        columns, rows, list(edges), n_threads, list(categorical), bundling, max_conflict_rate
    )
