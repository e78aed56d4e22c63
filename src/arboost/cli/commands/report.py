"""``arboost report``: one page about a model and its predictions of a table."""

from __future__ import annotations

from typing import Any

import click

from arboost.cli.options import (
    SectionedCommand,
    complete_columns,
    held_out_option,
    input_options,
    jobs_option,
    json_option,
    model_argument,
    offset_option,
    output_option,
    quiet_option,
    table_arguments,
    target_option,
)


@click.command(
    cls=SectionedCommand,
    help="Write one page about a model: its data, scores, errors, explanations, rows and trees. "
    "The page is a single file that needs no network.",
)
@model_argument
@table_arguments
@target_option(required=False)
@held_out_option
@output_option("Page to write; report.html by default.")
@click.option(
    "--train",
    multiple=True,
    type=click.Path(),
    metavar="DATA",
    help="Training table, for drift and baselines; several files are allowed.",
)
@click.option(
    "--compare",
    type=click.Path(),
    metavar="MODEL",
    help="Second model file, shown next to the first.",
)
@click.option(
    "--segment",
    "segments",
    multiple=True,
    metavar="COLUMN",
    help="Column whose levels or ranges are scored as segments; several are allowed.",
    shell_complete=complete_columns,
)
@click.option(
    "--weight", metavar="COLUMN", help="Weights of the rows.", shell_complete=complete_columns
)
@offset_option("Offset of the rows; the model may know its columns.")
@click.option("--title", metavar="TEXT", help="Title of the page.")
@click.option("--open", "opens", is_flag=True, help="Open the page in the browser.")
@input_options
@jobs_option
@json_option
@quiet_option
def command(**options: Any) -> None:
    """Write one page about a model and its predictions of a table."""
    from arboost.cli.console import Console
    from arboost.cli.runs.reporting import report

    with Console(quiet=options.pop("quiet"), as_json=options.pop("as_json")) as console:
        report(console, **options)
