"""Gradient boosting: parameters -> `BoostingRecipe` -> rounds of gradients, trees and new scores.

The gain of a split and the value of a leaf are those of Chen and Guestrin (2016), equations 5 to 7;
with ``boosting="gradient"`` trees and leaves are those of Friedman (2001), algorithm 1. Dropout is
DART of Rashmi and Gilad-Bachrach (2015), "DART: Dropouts meet Multiple Additive Regression Trees".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from arboost.losses.ranking import RankingLoss
from arboost.params.auto import AUTO
from arboost.params.boosting import BOOSTED_REGRESSOR
from arboost.params.records import ParamRecord
from arboost.training.loop import FinishedRound, Fitted
from arboost.training.sets import EvaluationSet, TrainingSet, digests_of
from arboost.trees.grower import TreeParams, grown_forest, make_grower, restore_trees
from arboost.trees.samples import RowSampling

_DEFAULT_LAMBDA = {"newton": 1.0, "gradient": 0.0}
# Steps of more than twice the distance to the target end farther from it than they began.
_MAX_SAFE_RATE = 2.0
_LOSSES_OF_ALPHA = ("quantile", "huber")
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
    if task.kind == "ranker":
        names = ("loss", "target_metric", "gain", "truncation_level", "score_normalization")
        return RankingLoss(seed=params["random_state"], **{name: params[name] for name in names})
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

    def in_core(self) -> core.Dropout:
        """Dropout for rounds in the core, which draws the rounds."""
        dropout = core.Dropout()
        for name in ("rate_drop", "skip_drop", "one_drop"):
            setattr(dropout, name, getattr(self, name))
        dropout.by_weight = self.sample_type == "weighted"
        dropout.as_forest = self.normalize_type == "forest"
        return dropout


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
        self.recipe = recipe
        self.data = data
        self.evaluations = tuple(evaluations)
        self.n_threads = n_threads
        self.seed = continued_seed(seed, data.first_round) if data.first_round else seed
        self.grower = make_grower(data.binned, recipe.tree, recipe.width, data.rows, workspace)
        self.base_score = recipe.start(data.target, data.offset)
        self.n_rounds = 0
        target, n_outputs = data.target, recipe.loss.n_outputs
        self._boosting = core.Boosting(
            self.grower, self._round_params(), n_outputs, target.y, target.weight
        )
        start = self._start(data)
        if start is None:
            self._boosting.start_scores(self.base_score, n_threads)
        else:
            self._boosting.set_scores(start)
        self._sets = [self._evaluation(part) for part in self.evaluations]
        # Factors of all rounds after each round of the last call, under dropout.
        self._recent_weights: dict[int, Floats] = {}

    def _round_params(self) -> core.RoundParams:
        recipe, loss = self.recipe, self.recipe.loss
        params = core.RoundParams()
        if loss.in_core:
            params.set_loss(loss.kernel, loss.round_parameters)
        else:
            params.set_loss("", ())
        params.least_squares = recipe.boosting == "gradient"
        if recipe.refits:
            params.leaves = core.LeafValues.quantiles
            params.leaf_quantiles = loss.leaf_quantiles
        elif recipe.boosting == "gradient" and not recipe.one_step:
            params.leaves = core.LeafValues.steps
        params.max_step = recipe.tree.max_delta_step or np.inf
        params.rate = recipe.learning_rate
        params.largest_weight = self.data.target.largest_weight
        params.seed = self.seed
        params.first_round = self.data.first_round
        params.sampling = recipe.rows.in_core()
        params.parallel_trees = recipe.parallel_trees
        params.dropout = None if recipe.dropout is None else recipe.dropout.in_core()
        params.one_step = recipe.one_step
        return params

    def _start(self, part: TrainingSet | EvaluationSet) -> Floats | None:
        """The start scores of rows; None where all are the base score."""
        if part.start is not None:
            return part.start
        return None if part.offset is None else self.base_score + part.offset

    def _evaluation(self, part: EvaluationSet) -> core.EvaluationRows:
        start, target = self._start(part), part.target
        return core.make_evaluation(
            part.codes,
            part.rows,
            target.y,
            target.weight,
            np.tile(self.base_score, (len(target.y), 1)) if start is None else start,
            adds_repeatedly=self.recipe.dropout is not None,
            device=device_number(self.recipe.tree.device),
        )

    def run_rounds(
        self, limit: int = 1, metrics: Sequence[Metric] = (), seconds: float = 0.0
    ) -> list[FinishedRound]:
        """At least one and at most `limit` more rounds, fewer where the time is over.

        The core makes them in one call; metrics that it does not know are taken afterwards, from
        the scores of each round.
        """
        losses = [metric for metric in metrics if isinstance(metric, LossMetric)]
        ends, values, scores, weights = self._boosting.run(
            limit,
            seconds,
            sets=self._sets,
            losses=[metric.kernel for metric in losses],
            parameters=[metric.parameters for metric in losses],
            keeps_scores=len(losses) < len(metrics),
            gradients=None if self.recipe.loss.in_core else self._given_gradients,
            step_length=self._step_length if self.recipe.one_step else None,
            leaf_values=self._leaf_values,
            n_threads=self.n_threads,
        )
        before = self.n_rounds
        self.n_rounds += len(ends)
        self._recent_weights = {before + 1 + i: factors for i, factors in enumerate(weights)}
        if not self.evaluations:
            return [FinishedRound({})] * len(ends)
        finished = []
        for i, end in enumerate(ends):
            results = {
                part.name: _metric_values(
                    part, metrics, iter(values[i][number]), scores[i][number] if scores else None
                )
                for number, part in enumerate(self.evaluations)
            }
            finished.append(FinishedRound(results, float(ends[-1] - end)))
        return finished

    def _given_gradients(
        self,
        scores: Floats,
        least_squares: bool,  # noqa: FBT001 - the core calls by position
        round_number: int,
        out: core.Gradients,
    ) -> None:
        """The gradients of a loss that the core does not know."""
        self.recipe.loss.gradients_of_round(
            self.data.target,
            scores,
            out,
            self.n_threads,
            least_squares=least_squares,
            round_number=round_number,
        )

    def _step_length(self, scores: Floats, direction: Floats) -> float:
        loss, target = self.recipe.loss, self.data.target
        start = 1.0 / self.recipe.learning_rate
        return step_length(loss, target, scores, direction, start, self.n_threads)

    # Function that sets the leaf values of the last tree, given its first output; None: the core.
    _leaf_values: Callable[[int], None] | None = None

    @property
    def scores(self) -> Floats:
        """Raw scores of the training rows, until the next round."""
        return self._boosting.scores

    @property
    def weights(self) -> Floats:
        """Factor of each round."""
        return self.weights_after(self.n_rounds)

    def weights_after(self, n_rounds: int) -> Floats:
        """Factors of the first rounds, as they were after these: of this state or the last call."""
        if not self.recipe.weighs_rounds:
            return np.ones(n_rounds)
        if n_rounds in self._recent_weights:
            return self._recent_weights[n_rounds]
        return self._boosting.weights[:n_rounds]

    @property
    def evaluation_scores(self) -> list[Floats]:
        """Raw scores of the rows of each evaluation set, until the next round."""
        return [rows.scores for rows in self._sets]

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
        all_scores = [self.scores, *self.evaluation_scores]
        scores = {f"scores_{i}": scores for i, scores in enumerate(all_scores)}
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
            self._boosting.set_scores(state["scores_0"])
            for i, rows in enumerate(self._sets, 1):
                rows.set_scores(state[f"scores_{i}"])
        else:
            self._boosting.add_all(self._sets, self.n_threads)
        self.n_rounds = n_rounds
        if self.recipe.weighs_rounds:
            self._boosting.weights = state["weights"]

    def digests(self) -> dict[str, str]:
        """Digests of the data of the fit, by name."""
        return digests_of(self.data, self.evaluations)


def _metric_values(
    part: EvaluationSet, metrics: Sequence[Metric], losses: Iterator[Any], scores: Floats | None
) -> dict[str, float]:
    """The metrics of a set after a round; the core has the losses, in the order of the metrics."""
    target, values = part.target, {}
    for metric in metrics:
        if isinstance(metric, LossMetric):
            values[metric.name] = metric.factor * float(next(losses))
        else:
            assert scores is not None
            values[metric.name] = metric.of_target(target, scores)
    return values


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
