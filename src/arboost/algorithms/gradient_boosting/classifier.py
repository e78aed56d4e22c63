"""GradientBoostingClassifier: its parameters and fitted attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Never

from numpy.random import RandomState
from sklearn.base import ClassifierMixin

from arboost.algorithms.estimator import store
from arboost.algorithms.gradient_boosting.base import GradientBoosting
from arboost.backend import core
from arboost.cuda.arrays import refuse_logarithms
from arboost.data.feature_names import split_target
from arboost.losses import CustomLoss
from arboost.losses.base import Floats
from arboost.losses.metrics import Metric
from arboost.model.predict import decision
from arboost.names.arguments import public_name, refuse_arguments
from arboost.params.boosting import BOOSTED_CLASSIFIER

__all__ = ["GradientBoostingClassifier"]


class GradientBoostingClassifier(ClassifierMixin, GradientBoosting):
    """Gradient boosting for classification: logistic loss for two classes, softmax for more.

    Parameters
    ----------
    n_estimators : int or str, default="auto"
        Number of boosting rounds; with early stopping the largest number. "auto" finds the best
        number on held-out rows (folds below 5,000 rows), then trains on all rows; with X_val it
        stops early on X_val. Below 50 rows without X_val and n_iter_no_change it is 100, and all
        other automatic values are those of a given number.
    learning_rate : float or str, default="auto"
        Factor on the values of every tree: smaller needs more rounds and overfits later. "auto":
        0.1; with n_estimators="auto", 0.1 in the search for rounds and 0.1 or, where 600 rounds
        take about a second, 0.05 in the fit; with preset="fast", 0.1 in both; with preset="best",
        0.025 in both up to 10,000 rows, rising to 0.1 at 640,000.
    preset : {"fast", "good", "best"}, default="good"
        Effort of a fit with n_estimators="auto": the largest product of learning rate and rounds
        (15, 30, 100), and below 5,000 rows the number of folds (one; one to five by the size of the
        table; five).
    loss : str or arboost.CustomLoss, default="log_loss"
        Loss to minimise: log_loss; for two classes also exponential, AdaBoost's loss; or an
        arboost.CustomLoss.
    boosting : {"newton", "gradient"}, default="newton"
        Steps of the trees: XGBoost's second-order steps with their penalties, or Friedman's
        least-squares trees on the gradient with the loss's own minimum in each leaf.
    line_search : {"leaf", "round"}, default="leaf"
        With boosting="gradient": a step length for each leaf, the minimum of the loss there, or one
        for all trees of a round, whose leaves keep the mean negative gradients (Friedman's
        algorithm 1 in its general form).
    tree_method : {"hist", "exact", "approx"}, default="hist"
        Candidates for splits: the bin edges of a histogram, all distinct values, or the quantiles
        of a hessian-weighted sketch.
    sketch_eps : float, default=0.004
        Rank error of the sketch of tree_method="approx", as a share of the total hessian: about 1 /
        sketch_eps candidates for each feature.
    sketch_scope : {"global", "local"}, default="global"
        Whether tree_method="approx" proposes candidates once per round or in every node.
    max_bins : int, default=255
        Largest number of bins of a feature with tree_method="hist", not counting missing values;
        above 255 a bin code takes two bytes.
    bundling : bool, default=True
        Whether features share stored columns with tree_method="hist": exclusive feature bundling
        (EFB), and several columns of few values in one byte. The model does not depend on it while
        max_conflict_rate is 0.
    max_conflict_rate : float, default=0.0
        Share of the rows in which two features of a bundle may both differ from their most frequent
        value; only the first of them is then kept.
    max_depth : int or str or None, default="auto"
        Largest number of splits between the root of a tree and a leaf; None sets no limit. "auto":
        6; with n_estimators="auto", None, and max_leaves=31 unless max_leaves is given.
    max_leaves : int or None, default=None
        Largest number of leaves of a tree; None sets no limit.
    grow_policy : {"auto", "depthwise", "leafwise"}, default="auto"
        Order of the splits: nodes nearest to the root first, or the largest gain first. "auto":
        depthwise; with n_estimators="auto", leafwise.
    min_child_weight : float or str, default="auto"
        Smallest sum of hessians (with boosting="gradient", of weights) in each child of a split.
        "auto": 1; with n_estimators="auto", 0.1.
    min_samples_leaf : int or str, default="auto"
        Smallest number of training rows in each child of a split. "auto": 1; with
        n_estimators="auto" and loss="quantile" 5 / min(alpha, 1 - alpha) (the geometric mean over
        several quantiles), and at most a tenth of the rows.
    gamma : float, default=0.0
        Gain that a split must exceed.
    reg_lambda : float or None, default=None
        L2 penalty on the leaf values. None: 1; with n_estimators="auto", 3, or 1 for leaves of
        several values; with boosting="gradient", which has no penalties, 0.
    reg_alpha : float, default=0.0
        L1 penalty on the leaf values.
    max_delta_step : float, default=0.0
        Largest absolute leaf value before the learning rate; 0 sets no limit.
    max_cat_to_onehot : int, default=4
        Largest number of levels of a category in a node for one-vs-rest splits; more levels are
        sorted by their mean gradients and split into two sets.
    max_cat_threshold : int, default=64
        Largest number of levels in the smaller of the two sets that a sorted category is split
        into.
    min_cat_weight : float, default=10.0
        Smallest hessian in a node of a level that a sorted category places by itself; all rarer
        levels stay together.
    cat_smooth : float, default=30.0
        Hessian added to each level's before levels are sorted, so that rare levels do not come
        first or last by chance.
    cat_l2 : float, default=30.0
        L2 penalty in addition to reg_lambda, in the gain of splits of sorted categories.
    subsample : float or str, default="auto"
        Share of the training rows that each tree is grown on. "auto": 1; with n_estimators="auto",
        0.5 unless sampling_method="goss".
    sampling_method : {"auto", "uniform", "gradient_based", "goss"}, default="auto"
        Sampling of rows. uniform: equal probabilities. gradient_based: probabilities in proportion
        to the regularised gradient, with inverse-probability weights; samples choose the splits,
        all rows set the leaf values. goss: LightGBM's GOSS, the rows of the largest gradients and a
        reweighted sample of the others, after 1 / learning_rate rounds on all rows. "auto":
        uniform; with n_estimators="auto", gradient_based, except with boosting="gradient" and the
        losses absolute_error and quantile.
    top_rate : float, default=0.2
        With sampling_method="goss": share of the training rows that are kept for their large
        gradients.
    other_rate : float, default=0.1
        With sampling_method="goss": share of the training rows that are drawn from all others.
    colsample_bytree : float or str, default="auto"
        Share of the features that each tree may use. "auto": 1; with n_estimators="auto", 6 /
        sqrt(n_features), at least 0.1 and at most 1.
    colsample_bylevel : float, default=1.0
        Share of the tree's features that each level may use.
    colsample_bynode : float or str, default="auto"
        Share of the level's features that each node may use. "auto": 1; with n_estimators="auto",
        0.7.
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
    monotone_constraints : dict, sequence of {-1, 0, 1}, or None, default=None
        Direction of features, by name or index: predictions may only rise (1) or only fall (-1); a
        sequence has an entry for each feature, 0 for no constraint.
    monotonic_cst : dict, sequence of {-1, 0, 1}, or None, default=None
        scikit-learn's name of monotone_constraints.
    interaction_constraints : list of groups, "pairwise", "no_interactions", or None, default=None
        Groups of features, by name or index, that may share a path from root to leaf; a feature in
        no group shares its paths with no other.
    num_parallel_tree : int, default=1
        Number of trees per round, each grown on its own sample of rows and columns, and averaged:
        above 1, a random forest in every round.
    warm_start : bool, default=False
        Whether a fit of a fitted estimator adds rounds to its own, up to n_estimators in all; with
        n_estimators="auto", as many more as held-out rows ask for.
    rate_drop : float, default=0.0
        DART: share of the earlier trees that a round drops from its gradients; 0: boosting without
        dropout.
    skip_drop : float, default=0.0
        DART: probability that a round drops no tree.
    one_drop : bool, default=False
        DART: whether a round with dropout drops at least one tree.
    sample_type : {"uniform", "weighted"}, default="uniform"
        DART: whether trees are dropped with equal probabilities or in proportion to their weights.
    normalize_type : {"tree", "forest"}, default="tree"
        DART: whether the new tree gets the weight of each dropped tree, or of all of them together.
    base_score : float, list of float, or None, default=None
        Prediction before the first tree: a value of y, or the probability of the second of two
        classes; for three or more classes a list of their probabilities, or 0 for raw scores of 0;
        None: estimated from the data.
    scale_pos_weight : float, default=1.0
        With two classes: factor on the row weights of the second class.
    class_weight : dict, "balanced" or None, default=None
        Factors on the row weights by label, 1 for labels that are not named; "balanced" gives all
        classes the same total weight.
    multi_strategy : {"auto", "one_output_per_tree", "multi_output_tree"}, default="auto"
        With three or more classes: one tree per class in every round, or one tree whose leaves hold
        a value for each class. "auto": one_output_per_tree; with n_estimators="auto",
        multi_output_tree unless the table is small (up to about 0.5 s for 600 rounds) or a class
        has less than a quarter of the rows of the average class.
    eval_metric : str, callable, arboost.Metric, list of these, or None, default=None
        Metrics on the validation set after each round; early stopping uses the first. None: the
        loss.
    n_iter_no_change : int or None, default=None
        Early stopping: number of rounds without a better validation score after which training
        stops and the best round is kept; None trains all rounds, or with n_estimators="auto" is 2.5
        / learning_rate, from 10 to 50; with preset="fast", 1 / learning_rate, from 5 to 50; with
        preset="best", 50.
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
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    n_classes_ : int
        Number of classes.
    model_ : arboost.Predictor
        The fitted model, which can be saved and runs without scikit-learn.
    estimators_ : array of shape (n_rounds, trees_per_round)
        The trees, each an arboost.Predictor of its part of the raw scores.
    n_iter_ : int
        Number of rounds of the model; with early stopping up to the best one.
    best_iteration_ : int or None
        Best round on the last validation set, from 0; None without one.
    best_score_ : float or None
        First metric in that round.
    evals_result_ : dict
        Learning curves by set and metric, a value for each round:
        ``evals_result_["validation"]["log_loss"]``.
        With n_estimators="auto" the curves of "validation" are those of the search for the number
        of rounds. Its learning rate may be twice that of the model: each round then counts two.
    stop_reason_ : str
        Why training ended: "n_estimators", "n_iter_no_change", "max_time" or "callback NAME".
        The limit of an automatic fit is 'most rounds of preset="good": set preset="best" for more'.
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

    _KIND = "classifier"
    _TABLE = BOOSTED_CLASSIFIER

    def __init__(
        self,
        *,
        n_estimators: int | str = "auto",
        learning_rate: float | str = "auto",
        preset: str = "good",
        loss: str | CustomLoss = "log_loss",
        boosting: str = "newton",
        line_search: str = "leaf",
        tree_method: str = "hist",
        sketch_eps: float = 0.004,
        sketch_scope: str = "global",
        max_bins: int = 255,
        bundling: bool = True,
        max_conflict_rate: float = 0.0,
        max_depth: int | str | None = "auto",
        max_leaves: int | None = None,
        grow_policy: str = "auto",
        min_child_weight: float | str = "auto",
        min_samples_leaf: int | str = "auto",
        gamma: float = 0.0,
        reg_lambda: float | None = None,
        reg_alpha: float = 0.0,
        max_delta_step: float = 0.0,
        max_cat_to_onehot: int = 4,
        max_cat_threshold: int = 64,
        min_cat_weight: float = 10.0,
        cat_smooth: float = 30.0,
        cat_l2: float = 30.0,
        subsample: float | str = "auto",
        sampling_method: str = "auto",
        top_rate: float = 0.2,
        other_rate: float = 0.1,
        colsample_bytree: float | str = "auto",
        colsample_bylevel: float = 1.0,
        colsample_bynode: float | str = "auto",
        categorical_features: str | Sequence[Any] = "from_dtype",
        category_encoding: str = "auto",
        date_format: str | Mapping[Any, str] | None = "auto",
        calendar_parts: str | Sequence[str] | None = "auto",
        missing: float = float("nan"),
        monotone_constraints: Mapping[Any, int] | Sequence[int] | None = None,
        monotonic_cst: Mapping[Any, int] | Sequence[int] | None = None,
        interaction_constraints: str | Sequence[Iterable[Any]] | None = None,
        num_parallel_tree: int = 1,
        warm_start: bool = False,
        rate_drop: float = 0.0,
        skip_drop: float = 0.0,
        one_drop: bool = False,
        sample_type: str = "uniform",
        normalize_type: str = "tree",
        base_score: float | Sequence[float] | None = None,
        scale_pos_weight: float = 1.0,
        class_weight: Mapping[Any, float] | str | None = None,
        multi_strategy: str = "auto",
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

    @public_name
    def predict_proba(
        self, X: object, *, rounds: int | None = None, offset: object = None, **unknown: Never
    ) -> Floats:
        """Return the class probabilities, shape (n_rows, n_classes), in the order of ``classes_``.

        The probabilities of a row sum to 1. `rounds` and `offset` are those of `predict`.
        """
        if unknown:
            refuse_arguments(self.predict_proba, unknown)
        model = self._first_rounds(rounds)
        found: Floats = model.predict_proba(X, offset=offset, n_jobs=self.n_jobs)
        return found

    def predict_log_proba(self, X: object, *, offset: object = None) -> Floats:
        """Return the logarithms of `predict_proba`; those of 0 are -inf."""
        refuse_logarithms(X)
        return core.log(self.predict_proba(X, offset=offset))

    @public_name
    def decision_function(
        self, X: object, *, rounds: int | None = None, offset: object = None, **unknown: Never
    ) -> Floats:
        """Return the raw scores: shape (n_rows,) for two classes, else (n_rows, n_classes)."""
        if unknown:
            refuse_arguments(self.decision_function, unknown)
        model = self._first_rounds(rounds)
        return decision(model.predict_raw(X, offset=offset, n_jobs=self.n_jobs))

    def staged_predict_proba(self, X: object, *, offset: object = None) -> Iterator[Floats]:
        """Yield the result of `predict_proba` after each round."""
        staged = self._fitted_model().staged_predict_proba
        found: Iterator[Floats] = staged(X, offset=offset, n_jobs=self.n_jobs)
        return found

    def staged_decision_function(self, X: object, *, offset: object = None) -> Iterator[Floats]:
        """Yield the result of `decision_function` after each round."""
        staged = self._fitted_model().staged_raw(X, offset=offset, n_jobs=self.n_jobs)
        return map(decision, staged)

    @public_name
    def score(
        self, X: object, y: object, sample_weight: object = None, *, offset: object = None
    ) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        y : array of shape (n_rows,), or the name of a column of X
        sample_weight : array of shape (n_rows,), optional
        offset
            As `predict` takes it.
        """
        from sklearn.metrics import accuracy_score  # slow to import

        X, y, _ = split_target(X, y)
        predicted = self.predict(X, offset=offset)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))
