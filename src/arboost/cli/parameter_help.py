"""The parameters of a model as a list: name, type, default, allowed values and text."""

from __future__ import annotations

import inspect
from typing import Any

import click

from arboost.cli.models import MODELS, TASKS, declarations

__all__ = ["show_parameters"]

_WIDTH = 100


def show_parameters(model: str) -> None:
    """Print the parameters of a model, from their declarations."""
    import shutil
    import textwrap

    width = min(shutil.get_terminal_size().columns, _WIDTH)
    tables = {task: declarations(model, task) for task in TASKS}
    names = list(dict.fromkeys(name for table in tables.values() for name in table))
    lines = [f"Parameters of --model {model} ({MODELS[model].text}):", ""]
    for name in names:
        found = [(task, table[name]) for task, table in tables.items() if name in table]
        lines += _of_parameter(name, found, width, textwrap)
    click.echo_via_pager("\n".join(lines)) if _is_terminal() else click.echo("\n".join(lines))


def _is_terminal() -> bool:
    import sys

    return sys.stdout.isatty()


def _of_parameter(name: str, found: list[tuple[str, Any]], width: int, textwrap: Any) -> list[str]:
    param = found[0][1]
    default = "" if param.default is inspect.Parameter.empty else f", default {param.default!r}"
    only = f" ({found[0][0]} only)" if len(found) == 1 else ""
    option = "--" + name.replace("_", "-")
    lines = [f"  {option} ({param.type_name}{default}){only}"]
    texts = [param.text, f"Allowed: {param.allowed}."]
    if len(found) > 1 and found[1][1] != param:
        other = found[1][1]
        if other.default != param.default:
            texts.append(f"For {found[1][0]} the default is {other.default!r}.")
        if other.text != param.text:
            texts.append(f"For {found[1][0]}: {other.text}")
    for text in texts:
        lines += textwrap.wrap(text, width - 6, initial_indent="      ", subsequent_indent="      ")
    return [*lines, ""]
