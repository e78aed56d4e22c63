"""Fixtures of the tests of the progress bar."""

from __future__ import annotations

import sys

import pytest

from support.terminals import Clock, Terminal, look_at


@pytest.fixture
def terminal(monkeypatch):
    screen = Terminal()
    look_at(monkeypatch, screen)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    return screen


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("arboost.progress.time", clock)
    monkeypatch.setattr("tqdm.std.time", clock)
    return clock
