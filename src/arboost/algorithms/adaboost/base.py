"""What both kinds of AdaBoost share: parameters -> recipe, and what is kept of a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from arboost.algorithms.adaboost.class_rounds import VoteRounds
from arboost.algorithms.adaboost.r2_rounds import AmountRounds
from arboost.algorithms.adaboost.rounds import WeightRecipe
from arboost.algorithms.adaboost.schemes import Amounts, Votes
from arboost.algorithms.adaboost.tree_learners import TreeLearners
from arboost.algorithms.estimator import TreeEnsemble
from arboost.backend import core
from arboost.data.schema import Schema
from arboost.data.target import Task
from arboost.explain.importances import tree_importances
from arboost.grow.grower import TreeParams
from arboost.losses import Loss
from arboost.losses.base import mean
from arboost.model.model import Model
from arboost.params.adaboost import ENGINE_ONLY
from arboost.params.shared import LEVELS
from arboost.predictor import Predictor
from arboost.training.fit import Outcome
from arboost.training.monitor import Round
from arboost.training.sets import EvaluationSet, TrainingSet

__all__ = ["AdaBoost", "amount_rounds", "vote_rounds"]


Floats = NDArray[np.float64]


class AdaBoost(TreeEnsemble):
    """Learners in sequence, each on the rows as those before it have weighed them."""

    _FACTS: ClassVar[Mapping[str, str]]  # what is known of rounds -> the attribute that holds it
    _SAME: ClassVar[str]  # the parameter that all rounds of a model must share
    _METRIC: ClassVar[str]
    _OUT_OF_BAG: ClassVar[str]  # the attribute that holds scores out of bag

    estimator: Any
    warm_start: bool
    estimator_weights_: Floats
    estimator_errors_: Floats

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
            As the boosters take it; with an `estimator` of your own, as that takes it.
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
            The distribution that the first learner sees. Rows of weight 0 count as absent.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Validation data: each round is measured on them, and early stopping looks at them.
        groups : array of shape (n_rows,), optional
            Group of each row, for ``validation_split="group"``.
        init_model : estimator of the same class, optional
            Whose learners are kept: n_estimators more are added to them. (``warm_start`` does the
            same with this estimator itself, up to n_estimators in all.)
        callbacks : iterable of callables
            Each gets an `arboost.Round` after every round, and answers None or False to go on, True
            to stop.
        checkpoint : path or arboost.Checkpoint, optional
            Where the state of the fit is kept, for trees of the engine. A killed fit that is called
            again goes on from there, and ends in the same model.

        Returns
        -------
        self
        """
        old = self._old(init_model)
        if old is self and (self._n_left(self._params(), self.model_) == 0 or self._is_done):
            return self
        fit = super().fit if self.estimator is None else self._fit_members
        return fit(
            X,
            y,
            sample_weight,
            X_val=X_val,
            y_val=y_val,
            sample_weight_val=sample_weight_val,
            groups=groups,
            init_model=old,
            callbacks=callbacks,
            checkpoint=checkpoint,
        )

    @property
    def _has_rounds(self) -> bool:  # type: ignore[override]
        return self.estimator is None

    @property
    def _is_done(self) -> bool:
        """Whether the last learner was perfect, so that no row is left to learn from."""
        return bool(len(self.estimator_errors_)) and self.estimator_errors_[-1] == 0.0

    @property
    def estimators_(self) -> list[Any]:
        """The learners: estimators of your own, or predictors of one tree each."""
        model = self._fitted_model()
        if not isinstance(model, Predictor):
            return list(model.members)
        return [_one_tree(model, tree) for tree in range(model.n_trees)]

    @property
    def feature_importances_(self) -> Floats:
        """Mean over the learners, by their weights, of the share of each feature in their gains."""
        model = self._fitted_model()
        weights = self.estimator_weights_
        if not isinstance(model, Predictor):
            shares = np.array([member.feature_importances_ for member in model.members])
        else:
            shares = tree_importances(model)
        if not len(weights):
            return np.zeros(self.n_features_in_)
        # np.average, unlike a product of matrices, adds in one order.
        mean: Floats = np.average(shares, axis=0, weights=weights)
        return mean

    def _old(self, init_model: object) -> AdaBoost | None:
        """Return the estimator whose learners are kept, or None."""
        if init_model is None:
            return self if self.warm_start and hasattr(self, "model_") else None
        if type(init_model) is not type(self):
            raise TypeError(
                f"init_model={init_model!r} is not allowed: the errors and weights of its learners "
                f"are needed, which only a fitted {type(self).__name__} has. Pass one."
            )
        check_is_fitted(init_model)
        return init_model

    def _n_left(self, params: dict[str, Any], old: Model | None) -> int:
        """Return how many learners are to be added."""
        wanted: int = params["n_estimators"]
        is_own = old is vars(self).get("model_")
        if old is None or not self.warm_start or not is_own:
            return wanted
        if wanted < old.n_rounds:
            raise ValueError(
                f"n_estimators={wanted} is not allowed: warm_start=True keeps the {old.n_rounds} "
                "learners there are. Use a larger number, or warm_start=False to start anew."
            )
        return wanted - old.n_rounds

    def _resolve(
        self,
        params: dict[str, Any],
        n_rows: int,
        *,
        has_validation: bool,
        old: Model | None = None,
    ) -> dict[str, Any]:
        metric = params["eval_metric"]
        measures = has_validation or params["n_iter_no_change"] is not None
        return params | {
            "n_estimators": self._n_left(params, old),
            "eval_metric": [self._METRIC] if metric is None and measures else metric,
            # Read by the training code of all algorithms, and no parameter of AdaBoost.
            "max_conflict_rate": 0.0,
        }

    def _check_together(self, params: dict[str, Any]) -> None:
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
        if params["estimator"] is None:
            return
        for name in ENGINE_ONLY:
            given, usual = params[name], self._TABLE[name].default
            if given != usual and repr(given) != repr(usual):  # NaN is no number's equal
                raise ValueError(
                    f"{name}={given!r} is not allowed with an estimator: it is for the trees that "
                    f"estimator=None grows. Leave it out, or set it in the estimator."
                )

    def _check_continues(self, old: Model, task: Task, params: dict[str, Any], loss: Loss) -> None:
        name = self._SAME
        was = old.params[name]
        if was != params[name]:
            raise ValueError(
                f"{name}={params[name]!r} is not allowed: the learners that are kept were trained "
                f"with {name}={was!r}. Make the two equal."
            )
        if params["oob_score"]:
            raise ValueError(
                "oob_score=True is not allowed where training goes on: which rows the first "
                "learners have drawn is not kept. Train anew, or use validation data."
            )

    def _weight_recipe(self, params: dict[str, Any], scheme: Votes | Amounts) -> WeightRecipe:
        best_first = params["max_leaves"] is not None
        tree = TreeParams(
            max_depth=params["max_depth"],
            max_leaves=params["max_leaves"],
            grow_policy="leafwise" if best_first else "depthwise",
            min_child_weight=0.0,
            min_samples_leaf=params["min_samples_leaf"],
            gamma=0.0,
            reg_lambda=0.0,
            reg_alpha=0.0,
            max_delta_step=0.0,
            tree_method=params["tree_method"],
            **{name: param.default for name, param in LEVELS.items()},
        )
        return WeightRecipe(
            scheme=scheme,
            n_estimators=params["n_estimators"],
            tree=tree,
            least_share=params["min_weight_fraction_leaf"],
            resample=params["resample"],
            max_restarts=params["max_restarts"],
            out_of_bag=params["oob_score"],
        )

    def _keep(
        self,
        outcome: Outcome,
        schema: Schema,
        task: Task,
        recorded: dict[str, Any],
        init_model: object = None,
    ) -> None:
        facts = {
            attribute: np.append(
                getattr(init_model, attribute, np.empty(0)), outcome.facts.get(fact, np.empty(0))
            )
            for fact, attribute in self._FACTS.items()
        }
        super()._keep(outcome, schema, task, recorded, init_model)
        self.__dict__.update(facts)
        for name in ("oob_score_", self._OUT_OF_BAG):
            self.__dict__.pop(name, None)
        if outcome.out_of_bag is not None:
            self.oob_score_ = outcome.out_of_bag.score
            scores = outcome.out_of_bag.scores
            setattr(self, self._OUT_OF_BAG, scores[:, 0] if scores.shape[1] == 1 else scores)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.estimator is not None:
            tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _fit_members(self, X: object, y: object, sample_weight: object, **rest: Any) -> Self:
        from arboost.algorithms.adaboost.estimator_fit import fit_members

        fit_members(self, X, y, sample_weight, **rest)
        return self


def _one_tree(model: Predictor, tree: int) -> Predictor:
    weights = model.tree_weights[tree : tree + 1]
    return Predictor(
        **model.fields() | {"forest": model.forest.only(tree), "tree_weights": weights}
    )


def vote_rounds(
    recipe: WeightRecipe,
    data: TrainingSet,
    evaluations: Sequence[EvaluationSet] = (),
    *,
    n_threads: int,
    seed: int,
    workspace: core.Workspace | None = None,
) -> VoteRounds:
    """Return a fit of classes before its first round."""
    learners = _learners(
        recipe, data, evaluations, n_threads=n_threads, seed=seed, workspace=workspace
    )
    return VoteRounds(
        recipe,
        learners,
        data,
        evaluations,
        first_round=data.first_round,
        n_threads=n_threads,
        seed=seed,
    )


def amount_rounds(
    recipe: WeightRecipe,
    data: TrainingSet,
    evaluations: Sequence[EvaluationSet] = (),
    *,
    start_weights: NDArray[np.float64] | None = None,
    n_threads: int,
    seed: int,
    workspace: core.Workspace | None = None,
) -> AmountRounds:
    """Return a fit of numbers before its first round, or after those of a model that goes on."""
    assert isinstance(recipe.scheme, Amounts)
    recipe = replace(recipe, scheme=replace(recipe.scheme, middle=mean(data.target)))
    learners = _learners(
        recipe, data, evaluations, n_threads=n_threads, seed=seed, workspace=workspace
    )
    return AmountRounds(
        recipe,
        learners,
        data,
        evaluations,
        start_weights=start_weights,
        n_threads=n_threads,
        seed=seed,
    )


def _learners(
    recipe: WeightRecipe,
    data: TrainingSet,
    evaluations: Sequence[EvaluationSet],
    *,
    n_threads: int,
    seed: int,
    workspace: core.Workspace | None,
) -> TreeLearners:
    """Return the maker of trees; the weights of their rows have the mean 1."""
    least_weight = recipe.least_share * len(data.target.y)
    return TreeLearners(
        data,
        evaluations,
        replace(recipe.tree, min_child_weight=least_weight),
        recipe.scheme,
        n_threads=n_threads,
        seed=seed,
        workspace=workspace,
    )
