"""Outputs of a bagging ensemble: the member predictions that are averaged, and their scores.

classification   probabilities, or one-hot predicted classes   (n_rows, n_classes)
regression       predictions                                   (n_rows, n_targets)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score

from arboost.algorithms.members.answers import (
    class_choice,
    class_shares,
    member_name,
    predicted_numbers,
)
from arboost.data.scipy_sparse import is_sparse
from arboost.data.target import Task, codes_of, encode_labels, numbers_of, target
from arboost.losses.base import Floats
from arboost.training.inputs import warn_one_class

__all__ = ["BaggingOutputs", "class_decision", "read_target"]

_TWO_CLASSES = 2
_TABLE_DIMENSIONS = 2
_FEWEST_FOR_R2 = 2


@dataclass(frozen=True, eq=False)
class BaggingOutputs:
    """Columns of the averaged predictions.

    Attributes
    ----------
    classes : array of shape (n_classes,), or None
        Labels, sorted; None for regression.
    n_targets : int
    hard : bool
        Whether the classes of members are averaged even where they have probabilities.
    """

    classes: NDArray[Any] | None
    n_targets: int = 1
    hard: bool = False

    @property
    def n_columns(self) -> int:
        """Number of columns of the averaged predictions."""
        return self.n_targets if self.classes is None else len(self.classes)

    def of_member(self, member: Any, X: Any, arguments: Mapping[str, Any]) -> Floats:
        """Return the predictions of one member, shape (n_rows, n_columns)."""
        if self.classes is None:
            return predicted_numbers(member, X, self.n_targets, **arguments)
        if hasattr(member, "predict_proba") and not self.hard:
            otherwise = "a learner without predict_proba, for a hard vote"
            return class_shares(member, X, self.classes, otherwise, **arguments)
        return class_choice(member, X, self.classes, **arguments)

    def shaped(self, means: Floats) -> Floats:
        """Return averaged predictions in the shape that users get."""
        is_one_target = self.classes is None and self.n_targets == 1
        return means[:, 0] if is_one_target else means

    def score(
        self,
        y: NDArray[Any],
        means: Floats,
        counted: NDArray[np.bool_],
        weight: Floats | None,
    ) -> float:
        """Return the accuracy or R^2 of averaged predictions; NaN where it is undefined.

        Only rows of the mask ``counted`` and of nonzero weight count.
        """
        if weight is not None:
            counted = counted & (weight > 0.0)
            weight = weight[counted]
        y, means = y[counted], means[counted]
        if len(y) < (_FEWEST_FOR_R2 if self.classes is None else 1):
            return float("nan")
        if self.classes is None:
            return float(r2_score(y, self.shaped(means), sample_weight=weight))
        predicted = self.classes.take(means.argmax(axis=1))
        return float(accuracy_score(y, predicted, sample_weight=weight))


def read_target(
    kind: str, y: object, n_rows: int, old: BaggingOutputs | None, *, hard: bool = False
) -> tuple[NDArray[Any], BaggingOutputs]:
    """Return y in the form that members get, and the outputs of the ensemble.

    Parameters
    ----------
    kind : {"classifier", "regressor"}
    y : array of shape (n_rows,), or for regression (n_rows, n_targets)
    n_rows : int
    old : BaggingOutputs or None
        Outputs of the members that a warm start keeps.
    hard : bool
        Whether members vote by their classes.
    """
    if kind == "classifier":
        labels = target(y, n_rows)
        if old is None or old.classes is None:
            classes, codes = encode_labels(labels)
        else:
            classes = old.classes
            codes = codes_of(labels, classes, "y", "the earlier fit")
        warn_one_class(y, [Task(kind, codes, classes)])
        return classes[codes.astype(np.intp)], BaggingOutputs(classes, hard=hard)
    given = np.asarray(None if is_sparse(y) else y)  # target() refuses a sparse y
    if given.ndim == _TABLE_DIMENSIONS and given.shape[1] > 1:
        values = np.column_stack([numbers_of(target(column, n_rows)) for column in given.T])
    else:
        values = numbers_of(target(y, n_rows))
    n_targets = 1 if values.ndim == 1 else values.shape[1]
    if old is not None and old.n_targets != n_targets:
        raise ValueError(
            f"y has {n_targets} target(s), but the members that are kept were trained on "
            f"{old.n_targets}. Pass as many, or use warm_start=False to start anew."
        )
    return values, BaggingOutputs(None, n_targets)


def class_decision(
    member: Any, X: Any, arguments: Mapping[str, Any], classes: NDArray[Any]
) -> Floats:
    """Return the decision function of a member, with all classes.

    A class that the member was not fitted on gets the smallest of the row's values.
    """
    known = np.asarray(getattr(member, "classes_", classes))
    if len(known) == 1 < len(classes):  # a single class has no decision function
        n_rows = X.shape[0]
        return np.zeros(n_rows if len(classes) == _TWO_CLASSES else (n_rows, len(classes)))
    values = np.asarray(member.decision_function(X, **arguments), np.float64)
    if len(known) == len(classes):
        return values
    if len(known) == _TWO_CLASSES:
        values = np.column_stack([-values, values])
    if values.shape != (len(values), len(known)):
        raise ValueError(
            f"a member ({member_name(member)}) was fitted on {len(known)} of the {len(classes)} "
            f"classes, and its decision function of shape {values.shape} does not have one column "
            "per class. Use predict_proba, or more rows for each member."
        )
    decision = np.repeat(values.min(axis=1, keepdims=True), len(classes), axis=1)
    decision[:, np.searchsorted(classes, known)] = values
    return decision
