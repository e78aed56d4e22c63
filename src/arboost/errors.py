"""Exceptions and warnings in addition to the built-in types.

A message has three parts: the given value, the allowed values, and advice.
"""

from __future__ import annotations

__all__ = ["DataWarning", "DeviceError", "ModelFormatError", "SchemaError"]


class SchemaError(ValueError):
    """The columns of a table are not those that the model was fitted on."""


class ModelFormatError(ValueError):
    """A model file is damaged, too new, or no model file at all."""


class DeviceError(RuntimeError):
    """The requested device cannot be used."""


class DataWarning(UserWarning):
    """The data can be used, but probably not as the user expects."""
