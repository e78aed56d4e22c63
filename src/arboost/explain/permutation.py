"""Model + table + y -> permutation importances: increase of a metric when a feature is shuffled.

The table is read once; a shuffle replaces one column of it. Trees without a split on the feature
are evaluated once for all shuffles. A feature without any split is never shuffled: its importance
is exactly 0.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from arboost.backend import checked_threads, core, startable
from arboost.data.feature_names import split_offset, split_target
from arboost.data.table import Table, ingest
from arboost.data.target import codes_of, numbers_of, target, weights
from arboost.explain.permutation_of_any import increases_of_any
from arboost.losses.metrics import Metric, of_predictions
from arboost.losses.sklearn_metrics import is_sklearn
from arboost.model.forest import ALL_DTYPES, Forest
from arboost.model.model import Model
from arboost.model.outputs import read_offset
from arboost.model.predict import predictions, probabilities, table_scores

__all__ = ["Shuffles", "loss_increases", "permutation_importances"]

Floats = NDArray[np.float64]
Rating = Callable[[Floats], float]

_ROWS_WORTH_A_THREAD = 256
_WALKS_WORTH_A_NODE = 20  # cost of packing a node, in walks of a row through a tree
_LARGEST_SEED = 2**64 - 1


@dataclass(frozen=True)
class Shuffles:
    """Settings of permutation importances: metric, number of shuffles and seed.

    Attributes
    ----------
    metric : str, callable, arboost.Metric or None
    n_repeats, seed : int
    """

    metric: object = None
    n_repeats: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        for name, low, high in (("n_repeats", 1, 10**6), ("seed", 0, _LARGEST_SEED)):
            given = getattr(self, name)
            is_whole = isinstance(given, numbers.Integral) and not isinstance(given, bool)
            if not is_whole or not low <= given <= high:
                shown = "random_state" if name == "seed" else name
                raise ValueError(
                    f"{shown}={given!r} is not allowed: use a whole number from {low} to {high}."
                )

    def orders(self, feature: int, n_rows: int) -> Iterator[NDArray[np.int64]]:
        """Yield an order of the rows for each repeat."""
        for repeat in range(self.n_repeats):
            seed = [self.seed, feature, repeat]
            yield np.random.Generator(np.random.PCG64(seed)).permutation(n_rows)

    def changed(self) -> list[str]:
        """Return the public names of the settings that differ from their defaults."""
        names = {"metric": "metric", "n_repeats": "n_repeats", "seed": "random_state"}
        default = Shuffles()
        return [
            shown for name, shown in names.items() if getattr(self, name) != getattr(default, name)
        ]


def permutation_importances(  # noqa: PLR0913 - all but model, X and y have defaults
    model: Any,
    X: object,
    y: object,
    *,
    metric: object = None,
    sample_weight: object = None,
    offset: object = None,
    n_repeats: int = 5,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Floats:
    """Return the permutation importances of every repeat; `Predictor.importances` is their mean.

    An importance is the increase of the metric when the values of the feature are shuffled among
    the rows of X; where it is negative the metric has improved.

    Parameters
    ----------
    model : fitted estimator, Predictor, or anything else with ``predict``
        Models of trees are shuffled inside. Ensembles of models, pipelines and models of other
        libraries predict each shuffled table.
    X : table of shape (n_rows, n_features)
        Held-out rows: importances on training rows overrate features that were overfitted.
    y : array of shape (n_rows,) or (n_rows, n_targets)
        True values or labels.
    metric : str, callable, arboost.Metric or None
        A name that ``eval_metric`` takes, a function of (y, raw scores, weight), lower is better,
        or an `arboost.Metric`; None is "rmse" or "log_loss". In place of raw scores, models
        without trees give predictions or class probabilities; without probabilities None is
        "accuracy".
    sample_weight : array of shape (n_rows,), optional
    offset : array, str or list of str, optional
        Offset of the rows, for a model that was fitted with one, as `predict` takes it.
    n_repeats : int, default=5
        Shuffles of each feature.
    random_state : int, default=0
        Seed of the shuffles.
    n_jobs : int or None
        Number of threads of a model of trees; the importances do not depend on it.

    Returns
    -------
    float64 array of shape (n_repeats, n_features)

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor, permutation_importances
    >>> X, y = [[0, 1], [1, 0], [2, 1], [3, 0]], [0, 1, 2, 3]
    >>> model = GradientBoostingRegressor(n_estimators=20).fit(X, y)
    >>> permutation_importances(model, X, y, n_repeats=3).shape
    (3, 2)
    """
    fitted = getattr(model, "model_", model)
    shuffles = Shuffles(metric, n_repeats, random_state)
    if not isinstance(fitted, Model):
        if offset is not None:
            raise ValueError(
                f"offset is not allowed with a {type(model).__name__}: only gradient boosting has "
                "an offset. Leave it out."
            )
        X, y, _ = split_target(X, y)
        n_rows = len(y) if hasattr(y, "__len__") else 0
        weight = weights(sample_weight, n_rows)
        return increases_of_any(
            model, X, y, weight, metric, lambda feature: shuffles.orders(feature, n_rows)
        )
    return loss_increases(
        fitted,
        X,
        y,
        shuffles,
        sample_weight=sample_weight,
        offset=offset,
        n_threads=checked_threads(n_jobs),
    )


def loss_increases(
    model: Model,
    X: object,
    y: object,
    shuffles: Shuffles | None = None,
    *,
    sample_weight: object = None,
    offset: object = None,
    n_threads: int,
) -> Floats:
    """Return the increases of the metric, shape (n_repeats, n_features).

    Every repeat of every feature has its own order of the rows, which depends on nothing but the
    seed and the number of rows. Features are shuffled concurrently; the result does not depend on
    ``n_threads``.
    """
    shuffles = shuffles or Shuffles()
    if not _is_custom(shuffles.metric):  # a misspelt name is answered before the table is read
        _named_metric(model, shuffles.metric)
    X, y, _ = split_target(X, y)
    table = ingest(split_offset(X, offset)[0], model.schema)
    if not table.n_rows:
        raise ValueError("X has no rows, so there is nothing to shuffle. Pass some.")
    weight = weights(sample_weight, table.n_rows)
    added = read_offset(model, X, table.n_rows, offset)
    rated, in_threads = _rating(model, shuffles.metric, y, weight, table.n_rows)

    def rating(scores: Floats) -> float:
        return rated(scores if added is None else scores + added)

    baseline = rating(table_scores(model, table, n_threads=n_threads))
    split_on = set(model.forest.feature[model.forest.is_split].tolist())
    used = [i for i in range(model.schema.n_features) if split_on & {i, *model.schema.parts_of(i)}]
    losses = np.zeros((shuffles.n_repeats, model.schema.n_features))

    # A user's metric may not be safe in threads: it rates the scores in this one.
    def ratings_or_scores(feature: int) -> list[Any]:
        scores = _shuffled_scores(model, table, feature, shuffles)
        return [rating(score) for score in scores] if in_threads else list(scores)

    n_workers = startable(min(n_threads, len(used), 1 + table.n_rows // _ROWS_WORTH_A_THREAD))
    results = _in_order(ratings_or_scores, used, n_workers)
    for feature, result in zip(used, results, strict=True):
        values = result if in_threads else [rating(score) for score in result]
        losses[:, feature] = np.array(values) - baseline
    return losses


def _in_order(work: Callable[[int], Any], items: list[int], n_workers: int) -> Iterator[Any]:
    """Yield the results of the items in their order, a few at a time in threads."""
    if n_workers <= 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(n_workers) as pool:
        step = 2 * n_workers  # so that not all results are in memory at once
        for first in range(0, len(items), step):
            yield from pool.map(work, items[first : first + step])


def _shuffled_scores(
    model: Model, table: Table, feature: int, shuffles: Shuffles
) -> Iterator[Floats]:
    """Yield the raw scores with the values of a feature shuffled, once for each repeat.

    Derived features are shuffled with their column.
    """
    features = [feature, *model.schema.parts_of(feature)]
    using, without = _divided(model, features, (shuffles.n_repeats - 1) * table.n_rows)
    constant = None if without is None else table_scores(without, table, n_threads=1)
    values = {one: table.columns.read(one) for one in features}
    columns = table.columns.select(range(model.schema.n_features))
    for order in shuffles.orders(feature, table.n_rows):
        for one, of_feature in values.items():
            column = core.Columns(table.n_rows)
            column.add(of_feature[order])
            columns.put(one, column)
        scores = table_scores(using, Table(columns, table.schema), n_threads=1)
        if constant is not None:
            scores += constant
            if model.combine == "mean":
                scores /= model.n_rounds
            scores += model.base_score
        yield scores


def _divided(model: Model, features: list[int], rows_saved: int) -> tuple[Model, Model | None]:
    """Return the trees with and without splits on some features, as sums without a base score.

    Return the model itself and None where the trees are combined by a median, or where the
    `rows_saved` by evaluating the second part once do not repay the cost of packing both parts.
    """
    forest = model.forest
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    uses = np.zeros(forest.n_trees, np.bool_)
    uses[tree[forest.is_split & np.isin(forest.feature, features)]] = True
    walks_saved = rows_saved * np.count_nonzero(~uses)
    if walks_saved <= _WALKS_WORTH_A_NODE * forest.n_nodes or model.combine == "median":
        return model, None
    sums: dict[str, Any] = {
        "combine": "sum",
        "trees_per_round": 1,
        "base_score": np.zeros(model.n_outputs),
    }
    using, without = (
        replace(model, forest=_some_trees(forest, chosen), **sums) for chosen in (uses, ~uses)
    )
    return using, without


def _some_trees(forest: Forest, chosen: NDArray[np.bool_]) -> Forest:
    size = np.diff(forest.tree_start)
    node = np.repeat(chosen, size)
    arrays = {name: getattr(forest, name) for name in ALL_DTYPES}
    arrays |= {name: array[node] for name, array in arrays.items() if len(array) == len(node)}
    arrays["tree_start"] = np.concatenate([[0], np.cumsum(size[chosen])])
    arrays["output"] = forest.output[chosen]
    sets = forest.level_set[node]
    arrays["level_sets"] = forest.level_sets[sets[sets >= 0]]
    arrays["level_set"] = np.where(sets >= 0, np.cumsum(sets >= 0) - 1, -1)
    return replace(forest, **arrays)


def _rating(
    model: Model, metric: object, y: Any, weight: Floats | None, n_rows: int
) -> tuple[Rating, bool]:
    """Return the metric of raw scores, lower is better, and whether threads may share it."""
    truth = _truth(model, y, n_rows)
    if _is_custom(metric):
        custom = metric if isinstance(metric, Metric) else Metric("metric", cast(Any, metric))
        custom_sign = -1.0 if custom.greater_is_better else 1.0
        values = truth.astype(np.float64)
        return lambda raw: custom_sign * custom(values, raw, weight), False
    function, greater = _named_metric(model, metric)
    sign = -1.0 if greater else 1.0
    if model.kind != "classifier" and model.n_outputs > 1 and not model.targets:
        raise ValueError(
            f"metric={metric!r} is not allowed: the model has {model.n_outputs} outputs for one "
            "target. Pass a function of (y, score, weight)."
        )
    columns = truth.reshape(n_rows, -1).T

    def rate(raw: Floats) -> float:
        pairs = zip(columns, _by_target(model, raw), strict=True)
        return sign * float(np.mean([function(y, predicted, weight) for y, predicted in pairs]))

    return rate, not is_sklearn(metric)


def _is_custom(metric: object) -> bool:
    """Whether a metric is a function of (y, score, weight), or an arboost.Metric."""
    return callable(metric) and not is_sklearn(metric)


def _named_metric(model: Model, metric: object) -> tuple[Callable[..., float], bool]:
    """Return the function of a named metric, by default the usual one; and its direction."""
    of_classes = model.kind == "classifier"
    if metric is None:
        metric = "log_loss" if of_classes else "rmse"
    return of_predictions(metric, of_classes=of_classes)


def _by_target(model: Model, raw: Floats) -> list[Floats]:
    """Return the class probabilities or predicted values of each target."""
    if model.kind == "classifier":
        found = probabilities(model, raw)
        return found if isinstance(found, list) else [found]
    return list(predictions(model, raw).reshape(len(raw), -1).T)


def _truth(model: Model, y: Any, n_rows: int) -> NDArray[Any]:
    """Return y as numbers or class codes, as metrics read it."""
    if np.shape(y)[1:] == (1,):
        y = np.ravel(y)
    given = target(y, n_rows, several=bool(model.targets))
    expected = (n_rows, len(model.targets)) if model.targets else (n_rows,)
    if given.shape != expected:
        raise ValueError(
            f"y has the shape {given.shape}, but the model predicts {expected}. Pass a column for "
            "each target."
        )
    if model.classes is None:
        return numbers_of(given)
    if not model.targets:
        return codes_of(given, model.classes, "y", "model").astype(np.intp)
    pairs = zip(given.T, model.classes, strict=True)
    codes = [codes_of(labels, classes, "y", "model") for labels, classes in pairs]
    return np.stack(codes, axis=1).astype(np.intp)
