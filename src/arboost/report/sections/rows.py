"""The sampled rows that the explorers of a page show: their values and predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from arboost.report.inputs import ReportInput
from arboost.report.rounding import MORE_DIGITS, rounded
from arboost.report.sections.importances import Effects
from arboost.report.table import Sample

__all__ = ["MOST_FEATURES", "predictions_section", "rows_section"]

MOST_FEATURES = 200
_MOST_PROBABILITIES = 30_000  # of all rows and classes


def rows_section(inputs: ReportInput, sample: Sample, effects: Effects) -> dict[str, Any]:
    """Return the values of the sampled rows; of many features the important ones."""
    features = np.arange(len(sample.columns))
    if len(features) > MOST_FEATURES:
        features = np.sort(effects.order[:MOST_FEATURES])
    columns = [sample.columns[feature] for feature in features.tolist()]
    truth = inputs.truth[sample.rows]
    shown: list[Any] = rounded(truth, MORE_DIGITS)
    if inputs.classes is not None:
        shown = [str(label) for label in inputs.classes[truth].tolist()]
    return {
        "index": inputs.rows[sample.rows].tolist(),
        "truth": shown,
        "columns": {column.name: column.shown() for column in columns},
        "n_features": len(sample.columns),
    }


def predictions_section(inputs: ReportInput, place: int, sample: Sample) -> dict[str, Any]:
    """Return the predictions of the sampled rows."""
    predicted = inputs.predicted[place].take(sample.rows)
    truth = inputs.truth[sample.rows]
    if predicted.values is not None:
        return {
            "label": rounded(predicted.values, MORE_DIGITS),
            "proba": None,
            "value": rounded(predicted.values, MORE_DIGITS),
            "correct": None,
            "error": rounded(predicted.values - truth),
        }
    assert predicted.codes is not None
    assert inputs.classes is not None
    proba = predicted.proba
    if proba is not None and proba.size > _MOST_PROBABILITIES:
        proba = None  # the label is enough for many classes
    return {
        "label": [str(label) for label in inputs.classes[predicted.codes].tolist()],
        "proba": None if proba is None else rounded(proba),
        "value": None,
        "correct": (predicted.codes == truth).tolist(),
        "error": None,
    }
