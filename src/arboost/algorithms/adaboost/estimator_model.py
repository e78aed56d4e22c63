"""A fitted ensemble whose members are estimators of scikit-learn's kind, and how it asks them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from arboost.algorithms.adaboost.schemes import Amounts, Votes
from arboost.algorithms.members.answers import (
    class_choice,
    class_shares,
    member_name,
    predicted_numbers,
)
from arboost.algorithms.members.tables import member_table
from arboost.backend import checked_threads, core
from arboost.data import messages
from arboost.data.schema import Schema
from arboost.losses.base import Floats
from arboost.model.outputs import Probabilities
from arboost.model.predict import predictions, probabilities

__all__ = ["Ballot", "MemberModel"]

_TWO_CLASSES = 2


@dataclass(frozen=True)
class Ballot:
    """How the answers of a member become votes.

    Attributes
    ----------
    scheme : Votes or Amounts
    classes : array of shape (n_classes,), or None for numbers
        Labels, sorted, which members know by themselves and not by number.
    """

    scheme: Votes | Amounts
    classes: NDArray[Any] | None = None

    @property
    def labels(self) -> NDArray[Any]:
        """The classes; only classifiers ask."""
        assert self.classes is not None
        return self.classes

    @property
    def asks_probabilities(self) -> bool:
        """Whether votes come from class probabilities."""
        return isinstance(self.scheme, Votes) and self.scheme.algorithm != "discrete"

    def votes(self, member: Any, X: Any, cover: float) -> Floats:
        """Return what a member says of rows: votes before its weight, or predicted numbers.

        Parameters
        ----------
        member : fitted estimator
        X : table of shape (n_rows, ...)
        cover : float
            Weight of all rows that it learnt from.

        Returns
        -------
        float64 array of shape (n_rows, n_outputs)
        """
        if not isinstance(self.scheme, Votes):
            return _finite_numbers(member, X)
        if self.asks_probabilities:
            outputs = class_shares(member, X, self.labels, 'algorithm="discrete"')
        else:
            outputs = class_choice(member, X, self.labels)
        if len(self.labels) == _TWO_CLASSES:
            outputs = outputs[:, 1:] - outputs[:, :1]
        return self.scheme.unit(outputs, np.full(len(outputs), cover))


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MemberModel:
    """A fitted ensemble of estimators; `n_jobs` is for what they leave to do, and they have theirs.

    It pickles as well as its members do; `arboost.load` knows trees only.

    Attributes
    ----------
    members : tuple of estimators
    weights : float64 array of shape (n_members,)
        What each counts.
    covers : float64 array of shape (n_members,)
        Weight of the rows that each was trained on.
    ballot : Ballot
    schema : Schema
        Names and number of the columns.
    link : str
        One of those in ``links.py``.
    params : dict
        Parameters of the fit that can change the model.
    combine : {"sum", "median"}
        Whether raw scores are the sum of weighted votes, or the weighted median of predictions.
    """

    members: tuple[Any, ...]
    weights: Floats
    covers: Floats
    ballot: Ballot
    schema: Schema
    link: str
    params: dict[str, Any]
    combine: str = "sum"
    targets: tuple[int, ...] = ()  # members have one

    @property
    def classes(self) -> NDArray[Any] | None:
        """Labels in the order of the probabilities; None for regression."""
        return self.ballot.classes

    @property
    def kind(self) -> str:
        """What it predicts: "classifier" or "regressor"."""
        return "regressor" if self.classes is None else "classifier"

    @property
    def n_outputs(self) -> int:
        """Raw scores of a row."""
        several = self.classes is not None and len(self.classes) > _TWO_CLASSES
        return len(self.ballot.labels) if several else 1

    @property
    def n_rounds(self) -> int:
        """Number of boosting rounds."""
        return len(self.members)

    def predict(self, X: object, *, n_jobs: int | None = None) -> NDArray[Any]:
        """Return the values or labels of the rows of X, shape (n_rows,)."""
        return predictions(self, self.predict_raw(X, n_jobs=n_jobs))

    def predict_proba(self, X: object, *, n_jobs: int | None = None) -> Probabilities:
        """Return the probabilities of the classes, shape (n_rows, n_classes)."""
        return probabilities(self, self.predict_raw(X, n_jobs=n_jobs))

    def predict_raw(self, X: object, *, n_jobs: int | None = None) -> Floats:
        """Return the raw scores, before the link, shape (n_rows, n_outputs)."""
        n_threads = checked_threads(n_jobs)
        table = member_table(X, self.schema).X
        if self.combine == "median":
            return _median(self.columns(table), self.weights, n_threads)
        scores = np.zeros((table.shape[0], self.n_outputs))
        for votes in self._weighted_votes(table):
            scores += votes
        return scores

    def staged_raw(self, X: object, *, n_jobs: int | None = None) -> Iterator[Floats]:
        """Yield the raw scores after each round, each in an array of its own."""
        n_threads = checked_threads(n_jobs)
        table = member_table(X, self.schema).X
        if self.combine == "median":
            columns = self.columns(table)
            for rounds in range(1, self.n_rounds + 1):
                yield _median(columns[:, :rounds], self.weights[:rounds], n_threads)
            return
        scores = np.zeros((table.shape[0], self.n_outputs))
        for votes in self._weighted_votes(table):
            scores += votes
            yield scores.copy()

    def staged_predict(self, X: object, *, n_jobs: int | None = None) -> Iterator[NDArray[Any]]:
        """Yield what `predict` would return after each round."""
        return (predictions(self, raw) for raw in self.staged_raw(X, n_jobs=n_jobs))

    def staged_predict_proba(
        self, X: object, *, n_jobs: int | None = None
    ) -> Iterator[Probabilities]:
        """Yield what `predict_proba` would return after each round."""
        return (probabilities(self, raw) for raw in self.staged_raw(X, n_jobs=n_jobs))

    def columns(self, table: Any) -> Floats:
        """Return what each member of a median predicts, shape (n_rows, n_members).

        `table` is one that `member_table` returned.
        """
        values = np.empty((table.shape[0], self.n_rounds))
        for i, (member, cover) in enumerate(zip(self.members, self.covers, strict=True)):
            values[:, i] = self.ballot.votes(member, table, cover)[:, 0]
        return values

    def truncated(self, rounds: int) -> Self:
        """Return the model as it was after some rounds."""
        if not 0 <= rounds <= self.n_rounds:
            raise ValueError(
                f"rounds={rounds} is not allowed: the model has {self.n_rounds} rounds. "
                f"Use a number from 0 to {self.n_rounds}."
            )
        return replace(
            self,
            members=self.members[:rounds],
            weights=self.weights[:rounds],
            covers=self.covers[:rounds],
        )

    def save(self, path: str | os.PathLike[str]) -> NoReturn:
        """Raise TypeError: a model file holds trees, and the members are Python objects."""
        raise TypeError(
            f"{os.fspath(path)!r} was not written: model files hold trees of the engine, but the "
            f"learners of this model are Python objects ({self._member_names()}). Use joblib.dump, "
            "or train with estimator=None."
        )

    def verify_monotone(self, features: object = None, *, n_jobs: int | None = None) -> NoReturn:
        """Raise TypeError: what estimators do inside is not known."""
        raise TypeError(
            "verify_monotone reads trees of the engine, but the learners of this model are Python "
            f"objects ({self._member_names()}). Train with estimator=None."
        )

    def __repr__(self) -> str:
        columns = self.schema.n_features
        plural = "" if columns == 1 else "s"
        return (
            f"MemberModel({self.kind}, {columns} feature{plural}, "
            f"{self.n_rounds} x {self._member_names()})"
        )

    def _weighted_votes(self, table: Any) -> Iterator[Floats]:
        for member, weight, cover in zip(self.members, self.weights, self.covers, strict=True):
            yield weight * self.ballot.votes(member, table, cover)

    def _member_names(self) -> str:
        return messages.listing(dict.fromkeys(map(member_name, self.members))) or "no learner"


def _median(columns: Floats, weights: Floats, n_threads: int) -> Floats:
    values = np.ascontiguousarray(columns)
    median: Floats = core.weighted_median(values, weights, n_threads)
    return median[:, np.newaxis]


def _finite_numbers(member: Any, X: Any) -> Floats:
    predicted = predicted_numbers(member, X)
    if not np.isfinite(predicted).all():
        raise ValueError(
            f"{member_name(member)} predicts {predicted[~np.isfinite(predicted)][0]} for some "
            "rows, but the median needs finite numbers. Use another learner, or look at X and y."
        )
    return predicted
