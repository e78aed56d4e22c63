"""The command ``arboost``: train, predict, evaluate, explain and more, from a terminal.

``frame`` has the table of commands, each a file of ``commands``. Help imports click and no more.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run a command line, that of the process by default; return the exit code."""
    try:
        import click  # noqa: F401

        from arboost.cli.frame import run
    except KeyboardInterrupt:
        sys.stderr.write("arboost: interrupted. Nothing was written.\n")
        return 130
    except ImportError as error:
        if error.name != "click":
            raise
        sys.stderr.write(
            'arboost: the command line needs more packages: run pip install "arboost[cli]".\n'
        )
        return 2

    return run(sys.argv[1:] if args is None else list(args))
