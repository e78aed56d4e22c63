"""``arboost compare``: every ensemble on the same folds of a table."""

from __future__ import annotations

from typing import Any

import click

from arboost.cli import options as opt
from arboost.cli.console import Console, new_table, seconds_text
from arboost.cli.errors import DataFailure, UsageFailure, failures_as
from arboost.cli.tables import RowSpec, open_table
from arboost.progress import steps_reported

_HELP = """Train every ensemble on the same folds, and compare scores and times.

Each model has its defaults. A * marks models tied with the best one: the difference is below 2
standard errors.
"""
_WIDTHS = (7, 5, 3)  # numbers of columns: a narrow terminal has no room for times and differences


@click.command(cls=opt.SectionedCommand, help=_HELP)
@opt.training_rows(
    time="Train each fold on the rows before it by this column, which is not a feature.",
    groups="Folds of whole groups of this column, which is not a feature.",
)
@click.option(
    "--models",
    "-m",
    multiple=True,
    metavar="NAME,...",
    help="Models to compare, such as gradient_boosting,random_forest; all by default.",
)
@click.option("--folds", type=int, default=5, show_default=True, metavar="K", help="Folds.")
@click.option(
    "--metric", metavar="NAME", help="Metric; by default auc for classes and rmse for numbers."
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Seed.")
@opt.jobs_option
@opt.console_options()
def compare(
    console: Console,
    *,
    rows: RowSpec,
    models: tuple[str, ...],
    folds: int,
    metric: str | None,
    seed: int,
    jobs: int | None,
) -> None:
    """Train every ensemble on the same folds, and compare scores and times."""
    import arboost
    from arboost.cli.rows import read_training_rows
    from arboost.selection.compare import ModelSettings, make_models

    names = opt.split_names(models) or None
    if models and names is None:
        raise UsageFailure("--models names no model: name models, or leave it out for all")
    with failures_as(UsageFailure):  # a misspelt name is answered before the table is read
        make_models(names, ModelSettings("classifier"))
    rows.check()
    source = open_table(console, rows.data, rows.form)
    training = read_training_rows(console, rows, source)
    options: dict[str, Any] = {
        "folds": folds,
        "metric": metric,
        "n_jobs": jobs,
        "random_state": seed,
    }
    with (
        console.phase("comparing") as phase,
        failures_as(DataFailure, options),
        steps_reported(phase.step),
    ):
        comparison = arboost.compare(
            training.X,
            rows.target,
            models=names,
            sample_weight=training.weights,
            groups=training.groups,
            time_order=rows.time_column is not None,
            task=training.task.name,
            **options,
        )
        seconds = seconds_text(phase.seconds)
        phase.result = f"compared {len(comparison.models)} models in {seconds}"
    console.emit(comparison.to_dict() | {"target": rows.target})
    console.show_widest(*(_table(comparison, n_columns) for n_columns in _WIDTHS))
    console.show(*comparison.notes())


def _table(comparison: Any, n_columns: int) -> Any:
    """First columns of the comparison as a table of Rich."""
    from rich.text import Text

    name, *numbers = comparison.header()[:n_columns]
    table = new_table(comparison.title(), [name], numbers)
    table.pad_edge = False
    for result, cells in zip(comparison.models, comparison.table(), strict=True):
        is_best = result.name == comparison.best
        style = "bold" if is_best else "dim" if result.failures else ""
        table.add_row(*map(Text, cells[:n_columns]), style=style)
    return table
