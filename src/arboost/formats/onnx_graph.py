"""Builder of an ONNX graph: the only module that imports the package onnx."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from arboost.errors import needs_packages

__all__ = ["FLOAT64", "INT32", "INT64", "STRING", "Graph"]

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
        self._onnx = _import_onnx()
        self._taken = {"", *reserved}
        self._numbers: dict[str, int] = {}
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, preferred: str, kind: int, width: int) -> str:
        """Return the name of a new input, shape (n_rows, width)."""
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
        """Return the name of a constant."""
        name = self._free("constant")
        self._constants.append(self.tensor(array, name))
        return name

    def op(self, kind: str, *inputs: str, n_outputs: int = 1, **attributes: Any) -> list[str]:
        """Add an operator; return the names of its results."""
        domain = _ML if kind in _OF_TREES else ""
        outputs = [self._free(kind) for _ in range(n_outputs)]
        node = self._onnx.NodeProto(op_type=kind, domain=domain, input=inputs, output=outputs)
        node.attribute.extend(self._attribute(key, value) for key, value in attributes.items())
        self._nodes.append(node)
        return outputs

    def one(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add an operator; return the name of its first result."""
        return self.op(kind, *inputs, **attributes)[0]

    def tensor(self, array: Any, name: str = "") -> Any:
        """Return an array as a tensor."""
        return self._onnx.numpy_helper.from_array(np.asarray(array), name)

    def finish(self, properties: Mapping[str, str]) -> Any:
        """Return the graph as a model with these properties, an ``onnx.ModelProto``."""
        helper = self._onnx.helper
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_ML, _ML_OPSET)]
        made = helper.make_model(
            helper.make_graph(self._nodes, "arboost", self._inputs, self._outputs, self._constants),
            opset_imports=opsets,
            ir_version=_IR_VERSION,
            producer_name="arboost",
        )
        helper.set_model_props(made, dict(properties))
        size = made.ByteSize()
        if size > _LARGEST_FILE:
            raise ValueError(
                f"the model would have {size} bytes as ONNX, but an ONNX file has at most "
                f"{_LARGEST_FILE}. Use save or to_c, or train fewer or smaller trees."
            )
        return made

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
        """Return the preferred name, with a number appended if it is taken."""
        name = preferred
        while name in self._taken:
            self._numbers[preferred] = self._numbers.get(preferred, 0) + 1
            name = f"{preferred}_{self._numbers[preferred]}"
        self._taken.add(name)
        return name


def _import_onnx() -> Any:
    with needs_packages("onnx", "to_onnx"):
        import onnx
    return onnx
