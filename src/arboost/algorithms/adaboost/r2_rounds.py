"""AdaBoost.R2 between two rounds: rows of large errors weigh more for the next learner.

Where training is continued, ``start`` has a column for the predictions of each learner so far: the
row weights follow from them, one learner after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.algorithms.adaboost.rounds import (
    AdaBoostRecipe,
    AdaBoostRounds,
    Learners,
    ScoredRows,
    ScoredSet,
)
from arboost.algorithms.adaboost.schemes import R2Scheme
from arboost.backend import core
from arboost.losses.base import Floats
from arboost.losses.metrics import Metric
from arboost.training.monitor import Results
from arboost.training.rounds import Scores, validation_results

__all__ = ["R2Rounds"]

_ROUNDING = 1e-9  # of the range of y


class R2Rounds(AdaBoostRounds):
    """AdaBoost.R2 between two rounds.

    Parameters
    ----------
    start_weights : float64 array of shape (first_round,), or None
        Learner weights of the model whose training is continued.
    """

    fact_names = ("error", "weight")
    keeps_first = True

    def __init__(
        self,
        recipe: AdaBoostRecipe,
        learners: Learners,
        data: ScoredRows,
        evaluations: Sequence[ScoredSet] = (),
        *,
        start_weights: Floats | None = None,
        n_threads: int,
        seed: int,
    ) -> None:
        self._start_weights = np.empty(0) if start_weights is None else start_weights
        super().__init__(
            recipe,
            learners,
            data,
            evaluations,
            first_round=len(self._start_weights),
            n_threads=n_threads,
            seed=seed,
        )
        assert isinstance(recipe.scheme, R2Scheme)
        self.scheme = recipe.scheme
        weight = data.target.weight
        self.distribution[:] = 1.0 if weight is None else weight
        self.distribution /= self.distribution.sum()
        self._losses = np.empty_like(self.distribution)
        self._range = float(data.target.y.max() / 2 - data.target.y.min() / 2) * 2
        self._predictions = [_columns(rows) for rows in evaluations]
        if data.start is not None:
            for column in data.start.T:
                self._update_distribution(self._error(column[:, np.newaxis]))

    def results(self, metrics: Sequence[Metric]) -> Results:
        """Return the metrics of the validation set at the weighted medians or means so far."""
        weights = np.append(self._start_weights, self.facts["weight"])
        scores = [
            self.scheme.combined(np.stack(columns, axis=1), weights, self.n_threads)
            for columns in self._predictions
        ]
        combined = [values[:, np.newaxis] for values in scores]
        return validation_results(self.evaluations, combined, metrics)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that the next round depends on, apart from the data of the fit."""
        predictions = {
            f"predictions_{i}": np.stack(columns[self.first_round :], axis=1)
            if self.n_rounds
            else np.empty((len(rows.target.y), 0))
            for i, (rows, columns) in enumerate(
                zip(self.evaluations, self._predictions, strict=True)
            )
        }
        scores = {"scores_0": self.distribution}
        return super().state() | scores | predictions

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Return to a state; the next round is the one that would have followed it."""
        super().restore(state)
        self.distribution[:] = state["scores_0"]
        for i, columns in enumerate(self._predictions):
            stored = state[f"predictions_{i}"]
            if stored.shape != (len(self.evaluations[i].target.y), self.n_rounds):
                raise ValueError(f"predictions of shape {stored.shape}")
            columns[self.first_round :] = list(stored.T)

    def _row_weights(self) -> Floats:
        return self.distribution * len(self.distribution)  # its sum is 1

    def _error(self, votes: Floats) -> float:
        prediction = votes[:, 0].copy()
        # Leaf values are sums of integers: their rounding is no error to learn from.
        if np.abs(self.target.y - prediction).max() <= _ROUNDING * self._range:
            self._losses[:] = 0.0
            return 0.0
        return core.r2_losses(
            self.target.y,
            prediction,
            self.distribution,
            self.scheme.error,
            self._losses,
            self.n_threads,
        )

    def _keep_learner(self, error: float, votes: Floats) -> None:
        is_weak = error >= self.scheme.chance  # the very first learner, which stays alone
        for i, columns in enumerate(self._predictions):
            columns.append(self.learners.votes(i)[:, 0])
        self.learners.keep(1.0)
        weight = 1.0 if is_weak else -self.scheme.rate * self.scheme.log_beta(error)
        self._note(error=error, weight=weight)
        if is_weak:
            self.end_as_weak()
        else:
            self._update_distribution(error)

    def _update_distribution(self, error: float) -> None:
        """Multiply the distribution by powers of beta, from the losses of the last learner."""
        exponent = self.scheme.rate * self.scheme.log_beta(error)
        core.r2_reweight(self._losses, exponent, self.distribution, self.n_threads)

    def _oob_scores(self, n_rounds: int) -> Scores:
        scores = np.full((len(self.target.y), 1), np.nan)
        weights = np.array(self.facts["weight"][:n_rounds])
        for rows, drawn in self._drawn_blocks(n_rounds):
            values = np.full((len(rows), n_rounds), np.nan)
            for index in range(n_rounds):
                out = ~drawn[index]
                if out.any():
                    values[out, index] = self.learners.kept_votes(index, rows[out])[:, 0]
            scores[rows, 0] = self.scheme.combined(values, weights, self.n_threads)
        return scores


def _columns(rows: ScoredRows) -> list[Floats]:
    return [] if rows.start is None else list(rows.start.T)
