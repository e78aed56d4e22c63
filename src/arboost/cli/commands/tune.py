"""``arboost tune``: search for the parameters of a model, and save it fitted with the best ones."""

from __future__ import annotations

from typing import Any

import click

from arboost.cli.options import (
    complete_columns,
    complete_parameters,
    input_options,
    jobs_option,
    json_option,
    model_option,
    offset_option,
    output_option,
    quiet_option,
    row_options,
    table_arguments,
    target_option,
    task_option,
)
from arboost.cli.parameters import (
    ParameterCommand,
    given_parameters,
    settings_files,
    settings_option,
)

_HELP = """Search for the best parameters of a model, and save it trained on all rows.

The first trial has the given parameters, so the result is at least as good on the held-out rows.
Parameters of the estimator that are given, such as --max-depth 4 or --set max_depth=4, are not
searched. Ctrl-C ends the search and keeps the best parameters so far.
"""


@click.command(cls=ParameterCommand, help=_HELP)
@table_arguments
@target_option(required=True)
@output_option("Model file, .arb or .json; the name of the data with .arb by default.")
@click.option(
    "--params-out",
    type=click.Path(),
    metavar="PATH",
    help="Write the best parameters to a .toml file for arboost train --config.",
)
@model_option
@click.option(
    "--seconds",
    type=float,
    metavar="S",
    help="Time of the search.  [default: 60, or no limit with --trials]",
)
@click.option("--trials", type=int, metavar="N", help="Number of trials.")
@click.option(
    "--folds", type=int, metavar="K", help="Folds; one hold-out from 5,000 rows on by default."
)
@click.option("--metric", metavar="NAME", help="Metric to optimise; the model's own by default.")
@task_option
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="Parameter of the estimator that is not searched; several are allowed.",
    shell_complete=complete_parameters,
)
@settings_option
@click.option(
    "--time-column",
    metavar="COLUMN",
    help="Score on rows later than those trained on by this column, which is not a feature.",
    shell_complete=complete_columns,
)
@row_options("Hold out whole groups of this column, which is no feature.")
@offset_option(
    "Start of the raw scores, such as the log of an exposure; no feature. Several for classes."
)
@click.option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of search and model."
)
@jobs_option
@input_options
@json_option
@quiet_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Search for the best parameters of a model, and save it trained on all rows."""
    from arboost.cli.console import Console
    from arboost.cli.rows import RowOptions
    from arboost.cli.runs.tuning import TuneOptions, tune_model

    parameters = given_parameters(ctx, options.pop("assignments"))
    names = ("output", "params_out", "model", "seconds", "trials", "folds", "metric", "jobs")
    own = {name: options.pop(name) for name in (*names, "seed")}
    with Console(quiet=options.pop("quiet"), as_json=options.pop("as_json")) as console:
        rows = RowOptions(**options)
        tune_model(
            console,
            rows,
            TuneOptions.of(rows.data, parameters=parameters, settings=settings_files(ctx), **own),
        )
