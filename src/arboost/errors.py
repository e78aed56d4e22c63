"""Exceptions and warnings in addition to the built-in types.

A message has three parts: the given value, the allowed values, and advice.
"""

from __future__ import annotations

import sys
import warnings

__all__ = ["DataWarning", "DeviceError", "ModelFormatError", "SchemaError", "warn_caller"]


class SchemaError(ValueError):
    """The columns of a table are not those that the model was fitted on."""


class ModelFormatError(ValueError):
    """A model file is damaged, too new, or no model file at all."""


class DeviceError(RuntimeError):
    """The requested device cannot be used."""


class DataWarning(UserWarning):
    """The data can be used, but probably not as the user expects."""


def warn_caller(message: str, category: type[Warning] = DataWarning) -> None:
    """Warn, with the first line outside this package as the origin of the warning."""
    frame, level = sys._getframe(1), 2
    inside = f"{__package__}."
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(inside):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
