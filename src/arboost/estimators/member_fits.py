"""Fits of several members in parallel: on all rows, and on the training rows of folds or bags.

    X ──bins──▶ Dataset ─┬─▶ member A ─┬─ all rows ──────────────────▶ fitted member
                         │             ├─ fold 0: rows to train on ──▶ predictions for the others
                         │             └─ fold 1 ...
                         └─▶ member B ─┬─ ...

Fits are independent of each other, so results do not depend on the number of parallel fits.
Estimators of arboost train on the codes of one binned table. All others get rows of X, in the type
of X. No member ever sees another member's rows.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from arboost.backend import in_caller_context, startable_threads, threads
from arboost.data.dataset import Dataset
from arboost.errors import InputTypeError
from arboost.estimators.estimator import EngineEstimator, category_encoding
from arboost.estimators.member_predictions import Classes, member_name, predict_member
from arboost.estimators.member_tables import take_rows
from arboost.losses.base import Floats
from arboost.params.records import BinParams, sought_bins
from arboost.progress import Bar
from arboost.training.inputs import Rows, check_weight_sum
from arboost.training.splits import Split

# Parameters that bins depend on, each with the value for estimators without that parameter. Members
# with equal values share bins.
_BINNING = {
    "tree_method": None,
    "bundling": True,
    "max_conflict_rate": 0.0,
    "categorical_features": None,
    "category_encoding": "auto",
    "date_format": "auto",
    "calendar_parts": "auto",
    "missing": None,
}


Result = TypeVar("Result")
_ROW_ARGUMENTS = ("sample_weight", "groups")  # arguments of arboost's fits with one entry per row


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
    """The result of each job: a fitted member, or predictions for held-out rows.

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
        for result in ordered_results(_run_job, ((job, data) for job in shared), n_parallel):
            results.append(result)
            bar.show(len(results))
    return results


def _share_bins(jobs: Sequence[MemberJob], data: MemberTrainingSet) -> list[MemberJob]:
    """The jobs; members of arboost with equal bins get one Dataset."""
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
    """Key of the bins of a job; None where bins cannot be shared."""
    if not is_engine(job.member) or job.arguments.keys() - {"sample_weight"}:
        return None
    weight = job.arguments.get("sample_weight")
    if weight is not None and not np.all(weight):
        return None  # a Dataset leaves out rows of weight 0
    return binning_key(job.member)


def binning_key(estimator: EngineEstimator) -> Hashable:
    """Key of the bins of an estimator of arboost: equal for parameters that give equal bins."""
    values = vars(estimator)
    # Values as strings: NaN is not equal to itself, and lists are not hashable.
    others = [repr(values.get(name, default)) for name, default in _BINNING.items()]
    return repr(sought_bins(values)), *others


def _run_job(job: MemberJob, data: MemberTrainingSet) -> Any:
    with _member_note(job), _job_settings(job.member, job.n_threads):
        return _fit_member(job, data) if job.split is None else _held_out_predictions(job, data)


@contextmanager
def _member_note(job: MemberJob) -> Iterator[None]:
    """Add the member's name to exceptions."""
    try:
        yield
    except Exception as error:
        where = "" if job.split is None else " on the rows of a fold"
        error.add_note(f"It was raised by the member {job.name!r}{where}.")
        raise


def _fit_member(job: MemberJob, data: MemberTrainingSet) -> Any:
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
    return predict_member(member, job.method, X, data.classes)


@contextmanager
def _job_settings(member: Any, n_threads: int | None) -> Iterator[None]:
    """Silence a member of arboost and limit its threads, for the time of a job.

    Only a member that would take all threads is limited. No prediction depends on either setting.
    """
    if not is_engine(member):
        yield
        return
    settings = {"verbose": member.verbose, "n_jobs": member.n_jobs}
    takes_all = settings["n_jobs"] in (None, -1)
    changed = {"verbose": 0} | ({"n_jobs": n_threads} if takes_all and n_threads else {})
    vars(member).update(changed)
    try:
        yield
    finally:
        vars(member).update(settings)


def check_weights(name: str, estimator: Any) -> str:
    """The name of the row weights among the arguments of fit, or raise TypeError."""
    argument = weight_name(estimator)
    if argument is not None:
        return argument
    kinds = {parameter.kind for parameter in inspect.signature(estimator.fit).parameters.values()}
    if inspect.Parameter.VAR_KEYWORD in kinds and not hasattr(estimator, "steps"):
        return "sample_weight"  # passed on to an inner estimator, as by GridSearchCV
    raise InputTypeError(
        f"sample_weight is given, but the fit of {name!r} ({member_name(estimator)}) has no such "
        "argument. Leave out sample_weight, or this estimator."
    )


# ---- shared bins ----


def is_engine(estimator: object) -> bool:
    """Whether an estimator is one of arboost that trains on rows of a Dataset."""
    return isinstance(estimator, EngineEstimator) and estimator._TAKES_ROWS


def shared_dataset(
    estimator: object,
    X: object,
    y: NDArray[Any],
    sample_weight: Floats | None = None,
    n_jobs: int | None = None,
) -> Dataset | None:
    """The binned table that clones of an estimator can share, or None.

    Bins cannot be shared by estimators of other libraries, estimators with a base estimator,
    forests with ``quantiles=True``, which look at values, fits of several targets, and tables with
    target encoding: the encoding of all rows would leak the targets of other members' rows.

    Parameters
    ----------
    estimator : estimator
    X : table of shape (n_rows, n_features)
    y : array of shape (n_rows,)
    sample_weight : float64 array of shape (n_rows,), or None
        Weights above 0.
    n_jobs : int or None
    """
    if not is_engine(estimator) or getattr(estimator, "estimator", None) is not None:
        return None
    if y.ndim != 1 or getattr(estimator, "quantiles", False):
        return None
    assert isinstance(estimator, EngineEstimator)
    data = make_dataset(estimator, X, y, sample_weight, n_jobs)
    return data if data.encoded_table is None else None


def make_dataset(
    estimator: EngineEstimator,
    X: object,
    y: NDArray[Any],
    sample_weight: Floats | None = None,
    n_jobs: int | None = None,
) -> Dataset:
    """The table, binned by the parameters of an estimator; parameters as above."""
    params = estimator._checked_params()
    return Dataset(
        X,
        y,
        sample_weight=sample_weight,
        max_bins=BinParams.of(params).sought_bins,
        tree_method=params["tree_method"],
        bundling=params["bundling"],
        max_conflict_rate=params.get("max_conflict_rate", 0.0),
        categorical_features=vars(estimator)["categorical_features"],
        missing=params["missing"],
        date_format=vars(estimator)["date_format"],
        calendar_parts=vars(estimator)["calendar_parts"],
        category_encoding=category_encoding(params, estimator._DEFAULT_ENCODING),
        n_jobs=n_jobs,
    )


def fit_on_rows(
    estimator: Any,
    dataset: Dataset,
    rows: NDArray[np.uint32],
    weight: Floats | None = None,
    **fit_params: Any,
) -> Any:
    """Fit an estimator of arboost to some rows of a Dataset, and return it.

    The model is the model of a fit to these rows alone, except that the bins are the bins of all
    rows of the Dataset.

    Parameters
    ----------
    estimator : estimator of arboost
        It is fitted in place, not cloned.
    dataset : Dataset
        With y, a result of `shared_dataset`.
    rows : uint32 array
        Ascending, each row once.
    weight : float64 array of shape (len(rows),), or None
        Weights above 0, multiplied with those of the Dataset: for example the number of times that
        each row was drawn.
    **fit_params
        More arguments of ``fit``; groups have one entry per row of the Dataset.
    """
    assert dataset.y is not None
    if dataset.sample_weight is not None:
        dataset_weight = dataset.sample_weight[rows]
        weight = dataset_weight if weight is None else dataset_weight * weight
    offset = None if dataset.offset is None else dataset.offset[rows]
    part = Rows(dataset, rows, dataset.y[rows], check_weight_sum(weight), offset=offset)
    return estimator.fit(part, **fit_params)


# ---- parallel fits ----


def ordered_results(
    task: Callable[..., Result], arguments: Iterable[tuple[Any, ...]], n_threads: int
) -> Iterator[Result]:
    """Yield the results of a task in the order of its arguments, computed by several threads."""
    n_threads = startable_threads(n_threads)
    if n_threads == 1:
        yield from (task(*values) for values in arguments)
        return
    # Threads even where a joblib context asks for processes: the tasks share a table.
    parallel = Parallel(n_jobs=n_threads, require="sharedmem", return_as="generator")
    configured = in_caller_context(task)
    # Some estimators change the warning filters of the process temporarily. Two threads that do so
    # at the same time may leave changed filters behind; this block restores them.
    with warnings.catch_warnings():
        yield from parallel(delayed(configured)(*values) for values in arguments)


def one_blas_thread() -> Any:
    """A context in which BLAS runs one thread.

    Members in parallel would oversubscribe the cores, and some BLAS sums depend on the number of
    threads, on which results must not depend.
    """
    return threadpool_limits(1, user_api="blas")


def arguments_for_rows(
    estimator: Any, arguments: Mapping[str, Any], rows: NDArray[Any], n_rows: int
) -> dict[str, Any]:
    """The arguments of an estimator's fit to some rows: values per row are indexed.

    Parameters
    ----------
    estimator : estimator
        For estimators of arboost only sample_weight and groups are indexed: a validation table may
        have as many rows as X.
    arguments : mapping
    rows : int array
    n_rows : int
        Number of rows of X.
    """
    by_row = _ROW_ARGUMENTS if is_engine(estimator) else arguments
    return {
        name: _take_by_row(value, rows, n_rows) if name in by_row else value
        for name, value in arguments.items()
    }


def _take_by_row(value: Any, rows: NDArray[Any], n_rows: int) -> Any:
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return value
    is_table = hasattr(value, "shape") and len(value.shape) > 0
    if (value.shape[0] if is_table else len(value)) != n_rows:
        return value
    return take_rows(value if is_table else np.asarray(value), rows)


def weight_name(estimator: Any) -> str | None:
    """The name of the row weights among the arguments of fit; None where there is none."""
    if has_fit_parameter(estimator, "sample_weight"):
        return "sample_weight"
    if not isinstance(estimator, Pipeline):
        return None
    step, last = estimator.steps[-1]
    name = weight_name(last)
    if name is None or get_config()["enable_metadata_routing"]:
        return name  # metadata routing hands the weights to the steps that request them
    return f"{step}__{name}"


def set_random_states(estimator: Any, seed: int, number: int) -> None:
    """Set all random_state parameters, nested ones too, by a seed and a member's number."""
    names = sorted(
        name
        for name in estimator.get_params(deep=True)
        if name == "random_state" or name.endswith("__random_state")
    )
    if names:
        states = random_states(seed, number, len(names))
        estimator.set_params(**dict(zip(names, states, strict=True)))


def random_states(seed: int, number: int, n_states: int) -> list[int]:
    """The random states of a member, by a seed and its number."""
    # Below 2^31, the limit that all estimators accept.
    states: list[int] = (
        np.random.SeedSequence([seed, number]).generate_state(n_states) >> 1
    ).tolist()
    return states
