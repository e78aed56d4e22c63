"""Clones of an estimator of scikit-learn's kind as learners of one fit of AdaBoost.

The learners get X as the user gave it: there are no columns and bins of the engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from arboost.algorithms.adaboost.decision_trees import decision_tree_learners
from arboost.algorithms.adaboost.estimator_learners import (
    EstimatorLearners,
    check_learner,
    cover_of,
    table_of,
)
from arboost.algorithms.adaboost.estimator_model import EstimatorModel, MemberVotes
from arboost.algorithms.adaboost.rounds import AdaBoostRecipe, AdaBoostRounds, Learners
from arboost.algorithms.adaboost.schemes import make_scheme
from arboost.algorithms.adaboost.sources import LearnerSource, make_rounds
from arboost.algorithms.members.answers import member_name
from arboost.algorithms.members.tables import MemberTable, member_table, training_table
from arboost.data.feature_names import split_row_columns
from arboost.data.schema import Schema
from arboost.data.target import Task
from arboost.losses.metrics import Metric
from arboost.training.fit import (
    FitJob,
    Watch,
    find_metrics,
    watched_training,
)
from arboost.training.held_out import GivenSet, split_rows
from arboost.training.inputs import Rows, table_rows
from arboost.training.rounds import FitResult, Rounds, fit_result

__all__ = ["EstimatorRows", "EstimatorSource"]

EstimatorRows = Rows[MemberTable]


class EstimatorSource(LearnerSource[MemberTable]):
    """Clones of an estimator as learners.

    Parameters
    ----------
    estimator : estimator
        Its clones are fitted, and the estimator itself is not.
    previous : estimator, optional
        Fitted AdaBoost estimator whose training is continued.
    checkpoint : object
        Refused unless None, before any table is read.
    """

    def __init__(self, estimator: Any, previous: Any = None, checkpoint: object = None) -> None:
        self._started = time.monotonic()  # max_time includes the reading of the tables
        _check_checkpoint(estimator, checkpoint)
        self._estimator = estimator
        self._old = None if previous is None else _estimator_model(previous.model_)

    def read(
        self, kind: str, X: object, y: object, weight: object, groups: object
    ) -> tuple[EstimatorRows, Task]:
        """Return the training rows, checked, and their task."""
        old = self._old
        X, weight, row_columns = split_row_columns(X, weight, groups)
        table, y = training_table(X, y, None if old is None else old.schema)
        if row_columns:
            table = replace(table, schema=replace(table.schema, row_columns=row_columns))
        if table.n_rows == 0:  # without a schema, member_table says so itself
            raise ValueError("X has no rows. Pass at least one row to train on.")
        rows = table_rows(table, y, weight)
        return rows, Task.of(kind, rows.y, None if old is None else old.classes)

    def read_validation(self, given: GivenSet, schema: Schema) -> EstimatorRows:
        """Return the rows of an evaluation set, checked."""
        return given.rows(lambda X: member_table(X, schema))

    def start(self, recipe: AdaBoostRecipe, task: Task) -> Callable[..., Rounds]:
        """Return the callable that starts a training; raise ValueError for unsuitable ones."""
        votes = MemberVotes(recipe.scheme, task.classes)
        check_learner(self._estimator, votes, resample=recipe.resample)
        return partial(_start_clones, recipe, self._estimator, votes, self._old)

    def run(self, job: FitJob[MemberTable]) -> FitResult:
        """Train; there are no bins, no search for the number of rounds and no checkpoint."""
        settings, train = job.settings, self._scored(job.train)
        evaluations = tuple(map(self._scored, job.validation))
        if job.splits:
            train, held_out = split_rows(train, settings.splits, job.groups, stratify=job.stratify)
            evaluations = (*evaluations, held_out)
        metrics: tuple[Metric, ...] = ()
        if evaluations:
            metrics = find_metrics(settings.stopping.eval_metric, job.loss, settings.n_threads)
        rounds = job.start(train, evaluations, n_threads=settings.n_threads, seed=settings.seed)
        watch = Watch(job.n_rounds, settings.stopping, job.callbacks, self._started)
        (fitted,), monitor, _ = watched_training([rounds], watch, metrics)
        covers = np.full(len(fitted.forest), cover_of(train.target))
        fitted = replace(fitted, facts={**fitted.facts, "cover": covers})
        n_before = 0 if self._old is None else self._old.n_rounds
        return fit_result(fitted, monitor, train, n_before=n_before)

    def model(
        self, result: FitResult, schema: Schema, task: Task, recorded: dict[str, Any]
    ) -> EstimatorModel:
        """Return the fitted model; the members of a continued model come first."""
        scheme = make_scheme(recorded, task.n_classes)
        fitted, none = result.fitted, np.empty(0)
        model = EstimatorModel(
            members=fitted.forest if fitted.facts else (),  # none for a single class
            weights=fitted.facts.get("weight", none),
            covers=fitted.facts.get("cover", none),
            votes=MemberVotes(scheme, task.classes),
            schema=schema,
            link=fitted.link,
            params=recorded,
            combine=scheme.combine,
            provenance=result.provenance,
        )
        return model if self._old is None else model.after(self._old)

    def _scored(self, rows: EstimatorRows) -> EstimatorRows:
        """Return the rows with the scores of the old model; its predictions by member for R2."""
        old, X = self._old, rows.source.X
        if old is None:
            return rows
        return rows.started(old.predict_raw(X) if old.combine == "sum" else old.columns(X))


def _start_clones(
    recipe: AdaBoostRecipe,
    estimator: Any,
    votes: MemberVotes,
    old: EstimatorModel | None,
    data: EstimatorRows,
    evaluations: Sequence[EstimatorRows] = (),
    *,
    n_threads: int,
    seed: int,
) -> AdaBoostRounds:
    """Return the rounds of a fit of clones, or of the decision trees that they would be."""
    learners: Learners | None = decision_tree_learners(
        estimator,
        table_of(data),
        data.target,
        [table_of(rows) for rows in evaluations],
        votes,
        resample=recipe.resample,
        n_threads=n_threads,
        seed=seed,
    )
    if learners is None:
        learners = EstimatorLearners(estimator, data, evaluations, votes, seed=seed)
    return make_rounds(
        recipe,
        learners,
        data,
        evaluations,
        first_round=0 if old is None else old.n_rounds,
        start_weights=None if old is None else old.weights,
        n_threads=n_threads,
        seed=seed,
    )


def _estimator_model(model: object) -> EstimatorModel:
    """Return the model of the continued fit; raise ValueError where it is of engine trees."""
    if not isinstance(model, EstimatorModel):
        raise ValueError(
            "the learners that are kept are trees of the engine, but this fit has an estimator of "
            "its own, and all learners of a model must be of one kind. Use estimator=None, or "
            "train anew."
        )
    return model


def _check_checkpoint(estimator: Any, checkpoint: object) -> None:
    if checkpoint is not None:
        raise TypeError(
            f"checkpoint={checkpoint!r} is not allowed with estimator={member_name(estimator)}: a "
            "checkpoint holds trees of the engine, and these learners are Python objects. Leave "
            "out checkpoint; init_model or warm_start continue a fitted estimator."
        )
