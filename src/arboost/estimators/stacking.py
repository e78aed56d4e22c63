"""Stacking: members -> out-of-fold predictions -> final estimator.

    rows   0 ............ n
    fold 0 |held|         |
    fold 1      |held|    |
    fold 2           |held|

The final estimator is fitted on out-of-fold predictions: those of members that were not fitted on
the row.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from arboost.data.raw_table import append_columns, frame_like, is_sparse
from arboost.data.schema import unique_names
from arboost.data.target import encode_labels, numeric_target, target, weights
from arboost.errors import InputTypeError, ParameterError, listing, warns_once
from arboost.estimators import ensembles, member_fits
from arboost.estimators.estimator import classifier_score, regressor_score, store_arguments
from arboost.models.ensemble import EnsemblePredictor
from arboost.params.ensembles import STACKING_CLASSIFIER, STACKING_REGRESSOR
from arboost.training.splits import Split, folds

_TWO_CLASSES = 2
Predictions = NDArray[Any] | list[NDArray[Any]]  # a list has one entry per target
_DEFAULT_FOLDS = 5


def final_has(method: str) -> Callable[[Any], bool]:
    """The condition under which a stack has a method of its final estimator."""

    def condition(stack: Any) -> bool:
        final = stack.final_estimator_ if hasattr(stack, "final_estimator_") else stack._final()
        getattr(final, method)  # users see its AttributeError as the reason
        return True

    return condition


class Stacking(ensembles.NamedMembers):
    """Members whose predictions are the features of a final estimator."""

    final_estimator: Any
    cv: Any
    passthrough: bool
    final_estimator_: Any
    stack_method_: list[str]
    classes_: NDArray[Any] | list[NDArray[Any]]
    _classes: member_fits.Classes
    _n_columns: list[int]

    @warns_once
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
            Target: numbers for a regressor, labels for a classifier. Or the name of a column of X;
            the column is then not used as a feature. Classifiers among members and final estimator
            are fitted on class indices.
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
        ensembles.check_routed(fit_params)
        params = self._checked_params()
        table, schema, y = ensembles.read_member_table(
            X, y, sample_weight=sample_weight, groups=groups
        )
        codes, classes = _read_target(self._KIND, y, member_fits.row_count(table))
        data = member_fits.MemberTrainingSet(table, codes, classes)
        weight = weights(sample_weight, len(codes))
        members, final = ensembles.active_members(params["estimators"]), self._final()
        arguments = self._fit_arguments(members, weight, fit_params)
        final_weight = (
            None if weight is None else member_fits.check_weights("final_estimator", final)
        )
        _check_final(final, self._KIND, passed=table if params["passthrough"] else None)
        stack_method = params.get("stack_method", "predict")
        methods = [
            member_fits.find_method(*member, stack_method, 'stack_method="auto"')
            for member in members
        ]

        rows = None  # rows that the final estimator is fitted on; None for all
        if isinstance(params["cv"], str):  # "prefit"
            fitted = [member for _, member in members]
            columns = _prefit_columns(members, methods, data, groups)
        else:
            splits = stacking_folds(
                params["cv"], table, codes, is_classifier=self._KIND == "classifier", groups=groups
            )
            jobs = [
                member_fits.MemberJob(name, clone(member), arguments[name], method, split)
                for split in (None, *splits)  # fits on all rows first: they take longest
                for (name, member), method in zip(members, methods, strict=True)
            ]
            visible = params["verbose"] > 0
            results = member_fits.run_jobs(
                jobs, data, n_jobs=params["n_jobs"], label="stacking", visible=visible
            )
            fitted, of_folds = results[: len(members)], results[len(members) :]
            columns = []  # results are in the order of the folds, then of the members
            for i, (name, _) in enumerate(members):
                predictions = out_of_fold(name, of_folds[i :: len(members)], splits)
                columns.append(member_columns(predictions, methods[i], classes))
            rows = held_out_rows(splits, len(codes))

        if rows is not None:
            table, codes = member_fits.take_rows(table, rows), codes[rows]
            weight = None if weight is None else weight[rows]
        n_columns, features = [block.shape[1] for block in columns], np.hstack(columns)
        if params["passthrough"]:
            names = self._column_names([name for name, _ in members], n_columns)
            features = append_table(columns, table, names)
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
        if ensembles.is_routing():
            arguments = process_routing(self, "predict", **predict_params).final_estimator_.predict
        predicted = self.final_estimator_.predict(self._final_features(X), **arguments)
        return _class_labels(predicted, self._classes)

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
        input_names = self._input_names(input_features)
        return np.concatenate([names, input_names]) if self.passthrough else names

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing of arguments to members and final estimator, for scikit-learn."""
        final = getattr(self, "final_estimator_", self.final_estimator)
        mapping = MethodMapping().add(caller="predict", callee="predict")
        return super().get_metadata_routing().add(final_estimator_=final, method_mapping=mapping)

    def _ensemble(self, caller: str) -> EnsemblePredictor:
        if isinstance(self._classes, list):
            raise InputTypeError(
                f"{caller} is not available for a stack of several targets, which has no file and "
                "no SHAP values. Fit one stack for each target, or use pickle or joblib for files."
            )
        members, first = [], 0
        for i, member in enumerate(self._ensemble_members(caller, by_label=self._is_prefit)):
            method, is_probability = self.stack_method_[i], member.output == "probabilities"
            if (method == "predict_proba") != is_probability:
                raise InputTypeError(
                    f"{caller} is not available for a stack whose member {member.name!r} gives "
                    f'{method!r}. Use stack_method="auto", or pickle or joblib for files.'
                )
            # The first of two class probabilities is left out, as in `member_columns`.
            n_left_out = int(is_probability and len(member.places) > self._n_columns[i])
            chosen = member.places >= n_left_out
            places = first + member.places[chosen] - n_left_out
            members.append(replace(member, taken=member.taken[chosen], places=places))
            first += self._n_columns[i]
        assert self._schema is not None
        return EnsemblePredictor(
            kind=self._KIND,
            schema=self._schema,
            classes=self._classes,
            ensemble_members=tuple(members),
            n_columns=first,
            final=ensembles.final_model(self.final_estimator_, caller),
            passthrough=bool(self.passthrough),
        )

    def _final(self) -> Any:
        """A clone of the final estimator, or a new default one."""
        if self.final_estimator is not None:
            return clone(self.final_estimator)
        from sklearn.linear_model import LogisticRegression, RidgeCV

        return LogisticRegression() if self._KIND == "classifier" else RidgeCV()

    def _final_features(self, X: object) -> Any:
        """The features of the final estimator for the rows of X."""
        check_is_fitted(self)
        table = self._table_like_fit(X)
        pairs = zip(self.estimators_, self.stack_method_, strict=True)
        columns = predicted_columns(pairs, table, self._classes, by_label=self._is_prefit)
        if not self.passthrough:
            return np.hstack(columns)
        names = self._column_names(self._fitted_names(), self._n_columns)
        return append_table(columns, table, names)

    @property
    def _is_prefit(self) -> bool:
        """Whether the members were fitted before the stack, on labels."""
        return isinstance(self.cv, str)  # "prefit"

    def _column_names(self, members: Sequence[str], counts: Sequence[int]) -> list[str]:
        numbered = [None if count == 1 else count for count in counts]
        names: list[str] = self._names_out(members, numbered).tolist()
        return names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self.passthrough:
            final = get_tags(self._final()).input_tags
            tags.input_tags.allow_nan = tags.input_tags.allow_nan and final.allow_nan
            tags.input_tags.sparse = tags.input_tags.sparse and final.sparse
        return tags


def _read_target(kind: str, y: object, n_rows: int) -> tuple[NDArray[Any], member_fits.Classes]:
    """The target that members are fitted on, and the classes.

    A regressor has numbers and no classes. A classifier has class indices; for several targets one
    column each, and a list of the classes of each.
    """
    if kind == "regressor":
        return numeric_target(target(y, n_rows)), None
    array = np.asarray(y) if y is not None else np.empty(0)
    is_table = array.ndim == member_fits.TABLE_DIMENSIONS and array.shape[1] > 1
    if not is_table or type_of_target(array) != "multilabel-indicator":
        classes, codes = encode_labels(target(y, n_rows))
        return codes.astype(np.intp), classes
    encoded = [encode_labels(target(column, n_rows)) for column in array.T]
    columns = np.column_stack([codes for _, codes in encoded]).astype(np.intp)
    return columns, [classes for classes, _ in encoded]


def _class_labels(predicted: Any, classes: member_fits.Classes) -> Any:
    """The labels of predicted class indices; predictions of a regressor are unchanged."""
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
        raise ParameterError(
            f"final_estimator={final!r} is not allowed: it is not a {kind}. Use a {kind}, or "
            "final_estimator=None for the default.",
            parameter="final_estimator",
        )
    if passed is not None:
        check_passthrough(final, passed)


def _prefit_columns(
    members: Sequence[ensembles.NamedMember],
    methods: Sequence[str],
    data: member_fits.MemberTrainingSet,
    groups: object,
) -> list[NDArray[Any]]:
    """The columns of members that were fitted before."""
    if groups is not None:
        raise ValueError(
            'groups are given, but cv="prefit" has no folds. Leave out groups, or use cv=5.'
        )
    for _, member in members:
        check_is_fitted(member)
    pairs = zip((member for _, member in members), methods, strict=True)
    columns = predicted_columns(pairs, data.X, data.classes, by_label=True)
    for (name, member), block in zip(members, columns, strict=True):
        if len(block) != len(data.y):
            raise ValueError(
                f"{type(member).__name__} ({name!r}) returned {len(block)} predictions for "
                f"{len(data.y)} rows. It must return one prediction for each row."
            )
    return columns


class StackingClassifier(ClassifierMixin, Stacking):
    """Classifiers whose probabilities a final classifier learns from.

    The final classifier learns from out-of-fold predictions: each member is fitted once per fold,
    on the other rows. The members of `estimators_`, which predict new rows, are fitted on all rows.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Names and members of the first level: classifiers, or regressors of the class index. "drop"
        in place of an estimator leaves it out.
    final_estimator : estimator or None, default=None
        The classifier that is trained on the members' predictions; None: scikit-learn's
        LogisticRegression.
    cv : int, scikit-learn splitter, iterable of pairs, "prefit" or None, default=None
        Folds, so that the final estimator is trained on predictions for held-out rows: a number of
        folds, stratified by class for classifiers, and of whole groups where fit gets groups; a
        splitter; or pairs (rows to train on, rows to hold out). Rows that are never held out, as
        the first ones of TimeSeriesSplit, do not train the final estimator. None: 5 folds.
        "prefit": the members are already fitted.
    stack_method : {"auto", "predict_proba", "decision_function", "predict"}, default="auto"
        Method of the members for their predictions; auto: the first of predict_proba,
        decision_function and predict that a member has.
    n_jobs : int or None, default=None
        Number of members that are fitted in parallel; -1 for as many as there are CPUs, None for
        one after the other, each with its own threads (or as set by a joblib context). The result
        does not depend on it.
    passthrough : bool, default=False
        Whether the final estimator also gets the columns of X, after those of the members.
    verbose : bool or int, default=0
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, sorted. For several targets (columns of 0 and 1) a list with the labels of each.
    estimators_ : list of estimators
        The members that are not dropped, fitted on all rows, with class indices as `y`.
    named_estimators_ : Bunch
        The fitted members by name, with "drop" for dropped ones.
    final_estimator_ : estimator
    stack_method_ : list of str
        Prediction method of each of `estimators_`.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the columns of X have names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from arboost import GradientBoostingClassifier, StackingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [
    ...     ("trees", GradientBoostingClassifier(n_estimators=20)),
    ...     ("line", LogisticRegression(max_iter=1000)),
    ... ]
    >>> model = StackingClassifier(members).fit(X, y)
    >>> model.transform(X).shape
    (150, 6)
    """

    _KIND = "classifier"
    _TABLE = STACKING_CLASSIFIER
    _MEMBERS_OF_ANY_KIND = True

    score = classifier_score

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        final_estimator: Any = None,
        *,
        cv: Any = None,
        stack_method: str = "auto",
        n_jobs: int | None = None,
        passthrough: bool = False,
        verbose: bool | int = 0,
    ) -> None:
        store_arguments(self, locals())

    @available_if(final_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """Return the class probabilities, shape (n_rows, n_classes), in the order of ``classes_``.

        For several targets: the probability of the larger label of each, shape (n_rows, n_targets).
        """
        features = self._final_features(X)
        # The final estimator lacks a class whose rows were never held out.
        probabilities = member_fits.predict_member(
            self.final_estimator_, "predict_proba", features, self._classes
        )
        if not isinstance(probabilities, list):
            return probabilities
        # A target with a single label has one column: its label counts as the smaller one.
        return np.column_stack([shares[:, 1:].sum(axis=1) for shares in probabilities])

    @available_if(final_has("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: object) -> NDArray[np.float64]:
        """Return the decision function of the final estimator.

        The shape is (n_rows,) for two classes, else (n_rows, n_classes).
        """
        features = self._final_features(X)
        scores: NDArray[np.float64] = self.final_estimator_.decision_function(features)
        return scores


class StackingRegressor(RegressorMixin, Stacking):
    """Regressors whose predictions a final regressor learns from.

    The final regressor learns from out-of-fold predictions: each member is fitted once per fold,
    on the other rows. The members of `estimators_`, which predict new rows, are fitted on all rows.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Names and members of the first level, regressors. "drop" in place of an estimator leaves it
        out.
    final_estimator : estimator or None, default=None
        The regressor that is trained on the members' predictions; None: scikit-learn's RidgeCV.
    cv : int, scikit-learn splitter, iterable of pairs, "prefit" or None, default=None
        Folds, so that the final estimator is trained on predictions for held-out rows: a number of
        folds, stratified by class for classifiers, and of whole groups where fit gets groups; a
        splitter; or pairs (rows to train on, rows to hold out). Rows that are never held out, as
        the first ones of TimeSeriesSplit, do not train the final estimator. None: 5 folds.
        "prefit": the members are already fitted.
    n_jobs : int or None, default=None
        Number of members that are fitted in parallel; -1 for as many as there are CPUs, None for
        one after the other, each with its own threads (or as set by a joblib context). The result
        does not depend on it.
    passthrough : bool, default=False
        Whether the final estimator also gets the columns of X, after those of the members.
    verbose : bool or int, default=0
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    estimators_ : list of estimators
        The members that are not dropped, fitted on all rows.
    named_estimators_ : Bunch
        The fitted members by name, with "drop" for dropped ones.
    final_estimator_ : estimator
    stack_method_ : list of str
        Prediction method of each of `estimators_`: predict.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the columns of X have names.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from arboost import GradientBoostingRegressor, StackingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> members = [("trees", GradientBoostingRegressor(n_estimators=20)), ("line", Ridge())]
    >>> model = StackingRegressor(members).fit(X, y)
    >>> model.transform(X).shape, model.final_estimator_.coef_.shape
    ((442, 2), (2,))
    """

    _KIND = "regressor"
    _TABLE = STACKING_REGRESSOR

    score = regressor_score

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        final_estimator: Any = None,
        *,
        cv: Any = None,
        n_jobs: int | None = None,
        passthrough: bool = False,
        verbose: bool | int = 0,
    ) -> None:
        store_arguments(self, locals())


# ---- the first level: folds, out-of-fold predictions, columns ----


def stacking_folds(
    cv: Any, X: Any, y: NDArray[Any], *, is_classifier: bool, groups: object = None
) -> list[Split]:
    """Pairs of rows to train on and held-out rows, ascending and disjoint.

    Parameters
    ----------
    cv : int, splitter, iterable of pairs, or None
    X : table
        Read by some splitters.
    y : array of shape (n_rows,) or (n_rows, n_targets)
    is_classifier : bool
        Whether a number of folds is stratified by class.
    groups : array of shape (n_rows,), optional
        Group of each row, never divided by a number of folds; for splitters that read groups.
    """
    is_number = cv is None or isinstance(cv, numbers.Integral)
    if groups is not None and is_number:
        splits = folds(y, _DEFAULT_FOLDS if cv is None else cv, groups=groups, name="cv")
    else:
        if groups is not None and not hasattr(cv, "split"):
            raise ValueError(
                "groups are given, but cv lists its rows already. Leave out groups, or pass a "
                "number of folds."
            )
        # A copy: the random generator of the user's splitter stays unchanged for the next fit.
        splitter = deepcopy(check_cv(cv, y, classifier=is_classifier))
        pairs = splitter.split(X, y, None if groups is None else np.asarray(groups))
        splits = folds(y, list(pairs), name="cv")
    _check_held_out_once(splits, len(y))
    return splits


def _check_held_out_once(splits: Sequence[Split], n_rows: int) -> None:
    times = np.bincount(np.concatenate([held_out for _, held_out in splits]), minlength=n_rows)
    often = np.flatnonzero(times > 1)
    if len(often):
        raise ParameterError(
            f"cv holds out {len(often)} rows more than once, such as {listing(often.tolist(), 3)}, "
            "but the final estimator learns from each row once. Use a splitter that holds out a "
            "row at most once, such as KFold or TimeSeriesSplit.",
            parameter="cv",
        )


def held_out_rows(splits: Sequence[Split], n_rows: int) -> NDArray[np.intp] | None:
    """The rows that are held out in any fold, ascending; None if all rows are."""
    rows = np.sort(np.concatenate([held_out for _, held_out in splits])).astype(np.intp)
    return None if len(rows) == n_rows else rows


def out_of_fold(name: str, parts: Sequence[Predictions], splits: Sequence[Split]) -> Predictions:
    """The out-of-fold predictions of a member, in the order of the rows.

    Parameters
    ----------
    name : str
        Name of the member.
    parts : sequence of predictions
        Predictions for the held-out rows of each fold.
    splits : sequence of Split
    """
    order = np.argsort(np.concatenate([held_out for _, held_out in splits]), kind="stable")
    if isinstance(parts[0], list):
        return [
            _join_folds(name, [part[target] for part in parts], order)
            for target in range(len(parts[0]))
        ]
    return _join_folds(name, parts, order)


def _join_folds(name: str, parts: Sequence[Any], order: NDArray[np.intp]) -> NDArray[Any]:
    shapes = list(dict.fromkeys(part.shape[1:] for part in parts))
    if len(shapes) > 1:
        raise ValueError(
            f"the predictions of the member {name!r} have different shapes per row in different "
            f"folds: {listing(shapes)}. Use folds with every class among the rows to train on."
        )
    joined: NDArray[Any] = np.concatenate(parts)[order]
    return joined


def member_columns(
    predictions: Predictions, method: str, classes: member_fits.Classes
) -> NDArray[Any]:
    """The columns of a member for the final estimator, shape (n_rows, n_columns).

    The first of two class probabilities is left out: it is 1 minus the second.
    """
    if isinstance(predictions, list):
        return np.hstack([shares[:, 1:] for shares in predictions])
    if predictions.ndim == 1:
        return predictions.reshape(-1, 1)
    is_binary = isinstance(classes, np.ndarray) and len(classes) == _TWO_CLASSES
    return predictions[:, 1:] if is_binary and method == "predict_proba" else predictions


def predicted_columns(
    members: Iterable[tuple[Any, str]], X: Any, classes: member_fits.Classes, *, by_label: bool
) -> list[NDArray[Any]]:
    """The columns of fitted members for the rows of X; each member comes with its method."""
    return [
        member_columns(
            member_fits.predict_member(member, method, X, classes, by_label=by_label),
            method,
            classes,
        )
        for member, method in members
    ]


def check_passthrough(final: Any, X: Any) -> None:
    """Raise ValueError where X has missing values, and scikit-learn's final estimator takes none.

    Of a pipeline or a search the first estimator that gets the rows counts; estimators of other
    libraries may take more than their tags say.
    """
    name = type(final).__name__
    while not isinstance(final, str | None):
        inner = final.steps[0][1] if hasattr(final, "steps") else getattr(final, "estimator", None)
        if not hasattr(inner, "fit"):
            break
        final = inner
    is_known = type(final).__module__.startswith("sklearn.")
    if not is_known or get_tags(final).input_tags.allow_nan or not _has_missing(X):
        return
    raise ParameterError(
        f"passthrough=True hands the missing values (NaN) of X to final_estimator={name}, which "
        "takes none. Use passthrough=False, impute them (make_pipeline(SimpleImputer(), ...)), or "
        "use a final estimator that takes missing values, such as GradientBoosting of arboost.",
        parameter="passthrough",
    )


def _has_missing(X: Any) -> bool:
    """Whether a table of numbers has missing values."""
    if is_sparse(X):
        return bool(np.isnan(X.data).any())
    if hasattr(X, "isna"):  # pandas
        return bool(X.isna().to_numpy().any())
    array = np.asarray(X)
    return bool(array.dtype.kind == "f" and np.isnan(array).any())


def append_table(columns: Sequence[NDArray[Any]], X: Any, names: Sequence[str]) -> Any:
    """The columns of the members, followed by the columns of X.

    Parameters
    ----------
    columns : sequence of arrays of shape (n_rows, n_columns)
    X : table of shape (n_rows, n_features)
    names : sequence of str
        Names of the members' columns.

    Returns
    -------
    array of numbers, or a sparse matrix if X is one
        A frame with non-numeric columns stays a frame: the final estimator may take categories.
    """
    if is_sparse(X):
        from scipy import sparse

        return sparse.hstack([*columns, X], format=X.format)
    if len(getattr(X, "shape", ())) != member_fits.TABLE_DIMENSIONS:
        raise ParameterError(
            "passthrough=True appends the columns of X to those of the members, but X is not a "
            "table of rows and columns. Use passthrough=False.",
            parameter="passthrough",
        )
    table = np.asarray(X)
    if table.dtype.kind in "biuf" or not hasattr(X, "columns"):
        return np.hstack([*columns, table])
    named = dict(zip(names, np.hstack(columns).T, strict=True))
    if hasattr(X, "iloc"):  # pandas
        return _append_frame(named, X)
    return append_columns(frame_like(X, named), X)


def _append_frame(named: Mapping[str, NDArray[Any]], X: Any) -> Any:
    """A pandas frame with the columns of the members, followed by the columns of X.

    Rows are aligned by position: an index may repeat a label.
    """
    if not all(isinstance(name, str) for name in X.columns):  # names must all be strings
        names = unique_names(list(X.columns)) or [f"x{i}" for i in range(X.shape[1])]
        X = X.set_axis(names, axis="columns")
    frame = X.copy(deep=False)
    for place, (name, column) in enumerate(named.items()):
        frame.insert(place, name, column)
    return frame
