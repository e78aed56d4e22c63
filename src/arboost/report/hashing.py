"""Random choices of a report: hashes of row numbers, so that equal inputs give equal pages."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core

__all__ = ["poisson_counts", "sample_rows"]

_NO_DRAW = 0.36787944117144233  # exp(-1): share of the rows that a replicate leaves out

_SEED = 0x7265706F7274  # "report" in ASCII: other draws of "validation" have other seeds
_SAMPLES, _REPLICATES = 0, 1  # first rounds of each kind of draw
_STEPS = 1 << 16


def sample_rows(n_rows: int, most: int) -> NDArray[np.intp]:
    """Return at most so many of the rows, chosen by hash, ascending.

    A smaller sample of the same rows is part of a larger one.

    Examples
    --------
    >>> sample_rows(5, 10)
    array([0, 1, 2, 3, 4])
    """
    if n_rows <= most:
        return np.arange(n_rows)
    bits = core.counter_hash("validation", _SEED, _SAMPLES, n_rows)
    chosen = np.argsort(bits, kind="stable")[:most]
    return np.sort(chosen)


def poisson_counts(n_replicates: int, n_rows: int) -> NDArray[np.uint8]:
    """Return draws from the Poisson distribution of mean 1, shape (n_replicates, n_rows).

    A bootstrap replicate weights each row by such a draw: for many rows the multinomial counts of
    a sample with replacement have this distribution.
    """
    n_words = -(-n_replicates * n_rows // 4)  # a hash of 64 bits has four draws
    bits = core.counter_hash("validation", _SEED, _REPLICATES, n_words)
    draws = _poisson_table()[bits.view(np.uint16)]
    return draws[: n_replicates * n_rows].reshape(n_replicates, n_rows)


def _poisson_table() -> NDArray[np.uint8]:
    """Return the count of each of 65,536 equally likely outcomes."""
    place = (np.arange(_STEPS) + 0.5) / _STEPS
    table = np.zeros(_STEPS, np.uint8)
    term = total = _NO_DRAW
    count = 0
    while total < place[-1]:
        table[place > total] = count + 1
        count += 1
        term /= count
        total += term
    return table
