"""One fit whose learners are estimators of scikit-learn's kind.

It is what `TreeEnsemble.fit` and `trainer.run` are for trees, without tables of columns and bins: X
goes to the learners as it was given.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from arboost.algorithms.adaboost.class_rounds import VoteRounds
from arboost.algorithms.adaboost.estimator_learners import (
    MemberLearners,
    MemberSet,
    check_learner,
    cover_of,
)
from arboost.algorithms.adaboost.estimator_model import Ballot, MemberModel
from arboost.algorithms.adaboost.r2_rounds import AmountRounds
from arboost.algorithms.adaboost.rounds import WeightRecipe
from arboost.algorithms.adaboost.schemes import Amounts, Votes
from arboost.algorithms.members.answers import member_name
from arboost.algorithms.members.tables import MemberTable, member_table
from arboost.backend import threads
from arboost.data.schema import Schema
from arboost.data.table import Table
from arboost.data.target import Task
from arboost.losses import Loss
from arboost.losses.base import Floats
from arboost.losses.metrics import Metric
from arboost.model.forest import Forest
from arboost.training.fit import Outcome, find_metrics, make_monitor, spread
from arboost.training.held_out import check_validation, split_rows
from arboost.training.inputs import Part, Rows, has_validation, table_rows, weighted_target
from arboost.training.loop import train
from arboost.training.monitor import Monitor, Round, check_callbacks
from arboost.training.progress import Bar
from arboost.training.rounds import Fitted
from arboost.training.sets import VALIDATION

__all__ = ["Host", "fit_members"]


class Host(Protocol):
    """What a fit asks of the estimator that users call."""

    estimator: Any

    def _params(self) -> dict[str, Any]: ...
    def _task(self, y: NDArray[Any], classes: NDArray[Any] | None) -> Task: ...
    def _same_task(self, task: Task, y_val: NDArray[Any]) -> Floats: ...
    def _resolve(
        self, params: dict[str, Any], n_rows: int, *, has_validation: bool, old: Any = None
    ) -> dict[str, Any]: ...
    def _record(self, params: dict[str, Any]) -> dict[str, Any]: ...
    def _factors(
        self, params: dict[str, Any], task: Task, weight: Floats | None
    ) -> Floats | None: ...
    def _loss(self, params: dict[str, Any], task: Task) -> Loss: ...
    def _recipe(self, params: dict[str, Any], loss: Loss, schema: Schema) -> Any: ...
    def _check_continues(
        self, old: Any, task: Task, params: dict[str, Any], loss: Loss
    ) -> None: ...
    def _keep(
        self,
        outcome: Outcome,
        schema: Schema,
        task: Task,
        recorded: dict[str, Any],
        init_model: object = None,
    ) -> None: ...


def fit_members(
    host: Host,
    X: object,
    y: object,
    sample_weight: object = None,
    *,
    X_val: object = None,
    y_val: object = None,
    sample_weight_val: object = None,
    groups: object = None,
    init_model: object = None,
    callbacks: Iterable[Callable[[Round], object]] = (),
    checkpoint: object = None,
) -> None:
    """Train clones of ``host.estimator``, and let the host keep what comes of it.

    The arguments are those of `TreeEnsemble.fit`; `init_model` is a fitted estimator of the host's
    class.
    """
    started = time.monotonic()
    _check_checkpoint(host.estimator, checkpoint)
    given = host._params()
    old = _old_model(init_model)
    table = member_table(X, None if old is None else old.schema)
    if table.n_rows == 0:  # without a schema, member_table says so itself
        raise ValueError("X has no rows. Pass at least one row to train on.")
    rows = _rows(table, y, sample_weight)
    task = host._task(rows.y, None if old is None else old.classes)
    held_out = None
    if has_validation(X_val, y_val, sample_weight_val):
        held_out = _validation_rows(X_val, y_val, sample_weight_val, table.schema)
    validates = held_out is not None
    params = host._resolve(given, len(rows.y), has_validation=validates, old=old)
    check_validation(params, has_validation=validates, groups=groups)
    loss = host._loss(params, task)
    recipe: WeightRecipe = host._recipe(params, loss, table.schema)
    fit = _Fit(
        estimator=host.estimator,
        recipe=recipe,
        params=params,
        recorded=host._record(params | {"n_estimators": given["n_estimators"]}),
        ballot=Ballot(recipe.scheme, task.classes),
        schema=table.schema,
        old=old,
        callbacks=tuple(callbacks),
        started=started,
    )
    if old is not None:
        host._check_continues(old, task, params, loss)
    if task.is_constant:
        outcome = fit.of_one_class()
    else:
        factors = host._factors(params, task, rows.weight)
        training = fit.part(rows, task.y, factors)
        validation = None
        if held_out is not None:
            validation = fit.part(held_out, host._same_task(task, held_out.y), factors)
        elif params["n_iter_no_change"] is not None:
            training, validation = split_rows(training, params, task.kind, groups)
        outcome = fit.run(training, validation)
    host._keep(outcome, table.schema, task, fit.recorded, init_model)


@dataclass(frozen=True, kw_only=True)
class _Fit:
    """One fit: what is trained, how, and what it goes on from."""

    estimator: Any
    recipe: WeightRecipe
    params: dict[str, Any]
    recorded: dict[str, Any]
    ballot: Ballot
    schema: Schema
    old: MemberModel | None
    callbacks: tuple[Callable[[Round], object], ...]
    started: float

    def of_one_class(self) -> Outcome:
        """Return the model of a single class, which needs no learner."""
        outcome = Outcome.of_one_class()
        none = np.empty(0)
        return replace(outcome, model=self._model((), none, none, outcome.link))

    def part(self, rows: Rows, y: Floats, factors: Floats | None) -> Part:
        """Return rows with their target and weights, and what the old model says of them."""
        start = None
        if self.old is not None:
            X = _table(rows.source).X
            is_median = self.old.combine == "median"
            start = self.old.columns(X) if is_median else self.old.predict_raw(X)
            start = start if rows.kept is None else start[rows.kept]
        return Part(rows.source, rows.kept, weighted_target(y, rows.weight, factors), start)

    def run(self, training: Part, validation: Part | None) -> Outcome:
        """Train, watched as all fits are."""
        params, recipe = self.params, self.recipe
        check_callbacks(self.callbacks)
        check_learner(self.estimator, self.ballot, resample=recipe.resample)
        n_threads = threads(params["n_jobs"])
        metrics: tuple[Metric, ...] = ()
        if validation is not None:
            metrics = find_metrics(params["eval_metric"], recipe.loss, n_threads)
        with Bar(recipe.n_estimators, "fitting", visible=params["verbose"] > 0) as bar:
            monitor = make_monitor(bar, params, metrics, self.callbacks, self.started)
            fitted = train(self._rounds(training, validation, n_threads), monitor, metrics)
        return self._outcome(fitted, monitor, training)

    def _rounds(
        self, training: Part, validation: Part | None, n_threads: int
    ) -> VoteRounds | AmountRounds:
        seed, old = self.params["random_state"], self.old
        data = _member_set("training", training)
        evaluations = () if validation is None else (_member_set(VALIDATION, validation),)
        learners = MemberLearners(self.estimator, data, evaluations, self.ballot, seed=seed)
        if isinstance(self.recipe.scheme, Votes):
            return VoteRounds(
                self.recipe,
                learners,
                data,
                evaluations,
                first_round=0 if old is None else old.n_rounds,
                n_threads=n_threads,
                seed=seed,
            )
        return AmountRounds(
            self.recipe,
            learners,
            data,
            evaluations,
            start_weights=None if old is None else old.weights,
            n_threads=n_threads,
            seed=seed,
        )

    def _outcome(self, fitted: Fitted, monitor: Monitor, training: Part) -> Outcome:
        members, weights = fitted.forest, fitted.facts["weight"]
        covers = np.full(len(members), cover_of(training.target))
        best = monitor.best_index
        old = self.old
        if old is not None:
            members = (*old.members, *members)
            weights = np.append(old.weights, weights)
            covers = np.append(old.covers, covers)
            best = None if best is None else old.n_rounds + best
        found = fitted.out_of_bag
        link = self.recipe.loss.link
        return Outcome(
            forest=Forest.empty(),
            base_score=fitted.base_score,
            link=link,
            trees_per_round=1,
            best_index=best,
            best_score=monitor.best_score,
            history=monitor.history,
            stop_reason=monitor.stop_reason,
            facts=fitted.facts,
            out_of_bag=None if found is None else spread(found, training),
            model=self._model(members, weights, covers, link),
        )

    def _model(
        self, members: tuple[Any, ...], weights: Floats, covers: Floats, link: str
    ) -> MemberModel:
        return MemberModel(
            members=members,
            weights=weights,
            covers=covers,
            ballot=self.ballot,
            schema=self.schema,
            link=link,
            params=self.recorded,
            combine="median" if isinstance(self.recipe.scheme, Amounts) else "sum",
        )


def _old_model(init_model: Any) -> MemberModel | None:
    """Return the model of an estimator whose training goes on."""
    if init_model is None:
        return None
    model = init_model.model_
    if not isinstance(model, MemberModel):
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
            "out checkpoint; init_model or warm_start go on from a fitted estimator."
        )


def _rows(table: MemberTable, y: object, sample_weight: object, suffix: str = "") -> Rows:
    # All that reads `Rows` and `Part` on the way to the learners is their number of rows.
    return table_rows(cast(Table, table), y, sample_weight, suffix)


def _validation_rows(
    X_val: object, y_val: object, sample_weight_val: object, schema: Schema
) -> Rows:
    table = member_table(X_val, schema, caller="X_val")
    if table.n_rows == 0:
        raise ValueError("X_val has no rows. Pass rows to validate on, or leave out X_val.")
    return _rows(table, y_val, sample_weight_val, "_val")


def _table(source: object) -> MemberTable:
    return cast(MemberTable, source)


def _member_set(name: str, part: Part) -> MemberSet:
    table = _table(part.source)
    X = table.X if part.rows is None else table.take(part.rows).X
    return MemberSet(name, X, part.target, part.start)
