"""DART: each round drops some earlier rounds, so that late trees still matter.

Rashmi and Gilad-Bachrach (2015), "DART: Dropouts meet Multiple Additive Regression Trees". Rounds
are dropped whole: all trees of a round share its weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core

__all__ = ["Dropout"]


@dataclass(frozen=True, kw_only=True)
class Dropout:
    """Dropout of rounds, and the factors of dropped and new rounds.

    Attributes
    ----------
    rate_drop : float
        Probability with which each earlier round is dropped.
    skip_drop : float
        Probability with which a round drops nothing.
    one_drop : bool
        Whether at least one round is dropped wherever dropping is not skipped.
    sample_type : {"uniform", "weighted"}
        Whether rounds are dropped with the same probability, or in proportion to their weights.
    normalize_type : {"tree", "forest"}
        Whether a new round weighs as much as each dropped one, or as all of them together.
    """

    rate_drop: float
    skip_drop: float = 0.0
    one_drop: bool = False
    sample_type: str = "uniform"
    normalize_type: str = "tree"

    def draw(self, weights: NDArray[np.float64], *, seed: int, index: int) -> NDArray[np.intp]:
        """Return the rounds that round ``index`` drops, given the weights of all before it."""
        n_rounds = len(weights)
        uniform = _uniforms(seed, index, n_rounds + 2)
        if n_rounds == 0 or uniform[-1] < self.skip_drop:
            return np.empty(0, np.intp)
        share = np.ones(n_rounds)
        if self.sample_type == "weighted":
            share = weights * n_rounds / weights.sum()
        dropped = np.flatnonzero(uniform[:n_rounds] < self.rate_drop * share)
        if len(dropped) == 0 and self.one_drop:
            # One round by the same shares: the first whose cumulative share passes a random point.
            ends = np.cumsum(share)
            chosen = int(np.searchsorted(ends, uniform[-2] * ends[-1], side="right"))
            dropped = np.array([min(chosen, n_rounds - 1)])
        return dropped

    def factors(self, n_dropped: int, learning_rate: float) -> tuple[float, float]:
        """Return the factors of the new round and of the dropped ones.

        A new tree was fitted to what the k dropped ones had explained together. With the learning
        rate eta already in its leaves it gets 1 / (k + eta), and each dropped one k / (k + eta), so
        that their sum stays about what it was; as one forest, both get 1 / (1 + eta).
        """
        if n_dropped == 0:
            return 1.0, 1.0
        if self.normalize_type == "forest":
            return 1.0 / (1.0 + learning_rate), 1.0 / (1.0 + learning_rate)
        total = n_dropped + learning_rate
        return 1.0 / total, n_dropped / total


def _uniforms(seed: int, index: int, count: int) -> NDArray[np.float64]:
    """Return numbers in [0, 1) that depend on nothing but the arguments."""
    hashes = core.counter_hash("dropout", seed, index, count)
    return (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53
