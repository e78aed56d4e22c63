"""Are the models of a CUDA device and of the CPU equal, and how fast is training there?

Fits of about ninety settings on both devices are compared byte for byte. Then boosters of three
shapes are timed: a fit of a `Dataset`, so without binning, from the call of `fit` to its return.
Binning is timed by itself, from NumPy and from device memory; forests on both devices.
Predictions and SHAP values of many models are compared, and those of one are timed. Last, common
settings are timed against a plain booster, and a fit with seven classes.
Needs arboost and an NVIDIA GPU; `--rows 100000` leaves out the large tables.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from support import harness
from support.gpu_binning import time_binning
from support.gpu_fits import fits
from support.gpu_predictions import predictions
from support.gpu_settings import time_classes, time_first_tree, time_settings

FEATURES = 28
SHAPES: dict[str, dict[str, Any]] = {
    "depth 6": {"max_depth": 6},
    "depth 8": {"max_depth": 8},
    "255 leaves": {"max_depth": None, "max_leaves": 255, "grow_policy": "leafwise"},
}
FOREST_ROWS = 1_000_000  # most rows of forests that are timed
# Seconds for 500 rounds that were asked for on an H200, by rows and shape.
BARS = {
    (10_000_000, "depth 6"): 1.2,
    (10_000_000, "depth 8"): 1.6,
    (10_000_000, "255 leaves"): 3.0,
    (1_000_000, "depth 6"): 0.35,
    (1_000_000, "depth 8"): 0.55,
    (1_000_000, "255 leaves"): 2.0,
    (100_000, "depth 6"): 0.2,
}


def main() -> None:
    """Compare models, time fits, print both tables and save them."""
    parser = harness.parser(__doc__, "gpu")
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--rounds", type=int, default=500)
    parser.add_argument("--compare-rows", type=int, default=60_000)
    parser.set_defaults(peers=[], repeats=2)
    args = harness.parse(parser)
    different = compare(args.compare_rows)
    times = [time_fits(rows, args.rounds, args.repeats) for rows in args.rows]
    forests = [time_forests(rows, args.repeats) for rows in args.rows if rows <= FOREST_ROWS]
    found = predictions(max(args.rows), args.rounds, args.repeats)
    results = {
        "rounds": args.rounds,
        "times": times,
        "forests": forests,
        "predictions": found,
        "settings": time_settings(two_classes(min(1_000_000, max(args.rows)))[0]),
        "7 classes": time_classes(two_classes(max(args.rows))[0]),
        "import to first tree": time_first_tree(),
    }
    harness.save(args, results | different)
    if different["different"]:
        raise SystemExit(f"other models on the device: {', '.join(different['different'])}")
    if found["different"]:
        raise SystemExit(f"other predictions on the device: {', '.join(found['different'])}")


def compare(rows: int) -> dict[str, Any]:
    """Fit all settings on both devices; return their number and the names of those that differ."""
    all_fits = fits(rows, harness.cores())
    different = []
    for name, fit in all_fits.items():
        if digest(fit("cpu")) != digest(fit("cuda")):
            different.append(name)
    print(f"{len(all_fits)} settings on both devices, {len(different)} differ: {different}")
    return {"compared": len(all_fits), "different": different}


def digest(model: Any) -> str:
    """Return a digest of a model's file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.arb"
        model.save(path)
        return hashlib.sha256(path.read_bytes()).hexdigest()


def two_classes(rows: int) -> tuple[Any, Any]:
    """Return a table of `rows` rows, and two classes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, FEATURES), dtype=np.float32)
    noise = rng.standard_normal(rows, dtype=np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3]) / 2 + noise > 0).astype(int)
    return X, y


def time_forests(rows: int, repeats: int) -> dict[str, Any]:
    """Return the seconds of forests of 100 trees on the CPU and on the device."""
    from arboost import Dataset, RandomForestClassifier, RandomForestRegressor

    X, y = two_classes(rows)
    table = Dataset(X)
    levels = np.floor(20 + 8 * X[:, :4]).clip(0, 39)
    categories = Dataset(np.c_[levels, X[:, 4:]], categorical_features=[0, 1, 2, 3])
    target = X[:, 0] + X[:, 1] * X[:, 2] + np.random.default_rng(1).standard_normal(rows)
    kinds: dict[str, Any] = {
        "depth 16": (RandomForestClassifier, table, y, {"max_depth": 16}),
        "full depth": (RandomForestClassifier, table, y, {}),
        "regression, depth 16": (RandomForestRegressor, table, target, {"max_depth": 16}),
        "regression": (RandomForestRegressor, table, target, {}),
        "regression, out of bag": (RandomForestRegressor, table, target, {"oob_score": True}),
        "categories": (RandomForestClassifier, categories, y, {"max_depth": 16}),
    }
    seconds: dict[str, Any] = {"rows": rows}
    for kind, (forest, rows_of, truth, params) in kinds.items():
        for device in ("cpu", "cuda"):
            found = []
            for _ in range(1 + repeats):  # the first fit starts the device
                model = forest(device=device, verbose=0, **params)
                start = time.perf_counter()
                model.fit(rows_of, truth)
                found.append(time.perf_counter() - start)
            seconds[f"{kind}, {device}"] = min(found[1:])
        cpu, cuda = (seconds[f"{kind}, {device}"] for device in ("cpu", "cuda"))
        print(f"{rows:>10,} x {FEATURES}, forest, {kind}: {cuda:.3f} s, CPU {cpu:.3f} s")
    return seconds


def time_fits(rows: int, rounds: int, repeats: int) -> dict[str, Any]:
    """Return the seconds of fits of every shape on a table of `rows` rows."""
    from arboost import Dataset, GradientBoostingClassifier

    X, y = two_classes(rows)
    table = Dataset(X)
    seconds: dict[str, Any] = {"rows": rows} | time_binning(X, y, repeats)
    for shape, params in SHAPES.items():
        found = []
        for n_rounds in [2] + [rounds] * repeats:  # the first fit starts the device
            model = GradientBoostingClassifier(
                n_estimators=n_rounds, device="cuda", verbose=0, **params
            )
            start = time.perf_counter()
            model.fit(table, y)
            found.append(time.perf_counter() - start)
        seconds[shape] = min(found[1:])
        bar = BARS.get((rows, shape))
        asked = "" if bar is None else f"  (asked for: {bar} s)"
        print(f"{rows:>10,} x {FEATURES}, {shape:10}: {seconds[shape]:7.3f} s{asked}", flush=True)
    return seconds


if __name__ == "__main__":
    main()
