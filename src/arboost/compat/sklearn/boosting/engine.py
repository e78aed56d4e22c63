"""The engine's booster with parameters, start scores and stopping rule of another library."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from arboost.algorithms.estimator import EngineEstimator
from arboost.algorithms.gradient_boosting.base import GradientBoosting
from arboost.algorithms.gradient_boosting.recipe import BoostingRecipe, make_loss, make_recipe
from arboost.algorithms.gradient_boosting.rounds import BoostingRounds
from arboost.backend import core
from arboost.compat.sklearn.arguments import refuse_load
from arboost.compat.sklearn.boosting.pruning import PrunedTrees
from arboost.data.schema import Schema
from arboost.data.target import Task
from arboost.losses import Loss
from arboost.params.kinds import Param
from arboost.predictor import ModelSource, Predictor
from arboost.training.rounds import Fitted, Rounds, Scores
from arboost.training.sets import EvaluationSet, TrainingSet

__all__ = ["EngineBooster", "RoundWatch", "TranslatedBooster", "Translation", "WatchedRounds"]


class RoundWatch(Protocol):
    """Observer of a training, which keeps scores and decides when to stop."""

    def before_first(self, rounds: WatchedRounds) -> None:
        """See the scores before the first round of this fit."""
        ...

    def after_round(self, rounds: WatchedRounds) -> str | None:
        """See a finished round; return the reason to stop, or None to continue."""
        ...


@dataclass(frozen=True, kw_only=True)
class Translation:
    """A fit of another library in the engine's terms.

    Attributes
    ----------
    kind : {"classifier", "regressor"}
    table : mapping of str to Param
        The engine's parameter table for this kind.
    params : dict
        Checked parameters of that table.
    adjust : callable (recipe, schema) -> recipe
        Settings that the engine's public parameters do not reach.
    watch : RoundWatch or None
        Observer of each round.
    record : dict
        Parameters that the table does not have, for the model file.
    start : sequence of float64 arrays of shape (n_rows, n_outputs)
        Raw scores of another model that the trees are added to: those of the training rows of
        nonzero weight, then those of the validation rows; empty without such a model.
    ccp_alpha : float
        Cost-complexity pruning of each tree.
    """

    kind: str
    table: Mapping[str, Param]
    params: dict[str, Any]
    adjust: Callable[[BoostingRecipe, Schema], BoostingRecipe]
    watch: RoundWatch | None
    record: dict[str, Any]
    start: Sequence[Scores] = ()
    ccp_alpha: float = 0.0


class TranslatedBooster(EngineEstimator):
    """An estimator of scikit-learn whose fits are those of an `EngineBooster`."""

    _PARAMS: ClassVar[Mapping[str, Param]]  # of scikit-learn
    _ENGINE: ClassVar[Mapping[str, Param]]  # of the engine's booster
    _TAKES_ROWS = False

    n_jobs: int | None = None

    @classmethod
    def load(cls, path: ModelSource, *, mmap: bool = False) -> NoReturn:
        """Raise TypeError: files keep the parameters of the engine, not those of scikit-learn."""
        refuse_load(cls)


class EngineBooster(GradientBoosting):
    """One fit of a translation; a public estimator takes the model from it."""

    n_jobs = None
    warm_start = False

    def __init__(self, translation: Translation) -> None:
        self.translation = translation
        self._KIND = translation.kind  # type: ignore[misc]
        self._TABLE = translation.table  # type: ignore[misc]

    def _checked_params(self) -> dict[str, Any]:
        return self.translation.params

    def _recorded_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return super()._recorded_params(params) | self.translation.record

    def _keep_model(self, model: Any, schema: Schema) -> None:
        if model.link == "softmax":  # scikit-learn's scores of the classes have the mean 0
            centred = model.base_score - model.base_score.mean()
            model = Predictor(**model.fields() | {"base_score": centred})
        super()._keep_model(model, schema)

    def _plan(
        self, params: dict[str, Any], task: Task, schema: Schema
    ) -> tuple[Loss, Callable[..., Rounds]]:
        given = self.translation
        loss = make_loss(params, task)
        recipe = given.adjust(make_recipe(params, loss, schema), schema)
        return loss, partial(
            WatchedRounds, recipe, watch=given.watch, start=given.start, ccp_alpha=given.ccp_alpha
        )


class WatchedRounds(BoostingRounds):
    """Rounds that start at given scores, and whose observer can end them."""

    def __init__(
        self,
        recipe: BoostingRecipe,
        data: TrainingSet,
        evaluations: Sequence[EvaluationSet] = (),
        *,
        n_threads: int,
        seed: int,
        workspace: core.Workspace | None = None,
        watch: RoundWatch | None = None,
        start: Sequence[Scores] = (),
        ccp_alpha: float = 0.0,
    ) -> None:
        if start:
            data = replace(data, start=_added(data.start, start[0]))
            evaluations = [
                replace(part, start=_added(part.start, scores))
                for part, scores in zip(evaluations, start[1:], strict=True)
            ]
        super().__init__(
            recipe, data, evaluations, n_threads=n_threads, seed=seed, workspace=workspace
        )
        self._watch = watch
        self._pruning = PrunedTrees(ccp_alpha) if ccp_alpha > 0.0 else None
        if watch is not None:
            watch.before_first(self)

    @property
    def in_bag(self) -> NDArray[np.uint32] | None:
        """Training rows of the last round; None for all."""
        return None if self.recipe.rows.rate >= 1.0 else self._sample.positions()

    def run_rounds(self, limit: int = 1) -> None:
        """Run at least one and at most `limit` more rounds; an observer sees one at a time."""
        if self._watch is None:
            super().run_rounds(limit)
            return
        super().run_rounds(1)
        self.ended = self._watch.after_round(self)

    def fitted(self, weights: NDArray[np.float64]) -> Fitted:
        """Return the rounds, with trees that are pruned if asked for."""
        fitted = super().fitted(weights)
        if self._pruning is None:
            return fitted
        return replace(fitted, forest=self._pruning.cut(fitted.forest))

    def _set_values(self, output: int, rate: float) -> None:
        if self._pruning is None:
            super()._set_values(output, rate)
            return
        recipe, loss = self.recipe, self.recipe.loss
        left, n_nodes = self.grower.last_tree()["left"], self.grower.n_nodes
        sums = self.grower.leaf_sums(self._gradients, output, self.n_threads)[:, 0]
        leaf = self._pruning.new_leaves(left, sums)  # the leaf that each node becomes a part of
        if loss.refits(recipe.boosting):
            of_row = self.grower.leaf_of_row()
            inside = of_row < n_nodes
            of_row[inside] = leaf[of_row[inside]]
            values = loss.refit(
                self.data.target, self.scores, output, of_row, n_nodes, self.n_threads
            )
        else:
            newton = self.grower.leaf_sums(self._newton, output, self.n_threads)[:, 0]
            is_leaf = left == 0
            sums = np.zeros((n_nodes, 2))
            np.add.at(sums, leaf[is_leaf], newton[is_leaf])
            values = loss.leaf_values(sums[:, 0], sums[:, 1])
        self.grower.set_values(rate * values[leaf][:, np.newaxis])


def _added(start: Scores | None, scores: Scores) -> Scores:
    return scores if start is None else start + scores
