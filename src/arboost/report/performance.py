"""Errors in detail: curves, calibration, confusion, residuals, coverage, segments."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.losses.intervals import sample_rows, wilson
from arboost.losses.metric_functions import RANK_METRICS
from arboost.report.data import bin_edges, binned
from arboost.report.effects import Effects
from arboost.report.inputs import ReportInput
from arboost.report.models import Predictions, ReportModel
from arboost.report.scores import log_losses, pinball
from arboost.report.table import MORE_DIGITS, Column, rounded, rounded_counts, rounded_number

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MOST_CURVE_POINTS = 200  # of a curve
_MOST_CURVES = 10
_MOST_CONFUSED = 30  # classes of a confusion matrix
_MOST_RANKED = 200  # classes with an area under the curve
_CALIBRATION_BINS, _ROWS_OF_CALIBRATION_BIN = 10, 10  # of calibration
_HISTOGRAM = 40
_TWO = 2


def binary_section(inputs: ReportInput, predicted: Predictions) -> dict[str, Any] | None:
    """Return curves, calibration and thresholds of two classes; None without probabilities."""
    if inputs.task != "binary" or predicted.proba is None:
        return None
    positive, score, weight = inputs.truth == 1, predicted.proba[:, 1], inputs.weight
    above, beside = _steps(positive, score, weight)
    has_both = positive.any() and not positive.all()
    return {
        "roc": _roc(above, beside) if has_both else None,
        "pr": _precision_recall(above, beside) if has_both else None,
        "calibration": calibration_bins(positive, score, weight),
        "thresholds": _thresholds(positive, score, weight),
        "default_threshold": 0.5,
        "histogram": _histogram(positive, score, weight),
    }


def multiclass_section(inputs: ReportInput, predicted: Predictions) -> dict[str, Any] | None:
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
        curves.append({"class": str(inputs.classes[k]), **curve, "auc": rounded_number(area)})
    chosen = np.take_along_axis(proba, predicted.codes[:, np.newaxis], axis=1)[:, 0]
    right = predicted.codes == inputs.truth
    return {"roc": curves, "calibration": calibration_bins(right, chosen, inputs.weight)}


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
        "prevalence": rounded_number(above[-1] / (above[-1] + beside[-1])),
    }


def _thinned(along: Floats) -> NDArray[np.intp]:
    """Return the indices of at most `_MOST_POINTS` points, evenly spread along a curve."""
    if len(along) <= _MOST_CURVE_POINTS:
        return np.arange(len(along))
    wanted = np.linspace(along[0], along[-1], _MOST_CURVE_POINTS)
    places = np.searchsorted(along, wanted, side="left").clip(max=len(along) - 1)
    return np.unique(np.concatenate([[0], places, [len(along) - 1]]))


def calibration_bins(hits: Mask, score: Floats, weight: Floats | None) -> list[dict[str, Any]]:
    """Return mean score and share of hits in bins of about equally many rows.

    The interval is Wilson's, for as many rows as weights are worth.
    """
    n_bins = int(np.clip(len(score) // _ROWS_OF_CALIBRATION_BIN, 1, _CALIBRATION_BINS))
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
    return {"t": rounded(grid), **{name: rounded_counts(part) for name, part in parts.items()}}


def _histogram(positive: Mask, score: Floats, weight: Floats | None) -> dict[str, Any]:
    edges = np.arange(_HISTOGRAM + 1) / _HISTOGRAM
    place = np.clip((score * _HISTOGRAM).astype(np.intp), 0, _HISTOGRAM - 1)

    def total(mask: Mask) -> list[Any]:
        own = None if weight is None else weight[mask]
        return rounded_counts(np.bincount(place[mask], own, minlength=_HISTOGRAM))

    return {"edges": rounded(edges), "positive": total(positive), "negative": total(~positive)}


def confusion_section(inputs: ReportInput, predicted: Predictions) -> dict[str, Any] | None:
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
    return {"matrix": [rounded_counts(row) for row in matrix], "names": names}


def classes_section(inputs: ReportInput, predicted: Predictions) -> list[dict[str, Any]] | None:
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
    inputs: ReportInput, predicted: Predictions, n_rows: NDArray[np.int64]
) -> list[float | int | None]:
    proba = predicted.proba
    found: list[float | int | None] = [None] * len(n_rows)
    if proba is None:
        return found
    ranked = np.argsort(-n_rows, kind="stable")[:_MOST_RANKED]
    for k in ranked.tolist():
        if 0 < n_rows[k] < inputs.n_rows:
            area = RANK_METRICS["auc"](inputs.truth == k, proba[:, k], inputs.weight)
            found[k] = rounded_number(area)
    return found


_MOST_SCATTER_POINTS = 2000
_RESIDUAL_BINS, _ROWS_OF_RESIDUAL_BIN = 10, 5
_QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_NOMINAL = (0.5, 0.8, 0.9, 0.95)
_COVERED_ROWS = 5000
_COVERED_WORK = 5e6  # rows x trees of quantile forests, at most
_Z = 1.96  # of an interval of 95 %


def regression_section(inputs: ReportInput, place: int) -> dict[str, Any] | None:
    """Return points, residuals and coverage of a regressor."""
    predicted = inputs.predicted[place]
    if predicted.values is None:
        return None
    residual = inputs.truth - predicted.values
    rows = sample_rows(inputs.n_rows, _MOST_SCATTER_POINTS)
    edges = bin_edges(residual)
    probabilities = np.array(_QUANTILES)
    quantiles = np.quantile(residual, probabilities)
    return {
        "points": {
            "truth": rounded(inputs.truth[rows]),
            "predicted": rounded(predicted.values[rows]),
        },
        "residuals": {
            "edges": rounded(edges, MORE_DIGITS),
            "counts": binned(residual, edges).tolist(),
        },
        "by_prediction": _by_prediction(predicted.values, residual, inputs.weight),
        "quantiles": [
            {"probability": probability, "residual": value}
            for probability, value in zip(_QUANTILES, rounded(quantiles), strict=True)
        ],
        "coverage": _coverage(inputs, place),
    }


def _by_prediction(values: Floats, residual: Floats, weight: Floats | None) -> list[dict[str, Any]]:
    """Return the mean residual, with an interval, in bins of about equally many rows."""
    n_bins = int(np.clip(len(values) // _ROWS_OF_RESIDUAL_BIN, 1, _RESIDUAL_BINS))
    edges = np.unique(np.quantile(values, np.arange(1, n_bins) / n_bins))
    place = np.searchsorted(edges, values, side="left")
    own = np.ones(len(values)) if weight is None else weight
    found = []
    for k in range(len(edges) + 1):
        rows = place == k
        if not rows.any():
            continue
        mean = float(np.average(residual[rows], weights=own[rows]))
        low, high = mean_interval(residual[rows], own[rows])
        found.append(
            {
                "predicted": rounded_number(float(np.average(values[rows], weights=own[rows]))),
                "mean_residual": rounded_number(mean),
                "low": rounded_number(low),
                "high": rounded_number(high),
                "n": int(rows.sum()),
            }
        )
    return found


def mean_interval(values: Floats, weight: Floats) -> tuple[float, float]:
    """Return the interval of 95 % of a weighted mean; NaN for a single row."""
    total = float(weight.sum())
    mean = float((values * weight).sum()) / total
    n_effective = total**2 / float(np.square(weight).sum())
    if n_effective <= 1.0 + 1e-9:
        return float("nan"), float("nan")
    variance = float((weight * np.square(values - mean)).sum()) / total
    half = _Z * float(np.sqrt(variance / (n_effective - 1.0)))
    return mean - half, mean + half


def _coverage(inputs: ReportInput, place: int) -> list[dict[str, Any]] | None:
    """Return nominal and observed coverage, and mean width, of intervals between quantiles."""
    model, predicted = inputs.models[place], inputs.predicted[place]
    alphas = model.alphas
    if predicted.quantiles is not None and alphas is not None:
        rows = np.arange(inputs.n_rows)
        return _covered(inputs, rows, alphas, predicted.quantiles)
    if getattr(model.engine, "distributions", None) is None:
        return None
    rows, alphas, quantiles = _forest_quantiles(inputs, place, model)
    return _covered(inputs, rows, alphas, quantiles)


def _forest_quantiles(
    inputs: ReportInput, place: int, model: ReportModel
) -> tuple[NDArray[np.intp], Floats, Floats]:
    assert model.engine is not None
    most = int(np.clip(_COVERED_WORK / max(model.engine.n_trees, 1), 200, _COVERED_ROWS))
    rows = sample_rows(inputs.n_rows, most)
    tails = [(1.0 - nominal) / 2 for nominal in _NOMINAL]
    alphas = np.array(sorted({*tails, *(1.0 - tail for tail in tails)}))
    table = model.table(inputs.tables[place].sample(rows))
    found = model.call("predict_quantiles", table, quantiles=alphas.tolist())
    return rows, alphas, np.asarray(found, np.float64)


def _covered(
    inputs: ReportInput, rows: NDArray[np.intp], alphas: Floats, quantiles: Floats
) -> list[dict[str, Any]] | None:
    """Return the coverage of the intervals between the outermost pair of quantiles and inwards."""
    truth = inputs.truth[rows]
    weight = None if inputs.weight is None else inputs.weight[rows]
    found = []
    for i in range(len(alphas) // 2):
        low, high = quantiles[:, i], quantiles[:, -1 - i]
        inside = (truth >= low) & (truth <= high)
        found.append(
            {
                "nominal": rounded_number(float(alphas[-1 - i] - alphas[i])),
                "observed": rounded_number(float(np.average(inside, weights=weight))),
                "width": rounded_number(float(np.average(high - low, weights=weight))),
                "n": len(rows),
            }
        )
    return sorted(found, key=lambda each: each["nominal"] or 0.0) or None


def residual_spread(predicted: Predictions, truth: Floats, weight: Floats | None) -> float:
    """Return the standard deviation of the residuals."""
    assert predicted.values is not None
    residual = truth - predicted.values
    middle = np.average(residual, weights=weight)
    return float(np.sqrt(np.average(np.square(residual - middle), weights=weight)))


_MOST_FEATURES = 15
_MOST_SEGMENTS = 30
_MOST_LEVELS = 20
_RANGES = 4
_FEWEST_ROWS, _SMALLEST_SHARE = 30, 0.005


def segments_section(inputs: ReportInput, place: int, effects: Effects) -> dict[str, Any] | None:
    """Return the scores of segments of the most important features, the worst first.

    A segment has at least thirty rows, and half a percent of all.
    """
    losses, metric = _losses(inputs.models[place], inputs.predicted[place], inputs.truth)
    weight = np.ones(inputs.n_rows) if inputs.weight is None else inputs.weight
    overall = float(np.average(losses, weights=weight))
    fewest = max(_FEWEST_ROWS, int(np.ceil(_SMALLEST_SHARE * inputs.n_rows)))
    names = inputs.tables[place].names  # in an order that may differ from the first model's
    asked = {inputs.tables[0].names[feature] for feature in inputs.segments}
    chosen_features = [feature for feature, name in enumerate(names) if name in asked]
    features = list(dict.fromkeys([*chosen_features, *effects.order[:_MOST_FEATURES].tolist()]))
    truth, value = _compared(inputs, place)
    found: list[dict[str, Any]] = []
    for feature in features:
        column = inputs.tables[place].column(feature)
        for text, rows in _segments_of(column, fewest):
            own = weight[rows]
            score = float(np.average(losses[rows], weights=own))
            low, high = mean_interval(losses[rows], own)
            found.append(
                {
                    "feature": column.name,
                    "segment": text,
                    "n": int(rows.sum()),
                    "score": score,
                    "low": rounded_number(low),
                    "high": rounded_number(high),
                    "difference": rounded_number(score - overall),
                    "observed": _mean(truth, rows, own),
                    "predicted": _mean(value, rows, own),
                }
            )
    found.sort(key=lambda each: (-each["score"], each["feature"], each["segment"]))
    n_found = len(found)
    chosen = [
        each | {"score": rounded_number(each["score"])}
        for rank, each in enumerate(found)
        if rank < _MOST_SEGMENTS or each["feature"] in asked
    ]
    return {
        "metric": metric,
        "higher_is_better": False,
        "overall": rounded_number(overall),
        "fewest_rows": fewest,
        "n_segments": n_found,
        "list": chosen,
    }


def _losses(model: ReportModel, predicted: Predictions, truth: NDArray[Any]) -> tuple[Floats, str]:
    """Return the loss of each row, lower is better, and its name."""
    if predicted.codes is not None:
        if predicted.proba is not None:
            return log_losses(truth, predicted.proba), "log loss"
        return (predicted.codes != truth).astype(np.float64), "share of wrong classes"
    assert predicted.values is not None
    if predicted.quantiles is not None and model.alphas is not None:
        return pinball(truth, predicted.quantiles, model.alphas), "pinball loss"
    return np.abs(predicted.values - truth), "mean absolute error"


def _compared(inputs: ReportInput, place: int) -> tuple[Floats | None, Floats | None]:
    """Return truth and prediction of each row as one number; None for several classes."""
    predicted = inputs.predicted[place]
    if predicted.values is not None:
        return inputs.truth, predicted.values
    if inputs.task == "binary" and predicted.proba is not None:
        return inputs.truth.astype(np.float64), predicted.proba[:, 1]
    return None, None


def _mean(values: Floats | None, rows: Mask, weight: Floats) -> float | int | None:
    return (
        None if values is None else rounded_number(float(np.average(values[rows], weights=weight)))
    )


def _segments_of(column: Column, fewest: int) -> Iterator[tuple[str, Mask]]:
    """Yield text and rows of each segment of a column that has enough rows."""
    numbers = column.numbers
    missing = np.isnan(numbers)
    segments = []
    if column.kind in ("category", "bool"):
        segments += _levels(column, numbers, missing)
    else:
        segments += _ranges(column, numbers, missing)
    if missing.any():
        segments.append(("missing", missing))
    # A segment of all rows is no segment.
    yield from (
        (text, rows) for text, rows in segments if fewest <= np.count_nonzero(rows) < len(numbers)
    )


def _levels(column: Column, numbers: Floats, missing: Mask) -> list[tuple[str, Mask]]:
    codes = numbers[~missing].astype(np.intp)
    totals = np.bincount(codes, minlength=1)
    largest = np.argsort(-totals, kind="stable")[:_MOST_LEVELS]
    return [(column.text(float(code)), numbers == code) for code in largest if totals[code]]


def _ranges(column: Column, numbers: Floats, missing: Mask) -> list[tuple[str, Mask]]:
    """Return segments between quartiles; of few distinct values, one for each."""
    present = numbers[~missing]
    distinct = np.unique(present)
    if len(distinct) <= 1:
        return []
    if len(distinct) <= _RANGES + 1:
        return [(f"= {column.text(float(value))}", numbers == value) for value in distinct]
    cuts = np.unique(np.quantile(present, np.arange(1, _RANGES) / _RANGES, method="lower"))
    place = np.searchsorted(cuts, numbers, side="left")
    texts = [f"\N{LESS-THAN OR EQUAL TO} {column.text(float(cuts[0]))}"]
    texts += [
        f"{column.text(float(low))} to {column.text(float(high))}" for low, high in pairwise(cuts)
    ]
    texts.append(f"> {column.text(float(cuts[-1]))}")
    return [(text, (place == k) & ~missing) for k, text in enumerate(texts)]
