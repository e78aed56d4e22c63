"""Model and source -> file of predictions, batch by batch.

    source --batches--> predict --> record batch --> scratch file ──rename──▶ out.parquet

Two batches and their predictions are in memory, however many rows there are.
"""

from __future__ import annotations

import io
import json
import math
import os
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import csv, parquet, types

from arboost.data.feature_names import offset_names
from arboost.data.files import as_schema, file_kind, selected
from arboost.data.source import Source, has_columns, open_source
from arboost.errors import InputTypeError, ParameterError, SchemaError
from arboost.losses.links import read_offset
from arboost.write import remove_orphans, replaced_file, write_errors

_METHODS = ("predict", "predict_proba", "predict_raw", "shap_values")


def predict_to_file(  # noqa: PLR0913 - the arguments of predict_files
    model: Any,
    source: Any,
    path: str | os.PathLike[str],
    *,
    columns_to_keep: Sequence[str] | None,
    method: str,
    offset: str | Sequence[str] | float | None = None,
    batch_rows: int,
    n_jobs: int | None,
    format: str | None = None,  # noqa: A002  # as in `TableFiles`
    escape_formulas: bool = False,
) -> int:
    """Write the predictions of all rows of a source; return the number of rows.

    The model has the methods of `Predictor`, a
    schema and classes; `Predictor.predict_files` has the parameters.
    """
    kind, compression = file_kind(os.fsdecode(path)) if format is None else (format, None)
    if escape_formulas and kind not in ("csv", "tsv"):
        raise ValueError(
            f"escape_formulas=True is for CSV and TSV files, but {os.fsdecode(path)!r} is none. "
            "Leave it out."
        )
    allowed = [name for name in _METHODS if hasattr(model, name)]
    if method not in allowed:
        raise ValueError(f"method is {method!r}, but it must be one of {', '.join(allowed)}.")
    if type(batch_rows) is not int or batch_rows < 1:
        raise ValueError(f"batch_rows is {batch_rows!r}, but it must be an integer of at least 1.")
    copied = _checked_names(columns_to_keep)
    options: dict[str, Any] = {}
    offset_columns: list[str] = []
    if method != "shap_values":
        options = _offset_option(model, offset)
        offset_columns = list(
            (model.schema.offset if offset is None else offset_names(offset)) or ()
        )
    elif offset is not None:
        raise ParameterError(
            "offset is not allowed with method='shap_values': SHAP values are those of the trees.",
            "Leave it out.",
            parameter="offset",
        )
    features = model.schema.columns
    to_read = None  # all, where columns are matched by their order
    if features is not None and has_columns(source):
        to_read = list(dict.fromkeys([*features, *copied, *offset_columns]))
    rows = open_source(source, to_read, once=True)
    _refuse_input(path, rows)

    def predicted(table: object, file: str) -> Any:
        X, columns = _divided(table, model, copied, file, offset_columns)
        try:
            values = getattr(model, method)(X, **options, n_jobs=n_jobs)
        except SchemaError as error:
            raise SchemaError(f"The rows of {file!r} do not fit the model. {error}") from error
        if method == "shap_values":
            predictions = _shap_columns(model, values, n_jobs)
        else:
            predictions = _prediction_columns(model, values, method)
        batch = _record_batch(columns, predictions)
        return _without_formulas(batch) if escape_formulas else batch

    batches = (predicted(batch.table, batch.file) for batch in rows.batches(batch_rows))
    first = next(batches, None)
    if first is None:
        first = predicted(_no_rows(rows, model), rows.label)
    return _write_batches(chain([first], batches), first.schema, path, kind, compression)


def _checked_names(columns_to_keep: Sequence[str] | None) -> list[str]:
    if isinstance(columns_to_keep, str):
        raise InputTypeError(
            f"columns_to_keep is the string {columns_to_keep!r}, but it must be a list of names. "
            f"Pass [{columns_to_keep!r}]."
        )
    return list(columns_to_keep or ())


def _offset_option(model: Any, offset: object) -> dict[str, Any]:
    """Offset among the arguments of a method; raise before any row is read."""
    fitted, names = model.schema.offset, offset_names(offset)
    if offset is None and fitted != ():
        return {}
    if names == () and np.ndim(cast(Any, offset)):
        raise InputTypeError(
            "offset of predict_files names columns, or is one number for all rows, but an array "
            "was passed. Write it into a column of the files."
        )
    if fitted is None or offset is None:
        read_offset(model, None, 0, offset)  # raises what `predict` would
    return {"offset": offset}


def _refuse_input(path: str | os.PathLike[str], rows: Source) -> None:
    """Raise ValueError for an output that is one of the input files."""
    target = os.path.realpath(os.fsdecode(path))
    if target in map(os.path.realpath, rows.paths):
        raise ValueError(
            f"The predictions cannot be written to {os.fsdecode(path)!r}, which is one of the "
            "files to read. Give another path."
        )


def _no_rows(rows: Source, model: Any) -> Any:
    """Table of the columns of a source, without a row."""
    if rows.arrow_schema is not None:
        return rows.arrow_schema.empty_table()
    if model.schema.columns is None:
        return np.zeros((0, model.schema.n_columns))
    names = [*model.schema.columns, *(model.schema.offset or ())]
    return pyarrow.table([np.zeros(0)] * len(names), names)


def _divided(
    table: Any, model: Any, copied: list[str], file: str, offset_columns: list[str]
) -> tuple[object, dict[str, Any]]:
    """Features of a batch with the columns of the offset, and those to keep by name."""
    X = table[0] if isinstance(table, tuple) else table
    if not copied:
        return X, {}
    if not hasattr(X, "__arrow_c_stream__"):
        raise InputTypeError(
            f"columns_to_keep={copied!r} needs columns with names, but {file} is a "
            f"{type(X).__name__}. Pass data frames, or leave columns_to_keep out."
        )
    X = pyarrow.table(X)
    names = X.column_names
    if model.schema.columns is not None:
        names = [*model.schema.columns, *offset_columns]
    elif len(names) != model.schema.n_columns + len(offset_columns):
        names = [name for name in names if name not in copied or name in offset_columns]
    columns = {name: _plain(X.column(name)) for name in selected(copied, X.column_names, file)}
    return X.select(selected(names, X.column_names, file)), columns


def _plain(column: Any) -> Any:
    """Column as one array; a dictionary, which batches may not share, as its values."""
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.combine_chunks()


def _prediction_columns(model: Any, values: Any, method: str) -> dict[str, Any]:
    """Results of a method as columns of PyArrow by name."""
    if method == "predict":
        targets = _numbered("prediction", values)
        classes = model.classes if isinstance(model.classes, tuple) else [model.classes]
        classes = classes if len(classes) == len(targets) else classes * len(targets)
        columns = zip(targets.items(), classes, strict=True)
        return {name: _label_column(column, labels) for (name, column), labels in columns}
    if method == "predict_raw":
        named = _numbered("raw", values)
    elif isinstance(values, list):  # of several targets
        named = {
            f"proba_{target}_{label}": of_target[:, i]
            for target, of_target in enumerate(values)
            for i, label in enumerate(model.classes[target])
        }
    else:
        named = {f"proba_{label}": values[:, i] for i, label in enumerate(model.classes)}
    return {name: _number_column(values) for name, values in named.items()}


def _shap_columns(model: Any, values: Any, n_jobs: int | None) -> dict[str, Any]:
    """SHAP values as columns by feature and output, and the expected value of each output."""
    expected = np.atleast_1d(model.expected_value(n_jobs=n_jobs))
    labels: Any = model.classes
    if labels is None or len(labels) != len(expected):
        labels = range(len(expected))
    suffixes = [f" {label}" for label in labels] if len(expected) > 1 else [""]
    by_output = values.reshape(len(values), -1, len(expected))
    columns = {
        f"{name}{suffix}": by_output[:, i, k]
        for k, suffix in enumerate(suffixes)
        for i, name in enumerate(model.feature_names)
    }
    for suffix, value in zip(suffixes, expected, strict=True):
        columns[f"expected_value{suffix}"] = np.full(len(values), value)
    return {name: _number_column(column) for name, column in columns.items()}


def _label_column(values: NDArray[Any], labels: NDArray[Any] | None) -> Any:
    """Predicted values or labels as a column, of one type in all batches."""
    if values.dtype.kind in "iuf" and (labels is None or labels.dtype == values.dtype):
        return _number_column(values)
    return pyarrow.array(values, None if labels is None else pyarrow.array(labels).type)


def _number_column(values: NDArray[Any]) -> Any:
    """Numbers as a column; `pyarrow.array` would import pandas, for a tenth of a second."""
    data = pyarrow.py_buffer(np.ascontiguousarray(values))
    return pyarrow.Array.from_buffers(
        pyarrow.from_numpy_dtype(values.dtype), len(values), [None, data]
    )


def _numbered(name: str, values: Any) -> dict[str, Any]:
    """Columns of an array, with numbers in their names where there are several."""
    if values.ndim == 1 or values.shape[1] == 1:
        return {name: values.ravel()}
    return {f"{name}_{i}": values[:, i] for i in range(values.shape[1])}


def _record_batch(copied: dict[str, Any], predicted: dict[str, Any]) -> Any:
    in_both = sorted(copied.keys() & predicted.keys())
    if in_both:
        raise ValueError(
            f"columns_to_keep has {in_both[0]!r}, which is the name of a column of predictions. "
            "Leave it out, or rename it in the files."
        )
    columns = copied | predicted
    return pyarrow.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _write_batches(
    batches: Iterable[Any],
    schema: Any,
    path: str | os.PathLike[str],
    kind: str,
    compression: str | None,
) -> int:
    """Write record batches to a file; return the number of rows.

    A failure leaves the file that was there before.
    """
    remove_orphans(path)
    n_rows = 0
    with replaced_file(path) as file:
        sink = _Sink(file, path)
        writer = _Writer(sink, schema, kind, compression)
        try:
            for batch in batches:
                writer.write(as_schema(batch, schema))
                n_rows += batch.num_rows
        except BaseException:
            sink.is_dropped = True
            raise
        finally:
            writer.close()
    return n_rows


def _without_formulas(batch: Any) -> Any:
    """Batch with an apostrophe before texts and names that begin like formulas."""
    columns = [
        pc.replace_substring_regex(column, r"\A([=+\-@\t\r])", r"'\1")
        if types.is_string(column.type) or types.is_large_string(column.type)
        else column
        for column in batch.columns
    ]
    names = [re.sub(r"\A([=+\-@\t\r])", r"'\1", name) for name in batch.schema.names]
    return type(batch).from_arrays(columns, names)


class _Sink(io.RawIOBase):
    """A file that PyArrow writes to, but does not close."""

    def __init__(self, file: BinaryIO, path: str | os.PathLike[str]) -> None:
        self._file = file
        self._path = path
        self.is_dropped = False  # whether the rest, such as a footer, need not be written

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if not self.is_dropped:
            with write_errors(self._path):
                self._file.write(data)
        return len(data)


class _Writer:
    """Writer of record batches: Parquet, Arrow, CSV, TSV or JSON lines."""

    def __init__(self, sink: _Sink, schema: Any, kind: str, compression: str | None) -> None:
        self._stream = pyarrow.PythonFile(sink, "w")
        if compression is not None:
            self._stream = pyarrow.CompressedOutputStream(self._stream, compression)
        if kind == "parquet":
            # Floats hardly ever repeat: a dictionary of them would take most of the time.
            texts = [field.name for field in schema if not types.is_floating(field.type)]
            self._writer = parquet.ParquetWriter(self._stream, schema, use_dictionary=texts)
        elif kind == "arrow":
            lz4 = "lz4" if pyarrow.Codec.is_available("lz4") else None
            options = pyarrow.ipc.IpcWriteOptions(compression=lz4)
            self._writer = pyarrow.ipc.new_file(self._stream, schema, options=options)
        elif kind == "jsonl":
            self._writer = _JsonLines(self._stream)
        else:
            delimiter = "\t" if kind == "tsv" else ","
            options = csv.WriteOptions(delimiter=delimiter)
            self._writer = csv.CSVWriter(self._stream, schema, write_options=options)

    def write(self, batch: Any) -> None:
        self._writer.write_batch(batch)

    def close(self) -> None:
        """Write the rest of the file."""
        self._writer.close()
        self._stream.close()


class _JsonLines:
    """Writer of one JSON object a row; numbers that are not finite are null."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write_batch(self, batch: Any) -> None:
        lines = [
            json.dumps(
                {name: _json_value(value) for name, value in row.items()}, ensure_ascii=False
            )
            for row in batch.to_pylist()
        ]
        self._stream.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """Nothing is left to write."""


def _json_value(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
