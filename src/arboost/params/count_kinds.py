"""Kinds of parameters of forests: counts or shares, and class weights by target."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from arboost.params.compound_kinds import ClassWeight
from arboost.params.kinds import Param, is_number, to_float

__all__ = ["ClassWeights", "CountOrShare", "FeatureCount", "OobScore"]


@dataclass(frozen=True, kw_only=True)
class CountOrShare(Param):
    """A whole number from `low` on, or a share: a float above 0 and up to `high_share`.

    As in scikit-learn the type decides: 1 is a number and 1.0 a share.
    """

    low: int = 1
    high_share: float = 1.0
    share_open: bool = False  # whether the share must be below its limit
    optional: bool = False

    @property
    def type_name(self) -> str:
        """Type in docstrings."""
        return "int or float" + (" or None" if self.optional else "")

    @property
    def allowed(self) -> str:
        """Allowed values, to follow "must be" in messages."""
        text = f"an integer of at least {self.low}, or a float above 0"
        if self.high_share < math.inf:
            text += f" and {'below' if self.share_open else 'at most'} {self.high_share:g}"
        return text + (", or None" if self.optional else "")

    def check(self, value: object) -> int | float | None:
        """Return the number as an int or the share as a float; or None."""
        if value is None and self.optional:
            return None
        if is_number(value, numbers.Integral):
            number = int(value)  # type: ignore[call-overload]
            if number < self.low:
                raise ValueError(self.message(value))
            return int(number)
        if not is_number(value, numbers.Real):
            raise TypeError(self.message(value))
        share = to_float(value)
        below = share < self.high_share if self.share_open else share <= self.high_share
        if not (0.0 < share < math.inf and below):
            raise ValueError(self.message(value))
        return share


@dataclass(frozen=True, kw_only=True)
class FeatureCount(CountOrShare):
    """A number of features, a share of them, "sqrt" or "log2"."""

    words: ClassVar[tuple[str, ...]] = ("sqrt", "log2")
    optional: bool = True

    @property
    def type_name(self) -> str:
        """Type in docstrings."""
        return '"sqrt", "log2", int, float or None'

    @property
    def annotation(self) -> str:
        """Type in signatures."""
        return "str | int | float | None"

    @property
    def allowed(self) -> str:
        """Allowed values, to follow "must be" in messages."""
        return f'"sqrt", "log2", {super().allowed}'

    def check(self, value: object) -> Any:
        """Return the string, the number or the share; or None."""
        if isinstance(value, str):
            if value not in self.words:
                raise ValueError(self.message(value))
            return str(value)
        return super().check(value)


@dataclass(frozen=True, kw_only=True)
class OobScore(Param):
    """True, False, or a function of (y, prediction), of which model files keep the name."""

    type_name: ClassVar[str] = "bool or callable"
    annotation: ClassVar[str] = "bool | Callable[..., float]"
    allowed: ClassVar[str] = "True, False, or a function of (y, prediction)"

    def check(self, value: object) -> Any:
        """Return a Python bool, or the function."""
        if isinstance(value, bool | np.bool_):
            return bool(value)
        if not callable(value):
            raise TypeError(self.message(value))
        return value

    def record(self, value: Any) -> Any:
        """Return the bool, or a dict with the name of a function."""
        if isinstance(value, bool):
            return value
        return {"custom": getattr(value, "__name__", type(value).__name__)}


@dataclass(frozen=True, kw_only=True)
class ClassWeights(ClassWeight):
    """Weights by label, for several targets a list of dicts; or a string such as "balanced"."""

    words: tuple[str, ...] = ("balanced", "balanced_subsample")

    @property
    def type_name(self) -> str:  # type: ignore[override]
        """Type in docstrings."""
        words = ", ".join(f'"{word}"' for word in self.words)
        return f"dict, list of dict, {words} or None"

    annotation: ClassVar[str] = "Mapping[Any, float] | Sequence[Mapping[Any, float]] | str | None"

    @property
    def allowed(self) -> str:  # type: ignore[override]
        """Allowed values, to follow "must be" in messages."""
        words = ", ".join(f'"{word}"' for word in self.words)
        return (
            "a dict from labels to finite weights above 0, for several targets a list with such a "
            f"dict for each, {words}, or None"
        )

    def check(self, value: object) -> Any:
        """Return the string, a dict or a list of dicts, of plain Python values."""
        if isinstance(value, str):
            if value not in self.words:
                raise ValueError(self.message(value))
            return str(value)
        if value is None or isinstance(value, Mapping):
            return super().check(value)
        if not isinstance(value, list | tuple) or not all(
            isinstance(one, Mapping) for one in value
        ):
            raise TypeError(self.message(value))
        if not value:
            raise ValueError(self.message(value))
        return [super(ClassWeights, self).check(one) for one in value]

    def record(self, value: Any) -> Any:
        """Return pairs instead of dicts: keys in JSON are strings."""
        if not isinstance(value, list):
            return super().record(value)
        return [[list(pair) for pair in one.items()] for one in value]

    def restore(self, recorded: Any) -> Any:
        """Return a dict of the pairs, or a list of dicts for several targets."""
        of_targets = isinstance(recorded, list) and all(
            isinstance(pair, list) for one in recorded for pair in one
        )
        return [dict(one) for one in recorded] if of_targets else super().restore(recorded)
