"""Ray Datasets: training data as blocks in the order of the rows, and lazy predictions."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import ray
from ray.data import Dataset

from arboost.data.feature_names import no_column_error
from arboost.data.files import DataPath, is_paths
from arboost.distributed import predict
from arboost.distributed.data import (
    PartitionedTable,
    TableInput,
    require_column_names,
    resolve_files,
    try_find_files,
)
from arboost.errors import InputTypeError

_FETCH_LIMIT_S = 300.0  # for Ray to bring the model
_COLUMN_NAMES = {"predict": "prediction", "predict_proba": "probability"}

# ---- training data ----


def table_input(timeout: float, data: Any, target: Any, weight: Any) -> TableInput:
    """Blocks or files of a table, its target and its weights.

    Parameters
    ----------
    timeout : float
        Seconds that a node may take to find files that this machine does not see.
    data : Dataset, or paths
    target, weight : Any

    Raises
    ------
    TypeError
        The data are neither a Ray Dataset nor paths, or the columns are not names.
    ValueError
        A column does not exist, or there are no rows.
    """
    if is_paths(data):
        require_column_names("paths", target=target, weight=weight)
        return TableInput(PartitionedTable.of_files(_files(timeout, data)), target, weight)
    if not isinstance(data, Dataset):
        raise InputTypeError(
            f"data is a {type(data).__name__}, but must be a Ray Dataset or paths of files. A "
            "table in memory becomes a Ray Dataset by ray.data.from_pandas or from_arrow, or is "
            "trained on without a cluster by fit of the estimator."
        )
    require_column_names("a Ray Dataset", target=target, weight=weight)
    options = data.context.execution_options
    before, options.preserve_order = options.preserve_order, True
    try:
        computed = data.materialize()
    finally:
        options.preserve_order = before
    columns = computed.columns() or []
    for argument, column in (("target", target), ("weight", weight)):
        if column is not None and columns and column not in columns:
            raise no_column_error(column, columns, argument)
    parts, sizes = [], []
    for bundle in computed.iter_internal_ref_bundles():
        for reference, metadata in zip(bundle.block_refs, bundle.metadata, strict=True):
            # Blocks without rows may be without columns, too.
            if metadata.num_rows != 0:
                parts.append(reference)
                sizes.append(metadata.size_bytes or 1)
    if not parts:
        raise ValueError("data is a Ray Dataset without rows, but training needs some.")
    return TableInput(PartitionedTable(tuple(parts), tuple(sizes)), target, weight, computed)


def _files(timeout: float, data: Any) -> list[str]:
    def ask_worker(paths: list[Any]) -> list[DataPath] | Exception:
        files: list[DataPath] | Exception = ray.get(
            ray.remote(try_find_files).remote(paths), timeout=timeout
        )
        return files

    return resolve_files(data, ask_worker, "Pass the Ray Dataset of ray.data.read_parquet.")


# ---- predictions ----


@dataclass(frozen=True)
class ModelReference:
    """Reference of a model in the object store; equal where the digests of the bytes are equal."""

    digest: str
    reference: Any = field(compare=False)


@lru_cache(maxsize=predict.MAX_CACHED_MODELS)
def _fetch_model(sent: ModelReference) -> predict.PackedModel:
    """Bytes of a model; a process fetches them once."""
    packed: predict.PackedModel = ray.get(sent.reference, timeout=_FETCH_LIMIT_S)
    return packed


def with_results(model: Any, data: Any, method: str) -> Dataset:
    """Dataset with the results of a method as further columns; Ray computes them later."""
    if not isinstance(data, Dataset):
        raise InputTypeError(
            f"data is a {type(data).__name__}, but must be a Ray Dataset. Tables in memory go to "
            f"{method} of the model itself."
        )
    packed = predict.pack_model(model)
    options = {"sent": ModelReference(packed.digest, ray.put(packed)), "method": method}
    return data.map_batches(
        _append_results,
        batch_size=None,
        batch_format="pyarrow",
        zero_copy_batch=True,
        fn_kwargs=options,
    )


def _append_results(table: Any, sent: ModelReference, method: str) -> Any:
    """Table of PyArrow with the results as further columns."""
    import pyarrow

    packed = _fetch_model(sent)
    model = predict.load_packed(packed)
    features = _select_features(model, table)
    advice = "Use Dataset.map_batches with a function of your own."
    results = predict.compute_results(features, packed, method, advice)
    name = _COLUMN_NAMES[method]
    if results.ndim == 1:
        return table.append_column(name, pyarrow.array(results))
    for i, column in enumerate(predict.result_column_names(model, method, results.shape[1])):
        table = table.append_column(f"{name}_{column}", pyarrow.array(results[:, i]))
    return table


def _select_features(model: Any, table: Any) -> Any:
    """Columns that the model knows, without the other columns of the data."""
    schema = getattr(model, "schema", None)
    names = getattr(model, "feature_names_in_", None) if schema is None else schema.columns
    if names is None or not set(names) <= set(table.column_names):
        return table
    schema = getattr(getattr(model, "model_", model), "schema", None)
    start = getattr(schema, "offset", None) or ()  # `predict` says which of them is missing
    return table.select([*names, *(name for name in start if name in table.column_names)])
