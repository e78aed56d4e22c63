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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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

    def _refusal(self, value: object, suggestion: str = "") -> tuple[str, str]:
        """Given and allowed values; and advice."""
        shown = repr(value)
        if len(shown) > _LONGEST_VALUE:
            shown = f"{shown[:_LONGEST_VALUE]}..."
        given = f"{self.name}={shown} ({type(value).__name__})"
        suggestion = f"{suggestion} " if suggestion else ""
        return (
            f"{given} is not allowed: {suggestion}{self.name} must be {self.allowed}.",
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

    @property
    def type_name(self) -> str:
        """Type in docstrings."""
        return f"{{{quoted(self.options)}}}"

    @property
    def annotation(self) -> str:
        """Type in signatures."""
        return "str"

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
