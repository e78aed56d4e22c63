"""Columns of Spark DataFrames: features of a fit, and predictions of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.ml.functions import array_to_vector, vector_to_array
from pyspark.ml.linalg import VectorUDT
from pyspark.sql import Column, DataFrame, types
from pyspark.sql import functions as F  # noqa: N812 - the name of all users of Spark

from arboost.data.files import is_path
from arboost.errors import InputTypeError
from arboost.models.predictor import Predictor, load

_VECTOR_COLUMN = "__arboost_vectors"  # column for the time of a prediction
_TYPES = {
    "b": (types.BooleanType(), pa.bool_()),
    "f": (types.DoubleType(), pa.float64()),
    "i": (types.LongType(), pa.int64()),
    "u": (types.LongType(), pa.int64()),
    "O": (types.StringType(), pa.string()),
    "U": (types.StringType(), pa.string()),
}

# ---- features of a fit ----


def check_columns(frame: DataFrame, argument: str, names: Sequence[object]) -> None:
    """Raise ValueError unless all names are columns."""
    for name in names:
        if name not in frame.columns:
            raise ValueError(
                f"{argument}={name!r} is not a column of the DataFrame. Its columns are: "
                f"{', '.join(frame.columns)}."
            )


def is_vector(frame: DataFrame, name: object) -> bool:
    """Whether a column has vectors of pyspark.ml."""
    return name in frame.columns and isinstance(frame.schema[str(name)].dataType, VectorUDT)


def quoted_column(name: str) -> Column:
    """Column by its name, which may have dots."""
    return F.col("`" + name.replace("`", "``") + "`")


def training_columns(
    frame: DataFrame, features: str | Sequence[str] | None, others: Sequence[str]
) -> DataFrame:
    """Features, and other columns after them.

    Parameters
    ----------
    frame : DataFrame
    features : str, sequence of str or None
        Plain columns, or one column of vectors, whose elements become columns; None takes all but
        the others.
    others : sequence of str
    """
    check_columns(frame, "labelCol or weightCol", others)
    if features is None:
        features = [name for name in frame.columns if name not in others]
    named = [features] if isinstance(features, str) else list(features)
    check_columns(frame, "featuresCol", named)
    if not isinstance(features, str) or not is_vector(frame, features):
        return frame.select(*map(quoted_column, (*named, *others)))
    values = vector_to_array(quoted_column(features))
    elements = [
        values[i].alias(name) for i, name in enumerate(_element_names(frame, features, others))
    ]
    return frame.select(*elements, *map(quoted_column, others))


def _element_names(frame: DataFrame, vectors: str, others: Sequence[str]) -> list[str]:
    """Names that VectorAssembler has noted, or else numbered ones."""
    noted = frame.schema[vectors].metadata.get("ml_attr", {})
    attributes = [attr for group in noted.get("attrs", {}).values() for attr in group]
    names = {attr["idx"]: attr["name"] for attr in attributes if "name" in attr}
    length = noted.get("num_attrs", len(names)) or _length(frame, vectors)
    if len(set(names.values()) - set(others)) == length:
        return [names[i] for i in range(length)]
    return [f"{vectors}_{i}" for i in range(length)]


def _length(frame: DataFrame, vectors: str) -> int:
    """Length of the first vector."""
    row = frame.select(quoted_column(vectors)).dropna().first()
    if row is None:
        raise ValueError(f"featuresCol={vectors!r} has no vectors, so there is nothing to learn.")
    return len(row[0])


# ---- predictions ----


def predictor_of(model: Any) -> Any:
    """Predictor of a fitted estimator, of a file, or the predictor itself."""
    predictor = load(model) if is_path(model) else getattr(model, "model_", model)
    if not hasattr(predictor, "schema"):
        raise InputTypeError(
            f"model is a {type(model).__name__}, but must be a fitted estimator of arboost, a "
            "Predictor, or the path of a model file."
        )
    return predictor


def with_predictions(
    model: Any, frame: DataFrame, features: object, prediction: str, probability: str
) -> DataFrame:
    """DataFrame with columns for predictions and class probabilities.

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
        raise InputTypeError(
            "The model has several targets with classes, which Spark has no type for."
        )
    if model.classes is None:
        probability = ""
    column_types = {
        prediction: _prediction_type(model),
        probability: types.ArrayType(types.DoubleType()),
    }
    new = [types.StructField(name, kind) for name, kind in column_types.items() if name]
    for field in new:
        if field.name in frame.columns:
            raise ValueError(
                f"The DataFrame has a column {field.name!r} already. Rename or drop it."
            )
    task = _PredictionTask(
        model=frame.sparkSession.sparkContext.broadcast(model),
        names=_feature_names(model, frame, features),
        offset=_offset_names(model, frame),
        prediction=prediction,
        probability=probability,
    )
    rows = frame
    if task.names is None:
        rows = frame.withColumn(_VECTOR_COLUMN, vector_to_array(quoted_column(str(features))))
    result = rows.mapInArrow(task.run, types.StructType([*frame.schema.fields, *new]))
    if probability:
        result = result.withColumn(probability, array_to_vector(quoted_column(probability)))
    return result


@dataclass(frozen=True)
class _PredictionTask:
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
            X: Any = _vectors_as_table(
                batch[_VECTOR_COLUMN], model.schema.shown_names[: model.schema.n_columns]
            )
            for name in self.offset:
                X = X.append_column(name, batch[name])
        else:
            X = pa.Table.from_batches([batch]).select([*self.names, *self.offset])
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns.pop(_VECTOR_COLUMN, None)
        if self.prediction:
            columns[self.prediction] = _as_column(model.predict(X, n_jobs=n_threads))
        if self.probability:
            columns[self.probability] = _as_column(model.predict_proba(X, n_jobs=n_threads))
        return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def _feature_names(model: Any, frame: DataFrame, features: object) -> tuple[str, ...] | None:
    """Columns of the features; None for vectors."""
    if is_vector(frame, features):
        return None
    if model.schema.columns is not None:
        check_columns(frame, "feature", model.schema.columns)
        return tuple(model.schema.columns)
    named = [features] if isinstance(features, str) else features
    return tuple(named if isinstance(named, Sequence) else frame.columns)


def _offset_names(model: Any, frame: DataFrame) -> tuple[str, ...]:
    """Columns of the offset."""
    offset = model.schema.offset
    if offset == ():
        raise ValueError(
            "The model was fitted with an array of offsets, which no column of the DataFrame is "
            'known to hold. Fit it with the name of a column: offset="start".'
        )
    check_columns(frame, "offset", offset or ())
    return offset or ()


def _prediction_type(model: Any) -> types.DataType:
    if model.classes is not None:
        kind = model.classes.dtype.kind
        if kind not in _TYPES:
            raise InputTypeError(
                f"Spark has no type for class labels of type {model.classes.dtype}."
            )
        return _TYPES[kind][0]
    has_several = isinstance(model, Predictor) and model.n_outputs > 1
    return types.ArrayType(types.DoubleType()) if has_several else types.DoubleType()


def _vectors_as_table(vectors: pa.ListArray, names: Sequence[str]) -> pa.Table:
    """Lists of equal length as columns."""
    if vectors.null_count or len(vectors.flatten()) != len(vectors) * len(names):
        raise ValueError(
            "A vector of the features is missing, or does not have the "
            f"{len(names)} elements of the fit."
        )
    values = vectors.flatten().to_numpy(zero_copy_only=False).reshape(len(vectors), len(names))
    return pa.table({name: np.ascontiguousarray(values[:, i]) for i, name in enumerate(names)})


def _as_column(results: NDArray[Any]) -> pa.Array:
    """Array as a column; that of a matrix has lists."""
    kind = _TYPES[results.dtype.kind][1]
    if results.ndim == 1:
        return pa.array(results, kind)
    n_rows, length = results.shape
    offsets = np.arange(0, n_rows * length + 1, length, dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array(results.ravel(), kind))
