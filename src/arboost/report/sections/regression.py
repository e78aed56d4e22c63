"""Regressors: predictions against truth, residuals, and the coverage of intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.report.hashing import sample_rows
from arboost.report.inputs import ReportInput
from arboost.report.models import ReportModel
from arboost.report.predicted import Predicted
from arboost.report.rounding import MORE_DIGITS, one, rounded
from arboost.report.sections.data import bin_edges, binned

__all__ = ["regression_section"]

Floats = NDArray[np.float64]

_MOST_POINTS = 2000
_BINS, _ROWS_OF_BIN = 10, 5
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
    rows = sample_rows(inputs.n_rows, _MOST_POINTS)
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
    n_bins = int(np.clip(len(values) // _ROWS_OF_BIN, 1, _BINS))
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
                "predicted": one(float(np.average(values[rows], weights=own[rows]))),
                "mean_residual": one(mean),
                "low": one(low),
                "high": one(high),
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
                "nominal": one(float(alphas[-1 - i] - alphas[i])),
                "observed": one(float(np.average(inside, weights=weight))),
                "width": one(float(np.average(high - low, weights=weight))),
                "n": len(rows),
            }
        )
    return sorted(found, key=lambda each: each["nominal"] or 0.0) or None


def residual_spread(predicted: Predicted, truth: Floats, weight: Floats | None) -> float:
    """Return the standard deviation of the residuals."""
    assert predicted.values is not None
    residual = truth - predicted.values
    middle = np.average(residual, weights=weight)
    return float(np.sqrt(np.average(np.square(residual - middle), weights=weight)))
