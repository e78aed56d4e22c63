"""Colours of plots, pictures of trees and the report page.

Series colours differ in lightness, too, and hold a contrast of 3:1 on their background.
"""

from __future__ import annotations

import colorsys
from collections.abc import Sequence

BLUE, ORANGE, GREEN, PURPLE = "#0f6cbd", "#c2570c", "#1b8467", "#a8458a"
BLACK, GREY, LIGHT = "#000000", "#707070", "#b0b0b0"
SERIES = (BLUE, ORANGE, GREEN, PURPLE, "#6e7781", "#8a6d00", "#3e4fb3", "#7a3b1d")
SERIES_ON_DARK = (
    "#5ca9f0", "#f0994f", "#4fc3a1", "#dd8cc4", "#a7b0ba", "#d8bb4a", "#97a4f5", "#cf9273"
)  # fmt: skip
# Lowest, middle and highest value.
_LOW, _MIDDLE, _HIGH = (43, 95, 192), (222, 222, 222), (196, 80, 15)


def class_colours(count: int) -> tuple[str, ...]:
    """Colour of each class; classes beyond the palette go round the circle of hues."""
    more = (
        colorsys.hls_to_rgb(0.618034 * i % 1, (0.45, 0.65)[i % 2], 0.55)
        for i in range(count - len(SERIES))
    )
    return (*SERIES[:count], *(_hex([255 * part for part in rgb]) for rgb in more))


def value_colour(position: float) -> str:
    """Colour of a value by its position from 0, the lowest, to 1, the highest."""
    ends = (_LOW, _MIDDLE) if position < 0.5 else (_MIDDLE, _HIGH)  # noqa: PLR2004
    share = 2 * position % 1 if position < 1 else 1.0
    return _hex([a + share * (b - a) for a, b in zip(*ends, strict=True)])


def tinted(colour: str) -> str:
    """Colour as a light background."""
    parts = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return _hex([255 - 0.14 * (255 - part) for part in parts])


def _hex(parts: Sequence[float]) -> str:
    return "#" + "".join(f"{round(part):02x}" for part in parts)
