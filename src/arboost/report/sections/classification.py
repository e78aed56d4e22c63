"""Classifiers: ROC and precision-recall curves, calibration, thresholds, confusion, classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.losses.metric_functions import RANK_METRICS
from arboost.report.bootstrap import wilson
from arboost.report.inputs import ReportInput
from arboost.report.predicted import Predicted
from arboost.report.rounding import counts, one, rounded

__all__ = [
    "binary_section",
    "calibration",
    "classes_section",
    "confusion_section",
    "multiclass_section",
]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MOST_POINTS = 200  # of a curve
_MOST_CURVES = 10
_MOST_CONFUSED = 30  # classes of a confusion matrix
_MOST_RANKED = 200  # classes with an area under the curve
_BINS, _ROWS_OF_BIN = 10, 10  # of calibration
_HISTOGRAM = 40
_TWO = 2


def binary_section(inputs: ReportInput, predicted: Predicted) -> dict[str, Any] | None:
    """Return curves, calibration and thresholds of two classes; None without probabilities."""
    if inputs.task != "binary" or predicted.proba is None:
        return None
    positive, score, weight = inputs.truth == 1, predicted.proba[:, 1], inputs.weight
    above, beside = _steps(positive, score, weight)
    has_both = positive.any() and not positive.all()
    return {
        "roc": _roc(above, beside) if has_both else None,
        "pr": _precision_recall(above, beside) if has_both else None,
        "calibration": calibration(positive, score, weight),
        "thresholds": _thresholds(positive, score, weight),
        "default_threshold": 0.5,
        "histogram": _histogram(positive, score, weight),
    }


def multiclass_section(inputs: ReportInput, predicted: Predicted) -> dict[str, Any] | None:
    """Return ROC curves of the largest classes, and the calibration of the predicted class."""
    proba = predicted.proba
    if inputs.task != "multiclass" or proba is None or inputs.classes is None:
        return None
    assert predicted.codes is not None
    totals = np.bincount(inputs.truth, inputs.weight, minlength=proba.shape[1])
    curves = []
    for k in np.argsort(-totals, kind="stable")[:_MOST_CURVES].tolist():
        if not 0 < totals[k] < totals.sum():
            continue
        positive = inputs.truth == k
        curve = _roc(*_steps(positive, proba[:, k], inputs.weight))
        area = RANK_METRICS["auc"](positive, proba[:, k], inputs.weight)
        curves.append({"class": str(inputs.classes[k]), **curve, "auc": one(area)})
    chosen = np.take_along_axis(proba, predicted.codes[:, np.newaxis], axis=1)[:, 0]
    right = predicted.codes == inputs.truth
    return {"roc": curves, "calibration": calibration(right, chosen, inputs.weight)}


def _steps(positive: Mask, score: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the weight of positive and of other rows at or above each distinct score, from 0."""
    order = np.argsort(-score, kind="stable")
    own = np.ones(len(score)) if weight is None else weight[order]
    last = np.append(np.flatnonzero(np.diff(score[order]) != 0), len(score) - 1)
    hits = positive[order]
    above = np.cumsum(np.where(hits, own, 0.0))[last]
    beside = np.cumsum(np.where(hits, 0.0, own))[last]
    return np.append(0.0, above), np.append(0.0, beside)


def _roc(above: Floats, beside: Floats) -> dict[str, Any]:
    fpr, tpr = beside / beside[-1], above / above[-1]
    kept = _thinned(fpr + tpr)
    return {"fpr": rounded(fpr[kept]), "tpr": rounded(tpr[kept])}


def _precision_recall(above: Floats, beside: Floats) -> dict[str, Any]:
    recall = above[1:] / above[-1]
    precision = above[1:] / (above[1:] + beside[1:])
    kept = _thinned(recall)
    return {
        "recall": rounded(recall[kept]),
        "precision": rounded(precision[kept]),
        "prevalence": one(above[-1] / (above[-1] + beside[-1])),
    }


def _thinned(along: Floats) -> NDArray[np.intp]:
    """Return the indices of at most `_MOST_POINTS` points, evenly spread along a curve."""
    if len(along) <= _MOST_POINTS:
        return np.arange(len(along))
    wanted = np.linspace(along[0], along[-1], _MOST_POINTS)
    places = np.searchsorted(along, wanted, side="left").clip(max=len(along) - 1)
    return np.unique(np.concatenate([[0], places, [len(along) - 1]]))


def calibration(hits: Mask, score: Floats, weight: Floats | None) -> list[dict[str, Any]]:
    """Return mean score and share of hits in bins of about equally many rows.

    The interval is Wilson's, for as many rows as weights are worth.
    """
    n_bins = int(np.clip(len(score) // _ROWS_OF_BIN, 1, _BINS))
    edges = np.unique(np.quantile(score, np.arange(1, n_bins) / n_bins))
    place = np.searchsorted(edges, score, side="left")
    own = np.ones(len(score)) if weight is None else weight
    size = len(edges) + 1
    total, squares = np.bincount(place, own, size), np.bincount(place, own**2, size)
    n_rows = np.bincount(place, minlength=size)
    kept = total > 0
    total, n_rows = total[kept], n_rows[kept]
    mean = np.bincount(place, own * score, size)[kept] / total
    share = np.bincount(place, own * hits, size)[kept] / total
    low, high = wilson(share, total**2 / squares[kept])
    parts = zip(*map(rounded, (mean, share, low, high)), n_rows.tolist(), strict=True)
    names = ("predicted", "observed", "low", "high", "n")
    return [dict(zip(names, part, strict=True)) for part in parts]


def _thresholds(positive: Mask, score: Floats, weight: Floats | None) -> dict[str, Any]:
    """Return the confusion counts at thresholds: even ones, and quantiles of the scores."""
    even = np.arange(101) / 100
    quantiles = np.quantile(score, even, method="lower")
    grid = np.unique(np.array(rounded(np.concatenate([even, quantiles])), np.float64).clip(0, 1))
    order = np.argsort(score, kind="stable")
    own = np.ones(len(score)) if weight is None else weight[order]
    hits = positive[order]
    below = np.searchsorted(score[order], grid, side="left")
    misses = np.append(0.0, np.cumsum(np.where(hits, own, 0.0)))
    rejected = np.append(0.0, np.cumsum(np.where(hits, 0.0, own)))
    fn, tn = misses[below], rejected[below]
    tp, fp = misses[-1] - fn, rejected[-1] - tn
    if weight is None:
        tp, fp, fn, tn = (np.round(part).astype(np.int64) for part in (tp, fp, fn, tn))
    parts = {"tp": tp, "fp": fp, "fn": fn, "tn": tn}
    return {"t": rounded(grid), **{name: counts(part) for name, part in parts.items()}}


def _histogram(positive: Mask, score: Floats, weight: Floats | None) -> dict[str, Any]:
    edges = np.arange(_HISTOGRAM + 1) / _HISTOGRAM
    place = np.clip((score * _HISTOGRAM).astype(np.intp), 0, _HISTOGRAM - 1)

    def total(mask: Mask) -> list[Any]:
        own = None if weight is None else weight[mask]
        return counts(np.bincount(place[mask], own, minlength=_HISTOGRAM))

    return {"edges": rounded(edges), "positive": total(positive), "negative": total(~positive)}


def confusion_section(inputs: ReportInput, predicted: Predicted) -> dict[str, Any] | None:
    """Return the confusion matrix; of many classes the largest, and all others together."""
    if inputs.classes is None or predicted.codes is None:
        return None
    n_classes = len(inputs.classes)
    names = [str(label) for label in inputs.classes.tolist()]
    code = np.arange(n_classes)
    if n_classes > _MOST_CONFUSED:
        totals = np.bincount(inputs.truth, inputs.weight, minlength=n_classes)
        largest = np.sort(np.argsort(-totals, kind="stable")[: _MOST_CONFUSED - 1])
        code = np.full(n_classes, len(largest))
        code[largest] = np.arange(len(largest))
        names = [*(names[k] for k in largest.tolist()), "other"]
    size = len(names)
    cell = code[inputs.truth] * size + code[predicted.codes]
    matrix = np.bincount(cell, inputs.weight, minlength=size * size).reshape(size, size)
    return {"matrix": [counts(row) for row in matrix], "names": names}


def classes_section(inputs: ReportInput, predicted: Predicted) -> list[dict[str, Any]] | None:
    """Return precision, recall, F1 and area under the ROC curve of each class."""
    if inputs.classes is None or predicted.codes is None:
        return None
    n_classes, weight = len(inputs.classes), inputs.weight
    n_rows = np.bincount(inputs.truth, minlength=n_classes)
    truth = np.bincount(inputs.truth, weight, minlength=n_classes)
    chosen = np.bincount(predicted.codes, weight, minlength=n_classes)
    right = predicted.codes == inputs.truth
    own = None if weight is None else weight[right]
    hits = np.bincount(inputs.truth[right], own, minlength=n_classes)
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = hits / chosen, hits / truth
        f1 = 2 * hits / (truth + chosen)
    areas = _areas(inputs, predicted, n_rows)
    parts = zip(
        map(str, inputs.classes.tolist()),
        n_rows.tolist(),
        *map(rounded, (precision, recall, f1)),
        areas,
        strict=True,
    )
    names = ("name", "n", "precision", "recall", "f1", "auc")
    return [dict(zip(names, part, strict=True)) for part in parts]


def _areas(
    inputs: ReportInput, predicted: Predicted, n_rows: NDArray[np.int64]
) -> list[float | int | None]:
    proba = predicted.proba
    found: list[float | int | None] = [None] * len(n_rows)
    if proba is None:
        return found
    ranked = np.argsort(-n_rows, kind="stable")[:_MOST_RANKED]
    for k in ranked.tolist():
        if 0 < n_rows[k] < inputs.n_rows:
            area = RANK_METRICS["auc"](inputs.truth == k, proba[:, k], inputs.weight)
            found[k] = one(area)
    return found
