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

from arboost.algorithms.bagging.bags import Draws
from arboost.algorithms.members.answers import member_name
from arboost.algorithms.members.arguments import set_random_states, weight_name
from arboost.algorithms.members.shared_fits import fit_on_rows, is_engine, of_rows
from arboost.algorithms.members.tables import take_columns, take_rows
from arboost.data.dataset import Dataset
from arboost.losses.base import Floats

__all__ = ["MemberFits"]


# Parameters of arboost's estimators that speak of columns, with their defaults.
_BY_COLUMN = {
    "categorical_features": "from_dtype",
    "interaction_constraints": None,
    "monotone_constraints": None,
    "monotonic_cst": None,
}


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
