"""``arboost train``: a table and a target -> a model file, scored on held-out rows."""

from __future__ import annotations

from typing import Any

import click

from arboost.cli.options import (
    checked_share,
    complete_columns,
    complete_parameters,
    input_options,
    json_option,
    model_option,
    offset_option,
    output_option,
    quiet_option,
    row_options,
    run_options,
    table_arguments,
    target_option,
    task_option,
)
from arboost.cli.parameters import ParameterCommand, help_params_option, settings_option

_HELP = """Train a model on a table and save it.

The task is found from the target. A share of the rows is held out to score the model; gradient
boosting finds its number of rounds by itself.

Any parameter of the estimator is an option under its Python name, for example --learning-rate 0.05
or --set learning_rate=0.05; --help-params lists them.
"""


@click.command(cls=ParameterCommand, help=_HELP)
@table_arguments
@target_option(required=True)
@output_option("Model file, .arb or .json; the name of the data with .arb by default.")
@model_option
@task_option
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="Parameter of the estimator; several are allowed.",
    shell_complete=complete_parameters,
)
@settings_option
@help_params_option
@click.option(
    "--holdout",
    type=float,
    callback=checked_share,
    metavar="SHARE",
    help="Share of the rows to score the model on, 0 for none.  [default: 0.2]",
)
@click.option(
    "--folds", type=int, metavar="K", help="Score by cross-validation, then train on all rows."
)
@click.option("--refit", is_flag=True, help="Train again on all rows after scoring.")
@click.option(
    "--time-column",
    metavar="COLUMN",
    help="Hold out the latest rows by this column, which is no feature.",
    shell_complete=complete_columns,
)
@row_options("Hold out whole groups of this column, which is no feature.")
@offset_option(
    "Start of the raw scores, such as the log of an exposure; no feature. Several for classes."
)
@click.option(
    "--memory-limit",
    metavar="SIZE",
    help="Read files in batches within a memory such as 2GB; no rows are held out but by "
    "--time-column.",
)
@click.option("--seed", type=int, metavar="N", help="Seed of the model and of the held-out rows.")
@run_options
@input_options
@json_option
@quiet_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Train a model on a table and save it."""
    from arboost.cli.console import Console
    from arboost.cli.fit import TrainOptions, train

    with Console(quiet=options.pop("quiet"), as_json=options.pop("as_json")) as console:
        train(console, TrainOptions.of(ctx, options))
