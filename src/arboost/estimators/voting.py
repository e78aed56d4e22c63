"""Voting: the fit and the weights of both voters, VotingClassifier and VotingRegressor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from arboost.data import target as targets
from arboost.errors import ParameterError, warns_once
from arboost.estimators import ensembles, member_fits
from arboost.estimators.estimator import classifier_score, regressor_score, store_arguments
from arboost.losses.base import Floats
from arboost.models.ensemble import EnsemblePredictor
from arboost.params.ensembles import VOTING_CLASSIFIER, VOTING_REGRESSOR
from arboost.training.inputs import warn_one_class


class Voting(ensembles.NamedMembers):
    """Members that are fitted on the same rows, and whose predictions are combined by weight."""

    weights: Any
    classes_: NDArray[Any]

    @warns_once
    def fit(self, X: object, y: object, sample_weight: object = None, **fit_params: Any) -> Self:
        """Fit the members.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            Any type that the members take; a frame reaches them as a frame.
        y : array of shape (n_rows,)
            Target: numbers for a regressor, labels for a classifier. Or the name of a column of X;
            the column is then not used as a feature. Classifiers are fitted on class indices.
        sample_weight : array of shape (n_rows,), optional
            Row weights for all members, each of which must take weights.
        **fit_params
            Only with scikit-learn's metadata routing: for the members that request them.

        Returns
        -------
        self
        """
        ensembles.check_routed(fit_params)
        params = self._checked_params()
        members = ensembles.active_members(params["estimators"])
        if params.get("voting") == "soft":
            for name, member in members:
                member_fits.find_method(name, member, "predict_proba", 'voting="hard"')
        table, schema, y = ensembles.read_member_table(X, y, sample_weight=sample_weight)
        if self._KIND == "classifier":
            _check_one_target(y)
        values = targets.target(y, member_fits.row_count(table))
        classes = None
        if self._KIND == "classifier":
            classes, codes = targets.encode_labels(values)
            warn_one_class(X, [targets.Task(self._KIND, codes, classes)])
            data = member_fits.MemberTrainingSet(table, codes.astype(np.intp), classes)
        else:
            data = member_fits.MemberTrainingSet(table, targets.numeric_target(values))
        weight = targets.weights(sample_weight, len(values))
        arguments = self._fit_arguments(members, weight, fit_params)
        fitted = member_fits.run_jobs(
            [
                member_fits.MemberJob(name, clone(member), arguments[name])
                for name, member in members
            ],
            data,
            n_jobs=params["n_jobs"],
            label="voting",
            visible=params["verbose"] > 0,
        )
        self._keep_members(params["estimators"], fitted, schema)
        if classes is not None:
            self.classes_ = classes
        return self

    def _checked_params(self) -> dict[str, Any]:
        params = super()._checked_params()
        member_weights, pairs = params["weights"], params["estimators"]
        if member_weights is None:
            return params
        if len(member_weights) != len(pairs):
            raise ParameterError(
                f"weights has {len(member_weights)} entries, but there are {len(pairs)} members. "
                "Pass one weight per member, dropped members included.",
                parameter="weights",
            )
        if not _active_weights(member_weights, [member for _, member in pairs]).sum() > 0.0:
            raise ParameterError(
                f"weights={self.weights!r} are not allowed: the weights of the members that are "
                "not dropped are all 0. Give at least one of them a weight above 0.",
                parameter="weights",
            )
        return params

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : sequence of str, optional
            Only checked against the columns of fit.
        """
        check_is_fitted(self)
        self._input_names(input_features)
        members = self._fitted_names()
        n_columns = len(self.classes_) if getattr(self, "voting", "hard") == "soft" else None
        return self._names_out(members, [n_columns] * len(members))

    def _ensemble(self, caller: str) -> EnsemblePredictor:
        is_hard = getattr(self, "voting", "soft") == "hard"
        output = "votes" if is_hard else "probabilities"
        members = self._ensemble_members(caller, output=output)
        member_weights = self._fitted_weights()
        classes = getattr(self, "classes_", None)
        assert self._schema is not None
        return EnsemblePredictor(
            kind=self._KIND,
            schema=self._schema,
            classes=classes,
            ensemble_members=tuple(
                replace(member, weight=float(weight))
                for member, weight in zip(members, member_weights, strict=True)
            ),
            n_columns=1 if classes is None else len(classes),
            divisor=float(member_weights.sum()),
        )

    def _fitted_weights(self) -> Floats:
        """The weights of the fitted members; `estimators` may have changed since."""
        return _active_weights(self.weights, list(self.named_estimators_.values()))

    def _mean(self, predictions: Sequence[Floats]) -> Floats:
        """The weighted mean of the members' predictions."""
        member_weights = self._fitted_weights()
        total = np.zeros_like(predictions[0])
        for weight, values in zip(member_weights, predictions, strict=True):
            total += weight * values
        mean: Floats = total / member_weights.sum()
        return mean


def _active_weights(weights: Any, members: Sequence[Any]) -> Floats:
    """The weights of the members that are not dropped; 1 each for None."""
    all_weights = np.ones(len(members)) if weights is None else np.asarray(weights, float)
    return all_weights[[not ensembles.is_drop(member) for member in members]]


def _check_one_target(y: object) -> None:
    """Raise NotImplementedError for a target of several columns."""
    shape = np.asarray(y).shape
    if len(shape) == member_fits.TABLE_DIMENSIONS and shape[1] > 1:
        raise NotImplementedError(
            f"y has the shape {shape}, but a vote is about one target. Pass one column, put "
            "sklearn.multioutput.MultiOutputClassifier around VotingClassifier, or use "
            "StackingClassifier."
        )


def _is_soft(voter: Any) -> bool:
    if voter.voting == "hard":
        raise AttributeError(f"predict_proba is not available when voting={voter.voting!r}")
    return True


class VotingClassifier(ClassifierMixin, Voting):
    """Classifiers that vote: hard, by predicted class, or soft, by class probabilities.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Names and classifiers. "drop" in place of an estimator leaves it out.
    voting : {"hard", "soft"}, default="hard"
        hard: a majority vote of the members, ties for the smaller label. soft: the class of the
        largest mean probability.
    weights : sequence of float or None, default=None
        Weight of each member, including dropped ones; None: equal weights.
    n_jobs : int or None, default=None
        Number of members that are fitted in parallel; -1 for as many as there are CPUs, None for
        one after the other, each with its own threads (or as set by a joblib context). The result
        does not depend on it.
    flatten_transform : bool, default=True
        With soft voting: whether transform returns the probabilities of all members in shape
        (n_rows, n_members * n_classes), or else (n_members, n_rows, n_classes).
    verbose : bool or int, default=False
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, sorted.
    estimators_ : list of classifiers
        The members that are not dropped, fitted with class indices as `y`.
    named_estimators_ : Bunch
        The fitted members by name, with "drop" for dropped ones.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the columns of X have names.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from arboost import GradientBoostingClassifier, VotingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> members = [("trees", GradientBoostingClassifier(n_estimators=20)), ("bayes", GaussianNB())]
    >>> model = VotingClassifier(members, voting="soft", weights=[2, 1]).fit(X, y)
    >>> model.predict_proba(X).shape, model.transform(X).shape
    ((150, 3), (150, 6))
    """

    _KIND = "classifier"
    _TABLE = VOTING_CLASSIFIER

    score = classifier_score

    voting: str
    flatten_transform: bool

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        voting: str = "hard",
        weights: Sequence[float] | None = None,
        n_jobs: int | None = None,
        flatten_transform: bool = True,
        verbose: bool | int = False,
    ) -> None:
        store_arguments(self, locals())

    def predict(self, X: object) -> NDArray[Any]:
        """Return the labels with the most votes or the largest mean probability.

        The smaller label wins a tie.
        """
        check_is_fitted(self)
        if self.voting == "soft":
            return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
        votes = self._votes(X)
        rows = np.arange(len(votes))
        counts = np.zeros((len(votes), len(self.classes_)))
        for number, weight in enumerate(self._fitted_weights()):
            counts[rows, votes[:, number]] += weight
        return np.asarray(self.classes_[counts.argmax(axis=1)])

    @available_if(_is_soft)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: object) -> Floats:
        """Return the weighted mean of the members' class probabilities."""
        return self._mean(self._probabilities(X))

    def transform(self, X: object) -> NDArray[Any]:
        """Return the predictions of each member for the rows of X.

        Returns
        -------
        array
            With hard voting the class indices, shape (n_rows, n_members). With soft voting the
            class probabilities, shape (n_rows, n_members * n_classes), or (n_members, n_rows,
            n_classes) with ``flatten_transform=False``.
        """
        check_is_fitted(self)
        if self.voting == "hard":
            return self._votes(X)
        probabilities = self._probabilities(X)
        return np.hstack(probabilities) if self.flatten_transform else np.stack(probabilities)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` returns, as `Voting` does."""
        names = super().get_feature_names_out(input_features)
        if self.voting == "soft" and not self.flatten_transform:
            raise ParameterError(
                'voting="soft" with flatten_transform=False gives an array of three dimensions, '
                "which has no named columns. Use flatten_transform=True.",
                parameter="voting",
            )
        return names

    def _votes(self, X: object) -> NDArray[np.intp]:
        """The class index that each member predicts, shape (n_rows, n_members)."""
        table = self._table_like_fit(X)
        return np.column_stack(
            [
                member_fits.member_classes(member, table, self.classes_)
                for member in self.estimators_
            ]
        )

    def _probabilities(self, X: object) -> Sequence[Floats]:
        check_is_fitted(self)
        table = self._table_like_fit(X)
        return [
            np.asarray(
                member_fits.predict_member(member, "predict_proba", table, self.classes_),
                np.float64,
            )
            for member in self.estimators_
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


class VotingRegressor(RegressorMixin, Voting):
    """The weighted mean of the predictions of several regressors.

    Parameters
    ----------
    estimators : list of (str, estimator)
        Names and regressors. "drop" in place of an estimator leaves it out.
    weights : sequence of float or None, default=None
        Weight of each member, including dropped ones; None: equal weights.
    n_jobs : int or None, default=None
        Number of members that are fitted in parallel; -1 for as many as there are CPUs, None for
        one after the other, each with its own threads (or as set by a joblib context). The result
        does not depend on it.
    verbose : bool or int, default=False
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    estimators_ : list of regressors
        The members that are not dropped, fitted.
    named_estimators_ : Bunch
        The fitted members by name, with "drop" for dropped ones.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only where the columns of X have names.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from arboost import GradientBoostingRegressor, VotingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> members = [("trees", GradientBoostingRegressor(n_estimators=20)), ("line", Ridge())]
    >>> model = VotingRegressor(members).fit(X, y)
    >>> abs(model.predict(X) - model.transform(X).mean(axis=1)).max() < 1e-9
    np.True_
    """

    _KIND = "regressor"
    _TABLE = VOTING_REGRESSOR

    score = regressor_score

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        weights: Sequence[float] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ) -> None:
        store_arguments(self, locals())

    def predict(self, X: object) -> Floats:
        """Return the weighted mean of the members' predictions."""
        check_is_fitted(self)
        return self._mean(self._predictions(X))

    def transform(self, X: object) -> Floats:
        """Return the predictions of each member, shape (n_rows, n_members)."""
        check_is_fitted(self)
        return np.column_stack(self._predictions(X))

    def _predictions(self, X: object) -> Sequence[Floats]:
        table = self._table_like_fit(X)
        return [member_fits.member_values(member, table)[:, 0] for member in self.estimators_]
