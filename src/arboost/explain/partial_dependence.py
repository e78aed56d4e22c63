"""Model + table + a grid of one or two features -> how the answer depends on them.

A row's answer as a function of one feature is a step function: a tree that does not ask for the
feature is walked once, and others once on each side of the splits that do, never once for each
point of the grid (``cpp/explain/partial_dependence.h``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.feature_names import feature_indices
from arboost.data.table import Table, ingest
from arboost.data.target import weights
from arboost.explain.grids import Axis, Grid, axis_of
from arboost.model.links import LINKS
from arboost.model.model import Model
from arboost.model.outputs import ALL_CLASS_LINKS, target_link
from arboost.model.predict import table_scores

__all__ = ["PartialDependence", "Way", "partial_dependence"]

Floats = NDArray[np.float64]

KINDS = ("average", "individual", "both")
METHODS = ("brute", "recursion")
RESPONSES = ("answer", "raw")

# Links whose mean over rows is the link of the mean.
_LINEAR_LINKS = ("identity", "share_of_two", "shares")
_TWO = 2
_NUMBERS_AT_ONCE = 1 << 21  # of raw scores


@dataclass(frozen=True)
class Way:
    """How it is worked out: one of `KINDS`, of `METHODS` and of `RESPONSES`."""

    kind: str = "average"
    method: str = "brute"
    response: str = "answer"

    def check(self, model: Model) -> None:
        """Raise ValueError where the parts do not fit each other or the model."""
        for name, allowed in (("kind", KINDS), ("method", METHODS), ("response", RESPONSES)):
            given = getattr(self, name)
            if given not in allowed:
                options = ", ".join(allowed)
                raise ValueError(f"{name}={given!r} is not allowed: use one of {options}.")
        if self.method == "brute":
            return
        if self.kind != "average":
            raise ValueError(
                f'kind={self.kind!r} is not allowed with method="recursion", which knows no rows: '
                'use kind="average" or method="brute".'
            )
        if model.combine == "median":
            raise ValueError(
                'method="recursion" is not allowed: the model takes a median over its trees, and '
                'the median of means is no mean. Use method="brute".'
            )
        if self.response == "answer" and model.link not in _LINEAR_LINKS:
            raise ValueError(
                'method="recursion" gives the mean of raw scores, and the answers of this model '
                f'are not linear in them (link {model.link!r}). Use response="raw", or '
                'method="brute".'
            )


@dataclass(frozen=True, eq=False)
class PartialDependence:
    """What a model says on a grid of one or two features, on average over rows and of each row.

    Attributes
    ----------
    features : tuple of int
        The features of the grid.
    names : tuple of str
    grid : tuple of arrays
        The points of each feature: numbers, times, or levels of a category (objects). A missing
        value is NaN, NaT or None.
    outputs : tuple of str
        What the answers are for: classes, targets, quantiles.
    average : float64 array of shape (n_points,) or (n_points, n_points_2), or None
        Mean over the rows. With several outputs there is another axis for them, the last one.
    individual : float64 array of shape (n_rows, n_points) or (n_rows, n_points, n_points_2), or \
None
        Of each row (ICE). With several outputs there is another axis for them, the last one.
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


def partial_dependence(
    model: Model,
    X: object,
    features: object,
    *,
    way: Way,
    grid: int | Grid = 100,
    sample_weight: object = None,
    n_threads: int,
) -> PartialDependence:
    """Return what `arboost.Predictor.partial_dependence` does.

    Parameters
    ----------
    model : Model
    X : table of shape (n_rows, n_features)
    features : str, int, or a pair of them
    way : Way
    grid : int or Grid
    sample_weight : array of shape (n_rows,), optional
    n_threads : int
    """
    way.check(model)
    chosen = _chosen(model, features)
    table = ingest(X, model.schema)
    if not table.n_rows:
        raise ValueError("X has no rows, but partial dependence is a mean over rows. Pass some.")
    given = grid if isinstance(grid, Grid) else Grid(grid)
    axes = tuple(axis_of(table, feature, given) for feature in chosen)
    weight = weights(sample_weight, table.n_rows)
    if way.method == "recursion":
        if weight is not None:
            raise ValueError(
                'sample_weight is not allowed with method="recursion": the trees keep the weights '
                'of the rows that they were grown on. Use method="brute".'
            )
        answers: Iterator[Floats] = iter([_answers(model, _of_trees(model, axes), way.response)])
    else:
        raw = _of_rows(model, table, axes, n_threads)
        answers = (_answers(model, part, way.response) for part in raw)
    average, individual = _gathered(answers, way.kind, table.n_rows, weight)
    shape = tuple(len(axis.stored) for axis in axes)
    return PartialDependence(
        features=chosen,
        names=tuple(model.schema.shown_names[feature] for feature in chosen),
        grid=tuple(axis.shown for axis in axes),
        outputs=_outputs(model, way.response),
        average=None if average is None else _shaped(average[None], shape)[0],
        individual=None if individual is None else _shaped(individual, shape),
    )


def _chosen(model: Model, features: Any) -> tuple[int, ...]:
    pair = tuple(features) if isinstance(features, list | tuple) else (features,)
    names, n_features = model.schema.names, model.schema.n_features
    chosen = tuple(
        feature_indices(pair, names, n_features, parameter="features", owner="the model")
    )
    if len(chosen) not in (1, _TWO) or len(set(chosen)) != len(chosen):
        raise ValueError(
            f"features={features!r} is not allowed: use the name or the number of a feature, or a "
            "pair of two different ones."
        )
    return chosen


def _of_trees(model: Model, axes: tuple[Axis, ...]) -> Floats:
    grid_forest = _grid_forest(model, axes)
    out = np.empty((1, _n_points(axes), model.n_outputs))
    grid_forest.of_trees(out)
    return _scores(model, out)


def _of_rows(
    model: Model, table: Table, axes: tuple[Axis, ...], n_threads: int
) -> Iterator[Floats]:
    """Yield the raw scores of some rows after the other, shape (rows, points, outputs)."""
    n_points = _n_points(axes)
    if model.combine == "median":
        yield _point_by_point(model, table, axes, n_threads)
        return
    grid_forest = _grid_forest(model, axes)
    step = max(1, _NUMBERS_AT_ONCE // (n_points * model.n_outputs))
    for begin in range(0, table.n_rows, step):
        rows = min(step, table.n_rows - begin)
        out = np.empty((rows, n_points, model.n_outputs))
        grid_forest.of_rows(columns=table.columns, begin=begin, out=out, n_threads=n_threads)
        yield _scores(model, out)


def _grid_forest(model: Model, axes: tuple[Axis, ...]) -> core.GridForest:
    return core.GridForest(
        forest=model.forest,
        n_columns=model.schema.n_features,
        n_outputs=model.n_outputs,
        features=[axis.feature for axis in axes],
        values=[axis.stored for axis in axes],
    )


def _n_points(axes: tuple[Axis, ...]) -> int:
    return int(np.prod([len(axis.stored) for axis in axes]))


def _scores(model: Model, sums: Floats) -> Floats:
    """Return the raw scores that sums over trees mean; changes the sums."""
    if model.combine == "mean":
        sums /= max(model.n_rounds, 1)
    sums += model.base_score
    return sums


def _point_by_point(model: Model, table: Table, axes: tuple[Axis, ...], n_threads: int) -> Floats:
    """Return the raw scores of models that are no sums of trees."""
    out = np.empty((table.n_rows, _n_points(axes), model.n_outputs))
    places = np.indices([len(axis.stored) for axis in axes]).reshape(len(axes), -1)
    for point, place in enumerate(places.T):
        columns = table.columns.select(range(model.schema.n_features))
        for axis, i in zip(axes, place.tolist(), strict=True):
            column = core.Columns(table.n_rows)
            column.add(np.full(table.n_rows, axis.stored[i]))
            columns.put(axis.feature, column)
        out[:, point] = table_scores(model, Table(columns, table.schema), n_threads=n_threads)
    return out


def _answers(model: Model, raw: Floats, response: str) -> Floats:
    """Return what raw scores mean, for every row and point; of two classes the second only."""
    if response == "raw":
        return raw
    flat = raw.reshape(-1, model.n_outputs)
    if model.classes is None:
        return LINKS[model.link](flat).reshape(raw.shape)
    parts, first = [], 0
    for link, outputs, classes in _targets(model):
        shares = LINKS[link](flat[:, first : first + outputs])
        parts.append(shares[:, 1:] if len(classes) == _TWO else shares)
        first += outputs
    return np.concatenate(parts, axis=1).reshape(*raw.shape[:2], -1)


def _targets(model: Model) -> list[tuple[str, int, NDArray[Any]]]:
    """Return link, number of outputs and classes of each target of a classifier."""
    if not model.targets:
        return [(model.link, model.n_outputs, model.classes)]
    pairs = zip(model.targets, model.classes, strict=True)
    return [(target_link(n, len(classes)), n, classes) for n, classes in pairs]


def _outputs(model: Model, response: str) -> tuple[str, ...]:
    if model.classes is None:
        if model.n_outputs == 1:
            return ("prediction" if response == "answer" else "raw score",)
        word = "target" if model.targets else "output"
        return tuple(f"{word} {i}" for i in range(model.n_outputs))
    names: list[str] = []
    for i, (link, _, classes) in enumerate(_targets(model)):
        title = f"target {i}: " if model.targets else ""
        is_raw = response == "raw"
        of_second = link not in ALL_CLASS_LINKS if is_raw else len(classes) == _TWO
        shown = classes[1:] if of_second else classes
        names += [f"{title}{label}" for label in shown.tolist()]
    return tuple(names)


def _gathered(
    answers: Iterator[Floats], kind: str, n_rows: int, weight: Floats | None
) -> tuple[Floats | None, Floats | None]:
    """Return the mean over the rows and all rows, each where it is asked for."""
    kept: list[Floats] = []
    total: Floats | float = 0.0
    first = 0
    for part in answers:
        if kind != "average":
            kept.append(part)
        if kind != "individual":
            rows = slice(first, first + len(part))
            if weight is None:
                total = total + part.sum(axis=0)
            else:
                total = total + (part * weight[rows, None, None]).sum(axis=0)
        first += len(part)
    whole = float(first) if weight is None else float(weight.sum())
    average = np.asarray(total / whole) if kind != "individual" else None
    return average, (np.concatenate(kept) if len(kept) > 1 else kept[0]) if kept else None


def _shaped(answers: Floats, shape: tuple[int, ...]) -> Floats:
    """Bring (rows, points, outputs) to an axis for each feature, and none for a single output."""
    n_outputs = answers.shape[-1]
    last = () if n_outputs == 1 else (n_outputs,)
    return answers.reshape(len(answers), *shape, *last)
