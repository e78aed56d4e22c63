"""One fit around the training loop: bins, validation rows, monitor, progress bar, checkpoint."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core, threads
from arboost.checkpoint import Checkpoint
from arboost.data.bins import Binned, bin_table
from arboost.data.dataset import Dataset
from arboost.ensemble import Training, train_together
from arboost.inputs import Part, build_sets, fold_sets
from arboost.losses import Loss
from arboost.losses.custom import FromFunctions
from arboost.losses.metrics import Metric, find_all
from arboost.model.forest import Forest
from arboost.model.model import Model, provenance_of
from arboost.monitor import Monitor, Round, check_callbacks
from arboost.params.auto import search_folds
from arboost.progress import Bar
from arboost.recipe import EvaluationSet, Fitted, OutOfBag, Recipe, Rounds, TrainingSet
from arboost.resume import Keeper, fingerprint
from arboost.reweighting import WeightRecipe
from arboost.validation import Split, folds, split

__all__ = [
    "Job",
    "Outcome",
    "bin_part",
    "check_validation",
    "find_metrics",
    "groups_of",
    "make_monitor",
    "run",
    "search_splits",
    "split_rows",
]


@dataclass(frozen=True, kw_only=True)
class Job:
    """What one fit is to do.

    Attributes
    ----------
    recipe : Recipe or WeightRecipe
    rounds : callable
        Starts a fit by the recipe, as the class `Training` does.
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

    recipe: Recipe | WeightRecipe
    params: dict[str, Any]
    record: dict[str, Any]
    train: Part
    rounds: Callable[..., Rounds] = Training
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
    again = replace(job, params=params, recipe=replace(job.recipe, n_estimators=rounds))
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


def bin_part(part: Part, params: dict[str, Any], n_threads: int) -> Binned:
    """Return the bins of a part: those of its rows, or of the whole of a Dataset."""
    if isinstance(part.source, Dataset):
        _check_dataset(part.source, params)
        return part.source.binned
    return bin_table(
        part.source,
        max_bins=params["max_bins"],
        rows=part.rows,
        weights=part.target.weight,
        n_threads=n_threads,
        tree_method=params["tree_method"],
        bundling=params["bundling"],
        max_conflict_rate=params["max_conflict_rate"],
    )


def check_validation(params: dict[str, Any], *, has_validation: bool, groups: object) -> None:
    """Raise ValueError where arguments of fit and parameters of validation do not fit together."""
    splits = not has_validation and params["n_iter_no_change"] is not None
    if groups is not None and not splits:
        reason = "X_val is given" if has_validation else "n_iter_no_change=None asks for none"
        raise ValueError(
            f"groups are for the automatic split of validation rows, but {reason}. Leave out "
            "groups."
        )
    if params["eval_metric"] is not None and not has_validation and not splits:
        raise ValueError(
            f"eval_metric={params['eval_metric']!r} has no rows to be measured on. Pass X_val and "
            "y_val, or set n_iter_no_change for an automatic split."
        )


def split_rows(part: Part, params: dict[str, Any], kind: str, groups: object) -> tuple[Part, Part]:
    """Set validation rows aside; `groups` has an entry for each row that fit was given."""
    if groups is not None:
        groups = groups_of(groups, part.source.n_rows, part.rows)
    chosen = _split(part, params, groups, stratify=kind == "classifier")
    training, validation = (part.take(rows) for rows in chosen)
    return training, validation


def search_splits(
    part: Part, params: dict[str, Any], kind: str, groups: object
) -> tuple[Split, ...]:
    """Return the parts of the training rows that the number of rounds is to be found on."""
    y, seed = part.target.y, params["random_state"]
    # A class of one row cannot be on both sides: then the rounds are found by the others.
    stratify = kind == "classifier" and np.bincount(y.astype(np.intp)).min() > 1
    n_folds = search_folds(params, len(y), groups)
    if n_folds is not None:
        return tuple(folds(y, n_folds, seed=seed, stratify=stratify))
    if groups is not None:
        groups = groups_of(groups, part.source.n_rows, part.rows)
    return (_split(part, params, groups, stratify=stratify),)


def _split(part: Part, params: dict[str, Any], groups: object, *, stratify: bool) -> Split:
    how = params["validation_split"]
    return split(
        part.target.y,
        how=how,
        fraction=params["validation_fraction"],
        seed=params["random_state"],
        stratify=stratify and how == "random",
        groups=groups,
    )


def groups_of(groups: object, n_rows: int, kept: NDArray[np.uint32] | None) -> NDArray[Any]:
    """Return the groups of the rows that count, of groups for all rows that were given."""
    given = np.asarray(groups)
    if given.shape != (n_rows,):
        raise ValueError(
            f"groups have the shape {given.shape}, but X has {n_rows} rows. Pass one group for "
            "each row."
        )
    return given if kept is None else given[kept]


def find_metrics(metrics: object, loss: Loss, n_threads: int) -> tuple[Metric, ...]:
    """Return what to measure validation rows with: what was named, or else the loss."""
    if metrics is None and isinstance(loss, FromFunctions) and loss.functions.value is None:
        raise ValueError(
            f"the loss {loss.name!r} has no function `value`, so there is nothing to measure on "
            "the validation rows. Give it one, or name an eval_metric."
        )
    return find_all(metrics, loss, n_threads=n_threads)


def _check_dataset(data: Dataset, params: dict[str, Any]) -> None:
    data.binned.require(params["tree_method"])
    if params["tree_method"] != "hist":
        return
    for name in ("max_bins", "max_conflict_rate"):
        if params[name] != getattr(data, name):
            raise ValueError(
                f"{name}={params[name]} is not allowed: the Dataset was binned with "
                f"{name}={getattr(data, name)}. Make the two equal."
            )


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
