"""``arboost convert``: a model file -> another kind of file, by the suffix of the output."""

from __future__ import annotations

import click

from arboost.cli.options import SectionedCommand, model_argument, quiet_option

_KINDS = {".arb": "arboost", ".json": "readable JSON", ".h": "C header", ".onnx": "ONNX"}


@click.command(
    cls=SectionedCommand,
    help="Write a model as another kind of file, by its suffix: "
    + ", ".join(f"{suffix} ({kind})" for suffix, kind in _KINDS.items())
    + ".",
)
@model_argument
@click.argument("output", type=click.Path(), metavar="OUTPUT")
@click.option("--name", metavar="NAME", help="With .h: prefix of functions and macros.")
@quiet_option
def command(model: str, output: str, name: str | None, quiet: bool) -> None:  # noqa: FBT001
    """Write a model as another kind of file."""
    from arboost.cli.console import Console
    from arboost.cli.runs.conversion import convert

    with Console(quiet=quiet) as console:
        convert(console, model, output, name, tuple(_KINDS))
