"""The scikit-learn surface of all estimators whose model is trees of the engine.

An algorithm is a subclass that defines ``fit``: check -> read -> bin -> train -> `Predictor`.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Concatenate, Never, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from arboost.backend import core, threads
from arboost.data.cuda import check_device, refuse_logarithms
from arboost.data.feature_names import split_target
from arboost.data.schema import Schema
from arboost.data.table import ColumnOptions
from arboost.data.target import Task, class_factors
from arboost.errors import InputTypeError
from arboost.losses.base import Floats
from arboost.losses.links import decision
from arboost.models.importances import importances, sum_by_column, tree_importances
from arboost.models.methods import evaluate, report
from arboost.models.prediction import decision_path, read_table
from arboost.models.predictor import ModelSource, Predictor
from arboost.models.predictor import load as load_model
from arboost.params import suggestions
from arboost.params.kinds import Param
from arboost.params.records import check, record
from arboost.training.inputs import EngineRows, SourceOptions, resolve_input, training_rows
from arboost.training.loop import FitResult

P = ParamSpec("P")
R = TypeVar("R")

# Attributes of out-of-bag predictions, by the kind of estimator.
OUT_OF_BAG = {"classifier": "oob_decision_function_", "regressor": "oob_prediction_"}
_FEWEST_SCORED = {"classifier": 1, "regressor": 2}  # rows that accuracy and R^2 are defined for


def store_arguments(estimator: object, arguments: Mapping[str, Any]) -> None:
    """Store the arguments of ``__init__`` as attributes, unchanged, as scikit-learn requires."""
    vars(estimator).update({name: arguments[name] for name in arguments if name != "self"})


def set_feature_names(estimator: Any, n_features: int, names: tuple[str, ...] | None) -> None:
    """Set ``n_features_in_`` and ``feature_names_in_``; without names the latter is removed."""
    estimator.n_features_in_ = n_features
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def predictor_method(method: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """A method of `Predictor` as one of estimators: signature and docstring are the same.

    `n_jobs` is that of the estimator unless it is given.
    """
    takes_threads = "n_jobs" in inspect.signature(method).parameters

    @suggestions.known_arguments
    @functools.wraps(method)
    def call(estimator: Any, /, *args: P.args, **options: P.kwargs) -> R:
        model = estimator._engine_model(method.__name__)
        if takes_threads and "n_jobs" not in options:
            options["n_jobs"] = estimator.n_jobs
        return method(model, *args, **options)

    return call


def _with_named_target(score: Callable[..., float]) -> Callable[..., float]:
    """A method ``score`` of scikit-learn whose y may also name a column of X."""

    @functools.wraps(score)
    def call(estimator: Any, X: object, y: object, sample_weight: object = None) -> float:
        X, y, _ = split_target(X, y)
        return score(estimator, X, y, sample_weight)

    return call


classifier_score = _with_named_target(ClassifierMixin.score)
regressor_score = _with_named_target(RegressorMixin.score)


class EngineEstimator(BaseEstimator):
    """Parameters, predictions, explanations and the model file of an estimator."""

    _TABLE: ClassVar[Mapping[str, Param]]
    _KIND: ClassVar[str]  # "regressor" or "classifier"
    _MULTI_OUTPUT: ClassVar[bool] = False  # whether y may have several columns
    _MONOTONE: ClassVar[str] = "monotone_constraints"  # name of this parameter in model files
    # Parameters that cannot change the model are not part of its file; nor is the encoding of
    # categories, which its schema shows.
    _NOT_RECORDED: ClassVar[tuple[str, ...]] = (
        "bundling",
        "calendar_parts",
        "category_encoding",
        "date_format",
        "device",
        "n_jobs",
        "verbose",
    )
    _DEFAULT_ENCODING: ClassVar[str] = "mean"  # category_encoding="auto"
    _TAKES_ROWS: ClassVar[bool] = True  # whether `fit` takes rows of a Dataset
    n_jobs: int | None
    model_: Predictor

    if not TYPE_CHECKING:  # for type checkers, __init__ has the signature
        __new__ = suggestions.new_estimator
        __getattr__ = suggestions.missing_attribute

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; raise ValueError for an unknown name, with the name here."""
        suggestions.check_params(self, params)
        super().set_params(**params)
        return self

    @suggestions.public_name
    def predict(self, X: object, *, rounds: int | None = None, **unknown: Never) -> NDArray[Any]:
        """Return the predicted values or labels, shape (n_rows,).

        Several targets, and several quantiles, have a column each. `rounds` takes the first rounds
        of the model only, trees in forests.
        """
        if unknown:
            suggestions.refuse_arguments(self.predict, unknown)
        return self._first_rounds(rounds).predict(X, n_jobs=self.n_jobs)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `arboost.load` reads.

        A name that ends in ".json" gets readable JSON. A failure leaves the file that was there
        before.
        """
        self._fitted_model().save(path)

    @classmethod
    def load(cls, path: ModelSource, *, mmap: bool = False) -> Self:
        """Return the fitted estimator of a file that ``save`` or ``to_json`` wrote.

        Its parameters are those of the fit, "auto" replaced by the values found, and it predicts,
        explains and trains like the estimator that was saved. The file keeps neither learning
        curves nor functions: a custom loss has to be set again before another fit. `arboost.load`
        returns the model alone, without scikit-learn.

        Parameters
        ----------
        path : str, path-like, bytes or file object
            Path of a file; or its content, as bytes or as an open file to read from.
        mmap : bool, default=False
            Whether to map the file into memory, as in `arboost.load`.
        """
        model = load_model(path, mmap=mmap)
        if (
            not isinstance(model, Predictor)
            or model.kind != cls._KIND
            or not model.params.keys() <= cls._TABLE.keys()
        ):
            name = repr(os.fsdecode(path)) if isinstance(path, str | os.PathLike) else "The data"
            held = "several members"
            if isinstance(model, Predictor):
                held = f"{model.n_trees} trees with other parameters"
            raise ValueError(
                f"{name} holds no {cls.__name__}: it holds a {model.kind} of {held}. Use the class "
                "that was fitted, or arboost.load, which reads all models."
            )
        params = {name: cls._TABLE[name].restore(value) for name, value in model.params.items()}
        names = cls._get_param_names()
        estimator = cls(**{name: params.pop(name) for name in names if name in params})
        store_arguments(estimator, params)  # of the fit, but not of a constructor with fewer names
        estimator._keep_loaded(model)
        return estimator

    apply = predictor_method(Predictor.apply)
    predict_raw = predictor_method(Predictor.predict_raw)
    importances = predictor_method(Predictor.importances)
    partial_dependence = predictor_method(Predictor.partial_dependence)
    shap_values = predictor_method(Predictor.shap_values)
    shap_interactions = predictor_method(Predictor.shap_interactions)
    shap_explanation = predictor_method(Predictor.shap_explanation)
    expected_value = predictor_method(Predictor.expected_value)
    verify_monotone = predictor_method(Predictor.verify_monotone)
    summary = predictor_method(Predictor.summary)
    tree_text = predictor_method(Predictor.tree_text)
    tree_svg = predictor_method(Predictor.tree_svg)
    tree_dot = predictor_method(Predictor.tree_dot)
    tree_table = predictor_method(Predictor.tree_table)
    to_c = predictor_method(Predictor.to_c)
    to_onnx = predictor_method(Predictor.to_onnx)
    to_json = predictor_method(Predictor.to_json)
    predict_files = predictor_method(Predictor.predict_files)
    evaluate = evaluate
    report = report

    @property
    def metadata(self) -> dict[str, Any]:
        """Values of the user, by name, which files keep as JSON; empty after each fit."""
        return self._fitted_model().metadata

    def decision_path(self, X: object) -> Any:
        """Return the nodes that each row passes, and the first node of each tree.

        Returns
        -------
        indicator : scipy.sparse.csr_matrix of shape (n_rows, n_nodes)
            1 where a row passes a node, of the nodes of all trees.
        n_nodes_ptr : int64 array of shape (n_trees + 1,)
            The nodes of tree t are the columns ``n_nodes_ptr[t]`` to ``n_nodes_ptr[t + 1]``.
        """
        model = self._engine_model("decision_path")
        return decision_path(model, read_table(model, X), n_threads=threads(self.n_jobs))

    @property
    def feature_importances_(self) -> Floats:
        """Share of each column in the gain of the splits; all 0 where nothing was split.

        Trees that are averaged count alike: the mean over the trees of the share in each. Derived
        features count to their column.
        """
        model = self._engine_model("feature_importances_")
        gain = importances(model, "gain")
        if model.combine == "mean":
            shares = tree_importances(model)
            shares = shares[shares.any(axis=1)]
            gain = shares.mean(axis=0) if len(shares) else np.zeros(shares.shape[1])
        gain = sum_by_column(gain, model.schema)
        total = gain.sum()
        return gain / total if total > 0 else gain

    def _checked_params(self) -> dict[str, Any]:
        # Faster than get_params, which looks at signatures: it matters when a fit takes a moment.
        stored = {name: value for name, value in vars(self).items() if name in self._TABLE}
        params = check(stored, self._TABLE)
        if "monotonic_cst" in params:  # scikit-learn's name of monotone_constraints
            values = [params.pop(name) for name in ("monotone_constraints", "monotonic_cst")]
            if None not in values:
                raise ValueError(
                    "monotone_constraints and monotonic_cst, scikit-learn's name, are one "
                    "parameter, but both are set. Leave one at None."
                )
            params[self._MONOTONE] = values[0] if values[1] is None else values[1]
        if "device" in params:
            check_device(params["device"], params["tree_method"], params.get("criterion"))
        return params

    def _resolve_input(
        self,
        arrays: tuple[object, object, object],
        params: Mapping[str, Any],
        stream: SourceOptions,
        needs_values: str = "",
    ) -> tuple[object, object, object]:
        """X, y and sample_weight of ``fit``; a source, read in batches, as a Dataset."""
        encoding = category_encoding(params, self._DEFAULT_ENCODING)
        options = replace(ColumnOptions.of(params), category_encoding=encoding)
        return resolve_input(
            arrays, params, stream, kind=self._KIND, options=options, needs_values=needs_values
        )

    def _class_factors(
        self, params: Mapping[str, Any], task: Task, weight: Floats | None
    ) -> Floats | None:
        """Factor on the row weights of each class; None for regression."""
        if task.classes is None:
            return None
        return class_factors(
            params["class_weight"],
            task.classes,
            task.y,
            weight,
            scale_pos_weight=params.get("scale_pos_weight", 1.0),
        )

    def _recorded_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters that can change the model, as its file keeps them."""
        names = [name for name in params if name in self._TABLE and name not in self._NOT_RECORDED]
        return record({name: params[name] for name in names}, self._TABLE)

    def _keep_model(self, model: Any, schema: Schema) -> None:
        """Set the attributes that every fitted estimator has."""
        self.model_ = model
        set_feature_names(self, schema.n_columns, schema.columns)
        if self._KIND == "classifier":
            several = isinstance(model.classes, tuple)
            self.classes_ = list(model.classes) if several else model.classes
            self.n_classes_ = [*map(len, model.classes)] if several else len(model.classes)

    def _keep_history(self, result: FitResult) -> None:
        """Set the attributes of a fit of several rounds."""
        self.n_iter_ = self.model_.n_rounds
        self.best_iteration_ = result.best_index
        self.best_score_ = result.best_score
        self.evals_result_ = result.history
        self.stop_reason_ = result.stop_reason

    def _engine_model(self, caller: str) -> Predictor:
        """The model of engine trees; raises TypeError for an ensemble of other learners."""
        model = self._fitted_model()
        if not isinstance(model, Predictor):
            raise InputTypeError(
                f"{caller} is not available for an ensemble of "
                f"{type(model.members[0]).__name__}: it is for trees of arboost. Leave "
                "`estimator` at None, or explain the members yourself."
            )
        return model

    def _keep_loaded(self, model: Predictor) -> None:
        """Set the attributes of an estimator whose model was loaded."""
        self._keep_model(model, model.schema)
        self.n_iter_ = model.n_rounds

    def _first_rounds(self, rounds: int | None) -> Predictor:
        """The model of the first rounds, or of all."""
        model = self._fitted_model()
        return model if rounds is None else model.truncated(rounds)

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
        tags.target_tags.multi_output = self._MULTI_OUTPUT
        return tags


class ClassifierMethods(ClassifierMixin, EngineEstimator):
    """Class probabilities of an `EngineEstimator`, of one target or several."""

    score = classifier_score

    @suggestions.public_name
    def predict_proba(
        self, X: object, *, rounds: int | None = None, **unknown: Never
    ) -> Floats | list[Floats]:
        """Return the class probabilities in the order of ``classes_``, shape (n_rows, n_classes).

        For several targets there is a list of them. `rounds` takes the first trees only.
        """
        if unknown:
            suggestions.refuse_arguments(self.predict_proba, unknown)
        return self._first_rounds(rounds).predict_proba(X, n_jobs=self.n_jobs)

    def predict_log_proba(self, X: object) -> Floats | list[Floats]:
        """Return the logarithms of `predict_proba`; those of 0 are -inf."""
        refuse_logarithms(X)
        probabilities = self.predict_proba(X)
        if isinstance(probabilities, list):
            return [core.log(columns) for columns in probabilities]
        return core.log(probabilities)


class BoostedClassifierMethods(ClassifierMixin, EngineEstimator):
    """Class probabilities and raw scores of a boosted `EngineEstimator`, of all rounds or each."""

    score = classifier_score

    @suggestions.public_name
    def predict_proba(self, X: object, *, rounds: int | None = None, **unknown: Never) -> Floats:
        """Return the class probabilities, shape (n_rows, n_classes), in the order of ``classes_``.

        The probabilities of a row sum to 1. `rounds` takes the first rounds of the model only.
        """
        if unknown:
            suggestions.refuse_arguments(self.predict_proba, unknown)
        probabilities = self._first_rounds(rounds).predict_proba(X, n_jobs=self.n_jobs)
        assert not isinstance(probabilities, list)  # there is one target
        return probabilities

    def predict_log_proba(self, X: object) -> Floats:
        """Return the logarithms of `predict_proba`; those of 0 are -inf."""
        refuse_logarithms(X)
        return core.log(self.predict_proba(X))

    @suggestions.public_name
    def decision_function(
        self, X: object, *, rounds: int | None = None, **unknown: Never
    ) -> Floats:
        """Return the raw scores: shape (n_rows,) for two classes, else (n_rows, n_classes)."""
        if unknown:
            suggestions.refuse_arguments(self.decision_function, unknown)
        return decision(self._first_rounds(rounds).predict_raw(X, n_jobs=self.n_jobs))

    def staged_predict_proba(self, X: object) -> Iterator[Floats]:
        """Yield the result of `predict_proba` after each round."""
        staged: Iterator[Any] = self._fitted_model().staged_predict_proba(X, n_jobs=self.n_jobs)
        return staged

    def staged_decision_function(self, X: object) -> Iterator[Floats]:
        """Yield the result of `decision_function` after each round."""
        return map(decision, self._fitted_model().staged_raw(X, n_jobs=self.n_jobs))


def category_encoding(params: Mapping[str, Any], default: str = "mean") -> str:
    """The encoding of categories of many levels among checked parameters."""
    encoding: str = params["category_encoding"]
    return default if encoding == "auto" else encoding


def prediction_score(
    kind: str, y: NDArray[Any], predicted: NDArray[Any], weight: Floats | None
) -> float:
    """The accuracy of all targets, or R^2; NaN for rows that are too few for it."""
    from sklearn.metrics import r2_score  # slow to import

    if len(y) < _FEWEST_SCORED[kind]:
        return float("nan")
    if kind == "classifier":
        right = (y == predicted).reshape(len(y), -1).all(axis=1)
        return float(np.average(right, weights=weight))
    return float(r2_score(y, predicted, sample_weight=weight))


def read_rows(
    arrays: tuple[object, object, object],
    params: Mapping[str, Any],
    schema: Schema | None = None,
    **options: Any,
) -> EngineRows:
    """The rows of X, y and sample_weight, read by checked parameters.

    `schema` is that of a continued model; `options` are those of `training_rows`.
    """
    columns = ColumnOptions.of(params)
    return training_rows(*arrays, schema, columns, device=params["device"], **options)
