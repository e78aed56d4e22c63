"""HistGradientBoostingClassifier and -Regressor with scikit-learn's signatures.

One fit is one fit of the engine's booster with ``boosting="newton"``, best-first.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import ensemble
from sklearn.base import RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.utils import _safe_indexing, check_random_state, resample
from sklearn.utils.class_weight import compute_sample_weight

import arboost
from arboost.compat.sklearn import parameters
from arboost.compat.sklearn.parameters import Floats, constructor
from arboost.errors import ParameterError
from arboost.estimators import translation
from arboost.estimators.translation import FitRows, ObservedRounds
from arboost.params import check
from arboost.params.boosting import BOOSTED_CLASSIFIER, BOOSTED_REGRESSOR
from arboost.params.suggestions import known_arguments

_SCORED_ROWS = 10_000  # most training rows that a scorer sees


@dataclass
class IterationScores:
    """Scores before the first iteration and after each; higher is better.

    Attributes
    ----------
    estimator : estimator
        Copied for scorers.
    params : mapping
        Checked parameters of scikit-learn's estimator.
    rows : FitRows
    seed : int
        Of the sample of training rows that a scorer sees.
    is_continued : bool
        Whether the scores of an earlier fit come first.
    train, validation : list of float
    """

    estimator: Any
    params: Mapping[str, Any]
    rows: FitRows
    seed: int
    is_continued: bool
    train: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    _scorer: Callable[..., float] | None = field(default=None, init=False)
    _sample: Any = field(default=None, init=False)

    def before_first(self, rounds: ObservedRounds) -> None:
        """Score the model without trees."""
        if self.params["scoring"] != "loss":
            self._scorer = check_scoring(self.estimator, self.params["scoring"])
            self._sample = self._training_sample(rounds)
        if not self.is_continued:
            self._score(rounds)

    def after_round(self, rounds: ObservedRounds) -> str | None:
        """Score an iteration; return the reason to stop, or None."""
        self._score(rounds)
        monitored = self.validation if rounds.evaluations else self.train
        stop = should_stop(monitored, self.params["n_iter_no_change"], self.params["tol"])
        return "n_iter_no_change" if stop else None

    def _score(self, rounds: ObservedRounds) -> None:
        if self._scorer is None:
            loss, n_threads = rounds.recipe.loss, rounds.n_threads
            self.train.append(-loss.value(rounds.data.target, rounds.scores, n_threads))
            for part, raw in zip(rounds.evaluations, rounds.evaluation_scores, strict=True):
                self.validation.append(-loss.value(part.target, raw, n_threads))
            return
        index, X, y, weight = self._sample
        self.train.append(self._scored(rounds, X, y, weight, rounds.scores[index]))
        for raw in rounds.evaluation_scores:
            held_out = self.rows
            X, y, weight = held_out.X_val, held_out.y_val, held_out.sample_weight_val
            self.validation.append(self._scored(rounds, X, y, weight, raw))

    def _scored(self, rounds: ObservedRounds, X: Any, y: Any, weight: Any, raw: Floats) -> float:
        loss = rounds.recipe.loss
        is_classifier = hasattr(self.estimator, "predict_proba")
        fitted = copy.copy(self.estimator)
        fitted.model_ = translation.ModelInTraining(
            "classifier" if is_classifier else "regressor",
            loss.link,
            np.unique(self.rows.y) if is_classifier else None,
            loss.n_outputs,
            [(X, raw)],
        )
        fitted.classes_ = fitted.model_.classes
        assert self._scorer is not None
        weights = {} if weight is None else {"sample_weight": weight}
        return float(self._scorer(fitted, X, y, **weights))

    def _training_sample(self, rounds: ObservedRounds) -> tuple[Any, Any, Any, Any]:
        """Positions, X, y and weights of the training rows that a scorer sees."""
        rows = self.rows
        counted = np.flatnonzero(rows.counted())
        index = np.arange(len(counted))
        if len(index) > _SCORED_ROWS:
            stratify = rows.y[counted] if hasattr(self.estimator, "predict_proba") else None
            index = resample(
                index,
                n_samples=_SCORED_ROWS,
                replace=False,
                random_state=self.seed,
                stratify=stratify,
            )
        chosen = counted[index]
        weight = None if rows.sample_weight is None else rows.sample_weight[chosen]
        X = rows.X if len(chosen) == len(rows.y) else _safe_indexing(rows.X, chosen)
        return index, X, rows.y[chosen], weight


def should_stop(scores: list[float], n_iter_no_change: int, tol: float) -> bool:
    """Whether none of the last scores is better, by more than tol, than the one before them.

    Examples
    --------
    >>> should_stop([1, 2, 3], 2, 0.0), should_stop([3, 2, 3], 2, 0.0)
    (False, True)
    """
    if len(scores) <= n_iter_no_change:
        return False
    before, recent = scores[-n_iter_no_change - 1], scores[-n_iter_no_change:]
    return not any(score > before + tol for score in recent)


def tree_predictors(model: arboost.Predictor) -> list[list[Any]]:
    """A ``TreePredictor`` of scikit-learn for each tree: a list of the trees of each round.

    They are copies: changes do not reach the model. Sets of levels are bits of their codes. The
    model does not hold numbers of rows, and `count` is 0.
    """
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor

    predictors = []
    n_levels = np.array(model.schema.n_levels)
    for tree in range(model.n_trees):
        forest = model.forest.single_tree(tree)
        by_set = forest.level_set >= 0
        nodes = np.zeros(forest.n_nodes, PREDICTOR_RECORD_DTYPE)
        columns = {
            "value": forest.value[:, 0],
            "feature_idx": forest.feature,
            "num_threshold": forest.threshold,
            "missing_go_to_left": forest.default_left,
            "left": forest.left,
            "right": np.where(forest.is_split, forest.left + 1, 0),
            "gain": forest.gain,
            "depth": translation.node_depths(forest),
            "is_leaf": ~forest.is_split,
            "is_categorical": by_set,
            "bitset_idx": np.where(by_set, forest.level_set, 0),
        }
        for name, column in columns.items():
            nodes[name] = column
        sets = _known_levels(forest.level_sets, n_levels[forest.feature[by_set]])
        predictors.append(TreePredictor(nodes, sets, sets.copy()))
    size = model.trees_per_round
    return [predictors[first : first + size] for first in range(0, len(predictors), size)]


def _known_levels(sets: NDArray[np.uint64], n_levels: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Sets of level codes as words of 32 bits, without the codes that no level has."""
    bits = np.unpackbits(sets.view(np.uint8), axis=1, bitorder="little")
    bits[np.arange(bits.shape[1]) >= n_levels[:, np.newaxis]] = 0
    return np.packbits(bits, axis=1, bitorder="little").view(np.uint32)


_MIN_HESSIAN = 1e-3  # of a child, as scikit-learn has it
_LARGE_TABLE = 10_000  # rows above which early_stopping="auto" stops early
# Splits of categories: all levels sorted by gradient, rare ones apart, as scikit-learn has them.
_LEVELS = {
    "max_cat_to_onehot": 1,
    "max_cat_threshold": 256,
    "min_cat_weight": 10.0,
    "cat_smooth": 10.0,
    "cat_l2": 0.0,
}


class SklearnHistBoosting(parameters.NotLoadable, translation.TranslatedBooster):
    """Fit and predictions of both classes."""

    random_state: Any
    warm_start: bool
    n_iter_no_change: int
    tol: float
    interaction_cst: Any
    _random_seed: int

    @known_arguments
    def fit(
        self,
        X: object,
        y: object,
        sample_weight: object = None,
        *,
        X_val: object = None,
        y_val: object = None,
        sample_weight_val: object = None,
    ) -> Self:
        """Train on a table and a target.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Validation set of early stopping.

        Returns
        -------
        self
        """
        names = [name for name in self._PARAMS if name != "random_state"]
        params = check({name: getattr(self, name) for name in names}, self._PARAMS)
        is_warm = self.warm_start and hasattr(self, "model_")
        n_old = self.model_.n_rounds if is_warm else 0
        if params["max_iter"] < n_old:
            raise ValueError(
                f"max_iter={params['max_iter']} must be larger than or equal to n_iter_={n_old} "
                "when warm_start==True. Use a larger number, or warm_start=False."
            )
        validation: dict[str, Any] = {
            "X_val": X_val,
            "y_val": y_val,
            "sample_weight_val": sample_weight_val,
        }
        has_validation = any(value is not None for value in validation.values())
        if has_validation:
            _check_validation(params, X_val, y_val)
        rows = FitRows.read(X, y, sample_weight)
        if params.get("class_weight") is not None:
            factors = compute_sample_weight(params["class_weight"], rows.y)
            weight = 1.0 if rows.sample_weight is None else rows.sample_weight
            rows = replace(rows, sample_weight=factors * weight)
        generator = check_random_state(self.random_state)
        limit = np.iinfo(np.uint32).max
        seed = self._random_seed if is_warm else int(generator.randint(limit, dtype="u8"))
        stops = params["early_stopping"]
        stops = len(rows.y) > _LARGE_TABLE if stops == "auto" else stops
        fraction = params["validation_fraction"]
        if has_validation:
            rows = replace(rows, **validation)
        elif stops and fraction is not None:
            rows = rows.split(fraction, seed, stratify=self._KIND == "classifier")
        observer = None
        if stops:
            observer = IterationScores(self, params, rows, seed, is_continued=is_warm)
            if is_warm:
                observer.train += list(self.train_score_)
                observer.validation += list(self.validation_score_)
        if params["max_iter"] > n_old:
            old = self.model_ if is_warm else None
            self._fit(self._translation(params, rows, observer, seed, n_old), rows, old)
            self._keep_scores(observer)
        self._random_seed, self.do_early_stopping_ = seed, stops
        return self

    def staged_predict(self, X: object) -> Iterator[NDArray[Any]]:
        """Yield the result of `predict` after each iteration."""
        staged: Iterator[NDArray[Any]] = self._fitted_model().staged_predict(X)
        return staged

    def _translation(
        self,
        params: dict[str, Any],
        rows: FitRows,
        observer: IterationScores | None,
        seed: int,
        n_old: int,
    ) -> translation.Translation:
        """Fit in the engine's terms."""
        same = {"loss", "learning_rate", "max_depth", "min_samples_leaf", "max_bins"}
        values = {name: value for name, value in params.items() if name in same}
        if params.get("quantile") is not None:
            values["alpha"] = params["quantile"]
        elif params["loss"] == "quantile":
            raise ParameterError(
                'loss="quantile" needs a quantile, but quantile is None. Use for example '
                "quantile=0.5.",
                parameter="loss",
            )
        engine = self._engine_params(
            **values,
            n_estimators=params["max_iter"] - n_old,
            boosting="newton",
            max_leaves=params["max_leaf_nodes"],
            grow_policy="leafwise",
            min_child_weight=_MIN_HESSIAN,
            reg_lambda=params["l2_regularization"],
            subsample=1.0,
            sampling_method="uniform",
            colsample_bynode=params["max_features"],
            categorical_features=_categories(params["categorical_features"], rows),
            monotone_constraints=params["monotonic_cst"],
            random_state=seed,
            verbose=params["verbose"],
            **_LEVELS,
        )

        def adjust(recipe: Any, schema: Any) -> Any:
            _check_categories(params, schema)
            groups = self._check_interaction_cst(schema.n_features)
            interactions = tuple(tuple(sorted(group)) for group in groups or ())
            tree, rate = replace(recipe.tree, interactions=interactions), recipe.learning_rate
            if recipe.loss.link == "softmax":
                # The engine's hessians of classes are twice those of scikit-learn: with everything
                # else doubled, splits and steps are the same.
                tree = replace(
                    tree, reg_lambda=2 * tree.reg_lambda, min_child_weight=2 * tree.min_child_weight
                )
                rate *= 2.0
            return replace(recipe, tree=tree, learning_rate=rate)

        interactions = self.interaction_cst
        return translation.Translation(
            params=engine,
            adjust=adjust,
            observer=observer,
            record={} if interactions is None else {"interaction_cst": repr(interactions)},
        )

    def _check_interaction_cst(self, n_features: int) -> list[set[int]] | None:
        """Groups of features that may share a path; all unlisted ones are one more."""
        constraints: Any = self.interaction_cst
        if constraints is None:
            return None
        if isinstance(constraints, str) and constraints in ("pairwise", "no_interactions"):
            size = 2 if constraints == "pairwise" else 1
            constraints = combinations(range(n_features), min(size, n_features))
        if isinstance(constraints, str) or not isinstance(constraints, Iterable):
            constraints = [None]
        groups = list(constraints)
        if not all(isinstance(group, Iterable) and not isinstance(group, str) for group in groups):
            raise ValueError(
                "Interaction constraints must be a sequence of tuples or lists, got: "
                f"{self.interaction_cst!r}. Use for example interaction_cst=[[0, 1], [2]]."
            )
        sets = [set(group) for group in groups]
        for group in sets:
            if not all(
                isinstance(item, Integral) and 0 <= int(item) < n_features for item in group
            ):
                raise ValueError(
                    "Interaction constraints must consist of integer indices in [0, n_features - "
                    f"1] = [0, {n_features - 1}], specifying the position of features, got "
                    f"{group!r}. Use such indices."
                )
        rest = set(range(n_features)).difference(*sets)
        return [*sets, rest] if rest else sets

    def _should_stop(self, scores: list[float]) -> bool:
        """Whether early stopping ends a fit after these scores."""
        return should_stop(scores, self.n_iter_no_change, self.tol)

    def _keep_scores(self, scores: IterationScores | None) -> None:
        """Set the attributes of the iterations."""
        model = self.model_
        self.n_iter_ = model.n_rounds
        self.n_trees_per_iteration_ = model.trees_per_round
        self.train_score_ = np.array(scores.train if scores else [])
        self.validation_score_ = np.array(scores.validation if scores else [])
        schema = model.schema
        mask = [schema.levels_of(i) is not None for i in range(schema.n_features)]
        self.is_categorical_ = np.array(mask) if any(mask) else None

    @property
    def _predictors(self) -> list[list[Any]]:
        """Trees as scikit-learn's own predictors."""
        return tree_predictors(self._fitted_model())

    @property
    def _baseline_prediction(self) -> Floats:
        """Raw scores before the first iteration, shape (1, n_outputs)."""
        base: Floats = self._fitted_model().base_score
        return base.reshape(1, -1)

    def _raw_predict(self, X: object) -> Floats:
        """Raw scores, shape (n_rows, n_outputs)."""
        raw: Floats = self._fitted_model().predict_raw(X)
        return raw


def _check_validation(params: dict[str, Any], X_val: Any, y_val: Any) -> None:
    """Raise ValueError for a validation set without X or y, or that no fit would read."""
    if X_val is None or y_val is None:
        present, missing = ("y_val", "X_val") if X_val is None else ("X_val", "y_val")
        raise ValueError(
            f"{present} is provided, but {missing} was not provided. Pass both, or none."
        )
    if params["early_stopping"] is False:
        raise ValueError(
            "X_val and y_val are passed to fit while at the same time early_stopping is False. Use "
            'early_stopping=True or "auto", or leave them out.'
        )


def _categories(categorical_features: Any, rows: FitRows) -> Any:
    """Categories for the engine; scikit-learn's levels have no order."""
    if categorical_features is not None and not isinstance(categorical_features, str):
        return categorical_features
    return rows.ordered_columns() or "from_dtype"


def _check_categories(params: dict[str, Any], schema: Any) -> None:
    """Raise ValueError for categories of more levels than bins, or where none are allowed."""
    for feature in range(schema.n_features):
        levels = schema.levels_of(feature)
        if levels is None:
            continue
        name = f"at index {feature}" if schema.names is None else repr(schema.names[feature])
        if params["categorical_features"] is None:
            raise ValueError(
                f"The feature {name} is a category, but categorical_features=None allows none. Use "
                'categorical_features="from_dtype", or pass the column as numbers.'
            )
        if len(levels) > params["max_bins"]:
            raise ValueError(
                f"Categorical feature {name} is expected to have a cardinality <= "
                f"{params['max_bins']} but actually has a cardinality of {len(levels)}. Use a "
                "larger max_bins, or the boosters of arboost itself, which encode any number of "
                "levels."
            )


class HistGradientBoostingClassifier(translation.TranslatedClassifier, SklearnHistBoosting):
    """Histogram-based gradient boosting for classification with scikit-learn's parameters.

    Parameters and attributes have scikit-learn's names, defaults and meanings. Columns of strings
    are categories, too, and `save`, `shap_values` and the other methods of arboost's estimators are
    there.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from arboost.compat.sklearn import HistGradientBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> HistGradientBoostingClassifier(max_iter=20).fit(X, y).score(X, y) > 0.95
    True
    """

    _KIND = "classifier"
    _PARAMS = parameters.HIST_CLASSIFIER
    _ENGINE = BOOSTED_CLASSIFIER

    __init__ = constructor(ensemble.HistGradientBoostingClassifier, {*_PARAMS, "interaction_cst"})


class HistGradientBoostingRegressor(RegressorMixin, SklearnHistBoosting):
    """Histogram-based gradient boosting for regression with scikit-learn's parameters.

    Parameters and attributes have scikit-learn's names, defaults and meanings. Columns of strings
    are categories, too, and `save`, `shap_values` and the other methods of arboost's estimators are
    there.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from arboost.compat.sklearn import HistGradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> HistGradientBoostingRegressor(max_iter=20).fit(X, y).n_iter_
    20
    """

    _KIND = "regressor"
    _PARAMS = parameters.HIST_REGRESSOR
    _ENGINE = BOOSTED_REGRESSOR

    __init__ = constructor(ensemble.HistGradientBoostingRegressor, {*_PARAMS, "interaction_cst"})
