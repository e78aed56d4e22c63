"""The command ``arboost``: train, predict, evaluate, explain and more, from a terminal.

``commands`` has the table of commands; each command and its run are one file. Help imports click
and no more.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from arboost.errors import MissingPackageError, needs_packages

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run a command line, that of the process by default, and return the exit code."""
    try:
        with needs_packages("cli", "The command line"):
            import click  # noqa: F401

        from arboost.cli.commands import run
    except KeyboardInterrupt:
        sys.stderr.write("arboost: interrupted. Nothing was written.\n")
        return 130
    except MissingPackageError as error:
        sys.stderr.write(f"arboost: {error}\n")
        return 2

    return run(sys.argv[1:] if args is None else list(args))
