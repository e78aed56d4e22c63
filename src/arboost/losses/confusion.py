"""Metrics of predicted classes, from the confusion matrix: rows for y, columns for predictions.

Ratios without rows are 0, and means leave out classes that neither y nor the predictions have, as
in scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from arboost.losses.base import Floats

__all__ = [
    "balanced_accuracy",
    "f1",
    "kappa",
    "macro",
    "matthews",
    "of_confusion",
    "of_second_class",
    "precision",
    "recall",
    "weighted",
]

Matrix = NDArray[np.float64]
OfMatrix = Callable[[Matrix], float]
ByClass = Callable[[Matrix], Floats]

_TWO_CLASSES = 2


def of_confusion(value: OfMatrix) -> Callable[[NDArray[np.intp], Floats, Floats | None], float]:
    """Return a function of the confusion matrix as one of (y, probabilities, weight)."""

    def metric(y: NDArray[np.intp], p: Floats, weight: Floats | None) -> float:
        n_classes = p.shape[1]
        cells = np.bincount(y * n_classes + p.argmax(axis=1), weight, minlength=n_classes**2)
        return float(value(cells.reshape(n_classes, n_classes).astype(np.float64)))

    return metric


def precision(matrix: Matrix) -> Floats:
    """Return the share of right predictions of each class."""
    return _ratio(matrix.diagonal(), matrix.sum(axis=0))


def recall(matrix: Matrix) -> Floats:
    """Return the share of the rows of each class that are found."""
    return _ratio(matrix.diagonal(), matrix.sum(axis=1))


def f1(matrix: Matrix) -> Floats:
    """Return the harmonic mean of precision and recall of each class."""
    return _ratio(2.0 * matrix.diagonal(), matrix.sum(axis=0) + matrix.sum(axis=1))


def of_second_class(by_class: ByClass) -> OfMatrix:
    """Return the value of the second of two classes, and of more classes the mean."""

    def value(matrix: Matrix) -> float:
        return float(by_class(matrix)[1]) if len(matrix) == _TWO_CLASSES else mean(matrix)

    mean = macro(by_class)
    return value


def macro(by_class: ByClass) -> OfMatrix:
    """Return the mean over the classes."""

    def value(matrix: Matrix) -> float:
        present = (matrix.sum(axis=0) + matrix.sum(axis=1)) > 0.0
        return float(by_class(matrix)[present].mean())

    return value


def weighted(by_class: ByClass) -> OfMatrix:
    """Return the mean over the classes, weighted by their rows."""
    return lambda matrix: float(np.average(by_class(matrix), weights=matrix.sum(axis=1)))


def balanced_accuracy(matrix: Matrix) -> float:
    """Return the mean recall over the classes of y."""
    return float(recall(matrix)[matrix.sum(axis=1) > 0.0].mean())


def matthews(matrix: Matrix) -> float:
    """Return the correlation of y and predictions, 0 where either has one class only."""
    total, right = matrix.sum(), matrix.diagonal().sum()
    of_y, of_predicted = matrix.sum(axis=1), matrix.sum(axis=0)
    covariance = right * total - (of_y * of_predicted).sum()
    spread = (total**2 - (of_y**2).sum()) * (total**2 - (of_predicted**2).sum())
    return float(covariance / np.sqrt(spread)) if spread > 0.0 else 0.0


def kappa(matrix: Matrix) -> float:
    """Return the agreement beyond that of chance, 0 where chance always agrees."""
    total = matrix.sum()
    right = matrix.diagonal().sum() / total
    chance = (matrix.sum(axis=0) * matrix.sum(axis=1)).sum() / total**2
    return float((right - chance) / (1.0 - chance)) if chance < 1.0 else 0.0


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0.0)
