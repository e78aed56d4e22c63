"""Fits of the members of a bagging ensemble, each on its bag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from arboost.algorithms.bagging.bags import Bags
from arboost.algorithms.members.answers import member_name
from arboost.algorithms.members.arguments import set_random_states, weight_name
from arboost.algorithms.members.shared_fits import arguments_for_rows, fit_on_rows, is_engine
from arboost.algorithms.members.tables import take_columns, take_rows
from arboost.data.dataset import Dataset
from arboost.losses.base import Floats

__all__ = ["BagTrainer", "check_columns", "check_takes_weights"]


# Parameters of arboost's estimators that refer to columns, with their defaults.
_BY_COLUMN = {
    "categorical_features": "from_dtype",
    "date_format": "auto",
    "interaction_constraints": None,
    "monotone_constraints": None,
    "monotonic_cst": None,
}


def check_columns(estimator: Any) -> None:
    """Raise ValueError for parameters that refer to columns, which a bag may not have."""
    for name, usual in _BY_COLUMN.items():
        given = getattr(estimator, name, usual)
        if name == "date_format" and not isinstance(given, Mapping):
            continue  # of any column
        if not (given is usual or (isinstance(given, str) and given == usual)):
            raise ValueError(
                f"{name}={given!r} of the estimator refers to columns of X, but each member gets "
                "drawn features. Use max_features=1.0 and bootstrap_features=False, or "
                f"{name}={usual!r}."
            )


def check_takes_weights(estimator: Any) -> None:
    """Raise ValueError for an estimator whose fit takes no row weights."""
    if weight_name(estimator) is None:
        raise ValueError(
            f"{member_name(estimator)} doesn't support sample_weight: its fit has no such "
            "argument, and with bootstrap=False weights are passed on. Use bootstrap=True, "
            "which draws rows in proportion to their weights, or leave out sample_weight."
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class BagTrainer:
    """Training rows, bags and arguments that every member is fitted from.

    Attributes
    ----------
    estimator : estimator
        Template of the members; it is cloned and never fitted.
    X : table
        The X of a `MemberTable`.
    y : array of shape (n_rows,) or (n_rows, n_targets)
        Labels or numbers.
    bags : Bags
    weight : float64 array of shape (n_rows,), or None
        Weights above 0 that are passed on to members.
    dataset : Dataset or None
        Binned table with these weights, where members can share one.
    n_jobs : int or None
        Threads of members of arboost, which are fitted one after another.
    fit_params : mapping
        More arguments of the members' ``fit``; values with one entry per row are indexed by the
        rows of the bag.
    """

    estimator: Any
    X: Any
    y: NDArray[Any]
    bags: Bags
    weight: Floats | None = None
    dataset: Dataset | None = None
    n_jobs: int | None = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)

    def fit(self, number: int) -> Any:
        """Return one member, fitted to its bag."""
        member = clone(self.estimator)
        set_random_states(member, self.bags.rows.seed, number)
        drawn = self.bags.rows.drawn(number)
        if is_engine(member):
            # The ensemble shows the progress bar, and its n_jobs is the default of the members.
            member.verbose = 0
            if member.n_jobs is None:
                member.n_jobs = self.n_jobs
        if self.dataset is not None:
            return fit_on_rows(member, self.dataset, drawn.rows, drawn.counts, **self.fit_params)
        rows: NDArray[Any] = drawn.rows
        weight = None if self.weight is None else self.weight[rows]
        if drawn.counts is not None:
            if _takes_counts(member):
                weight = drawn.counts if weight is None else weight * drawn.counts
            else:
                rows = drawn.repeated()
        return self._fit_rows(member, rows, weight, self.bags.features(number))

    def _fit_rows(
        self,
        member: Any,
        rows: NDArray[Any],
        weight: Floats | None,
        features: NDArray[np.intp],
    ) -> Any:
        """Fit a member to rows and features of X."""
        X, y = self.X, self.y
        arguments = arguments_for_rows(member, self.fit_params, rows, self.bags.rows.n_rows)
        if not self.bags.takes_all_features:
            X = take_columns(X, features)
        if not self.bags.rows.takes_all:
            X, y = take_rows(X, rows), y[rows]
        if weight is not None:
            arguments[str(weight_name(member))] = weight
        try:
            member.fit(X, y, **arguments)
        except ValueError:
            # Trees learn a constant from rows of one class; many other classifiers refuse them.
            if not is_classifier(member) or (y != y[0]).any():
                raise
            return DummyClassifier(strategy="most_frequent").fit(X, y)
        return member


def _takes_counts(estimator: Any) -> bool:
    """Whether the counts of drawn rows can be passed to an estimator as row weights.

    Not to a pipeline: only its last step would get them.
    """
    if not get_config()["enable_metadata_routing"]:
        return bool(has_fit_parameter(estimator, "sample_weight"))
    return bool(get_routing_for_object(estimator).consumes("fit", ("sample_weight",)))
