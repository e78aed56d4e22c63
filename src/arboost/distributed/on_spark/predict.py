"""Predictions of a model as columns of a Spark DataFrame; the model goes to each executor once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.ml.functions import array_to_vector, vector_to_array
from pyspark.sql import DataFrame
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from arboost.distributed.on_spark.features import check_columns, is_vector, plain
from arboost.predictor import Predictor, load
from arboost.sources.paths import is_path

__all__ = ["predictor_of", "with_predictions"]

_VECTORS = "__arboost_vectors"  # column for the time of a prediction
_TYPES = {
    "b": (BooleanType(), pa.bool_()),
    "f": (DoubleType(), pa.float64()),
    "i": (LongType(), pa.int64()),
    "u": (LongType(), pa.int64()),
    "O": (StringType(), pa.string()),
    "U": (StringType(), pa.string()),
}


def predictor_of(model: Any) -> Any:
    """Return the predictor of a fitted estimator, of a file, or the predictor itself."""
    found = load(model) if is_path(model) else getattr(model, "model_", model)
    if not hasattr(found, "schema"):
        raise TypeError(
            f"model is a {type(model).__name__}, but must be a fitted estimator of arboost, a "
            "Predictor, or the path of a model file."
        )
    return found


def with_predictions(
    model: Any, frame: DataFrame, features: object, prediction: str, probability: str
) -> DataFrame:
    """Return the DataFrame with columns for predictions and class probabilities.

    Parameters
    ----------
    model : Predictor or EnsemblePredictor
    frame : DataFrame
    features : object
        Name of a column of vectors; otherwise the columns have the names of the fit.
    prediction, probability : str
        Names of the new columns; "" for none.
    """
    if isinstance(model.classes, tuple):
        raise TypeError("The model has several targets with classes, which Spark has no type for.")
    if model.classes is None:
        probability = ""
    types = {prediction: _prediction_type(model), probability: ArrayType(DoubleType())}
    new = [StructField(name, kind) for name, kind in types.items() if name]
    for field in new:
        if field.name in frame.columns:
            raise ValueError(
                f"The DataFrame has a column {field.name!r} already. Rename or drop it."
            )
    task = _Task(
        model=frame.sparkSession.sparkContext.broadcast(model),
        names=_feature_names(model, frame, features),
        offset=_offset_names(model, frame),
        prediction=prediction,
        probability=probability,
    )
    given = frame
    if task.names is None:
        given = frame.withColumn(_VECTORS, vector_to_array(plain(str(features))))
    result = given.mapInArrow(task.run, StructType([*frame.schema.fields, *new]))
    if probability:
        result = result.withColumn(probability, array_to_vector(plain(probability)))
    return result


@dataclass(frozen=True)
class _Task:
    """The function of all tasks: batches -> batches with predictions.

    Attributes
    ----------
    model : pyspark.Broadcast
    names : tuple of str or None
        Columns of the features; None for vectors.
    offset : tuple of str
        Columns of the offset.
    prediction, probability : str
    """

    model: Any
    names: tuple[str, ...] | None
    offset: tuple[str, ...]
    prediction: str
    probability: str

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context: Any = TaskContext.get()
        for batch in batches:
            yield self._with_results(batch, context.cpus())

    def _with_results(self, batch: pa.RecordBatch, n_threads: int) -> pa.RecordBatch:
        model = self.model.value
        if self.names is None:
            X: Any = _matrix(batch[_VECTORS], model.schema.shown_names[: model.schema.n_columns])
            for name in self.offset:
                X = X.append_column(name, batch[name])
        else:
            X = pa.Table.from_batches([batch]).select([*self.names, *self.offset])
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns.pop(_VECTORS, None)
        if self.prediction:
            columns[self.prediction] = _column(model.predict(X, n_jobs=n_threads))
        if self.probability:
            columns[self.probability] = _column(model.predict_proba(X, n_jobs=n_threads))
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _feature_names(model: Any, frame: DataFrame, features: object) -> tuple[str, ...] | None:
    """Return the columns of the features; None for vectors."""
    if is_vector(frame, features):
        return None
    if model.schema.columns is not None:
        check_columns(frame, "feature", model.schema.columns)
        return tuple(model.schema.columns)
    named = [features] if isinstance(features, str) else features
    return tuple(named if isinstance(named, Sequence) else frame.columns)


def _offset_names(model: Any, frame: DataFrame) -> tuple[str, ...]:
    """Return the columns of the offset."""
    offset = model.schema.offset
    if offset == ():
        raise ValueError(
            "The model was fitted with an array of offsets, which no column of the DataFrame is "
            'known to hold. Fit it with the name of a column: offset="start".'
        )
    check_columns(frame, "offset", offset or ())
    return offset or ()


def _prediction_type(model: Any) -> DataType:
    if model.classes is not None:
        kind = model.classes.dtype.kind
        if kind not in _TYPES:
            raise TypeError(f"Spark has no type for class labels of type {model.classes.dtype}.")
        return _TYPES[kind][0]
    has_several = isinstance(model, Predictor) and model.n_outputs > 1
    return ArrayType(DoubleType()) if has_several else DoubleType()


def _matrix(vectors: pa.ListArray, names: Sequence[str]) -> pa.Table:
    """Return lists of equal length as columns."""
    if vectors.null_count or len(vectors.flatten()) != len(vectors) * len(names):
        raise ValueError(
            f"A vector of the features is missing, or has not the {len(names)} elements of the fit."
        )
    values = vectors.flatten().to_numpy(zero_copy_only=False).reshape(len(vectors), len(names))
    return pa.table({name: np.ascontiguousarray(values[:, i]) for i, name in enumerate(names)})


def _column(results: NDArray[Any]) -> pa.Array:
    """Return an array as a column; that of a matrix has lists."""
    kind = _TYPES[results.dtype.kind][1]
    if results.ndim == 1:
        return pa.array(results, kind)
    n_rows, length = results.shape
    offsets = np.arange(0, n_rows * length + 1, length, dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array(results.ravel(), kind))
