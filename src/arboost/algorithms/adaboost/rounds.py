"""Boosting by weights: every learner sees the rows as the learners before it have left them.

A round draws rows or weighs them, asks for a learner, and rates it on all training rows. A learner
that knows no more than chance is dropped: where rows are drawn another draw is tried, else the fit
ends (Zhou 2012, "Ensemble Methods", section 2.2). A perfect learner leaves nothing to learn from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from arboost.algorithms.adaboost.schemes import Amounts, Votes
from arboost.algorithms.adaboost.tree_learners import Learners
from arboost.backend import core
from arboost.grow.grower import TreeParams
from arboost.losses import Loss, Target
from arboost.losses.base import Floats
from arboost.training.rounds import Fitted, Measured, OutOfBag, Scores

__all__ = ["Reweighting", "Started", "Watched", "WeightRecipe"]

_PERFECT = "perfect learner"
_NO_BETTER = "no better than chance"

_OUT_OF_BAG_CELLS = 1 << 22  # numbers that are held at once


@dataclass(frozen=True, kw_only=True)
class WeightRecipe:
    """What makes an algorithm that weighs rows.

    Attributes
    ----------
    scheme : Votes or Amounts
    n_estimators : int
        Rounds.
    tree : TreeParams
    least_share : float
        Share of the rows' weight that each side of a split must hold.
    resample : bool
        Whether learners see rows that are drawn by their weights, instead of the weights.
    max_restarts : int
        Draws that are tried again in a round after a learner that is no better than chance.
    out_of_bag : bool
        Whether rows are scored by the learners that did not draw them.
    """

    scheme: Votes | Amounts
    n_estimators: int
    tree: TreeParams
    least_share: float = 0.0
    resample: bool = False
    max_restarts: int = 0
    out_of_bag: bool = False

    trees_per_round = 1

    @property
    def loss(self) -> Loss:
        """What scores are rated by where nothing else is asked for."""
        return self.scheme.loss


class Started(Protocol):
    """Rows that a model may have scored before, whose training goes on."""

    @property
    def target(self) -> Target:
        """What is to be predicted."""
        ...

    @property
    def start(self) -> Scores | None:
        """Scores of that model; None where training begins."""
        ...


class Watched(Measured, Started, Protocol):
    """Rows that are measured after every round."""


class Reweighting:
    """What both kinds of fits share: attempts, draws, and what is noted of a round."""

    fact_names: tuple[str, ...]
    keeps_first = False  # whether the very first learner stays, however bad

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
        self.recipe = recipe
        self.learners = learners
        self.target = data.target
        self.evaluations = tuple(evaluations)
        self.first_round = first_round
        self.n_threads = n_threads
        self.seed = seed
        self.n_rounds = 0
        self.ended: str | None = None
        self.facts: dict[str, list[float]] = {name: [] for name in self.fact_names}
        self.distribution = np.empty(len(data.target.y))
        self._drawn: list[NDArray[np.uint8]] = []  # of each round, a bit for each row

    @property
    def weights(self) -> Floats:
        """What each round is multiplied by, its own weight apart."""
        return np.ones(self.n_rounds)

    def run_round(self) -> None:
        """Make one more learner, or find that there is none."""
        n_attempts = 1 + self.recipe.max_restarts if self.recipe.resample else 1
        total = self.first_round + self.n_rounds
        for attempt in range(n_attempts):
            sample = self._learn(total * n_attempts + attempt)
            votes = self.learners.votes()
            error = self._error(votes)
            is_last_chance = self.keeps_first and total == 0 and attempt == n_attempts - 1
            if error < self.recipe.scheme.chance or is_last_chance:
                self._keep(error, votes)
                if sample is not None and self.recipe.out_of_bag:
                    self._note_drawn(sample)
                self.n_rounds += 1
                return
            self.learners.drop()
        self.ended = _NO_BETTER

    def fitted(self, weights: Floats) -> Fitted:
        """Return the learners of the first rounds, and what is known of them."""
        n_rounds = len(weights)
        return Fitted(
            self.learners.fitted(n_rounds),
            np.zeros(self.recipe.loss.n_outputs),
            tree_weights=self._median_weights(n_rounds),
            facts={name: np.array(values[:n_rounds]) for name, values in self.facts.items()},
            out_of_bag=self._rated(n_rounds) if self.recipe.out_of_bag else None,
        )

    def _rated(self, n_rounds: int) -> OutOfBag:
        scores = self._out_of_bag(n_rounds)
        heard = ~np.isnan(scores[:, 0])
        y, weight = self.target.y, self.target.weight
        if not heard.any():
            return OutOfBag(scores, np.nan)
        weight = None if weight is None else weight[heard]
        return OutOfBag(scores, self._score(y[heard], scores[heard], weight))

    def digests(self) -> dict[str, str]:
        """Return fingerprints of the data that the fit was given, by what they are of."""
        return self.learners.digests()

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that the next round depends on, apart from what the fit was given."""
        drawn = np.array(self._drawn, np.uint8).reshape(-1, (len(self.target.y) + 7) // 8)
        facts = np.array([self.facts[name] for name in self.fact_names])
        own = {"weights": self.weights, "facts": facts, "drawn": drawn}
        return own | self.learners.state()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go back to a state; the next round is then what it would have been."""
        self.n_rounds = len(state["weights"])
        if state["facts"].shape != (len(self.fact_names), self.n_rounds):
            raise ValueError(f"facts of shape {state['facts'].shape}")
        for name, values in zip(self.fact_names, state["facts"], strict=True):
            self.facts[name] = values.tolist()
        self._drawn = list(state["drawn"])
        self.learners.restore(state)
        if self.n_rounds and self.facts["error"][-1] <= 0.0:
            self.ended = _PERFECT

    def _learn(self, number: int) -> core.Sample | None:
        """Ask for a learner; return the rows that were drawn for it."""
        if not self.recipe.resample:
            self.learners.learn(self._row_weights(), None, number)
            return None
        sample = core.Sample()
        sample.draw_by_weight(self.distribution, self.seed, number, self.n_threads)
        self.learners.learn(None, sample, number)
        return sample

    def end_as_weak(self) -> None:
        """End with a learner that is no better than chance, for want of any other."""
        self.ended = _NO_BETTER

    def _note(self, **facts: float) -> None:
        for name, value in facts.items():
            self.facts[name].append(value)
        if facts["error"] <= 0.0:
            self.ended = _PERFECT

    def _note_drawn(self, sample: core.Sample) -> None:
        drawn = np.zeros(len(self.target.y), np.bool_)
        drawn[sample.positions()] = True
        self._drawn.append(np.packbits(drawn))

    def _blocks(self, n_rounds: int) -> list[tuple[NDArray[np.uint32], NDArray[np.bool_]]]:
        """Return blocks of rows, with which of the first rounds have drawn each."""
        n_rows = len(self.target.y)
        size = max(1, _OUT_OF_BAG_CELLS // max(1, n_rounds))
        size += -size % 8
        drawn = np.array(self._drawn[:n_rounds], np.uint8).reshape(n_rounds, -1)
        return [
            (
                np.arange(first, min(first + size, n_rows), dtype=np.uint32),
                np.unpackbits(drawn[:, first // 8 : (first + size) // 8], axis=1)[
                    :, : n_rows - first
                ].view(np.bool_),
            )
            for first in range(0, n_rows, size)
        ]

    def _row_weights(self) -> Floats:
        """Return the distribution, scaled so that the mean row weighs 1."""
        raise NotImplementedError

    def _error(self, votes: Floats) -> float:
        """Return the error of the last learner over the distribution."""
        raise NotImplementedError

    def _keep(self, error: float, votes: Floats) -> None:
        """Settle that the last learner counts, and weigh the rows anew."""
        raise NotImplementedError

    def _median_weights(self, n_rounds: int) -> Floats | None:
        """Return the weights of learners whose median is the answer; None where votes add up."""
        raise NotImplementedError

    def _out_of_bag(self, n_rounds: int) -> Scores:
        """Return scores of the training rows by the learners that did not draw them."""
        raise NotImplementedError

    def _score(self, y: Floats, scores: Scores, weight: Floats | None) -> float:
        """Return how good scores are: accuracy, or R^2."""
        raise NotImplementedError
