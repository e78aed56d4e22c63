"""Lazy results of a model on collections of Dask: the model goes to each worker once.

The graph has one task for the model's bytes, which all partitions depend on. A process of a worker
loads them when the first partition comes, and keeps the model for the others.
"""

from __future__ import annotations

from typing import Any

import dask
import numpy as np
from numpy.typing import NDArray

from arboost.distributed.on_client.dask_data import is_array, is_frame
from arboost.distributed.packed_model import (
    PackedModel,
    column_names,
    loaded,
    packed_model,
    results_of,
)

__all__ = ["lazy_results"]

_NAMES = {"predict": "prediction"}


def lazy_results(model: Any, data: Any, method: str) -> Any:
    """Return the results of a method on a DataFrame or array of Dask, which computes them later.

    A DataFrame gives a Series or DataFrame with the same partitions and index, an array an array
    with the same chunks of rows.
    """
    packed = packed_model(model)
    if is_frame(data):
        return _of_frame(packed, data, method)
    if is_array(data):
        return _of_array(packed, data, method)
    raise TypeError(
        f"data is a {type(data).__name__}, but must be a DataFrame or array of Dask. Tables in "
        f"memory go to {method} of the model itself."
    )


def _of_frame(packed: PackedModel, data: Any, method: str) -> Any:
    from dask.dataframe import map_partitions

    return map_partitions(
        _frame_results,
        data,
        _sent(packed),
        method,
        meta=_frame_results(data._meta, packed, method),
        enforce_metadata=False,
        align_dataframes=False,
    )


def _of_array(packed: PackedModel, data: Any, method: str) -> Any:
    from dask.array import map_blocks

    if data.numblocks[1:] != (1,):
        data = data.rechunk({1: -1})
    # The results of no rows have the type of all others.
    few = _results(np.empty((0, data.shape[1])), packed, method)
    return map_blocks(
        _results,
        data,
        _sent(packed),
        method,
        dtype=few.dtype,
        drop_axis=list(range(1, data.ndim)),
        new_axis=list(range(1, few.ndim)),
        chunks=(data.chunks[0], *((length,) for length in few.shape[1:])),
        meta=few,
    )


def _sent(packed: PackedModel) -> Any:
    """Return the model as one task of the graph."""
    make = dask.delayed(PackedModel, pure=True, traverse=False)
    return make(packed.digest, packed.packed, dask_key_name=f"arboost-model-{packed.digest}")


def _results(X: Any, packed: PackedModel, method: str) -> NDArray[Any]:
    advice = "Use dask.dataframe.map_partitions with a function of your own."
    return results_of(X, packed, method, advice)


def _frame_results(part: Any, packed: PackedModel, method: str) -> Any:
    """Return results as a Series or DataFrame with the index of the rows."""
    import pandas as pd

    results = _results(part, packed, method)
    # pandas would otherwise look at the values, of which an empty partition has none.
    kind = "str" if results.dtype.kind == "U" else results.dtype
    if results.ndim == 1:
        name = _NAMES.get(method, method)
        return pd.Series(results, index=part.index, name=name, dtype=kind)
    if results.ndim > 2:  # noqa: PLR2004 - rows and columns
        raise TypeError(
            f"{method} of several outputs has {results.ndim} dimensions, which a DataFrame has "
            "not. Pass data.to_dask_array()."
        )
    names = column_names(loaded(packed), method, results.shape[1])
    return pd.DataFrame(results, index=part.index, columns=names, dtype=kind)
