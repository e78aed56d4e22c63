"""Codes and gradients to trees: one core call for each tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.model.forest import Forest

if TYPE_CHECKING:
    from arboost.data.bins import Binned

__all__ = ["TreeParams", "grown_forest", "make_grower", "restore_trees"]


@dataclass(frozen=True, kw_only=True)
class TreeParams:
    """How one tree is grown; the parameters of the same names in ``params/boosting.py``.

    ``monotone`` has -1, 0 or 1 for each feature, and ``interactions`` the groups of features that
    may meet on one path; both are empty where nothing is constrained.

    ``criterion`` is "quadratic" (squared error, Gini), "entropy" (an output of 0 or 1 for each
    class, or one output of -1 and 1 for two), "poisson" (targets from 0 on) or "absolute_error"
    (whose leaves have means until they are given medians; no categories). All but the first know
    no penalties and no monotone constraints.

    ``min_gain_share`` is the least gain of a split for each unit of the tree's weight (the sum of
    the hessians, mean over the outputs). It is scikit-learn's ``min_impurity_decrease`` times the
    number of targets; for "quadratic" and two classes in one output of -1 and 1, twice that.

    With ``allow_zero_gain`` splits are those of CART: a gain only has to reach ``gamma`` and
    ``min_gain_share``, even if they are 0; nodes whose rows all want the same value are leaves;
    and where all features that were drawn for a node are constant in it, further ones are drawn.

    With ``random_cuts`` each feature of a node is cut at one random value between the extremes of
    its rows, and a category by a random set of its levels.
    """

    max_depth: int | None
    max_leaves: int | None
    grow_policy: str
    min_child_weight: float
    min_samples_leaf: int
    gamma: float
    reg_lambda: float
    reg_alpha: float
    max_delta_step: float
    max_cat_to_onehot: int
    max_cat_threshold: int
    min_cat_weight: float
    cat_smooth: float
    cat_l2: float
    min_samples_split: int = 2
    min_gain_share: float = 0.0
    allow_zero_gain: bool = False
    criterion: str = "quadratic"
    random_cuts: bool = False
    colsample_bytree: float = 1.0
    colsample_bylevel: float = 1.0
    colsample_bynode: float = 1.0
    monotone: tuple[int, ...] = ()
    interactions: tuple[tuple[int, ...], ...] = ()
    tree_method: str = "hist"
    sketch_eps: float = 0.004
    sketch_scope: str = "global"

    @property
    def candidates(self) -> core.Candidates:
        """Between which values splits are tried."""
        kinds = core.Candidates
        if self.tree_method == "approx":
            return kinds.per_round if self.sketch_scope == "global" else kinds.per_node
        return kinds.bins if self.tree_method == "hist" else kinds.values


def make_grower(
    binned: Binned,
    params: TreeParams,
    width: int,
    rows: NDArray[np.uint32] | None = None,
    workspace: core.Workspace | None = None,
) -> core.Grower:
    """A grower of trees with ``width`` numbers in each leaf, on rows of one binned table.

    Growers that take turns, round by round, can share a workspace.

    Before the first tree of a round, tell it the gradients with ``propose``: bins of the global
    ``sketch_scope`` are made for them.
    """
    binned.require(params.tree_method)
    core_params = core.TreeParams()
    core_params.best_first = params.grow_policy == "leafwise"
    core_params.candidates = params.candidates
    for field in fields(params):
        if field.name not in {"grow_policy", "tree_method", "sketch_scope"}:
            setattr(core_params, field.name, getattr(params, field.name))
    return core.Grower(binned.codes, width, core_params, rows, workspace)


def grown_forest(
    growers: Sequence[core.Grower],
    binned: Binned,
    outputs: Sequence[int],
    *,
    order: NDArray[np.int64] | None = None,
    n_threads: int = 1,
) -> Forest:
    """Return the trees of growers, with the values that splits compare with instead of bins.

    Parameters
    ----------
    growers : sequence of core.Grower
    binned : Binned
        What they grew them on.
    outputs : sequence of int
        The first output of each tree of a round.
    order : int64 array of shape (n_trees,), or None
        Which of all trees, those of the first grower before those of the second, comes where; None
        leaves them as they are.
    n_threads : int
        The answer does not depend on it.
    """
    n_trees = sum(grower.n_trees for grower in growers)
    order = np.arange(n_trees) if order is None else order
    trees = core.gather_forest(growers, order, binned.edges, n_threads)
    return Forest(
        **{name: trees[name] for name in ("tree_start", "feature", "threshold", "left", "value")},
        default_left=trees["default_left"].view(np.bool_),
        gain=trees["gain"],
        cover=trees["cover"],
        output=np.tile(np.array(outputs, np.int32), n_trees // len(outputs)),
        level_set=trees["set"],
        level_sets=trees["sets"],
    )


def restore_trees(grower: core.Grower, binned: Binned, trees: Mapping[str, NDArray[Any]]) -> None:
    """Give a grower trees back that it once gave; raise ValueError where they are of other bins."""
    n_bins = np.array([len(edges) + 1 for edges in binned.edges])
    if (trees["bin"] >= n_bins[trees["feature"]]).any():
        raise ValueError("a split after an unknown bin")
    grower.restore(dict(trees))
