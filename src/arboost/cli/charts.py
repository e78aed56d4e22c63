"""Charts of characters for a terminal: learning curves and contributions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["bars", "learning_curve", "waterfall"]

_HEIGHT = 6  # lines of characters
_DOTS = 4  # rows of dots in a line of braille
_NARROW = 40  # columns below which there is no room for a curve
_WIDEST = 100
# Dot of a braille character at (column, row), as a bit.
_BRAILLE = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_LABEL = 9
_NARROW = 72  # columns of a terminal that has no room for wide charts
_LARGE = 1e9  # from which whole numbers have an exponent


def learning_curve(curves: Mapping[str, Mapping[str, Sequence[float]]], width: int) -> Any:
    """Return the first metric of the last evaluation set by rounds, as text; None without one."""
    if not curves or width < _NARROW:
        return None
    name, metrics = list(curves.items())[-1]
    if not metrics:
        return None
    metric, values = next(iter(metrics.items()))
    if len(values) < 2:  # noqa: PLR2004
        return None
    from rich.text import Text

    n_columns = min(width, _WIDEST) - _LABEL - 2
    lines = _plot(values, n_columns, _HEIGHT)
    top, bottom = max(values), min(values)
    labels = [""] * _HEIGHT
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
    """Return lines of braille characters, two dots wide and four high each."""
    n_dots = 2 * n_columns
    height = _DOTS * n_lines
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    cells = [[0] * n_columns for _ in range(n_lines)]
    before = None
    for dot in range(n_dots):
        place = dot * (len(values) - 1) / max(n_dots - 1, 1)
        left = int(place)
        right = min(left + 1, len(values) - 1)
        value = values[left] + (place - left) * (values[right] - values[left])
        row = round((high - value) / span * (height - 1))
        first, last = sorted((row, row if before is None else before))
        for one in range(first, last + 1):  # steep parts are joined
            cells[one // _DOTS][dot // 2] |= _BRAILLE[dot % 2][one % _DOTS]
        before = row
    return ["".join(chr(0x2800 + cell) for cell in line) for line in cells]


def bars(values: Sequence[float], width: int = 16, *, has_blocks: bool = True) -> list[str]:
    """Return a bar for each value, the longest for the largest; none below 0.

    Bars are of blocks, or of the character # where a terminal has none.
    """
    longest = max([*values, 0.0]) or 1.0
    lengths = [max(value, 0.0) / longest * width for value in values]
    return [_bar(one) if has_blocks else "#" * round(one) for one in lengths]


def _bar(length: float) -> str:
    """Return blocks of so many columns, the last one in eighths."""
    whole = int(length)
    rest = int((length - whole) * 8)
    return "\N{FULL BLOCK}" * whole + (chr(0x2590 - rest) if rest else "")


def waterfall(
    title: str,
    base: float,
    steps: Sequence[tuple[str, object, float]],
    total: float,
    width: int,
    *,
    has_blocks: bool = True,
) -> Any:
    """Return the contributions to one prediction, from the expected value to the score.

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
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rest = total - base - sum(step for _, _, step in steps)
    lines = [(name, _value_text(value), step) for name, value, step in steps]
    if abs(rest) > 1e-9 * max(abs(total), abs(base), 1.0):
        lines.append(("all other features", "", rest))
    places = [base]
    for _, _, step in lines:
        places.append(places[-1] + step)
    low, high = min(places), max(places)
    longest = {"feature": 24, "value": 16}
    room = max(12, min(40, width - 56))
    if width < _NARROW:
        longest, room = {"feature": 14, "value": 8}, 8
    scale = (room - 1) / ((high - low) or 1.0)
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold")
    for name, most in longest.items():
        table.add_column(name, overflow="ellipsis", no_wrap=True, max_width=most)
    table.add_column("SHAP", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, width=room)
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
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and abs(value) < _LARGE else f"{value:.5g}"
    return str(value)
