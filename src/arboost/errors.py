"""What is raised beside the built-in types, and how a message is worded.

A message says what was given, what is allowed and what to do.
"""

from __future__ import annotations

__all__ = ["DataWarning", "DeviceError", "ModelFormatError", "SchemaError"]


class SchemaError(ValueError):
    """The columns of a table are not those that the model was fitted on."""


class ModelFormatError(ValueError):
    """A model file is damaged, too new, or no model file at all."""


class DeviceError(RuntimeError):
    """The device that was asked for cannot be used."""


class DataWarning(UserWarning):
    """The data can be used, but probably not as the user thinks."""
