"""SklearnGradientBoosting: fit and predictions of scikit-learn's GradientBoosting estimators.

One fit is one fit of the engine's booster with ``boosting="gradient"``: Friedman's least-squares
trees, and in each leaf the loss's own minimum.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Never, Self

import numpy as np
from numpy.typing import NDArray

from arboost.algorithms.forests.cart import feature_count
from arboost.algorithms.gradient_boosting.recipe import BoostingRecipe
from arboost.compat.sklearn.boosting.engine import EngineBooster, TranslatedBooster, Translation
from arboost.compat.sklearn.boosting.initial import constant_init, fitted_init, init_scores
from arboost.compat.sklearn.boosting.params import engine_params
from arboost.compat.sklearn.boosting.rows import FitRows
from arboost.compat.sklearn.boosting.stages import Stages
from arboost.compat.sklearn.partial_dependence import summed_dependence
from arboost.compat.sklearn.trees import DecisionTreeRegressor
from arboost.data.schema import Schema
from arboost.errors import warn_caller
from arboost.model.predict import predictions
from arboost.names.arguments import known_arguments, public_name, refuse_arguments
from arboost.params.check import check
from arboost.predictor import Predictor

__all__ = ["SklearnGradientBoosting"]

Floats = NDArray[np.float64]

_TWO_CLASSES = 2
_OUT_OF_BAG = ("oob_scores_", "oob_improvement_", "oob_score_")
# Explanations and files of the trees alone would leave out the model that they correct.
_OF_WHOLE_MODEL = {
    "expected_value",
    "init_model",
    "partial_dependence",
    "predict_raw",
    "save",
    "shap_explanation",
    "shap_interactions",
    "shap_values",
    "to_c",
    "to_json",
    "to_onnx",
    "verify_monotone",
}


class SklearnGradientBoosting(TranslatedBooster):
    """Fit and predictions of both classes."""

    criterion: Any
    init: Any
    init_: Any
    _tree_params: list[dict[str, Any]]  # of each stage

    @known_arguments
    def fit(
        self,
        X: object,
        y: object,
        sample_weight: object = None,
        monitor: Callable[[int, object, dict[str, Any]], object] | None = None,
    ) -> Self:
        """Train on a table and a target.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
        monitor : callable, optional
            Called after each stage with its number, the estimator and a dict of the fit's arrays;
            True stops the fit.

        Returns
        -------
        self
        """
        params = self._given_params()
        is_warm = params["warm_start"] and hasattr(self, "model_")
        n_kept = self.model_.n_rounds if is_warm else 0
        if params["n_estimators"] < n_kept:
            raise ValueError(
                f"n_estimators={params['n_estimators']} is not allowed: warm_start=True keeps the "
                f"{n_kept} stages there are. Use a larger number, or warm_start=False."
            )
        if params["n_estimators"] == n_kept:
            return self
        rows = self._rows(params, X, y, sample_weight)
        init = self.init_ if is_warm else self._initial(params, rows)
        stages = self._stages(params, monitor, n_kept)
        booster = EngineBooster(self._translation(params, rows, init, stages))
        old = self.model_ if is_warm else None
        booster.fit(rows.X, rows.y, rows.sample_weight, init_model=old, **rows.validation)
        self._keep_model(booster.model_, booster.model_.schema)
        self._keep_stages(params, init, stages)
        return self

    @public_name
    def predict(self, X: object, *, rounds: int | None = None, **unknown: Never) -> NDArray[Any]:
        """Return the predicted values or labels, shape (n_rows,).

        `rounds` takes the first stages only.
        """
        if unknown:
            refuse_arguments(self.predict, unknown)
        if not self._corrects_model():
            return super().predict(X, rounds=rounds)
        return predictions(self.model_, self._raw_predict(X, rounds))

    def staged_predict(self, X: object) -> Iterator[NDArray[Any]]:
        """Yield the result of `predict` after each stage."""
        return (predictions(self.model_, raw) for raw in self._staged_raw_predict(X))

    def apply(self, X: object, *, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Return the leaf that each row reaches: shape (n_rows, n_stages) of a regressor.

        That of a classifier is (n_rows, n_stages, n_trees_per_stage).
        """
        leaves = super().apply(X, n_jobs=n_jobs)
        if self._KIND == "regressor":
            return leaves
        return leaves.reshape(len(leaves), self.model_.n_rounds, -1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `arboost.load` reads."""
        self._engine_model("save").save(path)

    @property
    def estimators_(self) -> NDArray[Any]:
        """Trees as fitted estimators, shape (n_stages, n_trees_per_stage).

        The learning rate times their predictions are the steps of the stages.
        """
        model = self._fitted_model()
        found = np.empty((model.n_rounds, model.trees_per_round), object)
        for tree in range(model.n_trees):
            found.flat[tree] = self._one_tree(tree)
        return found

    def __len__(self) -> int:
        """Return the number of stages."""
        n_stages: int = self._fitted_model().n_rounds
        return n_stages

    def __getitem__(self, stage: int | slice) -> NDArray[Any]:
        """Return the trees of a stage, or of several."""
        found: NDArray[Any] = self.estimators_[stage]
        return found

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Go through the stages."""
        return iter(self.estimators_)

    def _given_params(self) -> dict[str, Any]:
        """Return the checked parameters."""
        if not isinstance(self.criterion, str) or self.criterion != "deprecated":
            warnings.warn(
                f"criterion={self.criterion!r} has no effect, as in scikit-learn, where it is "
                "deprecated: trees minimise squared error. Leave it out.",
                FutureWarning,
                stacklevel=3,
            )
        return check({name: getattr(self, name) for name in self._PARAMS}, self._PARAMS)

    def _rows(self, params: dict[str, Any], X: object, y: object, weight: object) -> FitRows:
        """Return the training rows, and those that early stopping holds out."""
        rows = FitRows.read(X, y, weight)
        is_classifier = self._KIND == "classifier"
        if is_classifier:
            n_classes = len(np.unique(rows.y[rows.counted()]))
            if n_classes < _TWO_CLASSES:
                raise ValueError(
                    f"y contains {n_classes} class after sample_weight trimmed classes with zero "
                    "weights, while a minimum of 2 classes are required. Pass rows of two."
                )
        if params["n_iter_no_change"] is None:
            return rows
        fraction, seed = params["validation_fraction"], params["random_state"]
        split = rows.split(fraction, seed, stratify=is_classifier)
        if is_classifier and len(np.unique(split.y)) < len(np.unique(rows.y)):
            raise ValueError(
                "The training data after the early stopping split is missing some classes. Use "
                "another random_state, or a smaller validation_fraction."
            )
        return split

    def _initial(self, params: dict[str, Any], rows: FitRows) -> Any:
        """Return the model that the trees correct, fitted; or "zero"."""
        init = params["init"]
        if isinstance(init, str):
            return init
        if init is None:
            init = constant_init(self._KIND, params["loss"], params.get("alpha", 0.5))
        y = rows.codes if self._KIND == "classifier" else rows.y
        return fitted_init(init, rows.X, y, rows.sample_weight)

    def _stages(self, params: dict[str, Any], monitor: Any, n_kept: int) -> Stages:
        """Return the observer of the fit, with the scores of the stages that are kept."""
        kept: dict[str, list[float]] = {}
        if n_kept:
            names = ("train_score", "oob_scores", "oob_improvement")
            kept = {name: list(getattr(self, f"{name}_", ())) for name in names}
        return Stages(estimator=self, params=params, monitor=monitor, n_kept=n_kept, **kept)

    def _translation(
        self, params: dict[str, Any], rows: FitRows, init: Any, stages: Stages
    ) -> Translation:
        """Return the fit in the engine's terms."""
        n_rows, leaves, weight = len(rows.y), params["max_leaf_nodes"], rows.sample_weight
        total = n_rows if weight is None else weight.sum()
        same = {"loss", "alpha", "learning_rate", "subsample", "max_depth", "random_state"}
        engine = engine_params(
            self._ENGINE,
            **{name: value for name, value in params.items() if name in same},
            boosting="gradient",
            n_estimators=params["n_estimators"] - stages.n_kept,
            max_leaves=leaves,
            grow_policy="depthwise" if leaves is None else "leafwise",
            min_child_weight=params["min_weight_fraction_leaf"] * total,
            min_samples_leaf=_count(params["min_samples_leaf"], n_rows),
            sampling_method="uniform",
            colsample_bynode=1.0,
            verbose=0,
        )

        def adjust(recipe: BoostingRecipe, schema: Schema) -> BoostingRecipe:
            n_used = feature_count(params["max_features"], schema.n_features)
            tree = replace(
                recipe.tree,
                colsample_bynode=n_used / schema.n_features,
                min_samples_split=_count(params["min_samples_split"], n_rows),
                min_gain_share=params["min_impurity_decrease"],
                allow_zero_gain=True,
            )
            return replace(
                recipe, tree=tree, base_score=_base_score(params, init, recipe.loss.n_outputs)
            )

        start = []
        if _is_model(params["init"]):
            tables = [rows.X] if rows.X_val is None else [rows.X, rows.X_val]
            link = self._link(params["loss"], rows.y)
            start = [init_scores(init, table, self._KIND, link) for table in tables]
            start[0] = start[0][rows.counted()]
        return Translation(
            kind=self._KIND,
            table=self._ENGINE,
            params=engine,
            adjust=adjust,
            watch=stages,
            record=_record(params),
            start=start,
            ccp_alpha=params["ccp_alpha"],
        )

    def _link(self, loss: str, y: NDArray[Any]) -> str:
        """Return the link of a classifier's loss."""
        if self._KIND == "regressor":
            return "identity"
        if loss == "exponential":
            return "logistic_of_double"
        return "logistic" if len(np.unique(y)) == _TWO_CLASSES else "softmax"

    def _keep_stages(self, params: dict[str, Any], init: Any, stages: Stages) -> None:
        """Set the attributes of the stages."""
        model = self.model_
        kept = self._tree_params if stages.n_kept else []
        self._tree_params = kept + [params] * (model.n_rounds - len(kept))
        self.init_ = init
        self.n_estimators_ = model.n_rounds
        self.n_trees_per_iteration_ = model.trees_per_round
        self.max_features_ = feature_count(params["max_features"], model.schema.n_features)
        self.train_score_ = np.array(stages.train_score)
        for name in _OUT_OF_BAG:
            self.__dict__.pop(name, None)
        if stages.oob_scores:
            n_stages = model.n_rounds
            self.oob_scores_ = np.array((stages.oob_scores + [0.0] * n_stages)[:n_stages])
            self.oob_improvement_ = np.array((stages.oob_improvement + [0.0] * n_stages)[:n_stages])
            self.oob_score_ = self.oob_scores_[-1]

    def _one_tree(self, tree: int) -> DecisionTreeRegressor:
        """Return a tree as an estimator of the gradients."""
        model = self.model_
        params = self._tree_params[tree // model.trees_per_round]
        return DecisionTreeRegressor.of_stage(model, tree, params)

    def _corrects_model(self) -> bool:
        """Whether the trees correct a model of the user."""
        self._fitted_model()
        return _is_model(self._tree_params[0]["init"])

    def _raw_predict(self, X: object, rounds: int | None = None) -> Floats:
        """Return the raw scores, those of the initial model included."""
        raw: Floats = self._fitted_model().predict_raw(X, rounds=rounds)
        return raw + self._raw_predict_init(X) if self._corrects_model() else raw

    def _staged_raw_predict(self, X: object) -> Iterator[Floats]:
        """Return the raw scores after each stage."""
        staged: Iterator[Floats] = self._fitted_model().staged_raw(X)
        if not self._corrects_model():
            return staged
        first = self._raw_predict_init(X)
        return (raw + first for raw in staged)

    def _raw_predict_init(self, X: object) -> Floats:
        return init_scores(self.init_, X, self._KIND, self.model_.link)

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> Floats:
        """Return the averages that scikit-learn's inspection asks for, one row for each output."""
        if self.init is not None:
            warn_caller(
                f"Using recursion method with a non-constant init predictor: init={self.init!r} is "
                'left out of the partial dependence. Use method="brute".',
                UserWarning,
            )
        trees = self.estimators_.T
        rates = [params["learning_rate"] for params in self._tree_params]
        return np.array(
            [
                sum(
                    rate * summed_dependence([one.tree_], grid, target_features)
                    for rate, one in zip(rates, of_output, strict=True)
                )
                for of_output in trees
            ]
        )

    def _engine_model(self, asked: str) -> Predictor:
        model = super()._engine_model(asked)
        if asked in _OF_WHOLE_MODEL and self._corrects_model():
            raise ValueError(
                f"{asked} was asked of trees that correct {type(self.init_).__name__}: it is for "
                'models of trees alone. Use init=None or "zero", or `model_` and `init_` one by '
                "one; pickle keeps both."
            )
        return model


def _is_model(init: Any) -> bool:
    return init is not None and not isinstance(init, str)


def _base_score(params: dict[str, Any], init: Any, n_outputs: int) -> Floats | None:
    """Return the raw scores that trees start from; None for the best constant of the loss."""
    if params["init"] is None:
        constant = getattr(init, "constant_", None)  # of regression; class shares are the best
        return None if constant is None else np.array([float(constant.flat[0])])
    return np.zeros(n_outputs)


def _record(params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters that the engine's boosters do not have, as a model file keeps them."""
    names = ("min_samples_split", "min_impurity_decrease", "max_features", "ccp_alpha", "init")
    record = {name: params[name] for name in names}
    if _is_model(params["init"]):
        record["init"] = {"custom": type(params["init"]).__name__}
    return record


def _count(given: float, n_rows: int) -> int:
    return given if isinstance(given, int) else max(1, math.ceil(given * n_rows))
