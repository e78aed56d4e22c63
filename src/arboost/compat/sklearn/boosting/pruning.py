"""Cost-complexity pruning of the trees of a booster, each before the next one is grown.

The engine prunes whole forests after growth. A boosted tree must predict as pruned before the next
round: until the end of the fit, all leaves of a pruned branch hold the value of the leaf that the
branch becomes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.grow.pruning import without_branches
from arboost.model.forest import Forest

__all__ = ["PrunedTrees"]

Floats = NDArray[np.float64]


class PrunedTrees:
    """Branches that pruning has made leaves of, tree by tree.

    Parameters
    ----------
    ccp_alpha : float
        Mean decrease of squared error per split and row up to which a branch is pruned.
    """

    def __init__(self, ccp_alpha: float) -> None:
        self._alpha = ccp_alpha
        self._cut: list[NDArray[np.bool_]] = []

    def new_leaves(self, left: NDArray[np.int32], sums: Floats) -> NDArray[np.int64]:
        """Prune the tree that was grown last; return the leaf that each node becomes a part of.

        Parameters
        ----------
        left : int32 array of shape (n_nodes,)
            Left children; 0 marks a leaf.
        sums : float64 array of shape (n_nodes, 2)
            Sums of gradients and of weights in the leaves.
        """
        total = np.where((left == 0)[:, np.newaxis], sums, 0.0)
        splits = np.flatnonzero(left)
        for node in splits[::-1]:  # parents are before their children
            total[node] = total[left[node]] + total[left[node] + 1]
        explained = np.divide(
            total[:, 0] ** 2, total[:, 1], out=np.zeros(len(left)), where=total[:, 1] > 0
        )
        decrease = np.zeros(len(left))
        decrease[splits] = explained[left[splits]] + explained[left[splits] + 1] - explained[splits]
        nodes, alphas, _ = core.prune_order(left, decrease)
        above = np.flatnonzero(alphas / total[0, 1] > self._alpha)
        cut = np.zeros(len(left), np.bool_)
        cut[nodes[: above[0] if len(above) else len(nodes)]] = True
        self._cut.append(cut)
        leaf = np.arange(len(left))
        for node in splits:
            if cut[node] or leaf[node] != node:
                leaf[[left[node], left[node] + 1]] = leaf[node]
        return leaf

    def cut(self, forest: Forest) -> Forest:
        """Return a forest of the first of these trees without the branches."""
        cut = np.concatenate(self._cut[: forest.n_trees])
        return without_branches(forest, cut)
