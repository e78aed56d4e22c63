"""Small report payloads made by hand, with hostile names: input of the page's browser tests.

The numbers are consistent where the page relies on it (counts of thresholds, leaves of rows), and
otherwise only plausible: no model stands behind them.
"""

import numpy as np

from support.report_parts import (
    CALIBRATION,
    FEATURES,
    HOSTILE_LEVEL,
    KINDS,
    N,
    curve,
    dependence,
    forest,
    importances,
    learning_curves,
    rounded,
    row_values,
    scores,
    segments,
    shap_values,
    table_column,
    threshold_counts,
)


def _model(rng, name, outputs, unit):
    return {
        "name": name,
        "kind": name,
        "facts": [["trees", "120"], ["loss", "logistic"]],
        "params": [["n_estimators", 120, "auto"], ["learning_rate", 0.1, 0.1], ["seed", 7, None]],
        "repeat": [["command", "arboost report model.arb test.csv -o report.html"]],
        "timings": [["scores", "0.12 s"]],
        "hash": "ab" * 32,
        "baseline_text": "always the most frequent class",
        "learning": learning_curves(),
        "binary": None,
        "confusion": None,
        "classes": None,
        "multiclass": None,
        "regression": None,
        "segments": segments(),
        "importances": importances(rng),
        "shap": shap_values(rng, outputs, unit),
        "dependence": dependence(rng, len(outputs)),
        "outputs": outputs,
        "flips": None,
        "trees": forest(rng, values=len(outputs)),
        "theory": None,
        "forest": None,
    }


def _payload(rng, task, classes, truth):
    return {
        "format": 1,
        "title": f"Report on a {task} model <b>& more</b>",
        "created": "2026-03-04T05:06:07Z",
        "arboost": "0.1.0",
        "task": task,
        "target": "bought",
        "classes": classes,
        "data": {
            "n_rows": 12_345,
            "n_train_rows": 48_000,
            "n_weighted": False,
            "notes": ["7 rows without a target were left out."],
            "columns": [
                table_column(rng, name, kind) for name, kind in zip(FEATURES, KINDS, strict=True)
            ],
            "target": None,
        },
        "rows": {
            "index": [13 * k + 4 for k in range(N)],
            "truth": truth,
            "columns": row_values(rng),
        },
        "models": [],
        "comparison": None,
    }


def _flips(classes, proba):
    change = {"feature": "income", "from": 12.5, "to": 48.25}
    return [
        {"changes": [change], "label": classes[int(p < 0.5)], "value": 0.53} if k % 7 else None
        for k, p in enumerate(proba)
    ]


def _binary_model(rng, name, classes):
    positive, negative = rng.beta(5, 2, 400), rng.beta(2, 4, 800)
    edges = np.linspace(0, 1, 21)
    fpr, tpr = curve()
    proba = rng.random(N)
    label = [classes[int(p >= 0.5)] for p in proba]
    thresholds = threshold_counts(positive, negative)
    half = thresholds["t"].index(0.5)
    counts = {key: thresholds[key][half] for key in ("tp", "fp", "fn", "tn")}
    return _model(rng, name, [classes[1]], "log-odds") | {
        "scores": scores(
            ("ROC AUC", 0.9312, 0.9201, 0.9423, 0.5, True, "Explained here."),
            ("log loss", 0.3104, 0.2951, 0.3262, 0.6365, False, "Explained here."),
            ("accuracy", 0.871, 0.858, 0.884, 0.667, True, "Share of rows with the right class."),
        ),
        "binary": {
            "roc": {"fpr": fpr, "tpr": tpr},
            "pr": {
                "recall": fpr,
                "precision": rounded(1 - 0.6 * np.array(fpr) ** 3),
                "prevalence": 0.3333,
            },
            "calibration": CALIBRATION,
            "thresholds": thresholds,
            "default_threshold": 0.5,
            "histogram": {
                "edges": rounded(edges),
                "positive": np.histogram(positive, edges)[0].tolist(),
                "negative": np.histogram(negative, edges)[0].tolist(),
            },
        },
        "confusion": {
            "matrix": [[counts["tn"], counts["fp"]], [counts["fn"], counts["tp"]]],
            "names": classes,
        },
        "classes": [
            {"name": n, "n": 400, "precision": 0.8, "recall": 0.7, "f1": 0.75, "auc": 0.93}
            for n in classes
        ],
        "predictions": {
            "label": label,
            "proba": [rounded([1 - p, p]) for p in proba],
            "value": None,
            "correct": [bool(k % 5) for k in range(N)],
            "error": None,
        },
        "flips": _flips(classes, proba),
    }


def binary(classes=("no", "yes")):
    """Return a payload of a binary classifier."""
    rng = np.random.default_rng(1)
    classes = list(classes)
    payload = _payload(rng, "binary", classes, [classes[k % 2] for k in range(N)])
    payload["models"] = [_binary_model(rng, "gradient boosting classifier", classes)]
    return payload


def two_models():
    """Return a payload of two binary classifiers; the second is AdaBoost with its theory."""
    payload = binary()
    rng = np.random.default_rng(2)
    second = _binary_model(rng, "AdaBoost classifier", payload["classes"])
    rounds = list(range(1, 41))
    second["theory"] = {
        "kind": "adaboost",
        "rounds": rounds,
        "train_error": rounded(0.3 * np.exp(-np.array(rounds) / 12)),
        "bound": rounded(0.9 * np.exp(-np.array(rounds) / 14)),
        "margins": {
            "x": rounded(np.linspace(-1, 1, 30)),
            "cumulative": rounded(np.linspace(0, 1, 30) ** 3),
        },
        "note": "The training error stays below the bound.",
    }
    second["learning"] = None
    payload["models"].append(second)
    payload["comparison"] = {
        "names": [model["name"] for model in payload["models"]],
        "scores": [
            {
                "name": "ROC AUC",
                "a": 0.9312,
                "b": 0.9101,
                "difference": -0.0211,
                "low": -0.0301,
                "high": -0.0121,
                "higher_is_better": True,
                "better": 0,
            },
            {
                "name": "log loss",
                "a": 0.3104,
                "b": 0.3151,
                "difference": 0.0047,
                "low": -0.0021,
                "high": 0.0115,
                "higher_is_better": False,
                "better": None,
            },
        ],
        "agreement": 0.914,
        "text": "Differences are the second model less the first, on the same rows.",
    }
    return payload


OUT_OF_BAG = {
    "oob": {
        "x": list(range(5, 121, 5)),
        "y": rounded(0.2 + 0.3 * np.exp(-np.arange(24) / 5)),
        "metric": "log loss",
    },
    "note": "Each row is scored by the trees that did not train on it.",
}


def multiclass():
    """Return a payload of a classifier of four classes, one with a hostile name; a forest."""
    rng = np.random.default_rng(3)
    classes = ["setosa", "versicolor", HOSTILE_LEVEL, "virginica"]
    payload = _payload(rng, "multiclass", classes, [classes[k % 4] for k in range(N)])
    proba = rng.dirichlet(np.ones(4), N)
    curves = [curve(bend=0.2 + 0.1 * k) for k in range(4)]
    model = _model(rng, "random forest classifier", classes, "probability") | {
        "scores": scores(
            ("accuracy", 0.912, 0.894, 0.929, 0.28, True, "Share of rows with the right class."),
            ("log loss", 0.254, 0.231, 0.279, 1.386, False, "Explained here."),
            ("macro F1", 0.904, 0.881, 0.926, 0.11, True, "Mean of the F1 scores of the classes."),
        ),
        "learning": None,
        "confusion": {
            "matrix": [[231, 4, 0, 2], [9, 187, 12, 6], [0, 22, 178, 9], [3, 5, 11, 214]],
            "names": classes,
        },
        "classes": [
            {
                "name": n,
                "n": 200 + k,
                "precision": 0.9 - k / 30,
                "recall": 0.8 + k / 40,
                "f1": 0.85,
                "auc": 0.97 - k / 50,
            }
            for k, n in enumerate(classes)
        ],
        "multiclass": {
            "roc": [
                {"class": n, "fpr": fpr, "tpr": tpr, "auc": 0.97 - k / 50}
                for k, (n, (fpr, tpr)) in enumerate(zip(classes, curves, strict=True))
            ],
            "calibration": CALIBRATION,
        },
        "predictions": {
            "label": [classes[int(k)] for k in proba.argmax(1)],
            "proba": [rounded(row) for row in proba],
            "value": None,
            "correct": [classes[int(k)] == classes[i % 4] for i, k in enumerate(proba.argmax(1))],
            "error": None,
        },
        "forest": OUT_OF_BAG,
    }
    payload["models"] = [model]
    return payload


def regression():
    """Return a payload of a regressor."""
    rng = np.random.default_rng(4)
    payload = _payload(rng, "regression", None, rounded(rng.gamma(4, 50, N)))
    truth = rng.gamma(4, 50, 500)
    predicted = truth + rng.normal(0, 25, 500)
    value = np.array(payload["rows"]["truth"]) + rng.normal(0, 25, N)
    edges = np.linspace(-80, 80, 25)
    model = _model(rng, "gradient boosting regressor", ["bought"], "bought") | {
        "scores": scores(
            (
                "R²",
                0.8731,
                0.8604,
                0.8852,
                0.0,
                True,
                "Share of the variance that the model explains.",
            ),
            ("RMSE", 25.13, 23.9, 26.4, 98.42, False, "Root of the mean squared error."),
            ("MAE", 19.81, 18.9, 20.8, 76.2, False, "Mean absolute error."),
        ),
        "baseline_text": "always predicts the mean",
        "regression": {
            "points": {"truth": rounded(truth), "predicted": rounded(predicted)},
            "residuals": {
                "edges": rounded(edges),
                "counts": np.histogram(truth - predicted, edges)[0].tolist(),
            },
            "by_prediction": [
                {
                    "predicted": 60.0 + 40 * k,
                    "mean_residual": 4.0 - k,
                    "low": 1.0 - k,
                    "high": 7.0 - k,
                    "n": 50,
                }
                for k in range(10)
            ],
            "quantiles": [
                {"probability": p, "residual": 60 * (p - 0.5)}
                for p in (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
            ],
            "coverage": [
                {"nominal": p, "observed": p - 0.02, "width": 100 * p, "n": 500}
                for p in (0.5, 0.8, 0.9, 0.95)
            ],
        },
        "predictions": {
            "label": rounded(value),
            "proba": None,
            "value": rounded(value),
            "correct": None,
            "error": rounded(value - np.array(payload["rows"]["truth"])),
        },
    }
    payload["models"] = [model]
    return payload


PAYLOADS = {"binary": binary, "multiclass": multiclass, "regression": regression, "two": two_models}


def bare(payload):
    """Return a payload without its optional parts: models with names alone."""
    models = [dict.fromkeys(model) | {"name": model["name"]} for model in payload["models"]]
    return payload | dict.fromkeys(("rows", "data", "comparison", "target")) | {"models": models}


# Arrays that a payload never has holes in: structure of trees, edges of bins, counts.
WHOLE = {"start", "left", "right", "feature", "index", "edges", "missing", "output", "matrix"}
WHOLE |= {"t", "tp", "fp", "fn", "tn"}


def with_holes(part):
    """Return a payload whose single numbers, and the second of each array, are null."""
    if isinstance(part, dict):
        return {key: value if key in WHOLE else with_holes(value) for key, value in part.items()}
    if isinstance(part, list):
        numbers = all(isinstance(value, float) for value in part)
        return [
            (None if k == 1 else value) if numbers else with_holes(value)
            for k, value in enumerate(part)
        ]
    return None if isinstance(part, float) else part
