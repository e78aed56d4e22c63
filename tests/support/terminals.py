"""A terminal and a clock for the tests of the progress bar."""

from __future__ import annotations

import io
import os
import re
import sys
import types

from arboost.progress import Bar

SCORES = {"validation": {"log_loss": 0.312345, "auc": 0.9}}


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def fileno(self):
        return 2

    def shown(self):
        """Return the visible lines of a terminal of unlimited width."""
        rows, row, column = [[]], 0, 0
        for part in re.findall(r"\n|\r|\x1b\[A|[^\n\r\x1b]+", self.getvalue()):
            if part in ("\n", "\x1b[A"):
                row += 1 if part == "\n" else -1
                rows.extend([] for _ in range(len(rows), row + 1))
            if part in ("\n", "\r"):
                column = 0
            elif part != "\x1b[A":
                rows[row].extend(" " * (column - len(rows[row])))
                rows[row][column : column + len(part)] = part
                column += len(part)
        return ["".join(cells).rstrip() for cells in rows]


class Clock:
    def __init__(self):
        self.now = 50.0

    def __call__(self):
        return self.now


def look_at(monkeypatch, stream, columns=80):
    # Not a patch of sys.stderr itself, which pytest replaces between fixtures and tests.
    seen = types.SimpleNamespace(stderr=stream, stdout=stream, modules=sys.modules)
    monkeypatch.setattr("arboost.progress.sys", seen)
    size = os.terminal_size((columns, 24))
    system = types.SimpleNamespace(get_terminal_size=lambda handle: size)
    monkeypatch.setattr("arboost.progress.os", system)


def work(clock, steps, seconds, total=None, *, visible=True, first=0, results=None):
    with Bar(total or steps, "fitting", visible=visible) as bar:
        for step in range(first, steps):
            clock.now += seconds
            bar.show(step + 1, results)
