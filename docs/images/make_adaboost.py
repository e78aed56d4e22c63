"""Draw the pictures of docs/theory/adaboost.md: python docs/images/make_adaboost.py [folder].

The same versions of the libraries give the same files.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from arboost import AdaBoostClassifier, AdaBoostRegressor, plots

BLUE, RED, GREY = "#0f6cbd", "#c2570c", "#707070"
STAGES = (1, 10, 100)


def weights() -> Any:
    """Ten points in three rounds: size is weight, lines are thresholds, crosses are errors."""
    x = np.arange(10.0)
    y = np.array([1, 1, 1, -1, -1, -1, 1, 1, 1, -1])
    model = AdaBoostClassifier(n_estimators=3).fit(x.reshape(-1, 1), y)
    scores = [np.zeros(10), *model.staged_decision_function(x.reshape(-1, 1))]
    figure, panels = pyplot.subplots(4, 1, figsize=(6.4, 3.6), sharex=True, layout="constrained")
    for number, panel in enumerate(panels):
        bare(panel)
        if number == len(panels) - 1:
            panel.set_ylabel("vote")
            size, answer = np.full(10, 0.1), np.sign(scores[-1])
        else:
            size = np.exp(-y * scores[number])
            size /= size.sum()
            answer = np.sign(scores[number + 1] - scores[number])
            error, alpha = model.estimator_errors_[number], model.estimator_weights_[number]
            panel.set_ylabel(f"round {number + 1}")
            panel.text(
                9.7,
                0.0,
                rf"$e$ = {error:.3f}" "\n" rf"$\alpha$ = {alpha:.3f}",
                va="center",
                fontsize=9,
            )
        for place in np.flatnonzero(np.diff(answer)) + 0.5:
            panel.axvline(place, color=GREY, linewidth=1.0)
        shade(panel, answer)
        panel.scatter(x, np.zeros(10), s=1300 * size, c=np.where(y > 0, BLUE, RED), zorder=2)
        wrong = answer != y
        panel.scatter(x[wrong], np.zeros(wrong.sum()), s=30, marker="x", c="white", zorder=3)
    return figure


def shade(panel: Any, answer: np.ndarray) -> None:
    """Colour the background by what is answered there."""
    for place, sign in enumerate(answer):
        colour = BLUE if sign > 0 else RED
        panel.axvspan(place - 0.5, place + 0.5, color=colour, alpha=0.12, linewidth=0)


def bare(panel: Any) -> None:
    """Take away frame and ticks."""
    panel.spines[:].set_visible(False)
    panel.set_xticks([])
    panel.set_yticks([])
    panel.set_xlim(-0.5, 10.9)
    panel.set_ylim(-1.0, 1.0)


def breast_cancer() -> tuple[Any, Any, Any]:
    """The model of the page, and its training rows."""
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = AdaBoostClassifier(n_estimators=200)
    return model.fit(X_train, y_train, X_val=X_test, y_val=y_test), X_train, y_train


def bound() -> Any:
    """Bounds and errors over the rounds."""
    return plots.plot_bound(breast_cancer()[0]).figure


def margins() -> Any:
    """Margins of the training rows after some rounds."""
    return plots.plot_margins(*breast_cancer(), rounds=[5, 20, 200]).figure


def regression() -> Any:
    """A noisy curve, and what the weighted median makes of it."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 6.0, 200))
    y = np.sin(x) + np.sin(6.0 * x) + rng.normal(0.0, 0.15, len(x))
    model = AdaBoostRegressor(n_estimators=STAGES[-1], max_depth=4).fit(x.reshape(-1, 1), y)
    grid = np.linspace(0.0, 6.0, 601)
    stages = list(model.staged_predict(grid.reshape(-1, 1)))
    figure, panel = pyplot.subplots(figsize=(6.4, 3.6), layout="constrained")
    panel.scatter(x, y, s=9, color="#b0b0b0", linewidths=0)
    colours = mpl.colormaps["viridis"](np.linspace(0.85, 0.0, len(STAGES)))
    for number, colour in zip(STAGES, colours, strict=True):
        label = f"{number} round{'s' if number > 1 else ''}"
        panel.plot(grid, stages[number - 1], color=colour, linewidth=1.6, label=label)
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_xlabel("x")
    panel.set_ylabel("y")
    words = {"fontsize": "small", "title": "after", "title_fontsize": "small"}
    panel.legend(frameon=False, alignment="left", **words)
    return figure


PICTURES: dict[str, Callable[[], Any]] = {
    "adaboost_weights.svg": weights,
    "adaboost_bound.svg": bound,
    "adaboost_margins.svg": margins,
    "adaboost_r2.svg": regression,
}


def main(folder: Path) -> None:
    """Write all pictures."""
    mpl.use("Agg")
    for name, draw in PICTURES.items():
        # Names inside the files are hashes with this salt.
        with mpl.rc_context({"svg.hashsalt": "arboost"}):
            draw().savefig(folder / name, metadata={"Date": None})
        print(folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
