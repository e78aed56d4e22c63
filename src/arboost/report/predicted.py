"""Predictions of rows, and blocks of rows with changed values to predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.report.table import Sample

__all__ = ["Block", "Predicted", "divided", "joined", "merged"]

Floats = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Predicted:
    """Predictions of some rows.

    Attributes
    ----------
    codes : int array of shape (n_rows,), or None for regression
        Index of the predicted class.
    proba : float64 array of shape (n_rows, n_classes), or None
        Class probabilities; None for regression and for hard votes.
    values : float64 array of shape (n_rows,), or None for classification
        Predicted values; of several quantiles the one nearest to the median.
    quantiles : float64 array of shape (n_rows, n_quantiles), or None
        All predicted quantiles, ascending.
    """

    codes: Index | None = None
    proba: Floats | None = None
    values: Floats | None = None
    quantiles: Floats | None = None

    def take(self, rows: Any) -> Predicted:
        """Return the predictions of some of the rows."""
        parts = (self.codes, self.proba, self.values, self.quantiles)
        return Predicted(*(None if part is None else part[rows] for part in parts))


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a sample with other numbers in some columns.

    Attributes
    ----------
    places : int array of shape (n_rows,)
        Rows of the sample, with repetitions.
    changes : dict of int to float64 array of shape (n_rows,)
        New numbers by feature.
    """

    places: Index
    changes: Mapping[int, Floats]

    def pieces(self, most: int) -> list[Block]:
        """Return blocks of at most so many rows."""
        if len(self.places) <= most:
            return [self] if len(self.places) else []
        parts = [slice(begin, begin + most) for begin in range(0, len(self.places), most)]
        return [
            Block(self.places[part], {i: numbers[part] for i, numbers in self.changes.items()})
            for part in parts
        ]


def merged(sample: Sample, blocks: Sequence[Block]) -> tuple[Index, dict[int, Floats]]:
    """Return the rows of several blocks as those of one."""
    if len(blocks) == 1:
        return blocks[0].places, dict(blocks[0].changes)
    places = np.concatenate([block.places for block in blocks])
    changes: dict[int, Floats] = {}
    begin = 0
    for block in blocks:
        end = begin + len(block.places)
        for feature, numbers in block.changes.items():
            if feature not in changes:
                changes[feature] = sample.columns[feature].numbers[places]
            changes[feature][begin:end] = numbers
        begin = end
    return places, changes


def divided(predicted: Predicted, sizes: list[int]) -> list[Predicted]:
    """Return the predictions of consecutive rows, of so many rows each."""
    ends = np.cumsum(sizes).tolist()
    return [predicted.take(slice(end - n, end)) for n, end in zip(sizes, ends, strict=True)]


def joined(parts: list[Predicted]) -> Predicted:
    """Return the predictions of several parts, one after the other."""

    def join(name: str) -> Any:
        arrays = [getattr(part, name) for part in parts]
        return None if not arrays or arrays[0] is None else np.concatenate(arrays)

    if len(parts) == 1:
        return parts[0]
    return Predicted(join("codes"), join("proba"), join("values"), join("quantiles"))
