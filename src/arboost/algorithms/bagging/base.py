"""Bagging: the fit of both ensembles, from bags to members to the mean of their predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from arboost.algorithms.bagging.bags import BagParams, make_bags
from arboost.algorithms.bagging.fits import BagTrainer, check_columns, check_takes_weights
from arboost.algorithms.bagging.outputs import BaggingOutputs, read_target
from arboost.algorithms.estimator import keep_names
from arboost.algorithms.forests.decision_tree import DecisionTreeClassifier, DecisionTreeRegressor
from arboost.algorithms.members.ensembles import EnsembleMethods, engine_model, ensemble_member
from arboost.algorithms.members.shared_fits import (
    arguments_for_rows,
    in_order,
    is_engine,
    one_blas_thread,
    shared_dataset,
)
from arboost.algorithms.members.tables import (
    MemberTable,
    member_table,
    take_columns,
    take_rows,
    training_table,
)
from arboost.backend import threads
from arboost.data.dataset import Dataset
from arboost.data.schema import Schema
from arboost.data.target import weights
from arboost.errors import warns_first
from arboost.grow.bootstrap import Origin, others
from arboost.losses.base import Floats
from arboost.model.ensemble import Ensemble
from arboost.names.arguments import check_params, new_estimator
from arboost.params.check import check
from arboost.params.kinds import Param
from arboost.progress import Bar
from arboost.training.out_of_bag import OutOfBagSums, warn_never_out_of_bag
from arboost.training.warm_start import n_to_add

__all__ = ["Bagging"]

Predict = Callable[[Any, Any], Floats]  # (member, table) -> predictions
Features = NDArray[np.intp]

_OUT_OF_BAG = {"classifier": "oob_decision_function_", "regressor": "oob_prediction_"}


class _BaggedMember(NamedTuple):
    """A fitted member, the features of its bag, and the origin of its rows."""

    estimator: Any
    features: Features
    origin: Origin


class Bagging(EnsembleMethods):
    """Members that are trained on bags of rows and features, and whose predictions are averaged."""

    _KIND: ClassVar[str]  # "regressor" or "classifier"
    _TABLE: ClassVar[Mapping[str, Param]]

    estimator: Any
    n_jobs: int | None
    classes_: NDArray[Any]
    n_classes_: int
    estimators_: list[Any]
    estimators_features_: list[Features]
    oob_score_: float
    _origins: list[Origin]
    _outputs: BaggingOutputs
    _schema: Schema

    if not TYPE_CHECKING:  # for type checkers, __init__ has the signature
        __new__ = new_estimator

    @warns_first
    def fit(
        self, X: object, y: object = None, sample_weight: object = None, **fit_params: Any
    ) -> Self:
        """Train members on bags of the rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Any type that the members take; a frame reaches them as a frame.
        y : array of shape (n_rows,), or for regression (n_rows, n_targets)
            Or the name of a column of X, which is then no feature.
        sample_weight : array of shape (n_rows,), optional
            With ``bootstrap=True``, rows are drawn in proportion to it; without, it is passed on to
            the members. Rows of weight 0 are left out.
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
        if n_old and n_to_add(params["n_estimators"], n_old, "members") == 0:
            return self
        _refuse_dataset(X)
        table, y = training_table(X, y, getattr(old, "_schema", None), sample_weight=sample_weight)
        old_outputs = None if old is None else old._outputs
        target, outputs = read_target(
            self._KIND, y, table.n_rows, old_outputs, hard=self._is_hard()
        )
        weight = weights(sample_weight, table.n_rows)
        template = self._template()
        arguments = self._routed("fit", fit_params)

        # Bags are drawn from the rows of nonzero weight.
        kept, source, source_y, source_weight = None, table, target, weight
        if weight is not None and not weight.all():
            kept = np.flatnonzero(weight).astype(np.uint32)
            source, source_y, source_weight = table.take(kept), target[kept], weight[kept]
            arguments = arguments_for_rows(template, arguments, kept, table.n_rows)
        n_features, bagging = table.schema.n_features, BagParams.of(params)
        bags = make_bags(bagging, source.n_rows, n_features, source_weight)
        member_weight = None if params["bootstrap"] else source_weight
        if member_weight is not None:
            check_takes_weights(template)
        dataset = None
        if bags.takes_all_features:
            dataset = shared_dataset(template, source.X, source_y, member_weight, params["n_jobs"])
        elif is_engine(template):
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
        with one_blas_thread():
            fitted = _fit_members(trainer, numbers, n_parallel, visible=params["verbose"] > 0)
            members = [
                _BaggedMember(member, bags.features(number), Origin(bags.rows, number, kept))
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
        """Return the out-of-bag attributes of a fit."""
        has_some, means = sums.has_some(), sums.means()
        n_never = int(np.count_nonzero(~has_some))
        warn_never_out_of_bag(n_never, len(has_some), "member")
        return {
            "oob_score_": outputs.score(target, means, has_some, weight),
            _OUT_OF_BAG[self._KIND]: outputs.shaped(means),
        }

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

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing of arguments to methods of the members, for scikit-learn."""
        template = self._template()
        mapping = MethodMapping().add(caller="fit", callee="fit")
        for caller, callee in _member_methods(self._KIND, template, hard=self._is_hard()).items():
            mapping.add(caller=caller, callee=callee)
        return MetadataRouter(owner=self).add(estimator=template, method_mapping=mapping)

    def __len__(self) -> int:
        return len(self.estimators_)

    def __getitem__(self, index: int) -> Any:
        return self.estimators_[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.estimators_)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        member_tags = get_tags(self._template())
        tags.input_tags = member_tags.input_tags
        if self._KIND == "regressor":
            tags.target_tags.multi_output = member_tags.target_tags.multi_output
        return tags

    def _template(self) -> Any:
        """Return the estimator that members are clones of."""
        if self.estimator is not None:
            return self.estimator
        return DecisionTreeClassifier() if self._KIND == "classifier" else DecisionTreeRegressor()

    def _is_hard(self) -> bool:
        return getattr(self, "voting", "soft") == "hard"

    def _checked_params(self) -> dict[str, Any]:
        params = check(self.get_params(deep=False), self._TABLE)
        if params["oob_score"] and params["warm_start"]:
            raise ValueError(
                "oob_score=True is not allowed with warm_start=True: members that are kept may "
                "have been trained on other rows than those of this fit. Use warm_start=False."
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
        estimators = [member.estimator for member in members]
        features = [member.features for member in members]
        origins = [member.origin for member in members]
        if old is not None:
            estimators = [*old.estimators_, *estimators]
            features = [*old.estimators_features_, *features]
            origins = [*old._origins, *origins]
        self.estimator_ = self._template()
        self.estimators_ = estimators
        self._metadata = {}
        self.estimators_features_ = features
        self._origins = origins
        self._outputs = outputs
        self._schema = schema
        keep_names(self, schema.n_features, schema.names)
        if outputs.classes is not None:
            self.classes_, self.n_classes_ = outputs.classes, len(outputs.classes)
        for name in ("oob_score_", _OUT_OF_BAG[self._KIND]):
            self.__dict__.pop(name, None)

    def _ensemble(self, asked: str) -> Ensemble:
        pairs = zip(self.estimators_, self.estimators_features_, strict=True)
        members = tuple(
            ensemble_member(
                f"member {i}",
                engine_model(f"member {i}", member, asked),
                self._outputs.classes,
                features,
                by_label=True,
                output="vote_shares" if self._outputs.hard else "probabilities",
            )
            for i, (member, features) in enumerate(pairs)
        )
        return Ensemble(
            kind=self._KIND,
            schema=self._schema,
            classes=self._outputs.classes,
            members=members,
            n_columns=self._outputs.n_columns,
            divisor=float(len(members)),
        )

    def _mean_outputs(self, X: object, caller: str, params: dict[str, Any]) -> Floats:
        """Return the mean of the members' outputs, shape (n_rows, n_columns)."""
        check_is_fitted(self)
        arguments = self._routed(caller, params)
        return self._mean(X, partial(self._outputs.of_member, arguments=arguments))

    def _mean(self, X: object, predict: Predict) -> Floats:
        """Return the mean of the members' predictions, added in the order of the members."""
        table = member_table(X, self._schema, caller=type(self).__name__)
        n_jobs = check({"n_jobs": self.n_jobs}, self._TABLE)["n_jobs"]
        n_parallel = _n_parallel(self.estimator_, len(self.estimators_), n_jobs)
        pairs = zip(self.estimators_, self.estimators_features_, strict=True)
        tasks = ((predict, member, table.X, features) for member, features in pairs)
        predictions = in_order(_predict_features, tasks, n_parallel)
        total = np.array(next(predictions))
        for one in predictions:
            total += one
        return total / len(self.estimators_)

    def _routed(self, caller: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a method that are passed on to members."""
        if not params or not get_config()["enable_metadata_routing"]:
            return params
        methods = _member_methods(self._KIND, self._template(), hard=self._is_hard())
        callee = methods.get(caller, caller)
        return dict(process_routing(self, caller, **params)["estimator"][callee])


def _refuse_dataset(X: object) -> None:
    if isinstance(X, Dataset):
        raise TypeError(
            "X is a Dataset, which holds bins instead of values, but out-of-bag rows are predicted "
            "by their values. Pass the table it was made from: members of arboost share its bins "
            "in any case."
        )


def _member_methods(kind: str, template: Any, *, hard: bool) -> Mapping[str, str]:
    """Return the method of the members that each prediction method of the ensemble calls."""
    if kind == "regressor":
        return {"predict": "predict"}
    callee = "predict" if hard or not hasattr(template, "predict_proba") else "predict_proba"
    callers = ("predict", "predict_proba", "predict_log_proba")
    return dict.fromkeys(callers, callee) | {"decision_function": "decision_function"}


def _n_parallel(template: Any, n_members: int, n_jobs: int | None) -> int:
    """Return the number of members in parallel; members of arboost run threads of their own."""
    return 1 if is_engine(template) else min(threads(n_jobs), n_members)


def _fit_members(
    trainer: BagTrainer, numbers: range, n_parallel: int, *, visible: bool
) -> list[Any]:
    """Return the fitted members of these numbers, with a progress bar."""
    members = []
    with Bar(len(numbers), "fitting", visible=visible) as bar:
        for member in in_order(trainer.fit, ((number,) for number in numbers), n_parallel):
            members.append(member)
            bar.show(len(members))
    return members


def _predict_features(predict: Predict, member: Any, X: Any, features: Features) -> Floats:
    """Return the predictions of a member from its features of X."""
    is_all = len(features) == X.shape[1] and bool((np.diff(features) == 1).all())
    return predict(member, X if is_all else take_columns(X, features))


def _out_of_bag_sums(
    members: Sequence[_BaggedMember],
    outputs: BaggingOutputs,
    table: MemberTable,
    n_parallel: int,
) -> OutOfBagSums:
    """Return the sums of the members' predictions for their out-of-bag rows."""
    predict = partial(outputs.of_member, arguments={})
    tasks = ((predict, member, table.X) for member in members)
    sums = OutOfBagSums(table.n_rows, outputs.n_columns)
    for number, (rows, values) in enumerate(in_order(_predict_out_of_bag, tasks, n_parallel)):
        sums.add(number, rows, values)
    return sums


def _predict_out_of_bag(
    predict: Predict, member: _BaggedMember, X: Any
) -> tuple[NDArray[np.uint32], Floats | float]:
    """Return the out-of-bag rows of a member, and its predictions for them."""
    rows = others(member.origin.rows(), X.shape[0])
    if not len(rows):
        return rows, 0.0
    taken = take_rows(X, rows)
    return rows, _predict_features(predict, member.estimator, taken, member.features)
