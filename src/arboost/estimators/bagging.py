"""Bagging: bags of rows and features -> members -> the mean of their predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.dummy import DummyClassifier
from sklearn.utils import get_tags, metadata_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from arboost.backend import core, threads
from arboost.data import target as targets
from arboost.data.dataset import Dataset
from arboost.data.raw_table import is_sparse
from arboost.data.schema import Schema
from arboost.errors import ParameterError, warn_caller, warns_once
from arboost.estimators import member_fits
from arboost.estimators.decision_tree import DecisionTreeClassifier, DecisionTreeRegressor
from arboost.estimators.ensembles import EnsembleMethods, engine_model, ensemble_member
from arboost.estimators.estimator import (
    OUT_OF_BAG,
    classifier_score,
    prediction_score,
    regressor_score,
    set_feature_names,
    store_arguments,
)
from arboost.losses.base import Floats
from arboost.models.ensemble import EnsemblePredictor
from arboost.params.ensembles import BAGGING_CLASSIFIER, BAGGING_REGRESSOR
from arboost.params.records import check
from arboost.params.suggestions import check_params
from arboost.progress import Bar
from arboost.training.fit import number_to_add
from arboost.training.inputs import warn_one_class
from arboost.training.out_of_bag import OutOfBagSums, warn_never_out_of_bag
from arboost.trees.samples import DrawOrigin, RowDraws, smallest_indices, undrawn_rows

Predict = Callable[[Any, Any], Floats]  # (member, table) -> predictions
Features = NDArray[np.intp]

_FEW_DRAWS = 10  # a member learns little from fewer rows
# Parameters of arboost's estimators that refer to columns, with their defaults.
_COLUMN_PARAMS = {
    "categorical_features": "from_dtype",
    "date_format": "auto",
    "interaction_constraints": None,
    "monotone_constraints": None,
    "monotonic_cst": None,
}
_TWO_CLASSES = 2


class _BaggedMember(NamedTuple):
    """A fitted member, the features of its bag, and the origin of its rows."""

    estimator: Any
    features: Features
    origin: DrawOrigin


class Bagging(EnsembleMethods):
    """Members that are trained on bags of rows and features, and whose predictions are averaged."""

    estimator: Any
    n_jobs: int | None
    classes_: NDArray[Any]
    n_classes_: int
    estimators_: list[Any]
    estimators_features_: list[Features]
    oob_score_: float
    _origins: list[DrawOrigin]
    _outputs: BaggingOutputs
    _schema: Schema

    @warns_once
    def fit(
        self, X: object, y: object = None, sample_weight: object = None, **fit_params: Any
    ) -> Self:
        """Train members on bags of the rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Any type that the members take; a frame reaches them as a frame.
        y : array of shape (n_rows,), or for regression (n_rows, n_targets)
            Target: numbers for a regressor, labels for a classifier. Or the name of a column of X;
            the column is then not used as a feature.
        sample_weight : array of shape (n_rows,), optional
            Rows of weight 0 are left out. With bootstrap=True, rows are drawn in proportion to
            their weights; without, the weights are passed on to the members.
        **fit_params
            More arguments of the members' ``fit``. Arrays and lists with one entry per row are
            indexed by the rows of each member.

        Returns
        -------
        self
        """
        params = self._checked_params()
        old = self if params["warm_start"] and hasattr(self, "estimators_") else None
        n_old = 0 if old is None else len(old.estimators_)
        if n_old and number_to_add(params["n_estimators"], n_old, "members") == 0:
            return self
        table, y = member_fits.training_table(
            X, y, getattr(old, "_schema", None), sample_weight=sample_weight
        )
        old_outputs = None if old is None else old._outputs
        target, outputs = read_target(
            self._KIND, y, table.n_rows, old_outputs, hard=self._is_hard()
        )
        weight = targets.weights(sample_weight, table.n_rows)
        template = self._template()
        arguments = self._routed("fit", fit_params)

        # Bags are drawn from the rows of nonzero weight.
        index, source, source_y, source_weight = None, table, target, weight
        if weight is not None and not weight.all():
            index = np.flatnonzero(weight).astype(np.uint32)
            source, source_y, source_weight = table.take(index), target[index], weight[index]
            arguments = member_fits.arguments_for_rows(template, arguments, index, table.n_rows)
        bags = make_bags(params, source.n_rows, table.schema.n_features, source_weight)
        member_weight = None if params["bootstrap"] else source_weight
        if member_weight is not None:
            check_takes_weights(template)
        dataset = None
        if bags.takes_all_features:
            dataset = member_fits.shared_dataset(
                template, source.X, source_y, member_weight, params["n_jobs"]
            )
        elif member_fits.is_engine(template):
            check_columns(template)
        trainer = BagTrainer(
            estimator=template,
            X=source.X,
            y=source_y,
            bags=bags,
            weight=member_weight,
            dataset=dataset,
            n_jobs=params["n_jobs"],
            fit_params=arguments,
        )

        numbers = range(n_old, params["n_estimators"])
        n_parallel = _n_parallel(template, len(numbers), params["n_jobs"])
        with member_fits.one_blas_thread():
            fitted = _fit_members(trainer, numbers, n_parallel, visible=params["verbose"] > 0)
            members = [
                _BaggedMember(member, bags.features(number), DrawOrigin(bags.rows, number, index))
                for number, member in zip(numbers, fitted, strict=True)
            ]
            scores_rows = params["oob_score"]
            sums = _out_of_bag_sums(members, outputs, table, n_parallel) if scores_rows else None
        # A score that fails leaves the estimator unchanged.
        out_of_bag = {} if sums is None else self._out_of_bag(sums, outputs, target, weight)
        self._keep(members, old, outputs, table.schema)
        self.__dict__.update(out_of_bag)
        return self

    def _out_of_bag(
        self,
        sums: OutOfBagSums,
        outputs: BaggingOutputs,
        target: NDArray[Any],
        weight: Floats | None,
    ) -> dict[str, Any]:
        """The out-of-bag attributes of a fit."""
        counted, means = sums.has_some(), sums.means()
        warn_never_out_of_bag(int(np.count_nonzero(~counted)), len(counted), "member")
        if weight is not None:
            counted &= weight > 0.0
            weight = weight[counted]
        predicted = outputs.predictions(means[counted])
        score = prediction_score(self._KIND, target[counted], predicted, weight)
        return {"oob_score_": score, OUT_OF_BAG[self._KIND]: outputs.shaped(means)}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; raise ValueError for an unknown name, with the name here."""
        check_params(self, params)
        super().set_params(**params)
        return self

    @property
    def estimators_samples_(self) -> list[NDArray[np.intp]]:
        """Rows of each member, ascending, with repetitions; drawn again at every call."""
        check_is_fitted(self)
        return [origin.rows() for origin in self._origins]

    def get_metadata_routing(self) -> metadata_routing.MetadataRouter:
        """Return the routing of arguments to methods of the members, for scikit-learn."""
        template = self._template()
        mapping = metadata_routing.MethodMapping().add(caller="fit", callee="fit")
        for caller, callee in _member_methods(self._KIND, template, hard=self._is_hard()).items():
            mapping.add(caller=caller, callee=callee)
        return metadata_routing.MetadataRouter(owner=self).add(
            estimator=template, method_mapping=mapping
        )

    def __len__(self) -> int:
        return len(self.estimators_)

    def __getitem__(self, index: int) -> Any:
        return self.estimators_[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.estimators_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        member_tags = get_tags(self._template())
        tags.input_tags = member_tags.input_tags
        if self._KIND == "regressor":
            tags.target_tags.multi_output = member_tags.target_tags.multi_output
        return tags

    def _template(self) -> Any:
        """The estimator that members are clones of."""
        if self.estimator is not None:
            return self.estimator
        return DecisionTreeClassifier() if self._KIND == "classifier" else DecisionTreeRegressor()

    def _is_hard(self) -> bool:
        return getattr(self, "voting", "soft") == "hard"

    def _checked_params(self) -> dict[str, Any]:
        params = check(self.get_params(deep=False), self._TABLE)
        if params["oob_score"] and params["warm_start"]:
            raise ParameterError(
                "oob_score=True is not allowed with warm_start=True: members that are kept may "
                "have been trained on other rows than those of this fit. Use warm_start=False.",
                parameter="oob_score",
            )
        return params

    def _keep(
        self,
        members: Sequence[_BaggedMember],
        old: Self | None,
        outputs: BaggingOutputs,
        schema: Schema,
    ) -> None:
        """Set the fitted attributes; nothing before this has changed the estimator."""
        if old is None:
            self.estimators_, self.estimators_features_, self._origins = [], [], []
        self.estimator_ = self._template()
        self.estimators_ = [*self.estimators_, *(member.estimator for member in members)]
        features = (member.features for member in members)
        self.estimators_features_ = [*self.estimators_features_, *features]
        self._origins = [*self._origins, *(member.origin for member in members)]
        self._metadata = {}
        self._outputs = outputs
        self._schema = schema
        set_feature_names(self, schema.n_features, schema.names)
        if outputs.classes is not None:
            self.classes_, self.n_classes_ = outputs.classes, len(outputs.classes)
        for name in ("oob_score_", OUT_OF_BAG[self._KIND]):
            self.__dict__.pop(name, None)

    def _ensemble(self, caller: str) -> EnsemblePredictor:
        pairs = zip(self.estimators_, self.estimators_features_, strict=True)
        members = tuple(
            ensemble_member(
                f"member {i}",
                engine_model(f"member {i}", member, caller),
                self._outputs.classes,
                features,
                by_label=True,
                output="vote_shares" if self._outputs.hard else "probabilities",
            )
            for i, (member, features) in enumerate(pairs)
        )
        return EnsemblePredictor(
            kind=self._KIND,
            schema=self._schema,
            classes=self._outputs.classes,
            ensemble_members=members,
            n_columns=self._outputs.n_columns,
            divisor=float(len(members)),
        )

    def _mean_outputs(self, X: object, caller: str, params: dict[str, Any]) -> Floats:
        """The mean of the members' outputs, shape (n_rows, n_columns)."""
        check_is_fitted(self)
        arguments = self._routed(caller, params)
        return self._mean(X, partial(self._outputs.from_member, arguments=arguments))

    def _mean(self, X: object, predict: Predict) -> Floats:
        """The mean of the members' predictions, added in the order of the members."""
        table = member_fits.member_table(X, self._schema, caller=type(self).__name__)
        n_jobs = check({"n_jobs": self.n_jobs}, self._TABLE)["n_jobs"]
        n_parallel = _n_parallel(self.estimator_, len(self.estimators_), n_jobs)
        pairs = zip(self.estimators_, self.estimators_features_, strict=True)
        tasks = ((predict, member, table.X, features) for member, features in pairs)
        predictions = member_fits.ordered_results(_predict_features, tasks, n_parallel)
        total = np.array(next(predictions))
        for values in predictions:
            total += values
        return total / len(self.estimators_)

    def _routed(self, caller: str, params: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a method that are passed on to members."""
        if not params or not get_config()["enable_metadata_routing"]:
            return params
        methods = _member_methods(self._KIND, self._template(), hard=self._is_hard())
        callee = methods.get(caller, caller)
        return dict(metadata_routing.process_routing(self, caller, **params)["estimator"][callee])


def _member_methods(kind: str, template: Any, *, hard: bool) -> Mapping[str, str]:
    """The method of the members that each prediction method of the ensemble calls."""
    if kind == "regressor":
        return {"predict": "predict"}
    callee = "predict" if hard or not hasattr(template, "predict_proba") else "predict_proba"
    callers = ("predict", "predict_proba", "predict_log_proba")
    return dict.fromkeys(callers, callee) | {"decision_function": "decision_function"}


def _n_parallel(template: Any, n_members: int, n_jobs: int | None) -> int:
    """The number of members in parallel; members of arboost use all threads themselves."""
    return 1 if member_fits.is_engine(template) else min(threads(n_jobs), n_members)


def _fit_members(
    trainer: BagTrainer, numbers: range, n_parallel: int, *, visible: bool
) -> list[Any]:
    """The fitted members of these numbers, with a progress bar."""
    members = []
    with Bar(len(numbers), "fitting", visible=visible) as bar:
        for member in member_fits.ordered_results(
            trainer.fit, ((number,) for number in numbers), n_parallel
        ):
            members.append(member)
            bar.show(len(members))
    return members


def _predict_features(predict: Predict, member: Any, X: Any, features: Features) -> Floats:
    """The predictions of a member from its features of X."""
    is_all = len(features) == X.shape[1] and bool((np.diff(features) == 1).all())
    return predict(member, X if is_all else member_fits.take_columns(X, features))


def _out_of_bag_sums(
    members: Sequence[_BaggedMember],
    outputs: BaggingOutputs,
    table: member_fits.MemberTable,
    n_parallel: int,
) -> OutOfBagSums:
    """The sums of the members' predictions for their out-of-bag rows."""
    predict = partial(outputs.from_member, arguments={})
    tasks = ((predict, member, table.X) for member in members)
    sums = OutOfBagSums(table.n_rows, outputs.n_columns)
    for number, (rows, values) in enumerate(
        member_fits.ordered_results(_predict_out_of_bag, tasks, n_parallel)
    ):
        sums.add(number, rows, values)
    return sums


def _predict_out_of_bag(
    predict: Predict, member: _BaggedMember, X: Any
) -> tuple[NDArray[np.uint32], Floats | float]:
    """The out-of-bag rows of a member, and its predictions for them."""
    rows = undrawn_rows(member.origin.rows(), X.shape[0])
    if not len(rows):
        return rows, 0.0
    taken = member_fits.take_rows(X, rows)
    return rows, _predict_features(predict, member.estimator, taken, member.features)


def _has_decision_function(bagging: Bagging) -> bool:
    """Whether members have a decision function; raises AttributeError otherwise."""
    bagging._template().decision_function  # noqa: B018
    return True


class BaggingClassifier(ClassifierMixin, Bagging):
    """Classifiers that are trained on bags of rows and features, and vote.

    The vote is soft if the members have ``predict_proba``: the mean of their probabilities. Else it
    is hard: the share of the members that predict a class.

    Parameters
    ----------
    estimator : estimator or None, default=None
        Member of each bag: any scikit-learn estimator, which is cloned; None: arboost's decision
        tree.
    n_estimators : int, default=10
        Number of members, each with a bag of its own.
    voting : {"soft", "hard"}, default="soft"
        soft: the mean of the members' class probabilities, or of the classes of members without
        any. hard: a majority vote of the members' classes, ties for the smaller label;
        predict_proba has the shares of the votes.
    max_samples : int or float or None, default=None
        Rows to draw for each bag: a number, or a share of the rows (with bootstrap=True of the sum
        of sample_weight). None draws as many as the table has.
    max_features : int or float, default=1.0
        Number of features to draw for each bag, or a share of them; at least one is drawn.
    bootstrap : bool, default=True
        Whether rows are drawn with replacement, in proportion to sample_weight; without
        replacement, members get the weights of the drawn rows.
    bootstrap_features : bool, default=False
        Whether features are drawn with replacement.
    oob_score : bool, default=False
        Whether to compute out-of-bag predictions and their score.
    warm_start : bool, default=False
        Whether a further call of fit keeps the members and adds new ones up to n_estimators.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. Estimators of arboost are
        trained one after the other, with all threads; others in parallel. The result does not
        depend on it.
    random_state : int, RandomState or None, default=0
        Seed of the bags, and of the members' random_state parameters; None: a new seed for each
        fit.
    verbose : bool or int, default=1
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    estimator_ : estimator
        The estimator that the members are clones of.
    estimators_ : list of estimators
        The members. (A classifier that refuses a bag of a single class is replaced by
        scikit-learn's DummyClassifier.)
    estimators_samples_ : list of int arrays
        Rows of each member, ascending, with repetitions.
    estimators_features_ : list of int arrays
        Features of each member, ascending, with repetitions.
    classes_ : array of shape (n_classes_,)
        Labels, in the order of the probabilities.
    n_classes_ : int
        Number of classes.
    oob_score_, oob_decision_function_ : float, float64 array of shape (n_rows, n_classes_)
        With ``oob_score=True``: accuracy and probabilities of the out-of-bag predictions; NaN for
        rows that every member has drawn.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from arboost import BaggingClassifier, GradientBoostingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> booster = GradientBoostingClassifier(n_estimators=10)
    >>> model = BaggingClassifier(booster, n_estimators=20, oob_score=True).fit(X, y)
    >>> round(model.oob_score_, 2)
    0.95
    """

    _KIND = "classifier"
    _TABLE = BAGGING_CLASSIFIER

    score = classifier_score

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        voting: str = "soft",
        max_samples: int | float | None = None,
        max_features: int | float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = 0,
        verbose: bool | int = 1,
    ) -> None:
        store_arguments(self, locals())

    def predict(self, X: object, **params: Any) -> NDArray[Any]:
        """Return the labels with the largest share of the vote, shape (n_rows,).

        More arguments are passed on to the members, as in all prediction methods.
        """
        means = self._mean_outputs(X, "predict", params)
        return self._outputs.predictions(means)

    def predict_proba(self, X: object, **params: Any) -> Floats:
        """Return each class's share of the vote, shape (n_rows, n_classes)."""
        return self._mean_outputs(X, "predict_proba", params)

    def predict_log_proba(self, X: object, **params: Any) -> Floats:
        """Return the logarithms of `predict_proba`; -inf for a class without a vote."""
        return core.log(self._mean_outputs(X, "predict_log_proba", params))

    @available_if(_has_decision_function)  # type: ignore[untyped-decorator]
    def decision_function(self, X: object, **params: Any) -> Floats:
        """Return the mean of the members' decision functions, in their shape.

        A class that a member was not fitted on gets the smallest of the member's other values.
        """
        check_is_fitted(self)
        arguments = self._routed("decision_function", params)
        return self._mean(X, partial(class_decision, arguments=arguments, classes=self.classes_))


class BaggingRegressor(RegressorMixin, Bagging):
    """Regressors that are trained on bags of rows and features; their predictions are averaged.

    Parameters
    ----------
    estimator : estimator or None, default=None
        Member of each bag: any scikit-learn estimator, which is cloned; None: arboost's decision
        tree.
    n_estimators : int, default=10
        Number of members, each with a bag of its own.
    max_samples : int or float or None, default=None
        Rows to draw for each bag: a number, or a share of the rows (with bootstrap=True of the sum
        of sample_weight). None draws as many as the table has.
    max_features : int or float, default=1.0
        Number of features to draw for each bag, or a share of them; at least one is drawn.
    bootstrap : bool, default=True
        Whether rows are drawn with replacement, in proportion to sample_weight; without
        replacement, members get the weights of the drawn rows.
    bootstrap_features : bool, default=False
        Whether features are drawn with replacement.
    oob_score : bool, default=False
        Whether to compute out-of-bag predictions and their score.
    warm_start : bool, default=False
        Whether a further call of fit keeps the members and adds new ones up to n_estimators.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. Estimators of arboost are
        trained one after the other, with all threads; others in parallel. The result does not
        depend on it.
    random_state : int, RandomState or None, default=0
        Seed of the bags, and of the members' random_state parameters; None: a new seed for each
        fit.
    verbose : bool or int, default=1
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    estimator_ : estimator
        The estimator that the members are clones of.
    estimators_ : list of estimators
        The members. (A classifier that refuses a bag of a single class is replaced by
        scikit-learn's DummyClassifier.)
    estimators_samples_ : list of int arrays
        Rows of each member, ascending, with repetitions.
    estimators_features_ : list of int arrays
        Features of each member, ascending, with repetitions.
    oob_score_, oob_prediction_ : float, float64 array of the shape of y
        With ``oob_score=True``: R^2 and values of the out-of-bag predictions; NaN for rows that
        every member has drawn.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from arboost import BaggingRegressor, GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> booster = GradientBoostingRegressor(n_estimators=20)
    >>> model = BaggingRegressor(booster, n_estimators=20, oob_score=True).fit(X, y)
    >>> round(model.oob_score_, 1)
    0.4
    """

    _KIND = "regressor"
    _TABLE = BAGGING_REGRESSOR

    score = regressor_score

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: int | float | None = None,
        max_features: int | float = 1.0,
        bootstrap: bool = True,
        bootstrap_features: bool = False,
        oob_score: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | RandomState | None = 0,
        verbose: bool | int = 1,
    ) -> None:
        store_arguments(self, locals())

    def predict(self, X: object, **params: Any) -> Floats:
        """Return the mean of the members' predictions, in the shape of y.

        More arguments are passed on to the members.
        """
        means = self._mean_outputs(X, "predict", params)
        return self._outputs.predictions(means)


# ---- bags ----


@dataclass(frozen=True, eq=False, kw_only=True)
class Bags:
    """Draws of rows and features, by the number of the member.

    Attributes
    ----------
    rows : RowDraws
    n_features, n_drawn_features : int
        Number of features of the table, and of a bag.
    repeats_features : bool
        Whether features are drawn with replacement.
    """

    rows: RowDraws
    n_features: int
    n_drawn_features: int
    repeats_features: bool

    @property
    def takes_all_features(self) -> bool:
        """Whether every bag has every feature once."""
        return self.n_drawn_features == self.n_features and not self.repeats_features

    def features(self, number: int) -> NDArray[np.intp]:
        """The features of one member, ascending, with repetitions."""
        if self.takes_all_features:
            return np.arange(self.n_features)
        n_drawn = self.n_drawn_features
        if not self.repeats_features:
            return smallest_indices(self._bits(number, self.n_features), n_drawn)
        # The upper half of a product with 32 random bits is a random number below n_features.
        bits = self._bits(number, n_drawn) >> np.uint64(32)
        return np.sort(((bits * np.uint64(self.n_features)) >> np.uint64(32)).astype(np.intp))

    def _bits(self, number: int, count: int) -> NDArray[np.uint64]:
        # Odd hash rounds; draws of rows have the even ones.
        bits: NDArray[np.uint64] = core.counter_hash("bag", self.rows.seed, 2 * number + 1, count)
        return bits


def make_bags(
    params: Mapping[str, Any], n_rows: int, n_features: int, weight: Floats | None
) -> Bags:
    """The bags of a fit.

    Parameters
    ----------
    params : mapping
        Checked parameters of the ensemble.
    n_rows, n_features : int
    weight : float64 array of shape (n_rows,), or None
        Weights above 0.
    """
    repeats, max_samples = params["bootstrap"], params["max_samples"]
    chances = weight if repeats else None
    if max_samples is None:
        n_draws = n_rows
    else:
        n_draws = _draw_count(max_samples, n_rows if chances is None else float(chances.sum()))
    if isinstance(max_samples, float) and n_draws < max(_FEW_DRAWS, n_rows ** (1 / 3)):
        whole = f"{n_rows} rows" if chances is None else f"a total weight of {chances.sum():g}"
        warn_caller(
            f"max_samples={max_samples} of {whole} is {n_draws} drawn rows for each member, from "
            "which a member learns little. Pass the number of draws itself, for example "
            f"max_samples={n_rows}.",
        )
    if not repeats and n_draws > n_rows:
        raise ParameterError(
            f"max_samples={n_draws} is not allowed with bootstrap=False: each of the {n_rows} rows "
            "can be drawn once. Use a smaller number, a share, or bootstrap=True.",
            parameter="max_samples",
        )
    if params["oob_score"] and not repeats and n_draws == n_rows:
        raise ParameterError(
            "oob_score=True is not allowed with bootstrap=False and all rows in every bag: no row "
            "is out of bag. Use bootstrap=True, or for example max_samples=0.5.",
            parameter="oob_score",
        )
    n_drawn_features = _draw_count(params["max_features"], n_features)
    if n_drawn_features > n_features:
        raise ParameterError(
            f"max_features={n_drawn_features} is not allowed: X has {n_features} features. Use a "
            "smaller number, or a share such as 0.5.",
            parameter="max_features",
        )
    rows = RowDraws(
        n_rows=n_rows,
        n_draws=n_draws,
        seed=params["random_state"],
        repeats=repeats,
        weight=chances,
    )
    return Bags(
        rows=rows,
        n_features=n_features,
        n_drawn_features=n_drawn_features,
        repeats_features=params["bootstrap_features"],
    )


def _draw_count(count: int | float, total: float) -> int:
    """The number of draws, from a count or a share of the total; at least 1.

    Examples
    --------
    >>> _draw_count(0.29, 100), _draw_count(7, 100), _draw_count(0.001, 100)
    (29, 7, 1)
    """
    if isinstance(count, int):
        return count
    # Rounded first: 0.29 * 100 is 28.999999999999996, but users mean 29.
    return max(int(round(count * total, 6)), 1)


# ---- fits of the members ----


def check_columns(estimator: Any) -> None:
    """Raise ValueError for parameters that refer to columns, which a bag may not have."""
    for name, default in _COLUMN_PARAMS.items():
        value = getattr(estimator, name, default)
        if name == "date_format" and not isinstance(value, Mapping):
            continue  # of any column
        if not (value is default or (isinstance(value, str) and value == default)):
            raise ValueError(
                f"{name}={value!r} of the estimator refers to columns of X, but each member gets "
                "drawn features. Use max_features=1.0 and bootstrap_features=False, or "
                f"{name}={default!r}."
            )


def check_takes_weights(estimator: Any) -> None:
    """Raise ValueError for an estimator whose fit takes no row weights."""
    if member_fits.weight_name(estimator) is None:
        raise ValueError(
            f"{type(estimator).__name__} doesn't support sample_weight: its fit has no such "
            "argument, and with bootstrap=False weights are passed on. Use bootstrap=True, "
            "which draws rows in proportion to their weights, or leave out sample_weight."
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class BagTrainer:
    """Training rows, bags and arguments that every member is fitted from.

    Attributes
    ----------
    estimator : estimator
        Template of the members; it is cloned and never fitted.
    X : table
        The X of a `MemberTable`.
    y : array of shape (n_rows,) or (n_rows, n_targets)
        Labels or numbers.
    bags : Bags
    weight : float64 array of shape (n_rows,), or None
        Weights above 0 that are passed on to members.
    dataset : Dataset or None
        Binned table with these weights, where members can share one.
    n_jobs : int or None
        Threads of members of arboost, which are fitted one after another.
    fit_params : mapping
        More arguments of the members' ``fit``; values with one entry per row are indexed by the
        rows of the bag.
    """

    estimator: Any
    X: Any
    y: NDArray[Any]
    bags: Bags
    weight: Floats | None = None
    dataset: Dataset | None = None
    n_jobs: int | None = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)

    def fit(self, number: int) -> Any:
        """A member, fitted to its bag."""
        member = clone(self.estimator)
        member_fits.set_random_states(member, self.bags.rows.seed, number)
        drawn = self.bags.rows.drawn(number)
        if member_fits.is_engine(member):
            # The ensemble shows the progress bar, and its n_jobs is the default of the members.
            member.verbose = 0
            if member.n_jobs is None:
                member.n_jobs = self.n_jobs
        if self.dataset is not None:
            return member_fits.fit_on_rows(
                member, self.dataset, drawn.rows, drawn.counts, **self.fit_params
            )
        rows: NDArray[Any] = drawn.rows
        weight = None if self.weight is None else self.weight[rows]
        if drawn.counts is not None:
            if _takes_counts(member):
                weight = drawn.counts if weight is None else weight * drawn.counts
            else:
                rows = drawn.repeated()
        return self._fit_rows(member, rows, weight, self.bags.features(number))

    def _fit_rows(
        self,
        member: Any,
        rows: NDArray[Any],
        weight: Floats | None,
        features: NDArray[np.intp],
    ) -> Any:
        """Fit a member to rows and features of X."""
        X, y = self.X, self.y
        arguments = member_fits.arguments_for_rows(
            member, self.fit_params, rows, self.bags.rows.n_rows
        )
        if not self.bags.takes_all_features:
            X = member_fits.take_columns(X, features)
        if not self.bags.rows.takes_all:
            X, y = member_fits.take_rows(X, rows), y[rows]
        if weight is not None:
            arguments[str(member_fits.weight_name(member))] = weight
        try:
            member.fit(X, y, **arguments)
        except ValueError:
            # Trees learn a constant from rows of one class; many other classifiers refuse them.
            if not is_classifier(member) or (y != y[0]).any():
                raise
            return DummyClassifier(strategy="most_frequent").fit(X, y)
        return member


def _takes_counts(estimator: Any) -> bool:
    """Whether the counts of drawn rows can be passed to an estimator as row weights.

    Not to a pipeline: only its last step would get them.
    """
    if not get_config()["enable_metadata_routing"]:
        return bool(has_fit_parameter(estimator, "sample_weight"))
    return bool(
        metadata_routing.get_routing_for_object(estimator).consumes("fit", ("sample_weight",))
    )


# ---- outputs ----


@dataclass(frozen=True, eq=False)
class BaggingOutputs:
    """Columns of the averaged predictions.

    Attributes
    ----------
    classes : array of shape (n_classes,), or None
        Labels, sorted; None for regression.
    n_targets : int
    hard : bool
        Whether the classes of members are averaged even where they have probabilities.
    """

    classes: NDArray[Any] | None
    n_targets: int = 1
    hard: bool = False

    @property
    def n_columns(self) -> int:
        """Number of columns of the averaged predictions."""
        return self.n_targets if self.classes is None else len(self.classes)

    def from_member(self, member: Any, X: Any, arguments: Mapping[str, Any]) -> Floats:
        """The predictions of one member, shape (n_rows, n_columns)."""
        if self.classes is None:
            return member_fits.member_values(member, X, self.n_targets, **arguments)
        if hasattr(member, "predict_proba") and not self.hard:
            otherwise = "a learner without predict_proba, for a hard vote"
            return member_fits.member_probabilities(member, X, self.classes, otherwise, **arguments)
        return member_fits.member_one_hot(member, X, self.classes, **arguments)

    def shaped(self, means: Floats) -> Floats:
        """The averaged predictions in the shape that users get."""
        is_one_target = self.classes is None and self.n_targets == 1
        return means[:, 0] if is_one_target else means

    def predictions(self, means: Floats) -> NDArray[Any]:
        """The labels of the largest shares, or the values, of averaged predictions."""
        if self.classes is None:
            return self.shaped(means)
        labels: NDArray[Any] = self.classes.take(means.argmax(axis=1))
        return labels


def read_target(
    kind: str, y: object, n_rows: int, old: BaggingOutputs | None, *, hard: bool = False
) -> tuple[NDArray[Any], BaggingOutputs]:
    """The target in the form that members get, and the outputs of the ensemble.

    Parameters
    ----------
    kind : {"classifier", "regressor"}
    y : array of shape (n_rows,), or for regression (n_rows, n_targets)
    n_rows : int
    old : BaggingOutputs or None
        Outputs of the members that a warm start keeps.
    hard : bool
        Whether members vote by their classes.
    """
    if kind == "classifier":
        labels = targets.target(y, n_rows)
        if old is None or old.classes is None:
            classes, codes = targets.encode_labels(labels)
        else:
            classes = old.classes
            codes = targets.encode_known_labels(labels, classes, "y", "the earlier fit")
        warn_one_class(y, [targets.Task(kind, codes, classes)])
        return classes[codes.astype(np.intp)], BaggingOutputs(classes, hard=hard)
    array = np.asarray(None if is_sparse(y) else y)  # target() refuses a sparse y
    if array.ndim == member_fits.TABLE_DIMENSIONS and array.shape[1] > 1:
        values = np.column_stack(
            [targets.numeric_target(targets.target(column, n_rows)) for column in array.T]
        )
    else:
        values = targets.numeric_target(targets.target(y, n_rows))
    n_targets = 1 if values.ndim == 1 else values.shape[1]
    if old is not None and old.n_targets != n_targets:
        raise ValueError(
            f"y has {n_targets} target(s), but the members that are kept were trained on "
            f"{old.n_targets}. Pass as many, or use warm_start=False to start anew."
        )
    return values, BaggingOutputs(None, n_targets)


def class_decision(
    member: Any, X: Any, arguments: Mapping[str, Any], classes: NDArray[Any]
) -> Floats:
    """The decision function of a member, with all classes.

    A class that the member was not fitted on gets the smallest of the row's values.
    """
    known_classes = np.asarray(getattr(member, "classes_", classes))
    if len(known_classes) == 1 < len(classes):  # a single class has no decision function
        n_rows = X.shape[0]
        return np.zeros(n_rows if len(classes) == _TWO_CLASSES else (n_rows, len(classes)))
    values = np.asarray(member.decision_function(X, **arguments), np.float64)
    if len(known_classes) == len(classes):
        return values
    if len(known_classes) == _TWO_CLASSES:
        values = np.column_stack([-values, values])
    if values.shape != (len(values), len(known_classes)):
        raise ValueError(
            f"a member ({type(member).__name__}) was fitted on {len(known_classes)} of the "
            f"{len(classes)} classes, and its decision function of shape {values.shape} does not "
            "have one column per class. Use predict_proba, or more rows for each member."
        )
    decision = np.repeat(values.min(axis=1, keepdims=True), len(classes), axis=1)
    decision[:, np.searchsorted(classes, known_classes)] = values
    return decision
