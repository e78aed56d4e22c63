"""Collections of Dask: training data as parts in the order of the rows, and lazy predictions.

A part is a delayed value or a future of a table or of a tuple (X, y) or (X, y, weight), or the path
of a file that a worker reads.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import dask
import numpy as np
from dask.delayed import Delayed
from distributed import Future
from numpy.typing import NDArray

from arboost.data.feature_names import no_column_error
from arboost.data.files import DataPath, is_paths
from arboost.distributed import predict
from arboost.distributed.data import TableInput, require_column_names, resolve_files, try_find_files
from arboost.errors import InputTypeError

# ---- training data ----


def table_input(client: Any, data: Any, target: Any, weight: Any) -> TableInput:
    """Parts of a table, its target and its weights.

    Raises
    ------
    TypeError
        The data are neither a collection of Dask, nor a list of its values, nor paths.
    ValueError
        A column does not exist, or collections have different partitions.
    """
    if is_paths(data):
        require_column_names("paths", target=target, weight=weight)
        return TableInput(_files(client, data), target, weight)
    if is_frame(data):
        return _frame_input(data, target, weight)
    if is_array(data):
        return _joined_input(data, _aligned_columns(data, target=target, weight=weight))
    if _is_list_of_parts(data):
        if all(column is None or isinstance(column, str) for column in (target, weight)):
            return TableInput(list(data), target, weight)
        return _joined_input(data, _aligned_columns(data, target=target, weight=weight))
    raise InputTypeError(
        f"data is a {type(data).__name__}, but must be a DataFrame or array of Dask, a list of its "
        "delayed values or futures, or paths of files. A table in memory becomes a DataFrame of "
        "Dask by dask.dataframe.from_pandas, or is trained on without a cluster by fit of the "
        "estimator."
    )


def is_frame(data: object) -> bool:
    """Whether data is a DataFrame of Dask."""
    return _is_of(data, "dask.dataframe", "DataFrame")


def is_array(data: object) -> bool:
    """Whether data is an array of Dask."""
    return _is_of(data, "dask.array", "Array")


def _is_column(data: object) -> bool:
    """Whether data is a Series or DataFrame of Dask."""
    return is_frame(data) or _is_of(data, "dask.dataframe", "Series")


def _is_of(data: object, module: str, kind: str) -> bool:
    """Whether data is of a class of a module, which nobody else has to import."""
    loaded = sys.modules.get(module)
    return loaded is not None and isinstance(data, getattr(loaded, kind))


def _is_list_of_parts(data: object) -> bool:
    return (
        isinstance(data, list | tuple)
        and bool(data)
        and all(isinstance(part, Delayed | Future) for part in data)
    )


def _frame_input(data: Any, target: Any, weight: Any) -> TableInput:
    for argument, column in (("target", target), ("weight", weight)):
        if _is_name(column) and column not in data.columns:
            raise no_column_error(column, data.columns, argument)
    if target is None:
        raise InputTypeError(
            "target=None, but a DataFrame of Dask needs one. Pass the name of the column to "
            "predict, or a Series or array of Dask with the same partitions."
        )
    if all(column is None or _is_name(column) for column in (target, weight)):
        return TableInput(data.to_delayed(), target, weight)
    names = [column for column in (target, weight) if column is not None and _is_name(column)]
    columns = _aligned_columns(
        data,
        target=data[target] if _is_name(target) else target,
        weight=data[weight] if weight is not None and _is_name(weight) else weight,
    )
    features = data.drop(columns=names) if names else data
    if all(_is_column(column) for column in columns):
        # One expression, so that Dask reads what X and y share only once.
        from dask.dataframe import map_partitions

        pairs = map_partitions(
            _as_tuple,
            features,
            *columns,
            align_dataframes=False,
            enforce_metadata=False,
            meta=features._meta,
        )
        return TableInput(pairs.to_delayed(), None, None)
    return _joined_input(features, columns)


def _is_name(column: object) -> bool:
    return isinstance(column, str | int)


def _aligned_columns(data: Any, **columns: Any) -> list[Any]:
    """Target and weights that are there, each with the partitions of the data."""
    if columns["target"] is None:
        if columns["weight"] is not None:
            raise InputTypeError("weight is given, but no target. Pass both.")
        if is_array(data):
            raise InputTypeError(
                "target=None, but an array of Dask needs one. Pass an array of Dask."
            )
        return []
    columns = {name: column for name, column in columns.items() if column is not None}
    n_parts = _n_parts(data)
    for name, column in columns.items():
        if not (_is_column(column) or is_array(column) or _is_list_of_parts(column)):
            raise InputTypeError(
                f"{name} is a {type(column).__name__}, but must be of the same kind as the data: a "
                "Series or array of Dask, or a list of its delayed values or futures; or the name "
                "of a column of a table."
            )
        if _n_parts(column) != n_parts:
            raise ValueError(
                f"data has {n_parts} partitions, but {name} has {_n_parts(column)}. Both must have "
                "the same rows in each partition: derive both from one collection, or use "
                "repartition or rechunk."
            )
        if (
            is_array(data)
            and is_array(column)
            and _lengths_differ(data.chunks[0], column.chunks[0])
        ):
            raise ValueError(
                f"data has chunks of {data.chunks[0]} rows, but {name} of {column.chunks[0]}. Both "
                f"must have the same rows in each chunk: use {name}.rechunk."
            )
    return list(columns.values())


def _n_parts(data: Any) -> int:
    if is_array(data):
        return len(data.chunks[0])
    return len(data) if isinstance(data, list | tuple) else int(data.npartitions)


def _lengths_differ(rows: Sequence[float], others: Sequence[float]) -> bool:
    """Whether known lengths of chunks differ."""
    return any(
        a != b and not (math.isnan(a) or math.isnan(b)) for a, b in zip(rows, others, strict=True)
    )


def _blocks(data: Any) -> list[Any]:
    """Delayed values of the rows of a collection, all columns of a row in one of them."""
    if not is_array(data):
        return list(data if isinstance(data, list | tuple) else data.to_delayed())
    blocks = data.to_delayed()
    if blocks.ndim == 1:
        return list(blocks)
    blocks = blocks.reshape(len(blocks), -1)
    if blocks.shape[1] == 1:
        return list(blocks[:, 0])
    stack = dask.delayed(_stacked_blocks, pure=True)
    return [stack(list(row)) for row in blocks]


def _joined_input(data: Any, columns: Sequence[Any]) -> TableInput:
    """Parts of data and columns as delayed tuples; parts of the data alone without columns."""
    parts = _blocks(data)
    if columns:
        join = dask.delayed(_as_tuple, pure=True)
        parts = [join(*members) for members in zip(parts, *map(_blocks, columns), strict=True)]
    return TableInput(parts, None, None)


def _as_tuple(*parts: Any) -> tuple[Any, ...]:
    return parts


def _stacked_blocks(blocks: Sequence[Any]) -> Any:
    """Blocks of columns as one block, dense or sparse."""
    if all(isinstance(block, np.ndarray) for block in blocks):
        return np.hstack(blocks)
    from scipy import sparse

    return sparse.hstack(blocks, format="csr")


def _files(client: Any, data: Any) -> list[str]:
    def ask_worker(paths: list[Any]) -> list[DataPath] | Exception:
        workers = list(client.nthreads())[:1]
        answers = client.run(try_find_files, paths, workers=workers) if workers else {}
        return next(iter(answers.values()), None) or try_find_files(paths)

    return resolve_files(data, ask_worker, "Pass the DataFrame of dask.dataframe.read_parquet.")


# ---- predictions ----


def lazy_results(model: Any, data: Any, method: str) -> Any:
    """Results of a method on a DataFrame or array of Dask, which computes them later.

    The graph has one task for the bytes of the model, which all partitions depend on. A DataFrame
    gives a Series or DataFrame with the same partitions and index, an array an array with the same
    chunks of rows.
    """
    packed = predict.pack_model(model)
    if is_frame(data):
        return _lazy_frame(packed, data, method)
    if is_array(data):
        return _lazy_array(packed, data, method)
    raise InputTypeError(
        f"data is a {type(data).__name__}, but must be a DataFrame or array of Dask. Tables in "
        f"memory go to {method} of the model itself."
    )


def _lazy_frame(packed: predict.PackedModel, data: Any, method: str) -> Any:
    from dask.dataframe import map_partitions

    return map_partitions(
        _frame_results,
        data,
        _model_task(packed),
        method,
        meta=_frame_results(data._meta, packed, method),
        enforce_metadata=False,
        align_dataframes=False,
    )


def _lazy_array(packed: predict.PackedModel, data: Any, method: str) -> Any:
    from dask.array import map_blocks

    if data.numblocks[1:] != (1,):
        data = data.rechunk({1: -1})
    # The results of no rows have the type of all others.
    empty = _results(np.empty((0, data.shape[1])), packed, method)
    return map_blocks(
        _results,
        data,
        _model_task(packed),
        method,
        dtype=empty.dtype,
        drop_axis=list(range(1, data.ndim)),
        new_axis=list(range(1, empty.ndim)),
        chunks=(data.chunks[0], *((length,) for length in empty.shape[1:])),
        meta=empty,
    )


def _model_task(packed: predict.PackedModel) -> Any:
    """The model as one task of the graph."""
    make = dask.delayed(predict.PackedModel, pure=True, traverse=False)
    return make(packed.digest, packed.packed, dask_key_name=f"arboost-model-{packed.digest}")


def _results(X: Any, packed: predict.PackedModel, method: str) -> NDArray[Any]:
    advice = "Use dask.dataframe.map_partitions with a function of your own."
    return predict.compute_results(X, packed, method, advice)


def _frame_results(part: Any, packed: predict.PackedModel, method: str) -> Any:
    """Results as a Series or DataFrame with the index of the rows."""
    import pandas as pd

    results = _results(part, packed, method)
    # pandas would otherwise look at the values, of which an empty partition has none.
    kind = "str" if results.dtype.kind == "U" else results.dtype
    if results.ndim == 1:
        name = "prediction" if method == "predict" else method
        return pd.Series(results, index=part.index, name=name, dtype=kind)
    if results.ndim > 2:  # noqa: PLR2004 - rows and columns
        raise InputTypeError(
            f"{method} of several outputs has {results.ndim} dimensions, which a DataFrame has "
            "not. Pass data.to_dask_array()."
        )
    names = predict.result_column_names(predict.load_packed(packed), method, results.shape[1])
    return pd.DataFrame(results, index=part.index, columns=names, dtype=kind)
