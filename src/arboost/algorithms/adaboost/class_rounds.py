"""AdaBoost for classification between two rounds: votes of the learners make the scores.

The distribution of the rows is a function of the scores (lemma 1 of every proof: D ~ exp(-m)), so
scores are the whole state, and no rounding error grows from round to round.
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
from arboost.algorithms.adaboost.schemes import ClassScheme
from arboost.backend import core
from arboost.losses.base import Floats
from arboost.losses.metrics import Metric
from arboost.training.monitor import Results
from arboost.training.rounds import Scores, validation_results

__all__ = ["ClassRounds"]


class ClassRounds(AdaBoostRounds):
    """AdaBoost for classification between two rounds; the parameters are those of the base."""

    fact_names = ("error", "weight", "normalizer", "loss", "training_error", "vote_range")

    def __init__(
        self,
        recipe: AdaBoostRecipe,
        learners: Learners,
        data: ScoredRows,
        evaluations: Sequence[ScoredSet] = (),
        *,
        first_round: int = 0,
        n_threads: int,
        seed: int,
    ) -> None:
        super().__init__(
            recipe,
            learners,
            data,
            evaluations,
            first_round=first_round,
            n_threads=n_threads,
            seed=seed,
        )
        assert isinstance(recipe.scheme, ClassScheme)
        self.scheme = recipe.scheme
        self.scores = self._start(data)
        self.evaluation_scores = [self._start(rows) for rows in evaluations]
        self._log_loss, _ = self._update_distribution()

    def run_rounds(self, limit: int = 1) -> None:
        """Fit one more learner, whatever the limit, or end where none is better than chance.

        Raise ValueError where not even the first learner is.
        """
        super().run_rounds()
        if self.ended is None or self.first_round + self.n_rounds > 0:
            return
        raise ValueError(_no_learner_message(self.recipe, self.scheme.n_classes))

    def results(self, metrics: Sequence[Metric]) -> Results:
        """Return the metrics of the validation set at the scores so far."""
        return validation_results(self.evaluations, self.evaluation_scores, metrics)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return everything that the next round depends on, apart from the data of the fit."""
        scores = {f"scores_{i}": one for i, one in enumerate(self._all_scores())}
        return super().state() | scores

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Return to a state; the next round is the one that would have followed it."""
        super().restore(state)
        for i, scores in enumerate(self._all_scores()):
            scores[:] = state[f"scores_{i}"]
        self._log_loss, _ = self._update_distribution()

    def _all_scores(self) -> list[Scores]:
        return [self.scores, *self.evaluation_scores]

    def _start(self, rows: ScoredRows) -> Scores:
        if rows.start is not None:
            return rows.start.copy()
        return np.zeros((len(rows.target.y), self.scheme.loss.n_outputs))

    def _update_distribution(self) -> tuple[float, float]:
        """Compute the distribution of the rows from their scores; return log loss and error."""
        y, weight = self.target.y, self.target.weight
        log_loss, error = core.class_distribution(
            y, weight, self.scores, self.distribution, self.n_threads
        )
        return log_loss, error

    def _row_weights(self) -> Floats:
        return self.distribution  # its mean is 1

    def _error(self, votes: Floats) -> float:
        return core.weighted_error(self.target.y, self.distribution, votes, self.n_threads)

    def _keep_learner(self, error: float, votes: Floats) -> None:
        factor = self.scheme.weight(error)
        self.scores += factor * votes
        for i in range(len(self.evaluations)):
            self.evaluation_scores[i] += factor * self.learners.votes(i)
        self.learners.keep(factor)
        before = self._log_loss
        self._log_loss, training_error = self._update_distribution()
        self._note(
            error=error,
            weight=factor,
            normalizer=core.exp(self._log_loss - before),
            loss=core.exp(self._log_loss),
            training_error=training_error,
            vote_range=factor * self.scheme.vote_range(votes),
        )

    def _oob_scores(self, n_rounds: int) -> Scores:
        scores = np.full_like(self.scores, np.nan)
        for rows, drawn in self._drawn_blocks(n_rounds):
            of_block = np.zeros((len(rows), scores.shape[1]))
            for index in range(n_rounds):
                out = ~drawn[index]
                if out.any():
                    of_block[out] += self.learners.kept_votes(index, rows[out])
            has_score = ~drawn.all(axis=0)
            scores[rows[has_score]] = of_block[has_score]
        return scores


def _no_learner_message(recipe: AdaBoostRecipe, n_classes: int) -> str:
    tried, instead = "the first learner is", "resample=True"
    if recipe.resample:
        tried = f"{1 + recipe.max_restarts} first learners, each on another draw of rows, are"
        instead = "a larger max_restarts"
    return (
        f"{tried} worse than random, or no better: wrong on {1 - 1 / n_classes:.0%} of the rows' "
        "weight or more, so that there is nothing to boost. Use a stronger learner (a larger "
        f"max_depth), other features, or {instead}."
    )
