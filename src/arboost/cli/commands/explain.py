"""``arboost explain``: importances of the features, SHAP values of rows."""

from __future__ import annotations

from typing import Any

import click

from arboost.cli.options import (
    SectionedCommand,
    input_options,
    json_option,
    model_argument,
    offset_option,
    output_option,
    quiet_option,
    run_options,
    safe_csv_option,
    target_option,
)


@click.command(
    cls=SectionedCommand,
    help="Importances of the features of a model: by gain alone; with a table also by SHAP "
    "values, and with its target by permutation.",
)
@model_argument
@click.argument("data", nargs=-1, metavar="[DATA]...", type=click.Path())
@target_option(required=False)
@click.option(
    "--row", type=int, metavar="N", help="Contributions to the prediction of row N, from 0."
)
@offset_option("Offset of the rows; the model may know its columns.")
@click.option("--class", "label", metavar="LABEL", help="With --row: class to explain.")
@click.option(
    "--top", type=click.IntRange(1), default=20, show_default=True, help="Features to show."
)
@output_option("File of the SHAP values of all rows, by its suffix.")
@safe_csv_option
@input_options
@run_options
@json_option
@quiet_option
def command(**options: Any) -> None:
    """Show importances of the features, and SHAP values of rows."""
    from arboost.cli.console import Console
    from arboost.cli.runs.explanation import explain

    with Console(quiet=options.pop("quiet"), as_json=options.pop("as_json")) as console:
        explain(console, **options)
