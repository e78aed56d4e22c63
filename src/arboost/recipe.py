"""What a fit is to do: the recipe of an algorithm, and the data; and what it leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.checkpoint import digest
from arboost.data.bins import Binned
from arboost.dropout import Dropout
from arboost.grow.grower import TreeParams
from arboost.grow.row_sampling import RowSampling
from arboost.losses import Loss, Target
from arboost.losses.metrics import Metric
from arboost.monitor import Results
from arboost.resume import Resumable

__all__ = [
    "EvaluationSet",
    "Fitted",
    "Measured",
    "OutOfBag",
    "Recipe",
    "Rounds",
    "Scores",
    "TrainingSet",
    "digests_of",
    "results_of",
]

Scores = NDArray[np.float64]
Rows = NDArray[np.uint32]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What makes an algorithm: its loss, its trees, and how they add up.

    Attributes
    ----------
    loss : Loss
    boosting : {"newton", "gradient"}
        Trees on gradients and hessians, with leaves -G / (H + lambda); or Friedman's: least-squares
        trees on gradients, with leaves that minimise the loss.
    n_estimators : int
        Rounds.
    learning_rate : float
        What each tree's values are multiplied by.
    vector_leaves : bool
        One tree a round with a number for every output in its leaves, instead of one tree for
        each output.
    tree : TreeParams
    rows : RowSampling
    dropout : Dropout or None
    parallel_trees : int
        Trees, each on a sample of its own, whose mean makes up a round's tree.
    base_score : float or None
        Scores to start from; None for the loss's best constant.
    """

    loss: Loss
    n_estimators: int
    learning_rate: float
    tree: TreeParams
    boosting: str = "newton"
    vector_leaves: bool = False
    rows: RowSampling = field(default_factory=RowSampling)
    dropout: Dropout | None = None
    parallel_trees: int = 1
    base_score: float | None = None

    @property
    def width(self) -> int:
        """Numbers in a leaf."""
        return self.loss.n_outputs if self.vector_leaves else 1

    @property
    def tree_outputs(self) -> range:
        """The first output of each tree that a round needs."""
        return range(0, self.loss.n_outputs, self.width)

    @property
    def trees_per_round(self) -> int:
        """Trees that a round grows."""
        return self.parallel_trees * len(self.tree_outputs)


@dataclass(frozen=True)
class TrainingSet:
    """What is learnt from: rows of a binned table, and their target.

    Attributes
    ----------
    binned : Binned
    target : Target
        Of the training rows alone, in their order.
    rows : uint32 array, or None for all
        The training rows among those of the table, ascending.
    start : float64 array of shape (n_training, n_outputs), or None
        Scores of a model whose training goes on.
    first_round : int
        Rounds of that model.
    """

    binned: Binned
    target: Target
    rows: Rows | None = None
    start: Scores | None = None
    first_round: int = 0


@dataclass(frozen=True)
class EvaluationSet:
    """What is looked at after every round: rows of a table that was binned with the same edges."""

    name: str
    codes: core.Codes
    target: Target
    rows: Rows | None = None
    start: Scores | None = None


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


def digests_of(data: TrainingSet, evaluations: Sequence[EvaluationSet]) -> dict[str, str]:
    """Return fingerprints of the data that a fit is given, by what they are of."""
    codes = data.binned.codes
    found = {
        "X": digest(*codes.arrays, codes.is_category, *data.binned.edges, data.rows),
        "y": digest(data.target.y),
        "weights of the rows": digest(data.target.weight),
        "init_model": digest(data.start),
    }
    for part in evaluations:
        target = part.target
        arrays = (*part.codes.arrays, part.rows, target.y, target.weight, part.start)
        found[f"{part.name} data"] = digest(*arrays)
    return found
