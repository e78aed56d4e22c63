"""Interface for estimators with the signatures of another library, as in `arboost.compat`.

A fit of these boosters is a fit of the engine's booster with translated parameters, and with
settings that the engine's public parameters do not reach: start scores, an observer of the rounds,
and pruning of each tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils.validation import _num_samples

from arboost.backend import core
from arboost.data.raw_table import is_sparse
from arboost.data.schema import Schema
from arboost.data.table import as_array, read_columns
from arboost.data.target import Task, encode_labels, target, weights
from arboost.estimators.boosting_rounds import (
    BoostingRecipe,
    BoostingRounds,
    make_loss,
    make_recipe,
)
from arboost.estimators.estimator import BoostedClassifierMethods, EngineEstimator
from arboost.estimators.forest_growth import feature_count
from arboost.estimators.gradient_boosting import GradientBoosting, one_tree
from arboost.estimators.member_fits import to_frame
from arboost.losses.base import Floats, Loss
from arboost.losses.links import LINKS, decision, predictions, probabilities
from arboost.losses.metrics import Metric
from arboost.models.predictor import Predictor
from arboost.params.kinds import Param
from arboost.params.records import check
from arboost.training.loop import FinishedRound, Fitted, Rounds
from arboost.training.sets import EvaluationSet, TrainingSet
from arboost.trees.forest import Forest, depths
from arboost.trees.pruning import without_branches


class TranslatedBooster(EngineEstimator):
    """An estimator of another library's interface, whose fits are those of the engine's booster."""

    _PARAMS: ClassVar[Mapping[str, Param]]  # of the other library
    _ENGINE: ClassVar[Mapping[str, Param]]  # of the engine's booster
    _TAKES_ROWS = False

    n_jobs: int | None = None

    def _fit(self, translation: Translation, rows: FitRows, old: Predictor | None) -> None:
        """Train, from the rounds of an old model on where there is one, and keep the model."""
        booster = _EngineBooster(translation, self._KIND, self._ENGINE)
        booster.fit(rows.X, rows.y, rows.sample_weight, init_model=old, **rows.validation)
        self._keep_model(booster.model_, booster.model_.schema)

    def _engine_params(self, **values: Any) -> dict[str, Any]:
        """Checked parameters of the engine's booster: these values, else its defaults."""
        values = {"calendar_parts": None} | values  # other libraries derive no features
        params = {name: values.get(name, param.default) for name, param in self._ENGINE.items()}
        del params["monotonic_cst"]  # the engine's name is monotone_constraints
        return check(params, self._ENGINE)

    def _predictions(self, raw: Floats) -> NDArray[Any]:
        """Predicted values or labels of raw scores."""
        return predictions(self.model_, raw)

    def _probabilities(self, raw: Floats) -> Floats:
        """Class probabilities of raw scores."""
        shares = probabilities(self.model_, raw)
        assert not isinstance(shares, list)  # boosters have one target
        return shares

    def _decision(self, raw: Floats) -> Floats:
        """Raw scores as `decision_function` gives them."""
        return decision(raw)

    def _feature_count(self, max_features: Any, n_features: int) -> int:
        """Number of features that a node draws."""
        return feature_count(max_features, n_features)

    def _tree_models(self) -> list[Predictor]:
        """Each tree of the fitted model as a regressor of its steps."""
        return [one_tree(self.model_, tree) for tree in range(self.model_.n_trees)]


class TranslatedClassifier(BoostedClassifierMethods):
    """Class probabilities and raw scores of a `TranslatedBooster`."""


@dataclass(frozen=True, kw_only=True)
class Translation:
    """A fit of another library in the engine's terms.

    Attributes
    ----------
    params : dict
        Checked parameters of the engine's booster.
    adjust : callable (recipe, schema) -> recipe
        Settings that the engine's public parameters do not reach.
    observer : RoundObserver or None
    record : dict
        Parameters that the engine's booster does not have, for the model file.
    start : sequence of float64 arrays of shape (n_rows, n_outputs)
        Raw scores of another model that the trees are added to: those of the training rows of
        nonzero weight, then those of the validation rows; empty without such a model.
    ccp_alpha : float
        Cost-complexity pruning of each tree.
    """

    params: dict[str, Any]
    adjust: Callable[[BoostingRecipe, Schema], BoostingRecipe]
    observer: RoundObserver | None = None
    record: dict[str, Any] = field(default_factory=dict)
    start: Sequence[Floats] = ()
    ccp_alpha: float = 0.0


class RoundObserver(Protocol):
    """Observer of a training, which keeps scores and decides when to stop."""

    def before_first(self, rounds: ObservedRounds) -> None:
        """See the scores before the first round of this fit."""
        ...

    def after_round(self, rounds: ObservedRounds) -> str | None:
        """See a finished round; return the reason to stop, or None to continue."""
        ...


@dataclass(frozen=True, kw_only=True)
class FitRows:
    """Arguments of a fit: tables as they were given, y and weights as arrays.

    Attributes
    ----------
    X, X_val : table
    y, y_val : array
    sample_weight, sample_weight_val : float64 array or None
    """

    X: Any
    y: NDArray[Any]
    sample_weight: NDArray[np.float64] | None
    X_val: Any = None
    y_val: NDArray[Any] | None = None
    sample_weight_val: NDArray[np.float64] | None = None

    @classmethod
    def read(cls, X: Any, y: object, sample_weight: object) -> FitRows:
        """Rows of a fit, with y and weights checked."""
        X = X if is_sparse(X) else to_frame(X)  # a format of scipy is a dict
        if not hasattr(X, "shape") and not hasattr(X, "__arrow_c_stream__"):
            X = as_array(X)
        n_rows = _num_samples(X)
        return cls(X=X, y=target(y, n_rows), sample_weight=weights(sample_weight, n_rows))

    @property
    def validation(self) -> dict[str, Any]:
        """The validation set, as the engine's `fit` takes it."""
        names = ("X_val", "y_val", "sample_weight_val")
        return {name: getattr(self, name) for name in names}

    @property
    def codes(self) -> NDArray[np.float64]:
        """Class codes of the labels of the training rows."""
        return encode_labels(self.y)[1]

    def ordered_columns(self) -> list[Any]:
        """Columns of X that are categories in an order."""
        return sorted(read_columns(self.X).orders)

    def counted(self) -> NDArray[np.bool_]:
        """Mask of the training rows of nonzero weight."""
        if self.sample_weight is None:
            return np.ones(len(self.y), np.bool_)
        return self.sample_weight > 0.0

    def split(self, fraction: float, seed: Any, *, stratify: bool) -> FitRows:
        """Rows with a share of them as validation set."""
        parts = train_test_split(
            *(self.X, self.y, self.sample_weight)[: 2 + (self.sample_weight is not None)],
            test_size=fraction,
            random_state=seed,
            stratify=self.codes if stratify else None,
        )
        X, X_val, y, y_val, *weight = parts
        train, held_out = weight if weight else (None, None)
        return FitRows(
            X=X, y=y, sample_weight=train, X_val=X_val, y_val=y_val, sample_weight_val=held_out
        )


class _EngineBooster(GradientBoosting):
    """One fit of a translation; a public estimator takes the model from it."""

    n_jobs = None
    warm_start = False

    def __init__(self, translation: Translation, kind: str, table: Mapping[str, Param]) -> None:
        self.translation = translation
        self._KIND = kind  # type: ignore[misc]
        self._TABLE = table  # type: ignore[misc]

    def _checked_params(self) -> dict[str, Any]:
        return self.translation.params

    def _recorded_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return super()._recorded_params(params) | self.translation.record

    def _keep_model(self, model: Any, schema: Schema) -> None:
        if model.link == "softmax":  # scikit-learn's scores of the classes have the mean 0
            centred = model.base_score - model.base_score.mean()
            model = replace(model, base_score=centred)
        super()._keep_model(model, schema)

    def _plan(
        self, params: dict[str, Any], task: Task, schema: Schema
    ) -> tuple[Loss, Callable[..., Rounds]]:
        loss = make_loss(params, task)
        recipe = self.translation.adjust(make_recipe(params, loss, schema), schema)
        return loss, partial(ObservedRounds, recipe, translation=self.translation)


class ObservedRounds(BoostingRounds):
    """Rounds that start at given scores, and whose observer can end them."""

    def __init__(
        self,
        recipe: BoostingRecipe,
        data: TrainingSet,
        evaluations: Sequence[EvaluationSet] = (),
        *,
        translation: Translation,
        **settings: Any,
    ) -> None:
        start, ccp_alpha = translation.start, translation.ccp_alpha
        if start:
            data = replace(data, start=_add_scores(data.start, start[0]))
            evaluations = [
                replace(part, start=_add_scores(part.start, scores))
                for part, scores in zip(evaluations, start[1:], strict=True)
            ]
        super().__init__(recipe, data, evaluations, **settings)
        self._observer = translation.observer
        self._pruning = PrunedTrees(ccp_alpha) if ccp_alpha > 0.0 else None
        self._leaf_values = None if self._pruning is None else self._pruned_values
        if self._observer is not None:
            self._observer.before_first(self)

    @property
    def in_bag(self) -> NDArray[np.uint32] | None:
        """Training rows of the last round; None for all."""
        return None if self.recipe.rows.rate >= 1.0 else self._boosting.sample.positions()

    def run_rounds(
        self, limit: int = 1, metrics: Sequence[Metric] = (), seconds: float = 0.0
    ) -> list[FinishedRound]:
        """Run at least one and at most `limit` more rounds; an observer sees one at a time."""
        if self._observer is None:
            return super().run_rounds(limit, metrics, seconds)
        finished = super().run_rounds(1, metrics, seconds)
        self.ended = self._observer.after_round(self)
        return finished

    def fitted(self, weights: NDArray[np.float64]) -> Fitted:
        """Rounds so far, with pruned trees."""
        fitted = super().fitted(weights)
        if self._pruning is None:
            return fitted
        return replace(fitted, forest=self._pruning.cut(fitted.forest))

    def _pruned_values(self, output: int) -> None:
        assert self._pruning is not None
        recipe, loss = self.recipe, self.recipe.loss
        left, n_nodes = self.grower.last_tree()["left"], self.grower.n_nodes
        gradients = self._boosting.gradients(least_squares=recipe.boosting == "gradient")
        sums = self.grower.leaf_sums(gradients, output, self.n_threads)[:, 0]
        leaf = self._pruning.new_leaves(left, sums)  # the leaf that each node becomes a part of
        if loss.refits(recipe.boosting):
            of_row = self.grower.leaf_of_row()
            inside = of_row < n_nodes
            of_row[inside] = leaf[of_row[inside]]
            values = loss.refit(
                self.data.target, self.scores, output, of_row, n_nodes, self.n_threads
            )
        else:
            gradients = self._boosting.gradients(least_squares=loss.constant_hessian)
            newton = self.grower.leaf_sums(gradients, output, self.n_threads)[:, 0]
            is_leaf = left == 0
            sums = np.zeros((n_nodes, 2))
            np.add.at(sums, leaf[is_leaf], newton[is_leaf])
            values = loss.leaf_values(sums[:, 0], sums[:, 1])
        rate = recipe.learning_rate / recipe.parallel_trees
        self.grower.set_values(rate * values[leaf][:, np.newaxis])


def _add_scores(start: Floats | None, scores: Floats) -> Floats:
    return scores if start is None else start + scores


class PrunedTrees:
    """Branches that pruning has made leaves of, tree by tree.

    Parameters
    ----------
    ccp_alpha : float
        Mean decrease of squared error per split and row up to which a branch is pruned.
    """

    def __init__(self, ccp_alpha: float) -> None:
        self._alpha = ccp_alpha
        self._cut: list[NDArray[np.bool_]] = []

    def new_leaves(self, left: NDArray[np.int32], sums: Floats) -> NDArray[np.int64]:
        """Prune the tree that was grown last; return the leaf that each node becomes a part of.

        Parameters
        ----------
        left : int32 array of shape (n_nodes,)
            Left children; 0 marks a leaf.
        sums : float64 array of shape (n_nodes, 2)
            Sums of gradients and of weights in the leaves.
        """
        total = np.where((left == 0)[:, np.newaxis], sums, 0.0)
        splits = np.flatnonzero(left)
        for node in splits[::-1]:  # parents are before their children
            total[node] = total[left[node]] + total[left[node] + 1]
        explained = np.divide(
            total[:, 0] ** 2, total[:, 1], out=np.zeros(len(left)), where=total[:, 1] > 0
        )
        decrease = np.zeros(len(left))
        decrease[splits] = explained[left[splits]] + explained[left[splits] + 1] - explained[splits]
        nodes, alphas, _ = core.prune_order(left, decrease)
        above = np.flatnonzero(alphas / total[0, 1] > self._alpha)
        cut = np.zeros(len(left), np.bool_)
        cut[nodes[: above[0] if len(above) else len(nodes)]] = True
        self._cut.append(cut)
        leaf = np.arange(len(left))
        for node in splits:
            if cut[node] or leaf[node] != node:
                leaf[[left[node], left[node] + 1]] = leaf[node]
        return leaf

    def cut(self, forest: Forest) -> Forest:
        """A forest of the first of these trees, without the branches."""
        cut = np.concatenate(self._cut[: forest.n_trees])
        return without_branches(forest, cut)


@dataclass(frozen=True)
class ModelInTraining:
    """A model in training: the raw scores of the tables that a scorer asks for."""

    kind: str
    link: str
    classes: Any
    n_outputs: int
    tables: list[tuple[Any, Floats]]
    targets: tuple[int, ...] = ()

    def predict_raw(self, X: object, **_: Any) -> Floats:
        """Raw scores of one of the tables."""
        for table, raw in self.tables:
            if table is X:
                return raw
        raise ValueError(
            "scoring asked for predictions of other rows than those it was given. Score the rows "
            "that the scorer gets, or use a scorer of scikit-learn."
        )

    def predict(self, X: object, **_: Any) -> NDArray[Any]:
        """Predictions of one of the tables."""
        return predictions(self, self.predict_raw(X))

    def predict_proba(self, X: object, **_: Any) -> Any:
        """Class probabilities of one of the tables."""
        return probabilities(self, self.predict_raw(X))


_NEAREST = float(np.finfo(np.float32).eps)  # of a probability to 0 and 1, as scikit-learn has it


def init_scores(model: Any, X: object, kind: str, link: str) -> Floats:
    """Raw scores of a model's predictions, shape (n_rows, n_outputs)."""
    if kind == "regressor":
        return np.asarray(model.predict(X), np.float64).reshape(-1, 1)
    shares = np.clip(np.asarray(model.predict_proba(X), np.float64), _NEAREST, 1.0 - _NEAREST)
    logs = core.log(np.ascontiguousarray(shares))
    if link == "softmax":
        centred: Floats = logs - logs.mean(axis=1, keepdims=True)
        return centred
    odds = logs[:, 1] - core.log1p(np.ascontiguousarray(-shares[:, 1]))
    scores: Floats = odds / 2 if link == "logistic_of_double" else odds
    return scores[:, np.newaxis]


def node_depths(forest: Forest) -> NDArray[np.int64]:
    """Number of splits above each node of a forest."""
    return depths(forest)


def link_probabilities(link: str, scores: Floats) -> Floats:
    """Class probabilities of scores, shape (n_rows, n_outputs)."""
    return LINKS[link](scores)
