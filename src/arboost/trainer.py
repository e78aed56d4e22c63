"""One fit around the training loop: bins, validation rows, monitor, progress bar, checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.backend import threads
from arboost.binning import Binned, Dataset, bin_table
from arboost.checkpoint import Checkpoint
from arboost.ensemble import Training, train
from arboost.inputs import Part, build_sets
from arboost.losses import Loss
from arboost.losses.custom import FromFunctions
from arboost.metrics import Metric, find_all
from arboost.model import Forest, Model
from arboost.monitor import Monitor, Round
from arboost.previous import continued_seed
from arboost.progress import Bar
from arboost.recipe import Fitted, Recipe
from arboost.resume import Keeper, fingerprint
from arboost.validation import split

__all__ = [
    "Job",
    "Outcome",
    "bin_part",
    "check_validation",
    "find_metrics",
    "groups_of",
    "run",
    "split_rows",
    "watchers",
]


@dataclass(frozen=True, kw_only=True)
class Job:
    """What one fit is to do.

    Attributes
    ----------
    recipe : Recipe
    params : dict
        Checked parameters.
    record : dict
        Those that can change the model, as its file keeps them.
    train : Part
    validation : Part or None
    old : Model or None
        Whose training goes on.
    callbacks : tuple of callables
    checkpoint : path, Checkpoint or None
    """

    recipe: Recipe
    params: dict[str, Any]
    record: dict[str, Any]
    train: Part
    validation: Part | None = None
    old: Model | None = None
    callbacks: tuple[Callable[[Round], object], ...] = ()
    checkpoint: object = None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a fit leaves: the trees with what they need to answer, and what was seen on the way."""

    forest: Forest
    base_score: NDArray[np.float64]
    link: str
    trees_per_round: int
    best_index: int | None = None
    best_score: float | None = None
    history: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    stop_reason: str | None = None

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
    """Train."""
    started = time.monotonic()
    params, recipe = job.params, job.recipe
    n_threads = threads(params["n_jobs"])
    checkpoint = Checkpoint.of(job.checkpoint)
    metrics = find_metrics(params["eval_metric"], recipe.loss, n_threads) if job.validation else ()
    seed = params["random_state"]
    if job.old is not None:
        seed = continued_seed(seed, job.old.n_rounds)
    with Bar(recipe.n_estimators, "fitting", visible=params["verbose"] > 0) as bar:
        monitor = Monitor(
            recipe.n_estimators,
            metrics=metrics,
            n_iter_no_change=params["n_iter_no_change"],
            tol=params["tol"],
            max_time=params["max_time"],
            callbacks=(*watchers(bar), *job.callbacks),
            started=started,
        )
        binned = bin_part(job.train, params, n_threads)
        data, evaluations = build_sets(job.train, job.validation, binned, n_threads)
        if job.old is not None:
            data = replace(data, first_round=job.old.n_rounds)
        training = Training(recipe, data, evaluations, n_threads=n_threads, seed=seed)
        keeper = Keeper(checkpoint, lambda: fingerprint(job.record, training.digests()))
        fitted = train(training, monitor, metrics, keeper)
    return _outcome(job, fitted, monitor)


def watchers(bar: Bar) -> tuple[Callable[[Round], object], ...]:
    """Return the callback that draws the bar, or none where nobody would see it."""
    return (lambda done: bar.show(done.index + 1, done.results),) if bar.is_visible else ()


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
    how = params["validation_split"]
    chosen = split(
        part.target.y,
        how=how,
        fraction=params["validation_fraction"],
        seed=params["random_state"],
        stratify=kind == "classifier" and how == "random",
        groups=groups,
    )
    training, validation = (part.take(rows) for rows in chosen)
    return training, validation


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
    if job.old is not None:
        forest, base_score = job.old.forest.joined(forest), job.old.base_score
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
    )
