"""Codes and gradients to trees: one core call for each tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core

if TYPE_CHECKING:
    from arboost.binning import Binned

__all__ = ["TreeParams", "make_grower", "thresholds"]


@dataclass(frozen=True, kw_only=True)
class TreeParams:
    """How one tree is grown; the parameters of the same names in ``params.py``."""

    max_depth: int | None
    max_leaves: int | None
    grow_policy: str
    min_child_weight: float
    min_samples_leaf: int
    gamma: float
    reg_lambda: float
    reg_alpha: float
    max_delta_step: float


def make_grower(binned: Binned, params: TreeParams, width: int) -> core.Grower:
    """A grower of trees with ``width`` numbers in each leaf, on one binned table."""
    core_params = core.TreeParams(
        max_depth=params.max_depth,
        max_leaves=params.max_leaves,
        best_first=params.grow_policy == "leafwise",
        min_child_weight=params.min_child_weight,
        min_samples_leaf=params.min_samples_leaf,
        gamma=params.gamma,
        reg_lambda=params.reg_lambda,
        reg_alpha=params.reg_alpha,
        max_delta_step=params.max_delta_step,
    )
    return core.Grower(binned.codes, width, core_params)


def thresholds(
    binned: Binned,
    feature: NDArray[np.int32],
    bins: NDArray[np.int32],
    is_leaf: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return the values that splits after the given bins compare with; 0 for leaves.

    The last bin has no edge above it: a split after it sends all values left and missing ones
    right, so its threshold is infinite.
    """
    n_bins = np.array([len(edges) + 1 for edges in binned.edges])
    table = np.concatenate([part for edges in binned.edges for part in (edges, [np.inf])])
    first = np.concatenate([[0], np.cumsum(n_bins)])
    return np.where(is_leaf, 0.0, table[first[feature] + bins])
