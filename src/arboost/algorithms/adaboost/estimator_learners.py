"""Learners that are estimators of scikit-learn's kind: how a fit gets them.

A fit asks `MemberLearners` for one learner after the other, as it asks `TreeLearners` for trees.
What it leaves is a `MemberModel`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from arboost.algorithms.adaboost.estimator_model import Ballot
from arboost.algorithms.adaboost.schemes import Votes
from arboost.algorithms.members.answers import member_name
from arboost.algorithms.members.arguments import set_random_states, weight_name
from arboost.algorithms.members.tables import take_rows
from arboost.backend import core
from arboost.losses.base import Floats, Target

__all__ = ["MemberLearners", "MemberSet", "check_learner", "cover_of"]


@dataclass(frozen=True)
class MemberSet:
    """Rows that members learn from or are rated on.

    Attributes
    ----------
    name : str
        What results call them.
    X : table
        As `member_table` returns it, with the columns of the fit.
    target : Target
        Classes as 0 .. K-1.
    start : float64 array, or None
        What a model says of them whose training goes on: scores of shape (n_rows, n_outputs), or
        for a median a column for each of its members.
    """

    name: str
    X: Any
    target: Target
    start: Floats | None = None


class MemberLearners:
    """Clones of an estimator, each trained on rows as they weigh by then.

    Parameters
    ----------
    estimator : estimator
        It is cloned and never fitted itself.
    data : MemberSet
    evaluations : sequence of MemberSet
    ballot : Ballot
    seed : int
        All parameters of a clone that are called ``random_state``, nested ones too, are set from
        this and from its number.
    """

    def __init__(
        self,
        estimator: Any,
        data: MemberSet,
        evaluations: Sequence[MemberSet],
        ballot: Ballot,
        *,
        seed: int,
    ) -> None:
        self.n_rows = len(data.target.y)
        self._estimator = estimator
        self._data = data
        self._evaluations = tuple(evaluations)
        self._ballot = ballot
        self._seed = seed
        y = data.target.y
        self._y = y if ballot.classes is None else ballot.labels[y.astype(np.intp)]
        self._weight_name = weight_name(estimator)
        # A learner with penalties tells weights from their multiples: the first one is to see
        # exactly the weights that the user gave.
        weight = data.target.weight
        self._scale = 1.0 if weight is None else float(weight.mean())
        self._cover = cover_of(data.target)
        self._last: Any = None
        self._kept: list[tuple[Any, float]] = []

    def learn(self, weight: Floats | None, sample: core.Sample | None, number: int) -> None:
        """Train one more clone, on all rows by their weights, or on those that were drawn."""
        self._last = clone(self._estimator)
        set_random_states(self._last, self._seed, number)
        if sample is not None:
            self._learn_drawn(sample)
        elif weight is None:
            self._last.fit(self._data.X, self._y)
        else:
            # A new array: weights change from round to round, and a learner may keep what it gets.
            weights = {str(self._weight_name): weight * self._scale}
            self._last.fit(self._data.X, self._y, **weights)

    def votes(self, part: int | None = None) -> Floats:
        """Return what the last clone says of the training rows, or of an evaluation set."""
        rows = self._data if part is None else self._evaluations[part]
        return self._ballot.votes(self._last, rows.X, self._cover)

    def keep(self, factor: float) -> None:
        """Settle that the last clone counts, this many times."""
        self._kept.append((self._last, factor))

    def drop(self) -> None:
        """Forget the last clone."""
        self._last = None

    def kept_votes(self, index: int, rows: NDArray[np.uint32]) -> Floats:
        """Return what a clone that was kept adds to the scores of some training rows."""
        member, factor = self._kept[index]
        X = take_rows(self._data.X, rows)
        return factor * self._ballot.votes(member, X, self._cover)

    def fitted(self, n_learners: int) -> tuple[Any, ...]:
        """Return the first clones that were kept."""
        return tuple(member for member, _ in self._kept[:n_learners])

    def state(self) -> NoReturn:
        """Raise TypeError: a state is arrays, and estimators are none."""
        raise TypeError(_STATE_MESSAGE.format(name=member_name(self._estimator)))

    def restore(self, state: Mapping[str, NDArray[Any]]) -> NoReturn:
        """Raise TypeError, for the same reason."""
        raise TypeError(_STATE_MESSAGE.format(name=member_name(self._estimator)))

    def digests(self) -> NoReturn:
        """Raise TypeError: fingerprints are those of a state."""
        raise TypeError(_STATE_MESSAGE.format(name=member_name(self._estimator)))

    def _learn_drawn(self, sample: core.Sample) -> None:
        """Train the last clone on drawn rows, each as often as it was drawn."""
        rows, counts = sample.positions().astype(np.intp), sample.weights().astype(np.intp)
        if len(counts):  # none where each was drawn once
            rows = np.repeat(rows, counts)
        y = self._y[rows]
        if self._ballot.classes is not None and (y == y[0]).all():
            # Trees learn a constant from rows of one class; many other classifiers refuse them.
            self._last = DummyClassifier(strategy="most_frequent")
        self._last.fit(take_rows(self._data.X, rows), y)


def cover_of(target: Target) -> float:
    """Return the weight of all rows that learners see, in the units of the user's weights."""
    n_rows = float(len(target.y))
    return n_rows if target.weight is None else n_rows * float(target.weight.mean())


_STATE_MESSAGE = (
    "a fit of {name} has no checkpoint: its learners are Python objects. Leave out checkpoint."
)


def check_learner(estimator: Any, ballot: Ballot, *, resample: bool) -> None:
    """Raise ValueError where an estimator cannot do what a fit will ask of it."""
    name = member_name(estimator)
    if ballot.asks_probabilities and not hasattr(estimator, "predict_proba"):
        assert isinstance(ballot.scheme, Votes)
        raise ValueError(
            f'algorithm="{ballot.scheme.algorithm}" needs class probabilities, but {name} has no '
            'predict_proba. Use algorithm="discrete", or a learner with predict_proba.'
        )
    if not resample and weight_name(estimator) is None:
        raise ValueError(
            f"{name} doesn't support sample_weight: its fit has no such argument, but boosting by "
            "weights needs it. Use resample=True, which draws rows by their weights instead."
        )
