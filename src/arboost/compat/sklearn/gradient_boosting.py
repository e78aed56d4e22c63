"""GradientBoostingClassifier and GradientBoostingRegressor with scikit-learn's signatures.

One fit is one fit of the engine's booster with ``boosting="gradient"``: Friedman's least-squares
trees, and in each leaf the loss's own minimum.
"""

from __future__ import annotations

import inspect
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Never, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import ensemble
from sklearn.base import RegressorMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

import arboost
from arboost.compat.sklearn import parameters
from arboost.compat.sklearn.ensembles import DecisionTreeRegressor, sum_partial_dependence
from arboost.compat.sklearn.parameters import Floats, constructor
from arboost.errors import ParameterError, warn_caller
from arboost.estimators import translation
from arboost.estimators.translation import FitRows, ObservedRounds
from arboost.params import check
from arboost.params.boosting import BOOSTED_CLASSIFIER, BOOSTED_REGRESSOR
from arboost.params.suggestions import known_arguments, public_name, refuse_arguments


def constant_init(kind: str, loss: str, alpha: float) -> Any:
    """scikit-learn's model for ``init=None``: class shares, mean, median or quantile."""
    if kind == "classifier":
        return DummyClassifier(strategy="prior")
    if loss == "squared_error":
        return DummyRegressor(strategy="mean")
    return DummyRegressor(strategy="quantile", quantile=alpha if loss == "quantile" else 0.5)


def fitted_init(init: Any, X: Any, y: NDArray[Any], sample_weight: Any) -> Any:
    """A fitted clone; raise ValueError where weights are given that it does not take."""
    model = clone(init)
    if sample_weight is None:
        return model.fit(X, y)
    parameters = inspect.signature(model.fit).parameters.values()
    passes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    if not has_fit_parameter(model, "sample_weight") and (
        not passes_all or isinstance(model, Pipeline)
    ):
        raise ValueError(
            f"The initial estimator {type(model).__name__} does not support sample weights. Fit "
            "without sample_weight, or use another init."
        )
    return model.fit(X, y, sample_weight=sample_weight)


# scikit-learn reports deviances and squared errors, twice the loss of the engine.
_TWICE = ("squared_error", "logistic")
_EVERY = 10  # verbose=1: first each round, then each 10th, then each 100th ...


@dataclass
class StageScores:
    """Scores of the stages, those of the fit that a warm start continues first.

    Attributes
    ----------
    estimator : object
        Passed to the monitor.
    params : mapping
        Checked parameters of scikit-learn's estimator.
    monitor : callable or None
        Called with stage, estimator and a dict of the fit's arrays; True stops the fit.
    n_old : int
        Number of stages of the fit that a warm start continues.
    train_score, oob_scores, oob_improvement : list of float
        One for each stage; those out of bag are 0 for stages on all rows.
    """

    estimator: object
    params: Mapping[str, Any]
    monitor: Callable[[int, object, dict[str, Any]], object] | None
    n_old: int = 0
    train_score: list[float] = field(default_factory=list)
    oob_scores: list[float] = field(default_factory=list)
    oob_improvement: list[float] = field(default_factory=list)
    _first: Any = field(default=None, init=False)  # scores before the first stage, out of bag
    _recent: Floats | None = field(default=None, init=False)
    _started: float = field(default=0.0, init=False)

    def before_first(self, rounds: ObservedRounds) -> None:
        """Record the scores that the first out-of-bag improvement is measured from."""
        self._started = time.monotonic()
        if self.params["subsample"] < 1.0:
            self._first = rounds.scores.copy()
        if self.params["n_iter_no_change"] is not None:
            self._recent = np.full(self.params["n_iter_no_change"], np.inf)
        if self.params["verbose"]:
            self._print_header()

    def after_round(self, rounds: ObservedRounds) -> str | None:
        """Score the stage; return the reason to stop, or None."""
        stage = self.n_old + rounds.n_rounds - 1
        in_bag, target = rounds.in_bag, rounds.data.target
        self.train_score.append(stage_loss(rounds, target, rounds.scores, in_bag))
        before, after = 0.0, 0.0
        if in_bag is not None:
            outside = np.delete(np.arange(len(target.y), dtype=np.uint32), in_bag)
            after = stage_loss(rounds, target, rounds.scores, outside)
            if self.oob_scores:
                before = self.oob_scores[-1]
            else:
                before = stage_loss(rounds, target, self._first, outside)
        self.oob_scores.append(after)
        self.oob_improvement.append(before - after)
        if self.params["verbose"]:
            self._print_stage(stage)
        if self.monitor is not None:
            arrays = {
                "i": stage,
                "y": target.y,
                "sample_weight": target.weight,
                "raw_predictions": rounds.scores,
            }
            if self.monitor(stage, self.estimator, arrays):
                return "monitor"
        return self._early_stop(rounds, stage)

    def _early_stop(self, rounds: ObservedRounds, stage: int) -> str | None:
        """Stop where the loss is not better, by tol, than any of the recent losses."""
        if self._recent is None:
            return None
        (held_out,), (scores,) = rounds.evaluations, rounds.evaluation_scores
        loss = stage_loss(rounds, held_out.target, scores)
        if not (loss + self.params["tol"] < self._recent).any():
            return "n_iter_no_change"
        self._recent[stage % len(self._recent)] = loss
        return None

    def _print_header(self) -> None:
        columns = ["Iter", "Train Loss", "Remaining Time"]
        if self.params["subsample"] < 1.0:
            columns.insert(2, "OOB Improve")
        print(f"{columns[0]:>10} " + " ".join(f"{name:>16}" for name in columns[1:]))

    def _print_stage(self, stage: int) -> None:
        done = stage - self.n_old + 1
        step = 1
        while self.params["verbose"] == 1 and (stage + 1) // (step * _EVERY):
            step *= _EVERY
        if (stage + 1) % step:
            return
        left = self.params["n_estimators"] - stage - 1
        seconds = (time.monotonic() - self._started) / done * left
        numbers = [f"{self.train_score[-1]:16.4f}"]
        if self.params["subsample"] < 1.0:
            numbers.append(f"{self.oob_improvement[-1]:16.4f}")
        remaining = f"{seconds / 60:.2f}m" if seconds > 60 else f"{seconds:.2f}s"  # noqa: PLR2004
        print(f"{stage + 1:10d} " + " ".join([*numbers, f"{remaining:>16}"]))


def stage_loss(
    rounds: ObservedRounds,
    target: Any,
    scores: Floats,
    rows: NDArray[np.uint32] | None = None,
) -> float:
    """Mean loss of some rows as scikit-learn reports it; NaN for no rows."""
    if rows is not None:
        weight = None if target.weight is None else target.weight[rows]
        target, scores = type(target)(target.y[rows], weight), scores[rows]
    if not len(target.y):
        return float("nan")
    loss = rounds.recipe.loss
    factor = 2.0 if loss.kernel in _TWICE else 1.0
    return factor * loss.value(target, scores, rounds.n_threads)


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


class SklearnGradientBoosting(parameters.NotLoadable, translation.TranslatedBooster):
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
        params = self._sklearn_params()
        is_warm = params["warm_start"] and hasattr(self, "model_")
        n_old = self.model_.n_rounds if is_warm else 0
        if params["n_estimators"] < n_old:
            raise ParameterError(
                f"n_estimators={params['n_estimators']} is not allowed: warm_start=True keeps the "
                f"{n_old} stages there are. Use a larger number, or warm_start=False.",
                parameter="n_estimators",
            )
        if params["n_estimators"] == n_old:
            return self
        rows = self._rows(params, X, y, sample_weight)
        init = self.init_ if is_warm else self._initial(params, rows)
        stages = StageScores(self, params, monitor, n_old)
        if n_old:  # fits on all rows have no losses out of bag
            stages.train_score += self.train_score_.tolist()
            stages.oob_scores += list(getattr(self, "oob_scores_", [0.0] * n_old))
            stages.oob_improvement += list(getattr(self, "oob_improvement_", [0.0] * n_old))
        old = self.model_ if is_warm else None
        self._fit(self._translation(params, rows, init, stages), rows, old)
        self._keep_stages(params, init, stages)
        return self

    @public_name
    def predict(self, X: object, *, rounds: int | None = None, **unknown: Never) -> NDArray[Any]:
        """Predicted values or labels, shape (n_rows,).

        `rounds` takes the first stages only.
        """
        if unknown:
            refuse_arguments(self.predict, unknown)
        if not self._corrects_model():
            return super().predict(X, rounds=rounds)
        return self._predictions(self._raw_predict(X, rounds))

    def staged_predict(self, X: object) -> Iterator[NDArray[Any]]:
        """Yield the result of `predict` after each stage."""
        return map(self._predictions, self._staged_raw_predict(X))

    def apply(self, X: object, *, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Leaf that each row reaches: shape (n_rows, n_stages) of a regressor.

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
        trees = np.empty((model.n_rounds, model.trees_per_round), object)
        for tree, steps in enumerate(self._tree_models()):
            params = self._tree_params[tree // model.trees_per_round]
            trees.flat[tree] = DecisionTreeRegressor.of_stage(steps, params)
        return trees

    def __len__(self) -> int:
        """Number of stages."""
        n_stages: int = self._fitted_model().n_rounds
        return n_stages

    def __getitem__(self, stage: int | slice) -> NDArray[Any]:
        """Trees of a stage, or of several."""
        trees: NDArray[Any] = self.estimators_[stage]
        return trees

    def __iter__(self) -> Iterator[NDArray[Any]]:
        """Go through the stages."""
        return iter(self.estimators_)

    def _sklearn_params(self) -> dict[str, Any]:
        """Checked parameters."""
        usual = inspect.signature(type(self)).parameters["criterion"].default
        if not isinstance(self.criterion, str) or self.criterion not in (usual, "deprecated"):
            warnings.warn(
                f"criterion={self.criterion!r} has no effect, as in scikit-learn, where it is "
                "deprecated: trees minimise squared error. Leave it out.",
                FutureWarning,
                stacklevel=3,
            )
        return check({name: getattr(self, name) for name in self._PARAMS}, self._PARAMS)

    def _rows(self, params: dict[str, Any], X: object, y: object, weight: object) -> FitRows:
        """Training rows, and those that early stopping holds out."""
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
        """Model that the trees correct, fitted; or "zero"."""
        init = params["init"]
        if isinstance(init, str):
            return init
        if init is None:
            init = constant_init(self._KIND, params["loss"], params.get("alpha", 0.5))
        y = rows.codes if self._KIND == "classifier" else rows.y
        return fitted_init(init, rows.X, y, rows.sample_weight)

    def _translation(
        self, params: dict[str, Any], rows: FitRows, init: Any, stages: StageScores
    ) -> translation.Translation:
        """Fit in the engine's terms."""
        n_rows, leaves, weight = len(rows.y), params["max_leaf_nodes"], rows.sample_weight
        total = n_rows if weight is None else weight.sum()
        same = {"loss", "alpha", "learning_rate", "subsample", "max_depth", "random_state"}
        engine = self._engine_params(
            **{name: value for name, value in params.items() if name in same},
            boosting="gradient",
            n_estimators=params["n_estimators"] - stages.n_old,
            max_leaves=leaves,
            grow_policy="depthwise" if leaves is None else "leafwise",
            min_child_weight=params["min_weight_fraction_leaf"] * total,
            min_samples_leaf=_row_count(params["min_samples_leaf"], n_rows),
            sampling_method="uniform",
            colsample_bynode=1.0,
            verbose=0,
        )

        def adjust(recipe: Any, schema: Any) -> Any:
            n_used = self._feature_count(params["max_features"], schema.n_features)
            tree = replace(
                recipe.tree,
                colsample_bynode=n_used / schema.n_features,
                min_samples_split=_row_count(params["min_samples_split"], n_rows),
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
            start = [translation.init_scores(init, table, self._KIND, link) for table in tables]
            start[0] = start[0][rows.counted()]
        return translation.Translation(
            params=engine,
            adjust=adjust,
            observer=stages,
            record=_extra_params(params),
            start=start,
            ccp_alpha=params["ccp_alpha"],
        )

    def _link(self, loss: str, y: NDArray[Any]) -> str:
        """Link of a classifier's loss."""
        if self._KIND == "regressor":
            return "identity"
        if loss == "exponential":
            return "logistic_of_double"
        return "logistic" if len(np.unique(y)) == _TWO_CLASSES else "softmax"

    def _keep_stages(self, params: dict[str, Any], init: Any, stages: StageScores) -> None:
        """Set the attributes of the stages."""
        model = self.model_
        old = self._tree_params if stages.n_old else []
        self._tree_params = old + [params] * (model.n_rounds - len(old))
        self.init_ = init
        self.n_estimators_ = model.n_rounds
        self.n_trees_per_iteration_ = model.trees_per_round
        self.max_features_ = self._feature_count(params["max_features"], model.schema.n_features)
        self.train_score_ = np.array(stages.train_score)
        for name in _OUT_OF_BAG:
            self.__dict__.pop(name, None)
        if any(stage["subsample"] < 1.0 for stage in self._tree_params):
            self.oob_scores_ = np.array(stages.oob_scores)
            self.oob_improvement_ = np.array(stages.oob_improvement)
            self.oob_score_ = self.oob_scores_[-1]

    def _corrects_model(self) -> bool:
        """Whether the trees correct a model of the user."""
        self._fitted_model()
        return _is_model(self._tree_params[0]["init"])

    def _raw_predict(self, X: object, rounds: int | None = None) -> Floats:
        """Raw scores, those of the initial model included."""
        raw: Floats = self._fitted_model().predict_raw(X, rounds=rounds)
        return raw + self._raw_predict_init(X) if self._corrects_model() else raw

    def _staged_raw_predict(self, X: object) -> Iterator[Floats]:
        """Raw scores after each stage."""
        staged: Iterator[Floats] = self._fitted_model().staged_raw(X)
        if not self._corrects_model():
            return staged
        first = self._raw_predict_init(X)
        return (raw + first for raw in staged)

    def _raw_predict_init(self, X: object) -> Floats:
        return translation.init_scores(self.init_, X, self._KIND, self.model_.link)

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> Floats:
        """Averages that scikit-learn's inspection asks for, one row for each output."""
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
                    rate * sum_partial_dependence([tree.tree_], grid, target_features)
                    for rate, tree in zip(rates, trees_of_output, strict=True)
                )
                for trees_of_output in trees
            ]
        )

    def _engine_model(self, asked: str) -> arboost.Predictor:
        model = super()._engine_model(asked)
        if asked in _OF_WHOLE_MODEL and self._corrects_model():
            raise ValueError(
                f"{asked} is not available for trees that correct {type(self.init_).__name__}: it "
                'is for models of trees alone. Use init=None or "zero", or `model_` and `init_` '
                "one by one; pickle keeps both."
            )
        return model


def _is_model(init: Any) -> bool:
    return init is not None and not isinstance(init, str)


def _base_score(params: dict[str, Any], init: Any, n_outputs: int) -> Floats | None:
    """Raw scores that trees start from; None for the best constant of the loss."""
    if params["init"] is None:
        constant = getattr(init, "constant_", None)  # of regression; class shares are the best
        return None if constant is None else np.array([float(constant.flat[0])])
    return np.zeros(n_outputs)


def _extra_params(params: dict[str, Any]) -> dict[str, Any]:
    """Parameters that the engine's boosters do not have, as a model file keeps them."""
    names = ("min_samples_split", "min_impurity_decrease", "max_features", "ccp_alpha", "init")
    record = {name: params[name] for name in names}
    if _is_model(params["init"]):
        record["init"] = {"custom": type(params["init"]).__name__}
    return record


def _row_count(count_or_share: float, n_rows: int) -> int:
    if isinstance(count_or_share, int):
        return count_or_share
    return max(1, math.ceil(count_or_share * n_rows))


class GradientBoostingClassifier(translation.TranslatedClassifier, SklearnGradientBoosting):
    """Gradient boosting for classification with the parameters of scikit-learn's class.

    Parameters and attributes have scikit-learn's names, defaults and meanings. Splits are at up to
    255 bin edges of a feature, missing values and categories are allowed, and `save`, `shap_values`
    and the other methods of arboost's estimators are there, too.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from arboost.compat.sklearn import GradientBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = GradientBoostingClassifier(n_estimators=20, subsample=0.5, random_state=0)
    >>> model.fit(X, y).estimators_.shape, model.oob_scores_.shape
    ((20, 3), (20,))
    """

    _KIND = "classifier"
    _PARAMS = parameters.GRADIENT_CLASSIFIER
    _ENGINE = BOOSTED_CLASSIFIER

    __init__ = constructor(ensemble.GradientBoostingClassifier, {*_PARAMS, "criterion"})

    @public_name
    def predict_proba(self, X: object, *, rounds: int | None = None, **unknown: Never) -> Floats:
        """Class probabilities, shape (n_rows, n_classes); `rounds` as in `predict`."""
        if unknown:
            refuse_arguments(self.predict_proba, unknown)
        if not self._corrects_model():
            return super().predict_proba(X, rounds=rounds)
        return self._probabilities(self._raw_predict(X, rounds))

    @public_name
    def decision_function(
        self, X: object, *, rounds: int | None = None, **unknown: Never
    ) -> Floats:
        """Raw scores: shape (n_rows,) for two classes, else (n_rows, n_classes)."""
        if unknown:
            refuse_arguments(self.decision_function, unknown)
        return self._decision(self._raw_predict(X, rounds))

    def staged_predict_proba(self, X: object) -> Iterator[Floats]:
        """Yield the result of `predict_proba` after each stage."""
        return map(self._probabilities, self._staged_raw_predict(X))

    def staged_decision_function(self, X: object) -> Iterator[Floats]:
        """Yield the result of `decision_function` after each stage."""
        return map(self._decision, self._staged_raw_predict(X))


class GradientBoostingRegressor(RegressorMixin, SklearnGradientBoosting):
    """Gradient boosting for regression with the parameters of scikit-learn's class.

    Parameters and attributes have scikit-learn's names, defaults and meanings. Splits are at up to
    255 bin edges of a feature, missing values and categories are allowed, and `save`, `shap_values`
    and the other methods of arboost's estimators are there, too.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from arboost.compat.sklearn import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = GradientBoostingRegressor(n_estimators=20).fit(X, y)
    >>> model.train_score_.shape, model.apply(X).shape
    ((20,), (442, 20))
    """

    _KIND = "regressor"
    _PARAMS = parameters.GRADIENT_REGRESSOR
    _ENGINE = BOOSTED_REGRESSOR

    __init__ = constructor(ensemble.GradientBoostingRegressor, {*_PARAMS, "criterion"})
