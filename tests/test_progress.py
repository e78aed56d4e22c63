"""The progress bar: seen in terminals and notebooks, and nowhere else."""

from __future__ import annotations

import io
import sys
import types

import pytest

from arboost.training.progress import Bar


class Terminal(io.StringIO):
    def isatty(self):
        return True

    def shown(self):
        """What a terminal of endless width would show."""
        lines = []
        for line in self.getvalue().split("\n"):
            cells = []
            for part in line.split("\r"):
                cells[: len(part)] = part
            lines.append("".join(cells).rstrip())
        return lines


class Clock:
    def __init__(self):
        self.now = 50.0

    def __call__(self):
        return self.now


def look_at(monkeypatch, stream):
    # Not sys.stderr itself: pytest puts its own there between fixtures and tests.
    seen = types.SimpleNamespace(stderr=stream, modules=sys.modules)
    monkeypatch.setattr("arboost.training.progress.sys", seen)


@pytest.fixture
def terminal(monkeypatch):
    screen = Terminal()
    look_at(monkeypatch, screen)
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    return screen


@pytest.fixture
def notebook(monkeypatch):
    """An IPython that records what is displayed; the terminal beside it stays empty."""
    outputs = []

    class Handle:
        def __init__(self, place):
            self.place = place

        def update(self, content, *, raw):
            assert raw
            outputs[self.place].append(content["text/plain"])

    def display(content, *, raw, display_id):
        assert raw
        assert display_id is True
        outputs.append([content["text/plain"]])
        return Handle(len(outputs) - 1)

    package = types.ModuleType("IPython")
    package.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    package.display = types.ModuleType("IPython.display")
    package.display.display = display
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", package.display)
    return outputs


def work(clock, steps, seconds, total=None, *, visible=True, first=0, results=None):
    with Bar(total or steps, "fitting", visible=visible, clock=clock) as bar:
        for step in range(first, steps):
            clock.now += seconds
            bar.show(step + 1, results)


def fail(clock):
    with Bar(10, "fitting", clock=clock) as bar:
        clock.now += 2.0
        bar.show(4)
        raise KeyError


def test_terminal(terminal):
    clock = Clock()
    with Bar(10, "fitting", clock=clock) as bar:
        bar.show(1)
        clock.now += 2.0
        bar.show(4, {"validation": {"log_loss": 0.312345, "auc": 0.9}})
        assert terminal.shown() == [
            "fitting [############..................] 4/10  2.0 s, 3.0 s left  validation: l"
        ]
        clock.now += 3.0
        bar.show(10)
    assert terminal.shown() == ["fitting [##############################] 10/10  5.0 s", ""]


def test_results_are_shown(terminal, monkeypatch):
    monkeypatch.setattr("os.get_terminal_size", lambda handle: types.SimpleNamespace(columns=200))
    monkeypatch.setattr(terminal, "fileno", lambda: 2, raising=False)
    results = {"train": {"loss": 0.25}, "validation": {"loss": 0.312345, "auc": 0.9}}
    work(Clock(), 4, 1.0, results=results)
    last = terminal.shown()[0]
    assert last.endswith("4/4  4.0 s  train: loss 0.25  validation: loss 0.31234  auc 0.9")


def test_silent_within_the_first_second(terminal):
    work(Clock(), 100, 0.0099)
    assert terminal.getvalue() == ""


def test_appears_after_a_second(terminal):
    clock = Clock()
    with Bar(100, "fitting", clock=clock) as bar:
        clock.now += 0.99
        bar.show(1)
        assert terminal.getvalue() == ""
        clock.now += 0.02
        bar.show(2)
        assert "2/100" in terminal.getvalue()


def test_draws_at_most_ten_times_a_second(terminal):
    work(Clock(), 10_000, 0.0005)  # 5 seconds
    assert 35 <= terminal.getvalue().count("\r") <= 45
    assert "10000/10000" in terminal.shown()[0]


def test_error_wipes_the_bar(terminal):
    with pytest.raises(KeyError):
        fail(Clock())
    assert terminal.shown() == [""]
    assert terminal.getvalue().endswith("\r")


def test_error_before_the_bar_appeared(terminal):
    with pytest.raises(KeyError), Bar(10, "fitting"):
        raise KeyError
    assert terminal.getvalue() == ""


def test_stopped_early(terminal):
    work(Clock(), 7, 1.0, total=10)
    assert terminal.shown() == ["fitting [#####################.........] 7/10  7.0 s", ""]


def test_resumed_steps_took_no_time(terminal):
    """90 of 100 steps came from a checkpoint: 2 more took 2 s, so 8 take 8 s."""
    work(Clock(), 92, 1.0, total=100, first=90)
    assert "92/100  2.0 s, 8.0 s left" in terminal.getvalue()


def test_long_lines_are_cut(terminal, monkeypatch):
    monkeypatch.setattr("os.get_terminal_size", lambda handle: types.SimpleNamespace(columns=40))
    monkeypatch.setattr(terminal, "fileno", lambda: 2, raising=False)
    work(Clock(), 5, 1.0, results={"validation": {"a long name of a metric": 1.0}})
    assert max(map(len, terminal.getvalue().replace("\n", "").split("\r"))) == 39


@pytest.mark.parametrize(
    ("seconds", "shown"), [(3.0, "12.0 s"), (30.0, "2:00"), (3000.0, "3:20:00")]
)
def test_times(terminal, seconds, shown):
    work(Clock(), 4, seconds)
    assert terminal.shown()[0].endswith(f"4/4  {shown}")


@pytest.mark.parametrize("stream", [io.StringIO(), None], ids=["file", "none"])
def test_silent_without_a_terminal(monkeypatch, stream):
    look_at(monkeypatch, stream)
    work(Clock(), 10, 1.0)
    assert stream is None or stream.getvalue() == ""


def test_silent_when_told(terminal, notebook):
    work(Clock(), 10, 1.0, visible=False)
    assert terminal.getvalue() == ""
    assert notebook == []


def test_terminal_that_goes_away(terminal):
    clock = Clock()
    with Bar(10, "fitting", clock=clock) as bar:
        clock.now += 2.0
        bar.show(4)
        terminal.close()
        clock.now += 2.0
        bar.show(5)
        clock.now += 2.0
        bar.show(6)


def test_notebook(terminal, notebook):
    work(Clock(), 3, 1.0, results={"validation": {"loss": 0.5}})
    assert terminal.getvalue() == ""
    (drawn,) = notebook  # one output, updated in place
    assert drawn[0].startswith("fitting [##########....................] 1/3  1.0 s, 2.0 s left")
    assert drawn[-1].endswith("3/3  3.0 s  validation: loss 0.5")


def test_notebook_is_silent_within_the_first_second(notebook):
    work(Clock(), 100, 0.0099)
    assert notebook == []


def test_error_in_a_notebook(notebook):
    with pytest.raises(KeyError):
        fail(Clock())
    assert notebook[0][-1] == ""


def test_ipython_in_a_terminal_is_a_terminal(terminal, notebook, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", object)
    work(Clock(), 3, 1.0)
    assert notebook == []
    assert "3/3" in terminal.shown()[0]


def test_ipython_that_is_only_imported(terminal, notebook, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    work(Clock(), 3, 1.0)
    assert notebook == []
    assert "3/3" in terminal.shown()[0]
