"""Errors in detail: curves, calibration, confusion, residuals, coverage, segments."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from arboost.losses.curves import calibration_bins as calibration_of_bins
from arboost.losses.curves import precision_recall_curve, roc_curve
from arboost.losses.intervals import mean_interval, sample_rows
from arboost.losses.metrics import RANK_METRICS
from arboost.report.data import bin_counts, bin_edges
from arboost.report.effects import Effects
from arboost.report.inputs import ModelRows, class_probability, row_losses
from arboost.report.table import (
    MORE_DIGITS,
    Column,
    Floats,
    Index,
    Mask,
    rounded,
    rounded_counts,
)

_MOST_CURVE_POINTS = 200  # of a curve
_MOST_CURVES = 10
_MOST_CONFUSED = 30  # classes of a confusion matrix
_MOST_RANKED = 200  # classes with an area under the curve
_CALIBRATION_BINS, _ROWS_OF_CALIBRATION_BIN = 10, 10
_HISTOGRAM = 40

_MOST_SCATTER_POINTS = 2000
_RESIDUAL_BINS, _ROWS_OF_RESIDUAL_BIN = 10, 5
_QUANTILES = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_NOMINAL = (0.5, 0.8, 0.9, 0.95)
_COVERED_ROWS = 5000
_COVERED_WORK = 5e6  # rows x trees of quantile forests, at most

_MOST_FEATURES = 15  # of segments
_MOST_SEGMENTS = 30
_MOST_LEVELS = 20
_RANGES = 4
_FEWEST_ROWS, _SMALLEST_SHARE = 30, 0.005


# Classifiers


def binary_section(rows: ModelRows) -> dict[str, Any] | None:
    """Curves, calibration and thresholds of two classes; None without probabilities."""
    if rows.model.task != "binary" or rows.predicted.proba is None:
        return None
    positive, score, weight = rows.truth == 1, rows.predicted.proba[:, 1], rows.weight
    roc = precision_recall = None
    if positive.any() and not positive.all():
        roc = _roc(positive, score, weight)
        precision, recall = precision_recall_curve(positive, score, weight)
        points = _thinned(recall)
        precision_recall = {
            "recall": rounded(recall[points]),
            "precision": rounded(precision[points]),
            "prevalence": rounded(precision[-1]),
        }
    return {
        "roc": roc,
        "pr": precision_recall,
        "calibration": calibration_bins(positive, score, weight),
        "thresholds": _thresholds(positive, score, rows.weights(), is_weighted=weight is not None),
        "default_threshold": 0.5,
        "histogram": _histogram(positive, score, weight),
    }


def multiclass_section(rows: ModelRows) -> dict[str, Any] | None:
    """ROC curves of the largest classes, and the calibration of the predicted class."""
    proba, codes = rows.predicted.proba, rows.predicted.codes
    if rows.model.task != "multiclass" or proba is None or codes is None:
        return None
    totals = rows.class_totals()
    curves = []
    for k in np.argsort(-totals, kind="stable")[:_MOST_CURVES].tolist():
        if 0 < totals[k] < totals.sum():
            curve = _roc(rows.truth == k, proba[:, k], rows.weight)
            curves.append({"class": rows.classes[k], **curve, "auc": _area(rows, k)})
    calibration = calibration_bins(
        codes == rows.truth, class_probability(codes, proba), rows.weight
    )
    return {"roc": curves, "calibration": calibration}


def _roc(positive: Mask, score: Floats, weight: Floats | None) -> dict[str, Any]:
    fpr, tpr = roc_curve(positive, score, weight)
    points = _thinned(fpr + tpr)
    return {"fpr": rounded(fpr[points]), "tpr": rounded(tpr[points])}


def _thinned(along: Floats) -> Index:
    """Indices of at most `_MOST_CURVE_POINTS` points, evenly spread along a curve."""
    if len(along) <= _MOST_CURVE_POINTS:
        return np.arange(len(along))
    distances = np.linspace(along[0], along[-1], _MOST_CURVE_POINTS)
    points = np.searchsorted(along, distances, side="left").clip(max=len(along) - 1)
    return np.unique(np.concatenate([[0], points, [len(along) - 1]]))


def calibration_bins(hits: Mask, score: Floats, weight: Floats | None) -> list[dict[str, Any]]:
    """Mean score and share of hits in bins of about equally many rows."""
    edges = _quantile_edges(score, _CALIBRATION_BINS, _ROWS_OF_CALIBRATION_BIN)
    bins = calibration_of_bins(hits, score, weight, edges)
    filled = np.isfinite(bins.share)
    columns = {
        "predicted": rounded(bins.probability[filled]),
        "observed": rounded(bins.share[filled]),
        "low": rounded(bins.low[filled]),
        "high": rounded(bins.high[filled]),
        "n": bins.n_rows[filled].tolist(),
    }
    return _records(columns)


def _quantile_edges(values: Floats, most_bins: int, rows_of_bin: int) -> Floats:
    """Edges between bins of about equally many rows."""
    n_bins = int(np.clip(len(values) // rows_of_bin, 1, most_bins))
    return np.unique(np.quantile(values, np.arange(1, n_bins) / n_bins))


def _records(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _thresholds(
    positive: Mask, score: Floats, weight: Floats, *, is_weighted: bool
) -> dict[str, Any]:
    """Confusion counts at thresholds: even ones, and quantiles of the scores."""
    even = np.arange(101) / 100
    quantiles = np.quantile(score, even, method="lower")
    grid = np.unique(np.array(rounded(np.concatenate([even, quantiles])), np.float64).clip(0, 1))
    order = np.argsort(score, kind="stable")
    below = np.searchsorted(score[order], grid, side="left")
    counts = {}
    for kind, rejected, accepted in ((positive, "fn", "tp"), (~positive, "tn", "fp")):
        total = np.append(0.0, np.cumsum(np.where(kind, weight, 0.0)[order]))
        counts[rejected], counts[accepted] = total[below], total[-1] - total[below]
    return {"t": rounded(grid)} | {
        name: rounded_counts(count if is_weighted else np.round(count).astype(np.int64))
        for name, count in counts.items()
    }


def _histogram(positive: Mask, score: Floats, weight: Floats | None) -> dict[str, Any]:
    edges = np.arange(_HISTOGRAM + 1) / _HISTOGRAM
    index = np.clip((score * _HISTOGRAM).astype(np.intp), 0, _HISTOGRAM - 1)

    def total(mask: Mask) -> list[Any]:
        weights = None if weight is None else weight[mask]
        return rounded_counts(np.bincount(index[mask], weights, minlength=_HISTOGRAM))

    return {"edges": rounded(edges), "positive": total(positive), "negative": total(~positive)}


def confusion_section(rows: ModelRows) -> dict[str, Any] | None:
    """Confusion matrix; of many classes the largest, and all others together."""
    codes, names = rows.predicted.codes, rows.classes
    if codes is None:
        return None
    index = np.arange(len(names))
    if len(names) > _MOST_CONFUSED:
        order = np.argsort(-rows.class_totals(), kind="stable")
        largest = np.sort(order[: _MOST_CONFUSED - 1])
        index = np.full(len(names), len(largest))
        index[largest] = np.arange(len(largest))
        names = [*(names[k] for k in largest.tolist()), "other"]
    size = len(names)
    cell = index[rows.truth] * size + index[codes]
    matrix = np.bincount(cell, rows.weight, minlength=size * size).reshape(size, size)
    return {"matrix": [rounded_counts(row) for row in matrix], "names": names}


def classes_section(rows: ModelRows) -> list[dict[str, Any]] | None:
    """Precision, recall, F1 and area under the ROC curve of each class."""
    codes = rows.predicted.codes
    if codes is None:
        return None
    n_rows = np.bincount(rows.truth, minlength=rows.n_classes)
    truth, chosen = rows.class_totals(), rows.class_totals(codes)
    right = codes == rows.truth
    hits = np.bincount(rows.truth, rows.weights() * right, rows.n_classes)
    ranked = np.argsort(-n_rows, kind="stable")[:_MOST_RANKED].tolist()
    areas = {k: _area(rows, k) for k in ranked if 0 < n_rows[k] < rows.n_rows}
    with np.errstate(divide="ignore", invalid="ignore"):
        columns = {
            "name": rows.classes,
            "n": n_rows.tolist(),
            "precision": rounded(hits / chosen),
            "recall": rounded(hits / truth),
            "f1": rounded(2 * hits / (truth + chosen)),
            "auc": [areas.get(k) for k in range(rows.n_classes)],
        }
    return _records(columns)


def _area(rows: ModelRows, k: int) -> Any:
    """Area under the ROC curve of a class against all others."""
    proba = rows.predicted.proba
    if proba is None:
        return None
    return rounded(RANK_METRICS["auc"](rows.truth == k, proba[:, k], rows.weight))


# Regressors


def regression_section(rows: ModelRows) -> dict[str, Any] | None:
    """Points, residuals and coverage of a regressor."""
    predicted = rows.predicted.values
    if predicted is None:
        return None
    residual = rows.truth - predicted
    shown = sample_rows(rows.n_rows, _MOST_SCATTER_POINTS)
    edges = bin_edges(residual)
    quantiles = np.quantile(residual, _QUANTILES)
    return {
        "points": {"truth": rounded(rows.truth[shown]), "predicted": rounded(predicted[shown])},
        "residuals": {
            "edges": rounded(edges, MORE_DIGITS),
            "counts": bin_counts(residual, edges),
        },
        "by_prediction": list(_by_prediction(predicted, residual, rows.weights())),
        "quantiles": _records({"probability": list(_QUANTILES), "residual": rounded(quantiles)}),
        "coverage": _coverage(rows),
    }


def _by_prediction(values: Floats, residual: Floats, weight: Floats) -> Iterator[dict[str, Any]]:
    """Yield the mean residual, with an interval, in bins of about equally many rows."""
    edges = _quantile_edges(values, _RESIDUAL_BINS, _ROWS_OF_RESIDUAL_BIN)
    index = np.searchsorted(edges, values, side="left")
    for k in np.unique(index).tolist():
        rows = index == k
        low, high = mean_interval(residual[rows], weight[rows])
        yield {
            "predicted": _mean(values, rows, weight),
            "mean_residual": _mean(residual, rows, weight),
            "low": rounded(low),
            "high": rounded(high),
            "n": int(rows.sum()),
        }


def _mean(values: Floats | None, rows: Mask, weight: Floats) -> Any:
    if values is None:
        return None
    return rounded(np.average(values[rows], weights=weight[rows]))


def _coverage(rows: ModelRows) -> list[dict[str, Any]] | None:
    """Nominal and observed coverage, and mean width, of intervals between quantiles.

    Intervals are those of the outermost pair of quantiles and inwards.
    """
    model, alphas, quantiles = rows.model, rows.model.alphas, rows.predicted.quantiles
    covered = np.arange(rows.n_rows)
    if quantiles is None or alphas is None:
        if getattr(model.engine, "distributions", None) is None:
            return None
        assert model.engine is not None
        most = int(np.clip(_COVERED_WORK / max(model.engine.n_trees, 1), 200, _COVERED_ROWS))
        covered = sample_rows(rows.n_rows, most)
        tails = [(1.0 - nominal) / 2 for nominal in _NOMINAL]
        alphas = np.array(sorted({*tails, *(1.0 - tail for tail in tails)}))
        table = model.table(rows.table.sample(covered))
        quantiles = np.asarray(
            model.call("predict_quantiles", table, quantiles=alphas.tolist()), np.float64
        )
    truth, weight = rows.truth[covered], rows.weights(covered)
    sections = []
    for i in range(len(alphas) // 2):
        low, high = quantiles[:, i], quantiles[:, -1 - i]
        inside = (truth >= low) & (truth <= high)
        sections.append(
            {
                "nominal": rounded(alphas[-1 - i] - alphas[i]),
                "observed": rounded(np.average(inside, weights=weight)),
                "width": rounded(np.average(high - low, weights=weight)),
                "n": len(covered),
            }
        )
    return sorted(sections, key=lambda section: section["nominal"] or 0.0) or None


# Segments


def segments_section(rows: ModelRows, effects: Effects) -> dict[str, Any] | None:
    """Scores of segments of the most important features, the worst first.

    A segment has at least thirty rows, and half a percent of all.
    """
    losses, metric = row_losses(rows.model, rows.truth, rows.predicted)
    weight, inputs = rows.weights(), rows.inputs
    overall = float(np.average(losses, weights=weight))
    fewest = max(_FEWEST_ROWS, int(np.ceil(_SMALLEST_SHARE * rows.n_rows)))
    names = rows.table.names  # in an order that may differ from the first model's
    asked = {inputs.model_rows[0].table.names[feature] for feature in inputs.segments}
    asked_features = [feature for feature, name in enumerate(names) if name in asked]
    features = dict.fromkeys([*asked_features, *effects.order[:_MOST_FEATURES].tolist()])
    truth, value = _numbers(rows)
    segments: list[dict[str, Any]] = []
    for column in map(rows.table.column, features):
        for text, segment in _segments(column, fewest):
            score = float(np.average(losses[segment], weights=weight[segment]))
            low, high = mean_interval(losses[segment], weight[segment])
            segments.append(
                {
                    "feature": column.name,
                    "segment": text,
                    "n": int(segment.sum()),
                    "score": score,
                    "low": rounded(low),
                    "high": rounded(high),
                    "difference": rounded(score - overall),
                    "observed": _mean(truth, segment, weight),
                    "predicted": _mean(value, segment, weight),
                }
            )
    segments.sort(key=lambda entry: (-entry["score"], entry["feature"], entry["segment"]))
    return {
        "metric": metric,
        "overall": rounded(overall),
        "fewest_rows": fewest,
        "n_segments": len(segments),
        "list": [
            entry | {"score": rounded(entry["score"])}
            for rank, entry in enumerate(segments)
            if rank < _MOST_SEGMENTS or entry["feature"] in asked
        ],
    }


def _numbers(rows: ModelRows) -> tuple[Floats | None, Floats | None]:
    """Truth and prediction of each row as one number; None for several classes."""
    if rows.predicted.values is not None:
        return rows.truth, rows.predicted.values
    if rows.model.task == "binary" and rows.predicted.proba is not None:
        return rows.truth.astype(np.float64), rows.predicted.proba[:, 1]
    return None, None


def _segments(column: Column, fewest: int) -> Iterator[tuple[str, Mask]]:
    """Yield text and rows of each segment of a column that has enough rows."""
    segments = _levels(column) if column.has_levels else _ranges(column)
    for text, rows in [*segments, ("missing", column.missing)]:
        if fewest <= np.count_nonzero(rows) < len(rows):  # a segment of all rows is none
            yield text, rows


def _levels(column: Column) -> list[tuple[str, Mask]]:
    codes, totals = np.unique(column.numbers[~column.missing], return_counts=True)
    largest = codes[np.argsort(-totals, kind="stable")[:_MOST_LEVELS]]
    return [(column.text(code), column.numbers == code) for code in largest.tolist()]


def _ranges(column: Column) -> list[tuple[str, Mask]]:
    """Segments between quartiles; of few distinct values, one for each."""
    numbers, missing = column.numbers, column.missing
    distinct = np.unique(numbers[~missing])
    if len(distinct) <= 1:
        return []
    if len(distinct) <= _RANGES + 1:
        return [(f"= {column.text(value)}", numbers == value) for value in distinct.tolist()]
    shares = np.arange(1, _RANGES) / _RANGES
    cuts = np.unique(np.quantile(numbers[~missing], shares, method="lower"))
    index = np.searchsorted(cuts, numbers, side="left")
    ends = [column.text(cut) for cut in cuts.tolist()]
    texts = [
        f"\N{LESS-THAN OR EQUAL TO} {ends[0]}",
        *(f"{low} to {high}" for low, high in pairwise(ends)),
        f"> {ends[-1]}",
    ]
    return [(text, (index == k) & ~missing) for k, text in enumerate(texts)]
