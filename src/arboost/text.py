"""Numbers, times and names as text, and its width in columns of a terminal."""

from __future__ import annotations

import math
import unicodedata
from functools import cache
from itertools import accumulate

_DAY = 86400
_KILO = 1000
_DIGITS_OF_DOUBLE = 15
_LEAST_IN_GROUPS = 10_000
_LEAST_WHOLE = 10  # kB, MB or GB without decimals


def number_text(value: float, digits: int) -> str:
    """Number with at least `digits` significant digits; digits before the point are never cut.

    Digits are in groups of three from 10,000 on; those of years, for example, are not.

    Examples
    --------
    >>> [number_text(x, 4) for x in (0.25, 2.44999, 2024, 1234567.8, 1e-9, 3e20)]
    ['0.25', '2.45', '2024', '1,234,568', '1e-09', '3e+20']
    """
    if value == 0 or not math.isfinite(value):
        return f"{value + 0.0:g}"
    magnitude = math.floor(math.log10(abs(value)))
    if not -digits <= magnitude < _DIGITS_OF_DOUBLE:
        return f"{value:.{digits}g}"
    decimals = max(digits - 1 - magnitude, 0)
    group = "," if abs(round(value, decimals)) >= _LEAST_IN_GROUPS else ""
    text = f"{value:{group}.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def time_text(seconds: float, unit: str) -> str:
    """Date, clock time, or days and clock time, by the unit of a column in `Schema`."""
    if unit == "datetime":
        import numpy as np

        whole = np.datetime64(math.floor(seconds), "s")
        return str(whole).replace("T", " ").removesuffix(" 00:00:00")
    days, rest = divmod(seconds, _DAY)
    minutes, second = divmod(rest, 60)
    clock = f"{int(minutes // 60):02}:{int(minutes % 60):02}:{number_text(second, 6).zfill(2)}"
    return clock if unit == "time" or not days else f"{int(days)} d {clock}"


def size_text(n_bytes: float) -> str:
    """Number of bytes.

    Examples
    --------
    >>> size_text(812), size_text(12_345), size_text(3_456_789)
    ('812 bytes', '12 kB', '3.5 MB')
    """
    if n_bytes < _KILO:
        return f"{int(n_bytes)} bytes"
    power = 1 + (n_bytes >= _KILO**2) + (n_bytes >= _KILO**3)
    amount, unit = n_bytes / _KILO**power, ("kB", "MB", "GB")[power - 1]
    return f"{amount:.1f} {unit}" if amount < _LEAST_WHOLE else f"{amount:.0f} {unit}"


def label_text(label: str | float, digits: int) -> str:
    """Level of a category: a string, or a number with `digits` significant digits."""
    return label if isinstance(label, str) else number_text(label, digits)


def counted(number: int, thing: str, things: str | None = None) -> str:
    """Number of things in words.

    Examples
    --------
    >>> counted(1, "tree"), counted(2000, "category", "categories")
    ('1 tree', '2,000 categories')
    """
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def printable(text: str) -> str:
    r"""Text with escapes in place of control characters and line breaks.

    Examples
    --------
    >>> printable("price\n(EUR)")
    'price\\n(EUR)'
    """
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def shortened(text: str, most: int | None) -> str:
    """Text cut to `most` characters.

    Examples
    --------
    >>> shortened("petal length", 6)
    'petal…'
    """
    if most is None or len(text) <= most:
        return text
    return text[: most - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def shown_name(name: str, most: int | None = None) -> str:
    """Name of a column for readers: printable, of at most `most` characters, never empty."""
    return shortened(printable(name) or "''", most)


def display_width(text: str) -> int:
    """Width of a text in columns of a terminal.

    Examples
    --------
    >>> display_width("price"), display_width("価格")
    (5, 4)
    """
    return sum(map(_width_of_char, text))


def padded(text: str, width: int, *, to_right: bool = False) -> str:
    """Text filled with spaces to a width in columns of a terminal.

    Examples
    --------
    >>> padded("a", 3), padded("a", 3, to_right=True)
    ('a  ', '  a')
    """
    space = " " * (width - display_width(text))
    return space + text if to_right else text + space


def cut_to_width(text: str, width: int) -> str:
    """Text cut to a width in columns of a terminal.

    Examples
    --------
    >>> cut_to_width("価格が高い", 6)
    '価格…'
    """
    if display_width(text) <= width:
        return text
    widths = accumulate(map(_width_of_char, text))
    end = next(i for i, total in enumerate(widths) if total >= width)
    return text[:end].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


@cache
def _width_of_char(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
