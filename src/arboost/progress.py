"""A one-line progress bar on the standard error stream; silent where that is no terminal."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

__all__ = ["Bar"]

_WIDTH = 30  # characters of the bar itself
_INTERVAL = 0.1  # seconds between two drawings


class Bar:
    """Counts steps, and draws them while there is somebody to see it.

    Examples
    --------
    >>> with Bar(100, "fitting") as bar:
    ...     for step in range(100):
    ...         bar.show(step + 1)
    """

    def __init__(self, total: int, label: str, *, visible: bool = True) -> None:
        self._total = total
        self._label = label
        self._stream = sys.stderr
        # Under pythonw and some services there is no stream at all.
        self._visible = visible and self._stream is not None and self._stream.isatty()
        self._start = time.monotonic()
        self._next = self._start

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._visible:
            self._stream.write("\n")
            self._stream.flush()

    def show(self, done: int) -> None:
        """Draw the bar with `done` steps, at most ten times a second and at the end."""
        now = time.monotonic()
        if not self._visible or (now < self._next and done < self._total):
            return
        self._next = now + _INTERVAL
        elapsed = now - self._start
        left = elapsed / done * (self._total - done) if done else 0.0
        bar = ("#" * (_WIDTH * done // self._total)).ljust(_WIDTH, ".")
        self._stream.write(
            f"\r{self._label} [{bar}] {done}/{self._total}  {elapsed:.1f} s, {left:.1f} s left "
        )
        self._stream.flush()
