"""AdaBoost for classification, with the theory of its training error."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from numpy.random import RandomState
from sklearn.metrics import accuracy_score

from arboost.algorithms.adaboost.base import AdaBoost
from arboost.algorithms.adaboost.schemes import class_scheme
from arboost.algorithms.estimator import BoostedClassifierMethods, store
from arboost.data.target import codes_of, target
from arboost.losses.margins import margins
from arboost.losses.metrics import Metric
from arboost.model.history.record import history_of, votes_history, with_history
from arboost.params.adaboost import ADABOOST_CLASSIFIER
from arboost.training.inputs import Floats
from arboost.training.rounds import FitResult

__all__ = ["AdaBoostClassifier"]


class AdaBoostClassifier(BoostedClassifierMethods, AdaBoost):
    """AdaBoost for two and more classes.

    Parameters
    ----------
    estimator : estimator or None, default=None
        Learner of each round: None for the engine's own trees, or any scikit-learn estimator, which
        is cloned.
    n_estimators : int, default=50
        Number of learners; fewer after early stopping, or where no further learner helps.
    learning_rate : float, default=1.0
        Factor on the weight of every learner; smaller rates need more learners; from 2 on, steps do
        not lower the loss.
    algorithm : {"discrete", "real", "gentle"}, default="discrete"
        Contribution of a learner to the scores: its vote, weighted by its error (SAMME for more
        than two classes); half the log-odds of its probabilities; or their difference.
    criterion : {"gini", "error"}, default="gini"
        Impurity that the trees minimise: Gini impurity; or the weighted error, as in the theory of
        AdaBoost, and of equal errors the Gini impurity.
    max_depth : int or None, default=1
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
        instead of the weights; for learners that take no weights.
    max_restarts : int, default=10
        With resample=True: how often a round draws its rows again after a learner that is no better
        than chance.
    oob_score : bool, default=False
        Whether to compute the out-of-bag score; needs resample=True.
    class_weight : dict, "balanced" or None, default=None
        Factors on the row weights by label, 1 for labels that are not named; "balanced" gives all
        classes the same total weight.
    warm_start : bool, default=False
        Whether a further call of fit keeps the learners and adds new ones up to n_estimators.
    eval_metric : str, callable, arboost.Metric, list of these, or None, default=None
        Metrics on the validation set after each round; early stopping uses the first. None: error.
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
    classes_ : array of shape (n_classes,)
    n_iter_ : int
        Number of learners.
    estimators_ : list
        The learners.
    estimator_errors_, estimator_weights_ : float64 arrays of shape (n_iter_,)
        Error e_t of each learner over the distribution D_t that it was trained on, and the factor
        alpha_t on its votes: ``learning_rate / 2 * ln((1 - e) / e)`` for two classes,
        ``learning_rate * (ln((1 - e) / e) + ln(K - 1))`` for K of them; with "real" and "gentle"
        the learning rate itself.
    normalizers_, edges_ : float64 arrays of shape (n_iter_,)
        Z_t, the factor that each round changes the exponential loss by, and 1/2 - e_t.
    training_error_, exponential_loss_ : float64 arrays of shape (n_iter_,)
        After each round, on the training rows by their weights.
    training_error_bound_, edge_bound_ : float64 arrays of shape (n_iter_,)
        Upper bounds on the training error: the product of all Z_t (with more than two classes
        that of ``(1 - e) exp(-alpha / 2) + e exp(alpha / 2)``), and exp(-2 sum of edges^2), which
        is larger. NaN where the theory has none: the first for "real" and "gentle" with more than
        two classes; the second for "real" and "gentle", for more than two classes, and for
        learning rates above 1.
    vote_range_ : float64 array of shape (n_iter_,)
        Largest difference between the votes of each learner for any two classes.
    oob_score_, oob_decision_function_ : float, float64 array
        With ``oob_score=True``: accuracy and raw scores of the training rows by the learners that
        did not draw them; NaN for rows that all have drawn.
    best_iteration_, best_score_, evals_result_
        The best round on the validation set, its first metric, and the metrics of all rounds.
    stop_reason_ : str
        Reason for the end of training: "n_estimators", "n_iter_no_change", "max_time", "callback
        NAME", "perfect learner", "no better than chance" or "one class".
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from arboost import AdaBoostClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AdaBoostClassifier(n_estimators=100).fit(X, y)
    >>> bool((model.training_error_ <= model.training_error_bound_).all())
    True
    """

    _KIND = "classifier"
    _TABLE = ADABOOST_CLASSIFIER
    _FACTS: ClassVar = {
        "error": "estimator_errors_",
        "weight": "estimator_weights_",
        "normalizer": "normalizers_",
        "loss": "exponential_loss_",
        "training_error": "training_error_",
        "vote_range": "vote_range_",
    }
    _SAME = "algorithm"
    _METRIC = "error"
    _OOB_SCORES = "oob_decision_function_"

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        algorithm: str = "discrete",
        criterion: str = "gini",
        max_depth: int | None = 1,
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
        class_weight: Mapping[Any, float] | str | None = None,
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

    def margins(self, X: object, y: object) -> Floats:
        """Return the normalised margin of each row: votes for its class minus the most for another.

        From -1, all votes for one wrong class, to 1, all for the right one. The absolute value is
        the confidence of the ensemble.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        y : array of shape (n_rows,)
            Labels, each one of ``classes_``.

        Examples
        --------
        >>> from arboost import AdaBoostClassifier
        >>> AdaBoostClassifier().fit([[0], [1]], [0, 1]).margins([[0], [1]], [0, 0])
        array([ 1., -1.])
        """
        model = self._fitted_model()
        raw = model.predict_raw(X, n_jobs=self.n_jobs)
        codes = codes_of(target(y, len(raw)), model.classes, "y", "fit")
        return margins(raw, codes, float(self.vote_range_.sum()))

    def staged_score(self, X: object, y: object, sample_weight: object = None) -> Iterator[float]:
        """Yield the accuracy, the result of `score`, after each round."""
        for labels in self.staged_predict(X):
            yield accuracy_score(y, labels, sample_weight=sample_weight)

    def _keep_fit(self, model: Any, result: FitResult, previous: AdaBoost | None = None) -> None:
        super()._keep_fit(model, result, previous)
        scheme = class_scheme(model.params, len(model.classes))
        errors, weights = self.estimator_errors_, self.estimator_weights_
        self.edges_ = 0.5 - errors
        self.training_error_bound_ = scheme.error_bounds(errors, weights, self.exponential_loss_)
        self.edge_bound_ = scheme.edge_bounds(errors, weights)
        votes = votes_history(
            self.training_error_,
            self.training_error_bound_,
            self.edge_bound_,
            float(self.vote_range_.sum()),
        )
        provenance = with_history(model.provenance, history_of(adaboost=votes))
        self.model_ = replace(model, provenance=provenance)
