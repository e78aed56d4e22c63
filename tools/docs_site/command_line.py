"""The page of the command line, from the declarations of its commands."""

from __future__ import annotations

from typing import Any

from docs_site.markdown import fenced, literal, sentence, table

_TEXT = """\
# Command line

`arboost COMMAND --help` prints these texts. Install the command line by \
`pip install 'arboost[cli]'`. Use: [Command line](../tasks/command_line.md).
"""


def commands() -> dict[str, Any]:
    """Return the commands by name; none without the packages of the command line."""
    try:
        import click

        from arboost.cli.commands import cli
    except ImportError:
        return {}
    context = click.Context(cli, info_name="arboost")
    found = {}
    for name in cli.list_commands(context):
        try:
            found[name] = cli.get_command(context, name)
        except ImportError:
            continue
    return found


def option_row(option: Any, context: Any) -> tuple[str, str, str, str]:
    """Return the row of an option: names, values, default, text."""
    names = ", ".join(literal(name) for name in (*option.opts, *option.secondary_opts))
    values = "" if option.is_flag else (option.make_metavar(context) or "")
    default = option.get_default(context)
    has_default = isinstance(default, str | int | float) and default != "" and not option.is_flag
    text = sentence(option.help or "") + (" Required." if option.required else "")
    shown = (literal(values) if values else "", literal(str(default)) if has_default else "")
    return names, *shown, text


def section(name: str, command: Any) -> str:
    """Return the section of a command."""
    import click

    context = click.Context(command, info_name=f"arboost {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    parts = [f"## {name}", fenced(f"arboost {name} {usage}", "text")]
    parts += [sentence(" ".join(part.split())) for part in (command.help or "").split("\n\n")]
    options = [one for one in command.get_params(context) if isinstance(one, click.Option)]
    rows = [option_row(one, context) for one in options if not one.hidden]
    parts.append(table(("option", "value", "default", ""), rows, "fields"))
    return "\n\n".join(parts)


def page() -> str:
    """Return the page: commands and exit codes."""
    found = commands()
    parts = [_TEXT, *(section(name, command) for name, command in found.items())]
    if found:
        from arboost.cli.errors import EXIT_CODES

        rows = [(str(int(code)), text) for code, text in EXIT_CODES.items()]
        parts += ["## Exit codes", table(("code", "meaning"), rows)]
    return "\n\n".join(parts) + "\n"
