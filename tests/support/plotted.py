"""Texts of plots, and a wide table, for the tests of plots."""

from __future__ import annotations


def drawn(axes):
    """Return the axes after rendering, which raises for impossible values."""
    axes.figure.canvas.draw()
    return axes


def names(axes):
    return [text.get_text() for text in axes.get_yticklabels()]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def overlaps(texts):
    """Return whether two of the texts cover a common place."""
    boxes = [one.get_window_extent() for one in texts if one.get_text()]
    return any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def wide(rng, n_features=200):
    X = rng.normal(size=(80, n_features))
    return X, X @ rng.normal(size=n_features)
