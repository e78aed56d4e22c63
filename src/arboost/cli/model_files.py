"""Model files of a command: loading, the rows that a model needs, and checked outputs."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import Any

from arboost.cli.console import Console
from arboost.cli.errors import (
    DataFailure,
    OutputFailure,
    UsageFailure,
    reading_model,
    using_parameters,
    writing_output,
)
from arboost.cli.row_record import SPLIT, RowRecord
from arboost.cli.tables import Loaded, column_kinds, input_label, read_table, require_columns
from arboost.data.source import FileFormat
from arboost.params.suggestions import did_you_mean

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
        near = did_you_mean(missing[0], others) if len(missing) == 1 else ""
        raise DataFailure(
            f"{label} has no {'column' if len(missing) == 1 else 'columns'} {shown}{more}, which "
            f"the model needs.{near} Give a table with the columns of the training."
        )
    return needed


def _has_labels(model: Any) -> bool:
    """Whether the classes of a model are strings."""
    return model.classes is not None and all(isinstance(one, str) for one in model.classes)


ENSEMBLES = ("bagging", "stacking", "voting")  # of whole models


def check_output(path: str, suffixes: Sequence[str] = ()) -> None:
    """Raise OutputFailure where a file cannot be written, before any work is done for it.

    Parameters
    ----------
    path : str
    suffixes : sequence of str
        Allowed ends of the name; any where it is empty.
    """
    if suffixes and not path.lower().endswith(tuple(suffixes)):
        raise UsageFailure(
            f"the output {path!r} must end in {' or '.join(suffixes)}, which tells its kind."
        )
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise OutputFailure(f"cannot write {path!r}: it is a folder. Give the path of a file.")
    if os.path.exists(path) and not os.path.isfile(path):
        # A finished file takes the name of the old one, which must not be a device or a pipe.
        raise OutputFailure(
            f"cannot write {path!r}: it is no file but a device or pipe. Use - for the standard "
            "output of arboost predict."
        )
    if not os.path.isdir(folder):
        raise OutputFailure(
            f"cannot write {path!r}: the folder {folder!r} does not exist. Make it first."
        )
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputFailure(
            f"cannot write {path!r}: the folder {folder!r} takes no file ({error.strerror}). "
            "Choose another folder."
        ) from error


def check_table_output(path: str, kind: str | None = None, *, safe_csv: bool = False) -> None:
    """Raise OutputFailure or UsageFailure where a table cannot be written; see `check_output`.

    Without a kind, the name must tell it.
    """
    if kind is None:
        from arboost.data.files import file_kind

        try:
            kind = file_kind(path)[0]
        except ValueError as error:
            text = str(error).partition(" Rename the file")[0]
            raise UsageFailure(f"{text} Use another name.") from error
    if safe_csv and kind not in ("csv", "tsv"):
        raise UsageFailure(
            f"--safe-csv is for CSV and TSV output, but {path!r} is of kind {kind}. Leave it out."
        )
    check_output(path)


def check_model_output(path: str, model: str) -> None:
    """Raise OutputFailure or UsageFailure where a model of this name cannot be written."""
    check_output(path, (".arb", ".json"))
    if model in ENSEMBLES and not path.lower().endswith(".arb"):
        raise UsageFailure(
            f"the output {path!r} must end in .arb: {model} is an ensemble of models, which has no "
            "JSON form."
        )


def default_model_path(data: Sequence[str]) -> str:
    """Return the name of the model of some files: that of the first, with .arb.

    Examples
    --------
    >>> default_model_path(["data/prices.csv.gz"]), default_model_path(["-"])
    ('prices.arb', 'model.arb')
    """
    name = os.path.basename(os.path.normpath(data[0])).partition(".")[0]
    usable = "".join(one for one in name if one.isalnum() or one in "-_ ").strip("-_ ")
    return f"{usable or 'model'}.arb"


def save_model(estimator: Any, path: str, record: RowRecord) -> int:
    """Write the model of an estimator with the record of its rows; return the size of its file."""
    model = estimator.to_predictor() if hasattr(estimator, "to_predictor") else estimator.model_
    with writing_output(path):
        model.with_provenance({SPLIT: record.to_json()}).save(path)
        return os.path.getsize(path)
