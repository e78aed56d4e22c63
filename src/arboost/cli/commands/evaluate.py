"""``arboost evaluate``: scores of a model on a table with known targets."""

from __future__ import annotations

from typing import Any

import click

from arboost.cli.options import (
    SectionedCommand,
    complete_columns,
    held_out_option,
    input_options,
    json_option,
    model_argument,
    offset_option,
    quiet_option,
    run_options,
    table_arguments,
    target_option,
)


@click.command(
    cls=SectionedCommand,
    help="Score a model on a table with known targets, next to a constant baseline.",
)
@model_argument
@table_arguments
@target_option(required=False)
@held_out_option
@click.option(
    "--weight",
    metavar="COLUMN",
    help="Weights of the rows.",
    shell_complete=complete_columns,
)
@offset_option("Offset of the rows; the model may know its columns.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Metric to add, such as kappa or mape; several are allowed.",
)
@input_options
@run_options
@json_option
@quiet_option
def command(**options: Any) -> None:
    """Score a model on a table with known targets."""
    from arboost.cli.console import Console
    from arboost.cli.runs.evaluation import evaluate

    with Console(quiet=options.pop("quiet"), as_json=options.pop("as_json")) as console:
        evaluate(console, **options)
