"""Model and table -> raw scores, leaves and quantiles; raw scores -> predictions.

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
from arboost.data.feature_names import split_offset, split_target
from arboost.data.table import Table, ingest
from arboost.data.target import weights
from arboost.errors import DeviceError
from arboost.losses.links import (
    ALL_CLASS_LINKS,
    LINKS,
    Labels,
    OutputSpec,
    Probabilities,
    TargetPart,
    check_classifier,
    read_offset,
    target_parts,
)
from arboost.models.model import Model, total_weight
from arboost.models.single_row import encoded_row
from arboost.params.suggestions import missing_attribute
from arboost.trees.forest import Forest
from arboost.trees.leaf_distributions import SHARE_UNITS, LeafDistributions

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def raw_scores(
    model: Model, X: object, offset: object = None, *, n_threads: int
) -> NDArray[np.float64]:
    """Return the raw scores of the rows of X, with their offset."""
    table = read_table(model, split_offset(X, offset)[0])
    added = read_offset(model, X, table.n_rows, offset)
    scores = table_scores(model, table, n_threads=n_threads)
    return scores if added is None else scores + added


def _row_of(model: Model, X: object) -> tuple[core.RowModel | None, object]:
    """Return the predictor of single rows, and X in its form; (None, X) where there is none."""
    if model.row is not None:
        return model.row, X  # it has the last word on X
    if model.schema.names is None or model.encoded_row is None:
        return None, X
    row = encoded_row(X, model.schema)
    return (None, X) if row is None else (model.encoded_row, row)


def raw_scores_of_row(model: Model, X: object) -> NDArray[np.float64] | None:
    """Return the result of `raw_scores` if X is a single row that needs no `ingest`; else None."""
    row, X = _row_of(model, X)
    return None if row is None else row.raw(X)


def predictions_of_row(model: Model, X: object) -> NDArray[Any] | None:
    """Return the result of `predictions` if X is such a row; else None."""
    row, X = (None, X) if model.targets else _row_of(model, X)
    if row is None:
        return None
    if model.classes is None:
        return row.values(X)
    number = row.likeliest(X)
    return None if number < 0 else model.classes[number : number + 1].copy()


def probabilities_of_row(model: Model, X: object) -> NDArray[np.float64] | None:
    """Return the result of `probabilities` if X is such a row; else None."""
    if model.targets or model.classes is None:
        return None
    row, X = _row_of(model, X)
    return None if row is None else row.answers(X)


def table_scores(model: Model, table: Table, *, n_threads: int) -> NDArray[np.float64]:
    """Return the raw scores of the rows of a table by the model's schema, without offset."""
    if isinstance(table.values, core.DeviceColumns):
        copied: NDArray[np.float64] = device_scores(model, table.values).to_numpy()
        return copied
    if model.device != "cpu":
        scores = np.empty((table.n_rows, model.n_outputs))
        forest = cuda_forest(model, device_number(model.device))
        forest.scores(table.columns, **combination(model), out=scores, n_threads=n_threads)
        return scores
    if model.combine == "median":
        return _median_scores(model, table, model.n_trees, n_threads)
    scores = _start(model, table)
    model.packed.traverse(columns=table.columns, out=scores, n_threads=n_threads)
    return _mean(model, scores, model.n_rounds) if model.combine == "mean" else scores


def tree_values(model: Model, table: Table, *, n_threads: int) -> NDArray[np.float64]:
    """Return the leaf value of each row in each tree, shape (n_rows, n_trees)."""
    refuse_device(model, "tree_values")
    values = np.zeros((table.n_rows, model.n_trees))
    forest = replace(model.forest, output=np.arange(model.n_trees, dtype=np.int32))
    core.traverse(
        columns=table.columns,
        forest=forest,
        out=values,
        tree_begin=0,
        tree_end=model.n_trees,
        n_threads=n_threads,
    )
    return values


def tree_scores(model: Model, table: Table, tree: int, *, n_threads: int) -> NDArray[np.float64]:
    """Return the leaf values of each row in one tree, shape (n_rows, n_outputs)."""
    refuse_device(model, "tree_scores")
    scores = np.zeros((table.n_rows, model.n_outputs))
    _add_trees(model, table, scores, range(tree, tree + 1), n_threads)
    return scores


def staged_raw_scores(
    model: Model, X: object, offset: object = None, *, n_threads: int
) -> Iterator[NDArray[np.float64]]:
    """Yield the raw scores after each round, each in an array of its own."""
    refuse_device(model, "staged_raw")
    table = read_table(model, split_offset(X, offset)[0])
    if model.combine == "median":
        for n_trees in range(1, model.n_trees + 1):
            yield _median_scores(model, table, n_trees, n_threads)
        return
    added = read_offset(model, X, table.n_rows, offset)
    scores = _start(model, table)
    for first in range(0, model.n_trees, model.trees_per_round):
        _add_trees(model, table, scores, range(first, first + model.trees_per_round), n_threads)
        rounds = first // model.trees_per_round + 1
        staged = _mean(model, scores, rounds) if model.combine == "mean" else scores.copy()
        yield staged if added is None else staged + added


class EstimatorMethods:
    """Attributes and methods of fitted estimators of scikit-learn, for loaded models.

    They need ``kind``, ``classes``, ``schema`` and ``predict``.
    """

    if not TYPE_CHECKING:  # for type checkers, unknown names are errors
        __getattr__ = missing_attribute

    @property
    def classes_(self: Any) -> Any:
        """Class labels, as estimators have them; AttributeError for regression."""
        if self.classes is None:
            raise AttributeError("classes_ is there for classifiers only, but this is a regressor.")
        return list(self.classes) if isinstance(self.classes, tuple) else self.classes

    @property
    def n_features_in_(self: Any) -> int:
        """Number of columns of the table in fit."""
        count: int = self.schema.n_columns
        return count

    @property
    def feature_names_in_(self: Any) -> NDArray[Any]:
        """Names of the columns in fit; AttributeError for a table without names."""
        if self.schema.columns is None:
            raise AttributeError("feature_names_in_ is not there: the table of fit had no names.")
        return np.array(self.schema.columns, dtype=object)

    def score(self: Any, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> float:
        """Return the accuracy of the labels, or R^2 of the values, as `score` of estimators.

        y may name a column of X; `options` are those of `predict`.
        """
        features, y, _ = split_target(X, y)
        predicted = self.predict(X if options.get("offset") else features, **options)
        truth = np.asarray(y).reshape(predicted.shape)
        weight = weights(sample_weight, len(predicted))
        if self.kind == "classifier":
            is_right = (predicted == truth).reshape(len(truth), -1).all(axis=1)
            return float(np.average(is_right, weights=weight))
        truth, predicted = (
            np.asarray(one, float).reshape(len(y), -1) for one in (truth, predicted)
        )
        mean = np.average(truth, axis=0, weights=weight)
        error, spread = (
            np.average((truth - other) ** 2, axis=0, weights=weight) for other in (predicted, mean)
        )
        shares = np.where(error == 0.0, 0.0, 1.0)  # of a constant truth: R^2 is 0, or 1 if exact
        np.divide(error, spread, out=shares, where=spread > 0.0)
        return float(np.mean(1.0 - shares))

    def decision_function(self: Any, X: object, **options: Any) -> NDArray[np.float64]:
        """Return the raw scores of a classifier, as `decision_function` of estimators.

        The shape is (n_rows,) for two classes, else (n_rows, n_classes); `options` are those of
        `predict_raw`. Forests and trees have probabilities alone.
        """
        if self.kind != "classifier" or self.link in ("share_of_two", "shares"):
            raise TypeError(
                "decision_function is there for boosted classifiers only. Use predict, or "
                "predict_proba of a classifier."
            )
        return decision(self.predict_raw(X, **options))


def decision(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return raw scores as `decision_function` gives them: a vector where there is one output."""
    return raw.ravel() if raw.shape[1] == 1 else raw


def probabilities(model: OutputSpec, raw: NDArray[np.float64]) -> Probabilities:
    """Return the class probabilities of raw scores, shape (n_rows, n_classes).

    For several targets the result is a list of such arrays.
    """
    check_classifier(model)
    if model.targets:
        return [LINKS[link](columns) for link, _, columns in _by_target(model, raw)]
    return LINKS[model.link](raw)


def predictions(model: OutputSpec, raw: NDArray[np.float64]) -> NDArray[Any]:
    """Return the predicted values (regression) or the most likely labels of raw scores.

    Their shape is (n_rows,), or (n_rows, n_targets) for several targets.
    """
    if model.classes is None:
        values = LINKS[model.link](raw)
        return values[:, 0] if model.n_outputs == 1 else values
    if isinstance(model.classes, tuple):
        parts = [_likeliest(*part) for part in _by_target(model, raw)]
        # Labels of different dtypes would become strings.
        kinds = {part.dtype.kind for part in parts}
        return np.stack(parts if len(kinds) == 1 else [part.astype(object) for part in parts], 1)
    return _likeliest(model.link, model.classes, raw)


def _likeliest(link: str, classes: Labels, raw: NDArray[np.float64]) -> Labels:
    # Links are monotone, so the most likely class needs no exp.
    by_output = link in ALL_CLASS_LINKS
    labels: Labels = classes[raw.argmax(axis=1) if by_output else (raw[:, 0] > 0).astype(np.intp)]
    return labels


def _by_target(
    model: OutputSpec, raw: NDArray[np.float64]
) -> Iterator[tuple[str, Labels, NDArray[np.float64]]]:
    """Yield link, labels and raw scores of each target of a classifier."""
    for link, labels, first, n_outputs in target_parts(model):
        yield link, labels, raw[:, first : first + n_outputs]


def read_table(model: Model, X: object, name: str = "X") -> Table:
    """Return X as a table by the model's schema; error messages call it `name`."""
    if isinstance(X, Dataset):
        raise TypeError(
            f"{name} is a Dataset, which holds bins instead of values. Pass the table it was made "
            "from."
        )
    return ingest(X, model.schema)


def _start(model: Model, table: Table) -> NDArray[np.float64]:
    scores = np.zeros((table.n_rows, model.n_outputs))
    if model.combine != "mean":
        scores[:] = model.base_score
    return scores


def _mean(model: Model, sums: NDArray[np.float64], rounds: int) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = sums / total_weight(model, rounds)
    scores += model.base_score
    return scores


def _add_trees(
    model: Model, table: Table, scores: NDArray[np.float64], trees: range, n_threads: int
) -> None:
    core.traverse(
        columns=table.columns,
        forest=model.forest,
        out=scores,
        tree_begin=trees.start,
        tree_end=trees.stop,
        n_threads=n_threads,
    )


def _median_scores(model: Model, table: Table, n_trees: int, n_threads: int) -> NDArray[np.float64]:
    scores = _start(model, table)
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


_TWO_COLUMNS = ("logistic", "logistic_of_double", "share_of_two")
_NUMBERS = set("biuf")  # kinds of labels that a device holds


def cuda_forest(model: Model, number: int) -> core.CudaForest:
    """Return the forest of a model on a device; it is uploaded once."""
    known = model.on_devices.get(number)
    if known is None:
        forest = core.CudaForest(model.forest, model.schema.n_features, model.n_outputs, number)
        known = model.on_devices.setdefault(number, forest)
    return known


def combination(model: Model) -> dict[str, Any]:
    """Return base scores, divisor and weights of the trees, as the core takes them."""
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
    """Return a table in device memory by the schema of a model, which may be on any device."""
    device = None if model.device == "cpu" else model.device
    columns = ingest(X, model.schema, device=device).values
    assert isinstance(columns, core.DeviceColumns)
    return columns


def device_raw_scores(model: Model, X: object, offset: object = None) -> NDArray[np.float64]:
    """Return the raw scores of the rows of a table in device memory."""
    raw = _scores_of_array(model, X, offset)
    scores: NDArray[np.float64] = as_kind_of(raw, X)
    return scores


def device_predictions(model: Model, X: object, offset: object = None) -> NDArray[Any]:
    """Return the predicted values or labels of these rows.

    Labels that are no numbers are an array of NumPy.
    """
    raw = _scores_of_array(model, X, offset)
    if model.classes is None:
        values = raw if model.link == "identity" else _linked(model.link, raw, 0, model.n_outputs)
        found: NDArray[Any] = as_kind_of(values.ravel() if model.n_outputs == 1 else values, X)
        return found
    labels = _labels(target_parts(model), raw)
    if not isinstance(labels, CudaArray):
        return labels if model.targets else labels[:, 0]
    found = as_kind_of(labels if model.targets else labels.ravel(), X)
    return found


def device_probabilities(model: Model, X: object, offset: object = None) -> Probabilities:
    """Return the class probabilities of these rows; a list of arrays for several targets."""
    check_classifier(model)
    raw = _scores_of_array(model, X, offset)
    shares: list[NDArray[np.float64]] = [
        as_kind_of(_linked(link, raw, first, n_outputs), X)
        for link, _, first, n_outputs in target_parts(model)
    ]
    return shares if model.targets else shares[0]


def device_leaves(model: Model, X: object) -> NDArray[np.int32]:
    """Return the leaf of each of these rows in each tree, int32 of shape (n_rows, n_trees)."""
    columns = device_table(model, X)
    leaves = CudaArray.empty((columns.n_rows, model.n_trees), np.int32, columns.device)
    cuda_forest(model, columns.device).leaves(columns, leaves.address)
    found: NDArray[np.int32] = as_kind_of(leaves, X)
    return found


def _scores_of_array(model: Model, X: object, offset: object) -> CudaArray:
    """Return the raw scores of a table in device memory, with their offset."""
    raw = device_scores(model, device_table(model, split_offset(X, offset)[0]))
    added = read_offset(model, X, raw.shape[0], offset)
    return raw if added is None else CudaArray.of(raw.to_numpy() + added, raw.device)


def device_scores(model: Model, columns: core.DeviceColumns) -> CudaArray:
    """Return the raw scores of a table in device memory that has the columns of the schema."""
    raw = CudaArray.empty((columns.n_rows, model.n_outputs), np.float64, columns.device)
    forest = cuda_forest(model, columns.device)
    forest.scores(columns, **combination(model), out=raw.address)
    return raw


def _linked(link: str, raw: CudaArray, first: int, n_outputs: int) -> CudaArray:
    """Return the link of some columns of raw scores."""
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


def _labels(parts: list[TargetPart], raw: CudaArray) -> CudaArray | NDArray[Any]:
    """Return the likeliest labels, shape (n_rows, n_parts); on the device if they are numbers."""
    kinds = {part.labels.dtype.kind for part in parts}
    if len(kinds) == 1 and kinds <= _NUMBERS:
        return _number_labels(parts, raw)
    codes = [part._replace(labels=np.arange(len(part.labels))) for part in parts]
    found = _number_labels(codes, raw).to_numpy()
    columns = [part.labels[found[:, i]] for i, part in enumerate(parts)]
    # Labels of different dtypes would become strings.
    return np.stack(columns if len(kinds) == 1 else [one.astype(object) for one in columns], 1)


def _number_labels(parts: list[TargetPart], raw: CudaArray) -> CudaArray:
    dtype = np.result_type(*(part.labels for part in parts))
    n_rows, stride = raw.shape
    out = CudaArray.empty((n_rows, len(parts)), dtype, raw.device)
    for i, part in enumerate(parts):
        labels = part.labels.astype(dtype)
        core.cuda_labels(
            raw=raw.address + part.first * raw.dtype.itemsize,
            stride=stride,
            n_outputs=part.n_outputs if part.link in ALL_CLASS_LINKS else 1,
            n_rows=n_rows,
            # One score chooses between two labels, which are equal where there is one class.
            labels=np.resize(labels, max(len(labels), 2)).view(np.uint8),
            bytes=dtype.itemsize,
            out_stride=len(parts),
            out=out.address + i * dtype.itemsize,
            device=raw.device,
        )
    return out


Integers = NDArray[np.int64]


def leaf_ids(model: Model, table: Table, *, n_threads: int) -> NDArray[np.int32]:
    """Return the leaf of each row in each tree, int32 of shape (n_rows, n_trees).

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
    if model.device != "cpu":
        leaves = np.empty((table.n_rows, model.n_trees), np.int32)
        cuda_forest(model, device_number(model.device)).leaves(table.columns, leaves, n_threads)
        return leaves
    return _leaves(model.packed, model.n_trees, table, n_threads)


def forest_leaves(forest: Forest, table: Table, *, n_threads: int) -> NDArray[np.int32]:
    """Return the leaf of each row in each tree, as `leaf_ids` does, for trees without a model."""
    n_outputs = max(forest.width, int(forest.output.max(initial=0)) + 1)
    packed = core.PackedForest(forest, table.columns.n_columns, n_outputs)
    return _leaves(packed, forest.n_trees, table, n_threads)


def _leaves(
    packed: core.PackedForest, n_trees: int, table: Table, n_threads: int
) -> NDArray[np.int32]:
    leaves = np.empty((table.n_rows, n_trees), np.int32)
    packed.leaves(table.columns, leaves, n_threads)
    return leaves


def decision_path(model: Model, table: Table, *, n_threads: int) -> tuple[csr_matrix, Integers]:
    """Return the nodes on each row's paths from the roots to its leaves.

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
    place = np.arange(end[-1]) + np.repeat(first[leaf] - end[:-1], size)
    by_row = end[:: model.n_trees] if model.n_trees else np.zeros(table.n_rows + 1, np.int64)
    shape = (table.n_rows, forest.n_nodes)
    ones = np.ones(len(place), np.int64)
    return csr_matrix((ones, nodes[place], by_row), shape=shape), forest.tree_start.copy()


def parents(forest: Forest) -> Integers:
    """Return the parent of each node, both counted over the whole forest; -1 for roots.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> model = GradientBoostingRegressor(n_estimators=2, max_depth=1).fit([[0], [1]], [0, 1])
    >>> parents(model.model_.forest)
    array([-1,  0,  0, -1,  3,  3])
    """
    split = np.flatnonzero(forest.is_split)
    root = np.repeat(forest.tree_start[:-1], np.diff(forest.tree_start))
    child = root[split] + forest.left[split]
    above = np.full(forest.n_nodes, -1)
    above[child] = above[child + 1] = split
    return above


def depths(forest: Forest) -> Integers:
    """Return the number of splits above each node of the forest.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> model = GradientBoostingRegressor(n_estimators=1, max_depth=1).fit([[0], [1]], [0, 1])
    >>> depths(model.model_.forest)
    array([0, 1, 1])
    """
    root = np.repeat(forest.tree_start[:-1], np.diff(forest.tree_start))
    depth = np.zeros(forest.n_nodes, np.int64)
    node, level = forest.tree_start[:-1], 0
    while len(node):
        depth[node] = level
        split = node[forest.is_split[node]]
        left = root[split] + forest.left[split]
        node, level = np.concatenate([left, left + 1]), level + 1
    return depth


def _paths(forest: Forest) -> tuple[Integers, Integers]:
    """Return the paths from root to leaf: the start of each node's path, and all paths' nodes.

    The path of a split is empty.
    """
    above, depth = parents(forest), depths(forest)
    size = np.where(forest.is_split, 0, depth + 1)
    first = np.concatenate([[0], np.cumsum(size)])
    nodes = np.empty(first[-1], np.int64)
    node = np.flatnonzero(~forest.is_split)
    place = first[node + 1] - 1
    while len(node):
        nodes[place] = node
        inside = above[node] >= 0
        node, place = above[node[inside]], place[inside] - 1
    return first, nodes


Floats = NDArray[np.float64]

_WEIGHT_BITS = 62  # bits of the sum of all weights, as integers


def leaf_distributions(
    model: Model, table: Table, y: Floats, weight: Floats | None = None, *, n_threads: int
) -> LeafDistributions:
    """Return the y of all training rows by leaf, whether or not a tree was grown on the row.

    Parameters
    ----------
    model : Model
    table : Table
        The training rows, with the columns of the model's schema.
    y : float64 array of shape (n_rows,)
        Finite.
    weight : float64 array of shape (n_rows,), optional
        Finite and not negative; None for equal weights. Rows of weight 0 are left out.
    n_threads : int

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.data.table import ingest
    >>> X, y = [[0], [1], [2]], np.array([5.0, 3.0, 9.0])
    >>> model = GradientBoostingRegressor(n_estimators=1, max_depth=1).fit(X, y).model_
    >>> in_leaves = leaf_distributions(model, ingest(X, model.schema), y, n_threads=1)
    >>> in_leaves.values, in_leaves.start, in_leaves.rank
    (array([3., 5., 9.]), array([0, 0, 2, 3]), array([0, 1, 2], dtype=int32))
    """
    _check_rows(table, y, "y")
    units = None
    if weight is not None:
        _check_rows(table, weight, "weight")
        units = _as_units(weight)
    values, inverse = np.unique(y, return_inverse=True)
    ascending = np.argsort(inverse, kind="stable")
    if units is not None:
        ascending = ascending[units[ascending] > 0]
        units = units[ascending]
    rank = inverse[ascending].astype(np.int32)
    forest, n_trees, size = model.forest, model.n_trees, len(ascending)
    n_nodes = np.diff(forest.tree_start)
    ranks = np.empty(n_trees * size, np.int32)
    upto = np.empty(0 if units is None else n_trees * size, np.int64)
    counts = []
    # Tree by tree: the leaves of all rows in all trees would take twice the memory of the result.
    for tree in range(n_trees):
        leaf = forest_leaves(forest.only(tree), table, n_threads=n_threads)[ascending, 0]
        by_leaf = _stable_order(leaf)
        count = np.bincount(leaf, minlength=int(n_nodes[tree]))
        own = slice(tree * size, (tree + 1) * size)
        ranks[own] = rank[by_leaf]
        if units is not None:
            upto[own] = _shares(units[by_leaf], count)
        counts.append(count)
    start = np.concatenate([[0], *counts]).cumsum()
    return LeafDistributions(
        tree_start=forest.tree_start, start=start, rank=ranks, upto=upto, values=values
    )


def predict_quantiles(
    distributions: LeafDistributions,
    leaves: Integers,
    quantiles: float | Sequence[float],
    *,
    n_threads: int,
) -> Floats:
    """Return quantiles of y for rows, given their leaves.

    The quantile q is the smallest y at which the shares of the training rows, averaged over the
    trees, reach q: always the y of a training row. Trees whose leaf holds no training row are left
    out; a row for which all trees are left out gets NaN.

    Parameters
    ----------
    distributions : LeafDistributions
    leaves : int32 array of shape (n_rows, n_trees)
        As `arboost.models.prediction.leaf_ids` returns them.
    quantiles : float or sequence of float
        Between 0 and 1.
    n_threads : int

    Returns
    -------
    float64 array of shape (n_rows, n_quantiles), or (n_rows,) for one float

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.data.table import ingest
    >>> X, y = [[0], [1], [2]], np.array([5.0, 3.0, 9.0])
    >>> model = GradientBoostingRegressor(n_estimators=1, max_depth=1).fit(X, y).model_
    >>> in_leaves = leaf_distributions(model, ingest(X, model.schema), y, n_threads=1)
    >>> predict_quantiles(in_leaves, np.array([[1], [2]]), [0.5, 0.9], n_threads=1)
    array([[3., 5.],
           [9., 9.]])
    """
    checked = _checked(quantiles)
    if leaves.ndim != 2 or leaves.shape[1] != distributions.n_trees:  # noqa: PLR2004
        raise ValueError(
            f"leaves has shape {leaves.shape}, but the distributions are those of "
            f"{distributions.n_trees} trees. Pass the leaves of all trees."
        )
    result = np.empty((len(leaves), len(checked)))
    core.leaf_quantiles(
        distributions=distributions,
        leaves=np.ascontiguousarray(leaves, np.int32),
        quantiles=checked,
        out=result,
        n_threads=n_threads,
    )
    return result if np.ndim(quantiles) else result[:, 0]


def table_quantiles(
    model: Model,
    table: Table,
    distributions: LeafDistributions,
    quantiles: float | Sequence[float],
    *,
    n_threads: int,
) -> Floats:
    """Return quantiles of y, as `predict_quantiles` does, without an array of all rows' leaves.

    Parameters
    ----------
    model : Model
    table : Table
        With the columns of the model's schema.
    distributions : LeafDistributions
        Distributions of the model's leaves.
    quantiles : float or sequence of float
        Between 0 and 1.
    n_threads : int

    Returns
    -------
    float64 array of shape (n_rows, n_quantiles), or (n_rows,) for one float

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.data.table import ingest
    >>> X, y = [[0], [1], [2]], np.array([5.0, 3.0, 9.0])
    >>> model = GradientBoostingRegressor(n_estimators=1, max_depth=1).fit(X, y).model_
    >>> table = ingest(X, model.schema)
    >>> in_leaves = leaf_distributions(model, table, y, n_threads=1)
    >>> table_quantiles(model, table, in_leaves, 0.5, n_threads=1)
    array([3., 3., 9.])
    """
    refuse_device(model, "predict_quantiles")
    checked = _checked(quantiles)
    result = np.empty((table.n_rows, len(checked)))
    core.traverse_quantiles(
        columns=table.columns,
        forest=model.forest,
        distributions=distributions,
        quantiles=checked,
        out=result,
        n_threads=n_threads,
    )
    return result if np.ndim(quantiles) else result[:, 0]


def distributions_of(model: Model) -> LeafDistributions:
    """Return the leaf distributions of a model; raise ValueError if it has none."""
    if model.distributions is None:
        raise ValueError(
            "predict_quantiles needs the values of y in the leaves, which this model does not "
            "have: only forest regressors that are fitted with quantiles=True keep them. Fit with "
            "quantiles=True."
        )
    return model.distributions


def _stable_order(codes: Integers) -> NDArray[np.intp]:
    """Return the indices that sort the codes, stably.

    NumPy has a radix sort for 16 bits, several times faster than one by comparisons.
    """
    low = codes.astype(np.uint16)
    order = np.argsort(low, kind="stable")
    high = codes >> 16
    while high.any():
        order = order[np.argsort(high[order].astype(np.uint16), kind="stable")]
        high = high >> 16
    return order


def _as_units(weight: Floats) -> Integers:
    """Return the weights times a power of 2, as integers whose sum still fits an int64.

    Integers and short binary fractions stay exact.
    """
    if not (np.isfinite(weight).all() and (weight >= 0).all() and (weight > 0).any()):
        raise ValueError(
            "weight has values that are negative or not finite, or all are 0. Pass weights of at "
            "least 0, one of them above 0."
        )
    _, exponent = np.frexp(weight.max())
    bits = _WEIGHT_BITS - int(exponent) - len(weight).bit_length()
    return np.rint(np.ldexp(weight, bits)).astype(np.int64)


def _shares(units: Integers, count: Integers) -> Integers:
    """Return the cumulative shares of each leaf's weight, for rows sorted by leaf."""
    total = np.concatenate([[0], np.cumsum(units)])
    end = np.cumsum(count)
    before, after = (np.repeat(total[ends], count) for ends in (end - count, end))
    shares: Floats = np.rint((total[1:] - before) / (after - before) * SHARE_UNITS)
    return shares.astype(np.int64)


def _checked(quantiles: float | Sequence[float]) -> Floats:
    try:
        checked = np.atleast_1d(np.asarray(quantiles, np.float64))
    except (TypeError, ValueError):
        checked = np.array([np.nan])
    if checked.ndim != 1 or not ((checked >= 0) & (checked <= 1)).all():
        raise ValueError(
            f"quantiles={quantiles!r} is not allowed: quantiles are numbers from 0 to 1. Pass one "
            "of them, or a list."
        )
    return checked


def _check_rows(table: Table, values: Floats, name: str) -> None:
    if values.shape != (table.n_rows,):
        raise ValueError(
            f"{name} has shape {values.shape}, but the table has {table.n_rows} rows. Pass one "
            "number for each row."
        )
