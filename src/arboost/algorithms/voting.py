"""What both kinds of voting share: members that are fitted on all rows, and what each counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from arboost.algorithms.named_members import NamedMembers, is_drop
from arboost.data.schema import Schema
from arboost.member_jobs import Job, Learning, run

__all__ = ["Voting"]


class Voting(NamedMembers):
    """Members that are asked side by side."""

    weights: Any

    def _params(self) -> dict[str, Any]:
        params = super()._params()
        given, pairs = params["weights"], params["estimators"]
        if given is None:
            return params
        if len(given) != len(pairs):
            raise ValueError(
                f"weights has {len(given)} entries, but there are {len(pairs)} members. Pass one "
                "for each, dropped ones too."
            )
        if not self._shares([member for _, member in pairs]).sum() > 0.0:
            raise ValueError(
                f"weights={self.weights!r} are not allowed: those of the members that are not "
                "dropped are all 0. Give at least one of them a weight above 0."
            )
        return params

    def _shares(self, members: Sequence[Any]) -> NDArray[np.float64]:
        """Return what each of the members counts that is not dropped."""
        weights = np.ones(len(members)) if self.weights is None else np.asarray(self.weights, float)
        return weights[[not is_drop(member) for member in members]]

    def _fitted_shares(self) -> NDArray[np.float64]:
        """Return what each of the fitted members counts; others may have been dropped since."""
        return self._shares(list(self.named_estimators_.values()))

    def _mean(self, of_members: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the mean of what the members say, by their weights."""
        shares = self._fitted_shares()
        total = np.zeros_like(of_members[0])
        for share, given in zip(shares, of_members, strict=True):
            total += share * given
        mean: NDArray[np.float64] = total / shares.sum()
        return mean

    def _fit(
        self,
        params: dict[str, Any],
        data: Learning,
        schema: Schema | None,
        sample_weight: object,
        fit_params: Mapping[str, Any],
    ) -> None:
        """Fit all members; nothing before the end changes this estimator."""
        members = self._active(params)
        arguments = self._arguments(members, sample_weight, fit_params, len(data.y))
        jobs = [Job(name, clone(member), arguments[name]) for name, member in members]
        fitted = run(
            jobs, data, n_jobs=params["n_jobs"], label="voting", visible=params["verbose"] > 0
        )
        self._keep_members(params, fitted, schema)
