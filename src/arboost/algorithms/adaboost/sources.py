"""Sources of learners for one fit of AdaBoost: engine trees here, estimators in their own module.

A source reads the arguments of ``fit``, runs the training loop on its learners, and builds the
model, so that `AdaBoost.fit` is the same for both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic

from arboost.algorithms.adaboost.class_rounds import ClassRounds
from arboost.algorithms.adaboost.r2_rounds import R2Rounds
from arboost.algorithms.adaboost.rounds import (
    AdaBoostRecipe,
    AdaBoostRounds,
    Learners,
    ScoredRows,
    ScoredSet,
)
from arboost.algorithms.adaboost.schemes import R2Scheme, Scheme
from arboost.algorithms.adaboost.tree_learners import TreeLearners
from arboost.algorithms.estimator import category_encoding, column_options
from arboost.algorithms.forests.cart import CART_LEVELS
from arboost.backend import core
from arboost.data.dataset import Dataset
from arboost.data.schema import Schema
from arboost.data.table import Table
from arboost.data.target import Task
from arboost.grow.grower import TreeParams
from arboost.losses.base import Floats, mean
from arboost.model.predict import table_scores, tree_values
from arboost.params.records import BinParams
from arboost.params.shared import LEVELS
from arboost.predictor import Predictor
from arboost.training.fit import FitJob, run_fit
from arboost.training.held_out import GivenSet
from arboost.training.inputs import (
    EngineRows,
    Rows,
    SourceT,
    target_encode_rows,
    training_rows,
)
from arboost.training.rounds import FitResult, Rounds
from arboost.training.sets import EvaluationSet, TrainingSet, recorded_bins
from arboost.training.streams import TableReader
from arboost.training.warm_start import previous_model

__all__ = ["LearnerSource", "TreeSource", "make_rounds"]


class LearnerSource(ABC, Generic[SourceT]):
    """Learners of one kind: the steps of a fit that depend on it."""

    @abstractmethod
    def read(
        self, kind: str, X: object, y: object, weight: object, groups: object
    ) -> tuple[Rows[SourceT], Task]:
        """Return the training rows, checked, and their task of the kind."""

    @abstractmethod
    def read_validation(self, given: GivenSet, schema: Schema) -> Rows[SourceT]:
        """Return the rows of an evaluation set, checked."""

    def recorded_bins(self, rows: Rows[SourceT]) -> dict[str, Any]:
        """Return the number of bins for the model file, by its parameter."""
        return {}

    @abstractmethod
    def start(self, recipe: AdaBoostRecipe, task: Task) -> Callable[..., Rounds]:
        """Return the callable that starts a training on sets of rows, as `FitJob` needs it."""

    @abstractmethod
    def run(self, job: FitJob[SourceT]) -> FitResult:
        """Train, continued from the model of this source where there is one."""

    @abstractmethod
    def model(self, result: FitResult, schema: Schema, task: Task, recorded: dict[str, Any]) -> Any:
        """Return the fitted model, whose file keeps the recorded parameters."""


class TreeSource(LearnerSource[Table | Dataset]):
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
        self._known = None if self._old is None else self._old.schema

    def read(
        self, kind: str, X: object, y: object, weight: object, groups: object
    ) -> tuple[EngineRows, Task]:
        """Return the training rows with target encodings, and their task."""
        rows = training_rows(
            X,
            y,
            weight,
            self._known,
            column_options(self._params),
            device=self._params["device"],
            groups=groups,
        )
        task = Task.of(kind, rows.y, None if self._old is None else self._old.classes)
        encoding = category_encoding(self._params, "mean")
        return target_encode_rows(rows, [task], self._known, encoding), task

    def read_validation(self, given: GivenSet, schema: Schema) -> EngineRows:
        """Return the rows of an evaluation set, checked."""
        continued = self._old is not None
        return given.rows(TableReader(schema, self._params["device"], continued))

    def recorded_bins(self, rows: EngineRows) -> dict[str, Any]:
        """Return the number of bins for the model file, by its parameter."""
        return {"max_bins": recorded_bins(rows, BinParams.of(self._params))}

    def start(self, recipe: AdaBoostRecipe, task: Task) -> Callable[..., Rounds]:
        """Return the callable that starts a training on binned sets."""
        weights = None if self._old is None else self._old.tree_weights
        least_share = self._params["min_weight_fraction_leaf"]
        return partial(_start_trees, recipe, _tree_params(self._params), least_share, weights)

    def run(self, job: FitJob[Table | Dataset]) -> FitResult:
        """Train; the rows of a continued fit start with the scores of the old model."""
        scored = partial(self._scored, n_threads=job.settings.n_threads)
        train, validation = scored(job.train), tuple(map(scored, job.validation))
        return run_fit(replace(job, train=train, validation=validation, old=self._old))

    def model(
        self, result: FitResult, schema: Schema, task: Task, recorded: dict[str, Any]
    ) -> Predictor:
        """Return the fitted model."""
        return result.predictor(schema, task, recorded)

    def _scored(self, rows: EngineRows, n_threads: int) -> EngineRows:
        """Return the rows with the scores of the old model; its predictions by tree for R2."""
        if self._old is None:
            return rows
        assert isinstance(rows.source, Table)  # `training_rows` refuses a Dataset here
        scores = tree_values if self._old.combine == "median" else table_scores
        return rows.started(scores(self._old, rows.source, n_threads=n_threads))


def make_rounds(
    recipe: AdaBoostRecipe,
    learners: Learners,
    data: ScoredRows,
    evaluations: Sequence[ScoredSet],
    *,
    first_round: int,
    start_weights: Floats | None,
    n_threads: int,
    seed: int,
) -> AdaBoostRounds:
    """Return the rounds of the recipe's scheme before the first one of this fit.

    Parameters
    ----------
    recipe, learners, data, evaluations, n_threads, seed
        As `AdaBoostRounds` takes them.
    first_round : int
        Number of rounds of the model whose training is continued.
    start_weights : float64 array of shape (first_round,), or None
        Its learner weights, for R2.
    """
    if isinstance(recipe.scheme, R2Scheme):
        return R2Rounds(
            recipe,
            learners,
            data,
            evaluations,
            start_weights=start_weights,
            n_threads=n_threads,
            seed=seed,
        )
    return ClassRounds(
        recipe,
        learners,
        data,
        evaluations,
        first_round=first_round,
        n_threads=n_threads,
        seed=seed,
    )


def _start_trees(
    recipe: AdaBoostRecipe,
    tree: TreeParams,
    least_share: float,
    start_weights: Floats | None,
    data: TrainingSet,
    evaluations: Sequence[EvaluationSet] = (),
    *,
    n_threads: int,
    seed: int,
    workspace: core.Workspace | None = None,
) -> AdaBoostRounds:
    """Return the rounds of a fit on binned sets.

    `least_share` is the share of the rows' weight that each side of a split must hold.
    """
    scheme: Scheme = recipe.scheme
    if isinstance(scheme, R2Scheme):
        scheme = replace(scheme, centre=mean(data.target))
    learners = TreeLearners(
        data,
        evaluations,
        # The row weights of every round have the mean 1.
        replace(tree, min_child_weight=least_share * len(data.target.y)),
        scheme,
        n_threads=n_threads,
        seed=seed,
        workspace=workspace,
    )
    return make_rounds(
        recipe,
        learners,
        data,
        evaluations,
        first_round=data.first_round,
        start_weights=start_weights,
        n_threads=n_threads,
        seed=seed,
    )


def _tree_params(params: Mapping[str, Any]) -> TreeParams:
    """Return the parameters of the trees, which have no penalties."""
    best_first = params["max_leaves"] is not None
    by_error = params.get("criterion") == "error"
    levels = CART_LEVELS if by_error else {name: param.default for name, param in LEVELS.items()}
    return TreeParams(
        criterion="error" if by_error else "quadratic",
        max_depth=params["max_depth"],
        max_leaves=params["max_leaves"],
        grow_policy="leafwise" if best_first else "depthwise",
        min_child_weight=0.0,
        min_samples_leaf=params["min_samples_leaf"],
        gamma=0.0,
        reg_lambda=0.0,
        reg_alpha=0.0,
        max_delta_step=0.0,
        tree_method=params["tree_method"],
        device=params["device"],
        **levels,
    )
