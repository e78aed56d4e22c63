"""Kinds of parameters with more than one value inside, or with functions of the user's."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from arboost.params.kinds import Choice, Param, is_number, to_float

__all__ = [
    "CategoricalFeatures",
    "ClassWeight",
    "InteractionConstraints",
    "Learner",
    "LossChoice",
    "Metrics",
    "Missing",
    "MonotoneConstraints",
    "Quantiles",
]


@dataclass(frozen=True, kw_only=True)
class LossChoice(Choice):
    """One of a few words, or an `arboost.CustomLoss`; model files keep its name only."""

    type_name: ClassVar[str] = "str or arboost.CustomLoss"
    annotation: ClassVar[str] = "str | CustomLoss"

    @property
    def allowed(self) -> str:
        """What is allowed, to follow "must be"."""
        return f"{super().allowed} or an arboost.CustomLoss"

    def check(self, value: object) -> Any:
        """Return the word, or the loss itself."""
        # The losses are of a later stage, so this one looks at what makes a loss, not at its class.
        if callable(getattr(value, "gradients", None)) and not isinstance(value, type):
            return value
        return super().check(value)

    def record(self, value: Any) -> Any:
        """Return the word, or the name of a custom loss in a form that no word has."""
        return value if isinstance(value, str) else {"custom": str(value.name)}


@dataclass(frozen=True, kw_only=True)
class Learner(Param):
    """An estimator of scikit-learn's kind, or None; model files keep the name of its class."""

    type_name: ClassVar[str] = "estimator or None"
    annotation: ClassVar[str] = "Any"
    allowed: ClassVar[str] = "an estimator with the methods fit and predict, or None"

    def check(self, value: object) -> Any:
        """Return the estimator, which nothing here changes."""
        methods = [callable(getattr(value, name, None)) for name in ("fit", "predict")]
        if value is not None and (isinstance(value, type) or not all(methods)):
            raise TypeError(self.message(value))
        return value

    def record(self, value: Any) -> Any:
        """Return the name of its class, in a form that no word has."""
        return None if value is None else {"custom": type(value).__name__}


@dataclass(frozen=True, kw_only=True)
class Metrics(Param):
    """Metrics by name, as functions or as `arboost.Metric`; `check` returns a list of them."""

    type_name: ClassVar[str] = "str, callable, arboost.Metric, list of these, or None"
    annotation: ClassVar[str] = "str | Callable[..., float] | Metric | Sequence[Any] | None"
    allowed: ClassVar[str] = (
        "the name of a metric, a function of (y, score, weight), an arboost.Metric, a list of "
        "these that is not empty, or None"
    )

    def check(self, value: object) -> list[Any] | None:
        """Return the metrics as given, in a list; what the names mean is for `metrics` to say."""
        if value is None:
            return None
        several = list(value) if isinstance(value, list | tuple) else [value]
        if not several:
            raise ValueError(self.message(value))
        if not all(isinstance(one, str) or _metric_name(one) for one in several):
            raise TypeError(self.message(value))
        return several

    def record(self, value: Any) -> Any:
        """Return the names, those of functions in a form that no word has."""
        if value is None:
            return None
        return [one if isinstance(one, str) else {"custom": _metric_name(one)} for one in value]


@dataclass(frozen=True, kw_only=True)
class Quantiles(Param):
    """A number in (0, 1), or several in increasing order."""

    type_name: ClassVar[str] = "float or list of float"
    annotation: ClassVar[str] = "float | Sequence[float]"
    allowed: ClassVar[str] = (
        "a number above 0 and below 1, or a list of such numbers in increasing order"
    )

    def check(self, value: object) -> float | list[float]:
        """Return the number, or the list of them; a list of one is the number."""
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = value.tolist()
        several = list(value) if isinstance(value, list | tuple) else [value]
        if not all(is_number(one, numbers.Real) for one in several):
            raise TypeError(self.message(value))
        levels = [to_float(one) for one in several]
        increasing = all(low < high for low, high in pairwise(levels))
        if not levels or not increasing or not all(0.0 < level < 1.0 for level in levels):
            raise ValueError(self.message(value))
        return levels[0] if len(levels) == 1 else levels


@dataclass(frozen=True, kw_only=True)
class MonotoneConstraints(Param):
    """Directions by feature; `check` returns a list of directions or of [feature, direction]."""

    type_name: ClassVar[str] = "dict, sequence of {-1, 0, 1}, or None"
    annotation: ClassVar[str] = "Mapping[Any, int] | Sequence[int] | None"
    allowed: ClassVar[str] = (
        "a dict from names or indices of features to -1, 0 or 1, a sequence with one of these "
        "for each feature, or None"
    )

    def check(self, value: object) -> list[Any] | None:
        """Return plain lists; which features there are is only known in fit."""
        if value is None:
            return None
        keys: Iterable[object] = ()
        if isinstance(value, Mapping):
            keys, directions = list(value.keys()), list(value.values())
        elif isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes):
            directions = list(value)
        else:
            raise TypeError(self.message(value))
        if not all(map(_is_feature, keys)) or not all(
            is_number(one, numbers.Integral) for one in directions
        ):
            raise TypeError(self.message(value))
        if not all(one in (-1, 0, 1) for one in directions):
            raise ValueError(self.message(value))
        plain = [int(one) for one in directions]
        if not isinstance(value, Mapping):
            return plain
        return [[_plain(key), one] for key, one in zip(keys, plain, strict=True)]


@dataclass(frozen=True, kw_only=True)
class InteractionConstraints(Param):
    """Groups of features, or a word for some; `check` returns the word or a list of lists."""

    words: tuple[str, ...] = ("pairwise", "no_interactions")

    @property
    def type_name(self) -> str:
        """Type as the docstrings show it."""
        words = ", ".join(f'"{word}"' for word in self.words)
        return f"list of groups, {words}, or None"

    @property
    def annotation(self) -> str:
        """Type as the signatures have it."""
        return "str | Sequence[Iterable[Any]] | None"

    @property
    def allowed(self) -> str:
        """What is allowed, to follow "must be"."""
        words = ", ".join(f'"{word}"' for word in self.words)
        return f"a list of groups, each of names or indices of features, {words}, or None"

    def check(self, value: object) -> Any:
        """Return plain lists; which features there are is only known in fit."""
        if value is None:
            return None
        if isinstance(value, str):
            if value not in self.words:
                raise ValueError(self.message(value))
            return str(value)
        if not isinstance(value, list | tuple):
            raise TypeError(self.message(value))
        for group in value:
            fits = isinstance(group, list | tuple | Set | np.ndarray)
            if not fits or not all(map(_is_feature, group)):
                raise TypeError(self.message(value))
        if not value or not all(len(group) for group in value):
            raise ValueError(self.message(value))
        return [sorted(map(_plain, group), key=str) for group in value]


@dataclass(frozen=True, kw_only=True)
class ClassWeight(Param):
    """Weights by label; `check` returns a dict, the word or None."""

    type_name: ClassVar[str] = 'dict, "balanced" or None'
    annotation: ClassVar[str] = "Mapping[Any, float] | str | None"
    allowed: ClassVar[str] = 'a dict from labels to finite weights above 0, "balanced", or None'

    def check(self, value: object) -> Any:
        """Return labels and weights as plain Python values; which labels exist is known in fit."""
        if value is None or value == "balanced":
            return value
        if not isinstance(value, Mapping):
            raise (ValueError if isinstance(value, str) else TypeError)(self.message(value))
        labels = (str, numbers.Real, np.bool_)
        numeric = all(is_number(one, numbers.Real) for one in value.values())
        if not numeric or not all(isinstance(label, labels) for label in value):
            raise TypeError(self.message(value))
        plain = {_plain(label): to_float(weight) for label, weight in value.items()}
        if not all(0.0 < weight < math.inf for weight in plain.values()):
            raise ValueError(self.message(value))
        return plain

    def record(self, value: Any) -> Any:
        """Return pairs instead of a dict: JSON knows no keys but strings."""
        return [list(pair) for pair in value.items()] if isinstance(value, dict) else value


@dataclass(frozen=True, kw_only=True)
class CategoricalFeatures(Param):
    """Features by name, index or mask, or the word for none beside those whose type says so."""

    type_name: ClassVar[str] = '"from_dtype", or list of str, int or bool'
    annotation: ClassVar[str] = "str | Sequence[Any]"
    allowed: ClassVar[str] = (
        '"from_dtype", or a list of names, of indices, or of one truth value for each feature'
    )

    def check(self, value: object) -> Any:
        """Return the word or a plain list; which features there are is only known in fit."""
        if isinstance(value, str):
            if value != "from_dtype":
                raise ValueError(self.message(value))
            return str(value)
        if not isinstance(value, Sequence | np.ndarray) or isinstance(value, bytes):
            raise TypeError(self.message(value))
        entries = [_plain(one) for one in value]
        are_flags = [isinstance(one, bool) for one in entries]
        if (any(are_flags) and not all(are_flags)) or not all(
            isinstance(one, bool) or _is_feature(one) for one in entries
        ):
            raise TypeError(self.message(value))
        return entries


@dataclass(frozen=True, kw_only=True)
class Missing(Param):
    """A finite number, or NaN for none beside NaN itself."""

    type_name: ClassVar[str] = "float"
    allowed: ClassVar[str] = "a finite number or NaN"

    def check(self, value: object) -> float:
        """Return the number."""
        if not is_number(value, numbers.Real):
            raise TypeError(self.message(value))
        number = to_float(value)
        if math.isinf(number):
            raise ValueError(self.message(value))
        return number

    def record(self, value: Any) -> Any:
        """Return None for NaN, which JSON does not have."""
        return None if math.isnan(value) else value


def _is_feature(key: object) -> bool:
    return isinstance(key, str) or is_number(key, numbers.Integral)


def _plain(value: Any) -> Any:
    """Return a label or feature as Python's own type, which JSON can hold."""
    return value.item() if isinstance(value, np.generic) else value


def _metric_name(metric: object) -> str | None:
    """Return the name of a metric that is no word; None for what is no metric."""
    name = getattr(metric, "name", None) or getattr(metric, "__name__", None)
    function = getattr(metric, "function", metric)
    return str(name or type(metric).__name__) if callable(function) else None
