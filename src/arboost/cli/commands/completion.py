"""``arboost completion``: the completion script of a shell."""

from __future__ import annotations

import click

_ADVICE = {
    "bash": 'eval "$(arboost completion bash)"  in ~/.bashrc',
    "zsh": 'eval "$(arboost completion zsh)"  in ~/.zshrc',
    "fish": "arboost completion fish > ~/.config/fish/completions/arboost.fish",
}


@click.command(
    help="Print the completion script of a shell.\n\n\b\n"
    + "\n".join(f"{shell}: {advice}" for shell, advice in _ADVICE.items())
)
@click.argument("shell", metavar="SHELL", type=click.Choice(list(_ADVICE)))
def command(shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    from arboost.cli.frame import cli

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "arboost", "_ARBOOST_COMPLETE").source())
