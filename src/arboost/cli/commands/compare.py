"""``arboost compare``: every ensemble on the same folds of a table."""

from __future__ import annotations

from typing import Any

import click

from arboost.cli.options import (
    SectionedCommand,
    complete_columns,
    input_options,
    jobs_option,
    json_option,
    quiet_option,
    row_options,
    table_arguments,
    target_option,
    task_option,
)

_HELP = """Train every ensemble on the same folds, and compare scores and times.

Each model has its defaults. A * marks the models that the folds do not tell apart from the best
one.
"""


@click.command(cls=SectionedCommand, help=_HELP)
@table_arguments
@target_option(required=True)
@click.option(
    "--models",
    "-m",
    multiple=True,
    metavar="NAME,...",
    help="Models to compare, such as gradient_boosting,random_forest; all by default.",
)
@click.option("--folds", type=int, default=5, show_default=True, metavar="K", help="Folds.")
@click.option(
    "--metric", metavar="NAME", help="Metric; by default auc for classes and rmse for amounts."
)
@task_option
@click.option(
    "--time-column",
    metavar="COLUMN",
    help="Train each fold on the rows before it by this column, which is no feature.",
    shell_complete=complete_columns,
)
@row_options("Folds of whole groups of this column, which is no feature.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Seed.")
@jobs_option
@input_options
@json_option
@quiet_option
def command(**options: Any) -> None:
    """Train every ensemble on the same folds, and compare scores and times."""
    from arboost.cli.console import Console
    from arboost.cli.rows import RowOptions
    from arboost.cli.runs.comparison import compare_models

    own = {name: options.pop(name) for name in ("models", "folds", "metric", "jobs", "seed")}
    with Console(quiet=options.pop("quiet"), as_json=options.pop("as_json")) as console:
        compare_models(console, RowOptions(**options), **own)
