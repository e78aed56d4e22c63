"""The parameter `monotonic_cst` with floats, as arrays of NumPy often hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from arboost.params.compound_kinds import MonotoneConstraints
from arboost.params.kinds import Param

__all__ = ["MonotonicCst", "with_floats"]


@dataclass(frozen=True, kw_only=True)
class MonotonicCst(MonotoneConstraints):
    """Directions by feature, of which arrays may be of whole floats."""

    def check(self, value: object) -> list[Any] | None:
        """Return plain lists; ``fit`` looks the features up."""
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            whole = value.astype(np.int8)
            if not np.array_equal(whole, value):
                raise ValueError(self.message(value))
            value = whole
        return super().check(value)


def with_floats(table: Mapping[str, Param]) -> dict[str, Param]:
    """Return a table of parameters whose `monotonic_cst` takes floats, too."""
    given = table["monotonic_cst"]
    kind = MonotonicCst(
        name=given.name, default=given.default, text=given.text, advice=given.advice
    )
    return {**table, "monotonic_cst": kind}
