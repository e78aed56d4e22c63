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
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn import config_context, get_config
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter
from threadpoolctl import threadpool_limits

from arboost.data.dataset import Dataset
from arboost.draws import Draws
from arboost.estimator import TreeEnsemble
from arboost.inputs import DatasetRows
from arboost.losses.base import Floats
from arboost.member_answers import member_name
from arboost.member_learners import set_random_states, weight_name
from arboost.member_tables import take_columns, take_rows

__all__ = [
    "MemberFits",
    "fit_on_rows",
    "in_order",
    "is_engine",
    "of_rows",
    "one_blas_thread",
    "shared_dataset",
]

Answer = TypeVar("Answer")

# Parameters of arboost's estimators that speak of columns, with their defaults.
_BY_COLUMN = {
    "categorical_features": "from_dtype",
    "interaction_constraints": None,
    "monotone_constraints": None,
    "monotonic_cst": None,
}
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
    return data if data.numbered is None else None


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


@dataclass(frozen=True, eq=False, kw_only=True)
class MemberFits:
    """How members are trained.

    Attributes
    ----------
    estimator : estimator
        It is cloned and never fitted itself.
    X : table
        As `member_table` returns it.
    y : array of shape (n_rows,) or (n_rows, n_targets)
        Labels or numbers, as members get them.
    draws : Draws
    weight : float64 array of shape (n_rows,), or None
        Weights above 0 that are passed on to members.
    dataset : Dataset or None
        What members share, where they can; with these weights.
    n_jobs : int or None
        For members that are trained one by one.
    fit_params : mapping
        More arguments of the members' ``fit``; of those that have an entry for each row, members
        get the entries of theirs.
    """

    estimator: Any
    X: Any
    y: NDArray[Any]
    draws: Draws
    weight: Floats | None = None
    dataset: Dataset | None = None
    n_jobs: int | None = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Raise ValueError where members cannot get what is for them."""
        if is_engine(self.estimator) and not self.draws.takes_all_features:
            self._check_columns()
        if self.weight is not None and weight_name(self.estimator) is None:
            raise ValueError(
                f"{member_name(self.estimator)} doesn't support sample_weight: its fit has no such "
                "argument, and with bootstrap=False weights are passed on. Use bootstrap=True, "
                "which draws rows in proportion to their weights, or leave out sample_weight."
            )

    def _check_columns(self) -> None:
        """Raise ValueError for parameters that speak of columns which members may not have."""
        for name, usual in _BY_COLUMN.items():
            given = getattr(self.estimator, name, usual)
            if not (given is usual or (isinstance(given, str) and given == usual)):
                raise ValueError(
                    f"{name}={given!r} of the estimator speaks of columns of X, but each member "
                    "gets features that are drawn for it. Use max_features=1.0 and "
                    f"bootstrap_features=False, or {name}={usual!r}."
                )

    def fit(self, number: int) -> Any:
        """Return one member, fitted to its bag."""
        member = clone(self.estimator)
        set_random_states(member, self.draws.rows.seed, number)
        drawn = self.draws.rows.drawn(number)
        if is_engine(member):
            # One bar is enough, and the threads are those of the whole.
            member.set_params(verbose=0)
            if member.n_jobs is None:
                member.set_params(n_jobs=self.n_jobs)
        if self.dataset is not None:
            return fit_on_rows(member, self.dataset, drawn.rows, drawn.counts, **self.fit_params)
        rows: NDArray[Any] = drawn.rows
        weight = None if self.weight is None else self.weight[rows]
        if drawn.counts is not None:
            if _takes_weights(member):
                weight = drawn.counts if weight is None else weight * drawn.counts
            else:
                rows = drawn.repeated()
        return self._fit_rows(member, rows, weight, self.draws.features(number))

    def _fit_rows(
        self,
        member: Any,
        rows: NDArray[Any],
        weight: Floats | None,
        features: NDArray[np.intp],
    ) -> Any:
        """Fit a member to rows and features of X."""
        X, y = self.X, self.y
        params = of_rows(member, self.fit_params, rows, self.draws.rows.n_rows)
        if not self.draws.takes_all_features:
            X = take_columns(X, features)
        if not self.draws.rows.takes_all:
            X, y = take_rows(X, rows), y[rows]
        if weight is not None:
            params[str(weight_name(member))] = weight
        try:
            member.fit(X, y, **params)
        except ValueError:
            # Trees learn a constant from rows of one class; many other classifiers refuse them.
            if not is_classifier(member) or (y != y[0]).any():
                raise
            return DummyClassifier(strategy="most_frequent").fit(X, y)
        return member


def _takes_weights(estimator: Any) -> bool:
    """Whether counts of rows can be told to an estimator as their weights.

    Not for a pipeline: only its last step would know them.
    """
    if not get_config()["enable_metadata_routing"]:
        return bool(has_fit_parameter(estimator, "sample_weight"))
    return bool(get_routing_for_object(estimator).consumes("fit", ("sample_weight",)))


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
