"""The run of ``arboost predict``: batches of the input -> file of predictions."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from arboost.cli.console import Console, seconds_text, size_text
from arboost.cli.errors import (
    DataFailure,
    UsageFailure,
    reading_data,
    writing_output,
)
from arboost.cli.model_files import check_table_output, find_offset, load_model, needed_columns
from arboost.cli.tables import (
    MOST_ROWS,
    input_label,
    open_rows,
    refuse_input,
    require_columns,
    resolve_names,
)


def predict(
    console: Console, *, model: str, data: Sequence[str], output: str, **options: Any
) -> None:
    """Write predictions; options are those of the command."""
    method = _method(proba=options["proba"], raw=options["raw"])
    to_stdout = output == "-"
    if not to_stdout:
        check_table_output(output, options["output_format"], safe_csv=options["safe_csv"])
        refuse_input(output, [model])
    elif console.as_json:
        raise UsageFailure("--json and -o - would both write to the standard output.")
    loaded = load_model(model, options["device"])
    if method == "predict_proba" and loaded.kind != "classifier":
        raise UsageFailure(
            "--proba needs a classifier, but the model is a regressor. Leave it out, or train with "
            "--task classification."
        )
    if not hasattr(loaded, method):
        raise UsageFailure(
            "--raw needs a model of trees, but the model is an ensemble of models. Leave it out."
        )
    label = input_label(data)
    with console.phase(f"predicting {label}") as phase:
        with _Output(output) as path:
            n_rows = _write(
                console, loaded, data, path, method, options | {"output": output}, phase
            )
        size = "" if to_stdout else f" to {output}, {size_text(os.path.getsize(output))}"
        phase.result = (
            f"predicted {n_rows:,} rows of {label} in {seconds_text(phase.seconds)}{size}"
        )
    console.emit({"output": output, "rows": n_rows, "seconds": phase.seconds})


def _method(*, proba: bool, raw: bool) -> str:
    if proba and raw:
        raise UsageFailure("--proba and --raw are two outputs: use one of them.")
    return "predict_proba" if proba else "predict_raw" if raw else "predict"


def _write(
    console: Console,
    model: Any,
    data: Sequence[str],
    path: str,
    method: str,
    options: dict[str, Any],
    phase: Any,
) -> int:
    """Write the predictions of all rows to a file; return their number."""
    from arboost.models.prediction_files import predict_to_file

    kept: list[str] = []
    offset = find_offset(model, options["offset"])

    def columns(names: list[str]) -> list[str]:
        features = needed_columns(model, names, input_label(data))
        kept.extend(resolve_names(options["keep"], names, "--keep"))
        require_columns(offset, names, "--offset")
        return list(dict.fromkeys([*features, *offset, *kept]))

    stream, paths = open_rows(
        console,
        data,
        form=options["form"],
        columns=columns,
        like=model,
        progress=phase.update_bytes,
    )
    refuse_input(path, paths)
    try:
        with reading_data(), writing_output(path):
            return predict_to_file(
                model,
                stream,
                path,
                columns_to_keep=kept,
                method=method,
                offset=offset or None,
                batch_rows=MOST_ROWS,
                n_jobs=options["jobs"],
                kind=options["output_format"] or ("csv" if options["output"] == "-" else None),
                escape_formulas=options["safe_csv"],
            )
    except DataFailure as error:
        label = repr(input_label(data))
        raise DataFailure(str(error).replace("'the RecordBatchReader'", label)) from error


class _Output:
    """The path to write to: the output, or a temporary file that is copied to it at the end."""

    def __init__(self, output: str) -> None:
        self._output = output
        self._folder: Any = None

    def __enter__(self) -> str:
        if self._output != "-":
            return self._output
        self._folder = tempfile.TemporaryDirectory(prefix="arboost-output-")
        return self._path

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._folder is None:
            return
        with self._folder:
            if kind is None:
                with open(self._path, "rb") as file:
                    shutil.copyfileobj(file, sys.stdout.buffer)
                sys.stdout.buffer.flush()

    @property
    def _path(self) -> str:
        return os.path.join(self._folder.name, "predictions")
