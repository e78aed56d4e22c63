"""Model + table in device memory -> predictions there, in the kind of array that came in.

    X (CuPy, PyTorch, cuDF, ...) --> DeviceColumns --> CudaForest --> raw scores --> link --> as X

The bytes are those of the processor. Tables of the host are uploaded by the core, a chunk at a
time; `table_scores` and `leaf_ids` do so for models that were moved to a device.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.cuda.arrays import CudaArray, as_kind_of
from arboost.data.feature_names import split_offset
from arboost.data.table import ingest
from arboost.errors import DeviceError
from arboost.model.model import Model
from arboost.model.outputs import (
    ALL_CLASS_LINKS,
    Probabilities,
    TargetPart,
    check_classifier,
    read_offset,
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
    "scores_of_columns",
    "table_of_array",
]

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


def table_of_array(model: Model, X: object) -> core.DeviceColumns:
    """Return a table in device memory by the schema of a model, which may be on any device."""
    device = None if model.device == "cpu" else model.device
    columns = ingest(X, model.schema, device=device).values
    assert isinstance(columns, core.DeviceColumns)
    return columns


def raw_scores_of_array(model: Model, X: object, offset: object = None) -> NDArray[np.float64]:
    """Return the raw scores of the rows of a table in device memory."""
    raw = _scores_of_array(model, X, offset)
    scores: NDArray[np.float64] = as_kind_of(raw, X)
    return scores


def predictions_of_array(model: Model, X: object, offset: object = None) -> NDArray[Any]:
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


def probabilities_of_array(model: Model, X: object, offset: object = None) -> Probabilities:
    """Return the class probabilities of these rows; a list of arrays for several targets."""
    check_classifier(model)
    raw = _scores_of_array(model, X, offset)
    shares: list[NDArray[np.float64]] = [
        as_kind_of(_linked(link, raw, first, n_outputs), X)
        for link, _, first, n_outputs in target_parts(model)
    ]
    return shares if model.targets else shares[0]


def leaves_of_array(model: Model, X: object) -> NDArray[np.int32]:
    """Return the leaf of each of these rows in each tree, int32 of shape (n_rows, n_trees)."""
    columns = table_of_array(model, X)
    leaves = CudaArray.empty((columns.n_rows, model.n_trees), np.int32, columns.device)
    cuda_forest(model, columns.device).leaves(columns, leaves.address)
    found: NDArray[np.int32] = as_kind_of(leaves, X)
    return found


def _scores_of_array(model: Model, X: object, offset: object) -> CudaArray:
    """Return the raw scores of a table in device memory, with their offset."""
    raw = scores_of_columns(model, table_of_array(model, split_offset(X, offset)[0]))
    added = read_offset(model, X, raw.shape[0], offset)
    return raw if added is None else CudaArray.of(raw.to_numpy() + added, raw.device)


def scores_of_columns(model: Model, columns: core.DeviceColumns) -> CudaArray:
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
