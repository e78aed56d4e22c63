"""Stacking: the fit of both stacks, from members to out-of-fold predictions to final estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from arboost.algorithms.members.answers import (
    Classes,
    answers,
    find_method,
    member_name,
    n_rows_of,
)
from arboost.algorithms.members.ensembles import final_model
from arboost.algorithms.members.jobs import (
    MemberJob,
    MemberTrainingSet,
    check_weights,
    run_jobs,
)
from arboost.algorithms.members.tables import take_rows
from arboost.algorithms.stacking.first_level import (
    check_passthrough,
    held_out_rows,
    member_columns,
    out_of_fold,
    stacking_folds,
    with_table,
)
from arboost.algorithms.stacking.named_members import (
    NamedMember,
    NamedMembers,
    active,
    check_routed,
    is_routing,
    read_training,
)
from arboost.data.target import encode_labels, numbers_of, target, weights
from arboost.errors import warns_first
from arboost.model.ensemble import Ensemble
from arboost.training.splits import Split

__all__ = ["Stacking", "final_has"]

_SEVERAL = 2  # dimensions of y, and columns of y, from which on there are several targets


def final_has(method: str) -> Callable[[Any], bool]:
    """Return the condition under which a stack has a method of its final estimator."""

    def condition(stack: Any) -> bool:
        final = stack.final_estimator_ if hasattr(stack, "final_estimator_") else stack._final()
        getattr(final, method)  # users see its AttributeError as the reason
        return True

    return condition


class Stacking(NamedMembers):
    """Members whose predictions are the features of a final estimator."""

    final_estimator: Any
    passthrough: bool
    final_estimator_: Any
    stack_method_: list[str]
    classes_: NDArray[Any] | list[NDArray[Any]]
    _classes: Classes
    _n_columns: list[int]

    @warns_first
    def fit(
        self,
        X: object,
        y: object,
        sample_weight: object = None,
        *,
        groups: object = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the members and the final estimator.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Any type that the members take; a frame reaches them as a frame.
        y : array of shape (n_rows,), for classification also (n_rows, n_targets) of 0 and 1
            Classifiers among members and final estimator are fitted on class indices. It may also
            be the name of a column of X, which is then no feature.
        sample_weight : array of shape (n_rows,), optional
            Row weights for all members and the final estimator, each of which must take weights.
        groups : array of shape (n_rows,), optional
            Group of each row, never divided by a number of folds; for splitters that read groups.
        **fit_params
            Only with scikit-learn's metadata routing: for the members that request them.

        Returns
        -------
        self
        """
        check_routed(fit_params)
        params = self._checked_params()
        table, schema, y = read_training(X, y, sample_weight=sample_weight, groups=groups)
        codes, classes = _read_target(self._KIND, y, n_rows_of(table))
        data = MemberTrainingSet(table, codes, classes)
        weight = weights(sample_weight, len(codes))
        members, final = active(params["estimators"]), self._final()
        arguments = self._fit_arguments(members, weight, fit_params)
        final_weight = None if weight is None else check_weights("final_estimator", final)
        _check_final(final, self._KIND, passed=table if params["passthrough"] else None)
        wanted = params.get("stack_method", "predict")
        methods = [find_method(*member, wanted, 'stack_method="auto"') for member in members]

        rows = None  # rows that the final estimator is fitted on; None for all
        if isinstance(params["cv"], str):  # "prefit"
            fitted = [member for _, member in members]
            columns = _prefit_columns(members, methods, data, groups)
        else:
            splits = stacking_folds(
                params["cv"], table, codes, is_classifier=self._KIND == "classifier", groups=groups
            )
            jobs = [
                MemberJob(name, clone(member), arguments[name], method, split)
                for split in (None, *splits)  # fits on all rows first: they take longest
                for (name, member), method in zip(members, methods, strict=True)
            ]
            visible = params["verbose"] > 0
            results = run_jobs(
                jobs, data, n_jobs=params["n_jobs"], label="stacking", visible=visible
            )
            fitted, of_folds = results[: len(members)], results[len(members) :]
            columns = _fold_columns(members, methods, of_folds, splits, classes)
            rows = held_out_rows(splits, len(codes))

        if rows is not None:
            table, codes = take_rows(table, rows), codes[rows]
            weight = None if weight is None else weight[rows]
        n_columns, features = [one.shape[1] for one in columns], np.hstack(columns)
        if params["passthrough"]:
            names = self._column_names([name for name, _ in members], n_columns)
            features = with_table(columns, table, names)
        final.fit(features, codes, **({} if weight is None else {str(final_weight): weight}))

        self._keep_members(params["estimators"], fitted, schema)
        self.stack_method_ = methods
        self.final_estimator_ = final
        self._n_columns = n_columns
        self._classes = classes
        if classes is not None:
            self.classes_ = classes
        return self

    @available_if(final_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: object, **predict_params: Any) -> Any:
        """Return the predictions of the final estimator.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        **predict_params
            More arguments of the final estimator's ``predict``, such as ``return_std``.

        Returns
        -------
        array of shape (n_rows,), or (n_rows, n_targets)
        """
        check_is_fitted(self)
        arguments = predict_params
        if is_routing():
            arguments = process_routing(self, "predict", **predict_params).final_estimator_.predict
        predicted = self.final_estimator_.predict(self._final_features(X), **arguments)
        return _labels_of(predicted, self._classes)

    def transform(self, X: object) -> Any:
        """Return the predictions of the members, fitted on all rows, for the rows of X.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, n_columns)
            One column per regressor; per classifier one column per class, or a single one for two
            classes. With ``passthrough=True`` the columns of X follow; the result is sparse if X
            is, and a frame if X is a frame with non-numeric columns.
        """
        return self._final_features(X)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns of X, for ``passthrough=True``; by default those of fit.
        """
        check_is_fitted(self)
        names = np.array(self._column_names(self._fitted_names(), self._n_columns), dtype=object)
        given = self._input_names(input_features)
        return np.concatenate([names, given]) if self.passthrough else names

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing of arguments to members and final estimator, for scikit-learn."""
        final = getattr(self, "final_estimator_", self.final_estimator)
        mapping = MethodMapping().add(caller="predict", callee="predict")
        return super().get_metadata_routing().add(final_estimator_=final, method_mapping=mapping)

    def _ensemble(self, asked: str) -> Ensemble:
        if isinstance(self._classes, list):
            raise TypeError(
                f"{asked} was asked of a stack of several targets, which has no file and no SHAP "
                "values. Fit one stack for each target, or use pickle or joblib for files."
            )
        cv = vars(self)["cv"]
        by_label = isinstance(cv, str) and cv == "prefit"
        members, first = [], 0
        for i, member in enumerate(self._ensemble_members(asked, by_label=by_label)):
            method, is_probability = self.stack_method_[i], member.output == "probabilities"
            if (method == "predict_proba") != is_probability:
                raise TypeError(
                    f"{asked} was asked of a stack whose member {member.name!r} gives {method!r}. "
                    'Use stack_method="auto", or pickle or joblib for files.'
                )
            # The first of two class probabilities is left out, as in `member_columns`.
            n_left_out = int(is_probability and len(member.places) > self._n_columns[i])
            chosen = member.places >= n_left_out
            places = first + member.places[chosen] - n_left_out
            members.append(replace(member, taken=member.taken[chosen], places=places))
            first += self._n_columns[i]
        assert self._schema is not None
        return Ensemble(
            kind=self._KIND,
            schema=self._schema,
            classes=self._classes,
            members=tuple(members),
            n_columns=first,
            final=final_model(self.final_estimator_, asked),
            passthrough=bool(self.passthrough),
        )

    def _final(self) -> Any:
        """Return a clone of the final estimator, or a new default one."""
        if self.final_estimator is not None:
            return clone(self.final_estimator)
        from sklearn.linear_model import LogisticRegression, RidgeCV

        return LogisticRegression() if self._KIND == "classifier" else RidgeCV()

    def _final_features(self, X: object) -> Any:
        """Return the features of the final estimator for the rows of X."""
        check_is_fitted(self)
        table = self._table_like_fit(X)
        cv = vars(self)["cv"]
        by_label = isinstance(cv, str) and cv == "prefit"
        columns = [
            member_columns(
                answers(member, method, table, self._classes, by_label=by_label),
                method,
                self._classes,
            )
            for member, method in zip(self.estimators_, self.stack_method_, strict=True)
        ]
        if not self.passthrough:
            return np.hstack(columns)
        return with_table(columns, table, self._column_names(self._fitted_names(), self._n_columns))

    def _column_names(self, members: Sequence[str], counts: Sequence[int]) -> list[str]:
        names: list[str] = self._names_out(
            members, [None if n == 1 else n for n in counts]
        ).tolist()
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.passthrough:
            final = get_tags(self._final()).input_tags
            tags.input_tags.allow_nan = tags.input_tags.allow_nan and final.allow_nan
            tags.input_tags.sparse = tags.input_tags.sparse and final.sparse
        return tags


def _read_target(kind: str, y: object, n_rows: int) -> tuple[NDArray[Any], Classes]:
    """Return the target that members are fitted on, and the classes.

    A regressor has numbers and no classes. A classifier has class indices; for several targets one
    column each, and a list of the classes of each.
    """
    if kind == "regressor":
        return numbers_of(target(y, n_rows)), None
    several = np.asarray(y) if y is not None else np.empty(0)
    is_table = several.ndim == _SEVERAL and several.shape[1] >= _SEVERAL
    if not is_table or type_of_target(several) != "multilabel-indicator":
        classes, codes = encode_labels(target(y, n_rows))
        return codes.astype(np.intp), classes
    found = [encode_labels(target(column, n_rows)) for column in several.T]
    columns = np.column_stack([codes for _, codes in found]).astype(np.intp)
    return columns, [classes for classes, _ in found]


def _labels_of(predicted: Any, classes: Classes) -> Any:
    """Return the labels of predicted class indices; predictions of a regressor are unchanged."""
    if classes is None:
        return predicted
    codes = np.asarray(predicted).astype(np.intp)
    if isinstance(classes, list):
        return np.column_stack([labels[codes[:, i]] for i, labels in enumerate(classes)])
    return classes[codes]


def _check_final(final: Any, kind: str, passed: Any) -> None:
    """Raise ValueError for a final estimator that cannot end the stack; `passed`: its table."""
    final_kind = "classifier" if is_classifier(final) else "regressor"
    if final_kind != kind or not callable(getattr(final, "predict", None)):
        raise ValueError(
            f"final_estimator={final!r} is not allowed: it is no {kind}. Use a {kind}, or "
            "final_estimator=None for the default."
        )
    if passed is not None:
        check_passthrough(final, passed)


def _fold_columns(
    members: Sequence[NamedMember],
    methods: Sequence[str],
    results: Sequence[Any],
    splits: Sequence[Split],
    classes: Classes,
) -> list[NDArray[Any]]:
    """Return the out-of-fold columns of each member; results are ordered by fold, then member."""
    columns = []
    for i, (name, _) in enumerate(members):
        predictions = out_of_fold(name, results[i :: len(members)], splits)
        columns.append(member_columns(predictions, methods[i], classes))
    return columns


def _prefit_columns(
    members: Sequence[NamedMember],
    methods: Sequence[str],
    data: MemberTrainingSet,
    groups: object,
) -> list[NDArray[Any]]:
    """Return the columns of members that were fitted before."""
    if groups is not None:
        raise ValueError(
            'groups are given, but cv="prefit" has no folds. Leave out groups, or use cv=5.'
        )
    for _, member in members:
        check_is_fitted(member)
    columns = [
        member_columns(
            answers(member, method, data.X, data.classes, by_label=True), method, data.classes
        )
        for (_, member), method in zip(members, methods, strict=True)
    ]
    for (name, member), one in zip(members, columns, strict=True):
        if len(one) != len(data.y):
            raise ValueError(
                f"{member_name(member)} ({name!r}) returned {len(one)} predictions for "
                f"{len(data.y)} rows. It must return one prediction for each row."
            )
    return columns
