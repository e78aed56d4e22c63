"""Gradient boosting: each round's trees follow the gradients of the loss at the scores so far.

The gain of a split and the value of a leaf are those of Chen and Guestrin (2016), equations 5 to 7.
"""

from __future__ import annotations

import math
from typing import Any

from numpy.random import RandomState

from arboost.ensemble import Recipe
from arboost.estimator import Task, TreeClassifier, TreeRegressor
from arboost.grow import TreeParams

__all__ = ["GradientBoostingClassifier", "GradientBoostingRegressor"]

_TREE_PARAMS = (
    "max_depth",
    "max_leaves",
    "grow_policy",
    "min_child_weight",
    "min_samples_leaf",
    "gamma",
    "reg_lambda",
    "reg_alpha",
    "max_delta_step",
)
_LOSSES = {"identity": "squared_error", "logistic": "log_loss", "softmax": "log_loss"}


class GradientBoostingRegressor(TreeRegressor):
    """Gradient boosting of trees on the squared error.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of boosting rounds.
    learning_rate : float, default=0.1
        Factor on the values of every tree: smaller needs more rounds and overfits later.
    max_depth : int or None, default=6
        Largest number of splits between the root of a tree and a leaf; None sets no limit.
    max_leaves : int or None, default=None
        Largest number of leaves of a tree; None sets no limit.
    grow_policy : {"depthwise", "leafwise"}, default="depthwise"
        Which node is split next: those nearest to the root, or the one that gains most.
    min_child_weight : float, default=1.0
        Smallest sum of hessians that each side of a split must hold.
    min_samples_leaf : int, default=1
        Smallest number of training rows that each side of a split must hold.
    gamma : float, default=0.0
        Gain that a split must exceed.
    reg_lambda : float, default=1.0
        L2 penalty on the values of the leaves.
    reg_alpha : float, default=0.0
        L1 penalty on the values of the leaves.
    max_delta_step : float, default=0.0
        Largest absolute value of a leaf before the learning rate; 0 sets no limit.
    max_bins : int, default=255
        Largest number of bins of a feature, missing values apart; above 255 a bin code takes two
        bytes.
    base_score : float or None, default=None
        Prediction before the first tree: a value of y, or the probability of the second of two
        classes; None takes it from the data.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. The model does not depend
        on it.
    random_state : int, RandomState or None, default=0
        Seed of every random choice; None takes a new one for each fit.
    verbose : int, default=0
        Above 0, a progress bar is drawn where the standard error stream is a terminal.

    Attributes
    ----------
    model_ : arboost.Predictor
        The fitted model, which can be saved and runs without scikit-learn.
    n_iter_ : int
        Number of boosting rounds.
    n_features_in_ : int
        Number of columns in `fit`.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, where all of them are strings.
    feature_importances_ : array of shape (n_features_in_,)
        Share of each feature in the total gain of all splits.

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingRegressor
    >>> X = np.arange(100).reshape(-1, 1)
    >>> y = np.where(X[:, 0] < 50, 1.0, 3.0)
    >>> model = GradientBoostingRegressor().fit(X, y)
    >>> model.predict([[10], [90]]).round(3)
    array([1., 3.])
    """

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 6,
        max_leaves: int | None = None,
        grow_policy: str = "depthwise",
        min_child_weight: float = 1.0,
        min_samples_leaf: int = 1,
        gamma: float = 0.0,
        reg_lambda: float = 1.0,
        reg_alpha: float = 0.0,
        max_delta_step: float = 0.0,
        max_bins: int = 255,
        base_score: float | None = None,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = 0,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.grow_policy = grow_policy
        self.min_child_weight = min_child_weight
        self.min_samples_leaf = min_samples_leaf
        self.gamma = gamma
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.max_delta_step = max_delta_step
        self.max_bins = max_bins
        self.base_score = base_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _recipe(self, params: dict[str, Any], task: Task) -> Recipe:
        return _recipe(params, task, base_score=params["base_score"], vector_leaves=False)


class GradientBoostingClassifier(TreeClassifier):
    """Gradient boosting of trees on the log loss: logistic for two classes, softmax for more.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of boosting rounds.
    learning_rate : float, default=0.1
        Factor on the values of every tree: smaller needs more rounds and overfits later.
    max_depth : int or None, default=6
        Largest number of splits between the root of a tree and a leaf; None sets no limit.
    max_leaves : int or None, default=None
        Largest number of leaves of a tree; None sets no limit.
    grow_policy : {"depthwise", "leafwise"}, default="depthwise"
        Which node is split next: those nearest to the root, or the one that gains most.
    min_child_weight : float, default=1.0
        Smallest sum of hessians that each side of a split must hold.
    min_samples_leaf : int, default=1
        Smallest number of training rows that each side of a split must hold.
    gamma : float, default=0.0
        Gain that a split must exceed.
    reg_lambda : float, default=1.0
        L2 penalty on the values of the leaves.
    reg_alpha : float, default=0.0
        L1 penalty on the values of the leaves.
    max_delta_step : float, default=0.0
        Largest absolute value of a leaf before the learning rate; 0 sets no limit.
    max_bins : int, default=255
        Largest number of bins of a feature, missing values apart; above 255 a bin code takes two
        bytes.
    base_score : float or None, default=None
        Prediction before the first tree: a value of y, or the probability of the second of two
        classes; None takes it from the data.
    multi_strategy : {"one_output_per_tree", "multi_output_tree"}, default="one_output_per_tree"
        With three or more classes: a tree for each class in every round, or one tree whose leaves
        hold a value for each class.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. The model does not depend
        on it.
    random_state : int, RandomState or None, default=0
        Seed of every random choice; None takes a new one for each fit.
    verbose : int, default=0
        Above 0, a progress bar is drawn where the standard error stream is a terminal.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    model_ : arboost.Predictor
        The fitted model, which can be saved and runs without scikit-learn.
    n_iter_ : int
        Number of boosting rounds.
    n_features_in_ : int
        Number of columns in `fit`.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, where all of them are strings.
    feature_importances_ : array of shape (n_features_in_,)
        Share of each feature in the total gain of all splits.

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingClassifier
    >>> X = np.arange(100).reshape(-1, 1)
    >>> y = np.where(X[:, 0] < 50, "low", "high")
    >>> model = GradientBoostingClassifier().fit(X, y)
    >>> model.predict([[10], [90]])
    array(['low', 'high'], dtype='<U4')
    """

    def __init__(
        self,
        *,
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 6,
        max_leaves: int | None = None,
        grow_policy: str = "depthwise",
        min_child_weight: float = 1.0,
        min_samples_leaf: int = 1,
        gamma: float = 0.0,
        reg_lambda: float = 1.0,
        reg_alpha: float = 0.0,
        max_delta_step: float = 0.0,
        max_bins: int = 255,
        base_score: float | None = None,
        multi_strategy: str = "one_output_per_tree",
        n_jobs: int | None = None,
        random_state: int | RandomState | None = 0,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.grow_policy = grow_policy
        self.min_child_weight = min_child_weight
        self.min_samples_leaf = min_samples_leaf
        self.gamma = gamma
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.max_delta_step = max_delta_step
        self.max_bins = max_bins
        self.base_score = base_score
        self.multi_strategy = multi_strategy
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _recipe(self, params: dict[str, Any], task: Task) -> Recipe:
        start = params["base_score"]
        if start is not None:
            start = _log_odds(start, task)
        vector_leaves = params["multi_strategy"] == "multi_output_tree" and task.n_outputs > 1
        return _recipe(params, task, base_score=start, vector_leaves=vector_leaves)


def _recipe(
    params: dict[str, Any], task: Task, *, base_score: float | None, vector_leaves: bool
) -> Recipe:
    return Recipe(
        loss=_LOSSES[task.link],
        n_outputs=task.n_outputs,
        n_estimators=params["n_estimators"],
        learning_rate=params["learning_rate"],
        vector_leaves=vector_leaves,
        tree=TreeParams(**{name: params[name] for name in _TREE_PARAMS}),
        base_score=base_score,
    )


def _log_odds(base_score: float, task: Task) -> float:
    if task.link != "logistic":
        raise ValueError(
            f"base_score={base_score!r} is not allowed: a classifier has a base score only with "
            f"two classes, and y has {task.n_outputs}. Use base_score=None."
        )
    if not 0.0 < base_score < 1.0:
        raise ValueError(
            f"base_score={base_score!r} is not allowed: with two classes it is the probability of "
            "the second, above 0 and below 1. Use base_score=None to take it from the data."
        )
    return math.log(base_score) - math.log1p(-base_score)
