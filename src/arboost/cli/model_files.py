"""Model files of a command, and outputs: checked before any work, and never left half-written."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from arboost.cli.errors import (
    ModelFailure,
    OutputFailure,
    UsageFailure,
    failures_as,
    writing_output,
)
from arboost.cli.models import ENSEMBLES
from arboost.cli.options import FORMATS

if TYPE_CHECKING:
    from arboost.cli.row_record import RowRecord


SPLIT = "split"  # key of the record of the rows in the provenance of a model


def load_model(path: str, device: str | None = None, *, has_target: bool = False) -> Any:
    """Load the model of a file; `has_target` refuses models of several targets.

    Raises
    ------
    ModelFailure
        The file does not exist or is not a model file, or the model has several targets.
    UsageFailure
        The device is unknown.
    """
    import arboost

    if os.path.isdir(path):
        raise ModelFailure(f"{path!r} is a folder. Use the path of a model file.")
    if not os.path.exists(path):
        raise ModelFailure(f"There is no model file {path!r}. Check the path.")
    with failures_as(ModelFailure):
        model = arboost.load(path)
    if has_target and getattr(model, "targets", None):
        raise ModelFailure(
            f"the model {path!r} has several targets, and scores are those of one. Use "
            "model.report(X, y, target_index=0) in Python."
        )
    with failures_as(UsageFailure):
        return model if device is None else model.to(device)


def save_model(estimator: Any, path: str, record: RowRecord) -> int:
    """Write the model of an estimator with the record of its rows; return the size of its file."""
    model = estimator.to_predictor() if hasattr(estimator, "to_predictor") else estimator.model_
    with writing_output(path):
        model.with_provenance({SPLIT: record.to_json()}).save(path)
        return os.path.getsize(path)


def default_model_path(data: Sequence[str]) -> str:
    """Name of the model of some files: that of the first, with .arb.

    Examples
    --------
    >>> default_model_path(["data/prices.csv.gz"]), default_model_path(["-"])
    ('prices.arb', 'model.arb')
    """
    name = os.path.basename(os.path.normpath(data[0])).partition(".")[0]
    usable = "".join(char for char in name if char.isalnum() or char in "-_ ").strip("-_ ")
    return f"{usable or 'model'}.arb"


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
        raise OutputFailure(f"cannot write {path!r}: it is a folder. Use the path of a file.")
    if os.path.exists(path) and not os.path.isfile(path):
        # A finished file takes the name of the old one, which must not be a device or a pipe.
        raise OutputFailure(
            f"cannot write {path!r}: it is a device or pipe, not a file. Use - for the standard "
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
        from arboost import TableFiles

        try:
            kind = TableFiles.format_of(path)
        except ValueError as error:
            raise UsageFailure(
                f"the output {path!r} is of an unknown kind: its name must end in "
                f"{', '.join(f'.{kind}' for kind in FORMATS)}. Use another name."
            ) from error
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
