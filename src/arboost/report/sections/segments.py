"""Segments of the rows by a feature: levels, ranges of numbers, missing or not; worst first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.report.inputs import ReportInput
from arboost.report.models import ReportModel
from arboost.report.predicted import Predicted
from arboost.report.rounding import one
from arboost.report.sections.importances import Effects
from arboost.report.sections.regression import mean_interval
from arboost.report.sections.summands import log_losses, pinball
from arboost.report.table import Column

__all__ = ["segments_section"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

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
                    "low": one(low),
                    "high": one(high),
                    "difference": one(score - overall),
                    "observed": _mean(truth, rows, own),
                    "predicted": _mean(value, rows, own),
                }
            )
    found.sort(key=lambda each: (-each["score"], each["feature"], each["segment"]))
    n_found = len(found)
    chosen = [
        each | {"score": one(each["score"])}
        for rank, each in enumerate(found)
        if rank < _MOST_SEGMENTS or each["feature"] in asked
    ]
    return {
        "metric": metric,
        "higher_is_better": False,
        "overall": one(overall),
        "fewest_rows": fewest,
        "n_segments": n_found,
        "list": chosen,
    }


def _losses(model: ReportModel, predicted: Predicted, truth: NDArray[Any]) -> tuple[Floats, str]:
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
    return None if values is None else one(float(np.average(values[rows], weights=weight)))


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
