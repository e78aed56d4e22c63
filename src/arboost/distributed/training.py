"""Training of an estimator on a cluster: the fit, the workers' program, and the driver's side.

Every worker calls `fit` of the same estimator with its share of the rows, and gets the same model.
Callbacks, progress bar, warnings and checkpoint file are with the driver.
"""

from __future__ import annotations

import copy
import inspect
import os
import platform
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from arboost import errors
from arboost.backend import core
from arboost.data.cuda import check_device
from arboost.data.feature_names import offset_names
from arboost.data.memory import AUTO
from arboost.distributed.data import TableInput
from arboost.distributed.protocol import Listener
from arboost.distributed.recovery import FileRequest, RoundStateStore, WorkerCheckpoint
from arboost.distributed.worker import Program, WorkerContext
from arboost.progress import Bar, BarStep, steps_reported
from arboost.training.checkpoint import Checkpoint, read_bytes
from arboost.training.monitor import Round, callback_name, checked_callbacks, stopping_callback
from arboost.workers import Share, Traffic, Workers, run_collective
from arboost.write import write_file

TRAIN = "train"  # name of the training table

_FORWARDED = ("eval_names", "groups", "memory_limit", "offset", "qid")  # to `fit` of the estimator
_MEMORY_SHARE = 0.7  # of the memory that a worker has left
_LEAST_MEMORY = 64 << 20
_WITH_WEIGHT = 3  # members of a tuple of `eval_set`


def fit_on_cluster(
    estimator: Any,
    data: tuple[Any, Any, Any],
    read: Callable[[Any, Any, Any], TableInput],
    run: Callable[[Program, Mapping[str, Any], Listener], Any],
    *,
    n_votes: int = 0,
    **arguments: Any,
) -> tuple[Any, list[Traffic]]:
    """Train an estimator on a cluster; return it, and the traffic of each worker.

    Parameters
    ----------
    estimator : estimator of arboost
    data : tuple
        Training data, target and weight.
    read : callable
        Table of data, target and weight.
    run : callable
        Result of a program on the rows of tables by name, the training table first; its messages
        go to a listener.
    n_votes : int
        Features that each worker proposes for a node; 0: all features are searched.
    **arguments : Any
        Further arguments of `DistributedFit.fit`.
    """
    offset_columns(arguments["offset"])
    callbacks = checked_callbacks(arguments.get("callbacks", ()))
    eval_sets = _eval_sets(arguments["eval_set"])
    checkpoint = Checkpoint.of(arguments.get("checkpoint"))
    checked = {
        "callbacks": callbacks or None,
        "checkpoint": checkpoint,
        "eval_set": eval_sets or None,
    }
    used = _check_estimator(estimator, {**arguments, **checked}, n_votes)
    inputs, eval_tables = {TRAIN: read(*data)}, []
    for i, eval_set in enumerate(eval_sets):
        # The training data itself may be among them, for its learning curve.
        name = TRAIN if eval_set[0] is data[0] else f"validation_{i}"
        eval_tables.append(name)
        if name != TRAIN:
            inputs[name] = read(*eval_set)
    program = TrainingProgram(
        estimator=estimator,
        columns={name: (table.target, table.weight) for name, table in inputs.items()},
        options={name: used[name] for name in _FORWARDED if name in used},
        eval_tables=tuple(eval_tables),
        has_callbacks=bool(callbacks),
        checkpoint=checkpoint,
        n_votes=n_votes,
    )
    with TrainingListener(callbacks, estimator.verbose) as listener:
        result = run(program, {name: table.rows for name, table in inputs.items()}, listener)
    return finish_fit(estimator, result), result.traffic


def _eval_sets(eval_set: Any) -> list[tuple[Any, Any, Any]]:
    """Validation sets as (data, target, weight)."""
    if eval_set is None:
        return []
    sets = [eval_set] if isinstance(eval_set, tuple) else list(eval_set)
    for members in sets:
        if not isinstance(members, tuple) or len(members) not in (2, _WITH_WEIGHT):
            raise errors.InputTypeError(
                f"eval_set has a {type(members).__name__}, but must be a list of tuples "
                "(data, target) or (data, target, weight)."
            )
    return [(*members, None)[:_WITH_WEIGHT] for members in sets]


def offset_columns(offset: object) -> tuple[str, ...]:
    """Names of the columns of an offset; raise TypeError for anything but names."""
    names = offset_names(offset)
    if names == ():
        raise errors.InputTypeError(
            f"offset is a {type(offset).__name__}, but on a cluster it is the name of a column, or "
            "a list of names. Add the offset to the table as a column."
        )
    return names or ()


def _check_estimator(estimator: Any, arguments: Mapping[str, Any], n_votes: int) -> dict[str, Any]:
    """Arguments of `fit` that are not None; raise for those that the estimator does not take."""
    from arboost.estimators.estimator import EngineEstimator
    from arboost.estimators.gradient_boosting import GradientBoosting

    kind = type(estimator).__name__
    if not isinstance(estimator, EngineEstimator):
        raise errors.ParameterTypeError(
            f"estimator is a {kind}, which does not train on a cluster. Use a booster, forest, "
            "extra trees, decision tree or AdaBoost of arboost.",
            parameter="estimator",
        )
    accepted = inspect.signature(estimator.fit).parameters
    used = {name: value for name, value in arguments.items() if value is not None}
    for name in used:
        if name not in accepted:
            raise errors.InputTypeError(
                f"{name} is not allowed: {kind}.fit has no such argument. Leave it out."
            )
    if n_votes and not isinstance(estimator, GradientBoosting):
        # Trees of CART may need the sums of any feature.
        raise errors.ParameterError(
            f"voting={n_votes} is not allowed with a {kind}: it is for gradient boosting. Use "
            "voting=0.",
            parameter="voting",
        )
    return used


def finish_fit(estimator: Any, result: FittedState) -> Any:
    """Give an estimator the result of the program, and issue the warnings of the fit."""
    for message, category in result.warnings:
        errors.warn_caller(message, category)
    vars(estimator).update(result.attributes)
    return estimator


# ---- the program of the workers ----


def worker_device(workers: Workers) -> str:
    """Device of this worker: those that a host shows are given to its workers in turn, by rank.

    Processes with other values of ``CUDA_VISIBLE_DEVICES``, as Dask-CUDA sets them, see other
    devices first; each such value has its own turns.

    Raises
    ------
    DeviceError
        A worker has no device.
    """

    def visible() -> tuple[str, str | None, int]:
        check_device("cuda", "hist")
        chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
        return platform.node(), chosen, len(core.cuda_devices())

    host = run_collective(workers, visible)
    turn = workers.gather(host)[: workers.rank].count(host)
    return f"cuda:{turn % host[-1]}"


@dataclass(frozen=True)
class TrainingProgram:
    """Training of an estimator by all workers at once.

    Attributes
    ----------
    estimator : estimator of arboost
    columns : mapping of str to tuple
        Names of the target and weight columns of each table; None where parts are tuples.
    options : mapping of str to Any
        Further arguments of `fit`, without those that are None.
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

    def __call__(self, tables: Mapping[str, Share], context: WorkerContext) -> FittedState:
        """Fit the estimator on the shares of this worker."""
        workers = tables[TRAIN].workers
        workers.n_votes = self.n_votes
        estimator = copy.copy(self.estimator)
        if estimator.n_jobs is None or estimator.n_jobs < 0:
            estimator.n_jobs = context.n_threads
        if estimator.device == "cuda":
            estimator.device = worker_device(workers)
        target, weight = self.columns[TRAIN]
        options = dict(self.options)
        if context.memory_limit is not None and options.get("memory_limit", AUTO) == AUTO:
            options["memory_limit"] = max(_LEAST_MEMORY, int(_MEMORY_SHARE * context.memory_limit))
        if self.eval_tables:
            queries = [options["qid"]] if "qid" in options else []
            options["eval_set"] = [
                (tables[name], self.columns[name][0], *queries, self.columns[name][1])
                for name in self.eval_tables
            ]
        accepted = inspect.signature(estimator.fit).parameters
        if "callbacks" in accepted:
            options["callbacks"] = [_CallbackRelay(context, tables, asks=self.has_callbacks)]
        if "checkpoint" in accepted:
            options["checkpoint"] = self._checkpoint(context, workers)
        with errors.warnings_collected() as warned, steps_reported(context.show):
            estimator.fit(tables[TRAIN], target, weight, **options)
        params = estimator.get_params(deep=False)
        fitted = {name: value for name, value in vars(estimator).items() if name not in params}
        return FittedState(fitted, warned, workers.gather(workers.traffic))

    def _checkpoint(self, context: WorkerContext, workers: Workers) -> WorkerCheckpoint:
        file = self.checkpoint
        return WorkerCheckpoint(
            path="fit" if file is None else os.fsdecode(file.path),
            every=1 if file is None else file.every,
            states=RoundStateStore(context),
            context=context,
            workers=workers,
            has_file=file is not None,
        )


@dataclass(frozen=True)
class FittedState:
    """Result of a fit on workers: attributes, warnings and their categories, traffic by rank."""

    attributes: dict[str, Any]
    warnings: list[tuple[str, type[Warning]]]
    traffic: list[Traffic]


class _CallbackRelay:
    """Callback of all workers that asks the driver's callbacks after every round."""

    def __init__(self, context: WorkerContext, tables: Mapping[str, Share], *, asks: bool) -> None:
        self._context, self._tables, self._asks = context, tables, asks
        self._workers = tables[TRAIN].workers
        self.__name__ = "callback"

    def __call__(self, done: Round) -> bool:
        self._context.check()
        for table in self._tables.values():  # all of them have been read by now
            if hasattr(table.X, "forget"):
                table.X.forget()
        if not self._asks:
            return False
        # Read-only mappings cannot be sent.
        results = {name: dict(scores) for name, scores in done.results.items()}
        plain = replace(done, results=results)
        name = self._context.ask(plain) if self._context.rank == 0 else None
        name = self._workers.broadcast(name)
        self.__name__ = name or self.__name__
        return name is not None


# ---- the driver's side ----


class TrainingListener:
    """The driver's side of the program: callbacks, progress bar, checkpoint file.

    Parameters
    ----------
    callbacks : sequence of callable
    verbose : int
        Whether to draw a progress bar.
    """

    def __init__(self, callbacks: Sequence[Callable[[Round], object]], verbose: int) -> None:
        self._callbacks, self._verbose = callbacks, verbose
        self._label: str | None = None
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: object = None, error: BaseException | None = None, trace: object = None
    ) -> None:
        if self._bar is not None:
            self._bar.__exit__(kind, error, trace)
            self._bar = None

    def show(self, message: BarStep) -> None:
        """Draw a step of a worker's progress bar."""
        if self._bar is None or message.label != self._label:
            self.__exit__()
            self._label = message.label
            self._bar = Bar(message.total, message.label, visible=self._verbose > 0)
        self._bar.show(message.done, message.results)

    def answer(self, message: Round | FileRequest) -> object:
        """Call the callbacks and return the name of the first that stops; or do file work."""
        if isinstance(message, FileRequest):
            return self._handle_file(message)
        stopping = stopping_callback(self._callbacks, message)
        return None if stopping is None else callback_name(stopping)

    def _handle_file(self, request: FileRequest) -> bytes | None:
        if request.removes:
            Checkpoint(request.path).remove()
        elif request.content is not None:
            write_file(request.path, request.content)
        else:
            return read_bytes(request.path)
        return None
