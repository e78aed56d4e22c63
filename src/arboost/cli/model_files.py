"""Models of files, the name of their target, and the rows that they need."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from arboost.cli.console import Console
from arboost.cli.errors import UsageFailure, reading_model, using_parameters
from arboost.cli.input.text_types import column_kinds
from arboost.cli.tables import Loaded, read_table
from arboost.sources.file_source import FileFormat

__all__ = ["find_target", "load_model", "read_rows"]


def load_model(path: str, device: str | None = None) -> Any:
    """Return the model of a file.

    Raises
    ------
    ModelFailure
        There is no such file, or it holds no model.
    UsageFailure
        The device is unknown.
    """
    import arboost

    with reading_model():
        if os.path.isdir(path):
            raise IsADirectoryError(f"{path!r} is a folder. Give the path of a model file.")
        model = arboost.load(path)
    if device is None:
        return model
    with using_parameters():
        try:
            return model.to(device)
        except RuntimeError as error:  # DeviceError
            raise UsageFailure(str(error)) from error


def find_target(model: Any, given: str | None) -> str:
    """Return the target: the given one, or that of the training, which the model file keeps."""
    target = given or model.schema.target
    if target is None:
        raise UsageFailure(
            "the model file does not tell the name of its target. Add --target COLUMN."
        )
    return str(target)


def read_rows(
    console: Console,
    model: Any,
    data: Sequence[str],
    others: Sequence[str | None],
    form: FileFormat,
) -> Loaded:
    """Read the features of a model, and other columns, of which the target is the first.

    Text is read with the types of the training, labels as strings where the model has strings.
    """
    names = model.schema.names
    target = others[0] if others else None
    given = [name for name in others if name is not None]
    columns = None if names is None else list(dict.fromkeys([*names, *given]))
    kinds = column_kinds(model)
    if target is not None and _has_labels(model):
        kinds[target] = "string"
    return read_table(console, data, form=form, columns=columns, like=kinds)


def _has_labels(model: Any) -> bool:
    """Whether the classes of a model are strings."""
    return model.classes is not None and all(isinstance(one, str) for one in model.classes)
