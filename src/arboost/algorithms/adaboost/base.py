"""AdaBoost: the fit of both estimators, from the arguments of users to the fitted model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from arboost.algorithms.adaboost.rounds import AdaBoostRecipe
from arboost.algorithms.adaboost.schemes import make_scheme
from arboost.algorithms.adaboost.sources import LearnerSource, TreeSource
from arboost.algorithms.estimator import EngineEstimator
from arboost.data.schema import Schema
from arboost.data.target import Task, class_factors
from arboost.data.unusual import check_pairing
from arboost.errors import warns_first
from arboost.explain.importances import by_column, tree_importances
from arboost.losses import Loss
from arboost.model.history.record import without_history
from arboost.model.predict import decision
from arboost.names.arguments import known_arguments
from arboost.params.adaboost import ENGINE_ONLY
from arboost.predictor import Predictor
from arboost.training.fit import FitJob, FitSettings
from arboost.training.held_out import check_validation, given_sets
from arboost.training.inputs import Floats, Rows, loss_rows, warn_one_class
from arboost.training.monitor import Round, checked_callbacks
from arboost.training.rounds import FitResult, Rounds
from arboost.training.streams import StreamOptions, group_values

__all__ = ["AdaBoost"]


class AdaBoost(EngineEstimator):
    """Learners in sequence, each fitted with the row weights that the earlier learners left."""

    _FACTS: ClassVar[Mapping[str, str]]  # fact of a round -> attribute of its array
    _SAME: ClassVar[str]  # parameter that all rounds of a model must share
    _METRIC: ClassVar[str]  # default of eval_metric
    _OOB_SCORES: ClassVar[str]  # attribute of the out-of-bag scores

    estimator: Any
    warm_start: bool
    estimator_weights_: Floats
    estimator_errors_: Floats
    oob_score_: float

    @known_arguments
    @warns_first
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
            Target: numbers for a regressor, labels for a classifier. Or the name of a column of X,
            which is then no feature.
        sample_weight : array of shape (n_rows,), optional
            Distribution of the rows for the first learner. Rows of weight 0 are left out. Or
            the name of a column of X, which is then no feature.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Validation set, scored after every round and used by early stopping.
        eval_set : list of pairs (X, y) or triples (X, y, weight), optional
            Several validation sets instead of X_val, each scored after every round; the last one
            is used by early stopping. The training table may be among them, for its learning
            curve: X itself, or equal values of X and y. It stops no fit.
        eval_names : list of str, optional
            Names of the sets in ``evals_result_``. None: "train" for the training table,
            "validation" for one other set, "validation_0", "validation_1", ... for several.
        groups : array of shape (n_rows,), optional
            Group of each row, for ``validation_split="group"``; or the name of a column of X,
            which is then no feature.
        init_model : estimator of the same class, optional
            Fitted estimator whose training is continued: n_estimators learners are added to its
            own. (``warm_start`` continues this estimator itself, up to n_estimators in all.)
        callbacks : iterable of callables
            Each gets an `arboost.Round` after every round; True stops the fit, None and False
            continue it.
        checkpoint : path or arboost.Checkpoint, optional
            File that keeps the state of a fit of engine trees. A killed fit that is called again
            continues from there, and ends in the same model.
        memory_limit : int or str, default="auto"
            Memory for a fit on files or other batches: "2GB", "500MB", or a number of bytes.
            "auto": a share of the memory that the process may use. The model is the same.
        cache : path, optional
            Folder that keeps the bins of files: the next fit on the same files with the same
            columns and bins starts at once. Files that have changed are read again.

        Returns
        -------
        self
        """
        given = self._checked_params()
        check_pairing(X, None, sample_weight=sample_weight, groups=groups)
        sets = given_sets((X, y), (X_val, y_val, sample_weight_val), eval_set, eval_names)
        previous = self._previous(init_model)
        n_rounds = self._n_to_add(given["n_estimators"], previous)
        if previous is self and (n_rounds == 0 or self._is_done):
            return self
        learners = self._learner_source(given, previous, checkpoint)
        has_validation = any(not one.is_training for one in sets)
        stream = StreamOptions(memory_limit, cache, groups, has_validation)
        rows, task = self._read(learners, (X, y, sample_weight), given, previous, stream)
        held_out = tuple(learners.read_validation(one, rows.schema) for one in sets)
        params = self._resolve(given, rows, task, has_validation=bool(sets))
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
            train, validation = loss_rows(rows, held_out, task, recipe.loss, factors)
            result = learners.run(
                FitJob(
                    loss=recipe.loss,
                    start=learners.start(recipe, task),
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
        found: Iterator[NDArray[Any]] = self._fitted_model().staged_predict(X, n_jobs=self.n_jobs)
        return found

    @property
    def estimators_(self) -> list[Any]:
        """The learners: clones of the estimator, or predictors of one tree each."""
        model = self._fitted_model()
        if not isinstance(model, Predictor):
            return list(model.members)
        learners = self._engine_model("init_model")
        return [_one_tree(learners, tree) for tree in range(learners.n_trees)]

    @property
    def feature_importances_(self) -> Floats:
        """Share of each feature in the gain of a learner, averaged by the learners' weights."""
        model = self._fitted_model()
        weights = self.estimator_weights_
        if not isinstance(model, Predictor):
            shares = np.array([member.feature_importances_ for member in model.members])
        else:
            shares = by_column(tree_importances(model), model.schema)
        if not len(weights):
            return np.zeros(self.n_features_in_)
        # np.average, unlike a matrix product, adds in a fixed order.
        mean: Floats = np.average(shares, axis=0, weights=weights)
        return mean

    def _read(
        self,
        learners: LearnerSource[Any],
        given: tuple[object, object, object],
        params: dict[str, Any],
        previous: AdaBoost | None,
        stream: StreamOptions,
    ) -> tuple[Rows[Any], Task]:
        """Return the training rows, checked, and their task; estimators read tables of theirs."""
        X = given[0]
        if self.estimator is not None:
            stream.check_unused()
        else:
            needs_values = "" if previous is None else "init_model or warm_start"
            given = self._opened(given, params, stream, needs_values)
        groups = stream.groups if given[0] is X else None  # of a source, its Dataset has them
        return learners.read(self._KIND, *given, groups)

    def _previous(self, init_model: object) -> AdaBoost | None:
        """Return the fitted estimator whose training is continued, or None."""
        if init_model is None:
            if not self.warm_start or not hasattr(self, "model_"):
                return None
            init_model = self
        if type(init_model) is not type(self):
            raise TypeError(
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

    def _n_to_add(self, n_estimators: int, previous: AdaBoost | None) -> int:
        """Return the number of learners to add: a warm start of this estimator counts its own."""
        if previous is not self or not self.warm_start:
            return n_estimators
        n_kept = self.model_.n_rounds
        if n_estimators < n_kept:
            raise ValueError(
                f"n_estimators={n_estimators} is not allowed: warm_start=True keeps the {n_kept} "
                "learners there are. Use a larger number, or warm_start=False to start anew."
            )
        return n_estimators - n_kept

    @property
    def _is_done(self) -> bool:
        """Whether the last learner was perfect, so that no row has an error to learn."""
        return bool(len(self.estimator_errors_)) and self.estimator_errors_[-1] == 0.0

    def _learner_source(
        self, params: dict[str, Any], previous: AdaBoost | None, checkpoint: object
    ) -> LearnerSource[Any]:
        """Return the source of learners: engine trees, or clones of the estimator."""
        if self.estimator is None:
            return TreeSource(params, previous)
        # Modules of scikit-learn that fits of engine trees do not need take time to import.
        from arboost.algorithms.adaboost.estimator_source import EstimatorSource

        return EstimatorSource(self.estimator, previous, checkpoint)

    def _checked_params(self) -> dict[str, Any]:
        params = super()._checked_params()
        _check_together(params)
        if params["estimator"] is not None:
            self._check_engine_only(params)
        return params

    def _check_engine_only(self, params: dict[str, Any]) -> None:
        """Raise ValueError where parameters of engine trees are set next to an estimator."""
        for name in (name for name in ENGINE_ONLY if name in params):
            given, usual = params[name], self._TABLE[name].default
            if given != usual and repr(given) != repr(usual):  # NaN is not equal to itself
                raise ValueError(
                    f"{name}={given!r} is not allowed with an estimator: it is for the trees that "
                    f"estimator=None grows. Leave it out, or set it in the estimator."
                )

    def _check_continues(self, previous: AdaBoost | None, params: dict[str, Any]) -> None:
        """Raise ValueError unless learners of this fit can be added to the previous ones."""
        if previous is None:
            return
        name = self._SAME
        was = previous.model_.params[name]
        if was != params[name]:
            raise ValueError(
                f"{name}={params[name]!r} is not allowed: the learners that are kept were trained "
                f"with {name}={was!r}. Make the two equal."
            )
        if params["oob_score"]:
            raise ValueError(
                "oob_score=True is not allowed where training is continued: the rows that the "
                "first learners have drawn are not kept. Train anew, or use validation data."
            )

    def _resolve(
        self, params: dict[str, Any], rows: Rows[Any], task: Task, *, has_validation: bool
    ) -> dict[str, Any]:
        """Return the parameters of a fit, with the default metric where rows are measured."""
        metric = params["eval_metric"]
        measures = has_validation or params["n_iter_no_change"] is not None
        return params | {"eval_metric": [self._METRIC] if metric is None and measures else metric}

    def _recipe(self, params: dict[str, Any], task: Task) -> AdaBoostRecipe:
        return AdaBoostRecipe(
            scheme=make_scheme(params, task.n_classes),
            resample=params["resample"],
            max_restarts=params["max_restarts"],
            oob_score=params["oob_score"],
        )

    def _plan(
        self, params: dict[str, Any], task: Task, schema: Schema
    ) -> tuple[Loss, Callable[..., Rounds]]:
        """Return the loss of a fit of engine trees, and the callable that starts its training."""
        recipe = self._recipe(params, task)
        return recipe.loss, TreeSource(params).start(recipe, task)

    def _class_factors(
        self, params: dict[str, Any], task: Task, weight: Floats | None
    ) -> Floats | None:
        """Return the factor on the row weights of each class; None for regression."""
        if task.classes is None:
            return None
        return class_factors(params["class_weight"], task.classes, task.y, weight)

    def _keep(
        self, result: FitResult, schema: Schema, task: Task, recorded: dict[str, Any]
    ) -> None:
        """Set the fitted attributes of a new model of engine trees."""
        self._keep_fit(result.predictor(schema, task, recorded), result)

    def _keep_fit(self, model: Any, result: FitResult, previous: AdaBoost | None = None) -> None:
        """Set the fitted attributes; nothing before this has changed the estimator.

        Facts of the rounds follow those of the previous estimator, which may be this one.
        """
        fitted, none = result.fitted, np.empty(0)
        facts = {
            attribute: np.append(getattr(previous, attribute, none), fitted.facts.get(fact, none))
            for fact, attribute in self._FACTS.items()
        }
        self._keep_model(self._combined(model), model.schema)
        self._keep_history(result)
        self.__dict__.update(facts)
        for name in ("oob_score_", self._OOB_SCORES):
            self.__dict__.pop(name, None)
        if fitted.oob_scores is not None and fitted.oob_score is not None:
            self.oob_score_ = fitted.oob_score
            setattr(self, self._OOB_SCORES, decision(fitted.oob_scores))

    def _combined(self, model: Any) -> Any:
        """Return the model that predicts, from the one of the learners."""
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags


def _check_together(params: dict[str, Any]) -> None:
    """Raise ValueError where two parameters contradict each other."""
    if params["oob_score"] and not params["resample"]:
        raise ValueError(
            "oob_score=True is not allowed with resample=False: every learner sees all rows, "
            "and none is out of its bag. Use resample=True, or validation data."
        )
    if params["tol"] > 0.0 and params["n_iter_no_change"] is None:
        raise ValueError(
            f"tol={params['tol']!r} is not allowed: it is for early stopping, which "
            "n_iter_no_change=None leaves out. Set n_iter_no_change too, or use tol=0."
        )


def _one_tree(model: Predictor, tree: int) -> Predictor:
    weights = model.tree_weights[tree : tree + 1]
    return Predictor(
        **model.fields()
        | {
            "forest": model.forest.only(tree),
            "tree_weights": weights,
            "provenance": without_history(model.provenance),
        }
    )
