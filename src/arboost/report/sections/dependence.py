"""Partial dependence of predictions on the most important features, with their distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.report.hashing import sample_rows
from arboost.report.inputs import ReportInput
from arboost.report.predicted import Block, Predicted
from arboost.report.rounding import MORE_DIGITS, rounded
from arboost.report.sections.data import column_bins, column_levels
from arboost.report.sections.importances import Effects, chosen_outputs
from arboost.report.table import Column, shown_level

__all__ = ["dependence_section"]

Floats = NDArray[np.float64]

_MOST_FEATURES = 8
_ROWS, _FEWEST_ROWS = 500, 30
_WORK = 4e8  # predicted rows x their cost, at most
_POINTS, _MOST_LEVELS = 24, 15
_SPREAD = (0.1, 0.9)  # quantiles of the curves of single rows
_ENDS = (0.01, 0.99)


def dependence_section(
    inputs: ReportInput, place: int, effects: Effects
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the partial dependence of the top features, and the names of the outputs."""
    model, table = inputs.models[place], inputs.tables[place]
    features = effects.order[:_MOST_FEATURES].tolist()
    most = _WORK / (len(features) * _POINTS * model.row_work)
    rows = sample_rows(inputs.n_rows, int(np.clip(most, _FEWEST_ROWS, _ROWS)))
    sample = table.sample(rows)
    weight = None if inputs.weight is None else inputs.weight[rows]
    chosen, names = _outputs(inputs, place)
    grids = {feature: _grid(table.column(feature)) for feature in features}
    grids = {feature: grid for feature, grid in grids.items() if len(grid) > 1}
    every = np.arange(len(sample))
    blocks = [
        Block(np.repeat(every, len(grid)), {feature: np.tile(grid, len(sample))})
        for feature, grid in grids.items()
    ]
    found = []
    predicted = model.predicted_blocks(sample, blocks)
    for (feature, grid), own in zip(grids.items(), predicted, strict=True):
        curves = _curves(own, chosen).reshape(len(sample), len(grid), -1)
        found.append(_section(table.column(feature), grid, curves, weight))
    return found, names


def _outputs(inputs: ReportInput, place: int) -> tuple[NDArray[np.intp], list[str]]:
    """Return the outputs of a curve, and their names."""
    predicted = inputs.predicted[place]
    if predicted.values is not None:
        if predicted.quantiles is not None:
            return chosen_outputs(inputs, place, predicted.quantiles.shape[1])
        return np.zeros(1, np.intp), [inputs.target or "prediction"]
    assert inputs.classes is not None
    if inputs.task == "binary":
        return np.ones(1, np.intp), [str(inputs.classes[1])]
    return chosen_outputs(inputs, place, len(inputs.classes))


def _grid(column: Column) -> Floats:
    """Return the points of a feature: its levels, or numbers between its outer percentiles."""
    present = column.numbers[np.isfinite(column.numbers)]
    if not len(present):
        return np.empty(0)
    if column.kind in ("category", "bool"):
        codes, totals = np.unique(present, return_counts=True)
        largest = np.argsort(-totals, kind="stable")[:_MOST_LEVELS]
        return codes[largest]
    distinct = np.unique(present)
    if len(distinct) <= _POINTS:
        return distinct
    # Half of the points follow the data, half the range: steps are seen in both.
    shares = np.linspace(*_ENDS, _POINTS // 2)
    low, high = np.quantile(present, _ENDS)
    return np.unique(
        np.concatenate([np.quantile(present, shares), np.linspace(low, high, _POINTS // 2)])
    )


def _curves(predicted: Predicted, chosen: NDArray[np.intp]) -> Floats:
    """Return the predictions of each row as numbers, shape (n_rows, n_outputs)."""
    if predicted.quantiles is not None:
        return predicted.quantiles[:, chosen]
    if predicted.values is not None:
        return predicted.values[:, np.newaxis]
    if predicted.proba is not None:
        return predicted.proba[:, chosen]
    assert predicted.codes is not None
    votes: Floats = (predicted.codes[:, np.newaxis] == chosen).astype(np.float64)
    return votes


def _section(column: Column, grid: Floats, curves: Floats, weight: Floats | None) -> dict[str, Any]:
    low, high = np.quantile(curves, _SPREAD, axis=0)
    digits = 15 if column.kind == "time" else MORE_DIGITS
    found: dict[str, Any] = {
        "feature": column.name,
        "kind": column.kind,
        "grid": rounded(grid, digits),
        "mean": rounded(np.average(curves, axis=0, weights=weight).T),
        "low": rounded(low.T),
        "high": rounded(high.T),
    }
    if column.unit:
        found["unit"] = column.unit
    if column.kind in ("category", "bool"):
        labels = ("False", "True") if column.kind == "bool" else column.labels
        found["grid"] = [shown_level(labels[int(code)]) for code in grid]
        levels = column_levels(column, None)
        found["levels"] = {"names": levels["names"], "counts": levels["test"]}
        return found
    bins = column_bins(column, None)
    found["bins"] = None if bins is None else {"edges": bins["edges"], "counts": bins["test"]}
    return found
