"""The scikit-learn surface of all estimators whose model is trees of the engine.

An algorithm is a subclass with a ``fit`` of its own: check -> read -> bin -> train -> `Predictor`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from arboost.backend import core, threads
from arboost.data.schema import Schema
from arboost.data.table import ColumnOptions
from arboost.explain.importances import importances, tree_importances
from arboost.explain.monotone import MonotoneProof
from arboost.model.leaves import decision_path
from arboost.model.outputs import Probabilities
from arboost.model.predict import decision, read_table
from arboost.params.check import check, record
from arboost.params.kinds import Param
from arboost.predictor import Predictor
from arboost.training.fit import FitResult

__all__ = [
    "BoostedClassifierMethods",
    "ClassifierMethods",
    "EngineEstimator",
    "column_options",
    "keep_names",
    "store",
]

Floats = NDArray[np.float64]

# Parameters that cannot change the model are not part of its file.
_NOT_IN_MODEL = ("bundling", "n_jobs", "verbose")


def store(estimator: object, arguments: Mapping[str, Any]) -> None:
    """Keep the arguments of ``__init__`` as attributes, unchanged, as scikit-learn asks."""
    vars(estimator).update({name: arguments[name] for name in arguments if name != "self"})


def keep_names(estimator: Any, n_features: int, names: tuple[str, ...] | None) -> None:
    """Set ``n_features_in_`` and ``feature_names_in_``; without names the latter is removed."""
    estimator.n_features_in_ = n_features
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


class EngineEstimator(BaseEstimator):
    """Parameters, predictions, explanations and the model file of an estimator."""

    _TABLE: ClassVar[Mapping[str, Param]]
    _KIND: ClassVar[str]  # "regressor" or "classifier"
    _TAKES_ROWS: ClassVar[bool] = True  # whether `fit` takes rows of a Dataset
    n_jobs: int | None
    model_: Predictor

    def predict(self, X: object) -> NDArray[Any]:
        """Return the predicted values or labels, shape (n_rows,).

        Several targets, and several quantiles, have a column each.
        """
        predicted: NDArray[Any] = self._fitted_model().predict(X, n_jobs=self.n_jobs)
        return predicted

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `arboost.load` reads.

        A failure leaves the file that was there before.
        """
        self._fitted_model().save(path)

    def apply(self, X: object) -> NDArray[np.int32]:
        """Return the leaf that each row reaches in each tree, shape (n_rows, n_trees).

        Nodes of a tree are numbered from 0, its root, on.
        """
        return self._engine_model("apply").apply(X, n_jobs=self.n_jobs)

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
        """Share of each feature in the gain of the splits; all 0 where nothing was split.

        Trees that are averaged count alike: the mean over the trees of the share in each.
        """
        model = self._engine_model("feature_importances_")
        gain = importances(model, "gain")
        if model.combine == "mean":
            shares = tree_importances(model)
            shares = shares[shares.any(axis=1)]
            gain = shares.mean(axis=0) if len(shares) else np.zeros(self.n_features_in_)
        total = gain.sum()
        return gain / total if total > 0 else gain

    def shap_values(self, X: object, *, background: object = None) -> Floats:
        """Return the contribution of each feature to the raw scores of the rows of X.

        With ``expected_value``, the values of a row sum to its raw score: to the prediction of a
        regressor without a link, to the log-odds of a booster of two classes, to the mean
        probability of a forest, to the vote of AdaBoost.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        background : table of shape (n_others, n_features), optional
            Rows that stand in for unknown features. Without it, unknown features are averaged over
            the training rows of each node.

        Returns
        -------
        float64 array of shape (n_rows, n_features)
            With several outputs (n_rows, n_features, n_outputs).
        """
        model = self._engine_model("shap_values")
        return model.shap_values(X, background=background, n_jobs=self.n_jobs)

    def shap_interactions(self, X: object) -> Floats:
        """Return the contribution of each pair of features to the raw scores of the rows of X.

        Returns
        -------
        float64 array of shape (n_rows, n_features, n_features)
            Symmetric, and each row of it sums to the SHAP value of its feature. With several
            outputs there is one more axis.
        """
        return self._engine_model("shap_interactions").shap_interactions(X, n_jobs=self.n_jobs)

    def shap_explanation(self, X: object, *, background: object = None) -> Any:
        """Return the SHAP values as a ``shap.Explanation``, for the plots of that package."""
        model = self._engine_model("shap_explanation")
        return model.shap_explanation(X, background=background, n_jobs=self.n_jobs)

    def expected_value(self, *, background: object = None) -> Floats:
        """Return the mean raw scores, from which SHAP values count, shape (n_outputs,)."""
        model = self._engine_model("expected_value")
        return model.expected_value(background=background, n_jobs=self.n_jobs)

    def verify_monotone(self, features: object = None) -> tuple[MonotoneProof, ...]:
        """Prove that the fitted model is monotone, or find rows for which it is not.

        Parameters
        ----------
        features : dict, sequence or None
            Claims in the form of ``monotone_constraints``; None takes those of the fit.

        Returns
        -------
        tuple of arboost.MonotoneProof
            One for each constrained feature and output.
        """
        return self._engine_model("verify_monotone").verify_monotone(features, n_jobs=self.n_jobs)

    def _checked_params(self) -> dict[str, Any]:
        # Faster than get_params, which looks at signatures: it matters when a fit takes a moment.
        given = {name: value for name, value in vars(self).items() if name in self._TABLE}
        return check(given, self._TABLE)

    def _recorded_params(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters that can change the model, as its file keeps them."""
        names = [name for name in params if name in self._TABLE and name not in _NOT_IN_MODEL]
        return record({name: params[name] for name in names}, self._TABLE)

    def _keep_model(self, model: Any, schema: Schema) -> None:
        """Set the attributes that every fitted estimator has."""
        self.model_ = model
        keep_names(self, schema.n_features, schema.names)
        if self._KIND == "classifier":
            self.classes_ = (
                list(model.classes) if isinstance(model.classes, tuple) else model.classes
            )

    def _keep_history(self, result: FitResult) -> None:
        """Set the attributes of a fit of several rounds."""
        self.n_iter_ = self.model_.n_rounds
        self.best_iteration_ = result.best_index
        self.best_score_ = result.best_score
        self.evals_result_ = result.history
        self.stop_reason_ = result.stop_reason

    def _engine_model(self, asked: str) -> Predictor:
        """Return the model of engine trees; raise TypeError for an ensemble of other learners."""
        model = self._fitted_model()
        if not isinstance(model, Predictor):
            raise TypeError(
                f"{asked} was asked of an ensemble of {type(model.members[0]).__name__}: it is for "
                "trees of arboost. Leave `estimator` at None, or explain the members yourself."
            )
        return model

    def _fitted_model(self) -> Any:
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


class ClassifierMethods(ClassifierMixin):
    """Class probabilities of an `EngineEstimator`, of one target or several."""

    n_jobs: int | None
    _fitted_model: Any

    def predict_proba(self, X: object) -> Floats | list[Floats]:
        """Return the class probabilities in the order of ``classes_``, shape (n_rows, n_classes).

        For several targets there is a list of them.
        """
        found: Probabilities = self._fitted_model().predict_proba(X, n_jobs=self.n_jobs)
        return found

    def predict_log_proba(self, X: object) -> Floats | list[Floats]:
        """Return the logarithms of `predict_proba`; those of 0 are -inf."""
        found = self.predict_proba(X)
        return [core.log(one) for one in found] if isinstance(found, list) else core.log(found)


class BoostedClassifierMethods(ClassifierMixin):
    """Class probabilities and raw scores of a boosted `EngineEstimator`, of all rounds or each."""

    n_jobs: int | None
    _fitted_model: Any

    def predict_proba(self, X: object) -> Floats:
        """Return the class probabilities, shape (n_rows, n_classes), in the order of ``classes_``.

        The probabilities of a row sum to 1.
        """
        found: Floats = self._fitted_model().predict_proba(X, n_jobs=self.n_jobs)
        return found

    def predict_log_proba(self, X: object) -> Floats:
        """Return the logarithms of `predict_proba`; those of 0 are -inf."""
        return core.log(self.predict_proba(X))

    def decision_function(self, X: object) -> Floats:
        """Return the raw scores: shape (n_rows,) for two classes, else (n_rows, n_classes)."""
        return decision(self._fitted_model().predict_raw(X, n_jobs=self.n_jobs))

    def staged_predict_proba(self, X: object) -> Iterator[Floats]:
        """Yield the result of `predict_proba` after each round."""
        found: Iterator[Floats] = self._fitted_model().staged_predict_proba(X, n_jobs=self.n_jobs)
        return found

    def staged_decision_function(self, X: object) -> Iterator[Floats]:
        """Yield the result of `decision_function` after each round."""
        return map(decision, self._fitted_model().staged_raw(X, n_jobs=self.n_jobs))


def column_options(params: Mapping[str, Any]) -> ColumnOptions:
    """Return the options of columns among checked parameters."""
    return ColumnOptions(params["categorical_features"], params["missing"])
