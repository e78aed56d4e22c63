"""Kinds of parameters that forests have: numbers or shares of something, and weights by target."""

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

    As in scikit-learn 1 is a number and 1.0 a share; the type decides.
    """

    low: int = 1
    high_share: float = 1.0
    share_open: bool = False  # whether the share must be below its limit
    optional: bool = False

    @property
    def type_name(self) -> str:
        """Type as the docstrings show it."""
        return "int or float" + (" or None" if self.optional else "")

    @property
    def allowed(self) -> str:
        """What is allowed, to follow "must be"."""
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
    """A number of features, a share of them, or a word for how many."""

    words: ClassVar[tuple[str, ...]] = ("sqrt", "log2")
    optional: bool = True

    @property
    def type_name(self) -> str:
        """Type as the docstrings show it."""
        return '"sqrt", "log2", int, float or None'

    @property
    def annotation(self) -> str:
        """Type as the signatures have it."""
        return "str | int | float | None"

    @property
    def allowed(self) -> str:
        """What is allowed, to follow "must be"."""
        return f'"sqrt", "log2", {super().allowed}'

    def check(self, value: object) -> Any:
        """Return the word, the number or the share; or None."""
        if isinstance(value, str):
            if value not in self.words:
                raise ValueError(self.message(value))
            return str(value)
        return super().check(value)


@dataclass(frozen=True, kw_only=True)
class OobScore(Param):
    """True, False, or a function of (y, prediction); model files keep its name only."""

    type_name: ClassVar[str] = "bool or callable"
    annotation: ClassVar[str] = "bool | Callable[..., float]"
    allowed: ClassVar[str] = "True, False, or a function of (y, prediction)"

    def check(self, value: object) -> Any:
        """Return the truth value as Python's, or the function."""
        if isinstance(value, bool | np.bool_):
            return bool(value)
        if not callable(value):
            raise TypeError(self.message(value))
        return value

    def record(self, value: Any) -> Any:
        """Return the name of a function in a form that no word has."""
        if isinstance(value, bool):
            return value
        return {"custom": getattr(value, "__name__", type(value).__name__)}


@dataclass(frozen=True, kw_only=True)
class ClassWeights(ClassWeight):
    """Weights by label, of several targets in a list of dicts; or a word."""

    words: tuple[str, ...] = ("balanced", "balanced_subsample")

    @property
    def type_name(self) -> str:  # type: ignore[override]
        """Type as the docstrings show it."""
        words = ", ".join(f'"{word}"' for word in self.words)
        return f"dict, list of dict, {words} or None"

    annotation: ClassVar[str] = "Mapping[Any, float] | Sequence[Mapping[Any, float]] | str | None"

    @property
    def allowed(self) -> str:  # type: ignore[override]
        """What is allowed, to follow "must be"."""
        words = ", ".join(f'"{word}"' for word in self.words)
        return (
            "a dict from labels to finite weights above 0, for several targets a list with such a "
            f"dict for each, {words}, or None"
        )

    def check(self, value: object) -> Any:
        """Return the word, a dict or a list of dicts, of plain Python values."""
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
        """Return pairs instead of dicts: JSON knows no keys but strings."""
        if not isinstance(value, list):
            return super().record(value)
        return [[list(pair) for pair in one.items()] for one in value]
