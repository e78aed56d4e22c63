"""The shared scikit-learn surface: check -> ingest -> bin -> train -> `Predictor`, and its answers.

An algorithm is a subclass that lists its parameters and turns them into a `Recipe`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from arboost.algorithms.explain_methods import Explained
from arboost.backend import threads
from arboost.data.schema import Schema
from arboost.data.table import ColumnOptions, Table
from arboost.data.target import Task, class_factors, codes_of, encode_labels, numbers_of
from arboost.explain.importances import importances
from arboost.losses import Loss
from arboost.model.model import Model
from arboost.model.outputs import Probabilities
from arboost.model.predict import decision, table_scores
from arboost.params import auto
from arboost.params.check import check, record
from arboost.params.kinds import Param
from arboost.predictor import Predictor
from arboost.training import warm_start
from arboost.training.fit import Job, Outcome, run
from arboost.training.held_out import check_validation, search_splits, split_rows
from arboost.training.inputs import (
    Part,
    Rows,
    number_levels,
    training_rows,
    validation_rows,
    weighted_target,
)
from arboost.training.monitor import Round
from arboost.training.rounds import Recipe, Rounds
from arboost.training.splits import Split

__all__ = ["Task", "TreeClassifier", "TreeEnsemble", "TreeRegressor", "store"]

# They cannot change the model, so the model does not hold them.
_NOT_IN_MODEL = ("bundling", "n_jobs", "verbose")


def store(estimator: object, arguments: Mapping[str, Any]) -> None:
    """Keep the arguments of ``__init__`` as attributes, unchanged, as scikit-learn asks."""
    vars(estimator).update({name: arguments[name] for name in arguments if name != "self"})


class TreeEnsemble(Explained, BaseEstimator):
    """What regressors and classifiers share."""

    _TABLE: ClassVar[Mapping[str, Param]]
    _has_rounds: bool = True  # of trees of the engine, which `arboost.cv` can make side by side
    n_jobs: int | None
    model_: Predictor

    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        X_val: object = None,
        y_val: object = None,
        sample_weight_val: object = None,
        groups: object = None,
        init_model: object = None,
        callbacks: Iterable[Callable[[Round], object]] = (),
        checkpoint: object = None,
    ) -> Self:
        """Train on a table and a target.

        Parameters
        ----------
        X : table of shape (n_rows, n_features), or arboost.Dataset
            NumPy array, pandas, Polars or PyArrow table, anything with an Arrow C stream, matrix of
            scipy.sparse, or list of lists. Columns are numbers, booleans, decimals, dates and
            times, or categories. NaN and None are missing values. A Dataset brings its own y and
            weights.
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
            Rows of weight 0 count as absent.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Validation data: each round is measured on them, and early stopping looks at them.
            Columns are matched by name.
        groups : array of shape (n_rows,), optional
            Group of each row, for ``validation_split="group"``.
        init_model : estimator, Predictor or path of a model file, optional
            A model whose training goes on: n_estimators more rounds are added to its own.
        callbacks : iterable of callables
            Each gets an `arboost.Round` after every round, and answers None or False to go on, True
            to stop.
        checkpoint : path or arboost.Checkpoint, optional
            Where the state of the fit is kept. A killed fit that is called again goes on from
            there, and ends in the same model.

        Returns
        -------
        self
        """
        given = self._params()
        old = None if init_model is None else warm_start.previous_model(init_model)
        schema = None if old is None else old.schema
        rows = training_rows(X, y, sample_weight, schema, self._column_options(given))
        task = self._task(rows.y, None if old is None else old.classes)
        rows = number_levels(rows, task.y, task.n_classes, schema)
        held_out = validation_rows(X_val, y_val, sample_weight_val, rows.schema)
        has_validation = held_out is not None
        params = self._resolve(given, len(rows.y), has_validation=has_validation, old=old)
        check_validation(params, has_validation=has_validation, groups=groups)
        recorded = self._record(params | {"n_estimators": given["n_estimators"]})
        outcome = Outcome.of_one_class()
        if not task.is_constant:
            loss = self._loss(params, task)
            if old is not None:
                self._check_continues(old, task, params, loss)
            recipe = self._recipe(params, loss, rows.schema)
            train, validation = self._parts(params, rows, held_out, task, loss, old)
            search: tuple[Split, ...] = ()
            if auto.finds_rounds(
                given["n_estimators"], params["n_iter_no_change"], has_validation=has_validation
            ):
                search = search_splits(train, params, task.kind, groups)
            elif validation is None and params["n_iter_no_change"] is not None:
                train, validation = split_rows(train, params, task.kind, groups)
            outcome = run(
                Job(
                    recipe=recipe,
                    rounds=self._rounds(old),
                    params=params,
                    record=recorded,
                    train=train,
                    validation=validation,
                    search=search,
                    old=old,
                    callbacks=tuple(callbacks),
                    checkpoint=checkpoint,
                )
            )
        self._keep(outcome, rows.schema, task, recorded, init_model)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `arboost.load` reads.

        A failure leaves the file that was there before.
        """
        self._fitted_model().save(path)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Share of each feature in the total gain of all splits; all 0 where nothing was split."""
        gain = importances(self._fitted_model(), "gain")
        total = gain.sum()
        return gain / total if total > 0 else gain

    def _params(self) -> dict[str, Any]:
        # Faster than get_params, which looks at signatures: it matters when a fit takes a moment.
        given = {name: value for name, value in vars(self).items() if name in self._TABLE}
        params = check(given, self._TABLE)
        self._check_together(params)
        return params

    def _column_options(self, params: dict[str, Any]) -> ColumnOptions:
        return ColumnOptions(params["categorical_features"], params["missing"])

    def _record(self, params: dict[str, Any]) -> dict[str, Any]:
        names = [name for name in params if name in self._TABLE and name not in _NOT_IN_MODEL]
        return record({name: params[name] for name in names}, self._TABLE)

    def _parts(
        self,
        params: dict[str, Any],
        rows: Rows,
        held_out: Rows | None,
        task: Task,
        loss: Loss,
        old: Model | None,
    ) -> tuple[Part, Part | None]:
        """Return the rows with targets and weights as losses read them, and scores to start at."""
        loss.check_target(task.y)
        factors = self._factors(params, task, rows.weight)
        n_threads = threads(params["n_jobs"])
        train = self._part(rows, task.y, factors, old, n_threads)
        if held_out is None:
            return train, None
        y_val = self._same_task(task, held_out.y)
        # Some losses ask for a value above 0, which may well be missing among few validation rows.
        loss.check_target(np.append(y_val, task.y.max()))
        return train, self._part(held_out, y_val, factors, old, n_threads)

    def _part(
        self,
        rows: Rows,
        y: NDArray[np.float64],
        factors: NDArray[np.float64] | None,
        old: Model | None,
        n_threads: int,
    ) -> Part:
        start = None
        if old is not None and isinstance(rows.source, Table):  # a Dataset was refused before
            start = self._start(old, rows.source, n_threads)
            start = start if rows.kept is None else start[rows.kept]
        return Part(rows.source, rows.kept, weighted_target(y, rows.weight, factors), start)

    def _keep(
        self,
        outcome: Outcome,
        schema: Schema,
        task: Task,
        recorded: dict[str, Any],
        init_model: object = None,
    ) -> None:
        """Set the fitted attributes; nothing before this has changed the estimator."""
        self.model_ = outcome.model or Predictor(
            forest=outcome.forest,
            schema=schema,
            base_score=outcome.base_score,
            link=outcome.link,
            classes=task.classes,
            trees_per_round=outcome.trees_per_round,
            params=recorded,
            kind=task.kind,
            **outcome.combination,
        )
        self.n_iter_ = self.model_.n_rounds
        self.best_iteration_ = outcome.best_index
        self.best_score_ = outcome.best_score
        self.evals_result_ = outcome.history
        self.stop_reason_ = outcome.stop_reason
        self._keep_schema(schema)
        if task.classes is not None:
            self.classes_ = self.model_.classes

    def _keep_schema(self, schema: Schema) -> None:
        self.n_features_in_ = schema.n_features
        if schema.names is not None:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _resolve(
        self,
        params: dict[str, Any],
        n_rows: int,
        *,
        has_validation: bool,
        old: Model | None = None,
    ) -> dict[str, Any]:
        """Return the parameters of a fit to so many rows, without the word "auto"."""
        return auto.resolve(params, n_rows, has_validation=has_validation)

    def _rounds(self, old: Model | None) -> Callable[..., Rounds]:
        """Return what starts a fit by the recipe, or goes on from an old model."""
        raise NotImplementedError

    def _check_continues(self, old: Model, task: Task, params: dict[str, Any], loss: Loss) -> None:
        """Raise ValueError unless this fit can go on from the old model."""
        warm_start.check_continues(old, task.kind, params, loss.link, loss.n_outputs)

    def _start(self, old: Model, table: Table, n_threads: int) -> NDArray[np.float64]:
        """Return the scores that the old model leaves to start at."""
        return table_scores(old, table, n_threads=n_threads)

    def _check_together(self, params: dict[str, Any]) -> None:
        raise NotImplementedError

    def _task(self, y: NDArray[Any], classes: NDArray[Any] | None) -> Task:
        raise NotImplementedError

    def _same_task(self, task: Task, y_val: NDArray[Any]) -> NDArray[np.float64]:
        raise NotImplementedError

    def _factors(
        self, params: dict[str, Any], task: Task, weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        raise NotImplementedError

    def _loss(self, params: dict[str, Any], task: Task) -> Loss:
        raise NotImplementedError

    def _recipe(self, params: dict[str, Any], loss: Loss, schema: Schema) -> Recipe:
        raise NotImplementedError

    def _fitted_model(self) -> Predictor:
        if not hasattr(self, "model_"):  # the check itself takes longer than a prediction
            check_is_fitted(self)
        return self.model_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        return tags


class TreeRegressor(RegressorMixin, TreeEnsemble):
    """Answers of a regressor."""

    def predict(self, X: object) -> NDArray[np.float64]:
        """Return the predicted values, float64 of shape (n_rows,).

        Several quantiles have a column each, shape (n_rows, n_quantiles).
        """
        return self._fitted_model().predict(X, n_jobs=self.n_jobs)

    def staged_predict(self, X: object) -> Iterator[NDArray[np.float64]]:
        """Yield what `predict` would return after each round."""
        return self._fitted_model().staged_predict(X, n_jobs=self.n_jobs)

    def _task(self, y: NDArray[Any], classes: NDArray[Any] | None) -> Task:
        return Task("regressor", numbers_of(y))

    def _same_task(self, task: Task, y_val: NDArray[Any]) -> NDArray[np.float64]:
        return numbers_of(y_val, "y_val")

    def _factors(
        self, params: dict[str, Any], task: Task, weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        return None


class TreeClassifier(ClassifierMixin, TreeEnsemble):
    """Answers of a classifier."""

    def predict(self, X: object) -> NDArray[Any]:
        """Return the most likely labels, shape (n_rows,)."""
        return self._fitted_model().predict(X, n_jobs=self.n_jobs)

    def predict_proba(self, X: object) -> Probabilities:
        """Return the probabilities of the classes in the order of ``classes_``."""
        return self._fitted_model().predict_proba(X, n_jobs=self.n_jobs)

    def predict_log_proba(self, X: object) -> NDArray[np.float64]:
        """Return the logarithms of the probabilities; minus infinity for those of 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def decision_function(self, X: object) -> NDArray[np.float64]:
        """Return the raw scores: shape (n_rows,) for two classes, else (n_rows, n_classes)."""
        return decision(self._fitted_model().predict_raw(X, n_jobs=self.n_jobs))

    def staged_predict(self, X: object) -> Iterator[NDArray[Any]]:
        """Yield what `predict` would return after each round."""
        return self._fitted_model().staged_predict(X, n_jobs=self.n_jobs)

    def staged_predict_proba(self, X: object) -> Iterator[Probabilities]:
        """Yield what `predict_proba` would return after each round."""
        return self._fitted_model().staged_predict_proba(X, n_jobs=self.n_jobs)

    def staged_decision_function(self, X: object) -> Iterator[NDArray[np.float64]]:
        """Yield what `decision_function` would return after each round."""
        return map(decision, self._fitted_model().staged_raw(X, n_jobs=self.n_jobs))

    def _task(self, y: NDArray[Any], classes: NDArray[Any] | None) -> Task:
        if classes is not None:
            return Task("classifier", codes_of(y, classes, "y", "init_model"), classes)
        classes, codes = encode_labels(y)
        return Task("classifier", codes, classes)

    def _same_task(self, task: Task, y_val: NDArray[Any]) -> NDArray[np.float64]:
        assert task.classes is not None
        return codes_of(y_val, task.classes, "y_val", "y")

    def _factors(
        self, params: dict[str, Any], task: Task, weight: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        assert task.classes is not None
        return class_factors(
            params["class_weight"],
            task.classes,
            task.y,
            weight,
            scale_pos_weight=params.get("scale_pos_weight", 1.0),
        )
