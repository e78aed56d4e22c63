"""A one-line progress bar in a terminal or a notebook, for work that takes more than a moment.

Silent where nobody looks: where the standard error stream is no terminal, or the work is done
within a second.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from types import TracebackType
from typing import Any, Self

__all__ = ["Bar"]

_WIDTH = 30  # characters of the bar itself
_DELAY = 1.0  # seconds of work before it appears
_INTERVAL = 0.1  # seconds between two drawings
_LEAST_COLUMNS = 20  # of a terminal that says it has fewer, or does not know


class Bar:
    """Counts steps, and draws them while there is somebody to see it.

    Leaving the block by an error wipes the bar, so that the error stands alone.

    Parameters
    ----------
    total : int
        Steps there will be at most.
    label : str
        What the line starts with.
    visible : bool
        Whether to draw at all.
    clock : callable () -> float
        Time in seconds.

    Examples
    --------
    >>> with Bar(100, "fitting") as bar:
    ...     for step in range(100):
    ...         bar.show(step + 1)
    """

    def __init__(
        self,
        total: int,
        label: str,
        *,
        visible: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = total
        self._label = label
        self._clock = clock
        self._screen = _find_screen() if visible else None
        self._start = clock()
        self._next = self._start + _DELAY
        self._drawn = False
        self._already: int | None = None
        self._newest: tuple[int, Mapping[str, Mapping[str, float]] | None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._screen is None or not self._drawn:
            return
        if error is None and self._newest is not None:
            self._draw(*self._newest, ended=True)
        self._screen_call(lambda screen: screen.end(wipe=error is not None))

    @property
    def is_visible(self) -> bool:
        """Whether there is somebody to draw for."""
        return self._screen is not None

    def show(self, done: int, results: Mapping[str, Mapping[str, float]] | None = None) -> None:
        """Draw the bar with `done` steps and the newest results, at most ten times a second.

        Parameters
        ----------
        done : int
            Steps so far.
        results : mapping of str to mapping of str to float, optional
            Metrics by the name of their evaluation set.
        """
        if self._screen is None:
            return
        now = self._clock()
        if self._already is None:
            self._already = done - 1  # steps of an earlier, resumed run took none of this time
        self._newest = done, results
        if now >= self._next:
            self._next = now + _INTERVAL
            self._draw(done, results, ended=False)

    def _draw(
        self, done: int, results: Mapping[str, Mapping[str, float]] | None, *, ended: bool
    ) -> None:
        elapsed = self._clock() - self._start
        filled = _WIDTH * done // self.total
        line = (
            f"{self._label} [{'#' * filled:.<{_WIDTH}}] {done}/{self.total}  {_duration(elapsed)}"
        )
        own = done - (self._already or 0)
        if not ended and own > 0:
            line += f", {_duration(elapsed / own * (self.total - done))} left"
        for name, values in (results or {}).items():
            shown = "  ".join(f"{metric} {value:.5g}" for metric, value in values.items())
            line += f"  {name}: {shown}"
        self._drawn = True
        self._screen_call(lambda screen: screen.draw(line))

    def _screen_call(self, act: Callable[[Any], None]) -> None:
        try:
            act(self._screen)
        except (OSError, ValueError):
            self._screen = None  # a terminal that has gone away is no reason to lose a fit


class _Terminal:
    """One line of a terminal, drawn over and over."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._length = 0

    def draw(self, line: str) -> None:
        line = line[: self._columns() - 1]  # a longer one would wrap, and could not be drawn over
        self._stream.write(f"\r{line.ljust(self._length)}")
        self._stream.flush()
        self._length = len(line)

    def end(self, *, wipe: bool) -> None:
        self._stream.write(f"\r{' ' * self._length}\r" if wipe else "\n")
        self._stream.flush()

    def _columns(self) -> int:
        columns = 80
        with contextlib.suppress(OSError, ValueError, AttributeError):
            columns = os.get_terminal_size(self._stream.fileno()).columns
        return max(columns, _LEAST_COLUMNS)


class _Notebook:
    """One output of a notebook cell, updated in place."""

    def __init__(self, display: Callable[..., Any]) -> None:
        self._display = display
        self._handle: Any = None

    def draw(self, line: str) -> None:
        content = {"text/plain": line}
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    def end(self, *, wipe: bool) -> None:
        if wipe:
            self._handle.update({"text/plain": ""}, raw=True)


def _find_screen() -> _Terminal | _Notebook | None:
    """Return where somebody may be looking, or None."""
    ipython = sys.modules.get("IPython")  # in a notebook it is loaded; elsewhere it is not needed
    if ipython is not None and hasattr(ipython.get_ipython(), "kernel"):
        return _Notebook(import_module("IPython.display").display)
    # Under pythonw and some services there is no stream at all.
    if sys.stderr is not None and sys.stderr.isatty():
        return _Terminal(sys.stderr)
    return None


def _duration(seconds: float) -> str:
    """Return a time as people say it.

    Examples
    --------
    >>> _duration(4.25), _duration(75.0), _duration(7384.0)
    ('4.2 s', '1:15', '2:03:04')
    """
    if seconds < 60.0:  # noqa: PLR2004
        return f"{seconds:.1f} s"
    minutes, rest = divmod(math.floor(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
