"""Every parameter once: name, type, default, range, one sentence.

An estimator stores what it is given, as scikit-learn asks; `check` runs first thing in ``fit``.
``tools/write_docstrings.py`` copies the sentences into the docstrings of the estimators.
"""

from __future__ import annotations

import math
import numbers
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PARAMS", "Choice", "Integer", "Param", "Real", "Seed", "check"]

Value = int | float | str | None

_LARGEST_INT = 2**31 - 1  # the core counts depths, leaves and rounds in 32 bits
_LARGEST_SEED = 2**32 - 1  # as scikit-learn
_LONGEST_VALUE = 80  # characters of a value that messages show


@dataclass(frozen=True, kw_only=True)
class Param:
    """What all parameters have; the subclasses say what is allowed."""

    name: str
    default: Value
    text: str
    advice: str = ""

    @property
    def type_name(self) -> str:
        """Type as the docstrings show it."""
        raise NotImplementedError

    @property
    def allowed(self) -> str:
        """What is allowed, to follow "must be"."""
        raise NotImplementedError

    def check(self, value: object) -> Value:
        """Return the value as a plain Python one, or raise TypeError or ValueError."""
        raise NotImplementedError

    def _message(self, value: object) -> str:
        advice = self.advice or f"Use such a value, for example the default {self.default!r}."
        shown = repr(value)
        if len(shown) > _LONGEST_VALUE:
            shown = f"{shown[:_LONGEST_VALUE]}..."
        given = f"{self.name}={shown} ({type(value).__name__})"
        return f"{given} is not allowed: {self.name} must be {self.allowed}. {advice}"


@dataclass(frozen=True, kw_only=True)
class Integer(Param):
    """A whole number in [low, high]; None too where `optional`."""

    low: int
    high: int = _LARGEST_INT
    also: tuple[int, ...] = ()
    optional: bool = False

    @property
    def type_name(self) -> str:
        """Type as the docstrings show it."""
        return "int or None" if self.optional else "int"

    @property
    def allowed(self) -> str:
        """What is allowed, to follow "must be"."""
        if self.high == _LARGEST_INT:
            text = f"an integer of at least {self.low}"
        else:
            text = f"an integer from {self.low} to {self.high}"
        text += "".join(f", or {value}" for value in self.also)
        return text + (", or None" if self.optional else "")

    def check(self, value: object) -> int | None:
        """Return the number as an int, or None."""
        if value is None and self.optional:
            return None
        # True is an Integral to Python, but as a count it is nearly always a slip.
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise TypeError(self._message(value))
        number = int(value)
        if not self.low <= number <= self.high and number not in self.also:
            raise ValueError(self._message(value))
        return number


@dataclass(frozen=True, kw_only=True)
class Real(Param):
    """A finite number from `low` on (above it where `low_open`); None too where `optional`."""

    low: float = -math.inf
    low_open: bool = False
    optional: bool = False

    @property
    def type_name(self) -> str:
        """Type as the docstrings show it."""
        return "float or None" if self.optional else "float"

    @property
    def allowed(self) -> str:
        """What is allowed, to follow "must be"."""
        text = "a finite number"
        if self.low > -math.inf:
            text += f" above {self.low:g}" if self.low_open else f" of at least {self.low:g}"
        return text + (", or None" if self.optional else "")

    def check(self, value: object) -> float | None:
        """Return the number as a float, or None."""
        if value is None and self.optional:
            return None
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise TypeError(self._message(value))
        try:
            number = float(value)
        except OverflowError:  # an integer beyond the largest float
            number = math.inf
        too_low = number <= self.low if self.low_open else number < self.low
        if not math.isfinite(number) or too_low:
            raise ValueError(self._message(value))
        return number


@dataclass(frozen=True, kw_only=True)
class Choice(Param):
    """One of a few words."""

    options: tuple[str, ...]

    @property
    def type_name(self) -> str:
        """Type as the docstrings show it."""
        return "{" + ", ".join(f'"{option}"' for option in self.options) + "}"

    @property
    def allowed(self) -> str:
        """What is allowed, to follow "must be"."""
        return " or ".join(f'"{option}"' for option in self.options)

    def check(self, value: object) -> str:
        """Return the word."""
        if not isinstance(value, str):
            raise TypeError(self._message(value))
        if value not in self.options:
            raise ValueError(self._message(value))
        return str(value)


@dataclass(frozen=True, kw_only=True)
class Seed(Param):
    """A seed, or where to draw one from; `check` returns the seed itself."""

    @property
    def type_name(self) -> str:
        """Type as the docstrings show it."""
        return "int, RandomState or None"

    @property
    def allowed(self) -> str:
        """What is allowed, to follow "must be"."""
        return f"an integer from 0 to {_LARGEST_SEED}, a numpy.random.RandomState, or None"

    def check(self, value: object) -> int:
        """Return the seed, drawn where it was left open."""
        if value is None:
            return secrets.randbits(32)
        if isinstance(value, np.random.RandomState):
            return int(value.randint(0, _LARGEST_SEED, dtype=np.uint32))
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise TypeError(self._message(value))
        if not 0 <= int(value) <= _LARGEST_SEED:
            raise ValueError(self._message(value))
        return int(value)


def _table(*params: Param) -> dict[str, Param]:
    return {param.name: param for param in params}


PARAMS: Mapping[str, Param] = _table(
    Integer(
        name="n_estimators",
        default=100,
        low=1,
        text="Number of boosting rounds.",
    ),
    Real(
        name="learning_rate",
        default=0.1,
        low=0.0,
        low_open=True,
        text="Factor on the values of every tree: smaller needs more rounds and overfits later.",
    ),
    Integer(
        name="max_depth",
        default=6,
        low=1,
        optional=True,
        text="Largest number of splits between the root of a tree and a leaf; None sets no limit.",
        advice="Use max_depth=None for no limit.",
    ),
    Integer(
        name="max_leaves",
        default=None,
        low=2,
        optional=True,
        text="Largest number of leaves of a tree; None sets no limit.",
        advice="Use max_leaves=None for no limit.",
    ),
    Choice(
        name="grow_policy",
        default="depthwise",
        options=("depthwise", "leafwise"),
        text="Which node is split next: those nearest to the root, or the one that gains most.",
    ),
    Real(
        name="min_child_weight",
        default=1.0,
        low=0.0,
        text="Smallest sum of hessians that each side of a split must hold.",
    ),
    Integer(
        name="min_samples_leaf",
        default=1,
        low=1,
        text="Smallest number of training rows that each side of a split must hold.",
    ),
    Real(
        name="gamma",
        default=0.0,
        low=0.0,
        text="Gain that a split must exceed.",
    ),
    Real(
        name="reg_lambda",
        default=1.0,
        low=0.0,
        text="L2 penalty on the values of the leaves.",
    ),
    Real(
        name="reg_alpha",
        default=0.0,
        low=0.0,
        text="L1 penalty on the values of the leaves.",
    ),
    Real(
        name="max_delta_step",
        default=0.0,
        low=0.0,
        text="Largest absolute value of a leaf before the learning rate; 0 sets no limit.",
        advice="Use max_delta_step=0 for no limit.",
    ),
    Integer(
        name="max_bins",
        default=255,
        low=2,
        high=65535,
        text="Largest number of bins of a feature, missing values apart; above 255 a bin code "
        "takes two bytes.",
    ),
    Real(
        name="base_score",
        default=None,
        optional=True,
        text="Prediction before the first tree: a value of y, or the probability of the second of "
        "two classes; None takes it from the data.",
        advice="Use base_score=None to take it from the data.",
    ),
    Choice(
        name="multi_strategy",
        default="one_output_per_tree",
        options=("one_output_per_tree", "multi_output_tree"),
        text="With three or more classes: a tree for each class in every round, or one tree whose "
        "leaves hold a value for each class.",
    ),
    Integer(
        name="n_jobs",
        default=None,
        low=1,
        high=1024,  # far more than help; a slip of more could exhaust the machine
        also=(-1,),
        optional=True,
        text="Number of threads; None and -1 take all that this process may use. The model does "
        "not depend on it.",
        advice="Use n_jobs=None for all CPUs.",
    ),
    Seed(
        name="random_state",
        default=0,
        text="Seed of every random choice; None takes a new one for each fit.",
        advice="Use random_state=0 for the same model every time.",
    ),
    Integer(
        name="verbose",
        default=0,
        low=0,
        text="Above 0, a progress bar is drawn where the standard error stream is a terminal.",
        advice="Use verbose=1 for a progress bar.",
    ),
)


def check(values: Mapping[str, object]) -> dict[str, Any]:
    """Return checked values of the parameters as plain Python ones.

    Raises
    ------
    TypeError
        A value of the wrong type.
    ValueError
        A value out of range.

    Examples
    --------
    >>> check({"max_depth": None, "gamma": 1})
    {'max_depth': None, 'gamma': 1.0}
    """
    return {name: PARAMS[name].check(value) for name, value in values.items()}
