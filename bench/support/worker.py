"""A process that times the work named on each line of its input."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence


class Worker:
    """A module of `support` in a process of its own.

    Parameters
    ----------
    module : str
        It prints the seconds of the work that each line of its input names.
    arguments : sequence of str
    path : str
        Module path of the process.
    environment : str values by name
    """

    def __init__(
        self, module: str, arguments: Sequence[str], path: str, **environment: str
    ) -> None:
        # -P: the current folder may hold another package named support.
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", f"support.{module}", *arguments],
            env={**os.environ, "PYTHONPATH": path, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def seconds(self, name: str) -> float:
        """Return the time of some work."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{name}\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
