"""What both kinds of stacking share: members -> answers they have not seen -> final estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from arboost.algorithms.members.answers import Classes, answers, find_method, member_name
from arboost.algorithms.members.jobs import Job, Learning, check_weights, run
from arboost.algorithms.members.tables import take_rows
from arboost.algorithms.stacking.first_level import (
    by_row,
    folds,
    held_out_rows,
    member_columns,
    with_table,
)
from arboost.algorithms.stacking.named_members import NamedMembers, is_routing
from arboost.data.schema import Schema
from arboost.data.target import weights

__all__ = ["Stacking", "final_has"]


def final_has(method: str) -> Callable[[Any], bool]:
    """Return the condition under which a stack has a method of its final estimator."""

    def condition(stack: Any) -> bool:
        final = stack.final_estimator_ if hasattr(stack, "final_estimator_") else stack._final()
        getattr(final, method)  # its AttributeError is the reason that users see
        return True

    return condition


@dataclass(frozen=True)
class _FirstLevel:
    """Fitted members, and what the final estimator learns from.

    Attributes
    ----------
    members : list of estimators
    columns : list of arrays of shape (n_held_out, n_columns)
        One for each member.
    rows : array of intp, or None for all
        Which rows these are.
    """

    members: list[Any]
    columns: list[NDArray[Any]]
    rows: NDArray[np.intp] | None = None


class Stacking(NamedMembers):
    """Members whose answers are the columns that a final estimator learns from."""

    _KIND: ClassVar[str]

    final_estimator: Any
    passthrough: bool
    final_estimator_: Any
    stack_method_: list[str]
    _classes: Classes
    _n_columns: list[int]

    def _final(self) -> Any:
        """Return a clone of the final estimator, or of the default."""
        raise NotImplementedError

    def _fit(
        self,
        params: dict[str, Any],
        data: Learning,
        schema: Schema | None,
        sample_weight: object,
        groups: object,
        fit_params: Mapping[str, Any],
    ) -> None:
        """Fit members and final estimator; nothing before the end changes this estimator."""
        members = self._active(params)
        final = self._final()
        arguments = self._arguments(members, sample_weight, fit_params, len(data.y))
        weight = weights(sample_weight, len(data.y))
        weight_of_final = None if weight is None else check_weights("final_estimator", final)
        self._check_final(final)
        wanted = params.get("stack_method", "predict")
        advice = 'stack_method="auto"'
        methods = [find_method(name, member, wanted, advice) for name, member in members]
        if isinstance(params["cv"], str):  # "prefit"
            first = _of_fitted(members, methods, data, groups)
        else:
            first = self._out_of_fold(params, members, methods, arguments, data, groups)
        X, y, rows = data.X, data.y, first.rows
        if rows is not None:
            X, y = take_rows(X, rows), y[rows]
            weight = None if weight is None else weight[rows]
        final_arguments = {} if weight is None else {str(weight_of_final): weight}
        n_columns = [one.shape[1] for one in first.columns]
        names = self._column_names([name for name, _ in members], n_columns)
        table = with_table(first.columns, X, names) if params["passthrough"] else None
        final.fit(np.hstack(first.columns) if table is None else table, y, **final_arguments)
        self._keep_members(params, first.members, schema)
        self.stack_method_ = methods
        self.final_estimator_ = final
        self._classes = data.classes
        self._n_columns = n_columns

    def _out_of_fold(
        self,
        params: dict[str, Any],
        members: Sequence[tuple[str, Any]],
        methods: Sequence[str],
        arguments: Mapping[str, dict[str, Any]],
        data: Learning,
        groups: object,
    ) -> _FirstLevel:
        """Fit all members on all rows, and on the rows of each fold, side by side."""
        splits = folds(
            params["cv"], data.X, data.y, is_classifier=is_classifier(self), groups=groups
        )
        jobs = [
            Job(name, clone(member), arguments[name], method, split)
            for split in (None, *splits)  # the longest first
            for (name, member), method in zip(members, methods, strict=True)
        ]
        results = run(
            jobs, data, n_jobs=params["n_jobs"], label="stacking", visible=params["verbose"] > 0
        )
        n_members = len(members)
        columns = [
            member_columns(
                by_row(name, results[n_members + i :: n_members], splits), method, data.classes
            )
            for i, ((name, _), method) in enumerate(zip(members, methods, strict=True))
        ]
        return _FirstLevel(results[:n_members], columns, held_out_rows(splits, len(data.y)))

    def _check_final(self, final: Any) -> None:
        kind = "classifier" if is_classifier(final) else "regressor"
        if kind != self._KIND or not callable(getattr(final, "predict", None)):
            raise ValueError(
                f"final_estimator={final!r} is not allowed: it is no {self._KIND}. Use a "
                f"{self._KIND}, or final_estimator=None for the default."
            )

    def _column_names(self, members: Sequence[str], counts: Sequence[int]) -> list[str]:
        found = self._names_out(members, [None if n == 1 else n for n in counts])
        names: list[str] = found.tolist()
        return names

    def _first_level(self, X: object) -> Any:
        """Return the columns that the final estimator sees."""
        check_is_fitted(self)
        table = self._same_table(X)
        columns = [
            member_columns(
                answers(member, method, table, self._classes, by_label=self._is_prefit),
                method,
                self._classes,
            )
            for member, method in zip(self.estimators_, self.stack_method_, strict=True)
        ]
        if not self.passthrough:
            return np.hstack(columns)
        names = self._column_names(self._fitted_names(), self._n_columns)
        return with_table(columns, table, names)

    @property
    def _is_prefit(self) -> bool:
        cv = vars(self)["cv"]
        return isinstance(cv, str) and cv == "prefit"

    def transform(self, X: object) -> Any:
        """Return what the members, fitted on all rows, say of the rows of X.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)

        Returns
        -------
        array of shape (n_rows, n_columns)
            A column for each regressor, and for classifiers one for each class, or one for two
            classes. With ``passthrough=True`` the columns of X follow; it is sparse where X is, and
            a frame where X is one with columns that are no numbers.
        """
        return self._first_level(X)

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

    @available_if(final_has("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: object, **predict_params: Any) -> Any:
        """Return what the final estimator predicts.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        **predict_params
            For the predict of the final estimator, such as ``return_std``.

        Returns
        -------
        array of shape (n_rows,), or (n_rows, n_targets)
        """
        check_is_fitted(self)
        arguments = predict_params
        if is_routing():
            arguments = process_routing(self, "predict", **predict_params).final_estimator_.predict
        return self._labels(self.final_estimator_.predict(self._first_level(X), **arguments))

    def _labels(self, predicted: Any) -> Any:
        """Return predictions in the words of y."""
        return predicted

    def get_metadata_routing(self) -> MetadataRouter:
        """Return who gets which arguments, for scikit-learn's metadata routing."""
        final = getattr(self, "final_estimator_", self.final_estimator)
        mapping = MethodMapping().add(caller="predict", callee="predict")
        return super().get_metadata_routing().add(final_estimator_=final, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.passthrough:
            final = get_tags(self._final()).input_tags
            tags.input_tags.allow_nan = tags.input_tags.allow_nan and final.allow_nan
            tags.input_tags.sparse = tags.input_tags.sparse and final.sparse
        return tags


def _of_fitted(
    members: Sequence[tuple[str, Any]], methods: Sequence[str], data: Learning, groups: object
) -> _FirstLevel:
    """Ask members that were fitted before."""
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
                f"{member_name(member)} ({name!r}) has {len(one)} answers for {len(data.y)} rows. "
                "It must answer for each row."
            )
    return _FirstLevel([member for _, member in members], columns)
