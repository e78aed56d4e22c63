"""Progress and messages on the standard error stream; results and charts on the standard output.

On a terminal, Rich draws a line that moves while a phase lasts; elsewhere a phase is one plain line
at its end, and one every ten seconds. ``--quiet`` leaves errors and results only.
"""

from __future__ import annotations

import json
import math
import re
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from arboost.text import number_text, size_text

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

    from arboost.progress import BarStep

_PLAIN_SECONDS = 10.0  # between two lines of a phase where no terminal is
_REFRESH = 8  # drawings a second
_MINUTE = 60.0
_WIDEST = 1000  # columns of a table
# Charts of characters.
_CURVE_HEIGHT = 6  # lines of characters
_DOTS = 4  # rows of dots in a line of braille
_WIDEST_CURVE = 100
# Dot of a braille character at (column, row), as a bit.
_BRAILLE = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_LABEL = 9
_NARROW = 72  # columns of a terminal that has no room for wide charts


class Console:
    """Output of one command.

    Parameters
    ----------
    quiet : bool
        Whether progress, messages and warnings are left out.
    as_json : bool
        Whether `show` is silent, because the result is one JSON object, of `emit`.

    Examples
    --------
    >>> with Console(quiet=True).phase("reading") as phase:
    ...     phase.update_bytes(1000, 2000)
    """

    def __init__(self, *, quiet: bool = False, as_json: bool = False) -> None:
        self.quiet = quiet
        self.as_json = as_json
        self.is_live = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._said: set[str] = set()
        import rich  # noqa: F401  # a missing package is an error before any work

        self.rich: Any = None  # Rich's console of the standard error stream, on a terminal
        if self.is_live:
            from rich.console import Console as RichConsole

            self.rich = RichConsole(stderr=True, highlight=False, markup=False, emoji=False)

    @property
    def has_blocks(self) -> bool:
        """Whether the standard output takes the characters of charts."""
        return (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")

    @property
    def width(self) -> int:
        """Columns of the terminal of the results; 80 where none is."""
        return _output().width

    def say(self, text: str) -> None:
        """Write a line of information."""
        if self.quiet:
            return
        if self.is_live:
            self.rich.print(plain_text(text))
        else:
            click.echo(plain_text(text), err=True)

    def warn(self, text: str) -> None:
        """Write a warning, once."""
        self.say_once(f"warning: {text}")

    def say_once(self, text: str) -> None:
        """Write a line of information, unless it was written before."""
        if text not in self._said:
            self._said.add(text)
            self.say(text)

    @contextmanager
    def warnings_as_lines(self) -> Iterator[None]:
        """Write the user warnings of the block as lines; drop all others."""

        def show(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
            if issubclass(category, UserWarning):
                self.warn(str(message))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = show
            yield

    @contextmanager
    def phase(self, label: str) -> Iterator[Phase]:
        """Draw the progress of the block, from its first moment on."""
        phase = Phase(self, label)
        phase.start()
        try:
            yield phase
        finally:
            phase.stop()
        if phase.result:
            self.say(phase.result)

    def show(self, *results: Any) -> None:
        """Write tables of Rich and texts to the standard output; nothing with ``--json``."""
        if not self.as_json:
            console = _output()
            for result in results:
                # Lines of a text are longer than a narrow terminal; wrapping them is its work.
                console.print(_safe(result), soft_wrap=isinstance(result, str))

    def show_widest(self, *tables: Any) -> None:
        """Write the first table of Rich that fits the width of the terminal, or else the last."""
        console = _output()
        options = console.options.update(max_width=_WIDEST)
        for table in map(_safe, tables):
            if console.measure(table, options=options).maximum <= console.width:
                break
        self.show(table)

    def emit(self, result: Mapping[str, Any]) -> None:
        """Write one JSON object to the standard output, with ``--json``."""
        if self.as_json:
            text = json.dumps(_plain(result), ensure_ascii=False, allow_nan=False)
            # JSON leaves some control characters as they are, such as the CSI of 8 bits.
            click.echo(_UNSAFE.sub(lambda hit: json.dumps(hit[0])[1:-1], text))


class Phase:
    """One step of a command, such as reading; made by `Console.phase`.

    Attributes
    ----------
    result : str
        Line to write at the end; empty for none.
    """

    def __init__(self, console: Console, label: str) -> None:
        self._console = console
        self._label = plain_text(label)
        self._started = time.monotonic()
        self._note = ""
        self._count = ""
        self._progress: Any = None
        self._task: Any = None
        self._ended = threading.Event()
        self.result = ""

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def update_bytes(self, done: int, total: int) -> None:
        """Draw the number of bytes that are read."""
        self._draw(done, total, f"{size_text(done)} of {size_text(total)}")

    def step(self, step: BarStep, before: str = "") -> None:
        """Draw a step of a bar of the library; see `arboost.progress.steps_reported`."""
        results = list(step.results.values())
        note = ""
        if results and results[-1]:
            metric, value = next(iter(results[-1].items()))
            note = f"{metric} {value:.5g}"
        self._label = plain_text(f"{before}{step.label}")
        self._draw(step.done, step.total, f"{step.done:,}/{step.total:,}", note)

    def _draw(self, done: int, total: int, count: str, note: str = "") -> None:
        self._count, self._note = count, plain_text(note)
        if self._progress is not None:
            self._progress.update(
                self._task,
                completed=done,
                total=total,
                note=self._note,
                description=self._label,
                count=count,
            )

    def start(self) -> None:
        """Begin to draw."""
        if self._console.quiet:
            return
        if not self._console.is_live:
            threading.Thread(target=self._write_lines, daemon=True).start()
            return
        self._progress = _progress_line(self._console.rich)
        self._task = self._progress.add_task(self._label, total=None, note="", count="")
        self._progress.start()

    def stop(self) -> None:
        """End drawing; a terminal has no trace of it."""
        self._ended.set()
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def _write_lines(self) -> None:
        while not self._ended.wait(_PLAIN_SECONDS):
            steps = f" {self._count}" if self._count else ""
            note = f", {self._note}" if self._note else ""
            self._console.say(f"{self._label}{steps} ({seconds_text(self.seconds)}{note})")


def _progress_line(console: RichConsole) -> Any:
    """Line of Rich: spinner, label, bar, count, time and note."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.table import Column

    def text(form: str, style: str = "none") -> TextColumn:
        column = Column(no_wrap=True, overflow="ellipsis")
        return TextColumn(form, style=style, markup=False, table_column=column)

    return Progress(
        SpinnerColumn(),
        text("{task.description}"),
        BarColumn(bar_width=20),
        text("{task.fields[count]}"),
        TimeElapsedColumn(),
        text("{task.fields[note]}", "cyan"),
        console=console,
        transient=True,
        refresh_per_second=_REFRESH,
    )


def _output() -> RichConsole:
    """Rich's console of the standard output."""
    from rich.console import Console as RichConsole

    return RichConsole(highlight=False, markup=False, emoji=False)


def new_table(title: str, left: Sequence[str], right: Sequence[str] = ()) -> Any:
    """Table of Rich with columns that are aligned left, and then those that are aligned right."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    table.caption_justify = "left"
    for name in left:
        table.add_column(name, no_wrap=True)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def plain_text(text: str) -> str:
    """Text on one line, with escapes for all that a terminal could obey."""
    return safe_text(" ".join(text.split()))


# Control characters, those that turn the direction of writing or are invisible, and lone
# surrogates. Tabs are escaped, too; line breaks are not.
_UNSAFE = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ud800-\udfff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


def safe_text(text: str) -> str:
    r"""Text with escapes for the characters that a terminal could obey.

    Examples
    --------
    >>> print(safe_text("price\x1b[2J"))
    price\x1b[2J
    """
    return _UNSAFE.sub(lambda hit: repr(hit[0])[1:-1], text)


def _safe(result: Any) -> Any:
    """Text or table of Rich whose words come from files, safe for a terminal."""
    from rich.table import Table
    from rich.text import Text

    if isinstance(result, str):
        return safe_text(result)
    if isinstance(result, Text):
        if _UNSAFE.search(result.plain):
            result.plain = safe_text(result.plain)
        return result
    if not isinstance(result, Table):
        raise TypeError(f"no output for a terminal: {type(result).__name__}")
    for name in ("title", "caption"):
        setattr(result, name, _safe(getattr(result, name) or ""))
    for column in result.columns:
        column.header, column.footer = _safe(column.header), _safe(column.footer)
        column._cells[:] = map(_safe, column._cells)
    return result


def seconds_text(seconds: float) -> str:
    """Text of a duration.

    Examples
    --------
    >>> seconds_text(0.043), seconds_text(2.31), seconds_text(75.2)
    ('0.04 s', '2.3 s', '1 min 15 s')
    """
    if seconds < 1.0:
        return f"{seconds:.2f} s"
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    return f"{int(seconds // _MINUTE)} min {int(seconds % _MINUTE)} s"


def _plain(value: Any) -> Any:
    """Value as JSON has it: numbers that are not finite are null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


# ---- charts of characters ----


def learning_curve(curves: Mapping[str, Mapping[str, Sequence[float]]], width: int) -> Any:
    """First metric of the last evaluation set by round, as text; None without one."""
    if not curves or width < _NARROW:
        return None
    name, metrics = list(curves.items())[-1]
    if not metrics:
        return None
    metric, values = next(iter(metrics.items()))
    if len(values) < 2:  # noqa: PLR2004
        return None
    from rich.text import Text

    n_columns = min(width, _WIDEST_CURVE) - _LABEL - 2
    lines = _plot(values, n_columns, _CURVE_HEIGHT)
    top, bottom = max(values), min(values)
    labels = [""] * _CURVE_HEIGHT
    labels[0], labels[-1] = f"{top:.4g}", f"{bottom:.4g}"
    text = Text()
    text.append(f"{metric} of the {name} rows, by round\n", style="bold")
    for label, line in zip(labels, lines, strict=True):
        text.append(f"{label:>{_LABEL}} ")
        text.append(f"{line}\n", style="cyan")
    last = f"{len(values):,}"
    text.append(" " * (_LABEL + 1) + "1" + last.rjust(n_columns - 1))
    return text


def _plot(values: Sequence[float], n_columns: int, n_lines: int) -> list[str]:
    """Lines of braille characters, two dots wide and four high each."""
    n_dots = 2 * n_columns
    height = _DOTS * n_lines
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    cells = [[0] * n_columns for _ in range(n_lines)]
    before = None
    for dot in range(n_dots):
        position = dot * (len(values) - 1) / max(n_dots - 1, 1)
        left = int(position)
        right = min(left + 1, len(values) - 1)
        value = values[left] + (position - left) * (values[right] - values[left])
        row = round((high - value) / span * (height - 1))
        first, last = sorted((row, row if before is None else before))
        for height_dot in range(first, last + 1):  # steep parts are joined
            cells[height_dot // _DOTS][dot // 2] |= _BRAILLE[dot % 2][height_dot % _DOTS]
        before = row
    return ["".join(chr(0x2800 + cell) for cell in line) for line in cells]


def bars(values: Sequence[float], width: int = 16, *, has_blocks: bool = True) -> list[str]:
    """Bar for each value, the longest for the largest; none below 0.

    Bars are of blocks, or of the character # where a terminal has none.
    """
    longest = max([*values, 0.0]) or 1.0
    lengths = [max(value, 0.0) / longest * width for value in values]
    if not has_blocks:
        return ["#" * round(length) for length in lengths]
    parts = [divmod(int(length * 8), 8) for length in lengths]  # whole blocks, and eighths of one
    return ["\N{FULL BLOCK}" * n + (chr(0x2590 - rest) if rest else "") for n, rest in parts]


def waterfall(
    title: str,
    base: float,
    steps: Sequence[tuple[str, object, float]],
    total: float,
    width: int,
    *,
    has_blocks: bool = True,
) -> Any:
    """Contributions to one prediction, from the expected value to the score.

    Parameters
    ----------
    title : str
    base : float
        Expected value.
    steps : sequence of (feature, value, contribution)
        The largest contributions; the rest is one line.
    total : float
        Score.
    width : int
        Columns of the terminal.
    has_blocks : bool
        Whether the terminal has more characters than ASCII.
    """
    from rich.text import Text

    rest = total - base - sum(step for _, _, step in steps)
    lines = [(name, _value_text(value), step) for name, value, step in steps]
    if abs(rest) > 1e-9 * max(abs(total), abs(base), 1.0):
        lines.append(("all other features", "", rest))
    places = [base]
    for _, _, step in lines:
        places.append(places[-1] + step)
    low, high = min(places), max(places)
    widths, bar_width = (24, 16), max(12, min(40, width - 56))
    if width < _NARROW:
        widths, bar_width = (14, 8), 8
    base, total = (0.0 if abs(end) < 1e-9 * (high - low) else end for end in (base, total))
    scale = (bar_width - 1) / ((high - low) or 1.0)
    table = new_table(title, ["feature", "value"], ["SHAP"])
    for column, max_width in zip(table.columns, widths, strict=False):
        column.overflow, column.max_width = "ellipsis", max_width
    table.add_column("", no_wrap=True, width=bar_width)
    block, line = ("\N{FULL BLOCK}", "\N{BOX DRAWINGS LIGHT VERTICAL}") if has_blocks else "#|"
    point = " " * round((base - low) * scale) + line
    table.add_row("expected value", "", f"{base:.4g}", Text(point))
    for (name, value, step), start in zip(lines, places, strict=False):
        first, last = sorted((start, start + step))
        left = round((first - low) * scale)
        length = max(1, round((last - first) * scale))
        bar = Text(" " * left + block * length, style="green" if step > 0 else "red")
        table.add_row(Text(name), Text(value), f"{step:+.4g}", bar)
    point = " " * round((total - low) * scale) + line
    table.add_row("score", "", f"{total:.4g}", Text(point))
    return table


def _value_text(value: object) -> str:
    if value is None:
        return "missing"
    return number_text(value, 5) if isinstance(value, float) else str(value)
