"""scikit-learn's own tree structure of a fitted tree, for tools that read ``tree_``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.model.leaves import depths
from arboost.model.model import Model
from arboost.pictures.tree_words import Style, TreeWords

__all__ = ["NodeRows", "sklearn_tree"]

Floats = NDArray[np.float64]

_NO_CHILD, _NO_FEATURE = -1, -2  # of leaves


class NodeRows(NamedTuple):
    """Statistics of the training rows of each node that a model does not hold.

    Attributes
    ----------
    n_rows : int64 array of shape (n_nodes,)
    impurity : float64 array of shape (n_nodes,)
    """

    n_rows: NDArray[np.int64]
    impurity: Floats


def sklearn_tree(model: Model, criterion: str, rows: NodeRows | None = None) -> Any:
    """Return a ``sklearn.tree._tree.Tree`` of a model of one tree.

    It is a copy: changes do not reach the model. Nodes keep their numbers. The impurities of
    classes are those of their shares.

    Parameters
    ----------
    model : Model
    criterion : str
        Parameter of the estimator.
    rows : NodeRows, optional
        Without it, numbers of rows are rounded sums of weights, and impurities of regression are
        NaN.
    """
    from sklearn.tree._tree import NODE_DTYPE, Tree

    forest = model.forest
    _check_thresholds(model)
    values = [one.numbers for one in TreeWords(model, 0, Style()).node_values]
    if model.kind == "regressor":  # each column of a value is a target
        values = [column[:, np.newaxis] for one in values for column in one.T]
    n_classes = np.array([one.shape[1] for one in values], np.intp)
    wide = [np.pad(one, ((0, 0), (0, n_classes.max() - one.shape[1]))) for one in values]
    is_split = forest.is_split
    if rows is None:
        rows = NodeRows(np.rint(forest.cover).astype(np.int64), np.full(forest.n_nodes, np.nan))
    if model.kind == "classifier":
        rows = rows._replace(impurity=_impurities(values, criterion))
    nodes = np.zeros(forest.n_nodes, NODE_DTYPE)
    columns = {
        "left_child": np.where(is_split, forest.left, _NO_CHILD),
        "right_child": np.where(is_split, forest.left + 1, _NO_CHILD),
        "feature": np.where(is_split, forest.feature, _NO_FEATURE),
        "threshold": np.where(is_split, forest.threshold, float(_NO_FEATURE)),
        "impurity": rows.impurity,
        "n_node_samples": rows.n_rows,
        "weighted_n_node_samples": forest.cover,
        "missing_go_to_left": forest.default_left,
    }
    for name, column in columns.items():
        nodes[name] = column
    tree = Tree(model.schema.n_features, n_classes, len(values))
    tree.__setstate__(
        {
            "max_depth": int(depths(forest).max()),
            "node_count": forest.n_nodes,
            "nodes": nodes,
            "values": np.ascontiguousarray(np.stack(wide, axis=1)),
        }
    )
    return tree


def _check_thresholds(model: Model) -> None:
    if model.forest.has_sets:
        node = int(np.argmax(model.forest.level_set >= 0))
        label = model.schema.label(int(model.forest.feature[node]))
        raise ValueError(
            f"tree_ is not available: node {node} splits the category {label} by sets of levels, "
            "which scikit-learn's trees do not have. Use text() or picture(), or pass the column "
            "as numbers."
        )


def _impurities(shares: list[Floats], criterion: str) -> Floats:
    """Return the mean impurity over the targets."""
    if criterion == "gini":
        each = [1.0 - (one**2).sum(axis=1) for one in shares]
    elif criterion == "error":
        each = [1.0 - one.max(axis=1) for one in shares]
    else:
        each = [
            -(one * core.log(np.where(one > 0, one, 1.0))).sum(1) / core.log(2.0) for one in shares
        ]
    mean: Floats = np.mean(each, axis=0)
    return mean
