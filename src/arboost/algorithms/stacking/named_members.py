"""What ensembles of named members share: parameters, tables, and who gets what in fit.

    estimators=[("trees", A), ("line", B)]    set_params(trees__max_depth=3, line="drop")

A member is known by its name, its parameters by its name and theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin, is_classifier, is_regressor
from sklearn.utils import Bunch, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from arboost.algorithms.members.answers import member_name
from arboost.algorithms.members.jobs import check_weights
from arboost.algorithms.members.tables import member_table
from arboost.data.dataset import Dataset
from arboost.data.messages import listing
from arboost.data.schema import Schema
from arboost.data.target import weights
from arboost.params.check import check
from arboost.params.kinds import Param

__all__ = ["NamedMembers", "is_drop", "is_routing"]


class NamedMembers(TransformerMixin, BaseEstimator):
    """An ensemble whose members have names, and whose answers are new columns."""

    _TABLE: ClassVar[Mapping[str, Param]]
    _MEMBERS_OF_ANY_KIND: ClassVar[bool] = False

    estimators: list[tuple[str, Any]]
    estimators_: list[Any]
    named_estimators_: Bunch
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    _schema: Schema | None

    @property
    def named_estimators(self) -> Bunch:
        """The members as they were given, by name."""
        return Bunch(**dict(self.estimators))

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002  (scikit-learn's)
        """Return the parameters, with `deep` also the members by name and their parameters."""
        params: dict[str, Any] = super().get_params(deep=deep)
        if not deep:
            return params
        for name, member in self._pairs():
            params[name] = member
            if hasattr(member, "get_params"):
                inner = member.get_params(deep=True)
                params |= {f"{name}__{key}": value for key, value in inner.items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, whole members by their names, or parameters of members.

        ``set_params(line="drop")`` leaves a member out, ``set_params(trees__max_depth=3)`` changes
        one.
        """
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        pairs = self._pairs()
        replaced = {name: params.pop(name) for name, _ in pairs if name in params}
        if replaced:  # a new list: the old one may belong to other ensembles as well
            self.estimators = [(name, replaced.get(name, member)) for name, member in pairs]
        super().set_params(**params)
        return self

    def _pairs(self) -> list[tuple[str, Any]]:
        """Return names and members where there are such; fit says what is wrong with others."""
        try:
            checked: list[tuple[str, Any]] = self._TABLE["estimators"].check(self.estimators)
        except ValueError:
            return []
        return checked

    def _params(self) -> dict[str, Any]:
        given = {name: value for name, value in vars(self).items() if name in self._TABLE}
        params = check(given, self._TABLE)
        self._check_names([name for name, _ in params["estimators"]])
        members = self._active(params)
        if not members:
            raise ValueError(
                'estimators has nothing but "drop", and one member must be there. Put an estimator '
                "in its place."
            )
        for name, member in members:
            self._check_member(name, member)
        return params

    @staticmethod
    def _active(params: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """Return names and members without those that are dropped."""
        return [(name, member) for name, member in params["estimators"] if not is_drop(member)]

    def _check_names(self, names: list[str]) -> None:
        """Raise ValueError for names that cannot be told apart."""
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(
                f"estimators has several members of the name {listing(map(repr, twice))}. Give "
                "each a name of its own."
            )
        taken = sorted(set(names) & set(super().get_params(deep=False)))
        if taken:
            raise ValueError(
                f"estimators has members of the name {listing(map(repr, taken))}, which is a "
                f"parameter of {type(self).__name__}. Use other names."
            )
        nested = [name for name in names if "__" in name]
        if nested:
            raise ValueError(
                f"estimators has members of the name {listing(map(repr, nested))}, but __ stands "
                "between the name of a member and that of its parameter. Use one _."
            )

    def _check_member(self, name: str, member: Any) -> None:
        if isinstance(member, type) or not callable(getattr(member, "fit", None)):
            raise ValueError(
                f"the member {name!r} is {member!r} ({type(member).__name__}), which has no fit. "
                'Pass an estimator, not its class, or "drop".'
            )
        fits, kind = (is_classifier, "classifier")
        if not is_classifier(self):
            fits, kind = (is_regressor, "regressor")
        if not self._MEMBERS_OF_ANY_KIND and not fits(member):
            raise ValueError(
                f"the member {name!r} ({member_name(member)}) is no {kind}. Use a {kind}, or leave "
                "it out."
            )

    def _table(self, X: object) -> tuple[Any, Schema | None]:
        """Return X as members get it, and its columns; no columns where it is one of texts."""
        if isinstance(X, Dataset):
            raise TypeError(
                "X is a Dataset, which holds bins instead of values, but members need the values. "
                "Pass the table it was made from: members of arboost share its bins anyway."
            )
        if _is_one_dimensional(X):
            return X, None
        table = member_table(X)
        return table.X, table.schema

    def _same_table(self, X: object) -> Any:
        """Return X with the columns of fit, in their order."""
        if self._schema is None or isinstance(X, Dataset):
            return self._table(X)[0]
        return member_table(X, self._schema, caller=type(self).__name__).X

    def _arguments(
        self,
        members: list[tuple[str, Any]],
        sample_weight: object,
        fit_params: Mapping[str, Any],
        n_rows: int,
    ) -> dict[str, dict[str, Any]]:
        """Return what the fit of each member gets beside X and y."""
        given = dict(fit_params)
        weight = weights(sample_weight, n_rows)
        if weight is not None:
            given["sample_weight"] = weight
        if is_routing():
            routed = process_routing(self, "fit", **given)
            return {name: dict(routed[name].fit) for name, _ in members}
        if weight is None:
            return {name: {} for name, _ in members}
        return {name: {check_weights(name, member): weight} for name, member in members}

    def _check_routed(self, fit_params: Mapping[str, Any]) -> None:
        if fit_params and not is_routing():
            raise ValueError(
                f"fit got {listing(fit_params)}, which only scikit-learn's metadata routing hands "
                "on to members. Leave them out, or call "
                "sklearn.set_config(enable_metadata_routing=True) and say which member asks for "
                "them."
            )

    def _keep_members(
        self, params: Mapping[str, Any], fitted: list[Any], schema: Schema | None
    ) -> None:
        """Set the attributes that all such ensembles have."""
        self.estimators_ = fitted
        found = iter(fitted)
        self.named_estimators_ = Bunch(
            **{
                name: "drop" if is_drop(member) else next(found)
                for name, member in params["estimators"]
            }
        )
        self._schema = schema
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        if schema is None:
            return
        self.n_features_in_ = schema.n_features
        if schema.names is not None:
            self.feature_names_in_ = np.array(schema.names, dtype=object)

    def _input_names(self, input_features: object) -> NDArray[Any]:
        """Return the names of the columns of X, x0, x1, ... where they have none."""
        known = getattr(self, "feature_names_in_", None)
        n_features = getattr(self, "n_features_in_", 0)
        if input_features is None:
            usual = np.array([f"x{i}" for i in range(n_features)], dtype=object)
            return usual if known is None else known
        given = np.asarray(input_features, dtype=object)
        if known is not None and not np.array_equal(given, known):
            raise ValueError(
                f"input_features={listing(map(repr, given))} are not the columns of fit, which are "
                f"{listing(map(repr, known))}. Leave out input_features."
            )
        if len(given) != n_features:
            raise ValueError(
                f"input_features should have length equal to that of a row, {n_features}, and has "
                f"{len(given)}. Pass one name for each column of X."
            )
        return given

    def _fitted_names(self) -> list[str]:
        """Return the names of the fitted members: parameters may have changed since."""
        return [name for name, one in self.named_estimators_.items() if not is_drop(one)]

    def _names_out(self, members: Sequence[str], counts: Sequence[int | None]) -> NDArray[Any]:
        """Return names of columns: of so many for each member, and for None of the only one."""
        start = type(self).__name__.lower()
        return np.array(
            [
                f"{start}_{name}" if count is None else f"{start}_{name}{i}"
                for name, count in zip(members, counts, strict=True)
                for i in range(1 if count is None else count)
            ],
            dtype=object,
        )

    def get_metadata_routing(self) -> MetadataRouter:
        """Return who gets which arguments, for scikit-learn's metadata routing."""
        router = MetadataRouter(owner=self).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        for name, member in self._active({"estimators": self._pairs()}):
            router.add(**{name: member}, method_mapping=mapping)
        return router

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        members = self._active({"estimators": self._pairs()})
        inputs = [get_tags(one).input_tags for _, one in members if hasattr(one, "fit")]
        if inputs:
            tags.input_tags.allow_nan = all(one.allow_nan for one in inputs)
            tags.input_tags.sparse = all(one.sparse for one in inputs)
        return tags


def is_drop(member: object) -> bool:
    """Whether a member is left out."""
    return isinstance(member, str) and member == "drop"


def is_routing() -> bool:
    """Whether scikit-learn's metadata routing says who gets which arguments."""
    return bool(get_config().get("enable_metadata_routing", False))


def _is_one_dimensional(X: Any) -> bool:
    """Whether X is a list or column of texts or other things, which pipelines may make a table."""
    if hasattr(X, "shape"):
        return len(X.shape) == 1
    return isinstance(X, list | tuple) and bool(X) and all(isinstance(one, str) for one in X)
