"""Exceptions and warnings in addition to the built-in types.

A message has three parts: the given value, the allowed values, and advice.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = [
    "DataWarning",
    "DeviceError",
    "ModelFormatError",
    "SchemaError",
    "WorkerError",
    "silenced",
    "warn_caller",
    "warn_first",
    "warns_first",
]

P = ParamSpec("P")
R = TypeVar("R")

# Messages of `warn_first` within the fit of an ensemble; None outside.
_said: ContextVar[list[str] | None] = ContextVar("said", default=None)
# Whether another worker warns of the same table.
_is_silent: ContextVar[bool] = ContextVar("is_silent", default=False)


class SchemaError(ValueError):
    """The columns of a table are not those of the model, or of the other files of a source."""


class ModelFormatError(ValueError):
    """A model file is damaged, too new, or no model file at all."""


class DeviceError(RuntimeError):
    """The requested device cannot be used."""


class WorkerError(RuntimeError):
    """A worker of a cluster is lost, was silent for too long, or cannot hold its rows."""


class DataWarning(UserWarning):
    """The data can be used, but probably not as the user expects."""


def warn_caller(message: str, category: type[Warning] = DataWarning) -> None:
    """Warn, with the first line outside this package as the origin of the warning."""
    if _is_silent.get():
        return
    frame, level = sys._getframe(1), 2
    inside = f"{__package__}."
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(inside):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def silenced(*, is_silent: bool) -> Iterator[None]:
    """Leave out warnings: of the workers of a fit, the first one warns for all."""
    token = _is_silent.set(is_silent or _is_silent.get())
    try:
        yield
    finally:
        _is_silent.reset(token)


def warn_first(message: str) -> None:
    """Warn as `warn_caller`; within a function of `warns_first`, only the first time."""
    said = _said.get()
    if said is not None:
        said.append(message)
        if len(said) > 1:
            return
    warn_caller(message)


def warns_first(fit: Callable[P, R]) -> Callable[P, R]:
    """Decorate the fit of an ensemble, whose members read one table many times."""

    @wraps(fit)
    def fit_with_one_warning(*args: P.args, **kwargs: P.kwargs) -> R:
        outer = _said.get()
        token = _said.set([] if outer is None else outer)
        try:
            return fit(*args, **kwargs)
        finally:
            _said.reset(token)

    return fit_with_one_warning
