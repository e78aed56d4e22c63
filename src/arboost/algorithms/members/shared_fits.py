"""Fits of several members on rows of one table, with shared bins and threads.

    X ──bins──▶ Dataset ─┬─▶ member 0: its rows, weighted by the number of times they were drawn
                         ├─▶ member 1 ...
                         └─▶ member M

Estimators of arboost train on the codes of one binned table. All others get rows of X, in the type
of X. No member ever sees another member's rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn import config_context, get_config
from threadpoolctl import threadpool_limits

from arboost.algorithms.estimator import EngineEstimator, category_encoding
from arboost.algorithms.members.tables import take_rows
from arboost.backend import startable
from arboost.data.dataset import Dataset
from arboost.params.records import BinParams
from arboost.training.inputs import EngineRows, Floats, Index, Rows, summable

__all__ = [
    "arguments_for_rows",
    "dataset_of",
    "fit_on_rows",
    "in_order",
    "is_engine",
    "one_blas_thread",
    "shared_dataset",
]

Result = TypeVar("Result")

_BY_ROW = ("sample_weight", "groups")  # arguments of arboost's fits with one entry per row


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
    """Return the binned table that clones of an estimator can share, or None.

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
    data = dataset_of(estimator, X, y, sample_weight, n_jobs)
    return data if data.encoded_table is None else None


def dataset_of(
    estimator: EngineEstimator,
    X: object,
    y: NDArray[Any],
    sample_weight: Floats | None = None,
    n_jobs: int | None = None,
) -> Dataset:
    """Return the table, binned by the parameters of an estimator; parameters as above."""
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
        category_encoding=category_encoding(params, estimator._USUAL_ENCODING),
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
    return estimator.fit(dataset_rows(dataset, rows, weight), **fit_params)


def in_order(
    task: Callable[..., Result], arguments: Iterable[tuple[Any, ...]], n_threads: int
) -> Iterator[Result]:
    """Yield the results of a task in the order of its arguments, computed by several threads."""
    n_threads = startable(n_threads)
    if n_threads == 1:
        yield from (task(*one) for one in arguments)
        return
    # Threads even where a joblib context asks for processes: the tasks share a table.
    parallel = Parallel(n_jobs=n_threads, require="sharedmem", return_as="generator")
    configured = _Configured(get_config(), copy_context(), task)
    # Some estimators change the warning filters of the process temporarily. Two threads that do so
    # at the same time may leave changed filters behind; this block restores them.
    with warnings.catch_warnings():
        yield from parallel(delayed(configured)(*one) for one in arguments)


@dataclass(frozen=True)
class _Configured:
    """A task with the context and scikit-learn configuration of the thread that created it."""

    config: Mapping[str, Any]
    context: Context
    task: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        with config_context(**self.config):
            # Only one thread at a time may run in a context.
            return self.context.copy().run(self.task, *arguments)


def one_blas_thread() -> Any:
    """Return a context in which BLAS runs one thread.

    Members in parallel would oversubscribe the cores, and some BLAS sums depend on the number of
    threads, on which results must not depend.
    """
    return threadpool_limits(1, user_api="blas")


def arguments_for_rows(
    estimator: Any, arguments: Mapping[str, Any], rows: NDArray[Any], n_rows: int
) -> dict[str, Any]:
    """Return the arguments of an estimator's fit to some rows: values per row are indexed.

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
    by_row = _BY_ROW if is_engine(estimator) else arguments
    return {
        name: _taken(value, rows, n_rows) if name in by_row else value
        for name, value in arguments.items()
    }


def _taken(value: Any, rows: NDArray[Any], n_rows: int) -> Any:
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return value
    is_table = hasattr(value, "shape") and len(value.shape) > 0
    if (value.shape[0] if is_table else len(value)) != n_rows:
        return value
    return take_rows(value if is_table else np.asarray(value), rows)


def dataset_rows(data: Dataset, index: Index, weight: Floats | None = None) -> EngineRows:
    """Return some rows of a Dataset, which share its bins with the other members of an ensemble.

    Parameters
    ----------
    data : Dataset
        With its y.
    index : uint32 array
        Ascending, each row once.
    weight : float64 array of shape (len(index),), or None
        Weights above 0, multiplied by those of the Dataset.
    """
    assert data.y is not None
    if data.sample_weight is not None:
        own = data.sample_weight[index]
        weight = own if weight is None else own * weight
    offset = None if data.offset is None else data.offset[index]
    return Rows(data, index, data.y[index], summable(weight), offset=offset)
