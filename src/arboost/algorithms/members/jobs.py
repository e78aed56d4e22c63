"""Fits of several members side by side: on all rows, and on the rows of folds.

    member A ─┬─ all rows ──────────────▶ fitted member
              ├─ fold 0: rows to train ─▶ answers for the rows held out
              └─ fold 1 ...
    member B ─┬─ ...

Jobs do not know of each other, so that their number at a time changes nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import get_tags

from arboost.algorithms.members.answers import Classes, answers, member_name
from arboost.algorithms.members.arguments import weight_name
from arboost.algorithms.members.shared_fits import (
    fit_on_rows,
    in_order,
    is_engine,
    of_rows,
    shared_dataset,
)
from arboost.algorithms.members.tables import take_rows
from arboost.backend import threads
from arboost.data.dataset import Dataset
from arboost.training.progress import Bar
from arboost.training.splits import Split

__all__ = ["Job", "Learning", "check_weights", "run"]

# What bins depend on, with what it is where an estimator has no such parameter: members that agree
# here can share them.
_BINNING = {
    "max_bins": None,
    "tree_method": None,
    "bundling": True,
    "max_conflict_rate": 0.0,
    "categorical_features": None,
    "missing": None,
}


@dataclass(frozen=True)
class Learning:
    """What all members learn from.

    Attributes
    ----------
    X : table of shape (n_rows, ...)
    y : array of shape (n_rows,) or (n_rows, n_targets)
        Numbers of the classes for classifiers.
    classes : Classes
    """

    X: Any
    y: NDArray[Any]
    classes: Classes = None


@dataclass(frozen=True)
class Job:
    """One fit of one member.

    Attributes
    ----------
    name : str
    member : estimator
        A clone of its own, which the job fits.
    arguments : mapping
        What else its fit gets by name; values with an entry for each row are cut to the rows.
    method : str
        What it is asked for, of the rows held out.
    split : Split or None
        Rows to train on and rows held out; None trains on all, and returns the member itself.
    n_threads : int or None
        Threads for a member of the engine, which would take all of them; None leaves it as it is.
    dataset : Dataset or None
        The binned table, with weights, that it shares with other jobs.
    """

    name: str
    member: Any
    arguments: Mapping[str, Any]
    method: str = "predict"
    split: Split | None = None
    n_threads: int | None = None
    dataset: Dataset | None = None


def run(
    jobs: Sequence[Job], data: Learning, *, n_jobs: int | None, label: str, visible: bool
) -> list[Any]:
    """Return the fitted members of jobs on all rows, and the answers of those on folds.

    Parameters
    ----------
    jobs : sequence of Job
    data : Learning
    n_jobs : int or None
        As joblib reads it.
    label : str
        What the progress bar says.
    visible : bool
        Whether there is one.
    """
    at_a_time = min(effective_n_jobs(n_jobs), len(jobs))
    n_threads = None if at_a_time == 1 else max(threads(None) // at_a_time, 1)
    results = []
    with Bar(len(jobs), label, visible=visible) as bar:
        shared = [replace(job, n_threads=n_threads) for job in _sharing(jobs, data)]
        for result in in_order(_done, ((job, data) for job in shared), at_a_time):
            results.append(result)
            bar.show(len(results))
    return results


def _sharing(jobs: Sequence[Job], data: Learning) -> list[Job]:
    """Return the jobs, those of the engine with bins that are made once for all that agree."""
    keys = [_bins_key(job) for job in jobs]
    made: dict[Hashable, Dataset | None] = {}
    shared = []
    for job, key in zip(jobs, keys, strict=True):
        if key is not None and keys.count(key) > 1 and key not in made:
            weight = job.arguments.get("sample_weight")
            with _named(job):
                made[key] = shared_dataset(job.member, data.X, data.y, weight, job.member.n_jobs)
        shared.append(replace(job, dataset=made.get(key)))
    return shared


def _bins_key(job: Job) -> Hashable:
    """Return what the bins of a job depend on, None where it can share none."""
    if not is_engine(job.member) or job.arguments.keys() - {"sample_weight"}:
        return None
    weight = job.arguments.get("sample_weight")
    if weight is not None and not np.all(weight):
        return None  # rows that a Dataset leaves out
    # Texts of values: NaN is not equal to itself, and lists are not hashable.
    return tuple(repr(getattr(job.member, name, usual)) for name, usual in _BINNING.items())


def _done(job: Job, data: Learning) -> Any:
    """Do one job."""
    with _named(job), _as_part(job.member, job.n_threads):
        return _fitted(job, data) if job.split is None else _held_out_answers(job, data)


@contextmanager
def _named(job: Job) -> Iterator[None]:
    """Let errors say which member raised them."""
    try:
        yield
    except Exception as error:
        where = "" if job.split is None else " on the rows of a fold"
        error.add_note(f"It was raised by the member {job.name!r}{where}.")
        raise


def _fitted(job: Job, data: Learning) -> Any:
    if job.dataset is not None:
        job.member.fit(job.dataset)
    else:
        job.member.fit(data.X, data.y, **job.arguments)
    return job.member


def _held_out_answers(job: Job, data: Learning) -> Any:
    """Fit a member to the rows of a fold, and ask it about the others."""
    assert job.split is not None
    member, n_rows = job.member, len(data.y)
    train, held_out = (rows.astype(np.intp) for rows in job.split)
    is_pairwise = get_tags(member).input_tags.pairwise
    if job.dataset is not None:
        fit_on_rows(member, job.dataset, job.split[0])
    else:
        arguments = of_rows(member, job.arguments, train, n_rows)
        X = data.X[np.ix_(train, train)] if is_pairwise else take_rows(data.X, train)
        member.fit(X, data.y[train], **arguments)
    # Of a matrix of similarities: those to the rows that were trained on.
    X = data.X[np.ix_(held_out, train)] if is_pairwise else take_rows(data.X, held_out)
    return answers(member, job.method, X, data.classes)


@contextmanager
def _as_part(member: Any, n_threads: int | None) -> Iterator[None]:
    """Let a member of the engine work for a while as one of several.

    It leaves the progress bar to the whole, and takes its share of the threads where it would take
    all. No answer depends on either.
    """
    if not is_engine(member):
        yield
        return
    given = {"verbose": member.verbose, "n_jobs": member.n_jobs}
    takes_all = given["n_jobs"] in (None, -1)
    changed = {"verbose": 0} | ({"n_jobs": n_threads} if takes_all and n_threads else {})
    member.set_params(**changed)
    try:
        yield
    finally:
        member.set_params(**given)


def check_weights(name: str, estimator: Any) -> str:
    """Return what the fit of an estimator calls the weights of rows, or raise TypeError."""
    found = weight_name(estimator)
    if found is not None:
        return found
    kinds = {one.kind for one in inspect.signature(estimator.fit).parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds and not hasattr(estimator, "steps"):
        return "sample_weight"  # it hands on what it gets, as a search of parameters does
    raise TypeError(
        f"sample_weight is given, but the fit of {name!r} ({member_name(estimator)}) has no such "
        "argument. Leave out sample_weight, or this estimator."
    )
