"""One fit around the training loop: bins, held-out rows, monitor, continued training."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self

from arboost.backend import core, threads
from arboost.data.bins import Binned
from arboost.data.dataset import Dataset
from arboost.data.table import Table
from arboost.errors import InputTypeError, ParameterError, warn_caller, warn_once
from arboost.losses.base import Loss
from arboost.losses.metrics import Metric, find_metrics
from arboost.models.model import Model
from arboost.models.prediction import table_scores
from arboost.models.predictor import load
from arboost.params.auto import AUTO, SEARCH_FOLDS, RoundSearch
from arboost.params.records import BinParams, StoppingParams, ValidationParams
from arboost.progress import Bar
from arboost.training import sets as row_sets
from arboost.training.checkpoint import Checkpoint, CheckpointWriter, fingerprint
from arboost.training.inputs import EngineRows, Rows, TableT
from arboost.training.loop import FitResult, Fitted, Rounds, fit_result, run_training_loop
from arboost.training.monitor import Callback, Monitor, Results
from arboost.training.splits import Split


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """Parameters of a fit that its algorithm does not read.

    Attributes
    ----------
    bins : BinParams
    stopping : StoppingParams
    splits : ValidationParams
        Choice of held-out rows.
    seed : int
    n_threads : int
    """

    bins: BinParams
    stopping: StoppingParams
    splits: ValidationParams
    seed: int
    n_threads: int

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Self:
        """The settings in the checked parameters of a booster."""
        return cls(
            bins=BinParams.of(params),
            stopping=StoppingParams.of(params),
            splits=ValidationParams.of(params),
            seed=params["random_state"],
            n_threads=threads(params["n_jobs"]),
        )


@dataclass(frozen=True)
class Search:
    """Search for the number of rounds: its limits, and the start of its training."""

    plan: RoundSearch
    start: Callable[..., Rounds]


@dataclass(frozen=True, kw_only=True)
class FitJob(Generic[TableT]):
    """Everything that one fit needs.

    Attributes
    ----------
    loss : Loss
        Loss; the metric of the validation rows where `settings` names none.
    start : callable
        Starts a training: called with a training set, evaluation sets, and by name n_threads, seed
        and workspace, it returns `Rounds`.
    n_rounds : int
        Largest number of rounds.
    settings : FitSettings
    record : dict
        Parameters that can change the model, as its file keeps them.
    train : Rows
    validation : tuple of Rows
        Evaluation sets; the last one stops the fit early.
    splits : bool
        Whether early stopping takes held-out rows of the training rows, as the last set.
    groups : array or None
        Group of each row of the source.
    stratify : bool
        Whether held-out rows keep the shares of the classes.
    search : Search or None
        Search for the number of rounds on held-out rows, before all rows train the model.
    old : Model or None
        Model whose training is continued.
    callbacks : tuple of callables
    checkpoint : path, Checkpoint or None
    """

    loss: Loss
    start: Callable[..., Rounds]
    n_rounds: int
    settings: FitSettings
    record: dict[str, Any]
    train: Rows[TableT]
    validation: tuple[Rows[TableT], ...] = ()
    splits: bool = False
    groups: object = None
    stratify: bool = False
    search: Search | None = None
    old: Model | None = None
    callbacks: tuple[Callback, ...] = ()
    checkpoint: object = None

    @property
    def splitter(self) -> row_sets.RowSplitter[TableT]:
        """Splits of the training rows."""
        return row_sets.RowSplitter(self.train, self.settings.splits, self.groups, self.stratify)

    @property
    def n_before(self) -> int:
        """Number of rounds of the model whose training is continued; 0 without one."""
        return 0 if self.old is None else self.old.n_rounds


EngineJob = FitJob[Table | Dataset]


def run_fit(job: EngineJob) -> FitResult:
    """Train; a search for the number of rounds, where there is one, comes first."""
    started = time.monotonic()
    checkpoint = Checkpoint.of(job.checkpoint)
    if job.search is not None:
        return _search_and_fit(job, job.search, checkpoint, started)
    settings, train, validation = job.settings, job.train, job.validation
    if job.splits:
        train, held_out = job.splitter.divide()
        validation = (*validation, held_out)
    binned = row_sets.bin_rows(train, settings.bins, settings.n_threads)
    sets = [row_sets.build_sets(train, validation, binned, settings.n_threads)]
    options = LoopOptions(job.n_rounds, settings.stopping, job.callbacks, started)
    fitted, monitor = _train(job, sets, options, checkpoint)
    return fit_result(fitted, monitor, train, n_before=job.n_before)


def _search_and_fit(
    job: EngineJob, search: Search, checkpoint: Checkpoint | None, started: float
) -> FitResult:
    """Find the number of rounds on held-out rows, then train on all rows."""
    splits = job.splitter.search_splits(search.plan.n_folds)
    binned = row_sets.bin_rows(job.train, job.settings.bins, job.settings.n_threads)
    monitor = _search_rounds(job, search, binned, splits, started)
    if search.plan.is_early(monitor.best_index):
        if len(splits) == 1:
            monitor = _second_search(job, search, binned, monitor, started)
        elif _has_uneven_rows(job):
            _warn_early_stop(search.plan.fit_rounds(monitor.best_index), f"{len(splits)} splits")
    sets = [row_sets.build_sets(job.train, job.validation, binned, job.settings.n_threads)]
    stopping = replace(job.settings.stopping, n_iter_no_change=None)
    n_rounds = search.plan.fit_rounds(monitor.best_index)
    options = LoopOptions(n_rounds, stopping, job.callbacks, started)
    fitted, final = _train(job, sets, options, checkpoint)
    search_checkpoint = _search_checkpoint(job)
    if search_checkpoint is not None:
        search_checkpoint.remove()
    return fit_result(fitted, final, job.train, n_before=job.n_before, search=monitor)


def _second_search(
    job: EngineJob, search: Search, binned: Binned, first: Monitor, started: float
) -> Monitor:
    """Search on other held-out rows; return the search that decides.

    One split of few or unequally weighted rows can end in the first rounds by chance. Where the
    means over other splits do so, too, the first answer stands.
    """
    splits = job.splitter.other_splits(SEARCH_FOLDS)
    second = _search_rounds(job, search, binned, splits, started)
    agrees = search.plan.is_early(second.best_index)
    rounds = [search.plan.fit_rounds(monitor.best_index) for monitor in (first, second)]
    decides = first if agrees else second
    if not _has_uneven_rows(job):
        return decides  # chance, and nothing that the user could change
    if agrees:
        _warn_early_stop(rounds[0], f"one split, and in a second search on {len(splits)} others")
    else:
        warn_once(
            "The held-out rows of the search for the number of rounds scored best after "
            f"{rounds[0]} rounds, and those of {len(splits)} other splits after {rounds[1]}, which "
            "the model has: scores of held-out rows are noisy here, because of unequal weights, "
            "few groups or few rows. Set n_estimators to fix the number."
        )
    return decides


def _has_uneven_rows(job: EngineJob) -> bool:
    """Whether rows have weights, groups or an order, which make scores of held-out rows noisy."""
    return job.train.weight is not None or job.settings.splits.validation_split != "random"


def _warn_early_stop(rounds: int, splits: str) -> None:
    warn_once(
        f"The search for the number of rounds stopped at {rounds}, among the first ones, on "
        f"{splits}: on held-out rows the features say little about the target. Look at the "
        "weights, the groups and the columns, or set n_estimators."
    )


def _search_rounds(
    job: EngineJob,
    search: Search,
    binned: Binned,
    splits: Sequence[Split],
    started: float,
) -> Monitor:
    """Train on each split and score its held-out rows, in half of the time."""
    sets = [row_sets.fold_sets(job.train, binned, pair, job.settings.n_threads) for pair in splits]
    limit = job.settings.stopping.max_time
    stopping = replace(
        job.settings.stopping,
        n_iter_no_change=search.plan.n_iter_no_change,
        max_time=None if limit is None else limit / 2,
    )
    checkpoint = _search_checkpoint(job) if len(sets) == 1 else None
    options = LoopOptions(
        search.plan.n_rounds, stopping, job.callbacks, started, label="searching rounds"
    )
    search_job = replace(job, start=search.start)
    _, monitor = _train(search_job, sets, options, checkpoint, keep_file=True)
    return monitor


def _search_checkpoint(job: EngineJob) -> Checkpoint | None:
    """The checkpoint of the search, a file next to that of the fit."""
    checkpoint = Checkpoint.of(job.checkpoint)
    if checkpoint is None:
        return None
    return replace(checkpoint, path=os.fsdecode(checkpoint.path) + ".search")


def _train(
    job: EngineJob,
    sets: list[tuple[row_sets.TrainingSet, tuple[row_sets.EvaluationSet, ...]]],
    options: LoopOptions,
    checkpoint: Checkpoint | None,
    *,
    keep_file: bool = False,
) -> tuple[Fitted, Monitor]:
    """Run the training loop, of one fit or of folds in step; return the first fit.

    The trees of a continued model come before its own.
    """
    settings = job.settings
    metrics: tuple[Metric, ...] = ()
    if sets[0][1]:
        metrics = find_metrics(settings.stopping.eval_metric, job.loss, settings.n_threads)
    if job.old is not None:
        sets = [(replace(train, first_round=job.n_before), rest) for train, rest in sets]
    workspace = core.Workspace() if len(sets) > 1 else None
    trainings = [
        job.start(*pair, n_threads=settings.n_threads, seed=settings.seed, workspace=workspace)
        for pair in sets
    ]
    writer = CheckpointWriter(
        checkpoint, lambda: fingerprint(job.record, trainings[0].digests()), keep_file=keep_file
    )
    options = _with_shared_clock(options, sets[0][0].binned)
    fitted, monitor, _ = train_with_monitor(trainings, options, metrics, writer)
    return fitted[0] if job.old is None else fitted[0].after(job.old), monitor


def _with_shared_clock(options: LoopOptions, binned: Binned) -> LoopOptions:
    """The options with the clock of the first worker, where workers share the rows.

    All of them must stop after the same round. Without a time limit, no clock stops any.
    """
    if not isinstance(binned.codes, core.SharedCodes) or options.stopping.max_time is None:
        return options
    first = binned.codes.workers.first
    return replace(options, started=first(options.started), clock=lambda: first(time.monotonic()))


@dataclass(frozen=True)
class LoopOptions:
    """Limits, callbacks and progress bar of one run of the training loop.

    Attributes
    ----------
    n_rounds : int
        Largest number of rounds.
    stopping : StoppingParams
    callbacks : iterable of callables
    started : float
        Start of the fit, by time.monotonic.
    label : str
        Text of the progress bar.
    clock : callable () -> float
        Time in seconds.
    """

    n_rounds: int
    stopping: StoppingParams
    callbacks: Iterable[Callback]
    started: float
    label: str = "fitting"
    clock: Callable[[], float] = time.monotonic


def train_with_monitor(
    trainings: Sequence[Rounds],
    options: LoopOptions,
    metrics: tuple[Metric, ...] = (),
    writer: CheckpointWriter | None = None,
) -> tuple[list[Fitted], Monitor, list[list[Results]]]:
    """Run the training loop with monitor and progress bar.

    Returns
    -------
    fitted : list of Fitted
        One for each training.
    monitor : Monitor
    rounds : list of list of results
        For each round the results of each training.
    """
    stopping = options.stopping
    with Bar(options.n_rounds, options.label, visible=stopping.verbose > 0) as bar:
        monitor = Monitor(
            options.n_rounds,
            metrics=metrics,
            n_iter_no_change=stopping.n_iter_no_change,
            tol=stopping.tol,
            max_time=stopping.max_time,
            callbacks=tuple(options.callbacks),
            clock=options.clock,
            started=options.started,
        )
        if bar.is_visible:
            monitor.display = lambda done: bar.show(done.index + 1, done.results)
        fitted, rounds = run_training_loop(trainings, monitor, metrics, writer)
    return fitted, monitor, rounds


# ---- continued training ----


def previous_model(init_model: object) -> Model:
    """The model of an estimator, a Predictor or a path."""
    if isinstance(init_model, Model):
        return init_model
    if isinstance(init_model, str | os.PathLike):
        loaded = load(init_model)
        if isinstance(loaded, Model):
            return loaded
        raise InputTypeError(
            f"init_model={os.fsdecode(init_model)!r} is not allowed: the file holds an ensemble of "
            "several members, and only a booster can be continued. Pass the file of one."
        )
    if hasattr(init_model, "fit") and not isinstance(init_model, type):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(init_model)
        model = getattr(init_model, "model_", None)
        if isinstance(model, Model):
            whole = getattr(init_model, "_engine_model", None)
            return model if whole is None else whole("init_model")
    raise InputTypeError(
        f"init_model={init_model!r} ({type(init_model).__name__}) is not allowed: it must be a "
        "fitted estimator of arboost, an arboost.Predictor, or the path of a model file. Pass for "
        "example the estimator whose training is to go on."
    )


def check_continues(
    model: Model | None, kind: str, params: dict[str, Any], link: str, n_outputs: int
) -> None:
    """Raise ParameterError unless trees of this fit can be added to the model's, if any."""
    if model is None:
        return
    if params["base_score"] is not None:
        raise ParameterError(
            f"base_score={params['base_score']!r} is not allowed with init_model, whose scores the "
            "training starts from. Use base_score=None.",
            parameter="base_score",
        )
    if model.kind != kind:
        raise ParameterError(
            f"init_model is a {model.kind}, but this is a {kind}. Use a {model.kind}.",
            parameter="init_model",
        )
    _check_loss(model, params["loss"])
    if (model.link, model.n_outputs) != (link, n_outputs):
        raise ParameterError(
            f"init_model gives {_scores_text(model.n_outputs)} with the link {model.link!r}, but "
            f"this fit would add {_scores_text(n_outputs)} with the link {link!r}. Use the loss of "
            f"init_model, which was {_loss_name(model)}.",
            parameter="init_model",
        )
    shared_params = ("num_parallel_tree", "multi_strategy" if kind == "classifier" else "alpha")
    for name in shared_params if n_outputs > 1 else shared_params[:1]:
        old_value = model.params.get(name, 1)  # files of version 0.1.0 knew no parallel trees
        if old_value != params[name]:
            raise ParameterError(
                f"{name}={params[name]!r} is not allowed: init_model was fitted with "
                f"{name}={old_value!r}, and all rounds of a model must be alike. Make the two "
                "equal.",
                parameter=name,
            )


def like_previous(params: dict[str, Any], model: Model | None) -> dict[str, Any]:
    """The parameters with the kind of trees of a continued model in place of "auto"."""
    if model is None or params.get("multi_strategy") != AUTO:
        return params
    return params | {"multi_strategy": model.params.get("multi_strategy", AUTO)}


def continued_rows(
    train: EngineRows, validation: tuple[EngineRows, ...], model: Model | None, n_threads: int
) -> tuple[EngineRows, tuple[EngineRows, ...]]:
    """The rows with the raw scores of the model whose training is continued, if any."""
    if model is None:
        return train, validation

    def scored(rows: EngineRows) -> EngineRows:
        assert isinstance(rows.source, Table)  # a Dataset was refused before
        return rows.started(table_scores(model, rows.source, n_threads=n_threads))

    return scored(train), tuple(map(scored, validation))


def number_to_add(n_estimators: int, n_kept: int, plural: str, *, warns: bool = True) -> int:
    """The number of trees or members that a warm start adds to those that it keeps.

    Parameters
    ----------
    n_estimators, n_kept : int
    plural : str
        Their name in messages.
    warns : bool
        Whether a fit that adds none warns.
    """
    if n_estimators < n_kept:
        raise ParameterError(
            f"n_estimators={n_estimators} is not allowed: warm_start=True keeps the {n_kept} "
            f"{plural} there are. Use a larger number, or warm_start=False to start anew.",
            parameter="n_estimators",
        )
    if n_estimators == n_kept and warns:
        warn_caller(
            f"n_estimators={n_estimators} is the number of {plural} that warm_start=True keeps, so "
            "that none is added. Use a larger number, or warm_start=False to start anew."
        )
    return n_estimators - n_kept


def _check_loss(model: Model, loss: Any) -> None:
    recorded = model.params.get("loss")
    if not isinstance(recorded, dict):
        return
    custom = recorded["custom"]
    if isinstance(loss, str):
        raise ParameterError(
            f"init_model was trained with the custom loss {custom!r}, and a model file keeps its "
            f"name only; loss={loss!r} is another. Pass that arboost.CustomLoss as loss.",
            parameter="loss",
        )
    if loss.name != custom:
        raise ParameterError(
            f"init_model was trained with the custom loss {custom!r}, but loss is {loss.name!r}. "
            "Pass the same loss, or give it the same name.",
            parameter="loss",
        )


def _loss_name(model: Model) -> str:
    recorded = model.params.get("loss")
    return f"custom: {recorded['custom']!r}" if isinstance(recorded, dict) else repr(recorded)


def _scores_text(n_outputs: int) -> str:
    return "1 score a row" if n_outputs == 1 else f"{n_outputs} scores a row"
