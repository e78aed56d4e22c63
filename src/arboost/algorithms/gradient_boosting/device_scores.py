"""Evaluation sets of a booster on a CUDA device: their scores, and the loss as a metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from arboost.backend import core
from arboost.cuda.devices import device_number
from arboost.losses.metrics import LossMetric, Metric
from arboost.training.monitor import Results
from arboost.training.rounds import Scores
from arboost.training.sets import EvaluationSet

__all__ = ["DeviceScores"]


class DeviceScores:
    """Scores of evaluation sets, in the memory of a device.

    Parameters
    ----------
    sets : sequence of EvaluationSet
    scores : sequence of float64 arrays of shape (n_rows, n_outputs)
        Start scores; `fetch` writes into them.
    device : int
        Number of the device.
    """

    def __init__(
        self, sets: Sequence[EvaluationSet], scores: Sequence[Scores], device: int
    ) -> None:
        self._sets, self._scores = sets, scores
        self._there = [
            core.DeviceEvaluation(
                device, part.own_codes, part.rows, part.target.y, part.target.weight, of_part
            )
            for part, of_part in zip(sets, scores, strict=True)
        ]

    @classmethod
    def of(
        cls, sets: Sequence[EvaluationSet], scores: Sequence[Scores], device: str
    ) -> Self | None:
        """Return the scores on a device; None for the processor, and for no sets."""
        number = device_number(device)
        return None if number < 0 or not sets else cls(sets, scores, number)

    def add(self, grower: core.Grower, first: int, n_trees: int) -> None:
        """Add trees of a grower, from the first on."""
        for there in self._there:
            there.add(grower, first, n_trees)

    def run(
        self, grower: core.Grower, rounds: dict[str, Any], metrics: Sequence[Metric]
    ) -> list[Results] | None:
        """Run rounds of a grower; return the results of each, or None where metrics forbid it."""
        losses = [metric for metric in metrics if isinstance(metric, LossMetric)]
        if len(losses) < len(metrics):
            return None
        values = grower.run_watched_rounds(
            **rounds,
            sets=self._there,
            losses=[loss.kernel for loss in losses],
            parameters=[list(loss.parameters) for loss in losses],
        )
        return [
            {
                part.name: {
                    loss.name: loss.factor * float(value)
                    for loss, value in zip(losses, of_set, strict=True)
                }
                for part, of_set in zip(self._sets, of_round, strict=True)
            }
            for of_round in values
        ]

    def fetch(self) -> None:
        """Copy the scores to the arrays of the host."""
        for there, scores in zip(self._there, self._scores, strict=True):
            there.fetch_scores(scores)

    def send(self) -> None:
        """Copy the scores from the arrays of the host."""
        for there, scores in zip(self._there, self._scores, strict=True):
            there.set_scores(scores)

    def results(self, metrics: Sequence[Metric]) -> Results:
        """Return the metrics of every set; all but the loss need the scores on the host."""
        if not all(isinstance(metric, LossMetric) for metric in metrics):
            self.fetch()
        return {
            part.name: {metric.name: self._metric(metric, i) for metric in metrics}
            for i, part in enumerate(self._sets)
        }

    def _metric(self, metric: Metric, place: int) -> float:
        if isinstance(metric, LossMetric):
            there = self._there[place]
            return metric.factor * there.mean_loss(metric.kernel, list(metric.parameters))
        target = self._sets[place].target
        return metric(target.y, self._scores[place], target.weight)
