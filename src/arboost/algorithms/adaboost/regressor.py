"""AdaBoost.R2: boosting of numbers by weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

from numpy.random import RandomState
from sklearn.metrics import r2_score

from arboost.algorithms.adaboost.base import AdaBoost, Floats, amount_rounds
from arboost.algorithms.adaboost.rounds import WeightRecipe
from arboost.algorithms.adaboost.schemes import Amounts
from arboost.algorithms.estimator import TreeRegressor, store
from arboost.data.schema import Schema
from arboost.data.table import Table
from arboost.data.target import Task
from arboost.losses import Loss
from arboost.losses.metrics import Metric
from arboost.model.model import Model
from arboost.model.predict import tree_values
from arboost.params.adaboost import ADABOOST_REGRESSOR
from arboost.training.rounds import Rounds

__all__ = ["AdaBoostRegressor"]


class AdaBoostRegressor(AdaBoost, TreeRegressor):
    """AdaBoost.R2 of numbers: the answer is the weighted median of the learners.

    Parameters
    ----------
    estimator : estimator or None, default=None
        What learns in each round: None for the engine's own trees, or any estimator of scikit-
        learn's kind, which is cloned.
    n_estimators : int, default=50
        Number of learners; fewer where learning ends by itself or early stopping does.
    learning_rate : float, default=1.0
        Factor on the weight of every learner: smaller needs more of them.
    loss : {"linear", "square", "exponential"}, default="linear"
        Loss of a row from its error d, a share of the largest error of all rows: d, d^2, or 1 -
        exp(-d).
    max_depth : int or None, default=3
        Largest number of splits between the root of a tree and a leaf; None sets no limit. 1 is a
        stump.
    max_leaves : int or None, default=None
        Largest number of leaves of a tree; None sets no limit.
    min_samples_leaf : int, default=1
        Smallest number of training rows that each side of a split must hold.
    min_weight_fraction_leaf : float, default=0.0
        Smallest share of the weight of all rows, as the round has them, that each side of a split
        must hold.
    tree_method : {"hist", "exact"}, default="hist"
        Where splits are looked for: between the bins of a histogram, or between all distinct
        values.
    max_bins : int, default=255
        Largest number of bins of a feature with tree_method="hist", missing values apart; above 255
        a bin code takes two bytes.
    bundling : bool, default=True
        Whether features share memory with tree_method="hist": columns of few values, and columns
        that are hardly ever away from their most frequent value at the same time. The model does
        not depend on it while max_conflict_rate is 0.
    categorical_features : "from_dtype", or list of str, int or bool, default="from_dtype"
        Columns that are categories whatever their type, as names, indices or a mask. "from_dtype"
        names none: categories are then columns of strings, and of the categorical types of pandas,
        Polars and Arrow, which they are in any case.
    missing : float, default=float("nan")
        A number that means missing in all columns of numbers, such as -999, or 0 in sparse tables;
        NaN, None and NA always do.
    resample : bool, default=False
        Whether each learner gets rows that are drawn by their weights, with replacement, instead of
        the weights themselves; for learners that take no weights, and as Drucker published it.
    max_restarts : int, default=10
        With resample=True: how often the rows of a round are drawn again after a learner that is no
        better than chance.
    oob_score : bool, default=False
        Whether training rows are scored by the learners that did not draw them; needs
        resample=True.
    warm_start : bool, default=False
        Whether a second call of fit keeps the learners of the first and adds those that
        n_estimators asks for beyond them.
    eval_metric : str, callable, arboost.Metric, list of these, or None, default=None
        What is measured on the validation data after each round, the first of several for early
        stopping; None is squared_error.
    n_iter_no_change : int or None, default=None
        Early stopping: rounds without a better validation score after which training stops and the
        best round is kept; None trains all rounds.
    tol : float, default=0.0
        Early stopping: how much better a score must be to count as better.
    validation_fraction : float, default=0.1
        Early stopping without X_val: share of the training rows that is set aside.
    validation_split : {"random", "group", "time"}, default="random"
        Early stopping without X_val: which rows are set aside: random ones (for a classifier of
        every class its share), whole groups, or the last rows.
    max_time : float or None, default=None
        Seconds after which no further round is begun; None sets no limit.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. The model does not depend
        on it.
    random_state : int, RandomState or None, default=0
        Seed of every random choice; None takes a new one for each fit.
    verbose : int, default=1
        Above 0, fits of more than about a second draw a progress bar in terminals and notebooks.

    Attributes
    ----------
    model_ : arboost.Predictor
        The fitted model, for `estimator=None`; else one of the same methods that holds the members.
    n_iter_ : int
        Number of learners.
    estimators_ : list
        The learners.
    estimator_errors_, estimator_weights_ : float64 arrays of shape (n_iter_,)
        Mean loss eps_t of each learner over the distribution of the rows, and its weight in the
        median, ``learning_rate * ln((1 - eps) / eps)``.
    oob_score_, oob_prediction_ : float, float64 array
        With ``oob_score=True``: R^2 and predictions of the training rows by the learners that did
        not draw them; NaN for rows that all have drawn.
    best_iteration_, best_score_, evals_result_
        The best round on validation data, its result, and those of all rounds.
    stop_reason_ : str
        What ended training: "n_estimators", "n_iter_no_change", "max_time", "callback NAME",
        "perfect learner" or "no better than chance" (a mean loss of 1/2).
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from arboost import AdaBoostRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> round(AdaBoostRegressor(loss="square").fit(X, y).score(X, y), 1)
    0.6
    """

    _TABLE = ADABOOST_REGRESSOR
    _FACTS: ClassVar = {"error": "estimator_errors_", "weight": "estimator_weights_"}
    _SAME = "loss"
    _METRIC = "squared_error"
    _OUT_OF_BAG = "oob_prediction_"

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        loss: str = "linear",
        max_depth: int | None = 3,
        max_leaves: int | None = None,
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        tree_method: str = "hist",
        max_bins: int = 255,
        bundling: bool = True,
        categorical_features: str | Sequence[Any] = "from_dtype",
        missing: float = float("nan"),
        resample: bool = False,
        max_restarts: int = 10,
        oob_score: bool = False,
        warm_start: bool = False,
        eval_metric: str | Callable[..., float] | Metric | Sequence[Any] | None = None,
        n_iter_no_change: int | None = None,
        tol: float = 0.0,
        validation_fraction: float = 0.1,
        validation_split: str = "random",
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = 0,
        verbose: int = 1,
    ) -> None:
        store(self, locals())

    def staged_score(self, X: object, y: object, sample_weight: object = None) -> Iterator[float]:
        """Yield R^2, as `score` would return it, after each round."""
        for values in self.staged_predict(X):
            yield r2_score(y, values, sample_weight=sample_weight)

    def _loss(self, params: dict[str, Any], task: Task) -> Loss:
        return self._scheme(params).loss

    def _recipe(self, params: dict[str, Any], loss: Loss, schema: Schema) -> WeightRecipe:
        return self._weight_recipe(params, self._scheme(params))

    def _scheme(self, params: dict[str, Any]) -> Amounts:
        return Amounts(error=params["loss"], rate=params["learning_rate"])

    def _rounds(self, old: Model | None) -> Callable[..., Rounds]:
        return partial(amount_rounds, start_weights=None if old is None else old.tree_weights)

    def _start(self, old: Model, table: Table, n_threads: int) -> Floats:
        return tree_values(old, table, n_threads=n_threads)
