"""``arboost inspect``: the content of a model file, or the columns of a table."""

from __future__ import annotations

from typing import Any

import click

from arboost.cli.options import (
    SectionedCommand,
    input_options,
    json_option,
    quiet_option,
    table_arguments,
)


@click.command(
    cls=SectionedCommand,
    help="Show the content of a model file (.arb, .json), or the columns of a table as a fit "
    "would use them.",
)
@table_arguments
@click.option("--tree", type=int, metavar="N", help="Show tree N, from 0.")
@click.option("--depth", type=int, metavar="N", help="With --tree: depth of the deepest nodes.")
@click.option("--params", is_flag=True, help="Show all parameters of the fit.")
@click.option(
    "--date-format",
    metavar="FORMAT",
    help="Format of dates in strings of a table: iso, dayfirst, monthfirst, or as in %d/%m/%Y.",
)
@input_options
@json_option
@quiet_option
def command(**options: Any) -> None:
    """Show the content of a model file, or the columns of a table."""
    from arboost.cli.console import Console
    from arboost.cli.runs.inspection import inspect

    with Console(quiet=options.pop("quiet"), as_json=options.pop("as_json")) as console:
        inspect(console, **options)
