"""Learners of AdaBoost that are decision trees of arboost, grown by one grower.

Each tree is the tree that a clone of the estimator would grow from the same weights, seed and bins.
Clones would bin the table anew in every round, by the weights of that round; here the bins are
those of the first round, as they are for `TreeLearners`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from arboost.algorithms.adaboost.estimator_learners import refuse_state
from arboost.algorithms.adaboost.estimator_model import MemberVotes
from arboost.algorithms.estimator import column_options
from arboost.algorithms.forests.cart import tree_params
from arboost.algorithms.forests.decision_tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
)
from arboost.algorithms.forests.fit_forest import (
    ForestSpec,
    forest_model,
    keep_trees,
    read_target,
    with_found_bins,
)
from arboost.algorithms.forests.targets import ForestTarget
from arboost.algorithms.members.arguments import random_states
from arboost.backend import core, threads
from arboost.data.target_encoding import features_to_encode
from arboost.grow.grower import grown_forest, make_grower
from arboost.lazy import lazy_property
from arboost.losses.base import Floats, Target
from arboost.model.predict import read_table, tree_scores
from arboost.predictor import Predictor
from arboost.training.inputs import EngineRows, training_rows
from arboost.training.sets import bin_rows

__all__ = ["DecisionTreeLearners", "TreeMembers", "decision_tree_learners"]

_OWN = (DecisionTreeClassifier, DecisionTreeRegressor)


def decision_tree_learners(
    estimator: Any,
    X: Any,
    target: Target,
    evaluations: Sequence[Any],
    member_votes: MemberVotes,
    *,
    resample: bool,
    n_threads: int,
    seed: int,
) -> DecisionTreeLearners | None:
    """Return learners for a decision tree of arboost; None where clones are needed.

    Clones are for subclasses, drawn rows, class weights and pruning, and for tables whose target
    encodings depend on the weights.
    """
    if type(estimator) not in _OWN or resample:
        return None
    params = clone(estimator)._checked_params()  # which may draw from a random state
    if params.get("class_weight") is not None or params["ccp_alpha"] > 0.0:
        return None
    classes = member_votes.classes
    y = target.y if classes is None else classes[target.y.astype(np.intp)]
    rows = training_rows(X, y, target.weight, None, column_options(params), device=params["device"])
    of_trees = read_target(estimator._KIND, rows.y, params["criterion"])
    found = of_trees.tasks[0].classes
    has_all = classes is None or (found is not None and len(found) == len(classes))
    if features_to_encode(rows.schema) or not has_all:
        return None
    return DecisionTreeLearners(
        estimator,
        rows,
        of_trees,
        evaluations,
        member_votes,
        spec=ForestSpec.of(params, random_cuts=params["splitter"] == "random", n_trees=1),
        n_threads=n_threads,
        seed=seed,
    )


class DecisionTreeLearners:
    """Decision trees that are grown on one binned table.

    Parameters
    ----------
    estimator : DecisionTreeClassifier or DecisionTreeRegressor
        Its clones would have grown the same trees.
    rows : Rows
        Training rows as the engine reads them.
    target : ForestTarget
        Target of these rows.
    evaluations : sequence of tables
        As estimators read them.
    member_votes : MemberVotes
    spec : ForestSpec
        Parameters of the estimator.
    n_threads : int
    seed : int
        Source of the random states of the trees, with their numbers.
    """

    def __init__(
        self,
        estimator: Any,
        rows: EngineRows,
        target: ForestTarget,
        evaluations: Sequence[Any],
        member_votes: MemberVotes,
        *,
        spec: ForestSpec,
        n_threads: int,
        seed: int,
    ) -> None:
        self.n_rows = len(rows.y)
        self._estimator = estimator
        self._rows = rows
        self._target = target
        self._evaluations = tuple(evaluations)
        self._member_votes = member_votes
        self._n_threads = n_threads
        self._seed = seed
        weight = rows.weight
        self._scale = 1.0 if weight is None else float(weight.mean())
        self._cover = self.n_rows * self._scale
        tree = tree_params(
            spec.tree,
            rows.schema,
            target,
            total_weight=self._cover,
            random_cuts=spec.random_cuts,
        )
        self._binned = bin_rows(rows, spec.bins, n_threads)
        self._grower = make_grower(self._binned, tree, target.n_outputs)
        self._gradients = core.Gradients(self.n_rows, target.n_outputs, by_row=target.n_outputs > 1)
        self._set_values = None
        if not target.is_exact and not any(tree.monotone):
            by_medians = tree.criterion == "absolute_error"
            self._set_values = self._grower.set_medians if by_medians else self._grower.set_means
        self._state = 0  # random state of the last tree
        self._states: list[int] = []  # of the kept trees

    def learn(self, weight: Floats | None, sample: core.Sample | None, number: int) -> None:
        """Grow one more tree, on all rows with their weights."""
        assert weight is not None
        assert sample is None
        weight = weight if self._scale == 1.0 else weight * self._scale
        target = self._target
        core.apply_loss(target.kernel, target.y, weight, None, self._gradients, self._n_threads)
        (self._state,) = random_states(self._seed, number, 1)
        self._grower.grow(
            self._gradients,
            0,
            seed=self._state,
            tree=0,
            rate=1.0,
            n_threads=self._n_threads,
        )
        if self._set_values is not None:
            self._set_values(target.y[:, np.newaxis], weight, None)

    def votes(self, evaluation: int | None = None) -> Floats:
        """Return the votes of the last tree for the training rows, or for an evaluation set."""
        if evaluation is not None:
            last = self._members(self._grower.n_trees - 1, [*self._states, self._state])
            covers = np.array([self._cover])
            return next(last.votes(self._evaluations[evaluation], self._member_votes, covers))
        values = self._grower.last_tree()["value"]
        units = self._member_votes.of_raw(values + self._target.middle, self._cover)
        votes = np.zeros((self.n_rows, units.shape[1]))
        self._grower.set_values(units)
        self._grower.add_leaves(votes, 0, self._n_threads)
        self._grower.set_values(values)  # those of the member
        return votes

    def keep(self, factor: float) -> None:
        """Keep the last tree; the model multiplies its votes by the factor."""
        self._states.append(self._state)

    def drop(self) -> None:
        """Drop the last tree."""
        self._grower.drop_last()

    def kept_votes(self, index: int, rows: NDArray[np.uint32]) -> NoReturn:
        """Raise AssertionError: out-of-bag scores are for drawn rows, which need clones."""
        raise AssertionError

    def fitted(self, n_learners: int) -> TreeMembers:
        """Return the first kept trees."""
        return self._members(0, self._states[:n_learners])

    def state(self) -> NoReturn:
        """Raise TypeError: as with clones, there is no checkpoint."""
        refuse_state(self._estimator)

    def restore(self, state: Mapping[str, NDArray[Any]]) -> NoReturn:
        """Raise TypeError: there is no state."""
        refuse_state(self._estimator)

    def digests(self) -> NoReturn:
        """Raise TypeError: digests are for a state, and there is none."""
        refuse_state(self._estimator)

    def _members(self, first: int, states: Sequence[int]) -> TreeMembers:
        """Return the trees from the first one on, with the random states of all."""
        order = np.arange(first, len(states))
        forest = grown_forest([self._grower], self._binned, [0], order=order)
        found = {"max_bins": self._binned.max_bins}
        forest = replace(forest, value=forest.value + self._target.middle)
        model = forest_model(forest, self._rows, self._target, found)
        return TreeMembers(clone(self._estimator), tuple(states[first:]), model)


@dataclass(frozen=True, eq=False, repr=False)
class TreeMembers(Sequence[Any]):
    """Fitted decision trees, made of the trees of one forest when somebody asks for them.

    Attributes
    ----------
    estimator : DecisionTreeClassifier or DecisionTreeRegressor
        Unfitted.
    states : tuple of int
        The random state of each tree.
    model : Predictor
        All trees; never used as one model.
    """

    estimator: Any
    states: tuple[int, ...]
    model: Predictor

    def votes(self, X: Any, member_votes: MemberVotes, covers: Floats) -> Iterator[Floats]:
        """Yield the votes of each tree before its weight, as `MemberVotes.of` returns them.

        `covers` has the weight of the training rows of each tree.
        """
        n_threads = threads(self.estimator.n_jobs)
        table = read_table(self.model, X)
        for tree, cover in enumerate(covers):
            scores = tree_scores(self.model, table, tree, n_threads=n_threads)
            yield member_votes.of_raw(scores, cover)

    def __len__(self) -> int:
        return len(self.states)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice) and index.start is None and index.step is None:
            n_trees = len(range(len(self))[index])
            model = self.model.truncated(n_trees)
            return TreeMembers(self.estimator, self.states[:n_trees], model)
        return self._all[index]

    @lazy_property
    def _all(self) -> tuple[Any, ...]:
        return tuple(self._member(i) for i in range(len(self)))

    def _member(self, index: int) -> Any:
        member = clone(self.estimator)
        member.random_state = self.states[index]
        params = with_found_bins(member._checked_params(), self.model.params["max_bins"])
        own = {"forest": self.model.forest.only(index), "params": member._recorded_params(params)}
        keep_trees(member, Predictor(**self.model.fields() | own), params["max_features"])
        return member
