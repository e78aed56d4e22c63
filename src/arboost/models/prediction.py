"""Model and table -> raw scores, leaves and quantiles.

Raw scores are float64 of shape (n_rows, n_outputs): the base score plus the sum of the trees in
their order, their mean or their weighted median. They depend neither on the number of threads nor
on which rows are predicted together. Tables in device memory are predicted there, with the same
bytes, in the kind of array that came in:

    X (CuPy, PyTorch, cuDF, ...) --> DeviceColumns --> CudaForest --> raw scores --> link --> as X
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.cuda import CudaArray, as_kind_of, device_number
from arboost.data.dataset import Dataset
from arboost.data.feature_names import split_offset
from arboost.data.table import Table, ingest
from arboost.errors import DeviceError, InputTypeError
from arboost.losses import links
from arboost.models.model import Model, total_weight
from arboost.trees.forest import Floats, Forest, Integers, depths, parents
from arboost.trees.leaf_distributions import forest_quantiles

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


_TWO_COLUMNS = ("logistic", "logistic_of_double", "share_of_two")
_NUMBERS = set("biuf")  # kinds of labels that a device holds


def read_table(model: Model, X: object, name: str = "X") -> Table:
    """Table of X by the model's schema; error messages call it `name`."""
    if isinstance(X, Dataset):
        raise InputTypeError(
            f"{name} is a Dataset, which holds bins instead of values. Pass the table it was made "
            "from."
        )
    return ingest(X, model.schema)


# ---- raw scores ----


def raw_scores(model: Model, X: object, offset: object = None, *, n_threads: int) -> Floats:
    """Raw scores of the rows of X, with their offset."""
    table = read_table(model, split_offset(X, offset)[0])
    added = links.read_offset(model, X, table.n_rows, offset)
    scores = table_scores(model, table, n_threads=n_threads)
    return scores if added is None else scores + added


def table_scores(model: Model, table: Table, *, n_threads: int) -> Floats:
    """Raw scores of the rows of a table by the model's schema, without offset."""
    if isinstance(table.values, core.DeviceColumns):
        copied: Floats = device_scores(model, table.values).to_numpy()
        return copied
    if model.device != "cpu":
        scores = np.empty((table.n_rows, model.n_outputs))
        combination = _combination(model)
        cuda_forest(model).scores(table.columns, **combination, out=scores, n_threads=n_threads)
        return scores
    if model.combine == "median":
        return _median_scores(model, table, model.n_trees, n_threads)
    scores = _initial_sums(model, table)
    model.packed.traverse(columns=table.columns, out=scores, n_threads=n_threads)
    return _mean(model, scores, model.n_rounds) if model.combine == "mean" else scores


def staged_raw_scores(
    model: Model, X: object, offset: object = None, *, n_threads: int
) -> Iterator[Floats]:
    """Yield the raw scores after each round, each in a new array."""
    refuse_device(model, "staged_raw")
    table = read_table(model, split_offset(X, offset)[0])
    if model.combine == "median":
        for n_trees in range(1, model.n_trees + 1):
            yield _median_scores(model, table, n_trees, n_threads)
        return
    added = links.read_offset(model, X, table.n_rows, offset)
    scores = _initial_sums(model, table)
    for first in range(0, model.n_trees, model.trees_per_round):
        _add_trees(model.forest, table, scores, first, first + model.trees_per_round, n_threads)
        rounds = first // model.trees_per_round + 1
        staged = _mean(model, scores, rounds) if model.combine == "mean" else scores.copy()
        yield staged if added is None else staged + added


def tree_values(model: Model, table: Table, *, n_threads: int) -> Floats:
    """Leaf value of each row in each tree, shape (n_rows, n_trees)."""
    refuse_device(model, "tree_values")
    values = np.zeros((table.n_rows, model.n_trees))
    forest = replace(model.forest, output=np.arange(model.n_trees, dtype=np.int32))
    _add_trees(forest, table, values, 0, model.n_trees, n_threads)
    return values


def tree_scores(model: Model, table: Table, tree: int, *, n_threads: int) -> Floats:
    """Leaf values of each row in one tree, shape (n_rows, n_outputs)."""
    refuse_device(model, "tree_scores")
    scores = np.zeros((table.n_rows, model.n_outputs))
    _add_trees(model.forest, table, scores, tree, tree + 1, n_threads)
    return scores


def _initial_sums(model: Model, table: Table) -> Floats:
    scores = np.zeros((table.n_rows, model.n_outputs))
    if model.combine != "mean":
        scores[:] = model.base_score
    return scores


def _mean(model: Model, sums: Floats, rounds: int) -> Floats:
    scores: Floats = sums / total_weight(model, rounds)
    scores += model.base_score
    return scores


def _add_trees(
    forest: Forest, table: Table, scores: Floats, begin: int, end: int, n_threads: int
) -> None:
    core.traverse(
        columns=table.columns,
        forest=forest,
        out=scores,
        tree_begin=begin,
        tree_end=end,
        n_threads=n_threads,
    )


def _median_scores(model: Model, table: Table, n_trees: int, n_threads: int) -> Floats:
    scores = _initial_sums(model, table)
    if n_trees:
        core.traverse_median(
            columns=table.columns,
            forest=model.forest,
            weights=model.tree_weights,
            out=scores,
            tree_end=n_trees,
            n_threads=n_threads,
        )
    return scores


# ---- leaves and quantiles ----


def leaf_ids(model: Model, table: Table, *, n_threads: int) -> NDArray[np.int32]:
    """Leaf of each row in each tree, int32 of shape (n_rows, n_trees).

    Parameters
    ----------
    model : Model
    table : Table
        With the columns of the model's schema.
    n_threads : int

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.data.table import ingest
    >>> X = [[0], [1], [2]]
    >>> model = GradientBoostingRegressor(n_estimators=2, max_depth=1).fit(X, [0, 0, 1]).model_
    >>> leaf_ids(model, ingest(X, model.schema), n_threads=1).tolist()
    [[1, 1], [1, 1], [2, 2]]
    """
    leaves = np.empty((table.n_rows, model.n_trees), np.int32)
    forest = model.packed if model.device == "cpu" else cuda_forest(model)
    forest.leaves(table.columns, leaves, n_threads)
    return leaves


def decision_path(model: Model, table: Table, *, n_threads: int) -> tuple[csr_matrix, Integers]:
    """Nodes on each row's paths from the roots to its leaves.

    Parameters
    ----------
    model : Model
    table : Table
        With the columns of the model's schema.
    n_threads : int

    Returns
    -------
    indicator : scipy.sparse.csr_matrix of int64, shape (n_rows, n_nodes)
        1 where the row passes the node. Nodes of all trees, tree by tree.
    tree_start : int64 array of shape (n_trees + 1,)
        Columns ``tree_start[t]`` to ``tree_start[t + 1]`` are the nodes of tree t.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.data.table import ingest
    >>> X = [[0], [1], [2]]
    >>> model = GradientBoostingRegressor(n_estimators=2, max_depth=1).fit(X, [0, 0, 1]).model_
    >>> indicator, tree_start = decision_path(model, ingest(X, model.schema), n_threads=1)
    >>> indicator.toarray()
    array([[1, 1, 0, 1, 1, 0],
           [1, 1, 0, 1, 1, 0],
           [1, 0, 1, 1, 0, 1]])
    >>> tree_start
    array([0, 3, 6])
    """
    from scipy.sparse import csr_matrix

    forest = model.forest
    first, nodes = _paths(forest)
    leaf = (leaf_ids(model, table, n_threads=n_threads) + forest.tree_start[:-1]).ravel()
    size = first[leaf + 1] - first[leaf]
    end = np.concatenate([[0], np.cumsum(size)])
    # Index in `nodes` of entry i, which is entry i - end[k] of path k.
    index = np.arange(end[-1]) + np.repeat(first[leaf] - end[:-1], size)
    by_row = end[:: model.n_trees] if model.n_trees else np.zeros(table.n_rows + 1, np.int64)
    shape = (table.n_rows, forest.n_nodes)
    ones = np.ones(len(index), np.int64)
    return csr_matrix((ones, nodes[index], by_row), shape=shape), forest.tree_start.copy()


def _paths(forest: Forest) -> tuple[Integers, Integers]:
    """Paths from root to leaf: the start of each node's path, and all paths' nodes.

    The path of a split is empty.
    """
    parent, depth = parents(forest), depths(forest)
    size = np.where(forest.is_split, 0, depth + 1)
    first = np.concatenate([[0], np.cumsum(size)])
    nodes = np.empty(first[-1], np.int64)
    node = np.flatnonzero(~forest.is_split)
    index = first[node + 1] - 1
    while len(node):
        nodes[index] = node
        has_parent = parent[node] >= 0
        node, index = parent[node[has_parent]], index[has_parent] - 1
    return first, nodes


def predict_quantiles(
    model: Model, table: Table, quantiles: float | Sequence[float], *, n_threads: int
) -> Floats:
    """Quantiles of y for the rows of a table, as `forest_quantiles` defines them."""
    if model.distributions is None:
        raise ValueError(
            "predict_quantiles needs the values of y in the leaves, which this model does not "
            "have: only forest regressors that are fitted with quantiles=True keep them. Fit with "
            "quantiles=True."
        )
    refuse_device(model, "predict_quantiles")
    return forest_quantiles(
        model.forest, table, model.distributions, quantiles, n_threads=n_threads
    )


# ---- tables in device memory ----


def cuda_forest(model: Model, number: int | None = None) -> core.CudaForest:
    """Forest of a model on a device, by default that of the model; it is uploaded once."""
    number = device_number(model.device) if number is None else number
    uploaded = model.on_devices.get(number)
    if uploaded is None:
        forest = core.CudaForest(model.forest, model.schema.n_features, model.n_outputs, number)
        uploaded = model.on_devices.setdefault(number, forest)
    return uploaded


def _combination(model: Model) -> dict[str, Any]:
    """Base scores, divisor and weights of the trees, as the core takes them."""
    return {
        "base": model.base_score,
        "mean_of": float(max(model.n_rounds, 1)) if model.combine == "mean" else 0.0,
        "weights": model.tree_weights if model.combine == "median" else np.empty(0),
    }


def refuse_device(model: Model, method: str) -> None:
    """Raise DeviceError where a model is on a device that a method does not run on."""
    if model.device != "cpu":
        raise DeviceError(
            f'{method} does not run on device="{model.device}". Use model.to("cpu").{method}.'
        )


def device_table(model: Model, X: object) -> core.DeviceColumns:
    """Table in device memory by the schema of a model, which may be on any device."""
    device = None if model.device == "cpu" else model.device
    columns = ingest(X, model.schema, device=device).values
    assert isinstance(columns, core.DeviceColumns)
    return columns


def device_raw_scores(model: Model, X: object, offset: object = None) -> Floats:
    """Raw scores of the rows of a table in device memory."""
    raw = _scores_with_offset(model, X, offset)
    scores: Floats = as_kind_of(raw, X)
    return scores


def device_predictions(model: Model, X: object, offset: object = None) -> NDArray[Any]:
    """Predicted values or labels of these rows.

    Labels that are not numbers are a NumPy array.
    """
    raw = _scores_with_offset(model, X, offset)
    if model.classes is None:
        values = raw if model.link == "identity" else _linked(model.link, raw, 0, model.n_outputs)
        predicted: NDArray[Any] = as_kind_of(values.ravel() if model.n_outputs == 1 else values, X)
        return predicted
    labels = _labels(links.target_parts(model), raw)
    if not isinstance(labels, CudaArray):
        return labels if model.targets else labels[:, 0]
    predicted = as_kind_of(labels if model.targets else labels.ravel(), X)
    return predicted


def device_probabilities(model: Model, X: object, offset: object = None) -> links.Probabilities:
    """Class probabilities of these rows; a list of arrays for several targets."""
    links.check_classifier(model)
    raw = _scores_with_offset(model, X, offset)
    shares: list[Floats] = [
        as_kind_of(_linked(link, raw, first, n_outputs), X)
        for link, _, first, n_outputs in links.target_parts(model)
    ]
    return shares if model.targets else shares[0]


def device_leaves(model: Model, X: object) -> NDArray[np.int32]:
    """Leaf of each of these rows in each tree, int32 of shape (n_rows, n_trees)."""
    columns = device_table(model, X)
    leaves = CudaArray.empty((columns.n_rows, model.n_trees), np.int32, columns.device)
    cuda_forest(model, columns.device).leaves(columns, leaves.address)
    result: NDArray[np.int32] = as_kind_of(leaves, X)
    return result


def _scores_with_offset(model: Model, X: object, offset: object) -> CudaArray:
    """Raw scores of a table in device memory, with their offset."""
    raw = device_scores(model, device_table(model, split_offset(X, offset)[0]))
    added = links.read_offset(model, X, raw.shape[0], offset)
    return raw if added is None else CudaArray.of(raw.to_numpy() + added, raw.device)


def device_scores(model: Model, columns: core.DeviceColumns) -> CudaArray:
    """Raw scores of a table in device memory that has the columns of the schema."""
    raw = CudaArray.empty((columns.n_rows, model.n_outputs), np.float64, columns.device)
    forest = cuda_forest(model, columns.device)
    forest.scores(columns, **_combination(model), out=raw.address)
    return raw


def _linked(link: str, raw: CudaArray, first: int, n_outputs: int) -> CudaArray:
    """Link of some columns of raw scores."""
    n_rows, stride = raw.shape
    width = 2 if link in _TWO_COLUMNS else n_outputs
    out = CudaArray.empty((n_rows, width), np.float64, raw.device)
    core.cuda_link(
        name=link,
        raw=raw.address + first * raw.dtype.itemsize,
        stride=stride,
        n_outputs=n_outputs,
        n_rows=n_rows,
        out=out.address,
        device=raw.device,
    )
    return out


def _labels(parts: list[links.TargetPart], raw: CudaArray) -> CudaArray | NDArray[Any]:
    """Likeliest labels, shape (n_rows, n_parts); on the device if they are numbers."""
    kinds = {part.labels.dtype.kind for part in parts}
    if len(kinds) == 1 and kinds <= _NUMBERS:
        return _number_labels(parts, raw)
    codes = [part._replace(labels=np.arange(len(part.labels))) for part in parts]
    chosen = _number_labels(codes, raw).to_numpy()
    columns = [part.labels[chosen[:, i]] for i, part in enumerate(parts)]
    return links.stack_labels(columns)


def _number_labels(parts: list[links.TargetPart], raw: CudaArray) -> CudaArray:
    dtype = np.result_type(*(part.labels for part in parts))
    n_rows, stride = raw.shape
    out = CudaArray.empty((n_rows, len(parts)), dtype, raw.device)
    for i, part in enumerate(parts):
        labels = part.labels.astype(dtype)
        core.cuda_labels(
            raw=raw.address + part.first * raw.dtype.itemsize,
            stride=stride,
            n_outputs=part.n_outputs if part.link in links.ALL_CLASS_LINKS else 1,
            n_rows=n_rows,
            # One score chooses between two labels, which are equal where there is one class.
            labels=np.resize(labels, max(len(labels), 2)).view(np.uint8),
            bytes=dtype.itemsize,
            out_stride=len(parts),
            out=out.address + i * dtype.itemsize,
            device=raw.device,
        )
    return out
