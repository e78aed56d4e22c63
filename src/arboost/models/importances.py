"""Feature importances: by the gain, cover or number of splits, by permutation, by SHAP values.

A permutation importance is the increase of a metric when the values of a feature are shuffled.
For models of trees the table is read once and a shuffle replaces one column of it; trees without a
split on the feature are evaluated once for all shuffles, and a feature without any split is never
shuffled: its importance is exactly 0. Any other model predicts each shuffled table.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from arboost.backend import checked_threads, core, startable_threads
from arboost.data.feature_names import names_of, split_offset, split_target
from arboost.data.raw_table import is_sparse
from arboost.data.schema import Schema
from arboost.data.table import Table, as_array, ingest, is_records
from arboost.data.target import encode_known_labels, numeric_target, target, weights
from arboost.errors import InputTypeError, listing
from arboost.losses import links
from arboost.losses.metrics import Metric, is_sklearn, prediction_metric
from arboost.losses.ranking import refuse_ranker
from arboost.models import prediction, shap
from arboost.models.model import Model
from arboost.trees.forest import Floats, Integers

ByTarget: TypeAlias = Callable[[Floats], Sequence[Floats]]

SPLIT_KINDS = ("gain", "cover", "split")
IMPORTANCE_KINDS = (*SPLIT_KINDS, "permutation", "shap")


def importances(
    model: Model,
    kind: str = "gain",
    X: object = None,
    y: object = None,
    shuffles: Shuffles | None = None,
    *,
    sample_weight: object = None,
    offset: object = None,
    n_threads: int = 1,
) -> Floats:
    """Importances of `arboost.Predictor.importances`, shape (n_features,).

    Parameters
    ----------
    model : Model
    kind : {"gain", "cover", "split", "permutation", "shap"}, default="gain"
    X, y, shuffles, sample_weight, offset, n_threads
        Arguments of `arboost.models.importances.loss_increases`; the importances are its mean
        over the repeats.

    Examples
    --------
    >>> from arboost import GradientBoostingRegressor
    >>> from arboost.models.importances import importances
    >>> model = GradientBoostingRegressor(n_estimators=3).fit([[0, 5], [1, 5]], [0, 1]).model_
    >>> importances(model, "split")
    array([3., 0.])
    """
    if kind not in IMPORTANCE_KINDS:
        raise ValueError(f"kind={kind!r} is not allowed: use one of {', '.join(IMPORTANCE_KINDS)}.")
    needed: dict[str, Any] = {"permutation": {"X": X, "y": y}, "shap": {"X": X}}.get(kind, {})
    absent = [name for name, value in needed.items() if value is None]
    if absent:
        raise ValueError(
            f"kind={kind!r} was asked for without {' and '.join(absent)}: it looks at the "
            f"predictions for rows. Pass {' and '.join(needed)}."
        )
    unused = {"y": y} if kind == "shap" else {"X": X, "y": y, "sample_weight": sample_weight}
    unused["offset"] = offset
    passed = [name for name, value in unused.items() if value is not None]
    if shuffles is not None:
        passed += shuffles.changed()
    if kind != "permutation" and passed:
        raise ValueError(
            f"kind={kind!r} does not look at {' and '.join(passed)}, but it was passed. Leave it "
            'out, or use kind="permutation".'
        )
    if kind in SPLIT_KINDS:
        return split_importances(model, kind)
    if kind == "shap":
        return _mean_shap(model, X, sample_weight, n_threads)
    losses = loss_increases(
        model, X, y, shuffles, sample_weight=sample_weight, offset=offset, n_threads=n_threads
    )
    mean: Floats = losses.mean(axis=0)
    return mean


def _mean_shap(model: Model, X: object, sample_weight: object, n_threads: int) -> Floats:
    """Mean of |SHAP value| over the rows, summed over the outputs."""
    values = np.abs(shap.shap_values(model, X, None, n_threads=n_threads))
    if not len(values):
        raise ValueError("X has no rows, but the importance is a mean over rows. Pass some.")
    by_feature = values.reshape(*values.shape[:2], -1).sum(axis=2)
    mean: Floats = np.average(by_feature, axis=0, weights=weights(sample_weight, len(values)))
    return mean


def split_importances(model: Model, kind: str) -> Floats:
    """Total of a split statistic for each feature, shape (n_features,).

    Parameters
    ----------
    model : Model
    kind : {"gain", "cover", "split"}
        Total gain of the splits on a feature, total of their covers, or their number.
    """
    forest = model.forest
    split = forest.is_split
    weight = None if kind == "split" else getattr(forest, kind)[split]
    total = np.bincount(forest.feature[split], weight, minlength=model.schema.n_features)
    return total.astype(np.float64)


def sum_by_column(importances: Floats, schema: Schema) -> Floats:
    """Importances of the columns: those of derived features are added; last axis."""
    totals = importances[..., : schema.n_columns].copy()
    for feature, (column, _) in enumerate(schema.parts, schema.n_columns):
        totals[..., column] += importances[..., feature]
    return totals


def tree_importances(model: Model) -> Floats:
    """Share of each feature in the gains of each tree, shape (n_trees, n_features).

    The shares are 0 for trees without a split.
    """
    forest, n_features = model.forest, model.schema.n_features
    split = forest.is_split
    cell = forest.tree_of_node[split] * n_features + forest.feature[split]
    total_gain = np.bincount(cell, forest.gain[split], minlength=model.n_trees * n_features)
    gain = total_gain.astype(np.float64).reshape(model.n_trees, n_features)
    total = gain.sum(axis=1, keepdims=True)
    shares: Floats = np.divide(gain, total, out=np.zeros_like(gain), where=total > 0)
    return shares


# ---- permutation ----


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
            value = getattr(self, name)
            is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
            if not is_integer or not low <= value <= high:
                public_name = "random_state" if name == "seed" else name
                raise ValueError(
                    f"{public_name}={value!r} is not allowed: use a whole number from {low} to "
                    f"{high}."
                )

    def orders(self, feature: int, n_rows: int) -> Iterator[Integers]:
        """Yield an order of the rows for each repeat."""
        for repeat in range(self.n_repeats):
            seed = [self.seed, feature, repeat]
            yield np.random.Generator(np.random.PCG64(seed)).permutation(n_rows)

    def changed(self) -> list[str]:
        """Public names of the settings that differ from their defaults."""
        names = {"metric": "metric", "n_repeats": "n_repeats", "seed": "random_state"}
        return [names[name] for name in names if getattr(self, name) != getattr(Shuffles, name)]


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
    """Permutation importances of every repeat; `Predictor.importances` is their mean.

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
    if isinstance(fitted, Model):
        return loss_increases(
            fitted,
            X,
            y,
            shuffles,
            sample_weight=sample_weight,
            offset=offset,
            n_threads=checked_threads(n_jobs),
        )
    if offset is not None:
        raise ValueError(
            f"offset is not allowed with a {type(model).__name__}: only gradient boosting has "
            "an offset. Leave it out."
        )
    X, y, _ = split_target(X, y)
    weight = weights(sample_weight, len(y) if hasattr(y, "__len__") else 0)
    return table_increases(model, X, y, weight, shuffles)


# ---- permutation in a model of trees ----


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
    """Increases of the metric, shape (n_repeats, n_features).

    Every repeat of every feature has its own order of the rows, which depends on nothing but the
    seed and the number of rows. Features are shuffled concurrently; the result does not depend on
    ``n_threads``.
    """
    shuffles = shuffles or Shuffles()
    of_classes = model.kind == "classifier"
    metric = ("log_loss" if of_classes else "rmse") if shuffles.metric is None else shuffles.metric
    if not _is_custom(metric):
        refuse_ranker(model, "permutation importance by a built-in metric")
        prediction_metric(metric, of_classes=of_classes)  # raises before the table is read
        if not of_classes and model.n_outputs > 1 and not model.targets:
            raise ValueError(
                f"metric={metric!r} is not allowed: the model has {model.n_outputs} outputs for "
                "one target. Pass a function of (y, score, weight)."
            )
    X, y, _ = split_target(X, y)
    table = ingest(split_offset(X, offset)[0], model.schema)
    if not table.n_rows:
        raise ValueError("X has no rows, so there is nothing to shuffle. Pass some.")
    weight = weights(sample_weight, table.n_rows)
    added = links.read_offset(model, X, table.n_rows, offset)
    truth = _truth(model, y, table.n_rows)
    loss_of_raw = _loss(metric, truth, weight, partial(_by_target, model), of_classes=of_classes)

    def loss(scores: Floats) -> float:
        return loss_of_raw(scores if added is None else scores + added)

    in_threads = not callable(metric)  # a user's metric may not be safe in them
    baseline = loss(prediction.table_scores(model, table, n_threads=n_threads))
    split_on = set(model.forest.feature[model.forest.is_split].tolist())
    used = [i for i in range(model.schema.n_features) if split_on & {i, *model.schema.parts_of(i)}]
    losses = np.zeros((shuffles.n_repeats, model.schema.n_features))

    def losses_or_scores(feature: int) -> list[Any]:
        scores = _shuffled_scores(model, table, feature, shuffles)
        return [loss(score) for score in scores] if in_threads else list(scores)

    n_workers = startable_threads(
        min(n_threads, len(used), 1 + table.n_rows // _ROWS_WORTH_A_THREAD)
    )
    results = _in_order(losses_or_scores, used, n_workers)
    for feature, result in zip(used, results, strict=True):
        values = result if in_threads else [loss(score) for score in result]
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
    constant = None if without is None else prediction.table_scores(without, table, n_threads=1)
    values = {index: table.columns.read(index) for index in features}
    columns = table.columns.select(range(model.schema.n_features))
    for order in shuffles.orders(feature, table.n_rows):
        for index, column_values in values.items():
            column = core.Columns(table.n_rows)
            column.add(column_values[order])
            columns.put(index, column)
        scores = prediction.table_scores(using, Table(columns, table.schema), n_threads=1)
        if constant is not None:
            scores += constant
            if model.combine == "mean":
                scores /= model.n_rounds
            scores += model.base_score
        yield scores


def _divided(model: Model, features: list[int], rows_saved: int) -> tuple[Model, Model | None]:
    """Trees with and without splits on some features, as sums without a base score.

    Return the model itself and None where the trees are combined by a median, or where the
    `rows_saved` by evaluating the second part once do not repay the cost of packing both parts.
    """
    forest = model.forest
    uses = np.zeros(forest.n_trees, np.bool_)
    uses[forest.tree_of_node[forest.is_split & np.isin(forest.feature, features)]] = True
    walks_saved = rows_saved * np.count_nonzero(~uses)
    if walks_saved <= _WALKS_WORTH_A_NODE * forest.n_nodes or model.combine == "median":
        return model, None
    sums: dict[str, Any] = {
        "combine": "sum",
        "trees_per_round": 1,
        "base_score": np.zeros(model.n_outputs),
    }
    using, without = (
        replace(model, forest=forest.with_trees(chosen), **sums) for chosen in (uses, ~uses)
    )
    return using, without


def _is_custom(metric: object) -> bool:
    """Whether a metric is a function of (y, score, weight), or an arboost.Metric."""
    return callable(metric) and not is_sklearn(metric)


def _loss(
    metric: object,
    truth: NDArray[Any],
    weight: Floats | None,
    by_target: ByTarget,
    *,
    of_classes: bool,
) -> Callable[[Floats], float]:
    """Metric as a function of scores, lower is better: of a named one the mean over the targets.

    `by_target` divides scores into predictions of each target.
    """
    if _is_custom(metric):
        custom = metric if isinstance(metric, Metric) else Metric("metric", cast(Any, metric))
        custom_sign, numbers_of_y = -1.0 if custom.greater_is_better else 1.0, truth.astype(float)
        return lambda scores: custom_sign * custom(numbers_of_y, scores, weight)
    function, greater_is_better = prediction_metric(metric, of_classes=of_classes)
    sign, truths = -1.0 if greater_is_better else 1.0, truth.reshape(len(truth), -1).T

    def loss(scores: Floats) -> float:
        pairs = zip(truths, by_target(scores), strict=True)
        return sign * float(np.mean([function(y, values, weight) for y, values in pairs]))

    return loss


def _by_target(model: Model, raw: Floats) -> list[Floats]:
    """Class probabilities or predicted values of each target."""
    if model.kind == "classifier":
        by_target = links.probabilities(model, raw)
        return by_target if isinstance(by_target, list) else [by_target]
    return list(links.predictions(model, raw).reshape(len(raw), -1).T)


def _truth(model: Model, y: Any, n_rows: int) -> NDArray[Any]:
    """Numbers or class codes of y, as metrics read them."""
    if np.shape(y)[1:] == (1,):
        y = np.ravel(y)
    truth = target(y, n_rows, several=bool(model.targets))
    expected = (n_rows, len(model.targets)) if model.targets else (n_rows,)
    if truth.shape != expected:
        raise ValueError(
            f"y has the shape {truth.shape}, but the model predicts {expected}. Pass a column for "
            "each target."
        )
    if model.classes is None:
        return numeric_target(truth)
    if not model.targets:
        return encode_known_labels(truth, model.classes, "y", "model").astype(np.intp)
    pairs = zip(truth.T, model.classes, strict=True)
    codes = [encode_known_labels(labels, classes, "y", "model") for labels, classes in pairs]
    return np.stack(codes, axis=1).astype(np.intp)


# ---- permutation in tables of any model ----


def table_increases(
    model: Any, X: Any, y: object, weight: Floats | None, shuffles: Shuffles
) -> Floats:
    """Increases of a metric of predictions, shape (n_repeats, n_features).

    Parameters
    ----------
    model : object with ``predict``, and ``predict_proba`` where classes have probabilities
    X : table of shape (n_rows, n_features)
    y : array of shape (n_rows,) or (n_rows, n_targets)
    weight : float64 array of shape (n_rows,), or None
    shuffles : Shuffles
    """
    table = X if names_of(X) is not None or is_sparse(X) else as_array(X)
    columns = _column_indices(model, table)
    loss, n_rows = _loss_of_table(model, table, y, weight, shuffles.metric)
    baseline = loss(table)
    losses = [
        [loss(_shuffled(table, column, order)) for order in shuffles.orders(feature, n_rows)]
        for feature, column in enumerate(columns)
    ]
    increases: Floats = np.array(losses).T - baseline
    return increases


def feature_labels(model: Any, X: Any) -> list[str]:
    """Names of the features, in the order of `table_increases`."""
    names = names_of(X)
    columns = _column_indices(model, X if names is not None or is_sparse(X) else as_array(X))
    return [f"x{i}" if names is None else str(names[i]) for i in columns]


def _column_indices(model: Any, X: Any) -> list[int]:
    """Columns of the features in a table, in their order in fit."""
    names = names_of(X)
    if names is None:
        return list(range(X.shape[1]))
    schema = getattr(model, "schema", None)
    known = getattr(model, "feature_names_in_", None) if schema is None else schema.columns
    if known is None:
        return list(range(len(names)))
    missing = [name for name in known if name not in names]
    if missing:
        raise ValueError(
            f"X lacks the columns {listing(map(repr, missing))} of fit. Pass a table that has them."
        )
    return [names.index(name) for name in known]


def _shuffled(X: Any, column: int, order: Integers) -> Any:
    """Table with the rows of one column in another order, in the type of the table."""
    if is_sparse(X):
        shuffled = X.tocsc(copy=True)
        entries = slice(shuffled.indptr[column], shuffled.indptr[column + 1])
        shuffled.indices[entries] = np.argsort(order)[shuffled.indices[entries]]
        shuffled.has_sorted_indices = False
        return shuffled.asformat(X.format)
    if isinstance(X, Mapping):
        name = list(X)[column]
        return {**X, name: [X[name][row] for row in order.tolist()]}
    if is_records(X):
        name = (names_of(X) or [])[column]
        pairs = zip(X, order.tolist(), strict=True)
        return [{**record, name: X[row].get(name)} for record, row in pairs]
    if hasattr(X, "set_column"):  # of PyArrow
        return X.set_column(column, X.schema.field(column), X.column(column).take(order))
    if hasattr(X, "to_series"):  # of Polars
        return X.with_columns(X.to_series(column).gather(order))
    shuffled = X.copy()
    if hasattr(X, "iloc"):
        shuffled.isetitem(column, X.iloc[order, column].array)
    else:
        shuffled[:, column] = X[order, column]
    return shuffled


def _loss_of_table(
    model: Any, X: Any, y: Any, weight: Floats | None, metric: object
) -> tuple[Callable[[Any], float], int]:
    """Metric of the predictions of a table, lower is better, and the number of rows."""
    if not callable(getattr(model, "predict", None)):
        raise InputTypeError(
            f"model is a {type(model).__name__} without a method predict: pass a fitted estimator, "
            "or the result of arboost.load."
        )
    classes = getattr(model, "classes_", getattr(model, "classes", None))
    if isinstance(classes, list | tuple):
        raise InputTypeError(
            "Permutation importances of several targets with classes are there for models of trees "
            "alone. Pass the members."
        )
    truth: NDArray[Any] = target(
        y, len(y) if hasattr(y, "__len__") else 0, several=classes is None and np.ndim(y) > 1
    )
    if classes is None:
        truth = numeric_target(truth)
    else:
        truth = encode_known_labels(truth, np.asarray(classes), "y", "model").astype(np.intp)
    has_probabilities = _has_probabilities(model, X)

    def predict(table: Any) -> Floats:
        if classes is None:
            return np.asarray(model.predict(table), np.float64)
        if has_probabilities:
            return np.asarray(model.predict_proba(table), np.float64)
        labels = np.asarray(model.predict(table))[:, np.newaxis]
        votes: Floats = np.equal(labels, classes).astype(np.float64)
        return votes

    if metric is None:
        metric = "rmse" if classes is None else "log_loss" if has_probabilities else "accuracy"

    def by_target(predicted: Floats) -> Sequence[Floats]:
        return list(predicted.reshape(len(truth), -1).T) if classes is None else [predicted]

    loss = _loss(metric, truth, weight, by_target, of_classes=classes is not None)
    return lambda table: loss(predict(table)), len(truth)


def _has_probabilities(model: Any, X: Any) -> bool:
    """Whether a model has class probabilities; hard votes have the method alone."""
    try:
        return callable(getattr(model, "predict_proba", None)) and len(model.predict_proba(X)) > 0
    except (AttributeError, TypeError):
        return False
