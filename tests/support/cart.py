"""Reference CART: a slow check of every node of a tree against the definitions.

A split is correct if no other split has more gain, a leaf if no split is allowed. So ties, frequent
in small nodes, need no rule. Codes of -1 are missing values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arboost import _core


def impurity(criterion: str, target: np.ndarray, weight: np.ndarray) -> float:
    """Return the impurity of rows with targets (n, outputs), times their weight.

    Classes are one-hot.
    """
    total = weight.sum()
    mean = weight @ target / total
    if criterion == "quadratic":
        return float((weight @ (target - mean) ** 2).sum())
    if criterion == "error":
        return float(total * (1 - mean.max()))
    if criterion in ("entropy", "gain_ratio"):
        share = mean[mean > 0]
        return float(-total * (share * np.log2(share)).sum())
    if criterion == "poisson":
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(target > 0, target * np.log(target / mean), 0.0)
        return float((weight @ terms).sum())
    return sum(
        float(min(weight @ np.abs(column - at) for at in np.unique(column))) for column in target.T
    )


@dataclass
class Cart:
    """Rules of a tree on codes (n, features) and targets (n, outputs)."""

    codes: np.ndarray
    target: np.ndarray
    weight: np.ndarray
    criterion: str = "quadratic"
    max_depth: float = np.inf
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_gain_share: float = 0.0

    def impurity(self, rows: np.ndarray) -> float:
        return impurity(self.criterion, self.target[rows], self.weight[rows])

    def gain(self, rows: np.ndarray, left: np.ndarray) -> float | None:
        """Return the impurity decrease of a split; None where the split is not allowed."""
        sides = rows[left], rows[~left]
        if min(len(side) for side in sides) < self.min_samples_leaf:
            return None
        if self.criterion == "poisson" and any(
            (self.weight[side] @ self.target[side] <= 0).any() for side in sides
        ):
            return None
        return self.impurity(rows) - sum(self.impurity(side) for side in sides)

    def splits(self, rows: np.ndarray):
        for column in self.codes[rows].T:
            missing = column < 0
            for cut in np.unique(column[~missing]):
                left = ~missing & (column <= cut)
                yield left
                if missing.any():
                    yield left | missing

    def best_gain(self, rows: np.ndarray) -> float:
        gains = (self.gain(rows, left) for left in self.splits(rows) if 0 < left.sum() < len(rows))
        return max((gain for gain in gains if gain is not None), default=-np.inf)

    def check(self, tree: dict[str, np.ndarray], *, best: bool = True) -> int:
        """Assert that every node is correct; return the number of splits.

        Without ``best``, a split need not have the highest gain of its node.
        """
        least = self.min_gain_share * self.weight.sum()
        slack = 1e-6 * self.impurity(np.arange(len(self.codes))) + 1e-300
        n_split = 0
        waiting = [(0, np.arange(len(self.codes)), 0)]
        while waiting:
            node, rows, depth = waiting.pop()
            target = self.target[rows]
            allowed = (
                depth < self.max_depth
                and len(rows) >= max(self.min_samples_split, 2 * self.min_samples_leaf)
                and bool((target != target[0]).any())
            )
            if tree["left"][node] == 0:
                if allowed and best:
                    assert self.best_gain(rows) < least + slack, f"leaf {node} could be split"
                    assert self.min_gain_share > 0 or self.best_gain(rows) == -np.inf
                continue
            assert allowed, f"node {node} should be a leaf"
            left = self.goes_left(tree, node, rows)
            gain = self.gain(rows, left)
            assert gain is not None, f"the split of node {node} is not allowed"
            assert gain >= least - slack
            np.testing.assert_allclose(tree["gain"][node], gain, rtol=1e-5, atol=slack)
            if best:
                assert gain >= self.best_gain(rows) - slack, f"node {node} has a better split"
            n_split += 1
            child = int(tree["left"][node])
            waiting += [(child, rows[left], depth + 1), (child + 1, rows[~left], depth + 1)]
        return n_split

    def goes_left(self, tree: dict[str, np.ndarray], node: int, rows: np.ndarray) -> np.ndarray:
        code = self.codes[rows, tree["feature"][node]]
        if tree["set"][node] >= 0:
            words = tree["sets"][tree["set"][node]]
            missing = int(self.codes[:, tree["feature"][node]].max()) + 1
            at = np.where(code < 0, missing, code).astype(np.uint64)
            bit = words[(at // 64).astype(int)] >> (at % 64) & np.uint64(1)
            return bit.astype(bool)
        return np.where(code < 0, tree["default_left"][node] == 1, code <= tree["bin"][node])


def encode(codes: np.ndarray, *, exact: bool = False) -> _core.Codes | _core.Ranks:
    """Return the core's codes of integers from 0 on; -1 is missing."""
    values = np.where(codes < 0, np.nan, codes.astype(float))
    columns = _core.Columns(len(codes))
    columns.add_matrix(values)
    if exact:
        return _core.rank(columns, None, 1)
    return _core.encode(columns, None, [np.arange(c.max()) + 0.5 for c in codes.T], 1)


def cart_params(**settings: object) -> _core.TreeParams:
    """Return parameters of a CART tree with the given limits only."""
    defaults = {
        "max_depth": None,
        "max_leaves": None,
        "min_child_weight": 0.0,
        "reg_lambda": 0.0,
        "cat_l2": 0.0,
        "cat_smooth": 0.0,
        "min_cat_weight": 0.0,
        "allow_zero_gain": True,
    }
    params = _core.TreeParams()
    for name, value in (defaults | settings).items():
        setattr(params, name, value)
    return params


def grow(
    codes: _core.Codes | _core.Ranks,
    target: np.ndarray,
    weight: np.ndarray,
    *,
    n_threads: int = 1,
    seed: int = 0,
    tree: int = 0,
    sample: _core.Sample | None = None,
    rows: np.ndarray | None = None,
    **settings: object,
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Return the arrays of a CART tree on targets (n, outputs), and the leaf of each row."""
    target = target.astype(float)
    gradients = _core.Gradients(*target.shape, by_row=True)
    h = np.repeat(weight.astype(float)[:, np.newaxis], target.shape[1], axis=1)
    _core.set_gradients(-target * h, h, gradients, n_threads)
    if isinstance(codes, _core.Ranks):
        settings["candidates"] = _core.Candidates.values
    grower = _core.Grower(codes, target.shape[1], cart_params(**settings), rows)
    grower.grow(gradients, 0, seed=seed, tree=tree, rate=1.0, sample=sample, n_threads=n_threads)
    return grower.trees(), grower.leaf_of_row()
