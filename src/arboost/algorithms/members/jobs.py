"""Fits of several members in parallel: on all rows, and on the training rows of folds.

    member A ─┬─ all rows ──────────────────▶ fitted member
              ├─ fold 0: rows to train on ──▶ predictions for the held-out rows
              └─ fold 1 ...
    member B ─┬─ ...

Jobs are independent of each other, so results do not depend on the number of parallel jobs.
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
    arguments_for_rows,
    fit_on_rows,
    in_order,
    is_engine,
    shared_dataset,
)
from arboost.algorithms.members.tables import take_rows
from arboost.backend import threads
from arboost.data.dataset import Dataset
from arboost.params.records import sought_bins
from arboost.progress import Bar
from arboost.training.splits import Split

__all__ = ["MemberJob", "MemberTrainingSet", "check_weights", "run_jobs"]

# Parameters that bins depend on, each with the value for estimators without that parameter. Members
# with equal values share bins.
_BINNING = {
    "tree_method": None,
    "bundling": True,
    "max_conflict_rate": 0.0,
    "categorical_features": None,
    "date_format": "auto",
    "calendar_parts": "auto",
    "missing": None,
}


@dataclass(frozen=True)
class MemberTrainingSet:
    """Training rows of all members.

    Attributes
    ----------
    X : table of shape (n_rows, ...)
    y : array of shape (n_rows,) or (n_rows, n_targets)
        Class indices for classification.
    classes : Classes
    """

    X: Any
    y: NDArray[Any]
    classes: Classes = None


@dataclass(frozen=True)
class MemberJob:
    """One fit of one member.

    Attributes
    ----------
    name : str
    member : estimator
        A clone that belongs to the job, which fits it.
    arguments : mapping
        More arguments of fit; values with one entry per row are indexed by the rows of the fold.
    method : str
        Prediction method to call for the held-out rows.
    split : Split or None
        Rows to train on and held-out rows; None trains on all rows and returns the member.
    n_threads : int or None
        Threads of a member of arboost that would take all of them; None for no limit.
    dataset : Dataset or None
        Binned table with weights, shared with other jobs.
    """

    name: str
    member: Any
    arguments: Mapping[str, Any]
    method: str = "predict"
    split: Split | None = None
    n_threads: int | None = None
    dataset: Dataset | None = None


def run_jobs(
    jobs: Sequence[MemberJob],
    data: MemberTrainingSet,
    *,
    n_jobs: int | None,
    label: str,
    visible: bool,
) -> list[Any]:
    """Return the result of each job: a fitted member, or predictions for held-out rows.

    Parameters
    ----------
    jobs : sequence of MemberJob
    data : MemberTrainingSet
    n_jobs : int or None
        Number of parallel jobs, in joblib's convention.
    label : str
        Label of the progress bar.
    visible : bool
        Whether a progress bar is shown.
    """
    n_parallel = min(effective_n_jobs(n_jobs), len(jobs))
    n_threads = None if n_parallel == 1 else max(threads(None) // n_parallel, 1)
    results = []
    with Bar(len(jobs), label, visible=visible) as bar:
        shared = [replace(job, n_threads=n_threads) for job in _share_bins(jobs, data)]
        for result in in_order(_run_job, ((job, data) for job in shared), n_parallel):
            results.append(result)
            bar.show(len(results))
    return results


def _share_bins(jobs: Sequence[MemberJob], data: MemberTrainingSet) -> list[MemberJob]:
    """Return the jobs; members of arboost with equal bins get one Dataset."""
    keys = [_bins_key(job) for job in jobs]
    made: dict[Hashable, Dataset | None] = {}
    shared = []
    for job, key in zip(jobs, keys, strict=True):
        if key is not None and keys.count(key) > 1 and key not in made:
            weight = job.arguments.get("sample_weight")
            with _member_note(job):
                made[key] = shared_dataset(job.member, data.X, data.y, weight, job.member.n_jobs)
        shared.append(replace(job, dataset=made.get(key)))
    return shared


def _bins_key(job: MemberJob) -> Hashable:
    """Return the parameters that the bins of a job depend on; None where bins cannot be shared."""
    if not is_engine(job.member) or job.arguments.keys() - {"sample_weight"}:
        return None
    weight = job.arguments.get("sample_weight")
    if weight is not None and not np.all(weight):
        return None  # a Dataset leaves out rows of weight 0
    # Values as strings: NaN is not equal to itself, and lists are not hashable.
    others = [repr(getattr(job.member, name, usual)) for name, usual in _BINNING.items()]
    return repr(sought_bins(vars(job.member))), *others


def _run_job(job: MemberJob, data: MemberTrainingSet) -> Any:
    with _member_note(job), _lent_settings(job.member, job.n_threads):
        return _fitted(job, data) if job.split is None else _held_out_predictions(job, data)


@contextmanager
def _member_note(job: MemberJob) -> Iterator[None]:
    """Add the member's name to exceptions."""
    try:
        yield
    except Exception as error:
        where = "" if job.split is None else " on the rows of a fold"
        error.add_note(f"It was raised by the member {job.name!r}{where}.")
        raise


def _fitted(job: MemberJob, data: MemberTrainingSet) -> Any:
    if job.dataset is not None:
        job.member.fit(job.dataset)
    else:
        job.member.fit(data.X, data.y, **job.arguments)
    return job.member


def _held_out_predictions(job: MemberJob, data: MemberTrainingSet) -> Any:
    """Fit a member to the training rows of a fold, and predict the held-out rows."""
    assert job.split is not None
    member, n_rows = job.member, len(data.y)
    train, held_out = (rows.astype(np.intp) for rows in job.split)
    is_pairwise = get_tags(member).input_tags.pairwise
    if job.dataset is not None:
        fit_on_rows(member, job.dataset, job.split[0])
    else:
        arguments = arguments_for_rows(member, job.arguments, train, n_rows)
        X = data.X[np.ix_(train, train)] if is_pairwise else take_rows(data.X, train)
        member.fit(X, data.y[train], **arguments)
    # Of a kernel matrix: similarities of held-out rows to training rows.
    X = data.X[np.ix_(held_out, train)] if is_pairwise else take_rows(data.X, held_out)
    return answers(member, job.method, X, data.classes)


@contextmanager
def _lent_settings(member: Any, n_threads: int | None) -> Iterator[None]:
    """Silence a member of arboost and limit its threads, for the time of a job.

    Only a member that would take all threads is limited. No prediction depends on either setting.
    """
    if not is_engine(member):
        yield
        return
    given = {"verbose": member.verbose, "n_jobs": member.n_jobs}
    takes_all = given["n_jobs"] in (None, -1)
    changed = {"verbose": 0} | ({"n_jobs": n_threads} if takes_all and n_threads else {})
    vars(member).update(changed)
    try:
        yield
    finally:
        vars(member).update(given)


def check_weights(name: str, estimator: Any) -> str:
    """Return the name of the row weights among the arguments of fit, or raise TypeError."""
    found = weight_name(estimator)
    if found is not None:
        return found
    kinds = {one.kind for one in inspect.signature(estimator.fit).parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds and not hasattr(estimator, "steps"):
        return "sample_weight"  # passed on to an inner estimator, as by GridSearchCV
    raise TypeError(
        f"sample_weight is given, but the fit of {name!r} ({member_name(estimator)}) has no such "
        "argument. Leave out sample_weight, or this estimator."
    )
