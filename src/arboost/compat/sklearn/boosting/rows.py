"""Rows of a fit, and the rows that early stopping holds out, chosen by scikit-learn's own split."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _num_samples

from arboost.algorithms.members.tables import framed
from arboost.data.scipy_sparse import is_sparse
from arboost.data.table import as_array
from arboost.data.target import encode_labels, target, weights

__all__ = ["FitRows"]


@dataclass(frozen=True, kw_only=True)
class FitRows:
    """Arguments of a fit: tables as they were given, y and weights as arrays.

    Attributes
    ----------
    X, X_val : table
    y, y_val : array
    sample_weight, sample_weight_val : float64 array or None
    """

    X: Any
    y: NDArray[Any]
    sample_weight: NDArray[np.float64] | None
    X_val: Any = None
    y_val: NDArray[Any] | None = None
    sample_weight_val: NDArray[np.float64] | None = None

    @classmethod
    def read(cls, X: Any, y: object, sample_weight: object) -> FitRows:
        """Return the rows of a fit, with y and weights checked."""
        X = X if is_sparse(X) else framed(X)  # a format of scipy is a dict
        if not hasattr(X, "shape") and not hasattr(X, "__arrow_c_stream__"):
            X = as_array(X)
        n_rows = _num_samples(X)
        return cls(X=X, y=target(y, n_rows), sample_weight=weights(sample_weight, n_rows))

    @property
    def validation(self) -> dict[str, Any]:
        """The validation set, as the engine's `fit` takes it."""
        names = ("X_val", "y_val", "sample_weight_val")
        return {name: getattr(self, name) for name in names}

    @property
    def codes(self) -> NDArray[np.float64]:
        """Class codes of the labels of the training rows."""
        return encode_labels(self.y)[1]

    def counted(self) -> NDArray[np.bool_]:
        """Return the mask of the training rows of nonzero weight."""
        if self.sample_weight is None:
            return np.ones(len(self.y), np.bool_)
        return self.sample_weight > 0.0

    def split(self, fraction: float, seed: Any, *, stratify: bool) -> FitRows:
        """Return the rows with a share of them as validation set."""
        parts = train_test_split(
            *(self.X, self.y, self.sample_weight)[: 2 + (self.sample_weight is not None)],
            test_size=fraction,
            random_state=seed,
            stratify=self.codes if stratify else None,
        )
        X, X_val, y, y_val, *weight = parts
        train, held_out = weight if weight else (None, None)
        return FitRows(
            X=X, y=y, sample_weight=train, X_val=X_val, y_val=y_val, sample_weight_val=held_out
        )
