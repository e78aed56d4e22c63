"""Scores of each stage of a GradientBoosting fit, its monitor, table of progress and stopping."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.compat.sklearn.boosting.engine import WatchedRounds
from arboost.losses import Target

__all__ = ["Stages", "stage_loss"]

Floats = NDArray[np.float64]

# scikit-learn reports deviances and squared errors, twice the loss of the engine.
_TWICE = ("squared_error", "logistic")
_EVERY = 10  # verbose=1: first each round, then each 10th, then each 100th ...


@dataclass
class Stages:
    """Scores of the stages, those of the fit that a warm start continues first.

    Attributes
    ----------
    estimator : object
        Passed to the monitor.
    params : mapping
        Checked parameters of scikit-learn's estimator.
    monitor : callable or None
        Called with stage, estimator and a dict of the fit's arrays; True stops the fit.
    n_kept : int
        Number of stages of the fit that a warm start continues.
    train_score, oob_scores, oob_improvement : list of float
        One for each stage; those out of bag are 0 for stages on all rows.
    """

    estimator: object
    params: Mapping[str, Any]
    monitor: Callable[[int, object, dict[str, Any]], object] | None
    n_kept: int = 0
    train_score: list[float] = field(default_factory=list)
    oob_scores: list[float] = field(default_factory=list)
    oob_improvement: list[float] = field(default_factory=list)
    _first: Floats | None = field(default=None, init=False)
    _recent: Floats | None = field(default=None, init=False)
    _started: float = field(default=0.0, init=False)

    def before_first(self, rounds: WatchedRounds) -> None:
        """Keep the scores that the first out-of-bag improvement is measured from."""
        self._started = time.monotonic()
        if self.params["subsample"] < 1.0:
            self._first = rounds.scores.copy()
        if self.params["n_iter_no_change"] is not None:
            self._recent = np.full(self.params["n_iter_no_change"], np.inf)
        if self.params["verbose"]:
            self._print_header()

    def after_round(self, rounds: WatchedRounds) -> str | None:
        """Score the stage; return the reason to stop, or None."""
        stage = self.n_kept + rounds.n_rounds - 1
        in_bag, target = rounds.in_bag, rounds.data.target
        self.train_score.append(stage_loss(rounds, target, rounds.scores, in_bag))
        if in_bag is not None:
            self._score_out_of_bag(rounds, in_bag)
        if self.params["verbose"]:
            self._print_stage(stage)
        if self.monitor is not None:
            arrays = {
                "i": stage,
                "y": target.y,
                "sample_weight": target.weight,
                "raw_predictions": rounds.scores,
            }
            if self.monitor(stage, self.estimator, arrays):
                return "monitor"
        return self._early_stop(rounds, stage)

    def _score_out_of_bag(self, rounds: WatchedRounds, in_bag: NDArray[np.uint32]) -> None:
        target, n_earlier = rounds.data.target, len(self.train_score) - 1
        outside = np.delete(np.arange(len(target.y), dtype=np.uint32), in_bag)
        self.oob_scores += [0.0] * (n_earlier - len(self.oob_scores))
        self.oob_improvement += [0.0] * (n_earlier - len(self.oob_improvement))
        if n_earlier:
            before = self.oob_scores[-1]
        else:
            assert self._first is not None
            before = stage_loss(rounds, target, self._first, outside)
        after = stage_loss(rounds, target, rounds.scores, outside)
        self.oob_scores.append(after)
        self.oob_improvement.append(before - after)

    def _early_stop(self, rounds: WatchedRounds, stage: int) -> str | None:
        """Stop where the loss is no better, by tol, than any of the last that were kept."""
        if self._recent is None:
            return None
        (held_out,), (scores,) = rounds.evaluations, rounds.evaluation_scores
        loss = stage_loss(rounds, held_out.target, scores)
        if not (loss + self.params["tol"] < self._recent).any():
            return "n_iter_no_change"
        self._recent[stage % len(self._recent)] = loss
        return None

    def _print_header(self) -> None:
        columns = ["Iter", "Train Loss", "Remaining Time"]
        if self.params["subsample"] < 1.0:
            columns.insert(2, "OOB Improve")
        print(f"{columns[0]:>10} " + " ".join(f"{name:>16}" for name in columns[1:]))

    def _print_stage(self, stage: int) -> None:
        done = stage - self.n_kept + 1
        step = 1
        while self.params["verbose"] == 1 and (stage + 1) // (step * _EVERY):
            step *= _EVERY
        if (stage + 1) % step:
            return
        left = self.params["n_estimators"] - stage - 1
        seconds = (time.monotonic() - self._started) / done * left
        numbers = [f"{self.train_score[-1]:16.4f}"]
        if self.params["subsample"] < 1.0:
            numbers.append(f"{self.oob_improvement[-1]:16.4f}")
        remaining = f"{seconds / 60:.2f}m" if seconds > 60 else f"{seconds:.2f}s"  # noqa: PLR2004
        print(f"{stage + 1:10d} " + " ".join([*numbers, f"{remaining:>16}"]))


def stage_loss(
    rounds: WatchedRounds,
    target: Target,
    scores: Floats,
    rows: NDArray[np.uint32] | None = None,
) -> float:
    """Return the mean loss of some rows as scikit-learn reports it; NaN for no rows."""
    if rows is not None:
        weight = None if target.weight is None else target.weight[rows]
        target, scores = Target(target.y[rows], weight), scores[rows]
    if not len(target.y):
        return float("nan")
    loss = rounds.recipe.loss
    factor = 2.0 if loss.kernel in _TWICE else 1.0
    return factor * loss.value(target, scores, rounds.n_threads)
