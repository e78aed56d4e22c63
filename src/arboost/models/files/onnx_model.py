"""Model -> ONNX: the trees as one TreeEnsemble in double precision, and operators around it.

    inputs ── levels to codes, `missing` to NaN ──▶ (n_rows, n_features)
           ── TreeEnsemble, combination ──▶ raw scores
           ── link ──▶ outputs: values, or labels and class probabilities

TreeEnsemble (version 5 of ai.onnx.ml) has a threshold or a level set in a split, a direction for
NaN, and one value in a leaf. A leaf of several values holds an index in a table of leaves instead;
the rows of the table are then gathered and added, a few trees at a time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.data.schema import Schema
from arboost.errors import needs_packages
from arboost.losses.links import ALL_CLASS_LINKS, LARGEST_EXPONENT, Labels, TargetPart, target_parts
from arboost.models.metadata import metadata_text
from arboost.models.model import Model
from arboost.trees.forest import N_CODES, Floats, Forest, codes_in_sets, depths, distinct_rows

# ONNX's numbers of element types.
STRING, INT32, INT64, FLOAT64 = 8, 6, 7, 11

_OPSET, _ML_OPSET, _IR_VERSION = 21, 5, 10  # of onnx 1.16, the first with TreeEnsemble
_ML = "ai.onnx.ml"
_OF_TREES = ("LabelEncoder", "TreeEnsemble")
_LARGEST_FILE = 2**31 - 1  # bytes of a protobuf message


class Graph:
    """An ONNX graph that grows operator by operator; values are referred to by name."""

    def __init__(self, reserved: Sequence[str]) -> None:
        """Start an empty graph; `reserved` are the names of its outputs."""
        with needs_packages("onnx", "to_onnx"):
            import onnx
        self._onnx: Any = onnx
        self._taken = {"", *reserved}
        self._numbers: dict[str, int] = {}
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, preferred: str, kind: int, width: int) -> str:
        """Name of a new input, shape (n_rows, width)."""
        # Python strings may hold lone surrogates, ONNX names may not.
        name = self._free(preferred.encode("utf-8", "backslashreplace").decode())
        self._inputs.append(self._value(name, kind, ("n_rows", width)))
        return name

    def output(self, name: str, value: str, kind: int, width: int | None = None) -> None:
        """Add an output of a value, shape (n_rows, width), or (n_rows,) without a width."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        shape = ("n_rows",) if width is None else ("n_rows", width)
        self._outputs.append(self._value(name, kind, shape))

    def constant(self, array: Any) -> str:
        """Name of a constant."""
        name = self._free("constant")
        self._constants.append(self.tensor(array, name))
        return name

    def ops(self, kind: str, *inputs: str, n_outputs: int = 1, **attributes: Any) -> list[str]:
        """Add an operator; return the names of its results."""
        domain = _ML if kind in _OF_TREES else ""
        outputs = [self._free(kind) for _ in range(n_outputs)]
        node = self._onnx.NodeProto(op_type=kind, domain=domain, input=inputs, output=outputs)
        node.attribute.extend(self._attribute(key, value) for key, value in attributes.items())
        self._nodes.append(node)
        return outputs

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator; return the name of its first result."""
        return self.ops(kind, *inputs, **attributes)[0]

    def tensor(self, array: Any, name: str = "") -> Any:
        """Tensor of an array."""
        return self._onnx.numpy_helper.from_array(np.asarray(array), name)

    def finish(self, properties: Mapping[str, str]) -> Any:
        """Model of the graph with these properties, an ``onnx.ModelProto``."""
        helper = self._onnx.helper
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_ML, _ML_OPSET)]
        proto = helper.make_model(
            helper.make_graph(self._nodes, "arboost", self._inputs, self._outputs, self._constants),
            opset_imports=opsets,
            ir_version=_IR_VERSION,
            producer_name="arboost",
        )
        helper.set_model_props(proto, dict(properties))
        size = proto.ByteSize()
        if size > _LARGEST_FILE:
            raise ValueError(
                f"the model would have {size} bytes as ONNX, but an ONNX file has at most "
                f"{_LARGEST_FILE}. Use save or to_c, or train fewer or smaller trees."
            )
        return proto

    def _attribute(self, name: str, value: Any) -> Any:
        kinds = self._onnx.AttributeProto
        if isinstance(value, int):
            return kinds(name=name, type=kinds.INT, i=value)
        if isinstance(value, np.ndarray) and value.dtype.kind == "i":
            return kinds(name=name, type=kinds.INTS, ints=value.tolist())
        return kinds(name=name, type=kinds.TENSOR, t=self.tensor(value))

    def _value(self, name: str, kind: int, shape: Sequence[Any]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, kind, list(shape))

    def _free(self, preferred: str) -> str:
        """Preferred name, with a number appended if it is taken."""
        name = preferred
        while name in self._taken:
            self._numbers[preferred] = self._numbers.get(preferred, 0) + 1
            name = f"{preferred}_{self._numbers[preferred]}"
        self._taken.add(name)
        return name


_THRESHOLD, _SET = 0, 6  # modes of a split: at most the threshold, and in the set
_SUM = 1
_DEEPEST = 1000  # onnxruntime recurses from level to level; a stack of 1 MB holds that many
_GATHERED = 128  # leaf values that are gathered for a row at a time
_LABEL_TYPES = {"O": STRING, "i": INT64, "u": 13, "f": FLOAT64, "b": 9}  # by kind of dtype


def onnx_model(model: Model) -> Any:
    """The model as an ``onnx.ModelProto``."""
    if depths(model.forest).max(initial=0) > _DEEPEST:
        raise ValueError(
            f"a tree has more than {_DEEPEST} splits one below the other, and onnxruntime crashes "
            "on very deep trees. Use to_c, or train with a max_depth."
        )
    graph = Graph(_output_names(model))
    X = _features(graph, model.schema)
    offset = None
    if model.schema.offset is not None:  # before any other value, so that it gets its name
        offset = graph.input("offset", FLOAT64, model.n_outputs)
    raw = _raw_scores(graph, model, X)
    _write_outputs(graph, model, raw if offset is None else graph.op("Add", raw, offset))
    names = model.schema.names
    properties = {} if names is None else {"feature_names": json.dumps(names)}
    if model.metadata:
        properties["metadata"] = metadata_text(model.metadata)
    return graph.finish(properties)


# ---- inputs -> features ----


def _features(graph: Graph, schema: Schema) -> str:
    """Features of the model: level codes, and NaN for missing values."""
    if schema.has_levels:
        names = schema.names or [f"x{feature}" for feature in range(schema.n_features)]
        is_text = [levels is not None and levels.kind == "string" for levels in schema.levels]
        inputs = [
            graph.input(name, STRING if text else FLOAT64, 1)
            for name, text in zip(names, is_text, strict=True)
        ]  # before any other value, so that inputs get these names
        columns = [_column(graph, schema, i, name) for i, name in enumerate(inputs)]
        X = graph.op("Concat", *columns, axis=1)
    else:
        X = graph.input("X", FLOAT64, schema.n_features)
    if math.isnan(schema.missing):
        return X
    missing = np.full((1, schema.n_features), schema.missing)
    missing[0, list(schema.special)] = np.nan  # equal to no value
    is_missing = graph.op("Equal", X, graph.constant(missing))
    return graph.op("Where", is_missing, graph.constant(np.full((1, 1), np.nan)), X)


def _column(graph: Graph, schema: Schema, feature: int, column: str) -> str:
    """Numeric column unchanged, a categorical one as level codes or target encoding."""
    levels = schema.levels_of(feature)
    if levels is None:
        return column
    is_text = levels.kind == "string"
    keys = np.array(levels.texts(), object) if is_text else levels.values
    values = levels.numbers
    if values is None:
        codes = np.arange(len(levels))
        values = np.where(codes < N_CODES, codes, np.nan)
    if not is_text:
        values = np.where(keys == schema.missing, np.nan, values)
    if not len(levels):  # a map needs a key
        keys, values = np.array([b""], object) if is_text else np.zeros(1), np.array([np.nan])
    return graph.op(
        "LabelEncoder",
        column,
        keys_tensor=keys,
        values_tensor=values,
        default_tensor=np.array([np.nan]),
    )


# ---- features -> raw scores ----


def _raw_scores(graph: Graph, model: Model, X: str) -> str:
    base = graph.constant(model.base_score[None, :])
    if not model.n_trees:
        n_rows = graph.op("Shape", X, start=0, end=1)
        width = graph.constant(np.array([model.n_outputs]))
        return graph.op("Expand", base, graph.op("Concat", n_rows, width, axis=0))
    if model.combine == "median":
        total = _median(graph, model, X)
    elif model.forest.width > 1:
        total = _sum_of_vectors(graph, model, X)
    else:
        forest = model.forest
        total = _trees(graph, model, X, forest.output, forest.value[:, 0], model.n_outputs)
    if model.combine == "mean":
        total = graph.op("Div", total, graph.constant(float(model.n_rounds)))
    return graph.op("Add", total, base)


def _trees(
    graph: Graph,
    model: Model,
    X: str,
    target: NDArray[np.int32],
    value: Floats,
    n_targets: int,
) -> str:
    """Sums of leaf values by the target of each tree, shape (n_rows, n_targets)."""
    forest = model.forest
    size, split = np.diff(forest.tree_start), forest.is_split
    # A tree of one leaf needs a node, with that leaf on both sides.
    inner = split.copy()
    inner[forest.tree_start[:-1]] = True
    node = np.flatnonzero(inner)
    position = np.where(split, np.cumsum(inner), np.cumsum(~split)) - 1
    is_split = split[node]
    first = forest.root[node]
    left = np.where(is_split, first + forest.left[node], node)
    right = np.where(is_split, left + 1, node)
    sets = _members(forest)
    set_of = forest.level_set[node]
    by_set = np.isin(set_of, list(sets))
    # An empty set becomes a threshold of minus infinity, which no code is at most.
    threshold = np.where(set_of >= 0, -np.inf, forest.threshold[node])
    attributes: dict[str, Any] = {}
    if by_set.any():
        attributes["membership_values"] = np.concatenate(
            [sets[number] for number in set_of[by_set]]
        )
    return graph.op(
        "TreeEnsemble",
        X,
        n_targets=n_targets,
        aggregate_function=_SUM,
        post_transform=0,
        tree_roots=np.cumsum(inner)[forest.tree_start[:-1]] - 1,
        nodes_featureids=np.where(is_split, forest.feature[node], 0),
        nodes_modes=np.where(by_set, _SET, _THRESHOLD).astype(np.uint8),
        nodes_splits=np.where(is_split & ~by_set, threshold, 0.0),
        nodes_truenodeids=position[left],
        nodes_trueleafs=(~split[left]).astype(np.int64),
        nodes_falsenodeids=position[right],
        nodes_falseleafs=(~split[right]).astype(np.int64),
        nodes_missing_value_tracks_true=forest.default_left[node].astype(np.int64),
        leaf_targetids=np.repeat(target, size)[~split],
        leaf_weights=value[~split],
        **attributes,
    )


def _members(forest: Forest) -> dict[int, Floats]:
    """Level codes of each nonempty set, ended by NaN."""
    is_member = codes_in_sets(forest.level_sets)[:, :N_CODES]
    return {
        number: np.append(np.flatnonzero(row), np.nan)
        for number, row in enumerate(is_member)
        if row.any()
    }


def _by_tree(graph: Graph, model: Model, X: str, value: Floats) -> str:
    """Value of the leaf in each tree, shape (n_rows, n_trees)."""
    return _trees(graph, model, X, np.arange(model.n_trees, dtype=np.int32), value, model.n_trees)


def _sum_of_vectors(graph: Graph, model: Model, X: str) -> str:
    """Sums of vector leaves, shape (n_rows, n_outputs)."""
    forest = model.forest
    is_leaf = ~forest.is_split
    leaves, which = distinct_rows(forest.value[is_leaf])
    index = np.zeros(forest.n_nodes)
    index[is_leaf] = which
    table = graph.constant(leaves)
    rows = graph.op("Cast", _by_tree(graph, model, X, index), to=INT64)
    step = max(_GATHERED // forest.width, 1)
    sizes = np.minimum(step, model.n_trees - np.arange(0, model.n_trees, step))
    parts = graph.ops("Split", rows, graph.constant(sizes), axis=1, n_outputs=len(sizes))
    total = ""
    for part in parts:
        part_sum = graph.op(
            "ReduceSum", graph.op("Gather", table, part, axis=0), graph.constant([1]), keepdims=0
        )
        total = graph.op("Add", total, part_sum) if total else part_sum
    return total


def _median(graph: Graph, model: Model, X: str) -> str:
    """Weighted median of the trees: the first value that reaches half the weight."""
    by_tree = _by_tree(graph, model, X, model.forest.value[:, 0])
    n_trees = graph.constant(np.array([model.n_trees]))
    values, order = graph.ops("TopK", by_tree, n_trees, axis=1, largest=0, sorted=1, n_outputs=2)
    weights = graph.op("Gather", graph.constant(model.tree_weights), order, axis=0)
    upto = graph.op("CumSum", weights, graph.constant(np.array(1)))
    ends = graph.constant(np.array([model.n_trees - 1]))
    half = graph.op("Mul", graph.op("Gather", upto, ends, axis=1), graph.constant(0.5))
    reached = graph.op("Cast", graph.op("GreaterOrEqual", upto, half), to=INT32)
    first = graph.op("ArgMax", reached, axis=1, keepdims=1, select_last_index=0)
    return graph.op("GatherElements", values, first, axis=1)


# ---- raw scores -> outputs ----


def _output_names(model: Model) -> list[str]:
    """Names of all outputs, those of scikit-learn's converter."""
    if model.kind != "classifier":
        return ["variable"]
    ends = [f"_{target}" for target in range(len(model.targets))] or [""]
    return [kind + end for end in ends for kind in ("label", "probabilities")]


def _write_outputs(graph: Graph, model: Model, raw: str) -> None:
    """Add the outputs of raw scores: values, or labels and class probabilities."""
    names = _output_names(model)
    if model.kind != "classifier":
        graph.output(names[0], _LINKS[model.link](graph, raw), FLOAT64, model.n_outputs)
        return
    for target, part in enumerate(target_parts(model)):
        scores = _scores_of(graph, raw, part, model)
        labels = _labels(part.labels)
        label = graph.op("Gather", graph.constant(labels), _likeliest(graph, part, scores), axis=0)
        graph.output(names[2 * target], label, _LABEL_TYPES[labels.dtype.kind])
        probabilities = _LINKS[part.link](graph, scores)
        graph.output(names[2 * target + 1], probabilities, FLOAT64, len(labels))


def _scores_of(graph: Graph, raw: str, part: TargetPart, model: Model) -> str:
    """Raw scores of one target."""
    if part.n_outputs == model.n_outputs:
        return raw
    columns = np.arange(part.first, part.first + part.n_outputs)
    return graph.op("Gather", raw, graph.constant(columns), axis=1)


def _likeliest(graph: Graph, part: TargetPart, raw: str) -> str:
    """Index of the most likely label."""
    if part.link in ALL_CLASS_LINKS:
        return graph.op("ArgMax", raw, axis=1, keepdims=0, select_last_index=0)
    is_second = graph.op("Greater", raw, graph.constant(0.0))
    return graph.op("Squeeze", graph.op("Cast", is_second, to=INT64), graph.constant([1]))


def _labels(labels: Labels) -> Labels:
    """Labels in a dtype that a tensor supports."""
    if labels.dtype.kind in "OU":
        return np.array([str(label).encode("utf-8", "surrogatepass") for label in labels], object)
    if labels.dtype.kind == "u" and int(labels.max()) > np.iinfo(np.int64).max:
        return labels.astype(np.uint64)
    return labels.astype({"f": np.float64, "b": np.bool_}.get(labels.dtype.kind, np.int64))


# ---- the links of `arboost.losses.links` as operators ----


def _exp(graph: Graph, raw: str) -> str:
    return graph.op("Exp", graph.op("Min", raw, graph.constant(LARGEST_EXPONENT)))


def _ordered(graph: Graph, raw: str) -> str:
    width = graph.op("Shape", raw, start=1, end=2)
    return graph.ops("TopK", raw, width, axis=1, largest=0, sorted=1, n_outputs=2)[0]


def _logistic(graph: Graph, raw: str) -> str:
    one = graph.constant(1.0)
    small = graph.op("Exp", graph.op("Neg", graph.op("Abs", raw)))
    whole = graph.op("Add", small, one)
    likely, unlikely = graph.op("Div", one, whole), graph.op("Div", small, whole)
    is_second = graph.op("Greater", raw, graph.constant(0.0))
    first = graph.op("Where", is_second, unlikely, likely)
    second = graph.op("Where", is_second, likely, unlikely)
    return graph.op("Concat", first, second, axis=1)


def _logistic_of_double(graph: Graph, raw: str) -> str:
    end = LARGEST_EXPONENT
    return _logistic(graph, graph.op("Mul", _clip(graph, raw, -end, end), graph.constant(2.0)))


def _softmax(graph: Graph, raw: str) -> str:
    axis = graph.constant([1])
    highest = graph.op("ReduceMax", raw, axis, keepdims=1)
    powers = graph.op("Exp", graph.op("Sub", raw, highest))
    return graph.op("Div", powers, graph.op("ReduceSum", powers, axis, keepdims=1))


def _share_of_two(graph: Graph, raw: str) -> str:
    half = graph.constant(0.5)
    part = graph.op("Mul", _clip(graph, raw, -1.0, 1.0), half)
    return graph.op("Concat", graph.op("Sub", half, part), graph.op("Add", half, part), axis=1)


def _clip(graph: Graph, raw: str, low: float, high: float) -> str:
    return graph.op("Clip", raw, graph.constant(low), graph.constant(high))


_LINKS: Mapping[str, Callable[[Graph, str], str]] = {
    "identity": lambda graph, raw: graph.op("Identity", raw),
    "exp": _exp,
    "ordered": _ordered,
    "logistic": _logistic,
    "logistic_of_double": _logistic_of_double,
    "softmax": _softmax,
    "share_of_two": _share_of_two,
    "shares": lambda graph, raw: _clip(graph, raw, 0.0, 1.0),
}
