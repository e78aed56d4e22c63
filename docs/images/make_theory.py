"""Draw pictures of docs/theory: python docs/images/make_theory.py [folder].

The same versions of the libraries give the same files. Backgrounds are transparent and colours of
medium brightness, so that pictures are readable in light and dark pages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from numpy.typing import NDArray
from sklearn.datasets import make_friedman1
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from arboost import GradientBoostingRegressor, VotingRegressor

BLUE, ORANGE, GREEN, GREY = "#2f7fbf", "#d9722e", "#3f9b6b", "#7f7f7f"
COLOURS = (BLUE, ORANGE, GREEN)
NU, RHO = "\N{GREEK SMALL LETTER NU}", "\N{GREEK SMALL LETTER RHO}"
STYLE = {
    "svg.hashsalt": "arboost",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "savefig.transparent": True,
    "text.color": GREY,
    "axes.labelcolor": GREY,
    "axes.edgecolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 9,
}

Floats = NDArray[np.float64]


def panels(n: int = 1, height: float = 2.8, **options: Any) -> tuple[Any, list[Any]]:
    """Return a figure of n panels side by side."""
    figure, axes = pyplot.subplots(
        1, n, figsize=(6.6, height), layout="constrained", squeeze=False, **options
    )
    return figure, list(axes[0])


def gain_of_cuts() -> Any:
    """Gain of each cut of the ten rows of xgboost.md, for three penalties."""
    y = np.array([0, 0, 0, 1, 1, 0, 0, 0, 1, 1])
    g, h = 0.5 - y, np.full(10, 0.25)
    cuts = np.arange(1, 10)
    figure, (panel,) = panels()
    for reg_lambda, colour in zip((0.0, 1.0, 5.0), COLOURS, strict=True):
        left_g, left_h = g.cumsum()[:-1], h.cumsum()[:-1]
        right_g, right_h = g.sum() - left_g, h.sum() - left_h
        gain = left_g**2 / (left_h + reg_lambda) + right_g**2 / (right_h + reg_lambda)
        gain -= g.sum() ** 2 / (h.sum() + reg_lambda)
        panel.plot(cuts + 0.5, gain, "o-", color=colour, label=f"λ = {reg_lambda:g}", ms=4)
        best = gain.argmax()
        panel.plot(cuts[best] + 0.5, gain[best], "o", color=colour, ms=10, fillstyle="none")
    panel.axhline(0.0, color=GREY, linewidth=0.8)
    for place, label in enumerate(y, 1):
        panel.text(place, -0.62, str(label), ha="center", color=ORANGE if label else BLUE)
    panel.set(xlabel="cut of x, and the classes of the ten rows", ylabel="gain")
    panel.set(xlim=(0.5, 10.5), ylim=(-0.8, 4), xticks=range(1, 11))
    panel.legend(loc="upper center")
    return figure


def losses() -> Any:
    """Losses of regression by residual, and of two classes by margin."""
    figure, (left, right) = panels(2)
    r = np.linspace(-3, 3, 121)
    size = np.abs(r)
    curves = {
        "squared error": r**2 / 2,
        "absolute error": size,
        "Huber, δ = 1": np.where(size <= 1, r**2 / 2, size - 0.5),
    }
    for (name, curve), colour in zip(curves.items(), COLOURS, strict=True):
        left.plot(r, curve, color=colour, label=name)
    left.plot(r, np.where(r > 0, 0.9 * r, -0.1 * r), color=GREY, label="quantile 0.9")
    left.set(xlabel="residual y - F", ylabel="loss", ylim=(0, 4.6))
    left.legend(loc="upper center")
    margin = np.linspace(-2, 3, 121)
    right.plot(margin, np.exp(-margin), color=ORANGE, label="exponential")
    right.plot(margin, np.log1p(np.exp(-margin)) / np.log(2), color=BLUE, label="log loss / ln 2")
    right.step(margin, margin <= 0, color=GREY, label="misclassified")
    right.set(xlabel="margin s F", ylim=(0, 5))
    right.legend()
    return figure


def shrinkage() -> Any:
    """Error on new rows over the rounds, for three learning rates."""
    X, y = make_friedman1(400, noise=1.0, random_state=0)
    X_new, y_new = make_friedman1(2000, noise=1.0, random_state=1)
    figure, (panel,) = panels()
    for rate, colour in zip((1.0, 0.3, 0.1), (ORANGE, GREEN, BLUE), strict=True):
        model = GradientBoostingRegressor(
            boosting="gradient", n_estimators=300, learning_rate=rate, max_depth=3
        ).fit(X, y)
        error = [np.mean((stage - y_new) ** 2) for stage in model.staged_predict(X_new)]
        panel.plot(np.arange(1, 301), error, color=colour, label=f"{NU} = {rate:g}")
    panel.set(xlabel="rounds", ylabel="squared error, new rows", xscale="log", ylim=(0, 25))
    panel.legend()
    return figure


def candidates() -> Any:
    """Candidates of a quantile sketch with equal and with growing weights."""
    values = np.sort(np.random.default_rng(0).normal(size=2000))
    figure, (panel,) = panels(height=2.6)
    weights = {"equal hessians": np.ones(2000), "hessians grow with x": np.exp(1.5 * values)}
    for row, ((name, weight), colour) in enumerate(zip(weights.items(), COLOURS, strict=False)):
        rank = weight.cumsum() / weight.sum()
        panel.plot(values, rank, color=colour, label=name)
        cuts = values[np.searchsorted(rank, np.arange(1, 10) / 10)]
        panel.plot(cuts, np.full(9, -0.1 - 0.12 * row), "|", color=colour, ms=9, mew=1.8)
        panel.plot(cuts, np.arange(1, 10) / 10, "o", color=colour, ms=4)
    panel.set(xlabel="x", ylabel="rank r(x)", ylim=(-0.3, 1.05), xlim=(-3.2, 3.2))
    panel.set_yticks(np.linspace(0, 1, 6))
    panel.legend()
    return figure


def growth() -> Any:
    """Trees of six leaves, level by level and best first, with the order of their splits."""
    X, y = make_friedman1(2000, noise=1.0, random_state=3)
    y = np.exp(y / 6)  # a skewed target: gains are larger on one side
    figure, both = panels(2)
    for panel, policy in zip(both, ("depthwise", "leafwise"), strict=True):
        model = GradientBoostingRegressor(
            n_estimators=1, max_depth=4, max_leaves=6, grow_policy=policy
        )
        table = model.fit(X, y).tree_table()
        draw_tree(panel, table)
        total = np.nansum(table["gain"])
        panel.set_title(f"{policy}: total gain {total:.0f}", fontsize=10)
    return figure


def draw_tree(panel: Any, table: dict[str, NDArray[Any]]) -> None:
    """Draw the nodes of a tree; splits are numbered in the order of growth."""
    left, right = table["left"], table["right"]
    place: dict[int, float] = {}

    def put(node: int) -> float:
        if left[node] < 0:
            place[node] = float(sum(left[other] < 0 for other in place))
        else:
            place[node] = (put(int(left[node])) + put(int(right[node]))) / 2
        return place[node]

    put(0)
    order = np.argsort(np.where(left < 0, len(left), left), kind="stable")
    number = {int(node): turn for turn, node in enumerate(order, 1)}
    for node, x in place.items():
        depth = -int(table["depth"][node])
        if left[node] < 0:
            panel.plot(x, depth, "s", color=GREEN, ms=9)
            continue
        for child in (int(left[node]), int(right[node])):
            panel.plot([x, place[child]], [depth, depth - 1], color=GREY, linewidth=1, zorder=0)
        panel.plot(x, depth, "o", color=BLUE, ms=17)
        panel.text(x, depth, str(number[node]), color="white", ha="center", va="center")
    panel.axis("off")
    panel.set_ylim(-4.4, 0.5)


def probabilities() -> Any:
    """Probability of a row by its gradient, in three samples of the same expected size."""
    size = np.sort(np.abs(np.random.default_rng(0).standard_t(3, size=4000)))
    top, other = 0.2, 0.1
    low, high = 0.0, size.sum()
    for _ in range(100):
        mu = (low + high) / 2
        drawn = np.minimum(1, size / mu).sum()
        low, high = (mu, high) if drawn > (top + other) * len(size) else (low, mu)
    limit = np.quantile(size, 1 - top)
    grid = np.linspace(0, 5, 201)
    figure, (panel,) = panels()
    panel.plot(grid, np.full(201, top + other), color=GREY, label="uniform")
    goss = np.where(grid > limit, 1, other / (1 - top))
    panel.plot(grid, goss, color=ORANGE, label="GOSS, a = 0.2, b = 0.1")
    panel.plot(grid, np.minimum(1, grid / mu), color=BLUE, label="minimal variance")
    panel.set(xlabel="|gradient| of a row", ylabel="probability of being drawn", ylim=(0, 1.05))
    panel.legend(loc="lower right")
    return figure


def variance() -> Any:
    """Variance of a mean over the number of members."""
    members = np.arange(1, 101)
    figure, (panel,) = panels(height=2.5)
    for rho, colour in zip((0.5, 0.2, 0.0), COLOURS, strict=True):
        panel.plot(members, rho + (1 - rho) / members, color=colour, label=f"{RHO} = {rho:g}")
        panel.axhline(rho, color=colour, linewidth=0.8, linestyle=":")
    panel.set(xlabel="members B", ylabel="variance / σ²", xscale="log", ylim=(-0.03, 1.03))
    panel.legend()
    return figure


def ambiguity() -> Any:
    """Squared errors of members, of their mean, and the spread between them."""
    X, y = make_friedman1(600, noise=1.0, random_state=0)
    y += 4 * X[:, 5:8].sum(axis=1)
    members = [
        ("trees", GradientBoostingRegressor(n_estimators=100)),
        ("line", RidgeCV()),
        ("near", make_pipeline(StandardScaler(), KNeighborsRegressor(10))),
    ]
    X_train, X_test, y_train, truth = train_test_split(X, y, random_state=0)
    vote = VotingRegressor(members).fit(X_train, y_train)
    single, mean = vote.transform(X_test), vote.predict(X_test)
    errors = ((single - truth[:, np.newaxis]) ** 2).mean(axis=0)
    spread = ((single - mean[:, np.newaxis]) ** 2).mean()
    figure, (panel,) = panels(height=2.4)
    bars(panel, [*(name for name, _ in members), "their mean", "vote"], errors, spread)
    panel.set_xlabel("squared error on new rows")
    return figure


def bars(panel: Any, names: Sequence[str], errors: Floats, spread: float) -> None:
    """Draw errors of members, their mean, and the mean less the spread."""
    mean = float(errors.mean())
    panel.barh(range(len(errors)), errors, color=GREY, alpha=0.7)
    panel.barh(len(errors), mean, color=ORANGE)
    panel.barh(len(errors) + 1, mean - spread, color=BLUE)
    last = {"left": mean - spread, "color": "none", "edgecolor": BLUE, "hatch": "///"}
    panel.barh(len(errors) + 1, spread, **last)
    panel.set_yticks(range(len(names)), names)
    panel.invert_yaxis()
    panel.text(
        mean + 0.1, len(errors) + 1, "less the spread of the members", va="center", fontsize=9
    )


PICTURES: dict[str, Callable[[], Any]] = {
    "xgboost_gain.svg": gain_of_cuts,
    "gbdt_losses.svg": losses,
    "gbdt_shrinkage.svg": shrinkage,
    "split_candidates.svg": candidates,
    "goss_growth.svg": growth,
    "goss_probabilities.svg": probabilities,
    "bagging_variance.svg": variance,
    "stacking_ambiguity.svg": ambiguity,
}


def main(folder: Path) -> None:
    """Write all pictures."""
    mpl.use("Agg")
    for name, draw in PICTURES.items():
        with mpl.rc_context(STYLE):
            figure = draw()
            figure.savefig(folder / name, metadata={"Date": None})
            pyplot.close(figure)
        print(folder / name)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
