"""Parts of hand-made report payloads: table, trees, SHAP values, partial dependence, curves."""

import base64

import numpy as np

HOSTILE_NAME = "<img src=x onerror=alert(1)>"
HOSTILE_LEVEL = "</script><script>alert(2)</script>"
LONG_NAME = "a_column_with_a_name_that_no_table_has_room_for_" * 3
FEATURES = ["income", "age", "region", "since", HOSTILE_NAME, LONG_NAME]
KINDS = ["number", "number", "category", "time", "category", "number"]
LEVELS = {
    "region": ["north", "south", HOSTILE_LEVEL],
    HOSTILE_NAME: ["a & b", '"quoted"', "{{title}}"],
}
N = 60
TREES = 5
DAY = 86_400


def rounded(values):
    return [None if np.isnan(v) else float(f"{v:.5g}") for v in np.asarray(values, float)]


def row_values(rng):
    columns = {}
    for name, kind in zip(FEATURES, KINDS, strict=True):
        if kind == "category":
            columns[name] = [LEVELS[name][i] for i in rng.integers(0, 3, N)]
        elif kind == "time":
            columns[name] = [DAY * int(day) for day in rng.integers(10_000, 20_000, N)]
        else:
            numbers = rng.lognormal(3, 1, N)
            numbers[rng.random(N) < 0.1] = np.nan
            columns[name] = rounded(numbers)
    return columns


def table_column(rng, name, kind):
    shared = {
        "name": name,
        "kind": kind,
        "missing": 0.0 if kind in {"category", "time"} else 0.104,
        "missing_train": 0.09,
        "n_distinct": 3 if kind == "category" else 412,
        "drift": round(float(rng.exponential(0.12)), 4),
    }
    if kind == "category":
        counts = [int(n) for n in rng.integers(5, 50, 3)]
        levels = {"names": LEVELS[name], "test": counts, "train": [2 * n for n in counts]}
        levels |= {"other_test": 4, "other_train": 0}
        return shared | {"summary": f"{LEVELS[name][0]} most often", "bins": None, "levels": levels}
    edges = (
        np.linspace(10_000 * DAY, 20_000 * DAY, 13) if kind == "time" else np.linspace(0, 99, 13)
    )
    test = np.histogram(rng.beta(2, 5, 900), 12, (0, 1))[0]
    train = np.histogram(rng.beta(2.5, 5, 3000), 12, (0, 1))[0]
    bins = {"edges": rounded(edges), "test": test.tolist(), "train": train.tolist()}
    return shared | {"summary": "0.1 to 99, median 12.5", "bins": bins, "levels": None}


def forest(rng, *, values=1):
    """Return trees of depth 2 to 5, and the leaf of every row in each of them."""
    nodes = {
        key: []
        for key in ("feature", "condition", "left", "right", "value", "cover", "gain", "missing")
    }
    start, leaves = [], np.zeros((N, TREES), "<u2")
    for tree in range(TREES):
        start.append(len(nodes["feature"]))
        depth = 2 + tree % 4
        size, splits = 2 ** (depth + 1) - 1, 2**depth - 1
        for node in range(size):
            split = node < splits
            feature = int(rng.integers(0, len(FEATURES))) if split else -1
            text = "in {north, south}" if split and KINDS[feature] == "category" else "<= 3.25"
            nodes["feature"].append(feature)
            nodes["condition"].append(text if split else "")
            nodes["left"].append(2 * node + 1 if split else -1)
            nodes["right"].append(2 * node + 2 if split else -1)
            value = rounded(rng.normal(0, 0.2, values))
            nodes["value"].append(value[0] if values == 1 else value)
            nodes["cover"].append(round(3000 / 2 ** int(np.log2(node + 1))))
            nodes["gain"].append(round(float(rng.exponential(30)), 3) if split else 0)
            nodes["missing"].append(node % 2)
        leaves[:, tree] = rng.integers(splits, size, N)
    packed = base64.b64encode(leaves.tobytes()).decode("ascii")
    return {
        "n": 120,
        "shown": TREES,
        "reason": "The page carries 5 of 120 trees: more would be too large.",
        "start": start,
        "names": FEATURES,
        "output": [tree % max(values, 1) for tree in range(TREES)],
        "leaves": packed,
        **nodes,
    }


def shap_values(rng, outputs, unit):
    values = (
        rng.normal(0, 1, (len(outputs), len(FEATURES), N))
        * np.linspace(1, 0.1, len(FEATURES))[:, None]
    )
    return {
        "outputs": outputs,
        "base": rounded(rng.normal(0, 0.3, len(outputs))),
        "features": FEATURES,
        "values": [[rounded(row) for row in output] for output in values],
        "rest": [[0.0] * N for _ in outputs],
        "unit": unit,
    }


def dependence(rng, n_outputs):
    parts = []
    for name, kind in zip(FEATURES, KINDS, strict=True):
        if kind == "category":
            grid = LEVELS[name]
            spread = {"levels": {"names": grid, "test": [300, 200, 41]}}
        else:
            edges = (
                np.linspace(10_000 * DAY, 20_000 * DAY, 11)
                if kind == "time"
                else np.linspace(0, 99, 11)
            )
            grid = rounded(np.linspace(edges[0], edges[-1], 20))
            spread = {
                "bins": {
                    "edges": rounded(edges),
                    "test": np.histogram(rng.beta(2, 5, 900), 10, (0, 1))[0].tolist(),
                }
            }
        mean = np.cumsum(rng.normal(0, 0.04, (n_outputs, len(grid))), axis=1) + 0.4
        parts.append(
            {
                "feature": name,
                "kind": kind,
                "grid": grid,
                "mean": [rounded(row) for row in mean],
                "low": [rounded(row) for row in mean - 0.08],
                "high": [rounded(row) for row in mean + 0.08],
                **spread,
            }
        )
    return parts


def learning_curves():
    x = np.arange(1, 121)
    return {
        "x": "rounds",
        "y": "log loss",
        "series": [
            {"name": "training", "x": x.tolist(), "y": rounded(0.6 * np.exp(-x / 30) + 0.1)},
            {
                "name": "validation",
                "x": x.tolist(),
                "y": rounded(0.5 * np.exp(-x / 25) + 0.2 + x / 1500),
            },
        ],
        "best": 71,
        "note": "Training stopped after 50 rounds without a better validation score.",
    }


def segments():
    names = ["missing", "<= 12", HOSTILE_LEVEL, "before 2010", "a & b", "> 40", "12 to 20", "south"]
    rows = [
        {
            "feature": FEATURES[k % 6],
            "segment": segment,
            "n": 90 + k,
            "score": 0.5 - k / 40,
            "low": 0.42 - k / 40,
            "high": 0.58 - k / 40,
            "difference": 0.19 - k / 40,
        }
        for k, segment in enumerate(names)
    ]
    return {"metric": "log loss", "overall": 0.31, "list": rows}


def importances(rng):
    sizes = np.sort(rng.exponential(0.2, len(FEATURES)))[::-1]
    return [
        {
            "feature": feature,
            "gain": round(size, 4),
            "permutation": round(size / 3, 4),
            "permutation_sd": round(size / 20, 4),
            "shap": round(size / 2, 4),
        }
        for feature, size in zip(FEATURES, sizes.tolist(), strict=True)
    ]


def scores(*entries):
    keys = ("name", "value", "low", "high", "baseline", "higher_is_better", "text")
    return [dict(zip(keys, entry, strict=True)) for entry in entries]


def threshold_counts(positive, negative):
    t = np.linspace(0, 1, 101)
    tp = [int((positive >= v).sum()) for v in t]
    fp = [int((negative >= v).sum()) for v in t]
    return {
        "t": rounded(t),
        "tp": tp,
        "fp": fp,
        "fn": [len(positive) - n for n in tp],
        "tn": [len(negative) - n for n in fp],
    }


def curve(steps=40, bend=0.35):
    x = np.linspace(0, 1, steps)
    return rounded(x), rounded(x**bend)


CALIBRATION = [
    {
        "predicted": p,
        "observed": p**1.15,
        "low": max(0, p**1.15 - 0.05),
        "high": min(1, p**1.15 + 0.05),
        "n": 120,
    }
    for p in (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
]
