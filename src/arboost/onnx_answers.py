"""Raw scores in ONNX -> outputs: labels and probabilities, or values."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from arboost.model.links import LARGEST_EXPONENT
from arboost.model.model import Model
from arboost.model.outputs import ALL_CLASS_LINKS, Labels, TargetPart, target_parts
from arboost.onnx_graph import FLOAT64, INT64, STRING, Graph

__all__ = ["output_names", "write_answers"]

_KINDS = {"O": STRING, "i": INT64, "u": 13, "f": FLOAT64, "b": 9}  # types of labels


def output_names(model: Model) -> list[str]:
    """Return the names of all outputs, which those of scikit-learn's converter are."""
    if model.kind != "classifier":
        return ["variable"]
    ends = [f"_{target}" for target in range(len(model.targets))] or [""]
    return [kind + end for end in ends for kind in ("label", "probabilities")]


def write_answers(graph: Graph, model: Model, raw: str) -> None:
    """Give out what the raw scores mean."""
    names = output_names(model)
    if model.kind != "classifier":
        graph.output(names[0], _LINKS[model.link](graph, raw), FLOAT64, model.n_outputs)
        return
    for target, part in enumerate(target_parts(model)):
        scores = _outputs_of(graph, raw, part, model)
        labels = _labels(part.labels)
        label = graph.one("Gather", graph.constant(labels), _place(graph, part, scores), axis=0)
        graph.output(names[2 * target], label, _KINDS[labels.dtype.kind])
        chances = _LINKS[part.link](graph, scores)
        graph.output(names[2 * target + 1], chances, FLOAT64, len(labels))


def _outputs_of(graph: Graph, raw: str, part: TargetPart, model: Model) -> str:
    """Return the raw scores of one target."""
    if part.n_outputs == model.n_outputs:
        return raw
    columns = np.arange(part.first, part.first + part.n_outputs)
    return graph.one("Gather", raw, graph.constant(columns), axis=1)


def _place(graph: Graph, part: TargetPart, raw: str) -> str:
    """Return the place of the most likely label."""
    if part.link in ALL_CLASS_LINKS:
        return graph.one("ArgMax", raw, axis=1, keepdims=0, select_last_index=0)
    is_second = graph.one("Greater", raw, graph.constant(0.0))
    return graph.one("Squeeze", graph.one("Cast", is_second, to=INT64), graph.constant([1]))


def _labels(labels: Labels) -> Labels:
    """Return labels of a type that a tensor may have."""
    if labels.dtype.kind in "OU":
        return np.array([str(one).encode("utf-8", "surrogatepass") for one in labels], object)
    if labels.dtype.kind == "u" and int(labels.max()) > np.iinfo(np.int64).max:
        return labels.astype(np.uint64)
    return labels.astype({"f": np.float64, "b": np.bool_}.get(labels.dtype.kind, np.int64))


# The links of `arboost.model.links`, step by step.


def _identity(graph: Graph, raw: str) -> str:
    return graph.one("Identity", raw)


def _exp(graph: Graph, raw: str) -> str:
    return graph.one("Exp", graph.one("Min", raw, graph.constant(LARGEST_EXPONENT)))


def _ordered(graph: Graph, raw: str) -> str:
    width = graph.one("Shape", raw, start=1, end=2)
    return graph.op("TopK", raw, width, axis=1, largest=0, sorted=1, n_outputs=2)[0]


def _logistic(graph: Graph, raw: str) -> str:
    one = graph.constant(1.0)
    small = graph.one("Exp", graph.one("Neg", graph.one("Abs", raw)))
    whole = graph.one("Add", small, one)
    likely, unlikely = graph.one("Div", one, whole), graph.one("Div", small, whole)
    is_second = graph.one("Greater", raw, graph.constant(0.0))
    first = graph.one("Where", is_second, unlikely, likely)
    second = graph.one("Where", is_second, likely, unlikely)
    return graph.one("Concat", first, second, axis=1)


def _logistic_of_double(graph: Graph, raw: str) -> str:
    end = LARGEST_EXPONENT
    return _logistic(graph, graph.one("Mul", _clip(graph, raw, -end, end), graph.constant(2.0)))


def _softmax(graph: Graph, raw: str) -> str:
    axis = graph.constant([1])
    highest = graph.one("ReduceMax", raw, axis, keepdims=1)
    powers = graph.one("Exp", graph.one("Sub", raw, highest))
    return graph.one("Div", powers, graph.one("ReduceSum", powers, axis, keepdims=1))


def _share_of_two(graph: Graph, raw: str) -> str:
    half = graph.constant(0.5)
    part = graph.one("Mul", _clip(graph, raw, -1.0, 1.0), half)
    return graph.one("Concat", graph.one("Sub", half, part), graph.one("Add", half, part), axis=1)


def _shares(graph: Graph, raw: str) -> str:
    return _clip(graph, raw, 0.0, 1.0)


def _clip(graph: Graph, raw: str, low: float, high: float) -> str:
    return graph.one("Clip", raw, graph.constant(low), graph.constant(high))


_LINKS: Mapping[str, Callable[[Graph, str], str]] = {
    "identity": _identity,
    "exp": _exp,
    "ordered": _ordered,
    "logistic": _logistic,
    "logistic_of_double": _logistic_of_double,
    "softmax": _softmax,
    "share_of_two": _share_of_two,
    "shares": _shares,
}
