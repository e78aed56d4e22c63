"""Gradient boosting: parameters -> `BoostingRecipe` -> rounds of gradients, trees and new scores.

The gain of a split and the value of a leaf are those of Chen and Guestrin (2016), equations 5 to 7;
with ``boosting="gradient"`` trees and leaves are those of Friedman (2001), algorithm 1. Dropout is
DART of Rashmi and Gilad-Bachrach (2015), "DART: Dropouts meet Multiple Additive Regression Trees".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.cuda import device_number
from arboost.data.feature_names import interaction_groups, monotone_directions
from arboost.data.schema import Schema
from arboost.data.target import Task
from arboost.errors import warn_caller
from arboost.losses.base import LARGEST_STEP, Floats, Loss, Target
from arboost.losses.links import CLASS_LINKS, base_scores
from arboost.losses.losses import CustomLoss, make
from arboost.losses.metrics import LossMetric, Metric
from arboost.params.auto import AUTO
from arboost.params.boosting import BOOSTED_REGRESSOR
from arboost.params.records import ParamRecord
from arboost.training.loop import Fitted, validation_results
from arboost.training.monitor import Results
from arboost.training.sets import EvaluationSet, TrainingSet, digests_of
from arboost.trees.grower import TreeParams, grown_forest, make_grower, restore_trees
from arboost.trees.samples import RowSampling

_DEFAULT_LAMBDA = {"newton": 1.0, "gradient": 0.0}
# Steps of more than twice the distance to the target end farther from it than they began.
_MAX_SAFE_RATE = 2.0
_LOSSES_OF_ALPHA = ("quantile", "huber")
_CORE_CALL_S = 0.1  # seconds of rounds in the core; the progress bar is drawn as often
_MAX_DOUBLINGS = 100
_STEP_PRECISION = 1e-9  # of a step, relative

# ---- the recipe ----


@dataclass(frozen=True, kw_only=True)
class BoostingRecipe:
    """Recipe of gradient boosting: loss, trees, row samples, and their combination.

    Attributes
    ----------
    loss : Loss
    boosting : {"newton", "gradient"}
        Trees on gradients and hessians, with leaves -G / (H + lambda); or Friedman's: least-squares
        trees on gradients, with leaves that minimise the loss.
    one_step : bool
        With boosting "gradient": one step length for all trees of a round, by a line search,
        instead of values that minimise the loss in each leaf.
    learning_rate : float
        Factor on the values of each tree.
    vector_leaves : bool
        One tree a round with a value for every output in its leaves, instead of one tree per
        output.
    tree : TreeParams
    rows : RowSampling
    dropout : Dropout or None
    parallel_trees : int
        Number of trees of a round, each grown on a separate sample, whose values are averaged.
    base_score : float64 array of shape (n_outputs,), or None
        Start of the raw scores; None for the best constant of the loss.
    """

    loss: Loss
    learning_rate: float
    tree: TreeParams
    boosting: str = "newton"
    one_step: bool = False
    vector_leaves: bool = False
    rows: RowSampling = field(default_factory=RowSampling)
    dropout: Dropout | None = None
    parallel_trees: int = 1
    base_score: Floats | None = None

    @property
    def refits(self) -> bool:
        """Whether `Loss.refit` gives the leaf values."""
        return not self.one_step and self.loss.refits(self.boosting)

    @property
    def weighs_rounds(self) -> bool:
        """Whether rounds have factors, which may differ from 1."""
        return self.one_step or self.dropout is not None

    def start(self, target: Target, offset: Floats | None) -> Floats:
        """The raw scores that training starts from, on top of an offset: (n_outputs,)."""
        if self.base_score is not None:
            return self.base_score
        return self.loss.start(target) if offset is None else self.loss.start_from(target, offset)

    @property
    def width(self) -> int:
        """Number of values in a leaf."""
        return self.loss.n_outputs if self.vector_leaves else 1

    @property
    def tree_outputs(self) -> range:
        """First output of each tree of a round."""
        return range(0, self.loss.n_outputs, self.width)

    @property
    def trees_per_round(self) -> int:
        """Number of trees of a round."""
        return self.parallel_trees * len(self.tree_outputs)


def check_combinations(params: dict[str, Any]) -> None:
    """Raise ValueError where parameters contradict each other, whatever the data; check the rate.

    A value without effect, such as a sketch's error with another tree method, is allowed: users
    search grids over such combinations.
    """
    _check_boosting(params)
    _check_sampling(params)
    _check_dropout(params)
    alpha, loss = params.get("alpha"), params["loss"]
    if isinstance(alpha, list) and loss != "quantile":
        _refuse_value("alpha", alpha, 'several values are for loss="quantile"', "Use one number.")
    default = BOOSTED_REGRESSOR["alpha"].default
    if alpha not in (None, default) and loss not in _LOSSES_OF_ALPHA:
        # A warning only: scikit-learn's checks of regressors set `alpha` where it is a parameter.
        warn_caller(
            f'alpha={alpha!r} has no effect: it is the quantile of loss="quantile" and the share '
            'of loss="huber". Use reg_alpha for the L1 penalty, which XGBoost calls alpha, or '
            f"leave alpha at its default {default!r}."
        )
    stops_early = params["n_iter_no_change"] is not None or params["n_estimators"] == AUTO
    if params["tol"] > 0.0 and not stops_early:
        reason = "it is for early stopping, which n_iter_no_change=None leaves out"
        _refuse_value("tol", params["tol"], reason, "Set n_iter_no_change too, or use tol=0.")
    if params.get("class_weight") is not None and params["scale_pos_weight"] != 1.0:
        reason = "class_weight weighs the classes already"
        advice = "Use one of the two."
        _refuse_value("scale_pos_weight", params["scale_pos_weight"], reason, advice)
    rate = params["learning_rate"]
    if rate != AUTO and rate > _MAX_SAFE_RATE:
        warn_caller(
            f"learning_rate={rate:g} is above {_MAX_SAFE_RATE:g}: each round overshoots by more "
            "than it corrects, so that errors grow from round to round. Use a value from 0 to 1."
        )


def make_loss(params: dict[str, Any], task: Task) -> Loss:
    """The loss of a task; raises ValueError for a link of the other kind of task."""
    if task.classes is None:
        loss = make(params["loss"], alpha=params["alpha"], tweedie_power=params["tweedie_power"])
        if loss.link in CLASS_LINKS:
            raise ValueError(
                f"the loss {loss.name!r} has the link {loss.link!r}, which gives probabilities of "
                'classes, but this is a regressor. Use a classifier, or link="identity".'
            )
        return loss
    loss = make(params["loss"], n_outputs=task.n_outputs)
    if loss.link not in CLASS_LINKS:
        raise ValueError(
            f"the loss {loss.name!r} has the link {loss.link!r}, which gives no probabilities, "
            'but this is a classifier. Use link="logistic", or a regressor.'
        )
    return loss


def make_recipe(params: dict[str, Any], loss: Loss, schema: Schema) -> BoostingRecipe:
    """The recipe for a table of these features."""
    _check_loss(params, loss)
    reg_lambda = params["reg_lambda"]
    if reg_lambda is None:
        reg_lambda = _DEFAULT_LAMBDA[params["boosting"]]
    monotone = monotone_directions(params["monotone_constraints"], schema)
    groups = interaction_groups(params["interaction_constraints"], schema)
    if monotone and loss.link == "softmax":
        constraints = params["monotone_constraints"]
        if isinstance(constraints[0], list):  # as the user gave it: a dict
            constraints = dict(constraints)
        reason = f"with {loss.n_outputs} classes, a higher score of one is a lower chance of others"
        advice = "Use it with two classes or a regressor."
        _refuse_value("monotone_constraints", constraints, reason, advice)
    tree = {
        "reg_lambda": reg_lambda,
        "monotone": tuple(monotone),
        "interactions": tuple(tuple(group) for group in groups),
    }
    base_score = params["base_score"]
    return BoostingRecipe(
        loss=loss,
        boosting=params["boosting"],
        one_step=params["line_search"] == "round",
        learning_rate=params["learning_rate"],
        vector_leaves=loss.n_outputs > 1 and params.get("multi_strategy") == "multi_output_tree",
        tree=TreeParams.of(params | tree),
        rows=RowSampling(
            method=params["sampling_method"],
            rate=params["subsample"],
            reg_lambda=reg_lambda,
            top_rate=params["top_rate"],
            other_rate=params["other_rate"],
            full_rounds=math.ceil(min(1.0 / params["learning_rate"], 2.0**53)),
            ordered_leaves=loss.refits(params["boosting"]) and params["line_search"] == "leaf",
        ),
        dropout=Dropout.of(params) if params["rate_drop"] > 0.0 else None,
        parallel_trees=params["num_parallel_tree"],
        base_score=(
            None if base_score is None else base_scores(loss.link, base_score, loss.n_outputs)
        ),
    )


def _check_sampling(params: dict[str, Any]) -> None:
    if params["sampling_method"] != "goss":
        return
    top, other = params["top_rate"], params["other_rate"]
    if top + other > 1.0 + 1e-9:  # the sum is rounded
        reason = f"top_rate and other_rate are shares of the same rows, and top_rate={top!r}"
        _refuse_value("other_rate", other, reason, "Make their sum at most 1.")
    if params["subsample"] not in (1.0, AUTO):
        reason = 'sampling_method="goss" takes its shares from top_rate and other_rate'
        advice = 'Use subsample=1, or sampling_method="gradient_based".'
        _refuse_value("subsample", params["subsample"], reason, advice)


def _check_boosting(params: dict[str, Any]) -> None:
    one_step = params["line_search"] == "round"
    if params["boosting"] != "gradient":
        if one_step:
            reason = 'leaves of boosting="newton" have the lengths of their parabolas'
            _refuse_value("line_search", "round", reason, 'Use boosting="gradient".')
        return
    for name in ("rate_drop", "max_delta_step"):
        if one_step and params[name]:
            reason = 'with line_search="round" the loss alone sets the length of a step'
            _refuse_value(name, params[name], reason, f'Use {name}=0, or line_search="leaf".')
    for name in ("reg_lambda", "reg_alpha"):
        if params[name]:
            reason = 'boosting="gradient" has no penalties: each leaf is the minimum of the loss'
            _refuse_value(name, params[name], reason, f'Use {name}=0, or boosting="newton".')
    if params["sampling_method"] == "gradient_based":
        reason = 'its chances come from hessians, which boosting="gradient" does not use'
        advice = 'Use sampling_method="uniform", or boosting="newton".'
        _refuse_value("sampling_method", params["sampling_method"], reason, advice)


def _check_dropout(params: dict[str, Any]) -> None:
    for name in ("skip_drop", "one_drop"):
        if params[name] and params["rate_drop"] == 0.0:
            reason = "it is for dropout, which rate_drop=0 leaves out"
            _refuse_value(name, params[name], reason, f"Set rate_drop too, or leave out {name}.")


def _check_loss(params: dict[str, Any], loss: Loss) -> None:
    if params["sampling_method"] != "uniform" and not loss.varied:
        reason = f"with loss={loss.name!r} the gradients of all rows are equally large"
        advice = 'Use sampling_method="uniform".'
        _refuse_value("sampling_method", params["sampling_method"], reason, advice)
    if isinstance(params["loss"], CustomLoss) and params.get("device", "cpu") != "cpu":
        warn_caller(
            f"The loss {loss.name!r} is of NumPy functions: its gradients are computed on the host "
            f"and copied to device={params['device']!r} in every round."
        )


def _refuse_value(name: str, value: object, reason: str, advice: str) -> None:
    raise ValueError(f"{name}={value!r} is not allowed: {reason}. {advice}")


# ---- dropout ----


@dataclass(frozen=True, kw_only=True)
class Dropout(ParamRecord):
    """Dropout of rounds, and the factors of dropped and new rounds.

    Attributes
    ----------
    rate_drop : float
        Probability with which each earlier round is dropped.
    skip_drop : float
        Probability with which a round drops no earlier round.
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
        """The rounds that round ``index`` drops, given the weights of all before it."""
        n_rounds = len(weights)
        hashes = core.counter_hash("dropout", seed, index, n_rounds + 2)
        uniform = (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53  # in [0, 1)
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
        """The factors of the new round and of the dropped ones.

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


# ---- rounds ----


class BoostingRounds:
    """Mutable state of a boosting fit: its trees, their factors, and the scores."""

    # The gradients of a good model are small, but trees can always follow them.
    ended: str | None = None

    def __init__(
        self,
        recipe: BoostingRecipe,
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
        self.base_score = recipe.start(data.target, data.offset)
        self._scores = self._start(data, self.grower.start_scores)
        self._evaluation_scores = [self._start(part, core.fill_scores) for part in self.evaluations]
        # Rounds with factors are added on the CPU.
        device = "cpu" if recipe.weighs_rounds else recipe.tree.device
        self._on_device: DeviceScores | None = None
        if device_number(device) >= 0 and self.evaluations:
            self._on_device = DeviceScores(
                self.evaluations, self._evaluation_scores, device_number(device)
            )
        self.n_rounds = 0
        self._weights = np.empty(0)  # factors of the rounds, where they have any
        self._outputs = tuple(recipe.tree_outputs)
        self._proposes = recipe.tree.tree_method == "approx"
        self._sets_values = not recipe.one_step and (
            recipe.boosting == "gradient" or loss.refits(recipe.boosting)
        )
        # Whether a tree is added to the training scores before the round is complete: growing has
        # found the leaf of each row, and no tree is walked.
        self._adds_at_once = recipe.dropout is None and (
            recipe.parallel_trees == 1 or recipe.one_step
        )
        self._direction = np.zeros_like(self._scores) if recipe.one_step else None
        n_sets = 0 if recipe.dropout is None else 1 + len(self.evaluations)
        self._leaves = [core.RowLeaves() for _ in range(n_sets)]
        self._sample = core.Sample()
        self._gradients = self._new_gradients()
        # Friedman's leaf values need hessians, his splits do not.
        needs_hessians = (
            recipe.boosting == "gradient" and not recipe.one_step and not loss.constant_hessian
        )
        self._newton = self._new_gradients() if needs_hessians else self._gradients
        self._core_params = self._round_params()
        # Whether scores and gradients of rounds in steps stay on the device.
        self._steps_on_device = (
            device != "cpu"
            and loss.in_core
            and self._adds_at_once
            and recipe.rows.method == "uniform"
            and not loss.refits(recipe.boosting)
            and not recipe.one_step
        )

    def run_rounds(self, limit: int = 1) -> None:
        """Run at least one and at most `limit` more rounds.

        Plain rounds are loops of the core, which come back after a tenth of a second. They are
        added to the training scores only, so that evaluation sets limit them to one at a time; so
        do workers that share the rows, because their clocks differ.
        """
        if self._core_params is None:
            self._run_round()
            return
        at_once = not self.evaluations and not self.data.binned.is_shared
        n_rounds = self.grower.run_rounds(**self._core_args(limit if at_once else 1))
        if self.evaluations:
            self._add_round(1.0)
        self.n_rounds += n_rounds

    def run_measured(self, limit: int, metrics: Sequence[Metric]) -> list[Results] | None:
        """Run rounds with evaluation sets on the device; return their results, or None."""
        if self._on_device is None or self._core_params is None:
            return None
        measured = self._on_device.run(self.grower, self._core_args(limit), metrics)
        self.n_rounds += 0 if measured is None else len(measured)
        return measured

    def _core_args(self, limit: int) -> dict[str, Any]:
        y, weight = self.data.target.y, self.data.target.weight
        rounds = {"params": self._core_params, "n_rounds": limit, "seconds": _CORE_CALL_S}
        data = {"y": y, "weight": weight, "scores": self._scores, "gradients": self._gradients}
        return rounds | data | {"n_threads": self.n_threads}

    def _round_params(self) -> core.RoundParams | None:
        """The parameters of rounds in the core; None for rounds that it cannot run."""
        recipe, loss, target = self.recipe, self.recipe.loss, self.data.target
        quantiles = loss.leaf_quantiles if recipe.boosting == "newton" else ()
        is_plain = self._adds_at_once and not recipe.one_step and loss.in_core
        if not is_plain or (self._sets_values and not quantiles):
            return None
        return core.RoundParams(
            loss=loss.kernel,
            # Losses in the core have parameters that depend on no scores.
            parameters=loss.parameters(target, self._scores, self.n_threads),
            largest_weight=target.largest_weight,
            rate=recipe.learning_rate,
            seed=self.seed,
            first_round=self.data.first_round,
            sampling=recipe.rows.in_core(),
            leaf_quantiles=quantiles,
            max_step=recipe.tree.max_delta_step or np.inf,
        )

    def _run_round(self) -> None:
        """Grow the trees of one more round, step by step."""
        dropped = self._drop()
        self._take_gradients()
        for number in range(self.recipe.parallel_trees):
            self._grow_trees(self.n_rounds * self.recipe.parallel_trees + number)
        self._add_round(self._settle(dropped))
        self.n_rounds += 1

    @property
    def scores(self) -> Floats:
        """Raw scores of the training rows, which may be changed."""
        self.grower.fetch_scores(self._scores)
        return self._scores

    @property
    def weights(self) -> NDArray[np.float64]:
        """Factor of each round."""
        return self._weights.copy() if self.recipe.weighs_rounds else np.ones(self.n_rounds)

    @property
    def evaluation_scores(self) -> list[Floats]:
        """Raw scores of the rows of each evaluation set."""
        if self._on_device is not None:
            self._on_device.fetch()
        return self._evaluation_scores

    def results(self, metrics: Sequence[Metric]) -> Results:
        """The metrics of every evaluation set at the scores so far."""
        if self._on_device is not None:
            return self._on_device.results(metrics)
        return validation_results(self.evaluations, self._evaluation_scores, metrics)

    def fitted(self, weights: NDArray[np.float64]) -> Fitted:
        """The first rounds, each times its factor."""
        recipe = self.recipe
        forest = grown_forest([self.grower], self.data.binned, recipe.tree_outputs)
        if len(weights) < self.n_rounds:
            forest = forest.first(len(weights) * self.recipe.trees_per_round)
        if not (weights == 1.0).all():
            factors = np.repeat(weights, self.recipe.trees_per_round)
            node_factors = np.repeat(factors, np.diff(forest.tree_start))
            forest = replace(forest, value=forest.value * node_factors[:, np.newaxis])
        return Fitted(
            forest, self.base_score, recipe.loss.link, trees_per_round=recipe.trees_per_round
        )

    def state(self) -> dict[str, NDArray[Any]]:
        """Everything that the next round depends on, apart from data and parameters."""
        scores = {f"scores_{i}": scores for i, scores in enumerate(self._all_scores())}
        return {"weights": self.weights, **scores, **self.grower.trees()}

    def last_state(self) -> Callable[[], dict[str, NDArray[Any]]]:
        """A function that returns the state of this round, even in the middle of the next.

        Scores are left out where they are the sum of the trees; under dropout, trees are added
        several times, in another order.
        """
        if self.recipe.weighs_rounds:
            state = {name: array.copy() for name, array in self.state().items()}
            return lambda: state
        return partial(self._tree_state, self.n_rounds)

    def _tree_state(self, n_rounds: int) -> dict[str, NDArray[Any]]:
        """The state of the first rounds without scores; later trees are dropped."""
        while self.grower.n_trees > n_rounds * self.recipe.trees_per_round:
            self.grower.drop_last()
        return {"weights": np.ones(n_rounds), **self.grower.trees()}

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state, so that the next round is the one that would have followed it."""
        n_rounds, n_trees = len(state["weights"]), len(state["tree_start"]) - 1
        if n_trees != n_rounds * self.recipe.trees_per_round:
            raise ValueError(f"{n_trees} trees of {n_rounds} rounds")
        restore_trees(self.grower, self.data.binned, state)
        if "scores_0" in state:
            for i, scores in enumerate(self._all_scores()):
                scores[:] = state[f"scores_{i}"]
        else:
            self._add_all_trees()
        if self._on_device is not None:
            self._on_device.send()
        self.n_rounds = n_rounds
        self._weights = state["weights"].copy()

    def _add_all_trees(self) -> None:
        """Add the trees to the start scores, in the order of the rounds."""
        for tree in range(self.grower.n_trees):
            output = self._outputs[tree % len(self._outputs)]
            self.grower.add_own_tree(tree, self._scores, output, self.n_threads)
            for number in range(len(self.evaluations)):
                part, codes, scores = self._scored(1 + number)
                self.grower.add_tree(tree, 1.0, codes, part.rows, scores, output, self.n_threads)

    def digests(self) -> dict[str, str]:
        """Digests of the data of the fit, by name."""
        return digests_of(self.data, self.evaluations)

    def _all_scores(self) -> list[Floats]:
        return [self.scores, *self.evaluation_scores]

    def _start(
        self, part: TrainingSet | EvaluationSet, fill: Callable[[Floats, Floats, int], None]
    ) -> Floats:
        """The start scores of rows; where all are the same, `fill` sets them."""
        if part.start is not None:
            return part.start.copy()
        if part.offset is not None:
            return self.base_score + part.offset
        scores = np.empty((len(part.target.y), len(self.base_score)))
        fill(self.base_score, scores, self.n_threads)
        return scores

    def _new_gradients(self) -> core.Gradients:
        n_rows = len(self.data.target.y)
        return core.Gradients(n_rows, self.recipe.loss.n_outputs, by_row=self.recipe.width > 1)

    def _take_gradients(self) -> None:
        self._apply_loss(self._gradients, least_squares=self.recipe.boosting == "gradient")
        if self._newton is not self._gradients:
            self._apply_loss(self._newton, least_squares=False)
        if self._proposes:
            self.grower.propose(self._gradients, self.n_threads)

    def _apply_loss(self, out: core.Gradients, *, least_squares: bool) -> None:
        loss, target = self.recipe.loss, self.data.target
        if not self._steps_on_device:
            loss.gradients(target, self.scores, out, self.n_threads, least_squares=least_squares)
            return
        self.grower.take_gradients(
            loss=loss.kernel,
            parameters=loss.parameters(target, self._scores, self.n_threads),
            largest_weight=target.largest_weight,
            least_squares=least_squares,
            y=target.y,
            weight=target.weight,
            scores=self._scores,
            gradients=out,
        )

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
            if self._direction is not None:
                self.grower.add_leaves(self._direction, output, self.n_threads)
            elif self._adds_at_once:
                scores = self._scores if self._steps_on_device else self.scores
                self.grower.add_leaves(scores, output, self.n_threads)

    def _turn(self) -> int:
        """The feature that is preferred among equally good splits.

        XGBoost's is always the first. Friedman's boosting leaves it to chance, and on small tables,
        where many splits are equal, that is worth a lot; here every round prefers another one.
        """
        return 0 if self.recipe.boosting == "newton" else self.data.first_round + self.n_rounds

    def _set_values(self, output: int, rate: float) -> None:
        """Set node values of the last tree that are not -G / (H + lambda)."""
        recipe, loss, n_nodes = self.recipe, self.recipe.loss, self.grower.n_nodes
        if recipe.refits:
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

    def _drop(self) -> NDArray[np.intp]:
        """Take dropped rounds out of the training scores."""
        if self.recipe.dropout is None:
            return np.empty(0, np.intp)
        dropped = self.recipe.dropout.draw(self._weights, seed=self.seed, index=self.n_rounds)
        self._add_rounds(0, dropped, -self._weights[dropped])
        return dropped

    def _settle(self, dropped: NDArray[np.intp]) -> float:
        """Put dropped rounds back with their new weights; return the weight of the new round."""
        if self._direction is not None:
            return self._step(self._direction)
        if self.recipe.dropout is None:
            return 1.0
        new, factor = self.recipe.dropout.factors(len(dropped), self.recipe.learning_rate)
        before = self._weights[dropped]
        after = before * factor
        self._add_rounds(0, dropped, after)
        for number in range(len(self.evaluations)):
            self._add_rounds(1 + number, dropped, after - before)
        self._weights[dropped] = after
        self._weights = np.append(self._weights, new)
        return new

    def _step(self, direction: Floats) -> float:
        """Add the trees of a round to the training scores, times the length of a line search."""
        recipe, scores = self.recipe, self.scores
        start = 1.0 / recipe.learning_rate
        length = step_length(
            recipe.loss, self.data.target, scores, direction, start, self.n_threads
        )
        weight = recipe.learning_rate * length
        scores += weight * direction
        direction[:] = 0.0
        self._weights = np.append(self._weights, weight)
        return weight

    def _add_round(self, weight: float) -> None:
        """Add the new round to all scores that do not have it yet."""
        per_round, n_sets = self.recipe.trees_per_round, 1 + len(self.evaluations)
        if self._on_device is not None:
            self._on_device.add(self.grower, self.n_rounds * per_round, per_round)
            n_sets = 1
        for number in range(self._adds_at_once, n_sets):
            if self._leaves:
                self._add_rounds(number, np.array([self.n_rounds]), np.array([weight]))
                continue
            part, codes, scores = self._scored(number)
            first = self.n_rounds * per_round
            for tree in range(first, first + per_round):
                output = self._outputs[tree % len(self._outputs)]
                self.grower.add_tree(tree, weight, codes, part.rows, scores, output, self.n_threads)

    def _add_rounds(
        self, set_number: int, rounds: NDArray[np.intp], factors: NDArray[np.float64]
    ) -> None:
        """Add rounds, each times its factor, to the scores of a set, as dropout often does.

        `set_number` is 0 for the training set, and from 1 on for the evaluation sets.
        """
        part, codes, scores = self._scored(set_number)
        per_round = self.recipe.trees_per_round
        trees = (rounds[:, np.newaxis] * per_round + np.arange(per_round)).ravel()
        outputs = np.array(self._outputs)[trees % len(self._outputs)]
        self.grower.add_trees(
            trees.astype(np.uint32),
            np.repeat(factors, per_round),
            outputs.astype(np.uint32),
            codes,
            part.rows,
            scores,
            self._leaves[set_number],
            self.n_threads,
        )

    def _scored(self, set_number: int) -> tuple[TrainingSet | EvaluationSet, Any, Floats]:
        """A set of rows with its codes and scores; the training set is the first."""
        if set_number == 0:
            return self.data, self.data.binned.codes, self.scores
        part = self.evaluations[set_number - 1]
        return part, part.codes, self._evaluation_scores[set_number - 1]


def continued_seed(seed: int, n_rounds: int) -> int:
    """A seed for continued rounds, whose random choices differ from those of the first.

    Examples
    --------
    >>> continued_seed(7, 0) == continued_seed(7, 10)
    False
    """
    return int(np.random.SeedSequence([seed, n_rounds]).generate_state(1)[0])


# ---- line search ----


def step_length(
    loss: Loss, target: Target, scores: Floats, direction: Floats, start: float, n_threads: int
) -> float:
    """The length of the step along a direction that minimises the loss.

    Steps of losses on a logarithmic scale end where a score changes by 10, as those of leaves do:
    for rows of one class the minimum is at infinity.

    Parameters
    ----------
    loss : Loss
    target : Target
    scores, direction : float64 arrays of shape (n_rows, n_outputs)
    start : float
        First length to try, above 0.
    n_threads : int
    """
    from scipy.optimize import minimize_scalar

    def value(length: float) -> float:
        mean = loss.value(target, scores + length * direction, n_threads)
        return mean if math.isfinite(mean) else math.inf

    most = math.inf
    if loss.link != "identity":
        largest = max(float(direction.max()), -float(direction.min()))
        most = LARGEST_STEP / largest if largest > 0.0 else start
    end = _upper_end(value, min(start, most), most)
    result = minimize_scalar(
        value, bounds=(0.0, end), method="bounded", options={"xatol": _STEP_PRECISION * end}
    )
    # A bounded search never tries the end itself.
    return end if value(end) <= float(result.fun) else float(result.x)


def _upper_end(value: Callable[[float], float], length: float, most: float) -> float:
    """A length beyond the minimum of a convex function, and less than four times it.

    Halved or doubled from a first length on; never more than `most`.
    """
    current = value(length)
    for _ in range(_MAX_DOUBLINGS):
        half = value(length / 2)
        if not half < current:
            break
        length, current = length / 2, half
    for _ in range(_MAX_DOUBLINGS):
        if length >= most:
            return most
        length = min(2 * length, most)
        following = value(length)
        if not following < current:
            break
        current = following
    return length


# ---- evaluation sets on a device ----


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
        self, sets: Sequence[EvaluationSet], scores: Sequence[Floats], device: int
    ) -> None:
        self._sets, self._scores = sets, scores
        self._device_sets = [
            core.DeviceEvaluation(
                device, part.own_codes, part.rows, part.target.y, part.target.weight, start
            )
            for part, start in zip(sets, scores, strict=True)
        ]

    def add(self, grower: core.Grower, first: int, n_trees: int) -> None:
        """Add trees of a grower, from the first on."""
        for device_set in self._device_sets:
            device_set.add(grower, first, n_trees)

    def run(
        self, grower: core.Grower, rounds: dict[str, Any], metrics: Sequence[Metric]
    ) -> list[Results] | None:
        """Run rounds of a grower; return the results of each, or None where metrics forbid it."""
        losses = [metric for metric in metrics if isinstance(metric, LossMetric)]
        if len(losses) < len(metrics):
            return None
        values = grower.run_watched_rounds(
            **rounds,
            sets=self._device_sets,
            losses=[loss.kernel for loss in losses],
            parameters=[list(loss.parameters) for loss in losses],
        )
        return [
            {
                part.name: {
                    loss.name: loss.factor * float(value)
                    for loss, value in zip(losses, set_losses, strict=True)
                }
                for part, set_losses in zip(self._sets, round_losses, strict=True)
            }
            for round_losses in values
        ]

    def fetch(self) -> None:
        """Copy the scores to the arrays of the host."""
        for device_set, scores in zip(self._device_sets, self._scores, strict=True):
            device_set.fetch_scores(scores)

    def send(self) -> None:
        """Copy the scores from the arrays of the host."""
        for device_set, scores in zip(self._device_sets, self._scores, strict=True):
            device_set.set_scores(scores)

    def results(self, metrics: Sequence[Metric]) -> Results:
        """The metrics of every set; all but the loss need the scores on the host."""
        if not all(isinstance(metric, LossMetric) for metric in metrics):
            self.fetch()
        return {
            part.name: {metric.name: self._metric(metric, i) for metric in metrics}
            for i, part in enumerate(self._sets)
        }

    def _metric(self, metric: Metric, index: int) -> float:
        if isinstance(metric, LossMetric):
            device_set = self._device_sets[index]
            return metric.factor * device_set.mean_loss(metric.kernel, list(metric.parameters))
        target = self._sets[index].target
        return metric(target.y, self._scores[index], target.weight)
