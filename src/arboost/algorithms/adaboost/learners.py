"""The protocol of AdaBoost's learners: engine trees, or clones of an estimator.

A fit asks for one learner after the other. The last one is provisional: once its error is known it
is kept with a factor, or dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.losses.base import Floats

__all__ = ["Learners"]


class Learners(Protocol):
    """The learners of a fit, and the means to fit one more.

    Attributes
    ----------
    n_rows : int
        Number of training rows.
    """

    n_rows: int

    def learn(self, weight: Floats | None, sample: core.Sample | None, number: int) -> None:
        """Fit one more learner.

        Parameters
        ----------
        weight : float64 array of shape (n_rows,), or None
            Weights of the training rows, of mean 1.
        sample : core.Sample or None
            Rows drawn by their weights instead, with their counts.
        number : int
            Number of the learner; random choices depend on it.
        """
        ...

    def votes(self, evaluation: int | None = None) -> Floats:
        """Return the votes of the last learner before its factor, shape (n_rows, n_outputs).

        Votes for the training rows, or for the rows of an evaluation set by its index.
        """
        ...

    def keep(self, factor: float) -> None:
        """Keep the last learner, its votes multiplied by a factor."""
        ...

    def drop(self) -> None:
        """Drop the last learner."""
        ...

    def kept_votes(self, index: int, rows: NDArray[np.uint32]) -> Floats:
        """Return the votes of a kept learner, times its factor, for some training rows."""
        ...

    def fitted(self, n_learners: int) -> Any:
        """Return the first kept learners: a Forest, or a tuple of estimators."""
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the learners as arrays for a checkpoint."""
        ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the learners of a checkpoint."""
        ...

    def digests(self) -> dict[str, str]:
        """Return digests of the data of the fit, by name."""
        ...
