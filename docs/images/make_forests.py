"""Draw the pictures of docs/theory/forests.md: python docs/images/make_forests.py [folder].

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
from matplotlib.ticker import FixedLocator, NullFormatter
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split

from arboost import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)

BLUE, RED, GREEN, GREY = "#0f6cbd", "#c2570c", "#1b8467", "#707070"
TREES, SEEDS = 100, 5


def tree() -> str:
    """The first tree of the page, as its `picture` draws it."""
    data = load_breast_cancer(as_frame=True)
    labels = data.target_names[data.target]
    X_train, _, y_train, _ = train_test_split(data.data, labels, random_state=0)
    return str(
        DecisionTreeClassifier(max_depth=2).fit(X_train, y_train).picture(show_missing=False)
    )


def shares(model: Any, X: np.ndarray) -> np.ndarray:
    """What each tree says of each row: probabilities, (n_trees, n_rows, n_classes)."""
    return np.array([one.predict_proba(X) for one in model.estimators_])


def error_by_trees(said: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Share of wrong rows for the mean of the first tree, the first two trees, ...

    Rows of which no tree says anything do not count.
    """
    sums = np.cumsum(said, axis=0)
    wrong = sums.argmax(axis=2) != y
    heard = sums.any(axis=2)
    return np.sum(wrong & heard, axis=1) / np.sum(heard, axis=1)


def error() -> Any:
    """Handwritten digits: errors of three kinds of forest over the number of trees."""
    X, y = load_digits(return_X_y=True)
    kinds = {
        "bagged trees": (RED, RandomForestClassifier(TREES, max_features=None)),
        "random forest": (BLUE, RandomForestClassifier(TREES)),
        "extra trees": (GREEN, ExtraTreesClassifier(TREES)),
    }
    panel = pyplot.subplots(figsize=(6.4, 3.8), layout="constrained")[1]
    number = np.arange(1, TREES + 1)
    for label, (colour, model) in kinds.items():
        errors, unseen = [], []
        for seed in range(SEEDS):
            X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
            model.set_params(random_state=seed, verbose=0).fit(X_train, y_train)
            errors.append(error_by_trees(shares(model, X_test), y_test))
            if label == "random forest":
                unseen.append(error_out_of_bag(model, X_train, y_train))
        panel.plot(number, 100 * np.mean(errors, axis=0), color=colour, linewidth=1.6, label=label)
        if unseen:
            panel.plot(
                number[9:],
                100 * np.mean(unseen, axis=0)[9:],
                color=colour,
                linewidth=1.2,
                linestyle=(0, (3, 2)),
                label="random forest, out of bag",
            )
    return finish(panel)


def error_out_of_bag(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """As `error_by_trees`, each row by the trees that have not drawn it."""
    said = shares(model, X)
    for one, rows in zip(said, model.estimators_samples_, strict=True):
        one[rows] = 0.0
    return error_by_trees(said, y)


def finish(panel: Any) -> Any:
    """Axes and words of the errors."""
    panel.set_xscale("log")
    panel.xaxis.set_major_locator(FixedLocator([1, 2, 5, 10, 20, 50, 100]))
    panel.xaxis.set_major_formatter(lambda value, _: f"{value:.0f}")
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.set_xlim(1, TREES)
    panel.set_ylim(bottom=0)
    panel.set_xlabel("trees")
    panel.set_ylabel("wrong digits, %")
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(frameon=False, fontsize="small")
    return panel.figure


def curve() -> Any:
    """A noisy curve: one tree, a forest, and the quantiles of the forest."""
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, 10.0, 400))
    y = np.sin(x) + rng.normal(0.0, 0.1 + 0.06 * x)
    grid = np.linspace(0.0, 10.0, 801)[:, np.newaxis]
    one = DecisionTreeRegressor().fit(x[:, np.newaxis], y)
    forest = RandomForestRegressor(300, min_samples_leaf=10, quantiles=True, verbose=0)
    forest.fit(x[:, np.newaxis], y)
    low, high = forest.predict_quantiles(grid, [0.05, 0.95]).T
    figure, panel = pyplot.subplots(figsize=(6.4, 3.4), layout="constrained")
    panel.fill_between(grid[:, 0], low, high, color=BLUE, alpha=0.15, linewidth=0, label="90 %")
    panel.scatter(x, y, s=7, color="#a0a0a0", linewidths=0)
    panel.plot(grid[:, 0], one.predict(grid), color=RED, linewidth=0.6, label="one tree")
    panel.plot(grid[:, 0], forest.predict(grid), color=BLUE, linewidth=1.8, label="forest")
    panel.spines[["top", "right"]].set_visible(False)
    panel.set_xlim(0, 10)
    panel.set_xlabel("x")
    panel.set_ylabel("y")
    panel.legend(frameon=False, fontsize="small", loc="upper left", ncols=3)
    return figure


PICTURES: dict[str, Callable[[], Any]] = {
    "forests_tree.svg": tree,
    "forests_error.svg": error,
    "forests_curve.svg": curve,
}


def main(folder: Path) -> None:
    """Write all pictures."""
    mpl.use("Agg")
    for name, draw in PICTURES.items():
        # Names inside the files are hashes with this salt.
        with mpl.rc_context({"svg.hashsalt": "arboost"}):
            drawn = draw()
            if isinstance(drawn, str):
                (folder / name).write_text(drawn, encoding="utf-8")
            else:
                drawn.savefig(folder / name, metadata={"Date": None})
        print(folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
