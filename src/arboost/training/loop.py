"""The training loop of all algorithms that work in rounds: boosting, AdaBoost, folds in step.

An algorithm makes several rounds at a time (`Rounds.run_rounds`) and hands over their results; the
loop shows each round to the monitor, which says whether to stop. Rounds after a stop are cut off.
Forests have no rounds: their trees are independent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np

from arboost.data.schema import Schema
from arboost.data.target import Task
from arboost.losses.base import Floats
from arboost.losses.metrics import Metric
from arboost.models.metadata import history_of, provenance_of, run_history
from arboost.models.model import Model
from arboost.models.predictor import Predictor
from arboost.params.auto import limit_reason
from arboost.training.checkpoint import CheckpointWriter, Resumable
from arboost.training.inputs import AnyTable, Rows
from arboost.training.monitor import Monitor, Results
from arboost.training.out_of_bag import scores_of_all
from arboost.training.sets import EvaluationSet
from arboost.trees.forest import Forest


def run_training_loop(
    trainings: Sequence[Rounds],
    monitor: Monitor,
    metrics: Sequence[Metric] = (),
    writer: CheckpointWriter | None = None,
) -> tuple[list[Fitted], list[list[Results]]]:
    """Train several models in step; the monitor gets the means of their results.

    The models depend on nothing but the recipes, the tables, the targets and the seed, and the
    round in which the monitor stops.

    Returns
    -------
    fitted : list of Fitted
        One for each training.
    rounds : list of list of results
        For each round that the monitor got, the results of each training.
    """
    rounds: list[list[Results]] = []
    with writer or CheckpointWriter() as checkpoint:
        first = trainings[0]  # of several trainings, none has a checkpoint
        first_best, stop = checkpoint.resume(first, monitor)
        best_weights = [first_best, *(training.weights for training in trainings[1:])]
        latest = [FinishedRound({}) for _ in trainings]
        n_rounds = first.n_rounds
        monitor.begin()
        while not stop:
            limit, seconds = monitor.rounds_ahead(n_rounds, cuts=not checkpoint.has_file)
            limit = min(limit, checkpoint.rounds_at_once(n_rounds) or limit)
            finished = _run_in_step(trainings, limit, metrics, seconds, latest)
            before = n_rounds
            n_rounds, stop = _show_rounds(finished, before, monitor, rounds)
            if monitor.best_index is not None and before <= monitor.best_index < n_rounds:
                best_weights = _weights_after(trainings, monitor.best_index + 1)
            if not stop and all(training.ended is not None for training in trainings):
                stop = monitor.end(str(first.ended))
            checkpoint.after_round(first, monitor, best_weights[0])
    if not monitor.cuts_to_best:
        best_weights = _weights_after(trainings, n_rounds)
    pairs = zip(trainings, best_weights, strict=True)
    return [training.fitted(weights) for training, weights in pairs], rounds


def _run_in_step(
    trainings: Sequence[Rounds],
    limit: int,
    metrics: Sequence[Metric],
    seconds: float,
    latest: list[FinishedRound],
) -> list[tuple[FinishedRound, ...]]:
    """Up to `limit` more rounds of each training: by round, those of all trainings.

    The first training that has not ended tells how many. One that has ended keeps its results, the
    last ones of each training being in `latest`.
    """
    batches: list[list[FinishedRound]] = []
    for training in trainings:
        batch: list[FinishedRound] = []
        while training.ended is None and len(batch) < limit:
            batch += training.run_rounds(limit - len(batch), metrics, seconds)
            if not any(batches):
                limit = len(batch)
        batches.append(batch)
    n_rounds = max(len(batch) for batch in batches)
    for number, batch in enumerate(batches):
        latest[number] = batch[-1] if batch else latest[number]
        batch.extend([latest[number]] * (n_rounds - len(batch)))
    return list(zip(*batches, strict=True))


def _show_rounds(
    finished: Sequence[Sequence[FinishedRound]],
    before: int,
    monitor: Monitor,
    rounds: list[list[Results]],
) -> tuple[int, bool]:
    """Show rounds to the monitor; return the number of all up to a stop, and whether it stopped.

    A monitor that needs no metrics of each round gets the last one only.
    """
    n_rounds, last_round = before, before + len(finished)
    if not monitor.needs_every_round:
        n_rounds = max(before, last_round - 1)
    for of_trainings in finished[n_rounds - before :]:
        n_rounds += 1
        results = [of_training.results for of_training in of_trainings]
        rounds.append(results)
        ago, is_last = of_trainings[0].ago, n_rounds == last_round
        if monitor.after_round(n_rounds - 1, _means(results), ago=ago, is_last=is_last):
            return n_rounds, True
    return n_rounds, False


def _weights_after(trainings: Sequence[Rounds], n_rounds: int) -> list[Floats]:
    """Factors of the first rounds of each training, which may have ended before."""
    return [training.weights_after(min(n_rounds, training.n_rounds)) for training in trainings]


def mean_of_fits(curves: Floats) -> Floats:
    """The mean over axis 0, added in order: the same bits for one round and for all."""
    total: Floats = np.add.accumulate(curves, axis=0)[-1]
    return total / len(curves)


def _means(results: list[Results]) -> Results:
    if len(results) == 1:
        return results[0]
    return {
        name: {
            metric: float(mean_of_fits(np.array([[fit[name][metric]] for fit in results]))[0])
            for metric in metrics
        }
        for name, metrics in results[0].items()
    }


# ---- trainings, as the loop drives them ----


@dataclass(frozen=True)
class FinishedRound:
    """A finished round of a training.

    Attributes
    ----------
    results : Results
        The metrics of every evaluation set after this round.
    ago : float
        Seconds from the end of this round to the end of the call that made it.
    """

    results: Results
    ago: float = 0.0


@dataclass(frozen=True)
class Fitted:
    """Learners of a training, with the combination that makes their scores.

    Attributes
    ----------
    forest : Forest, or tuple of estimators
        The trees; or the members of an ensemble of other learners.
    base_score : float64 array of shape (n_outputs,)
        Start of the raw scores.
    link : str
    trees_per_round : int
    tree_weights : float64 array of shape (n_trees,), or None
        Weights of the trees, where their weighted median is the prediction.
    round_stats : mapping of str to float64 array of shape (n_rounds,)
        Statistics of each round, by name, such as the errors of AdaBoost's learners.
    oob_scores : float64 array of shape (n_rows, n_outputs), or None
        Out-of-bag scores of the training rows; NaN where every learner has drawn the row.
    oob_score : float or None
        Accuracy or R^2 of the out-of-bag scores.
    """

    forest: Any
    base_score: Floats
    link: str
    trees_per_round: int = 1
    tree_weights: Floats | None = None
    round_stats: Mapping[str, Floats] = field(default_factory=dict)
    oob_scores: Floats | None = None
    oob_score: float | None = None

    @property
    def model_fields(self) -> dict[str, Any]:
        """Fields of a model of these trees."""
        fields = {
            "forest": self.forest,
            "base_score": self.base_score,
            "link": self.link,
            "trees_per_round": self.trees_per_round,
        }
        if self.tree_weights is not None:
            fields |= {"combine": "median", "tree_weights": self.tree_weights}
        return fields

    def after(self, old: Model) -> Fitted:
        """The trees of the model whose training is continued, and then these."""
        weights = self.tree_weights
        if weights is not None:
            weights = np.append(old.tree_weights, weights)
        return replace(
            self,
            forest=old.forest.joined(self.forest),
            base_score=old.base_score,
            tree_weights=weights,
        )


class Rounds(Resumable, Protocol):
    """An algorithm between two rounds, as the training loop drives it.

    Attributes
    ----------
    ended : str or None
        Why no further round can be made; None where one can.
    """

    ended: str | None

    def run_rounds(
        self, limit: int = 1, metrics: Sequence[Metric] = (), seconds: float = 0.0
    ) -> list[FinishedRound]:
        """Make at least one and at most `limit` more rounds, and no more when the time is over.

        No round: none can be made, and `ended` says why.
        """
        ...

    def weights_after(self, n_rounds: int) -> Floats:
        """Factors of the first rounds, as they were after these: one of the last call, or all."""
        ...

    def fitted(self, weights: Floats) -> Fitted:
        """The first rounds, each times its weight."""
        ...

    def digests(self) -> dict[str, str]:
        """Digests of the data of the fit, by name."""
        ...


def validation_results(
    evaluations: Sequence[EvaluationSet | Rows[Any]],
    scores: Sequence[Floats],
    metrics: Sequence[Metric],
) -> Results:
    """The metrics of every evaluation set, by its name."""
    results: dict[str, dict[str, float]] = {}
    for rows, row_scores in zip(evaluations, scores, strict=True):
        y, weight = rows.target.y, rows.target.weight
        results[rows.name] = {metric.name: metric(y, row_scores, weight) for metric in metrics}
    return results


# ---- result of a fit ----


@dataclass(frozen=True, kw_only=True)
class FitResult:
    """Result of a fit: the learners, and the history of their training.

    Attributes
    ----------
    fitted : Fitted
        Learners of all rounds, those of a continued model first.
    best_index : int or None
        Best round on the validation rows, from 0.
    best_score : float or None
        First metric in that round.
    history : dict of str to dict of str to list of float
        Metrics of all rounds, by evaluation set and name.
    stop_reason : str
    provenance : dict
        Metadata of the model file.
    """

    fitted: Fitted
    best_index: int | None = None
    best_score: float | None = None
    history: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    stop_reason: str | None = None
    provenance: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of_one_class(cls) -> Self:
        """The result for a single class: the softmax of one score is exactly 1."""
        fitted = Fitted(Forest.empty(), np.zeros(1), link="softmax")
        return cls(fitted=fitted, stop_reason="one class")

    @property
    def has_splits(self) -> bool:
        """Whether any tree has a split."""
        return bool(self.fitted.forest.is_split.any())

    def limited_by(self, preset: str) -> Self:
        """The result with the preset as the reason of an end after the last round."""
        if self.stop_reason != "n_estimators":
            return self
        return replace(self, stop_reason=limit_reason(preset))

    def predictor(self, schema: Schema, task: Task, recorded: dict[str, Any]) -> Predictor:
        """The model of the trees, whose file keeps the recorded parameters."""
        return Predictor(
            schema=schema,
            classes=task.classes,
            params=recorded,
            kind=task.kind,
            provenance=self.provenance,
            **self.fitted.model_fields,
        )


def fit_result(
    fitted: Fitted,
    monitor: Monitor,
    train: Rows[AnyTable],
    *,
    n_before: int = 0,
    search: Monitor | None = None,
) -> FitResult:
    """The result of a fit.

    Parameters
    ----------
    fitted : Fitted
    monitor : Monitor
        Monitor of the rounds of this fit.
    train : Rows
        Training rows.
    n_before : int
        Number of rounds of the model whose training is continued.
    search : Monitor, optional
        Monitor of the search for the number of rounds, whose best round ends the fit.
    """
    if fitted.oob_scores is not None:
        scores = scores_of_all(fitted.oob_scores, train.index, train.source.n_rows)
        fitted = replace(fitted, oob_scores=scores)
    runs = [run_history(monitor.history, monitor.best_index, n_before=n_before)]
    chooser, best = monitor, monitor.best_index
    if search is not None:
        runs.append(run_history(search.history, search.best_index, kind="search"))
        chooser = search
        # Counted in rounds of the model, not of the search.
        best = None if search.best_index is None else monitor.total - 1
    return FitResult(
        fitted=fitted,
        best_index=None if best is None else n_before + best,
        best_score=chooser.best_score,
        history={**monitor.history, **chooser.history},
        stop_reason=chooser.stop_reason,
        provenance=provenance_of(
            len(train.y), chooser.chosen_by, chooser.best_score, history_of(runs)
        ),
    )
