"""The only training loop: a recipe and a binned table to a forest.

From the start scores on, every round takes the gradients at the scores, grows trees on them, and
adds what their leaves say to the scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.grow.grower import grown_forest, make_grower, restore_trees
from arboost.losses.metrics import Metric
from arboost.monitor import Monitor, Results
from arboost.recipe import (
    EvaluationSet,
    Fitted,
    Recipe,
    Rounds,
    Scores,
    TrainingSet,
    digests_of,
    results_of,
)
from arboost.resume import Keeper

__all__ = ["Training", "continued_seed", "mean_of_fits", "train", "train_together"]


class Training:
    """Gradient boosting between two rounds: its trees, their weights, the scores they led to."""

    # The gradients of a good model are small, but trees can always follow them.
    ended: str | None = None

    def __init__(
        self,
        recipe: Recipe,
        data: TrainingSet,
        evaluations: Sequence[EvaluationSet] = (),
        *,
        n_threads: int,
        seed: int,
        workspace: core.Workspace | None = None,
    ) -> None:
        loss = recipe.loss
        self.recipe = recipe
        self.data = data
        self.evaluations = tuple(evaluations)
        self.n_threads = n_threads
        self.seed = continued_seed(seed, data.first_round) if data.first_round else seed
        self.grower = make_grower(data.binned, recipe.tree, recipe.width, data.rows, workspace)
        self.base_score = (
            loss.start(data.target)
            if recipe.base_score is None
            else np.full(loss.n_outputs, recipe.base_score)
        )
        self.scores = self._start(data)
        self.evaluation_scores = [self._start(part) for part in self.evaluations]
        self.n_rounds = 0
        self._weights = np.empty(0)  # of the rounds, where rounds are dropped
        self._outputs = tuple(recipe.tree_outputs)
        self._proposes = recipe.tree.tree_method == "approx"
        self._sets_values = recipe.boosting == "gradient" or loss.refits(recipe.boosting)
        # Whether a tree may go into the training scores before the round is complete. Then the
        # leaves that growing has found for the rows are used, and no tree is walked.
        self._adds_at_once = recipe.parallel_trees == 1 and recipe.dropout is None
        self._sample = core.Sample()
        self._gradients = self._new_gradients()
        # Friedman's leaves come from the hessians too, which his trees do not look at.
        needs_hessians = recipe.boosting == "gradient" and not loss.constant_hessian
        self._newton = self._new_gradients() if needs_hessians else self._gradients

    def run_round(self) -> None:
        """Grow the trees of one more round."""
        dropped = self._drop()
        self._take_gradients()
        for place in range(self.recipe.parallel_trees):
            self._grow_trees(self.n_rounds * self.recipe.parallel_trees + place)
        self._add_round(self._settle(dropped))
        self.n_rounds += 1

    @property
    def weights(self) -> NDArray[np.float64]:
        """What each round is multiplied by."""
        return np.ones(self.n_rounds) if self.recipe.dropout is None else self._weights.copy()

    def results(self, metrics: Sequence[Metric]) -> Results:
        """Return the metrics of every evaluation set at the scores so far."""
        return results_of(self.evaluations, self.evaluation_scores, metrics)

    def fitted(self, weights: NDArray[np.float64]) -> Fitted:
        """Return the first rounds, each times its weight."""
        recipe = self.recipe
        forest = grown_forest([self.grower], self.data.binned, recipe.tree_outputs)
        if len(weights) < self.n_rounds:
            forest = forest.first(len(weights) * self.recipe.trees_per_round)
        if not (weights == 1.0).all():
            factors = np.repeat(weights, self.recipe.trees_per_round)
            of_node = np.repeat(factors, np.diff(forest.tree_start))
            forest = replace(forest, value=forest.value * of_node[:, np.newaxis])
        return Fitted(forest, self.base_score)

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that the next round depends on, apart from what the fit was given."""
        scores = {f"scores_{i}": scores for i, scores in enumerate(self._all_scores())}
        return {"weights": self.weights, **scores, **self.grower.trees()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Go back to a state; the next round is then what it would have been."""
        n_rounds, n_trees = len(state["weights"]), len(state["tree_start"]) - 1
        if n_trees != n_rounds * self.recipe.trees_per_round:
            raise ValueError(f"{n_trees} trees of {n_rounds} rounds")
        restore_trees(self.grower, self.data.binned, state)
        for i, scores in enumerate(self._all_scores()):
            scores[:] = state[f"scores_{i}"]
        self.n_rounds = n_rounds
        self._weights = state["weights"].copy()

    def digests(self) -> dict[str, str]:
        """Return fingerprints of the data that the fit was given, by what they are of."""
        return digests_of(self.data, self.evaluations)

    def _all_scores(self) -> list[Scores]:
        return [self.scores, *self.evaluation_scores]

    def _start(self, part: TrainingSet | EvaluationSet) -> Scores:
        if part.start is not None:
            return part.start.copy()
        return np.tile(self.base_score, (len(part.target.y), 1))

    def _new_gradients(self) -> core.Gradients:
        n_rows = len(self.data.target.y)
        return core.Gradients(n_rows, self.recipe.loss.n_outputs, by_row=self.recipe.width > 1)

    def _take_gradients(self) -> None:
        loss, target = self.recipe.loss, self.data.target
        least_squares = self.recipe.boosting == "gradient"
        loss.gradients(
            target, self.scores, self._gradients, self.n_threads, least_squares=least_squares
        )
        if self._newton is not self._gradients:
            loss.gradients(target, self.scores, self._newton, self.n_threads)
        if self._proposes:
            self.grower.propose(self._gradients, self.n_threads)

    def _grow_trees(self, draw: int) -> None:
        recipe = self.recipe
        rate = recipe.learning_rate / recipe.parallel_trees
        sample = recipe.rows.draw(
            self._gradients,
            self._sample,
            seed=self.seed,
            round_=self.data.first_round + self.n_rounds,
            draw=draw,
            n_threads=self.n_threads,
        )
        for output in self._outputs:
            self.grower.grow(
                self._gradients,
                output,
                seed=self.seed,
                tree=self.grower.n_trees,
                rate=rate,
                sample=sample,
                leaves_from_all_rows=recipe.rows.leaves_from_all_rows,
                turn=self._turn(),
                n_threads=self.n_threads,
            )
            if self._sets_values:
                self._set_values(output, rate)
            if self._adds_at_once:
                self.grower.add_leaves(self.scores, output, self.n_threads)

    def _turn(self) -> int:
        """Return the feature that is preferred among equally good splits.

        XGBoost's is always the first. Friedman's boosting leaves it to chance, and on small tables,
        where many splits are equal, that is worth a lot; here every round prefers another one.
        """
        return 0 if self.recipe.boosting == "newton" else self.data.first_round + self.n_rounds

    def _set_values(self, output: int, rate: float) -> None:
        """Give the last tree the values that its nodes have where not -G / (H + lambda)."""
        recipe, loss, n_nodes = self.recipe, self.recipe.loss, self.grower.n_nodes
        if loss.refits(recipe.boosting):
            leaf = self.grower.leaf_of_row()
            columns = [
                loss.refit(self.data.target, self.scores, k, leaf, n_nodes, self.n_threads)
                for k in range(output, output + recipe.width)
            ]
            values = np.stack(columns, axis=1)
        else:
            sums = self.grower.leaf_sums(self._newton, output, self.n_threads)
            values = loss.leaf_values(sums[..., 0], sums[..., 1])
        limit = recipe.tree.max_delta_step or np.inf
        self.grower.set_values(rate * values.clip(-limit, limit))

    def _drop(self) -> list[int]:
        """Take dropped rounds out of the training scores."""
        if self.recipe.dropout is None:
            return []
        drawn = self.recipe.dropout.draw(self._weights, seed=self.seed, index=self.n_rounds)
        dropped: list[int] = drawn.tolist()
        for round_ in dropped:
            self._add_to(self.data, self.scores, round_, -self._weights[round_])
        return dropped

    def _settle(self, dropped: list[int]) -> float:
        """Put dropped rounds back with their new weights; return the weight of the new round."""
        if self.recipe.dropout is None:
            return 1.0
        new, factor = self.recipe.dropout.factors(len(dropped), self.recipe.learning_rate)
        for round_ in dropped:
            old = self._weights[round_]
            self._weights[round_] = old * factor
            self._add_to(self.data, self.scores, round_, old * factor)
            for part, scores in zip(self.evaluations, self.evaluation_scores, strict=True):
                self._add_to(part, scores, round_, old * factor - old)
        self._weights = np.append(self._weights, new)
        return new

    def _add_round(self, weight: float) -> None:
        """Add the new round to all scores that do not have it yet."""
        if not self._adds_at_once:
            self._add_to(self.data, self.scores, self.n_rounds, weight)
        for part, scores in zip(self.evaluations, self.evaluation_scores, strict=True):
            self._add_to(part, scores, self.n_rounds, weight)

    def _add_to(
        self, part: TrainingSet | EvaluationSet, scores: Scores, round_: int, factor: float
    ) -> None:
        codes = part.codes if isinstance(part, EvaluationSet) else part.binned.codes
        first = round_ * self.recipe.trees_per_round
        for place in range(self.recipe.trees_per_round):
            output = self._outputs[place % len(self._outputs)]
            self.grower.add_tree(
                first + place, factor, codes, part.rows, scores, output, self.n_threads
            )


def train(
    training: Rounds,
    monitor: Monitor,
    metrics: Sequence[Metric] = (),
    keeper: Keeper | None = None,
) -> Fitted:
    """Train a forest.

    The result depends on nothing but the recipe, the table, the target and the seed, and where the
    monitor stops.
    """
    return train_together([training], monitor, metrics, keeper)[0][0]


def train_together(
    trainings: Sequence[Rounds],
    monitor: Monitor,
    metrics: Sequence[Metric] = (),
    keeper: Keeper | None = None,
) -> tuple[list[Fitted], list[list[Results]]]:
    """Train several forests round by round; the monitor is told the means of their results.

    Returns
    -------
    fitted : list of Fitted
        Of each fit.
    rounds : list of list of results
        Of each round that was made, and in it of each fit.
    """
    rounds: list[list[Results]] = []
    with keeper or Keeper() as kept:
        first = trainings[0]  # a keeper is for a fit alone
        kept_best, stop = kept.resume(first, monitor)
        best = [kept_best, *(training.weights for training in trainings[1:])]
        monitor.begin()
        while not stop:
            made = _run_round(trainings)
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


def _run_round(trainings: Sequence[Rounds]) -> bool:
    """Make one more round of each fit that can; return whether there was any."""
    before = [training.n_rounds for training in trainings]
    for training in trainings:
        if training.ended is None:
            training.run_round()
    return before != [training.n_rounds for training in trainings]


def continued_seed(seed: int, n_rounds: int) -> int:
    """Return a seed for further rounds, so that they do not repeat the choices of the first.

    Examples
    --------
    >>> continued_seed(7, 0) == continued_seed(7, 10)
    False
    """
    return int(np.random.SeedSequence([seed, n_rounds]).generate_state(1)[0])


def mean_of_fits(curves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over the fits, axis 0, in their order: the same bits for one round and for all."""
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
