"""What both kinds of bagging share: bags -> members -> the mean of their answers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from arboost.algorithms.bagging.bags import make_draws
from arboost.algorithms.bagging.fits import MemberFits
from arboost.algorithms.members.shared_fits import (
    in_order,
    is_engine,
    of_rows,
    one_blas_thread,
    shared_dataset,
)
from arboost.algorithms.members.tables import MemberTable, member_table, take_columns, take_rows
from arboost.backend import threads
from arboost.data.dataset import Dataset
from arboost.data.schema import Schema
from arboost.data.target import weights
from arboost.errors import DataWarning
from arboost.grow.bootstrap import Origin, Unseen, others
from arboost.losses.base import Floats
from arboost.params.bagging import BAGGING
from arboost.params.check import check
from arboost.training.progress import Bar
from arboost.training.warm_start import n_to_add

__all__ = ["Bagging"]

Ask = Callable[[Any, Any], Floats]


class Bagging(BaseEstimator):
    """Members that are trained on bags of rows and features, and answer together."""

    _OUT_OF_BAG: ClassVar[str]  # the attribute that holds answers out of bag

    estimator: Any
    n_jobs: int | None
    estimators_: list[Any]
    estimators_features_: list[NDArray[np.intp]]
    _origins: list[Origin]
    _schema: Schema

    def fit(
        self, X: object, y: object = None, sample_weight: object = None, **fit_params: Any
    ) -> Self:
        """Train members on bags of the rows.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Whatever the members take; data frames get to them as data frames.
        y : array of shape (n_rows,), or for regression (n_rows, n_targets)
        sample_weight : array of shape (n_rows,), optional
            With ``bootstrap=True``, rows are drawn in proportion to it; without, it is passed on to
            the members. Rows of weight 0 count as absent.
        **fit_params
            More arguments of the members' ``fit``. Of arrays and lists that have an entry for each
            row, a member gets those of its rows.

        Returns
        -------
        self
        """
        params = self._checked_params()
        old = self if params["warm_start"] and hasattr(self, "estimators_") else None
        n_old = 0 if old is None else len(self.estimators_)
        if n_old and n_to_add(params["n_estimators"], n_old, "members", stacklevel=3) == 0:
            return self
        if isinstance(X, Dataset):
            raise TypeError(
                "X is a Dataset, which holds bins instead of values, but out-of-bag rows are "
                "predicted by their values. Pass the table it was made from: members of arboost "
                "share its bins in any case."
            )
        table = member_table(X, None if old is None else self._schema)
        target, facts = self._target(y, table.n_rows, old)
        weight = weights(sample_weight, table.n_rows)
        fits, kept = self._fits(params, table, target, weight, fit_params)
        numbers = range(n_old, params["n_estimators"])
        origins = [Origin(fits.draws.rows, number, kept) for number in numbers]
        with one_blas_thread():
            members = self._train(fits, numbers, params)
            self._keep(members, origins, fits, table.schema, facts, old)
            if params["oob_score"]:
                self._score_out_of_bag(table, target, weight)
        return self

    @property
    def estimators_samples_(self) -> list[NDArray[np.intp]]:
        """Rows of each member, ascending, as often as they were drawn; made anew at every call."""
        check_is_fitted(self)
        return [origin.rows() for origin in self._origins]

    def get_metadata_routing(self) -> MetadataRouter:
        """Return which methods of the members get the metadata of which methods of this one."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        for caller, callee in self._callees().items():
            mapping.add(caller=caller, callee=callee)
        return MetadataRouter(owner=self).add(estimator=self._template(), method_mapping=mapping)

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
        of_members = get_tags(self._template())
        tags.input_tags = of_members.input_tags
        return tags

    def _template(self) -> Any:
        """Return what members are clones of."""
        return self._default() if self.estimator is None else self.estimator

    def _checked_params(self) -> dict[str, Any]:
        params = check(self.get_params(deep=False), BAGGING)
        if params["oob_score"] and params["warm_start"]:
            raise ValueError(
                "oob_score=True is not allowed with warm_start=True: members that are kept may "
                "have seen other rows than those of this fit. Use warm_start=False."
            )
        return params

    def _fits(
        self,
        params: dict[str, Any],
        table: MemberTable,
        target: NDArray[Any],
        weight: Floats | None,
        fit_params: dict[str, Any],
    ) -> tuple[MemberFits, NDArray[np.uint32] | None]:
        """Return how members are trained, and which rows they can be trained on."""
        given = self._routed("fit", fit_params)
        kept = None
        if weight is not None and not weight.all():
            kept = np.flatnonzero(weight).astype(np.uint32)
            given = of_rows(self._template(), given, kept, table.n_rows)
            table, target, weight = table.take(kept), target[kept], weight[kept]
        draws = make_draws(params, table.n_rows, table.schema.n_features, weight)
        passed = None if params["bootstrap"] else weight
        template = self._template()
        dataset = None
        if draws.takes_all_features:
            dataset = shared_dataset(template, table.X, target, passed, params["n_jobs"])
        fits = MemberFits(
            estimator=template,
            X=table.X,
            y=target,
            draws=draws,
            weight=passed,
            dataset=dataset,
            n_jobs=params["n_jobs"],
            fit_params=given,
        )
        fits.check()
        return fits, kept

    def _train(self, fits: MemberFits, numbers: range, params: dict[str, Any]) -> list[Any]:
        members = []
        n_threads = self._side_by_side(fits.estimator, len(numbers))
        with Bar(len(numbers), "fitting", visible=params["verbose"] > 0) as bar:
            for member in in_order(fits.fit, ((number,) for number in numbers), n_threads):
                members.append(member)
                bar.show(len(members))
        return members

    def _keep(
        self,
        members: list[Any],
        origins: list[Origin],
        fits: MemberFits,
        schema: Schema,
        facts: dict[str, Any],
        old: Self | None,
    ) -> None:
        """Set the fitted attributes; nothing before this has changed the estimator."""
        features = [fits.draws.features(origin.number) for origin in origins]
        if old is not None:
            members = [*old.estimators_, *members]
            features = [*old.estimators_features_, *features]
            origins = [*old._origins, *origins]
        self.estimator_ = fits.estimator
        self.estimators_ = members
        self.estimators_features_ = features
        self._origins = origins
        self._schema = schema
        self.n_features_in_ = schema.n_features
        self.__dict__.update(facts)
        if schema.names is not None:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        else:
            self.__dict__.pop("feature_names_in_", None)
        for name in ("oob_score_", self._OUT_OF_BAG):
            self.__dict__.pop(name, None)

    def _mean(self, X: object, ask: Ask) -> Floats:
        """Return the mean of what members say, added in their order."""
        table = member_table(X, self._schema, caller=type(self).__name__)
        n_threads = self._side_by_side(self.estimator_, len(self.estimators_))
        pairs = zip(self.estimators_, self.estimators_features_, strict=True)
        tasks = ((ask, member, table.X, features) for member, features in pairs)
        answers = in_order(_ask, tasks, n_threads)
        total = np.array(next(answers))
        for answer in answers:
            total += answer
        return total / len(self.estimators_)

    def _score_out_of_bag(
        self, table: MemberTable, target: NDArray[Any], weight: Floats | None
    ) -> None:
        """Let each row be answered by the members that have not drawn it, and set the score."""
        n_rows = table.n_rows
        unseen = Unseen(n_rows, self._n_outputs)
        ask = self._asks({})
        n_threads = self._side_by_side(self.estimator_, len(self.estimators_))
        bags = zip(self.estimators_, self.estimators_features_, self._origins, strict=True)
        tasks = ((ask, member, table.X, features, origin) for member, features, origin in bags)
        for number, answered in enumerate(in_order(_ask_out_of_bag, tasks, n_threads)):
            unseen.add(number, *answered)
        means = unseen.means()
        counted = unseen.heard()
        if not counted.all():
            warnings.warn(
                f"{np.count_nonzero(~counted)} of {n_rows} rows were drawn by every member: their "
                "answers out of bag are NaN, and they do not count in the score. Use more "
                "estimators.",
                DataWarning,
                stacklevel=3,
            )
        if weight is not None:
            counted &= weight > 0.0
        score = float("nan")
        if counted.any():
            of_counted = None if weight is None else weight[counted]
            score = self._score(target[counted], means[counted], of_counted)
        self.oob_score_ = score
        setattr(self, self._OUT_OF_BAG, self._shaped(means))

    def _side_by_side(self, estimator: Any, n_members: int) -> int:
        """Return how many members work at the same time; those of arboost have own threads."""
        n_jobs = check({"n_jobs": self.n_jobs}, BAGGING)["n_jobs"]
        return 1 if is_engine(estimator) else min(threads(n_jobs), n_members)

    def _routed(self, caller: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return what members get of the metadata of a method."""
        if not params or not get_config()["enable_metadata_routing"]:
            return params
        callee = self._callees().get(caller, caller)
        return dict(process_routing(self, caller, **params)["estimator"][callee])

    @property
    def _n_outputs(self) -> int:
        """Numbers in the answer to a row."""
        raise NotImplementedError

    def _default(self) -> Any:
        """Return what is trained where no estimator was given."""
        raise NotImplementedError

    def _callees(self) -> dict[str, str]:
        """Return which method of members each method of this one asks."""
        raise NotImplementedError

    def _target(
        self, y: object, n_rows: int, old: Self | None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Return y as members get it, and attributes that are known from it."""
        raise NotImplementedError

    def _asks(self, params: dict[str, Any]) -> Ask:
        """Return what gets the answers of a member, of shape (n_rows, n_outputs)."""
        raise NotImplementedError

    def _score(self, target: NDArray[Any], means: Floats, weight: Floats | None) -> float:
        """Return how good answers out of bag are."""
        raise NotImplementedError

    def _shaped(self, means: Floats) -> Floats:
        """Return answers as users see them."""
        return means


def _ask(ask: Ask, member: Any, X: Any, features: NDArray[np.intp]) -> Floats:
    is_all = len(features) == X.shape[1] and bool((np.diff(features) == 1).all())
    return ask(member, X if is_all else take_columns(X, features))


def _ask_out_of_bag(
    ask: Ask, member: Any, X: Any, features: NDArray[np.intp], origin: Origin
) -> tuple[NDArray[np.uint32], Floats | float]:
    rows = others(origin.rows(), X.shape[0])
    return rows, _ask(ask, member, take_rows(X, rows), features) if len(rows) else 0.0
