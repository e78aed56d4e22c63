"""Ensembles of estimators: files and SHAP values, named members and their parameters.

    estimators=[("trees", A), ("line", B)]    set_params(trees__max_depth=3, line="drop")

A member is addressed by its name, and its parameters by ``name__parameter``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin, is_classifier, is_regressor
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Bunch, get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from arboost.data.schema import Schema
from arboost.errors import InputTypeError, ParameterError, listing
from arboost.estimators import member_fits
from arboost.estimators.estimator import set_feature_names
from arboost.losses.base import Floats
from arboost.models import predictor
from arboost.models.ensemble import EnsembleMember, EnsemblePredictor, LinearModel
from arboost.models.methods import evaluate, report
from arboost.models.model import Model
from arboost.params.kinds import Param
from arboost.params.records import check
from arboost.params.suggestions import check_params, new_estimator

_TWO_CLASSES = 2


NamedMember = tuple[str, Any]  # a name, and an estimator or "drop"


class EnsembleMethods(BaseEstimator):
    """Files and SHAP values of an ensemble whose members are estimators of arboost."""

    _TABLE: ClassVar[Mapping[str, Param]]
    _KIND: ClassVar[str]  # "regressor" or "classifier"
    _metadata: dict[str, Any]  # set by each fit

    if not TYPE_CHECKING:  # for type checkers, __init__ has the signature
        __new__ = new_estimator

    evaluate = evaluate
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
    def load(cls, path: predictor.ModelSource) -> EnsemblePredictor:
        """Return the fitted ensemble of a file that ``save`` wrote, as `arboost.load` does.

        It predicts and explains like the estimator that was saved. The file keeps the models of
        the members, but not the estimators, so the ensemble cannot be fitted again.

        Parameters
        ----------
        path : str, path-like, bytes or file object
            Path of a file; or its content, as bytes or as an open file to read from.
        """
        loaded = predictor.load(path)
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    def _predictor(self, caller: str) -> EnsemblePredictor:
        check_is_fitted(self)
        return replace(self._ensemble(caller), metadata=self.metadata)

    def _ensemble(self, caller: str) -> EnsemblePredictor:
        """The fitted ensemble; raises TypeError for other members."""
        raise NotImplementedError


def engine_model(name: str, estimator: Any, caller: str) -> Model:
    """The model of a member; raises TypeError for one that has no trees of the engine."""
    inner = estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator
    model = getattr(inner, "model_", None)
    if isinstance(model, Model):
        whole: Model = inner._engine_model(caller) if hasattr(inner, "_engine_model") else model
        if whole.schema.offset is not None:
            raise InputTypeError(
                f"{caller} is not available for an ensemble with the member {name!r}, which was "
                "fitted with an offset, and an ensemble passes none on. Fit the member without "
                "offset; or use pickle or joblib for files."
            )
        return whole
    raise InputTypeError(
        f"{caller} is not available for an ensemble with the member {name!r} "
        f"({type(inner).__name__}), which has no trees of arboost. Use estimators of arboost "
        "only, such as GradientBoostingClassifier or RandomForestRegressor; or pickle or joblib "
        "for files."
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
    """A member whose outputs are added to the columns of the classes, or of the targets.

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
        columns = ensemble_columns = np.arange(model.n_outputs)
        output = "values"
    else:
        columns = np.arange(len(model.classes))
        ensemble_columns = _class_columns(name, model, classes, by_label=by_label)
    return EnsembleMember(
        name=name,
        model=model,
        features=np.asarray(features, np.int64),
        output=output,
        taken=columns.astype(np.int64),
        places=ensemble_columns.astype(np.int64),
        weight=float(weight),
    )


def _class_columns(
    name: str, model: Model, classes: NDArray[Any] | None, *, by_label: bool
) -> NDArray[Any]:
    """The columns of a member's classes: class indices, or labels of the ensemble."""
    if classes is None or isinstance(model.classes, tuple):
        raise InputTypeError(
            f"the member {name!r} has several targets, or classes in an ensemble of regressors: "
            "only ensembles of one target have files and SHAP values. Use pickle or joblib."
        )
    return member_fits.class_indices(
        model, model.classes, classes if by_label else np.arange(len(classes))
    )


def final_model(estimator: Any, caller: str) -> Model | LinearModel:
    """The final model of a stack: trees of the engine, or a linear function."""
    from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeCV

    if isinstance(estimator, LogisticRegression) and estimator.solver != "liblinear":
        link = "logistic" if len(estimator.classes_) == _TWO_CLASSES else "softmax"
    elif isinstance(estimator, LinearRegression | Ridge | RidgeCV):
        link = "identity"
    else:
        return engine_model("final_estimator", estimator, caller)
    coef = np.atleast_2d(np.asarray(estimator.coef_, np.float64))
    intercept = np.broadcast_to(np.asarray(estimator.intercept_, np.float64), len(coef)).copy()
    return LinearModel(coef, intercept, link)


# ---- named members ----


class NamedMembers(TransformerMixin, EnsembleMethods):
    """Ensemble of named members; `transform` returns their predictions as columns."""

    _MEMBERS_OF_ANY_KIND: ClassVar[bool] = False

    estimators: list[NamedMember]
    estimators_: list[Any]
    named_estimators_: Bunch
    n_features_in_: int
    feature_names_in_: NDArray[Any]
    _schema: Schema | None

    @property
    def named_estimators(self) -> Bunch:
        """The unfitted members by name."""
        return Bunch(**dict(self.estimators))

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002  (scikit-learn's)
        """Return the parameters; with `deep`, also the members by name and their parameters."""
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
        """Set parameters, whole members by name, or parameters of members.

        ``set_params(line="drop")`` leaves a member out, ``set_params(trees__max_depth=3)`` changes
        a parameter of a member.
        """
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        pairs = self._pairs()
        replaced = {name: params.pop(name) for name, _ in pairs if name in params}
        if replaced:  # a new list: other ensembles may hold the old one
            self.estimators = [(name, replaced.get(name, member)) for name, member in pairs]
        check_params(self, (name for name in params if name.partition("__")[0] not in dict(pairs)))
        super().set_params(**params)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing of fit arguments to members, for scikit-learn's metadata routing."""
        router = MetadataRouter(owner=self).add_self_request(self)
        mapping = MethodMapping().add(caller="fit", callee="fit")
        for name, member in active_members(self._pairs()):
            router.add(**{name: member}, method_mapping=mapping)
        return router

    def _pairs(self) -> list[NamedMember]:
        """The named members; none where `estimators` is malformed, which fit reports."""
        try:
            checked: list[NamedMember] = self._TABLE["estimators"].check(self.estimators)
        except ValueError:
            return []
        return checked

    def _checked_params(self) -> dict[str, Any]:
        stored = {name: value for name, value in vars(self).items() if name in self._TABLE}
        params = check(stored, self._TABLE)
        members = active_members(params["estimators"])
        self._check_names([name for name, _ in params["estimators"]])
        if not members:
            raise ParameterError(
                'estimators has only "drop" entries, but at least one member is needed. Replace '
                'one "drop" by an estimator.',
                parameter="estimators",
            )
        for name, member in members:
            _check_member(name, member, None if self._MEMBERS_OF_ANY_KIND else self._KIND)
        return params

    def _check_names(self, names: list[str]) -> None:
        """Raise ValueError for names that `set_params` could not address."""
        repeated = {name for name in names if names.count(name) > 1}
        params = set(names) & set(super().get_params(deep=False))
        nested = {name for name in names if "__" in name}
        separated = ", but __ stands between the name of a member and that of its parameter."
        for refused, start, end in (
            (repeated, "several members", ". Give each member a unique name."),
            (
                params,
                "members",
                f", which is a parameter of {type(self).__name__}. Use other names.",
            ),
            (nested, "members", f"{separated} Use one _."),
        ):
            if refused:
                shown = listing(map(repr, sorted(refused)))
                message = f"estimators has {start} of the name {shown}{end}"
                raise ParameterError(message, parameter="estimators")

    def _table_like_fit(self, X: object) -> Any:
        """X with the columns of fit, in their order."""
        if self._schema is None:
            return read_member_table(X, None)[0]
        return member_fits.member_table(X, self._schema, caller=type(self).__name__).X

    def _ensemble_members(
        self, caller: str, *, by_label: bool = False, output: str = "probabilities"
    ) -> list[EnsembleMember]:
        """The fitted members as `ensemble_member` does; raises TypeError for others."""
        assert self._schema is not None  # members of arboost read tables
        classes = getattr(self, "classes_", None)
        features = range(self._schema.n_features)
        members = []
        for name, member in zip(self._fitted_names(), self.estimators_, strict=True):
            model = engine_model(name, member, caller)
            has_labels = by_label or isinstance(member, FrozenEstimator)
            members.append(
                ensemble_member(name, model, classes, features, by_label=has_labels, output=output)
            )
        return members

    def _fit_arguments(
        self, members: Sequence[NamedMember], weight: Floats | None, fit_params: Mapping[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """The arguments of each member's fit, without X and y."""
        if is_routing():
            arguments = dict(fit_params) | ({} if weight is None else {"sample_weight": weight})
            routed = process_routing(self, "fit", **arguments)
            return {name: dict(routed[name].fit) for name, _ in members}
        if weight is None:
            return {name: {} for name, _ in members}
        return {name: {member_fits.check_weights(name, member): weight} for name, member in members}

    def _keep_members(
        self, pairs: Sequence[NamedMember], fitted: list[Any], schema: Schema | None
    ) -> None:
        """Set the fitted attributes of every ensemble of named members."""
        self.estimators_ = fitted
        self._metadata = {}
        remaining = iter(fitted)
        self.named_estimators_ = Bunch(
            **{name: "drop" if is_drop(member) else next(remaining) for name, member in pairs}
        )
        self._schema = schema
        if schema is not None:
            set_feature_names(self, schema.n_features, schema.names)
            return
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)

    def _input_names(self, input_features: object) -> NDArray[Any]:
        """The names of the columns of X; x0, x1, ... for columns without names."""
        fit_names = getattr(self, "feature_names_in_", None)
        n_features = getattr(self, "n_features_in_", 0)
        if input_features is None:
            default_names = np.array([f"x{i}" for i in range(n_features)], dtype=object)
            return default_names if fit_names is None else fit_names
        names = np.asarray(input_features, dtype=object)
        if fit_names is not None and not np.array_equal(names, fit_names):
            raise ValueError(
                f"input_features={listing(map(repr, names))} are not the columns of fit, which are "
                f"{listing(map(repr, fit_names))}. Leave out input_features."
            )
        if len(names) != n_features:
            raise ValueError(
                f"input_features should have length equal to the number of columns of X, "
                f"{n_features}, and has {len(names)}. Pass one name for each column of X."
            )
        return names

    def _fitted_names(self) -> list[str]:
        """The names of the fitted members; `estimators` may have changed since."""
        return [name for name, member in self.named_estimators_.items() if not is_drop(member)]

    def _names_out(self, members: Sequence[str], counts: Sequence[int | None]) -> NDArray[Any]:
        """The names of the members' columns; a count of None is one unnumbered column."""
        start = type(self).__name__.lower()
        return np.array(
            [
                f"{start}_{name}" if count is None else f"{start}_{name}{i}"
                for name, count in zip(members, counts, strict=True)
                for i in range(1 if count is None else count)
            ],
            dtype=object,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        members = active_members(self._pairs())
        inputs = [get_tags(entry).input_tags for _, entry in members if hasattr(entry, "fit")]
        if inputs:
            tags.input_tags.allow_nan = all(entry.allow_nan for entry in inputs)
            tags.input_tags.sparse = all(entry.sparse for entry in inputs)
        return tags


def is_drop(member: object) -> bool:
    """Whether a member is left out."""
    return isinstance(member, str) and member == "drop"


def active_members(pairs: Sequence[NamedMember]) -> list[NamedMember]:
    """The named members without those that are dropped."""
    return [(name, member) for name, member in pairs if not is_drop(member)]


def is_routing() -> bool:
    """Whether scikit-learn's metadata routing is enabled."""
    return bool(get_config().get("enable_metadata_routing", False))


def check_routed(fit_params: Mapping[str, Any]) -> None:
    """Raise ValueError for arguments of fit that only metadata routing passes on."""
    if fit_params and not is_routing():
        raise ValueError(
            f"fit got {listing(fit_params)}, which only scikit-learn's metadata routing passes on "
            "to members. Leave them out, or call "
            "sklearn.set_config(enable_metadata_routing=True) and request them with "
            "set_fit_request of a member."
        )


def read_member_table(X: object, y: object, **values: Any) -> tuple[Any, Schema | None, object]:
    """X in the form that members get, its columns (None for a list of texts), and y.

    `values` are other values of the rows, which are to be in the order of X.
    """
    if _is_one_dimensional(X):
        return X, None, y
    table, y = member_fits.training_table(X, y, None, **values)
    return table.X, table.schema, y


def _check_member(name: str, member: Any, kind: str | None) -> None:
    """Raise ValueError for a member without fit, or of another kind; None allows every kind."""
    if isinstance(member, type) or not callable(getattr(member, "fit", None)):
        raise ValueError(
            f"the member {name!r} is {member!r} ({type(member).__name__}), which has no fit. "
            'Pass an estimator, not its class, or "drop".'
        )
    is_kind = is_classifier if kind == "classifier" else is_regressor
    if kind is not None and not is_kind(member):
        raise ValueError(
            f"the member {name!r} ({type(member).__name__}) is not a {kind}. Use a {kind}, or "
            "leave it out."
        )


def _is_one_dimensional(X: Any) -> bool:
    """Whether X is one column or a list of strings, which a pipeline may turn into a table."""
    if hasattr(X, "shape"):
        return len(X.shape) == 1
    return isinstance(X, list | tuple) and bool(X) and all(isinstance(text, str) for text in X)
