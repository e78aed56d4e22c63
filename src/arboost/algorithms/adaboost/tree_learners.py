"""Learners of AdaBoost that are engine trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.algorithms.adaboost.schemes import Scheme
from arboost.backend import core
from arboost.data.bins import AnyCodes
from arboost.grow.grower import TreeParams, grown_forest, make_grower, restore_trees
from arboost.losses.base import Floats
from arboost.model.forest import Forest
from arboost.training.sets import EvaluationSet, TrainingSet, digests_of

__all__ = ["TreeLearners"]


class TreeLearners:
    """Trees that are grown on one binned table.

    Parameters
    ----------
    data : TrainingSet
    evaluations : sequence of EvaluationSet
    tree : TreeParams
    scheme : ClassScheme or R2Scheme
        Target of the trees, and votes from the values of their leaves.
    n_threads : int
    seed : int
    workspace : core.Workspace, optional
        Memory that growers share which take turns.
    """

    def __init__(
        self,
        data: TrainingSet,
        evaluations: Sequence[EvaluationSet],
        tree: TreeParams,
        scheme: Scheme,
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
        self._is_unweighted = False  # whether the gradients are those of unweighted rows
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
        self._units = self._scheme.unit_votes(last["value"], last["cover"] * self._mean_weight)
        self._grower.set_values(self._units)

    def votes(self, evaluation: int | None = None) -> Floats:
        """Return the votes of the last tree for the training rows, or for an evaluation set."""
        if evaluation is None:
            votes = np.zeros((self.n_rows, self._width))
            self._grower.add_leaves(votes, 0, self._n_threads)
            return votes
        part = self._evaluations[evaluation]
        votes = np.zeros((len(part.target.y), self._width))
        self._add(self._grower.n_trees - 1, part.codes, part.rows, votes)
        return votes

    def keep(self, factor: float) -> None:
        """Keep the last tree, its leaf values multiplied by a factor."""
        self._grower.set_values(factor * self._units)

    def drop(self) -> None:
        """Drop the last tree."""
        self._grower.drop_last()

    def kept_votes(self, index: int, rows: NDArray[np.uint32]) -> Floats:
        """Return the votes of a kept tree, times its factor, for some training rows."""
        votes = np.zeros((len(rows), self._width))
        table_rows = rows if self._data.rows is None else self._data.rows[rows]
        self._add(index, self._data.binned.codes, table_rows, votes)
        return votes

    def fitted(self, n_learners: int) -> Forest:
        """Return the first trees."""
        forest = grown_forest([self._grower], self._data.binned, [0])
        return forest.first(n_learners)

    def digests(self) -> dict[str, str]:
        """Return digests of the data of the fit, by name."""
        return digests_of(self._data, self._evaluations)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return the trees as arrays for a checkpoint."""
        return self._grower.trees()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the trees of a checkpoint; raise ValueError where they do not fit the bins."""
        restore_trees(self._grower, self._data.binned, state)

    def _add(
        self, tree: int, codes: AnyCodes, rows: NDArray[np.uint32] | None, votes: Floats
    ) -> None:
        self._grower.add_tree(tree, 1.0, codes, rows, votes, 0, self._n_threads)
