"""Prediction of a single row: a frame, dict or series of one row -> numbers for `core.RowModel`.

Reading a frame column by column takes longer than a prediction. A single row is read as a list of
Python values instead, for the columns of the schema. Anything unusual in it (a type, a name, a
value) is left to `ingest`, which returns the same values, converts more types, and raises errors.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.levels import Levels
from arboost.data.raw_table import TICKS, RawTable, is_missing
from arboost.data.schema import Schema, part_number
from arboost.models.model import Model
from arboost.trees.forest import Floats

_NUMBERS = frozenset((float, int, bool, np.float64, np.float32, np.int64, np.int32, np.bool_))


def row_scores(model: Model, X: object, n_jobs: int | None) -> Floats | None:
    """Raw scores of a single row; None where X is anything else or needs `ingest`."""
    predictor, row = _row_predictor(model, X, n_jobs)
    return None if predictor is None else predictor.raw(row)


def row_predictions(model: Model, X: object, n_jobs: int | None) -> NDArray[Any] | None:
    """Predicted value or label of a single row, or None."""
    predictor, row = (None, X) if model.targets else _row_predictor(model, X, n_jobs)
    if predictor is None:
        return None
    if model.classes is None:
        return predictor.values(row)
    code = predictor.likeliest(row)
    return None if code < 0 else model.classes[code : code + 1].copy()


def row_probabilities(model: Model, X: object, n_jobs: int | None) -> Floats | None:
    """Class probabilities of a single row, or None."""
    if model.targets or model.classes is None:
        return None
    predictor, row = _row_predictor(model, X, n_jobs)
    return None if predictor is None else predictor.answers(row)


def _row_predictor(model: Model, X: object, n_jobs: object) -> tuple[core.RowModel | None, object]:
    """Predictor of single rows, and X in its form; (None, X) where there is none.

    A wrong `n_jobs` is left to the prediction of tables, which refuses it.
    """
    if n_jobs is not None and (n_jobs.__class__ is not int or n_jobs <= 0):
        return None, X
    if model.device != "cpu":
        return None, X
    if model.row is not None:
        return model.row, X  # which returns None for any X that is not a row of numbers
    if model.schema.names is None or model.encoded_row is None:
        return None, X
    row = encoded_row(X, model.schema)
    return (None, X) if row is None else (model.encoded_row, row)


def encoded_row(X: object, schema: Schema) -> Floats | None:
    """The only row of X as float64 of shape (1, n_features), NaN for missing values.

    The result is None where X is not a single row by name, or has a value that needs `ingest`.
    """
    names = schema.columns
    values = None if names is None else _row_values(X, names)
    if values is None:
        return None
    for feature in schema.special:
        if feature >= len(values):  # derived
            break
        code = _special_value(values[feature], schema.levels_of(feature), schema.unit_of(feature))
        if code is None:
            return None
        values[feature] = code
    for feature, value in enumerate(values):
        if value.__class__ not in _NUMBERS:
            if not is_missing(value):
                return None
            values[feature] = math.nan
    values += [part_number(part, values[column]) for column, part in schema.parts]
    try:
        row = np.array([values], np.float64)
    except OverflowError:  # an integer beyond float64
        return None
    if not math.isnan(schema.missing):
        is_missing_number = row[0] == schema.missing
        is_missing_number[list(schema.special)] = False
        row[0, is_missing_number] = math.nan
    return row


def _row_values(X: object, names: tuple[str, ...]) -> list[Any] | None:
    """Values of a single row in the order of the names; None for any other table."""
    if isinstance(X, list) and len(X) == 1 and isinstance(X[0], Mapping):
        X = X[0]
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if isinstance(X, Mapping):
        return _ordered(list(X), list(X.values()), names)
    if pandas is not None and isinstance(X, pandas.DataFrame):
        return _values_of_pandas(X, names)
    if pandas is not None and isinstance(X, pandas.Series):
        return _ordered(X.index.tolist(), X.tolist(), names)
    if polars is not None and isinstance(X, polars.DataFrame):
        # Beyond microseconds, Python's times are not those of the frame.
        is_exact = all(getattr(dtype, "time_unit", "") != "ns" for dtype in X.dtypes)
        if X.height == 1 and is_exact:
            return _ordered(X.columns, list(X.row(0)), names)
    return None


def _values_of_pandas(frame: Any, names: tuple[str, ...]) -> list[Any] | None:
    """Values of a frame of one row, block by block: columns take much longer."""
    blocks = getattr(getattr(frame, "_mgr", None), "blocks", None)
    if blocks is None or len(frame) != 1:
        return None
    values: list[Any] = [None] * frame.shape[1]
    for block in blocks:
        array, positions = block.values, block.mgr_locs.as_array
        if array.ndim == 1:  # an extension type, one block for each column
            arrow = getattr(array, "_pa_array", None)
            values[positions[0]] = array[0] if arrow is None else arrow[0].as_py()
            continue
        cells = getattr(array, "_ndarray", array)[:, 0]  # of times, the array without its type
        items = list(cells) if cells.dtype.kind in "mM" else cells.tolist()
        for position, value in zip(positions.tolist(), items, strict=True):
            values[position] = value
    return _ordered(frame.columns.tolist(), values, names)


def _ordered(
    row_names: Sequence[Any], values: list[Any], names: tuple[str, ...]
) -> list[Any] | None:
    """Values in the order of the names; None where names differ."""
    if len(row_names) != len(names):
        return None
    if tuple(row_names) == names:
        return values
    by_name = dict(zip(row_names, values, strict=True))
    return [by_name[name] for name in names] if by_name.keys() == set(names) else None


def _special_value(value: Any, levels: Levels | None, unit: str) -> float | None:
    """Number of a category or a time, as `ingest` encodes it; None where it must."""
    if levels is None:
        return math.nan if is_missing(value) else _seconds(value, unit)
    if value.__class__ is str and levels.kind == "string":
        code = int(levels.codes_of_text(core.Text.of_objects([value])[0])[0])
    elif is_missing(value) or len(levels) == 0:  # ignored, or without a value in fit
        code = -1
    elif value.__class__ in _NUMBERS and levels.kind == "number":
        code = int(levels.codes_of_numbers(np.array([value], np.float64))[0])
    else:
        return None
    if code < 0:
        return math.nan
    return float(code if levels.numbers is None else levels.numbers[code])


def _seconds(value: Any, unit: str) -> float | None:
    kind = value.__class__
    if kind is np.datetime64 or kind is np.timedelta64:
        name, count = np.datetime_data(value.dtype)
        tick = TICKS.get(name) if count == 1 else None
        if tick is None or unit != ("datetime" if kind is np.datetime64 else "duration"):
            return None
        column = core.Columns(1)
        column.add_times(np.array([value.view(np.int64)]), *tick)
        return float(column.read(0)[0])
    table = RawTable(core.Columns(1))
    try:
        table.add_objects([value], 0)
    except TypeError:
        return None
    return float(table.columns.read(0)[0]) if table.units.get(0) == unit else None
