"""Model + table -> SHAP values: the contribution of each feature to the scores of a row.

The SHAP values of a row and the expected value sum to its score: the raw score, or the probability
of the second class where the raw score is the difference of the two. Absent features are averaged
over the training rows of each node, by its cover, or over the rows of a background table.
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.cuda import CudaArray, as_kind_of, is_device_array
from arboost.data.levels import Levels
from arboost.data.raw_table import RawTable
from arboost.data.schema import Schema, as_times
from arboost.data.table import Table, read_raw
from arboost.errors import DeviceError, InputTypeError, needs_packages
from arboost.losses.links import SHARE_LINKS, is_probability_difference
from arboost.models import prediction
from arboost.models.model import Model
from arboost.trees.forest import Floats

_MIDNIGHT = datetime.datetime(1970, 1, 1)


def expected_value(model: Model, background: object, *, n_threads: int) -> Floats:
    """Mean score that SHAP values are relative to, shape (n_outputs,)."""
    return table_expected(model, _read_background(model, background), n_threads)


def table_expected(model: Model, background: Table | None, n_threads: int) -> Floats:
    """Mean score by the covers of a model, or of the rows of a table."""
    forest = _forest(model, "expected_value")
    if background is None:
        raw, of_trees = model.base_score, forest.expected() / _divisors(model)
    else:
        raw = prediction.table_scores(model, background, n_threads=n_threads).mean(axis=0)
        of_trees = np.zeros(model.n_outputs)  # which are in the raw scores
    # SHAP values sum to probabilities where raw scores are differences of two.
    return np.where(is_probability_difference(model), (1.0 + raw) / 2, raw) + of_trees


def score_name(model: Model) -> str:
    """Name of the score that SHAP values sum to."""
    return "probability" if getattr(model, "link", "") in SHARE_LINKS else "raw score"


def shap_values(model: Model, X: object, background: object, *, n_threads: int) -> Floats:
    """SHAP values of the rows of X.

    The shape is (n_rows, n_features), with several outputs (n_rows, n_features, n_outputs).
    """
    if is_device_array(X):
        return _device_values(model, X, background, n_threads)
    table = prediction.read_table(model, X)
    return _squeezed(
        table_shap_values(model, table, _read_background(model, background), n_threads)
    )


def shap_interactions(model: Model, X: object, *, n_threads: int) -> Floats:
    """SHAP interaction values of the rows of X.

    The shape is (n_rows, n_features, n_features), with several outputs there is one more axis.
    """
    prediction.refuse_device(model, "shap_interactions")
    forest = _forest(model, "shap_interactions")
    table = prediction.read_table(model, X)
    n_features = model.schema.n_features
    values = np.empty((table.n_rows, n_features, n_features, model.n_outputs))
    forest.interactions(columns=table.columns, out=values, n_threads=n_threads)
    values /= _divisors(model)
    return _squeezed(values)


def shap_explanation(model: Model, X: object, background: object, *, n_threads: int) -> Any:
    """SHAP values as a ``shap.Explanation``, for the plots of that package."""
    with needs_packages("shap", "shap_explanation"):
        import shap
    table, background_table = prediction.read_table(model, X), _read_background(model, background)
    values = table_shap_values(model, table, background_table, n_threads)
    expected = table_expected(model, background_table, n_threads)
    columns = shown_columns(X, model.schema)
    if any(column.dtype == object for column in columns):
        columns = [column.astype(object) for column in columns]
    names, classes = model.schema.names, model.classes
    has_output_per_class = isinstance(classes, np.ndarray) and len(classes) == model.n_outputs
    return shap.Explanation(
        _squeezed(values),
        base_values=_squeezed(np.repeat(expected[np.newaxis], table.n_rows, axis=0)),
        data=np.stack(columns, axis=1),
        feature_names=None if names is None else list(names),
        output_names=[str(label) for label in classes] if has_output_per_class else None,
    )


def table_shap_values(
    model: Model, table: Table, background: Table | None, n_threads: int
) -> Floats:
    """SHAP values of the rows of a table, shape (n_rows, n_features, n_outputs)."""
    values = np.empty((table.n_rows, model.schema.n_features, model.n_outputs))
    if model.device != "cpu":
        if background is not None:
            prediction.refuse_device(model, "shap_values with a background")
        _check_sum(model, "shap_values")
        prediction.cuda_forest(model).shap_values(
            forest=model.forest,
            columns=table.columns,
            divisors=_divisors(model),
            out=values,
            n_threads=n_threads,
        )
        return values
    forest = _forest(model, "shap_values")
    if background is None:
        forest.values(columns=table.columns, out=values, n_threads=n_threads)
    else:
        forest.against(
            columns=table.columns,
            background=background.columns,
            out=values,
            n_threads=n_threads,
        )
    values /= _divisors(model)
    return values


def _device_values(model: Model, X: object, background: object, n_threads: int) -> Floats:
    """SHAP values of the rows of a table in device memory, in an array of its kind."""
    if background is not None:
        raise DeviceError(
            "shap_values with a background do not run on a CUDA device, where X is. Pass copies "
            "of X and background in the memory of the host to a model on the CPU."
        )
    _check_sum(model, "shap_values")
    columns = prediction.device_table(model, X)
    shape = (columns.n_rows, model.schema.n_features)
    values = CudaArray.empty(
        shape + (model.n_outputs,) * (model.n_outputs > 1), np.float64, columns.device
    )
    prediction.cuda_forest(model, columns.device).shap_values(
        forest=model.forest,
        columns=columns,
        divisors=_divisors(model),
        out=values.address,
        n_threads=n_threads,
    )
    result: Floats = as_kind_of(values, X)
    return result


def _check_sum(model: Model, method: str) -> None:
    """Raise TypeError unless the scores of a model are sums or means of its trees."""
    if model.combine == "median":
        raise InputTypeError(
            f"{method} is not available for a model whose trees are combined by a weighted median, "
            "as AdaBoostRegressor does: exact tree SHAP needs a sum or a mean of trees. Use "
            "a forest or GradientBoostingRegressor, or shap.KernelExplainer of predict."
        )


def _forest(model: Model, method: str) -> core.ShapForest:
    _check_sum(model, method)
    return core.ShapForest(model.forest, model.schema.n_features, model.n_outputs)


def _read_background(model: Model, background: object) -> Table | None:
    if background is None:
        return None
    table = prediction.read_table(model, background, "background")
    if table.n_rows == 0:
        raise ValueError(
            "background has no rows, but the values of absent features are taken from them. Pass "
            "at least one row, or background=None for the covers of the training rows."
        )
    return table


def _divisors(model: Model) -> Floats:
    """Ratio of sums over the trees to contributions to the score, for each output."""
    n_averaged = max(model.n_rounds, 1) if model.combine == "mean" else 1
    return n_averaged * np.where(is_probability_difference(model), 2.0, 1.0)


def _squeezed(values: Floats) -> Floats:
    """Values without the axis of the outputs where there is one output."""
    return values[..., 0] if values.shape[-1] == 1 else values


def shown_columns(X: object, schema: Schema) -> list[NDArray[Any]]:
    """Columns of a table as the user has them: float64, or objects for all others.

    Objects are strings, levels and times; None is a missing value.
    """
    raw = read_raw(X, schema)
    return [_shown_column(raw, i) for i in range(schema.n_features)]


def _shown_column(raw: RawTable, i: int) -> NDArray[Any]:
    if i in raw.texts:
        levels, codes = Levels.of_text(raw.texts[i])
        labels = np.array([*(levels.label(code) for code in range(len(levels))), None], object)
        return labels[codes]  # the code -1, of missing values, is the last label
    values = raw.columns.read(i)
    unit = raw.units.get(i)
    if not unit:
        return values
    times = as_times(values, unit).astype(object)  # NaT becomes None
    if unit == "time":
        times = np.array([None if t is None else (_MIDNIGHT + t).time() for t in times], object)
    return times
