"""Kinds of parameters with several values, and with functions or estimators of the user."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from arboost.params.kinds import (
    Choice,
    Param,
    SeveralValues,
    is_number,
    parse_truth,
    quoted,
    to_float,
)


@dataclass(frozen=True, kw_only=True)
class LossChoice(Choice):
    """One of a few strings, or an `arboost.CustomLoss`, of which model files keep the name."""

    type_name: ClassVar[str] = "str or arboost.CustomLoss"
    annotation: ClassVar[str] = "str | CustomLoss"

    @property
    def allowed(self) -> str:
        """Allowed values, to follow "must be" in messages."""
        return f"{super().allowed} or an arboost.CustomLoss"

    def check(self, value: object) -> Any:
        """The string, or the loss itself."""
        # params/ may not import losses/, so a loss is known by its method, not by its class.
        if callable(getattr(value, "gradients", None)) and not isinstance(value, type):
            return value
        return super().check(value)

    def suggestion(self, value: str) -> str:
        """Sentence on a string that is not among the options."""
        from arboost.params.suggestions import loss_suggestion

        return loss_suggestion(value, self.options)

    def record(self, value: Any) -> Any:
        """The string, or a dict with the name of a custom loss."""
        return value if isinstance(value, str) else {"custom": str(value.name)}


@dataclass(frozen=True, kw_only=True)
class Learner(Param):
    """A scikit-learn estimator, of which model files keep the name of its class, or None."""

    type_name: ClassVar[str] = "estimator or None"
    annotation: ClassVar[str] = "Any"
    takes_estimators: ClassVar[bool] = True
    allowed: ClassVar[str] = "an estimator with the methods fit and predict, or None"

    def check(self, value: object) -> Any:
        """The estimator unchanged."""
        methods = [callable(getattr(value, name, None)) for name in ("fit", "predict")]
        if value is not None and (isinstance(value, type) or not all(methods)):
            raise self.type_error(value)
        return value

    def record(self, value: Any) -> Any:
        """A dict with the name of the estimator's class."""
        return None if value is None else {"custom": type(value).__name__}


@dataclass(frozen=True, kw_only=True)
class Metrics(SeveralValues):
    """Metrics by name, as functions or as `arboost.Metric`; `check` returns a list of them."""

    type_name: ClassVar[str] = "str, callable, arboost.Metric, list of these, or None"
    annotation: ClassVar[str] = "str | Callable[..., float] | Metric | Sequence[Any] | None"
    allowed: ClassVar[str] = (
        "the name of a metric, a function of (y, score, weight), an arboost.Metric, a list of "
        "these that is not empty, or None"
    )

    def check(self, value: object) -> list[Any] | None:
        """The metrics in a list, unchanged; `losses.metrics` looks the names up."""
        if value is None:
            return None
        several = list(value) if isinstance(value, list | tuple) else [value]
        if not several:
            raise self.value_error(value)
        if not all(isinstance(metric, str) or _metric_name(metric) for metric in several):
            raise self.type_error(value)
        return several

    def record(self, value: Any) -> Any:
        """The names, those of functions in dicts."""
        if value is None:
            return None
        return [m if isinstance(m, str) else {"custom": _metric_name(m)} for m in value]


@dataclass(frozen=True, kw_only=True)
class Quantiles(SeveralValues):
    """A number in (0, 1), or several in increasing order."""

    type_name: ClassVar[str] = "float or list of float"
    annotation: ClassVar[str] = "float | Sequence[float]"
    allowed: ClassVar[str] = (
        "a number above 0 and below 1, or a list of such numbers in increasing order"
    )

    def check(self, value: object) -> float | list[float]:
        """The number, or a list of several numbers."""
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = value.tolist()
        several = list(value) if isinstance(value, list | tuple) else [value]
        if not all(is_number(level, numbers.Real) for level in several):
            raise self.type_error(value)
        levels = [to_float(level) for level in several]
        increasing = all(low < high for low, high in pairwise(levels))
        if not levels or not increasing or not all(0.0 < level < 1.0 for level in levels):
            raise self.value_error(value)
        return levels[0] if len(levels) == 1 else levels


@dataclass(frozen=True, kw_only=True)
class BaseScore(SeveralValues):
    """A finite number, a list of several, or None."""

    default: float | list[float] | None = None
    type_name: ClassVar[str] = "float, list of float, or None"
    annotation: ClassVar[str] = "float | Sequence[float] | None"
    allowed: ClassVar[str] = "a finite number, a list with one for each class, or None"

    def check(self, value: object) -> float | list[float] | None:
        """The number, or a list with the numbers of several outputs."""
        if value is None:
            return None
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = value.tolist()
        is_list = isinstance(value, list | tuple)
        several = list(value) if is_list else [value]  # type: ignore[call-overload]
        if not all(is_number(number, numbers.Real) for number in several):
            raise self.type_error(value)
        scores = [to_float(number) for number in several]
        if not scores or not all(map(math.isfinite, scores)):
            raise self.value_error(value)
        return scores if is_list else scores[0]


class Directions(list[Any]):
    """Checked monotone constraints, with the name of their parameter for later messages."""

    def __init__(self, directions: list[Any], parameter: str) -> None:
        super().__init__(directions)
        self.parameter = parameter


@dataclass(frozen=True, kw_only=True)
class MonotoneConstraints(SeveralValues):
    """Directions by feature; `check` returns a list of directions or of [feature, direction]."""

    type_name: ClassVar[str] = "dict, sequence of {-1, 0, 1}, or None"
    annotation: ClassVar[str] = "Mapping[Any, int] | Sequence[int] | None"
    allowed: ClassVar[str] = (
        "a dict from names or indices of features to -1, 0 or 1, a sequence with one of these "
        "for each feature, or None"
    )

    def check(self, value: object) -> Directions | None:
        """Plain lists; ``fit`` looks the features up."""
        if value is None or isinstance(value, Directions):
            return value
        keys: Iterable[object] = ()
        if isinstance(value, Mapping):
            keys, directions = list(value.keys()), list(value.values())
        elif isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes):
            directions = list(value)
        else:
            raise self.type_error(value)
        are_integers = all(is_number(direction, numbers.Integral) for direction in directions)
        if not are_integers or not all(map(is_feature, keys)):
            raise self.type_error(value)
        if not all(direction in (-1, 0, 1) for direction in directions):
            raise self.value_error(value)
        plain = [int(direction) for direction in directions]
        if not isinstance(value, Mapping):
            return Directions(plain, self.name)
        pairs = zip(keys, plain, strict=True)
        return Directions([[plain_value(key), direction] for key, direction in pairs], self.name)

    def record(self, value: list[Any] | None) -> list[Any] | None:
        """A plain list."""
        return None if value is None else list(value)

    def restore(self, recorded: Any) -> Any:
        """A dict of [feature, direction], or the directions."""
        pairs = isinstance(recorded, list) and any(isinstance(pair, list) for pair in recorded)
        return dict(recorded) if pairs else recorded


@dataclass(frozen=True, kw_only=True)
class InteractionConstraints(Param):
    """Groups of features, or their name; `check` returns the name or a list of lists."""

    words: tuple[str, ...] = ("pairwise", "no_interactions")

    @property
    def type_name(self) -> str:
        """Type in docstrings."""
        return f"list of groups, {quoted(self.words)}, or None"

    @property
    def annotation(self) -> str:
        """Type in signatures."""
        return "str | Sequence[Iterable[Any]] | None"

    @property
    def allowed(self) -> str:
        """Allowed values, to follow "must be" in messages."""
        words = quoted(self.words)
        return f"a list of groups, each of names or indices of features, {words}, or None"

    def check(self, value: object) -> Any:
        """Plain lists; ``fit`` looks the features up."""
        if value is None:
            return None
        if isinstance(value, str):
            if value not in self.words:
                raise self.value_error(value)
            return str(value)
        if not isinstance(value, list | tuple):
            raise self.type_error(value)
        for group in value:
            is_group = isinstance(group, list | tuple | Set | np.ndarray)
            if not is_group or not all(map(is_feature, group)):
                raise self.type_error(value)
        if not value or not all(len(group) for group in value):
            raise self.value_error(value)
        return [sorted(map(plain_value, group), key=str) for group in value]


@dataclass(frozen=True, kw_only=True)
class ClassWeight(Param):
    """Weights by label; `check` returns a dict, "balanced" or None."""

    type_name: ClassVar[str] = 'dict, "balanced" or None'
    annotation: ClassVar[str] = "Mapping[Any, float] | str | None"
    allowed: ClassVar[str] = 'a dict from labels to finite weights above 0, "balanced", or None'

    def check(self, value: object) -> Any:
        """Labels and weights as plain Python values; ``fit`` looks the labels up."""
        if value is None or value == "balanced":
            return value
        if not isinstance(value, Mapping):
            raise self.value_error(value) if isinstance(value, str) else self.type_error(value)
        labels = (str, numbers.Real, np.bool_)
        numeric = all(is_number(weight, numbers.Real) for weight in value.values())
        if not numeric or not all(isinstance(label, labels) for label in value):
            raise self.type_error(value)
        plain = {plain_value(label): to_float(weight) for label, weight in value.items()}
        if not all(0.0 < weight < math.inf for weight in plain.values()):
            raise self.value_error(value)
        return plain

    def record(self, value: Any) -> Any:
        """Pairs instead of a dict: keys in JSON are strings."""
        return [list(pair) for pair in value.items()] if isinstance(value, dict) else value

    def restore(self, recorded: Any) -> Any:
        """A dict of the pairs."""
        return dict(recorded) if isinstance(recorded, list) else recorded


@dataclass(frozen=True, kw_only=True)
class CategoricalFeatures(SeveralValues):
    """Features by name, index or mask, or "from_dtype" for none in addition to the types."""

    always_list: ClassVar[bool] = True
    type_name: ClassVar[str] = '"from_dtype", or list of str, int or bool'
    annotation: ClassVar[str] = "str | Sequence[Any]"
    allowed: ClassVar[str] = (
        '"from_dtype", or a list of names, of indices, or of one truth value for each feature'
    )

    def check(self, value: object) -> Any:
        """A plain list, or "from_dtype"; ``fit`` looks the features up."""
        if isinstance(value, str):
            if value != "from_dtype":
                raise self.value_error(value)
            return str(value)
        if not isinstance(value, Sequence | np.ndarray) or isinstance(value, bytes):
            raise self.type_error(value)
        entries = [plain_value(entry) for entry in value]
        is_mask = all(isinstance(entry, bool) for entry in entries)
        if not is_mask and not all(map(is_feature, entries)):
            raise self.type_error(value)
        return entries


@dataclass(frozen=True, kw_only=True)
class Missing(Param):
    """A finite number, or NaN for none in addition to NaN."""

    type_name: ClassVar[str] = "float"
    allowed: ClassVar[str] = "a finite number or NaN"

    def check(self, value: object) -> float:
        """The number."""
        if not is_number(value, numbers.Real):
            raise self.type_error(value)
        number = to_float(value)
        if math.isinf(number):
            raise self.value_error(value)
        return number

    def record(self, value: Any) -> Any:
        """The number, or None for NaN, which JSON does not have."""
        return None if math.isnan(value) else value

    def restore(self, recorded: Any) -> Any:
        """The number, NaN for None."""
        return math.nan if recorded is None else recorded


def is_feature(key: object) -> bool:
    """Whether a value is a name or an index of a feature."""
    return isinstance(key, str) or is_number(key, numbers.Integral)


def plain_value(value: Any) -> Any:
    """Label or feature as a Python object, for JSON."""
    return value.item() if isinstance(value, np.generic) else value


def _metric_name(metric: object) -> str | None:
    """Name of a function or metric object; None for any other object."""
    name = getattr(metric, "name", None) or getattr(metric, "__name__", None)
    function = getattr(metric, "function", metric)
    return str(name or type(metric).__name__) if callable(function) else None


# ---- kinds of forests ----


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
        """The number as an int or the share as a float; or None."""
        if value is None and self.optional:
            return None
        if is_number(value, numbers.Integral):
            number = int(value)  # type: ignore[call-overload]
            if number < self.low:
                raise self.value_error(value)
            return int(number)
        if not is_number(value, numbers.Real):
            raise self.type_error(value)
        share = to_float(value)
        below = share < self.high_share if self.share_open else share <= self.high_share
        if not (0.0 < share < math.inf and below):
            raise self.value_error(value)
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
        """The string, the number or the share; or None."""
        if isinstance(value, str):
            if value not in self.words:
                raise self.value_error(value)
            return str(value)
        return super().check(value)


@dataclass(frozen=True, kw_only=True)
class OobScore(Param):
    """True, False, or a function of (y, prediction), of which model files keep the name."""

    type_name: ClassVar[str] = "bool or callable"
    annotation: ClassVar[str] = "bool | Callable[..., float]"
    allowed: ClassVar[str] = "True, False, or a function of (y, prediction)"
    is_flag: ClassVar[bool] = True

    def check(self, value: object) -> Any:
        """A Python bool, or the function."""
        if isinstance(value, bool | np.bool_):
            return bool(value)
        if not callable(value):
            raise self.type_error(value)
        return value

    def record(self, value: Any) -> Any:
        """The bool, or a dict with the name of a function."""
        if isinstance(value, bool):
            return value
        return {"custom": getattr(value, "__name__", type(value).__name__)}

    def parse(self, text: str) -> Any:
        """Truth of a word such as "true", "no" or "1"."""
        return parse_truth(text)


@dataclass(frozen=True, kw_only=True)
class ClassWeights(ClassWeight):
    """Weights by label, for several targets a list of dicts; or a string such as "balanced"."""

    words: tuple[str, ...] = ("balanced", "balanced_subsample")

    @property
    def type_name(self) -> str:  # type: ignore[override]
        """Type in docstrings."""
        return f"dict, list of dict, {quoted(self.words)} or None"

    annotation: ClassVar[str] = "Mapping[Any, float] | Sequence[Mapping[Any, float]] | str | None"

    @property
    def allowed(self) -> str:  # type: ignore[override]
        """Allowed values, to follow "must be" in messages."""
        return (
            "a dict from labels to finite weights above 0, for several targets a list with a dict "
            f"for each, {quoted(self.words)}, or None"
        )

    def check(self, value: object) -> Any:
        """The string, a dict or a list of dicts, of plain Python values."""
        if isinstance(value, str):
            if value not in self.words:
                raise self.value_error(value)
            return str(value)
        if value is None or isinstance(value, Mapping):
            return super().check(value)
        is_list = isinstance(value, list | tuple)
        if not is_list or not all(isinstance(weights, Mapping) for weights in value):  # type: ignore[attr-defined]
            raise self.type_error(value)
        if not value:
            raise self.value_error(value)
        return [super(ClassWeights, self).check(weights) for weights in value]  # type: ignore[attr-defined]

    def record(self, value: Any) -> Any:
        """Pairs instead of dicts: keys in JSON are strings."""
        if not isinstance(value, list):
            return super().record(value)
        return [[list(pair) for pair in weights.items()] for weights in value]

    def restore(self, recorded: Any) -> Any:
        """A dict of the pairs, or a list of dicts for several targets."""
        of_targets = isinstance(recorded, list) and all(
            isinstance(pair, list) for pairs in recorded for pair in pairs
        )
        return [dict(pairs) for pairs in recorded] if of_targets else super().restore(recorded)


# ---- kinds of columns ----


_WORDS = ("auto", "iso", "dayfirst", "monthfirst")


@dataclass(frozen=True, kw_only=True)
class DateFormat(Param):
    """Format of dates in strings; `check` returns pairs for a dict of columns."""

    type_name: ClassVar[str] = "str, dict, or None"
    annotation: ClassVar[str] = "str | Mapping[Any, str] | None"
    allowed: ClassVar[str] = (
        '"auto", "iso", "dayfirst", "monthfirst", a format such as "%d/%m/%Y", a dict from columns '
        "to formats, or None"
    )

    def check(self, value: object) -> Any:
        """A format, a list of [column, format], or None."""
        if value is None:
            return None
        if isinstance(value, list):  # checked before, or recorded
            value = dict(value)
        if isinstance(value, Mapping):
            if not all(map(is_feature, value)):
                raise self.type_error(value)
            for text in value.values():
                if text == "auto" or not isinstance(self.check(text), str):
                    raise self.value_error(value)
            return [[plain_value(column), str(text)] for column, text in value.items()]
        if not isinstance(value, str):
            raise self.type_error(value)
        if value not in _WORDS and "%" not in value:
            raise self.value_error(value)
        return str(value)

    def restore(self, recorded: Any) -> Any:
        """A dict of the pairs."""
        return dict(recorded) if isinstance(recorded, list) else recorded


@dataclass(frozen=True, kw_only=True)
class CalendarParts(SeveralValues):
    """Calendar parts of dates that are features."""

    options: tuple[str, ...] = ("hour", "weekday", "month", "dayofyear")
    always_list: ClassVar[bool] = True
    type_name: ClassVar[str] = '"auto", list of str, or None'
    annotation: ClassVar[str] = "str | Sequence[str] | None"

    @property
    def allowed(self) -> str:
        """Allowed values, to follow "must be" in messages."""
        return f'"auto", a list of some of {", ".join(map(repr, self.options))}, or None'

    def check(self, value: object) -> Any:
        """A list, "auto" or None."""
        if value is None or (isinstance(value, str) and value == "auto"):
            return value
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self.value_error(value) if isinstance(value, str) else self.type_error(value)
        if not value or not all(part in self.options for part in value):
            raise self.value_error(value)
        return [part for part in self.options if part in value]
