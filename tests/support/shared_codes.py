"""Tables whose rows are divided among workers, which are threads of this process."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arboost.backend import core
from arboost.workers import Workers


def bounds_of(n_rows: int, parts: Sequence[float]) -> list[int]:
    """Return the bounds of consecutive parts in these proportions."""
    shares = np.cumsum([0.0, *parts]) / sum(parts)
    return [*(int(n_rows * share) for share in shares[:-1]), n_rows]


def shared(codes: core.Codes, workers: Workers, parts: Sequence[float]) -> core.SharedCodes:
    """Return the rows of one worker, copied from the codes of all."""
    bounds = bounds_of(codes.n_rows, parts)
    first, last = bounds[workers.rank], bounds[workers.rank + 1]
    own = codes.take(np.arange(first, last, dtype=np.uint32), 1)
    return core.SharedCodes(own, first, codes.n_rows, workers.core)
