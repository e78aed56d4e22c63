"""``arboost predict``: a model and a table -> a file of predictions, in bounded memory."""

from __future__ import annotations

from typing import Any

import click

from arboost.cli.options import (
    FORMATS,
    SectionedCommand,
    complete_columns,
    input_options,
    json_option,
    model_argument,
    offset_option,
    output_option,
    quiet_option,
    run_options,
    safe_csv_option,
    table_arguments,
)


@click.command(cls=SectionedCommand, help="Write the predictions of a model for a table.")
@model_argument
@table_arguments
@output_option("File of predictions, by its suffix; - for the standard output.", required=True)
@offset_option("Offset of the rows; the model may know its columns.")
@click.option("--proba", is_flag=True, help="Class probabilities instead of labels.")
@click.option("--raw", is_flag=True, help="Raw scores, before the link.")
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN,...",
    help="Columns of the table to keep.",
    shell_complete=complete_columns,
)
@click.option(
    "--output-format",
    type=click.Choice(FORMATS),
    help="Kind of the output where its name does not tell it; csv for -.",
)
@safe_csv_option
@input_options
@run_options
@json_option
@quiet_option
def command(**options: Any) -> None:
    """Write the predictions of a model for a table."""
    from arboost.cli.console import Console
    from arboost.cli.runs.prediction import predict

    with Console(quiet=options.pop("quiet"), as_json=options.pop("as_json")) as console:
        predict(console, **options)
