"""Model + table in device memory -> predictions there, in the kind of array that came in.

    X (CuPy, PyTorch, cuDF, ...) --> CudaTable --> CudaForest --> raw scores --> link --> as X

The bytes are those of the processor. Tables of the host are uploaded by the core, a chunk at a
time; `table_scores` and `leaf_ids` do so for models that were moved to a device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.cuda.arrays import CudaArray, as_kind_of, device_array, frame_names
from arboost.cuda.devices import device_number
from arboost.data import messages
from arboost.data.schema import Schema
from arboost.data.table import is_reordered
from arboost.errors import DeviceError, SchemaError
from arboost.model.model import Model
from arboost.model.outputs import (
    ALL_CLASS_LINKS,
    Probabilities,
    TargetPart,
    check_classifier,
    target_parts,
)

__all__ = [
    "combination",
    "cuda_forest",
    "leaves_of_array",
    "predictions_of_array",
    "probabilities_of_array",
    "raw_scores_of_array",
    "refuse_device",
    "table_of_array",
]

_DIMENSIONS = 2  # of a table
_TWO_COLUMNS = ("logistic", "logistic_of_double", "share_of_two")
_NUMBERS = set("biuf")  # kinds of labels that a device holds


def cuda_forest(model: Model, number: int) -> core.CudaForest:
    """Return the forest of a model on a device; it is uploaded once."""
    known = model.on_devices.get(number)
    if known is not None:
        return known
    schema = model.schema
    forest = core.CudaForest(model.forest, schema.n_features, model.n_outputs, number)
    for feature in schema.special:
        levels = schema.levels_of(feature)
        if levels is None or levels.kind == "string":
            continue
        numbers = np.arange(len(levels), dtype=np.float64)
        forest.set_levels(
            feature, levels.values, numbers if levels.numbers is None else levels.numbers
        )
    return model.on_devices.setdefault(number, forest)


def combination(model: Model) -> dict[str, Any]:
    """Return base scores, divisor and weights of the trees, as the core takes them."""
    return {
        "base": model.base_score,
        "mean_of": float(max(model.n_rounds, 1)) if model.combine == "mean" else 0.0,
        "weights": model.tree_weights,
    }


def refuse_device(model: Model, method: str) -> None:
    """Raise DeviceError where a model is on a device that a method does not run on."""
    if model.device != "cpu":
        raise DeviceError(
            f'{method} does not run on device="{model.device}". Use model.to("cpu").{method}.'
        )


def table_of_array(model: Model, X: Any) -> tuple[core.CudaForest, core.CudaTable, CudaArray]:
    """Return a table in device memory, with the forest of the model there."""
    schema, names = model.schema, frame_names(X)
    if names is not None and is_reordered(names, len(names), schema, "Model"):
        X = X[list(schema.names or ())]
    array = device_array(X)
    assert array is not None
    if array.ndim != _DIMENSIONS:
        raise ValueError(messages.dimensions_message(array))
    if names is None:
        is_reordered(None, array.shape[1], schema, "Model")  # raises for another number of columns
    _check_types(schema)
    if model.device != "cpu" and device_number(model.device) != array.device:
        raise DeviceError(
            f'X is on device="cuda:{array.device}", but the model on device="{model.device}". Use '
            f'model.to("cuda:{array.device}"), or copy X.'
        )
    forest = cuda_forest(model, array.device)
    array.wait()
    table = core.CudaTable(
        address=array.address,
        n_rows=array.shape[0],
        n_columns=array.shape[1],
        row_stride=array.strides[0],
        column_stride=array.strides[1],
        kind=array.dtype.kind,
        bytes=array.dtype.itemsize,
        missing=schema.missing,
    )
    return forest, table, array


def raw_scores_of_array(model: Model, X: object) -> NDArray[np.float64]:
    """Return the raw scores of the rows of a table in device memory."""
    scores: NDArray[np.float64] = as_kind_of(_raw(model, X), X)
    return scores


def predictions_of_array(model: Model, X: object) -> NDArray[Any]:
    """Return the predicted values or labels of these rows.

    Labels that are no numbers are an array of NumPy.
    """
    raw = _raw(model, X)
    if model.classes is None:
        values = raw if model.link == "identity" else _linked(model.link, raw, 0, model.n_outputs)
        found: NDArray[Any] = as_kind_of(values.ravel() if model.n_outputs == 1 else values, X)
        return found
    labels = _labels(target_parts(model), raw)
    if not isinstance(labels, CudaArray):
        return labels if model.targets else labels[:, 0]
    found = as_kind_of(labels if model.targets else labels.ravel(), X)
    return found


def probabilities_of_array(model: Model, X: object) -> Probabilities:
    """Return the class probabilities of these rows; a list of arrays for several targets."""
    check_classifier(model)
    raw = _raw(model, X)
    shares: list[NDArray[np.float64]] = [
        as_kind_of(_linked(link, raw, first, n_outputs), X)
        for link, _, first, n_outputs in target_parts(model)
    ]
    return shares if model.targets else shares[0]


def leaves_of_array(model: Model, X: object) -> NDArray[np.int32]:
    """Return the leaf of each of these rows in each tree, int32 of shape (n_rows, n_trees)."""
    forest, table, array = table_of_array(model, X)
    leaves = CudaArray.empty((array.shape[0], model.n_trees), np.int32, array.device)
    forest.leaves(table=table, out=leaves.address)
    found: NDArray[np.int32] = as_kind_of(leaves, X)
    return found


def _check_types(schema: Schema) -> None:
    """Raise SchemaError where the model has columns of strings or times."""
    for feature in schema.special:
        levels = schema.levels_of(feature)
        is_text = levels is not None and levels.kind == "string" and len(levels) > 0
        fitted = schema.unit_of(feature) or ("string" if is_text else "")
        if fitted:
            raise SchemaError(messages.other_type_message(schema.label(feature), fitted, "number"))


def _raw(model: Model, X: object) -> CudaArray:
    forest, table, array = table_of_array(model, X)
    raw = CudaArray.empty((array.shape[0], model.n_outputs), np.float64, array.device)
    forest.scores(table=table, **combination(model), out=raw.address)
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
