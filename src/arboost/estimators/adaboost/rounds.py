"""Learners and rounds of AdaBoost: each learner sees the row weights that the earlier ones left.

A round draws or weights the rows, fits a learner, and takes its error on all training rows. A
learner no better than chance is dropped: with resampling another draw is tried, else the fit ends
(Zhou 2012, "Ensemble Methods", section 2.2). After a perfect learner no row has an error to learn.

The rounds are the same for all learners: engine trees here, and estimators (`estimator_learners`).
A `LearnerStrategy` has the steps of `AdaBoost.fit` that depend on their kind.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.bins import AnyCodes
from arboost.data.dataset import Dataset
from arboost.data.schema import Schema
from arboost.data.table import Table
from arboost.data.target import Task
from arboost.estimators.adaboost.schemes import ClassScheme, R2Scheme, Scheme, combine_columns
from arboost.estimators.estimator import category_encoding, read_rows
from arboost.estimators.forest_growth import CART_LEVELS
from arboost.losses.base import Floats, mean
from arboost.losses.metrics import Metric
from arboost.models.prediction import table_scores, tree_values
from arboost.models.predictor import Predictor
from arboost.params.boosting import LEVELS
from arboost.params.records import BinParams, ParamRecord
from arboost.training import inputs, loop, monitor, sets
from arboost.training.fit import FitJob, previous_model, run_fit
from arboost.training.inputs import EngineRows, Rows, TableT
from arboost.training.loop import FitResult
from arboost.trees.forest import Forest
from arboost.trees.grower import TreeParams, grown_forest, make_grower, restore_trees

_PERFECT = "perfect learner"
_NO_BETTER = "no better than chance"

_OUT_OF_BAG_CELLS = 1 << 22  # numbers in memory at once
_ROUNDING = 1e-9  # of the range of y

# Rows with their target, and the scores of the model whose training is continued: binned sets of
# engine trees, or rows of estimators.
ScoredRows = sets.TrainingSet | sets.EvaluationSet | Rows[Any]
ScoredSet = sets.EvaluationSet | Rows[Any]


@dataclass(frozen=True, kw_only=True)
class AdaBoostRecipe(ParamRecord):
    """Recipe of AdaBoost: its scheme, and the rows of its learners.

    Attributes
    ----------
    scheme : ClassScheme or R2Scheme
    resample : bool
        Whether learners see rows that are drawn by their weights, instead of the weights.
    max_restarts : int
        Further draws in a round after a learner that is no better than chance.
    oob_score : bool
        Whether training rows are scored by the learners that did not draw them.
    """

    scheme: Scheme
    resample: bool = False
    max_restarts: int = 0
    oob_score: bool = False

    @property
    def n_attempts(self) -> int:
        """Largest number of learners that a round fits."""
        return 1 + self.max_restarts if self.resample else 1


class Learners(ABC):
    """The learners of a fit, engine trees or estimators, and the means to fit one more.

    The last learner is provisional: once its error is known it is kept with a factor, or dropped.
    Only learners whose state is arrays have checkpoints; `EstimatorStrategy` refuses others.

    Attributes
    ----------
    n_rows : int
        Number of training rows.
    """

    n_rows: int

    @abstractmethod
    def learn(self, weight: Floats | None, sample: core.Sample | None, number: int) -> None:
        """Fit one more learner.

        Parameters
        ----------
        weight : float64 array of shape (n_rows,), or None
            Weights of the training rows, of mean 1.
        sample : core.Sample or None
            Rows drawn by their weights instead, with their counts.
        number : int
            Number of the learner; random choices depend on it.
        """

    @abstractmethod
    def votes(self, evaluation: int | None = None) -> Floats:
        """The votes of the last learner before its factor, shape (n_rows, n_outputs).

        Votes for the training rows, or for the rows of an evaluation set by its index.
        """

    @abstractmethod
    def keep(self, factor: float) -> None:
        """Keep the last learner, its votes multiplied by a factor."""

    @abstractmethod
    def drop(self) -> None:
        """Drop the last learner."""

    @abstractmethod
    def fitted(self, n_learners: int) -> Any:
        """The first kept learners: a Forest, or a tuple of estimators."""

    def kept_votes(self, index: int, rows: NDArray[np.uint32]) -> Floats:
        """The votes of a kept learner, times its factor, for some training rows.

        They are for out-of-bag scores, and needed only where learners see drawn rows.
        """
        raise NotImplementedError

    def state(self) -> dict[str, NDArray[Any]]:
        """The learners as arrays for a checkpoint."""
        raise NotImplementedError

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the learners of a checkpoint; raise ValueError where they do not fit the bins."""
        raise NotImplementedError

    def digests(self) -> dict[str, str]:
        """Digests of the data of the fit, by name."""
        raise NotImplementedError


class AdaBoostRounds(ABC):
    """Mutable state of an AdaBoost fit: learners, draws, and the statistics of the rounds.

    Parameters
    ----------
    recipe : AdaBoostRecipe
    learners : Learners
    data : ScoredRows
        Training rows.
    evaluations : sequence of ScoredSet
    first_round : int
        Number of rounds of the model whose training is continued.
    start_weights : float64 array of shape (first_round,), or None
        Its learner weights, which R2 needs.
    n_threads, seed : int
    """

    stat_names: tuple[str, ...]
    keeps_weak_first = False  # whether the very first learner stays, whatever its error

    def __init__(
        self,
        recipe: AdaBoostRecipe,
        learners: Learners,
        data: ScoredRows,
        evaluations: Sequence[ScoredSet] = (),
        *,
        first_round: int = 0,
        start_weights: Floats | None = None,
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
        self.round_stats: dict[str, list[float]] = {name: [] for name in self.stat_names}
        self.distribution = np.empty(len(data.target.y))
        self._start_weights = np.empty(0) if start_weights is None else start_weights
        self._drawn: list[NDArray[np.uint8]] = []  # of each round, a bit for each row
        self._begin(data)

    @abstractmethod
    def _begin(self, data: ScoredRows) -> None:
        """Set the distribution of the rows, and the scores, before the first round."""

    @abstractmethod
    def results(self, metrics: Sequence[Metric]) -> monitor.Results:
        """The metrics of the validation set after the rounds so far."""

    @abstractmethod
    def _row_weights(self) -> Floats:
        """The distribution of the rows, scaled to a mean of 1."""

    @abstractmethod
    def _error(self, votes: Floats) -> float:
        """The error of the last learner over the distribution of the rows."""

    @abstractmethod
    def _keep_learner(self, error: float, votes: Floats) -> None:
        """Keep the last learner, note its statistics, and update the distribution of the rows."""

    @abstractmethod
    def _oob_scores(self, n_rounds: int) -> Floats:
        """The scores of the training rows by the learners that did not draw them.

        NaN for rows that every learner has drawn.
        """

    @property
    def weights(self) -> Floats:
        """Factor on each round next to its learner's weight: 1."""
        return self.weights_after(self.n_rounds)

    def weights_after(self, n_rounds: int) -> Floats:
        """Factors of the first rounds: 1."""
        return np.ones(n_rounds)

    def run_rounds(
        self, limit: int = 1, metrics: Sequence[Metric] = (), seconds: float = 0.0
    ) -> list[loop.FinishedRound]:
        """Fit one more learner, whatever the limit, or end where none is better than chance."""
        n_attempts = self.recipe.n_attempts
        total = self.first_round + self.n_rounds
        for attempt in range(n_attempts):
            sample = self._learn(total * n_attempts + attempt)
            votes = self.learners.votes()
            error = self._error(votes)
            is_last_chance = self.keeps_weak_first and total == 0 and attempt == n_attempts - 1
            if error < self.recipe.scheme.chance or is_last_chance:
                self._keep_learner(error, votes)
                if sample is not None and self.recipe.oob_score:
                    self._note_drawn(sample)
                self.n_rounds += 1
                return [loop.FinishedRound(self.results(metrics))]
            self.learners.drop()
        self.ended = _NO_BETTER
        return []

    def fitted(self, weights: Floats) -> loop.Fitted:
        """The learners of the first rounds, with their statistics and out-of-bag scores."""
        n_rounds, scheme = len(weights), self.recipe.scheme
        stats = {name: np.array(values[:n_rounds]) for name, values in self.round_stats.items()}
        scores = self._oob_scores(n_rounds) if self.recipe.oob_score else None
        return loop.Fitted(
            self.learners.fitted(n_rounds),
            np.zeros(scheme.loss.n_outputs),
            scheme.loss.link,
            tree_weights=None if scheme.combine == "sum" else stats["weight"],
            round_stats=stats,
            oob_scores=scores,
            oob_score=None if scores is None else self._oob_score(scores),
        )

    def digests(self) -> dict[str, str]:
        """Digests of the data of the fit, by name."""
        return self.learners.digests()

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that the next round depends on, apart from the data of the fit."""
        drawn = np.array(self._drawn, np.uint8).reshape(-1, (len(self.target.y) + 7) // 8)
        stats = np.array([self.round_stats[name] for name in self.stat_names])
        rounds = {"weights": self.weights, "round_stats": stats, "drawn": drawn}
        return rounds | self.learners.state()

    def last_state(self) -> Callable[[], dict[str, NDArray[Any]]]:
        """A function that returns the state of this round, which is copied now."""
        known = {name: array.copy() for name, array in self.state().items()}
        return lambda: known

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state, so that the next round is the one that would have followed it."""
        self.n_rounds = len(state["weights"])
        stats = state["round_stats"]
        if stats.shape != (len(self.stat_names), self.n_rounds):
            raise ValueError(f"round_stats of shape {stats.shape}")
        for name, values in zip(self.stat_names, stats, strict=True):
            self.round_stats[name] = values.tolist()
        self._drawn = list(state["drawn"])
        self.learners.restore(state)
        if self.n_rounds and self.round_stats["error"][-1] <= 0.0:
            self.ended = _PERFECT

    def _learn(self, number: int) -> core.Sample | None:
        """Fit a learner; return the rows that were drawn for it."""
        if not self.recipe.resample:
            self.learners.learn(self._row_weights(), None, number)
            return None
        sample = core.Sample()
        sample.draw_by_weight(self.distribution, self.seed, number, self.n_threads)
        self.learners.learn(None, sample, number)
        return sample

    def _note(self, **stats: float) -> None:
        """Append the statistics of a round; a perfect learner ends the fit."""
        for name, value in stats.items():
            self.round_stats[name].append(value)
        if stats["error"] <= 0.0:
            self.ended = _PERFECT

    def _note_drawn(self, sample: core.Sample) -> None:
        drawn = np.zeros(len(self.target.y), np.bool_)
        drawn[sample.positions()] = True
        self._drawn.append(np.packbits(drawn))

    def _out_of_bag_votes(self, n_rounds: int) -> Iterator[tuple[NDArray[np.uint32], Floats]]:
        """Yield blocks of rows with their votes, shape (n_rounds, n_rows, n_outputs).

        Votes of learners that have drawn the row are NaN.
        """
        n_rows, n_outputs = len(self.target.y), self.recipe.scheme.loss.n_outputs
        size = max(1, _OUT_OF_BAG_CELLS // max(1, n_rounds * n_outputs))
        size += -size % 8
        packed = np.array(self._drawn[:n_rounds], np.uint8).reshape(n_rounds, -1)
        for first in range(0, n_rows, size):
            rows = np.arange(first, min(first + size, n_rows), dtype=np.uint32)
            drawn = np.unpackbits(packed[:, first // 8 : (first + size) // 8], axis=1)
            votes = np.full((n_rounds, len(rows), n_outputs), np.nan)
            for index in range(n_rounds):
                out = drawn[index, : len(rows)] == 0
                if out.any():
                    votes[index, out] = self.learners.kept_votes(index, rows[out])
            yield rows, votes

    def _oob_score(self, scores: Floats) -> float:
        """The accuracy or R^2 of out-of-bag scores; NaN where no row is out of bag."""
        has_score = ~np.isnan(scores[:, 0])
        if not has_score.any():
            return np.nan
        y, weight = self.target.y[has_score], self.target.weight
        weight = None if weight is None else weight[has_score]
        return self.recipe.scheme.score(y, scores[has_score], weight, self.n_threads)


# ---- classification ----


class ClassRounds(AdaBoostRounds):
    """Rounds of classification: votes of the learners make the scores.

    The distribution of the rows is a function of the scores (lemma 1 of every proof: D ~ exp(-m)),
    so scores are the whole state, and no rounding error grows from round to round.
    """

    stat_names = ("error", "weight", "normalizer", "loss", "training_error", "vote_range")

    def _begin(self, data: ScoredRows) -> None:
        assert isinstance(self.recipe.scheme, ClassScheme)
        self.scheme = self.recipe.scheme
        self.scores = self._start(data)
        self.evaluation_scores = [self._start(rows) for rows in self.evaluations]
        self._log_loss, _ = self._update_distribution()

    def run_rounds(
        self, limit: int = 1, metrics: Sequence[Metric] = (), seconds: float = 0.0
    ) -> list[loop.FinishedRound]:
        """Fit one more learner, whatever the limit, or end where none is better than chance.

        Raise ValueError where not even the first learner is.
        """
        finished = super().run_rounds(limit, metrics, seconds)
        if self.ended is None or self.first_round + self.n_rounds > 0:
            return finished
        raise ValueError(_no_learner_message(self.recipe, self.scheme.n_classes))

    def results(self, metrics: Sequence[Metric]) -> monitor.Results:
        """The metrics of the validation set at the scores so far."""
        return loop.validation_results(self.evaluations, self.evaluation_scores, metrics)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that the next round depends on, apart from the data of the fit."""
        scores = {f"scores_{i}": scores for i, scores in enumerate(self._all_scores())}
        return super().state() | scores

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state, so that the next round is the one that would have followed it."""
        super().restore(state)
        for i, scores in enumerate(self._all_scores()):
            scores[:] = state[f"scores_{i}"]
        self._log_loss, _ = self._update_distribution()

    def _all_scores(self) -> list[Floats]:
        return [self.scores, *self.evaluation_scores]

    def _start(self, rows: ScoredRows) -> Floats:
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

    def _oob_scores(self, n_rounds: int) -> Floats:
        scores = np.full_like(self.scores, np.nan)
        for rows, votes in self._out_of_bag_votes(n_rounds):
            has_vote = ~np.isnan(votes[:, :, 0]).all(axis=0)
            scores[rows[has_vote]] = np.nansum(votes[:, has_vote], axis=0)
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


# ---- regression ----


class R2Rounds(AdaBoostRounds):
    """Rounds of AdaBoost.R2: rows of large errors weigh more for the next learner.

    Where training is continued, ``start`` has a column for the predictions of each learner so far:
    the row weights follow from them, one learner after the other.
    """

    stat_names = ("error", "weight")
    keeps_weak_first = True

    def _begin(self, data: ScoredRows) -> None:
        assert isinstance(self.recipe.scheme, R2Scheme)
        self.scheme = self.recipe.scheme
        weight = data.target.weight
        self.distribution[:] = 1.0 if weight is None else weight
        self.distribution /= self.distribution.sum()
        self._losses = np.empty_like(self.distribution)
        self._range = float(data.target.y.max() / 2 - data.target.y.min() / 2) * 2
        self._predictions = [_start_columns(rows) for rows in self.evaluations]
        for column in _start_columns(data):
            self._update_distribution(self._error(column[:, np.newaxis]))

    def results(self, metrics: Sequence[Metric]) -> monitor.Results:
        """The metrics of the validation set at the weighted medians or means so far."""
        weights = np.append(self._start_weights, self.round_stats["weight"])
        scores = [
            self._combined(np.stack(columns, axis=1), weights)[:, np.newaxis]
            for columns in self._predictions
        ]
        return loop.validation_results(self.evaluations, scores, metrics)

    def _combined(self, columns: Floats, weights: Floats) -> Floats:
        return combine_columns(self.scheme.combine, columns, weights, self.n_threads)

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that the next round depends on, apart from the data of the fit."""
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
        """Restore a state, so that the next round is the one that would have followed it."""
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
        # Leaf values are sums of integers, whose rounding the next learner cannot correct.
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
            self.ended = _NO_BETTER
        else:
            self._update_distribution(error)

    def _update_distribution(self, error: float) -> None:
        """Multiply the distribution by powers of beta, from the losses of the last learner."""
        exponent = self.scheme.rate * self.scheme.log_beta(error)
        core.r2_reweight(self._losses, exponent, self.distribution, self.n_threads)

    def _oob_scores(self, n_rounds: int) -> Floats:
        scores = np.full((len(self.target.y), 1), np.nan)
        weights = np.array(self.round_stats["weight"][:n_rounds])
        for rows, votes in self._out_of_bag_votes(n_rounds):
            scores[rows, 0] = self._combined(votes[:, :, 0].T, weights)
        return scores


def _start_columns(rows: ScoredRows) -> list[Floats]:
    return [] if rows.start is None else list(rows.start.T)


def make_rounds(recipe: AdaBoostRecipe, *args: Any, **options: Any) -> AdaBoostRounds:
    """The rounds of the recipe's scheme; arguments are those of `AdaBoostRounds`."""
    kind = R2Rounds if isinstance(recipe.scheme, R2Scheme) else ClassRounds
    return kind(recipe, *args, **options)


# ---- trees as learners ----


class TreeLearners(Learners):
    """Trees that are grown on one binned table.

    Parameters
    ----------
    data : TrainingSet
    evaluations : sequence of EvaluationSet
    tree : TreeParams
    scheme : ClassScheme or R2Scheme
        Target of the trees, and votes from the values of their leaves.
    n_threads : int
    seed : int
    workspace : core.Workspace, optional
        Memory that growers share which take turns.
    """

    def __init__(
        self,
        data: sets.TrainingSet,
        evaluations: Sequence[sets.EvaluationSet],
        tree: TreeParams,
        scheme: Scheme,
        *,
        n_threads: int,
        seed: int,
        workspace: core.Workspace | None = None,
    ) -> None:
        self.n_rows = len(data.target.y)
        self._data = data
        self._evaluations = tuple(evaluations)
        self._scheme = scheme
        self._target = scheme.tree_target(data.target.y)
        self._width = scheme.loss.n_outputs
        self._n_threads = n_threads
        self._seed = seed
        self._grower = make_grower(data.binned, tree, self._width, data.rows, workspace)
        self._gradients = core.Gradients(self.n_rows, self._width, by_row=self._width > 1)
        self._is_unweighted = False  # whether the gradients are those of unweighted rows
        weight = data.target.weight
        self._mean_weight = 1.0 if weight is None else float(weight.mean())
        self._units: Floats = np.empty((0, self._width))

    def learn(self, weight: Floats | None, sample: core.Sample | None, number: int) -> None:
        """Grow one more tree."""
        if weight is not None or not self._is_unweighted:
            core.apply_loss(
                self._scheme.kernel, self._target, weight, None, self._gradients, self._n_threads
            )
            self._is_unweighted = weight is None
        self._grower.grow(
            self._gradients,
            0,
            seed=self._seed,
            tree=number,
            rate=1.0,
            sample=sample,
            n_threads=self._n_threads,
        )
        last = self._grower.last_tree()
        self._units = self._scheme.unit_votes(last["value"], last["cover"] * self._mean_weight)
        self._grower.set_values(self._units)

    def votes(self, evaluation: int | None = None) -> Floats:
        """The votes of the last tree for the training rows, or for an evaluation set."""
        if evaluation is None:
            votes = np.zeros((self.n_rows, self._width))
            self._grower.add_leaves(votes, 0, self._n_threads)
            return votes
        part = self._evaluations[evaluation]
        votes = np.zeros((len(part.target.y), self._width))
        self._add(self._grower.n_trees - 1, part.codes, part.rows, votes)
        return votes

    def keep(self, factor: float) -> None:
        """Keep the last tree, its leaf values multiplied by a factor."""
        self._grower.set_values(factor * self._units)

    def drop(self) -> None:
        """Drop the last tree."""
        self._grower.drop_last()

    def kept_votes(self, index: int, rows: NDArray[np.uint32]) -> Floats:
        """The votes of a kept tree, times its factor, for some training rows."""
        votes = np.zeros((len(rows), self._width))
        table_rows = rows if self._data.rows is None else self._data.rows[rows]
        self._add(index, self._data.binned.codes, table_rows, votes)
        return votes

    def fitted(self, n_learners: int) -> Forest:
        """The first trees."""
        forest = grown_forest([self._grower], self._data.binned, [0])
        return forest.first(n_learners)

    def digests(self) -> dict[str, str]:
        """Digests of the data of the fit, by name."""
        return sets.digests_of(self._data, self._evaluations)

    def state(self) -> dict[str, NDArray[Any]]:
        """The trees as arrays for a checkpoint."""
        return self._grower.trees()

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore the trees of a checkpoint; raise ValueError where they do not fit the bins."""
        restore_trees(self._grower, self._data.binned, state)

    def _add(
        self, tree: int, codes: AnyCodes, rows: NDArray[np.uint32] | None, votes: Floats
    ) -> None:
        self._grower.add_tree(tree, 1.0, codes, rows, votes, 0, self._n_threads)


# ---- strategies ----


class LearnerStrategy(ABC, Generic[TableT]):
    """Learners of one kind: the steps of a fit that depend on it."""

    @abstractmethod
    def read(
        self, kind: str, X: object, y: object, weight: object, groups: object
    ) -> tuple[Rows[TableT], Task]:
        """The training rows, checked, and their task of the kind."""

    @abstractmethod
    def read_validation(self, arguments: sets.EvaluationArguments, schema: Schema) -> Rows[TableT]:
        """The rows of an evaluation set, checked."""

    def recorded_bins(self, rows: Rows[TableT]) -> dict[str, Any]:
        """The number of bins for the model file, by its parameter."""
        return {}

    @abstractmethod
    def start(
        self,
        recipe: AdaBoostRecipe,
        task: Task,
        data: Any,
        evaluations: Sequence[Any] = (),
        **options: Any,
    ) -> AdaBoostRounds:
        """The rounds of a fit on sets of rows; `options` are those of `FitJob.start`."""

    @abstractmethod
    def run(self, job: FitJob[TableT]) -> FitResult:
        """Train; the learners of a continued model come first."""

    @abstractmethod
    def model(self, result: FitResult, schema: Schema, task: Task, recorded: dict[str, Any]) -> Any:
        """The fitted model, whose file keeps the recorded parameters."""


class TreeStrategy(LearnerStrategy[Table | Dataset]):
    """Engine trees as learners.

    Parameters
    ----------
    params : mapping
        Checked parameters of the estimator.
    previous : estimator, optional
        Fitted AdaBoost estimator whose training is continued.
    """

    def __init__(self, params: Mapping[str, Any], previous: object = None) -> None:
        self._params = params
        self._old = None if previous is None else previous_model(previous)

    def read(
        self, kind: str, X: object, y: object, weight: object, groups: object
    ) -> tuple[EngineRows, Task]:
        """The training rows with target encodings, and their task."""
        schema = None if self._old is None else self._old.schema
        rows = read_rows((X, y, weight), self._params, schema, groups=groups)
        task = Task.of(kind, rows.y, None if self._old is None else self._old.classes)
        rows = inputs.target_encode_rows(rows, [task], schema, category_encoding(self._params))
        return rows, task

    def read_validation(self, arguments: sets.EvaluationArguments, schema: Schema) -> EngineRows:
        """The rows of an evaluation set, checked."""
        continued = self._old is not None
        return arguments.rows(inputs.TableReader(schema, self._params["device"], continued))

    def recorded_bins(self, rows: EngineRows) -> dict[str, Any]:
        """The number of bins for the model file, by its parameter."""
        return {"max_bins": sets.recorded_bins(rows, BinParams.of(self._params))}

    def run(self, job: FitJob[Table | Dataset]) -> FitResult:
        """Train; the rows of a continued fit start with the scores of the old model."""
        scored = partial(self._scored, n_threads=job.settings.n_threads)
        train, validation = scored(job.train), tuple(map(scored, job.validation))
        return run_fit(replace(job, train=train, validation=validation, old=self._old))

    def model(
        self, result: FitResult, schema: Schema, task: Task, recorded: dict[str, Any]
    ) -> Predictor:
        """The fitted model."""
        return result.predictor(schema, task, recorded)

    def _scored(self, rows: EngineRows, n_threads: int) -> EngineRows:
        """The rows with the scores of the old model; its predictions by tree for R2."""
        if self._old is None:
            return rows
        assert isinstance(rows.source, Table)  # `training_rows` refuses a Dataset here
        scores = tree_values if self._old.combine == "median" else table_scores
        return rows.started(scores(self._old, rows.source, n_threads=n_threads))

    def start(
        self,
        recipe: AdaBoostRecipe,
        task: Task,
        data: sets.TrainingSet,
        evaluations: Sequence[sets.EvaluationSet] = (),
        *,
        workspace: core.Workspace | None = None,
        **options: int,
    ) -> AdaBoostRounds:
        """The rounds of a fit on binned sets."""
        scheme: Scheme = recipe.scheme
        if isinstance(scheme, R2Scheme):
            scheme = replace(scheme, centre=mean(data.target))
        tree = _tree_params(self._params, len(data.target.y))
        learners = TreeLearners(data, evaluations, tree, scheme, workspace=workspace, **options)
        return make_rounds(
            recipe,
            learners,
            data,
            evaluations,
            first_round=data.first_round,
            start_weights=None if self._old is None else self._old.tree_weights,
            **options,
        )


def _tree_params(params: Mapping[str, Any], n_rows: int) -> TreeParams:
    """The parameters of the trees, which have no penalties."""
    by_error = params.get("criterion") == "error"
    levels = CART_LEVELS if by_error else {name: param.default for name, param in LEVELS.items()}
    changes = {
        "criterion": "error" if by_error else "quadratic",
        "grow_policy": "depthwise" if params["max_leaves"] is None else "leafwise",
        # The row weights of every round have the mean 1.
        "min_child_weight": params["min_weight_fraction_leaf"] * n_rows,
    }
    return TreeParams.of({**params, **levels, **changes})
