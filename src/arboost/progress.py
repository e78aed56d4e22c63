"""A progress bar in a terminal or a notebook, drawn by tqdm, for work of more than a second.

Silent where nobody looks: where the standard error stream is no terminal and Python runs in no
notebook. tqdm is imported when a bar appears, so short fits do not pay for the import. Workers of a
cluster report the steps of their bars to the process that draws them.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from time import time
from types import TracebackType
from typing import Any, Self

__all__ = ["Bar", "BarStep", "steps_reported"]

_DELAY = 1.0  # seconds of work before the bar appears
_INTERVAL = 0.1  # seconds between two drawings
_SIZE = os.terminal_size((80, 24))  # of a terminal that does not know its size
_LEAST = 5  # columns of the bar proper; a terminal without room for them gets a shorter line
_WIDGET = os.terminal_size((100, 24))  # characters that a cell of a notebook has room for
# Lines from long to short: the bar shrinks first; then scores of other sets, label, bar and times
# are left out, and then the other metrics. The last score of the first metric stays.
_LONG = "{{desc}} |{{bar}}| {count} [{times}{comma}{scores}]"
_SHORTER = (
    _LONG,
    "|{{bar}}| {count} [{times}{comma}{scores}]",
    "{count} [{times}{comma}{scores}]{{bar:0}}",  # old versions of tqdm cut no line without a bar
    "{count} [{scores}]{{bar:0}}",
)
_LAYOUTS = ((_LONG, "all"), *((form, which) for which in ("last", "first") for form in _SHORTER))


@dataclass(frozen=True)
class BarStep:
    """State of a bar that another process draws.

    Attributes
    ----------
    label : str
    done, total : int
    results : mapping of str to mapping of str to float
    """

    label: str
    done: int
    total: int
    results: Mapping[str, Mapping[str, float]]


_report: ContextVar[Callable[[BarStep], None] | None] = ContextVar("report", default=None)


@contextlib.contextmanager
def steps_reported(report: Callable[[BarStep], None]) -> Iterator[None]:
    """Call a function, about ten times a second, instead of drawing the bars of this thread."""
    token = _report.set(report)
    try:
        yield
    finally:
        _report.reset(token)


class Bar:
    """A count of steps, drawn where somebody may be looking.

    Leaving the block by an error wipes the bar, so that the error stands alone.

    Parameters
    ----------
    total : int
        Largest number of steps.
    label : str
        First words of the line.
    visible : bool
        Whether to draw at all.

    Examples
    --------
    >>> with Bar(100, "fitting") as bar:
    ...     for step in range(100):
    ...         bar.show(step + 1)
    """

    def __init__(self, total: int, label: str, *, visible: bool = True) -> None:
        self.total = total
        self.label = label
        self._report = _report.get() if visible else None
        self._stream = _find_stream() if visible and self._report is None else None
        self._start = time()
        self._next = self._start + _DELAY
        self._initial: int | None = None
        self._done = 0
        self._results: Mapping[str, Mapping[str, float]] = {}
        self._line: Any = None  # an instance of tqdm, once the bar has appeared

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._line is None:
            return
        with self._drawing() as line:
            line.leave = error is None
            self._update("{elapsed}")
            if hasattr(line, "container"):
                line.total = line.n  # tqdm takes fewer steps for a failure: early stopping is none
            if line.pos > 0:
                line.clear(nolock=True)  # tqdm leaves a copy where it drew below another bar
            line.close()

    @property
    def is_visible(self) -> bool:
        """Whether somebody may be looking."""
        return self._stream is not None or self._report is not None

    def relabel(self, label: str) -> None:
        """Change the label; the next step is drawn at once, once the bar has appeared."""
        self.label = label
        if self._report is not None or self._line is not None:
            self._next = 0.0

    def show(self, done: int, results: Mapping[str, Mapping[str, float]] | None = None) -> None:
        """Draw the bar with `done` steps and the latest results, at most ten times a second.

        Parameters
        ----------
        done : int
            Steps so far.
        results : mapping of str to mapping of str to float, optional
            Metrics by the name of their evaluation set.
        """
        if self._report is not None and time() >= self._next - _DELAY:
            self._next = time() + _DELAY + _INTERVAL
            self._report(BarStep(self.label, done, self.total, results or {}))
        if self._stream is None:
            return
        if self._initial is None:
            self._initial = max(done - 1, 0)  # steps of an earlier, resumed run took no time
        self._done, self._results = done, results or {}
        now = time()
        if now >= self._next:
            self._next = now + _INTERVAL
            with self._drawing() as line:
                self._update("{elapsed}<{remaining}")
                line.refresh(nolock=True)

    @contextlib.contextmanager
    def _drawing(self) -> Iterator[Any]:
        """Give the line of tqdm, with tqdm's lock held: tqdm alone keeps the lock after Ctrl-C."""
        if self._line is None:
            self._line = _new_line(
                desc=self.label,
                total=self.total,
                initial=self._initial,
                file=self._stream,
                delay=_DELAY,
            )
            self._line.start_t = self._start
        try:
            with self._line.get_lock():
                yield self._line
        except (OSError, ValueError):  # a terminal that has gone away is no reason to lose a fit
            self._line.disable = True
            self._line = self._stream = None

    def _update(self, times: str) -> None:
        """Set count, times and scores, in the longest layout that there is room for."""
        line, is_widget = self._line, hasattr(self._line, "container")
        line.set_description_str(self.label, refresh=False)
        line.n, line.ncols, line.nrows = self._done, None, None
        size = _WIDGET if is_widget else _find_size(self._stream)
        for layout, which in _LAYOUTS:
            scores = _scores(self._results, which)
            form = self._form(layout, times, scores)
            line.bar_format = form.replace("{bar}", " " * _LEAST)
            excess = len(str(line)) + 1 - size.columns  # some terminals wrap a line that is full
            if excess <= 0:
                break
        else:
            form = self._form(layout, times, _cut_name(scores, excess))
        line.bar_format = form
        if not is_widget:  # a widget has a width of its own
            line.ncols, line.nrows = size.columns - 1, size.lines - 1

    def _form(self, layout: str, times: str, scores: str) -> str:
        """Return a layout with count, times and scores, as tqdm reads it."""
        return layout.format(
            count=f"{{n_fmt}}/{self.total}",
            times=times,
            comma=", " if scores else "",
            scores=scores.replace("{", "{{").replace("}", "}}"),
        ).replace(" []", "")  # without scores and times


def _scores(results: Mapping[str, Mapping[str, float]], which: str) -> str:
    """Return scores as text.

    Parameters
    ----------
    results : mapping of str to mapping of str to float
        Metrics by the name of their evaluation set.
    which : {"all", "last", "first"}
        All evaluation sets by name; the last one; or the first metric of the last one.

    Examples
    --------
    >>> _scores({"validation": {"log_loss": 0.25, "auc": 0.91236}}, "all")
    'validation: log_loss 0.25000, auc 0.91236'
    """
    # With trailing zeros: a text that changes its width would change that of the bar.
    texts = {
        name: [f"{metric} {value:#.5g}".rstrip(".") for metric, value in values.items()]
        for name, values in results.items()
    }
    if which == "all":
        return ", ".join(f"{name}: {', '.join(of)}" for name, of in texts.items())
    last = list(texts.values())[-1] if texts else []
    return ", ".join(last[:1] if which == "first" else last)


def _cut_name(score: str, excess: int) -> str:
    """Return a metric and its value, with so many characters fewer in the name of the metric.

    Examples
    --------
    >>> _cut_name("balanced_accuracy 0.91236", 8)
    'balanced… 0.91236'
    """
    name, _, value = score.rpartition(" ")
    kept = len(name) - excess - 1
    return f"{name[:kept].rstrip()}\N{HORIZONTAL ELLIPSIS} {value}" if kept > 0 else value


def _find_stream() -> Any:
    """Return the stream that somebody may be looking at, or None."""
    if _is_notebook():
        return sys.stdout  # notebooks show the other stream in red
    # Under pythonw and some services there is no stream at all.
    return sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")  # in a notebook it is loaded; elsewhere it is not needed
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _find_size(stream: Any) -> os.terminal_size:
    """Return the size of a terminal; some pseudo-terminals say 0."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        size = os.get_terminal_size(stream.fileno())
        return size if all(size) else _SIZE
    return _SIZE


def _new_line(**options: Any) -> Any:
    """Return a bar of tqdm, a widget in notebooks that know widgets."""
    from tqdm.std import TqdmDefaultWriteLock, tqdm

    if _is_notebook():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook without widgets gets a line of text
            from tqdm.autonotebook import tqdm
    # Neither a thread that watches the bars, nor a lock between processes, which would settle how
    # multiprocessing starts them. This lock is a part of the one that other bars of tqdm hold.
    own = {"monitor_interval": 0, "_lock": TqdmDefaultWriteLock.th_lock}
    line = type("tqdm", (tqdm,), own)(**options)
    if hasattr(line, "container"):  # the bar takes the room next to the text, or above it
        line.container.children[1].layout.flex = "2"
        layout = line.container.layout
        layout.width, layout.display, layout.flex_flow = "100%", "inline-flex", "row wrap"
    return line
