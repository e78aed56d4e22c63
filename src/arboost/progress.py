"""A progress bar in a terminal or a notebook, drawn by tqdm, for work of more than a second.

Silent unless the standard error stream is a terminal or Python runs in a notebook. tqdm is imported
when a bar appears, so short fits do not pay for the import. Workers of a cluster report the steps
of their bars to the process that draws them.
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
from typing import Any, Self

_DELAY = 1.0  # seconds of work before the bar appears
_INTERVAL = 0.1  # seconds between two drawings
_FORMAT = "{{desc}} |{{bar}}| {{n_fmt}}/{} [{{elapsed}}{}{{postfix}}]"
_OTHER_COLUMNS = 38  # of a line without label and scores: a short bar, counts and times
_USUAL_COLUMNS = 80  # of a terminal that does not know its size
_CELL_COLUMNS = 110  # of a notebook


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
        self._bar: Any = None  # an instance of tqdm, once the bar has appeared

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._bar is None:
            return
        with self._drawing() as bar:
            bar.leave = error is None
            bar.bar_format = _FORMAT.format(self.total, "")
            if hasattr(bar, "container"):
                bar.total = bar.n  # fewer steps than the total would be shown as a failure
            if bar.pos > 0:
                bar.clear(nolock=True)  # tqdm leaves a copy where it drew below another bar
            bar.close()

    @property
    def is_visible(self) -> bool:
        """Whether somebody may be looking."""
        return self._stream is not None or self._report is not None

    def relabel(self, label: str) -> None:
        """Change the label; the next step is drawn at once, once the bar has appeared."""
        self.label = label
        if self._report is not None or self._bar is not None:
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
        if self._bar is not None:
            self._bar.n = done  # also of steps that are not drawn, for the last drawing
        now = time()
        if now >= self._next:
            self._next = now + _INTERVAL
            with self._drawing() as bar:
                bar.n, bar.ncols = done, _columns(self._stream)
                bar.set_description_str(self.label, refresh=False)
                width = bar.ncols - _OTHER_COLUMNS - len(self.label)
                bar.set_postfix_str(_scores(results or {}, width), refresh=False)
                bar.refresh(nolock=True)

    @contextlib.contextmanager
    def _drawing(self) -> Iterator[Any]:
        """Give the bar of tqdm, with tqdm's lock held: tqdm alone keeps the lock after Ctrl-C."""
        if self._bar is None:
            self._bar = _new_bar(
                desc=self.label,
                total=self.total,
                initial=self._initial,
                file=self._stream,
                delay=_DELAY,
                bar_format=_FORMAT.format(self.total, "<{remaining}"),
                dynamic_ncols=_is_notebook(),  # a widget as wide as its cell
            )
            self._bar.start_t = self._start
        try:
            with self._bar.get_lock():
                yield self._bar
        except (OSError, ValueError):  # a closed terminal must not end a fit
            self._bar.disable = True
            self._bar = self._stream = None


def _scores(results: Mapping[str, Mapping[str, float]], width: int) -> str:
    """Scores as text: of all evaluation sets, or of the last one, or its first metric.

    Examples
    --------
    >>> _scores({"validation": {"log_loss": 0.25, "auc": 0.91236}}, 80)
    'validation: log_loss 0.25000, auc 0.91236'
    >>> _scores({"validation": {"log_loss": 0.25, "auc": 0.91236}}, 20)
    'log_loss 0.25000'
    """
    # With trailing zeros: a text that changes its width would change that of the bar.
    texts = {
        name: [f"{metric} {value:#.5g}".rstrip(".") for metric, value in values.items()]
        for name, values in results.items()
    }
    last = next(reversed(texts.values()), [])
    all_sets = ", ".join(f"{name}: {', '.join(scores)}" for name, scores in texts.items())
    choices = (all_sets, ", ".join(last), "".join(last[:1]))
    return next((text for text in choices if len(text) <= width), choices[-1])


def _find_stream() -> Any:
    """Stream of a terminal or notebook, or None."""
    if _is_notebook():
        return sys.stdout  # notebooks show the other stream in red
    # Under pythonw and some services there is no stream at all.
    return sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")  # in a notebook it is loaded; elsewhere it is not needed
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _columns(stream: Any) -> int:
    """Columns of a line; the last one stays free, because some terminals wrap a full line."""
    if _is_notebook():
        return _CELL_COLUMNS
    columns = 0  # which some pseudo-terminals say
    with contextlib.suppress(OSError, ValueError, AttributeError):
        columns = os.get_terminal_size(stream.fileno()).columns
    return (columns or _USUAL_COLUMNS) - 1


def _new_bar(**options: Any) -> Any:
    """Make a bar of tqdm, a widget in notebooks that know widgets."""
    from tqdm.std import TqdmDefaultWriteLock, tqdm

    if _is_notebook():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a notebook without widgets gets a line of text
            from tqdm.autonotebook import tqdm
    # Neither a thread that watches the bars, nor a lock between processes, which would settle how
    # multiprocessing starts them. This lock is a part of the one that other bars of tqdm hold.
    members = {"monitor_interval": 0, "_lock": TqdmDefaultWriteLock.th_lock}
    return type("tqdm", (tqdm,), members)(**options)
