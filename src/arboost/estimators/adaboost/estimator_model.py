"""Fitted AdaBoost ensemble of estimators of scikit-learn's kind, and the votes of its members."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from arboost.backend import checked_threads
from arboost.data.schema import Schema
from arboost.errors import InputTypeError, listing
from arboost.estimators.adaboost.schemes import ClassScheme, Scheme, combine_columns
from arboost.estimators.member_predictions import (
    member_name,
    member_one_hot,
    member_probabilities,
    member_values,
)
from arboost.estimators.member_tables import member_table
from arboost.losses.base import Floats
from arboost.losses.links import LINKS, Probabilities, predictions, probabilities
from arboost.models.model import checked_rounds

_TWO_CLASSES = 2


@dataclass(frozen=True)
class MemberVotes:
    """Conversion of the predictions of a member to votes.

    Attributes
    ----------
    scheme : ClassScheme or R2Scheme
    classes : array of shape (n_classes,), or None for regression
        Labels, sorted; members are fitted to labels, not to class codes.
    """

    scheme: Scheme
    classes: NDArray[Any] | None = None

    @property
    def needs_probabilities(self) -> bool:
        """Whether votes come from class probabilities."""
        return isinstance(self.scheme, ClassScheme) and self.scheme.algorithm != "discrete"

    def from_member(self, member: Any, X: Any, cover: float) -> Floats:
        """The votes of a member before its weight, or its predictions for regression.

        Parameters
        ----------
        member : fitted estimator
        X : table of shape (n_rows, ...)
        cover : float
            Weight of all training rows of the member.

        Returns
        -------
        float64 array of shape (n_rows, n_outputs)
        """
        if not isinstance(self.scheme, ClassScheme):
            return _finite_numbers(member, X)
        assert self.classes is not None
        if self.needs_probabilities:
            outputs = member_probabilities(member, X, self.classes, 'algorithm="discrete"')
        else:
            outputs = member_one_hot(member, X, self.classes)
        return self._from_classes(outputs, cover)

    def from_raw(self, raw: Floats, cover: float) -> Floats:
        """The votes of a decision tree of arboost, from its raw scores.

        The scores are (n_rows, n_outputs) as `ForestTarget` has them; the other argument and the
        result are those of `from_member`.
        """
        if not isinstance(self.scheme, ClassScheme):
            return raw
        assert self.classes is not None
        if not self.needs_probabilities:
            return self.scheme.unit_votes(raw, np.full(len(raw), cover))
        link = "share_of_two" if len(self.classes) == _TWO_CLASSES else "shares"
        return self._from_classes(LINKS[link](raw), cover)

    def _from_classes(self, outputs: Floats, cover: float) -> Floats:
        """The votes of class probabilities, or of one-hot classes."""
        if outputs.shape[1] == _TWO_CLASSES:
            outputs = outputs[:, 1:] - outputs[:, :1]
        return self.scheme.unit_votes(outputs, np.full(len(outputs), cover))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class EstimatorModel:
    """Fitted ensemble of estimators.

    `n_jobs` is for the combination of the votes; members use their own. The model pickles where its
    members do; `arboost.load` reads models of engine trees only.

    Attributes
    ----------
    members : tuple of estimators, or TreeMembers
    weights : float64 array of shape (n_members,)
        Weights of the members' votes.
    covers : float64 array of shape (n_members,)
        Weight of the training rows of each member.
    votes : MemberVotes
    schema : Schema
        Names and number of the columns.
    link : str
        Name of a link in `arboost.losses.links`.
    params : dict
        Parameters of the fit that can change the model.
    combine : {"sum", "median", "mean"}
        Whether raw scores are the sum of weighted votes, or the weighted median or mean of
        predictions.
    provenance : dict
        Metadata of the fit, as `arboost.models.model.Model` has it.
    metadata : dict
        Values of the user, by name; pickle keeps them.
    """

    members: Sequence[Any]
    weights: Floats
    covers: Floats
    votes: MemberVotes
    schema: Schema
    link: str
    params: dict[str, Any]
    combine: str = "sum"
    provenance: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    targets: tuple[int, ...] = ()  # AdaBoost has one target

    @property
    def classes(self) -> NDArray[Any] | None:
        """Labels in the order of the probabilities; None for regression."""
        return self.votes.classes

    @property
    def kind(self) -> str:
        """Task of the model: "classifier" or "regressor"."""
        return "regressor" if self.classes is None else "classifier"

    @property
    def n_outputs(self) -> int:
        """Number of raw scores of a row."""
        n_classes = 1 if self.classes is None else len(self.classes)
        return n_classes if n_classes > _TWO_CLASSES else 1

    @property
    def n_rounds(self) -> int:
        """Number of boosting rounds."""
        return len(self.members)

    def predict(self, X: object, *, n_jobs: int | None = None) -> NDArray[Any]:
        """The predicted values or labels, shape (n_rows,)."""
        return predictions(self, self.predict_raw(X, n_jobs=n_jobs))

    def predict_proba(self, X: object, *, n_jobs: int | None = None) -> Probabilities:
        """The class probabilities, shape (n_rows, n_classes)."""
        return probabilities(self, self.predict_raw(X, n_jobs=n_jobs))

    def predict_raw(self, X: object, *, n_jobs: int | None = None) -> Floats:
        """The raw scores, before the link, shape (n_rows, n_outputs)."""
        n_threads = checked_threads(n_jobs)
        table = member_table(X, self.schema).X
        if self.combine != "sum":
            return self._combined(self.columns(table), n_threads)
        scores = np.zeros((table.shape[0], self.n_outputs))
        for votes in self._weighted_votes(table):
            scores += votes
        return scores

    def staged_raw(self, X: object, *, n_jobs: int | None = None) -> Iterator[Floats]:
        """Yield the raw scores after each round, in a new array each time."""
        n_threads = checked_threads(n_jobs)
        table = member_table(X, self.schema).X
        if self.combine != "sum":
            columns = self.columns(table)
            for rounds in range(1, self.n_rounds + 1):
                yield self._combined(columns[:, :rounds], n_threads)
            return
        scores = np.zeros((table.shape[0], self.n_outputs))
        for votes in self._weighted_votes(table):
            scores += votes
            yield scores.copy()

    def staged_predict(self, X: object, *, n_jobs: int | None = None) -> Iterator[NDArray[Any]]:
        """Yield the result of `predict` after each round."""
        return (predictions(self, raw) for raw in self.staged_raw(X, n_jobs=n_jobs))

    def staged_predict_proba(
        self, X: object, *, n_jobs: int | None = None
    ) -> Iterator[Probabilities]:
        """Yield the result of `predict_proba` after each round."""
        return (probabilities(self, raw) for raw in self.staged_raw(X, n_jobs=n_jobs))

    def columns(self, table: Any) -> Floats:
        """The predictions of each member of a median, shape (n_rows, n_members).

        `table` is X of a `MemberTable`.
        """
        values = np.empty((table.shape[0], self.n_rounds))
        for i, votes in enumerate(self._votes(table)):
            values[:, i] = votes[:, 0]
        return values

    def truncated(self, rounds: int) -> Self:
        """The model of the first rounds."""
        rounds = checked_rounds(rounds, self.n_rounds)
        return replace(
            self,
            members=self.members[:rounds],
            weights=self.weights[:rounds],
            covers=self.covers[:rounds],
        )

    def after(self, old: EstimatorModel) -> Self:
        """The members of the model whose training is continued, and then these."""
        return replace(
            self,
            members=(*old.members, *self.members),
            weights=np.append(old.weights, self.weights),
            covers=np.append(old.covers, self.covers),
        )

    def save(self, path: str | os.PathLike[str]) -> NoReturn:
        """Raise TypeError: a model file holds trees, and the members are Python objects."""
        raise InputTypeError(
            f"{os.fspath(path)!r} was not written: model files hold trees of the engine, but the "
            f"learners of this model are Python objects ({self._member_names()}). Use joblib.dump, "
            "or train with estimator=None."
        )

    def verify_monotone(self, features: object = None, *, n_jobs: int | None = None) -> NoReturn:
        """Raise TypeError: proofs need the splits of engine trees."""
        raise InputTypeError(
            "verify_monotone reads trees of the engine, but the learners of this model are Python "
            f"objects ({self._member_names()}). Train with estimator=None."
        )

    def __repr__(self) -> str:
        columns = self.schema.n_features
        plural = "" if columns == 1 else "s"
        return (
            f"EstimatorModel({self.kind}, {columns} feature{plural}, "
            f"{self.n_rounds} x {self._member_names()})"
        )

    def _weighted_votes(self, table: Any) -> Iterator[Floats]:
        for weight, votes in zip(self.weights, self._votes(table), strict=True):
            yield weight * votes

    def _votes(self, table: Any) -> Iterator[Floats]:
        """Yield the votes of each member before its weight."""
        if hasattr(self.members, "votes"):  # decision trees, which read a table only once
            yield from self.members.votes(table, self.votes, self.covers)
            return
        for member, cover in zip(self.members, self.covers, strict=True):
            yield self.votes.from_member(member, table, cover)

    def _combined(self, columns: Floats, n_threads: int) -> Floats:
        """The raw scores from the predictions of the first members."""
        weights = self.weights[: columns.shape[1]]
        return combine_columns(self.combine, columns, weights, n_threads)[:, np.newaxis]

    def _member_names(self) -> str:
        return listing(dict.fromkeys(map(member_name, self.members))) or "no learner"


def _finite_numbers(member: Any, X: Any) -> Floats:
    predicted = member_values(member, X)
    if not np.isfinite(predicted).all():
        raise ValueError(
            f"{member_name(member)} predicts {predicted[~np.isfinite(predicted)][0]} for some "
            "rows, but AdaBoost.R2 needs finite numbers. Use another learner, or look at X and y."
        )
    return predicted
