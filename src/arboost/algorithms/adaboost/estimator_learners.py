"""Learners of AdaBoost that are clones of an estimator of scikit-learn's kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.dummy import DummyClassifier

from arboost.algorithms.adaboost.estimator_model import MemberVotes
from arboost.algorithms.adaboost.schemes import ClassScheme
from arboost.algorithms.members.answers import member_name
from arboost.algorithms.members.arguments import set_random_states, weight_name
from arboost.algorithms.members.tables import MemberTable, take_rows
from arboost.backend import core
from arboost.losses.base import Floats, Target
from arboost.training.inputs import Rows

__all__ = ["EstimatorLearners", "check_learner", "cover_of", "refuse_state", "table_of"]


class EstimatorLearners:
    """Clones of an estimator, each fitted with the current row weights.

    Parameters
    ----------
    estimator : estimator
        Its clones are fitted, and the estimator itself is not.
    data : Rows of a MemberTable
        Training rows.
    evaluations : sequence of Rows
    member_votes : MemberVotes
    seed : int
        Every parameter of a clone named ``random_state``, nested ones too, is set from this seed
        and the number of the clone.
    """

    def __init__(
        self,
        estimator: Any,
        data: Rows[MemberTable],
        evaluations: Sequence[Rows[MemberTable]],
        member_votes: MemberVotes,
        *,
        seed: int,
    ) -> None:
        self.n_rows = len(data.target.y)
        self._estimator = estimator
        self._X = table_of(data)
        self._evaluations = tuple(map(table_of, evaluations))
        self._member_votes = member_votes
        self._seed = seed
        y, classes = data.target.y, member_votes.classes
        self._y = y if classes is None else classes[y.astype(np.intp)]
        self._weight_name = weight_name(estimator)
        # The fit of a learner with penalties depends on the scale of the weights: the first
        # learner must see exactly the weights that the user gave.
        weight = data.target.weight
        self._scale = 1.0 if weight is None else float(weight.mean())
        self._cover = cover_of(data.target)
        self._last: Any = None
        self._kept: list[tuple[Any, float]] = []

    def learn(self, weight: Floats | None, sample: core.Sample | None, number: int) -> None:
        """Fit one more clone, on all rows with their weights, or on the drawn rows."""
        self._last = clone(self._estimator)
        set_random_states(self._last, self._seed, number)
        if sample is not None:
            self._learn_drawn(sample)
        elif weight is None:
            self._last.fit(self._X, self._y)
        else:
            # A new array: weights change from round to round, and a learner may keep its array.
            weights = {str(self._weight_name): weight * self._scale}
            self._last.fit(self._X, self._y, **weights)

    def votes(self, evaluation: int | None = None) -> Floats:
        """Return the votes of the last clone for the training rows, or for an evaluation set."""
        X = self._X if evaluation is None else self._evaluations[evaluation]
        return self._member_votes.of(self._last, X, self._cover)

    def keep(self, factor: float) -> None:
        """Keep the last clone, its votes multiplied by a factor."""
        self._kept.append((self._last, factor))

    def drop(self) -> None:
        """Drop the last clone."""
        self._last = None

    def kept_votes(self, index: int, rows: NDArray[np.uint32]) -> Floats:
        """Return the votes of a kept clone, times its factor, for some training rows."""
        member, factor = self._kept[index]
        return factor * self._member_votes.of(member, take_rows(self._X, rows), self._cover)

    def fitted(self, n_learners: int) -> tuple[Any, ...]:
        """Return the first kept clones."""
        return tuple(member for member, _ in self._kept[:n_learners])

    def state(self) -> NoReturn:
        """Raise TypeError: a state holds arrays, and estimators are Python objects."""
        refuse_state(self._estimator)

    def restore(self, state: Mapping[str, NDArray[Any]]) -> NoReturn:
        """Raise TypeError: there is no state of estimators."""
        refuse_state(self._estimator)

    def digests(self) -> NoReturn:
        """Raise TypeError: digests are for a state, and estimators have none."""
        refuse_state(self._estimator)

    def _learn_drawn(self, sample: core.Sample) -> None:
        """Fit the last clone on drawn rows, each repeated by its count."""
        rows, counts = sample.positions().astype(np.intp), sample.weights().astype(np.intp)
        if len(counts):  # empty where each row was drawn once
            rows = np.repeat(rows, counts)
        y = self._y[rows]
        if self._member_votes.classes is not None and (y == y[0]).all():
            # Trees learn a constant from rows of one class; many other classifiers refuse them.
            self._last = DummyClassifier(strategy="most_frequent")
        self._last.fit(take_rows(self._X, rows), y)


def table_of(rows: Rows[MemberTable]) -> Any:
    """Return X of the rows, as estimators read it."""
    return rows.source.X if rows.index is None else take_rows(rows.source.X, rows.index)


def cover_of(target: Target) -> float:
    """Return the weight of all training rows, in the units of the user's weights."""
    n_rows = float(len(target.y))
    return n_rows if target.weight is None else n_rows * float(target.weight.mean())


def refuse_state(estimator: Any) -> NoReturn:
    """Raise TypeError: a fit of estimators has no checkpoint."""
    raise TypeError(
        f"a fit of {member_name(estimator)} has no checkpoint: its learners are Python objects. "
        "Leave out checkpoint."
    )


def check_learner(estimator: Any, member_votes: MemberVotes, *, resample: bool) -> None:
    """Raise ValueError where an estimator lacks class probabilities or weights that a fit needs."""
    name = member_name(estimator)
    scheme = member_votes.scheme
    if member_votes.needs_probabilities and not hasattr(estimator, "predict_proba"):
        assert isinstance(scheme, ClassScheme)
        raise ValueError(
            f'algorithm="{scheme.algorithm}" needs class probabilities, but {name} has no '
            'predict_proba. Use algorithm="discrete", or a learner with predict_proba.'
        )
    if not resample and weight_name(estimator) is None:
        raise ValueError(
            f"{name} doesn't support sample_weight: its fit has no such argument, but boosting by "
            "weights needs it. Use resample=True, which draws rows by their weights instead."
        )
