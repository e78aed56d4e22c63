"""The only training loop: a recipe and a binned table to a forest.

From the start scores on, every round takes the gradients at the scores, grows trees on them, and
adds what their leaves say to the scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.binning import Binned
from arboost.grow import TreeParams, make_grower, thresholds
from arboost.losses import LOSSES, Target
from arboost.model import Forest

__all__ = ["Fitted", "Recipe", "Round", "train"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What makes an algorithm: its loss, its trees, and how they add up.

    Attributes
    ----------
    loss : str
        Name of the loss.
    n_outputs : int
        Scores of a row: 1, or one for each class.
    n_estimators : int
        Rounds.
    learning_rate : float
        What each tree's values are multiplied by.
    vector_leaves : bool
        One tree a round with a number for every output in its leaves, instead of one tree for
        each output.
    tree : TreeParams
    base_score : float or None
        Scores to start from; None for the loss's best constant.
    """

    loss: str
    n_outputs: int
    n_estimators: int
    learning_rate: float
    vector_leaves: bool
    tree: TreeParams
    base_score: float | None = None


@dataclass(frozen=True)
class Round:
    """What has just been done: round number ``index``, from 0, of ``total``."""

    index: int
    total: int


@dataclass(frozen=True)
class Fitted:
    """The forest, and the scores that its trees add to, shape (n_outputs,)."""

    forest: Forest
    base_score: NDArray[np.float64]


def train(
    recipe: Recipe,
    binned: Binned,
    target: Target,
    *,
    n_threads: int,
    seed: int,
    on_round: Callable[[Round], None] | None = None,
) -> Fitted:
    """Train a forest.

    The result depends on nothing but the recipe, the table, the target and the seed.
    """
    loss = LOSSES[recipe.loss]
    n_rows = len(target.y)
    width = recipe.n_outputs if recipe.vector_leaves else 1
    tree_outputs = range(0, recipe.n_outputs, width)
    grower = make_grower(binned, recipe.tree, width)
    gradients = core.Gradients(n_rows, recipe.n_outputs, by_row=width > 1)
    base_score = (
        loss.start(target, recipe.n_outputs)
        if recipe.base_score is None
        else np.full(recipe.n_outputs, recipe.base_score)
    )
    scores = np.tile(base_score, (n_rows, 1))
    for index in range(recipe.n_estimators):
        loss.gradients(target, scores, gradients, n_threads)
        for output in tree_outputs:
            grower.grow(gradients, output, seed, index, recipe.learning_rate, None, n_threads)
            grower.add_leaves(scores, output, n_threads)
        if on_round is not None:
            on_round(Round(index, recipe.n_estimators))
    return Fitted(_forest(grower, binned, recipe, tree_outputs), base_score)


def _forest(grower: core.Grower, binned: Binned, recipe: Recipe, tree_outputs: range) -> Forest:
    """The grower's trees, with the values that splits compare with instead of bins."""
    trees = grower.trees()
    is_leaf = trees["left"] == 0
    width = recipe.n_outputs // len(tree_outputs)
    return Forest(
        tree_start=trees["tree_start"],
        feature=trees["feature"],
        threshold=thresholds(binned, trees["feature"], trees["bin"], is_leaf),
        left=trees["left"],
        default_left=trees["default_left"].view(np.bool_),
        value=trees["value"].reshape(-1, width),
        gain=trees["gain"],
        cover=trees["cover"],
        output=np.tile(np.array(tree_outputs, np.int32), recipe.n_estimators),
    )
