"""Fitted ensembles of arboost's estimators -> `Ensemble`: files and SHAP values without pickle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from arboost.algorithms.members.answers import class_places, member_name
from arboost.ensemble_predictor import EnsemblePredictor
from arboost.losses.base import Floats
from arboost.model.ensemble import Ensemble, EnsembleMember, LinearModel
from arboost.model.model import Model
from arboost.predictor import ModelSource
from arboost.predictor import load as load_model
from arboost.report.methods import report

__all__ = ["EnsembleMethods", "engine_model", "ensemble_member", "final_model"]

_TWO_CLASSES = 2


class EnsembleMethods(BaseEstimator):
    """Files and SHAP values of an ensemble whose members are estimators of arboost."""

    _KIND: ClassVar[str]  # "regressor" or "classifier"
    _metadata: dict[str, Any]  # set by each fit

    report = report

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted ensemble to a file that `arboost.load` reads.

        All members must be estimators of arboost; the final estimator of a stack may also be a
        linear one of scikit-learn. A failure leaves the file that was there before.
        """
        self.to_predictor().save(path)

    def to_predictor(self) -> EnsemblePredictor:
        """Return the fitted ensemble without its estimators, as `save` writes it."""
        return self._predictor("save")

    @property
    def metadata(self) -> dict[str, Any]:
        """Values of the user, by name, which files keep as JSON; empty after each fit."""
        check_is_fitted(self)
        return self._metadata

    @classmethod
    def load(cls, path: ModelSource) -> EnsemblePredictor:
        """Return the fitted ensemble of a file that ``save`` wrote, as `arboost.load` does.

        It predicts and explains like the estimator that was saved. The file keeps the models of
        the members, but not the estimators, so the ensemble cannot be fitted again.

        Parameters
        ----------
        path : str, path-like, bytes or file object
            Path of a file; or its content, as bytes or as an open file to read from.
        """
        loaded = load_model(path)
        if not isinstance(loaded, EnsemblePredictor) or loaded.kind != cls._KIND:
            name = repr(os.fsdecode(path)) if isinstance(path, str | os.PathLike) else "The data"
            raise ValueError(
                f"{name} holds no {cls.__name__}: it holds {loaded!r}. Use the class that was "
                "fitted, or arboost.load, which reads all models."
            )
        return loaded

    def shap_values(self, X: object, *, background: object = None) -> Floats:
        """Return the contribution of each feature to the predictions of the rows of X.

        They are exact, and exist where predictions are linear in the raw scores of the members:
        means of regressors and forests, and stacks with a linear final estimator over them. With
        ``expected_value``, the values of a row sum to its prediction, its class probabilities, or
        the log-odds of a stack.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        background : table of shape (n_others, n_features), optional
            Rows that stand in for unknown features.

        Returns
        -------
        float64 array of shape (n_rows, n_features)
            With class probabilities or several targets (n_rows, n_features, n_columns).
        """
        return self._predictor("shap_values").shap_values(X, background=background)

    def expected_value(self, *, background: object = None) -> Floats:
        """Return the prediction from which SHAP values count, shape (n_columns,)."""
        return self._predictor("expected_value").expected_value(background=background)

    def _predictor(self, asked: str) -> EnsemblePredictor:
        check_is_fitted(self)
        return EnsemblePredictor(replace(self._ensemble(asked), metadata=self.metadata))

    def _ensemble(self, asked: str) -> Ensemble:
        """Return the fitted ensemble; raise TypeError for other members."""
        raise NotImplementedError


def engine_model(name: str, estimator: Any, asked: str) -> Model:
    """Return the model of a member; raise TypeError for one that has no trees of the engine."""
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    model = getattr(inner, "model_", None)
    if isinstance(model, Model):
        whole: Model = inner._engine_model(asked) if hasattr(inner, "_engine_model") else model
        if whole.schema.offset is not None:
            raise TypeError(
                f"{asked} was asked of an ensemble with the member {name!r}, which was fitted with "
                "an offset, and an ensemble passes none on. Fit the member without offset; or use "
                "pickle or joblib for files."
            )
        return whole
    raise TypeError(
        f"{asked} was asked of an ensemble with the member {name!r} ({member_name(inner)}), which "
        "has no trees of arboost. Use estimators of arboost only, such as "
        "GradientBoostingClassifier or RandomForestRegressor; or pickle or joblib for files."
    )


def ensemble_member(
    name: str,
    model: Model,
    classes: NDArray[Any] | None,
    features: Sequence[int] | NDArray[Any],
    *,
    by_label: bool,
    output: str = "probabilities",
    weight: float = 1.0,
) -> EnsembleMember:
    """Return a member whose outputs are added to the columns of the classes, or of the targets.

    Parameters
    ----------
    name : str
    model : Model
    classes : array of shape (n_classes,), or None for regression
    features : sequence of int
        Features of the table that the member was fitted on.
    by_label : bool
        Whether the member was fitted on labels instead of class indices.
    output : str
        Output of a classifier, one of `OUTPUTS`.
    weight : float
    """
    if model.classes is None:
        columns = places = np.arange(model.n_outputs)
        output = "values"
    else:
        columns = np.arange(len(model.classes))
        places = _places(name, model, classes, by_label=by_label)
    return EnsembleMember(
        name=name,
        model=model,
        features=np.asarray(features, np.int64),
        output=output,
        taken=columns.astype(np.int64),
        places=places.astype(np.int64),
        weight=float(weight),
    )


def _places(
    name: str, model: Model, classes: NDArray[Any] | None, *, by_label: bool
) -> NDArray[Any]:
    """Return the columns of a member's classes: class indices, or labels of the ensemble."""
    if classes is None or isinstance(model.classes, tuple):
        raise TypeError(
            f"the member {name!r} has several targets, or classes in an ensemble of regressors: "
            "only ensembles of one target have files and SHAP values. Use pickle or joblib."
        )
    return class_places(model, model.classes, classes if by_label else np.arange(len(classes)))


def final_model(estimator: Any, asked: str) -> Model | LinearModel:
    """Return the final model of a stack: trees of the engine, or a linear function."""
    from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeCV

    if isinstance(estimator, LogisticRegression) and estimator.solver != "liblinear":
        link = "logistic" if len(estimator.classes_) == _TWO_CLASSES else "softmax"
    elif isinstance(estimator, LinearRegression | Ridge | RidgeCV):
        link = "identity"
    else:
        return engine_model("final_estimator", estimator, asked)
    coef = np.atleast_2d(np.asarray(estimator.coef_, np.float64))
    intercept = np.broadcast_to(np.asarray(estimator.intercept_, np.float64), len(coef)).copy()
    return LinearModel(coef, intercept, link)
