"""One fit around the training loop: bins, validation rows, monitor, progress bar, checkpoint."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core, threads
from arboost.data.bins import Binned
from arboost.losses import Loss
from arboost.losses.custom import FromFunctions
from arboost.losses.metrics import Metric, find_all
from arboost.model.forest import Forest
from arboost.model.model import Model, provenance_of
from arboost.training.checkpoint import Checkpoint
from arboost.training.inputs import Part
from arboost.training.loop import train_together
from arboost.training.monitor import Monitor, Round, check_callbacks
from arboost.training.progress import Bar
from arboost.training.resume import Keeper, fingerprint
from arboost.training.rounds import Fitted, OutOfBag, Recipe, Rounds
from arboost.training.sets import EvaluationSet, TrainingSet, bin_part, build_sets, fold_sets
from arboost.training.splits import Split

__all__ = ["Job", "Outcome", "find_metrics", "make_monitor", "run"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """What one fit is to do.

    Attributes
    ----------
    recipe : Recipe
    rounds : callable
        Starts a fit by the recipe: a class or function with the arguments of `Training`.
    params : dict
        Checked parameters.
    record : dict
        Those that can change the model, as its file keeps them.
    train : Part
    validation : Part or None
    search : tuple of pairs (rows to train on, rows to hold out)
        Among the training rows: the number of rounds that is best on what is held out is that of
        the fit to all of them. Empty: the recipe has the number.
    old : Model or None
        Whose training goes on.
    callbacks : tuple of callables
    checkpoint : path, Checkpoint or None
    """

    recipe: Recipe
    rounds: Callable[..., Rounds]
    params: dict[str, Any]
    record: dict[str, Any]
    train: Part
    validation: Part | None = None
    search: tuple[Split, ...] = ()
    old: Model | None = None
    callbacks: tuple[Callable[[Round], object], ...] = ()
    checkpoint: object = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a fit leaves: the trees with what they need to answer, and what was seen on the way.

    The fields that `Fitted` has, too, are as there. Where learners are no trees, ``model`` is the
    whole of what answers.
    """

    forest: Forest
    base_score: NDArray[np.float64]
    link: str
    trees_per_round: int
    best_index: int | None = None
    best_score: float | None = None
    history: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    stop_reason: str | None = None
    tree_weights: NDArray[np.float64] | None = None
    facts: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    out_of_bag: OutOfBag | None = None
    model: Any = None
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def combination(self) -> dict[str, Any]:
        """How the trees make one answer, and what is told of the fit, in the fields of a model."""
        fields: dict[str, Any] = {"provenance": self.provenance}
        if self.tree_weights is not None:
            fields |= {"combine": "median", "tree_weights": self.tree_weights}
        return fields

    @classmethod
    def of_one_class(cls) -> Self:
        """The model of a single class: a softmax over one score is a probability of exactly 1."""
        return cls(
            forest=Forest.empty(),
            base_score=np.zeros(1),
            link="softmax",
            trees_per_round=1,
            stop_reason="one class",
        )


def run(job: Job) -> Outcome:
    """Train; where there is something to search, first to find the number of rounds."""
    started = time.monotonic()
    checkpoint = Checkpoint.of(job.checkpoint)
    check_callbacks(job.callbacks)
    n_threads = threads(job.params["n_jobs"])
    binned = bin_part(job.train, job.params, n_threads)
    if not job.search:
        data, evaluations = build_sets(job.train, job.validation, binned, n_threads)
        fit = _Fit(job, checkpoint, job.params["max_time"], started)
        fitted, monitor = fit.run([(data, evaluations)])
        return _outcome(job, fitted, monitor)
    found = _search_rounds(job, binned, started)
    rounds = 1 + (found.best_index or 0)
    data, _ = build_sets(job.train, None, binned, n_threads)
    params = job.params | {"n_iter_no_change": None}
    again = replace(job, params=params, recipe=replace(cast(Any, job.recipe), n_estimators=rounds))
    fit = _Fit(again, checkpoint, params["max_time"], started)
    fitted, _ = fit.run([(data, ())])
    search = _search_checkpoint(job)
    if search is not None:
        search.remove()
    return _outcome(again, fitted, found)


def _search_rounds(job: Job, binned: Binned, started: float) -> Monitor:
    """Train on some rows and measure on the others; half of the time budget is for this."""
    n_threads = threads(job.params["n_jobs"])
    sets = [fold_sets(job.train, binned, pair, n_threads) for pair in job.search]
    limit = job.params["max_time"]
    checkpoint = _search_checkpoint(job) if len(sets) == 1 else None
    fit = _Fit(job, checkpoint, None if limit is None else limit / 2, started)
    _, monitor = fit.run(sets, label="looking for rounds", keeps=True)
    return monitor


def _search_checkpoint(job: Job) -> Checkpoint | None:
    """Where the search keeps its state: beside that of the fit, until that is done."""
    given = Checkpoint.of(job.checkpoint)
    return None if given is None else replace(given, path=os.fsdecode(given.path) + ".search")


@dataclass(frozen=True)
class _Fit:
    """One run of the training loop, of one fit or of folds side by side."""

    job: Job
    checkpoint: Checkpoint | None
    max_time: float | None
    started: float

    def run(
        self,
        sets: list[tuple[TrainingSet, tuple[EvaluationSet, ...]]],
        *,
        label: str = "fitting",
        keeps: bool = False,
    ) -> tuple[Fitted, Monitor]:
        """Train; return the first of the fits, and what was seen."""
        params, recipe, old = self.job.params, self.job.recipe, self.job.old
        n_threads = threads(params["n_jobs"])
        metrics: tuple[Metric, ...] = ()
        if sets[0][1]:
            metrics = find_metrics(params["eval_metric"], recipe.loss, n_threads)
        if old is not None:
            sets = [(replace(data, first_round=old.n_rounds), others) for data, others in sets]
        with Bar(recipe.n_estimators, label, visible=params["verbose"] > 0) as bar:
            watching = params | {"max_time": self.max_time}
            monitor = make_monitor(bar, watching, metrics, self.job.callbacks, self.started)
            workspace = core.Workspace() if len(sets) > 1 else None
            trainings = [
                self.job.rounds(
                    recipe,
                    *one,
                    n_threads=n_threads,
                    seed=params["random_state"],
                    workspace=workspace,
                )
                for one in sets
            ]
            describe = lambda: fingerprint(self.job.record, trainings[0].digests())  # noqa: E731
            keeper = Keeper(self.checkpoint, describe, stays=keeps)
            fitted, _ = train_together(trainings, monitor, metrics, keeper)
        return fitted[0], monitor


def make_monitor(
    bar: Bar,
    params: dict[str, Any],
    metrics: tuple[Metric, ...],
    callbacks: Iterable[Callable[[Round], object]],
    started: float,
) -> Monitor:
    """Return what watches a fit by its parameters, and draws the bar where somebody sees it."""
    own = [lambda done: bar.show(done.index + 1, done.results)] if bar.is_visible else []
    return Monitor(
        bar.total,
        metrics=metrics,
        n_iter_no_change=params["n_iter_no_change"],
        tol=params["tol"],
        max_time=params["max_time"],
        callbacks=(*own, *callbacks),
        started=started,
    )


def find_metrics(metrics: object, loss: Loss, n_threads: int) -> tuple[Metric, ...]:
    """Return what to measure validation rows with: what was named, or else the loss."""
    if metrics is None and isinstance(loss, FromFunctions) and loss.functions.value is None:
        raise ValueError(
            f"the loss {loss.name!r} has no function `value`, so there is nothing to measure on "
            "the validation rows. Give it one, or name an eval_metric."
        )
    return find_all(metrics, loss, n_threads=n_threads)


def _outcome(job: Job, fitted: Fitted, monitor: Monitor) -> Outcome:
    forest, base_score, best = fitted.forest, fitted.base_score, monitor.best_index
    tree_weights = fitted.tree_weights
    if job.old is not None:
        forest, base_score = job.old.forest.joined(forest), job.old.base_score
        if tree_weights is not None:
            tree_weights = np.append(job.old.tree_weights, tree_weights)
        best = None if best is None else job.old.n_rounds + best
    return Outcome(
        forest=forest,
        base_score=base_score,
        link=job.recipe.loss.link,
        trees_per_round=job.recipe.trees_per_round,
        best_index=best,
        best_score=monitor.best_score,
        history=monitor.history,
        stop_reason=monitor.stop_reason,
        tree_weights=tree_weights,
        facts=fitted.facts,
        out_of_bag=None if fitted.out_of_bag is None else spread(fitted.out_of_bag, job.train),
        provenance=provenance_of(len(job.train.target.y), monitor.chosen_by, monitor.best_score),
    )


def spread(found: OutOfBag, part: Part) -> OutOfBag:
    """Return scores out of bag for all rows that fit was given; NaN for those it left out."""
    if part.rows is None:
        return found
    scores = np.full((part.source.n_rows, found.scores.shape[1]), np.nan)
    scores[part.rows] = found.scores
    return replace(found, scores=scores)
