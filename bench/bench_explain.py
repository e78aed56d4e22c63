"""How fast are partial dependence and permutation importance next to repeated predictions?"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import arboost
from support import harness
from support.data import higgs_like

FEATURES, DEPTH = 28, 6
POINTS, REPEATS = 100, 5


def main() -> None:
    """Fit once, time each pair of methods, print and save the figures."""
    parser = harness.parser(__doc__, "explain")
    parser.add_argument("--rows", type=int, default=5000, help="rows that are explained")
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--threads", type=int, default=harness.cores())
    args = harness.parse(parser)
    X, y = higgs_like(max(args.rows, 50_000), FEATURES)
    estimator = arboost.GradientBoostingClassifier(
        n_estimators=args.rounds, max_depth=DEPTH, learning_rate=0.1, n_jobs=args.threads
    )
    model = estimator.fit(X, y).model_
    figures = {
        name: contest(plain, fast, args.repeats)
        for name, plain, fast in pairs(model, X[: args.rows], y[: args.rows], args)
    }
    rows = [(name, *one.values()) for name, one in figures.items()]
    harness.show("seconds", ("method", "repeated predictions", "arboost", "times faster"), rows)
    harness.save(args, figures)


def pairs(
    model: arboost.Predictor, X: np.ndarray, y: np.ndarray, args: argparse.Namespace
) -> list[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    """Name, plain method and fast method of each comparison; both methods give equal results."""
    jobs = args.threads
    by_gain = model.importances().argsort()[::-1]
    first, last = int(by_gain[0]), int(by_gain[-1])
    few = X[: max(len(X) // 50, 1)]

    def plain(rows: np.ndarray, grid: tuple[np.ndarray, ...], features: tuple[int, ...]) -> Any:
        changed, means = rows.copy(), []
        for point in np.stack(np.meshgrid(*grid, indexing="ij"), -1).reshape(-1, len(grid)):
            changed[:, features] = point
            means.append(model.predict_proba(changed, n_jobs=jobs)[:, 1].mean())
        return np.array(means)

    def dependence(rows: np.ndarray, features: tuple[int, ...], points: int) -> Any:
        def ours() -> Any:
            found = model.partial_dependence(rows, features, grid=points, n_jobs=jobs)
            return found.average.ravel()

        grid = model.partial_dependence(rows, features, grid=points).grid
        return lambda: plain(rows, grid, features), ours

    def shuffled() -> Any:
        start, changed, losses = loss(X), X.copy(), np.zeros(FEATURES)
        for feature in range(FEATURES):
            for repeat in range(REPEATS):
                rng = np.random.Generator(np.random.PCG64([0, feature, repeat]))
                changed[:, feature] = X[rng.permutation(len(X)), feature]
                losses[feature] += (loss(changed) - start) / REPEATS
            changed[:, feature] = X[:, feature]
        return losses

    def loss(rows: np.ndarray) -> float:
        shares = model.predict_proba(rows, n_jobs=jobs)
        return -float(np.log(shares[np.arange(len(y)), y.astype(int)]).mean())

    def permuted() -> Any:
        return model.importances("permutation", X, y, n_repeats=REPEATS, n_jobs=jobs)

    second = int(by_gain[1])
    return [
        ("partial dependence, feature of most gain", *dependence(X, (first,), POINTS)),
        ("partial dependence, feature of least gain", *dependence(X, (last,), POINTS)),
        ("partial dependence, two features", *dependence(few, (first, second), POINTS // 3)),
        ("permutation importance", shuffled, permuted),
    ]


def contest(
    plain: Callable[[], Any], fast: Callable[[], Any], repeats: int
) -> dict[str, float | str]:
    """Best seconds of both methods, run in turns; fails where their results differ."""
    seconds: dict[str, list[float]] = {"plain": [], "fast": []}
    for _ in range(repeats):
        answers = []
        for name, run in (("plain", plain), ("fast", fast)):
            start = time.perf_counter()
            answers.append(run())
            seconds[name].append(time.perf_counter() - start)
        np.testing.assert_allclose(answers[0], answers[1], rtol=1e-9, atol=1e-9)
    one, two = min(seconds["plain"]), min(seconds["fast"])
    return {"plain": one, "fast": two, "ratio": one / two}


if __name__ == "__main__":
    main()
