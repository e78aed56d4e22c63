"""The run of ``arboost compare``: read, train every model on the same folds, print one table."""

from __future__ import annotations

from typing import Any

from arboost.cli.console import Console, seconds_text
from arboost.cli.errors import UsageFailure
from arboost.cli.fit import as_failures
from arboost.cli.options import split_names
from arboost.cli.rows import RowOptions, read_selected


def compare_models(
    console: Console,
    rows: RowOptions,
    *,
    models: tuple[str, ...],
    folds: int,
    metric: str | None,
    jobs: int | None,
    seed: int,
) -> None:
    """Compare models and write the result."""
    from arboost.progress import steps_reported
    from arboost.selection.compare import ModelSettings, compare, make_models

    chosen = split_names(models) or None
    if models and chosen is None:
        raise UsageFailure("--models names no model: give names, or leave it out for all models")
    given = {"folds": folds, "metric": metric, "n_jobs": jobs, "random_state": seed}
    try:  # a misspelt name is answered before the table is read
        make_models(chosen, ModelSettings("classifier"))
    except ValueError as error:
        raise UsageFailure(f"--models: {error}") from error
    selected = read_selected(console, rows)
    with (
        console.phase("comparing") as phase,
        as_failures(given),
        steps_reported(phase.step),
    ):
        found = compare(
            selected.X,
            selected.target,
            models=chosen,
            folds=folds,
            metric=metric,
            sample_weight=selected.weight,
            groups=selected.groups,
            time_order=rows.time_column is not None,
            task=selected.task.name,
            random_state=seed,
            n_jobs=jobs,
        )
        phase.result = f"compared {len(found.models)} models in {seconds_text(phase.seconds)}"
    console.emit(found.to_dict() | {"target": rows.target})
    if not console.as_json:
        # A narrow terminal has no room for times, and then for differences to the best model.
        console.show_widest(*(_table(found, n_columns) for n_columns in (7, 5, 3)))
        console.show(*found.notes())


def _table(found: Any, n_columns: int) -> Any:
    """Return the first columns of the comparison as a table of Rich."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=found.title(), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(found.header()[:n_columns]):
        table.add_column(name, justify="left" if number == 0 else "right", no_wrap=True)
    for one, cells in zip(found.models, found.table(), strict=True):
        style = "bold" if one.name == found.best else "dim" if one.failures else ""
        table.add_row(*(Text(cell) for cell in cells[:n_columns]), style=style)
    return table
