"""The training loop of all algorithms that work in rounds: boosting, AdaBoost, folds in step.

A round of an algorithm is its `Rounds.run_rounds`; the loop measures it, and asks the monitor
whether to stop. Rounds that nobody watches may come several at a time. Forests have no rounds:
their trees are independent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from arboost.losses.metrics import Metric
from arboost.training.monitor import Monitor, Results
from arboost.training.resume import Keeper
from arboost.training.rounds import Fitted, Rounds

__all__ = ["mean_of_fits", "train_together"]


def train_together(
    trainings: Sequence[Rounds],
    monitor: Monitor,
    metrics: Sequence[Metric] = (),
    keeper: Keeper | None = None,
) -> tuple[list[Fitted], list[list[Results]]]:
    """Train several models in step; the monitor gets the means of their results.

    The models depend on nothing but the recipes, the tables, the targets and the seed, and the
    round in which the monitor stops.

    Returns
    -------
    fitted : list of Fitted
        One for each training.
    rounds : list of list of results
        For each watched round the results of each training.
    """
    rounds: list[list[Results]] = []
    with keeper or Keeper() as kept:
        first = trainings[0]  # only a training on its own has a checkpoint
        kept_best, stop = kept.resume(first, monitor)
        best = [kept_best, *(training.weights for training in trainings[1:])]
        monitor.begin()
        while not stop:
            if len(trainings) == 1 and not kept.has_checkpoint:
                measured = first.run_measured(monitor.sure_rounds(first.n_rounds), metrics)
                if measured is not None:
                    stop = _watch(first, monitor, measured, best, rounds)
                    continue
            limit = monitor.unwatched_rounds(first.n_rounds)
            limit = min(limit, kept.rounds_at_once(first.n_rounds) or limit)
            made = _run_rounds(trainings, limit)
            if made:
                results = [training.results(metrics) for training in trainings]
                rounds.append(results)
                index = max(training.n_rounds for training in trainings) - 1
                stop = monitor.after_round(index, _means(results))
            if monitor.is_best and made:
                best = [training.weights for training in trainings]
            if not stop and all(training.ended is not None for training in trainings):
                stop = monitor.end(str(first.ended))
            kept.after_round(first, monitor, best[0])
    if not monitor.cuts_to_best:
        best = [training.weights for training in trainings]
    return [training.fitted(of) for training, of in zip(trainings, best, strict=True)], rounds


def _watch(
    training: Rounds,
    monitor: Monitor,
    measured: list[Results],
    best: list[NDArray[np.float64]],
    rounds: list[list[Results]],
) -> bool:
    """Show the last rounds of a training to the monitor; return whether to stop, after all."""
    stop = False
    for index, results in enumerate(measured, training.n_rounds - len(measured)):
        rounds.append([results])
        stop = monitor.after_round(index, results)
        if monitor.is_best:
            best[0] = training.weights[: index + 1]
    return stop


def _run_rounds(trainings: Sequence[Rounds], limit: int) -> bool:
    """Run one more round, or up to `limit`, of each training; return whether there was any."""
    before = [training.n_rounds for training in trainings]
    for training in trainings:
        if training.ended is None:
            training.run_rounds(limit)
    return before != [training.n_rounds for training in trainings]


def mean_of_fits(curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over axis 0, added in order: the same bits for one round and for all."""
    total: NDArray[np.float64] = np.add.accumulate(curves, axis=0)[-1]
    return total / len(curves)


def _means(results: list[Results]) -> Results:
    if len(results) == 1:
        return results[0]
    return {
        name: {
            metric: float(mean_of_fits(np.array([[of[name][metric]] for of in results]))[0])
            for metric in metrics
        }
        for name, metrics in results[0].items()
    }
