"""The progress bar: visible in terminals and notebooks, silent elsewhere."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import textwrap
import threading
import types

import numpy as np
import pytest
import tqdm.std

from arboost import GradientBoostingClassifier
from arboost.progress import Bar
from support.terminals import SCORES, Clock, Terminal, look_at, work


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


@pytest.fixture
def kernel(monkeypatch):
    """Simulate a notebook without widgets; yield the list of its outputs."""
    outputs = []
    package = types.ModuleType("IPython")
    package.get_ipython = lambda: types.SimpleNamespace(kernel=object(), config=["IPKernelApp"])
    package.display = types.ModuleType("IPython.display")
    package.display.display = outputs.append
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", package.display)
    monkeypatch.setitem(sys.modules, "ipykernel.zmqshell", types.ModuleType("zmqshell"))
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    imported = ("tqdm.notebook", "tqdm.autonotebook")
    before = {name: sys.modules.pop(name, None) for name in imported}
    yield outputs
    for name, module in before.items():
        sys.modules.pop(name, None)
        if module is not None:
            sys.modules[name] = module


class Widget:
    """Stand-in for every widget class that tqdm uses."""

    def __init__(self, children=(), **values):
        self.children = children
        self.layout = types.SimpleNamespace()
        self.style = types.SimpleNamespace(bar_color=None)
        self.value = self.bar_style = ""
        self.is_closed = False

    def close(self):
        self.is_closed = True

    def shown(self):
        left, bar, right = self.children
        return f"{left.value}<{bar.value}>{right.value}".replace("\u2007", " ")


@pytest.fixture
def notebook(kernel, monkeypatch):
    """Simulate a notebook with widgets; return the list of its outputs."""
    package = types.ModuleType("ipywidgets")
    package.HTML = package.FloatProgress = Widget
    package.HBox = type("HBox", (Widget,), {})
    monkeypatch.setitem(sys.modules, "ipywidgets", package)
    return kernel


def fail(clock, error=KeyError):
    with Bar(10, "fitting") as bar:
        clock.now += 2.0
        bar.show(4)
        raise error


def test_terminal(terminal, clock):
    with Bar(10, "fitting") as bar:
        bar.show(1)
        clock.now += 2.0
        bar.show(4)
        bar_of_40_percent = "#" * 20 + " " * 30
        assert terminal.shown() == [f"fitting |{bar_of_40_percent}| 4/10 [00:02<00:03]"]
        clock.now += 3.0
        bar.show(10)
    assert terminal.shown() == [f"fitting |{'#' * 55}| 10/10 [00:05]", ""]


@pytest.mark.parametrize("size", [(0, 0), OSError], ids=["zeros", "error"])
def test_terminal_of_unknown_size(terminal, clock, monkeypatch, size):
    def get_terminal_size(handle):
        if size is OSError:
            raise size
        return os.terminal_size(size)

    monkeypatch.setattr("arboost.progress.os.get_terminal_size", get_terminal_size)
    work(clock, 4, 1.0)
    assert len(terminal.shown()[0]) == 79


def test_silent_within_the_first_second(terminal, clock):
    work(clock, 100, 0.0099)
    assert terminal.getvalue() == ""


def test_appears_after_a_second(terminal, clock):
    with Bar(100, "fitting") as bar:
        clock.now += 0.99
        bar.show(1)
        assert terminal.getvalue() == ""
        clock.now += 0.02
        bar.show(2)
        assert "2/100" in terminal.getvalue()


def test_draws_at_most_ten_times_a_second(terminal, clock):
    work(clock, 10_000, 0.0005)  # 5 s in total
    assert 35 <= terminal.getvalue().count("\r") <= 45
    assert "10000/10000" in terminal.shown()[0]


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt])
def test_error_wipes_the_bar(terminal, clock, error):
    with pytest.raises(error):
        fail(clock, error)
    assert terminal.shown() == [""]
    assert terminal.getvalue().endswith("\r")


def test_error_before_the_bar_appeared(terminal):
    with pytest.raises(KeyError), Bar(10, "fitting"):
        raise KeyError
    assert terminal.getvalue() == ""


def test_stopped_early(terminal, clock):
    work(clock, 7, 1.0, total=10)
    line, rest = terminal.shown()
    assert line.endswith("| 7/10 [00:07]")
    assert line.count("#") == 39  # followed by a "2": tenths of a character
    assert rest == ""


def test_resumed_steps_took_no_time(terminal, clock):
    """90 of 100 steps come from a checkpoint: 2 more take 2 s, so 8 s remain for the last 8."""
    work(clock, 92, 1.0, total=100, first=90)
    assert "92/100 [00:02<00:08]" in terminal.getvalue()


@pytest.mark.parametrize(
    ("seconds", "shown"), [(3.0, "00:12"), (30.0, "02:00"), (3000.0, "3:20:00")]
)
def test_times(terminal, clock, seconds, shown):
    work(clock, 4, seconds)
    assert terminal.shown()[0].endswith(f"4/4 [{shown}]")


@pytest.mark.parametrize("stream", [io.StringIO(), None], ids=["file", "none"])
def test_silent_without_a_terminal(monkeypatch, clock, stream):
    look_at(monkeypatch, stream)
    work(clock, 10, 1.0)
    assert stream is None or stream.getvalue() == ""


def test_silent_when_told(terminal, clock, notebook):
    work(clock, 10, 1.0, visible=False)
    assert terminal.getvalue() == ""
    assert notebook == []


@pytest.mark.parametrize("error", [None, BrokenPipeError(), ValueError("I/O")])
def test_terminal_that_goes_away(terminal, clock, monkeypatch, error):
    def write(text):
        raise error

    with Bar(10, "fitting") as bar:
        clock.now += 2.0
        bar.show(4)
        if error is None:
            terminal.close()
        else:
            monkeypatch.setattr(terminal, "write", write)
        clock.now += 2.0
        bar.show(5)
        clock.now += 2.0
        bar.show(6)


def test_interrupted_drawing_frees_the_lock(terminal, clock, monkeypatch):
    """tqdm's own refresh would keep the lock, and fits in other threads would wait forever."""

    def write(text):
        raise KeyboardInterrupt

    def acquire():
        lock = tqdm.std.TqdmDefaultWriteLock.th_lock
        is_free.append(lock.acquire(timeout=5))
        if is_free[0]:
            lock.release()

    is_free = []
    monkeypatch.setattr(terminal, "write", write)
    with pytest.raises(KeyboardInterrupt):
        fail(clock)
    other = threading.Thread(target=acquire)
    other.start()
    other.join()
    assert is_free == [True]


def test_several_at_a_time(terminal, clock):
    """Each bar has its own line, which is released at the end."""
    with Bar(10, "first") as first, Bar(20, "second") as second:
        clock.now += 2.0
        first.show(5)
        second.show(5)
        assert terminal.getvalue().count("\n") == 1
        assert len(tqdm.std.tqdm._instances) == 2
    shown = terminal.getvalue()
    assert "5/10" in shown
    assert "5/20" in shown
    assert len(tqdm.std.tqdm._instances) == 0


def test_several_leave_one_line_each(terminal, clock):
    """A bar that ends after the one above it leaves nothing at its former place."""
    first, second = Bar(10, "first"), Bar(20, "second")
    clock.now += 2.0
    first.show(5)
    second.show(5)
    first.__exit__(None, None, None)
    clock.now += 2.0
    second.show(10)
    second.__exit__(None, None, None)
    assert [line.partition(" ")[0] for line in terminal.shown()] == ["first", "second", ""]


def test_below_a_bar_of_the_caller(terminal, clock):
    with tqdm.std.tqdm(total=3, file=terminal, delay=1e9) as outer:
        work(clock, 3, 1.0)
        assert outer.pos == 0
    assert "\n\rfitting" in terminal.getvalue()


def test_notebook(terminal, clock, notebook):
    work(clock, 3, 1.0, results=SCORES)
    assert terminal.getvalue() == ""
    (widget,) = notebook
    figures = "3/3 [00:03, validation: log_loss 0.31234, auc 0.90000]"
    assert widget.shown() == f"fitting <3> {figures}"
    assert widget.children[1].bar_style == "success"
    assert widget.layout.width == "100%"  # the bar has the room next to the text


def test_long_scores_in_a_notebook(clock, notebook):
    """A cell does not wrap the text: other sets are left out."""
    sets = {f"evaluation set {i}": {"log_loss": 0.1, "auc": 0.9} for i in range(4)}
    work(clock, 3, 1.0, results=sets)
    assert notebook[0].shown() == "fitting <3> 3/3 [00:03, log_loss 0.10000, auc 0.90000]"


def test_stopped_early_in_a_notebook(clock, notebook):
    """Early stopping is a success; tqdm by itself would show a failure."""
    work(clock, 7, 1.0, total=10)
    assert notebook[0].shown() == "fitting <7> 7/10 [00:07]"
    assert notebook[0].children[1].bar_style == "success"


def test_notebook_is_silent_within_the_first_second(clock, notebook):
    work(clock, 100, 0.0099)
    assert notebook == []


def test_error_in_a_notebook(clock, notebook):
    with pytest.raises(KeyError):
        fail(clock)
    assert notebook[0].is_closed


def test_notebook_without_widgets(terminal, clock, kernel):
    work(clock, 3, 1.0, results=SCORES)
    assert kernel == []
    assert terminal.shown()[0].endswith("3/3 [00:03, validation: log_loss 0.31234, auc 0.90000]")


def test_ipython_in_a_terminal_is_a_terminal(terminal, clock, notebook, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", object)
    work(clock, 3, 1.0)
    assert notebook == []
    assert "3/3" in terminal.shown()[0]


def test_ipython_that_is_only_imported(terminal, clock, notebook, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: None)
    work(clock, 3, 1.0)
    assert notebook == []
    assert "3/3" in terminal.shown()[0]


@pytest.mark.parametrize(
    ("columns", "scores"),
    [
        (60, "log_loss 0.31234"),
        (90, "log_loss 0.31234, auc 0.90000"),
        (120, "train: log_loss 0.10000, validation: log_loss 0.31234, auc 0.90000"),
    ],
)
def test_as_many_scores_as_fit(terminal, clock, monkeypatch, columns, scores):
    look_at(monkeypatch, terminal, columns)
    with Bar(1000, "fitting") as bar:
        clock.now += 100.0
        bar.show(1)
        clock.now += 1.0
        bar.show(500, {"train": {"log_loss": 0.1}} | SCORES)
        (line,) = terminal.shown()
    assert len(line) < columns
    assert line.startswith("fitting |###")
    assert line.endswith(f"500/1000 [01:41<01:41, {scores}]")


@pytest.mark.parametrize("columns", [14, 30, 40])
def test_no_line_wraps(terminal, clock, monkeypatch, columns):
    look_at(monkeypatch, terminal, columns)
    work(clock, 5, 1.0, results=SCORES)
    lengths = [len(line) for line in terminal.getvalue().replace("\n", "").split("\r")]
    assert max(lengths) == columns - 1


METRICS = ["log_loss", "balanced_accuracy", "auc"]


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("n_metrics", [1, 3])
def test_scores_of_fits_are_never_cut(terminal, monkeypatch, rng, columns, n_metrics):
    """Fits with two evaluation sets: the score of the last one is whole at every width."""
    look_at(monkeypatch, terminal, columns)
    for name in ("_DELAY", "_INTERVAL"):
        monkeypatch.setattr(f"arboost.progress.{name}", 0.0)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % 3
    model = GradientBoostingClassifier(n_estimators=3, eval_metric=METRICS[:n_metrics])
    sets = [(X, y), (X[::2], y[::2])]
    model.fit(X, y, eval_set=sets, eval_names=["train", "a very long name"])
    line = terminal.shown()[0]
    assert len(line) < columns
    assert line.endswith("]")
    last = model.evals_result_["a very long name"]
    shown = METRICS[:n_metrics] if columns > 100 else METRICS[:1]
    for metric in shown:
        assert f"{metric} {last[metric][-1]:#.5g}" in line


def test_names_with_braces(terminal, clock):
    work(clock, 3, 1.0, results={"validation": {"{of} mine": 0.5}})
    assert "{of} mine 0.50000]" in terminal.shown()[0]


def test_visible_bar_leaves_no_thread_and_no_start_method():
    """tqdm's lock between processes would set the start method of multiprocessing."""
    program = """
        import io, multiprocessing, sys, threading, time
        from arboost.progress import Bar

        class Terminal(io.StringIO):
            def isatty(self):
                return True

        sys.stderr = Terminal()
        with Bar(2, "fitting") as bar:
            bar.show(1)
            assert "tqdm" not in sys.modules
            time.sleep(1.01)
            bar.show(2)
        assert "2/2" in sys.stderr.getvalue()
        print(threading.active_count(), multiprocessing.get_start_method(allow_none=True))
    """
    printed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert printed.stdout.split() == ["1", "None"]


def test_silent_fit_loads_no_tqdm():
    program = """
        import sys
        import arboost
        arboost.GradientBoostingRegressor(n_estimators=2, verbose=0).fit([[0.0], [1.0]], [0, 1])
        print("tqdm" in sys.modules)
    """
    printed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == "False"
