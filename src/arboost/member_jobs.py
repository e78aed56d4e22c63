"""Fits of several members side by side: on all rows, and on the rows of folds.

    member A ─┬─ all rows ──────────────▶ fitted member
              ├─ fold 0: rows to train ─▶ answers for the rows held out
              └─ fold 1 ...
    member B ─┬─ ...

Jobs do not know of each other, so that their number at a time changes nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed

from arboost.backend import threads
from arboost.estimator import TreeEnsemble
from arboost.stack_answers import Classes, answers
from arboost.member_learners import weight_name
from arboost.member_tables import take_rows
from arboost.member_answers import member_name
from arboost.progress import Bar
from arboost.validation import Split

__all__ = ["Job", "Learning", "check_weights", "run"]


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
    """

    name: str
    member: Any
    arguments: Mapping[str, Any]
    method: str = "predict"
    split: Split | None = None
    n_threads: int | None = None


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
    if at_a_time > 1:
        n_threads = max(threads(None) // at_a_time, 1)
        jobs = [replace(job, n_threads=n_threads) for job in jobs]
    with Bar(len(jobs), label, visible=visible) as bar:

        def handed_out() -> Iterator[Any]:
            for number, job in enumerate(jobs):
                if number >= at_a_time:
                    bar.show(number - at_a_time + 1)
                yield delayed(_done)(job, data)

        # Threads, because most of the work is done without the GIL, and tables need not be copied.
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", pre_dispatch="n_jobs")
        results: list[Any] = parallel(handed_out())
        bar.show(len(jobs))
    return results


def _done(job: Job, data: Learning) -> Any:
    """Do one job."""
    try:
        if job.split is None:
            _fit(job, data.X, data.y, job.arguments)
            return job.member
        train, held_out = (rows.astype(np.intp) for rows in job.split)
        is_pairwise = get_tags(job.member).input_tags.pairwise
        arguments = {
            name: take_rows(value, train) if _is_by_row(value, len(data.y)) else value
            for name, value in job.arguments.items()
        }
        _fit(job, _rows(data.X, train, train, is_pairwise), data.y[train], arguments)
        return answers(
            job.member, job.method, _rows(data.X, held_out, train, is_pairwise), data.classes
        )
    except Exception as error:
        where = "" if job.split is None else " on the rows of a fold"
        error.add_note(f"It was raised by the member {job.name!r}{where}.")
        raise


def _fit(job: Job, X: Any, y: NDArray[Any], arguments: Mapping[str, Any]) -> None:
    member = job.member
    if job.n_threads is None or not isinstance(member, TreeEnsemble):
        member.fit(X, y, **arguments)
        return
    given = member.n_jobs
    if given is None or given == -1:
        member.n_jobs = job.n_threads  # the model does not depend on it
    try:
        member.fit(X, y, **arguments)
    finally:
        member.n_jobs = given


def _rows(X: Any, rows: NDArray[np.intp], train: NDArray[np.intp], is_pairwise: bool) -> Any:  # noqa: FBT001
    """Return rows of a table; of a matrix of similarities, to the rows that were trained on."""
    return X[np.ix_(rows, train)] if is_pairwise else take_rows(X, rows)


def _is_by_row(value: Any, n_rows: int) -> bool:
    is_sized = hasattr(value, "__len__") or hasattr(value, "shape")
    if not is_sized or isinstance(value, str | bytes | Mapping):
        return False
    length = value.shape[0] if getattr(value, "shape", ()) else len(value)
    return bool(length == n_rows)


def check_weights(name: str, estimator: Any) -> str:
    """Return what the fit of an estimator calls the weights of rows, or raise TypeError."""
    found = weight_name(estimator)
    if found is not None:
        return found
    kinds = {one.kind for one in inspect.signature(estimator.fit).parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds and not hasattr(estimator, "steps"):
        return "sample_weight"  # it hands on what it gets, as a search of parameters does
    raise TypeError(
        f"Underlying estimator {member_name(estimator)} does not support sample weights: the fit "
        f"of {name!r} has no argument sample_weight. Leave out sample_weight, or this estimator."
    )
