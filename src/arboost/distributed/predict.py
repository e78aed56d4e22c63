"""Predictions of a model on workers: its bytes, which each process loads once."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from arboost.data.files import is_path
from arboost.errors import InputTypeError
from arboost.models.predictor import Predictor, load

MAX_CACHED_MODELS = 4  # in a process


@dataclass(frozen=True)
class PackedModel:
    """Bytes of a model; equal and with the same hash where the digests of the bytes are equal."""

    digest: str
    packed: bytes = field(compare=False)

    def __dask_tokenize__(self) -> str:
        return self.digest


def pack_model(model: Any) -> PackedModel:
    """Bytes of a fitted estimator, a `Predictor`, or the file of a model."""
    if is_path(model):
        model = load(model)
    packed = pickle.dumps(getattr(model, "model_", model), protocol=5)
    return PackedModel(hashlib.sha256(packed).hexdigest(), packed)


@lru_cache(maxsize=MAX_CACHED_MODELS)
def load_packed(model: PackedModel) -> Any:
    """Model of the bytes; a process loads it once."""
    return pickle.loads(model.packed)


def compute_results(X: Any, packed: PackedModel, method: str, advice: str) -> NDArray[Any]:
    """Results of a method of the model, by one thread.

    Parameters
    ----------
    X : table
    packed : PackedModel
    method : str
    advice : str
        What to do where the results are a list of arrays.
    """
    model = load_packed(packed)
    compute: Callable[..., Any] = getattr(model, method)
    # A cluster runs as many tasks at the same time as there are threads.
    results = compute(X, n_jobs=1) if isinstance(model, Predictor) else compute(X)
    if isinstance(results, list):
        raise InputTypeError(
            f"{method} of several targets is a list of arrays, which has no form on a cluster. "
            f"{advice}"
        )
    array: NDArray[Any] = results
    return array


def result_column_names(model: Any, method: str, n_columns: int) -> list[str]:
    """Class labels, feature names, or numbers."""
    attributes = {
        "predict_proba": ("classes", "classes_"),
        "shap_values": ("feature_names", "feature_names_in_"),
    }
    for attribute in attributes.get(method, ()):
        names = getattr(model, attribute, None)
        if names is not None and len(names) == n_columns:
            return [str(name) for name in names]
    return [str(i) for i in range(n_columns)]
