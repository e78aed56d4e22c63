"""Texts of plots, and a wide table, for the tests of plots."""

from __future__ import annotations


def render(axes):
    """Axes after rendering, which raises for impossible values."""
    axes.figure.canvas.draw()
    return axes


def tick_labels(axes):
    return [text.get_text() for text in axes.get_yticklabels()]


def legend_labels(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def any_overlap(texts):
    """Whether two of the texts cover a common place."""
    boxes = [text.get_window_extent() for text in texts if text.get_text()]
    return any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])


def wide_table(rng, n_features=200):
    X = rng.normal(size=(80, n_features))
    return X, X @ rng.normal(size=n_features)
