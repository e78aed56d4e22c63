"""Boosting by weights with trees of the engine: what starts such a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from arboost.amount_rounds import AmountRounds
from arboost.backend import core
from arboost.learners import TreeLearners
from arboost.losses.base import mean
from arboost.recipe import EvaluationSet, TrainingSet
from arboost.reweighting import WeightRecipe
from arboost.schemes import Amounts
from arboost.vote_rounds import VoteRounds

__all__ = ["amount_rounds", "vote_rounds"]


def vote_rounds(
    recipe: WeightRecipe,
    data: TrainingSet,
    evaluations: Sequence[EvaluationSet] = (),
    *,
    n_threads: int,
    seed: int,
    workspace: core.Workspace | None = None,
) -> VoteRounds:
    """Return a fit of classes before its first round."""
    learners = _learners(
        recipe, data, evaluations, n_threads=n_threads, seed=seed, workspace=workspace
    )
    return VoteRounds(
        recipe,
        learners,
        data,
        evaluations,
        first_round=data.first_round,
        n_threads=n_threads,
        seed=seed,
    )


def amount_rounds(
    recipe: WeightRecipe,
    data: TrainingSet,
    evaluations: Sequence[EvaluationSet] = (),
    *,
    start_weights: NDArray[np.float64] | None = None,
    n_threads: int,
    seed: int,
    workspace: core.Workspace | None = None,
) -> AmountRounds:
    """Return a fit of numbers before its first round, or after those of a model that goes on."""
    assert isinstance(recipe.scheme, Amounts)
    recipe = replace(recipe, scheme=replace(recipe.scheme, middle=mean(data.target)))
    learners = _learners(
        recipe, data, evaluations, n_threads=n_threads, seed=seed, workspace=workspace
    )
    return AmountRounds(
        recipe,
        learners,
        data,
        evaluations,
        start_weights=start_weights,
        n_threads=n_threads,
        seed=seed,
    )


def _learners(
    recipe: WeightRecipe,
    data: TrainingSet,
    evaluations: Sequence[EvaluationSet],
    *,
    n_threads: int,
    seed: int,
    workspace: core.Workspace | None,
) -> TreeLearners:
    """Return the maker of trees; the weights of their rows have the mean 1."""
    least_weight = recipe.least_share * len(data.target.y)
    return TreeLearners(
        data,
        evaluations,
        replace(recipe.tree, min_child_weight=least_weight),
        recipe.scheme,
        n_threads=n_threads,
        seed=seed,
        workspace=workspace,
    )
