"""Model, table and grid of one or two features -> partial dependence.

A row's raw score is a step function of a feature. A row walks a tree once, into both children at
splits on the features of the grid, and never once for each point of the grid
(``cpp/explain/partial_dependence.h``). Each point of a grid has two forms: as the core reads it
(codes of levels, seconds, NaN for missing), and as users read it.
"""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.feature_names import feature_indices, split_offset
from arboost.data.levels import Levels
from arboost.data.schema import MICROSECONDS, TIME_DTYPES, Schema, as_times, part_number
from arboost.data.table import Table, ingest
from arboost.data.target import weights
from arboost.errors import InputTypeError, listing
from arboost.losses import links
from arboost.models.model import Model
from arboost.models.prediction import table_scores
from arboost.trees.forest import Floats

_TIMES = ("datetime", "duration")  # units that points show as times; times of day are seconds


@dataclass(frozen=True)
class Grid:
    """Settings of the grid of a feature.

    Parameters
    ----------
    resolution : int, default=100
        Number of points of a numeric feature: all its distinct values where they are fewer, else
        equally spaced points between the two percentiles. For target-encoded categories, the
        largest number of levels; other categories have a point for each level.
    percentiles : (float, float), default=(0.05, 0.95)
        The first and the last point, as shares of the values below them.
    missing : bool, default=False
        Whether a missing value is the last point.
    values : dict, optional
        Explicit points of features, by name or index.

    Examples
    --------
    >>> from arboost import Grid
    >>> Grid(20, missing=True)
    Grid(resolution=20, percentiles=(0.05, 0.95), missing=True, values=None)
    """

    resolution: int = 100
    percentiles: tuple[float, float] = (0.05, 0.95)
    missing: bool = False
    values: Mapping[Any, Any] | None = None

    def __post_init__(self) -> None:
        size = self.resolution
        if isinstance(size, bool) or not isinstance(size, numbers.Integral) or size < 2:  # noqa: PLR2004
            raise ValueError(
                f"resolution={size!r} is not allowed: use a whole number of points from 2 on."
            )
        try:
            low, high = map(float, self.percentiles)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not 0 <= low < high <= 1:
            raise ValueError(
                f"percentiles={self.percentiles!r} is not allowed: use two numbers from 0 to 1, "
                "the lower one first."
            )
        if self.values is not None and not isinstance(self.values, Mapping):
            raise InputTypeError(
                f"values={self.values!r} is not allowed: use a dict such as {{'age': [20, 40]}}."
            )


@dataclass(frozen=True, eq=False)
class Axis:
    """The points of one feature.

    Attributes
    ----------
    feature : int
    stored : float64 array of shape (n_points,)
        Points as the core reads them.
    shown : array of shape (n_points,)
        Points as users read them: float64, datetime64, timedelta64, or objects for string levels
        (None for missing).
    """

    feature: int
    stored: Floats
    shown: NDArray[Any]


def axis_of(table: Table, feature: int, grid: Grid) -> Axis:
    """Grid points of a feature of a table.

    Raises
    ------
    ValueError
        The table has no values of the feature, or the grid holds impossible values of it.
    """
    schema = table.schema
    values = grid.values or {}
    indices = feature_indices(
        values, schema.names, schema.n_features, parameter="Grid.values", owner="the model"
    )
    user_values = dict(zip(indices, values.values(), strict=True))
    levels = schema.levels_of(feature)
    if feature in user_values:
        stored, shown = _user_points(schema, feature, user_values[feature])
    elif levels is not None:
        stored, shown = _level_points(levels, _spread(levels, grid.resolution))
    else:
        stored, unit = _number_points(table.columns.read(feature), grid), schema.unit_of(feature)
        shown = as_times(stored, unit) if unit in _TIMES else stored
    if grid.missing and not _has_missing(shown):
        stored = np.append(stored, np.nan)
        last = None if shown.dtype == object else "NaT" if shown.dtype.kind in "mM" else np.nan
        shown = np.append(shown, np.array([last], shown.dtype))
    if not len(stored):
        raise ValueError(
            f"The feature {schema.label(feature)} has no values in X, so there is no grid of them. "
            "Pass a table that has some, or Grid(values=...)."
        )
    return Axis(feature, np.ascontiguousarray(stored, np.float64), shown)


def _has_missing(shown: NDArray[Any]) -> bool:
    if shown.dtype == object:
        return any(value is None for value in shown)
    return bool((np.isnat(shown) if shown.dtype.kind in "mM" else np.isnan(shown)).any())


def _number_points(values: Floats, grid: Grid) -> Floats:
    finite = np.sort(values[np.isfinite(values)])
    distinct = finite[np.flatnonzero(np.diff(finite, prepend=-np.inf))]
    if len(distinct) < grid.resolution:
        return distinct
    low, high = (_quantile(finite, share) for share in grid.percentiles)
    if low == high:  # nearly all rows have one value
        low, high = float(finite[0]), float(finite[-1])
    # Not low + share * (high - low): the difference of two doubles may not be finite.
    share = np.linspace(0.0, 1.0, grid.resolution)
    return np.where(share < 1.0, low * (1.0 - share) + high * share, high)


def _quantile(ordered: Floats, share: float) -> float:
    """Quantile of sorted values by the definition of scipy's ``mquantiles``.

    scikit-learn's partial dependence uses it, too.
    """
    n = len(ordered)
    position = n * share + 0.4 + 0.2 * share
    below = int(min(max(position, 1), n - 1))
    fraction = min(max(position - below, 0.0), 1.0)
    return float((1.0 - fraction) * ordered[below - 1] + fraction * ordered[below])


def _spread(levels: Levels, most: int) -> NDArray[np.intp]:
    """Codes of the levels; of too many, some evenly spaced by number."""
    if levels.numbers is None or (len(levels) <= most and levels.ranks is None):
        return np.arange(len(levels))
    order = np.argsort(levels.numbers, kind="stable")
    order = order[~np.isnan(levels.numbers[order])]
    if len(order) <= most:
        return order
    chosen: NDArray[np.intp] = order[np.linspace(0, len(order) - 1, most).astype(np.intp)]
    return chosen


def _level_points(levels: Levels, codes: NDArray[np.intp]) -> tuple[Floats, NDArray[Any]]:
    """Stored and shown points of level codes; -1 is missing."""
    numbers_of = np.arange(len(levels)) if levels.numbers is None else levels.numbers
    stored = np.append(numbers_of, np.nan)[codes]
    labels = [None if code < 0 else levels.label(int(code)) for code in codes]
    return stored, np.array(labels, np.float64 if levels.kind == "number" else object)


def _user_points(schema: Schema, feature: int, values: Any) -> tuple[Floats, NDArray[Any]]:
    """Stored and shown points of values that a user chose."""
    points = np.atleast_1d(np.asarray(values, dtype=object if _has_strings(values) else None))
    label, levels = schema.label(feature), schema.levels_of(feature)
    if points.ndim != 1 or not len(points):
        raise ValueError(
            f"values of the feature {label} have the shape {points.shape}, but they must be a list "
            "of points. Pass one or more."
        )
    if levels is not None:
        return _level_points(levels, _codes_of(levels, points, label))
    unit = schema.unit_of(feature)
    try:
        if unit in _TIMES and points.dtype.kind not in "iuf":
            times = points.astype(TIME_DTYPES[unit])
            seconds = times.astype(np.int64) / MICROSECONDS
            stored = np.where(np.isnat(times), np.nan, seconds)
        else:
            stored = points.astype(np.float64)
    except (TypeError, ValueError) as error:
        kind = unit or "number"
        raise ValueError(
            f"values of the feature {label} hold something else than a {kind}: {error}. Pass "
            "values as the column of the fit had them."
        ) from error
    stored = np.where(stored == schema.missing, np.nan, stored)
    return stored, as_times(stored, unit) if unit in _TIMES else stored


def _has_strings(values: Any) -> bool:
    """Whether NumPy would convert None and numbers next to strings to strings."""
    return isinstance(values, list | tuple) and any(
        isinstance(value, str) or value is None for value in values
    )


def _codes_of(levels: Levels, points: NDArray[Any], label: str) -> NDArray[np.intp]:
    code_of: dict[object, int] = {levels.label(code): code for code in range(len(levels))}
    codes = []
    for value in points.tolist():
        is_missing = value is None or (isinstance(value, float) and math.isnan(value))
        code = -1 if is_missing else code_of.get(value)
        if code is None:
            raise ValueError(
                f"values of the feature {label} hold {value!r}, which is none of its levels: "
                f"{listing(map(repr, code_of))}. Use those, or None for missing."
            )
        codes.append(code)
    return np.array(codes, np.intp)


KINDS = ("average", "individual", "both")
METHODS = ("brute", "recursion")
RESPONSES = ("answer", "raw")

_TWO = 2
_MOST_SCORES = 1 << 21  # raw scores in memory at a time


@dataclass(frozen=True, eq=False)
class PartialDependence:
    """Predictions on a grid of one or two features: their mean over rows, and those of each row.

    Attributes
    ----------
    features : tuple of int
        Indices of the features of the grid.
    names : tuple of str
    grid : tuple of arrays
        Points of each feature: numbers, times, or levels of a category (objects). A missing value
        is NaN, NaT or None.
    outputs : tuple of str
        Names of the outputs: classes, targets, quantiles.
    average : float64 array of shape (n_points,) or (n_points, n_points_2), or None
        Mean over the rows. With several outputs they are a further axis, the last one.
    individual : float64 array of shape (n_rows, n_points) or (n_rows, n_points, n_points_2), or \
None
        Individual conditional expectation (ICE) of each row, with the same axis of outputs.
    """

    features: tuple[int, ...]
    names: tuple[str, ...]
    grid: tuple[NDArray[Any], ...]
    outputs: tuple[str, ...]
    average: Floats | None
    individual: Floats | None

    def __repr__(self) -> str:
        points = " x ".join(str(len(axis)) for axis in self.grid)
        return f"PartialDependence({', '.join(self.names)}: {points} points)"


def partial_dependence(  # noqa: PLR0913 - the arguments of the method
    model: Model,
    X: object,
    features: object,
    *,
    kind: str,
    method: str,
    response: str,
    grid: int | Grid,
    sample_weight: object = None,
    offset: object = None,
    n_threads: int,
) -> PartialDependence:
    """Result of `arboost.Predictor.partial_dependence`, which has the arguments."""
    _check_options(model, kind, method, response)
    chosen = _chosen(model, features)
    table = ingest(split_offset(X, offset)[0], model.schema)
    if not table.n_rows:
        raise ValueError("X has no rows, but partial dependence is a mean over rows. Pass some.")
    settings = grid if isinstance(grid, Grid) else Grid(grid)
    axes = tuple(axis_of(table, feature, settings) for feature in chosen)
    weight = weights(sample_weight, table.n_rows)
    dates = [feature for feature in chosen if model.schema.parts_of(feature)]
    if method == "recursion":
        if dates:
            raise ValueError(
                f'method="recursion" is not allowed for {model.schema.label(dates[0])}: its '
                'calendar parts are features of the trees, too. Use method="brute".'
            )
        if weight is not None:
            raise ValueError(
                'sample_weight is not allowed with method="recursion": the trees keep the weights '
                'of the rows that they were grown on. Use method="brute".'
            )
        if offset is not None:
            raise ValueError(
                'offset is not allowed with method="recursion", which uses no rows: its raw scores '
                'are those without an offset. Use method="brute".'
            )
        row_offset, blocks = None, _grid_scores(model, None, axes, n_threads)
    else:
        row_offset = links.read_offset(model, X, table.n_rows, offset)
        if dates or model.combine == "median":
            blocks = iter([_point_by_point(model, table, axes, n_threads)])
        else:
            blocks = _grid_scores(model, table, axes, n_threads)
    average, individual = _gathered(model, blocks, response, kind, weight, row_offset)
    shape = tuple(len(axis.stored) for axis in axes)
    return PartialDependence(
        features=chosen,
        names=tuple(model.schema.shown_names[feature] for feature in chosen),
        grid=tuple(axis.shown for axis in axes),
        outputs=_output_names(model, response),
        average=None if average is None else _shaped(average[None], shape)[0],
        individual=None if individual is None else _shaped(individual, shape),
    )


def _check_options(model: Model, kind: str, method: str, response: str) -> None:
    """Raise ValueError where the options contradict each other or the model."""
    for name, value, allowed in (
        ("kind", kind, KINDS),
        ("method", method, METHODS),
        ("response", response, RESPONSES),
    ):
        if value not in allowed:
            raise ValueError(f"{name}={value!r} is not allowed: use one of {', '.join(allowed)}.")
    if method == "brute":
        return
    if kind != "average":
        raise ValueError(
            f'kind={kind!r} is not allowed with method="recursion", which uses no rows: use '
            'kind="average" or method="brute".'
        )
    if model.combine == "median":
        raise ValueError(
            'method="recursion" is not allowed: the model takes a median over its trees, and the '
            'median of means is not a mean. Use method="brute".'
        )
    if response == "answer" and model.link not in ("identity", *links.SHARE_LINKS):
        raise ValueError(
            'method="recursion" gives the mean of raw scores, and the predictions of this model '
            f'are not linear in them (link {model.link!r}). Use response="raw", or method="brute".'
        )


def _chosen(model: Model, features: Any) -> tuple[int, ...]:
    pair = tuple(features) if isinstance(features, list | tuple) else (features,)
    names, n_features = model.schema.names, model.schema.n_features
    chosen = tuple(
        feature_indices(pair, names, n_features, parameter="features", owner="the model")
    )
    if len(chosen) not in (1, _TWO) or len(set(chosen)) != len(chosen):
        raise ValueError(
            f"features={features!r} is not allowed: use the name or the index of a feature, or a "
            "pair of two different ones."
        )
    return chosen


def _grid_scores(
    model: Model, table: Table | None, axes: tuple[Axis, ...], n_threads: int
) -> Iterator[Floats]:
    """Yield the raw scores of blocks of rows, shape (rows, points, outputs).

    Without a table they are those of one row: means by the covers of the trees.
    """
    grid_forest = core.GridForest(
        forest=model.forest,
        n_columns=model.schema.n_features,
        n_outputs=model.n_outputs,
        features=[axis.feature for axis in axes],
        values=[axis.stored for axis in axes],
    )
    n_points, n_rows = _n_points(axes), 1 if table is None else table.n_rows
    step = max(1, _MOST_SCORES // (n_points * model.n_outputs))
    for begin in range(0, n_rows, step):
        scores = np.empty((min(step, n_rows - begin), n_points, model.n_outputs))
        if table is None:
            grid_forest.of_trees(scores)
        else:
            grid_forest.of_rows(columns=table.columns, begin=begin, out=scores, n_threads=n_threads)
        if model.combine == "mean":
            scores /= max(model.n_rounds, 1)
        scores += model.base_score
        yield scores


def _n_points(axes: tuple[Axis, ...]) -> int:
    return math.prod(len(axis.stored) for axis in axes)


def _point_by_point(model: Model, table: Table, axes: tuple[Axis, ...], n_threads: int) -> Floats:
    """Raw scores of a model that is not a sum of trees: one prediction for each point."""
    out = np.empty((table.n_rows, _n_points(axes), model.n_outputs))
    for point, values_at_point in enumerate(itertools.product(*(axis.stored for axis in axes))):
        columns = table.columns.select(range(model.schema.n_features))
        values: dict[int, float] = {}
        for axis, number in zip(axes, values_at_point, strict=True):
            parts = model.schema.parts_of(axis.feature).items()
            values |= {feature: part_number(part, number) for feature, part in parts}
        values |= {axis.feature: number for axis, number in zip(axes, values_at_point, strict=True)}
        for feature, value in values.items():
            column = core.Columns(table.n_rows)
            column.add(np.full(table.n_rows, value))
            columns.put(feature, column)
        out[:, point] = table_scores(model, Table(columns, table.schema), n_threads=n_threads)
    return out


def _responses(model: Model, raw: Floats, response: str) -> Floats:
    """Raw scores or predictions of rows and points; of two classes the second only."""
    if response == "raw":
        return raw
    flat = raw.reshape(-1, model.n_outputs)
    if model.classes is None:
        return links.LINKS[model.link](flat).reshape(raw.shape)
    columns = []
    for part in links.target_parts(model):
        probabilities = links.LINKS[part.link](part.columns(flat))
        columns.append(probabilities[:, 1:] if len(part.labels) == _TWO else probabilities)
    return np.concatenate(columns, axis=1).reshape(*raw.shape[:2], -1)


def _output_names(model: Model, response: str) -> tuple[str, ...]:
    if model.classes is None:
        if model.n_outputs == 1:
            return ("prediction" if response == "answer" else "raw score",)
        word = "target" if model.targets else "output"
        return tuple(f"{word} {i}" for i in range(model.n_outputs))
    names: list[str] = []
    for i, part in enumerate(links.target_parts(model)):
        title = f"target {i}: " if model.targets else ""
        is_raw = response == "raw"
        is_second = part.link not in links.ALL_CLASS_LINKS if is_raw else len(part.labels) == _TWO
        labels = part.labels[1:] if is_second else part.labels
        names += [f"{title}{label}" for label in labels.tolist()]
    return tuple(names)


def _gathered(
    model: Model,
    blocks: Iterator[Floats],
    response: str,
    kind: str,
    weight: Floats | None,
    offset: Floats | None,
) -> tuple[Floats | None, Floats | None]:
    """Mean over the rows and the responses of all rows, each if `kind` includes it.

    `blocks` are the raw scores without the offset.
    """
    individual: list[Floats] = []
    total: Floats | float = 0.0
    n_rows = 0
    for block in blocks:
        rows = slice(n_rows, n_rows + len(block))
        raw = block if offset is None else block + offset[rows, np.newaxis]
        responses = _responses(model, raw, response)
        if kind != "average":
            individual.append(responses)
        if kind != "individual":
            weighted = responses if weight is None else responses * weight[rows, None, None]
            total = total + weighted.sum(axis=0)
        n_rows = rows.stop
    total_weight = float(n_rows) if weight is None else float(weight.sum())
    average = np.asarray(total / total_weight) if kind != "individual" else None
    if len(individual) <= 1:  # without a copy
        return average, individual[0] if individual else None
    return average, np.concatenate(individual)


def _shaped(responses: Floats, shape: tuple[int, ...]) -> Floats:
    """(rows, points, outputs) with an axis for each feature, and none for a single output."""
    n_outputs = responses.shape[-1]
    last = () if n_outputs == 1 else (n_outputs,)
    return responses.reshape(len(responses), *shape, *last)
