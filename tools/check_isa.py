"""Check that all instruction sets and numbers of threads give the same models, bit by bit.

Usage: PYTHONPATH=src python tools/check_isa.py [--threads 1 4 16] [--rows N] [--only WORD]

Trees, forests, boosters and AdaBoost of varied settings, up to 200,000 rows so that all threads
share the large nodes, are fitted in one process for each instruction set and number of threads. The
table has one line for each fit: equal, or the digests that differ. The exit status is 1 if any
differ. Needs arboost and its dependencies; four minutes on 16 cores.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ISAS = ("baseline", "avx2", "avx512")
KNOWN_ROWS = 5000  # rows that are predicted


def numbers(n: int, n_features: int = 12) -> np.ndarray:
    """Return columns of many and of few values, with missing ones."""
    rng = np.random.default_rng(1)
    X = rng.integers(-5000, 5000, (n, n_features)) / 8
    X[:, 1] = rng.integers(0, 4, n)
    X[:, 2] = rng.integers(0, 40, n)
    X[rng.random(X.shape) < 0.02] = np.nan
    X[:, 3:6] = np.nan_to_num(X[:, 3:6])
    return X


def flags(n: int) -> np.ndarray:
    """Return one-hot and rare columns, which share stored columns."""
    rng = np.random.default_rng(2)
    one_hot = rng.integers(0, 25, n)[:, None] == np.arange(25)
    rare = np.where(rng.random((n, 12)) < 0.02, rng.integers(1, 6, (n, 12)), 0)
    return np.hstack([one_hot, rare, rng.integers(0, 300, (n, 2))]).astype(float)


def target(X: np.ndarray) -> np.ndarray:
    """Return positive numbers; multiples of 1/64, the same on every machine."""
    rng = np.random.default_rng(3)
    known = np.nan_to_num(X)
    step = (known[:, 0] > known[:, -1]) * 3 + (known[:, 1] % 2) * (known[:, 2] > 10)
    return 1 + step + rng.integers(0, 128, len(X)) / 64


def one_huge(X: np.ndarray) -> np.ndarray:
    """Return small numbers and a huge one, next to which differences are lost in rounding."""
    return np.where(np.arange(len(X)) == 7, 2.0**30 - 1, np.floor(target(X)) % 4)


def classes(X: np.ndarray, n_classes: int) -> np.ndarray:
    return np.floor(target(X)).astype(int) % n_classes


def sparse(n: int) -> Any:
    from scipy.sparse import csr_array

    return csr_array(flags(n)[:, 10:37])


class Fits:
    """Functions by name, each of which fits a model and returns it with its table."""

    def __init__(self, rows: int, n_jobs: int) -> None:
        self.rows, self.some, self.few = rows, rows // 5, rows // 50
        self.n_jobs = n_jobs
        self.by_name: dict[str, Callable[[], tuple[Any, Any]]] = {}

    def add(self, name: str, kind: str, X: Any, y: Any, weight: Any = None, **params: Any) -> None:
        """Add one fit."""

        def fit() -> tuple[Any, Any]:
            import arboost

            table = X()
            dense = table.toarray() if hasattr(table, "toarray") else table
            given = {"n_jobs": self.n_jobs, "verbose": 0} | params
            query = {} if kind != "GradientBoostingRanker" else {"qid": np.arange(len(dense)) // 50}
            more = {} if weight is None else {"sample_weight": weight(len(dense))}
            return getattr(arboost, kind)(**given).fit(table, y(dense), **query, **more), table

        self.by_name[name] = fit


def weights(n: int) -> np.ndarray:
    return np.random.default_rng(4).integers(0, 9, n) / 4 + (np.arange(n) == 0)


def add_boosters(fits: Fits) -> None:
    booster = {"kind": "GradientBoostingRegressor", "X": lambda: numbers(fits.rows), "y": target}
    deep = {"max_depth": None, "min_child_weight": 0.0, "reg_lambda": 0.0, "n_estimators": 2}
    six = {"n_estimators": 6}
    for name, params in {
        "depth 6": six,
        "255 leaves": {"max_leaves": 255, "max_depth": None, "grow_policy": "leafwise"} | six,
        "full depth": deep,
        "full depth, leaf size": deep | {"min_samples_leaf": 5},
        "two-byte bins": {"max_bins": 1000} | six,
        "exact": {"tree_method": "exact", "n_estimators": 2},
        "approx": {"tree_method": "approx", "n_estimators": 2},
        "approx, local": {"tree_method": "approx", "sketch_scope": "local", "n_estimators": 2},
        "penalties": {"reg_alpha": 1.0, "gamma": 0.5, "max_delta_step": 0.5} | six,
        "monotone": {"monotone_constraints": {0: 1, 4: -1}} | six,
        "interactions": {"interaction_constraints": [[0, 1, 2], list(range(3, 12))]} | six,
        "GOSS": {"sampling_method": "goss", "learning_rate": 0.5} | six,
        "gradient-based sample": {"sampling_method": "gradient_based", "subsample": 0.3} | six,
        "column samples": {"colsample_bytree": 0.6, "colsample_bynode": 0.5} | six,
        "DART": {"rate_drop": 0.5} | six,
        "poisson": {"loss": "poisson"} | six,
        "quantile": {"loss": "quantile", "alpha": 0.3} | six,
        "weights": {"weight": weights} | six,
        "categories": {"categorical_features": [1, 2]} | six,
    }.items():
        fits.add(f"booster, {name}", **(booster | params))
    ranker = {"kind": "GradientBoostingRanker", "y": lambda X: classes(X, 4)}
    for loss in ("lambdamart", "pairwise", "listwise"):
        fits.add(f"booster, {loss}", **(booster | ranker | six), loss=loss)
    for name, params in {
        "two classes": {"y": lambda X: classes(X, 2)},
        "five classes": {"y": lambda X: classes(X, 5), "n_estimators": 2},
        "vector leaves": {"y": lambda X: classes(X, 5), "multi_strategy": "multi_output_tree"},
        "shared columns": {"X": lambda: flags(fits.some), "y": lambda X: classes(X, 2)},
        "sparse": {"X": lambda: sparse(fits.some), "y": lambda X: classes(X, 3)},
    }.items():
        given = (
            {"kind": "GradientBoostingClassifier", "X": lambda: numbers(fits.rows)} | six | params
        )
        fits.add(f"booster, {name}", **given)


def add_trees(fits: Fits) -> None:
    for family, size in {"DecisionTree": {}, "RandomForest": {"n_estimators": 16}}.items():
        table = {"X": lambda: numbers(fits.some)} if size else {"X": lambda: numbers(fits.rows)}
        regressor = table | {"kind": f"{family}Regressor", "y": target} | size
        classifier = table | {"kind": f"{family}Classifier", "y": lambda X: classes(X, 4)} | size
        fits.add(f"{family}, squared error", **regressor)
        fits.add(f"{family}, poisson", **regressor, criterion="poisson")
        fits.add(f"{family}, leaf size", **regressor, min_samples_leaf=7, weight=weights)
        fits.add(f"{family}, gini", **classifier)
        for criterion in ("entropy", "error", "gain_ratio"):
            fits.add(f"{family}, {criterion}", **classifier, criterion=criterion)
        fits.add(f"{family}, shared columns", **(classifier | {"X": lambda: flags(fits.some)}))
        fits.add(f"{family}, sparse", **(classifier | {"X": lambda: sparse(fits.few)}))
        short = regressor | {"X": lambda: numbers(fits.few)}
        fits.add(f"{family}, exact", **short, tree_method="exact")
        fits.add(f"{family}, absolute error", **short, criterion="absolute_error")
        fits.add(f"{family}, two-byte bins", **regressor, max_bins=700, max_leaf_nodes=900)


def add_forests(fits: Fits) -> None:
    fits.add(
        "DecisionTree, one huge number",
        "DecisionTreeRegressor",
        lambda: numbers(fits.some),
        one_huge,
    )
    one_tree = {"X": lambda: numbers(fits.rows), "n_estimators": 1}
    forest = {"X": lambda: numbers(fits.some), "n_estimators": 16}
    for name, params in {"one tree": one_tree, "forest": forest}.items():
        fits.add(f"extra trees, {name}", "ExtraTreesRegressor", y=target, **params)
        fits.add(
            f"extra trees, {name}, classes",
            "ExtraTreesClassifier",
            y=lambda X: classes(X, 4),
            **params,
        )
    fits.add(
        "forest, out of bag",
        "RandomForestClassifier",
        y=lambda X: classes(X, 2),
        oob_score=True,
        max_samples=0.5,
        **forest,
    )
    fits.add("forest of one tree", "RandomForestRegressor", y=target, **one_tree)


def add_adaboost(fits: Fits) -> None:
    for algorithm in ("discrete", "real", "gentle"):
        fits.add(
            f"AdaBoost, {algorithm}",
            "AdaBoostClassifier",
            lambda: numbers(fits.rows),
            lambda X: classes(X, 3),
            algorithm=algorithm,
            max_depth=5,
            n_estimators=5,
        )
    fits.add(
        "AdaBoost, R2", "AdaBoostRegressor", lambda: numbers(fits.rows), target, n_estimators=4
    )


def digest(model: Any, X: Any) -> str:
    """Return a digest of the model file, the predictions of some rows and their SHAP values."""
    hashed = hashlib.sha256()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.arb"
        model.save(path)
        hashed.update(path.read_bytes())
    known = X[:KNOWN_ROWS]
    parts = [model.predict(known), model.apply(known)]
    if hasattr(model, "predict_proba"):
        parts.append(model.predict_proba(known))
    if hasattr(model, "oob_decision_function_"):
        parts.append(model.oob_decision_function_)
    if type(model).__name__.startswith("Gradient"):
        parts.append(model.shap_values(X[:64]))
    for part in parts:
        hashed.update(np.ascontiguousarray(part).tobytes())
    return hashed.hexdigest()[:16]


def work(rows: int, n_jobs: int, only: str) -> None:
    """Print the instruction set and, line by line, the digests of all fits as JSON."""
    from arboost.backend import core

    print(json.dumps({"": core.instruction_set()}), flush=True)
    fits = Fits(rows, n_jobs)
    for add in (add_boosters, add_trees, add_forests, add_adaboost):
        add(fits)
    for name, fit in fits.by_name.items():
        if only in name:
            print(json.dumps({name: digest(*fit())}), flush=True)


class Process:
    """A process that fits all models with one instruction set and number of threads."""

    def __init__(self, isa: str, n_jobs: int, options: list[str]) -> None:
        self.isa, self.n_jobs = isa, n_jobs
        environment = os.environ | {"ARBOOST_ISA": isa}
        command = [sys.executable, __file__, "--work", str(n_jobs), *options]
        self._process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True
        )

    def __str__(self) -> str:
        return f"{self.isa}/{self.n_jobs}"

    def digests(self) -> dict[str, str]:
        """Return the digests; none if the CPU lacks the instruction set."""
        out, _ = self._process.communicate()
        if self._process.returncode != 0:
            raise SystemExit(f"{self} ended with status {self._process.returncode}")
        found: dict[str, str] = {}
        for line in out.splitlines():
            found |= json.loads(line)
        return found if found.pop("").startswith(self.isa) else {}


def gather(counts: list[int], options: list[str]) -> dict[str, dict[str, str]]:
    """Return the digests by process. Processes run side by side as far as there are cores."""
    found = {}
    waiting = [(isa, count) for count in sorted(counts) for isa in ISAS]
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    while waiting:
        batch, used = [], 0
        while waiting and (not batch or used + waiting[0][1] <= n_cores):
            isa, count = waiting.pop(0)
            used += count
            batch.append(Process(isa, count, options))
        for process in batch:
            start = time.perf_counter()
            found[str(process)] = process.digests()
            state = f"{len(found[str(process)])} fits" if found[str(process)] else "not available"
            print(f"{process}: {state}, {time.perf_counter() - start:.0f} s more", flush=True)
    return {name: digests for name, digests in found.items() if digests}


def main() -> int:
    """Fit in all processes, print the table, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--only", default="", help="fits whose names contain this word")
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work is not None:
        work(args.rows, args.work, args.only)
        return 0
    options = ["--rows", str(args.rows), "--only", args.only]
    found = gather(args.threads, options)
    n_different = 0
    for name in next(iter(found.values())):
        by_digest: dict[str, list[str]] = {}
        for process, digests in found.items():
            by_digest.setdefault(digests[name], []).append(process)
        same = len(by_digest) == 1
        n_different += not same
        shown = [f"{value}: {', '.join(who)}" for value, who in by_digest.items()]
        print(f"{name:34} {'equal  ' + next(iter(by_digest)) if same else 'DIFFER'}")
        print("".join(f"    {line}\n" for line in shown if not same), end="")
    n_fits = len(next(iter(found.values())))
    print(f"{n_fits} fits by {', '.join(found)}: {n_different or 'none'} differ")
    return int(n_different > 0)


if __name__ == "__main__":
    sys.exit(main())
