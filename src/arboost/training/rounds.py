"""A training between two rounds: the protocol of the loop, and the result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from arboost.losses import Target
from arboost.losses.metrics import Metric
from arboost.model.model import Model
from arboost.training.monitor import Results
from arboost.training.resume import Resumable

__all__ = ["Fitted", "Measured", "Rounds", "Scores", "validation_results"]

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Fitted:
    """Learners of a training, with the combination that makes their scores.

    Attributes
    ----------
    forest : Forest, or tuple of estimators
        The trees; or the members of an ensemble of other learners.
    base_score : float64 array of shape (n_outputs,)
        Start of the raw scores.
    link : str
    trees_per_round : int
    tree_weights : float64 array of shape (n_trees,), or None
        Weights of the trees, where their weighted median is the prediction.
    facts : mapping of str to float64 array of shape (n_rounds,)
        Numbers known of each round, by name, such as the errors of AdaBoost's learners.
    oob_scores : float64 array of shape (n_rows, n_outputs), or None
        Out-of-bag scores of the training rows; NaN where every learner has drawn the row.
    oob_score : float or None
        Accuracy or R^2 of the out-of-bag scores.
    """

    forest: Any
    base_score: Scores
    link: str
    trees_per_round: int = 1
    tree_weights: NDArray[np.float64] | None = None
    facts: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    oob_scores: Scores | None = None
    oob_score: float | None = None

    @property
    def model_fields(self) -> dict[str, Any]:
        """Fields of a model of these trees."""
        fields = {
            "forest": self.forest,
            "base_score": self.base_score,
            "link": self.link,
            "trees_per_round": self.trees_per_round,
        }
        if self.tree_weights is not None:
            fields |= {"combine": "median", "tree_weights": self.tree_weights}
        return fields

    def after(self, old: Model) -> Fitted:
        """Return the trees of the model whose training is continued, and then these."""
        weights = self.tree_weights
        if weights is not None:
            weights = np.append(old.tree_weights, weights)
        return replace(
            self,
            forest=old.forest.joined(self.forest),
            base_score=old.base_score,
            tree_weights=weights,
        )


class Measured(Protocol):
    """Rows with a name and a target, such as an `EvaluationSet`."""

    @property
    def name(self) -> str:
        """Name of the set in results."""
        ...

    @property
    def target(self) -> Target:
        """Target and weights."""
        ...


class Rounds(Resumable, Protocol):
    """An algorithm between two rounds, as the training loop drives it.

    Attributes
    ----------
    ended : str or None
        Why no further round can be made; None where one can.
    """

    ended: str | None

    def run_rounds(self, limit: int = 1) -> None:
        """Make at least one and at most `limit` more rounds, or find that none can be made."""
        ...

    def run_measured(self, limit: int, metrics: Sequence[Metric]) -> list[Results] | None:
        """Make rounds as `run_rounds` does; return the results of each.

        None: no round was made, because metrics need a call for each.
        """
        ...

    def results(self, metrics: Sequence[Metric]) -> Results:
        """Return the metrics of every evaluation set after the rounds so far."""
        ...

    def fitted(self, weights: NDArray[np.float64]) -> Fitted:
        """Return the first rounds, each times its weight."""
        ...

    def digests(self) -> dict[str, str]:
        """Return digests of the data of the fit, by name."""
        ...


def validation_results(
    evaluations: Sequence[Measured], scores: Sequence[Scores], metrics: Sequence[Metric]
) -> Results:
    """Return the metrics of every evaluation set, by its name."""
    results: dict[str, dict[str, float]] = {}
    for rows, of_rows in zip(evaluations, scores, strict=True):
        y, weight = rows.target.y, rows.target.weight
        results[rows.name] = {metric.name: metric(y, of_rows, weight) for metric in metrics}
    return results
