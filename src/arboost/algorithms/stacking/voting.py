"""What both kinds of voting share: members that are fitted on all rows, and what each counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from arboost.algorithms.estimator import store
from arboost.algorithms.members.answers import (
    answers,
    class_votes,
    find_method,
    n_rows_of,
    predicted_numbers,
)
from arboost.algorithms.members.jobs import Job, Learning, run
from arboost.algorithms.stacking.named_members import NamedMembers, is_drop
from arboost.data.schema import Schema
from arboost.data.target import encode_labels, numbers_of, target
from arboost.params.kinds import Param
from arboost.params.stacking import VOTING_CLASSIFIER, VOTING_REGRESSOR

__all__ = ["Voting", "VotingClassifier", "VotingRegressor"]


class Voting(NamedMembers):
    """Members that are asked side by side."""

    weights: Any

    def _params(self) -> dict[str, Any]:
        params = super()._params()
        given, pairs = params["weights"], params["estimators"]
        if given is None:
            return params
        if len(given) != len(pairs):
            raise ValueError(
                f"weights has {len(given)} entries, but there are {len(pairs)} members. Pass one "
                "for each, dropped ones too."
            )
        if not self._shares([member for _, member in pairs]).sum() > 0.0:
            raise ValueError(
                f"weights={self.weights!r} are not allowed: those of the members that are not "
                "dropped are all 0. Give at least one of them a weight above 0."
            )
        return params

    def _shares(self, members: Sequence[Any]) -> NDArray[np.float64]:
        """Return what each of the members counts that is not dropped."""
        weights = np.ones(len(members)) if self.weights is None else np.asarray(self.weights, float)
        return weights[[not is_drop(member) for member in members]]

    def _fitted_shares(self) -> NDArray[np.float64]:
        """Return what each of the fitted members counts; others may have been dropped since."""
        return self._shares(list(self.named_estimators_.values()))

    def _mean(self, of_members: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        """Return the mean of what the members say, by their weights."""
        shares = self._fitted_shares()
        total = np.zeros_like(of_members[0])
        for share, given in zip(shares, of_members, strict=True):
            total += share * given
        mean: NDArray[np.float64] = total / shares.sum()
        return mean

    def _fit(
        self,
        params: dict[str, Any],
        data: Learning,
        schema: Schema | None,
        sample_weight: object,
        fit_params: Mapping[str, Any],
    ) -> None:
        """Fit all members; nothing before the end changes this estimator."""
        members = self._active(params)
        arguments = self._arguments(members, sample_weight, fit_params, len(data.y))
        jobs = [Job(name, clone(member), arguments[name]) for name, member in members]
        fitted = run(
            jobs, data, n_jobs=params["n_jobs"], label="voting", visible=params["verbose"] > 0
        )
        self._keep_members(params, fitted, schema)


_TABLE_DIMENSIONS = 2


def _is_soft(voter: Any) -> bool:
    if voter.voting == "hard":
        raise AttributeError(f"predict_proba is not available when voting={voter.voting!r}")
    return True


class VotingClassifier(ClassifierMixin, Voting):
    """Classifiers that vote, each for a class or with its probabilities.

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
    verbose : bool, default=False
        Above 0, fits of more than about a second draw a progress bar in terminals and notebooks.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Labels, sorted.
    estimators_ : list of classifiers
        The members, fitted on the numbers of the classes as `y`; without those that are dropped.
    named_estimators_ : Bunch
        The same by name, with "drop" for those that are dropped.
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

    _TABLE: ClassVar[Mapping[str, Param]] = VOTING_CLASSIFIER

    voting: str
    flatten_transform: bool
    classes_: NDArray[Any]

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        voting: str = "hard",
        weights: Sequence[float] | None = None,
        n_jobs: int | None = None,
        flatten_transform: bool = True,
        verbose: bool = False,
    ) -> None:
        store(self, locals())

    def fit(self, X: object, y: object, sample_weight: object = None, **fit_params: Any) -> Self:
        """Fit the members.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            As the members take it; a frame stays one.
        y : array of shape (n_rows,)
            Labels. Members get their numbers in sorted order.
        sample_weight : array of shape (n_rows,), optional
            For all members, each of which must take weights.
        **fit_params
            Only with scikit-learn's metadata routing: for the members that ask for them.

        Returns
        -------
        self
        """
        self._check_routed(fit_params)
        params = self._params()
        if params["voting"] == "soft":
            for name, member in self._active(params):
                find_method(name, member, "predict_proba", 'voting="hard"')
        shape = np.asarray(y).shape
        if len(shape) == _TABLE_DIMENSIONS and shape[1] > 1:
            raise NotImplementedError(
                f"y has the shape {shape}, but a vote is about one target. Pass one column, put "
                "sklearn.multioutput.MultiOutputClassifier around VotingClassifier, or use "
                "StackingClassifier."
            )
        table, schema = self._table(X)
        classes, codes = encode_labels(target(y, n_rows_of(table)))
        data = Learning(table, codes.astype(np.intp), classes)
        self._fit(params, data, schema, sample_weight, fit_params)
        self.classes_ = classes
        return self

    def predict(self, X: object) -> NDArray[Any]:
        """Return the labels with the most votes or the largest mean probability.

        The smaller of two labels wins a tie.
        """
        check_is_fitted(self)
        if self.voting == "soft":
            return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
        votes = self._votes(X)
        rows = np.arange(len(votes))
        counts = np.zeros((len(votes), len(self.classes_)))
        for number, share in enumerate(self._fitted_shares()):
            counts[rows, votes[:, number]] += share
        return np.asarray(self.classes_[counts.argmax(axis=1)])

    @available_if(_is_soft)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: object) -> NDArray[np.float64]:
        """Return the mean probabilities of the classes, by the weights of the members."""
        return self._mean(self._probabilities(X))

    def transform(self, X: object) -> NDArray[Any]:
        """Return what the members say of the rows of X.

        Returns
        -------
        array
            With hard voting the numbers of classes, shape (n_rows, n_members). With soft voting
            the probabilities, shape (n_rows, n_members * n_classes), or (n_members, n_rows,
            n_classes) with ``flatten_transform=False``.
        """
        check_is_fitted(self)
        if self.voting == "hard":
            return self._votes(X)
        probabilities = self._probabilities(X)
        return np.hstack(probabilities) if self.flatten_transform else np.stack(probabilities)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : sequence of str, optional
            They are only checked.
        """
        check_is_fitted(self)
        self._input_names(input_features)
        members = self._fitted_names()
        if self.voting == "hard":
            return self._names_out(members, [None] * len(members))
        if not self.flatten_transform:
            raise ValueError(
                'voting="soft" with flatten_transform=False gives an array of three dimensions, '
                "whose columns have no names. Use flatten_transform=True."
            )
        return self._names_out(members, [len(self.classes_)] * len(members))

    def _votes(self, X: object) -> NDArray[np.intp]:
        """Return the number of the class that each member predicts, shape (n_rows, n_members)."""
        table = self._same_table(X)
        return np.column_stack(
            [class_votes(member, table, self.classes_) for member in self.estimators_]
        )

    def _probabilities(self, X: object) -> Sequence[NDArray[np.float64]]:
        check_is_fitted(self)
        table = self._same_table(X)
        return [
            np.asarray(answers(member, "predict_proba", table, self.classes_), np.float64)
            for member in self.estimators_
        ]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


class VotingRegressor(RegressorMixin, Voting):
    """The weighted mean of what several regressors predict.

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
    verbose : bool, default=False
        Above 0, fits of more than about a second draw a progress bar in terminals and notebooks.

    Attributes
    ----------
    estimators_ : list of regressors
        The members, fitted; without those that are dropped.
    named_estimators_ : Bunch
        The same by name, with "drop" for those that are dropped.
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

    _TABLE: ClassVar[Mapping[str, Param]] = VOTING_REGRESSOR

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        *,
        weights: Sequence[float] | None = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        store(self, locals())

    def fit(self, X: object, y: object, sample_weight: object = None, **fit_params: Any) -> Self:
        """Fit the members.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
            As the members take it; a frame stays one.
        y : array of shape (n_rows,)
        sample_weight : array of shape (n_rows,), optional
            For all members, each of which must take weights.
        **fit_params
            Only with scikit-learn's metadata routing: for the members that ask for them.

        Returns
        -------
        self
        """
        self._check_routed(fit_params)
        params = self._params()
        table, schema = self._table(X)
        data = Learning(table, numbers_of(target(y, n_rows_of(table))))
        self._fit(params, data, schema, sample_weight, fit_params)
        return self

    def predict(self, X: object) -> NDArray[np.float64]:
        """Return the mean of the members' predictions, by their weights."""
        check_is_fitted(self)
        return self._mean(self._predictions(X))

    def transform(self, X: object) -> NDArray[np.float64]:
        """Return what each member predicts, shape (n_rows, n_members)."""
        check_is_fitted(self)
        return np.column_stack(self._predictions(X))

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the columns that `transform` returns.

        Parameters
        ----------
        input_features : sequence of str, optional
            They are only checked.
        """
        check_is_fitted(self)
        self._input_names(input_features)
        members = self._fitted_names()
        return self._names_out(members, [None] * len(members))

    def _predictions(self, X: object) -> Sequence[NDArray[np.float64]]:
        table = self._same_table(X)
        return [predicted_numbers(member, table)[:, 0] for member in self.estimators_]
