"""Axes, colours, labels and the late import of matplotlib, shared by all plots."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from arboost.errors import needs_packages
from arboost.pictures.tree_words import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BLACK",
    "BLUE",
    "COLOURS",
    "GREEN",
    "GREY",
    "LIGHT",
    "RED",
    "SKY",
    "bar_axes",
    "bar_name",
    "check_count",
    "finish",
    "label",
    "matplotlib",
    "new_axes",
    "whole_rounds",
]

# Palette of Okabe and Ito, safe for colour-blind readers; line styles differ for grey prints.
BLACK, BLUE, SKY, RED, GREEN = "#000000", "#0072b2", "#56b4e9", "#d55e00", "#009e73"
GREY, LIGHT = "#707070", "#b0b0b0"
COLOURS = (BLUE, RED, GREEN, SKY, BLACK, GREY)

_SIZE = (6.4, 4.0)  # inches
_BAR, _AROUND_BARS = 0.27, 1.0  # heights of a bar with its gap, and of title and axis
_MAX_NAME, _MAX_BAR_NAME = 40, 32  # characters


def matplotlib() -> ModuleType:
    """Return the package matplotlib, or raise an error that says how to install it."""
    with needs_packages("plots", "arboost.plots"):
        return import_module("matplotlib")


def new_axes(ax: Axes | None, height: float = _SIZE[1]) -> Axes:
    """Return the given axes, or new ones of a height in inches."""
    matplotlib()
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(_SIZE[0], height), layout="constrained")[1]


def bar_name(name: object) -> str:
    """Return a name next to a bar, of which the figure has to be left some room."""
    return label(name, _MAX_BAR_NAME)


def bar_axes(ax: Axes | None, names: list[str], least_height: float = 1.8) -> Axes:
    """Return axes with a horizontal bar's place for each name, the first on top."""
    axes = new_axes(ax, max(_BAR * len(names) + _AROUND_BARS, least_height))
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    return axes


def finish(axes: Axes, title: str | None = None, *, has_legend: bool = True) -> Axes:
    """Return the axes without the top and right spines, and with the legend."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(which="both", color=GREY)
    words: dict[str, Any] = {"fontsize": "small", "title": title, "title_fontsize": "small"}
    if has_legend:
        axes.legend(frameon=False, alignment="left", **words)
    return axes


def whole_rounds(axes: Axes) -> None:
    """Put the ticks of an axis of rounds at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(x=0.02)


def label(name: object, most: int = _MAX_NAME) -> str:
    r"""Return a name of at most so many characters, cut in its middle.

    Dollar signs, which would start a formula in matplotlib, are escaped.

    Examples
    --------
    >>> label("distance to the nearest river", 16)
    'distance… river'
    """
    text = printable(str(name))
    if len(text) > most:  # names that begin alike differ at their ends
        text = f"{text[: most // 2 + 1].rstrip()}\N{HORIZONTAL ELLIPSIS}{text[-(most // 2 - 2) :]}"
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text  # legends leave out such names


def check_count(name: str, value: object) -> int:
    """Return a number of things to draw; raise ValueError unless it is at least 1."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{name}={value!r} is not allowed: use a whole number from 1 on.")
    return value
