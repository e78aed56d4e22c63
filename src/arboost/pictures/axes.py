"""Axes, colours and the late import of matplotlib, shared by all plots."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["BLACK", "BLUE", "GREEN", "GREY", "RED", "SKY", "finish", "matplotlib", "new_axes"]

# Palette of Okabe and Ito, safe for colour-blind readers; line styles differ for grey prints.
BLACK, BLUE, SKY, RED, GREEN = "#000000", "#0072b2", "#56b4e9", "#d55e00", "#009e73"
GREY = "#707070"

_SIZE = (6.4, 4.0)


def matplotlib() -> ModuleType:
    """Return the package matplotlib, or raise an error that says how to install it."""
    try:
        return import_module("matplotlib")
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "arboost.plots needs matplotlib, which is not installed. Install it, for example by "
            "pip install 'arboost[plots]'.",
            name=error.name,
        ) from error


def new_axes(ax: Axes | None) -> Axes:
    """Return the given axes, or new ones."""
    matplotlib()
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(figsize=_SIZE, layout="constrained")[1]


def finish(axes: Axes, title: str | None = None, *, has_legend: bool = True) -> Axes:
    """Return the axes without the top and right spines, and with the legend."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(which="both", color=GREY)
    words: dict[str, Any] = {"fontsize": "small", "title": title, "title_fontsize": "small"}
    if has_legend:
        axes.legend(frameon=False, alignment="left", **words)
    return axes
