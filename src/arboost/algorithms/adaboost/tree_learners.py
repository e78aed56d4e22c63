"""Where an ensemble that weighs rows gets its learners from: here, trees of the engine.

A fit asks for one learner after the other. The last one is provisional: once its votes are known it
is kept with a factor, or dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from arboost.algorithms.adaboost.schemes import Amounts, Votes
from arboost.backend import core
from arboost.grow.grower import TreeParams, grown_forest, make_grower, restore_trees
from arboost.losses.base import Floats
from arboost.model.forest import Forest
from arboost.training.sets import EvaluationSet, TrainingSet, digests_of

__all__ = ["Learners", "TreeLearners", "Unit"]

Unit = Callable[[Floats, Floats], Floats]


class Learners(Protocol):
    """A maker of learners, with those it has made.

    Attributes
    ----------
    n_rows : int
        Training rows.
    """

    n_rows: int

    def learn(self, weight: Floats | None, sample: core.Sample | None, number: int) -> None:
        """Make one more learner.

        Parameters
        ----------
        weight : float64 array of shape (n_rows,), or None
            Weights of the training rows, whose mean is 1.
        sample : core.Sample or None
            Rows that were drawn instead, with the number of times that each was.
        number : int
            Of the learner; random choices depend on it.
        """
        ...

    def votes(self, part: int | None = None) -> Floats:
        """Return what the last learner says, before a factor, shape (n_rows, n_outputs).

        Of the training rows, or of the rows of an evaluation set by its number.
        """
        ...

    def keep(self, factor: float) -> None:
        """Settle that the last learner counts, this many times."""
        ...

    def drop(self) -> None:
        """Forget the last learner."""
        ...

    def kept_votes(self, index: int, rows: NDArray[np.uint32]) -> Floats:
        """Return what a learner that was kept adds to the scores of some training rows."""
        ...

    def fitted(self, n_learners: int) -> Any:
        """Return the first learners that were kept: a Forest, or a tuple of estimators."""
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the learners as arrays, to be restored; none where they are Python objects."""
        ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take the learners back that `state` gave."""
        ...

    def digests(self) -> dict[str, str]:
        """Return fingerprints of the data, by what they are of."""
        ...


class TreeLearners:
    """Trees on bins that all of them share.

    Parameters
    ----------
    data : TrainingSet
    evaluations : sequence of EvaluationSet
    tree : TreeParams
    scheme : Votes or Amounts
        What trees fit, and what becomes of the values of their leaves.
    n_threads : int
    seed : int
    workspace : core.Workspace, optional
        That growers share which take turns.
    """

    def __init__(
        self,
        data: TrainingSet,
        evaluations: Sequence[EvaluationSet],
        tree: TreeParams,
        scheme: Votes | Amounts,
        *,
        n_threads: int,
        seed: int,
        workspace: core.Workspace | None = None,
    ) -> None:
        self.n_rows = len(data.target.y)
        self._data = data
        self._evaluations = tuple(evaluations)
        self._scheme = scheme
        self._target = scheme.tree_target(data.target.y)
        self._width = scheme.loss.n_outputs
        self._n_threads = n_threads
        self._seed = seed
        self._grower = make_grower(data.binned, tree, self._width, data.rows, workspace)
        self._gradients = core.Gradients(self.n_rows, self._width, by_row=self._width > 1)
        self._is_unweighted = False  # whether the gradients are those of rows of weight 1
        weight = data.target.weight
        self._mean_weight = 1.0 if weight is None else float(weight.mean())
        self._units: Floats = np.empty((0, self._width))

    def learn(self, weight: Floats | None, sample: core.Sample | None, number: int) -> None:
        """Grow one more tree."""
        if weight is not None or not self._is_unweighted:
            core.apply_loss(
                self._scheme.kernel, self._target, weight, None, self._gradients, self._n_threads
            )
            self._is_unweighted = weight is None
        self._grower.grow(
            self._gradients,
            0,
            seed=self._seed,
            tree=number,
            rate=1.0,
            sample=sample,
            n_threads=self._n_threads,
        )
        last = self._grower.last_tree()
        self._units = self._scheme.unit(last["value"], last["cover"] * self._mean_weight)
        self._grower.set_values(self._units)

    def votes(self, part: int | None = None) -> Floats:
        """Return what the last tree says of the training rows, or of an evaluation set."""
        if part is None:
            votes = np.zeros((self.n_rows, self._width))
            self._grower.add_leaves(votes, 0, self._n_threads)
            return votes
        evaluation = self._evaluations[part]
        votes = np.zeros((len(evaluation.target.y), self._width))
        self._add(self._grower.n_trees - 1, evaluation.codes, evaluation.rows, votes)
        return votes

    def keep(self, factor: float) -> None:
        """Settle that the last tree counts, this many times."""
        self._grower.set_values(factor * self._units)

    def drop(self) -> None:
        """Forget the last tree."""
        self._grower.drop_last()

    def kept_votes(self, index: int, rows: NDArray[np.uint32]) -> Floats:
        """Return what a tree that was kept adds to the scores of some training rows."""
        votes = np.zeros((len(rows), self._width))
        table_rows = rows if self._data.rows is None else self._data.rows[rows]
        self._add(index, self._data.binned.codes, table_rows, votes)
        return votes

    def fitted(self, n_learners: int) -> Forest:
        """Return the first trees."""
        forest = grown_forest([self._grower], self._data.binned, [0])
        return forest.first(n_learners)

    def digests(self) -> dict[str, str]:
        """Return fingerprints of the data, by what they are of."""
        return digests_of(self._data, self._evaluations)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the trees as they were grown, to be restored."""
        return self._grower.trees()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Take trees back; raise ValueError where they are none of these bins."""
        restore_trees(self._grower, self._data.binned, state)

    def _add(
        self, tree: int, codes: core.Codes, rows: NDArray[np.uint32] | None, votes: Floats
    ) -> None:
        self._grower.add_tree(tree, 1.0, codes, rows, votes, 0, self._n_threads)
