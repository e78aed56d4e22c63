"""What a fit is to do: the recipe of an algorithm, and the data; and what it leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from arboost.losses import Loss, Target
from arboost.losses.metrics import Metric
from arboost.training.monitor import Results
from arboost.training.resume import Resumable

__all__ = ["Fitted", "Measured", "OutOfBag", "Recipe", "Rounds", "Scores", "results_of"]

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class OutOfBag:
    """What learners say of the rows that they did not draw.

    Attributes
    ----------
    scores : float64 array of shape (n_rows, n_outputs)
        Of each row by those learners alone; NaN where all have drawn it.
    score : float
        How good they are, over the rows that have some: accuracy, or R^2.
    """

    scores: Scores
    score: float


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves.

    Attributes
    ----------
    forest : Forest, or tuple of estimators
        The trees; or the members of an ensemble of other learners.
    base_score : float64 array of shape (n_outputs,)
        The scores that they add to.
    tree_weights : float64 array of shape (n_trees,), or None
        Where the trees' weighted median is the answer: their weights.
    facts : mapping of str to float64 array of shape (n_rounds,)
        What is known of each round, by name, for algorithms that tell.
    out_of_bag : OutOfBag or None
    """

    forest: Any
    base_score: Scores
    tree_weights: NDArray[np.float64] | None = None
    facts: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    out_of_bag: OutOfBag | None = None


class Recipe(Protocol):
    """The part of an algorithm's recipe that every fit reads."""

    @property
    def loss(self) -> Loss:
        """Loss, whose link makes predictions of raw scores."""
        ...

    @property
    def n_estimators(self) -> int:
        """Number of rounds."""
        ...

    @property
    def trees_per_round(self) -> int:
        """Number of trees of each round."""
        ...


class Measured(Protocol):
    """Rows with a name and a target, such as an `EvaluationSet`."""

    @property
    def name(self) -> str:
        """What results call it."""
        ...

    @property
    def target(self) -> Target:
        """What is to be predicted."""
        ...


class Rounds(Resumable, Protocol):
    """A fit between two rounds: what the training loop asks of an algorithm.

    Attributes
    ----------
    ended : str or None
        Why no further round can be made; None where one can.
    """

    ended: str | None

    def run_round(self) -> None:
        """Make one more round, or find that none can be made."""
        ...

    def results(self, metrics: Sequence[Metric]) -> Results:
        """Return the metrics of every evaluation set after the rounds so far."""
        ...

    def fitted(self, weights: NDArray[np.float64]) -> Fitted:
        """Return the first rounds, each times its weight."""
        ...

    def digests(self) -> dict[str, str]:
        """Return fingerprints of the data that the fit was given, by what they are of."""
        ...


def results_of(
    parts: Sequence[Measured], scores: Sequence[Scores], metrics: Sequence[Metric]
) -> Results:
    """Return the metrics of the scores of each part."""
    return {
        part.name: {
            metric.name: metric(part.target.y, of_part, part.target.weight) for metric in metrics
        }
        for part, of_part in zip(parts, scores, strict=True)
    }
