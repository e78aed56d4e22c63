"""``arboost predict``: a model and a table -> a file of predictions, in bounded memory."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from typing import Any

import click

from arboost.cli import options as opt
from arboost.cli.console import Console, seconds_text
from arboost.cli.errors import DataFailure, UsageFailure, failures_as, writing_output
from arboost.cli.model_files import check_table_output, load_model
from arboost.cli.tables import open_table, refuse_input, require_columns, resolve_names
from arboost.text import counted, size_text

_BATCH_ROWS = 1 << 20


@click.command(cls=opt.SectionedCommand, help="Write the predictions of a model for a table.")
@opt.model_argument
@opt.table_arguments
@opt.output_option("File of predictions, by its suffix; - for the standard output.", required=True)
@opt.offset_option("Offset of the rows; the model may know its columns.")
@click.option("--proba", is_flag=True, help="Class probabilities instead of labels.")
@click.option("--raw", is_flag=True, help="Raw scores, before the link.")
@opt.column_option(
    "--keep", text="Columns of the table to keep.", multiple=True, metavar="COLUMN,..."
)
@click.option(
    "--output-format",
    type=click.Choice(opt.FORMATS),
    help="Format of the output, if its name does not show it; csv for -.",
)
@opt.safe_csv_option
@opt.input_options
@opt.run_options
@opt.console_options()
def predict(console: Console, *, model: str, output: str, **options: Any) -> None:
    """Write the predictions of a model for a table."""
    if options["proba"] and options["raw"]:
        raise UsageFailure("--proba and --raw are two outputs: use one of them.")
    method = "predict_proba" if options["proba"] else "predict_raw" if options["raw"] else "predict"
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
    source = open_table(console, options["data"], options["form"])
    refuse_input(output, source.files.paths)
    with console.phase(f"predicting {source.label}") as phase:
        with tempfile.TemporaryDirectory(prefix="arboost-output-") as folder:
            path = os.path.join(folder, "predictions") if to_stdout else output
            n_rows = _write(loaded, source, path, method, options, to_stdout=to_stdout)
            if to_stdout:
                with open(path, "rb") as file:
                    shutil.copyfileobj(file, sys.stdout.buffer)
                sys.stdout.buffer.flush()
        size = "" if to_stdout else f" to {output}, {size_text(os.path.getsize(output))}"
        seconds = seconds_text(phase.seconds)
        phase.result = f"predicted {counted(n_rows, 'row')} of {source.label} in {seconds}{size}"
    console.emit({"output": output, "rows": n_rows, "seconds": phase.seconds})


def _write(
    model: Any, source: Any, path: str, method: str, options: dict[str, Any], *, to_stdout: bool
) -> int:
    """Write the predictions of all rows to a file; return the number of rows."""
    from arboost.cli.rows import find_offset, needed_columns

    offset = find_offset(model, options["offset"])
    features = needed_columns(model, source)
    columns = resolve_names(options["keep"], source.files.names, "--keep")
    require_columns(offset, source.files.names, "--offset")
    source = source.select(list(dict.fromkeys([*features, *offset, *columns])), like=model)
    start: dict[str, Any] = {"offset": offset} if offset else {}
    with failures_as(DataFailure), writing_output(path):
        n_rows: int = model.predict_files(
            source.files,
            path,
            columns_to_keep=columns,
            method=method,
            batch_rows=_BATCH_ROWS,
            n_jobs=options["jobs"],
            format=options["output_format"] or ("csv" if to_stdout else None),
            escape_formulas=options["safe_csv"],
            **start,
        )
    return n_rows
