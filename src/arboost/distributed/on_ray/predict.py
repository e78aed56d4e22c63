"""Lazy results of a model on a Ray Dataset: the model goes to the object store once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import ray
from ray.data import Dataset

from arboost.distributed.packed_model import (
    PackedModel,
    column_names,
    loaded,
    packed_model,
    results_of,
)

__all__ = ["with_results"]

_KEPT_MODELS = 4  # in a process
_LIMIT = 300.0  # seconds that Ray may take to bring the model
_NAMES = {"predict": "prediction", "predict_proba": "probability"}


@dataclass(frozen=True)
class SentModel:
    """Reference of a model in the object store; equal where the digests of the bytes are equal."""

    digest: str
    reference: Any = field(compare=False)


@lru_cache(maxsize=_KEPT_MODELS)
def _fetched(sent: SentModel) -> PackedModel:
    """Return the model; a process fetches it once."""
    packed: PackedModel = ray.get(sent.reference, timeout=_LIMIT)
    return packed


def with_results(model: Any, data: Any, method: str) -> Dataset:
    """Return a dataset with the results of a method as further columns; Ray computes them later."""
    if not isinstance(data, Dataset):
        raise TypeError(
            f"data is a {type(data).__name__}, but must be a Ray Dataset. Tables in memory go to "
            f"{method} of the model itself."
        )
    packed = packed_model(model)
    options = {"sent": SentModel(packed.digest, ray.put(packed)), "method": method}
    return data.map_batches(
        _appended, batch_size=None, batch_format="pyarrow", zero_copy_batch=True, fn_kwargs=options
    )


def _appended(table: Any, sent: SentModel, method: str) -> Any:
    """Return a table of PyArrow with the results as further columns."""
    import pyarrow

    packed = _fetched(sent)
    model = loaded(packed)
    features = _features(model, table)
    advice = "Use Dataset.map_batches with a function of your own."
    results = results_of(features, packed, method, advice)
    name = _NAMES[method]
    if results.ndim == 1:
        return table.append_column(name, pyarrow.array(results))
    for i, of in enumerate(column_names(model, method, results.shape[1])):
        table = table.append_column(f"{name}_{of}", pyarrow.array(results[:, i]))
    return table


def _features(model: Any, table: Any) -> Any:
    """Return the columns that the model knows; other columns of the data are kept, but not used."""
    schema = getattr(model, "schema", None)
    names = getattr(model, "feature_names_in_", None) if schema is None else schema.columns
    if names is None or not set(names) <= set(table.column_names):
        return table
    schema = getattr(getattr(model, "model_", model), "schema", None)
    start = getattr(schema, "offset", None) or ()  # `predict` says which of them is missing
    return table.select([*names, *(name for name in start if name in table.column_names)])
