"""Kinds of parameters: allowed values, values of texts, refusals, the record in a model file.

A kind has ``type_name`` for docstrings, ``annotation`` for signatures and ``allowed`` for messages;
``check`` returns the value for training, ``record`` its form in JSON, and ``parse`` the value of a
text on a command line.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import math
import numbers
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from arboost.errors import ParameterError, ParameterTypeError

_LARGEST_INT = 2**31 - 1  # the core counts depths, leaves and rounds in 32 bits
_LARGEST_SEED = 2**32 - 1  # as scikit-learn
_LONGEST_VALUE = 80  # characters of a value in messages
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True}
_TRUTHS |= {"false": False, "no": False, "off": False, "0": False}
_WORDS = {"none": None, "null": None, "true": True, "false": False, "nan": math.nan}


Condition = tuple[str, Any]  # a parameter, and its value


@dataclass(frozen=True)
class Search:
    """Values of a parameter that `arboost.tune` tries; a part of those that are allowed.

    Attributes
    ----------
    low, high : int or float
        Range: whole numbers where `low` is an int.
    log : bool
        Whether the logarithm of the values is uniform.
    choices : tuple
        Values instead of a range.
    only, unless : tuple of str and value, or None
        Another parameter and the value without which, or with which, this one is not searched.
    """

    low: float = 0
    high: float = 0
    log: bool = False
    choices: tuple[Any, ...] = ()
    only: Condition | None = None
    unless: Condition | None = None

    @property
    def text(self) -> str:
        """The values, for tables of parameters."""
        if self.choices:
            return ", ".join(map(repr, self.choices))
        return f"{self.low:g} to {self.high:g}" + (", log scale" if self.log else "")

    def applies(self, params: Mapping[str, Any]) -> bool:
        """Whether the parameter is searched, next to these values of the others."""
        if self.only is not None and params.get(self.only[0]) != self.only[1]:
            return False
        return self.unless is None or params.get(self.unless[0]) != self.unless[1]


@dataclass(frozen=True, kw_only=True)
class Param:
    """One parameter: name, default, text and advice; subclasses define the allowed values.

    `search` has the values that `arboost.tune` tries; None: it is not searched. Files of models
    leave out the default of a parameter without `always_recorded`, so that a new parameter changes
    the files of no other fits.

    Attributes
    ----------
    is_flag : bool
        Whether an option of the command line needs no value: True without one.
    takes_estimators : bool
        Whether values are estimators, which a command line knows by name.
    """

    name: str
    default: Any
    text: str
    advice: str = ""
    search: Search | None = None
    always_recorded: bool = True

    is_flag: ClassVar[bool] = False
    takes_estimators: ClassVar[bool] = False

    @property
    def type_name(self) -> str:
        """Type in docstrings."""
        raise NotImplementedError

    @property
    def annotation(self) -> str:
        """Type in signatures."""
        return self.type_name.replace(" or ", " | ")

    @property
    def allowed(self) -> str:
        """Allowed values, to follow "must be" in messages."""
        raise NotImplementedError

    @property
    def has_default(self) -> bool:
        """Whether an estimator can be made without the parameter."""
        return self.default is not inspect.Parameter.empty

    @property
    def completions(self) -> tuple[str, ...]:
        """Words that the text of a value may be, for completion in a shell."""
        return ()

    def check(self, value: object) -> Any:
        """Value in the form that training reads; TypeError or ValueError where it is refused."""
        raise NotImplementedError

    def parse(self, text: str) -> Any:
        """Value of a text on a command line, not yet checked: a word, a number, or JSON or TOML.

        Examples
        --------
        >>> rate = Real(name="rate", default=1.0, text="")
        >>> rate.parse("0.5"), rate.parse("none"), rate.parse("[1, 2]")
        (0.5, None, [1, 2])
        """
        word = text.strip()
        if word.lower() in _WORDS:
            return _WORDS[word.lower()]
        value = parse_number(word)
        return parse_literal(word) if isinstance(value, str) else value

    def record(self, value: Any) -> Any:
        """Checked value in the form of a model file."""
        return value

    def restore(self, recorded: Any) -> Any:
        """Value of a constructor, from its form in a model file."""
        return recorded

    def value_error(self, value: object, suggestion: str = "") -> ParameterError:
        """Refusal of a value; a suggestion, a sentence, comes before the allowed values."""
        return ParameterError(*self._refusal(value, suggestion), parameter=self.name)

    def type_error(self, value: object) -> ParameterTypeError:
        """Refusal of a value by its type."""
        return ParameterTypeError(*self._refusal(value), parameter=self.name)

    def word(self, value: str, words: Iterable[str]) -> str:
        """A string that is one of some words; ParameterError where it is not."""
        if value not in words:
            raise self.value_error(value)
        return str(value)

    def floats(self, several: Iterable[object], value: object) -> list[float]:
        """Several numbers as floats; ParameterTypeError of the whole value for other entries."""
        entries = list(several)
        if not all(is_number(entry, numbers.Real) for entry in entries):
            raise self.type_error(value)
        return [to_float(entry) for entry in entries]

    def _refusal(self, value: object, suggestion: str = "") -> tuple[str, str]:
        """Given and allowed values; and advice."""
        shown = repr(value)
        if len(shown) > _LONGEST_VALUE:
            shown = f"{shown[:_LONGEST_VALUE]}..."
        setting = f"{self.name}={shown} ({type(value).__name__})"
        suggestion = f"{suggestion} " if suggestion else ""
        return (
            f"{setting} is not allowed: {suggestion}{self.name} must be {self.allowed}.",
            self.advice or f"Use an allowed value, for example the default {self.default!r}.",
        )


class SeveralValues(Param):
    """Mixin of kinds whose values may be a list, which a text writes with commas."""

    always_list: ClassVar[bool] = False  # a single value is a list, too

    def parse(self, text: str) -> Any:
        """Value of a text; its parts between commas in a list."""
        value = super().parse(text)
        if not isinstance(value, str) or value == self.default:
            return value
        parts = [parse_number(part.strip()) for part in value.split(",")]
        return parts if len(parts) > 1 or self.always_list else value


@dataclass(frozen=True, kw_only=True)
class Number(Param):
    """A number from `low` to `high`; None too where `optional`, "auto" where `automatic`."""

    low: float = -math.inf
    high: float = math.inf
    optional: bool = False
    automatic: bool = False

    number_type: ClassVar[str]
    range_text: ClassVar[str]

    @property
    def type_name(self) -> str:
        """Type in docstrings."""
        name = self.number_type + (" or str" if self.automatic else "")
        return name + (" or None" if self.optional else "")

    @property
    def allowed(self) -> str:
        """Allowed values, to follow "must be" in messages."""
        text = self.range_text + (", or None" if self.optional else "")
        return text + (', or "auto"' if self.automatic else "")

    def check(self, value: object) -> Any:
        """Number as an int or float; or None or "auto"."""
        is_auto = self.automatic and isinstance(value, str) and value == "auto"
        return value if is_auto or (self.optional and value is None) else self.number(value)

    def number(self, value: object) -> float:
        """Number as an int or float."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Integer(Number):
    """A whole number in [low, high]."""

    low: int
    high: int = _LARGEST_INT
    also: tuple[int, ...] = ()

    number_type: ClassVar[str] = "int"

    @property
    def range_text(self) -> str:  # type: ignore[override]
        """Range, in messages."""
        text = f"an integer of at least {self.low}"
        if self.high != _LARGEST_INT:
            text = f"an integer from {self.low} to {self.high}"
        return text + "".join(f", or {value}" for value in self.also)

    def number(self, value: object) -> int:
        """Number as an int."""
        # bool is a subtype of int, but True as a count is nearly always a mistake.
        if not is_number(value, numbers.Integral):
            raise self.type_error(value)
        number = int(value)  # type: ignore[call-overload]
        if number > self.high == _LARGEST_INT:
            raise self.value_error(value, f"the largest integer is {_LARGEST_INT}.")
        if not self.low <= number <= self.high and number not in self.also:
            raise self.value_error(value)
        return int(number)


@dataclass(frozen=True, kw_only=True)
class Verbosity(Integer):
    """A whole number of at least 0, or a bool."""

    low: int = 0
    number_type: ClassVar[str] = "bool or int"

    @property
    def allowed(self) -> str:
        """Allowed values, to follow "must be" in messages."""
        return f"{super().allowed}, or True or False"

    def check(self, value: object) -> Any:
        """Number as an int."""
        return int(value) if isinstance(value, bool | np.bool_) else super().check(value)


@dataclass(frozen=True, kw_only=True)
class Real(Number):
    """A finite number from `low` to `high`, exclusive where open."""

    low_open: bool = False
    high_open: bool = False

    number_type: ClassVar[str] = "float"

    @property
    def range_text(self) -> str:  # type: ignore[override]
        """Range, in messages."""
        text = "a finite number"
        if self.low > -math.inf:
            text += f" above {self.low:g}" if self.low_open else f" of at least {self.low:g}"
        if self.high < math.inf:
            text += f" and below {self.high:g}" if self.high_open else f" and at most {self.high:g}"
        return text

    def number(self, value: object) -> float:
        """Number as a float."""
        if not is_number(value, numbers.Real):
            raise self.type_error(value)
        number = to_float(value)
        above = number > self.low if self.low_open else number >= self.low
        below = number < self.high if self.high_open else number <= self.high
        if not (math.isfinite(number) and above and below):
            raise self.value_error(value)
        return number


@dataclass(frozen=True, kw_only=True)
class Fraction(Real):
    """A number from 0 to 1, exclusive where open."""

    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Flag(Param):
    """True or False."""

    type_name: ClassVar[str] = "bool"
    allowed: ClassVar[str] = "True or False"
    completions: ClassVar[tuple[str, ...]] = ("true", "false")
    is_flag: ClassVar[bool] = True

    def check(self, value: object) -> bool:
        """Value as a Python bool."""
        if not isinstance(value, bool | np.bool_):
            raise self.type_error(value)
        return bool(value)

    def parse(self, text: str) -> Any:
        """Truth of a word such as "true", "no" or "1"."""
        return parse_truth(text)


@dataclass(frozen=True, kw_only=True)
class Choice(Param):
    """One of a few strings."""

    options: tuple[str, ...]

    annotation: ClassVar[str] = "str"

    @property
    def type_name(self) -> str:
        """Type in docstrings."""
        return f"{{{quoted(self.options)}}}"

    @property
    def allowed(self) -> str:
        """Allowed values, to follow "must be" in messages."""
        return quoted(self.options, " or ")

    @property
    def completions(self) -> tuple[str, ...]:
        """The strings."""
        return self.options

    def check(self, value: object) -> Any:
        """The string."""
        if not isinstance(value, str):
            raise self.type_error(value)
        if value not in self.options:
            raise self.value_error(value, self.suggestion(value))
        return str(value)

    def parse(self, text: str) -> Any:
        """The text, without spaces around it."""
        return text.strip()

    def suggestion(self, value: str) -> str:
        """Sentence on a string that is not among the options, "" for none."""
        from arboost.params.suggestions import value_suggestion

        return value_suggestion(self.name, value, self.options)


@dataclass(frozen=True, kw_only=True)
class Device(Param):
    """A device by name: the CPU, or a CUDA device and its number."""

    type_name: ClassVar[str] = "str"
    allowed: ClassVar[str] = '"cpu", "cuda", or "cuda:1" and so on for other devices than the first'

    def check(self, value: object) -> str:
        """The name."""
        if not isinstance(value, str):
            raise self.type_error(value)
        if value != "cpu" and not re.fullmatch(r"cuda(:\d{1,4})?", value):
            is_gpu = value.lower() in {"gpu", "gpu:0"}
            raise self.value_error(value, 'The name is "cuda".' if is_gpu else "")
        return str(value)

    def parse(self, text: str) -> Any:
        """The text, without spaces around it."""
        return text.strip()


@dataclass(frozen=True, kw_only=True)
class Seed(Param):
    """A seed, or a generator to draw it from; `check` returns the seed."""

    type_name: ClassVar[str] = "int, RandomState or None"
    annotation: ClassVar[str] = "int | RandomState | None"
    allowed: ClassVar[str] = (
        f"an integer from 0 to {_LARGEST_SEED}, a numpy.random.RandomState, or None"
    )

    def check(self, value: object) -> int:
        """The seed; from None, a seed of the operating system's entropy."""
        if value is None:
            return secrets.randbits(32)
        if isinstance(value, np.random.RandomState):
            return int(value.randint(0, _LARGEST_SEED, dtype=np.uint32))
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise self.type_error(value)
        if not 0 <= int(value) <= _LARGEST_SEED:
            raise self.value_error(value)
        return int(value)


# ---- functions and estimators of the user ----


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

    methods: ClassVar[tuple[str, ...]] = ("fit", "predict")

    def check(self, value: object) -> Any:
        """The estimator unchanged."""
        methods = [callable(getattr(value, name, None)) for name in self.methods]
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


def _metric_name(metric: object) -> str | None:
    """Name of a function or metric object; None for any other object."""
    name = getattr(metric, "name", None) or getattr(metric, "__name__", None)
    function = getattr(metric, "function", metric)
    return str(name or type(metric).__name__) if callable(function) else None


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
        several = as_list(value)
        levels = self.floats([value] if several is None else several, value)
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
        several = as_list(value)
        scores = self.floats([value] if several is None else several, value)
        if not scores or not all(map(math.isfinite, scores)):
            raise self.value_error(value)
        return scores[0] if several is None else scores


class Directions(list[Any]):
    """Checked monotone constraints, with the name of their parameter for later messages."""

    def __init__(self, directions: list[Any], parameter: str) -> None:
        super().__init__(directions)
        self.parameter = parameter


@dataclass(frozen=True, kw_only=True)
class MonotoneConstraints(SeveralValues):
    """Directions by feature; `check` returns a list of directions or of [feature, direction].

    Arrays may be of floats.
    """

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
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":  # as scikit-learn
            if not np.isin(value, (-1, 0, 1)).all():
                raise self.value_error(value)
            directions = value.astype(np.int64).tolist()
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

    type_name: ClassVar[str] = 'list of groups, "pairwise", "no_interactions", or None'
    annotation: ClassVar[str] = "str | Sequence[Iterable[Any]] | None"
    allowed: ClassVar[str] = (
        'a list of groups, each of names or indices of features, "pairwise", "no_interactions", or '
        "None"
    )

    def check(self, value: object) -> Any:
        """Plain lists; ``fit`` looks the features up."""
        if value is None:
            return None
        if isinstance(value, str):
            return self.word(value, ("pairwise", "no_interactions"))
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
            return self.word(value, ("from_dtype",))
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

    type_name: ClassVar[str] = '"sqrt", "log2", int, float or None'
    annotation: ClassVar[str] = "str | int | float | None"

    @property
    def allowed(self) -> str:
        """Allowed values, to follow "must be" in messages."""
        return f'"sqrt", "log2", {super().allowed}'

    def check(self, value: object) -> Any:
        """The string, the number or the share; or None."""
        if isinstance(value, str):
            return self.word(value, self.words)
        return super().check(value)


@dataclass(frozen=True, kw_only=True)
class OobScore(Flag):
    """True, False, or a function of (y, prediction), of which model files keep the name."""

    type_name: ClassVar[str] = "bool or callable"
    annotation: ClassVar[str] = "bool | Callable[..., float]"
    allowed: ClassVar[str] = "True, False, or a function of (y, prediction)"

    def check(self, value: object) -> Any:
        """A Python bool, or the function."""
        return value if callable(value) else super().check(value)

    def record(self, value: Any) -> Any:
        """The bool, or a dict with the name of a function."""
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
            return self.word(value, self.words)
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
        if value not in ("auto", "iso", "dayfirst", "monthfirst") and "%" not in value:
            raise self.value_error(value)
        return str(value)

    def restore(self, recorded: Any) -> Any:
        """A dict of the pairs."""
        return dict(recorded) if isinstance(recorded, list) else recorded


@dataclass(frozen=True, kw_only=True)
class CalendarParts(SeveralValues):
    """Calendar parts of dates that are features."""

    options: ClassVar[tuple[str, ...]] = ("hour", "weekday", "month", "dayofyear")
    always_list: ClassVar[bool] = True
    type_name: ClassVar[str] = '"auto", list of str, or None'
    annotation: ClassVar[str] = "str | Sequence[str] | None"

    allowed: ClassVar[str] = f'"auto", a list of some of {str(options)[1:-1]}, or None'

    def check(self, value: object) -> Any:
        """A list, "auto" or None."""
        if value is None or (isinstance(value, str) and value == "auto"):
            return value
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise self.value_error(value) if isinstance(value, str) else self.type_error(value)
        if not value or not all(part in self.options for part in value):
            raise self.value_error(value)
        return [part for part in self.options if part in value]


# ---- tables and values of parameters ----


def by_name(*params: Param) -> dict[str, Param]:
    """Parameters by name."""
    return {param.name: param for param in params}


def quoted(words: Iterable[str], separator: str = ", ") -> str:
    """Words in quotation marks, for messages and docstrings."""
    return separator.join(f'"{word}"' for word in words)


def is_number(value: object, kind: type) -> bool:
    """Whether the value is a number of the kind, numbers.Integral or Real, and not a bool."""
    # Most values are plain numbers, for which abstract classes take ten times as long.
    if type(value) is int or (type(value) is float and kind is numbers.Real):
        return True
    return isinstance(value, kind) and not isinstance(value, bool)


def is_feature(key: object) -> bool:
    """Whether a value is a name or an index of a feature."""
    return isinstance(key, str) or is_number(key, numbers.Integral)


def plain_value(value: Any) -> Any:
    """Label or feature as a Python object, for JSON."""
    return value.item() if isinstance(value, np.generic) else value


def as_list(value: Any) -> list[Any] | None:
    """List of the entries of a list, a tuple or a vector; None for any other value."""
    if isinstance(value, np.ndarray) and value.ndim == 1:
        return list(value.tolist())
    return list(value) if isinstance(value, list | tuple) else None


def to_float(value: Any) -> float:
    """Number as a float; infinity beyond the largest float."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


# ---- values of texts ----


def parse_truth(text: str) -> bool | str:
    """Truth value of a text, or the text itself."""
    return _TRUTHS.get(text.strip().lower(), text.strip())


def parse_number(text: str) -> int | float | str:
    """Number of a text, or the text itself."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def parse_literal(text: str) -> Any:
    """Value of a literal in JSON or TOML, or the text itself."""
    import tomllib

    if text[:1] not in ("[", "{", '"', "'"):
        return text
    with contextlib.suppress(ValueError):
        return json.loads(text)
    with contextlib.suppress(tomllib.TOMLDecodeError):
        return tomllib.loads(f"value = {text}")["value"]
    return text
