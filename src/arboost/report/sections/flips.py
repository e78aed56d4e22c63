"""The smallest change of each sampled row that flips its prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.report.flip_search import GRID, Axis, Change, FlipRule, FlipSearch, axis_of
from arboost.report.inputs import ReportInput
from arboost.report.predicted import Predicted
from arboost.report.rounding import MORE_DIGITS, one
from arboost.report.sections.importances import Effects
from arboost.report.sections.regression import residual_spread
from arboost.report.table import Column, Sample

__all__ = ["flips_section"]

Floats = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

_MOST_FEATURES, _FEWEST_FEATURES = 30, 5
_WORK = 2e8  # predicted rows x their cost, at most
_MOST_CELLS = 1e8


def flips_section(
    inputs: ReportInput, place: int, sample: Sample, effects: Effects
) -> tuple[list[dict[str, Any] | None] | None, str | None]:
    """Return the smallest flip of each sampled row, and the sentence on its rule."""
    model = inputs.models[place]
    own = inputs.predicted[place].take(sample.rows)
    rule = _rule(inputs, place, own)
    if rule is None:
        return None, None
    axes = _axes(inputs, place, effects, len(sample))
    if not axes:
        return None, None
    search = FlipSearch(model, sample, axes, rule)
    found = search.singles()
    rest = np.array([i for i, change in enumerate(found) if change is None], np.intp)
    for row, change in zip(rest.tolist(), search.pairs(rest), strict=True):
        found[row] = change
    if not any(found):
        return None, None
    return _described(inputs, search, found), rule.text


def _rule(inputs: ReportInput, place: int, own: Predicted) -> FlipRule | None:
    """Return the rule of a flip: another class, or a value one deviation of residuals away."""
    if own.values is not None:
        spread = residual_spread(inputs.predicted[place], inputs.truth, inputs.weight)
        if not spread > 0:
            return None
        start = own.values

        def moved(predicted: Predicted, places: Index) -> Floats:
            assert predicted.values is not None
            return np.abs(predicted.values - start[places])

        text = (
            "A flip is a change of the prediction by one standard deviation of the residuals "
            f"({one(spread)})."
        )
        return FlipRule(
            text,
            is_flipped=lambda new, places: moved(new, places) >= spread,
            progress=moved,
            differs=lambda rows: np.abs(start[rows][:, np.newaxis] - start) >= spread,
        )
    codes = own.codes
    assert codes is not None

    def flipped(predicted: Predicted, places: Index) -> Mask:
        assert predicted.codes is not None
        changed: Mask = predicted.codes != codes[places]
        return changed

    def lost(predicted: Predicted, places: Index) -> Floats:
        if predicted.proba is None:
            return flipped(predicted, places).astype(np.float64)
        kept = np.take_along_axis(predicted.proba, codes[places][:, np.newaxis], axis=1)[:, 0]
        return 1.0 - kept

    return FlipRule(
        "A flip is a change of the predicted class.",
        is_flipped=flipped,
        progress=lost,
        differs=lambda rows: codes[rows][:, np.newaxis] != codes,
    )


def _axes(inputs: ReportInput, place: int, effects: Effects, n_rows: int) -> list[Axis]:
    """Return the features to change, as many as the work allows."""
    model, table = inputs.models[place], inputs.tables[place]
    by_work = _WORK / (n_rows * GRID * model.row_work)
    by_cells = _MOST_CELLS / (n_rows * GRID * model.schema.n_features)
    most = int(np.clip(min(by_work, by_cells), _FEWEST_FEATURES, _MOST_FEATURES))
    features = effects.order
    sizes = effects.shap if effects.shap is not None else effects.gain
    if sizes is not None:  # a feature without a split flips nothing
        features = features[sizes[features] > 0]
    features = features[features < model.schema.n_columns]  # derived ones follow their column
    axes = (axis_of(table.column(feature), feature) for feature in features[:most].tolist())
    return [axis for axis in axes if axis is not None]


def _described(
    inputs: ReportInput, search: FlipSearch, found: list[Change | None]
) -> list[dict[str, Any] | None]:
    """Return the flips for the page, with the predictions of the changed rows."""
    rows = np.array([i for i, change in enumerate(found) if change is not None], np.intp)
    changes: dict[int, Floats] = {}
    for k, row in enumerate(rows.tolist()):
        change = found[row]
        assert change is not None
        for feature, end in zip(change.features, change.ends, strict=True):
            if feature not in changes:
                changes[feature] = search.sample.columns[feature].numbers[rows].copy()
            changes[feature][k] = end
    new = search.model.predicted_sample(search.sample, rows, changes)
    shown: list[dict[str, Any] | None] = [None] * len(found)
    for k, row in enumerate(rows.tolist()):
        change = found[row]
        assert change is not None
        label, value = _answer(inputs, new, k)
        parts = []
        for feature, end in zip(change.features, change.ends, strict=True):
            column = search.sample.columns[feature]
            start = float(column.numbers[row])
            parts.append(
                {"feature": column.name, "from": _shown(column, start), "to": _shown(column, end)}
            )
        shown[row] = {
            "changes": parts,
            "label": label,
            "value": value,
            "distance": one(change.distance),
        }
    return shown


def _shown(column: Column, number: float) -> Any:
    if np.isnan(number):
        return None
    return one(number, MORE_DIGITS) if column.kind == "number" else column.text(number)


def _answer(inputs: ReportInput, new: Predicted, k: int) -> tuple[Any, float | int | None]:
    if new.values is not None:
        return one(float(new.values[k]), MORE_DIGITS), one(float(new.values[k]), MORE_DIGITS)
    assert new.codes is not None
    assert inputs.classes is not None
    value = None if new.proba is None else one(float(new.proba[k, new.codes[k]]))
    return str(inputs.classes[new.codes[k]]), value
