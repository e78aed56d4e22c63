"""Summands of scores: for each row, the parts whose sums over rows give a score."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.report.inputs import ReportInput
from arboost.report.models import ReportModel
from arboost.report.predicted import Predicted
from arboost.report.score_kinds import Sums

__all__ = [
    "all_sums",
    "log_losses",
    "n_summands",
    "pinball",
    "row_summands",
    "sample_sums",
]

Floats = NDArray[np.float64]

_SMALLEST = float(np.finfo(np.float64).eps)  # probability; the bound of the metric log_loss
_TWO = 2


def row_summands(
    inputs: ReportInput, predicted: Predicted, place: int, rows: NDArray[np.intp]
) -> dict[str, NDArray[Any]]:
    """Return the summands of some rows, weighted, of shape (n_rows,) or (n_rows, n_classes)."""
    truth, own = inputs.truth[rows], predicted.take(rows)
    weight = np.ones(len(rows)) if inputs.weight is None else inputs.weight[rows]
    parts = {"weight": weight}
    parts |= {name: part * weight for name, part in _parts(inputs, own, truth, place).items()}
    if inputs.classes is None:
        return parts
    assert own.codes is not None
    every = np.arange(len(inputs.classes))
    parts["truth"] = np.where(truth[:, np.newaxis] == every, weight[:, np.newaxis], 0.0)
    parts["chosen"] = np.where(own.codes[:, np.newaxis] == every, weight[:, np.newaxis], 0.0)
    parts["hits"] = np.where(own.codes[:, np.newaxis] == truth[:, np.newaxis], parts["truth"], 0.0)
    return parts


def all_sums(inputs: ReportInput, predicted: Predicted, place: int) -> Sums:
    """Return the sums of the summands over all rows."""
    truth, weight = inputs.truth, inputs.weight
    parts = _parts(inputs, predicted, truth, place)
    own = np.ones(inputs.n_rows) if weight is None else weight
    sums: Sums = {"weight": own.sum()}
    sums |= {name: (part * own).sum() for name, part in parts.items()}
    if inputs.classes is None:
        return sums
    assert predicted.codes is not None
    n_classes = len(inputs.classes)
    right = predicted.codes == truth
    sums["truth"] = np.bincount(truth, weight, n_classes)
    sums["chosen"] = np.bincount(predicted.codes, weight, n_classes)
    sums["hits"] = np.bincount(truth[right], None if weight is None else own[right], n_classes)
    return sums


def sample_sums(summands: Mapping[str, NDArray[Any]]) -> Sums:
    """Return the sums of given summands."""
    return {name: part.sum(axis=0) for name, part in summands.items()}


def n_summands(inputs: ReportInput) -> int:
    """Return the number of summands of a row, about."""
    return 8 if inputs.classes is None else 4 + 3 * len(inputs.classes)


def _parts(
    inputs: ReportInput, predicted: Predicted, truth: NDArray[Any], place: int
) -> dict[str, NDArray[Any]]:
    """Return the parts of each row, without weights, of shape (n_rows,)."""
    if inputs.classes is None:
        return _of_values(truth, predicted, inputs.models[place])
    assert predicted.codes is not None
    parts: dict[str, NDArray[Any]] = {"right": (predicted.codes == truth).astype(np.float64)}
    if predicted.proba is not None:
        parts["log_loss"] = log_losses(truth, predicted.proba)
        parts["brier"] = _brier(truth, predicted.proba)
    return parts


def log_losses(truth: NDArray[np.intp], proba: Floats) -> Floats:
    """Return the negative logarithm of the probability of each row's class."""
    right = np.take_along_axis(proba, truth[:, np.newaxis], axis=1)[:, 0]
    losses: Floats = -np.log(right.clip(min=_SMALLEST))
    return losses


def _brier(truth: NDArray[np.intp], proba: Floats) -> Floats:
    if proba.shape[1] == _TWO:
        squares: Floats = np.square(proba[:, 1] - truth)
        return squares
    right = np.take_along_axis(proba, truth[:, np.newaxis], axis=1)[:, 0]
    total: Floats = np.square(proba).sum(axis=1) - np.square(right) + np.square(right - 1.0)
    return total


def _of_values(truth: Floats, predicted: Predicted, model: ReportModel) -> dict[str, NDArray[Any]]:
    assert predicted.values is not None
    error = predicted.values - truth
    centred = truth - truth.mean()  # sums of squares keep their digits
    parts = {
        "squared": np.square(error),
        "absolute": np.abs(error),
        "values": centred,
        "squares": np.square(centred),
    }
    params = {} if model.engine is None else model.engine.params
    loss = params.get("loss")
    if loss == "quantile":
        alphas = np.atleast_1d(np.asarray(params["alpha"], np.float64))
        columns = predicted.quantiles
        if columns is None:
            columns = np.repeat(predicted.values[:, np.newaxis], len(alphas), axis=1)
        parts = {"pinball": pinball(truth, columns, np.sort(alphas)), **parts}
    deviance = _DEVIANCES.get(str(loss))
    if deviance is not None and (predicted.values > 0).all():
        found = deviance(truth, predicted.values, params)
        if found is not None:
            parts = {"deviance": found, **parts}
    return parts


def pinball(truth: Floats, quantiles: Floats, alphas: Floats) -> Floats:
    """Return the mean pinball loss of the quantiles of each row."""
    error = truth[:, np.newaxis] - quantiles
    losses: Floats = np.maximum(alphas * error, (alphas - 1.0) * error).mean(axis=1)
    return losses


def _poisson(y: Floats, mean: Floats, params: Mapping[str, Any]) -> Floats | None:
    if (y < 0).any():
        return None
    logs = np.where(y > 0, np.log(np.where(y > 0, y, 1.0) / mean), 0.0)
    found: Floats = 2.0 * (y * logs - y + mean)
    return found


def _gamma(y: Floats, mean: Floats, params: Mapping[str, Any]) -> Floats | None:
    if (y <= 0).any():
        return None
    found: Floats = 2.0 * (np.log(mean / y) + y / mean - 1.0)
    return found


def _tweedie(y: Floats, mean: Floats, params: Mapping[str, Any]) -> Floats | None:
    power = float(params.get("tweedie_power", 1.5))
    if (y < 0).any() or not 1.0 < power < _TWO:
        return None
    low, high = 1.0 - power, 2.0 - power
    found: Floats = 2.0 * (y**high / (low * high) - y * mean**low / low + mean**high / high)
    return found


_DEVIANCES: Mapping[str, Callable[[Floats, Floats, Mapping[str, Any]], Floats | None]] = {
    "poisson": _poisson,
    "gamma": _gamma,
    "tweedie": _tweedie,
}
