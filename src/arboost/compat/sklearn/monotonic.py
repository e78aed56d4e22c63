"""The parameter `monotonic_cst` with floats, as arrays of NumPy often hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from arboost.params.compound_kinds import Directions, MonotoneConstraints
from arboost.params.kinds import Param

__all__ = ["MONOTONIC_CST", "with_floats"]


@dataclass(frozen=True, kw_only=True)
class MonotonicCst(MonotoneConstraints):
    """Directions by feature, of which arrays may be of whole floats."""

    def check(self, value: object) -> Directions | None:
        """Return plain lists; ``fit`` looks the features up."""
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            whole = value.astype(np.int8)
            if not np.array_equal(whole, value):
                raise ValueError(self.message(value))
            value = whole
        return super().check(value)


MONOTONIC_CST = MonotonicCst(
    name="monotonic_cst",
    default=None,
    text="",
    advice="Use for example monotonic_cst=[1, 0, -1], an entry for each feature.",
)


def with_floats(table: Mapping[str, Param]) -> dict[str, Param]:
    """Return a table of parameters whose `monotonic_cst` takes floats, too."""
    return {**table, "monotonic_cst": MONOTONIC_CST}
