"""AdaBoost.R2: AdaBoost for regression."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.random import RandomState
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from arboost.algorithms.adaboost.base import AdaBoost
from arboost.algorithms.estimator import regressor_score, store
from arboost.losses.metrics import Metric
from arboost.params.adaboost import ADABOOST_REGRESSOR
from arboost.predictor import Predictor

__all__ = ["AdaBoostRegressor"]


class AdaBoostRegressor(RegressorMixin, AdaBoost):
    """AdaBoost.R2: the weighted median, or mean, of the learners' predictions.

    Parameters
    ----------
    estimator : estimator or None, default=None
        Learner of each round: None for the engine's own trees, or any scikit-learn estimator, which
        is cloned.
    n_estimators : int, default=50
        Number of learners; fewer after early stopping, or where no further learner helps.
    learning_rate : float, default=1.0
        Factor on the weight of every learner; smaller rates need more learners.
    loss : {"linear", "square", "exponential"}, default="linear"
        Loss of a row with the error d, relative to the largest error: d, d^2, or 1 - exp(-d).
    aggregation : {"median", "mean"}, default="median"
        Combination of the learners' predictions by their weights: the median, as Drucker published
        it, or the mean.
    max_depth : int or None, default=3
        Largest number of splits between the root of a tree and a leaf; None sets no limit. 1:
        stumps.
    max_leaves : int or None, default=None
        Largest number of leaves of a tree; None sets no limit.
    min_samples_leaf : int, default=1
        Smallest number of training rows in each child of a split.
    min_weight_fraction_leaf : float, default=0.0
        Smallest share of the round's total weight that each child of a split must hold.
    tree_method : {"hist", "exact"}, default="hist"
        Candidates for splits: the bin edges of a histogram, or all distinct values.
    max_bins : int or str, default="auto"
        Largest number of bins of a feature with tree_method="hist", not counting missing values;
        above 255 a bin code takes two bytes. "auto": 255; or a bin for each value where trees that
        may have more than 256 leaves need them for pure leaves, on up to 32,768 rows; a Dataset has
        its own.
    bundling : bool, default=True
        Whether features share stored columns with tree_method="hist": exclusive feature bundling
        (EFB), and several columns of few values in one byte. The model does not depend on it.
    categorical_features : "from_dtype", or list of str, int or bool, default="from_dtype"
        Additional categories, whatever their type: names, indices or a mask of columns.
        "from_dtype": only columns of strings, and of the categorical types of pandas, Polars and
        Arrow, which are always categories.
    category_encoding : {"auto", "groups", "mean"}, default="auto"
        Encoding of categories of more than 100 levels by their targets: sets of at most 255 groups,
        of which each frequent level is one and rare levels of similar means share the others; or
        one number, the mean target of a level. "auto": groups in gradient boosting, the mean in all
        other algorithms; a Dataset has its own.
    date_format : str, dict, or None, default="auto"
        Format of dates in strings, for all columns or by column: "iso" (year first), "dayfirst",
        "monthfirst", or a format of strptime such as "%d.%m.%y". "auto": year first, and day or
        month first where the values of a column leave no doubt. None: dates in strings are
        categories.
    calendar_parts : "auto", list of str, or None, default="auto"
        Calendar parts of dates that are features next to them: "hour", "weekday", "month" and
        "dayofyear". "auto": those that repeat, the hour in dates of more than a day, the weekday of
        more than a week, the others of more than a year. None: no parts.
    missing : float, default=float("nan")
        Number that means missing in all numeric columns, such as -999, or 0 in sparse tables; NaN,
        None and NA are always missing.
    resample : bool, default=False
        Whether each learner gets rows drawn with replacement in proportion to their weights,
        instead of the weights; for learners that take no weights, and as Drucker published it.
    max_restarts : int, default=10
        With resample=True: how often a round draws its rows again after a learner that is no better
        than chance.
    oob_score : bool, default=False
        Whether to compute the out-of-bag score; needs resample=True.
    warm_start : bool, default=False
        Whether a further call of fit keeps the learners and adds new ones up to n_estimators.
    eval_metric : str, callable, arboost.Metric, list of these, or None, default=None
        Metrics on the validation set after each round; early stopping uses the first. None:
        squared_error.
    n_iter_no_change : int or None, default=None
        Early stopping: number of rounds without a better validation score after which training
        stops and the best round is kept; None trains all rounds.
    tol : float, default=0.0
        Early stopping: smallest improvement of the score that counts.
    validation_fraction : float, default=0.1
        Early stopping without X_val: share of the training rows that is held out.
    validation_split : {"random", "group", "time"}, default="random"
        Early stopping without X_val: choice of the held-out rows: random (stratified by class for
        classifiers), whole groups, or the last rows.
    max_time : float or None, default=None
        Number of seconds after which no further round starts; None sets no limit.
    device : str, default="cpu"
        Device that trees are grown on: "cpu", "cuda", or "cuda:1" and so on for other CUDA devices
        than the first. The model does not depend on it.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. The model does not depend
        on it.
    random_state : int, RandomState or None, default=0
        Seed of every random choice; None: a new seed for each fit.
    verbose : bool or int, default=1
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    model_ : arboost.Predictor
        The fitted model of engine trees; with an `estimator`, a model of its clones with the same
        methods.
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
        The best round on the validation set, its first metric, and the metrics of all rounds.
    stop_reason_ : str
        Reason for the end of training: "n_estimators", "n_iter_no_change", "max_time", "callback
        NAME", "perfect learner" or "no better than chance" (a mean loss of 1/2).
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

    _KIND = "regressor"
    _TABLE = ADABOOST_REGRESSOR
    _FACTS: ClassVar = {"error": "estimator_errors_", "weight": "estimator_weights_"}
    _SAME = "loss"
    _METRIC = "squared_error"
    _OOB_SCORES = "oob_prediction_"

    score = regressor_score

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        loss: str = "linear",
        aggregation: str = "median",
        max_depth: int | None = 3,
        max_leaves: int | None = None,
        min_samples_leaf: int = 1,
        min_weight_fraction_leaf: float = 0.0,
        tree_method: str = "hist",
        max_bins: int | str = "auto",
        bundling: bool = True,
        categorical_features: str | Sequence[Any] = "from_dtype",
        category_encoding: str = "auto",
        date_format: str | Mapping[Any, str] | None = "auto",
        calendar_parts: str | Sequence[str] | None = "auto",
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
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: int | RandomState | None = 0,
        verbose: bool | int = 1,
    ) -> None:
        store(self, locals())

    def _combined(self, model: Any) -> Any:
        self.__dict__.pop("_learners", None)
        if self.aggregation == "median" or not isinstance(model, Predictor):
            return model
        self._learners = model
        return _averaged(model)

    def _engine_model(self, asked: str) -> Predictor:
        """Return the model; for a fit that continues it, the one with the learners' own values."""
        learners: Predictor | None = self.__dict__.get("_learners")
        return learners if learners and asked == "init_model" else super()._engine_model(asked)

    def staged_score(self, X: object, y: object, sample_weight: object = None) -> Iterator[float]:
        """Yield R^2, the result of `score`, after each round."""
        for values in self.staged_predict(X):
            yield r2_score(y, values, sample_weight=sample_weight)


def _averaged(model: Predictor) -> Predictor:
    """Return the weighted mean of the trees of a weighted median."""
    if not model.n_trees:
        return replace(model, combine="mean")
    weights = model.tree_weights * (model.n_trees / np.add.accumulate(model.tree_weights)[-1])
    of_node = np.repeat(weights, np.diff(model.forest.tree_start))[:, np.newaxis]
    forest = replace(model.forest, value=model.forest.value * of_node)
    return replace(model, forest=forest, combine="mean", tree_weights=weights)
