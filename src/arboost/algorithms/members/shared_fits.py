"""Members that share what can be shared: fits of estimators on rows of one table.

    X ──bins──▶ Dataset ─┬─▶ member 0: its rows, weighed by how often they were drawn
                         ├─▶ member 1 ...
                         └─▶ member M

Estimators of arboost train on the codes of one binned table. All others get rows of X, of its own
type. No member ever sees a row that is not its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn import config_context, get_config
from threadpoolctl import threadpool_limits

from arboost.algorithms.estimator import TreeEnsemble
from arboost.algorithms.members.tables import take_rows
from arboost.data.dataset import Dataset
from arboost.losses.base import Floats
from arboost.training.inputs import DatasetRows

__all__ = ["fit_on_rows", "in_order", "is_engine", "of_rows", "one_blas_thread", "shared_dataset"]

Answer = TypeVar("Answer")

_BY_ROW = ("sample_weight", "groups")  # arguments of arboost's fits with an entry for each row


def is_engine(estimator: object) -> bool:
    """Whether an estimator is one of arboost, which has threads of its own."""
    return isinstance(estimator, TreeEnsemble)


def shared_dataset(
    estimator: object,
    X: object,
    y: NDArray[Any],
    sample_weight: Floats | None = None,
    n_jobs: int | None = None,
) -> Dataset | None:
    """Return the binned table that clones of an estimator can be trained on, rows by rows.

    None where there is none: the estimator is not one of arboost, or has learners of its own; y is
    of several targets; or categories have so many levels that numbers by means of y stand for them,
    which would tell members of rows that are not theirs.

    Parameters
    ----------
    estimator : estimator
    X : table of shape (n_rows, n_features)
    y : array of shape (n_rows,)
    sample_weight : float64 array of shape (n_rows,), or None
        Weights above 0.
    n_jobs : int or None
    """
    if not isinstance(estimator, TreeEnsemble) or getattr(estimator, "estimator", None) is not None:
        return None
    if y.ndim != 1:
        return None
    params = estimator._params()
    data = Dataset(
        X,
        y,
        sample_weight=sample_weight,
        max_bins=params["max_bins"],
        tree_method=params["tree_method"],
        bundling=params["bundling"],
        max_conflict_rate=params.get("max_conflict_rate", 0.0),
        categorical_features=estimator.get_params()["categorical_features"],
        missing=params["missing"],
        n_jobs=n_jobs,
    )
    return data if data.encoded_table is None else None


def fit_on_rows(
    estimator: Any,
    dataset: Dataset,
    rows: NDArray[np.uint32],
    weight: Floats | None = None,
    **fit_params: Any,
) -> Any:
    """Fit an estimator of arboost on some rows of a Dataset, and return it.

    The model is that of a fit to these rows alone, but for the bins, which are those of all rows.

    Parameters
    ----------
    estimator : estimator of arboost
        It is fitted itself.
    dataset : Dataset
        With y, as `shared_dataset` returns it.
    rows : uint32 array
        Ascending, each row once.
    weight : float64 array of shape (len(rows),), or None
        Weights above 0, beside those of the Dataset: for example how often each row was drawn.
    **fit_params
        More arguments of its ``fit``; groups have an entry for each row of the Dataset.
    """
    return estimator.fit(DatasetRows(dataset, rows, weight), **fit_params)


def in_order(
    task: Callable[..., Answer], arguments: Iterable[tuple[Any, ...]], n_threads: int
) -> Iterator[Answer]:
    """Yield the answers of tasks in the order of their arguments, while threads are at the next."""
    if n_threads == 1:
        yield from (task(*of_one) for of_one in arguments)
        return
    # Even where a joblib context asks for processes: the tasks share a table.
    parallel = Parallel(n_jobs=n_threads, require="sharedmem", return_as="generator")
    configured = _Configured(get_config(), task)
    # Some estimators set the warning filters of the process for a moment. Two threads that do so
    # at the same time may leave the filters of one of them behind; this block puts them back.
    with warnings.catch_warnings():
        yield from parallel(delayed(configured)(*of_one) for of_one in arguments)


@dataclass(frozen=True)
class _Configured:
    """A task with the configuration of scikit-learn in the thread that it came from."""

    config: Mapping[str, Any]
    task: Callable[..., Any]

    def __call__(self, *arguments: Any) -> Any:
        with config_context(**self.config):
            return self.task(*arguments)


def one_blas_thread() -> Any:
    """Return a block in which linear algebra has one thread.

    Members that work side by side would wait for each other's threads; and some sums depend on the
    number of threads, which must not be seen in the result.
    """
    return threadpool_limits(1, user_api="blas")


def of_rows(
    estimator: Any, params: Mapping[str, Any], rows: NDArray[Any], n_rows: int
) -> dict[str, Any]:
    """Return arguments of an estimator's fit for some rows: entries of what has one for each row.

    Parameters
    ----------
    estimator : estimator
        Of those of arboost it is known which arguments these are: a validation table may have as
        many rows as X.
    params : mapping
    rows : int array
    n_rows : int
        Rows of X.
    """
    by_row = _BY_ROW if is_engine(estimator) else params
    return {
        name: _taken(value, rows, n_rows) if name in by_row else value
        for name, value in params.items()
    }


def _taken(value: Any, rows: NDArray[Any], n_rows: int) -> Any:
    if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
        return value
    is_table = hasattr(value, "shape") and len(value.shape) > 0
    if (value.shape[0] if is_table else len(value)) != n_rows:
        return value
    return take_rows(value if is_table else np.asarray(value), rows)
