"""Parameters of gradient boosting -> loss and `BoostingRecipe`; checks of their combinations.

The gain of a split and the value of a leaf are those of Chen and Guestrin (2016), equations 5 to 7;
with ``boosting="gradient"`` trees and leaves are those of Friedman (2001), algorithm 1. Dropout is
DART of Rashmi and Gilad-Bachrach (2015), "DART: Dropouts meet Multiple Additive Regression Trees".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.feature_names import interaction_groups, monotone_directions
from arboost.data.schema import Schema
from arboost.data.target import Task
from arboost.errors import warn_caller
from arboost.losses.base import Floats, Loss, Target
from arboost.losses.links import CLASS_LINKS
from arboost.losses.losses import CustomLoss, make, start_from
from arboost.params.auto import AUTO
from arboost.params.boosting import BOOSTED_REGRESSOR
from arboost.params.records import ParamRecord
from arboost.trees.grower import TreeParams
from arboost.trees.samples import RowSampling

_DEFAULT_LAMBDA = {"newton": 1.0, "gradient": 0.0}
# Steps of more than twice the distance to the target end farther from it than they began.
_MAX_SAFE_RATE = 2.0
_LOSSES_OF_ALPHA = ("quantile", "huber")


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
        start = self.base_score
        return start_from(self.loss, target, offset) if start is None else start

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
        base_score=None if base_score is None else loss.scores_of(base_score),
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
