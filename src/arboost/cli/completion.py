"""Shell completion of names: models, parameters, columns of the given files."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import click

__all__ = ["complete_columns", "complete_models", "complete_parameters"]


def complete_models(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of models that begin so."""
    from arboost.cli.models import MODELS

    return _starting(MODELS, incomplete)


def complete_parameters(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return "name=" of the parameters of the model that begin so."""
    from arboost.cli.models import MODELS, TASKS, declarations

    model = ctx.params.get("model") or next(iter(MODELS))
    if model not in MODELS:
        return []
    names = {name for task in TASKS for name in declarations(model, task)}
    name, equals, value = incomplete.partition("=")
    if equals:
        return [f"{name}={one}" for one in _starting(_options(model, name), value)]
    return _starting((f"{one}=" for one in sorted(names)), incomplete)


def complete_columns(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the columns of the given files that begin so; none where they cannot be read."""
    # An option that still lacks its value leaves the arguments unparsed.
    given = ctx.params.get("data") or ctx.args
    data = [path for path in given if path != "-" and not path.endswith((".arb", ".json"))]
    with suppress(Exception):  # a completion has no place for an error
        from arboost.sources.file_source import FileFormat, open_files

        form = FileFormat(ctx.params.get("kind"), ctx.params.get("delimiter"))
        names = open_files(list(data), None, form).arrow_schema.names
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in _starting(names, last)]
    return []


def _options(model: str, name: str) -> list[str]:
    """Return the values of a choice."""
    from arboost.cli.models import TASKS, declarations

    found: list[str] = []
    for task in TASKS:
        param = declarations(model, task).get(name)
        found += getattr(param, "options", ())
        found += ["true", "false"] if type(param).__name__ == "Flag" else []
    return list(dict.fromkeys(found))


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names that begin so; a name with a control character would be obeyed."""
    return [name for name in names if name.startswith(incomplete) and name.isprintable()]
