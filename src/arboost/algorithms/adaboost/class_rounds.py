"""AdaBoost of classes, round by round: learners vote, and votes make scores.

The distribution of the rows is a function of the scores (lemma 1 of every proof: D ~ exp(-m)), so
scores are all there is to keep, and nothing drifts from round to round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.algorithms.adaboost.rounds import Reweighting, Started, Watched, WeightRecipe
from arboost.algorithms.adaboost.schemes import Votes
from arboost.algorithms.adaboost.tree_learners import Learners
from arboost.backend import core
from arboost.losses.base import Floats
from arboost.losses.metrics import Metric
from arboost.training.monitor import Results
from arboost.training.rounds import Scores, results_of

__all__ = ["VoteRounds"]

_LARGEST_EXPONENT = 709.0  # of e, below the largest double


class VoteRounds(Reweighting):
    """A fit of `Votes` between two rounds."""

    fact_names = ("error", "weight", "normalizer", "loss", "training_error", "vote_range")

    def __init__(
        self,
        recipe: WeightRecipe,
        learners: Learners,
        data: Started,
        evaluations: Sequence[Watched] = (),
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
        assert isinstance(recipe.scheme, Votes)
        self.scheme = recipe.scheme
        self.scores = self._start(data)
        self.evaluation_scores = [self._start(part) for part in evaluations]
        self._log_loss, _ = self._weigh()

    def run_round(self) -> None:
        """Make one more learner, or find that there is none."""
        super().run_round()
        if self.ended is None or self.first_round + self.n_rounds > 0:
            return
        raise ValueError(_useless(self.recipe, self.scheme.n_classes))

    def results(self, metrics: Sequence[Metric]) -> Results:
        """Return the metrics of every evaluation set at the scores so far."""
        return results_of(self.evaluations, self.evaluation_scores, metrics)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that the next round depends on, apart from what the fit was given."""
        scores = {f"scores_{i}": one for i, one in enumerate(self._all_scores())}
        return super().state() | scores

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go back to a state; the next round is then what it would have been."""
        super().restore(state)
        for i, scores in enumerate(self._all_scores()):
            scores[:] = state[f"scores_{i}"]
        self._log_loss, _ = self._weigh()

    def _all_scores(self) -> list[Scores]:
        return [self.scores, *self.evaluation_scores]

    def _start(self, part: Started) -> Scores:
        if part.start is not None:
            return part.start.copy()
        return np.zeros((len(part.target.y), self.scheme.loss.n_outputs))

    def _weigh(self) -> tuple[float, float]:
        """Take the distribution of the rows from their scores; return log loss and error."""
        y, weight = self.target.y, self.target.weight
        log_loss, error = core.class_distribution(
            y, weight, self.scores, self.distribution, self.n_threads
        )
        return log_loss, error

    def _row_weights(self) -> Floats:
        return self.distribution  # its mean is 1

    def _error(self, votes: Floats) -> float:
        return core.weighted_error(self.target.y, self.distribution, votes, self.n_threads)

    def _keep(self, error: float, votes: Floats) -> None:
        factor = self.scheme.weight(error)
        self.scores += factor * votes
        for part in range(len(self.evaluations)):
            self.evaluation_scores[part] += factor * self.learners.votes(part)
        self.learners.keep(factor)  # from now on the factor is in what it says
        before = self._log_loss
        self._log_loss, training_error = self._weigh()
        self._note(
            error=error,
            weight=factor,
            normalizer=_exp(self._log_loss - before),
            loss=_exp(self._log_loss),
            training_error=training_error,
            vote_range=factor * self.scheme.vote_range(votes),
        )

    def _median_weights(self, n_rounds: int) -> Floats | None:
        return None

    def _out_of_bag(self, n_rounds: int) -> Scores:
        scores = np.full_like(self.scores, np.nan)
        for rows, drawn in self._blocks(n_rounds):
            of_block = np.zeros((len(rows), scores.shape[1]))
            for index in range(n_rounds):
                out = ~drawn[index]
                if out.any():
                    of_block[out] += self.learners.kept_votes(index, rows[out])
            heard = ~drawn.all(axis=0)
            scores[rows[heard]] = of_block[heard]
        return scores

    def _score(self, y: Floats, scores: Scores, weight: Floats | None) -> float:
        weight = np.ones(len(y)) if weight is None else weight
        return 1.0 - core.weighted_error(y, weight, scores, self.n_threads)


def _exp(x: float) -> float:
    return math.exp(x) if x < _LARGEST_EXPONENT else math.inf


def _useless(recipe: WeightRecipe, n_classes: int) -> str:
    """Say that there was not even a first learner."""
    tried, instead = "the first learner is", "resample=True"
    if recipe.resample:
        tried = f"{1 + recipe.max_restarts} first learners, each on another draw of rows, are"
        instead = "a larger max_restarts"
    return (
        f"{tried} worse than random, or no better: wrong on {1 - 1 / n_classes:.0%} of the rows' "
        "weight or more, so that there is nothing to boost. Use a stronger learner (a larger "
        f"max_depth), other features, or {instead}."
    )
