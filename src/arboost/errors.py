"""Exceptions and warnings in addition to the built-in types.

A message has three parts: the given value, the allowed values, and advice.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ClassVar, ParamSpec, Self, TypeVar

__all__ = [
    "ArboostError",
    "DataWarning",
    "DeviceError",
    "InputError",
    "InputTypeError",
    "MissingCompilerError",
    "MissingPackageError",
    "ModelFormatError",
    "ParameterError",
    "ParameterTypeError",
    "SchemaError",
    "WorkerError",
    "error_prefix",
    "needs_packages",
    "warn_caller",
    "warn_once",
    "warnings_collected",
    "warns_once",
]

P = ParamSpec("P")
R = TypeVar("R")

# Messages of `warn_once` within the fit of an ensemble; None outside.
_said: ContextVar[set[str] | None] = ContextVar("said", default=None)
# Warnings that are collected instead of issued, with their categories; None: they are issued.
_collected: ContextVar[list[tuple[str, type[Warning]]] | None] = ContextVar(
    "collected", default=None
)


class ArboostError(Exception):
    """Error of the library; programs read its attributes, never its text.

    Subclasses are ValueError, TypeError and so on as well.

    Parameters
    ----------
    problem : str
        Given value, and allowed values.
    advice : str
        Last sentences of the message.
    parameter : str, optional

    Attributes
    ----------
    category : {"data", "parameter", "model", "device", "package", "worker"}
        Thing at fault.
    problem, advice : str
        The message, and its part that says what to do in Python.
    parameter : str or None
        Parameter, argument or option that has to change.
    """

    category: ClassVar[str] = "data"

    def __init__(self, problem: str, advice: str = "", *, parameter: str | None = None) -> None:
        super().__init__(f"{problem} {advice}" if advice else problem)
        self.problem, self.advice, self.parameter = problem, advice, parameter


class InputError(ArboostError, ValueError):
    """Data that cannot be used."""


class InputTypeError(ArboostError, TypeError):
    """Data, or an argument, of a type that cannot be used."""


class ParameterError(InputError):
    """A parameter with a value that is not allowed."""

    category = "parameter"


class ParameterTypeError(InputTypeError):
    """A parameter with a value of a type that is not allowed."""

    category = "parameter"


class SchemaError(InputError):
    """The columns of a table are not those of the model, or of the other files of a source."""


class ModelFormatError(InputError):
    """A model file is damaged, too new, or no model file at all."""

    category = "model"


class DeviceError(ArboostError, RuntimeError):
    """The requested device cannot be used."""

    category = "device"


class MissingPackageError(ArboostError, ModuleNotFoundError):
    """An optional package is not installed; the message names the extra that installs it.

    Attributes
    ----------
    use : str
        Beginning of the message: the function or module that needs the package.
    package, extra : str
    """

    category = "package"

    def __init__(self, use: str, package: str, extra: str) -> None:
        super().__init__(
            f"{use} needs the package {package}, which is not installed.",
            f"Install it with pip install 'arboost[{extra}]'.",
        )
        self.name = self.package = package
        self.use, self.extra = use, extra

    def __reduce__(self) -> tuple[type[Self], tuple[str, str, str]]:
        return type(self), (self.use, self.package, self.extra)


class MissingCompilerError(MissingPackageError, DeviceError):
    """The run-time compiler of CUDA is not installed; raised by the core."""


class WorkerError(ArboostError, RuntimeError):
    """A worker of a cluster is lost, was silent for too long, or cannot hold its rows."""

    category = "worker"


class DataWarning(UserWarning):
    """The data can be used, but probably not as the user expects."""


@contextmanager
def needs_packages(extra: str, use: str) -> Iterator[None]:
    """Turn a failed import in the block into MissingPackageError: `use` needs `extra`."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", __package__) or isinstance(error, MissingPackageError):
            raise
        raise MissingPackageError(use, package, extra) from error


@contextmanager
def error_prefix(text: str) -> Iterator[None]:
    """Put words before the messages of errors of the block, such as the name of a batch."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raised = type(error)(f"{text}: {error}")
        vars(raised).update(vars(error))  # parameter, advice
        if isinstance(raised, ArboostError):
            raised.problem = f"{text}: {raised.problem}"
        raise raised from error


def warn_caller(message: str, category: type[Warning] = DataWarning) -> None:
    """Warn, with the first line outside this package as the origin of the warning."""
    collected = _collected.get()
    if collected is not None:
        collected.append((message, category))
        return
    frame, level = sys._getframe(1), 2
    inside = f"{__package__}."
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(inside):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def warnings_collected() -> Iterator[list[tuple[str, type[Warning]]]]:
    """Collect the warnings of this thread in a list, for another process to issue them."""
    collected: list[tuple[str, type[Warning]]] = []
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)


def warn_once(message: str, topic: str = "table") -> None:
    """Warn as `warn_caller`; within a function of `warns_once`, once for each topic."""
    said = _said.get()
    if said is not None:
        if topic in said:
            return
        said.add(topic)
    warn_caller(message)


def warns_once(fit: Callable[P, R]) -> Callable[P, R]:
    """Decorate the fit of an ensemble, whose members read one table many times."""

    @wraps(fit)
    def fit_with_one_warning(*args: P.args, **kwargs: P.kwargs) -> R:
        outer = _said.get()
        token = _said.set(set() if outer is None else outer)
        try:
            return fit(*args, **kwargs)
        finally:
            _said.reset(token)

    return fit_with_one_warning


def listing(items: Iterable[object], limit: int = 10) -> str:
    """Items with commas between them, and the number of items beyond ``limit``.

    Examples
    --------
    >>> listing(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    shown = [str(item) for item in items]
    more = f" and {len(shown) - limit} more" if len(shown) > limit else ""
    return ", ".join(shown[:limit]) + more
