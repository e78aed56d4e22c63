"""Metrics: predictions or raw scores -> one number, for evaluation and early stopping.

A metric is a name of any library, a function of scikit-learn, a user's function or a `Metric`. The
default metric of a fit is the loss itself.

A built-in metric is a few lines of NumPy: one pass, or one sort, over the rows. Weights are None
where all rows count alike. Ratios without rows are 0, and means leave out classes that neither y
nor the predictions have, as in scikit-learn.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.errors import InputTypeError, ParameterError, ParameterTypeError, listing
from arboost.losses.base import Floats, Loss, Target, read_only
from arboost.losses.curves import Mask, rank_steps
from arboost.losses.links import CLASS_LINKS, LINKS
from arboost.losses.losses import FromFunctions
from arboost.losses.ranking import (
    DEFAULT_METRIC,
    RankingLoss,
    RankMetric,
    checked_rank_metric,
    query_weights,
    ranked_target,
)
from arboost.params.suggestions import (
    is_metric,
    metric_name,
    metric_suggestion,
    rank_metric_name,
)

Codes = NDArray[np.intp]
Matrix = NDArray[np.float64]
OfMatrix = Callable[[Matrix], float]
ByClass = Callable[[Matrix], Floats]
Function = Callable[[Any, Floats, Floats | None], float]

_MOST_NAMES = 20  # in a message
_FUNCTION_ADVICE = "A function of (y, score, weight) or an arboost.Metric is allowed, too."
_TWO_CLASSES = 2
# The log loss of a probability of 0 would be infinite; this is scikit-learn's bound.
_SMALLEST_PROBABILITY = float(np.finfo(np.float64).eps)


class BuiltIn(NamedTuple):
    """A built-in metric: its function of (y, predictions, weight), and its text in the docs."""

    function: Function
    text: str
    greater_is_better: bool = False


def _mean(values: NDArray[Any], weight: Floats | None) -> float:
    return float(np.average(values, weights=weight))


# ---- metrics of predicted values ----


def _mse(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    return _mean(np.square(predicted - y), weight)


def _rmse(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    return float(np.sqrt(_mse(y, predicted, weight)))


def _mae(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    return _mean(np.abs(predicted - y), weight)


def _mape(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    scale = np.maximum(np.abs(y), np.finfo(np.float64).eps)
    return _mean(np.abs(predicted - y) / scale, weight)


def _smape(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    scale = np.maximum(np.abs(y) + np.abs(predicted), np.finfo(np.float64).tiny)
    return _mean(2.0 * np.abs(predicted - y) / scale, weight)


def _msle(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    _require_above("msle", "y", y, -1.0)
    _require_above("msle", "predictions", predicted, -1.0)
    return _mean(np.square(core.log(1.0 + predicted) - core.log(1.0 + y)), weight)


def _rmsle(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    return float(np.sqrt(_msle(y, predicted, weight)))


def _median_absolute_error(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    """Median; with weights the mean of the least and the greatest weighted median."""
    errors = np.abs(predicted - y)
    if weight is None:
        return float(np.median(errors))
    order = np.argsort(errors, kind="stable")
    below = np.cumsum(weight[order])
    sides = [np.searchsorted(below, below[-1] / 2.0, side=side) for side in ("left", "right")]
    return float(errors[order[np.minimum(sides, len(order) - 1)]].mean())


def _max_error(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    return float(np.abs(predicted - y).max())


def _r2(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    return _share_explained(_variance(y, weight), _mse(y, predicted, weight))


def _explained_variance(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    return _share_explained(_variance(y, weight), _variance(predicted - y, weight))


def _variance(values: Floats, weight: Floats | None) -> float:
    return _mean(np.square(values - _mean(values, weight)), weight)


def _share_explained(spread: float, error: float) -> float:
    if spread == 0.0:  # y is constant: 1 for perfect predictions, else 0, as in scikit-learn
        return float(error == 0.0)
    return 1.0 - error / spread


def poisson_deviances(y: Floats, predicted: Floats) -> Floats:
    """Poisson deviance of each row."""
    log_ratio = core.log(np.where(y > 0.0, y, predicted) / predicted)
    return 2.0 * (y * log_ratio - y + predicted)


def _poisson_deviance(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    _require_above("poisson_deviance", "predictions", predicted, 0.0)
    _require_above("poisson_deviance", "y", y, 0.0, low_too=True)
    return _mean(poisson_deviances(y, predicted), weight)


def gamma_deviances(y: Floats, predicted: Floats) -> Floats:
    """Gamma deviance of each row."""
    return 2.0 * (core.log(predicted / y) + y / predicted - 1.0)


def _gamma_deviance(y: Floats, predicted: Floats, weight: Floats | None) -> float:
    _require_above("gamma_deviance", "predictions", predicted, 0.0)
    _require_above("gamma_deviance", "y", y, 0.0)
    return _mean(gamma_deviances(y, predicted), weight)


def tweedie_deviances(y: Floats, predicted: Floats, power: float) -> Floats:
    """Tweedie deviance of each row, of a power above 1 and below 2."""
    a, b = 1.0 - power, 2.0 - power
    log_y, log_predicted = core.log(y), core.log(predicted)
    terms: Floats = (
        core.exp(b * log_y) / (a * b)
        - y * core.exp(a * log_predicted) / a
        + core.exp(b * log_predicted) / b
    )
    return 2.0 * terms


def tweedie_deviance(
    y: Floats, predicted: Floats, weight: Floats | None, power: float = 1.5
) -> float:
    """Deviance of powers above 1 and below 2; y >= 0."""
    _require_above("tweedie_deviance", "predictions", predicted, 0.0)
    _require_above("tweedie_deviance", "y", y, 0.0, low_too=True)
    return _mean(tweedie_deviances(y, predicted, power), weight)


def _require_above(
    metric: str, name: str, values: Floats, low: float, *, low_too: bool = False
) -> None:
    lowest = float(values.min())
    if lowest < low or (lowest == low and not low_too):
        allowed = f"of at least {low:g}" if low_too else f"above {low:g}"
        raise ParameterError(
            f"eval_metric={metric!r} needs {name} {allowed}, but the lowest is {lowest:g}. Use a "
            'loss of positive predictions such as "poisson", or another metric.',
            parameter="eval_metric",
        )


# ---- metrics of class probabilities (n_rows, n_classes) ----


def log_losses(y: Codes, p: Floats) -> Floats:
    """Negative logarithm of the probability of the class of each row."""
    right = np.take_along_axis(p, y[:, None], axis=1)[:, 0]
    losses: Floats = -core.log(right.clip(min=_SMALLEST_PROBABILITY))
    return losses


def _log_loss(y: Codes, p: Floats, weight: Floats | None) -> float:
    return _mean(log_losses(y, p), weight)


def _accuracy(y: Codes, p: Floats, weight: Floats | None) -> float:
    return _mean(p.argmax(axis=1) == y, weight)


def _error(y: Codes, p: Floats, weight: Floats | None) -> float:
    return _mean(p.argmax(axis=1) != y, weight)


def brier_scores(y: Codes, p: Floats) -> Floats:
    """Square of p - onehot(y): of one column for two classes, else summed over all columns."""
    if p.shape[1] == _TWO_CLASSES:
        squares: Floats = np.square(p[:, 1] - y)
        return squares
    errors = p.copy()
    np.put_along_axis(errors, y[:, None], np.take_along_axis(p, y[:, None], axis=1) - 1.0, axis=1)
    total: Floats = np.square(errors).sum(axis=1)
    return total


def _brier(y: Codes, p: Floats, weight: Floats | None) -> float:
    return _mean(brier_scores(y, p), weight)


# ---- metrics of predicted classes ----


def confusion_matrix(y: Codes, predicted: Codes, n_classes: int, weight: Floats | None) -> Matrix:
    """Weight of the rows of each class, by row, and of each predicted class, by column."""
    cells = np.bincount(y * n_classes + predicted, weight, minlength=n_classes**2)
    return cells.reshape(n_classes, n_classes).astype(np.float64)


def of_confusion(value: OfMatrix) -> Function:
    """A function of the confusion matrix as one of (y, probabilities, weight)."""

    def metric(y: Codes, p: Floats, weight: Floats | None) -> float:
        return float(value(confusion_matrix(y, p.argmax(axis=1), p.shape[1], weight)))

    return metric


def precision(matrix: Matrix) -> Floats:
    """The share of right predictions of each class."""
    return _ratio(matrix.diagonal(), matrix.sum(axis=0))


def recall(matrix: Matrix) -> Floats:
    """The share of the rows of each class that are predicted."""
    return _ratio(matrix.diagonal(), matrix.sum(axis=1))


def f1(matrix: Matrix) -> Floats:
    """The harmonic mean of precision and recall of each class."""
    return _ratio(2.0 * matrix.diagonal(), matrix.sum(axis=0) + matrix.sum(axis=1))


def of_second_class(by_class: ByClass) -> OfMatrix:
    """The value of the second of two classes, and of more classes the mean."""

    def value(matrix: Matrix) -> float:
        return float(by_class(matrix)[1]) if len(matrix) == _TWO_CLASSES else mean(matrix)

    mean = macro(by_class)
    return value


def macro(by_class: ByClass) -> OfMatrix:
    """The mean over the classes."""

    def value(matrix: Matrix) -> float:
        present = (matrix.sum(axis=0) + matrix.sum(axis=1)) > 0.0
        return float(by_class(matrix)[present].mean())

    return value


def weighted(by_class: ByClass) -> OfMatrix:
    """The mean over the classes, weighted by their rows."""
    return lambda matrix: float(np.average(by_class(matrix), weights=matrix.sum(axis=1)))


def balanced_accuracy(matrix: Matrix) -> float:
    """The mean recall over the classes of y."""
    return float(recall(matrix)[matrix.sum(axis=1) > 0.0].mean())


def matthews(matrix: Matrix) -> float:
    """The correlation of y and predictions, 0 where either has one class only."""
    total, right = matrix.sum(), matrix.diagonal().sum()
    y, predicted = matrix.sum(axis=1), matrix.sum(axis=0)
    covariance = right * total - (y * predicted).sum()
    spread = (total**2 - (y**2).sum()) * (total**2 - (predicted**2).sum())
    return float(covariance / np.sqrt(spread)) if spread > 0.0 else 0.0


def kappa(matrix: Matrix) -> float:
    """The agreement beyond that of chance, 0 where chance always agrees."""
    total = matrix.sum()
    right = matrix.diagonal().sum() / total
    chance = (matrix.sum(axis=0) * matrix.sum(axis=1)).sum() / total**2
    return float((right - chance) / (1.0 - chance)) if chance < 1.0 else 0.0


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0.0)


# ---- metrics of the ranks of the scores ----


def _auc(positive: Mask, score: Floats, weight: Floats | None) -> float:
    """Probability that a positive row has a higher score than a negative one; ties count half."""
    above, others = rank_steps(positive, score, weight)
    _require_both("auc", above[-1], others[-1])
    before = np.concatenate(([0], above[:-1]))
    pairs = ((above + before) * np.diff(others, prepend=0)).sum()
    return float(pairs / (2.0 * above[-1] * others[-1]))


def _average_precision(positive: Mask, score: Floats, weight: Floats | None) -> float:
    """Mean precision over the positive rows, each at the threshold that just includes it."""
    above, others = rank_steps(positive, score, weight)
    _require_both("average_precision", above[-1], others[-1])
    precision = above / (above + others)
    return float((np.diff(above, prepend=0) * precision).sum() / above[-1])


def _require_both(name: str, positive: float, other: float) -> None:
    if positive == 0 or other == 0:
        raise ParameterError(
            f"eval_metric={name!r} is not defined where all rows are of one class, as in the "
            "evaluation data. Pass data that holds several classes, or use log_loss.",
            parameter="eval_metric",
        )


def _one_vs_rest(
    rank_metric: Function,
    y: Codes,
    p: Floats,
    weight: Floats | None,
) -> float:
    """One-vs-rest mean over the classes, weighted by their weight in y."""
    shares = np.bincount(y, weight, minlength=p.shape[1])
    present = np.flatnonzero(shares)
    values = [rank_metric(y == k, p[:, k], weight) for k in present]
    return float(np.average(values, weights=shares[present]))


VALUE_METRICS: Mapping[str, BuiltIn] = {
    "rmse": BuiltIn(_rmse, "Root of the mean squared error."),
    "mse": BuiltIn(_mse, "Mean squared error."),
    "mae": BuiltIn(_mae, "Mean absolute error."),
    "mape": BuiltIn(_mape, "Mean of abs(error) / abs(y), as a share."),
    "smape": BuiltIn(_smape, "Mean of 2 abs(error) / (abs(y) + abs(predicted)), from 0 to 2."),
    "rmsle": BuiltIn(_rmsle, "Root of `msle`."),
    "msle": BuiltIn(_msle, "Mean squared difference of log(1 + y) and log(1 + predicted)."),
    "median_absolute_error": BuiltIn(_median_absolute_error, "Median of abs(error)."),
    "max_error": BuiltIn(_max_error, "Largest abs(error)."),
    "r2": BuiltIn(_r2, "Coefficient of determination.", greater_is_better=True),
    "explained_variance": BuiltIn(
        _explained_variance, "R^2 of predictions without their bias.", greater_is_better=True
    ),
    "poisson_deviance": BuiltIn(_poisson_deviance, "Mean Poisson deviance."),
    "gamma_deviance": BuiltIn(_gamma_deviance, "Mean gamma deviance."),
    "tweedie_deviance": BuiltIn(
        tweedie_deviance, 'Mean Tweedie deviance of the power of loss="tweedie".'
    ),
}
RANK_METRICS: Mapping[str, Function] = {
    "auc": _auc,
    "average_precision": _average_precision,
}
_TWO = "of the second of two classes, else mean over the classes."
_CONFUSION = {
    "accuracy": (_accuracy, "Share of the right classes."),
    "balanced_accuracy": (of_confusion(balanced_accuracy), "Mean recall over the classes."),
    "f1": (of_confusion(of_second_class(f1)), f"Harmonic mean of precision and recall {_TWO}"),
    "f1_macro": (of_confusion(macro(f1)), "Mean F1 over the classes."),
    "f1_weighted": (of_confusion(weighted(f1)), "Mean F1, classes weighted by their rows."),
    "precision": (of_confusion(of_second_class(precision)), f"Precision {_TWO}"),
    "precision_macro": (of_confusion(macro(precision)), "Mean precision over the classes."),
    "precision_weighted": (
        of_confusion(weighted(precision)),
        "Mean precision, classes weighted by their rows.",
    ),
    "recall": (of_confusion(of_second_class(recall)), f"Recall {_TWO}"),
    "recall_macro": (of_confusion(macro(recall)), "Mean recall over the classes."),
    "recall_weighted": (
        of_confusion(weighted(recall)),
        "Mean recall, classes weighted by their rows.",
    ),
    "matthews": (of_confusion(matthews), "Matthews correlation coefficient."),
    "kappa": (of_confusion(kappa), "Cohen's kappa."),
}
PROBABILITY_METRICS: Mapping[str, BuiltIn] = {
    "log_loss": BuiltIn(_log_loss, "Mean negative logarithm of the probability of y."),
    "auc": BuiltIn(
        partial(_one_vs_rest, _auc),
        "Area under the ROC curve; one-vs-rest for three classes and more, weighted by their rows.",
        greater_is_better=True,
    ),
    "average_precision": BuiltIn(
        partial(_one_vs_rest, _average_precision),
        "Mean precision over the thresholds of the recall; several classes as for `auc`.",
        greater_is_better=True,
    ),
    **{name: BuiltIn(*metric, greater_is_better=True) for name, metric in _CONFUSION.items()},
    "error": BuiltIn(_error, "Share of the wrong classes."),
    "brier": BuiltIn(_brier, "Mean squared error of the probabilities."),
}


# ---- metrics of raw scores ----


@dataclass(frozen=True)
class Metric:
    """A metric: its name, its function of raw scores, and whether greater is better.

    Parameters
    ----------
    name : str
        Name of the results in ``evals_result_``.
    function : callable (y, score, weight) -> float
        `y` holds numbers, for a classifier the index of the class; `score` the raw scores before
        the link, of shape (n_rows,), or (n_rows, n_outputs) where there are several outputs;
        `weight` the weights of the rows, 1 where none were given.
    greater_is_better : bool, default=False

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import Metric
    >>> worst = Metric("worst", lambda y, score, weight: np.abs(y - score).max())
    >>> worst(np.array([1.0, 2.0]), np.array([1.5, 2.0]), None)
    0.5
    """

    name: str
    function: Function
    greater_is_better: bool = False

    _needs_weights: ClassVar[bool] = True

    def of_target(self, target: Target, score: Floats) -> float:
        """The metric of the rows of a target."""
        return self(target.y, score, target.weight)

    def __call__(self, y: Floats, score: Floats, weight: Floats | None) -> float:
        """The metric of raw scores of shape (n_rows, n_outputs) or (n_rows,).

        The function gets read-only arrays: training continues from the same scores.
        """
        # One output as a vector: an (n, 1) matrix minus a vector would be an n x n matrix.
        flat = score[:, 0] if score.ndim > 1 and score.shape[1] == 1 else score
        if weight is None and self._needs_weights:
            weight = np.broadcast_to(1.0, y.shape)  # costs no memory
        result = self.function(
            read_only(y), read_only(flat), None if weight is None else read_only(weight)
        )
        if isinstance(result, np.ndarray) and result.ndim == 0:
            result = result.item()
        if isinstance(result, bool | np.bool_) or not isinstance(result, numbers.Real):
            raise InputTypeError(
                f"the metric {self.name!r} returned {result!r} ({type(result).__name__}), but a "
                "metric must return one number. Return a float."
            )
        return float(result)


class _BuiltIn(Metric):
    """A built-in metric: without weights it counts rows, faster and exactly."""

    _needs_weights = False


@dataclass(frozen=True)
class LossMetric(_BuiltIn):
    """The loss itself, times a factor, as a metric; one of `core.loss_value`.

    `kernel` and `parameters` are its arguments.
    """

    factor: float = 1.0
    kernel: str = ""
    parameters: tuple[float, ...] = ()


@dataclass(frozen=True)
class QueryMetric(_BuiltIn):
    """A metric of rankings, which needs the queries of a target."""

    ranking: RankMetric = field(kw_only=True)
    n_threads: int = 1

    @classmethod
    def of(cls, name: str, gain: str, n_threads: int) -> QueryMetric:
        """The metric of a checked name."""

        def refuse(y: Floats, score: Floats, weight: Floats | None) -> float:
            raise ValueError(f"the metric {name!r} needs the queries of the rows.")

        ranking = RankMetric.of_name(name, gain)
        return cls(name, refuse, greater_is_better=True, ranking=ranking, n_threads=n_threads)

    def of_target(self, target: Target, score: Floats) -> float:
        """The mean over the queries of a target."""
        return self.ranking.of_target(target, score, self.n_threads)


@dataclass(frozen=True)
class QueryScores:
    """Scores of the documents of queries, and their metrics query by query.

    Attributes
    ----------
    rows : Target
    scores : float64 array of shape (n_rows,)
    gain : {"exponential", "linear"}
    """

    rows: Target
    scores: Floats
    gain: str

    @classmethod
    def of(cls, y: object, scores: Floats, qid: object, weight: object, gain: str) -> Self:
        """The rows of weights above 0, checked."""
        return cls(*ranked_target(y, scores, qid, weight, gain), gain)

    @staticmethod
    def checked(name: object) -> str:
        """The name here of a metric of rankings; raise ValueError for any other."""
        return checked_rank_metric(name)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.scores)

    @property
    def weight(self) -> Floats | None:
        """The weight of each query; None for 1."""
        return query_weights(self.rows)

    def values(self, name: str) -> Floats:
        """A metric of each query, by its checked name."""
        return RankMetric.of_name(name, self.gain).by_query(self.rows, self.scores, 1)

    def mean(self, name: str) -> float:
        """The mean over the queries."""
        return float(np.average(self.values(name), weights=self.weight))

    def mean_of_orders(self, name: str) -> float:
        """The mean over the queries and over all orders of their documents."""
        return QueryScores(self.rows, np.zeros_like(self.scores), self.gain).mean(name)


def find_metric(metric: object, loss: Loss, n_threads: int = 1) -> Metric:
    """Metric of a user's argument: a name, a function, a Metric, or None for the loss.

    Raises
    ------
    ValueError
        A name that is unknown, or that does not fit the loss; None for a loss without values.
    TypeError
        Something else.
    """
    if isinstance(loss, RankingLoss) and (metric is None or isinstance(metric, str)):
        return _query_metric(metric, loss, n_threads)
    if metric is None:
        return _loss_metric(loss, n_threads)
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        return _named_metric(metric, loss, n_threads)
    if is_sklearn(metric):
        return _sklearn_metric_of_scores(metric, loss, n_threads)
    if callable(metric):
        return Metric(getattr(metric, "__name__", type(metric).__name__), metric)
    raise ParameterTypeError(
        f"eval_metric={metric!r} ({type(metric).__name__}) is not allowed: it must be a name, a "
        "function of (y, score, weight), an arboost.Metric, or a list of them. Use one of "
        f"{listing(_allowed(loss), _MOST_NAMES)}.",
        parameter="eval_metric",
    )


def find_metrics(metrics: object, loss: Loss, n_threads: int = 1) -> tuple[Metric, ...]:
    """Metrics of an argument of `find_metric`, or of a list of them; their names differ."""
    several: Sequence[object] = metrics if isinstance(metrics, list | tuple) else [metrics]
    if not several:
        raise ParameterError(
            "eval_metric=[] is not allowed: the list must hold a metric. Use eval_metric=None for "
            "the loss itself.",
            parameter="eval_metric",
        )
    checked = tuple(find_metric(metric, loss, n_threads) for metric in several)
    names = [metric.name for metric in checked]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(
                f"eval_metric holds {names.count(name)} metrics called {name!r}, but results go by "
                "name. Leave one out, or give it another name with arboost.Metric(name, function).",
                parameter="eval_metric",
            )
    return checked


def prediction_metric(metric: object, *, of_classes: bool) -> tuple[Function, bool]:
    """A metric's function (y, predicted, weight), and whether greater is better.

    The metric is a name, or a function of scikit-learn. Predictions are class probabilities
    (n_rows, n_classes), with y the index of the class, or else values (n_rows,). No loss is needed,
    so any kind of model can be evaluated.
    """
    if is_sklearn(metric):
        wrapped = sklearn_metric(metric, of_classes=of_classes)
        if not isinstance(wrapped, str):
            return wrapped[1:]
        metric = wrapped
    if not isinstance(metric, str):
        raise InputTypeError(
            f"metric={metric!r} ({type(metric).__name__}) is not allowed: it must be a name, a "
            "function of (y, score, weight), an arboost.Metric, or None."
        )
    metrics = PROBABILITY_METRICS if of_classes else VALUE_METRICS
    name = metric_name(metric)
    if name is None:
        reason = metric_suggestion(metric, list(metrics))
        problem = f"metric={metric!r} is not allowed: {reason}"
        raise ParameterError(problem, _FUNCTION_ADVICE, parameter="metric")
    if name not in metrics:
        kind = "classifier" if of_classes else "regressor"
        raise ParameterError(
            f"metric={metric!r} is not allowed for a {kind}: use one of "
            f"{listing(metrics, _MOST_NAMES)}.",
            _FUNCTION_ADVICE,
            parameter="metric",
        )
    rank_metric, built_in = RANK_METRICS.get(name), metrics[name]

    def value(y: Floats, predicted: Floats, weight: Floats | None) -> float:
        if rank_metric is not None and predicted.shape[1] == _TWO_CLASSES:
            return rank_metric(y == 1, predicted[:, 1], weight)  # of the second class, as in a fit
        return float(built_in.function(y, predicted, weight))

    return value, built_in.greater_is_better


def _loss_metric(loss: Loss, n_threads: int) -> Metric:
    if isinstance(loss, FromFunctions) and loss.functions.value is None:
        raise ParameterError(
            f"the loss {loss.name!r} has no function `value`, so there is nothing to measure "
            "on the validation rows. Give it one, or name another eval_metric.",
            parameter="eval_metric",
        )
    # The metric "squared_error" is the mean of squares; the loss has a factor of 1/2.
    scale = 2.0 if loss.name == "squared_error" else 1.0
    in_core = getattr(type(loss), "value", None) is Loss.value and loss.in_core

    def value(y: Floats, score: Floats, weight: Floats | None) -> float:
        return scale * loss.value(Target(y, weight), score.reshape(len(y), -1), n_threads)

    if not in_core:
        return _BuiltIn(loss.name, value)
    nothing = np.empty((0, loss.n_outputs))
    parameters = loss.parameters(Target(np.empty(0), None), nothing, n_threads)
    return LossMetric(loss.name, value, factor=scale, kernel=loss.kernel, parameters=parameters)


def _named_metric(metric: str, loss: Loss, n_threads: int) -> Metric:
    allowed, name = _allowed(loss), metric_name(metric)
    if loss.name in (metric, name):
        return _loss_metric(loss, n_threads)
    if name not in allowed:
        if not is_metric(metric):
            reason = metric_suggestion(metric, allowed)
            raise ParameterError(
                f"eval_metric={metric!r} is not allowed: {reason}", parameter="eval_metric"
            )
        raise ParameterError(
            f"eval_metric={metric!r} is not allowed: it does not fit loss={loss.name!r}. Use one "
            f"of {listing(allowed, _MOST_NAMES)}, a function of (y, score, weight), or an "
            "arboost.Metric.",
            parameter="eval_metric",
        )
    built_in = VALUE_METRICS.get(name) or PROBABILITY_METRICS[name]
    return _BuiltIn(name, _function_of_scores(name, loss), built_in.greater_is_better)


def _query_metric(metric: str | None, loss: RankingLoss, n_threads: int) -> QueryMetric:
    """A metric of rankings by its name."""
    name = DEFAULT_METRIC if metric is None else rank_metric_name(metric)
    if name is None:
        raise ParameterError(
            f"eval_metric={metric!r} is not allowed: it is not a metric of rankings. Use one of "
            f"{', '.join(_allowed(loss))}, each also for the first k documents, as in 'ndcg@10', "
            "or a function of (y, score, weight), which sees no queries.",
            parameter="eval_metric",
        )
    return QueryMetric.of(name, loss.gain, n_threads)


def _sklearn_metric_of_scores(metric: object, loss: Loss, n_threads: int) -> Metric:
    """A metric function of scikit-learn, or the built-in metric of that name."""
    of_classes = loss.link in CLASS_LINKS
    wrapped = sklearn_metric(metric, of_classes=of_classes)
    if isinstance(wrapped, str):
        return _named_metric(wrapped, loss, n_threads)
    name, function, greater_is_better = wrapped
    if not of_classes and loss.n_outputs > 1:
        raise ParameterError(
            f"eval_metric={name} is not allowed: it does not fit loss={loss.name!r}, which has "
            f"{loss.n_outputs} outputs. Use a function of (y, score, weight).",
            parameter="eval_metric",
        )
    apply = _of_probabilities if of_classes else _of_values
    return _BuiltIn(name, apply(function, loss), greater_is_better)


def _allowed(loss: Loss) -> list[str]:
    if isinstance(loss, RankingLoss):
        return ["ndcg", "map", "mrr", "precision"]
    if loss.link in CLASS_LINKS:
        return list(dict.fromkeys([loss.name, *PROBABILITY_METRICS]))
    if loss.n_outputs > 1:  # several quantiles, none of which is the prediction
        return [loss.name]
    # The Tweedie deviance needs the power of the loss.
    has_power = loss.name == "tweedie"
    names = [name for name in VALUE_METRICS if has_power or name != "tweedie_deviance"]
    return [loss.name, *names]


def _function_of_scores(name: str, loss: Loss) -> Function:
    """Built-in metric as a function of (y, raw scores, weight)."""
    if name == "tweedie_deviance":
        return _of_values(partial(tweedie_deviance, power=vars(loss)["tweedie_power"]), loss)
    if name in VALUE_METRICS:
        return _of_values(VALUE_METRICS[name].function, loss)
    if loss.n_outputs == 1 and name in RANK_METRICS:
        # Scores have the order of the probabilities, and no ties where these round to 0 or 1.
        rank_metric = RANK_METRICS[name]
        return lambda y, score, weight: rank_metric(y == 1, score, weight)
    return _of_probabilities(PROBABILITY_METRICS[name].function, loss)


def _of_values(function: Function, loss: Loss) -> Function:
    link = LINKS[loss.link]
    return lambda y, score, weight: function(y, link(score.reshape(-1, 1)).ravel(), weight)


def _of_probabilities(function: Function, loss: Loss) -> Function:
    link = LINKS[loss.link]
    return lambda y, score, weight: function(
        y.astype(np.intp), link(score.reshape(len(y), -1)), weight
    )


# ---- metrics of scikit-learn ----

_SCORES = ("y_score", "y_prob", "y_proba")
_OF_PROBABILITIES = ("log_loss", "d2_log_loss_score")  # although they call these y_pred


def is_sklearn(metric: object) -> bool:
    """Whether a metric is an object of sklearn.metrics, or a functools.partial of one."""
    if isinstance(metric, partial):
        metric = metric.func
    module = getattr(metric, "__module__", None) or ""
    return module.partition(".")[0] == "sklearn"


def sklearn_metric(metric: Any, *, of_classes: bool) -> str | tuple[str, Function, bool]:
    """The name here of a metric of scikit-learn; else its name, function and direction.

    The function is one of (y, predictions, weight), with class codes and probabilities of shape
    (n_rows, n_classes) for classes. Names of scikit-learn that end in "_score" are of metrics to
    maximise, all others of metrics to minimise.
    """
    function = metric.func if isinstance(metric, partial) else metric
    if not inspect.isfunction(function):
        raise ParameterTypeError(
            f"eval_metric={metric!r} ({type(metric).__name__}) is not allowed: a scorer needs an "
            "estimator and X, but metrics are taken of predictions. Pass the metric function "
            "itself, such as sklearn.metrics.f1_score.",
            parameter="eval_metric",
        )
    name = function.__name__
    ours = metric_name(name)
    if ours is not None and function is metric:
        return ours
    parameters = list(inspect.signature(function).parameters)
    takes_weights = "sample_weight" in parameters
    if of_classes and parameters[1] == "pred_decision":
        raise ParameterTypeError(
            f"eval_metric={name} is not allowed: it needs raw scores. Pass a function of "
            "(y, score, weight) that calls it.",
            parameter="eval_metric",
        )
    takes_scores = parameters[1] in _SCORES or name in _OF_PROBABILITIES

    def value(y: Any, predicted: Floats, weight: Floats | None) -> float:
        if of_classes and not takes_scores:
            predicted = predicted.argmax(axis=1)
        elif of_classes and predicted.shape[1] == _TWO_CLASSES:
            predicted = predicted[:, 1]
        options = {"sample_weight": weight} if takes_weights else {}
        return float(np.asarray(metric(y, predicted, **options)))

    return name, value, name.endswith("_score")
