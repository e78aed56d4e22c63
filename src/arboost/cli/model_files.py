"""Models of files, the name of their target, and the rows that they need."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from arboost.cli.console import Console
from arboost.cli.errors import DataFailure, UsageFailure, reading_model, using_parameters
from arboost.cli.input.text_types import column_kinds
from arboost.cli.tables import Loaded, input_label, read_table, require_columns
from arboost.sources.file_source import FileFormat
from arboost.sources.schemas import near_names

__all__ = ["find_offset", "find_target", "load_model", "needed_columns", "read_rows"]

_MOST_NAMES = 3  # in a message


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
        if not os.path.exists(path):
            raise FileNotFoundError(f"There is no model file {path!r}. Check the path.")
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


def find_offset(model: Any, given: Sequence[str]) -> list[str]:
    """Return the columns of the offset: the given ones, or those of the training; often none."""
    fitted = model.schema.offset
    if given and fitted is None:
        raise UsageFailure(
            f"--offset {','.join(given)} was given, but the model was trained without an offset. "
            "Leave it out."
        )
    if fitted == () and not given:
        raise UsageFailure(
            "the model was trained with an offset, whose columns its file does not tell. Add "
            "--offset COLUMN."
        )
    return list(given or fitted or ())


def read_rows(
    console: Console,
    model: Any,
    data: Sequence[str],
    others: Sequence[str | None],
    form: FileFormat,
    offset: Sequence[str] = (),
) -> Loaded:
    """Read the features of a model, its offset, and other columns, the target first.

    Text is read with the types of the training, labels as strings where the model has strings.
    """
    target = others[0] if others else None
    if target in others[1:]:
        raise UsageFailure(f"--weight {target} is also the target. Use another column.")
    if target is not None and target in (model.schema.names or ()):
        known = "" if model.schema.target is None else f" Its target is {model.schema.target!r}."
        raise UsageFailure(f"--target {target} is a feature of the model.{known}")

    def columns(names: list[str]) -> list[str]:
        if target is not None and target not in names:
            raise DataFailure(
                f"{input_label(data)} has no column {target!r}, the target of the model. Add it, "
                "or name another one by --target."
            )
        given = [name for name in others if name is not None]
        require_columns(given[1:], names, "--weight")
        require_columns(offset, names, "--offset")
        needed = needed_columns(model, names, input_label(data))
        return list(dict.fromkeys([*needed, *offset, *given]))

    kinds = column_kinds(model)
    if target is not None and _has_labels(model):
        kinds[target] = "string"
    return read_table(console, data, form=form, columns=columns, like=kinds)


def needed_columns(model: Any, names: list[str], label: str) -> list[str]:
    """Return the columns of a model; all of the table for a model of columns without names.

    Raises
    ------
    DataFailure
        The table, of this label, lacks some of them.
    """
    if model.schema.names is None:
        return names
    needed = list(model.schema.columns)
    missing = [name for name in needed if name not in names]
    if missing:
        shown = ", ".join(repr(name) for name in missing[:_MOST_NAMES])
        more = f" and {len(missing) - _MOST_NAMES:,} more" if len(missing) > _MOST_NAMES else ""
        others = [name for name in names if name not in needed]
        near = near_names(missing[0], others) if len(missing) == 1 else ""
        raise DataFailure(
            f"{label} has no {'column' if len(missing) == 1 else 'columns'} {shown}{more}, which "
            f"the model needs.{near} Give a table with the columns of the training."
        )
    return needed


def _has_labels(model: Any) -> bool:
    """Whether the classes of a model are strings."""
    return model.classes is not None and all(isinstance(one, str) for one in model.classes)
