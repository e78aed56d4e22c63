"""Training on a cluster: the fit, the program of the workers, and the driver's side.

Every worker calls `fit` of the same estimator with its share of the rows, and gets the same model.
Callbacks, progress bar, warnings and checkpoint file are with the driver.
"""

from __future__ import annotations

import copy
import inspect
import os
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from arboost.data.feature_names import offset_names
from arboost.data.memory import AUTO
from arboost.distributed.protocol import Listener, Program, WorkerContext
from arboost.distributed.recovery import FileRequest, RoundStateStore, WorkerCheckpoint
from arboost.errors import (
    InputTypeError,
    ParameterError,
    ParameterTypeError,
    warn_caller,
    warnings_collected,
)
from arboost.progress import Bar, BarStep, steps_reported
from arboost.training.checkpoint import Checkpoint, read_bytes
from arboost.training.monitor import (
    Round,
    callback_name,
    checked_callbacks,
    stopping_callback,
)
from arboost.workers import Share, Traffic, Workers
from arboost.write import write_file

FORWARDED_ARGUMENTS = (
    "eval_names",
    "groups",
    "memory_limit",
    "offset",
)  # arguments of `fit` as they are


class ClusterTable(Protocol):
    """A table of a cluster, and the names of the columns that are no features."""

    @property
    def target(self) -> Hashable | None: ...  # noqa: D102

    @property
    def weight(self) -> Hashable | None: ...  # noqa: D102


Input = TypeVar("Input", bound=ClusterTable)


def fit_on_cluster(
    estimator: Any,
    data: tuple[Any, Any, Any],
    given: Mapping[str, Any],
    read: Callable[[Any, Any, Any], Input],
    run: Callable[[Program, Mapping[str, Input], Listener], FittedState],
    *,
    n_votes: int = 0,
) -> tuple[Any, list[Traffic]]:
    """Train an estimator on a cluster; return it, and the traffic of each worker.

    Parameters
    ----------
    estimator : estimator of arboost
    data : tuple
        Training data, target and weight.
    given : mapping of str to Any
        Further arguments of `DistributedFit.fit` by name.
    read : callable
        Returns the table of data, target and weight.
    run : callable
        Returns the result of a program on tables, whose messages go to a listener.
    n_votes : int
        Features that each worker proposes for a node; 0: all features are searched.
    """
    offset_columns(given["offset"])
    callbacks = checked_callbacks(given["callbacks"])
    evaluated = eval_sets(given["eval_set"])
    checkpoint = Checkpoint.of(given["checkpoint"])
    checked = {
        "callbacks": callbacks or None,
        "checkpoint": checkpoint,
        "eval_set": evaluated or None,
    }
    used = check_estimator(estimator, {**given, **checked})
    _check_voting(estimator, n_votes)
    inputs = {TRAIN: read(*data)}
    names = []
    for i, one in enumerate(evaluated):
        # The training data itself may be among them, for its learning curve.
        names.append(TRAIN if one[0] is data[0] else f"validation_{i}")
        if one[0] is not data[0]:
            inputs[names[-1]] = read(*one)
    listener = TrainingListener(callbacks, estimator.verbose)
    program = TrainingProgram(
        estimator=estimator,
        columns={name: (one.target, one.weight) for name, one in inputs.items()},
        options={name: used[name] for name in FORWARDED_ARGUMENTS if name in used},
        eval_tables=tuple(names),
        has_callbacks=bool(callbacks),
        checkpoint=checkpoint,
        n_votes=n_votes,
    )
    result = run(program, inputs, listener)
    listener.close()
    return finish_fit(estimator, result), result.traffic


def _check_voting(estimator: Any, n_votes: int) -> None:
    """Raise ValueError for trees of CART, which may need the sums of any feature."""
    from arboost.estimators.gradient_boosting import GradientBoosting

    if n_votes and not isinstance(estimator, GradientBoosting):
        raise ParameterError(
            f"voting={n_votes} is not allowed with a {type(estimator).__name__}: it is for "
            "gradient boosting. Use voting=0.",
            parameter="voting",
        )


TRAIN = "train"  # name of the training table
_MEMORY_SHARE = 0.7  # of the memory that a worker has left
_LEAST_MEMORY = 64 << 20

_WITH_WEIGHT = 3  # members of a tuple of `eval_set`


@dataclass(frozen=True)
class TrainingProgram:
    """Training of an estimator by all workers at once.

    Attributes
    ----------
    estimator : estimator of arboost
    columns : mapping of str to tuple
        Names of the target and weight columns of each table; None where parts are tuples.
    options : mapping of str to Any
        Further arguments of `fit`, as `check_estimator` returns them.
    eval_tables : tuple of str
        Names of the tables that are evaluation sets.
    has_callbacks : bool
    checkpoint : Checkpoint or None
    n_votes : int
        Features that each worker proposes for a node; 0: all features are searched.
    """

    estimator: Any
    columns: Mapping[str, tuple[Hashable | None, Hashable | None]]
    options: Mapping[str, Any]
    eval_tables: tuple[str, ...] = ()
    has_callbacks: bool = False
    checkpoint: Checkpoint | None = None
    n_votes: int = 0

    def __call__(self, tables: Mapping[str, Share], desk: WorkerContext) -> FittedState:
        """Return the fitted attributes of the estimator, and the warnings of its fit."""
        workers = tables[TRAIN].workers
        workers.n_votes = self.n_votes
        estimator = copy.copy(self.estimator)
        if estimator.n_jobs is None or estimator.n_jobs < 0:
            estimator.n_jobs = desk.n_threads
        target, weight = self.columns[TRAIN]
        options = dict(self.options)
        if desk.memory is not None and options.get("memory_limit", AUTO) == AUTO:
            options["memory_limit"] = max(_LEAST_MEMORY, int(_MEMORY_SHARE * desk.memory))
        if self.eval_tables:
            options["eval_set"] = [(tables[name], *self.columns[name]) for name in self.eval_tables]
        accepted = inspect.signature(estimator.fit).parameters
        if "callbacks" in accepted:
            options["callbacks"] = [_CallbackRelay(desk, tables, asks=self.has_callbacks)]
        if "checkpoint" in accepted:
            options["checkpoint"] = self._checkpoint(desk, workers)
        with warnings_collected() as warned, steps_reported(desk.show):
            estimator.fit(tables[TRAIN], target, weight, **options)
        params = estimator.get_params(deep=False)
        fitted = {name: value for name, value in vars(estimator).items() if name not in params}
        return FittedState(fitted, warned, workers.gather(workers.traffic))

    def _checkpoint(self, desk: WorkerContext, workers: Workers) -> WorkerCheckpoint:
        given = self.checkpoint
        resumed: Any = desk.resumed
        return WorkerCheckpoint(
            path="fit" if given is None else os.fsdecode(given.path),
            every=1 if given is None else given.every,
            book=RoundStateStore(desk.kept, resumed),
            desk=desk,
            workers=workers,
            has_file=given is not None,
        )


@dataclass(frozen=True)
class FittedState:
    """Result of a fit on workers: attributes, warnings and their categories, traffic by rank."""

    attributes: dict[str, Any]
    warnings: list[tuple[str, type[Warning]]]
    traffic: list[Traffic]


class _CallbackRelay:
    """Callback of all workers that asks the client's callbacks after every round."""

    def __init__(self, desk: WorkerContext, tables: Mapping[str, Share], *, asks: bool) -> None:
        self._desk, self._tables, self._asks = desk, tables, asks
        self._workers = tables[TRAIN].workers
        self.__name__ = "callback"

    def __call__(self, done: Round) -> bool:
        self._desk.check()
        for table in self._tables.values():  # all of them have been read by now
            if hasattr(table.X, "forget"):
                table.X.forget()
        if not self._asks:
            return False
        # Read-only mappings cannot be sent.
        plain = replace(done, results={name: dict(of) for name, of in done.results.items()})
        name = self._desk.ask(plain) if self._desk.rank == 0 else None
        name = self._workers.broadcast(name)
        self.__name__ = name or self.__name__
        return name is not None


class TrainingListener:
    """The client's side of the program: callbacks, progress bar, checkpoint file.

    Parameters
    ----------
    callbacks : iterable of callable
    verbose : int
        Whether to draw a progress bar.
    """

    def __init__(self, callbacks: Iterable[Callable[[Round], object]], verbose: int) -> None:
        self._callbacks = checked_callbacks(callbacks)
        self._verbose = verbose
        self._label: str | None = None
        self._bar: Bar | None = None

    def shown(self, message: BarStep) -> None:
        """Draw a step of a worker's progress bar."""
        if self._bar is None or message.label != self._label:
            self.close()
            self._label = message.label
            self._bar = Bar(message.total, message.label, visible=self._verbose > 0)
        self._bar.show(message.done, message.results)

    def answer(self, message: Round | FileRequest) -> object:
        """Call the callbacks and return the name of the first that stops; or do file work."""
        if isinstance(message, FileRequest):
            return self._file(message)
        stopping = stopping_callback(self._callbacks, message)
        return None if stopping is None else callback_name(stopping)

    def close(self) -> None:
        """Finish the progress bar."""
        if self._bar is not None:
            self._bar.__exit__(None, None, None)
            self._bar = None

    def _file(self, request: FileRequest) -> bytes | None:
        if request.removes:
            Checkpoint(request.path).remove()
        elif request.content is not None:
            write_file(request.path, request.content)
        else:
            return read_bytes(request.path)
        return None


def check_estimator(estimator: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `fit` that are not None; raise where the estimator takes none such.

    Parameters
    ----------
    estimator : object
    given : mapping of str to Any
        Arguments by name.
    """
    from arboost.estimators.estimator import EngineEstimator

    if not isinstance(estimator, EngineEstimator):
        raise ParameterTypeError(
            f"estimator is a {type(estimator).__name__}, which does not train on a cluster. Use a "
            "booster, forest, extra trees, decision tree or AdaBoost of arboost.",
            parameter="estimator",
        )
    accepted = inspect.signature(estimator.fit).parameters
    used = {name: value for name, value in given.items() if value is not None}
    for name in used:
        if name not in accepted:
            raise InputTypeError(
                f"{name} is not allowed: {type(estimator).__name__}.fit has no such argument. "
                "Leave it out."
            )
    return used


def eval_sets(eval_set: Any) -> list[tuple[Any, Any, Any]]:
    """Return validation sets as (data, target, weight)."""
    if eval_set is None:
        return []
    sets = [eval_set] if isinstance(eval_set, tuple) else list(eval_set)
    for one in sets:
        if not isinstance(one, tuple) or len(one) not in (2, _WITH_WEIGHT):
            raise InputTypeError(
                f"eval_set has a {type(one).__name__}, but must be a list of tuples (data, target) "
                "or (data, target, weight)."
            )
    return [(*one, None)[:_WITH_WEIGHT] for one in sets]


def offset_columns(offset: object) -> tuple[str, ...]:
    """Return the names of the columns of an offset; raise TypeError for anything but names."""
    names = offset_names(offset)
    if names == ():
        raise InputTypeError(
            f"offset is a {type(offset).__name__}, but on a cluster it is the name of a column, or "
            "a list of names. Add the offset to the table as a column."
        )
    return names or ()


def finish_fit(estimator: Any, result: FittedState) -> Any:
    """Return the estimator with the result of the program, and issue the warnings of the fit."""
    for message, category in result.warnings:
        warn_caller(message, category)
    vars(estimator).update(result.attributes)
    return estimator
