"""Bin codes and gradients to trees: one core call for each tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.cuda import device_number
from arboost.params.records import ParamRecord
from arboost.trees.forest import Forest, Integers

if TYPE_CHECKING:
    from arboost.data.bins import Binned


@dataclass(frozen=True, kw_only=True)
class TreeParams(ParamRecord):
    """Parameters of one tree; most are those of the same names in ``params/boosting.py``.

    ``monotone`` has -1, 0 or 1 for each feature, and ``interactions`` the groups of features that
    may occur together on one path; both are empty without constraints.

    ``criterion`` is "quadratic" (squared error, Gini), "entropy" (an output of 0 or 1 for each
    class, or one output of -1 and 1 for two), "error" (the weight outside the most frequent class;
    outputs as those of entropy), "gain_ratio" (entropy; features are compared by gain ratio),
    "poisson" (nonnegative targets) or "absolute_error" (leaf values are means until medians are
    set; no categorical features). All but the first support no penalties and no monotone
    constraints. ``target_ends`` has the end of the outputs of each of several targets, for "error".

    ``min_gain_share`` is the minimum gain of a split per unit of the tree's weight (the sum of the
    hessians, mean over the outputs). It is scikit-learn's ``min_impurity_decrease`` times the
    number of targets; for "quadratic" and two classes in one output of -1 and 1, twice that.

    With ``allow_zero_gain`` splits are those of CART: a gain only has to reach ``gamma`` and
    ``min_gain_share``, even if they are 0; nodes whose rows all have the same target are leaves;
    and where all features drawn for a node are constant in it, further features are drawn.

    With ``random_cuts`` each feature of a node has one random threshold between the extremes of the
    node's rows, or for a categorical feature one random level set; groups of levels are cut in
    the order of their means.
    """

    max_depth: int | None
    max_leaves: int | None
    grow_policy: str
    min_child_weight: float
    min_samples_leaf: int
    gamma: float = 0.0
    reg_lambda: float = 0.0
    reg_alpha: float = 0.0
    max_delta_step: float = 0.0
    max_cat_to_onehot: int
    max_cat_threshold: int
    min_cat_weight: float
    cat_smooth: float
    cat_l2: float
    min_samples_split: int = 2
    min_gain_share: float = 0.0
    allow_zero_gain: bool = False
    criterion: str = "quadratic"
    target_ends: tuple[int, ...] = ()
    random_cuts: bool = False
    colsample_bytree: float = 1.0
    colsample_bylevel: float = 1.0
    colsample_bynode: float = 1.0
    monotone: tuple[int, ...] = ()
    interactions: tuple[tuple[int, ...], ...] = ()
    tree_method: str = "hist"
    sketch_eps: float = 0.004
    sketch_scope: str = "global"
    device: str = "cpu"

    @property
    def candidates(self) -> core.Candidates:
        """Kind of candidate thresholds."""
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
    """Grower of trees with ``width`` values in each leaf, on rows of one binned table.

    Growers that take turns, round by round, can share a workspace.

    Before the first tree of a round, pass the gradients to ``propose``: bins of the global
    ``sketch_scope`` depend on them.
    """
    binned.require(params.tree_method)
    core_params = core.TreeParams()
    core_params.best_first = params.grow_policy == "leafwise"
    core_params.candidates = params.candidates
    core_params.device = device_number(params.device)
    for field in fields(params):
        if field.name not in {"device", "grow_policy", "tree_method", "sketch_scope"}:
            setattr(core_params, field.name, getattr(params, field.name))
    core_params.grouped = binned.grouped
    if binned.memory is not None:
        core_params.histogram_bytes = binned.memory.histograms
        core_params.sample_bytes = binned.memory.samples
    return core.Grower(binned.codes, width, core_params, rows, workspace)


def grown_forest(
    growers: Sequence[core.Grower],
    binned: Binned,
    outputs: Sequence[int],
    *,
    order: Integers | None = None,
    n_threads: int = 1,
) -> Forest:
    """Trees of growers as a forest, with thresholds in place of bin codes.

    Parameters
    ----------
    growers : sequence of core.Grower
    binned : Binned
        Training table of the growers.
    outputs : sequence of int
        The first output of each tree of a round.
    order : int64 array of shape (n_trees,), or None
        The trees and their order, as indices into those of the first grower, then of the second,
        and so on; None for all in that order.
    n_threads : int
        Number of threads; the result does not depend on it.
    """
    order = np.arange(sum(grower.n_trees for grower in growers)) if order is None else order
    trees = core.gather_forest(growers, order, binned.edges, n_threads)
    return Forest(
        **{name: trees[name] for name in ("tree_start", "feature", "threshold", "left", "value")},
        default_left=trees["default_left"].view(np.bool_),
        gain=trees["gain"],
        cover=trees["cover"],
        output=np.tile(np.array(outputs, np.int32), len(order) // len(outputs)),
        level_set=trees["set"],
        level_sets=trees["sets"],
    )


def restore_trees(grower: core.Grower, binned: Binned, trees: Mapping[str, NDArray[Any]]) -> None:
    """Restore the saved trees of a grower; raise ValueError if they do not fit the bins."""
    n_bins = np.array([len(edges) + 1 for edges in binned.edges])
    if (trees["bin"] >= n_bins[trees["feature"]]).any():
        raise ValueError("a split after an unknown bin")
    grower.restore(dict(trees))
