"""Learners of AdaBoost: the steps of a fit that depend on their kind, and engine trees as learners.

Reading of the arguments of ``fit``, training loop and model, so that `AdaBoost.fit` is the same for
trees and estimators (`estimator_learners`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.bins import AnyCodes
from arboost.data.dataset import Dataset
from arboost.data.schema import Schema
from arboost.data.table import Table
from arboost.data.target import Task
from arboost.estimators.adaboost.rounds import AdaBoostRecipe, AdaBoostRounds, Learners, make_rounds
from arboost.estimators.adaboost.schemes import R2Scheme, Scheme
from arboost.estimators.estimator import category_encoding, read_rows
from arboost.estimators.forest_growth import CART_LEVELS
from arboost.losses.base import Floats, mean
from arboost.models.prediction import table_scores, tree_values
from arboost.models.predictor import Predictor
from arboost.params.boosting import LEVELS
from arboost.params.records import BinParams
from arboost.training import sets
from arboost.training.fit import FitJob, previous_model, run_fit
from arboost.training.inputs import EngineRows, Rows, TableReader, TableT, target_encode_rows
from arboost.training.loop import FitResult
from arboost.trees.forest import Forest
from arboost.trees.grower import TreeParams, grown_forest, make_grower, restore_trees

# ---- strategies ----


class LearnerStrategy(ABC, Generic[TableT]):
    """Learners of one kind: the steps of a fit that depend on it."""

    @abstractmethod
    def read(
        self, kind: str, X: object, y: object, weight: object, groups: object
    ) -> tuple[Rows[TableT], Task]:
        """The training rows, checked, and their task of the kind."""

    @abstractmethod
    def read_validation(self, arguments: sets.EvaluationArguments, schema: Schema) -> Rows[TableT]:
        """The rows of an evaluation set, checked."""

    def recorded_bins(self, rows: Rows[TableT]) -> dict[str, Any]:
        """The number of bins for the model file, by its parameter."""
        return {}

    @abstractmethod
    def start(
        self,
        recipe: AdaBoostRecipe,
        task: Task,
        data: Any,
        evaluations: Sequence[Any] = (),
        **options: Any,
    ) -> AdaBoostRounds:
        """The rounds of a fit on sets of rows; `options` are those of `FitJob.start`."""

    @abstractmethod
    def run(self, job: FitJob[TableT]) -> FitResult:
        """Train; the learners of a continued model come first."""

    @abstractmethod
    def model(self, result: FitResult, schema: Schema, task: Task, recorded: dict[str, Any]) -> Any:
        """The fitted model, whose file keeps the recorded parameters."""


class TreeStrategy(LearnerStrategy[Table | Dataset]):
    """Engine trees as learners.

    Parameters
    ----------
    params : mapping
        Checked parameters of the estimator.
    previous : estimator, optional
        Fitted AdaBoost estimator whose training is continued.
    """

    def __init__(self, params: Mapping[str, Any], previous: object = None) -> None:
        self._params = params
        self._old = None if previous is None else previous_model(previous)

    def read(
        self, kind: str, X: object, y: object, weight: object, groups: object
    ) -> tuple[EngineRows, Task]:
        """The training rows with target encodings, and their task."""
        schema = None if self._old is None else self._old.schema
        rows = read_rows((X, y, weight), self._params, schema, groups=groups)
        task = Task.of(kind, rows.y, None if self._old is None else self._old.classes)
        return target_encode_rows(rows, [task], schema, category_encoding(self._params)), task

    def read_validation(self, arguments: sets.EvaluationArguments, schema: Schema) -> EngineRows:
        """The rows of an evaluation set, checked."""
        continued = self._old is not None
        return arguments.rows(TableReader(schema, self._params["device"], continued))

    def recorded_bins(self, rows: EngineRows) -> dict[str, Any]:
        """The number of bins for the model file, by its parameter."""
        return {"max_bins": sets.recorded_bins(rows, BinParams.of(self._params))}

    def run(self, job: FitJob[Table | Dataset]) -> FitResult:
        """Train; the rows of a continued fit start with the scores of the old model."""
        scored = partial(self._scored, n_threads=job.settings.n_threads)
        train, validation = scored(job.train), tuple(map(scored, job.validation))
        return run_fit(replace(job, train=train, validation=validation, old=self._old))

    def model(
        self, result: FitResult, schema: Schema, task: Task, recorded: dict[str, Any]
    ) -> Predictor:
        """The fitted model."""
        return result.predictor(schema, task, recorded)

    def _scored(self, rows: EngineRows, n_threads: int) -> EngineRows:
        """The rows with the scores of the old model; its predictions by tree for R2."""
        if self._old is None:
            return rows
        assert isinstance(rows.source, Table)  # `training_rows` refuses a Dataset here
        scores = tree_values if self._old.combine == "median" else table_scores
        return rows.started(scores(self._old, rows.source, n_threads=n_threads))

    def start(
        self,
        recipe: AdaBoostRecipe,
        task: Task,
        data: sets.TrainingSet,
        evaluations: Sequence[sets.EvaluationSet] = (),
        *,
        workspace: core.Workspace | None = None,
        **options: int,
    ) -> AdaBoostRounds:
        """The rounds of a fit on binned sets."""
        scheme: Scheme = recipe.scheme
        if isinstance(scheme, R2Scheme):
            scheme = replace(scheme, centre=mean(data.target))
        tree = _tree_params(self._params, len(data.target.y))
        learners = TreeLearners(data, evaluations, tree, scheme, workspace=workspace, **options)
        return make_rounds(
            recipe,
            learners,
            data,
            evaluations,
            first_round=data.first_round,
            start_weights=None if self._old is None else self._old.tree_weights,
            **options,
        )


def _tree_params(params: Mapping[str, Any], n_rows: int) -> TreeParams:
    """The parameters of the trees, which have no penalties."""
    by_error = params.get("criterion") == "error"
    levels = CART_LEVELS if by_error else {name: param.default for name, param in LEVELS.items()}
    changes = {
        "criterion": "error" if by_error else "quadratic",
        "grow_policy": "depthwise" if params["max_leaves"] is None else "leafwise",
        # The row weights of every round have the mean 1.
        "min_child_weight": params["min_weight_fraction_leaf"] * n_rows,
    }
    return TreeParams.of({**params, **levels, **changes})


# ---- trees of one training ----


class TreeLearners(Learners):
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
        data: sets.TrainingSet,
        evaluations: Sequence[sets.EvaluationSet],
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
        """The votes of the last tree for the training rows, or for an evaluation set."""
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
        """The votes of a kept tree, times its factor, for some training rows."""
        votes = np.zeros((len(rows), self._width))
        table_rows = rows if self._data.rows is None else self._data.rows[rows]
        self._add(index, self._data.binned.codes, table_rows, votes)
        return votes

    def fitted(self, n_learners: int) -> Forest:
        """The first trees."""
        forest = grown_forest([self._grower], self._data.binned, [0])
        return forest.first(n_learners)

    def digests(self) -> dict[str, str]:
        """Return digests of the data of the fit, by name."""
        return sets.digests_of(self._data, self._evaluations)

    def state(self) -> dict[str, NDArray[Any]]:
        """The trees as arrays for a checkpoint."""
        return self._grower.trees()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the trees of a checkpoint; raise ValueError where they do not fit the bins."""
        restore_trees(self._grower, self._data.binned, state)

    def _add(
        self, tree: int, codes: AnyCodes, rows: NDArray[np.uint32] | None, votes: Floats
    ) -> None:
        self._grower.add_tree(tree, 1.0, codes, rows, votes, 0, self._n_threads)
