"""AdaBoost: the fit from arguments to model, and the two estimators."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from arboost.data.schema import Schema
from arboost.data.target import Task, check_pairing, encode_known_labels, target
from arboost.errors import InputTypeError, ParameterError, warns_once
from arboost.estimators.adaboost.rounds import AdaBoostRecipe, LearnerStrategy, TreeStrategy
from arboost.estimators.adaboost.schemes import class_scheme, make_scheme
from arboost.estimators.estimator import (
    OUT_OF_BAG,
    BoostedClassifierMethods,
    EngineEstimator,
    regressor_score,
    store_arguments,
)
from arboost.losses.base import Floats, Loss
from arboost.losses.curves import margins
from arboost.losses.links import decision
from arboost.losses.metrics import Metric
from arboost.models.importances import sum_by_column, tree_importances
from arboost.models.metadata import history_of, votes_history, with_history, without_history
from arboost.models.predictor import Predictor
from arboost.params.adaboost import ADABOOST_CLASSIFIER, ADABOOST_REGRESSOR, ENGINE_ONLY
from arboost.params.suggestions import known_arguments
from arboost.training.fit import FitJob, FitSettings, number_to_add
from arboost.training.inputs import Rows, SourceOptions, group_values, loss_rows, warn_one_class
from arboost.training.loop import FitResult, Rounds
from arboost.training.monitor import Round, checked_callbacks
from arboost.training.sets import check_validation, evaluation_arguments


class AdaBoost(EngineEstimator):
    """Learners in sequence, each fitted with the row weights that the earlier learners left."""

    _ROUND_STATS: ClassVar[Mapping[str, str]]  # statistic of a round -> attribute of its array
    _SHARED_PARAM: ClassVar[str]  # parameter that all rounds of a model must share
    _DEFAULT_METRIC: ClassVar[str]  # default of eval_metric

    estimator: Any
    warm_start: bool
    estimator_weights_: Floats
    estimator_errors_: Floats
    oob_score_: float

    @known_arguments
    @warns_once
    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        X_val: object = None,
        y_val: object = None,
        sample_weight_val: object = None,
        eval_set: object = None,
        eval_names: object = None,
        groups: object = None,
        init_model: object = None,
        callbacks: Iterable[Callable[[Round], object]] = (),
        checkpoint: object = None,
        memory_limit: int | str = "auto",
        cache: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on a table and a target.

        Parameters
        ----------
        X : table of shape (n_rows, n_features), or arboost.Dataset
            A table as gradient boosting takes it, or a source that is read in batches, such as
            "data/*.parquet"; with an `estimator`, a table as the estimator takes it.
        y : array of shape (n_rows,)
            Target: numbers for a regressor, labels for a classifier. Or the name of a column of X;
            the column is then not used as a feature.
        sample_weight : array of shape (n_rows,), optional
            Distribution of the rows for the first learner. Rows of weight 0 are left out. Or the
            name of a column of X; the column is then not used as a feature.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Validation set, scored after every round and used by early stopping.
        eval_set : list of pairs (X, y) or triples (X, y, weight), optional
            Several validation sets instead of X_val, each scored after every round; the last one is
            used by early stopping. The training table may be among them, for its learning curve: X
            itself, or equal values of X and y. It never stops a fit.
        eval_names : list of str, optional
            Names of the sets in ``evals_result_``. None: "train" for the training table,
            "validation" for one other set, "validation_0", "validation_1", ... for several.
        groups : array of shape (n_rows,), optional
            Group of each row, for ``validation_split="group"``. Or the name of a column of X; the
            column is then not used as a feature.
        init_model : estimator of the same class, optional
            Fitted estimator whose training is continued by n_estimators more learners.
            (``warm_start`` continues this estimator itself, up to n_estimators in all.)
        callbacks : iterable of callables
            Each gets an `arboost.Round` after every round; True stops the fit, None and False
            continue it.
        checkpoint : path or arboost.Checkpoint, optional
            File that keeps the state of a fit of engine trees. A killed fit that is called again
            continues from there, and ends in the same model.
        memory_limit : int or str, default="auto"
            Memory for a fit on files or other batches: "2GB", "500MB", or a number of bytes.
            "auto": a share of the memory that the process may use. The model does not depend on it.
        cache : path, optional
            Folder that keeps the bins of files: the next fit on the same files with the same
            columns and bins starts at once. Files that have changed are read again.

        Returns
        -------
        self
        """
        requested = self._checked_params()
        check_pairing(X, None, sample_weight=sample_weight, groups=groups)
        sets = evaluation_arguments((X, y), (X_val, y_val, sample_weight_val), eval_set, eval_names)
        previous = self._previous(init_model)
        n_rounds = requested["n_estimators"]
        if previous is self and self.warm_start:
            n_rounds = number_to_add(n_rounds, self.model_.n_rounds, "learners", warns=False)
        # After a perfect learner no row has an error to learn.
        if previous is self and (n_rounds == 0 or 0.0 in self.estimator_errors_[-1:]):
            return self
        learners = self._learner_strategy(requested, previous, checkpoint)
        has_validation = any(not part.is_training for part in sets)
        stream = SourceOptions(memory_limit, cache, groups, has_validation)
        rows, task = self._read(learners, (X, y, sample_weight), requested, previous, stream)
        held_out = tuple(learners.read_validation(part, rows.schema) for part in sets)
        params = self._resolve(requested, rows, task, has_validation=bool(sets))
        settings = FitSettings.of(params)
        splits = params["n_iter_no_change"] is not None and not has_validation
        check_validation(settings.stopping, sets, splits=splits, groups=groups)
        recorded = self._recorded_params(params | learners.recorded_bins(rows))
        warn_one_class(X, [task])
        result = FitResult.of_one_class()
        if not task.is_constant:
            self._check_continues(previous, params)
            recipe = self._recipe(params, task)
            factors = self._class_factors(params, task, rows.weight)
            train, validation = loss_rows(rows, held_out, task, recipe.scheme.loss, factors)
            result = learners.run(
                FitJob(
                    loss=recipe.scheme.loss,
                    start=partial(learners.start, recipe, task),
                    n_rounds=n_rounds,
                    settings=settings,
                    record=recorded,
                    train=train,
                    validation=validation,
                    splits=splits,
                    groups=group_values(X, groups),
                    stratify=task.kind == "classifier",
                    callbacks=checked_callbacks(callbacks),
                    checkpoint=checkpoint,
                )
            )
        self._keep_fit(learners.model(result, rows.schema, task, recorded), result, previous)
        return self

    def staged_predict(self, X: object) -> Iterator[NDArray[Any]]:
        """Yield the result of `predict` after each round."""
        return self._fitted_model().staged_predict(X, n_jobs=self.n_jobs)

    def staged_score(self, X: object, y: object, sample_weight: object = None) -> Iterator[float]:
        """Yield the result of `score`, accuracy or R^2, after each round."""
        score = accuracy_score if self._KIND == "classifier" else r2_score
        for predicted in self.staged_predict(X):
            yield score(y, predicted, sample_weight=sample_weight)

    @property
    def estimators_(self) -> list[Any]:
        """The learners: clones of the estimator, or predictors of one tree each."""
        model = self._fitted_model()
        if not isinstance(model, Predictor):
            return list(model.members)
        learners = self._engine_model("init_model")
        return [_tree_predictor(learners, tree) for tree in range(learners.n_trees)]

    @property
    def feature_importances_(self) -> Floats:
        """Share of each feature in the gain of a learner, averaged by the learners' weights."""
        model = self._fitted_model()
        weights = self.estimator_weights_
        if not isinstance(model, Predictor):
            shares = np.array([member.feature_importances_ for member in model.members])
        else:
            shares = sum_by_column(tree_importances(model), model.schema)
        if not len(weights):
            return np.zeros(self.n_features_in_)
        # np.average, unlike a matrix product, adds in a fixed order.
        mean: Floats = np.average(shares, axis=0, weights=weights)
        return mean

    def _read(
        self,
        learners: LearnerStrategy[Any],
        arrays: tuple[object, object, object],
        params: dict[str, Any],
        previous: AdaBoost | None,
        stream: SourceOptions,
    ) -> tuple[Rows[Any], Task]:
        """The training rows, checked, and their task."""
        X = arrays[0]
        if self.estimator is not None:
            stream.check_unused()
        else:
            needs_values = "" if previous is None else "init_model or warm_start"
            arrays = self._resolve_input(arrays, params, stream, needs_values)
        groups = stream.groups if arrays[0] is X else None  # of a source, its Dataset has them
        return learners.read(self._KIND, *arrays, groups)

    def _previous(self, init_model: object) -> AdaBoost | None:
        """The fitted estimator whose training is continued, or None."""
        if init_model is None:
            if not self.warm_start or not hasattr(self, "model_"):
                return None
            init_model = self
        if type(init_model) is not type(self):
            raise InputTypeError(
                f"init_model={init_model!r} is not allowed: the errors and weights of its learners "
                f"are needed, which only a fitted {type(self).__name__} has. Pass one."
            )
        check_is_fitted(init_model)
        if not hasattr(init_model, "estimator_errors_"):
            raise ValueError(
                "the model was loaded from a file, which does not keep the errors of the learners. "
                "Keep the estimator itself, for example with joblib.dump, or train anew."
            )
        return init_model

    def _learner_strategy(
        self, params: dict[str, Any], previous: AdaBoost | None, checkpoint: object
    ) -> LearnerStrategy[Any]:
        """The strategy for the learners: engine trees, or clones of the estimator."""
        if self.estimator is None:
            return TreeStrategy(params, previous)
        # Modules of scikit-learn that fits of engine trees do not need take time to import.
        from arboost.estimators.adaboost.estimator_learners import EstimatorStrategy

        return EstimatorStrategy(self.estimator, previous, checkpoint)

    def _checked_params(self) -> dict[str, Any]:
        params = super()._checked_params()
        if params["oob_score"] and not params["resample"]:
            raise ParameterError(
                "oob_score=True is not allowed with resample=False: every learner sees all rows, "
                "and none is out of its bag. Use resample=True, or validation data.",
                parameter="oob_score",
            )
        if params["tol"] > 0.0 and params["n_iter_no_change"] is None:
            raise ParameterError(
                f"tol={params['tol']!r} is not allowed: it is for early stopping, which "
                "n_iter_no_change=None leaves out. Set n_iter_no_change too, or use tol=0.",
                parameter="tol",
            )
        if params["estimator"] is not None:
            self._check_engine_only(params)
        return params

    def _check_engine_only(self, params: dict[str, Any]) -> None:
        """Raise ValueError where parameters of engine trees are set next to an estimator."""
        for name in filter(params.__contains__, ENGINE_ONLY):
            value, default = params[name], self._TABLE[name].default
            if value != default and repr(value) != repr(default):  # NaN is not equal to itself
                raise ValueError(
                    f"{name}={value!r} is not allowed with an estimator: it is for the trees that "
                    f"estimator=None grows. Leave it out, or set it in the estimator."
                )

    def _check_continues(self, previous: AdaBoost | None, params: dict[str, Any]) -> None:
        """Raise ValueError unless learners of this fit can be added to the previous ones."""
        if previous is None:
            return
        name = self._SHARED_PARAM
        was = previous.model_.params[name]
        if was != params[name]:
            raise ValueError(
                f"{name}={params[name]!r} is not allowed: the learners that are kept were trained "
                f"with {name}={was!r}. Make the two equal."
            )
        if params["oob_score"]:
            raise ParameterError(
                "oob_score=True is not allowed where training is continued: the rows that the "
                "first learners have drawn are not kept. Train anew, or use validation data.",
                parameter="oob_score",
            )

    def _resolve(
        self, params: dict[str, Any], rows: Rows[Any], task: Task, *, has_validation: bool
    ) -> dict[str, Any]:
        """The parameters of a fit, with the default metric where rows are measured."""
        metric = params["eval_metric"]
        measures = has_validation or params["n_iter_no_change"] is not None
        return params | {
            "eval_metric": [self._DEFAULT_METRIC] if metric is None and measures else metric
        }

    def _recipe(self, params: dict[str, Any], task: Task) -> AdaBoostRecipe:
        return AdaBoostRecipe.of(params | {"scheme": make_scheme(params, task.n_classes)})

    def _plan(
        self, params: dict[str, Any], task: Task, schema: Schema
    ) -> tuple[Loss, Callable[..., Rounds]]:
        """The loss of a fit of engine trees, and the callable that starts its training."""
        recipe = self._recipe(params, task)
        return recipe.scheme.loss, partial(TreeStrategy(params).start, recipe, task)

    def _keep(
        self, result: FitResult, schema: Schema, task: Task, recorded: dict[str, Any]
    ) -> None:
        """Set the fitted attributes of a new model of engine trees."""
        self._keep_fit(result.predictor(schema, task, recorded), result)

    def _keep_fit(self, model: Any, result: FitResult, previous: AdaBoost | None = None) -> None:
        """Set the fitted attributes; nothing before this has changed the estimator.

        Statistics of the rounds follow those of the previous estimator, which may be this one.
        """
        fitted, none = result.fitted, np.empty(0)
        stats = {
            attribute: np.append(
                getattr(previous, attribute, none), fitted.round_stats.get(name, none)
            )
            for name, attribute in self._ROUND_STATS.items()
        }
        self._keep_model(self._combined(model), model.schema)
        self._keep_history(result)
        self.__dict__.update(stats)
        for name in ("oob_score_", OUT_OF_BAG[self._KIND]):
            self.__dict__.pop(name, None)
        if fitted.oob_scores is not None and fitted.oob_score is not None:
            self.oob_score_ = fitted.oob_score
            setattr(self, OUT_OF_BAG[self._KIND], decision(fitted.oob_scores))

    def _combined(self, model: Any) -> Any:
        """The model that predicts, from the one of the learners."""
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _tree_predictor(model: Predictor, tree: int) -> Predictor:
    return replace(
        model,
        forest=model.forest.single_tree(tree),
        tree_weights=model.tree_weights[tree : tree + 1],
        provenance=without_history(model.provenance),
    )


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
    _ROUND_STATS: ClassVar = {
        "error": "estimator_errors_",
        "weight": "estimator_weights_",
        "normalizer": "normalizers_",
        "loss": "exponential_loss_",
        "training_error": "training_error_",
        "vote_range": "vote_range_",
    }
    _SHARED_PARAM = "algorithm"
    _DEFAULT_METRIC = "error"

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
        store_arguments(self, locals())

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
        codes = encode_known_labels(target(y, len(raw)), model.classes, "y", "fit")
        return margins(raw, codes, float(self.vote_range_.sum()))

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
    _ROUND_STATS: ClassVar = {"error": "estimator_errors_", "weight": "estimator_weights_"}
    _SHARED_PARAM = "loss"
    _DEFAULT_METRIC = "squared_error"

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
        store_arguments(self, locals())

    def _combined(self, model: Any) -> Any:
        self.__dict__.pop("_learners", None)
        if self.aggregation == "median" or not isinstance(model, Predictor):
            return model
        self._learners = model
        return _averaged(model)

    def _engine_model(self, asked: str) -> Predictor:
        """The model; for a fit that continues it, the one with the learners' own values."""
        learners: Predictor | None = self.__dict__.get("_learners")
        return learners if learners and asked == "init_model" else super()._engine_model(asked)


def _averaged(model: Predictor) -> Predictor:
    """The weighted mean of the trees of a weighted median."""
    if not model.n_trees:
        return replace(model, combine="mean")
    weights = model.tree_weights * (model.n_trees / np.add.accumulate(model.tree_weights)[-1])
    of_node = np.repeat(weights, np.diff(model.forest.tree_start))[:, np.newaxis]
    forest = replace(model.forest, value=model.forest.value * of_node)
    return replace(model, forest=forest, combine="mean", tree_weights=weights)
