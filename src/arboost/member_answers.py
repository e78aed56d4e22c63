"""What estimators say of rows, checked: class probabilities, votes for a class, numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.data.messages import listing
from arboost.losses.base import Floats

__all__ = [
    "check_shape",
    "class_choice",
    "class_places",
    "class_shares",
    "member_name",
    "n_rows_of",
    "predicted_numbers",
]

_NO_PROBABILITY = 1e-3  # by so much probabilities may miss 0, 1, and their sum of 1


def member_name(member: Any) -> str:
    """Return what messages call an estimator."""
    return type(member).__name__


def n_rows_of(X: Any) -> int:
    """Return how many rows a table has, or a list of texts."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def class_choice(member: Any, X: Any, labels: NDArray[Any], **params: Any) -> Floats:
    """Return 1 for the class that a member predicts, and 0 for all others.

    Parameters
    ----------
    member : fitted estimator
    X : table of shape (n_rows, ...)
    labels : array of shape (n_classes,)
        All classes, sorted; a member may have seen fewer.
    **params
        More arguments of its ``predict``.

    Returns
    -------
    float64 array of shape (n_rows, n_classes)
    """
    predicted = np.asarray(member.predict(X, **params))
    check_shape(member, predicted, n_rows_of(X))
    chosen = np.zeros((len(predicted), len(labels)))
    chosen[np.arange(len(predicted)), class_places(member, predicted.ravel(), labels)] = 1.0
    return chosen


def class_shares(
    member: Any, X: Any, labels: NDArray[Any], otherwise: str, **params: Any
) -> Floats:
    """Return the probabilities of all classes; 0 for those that a member has not seen.

    The arguments are those of `class_choice`; ``otherwise`` is what else messages tell to use than
    a learner with probabilities.
    """
    given = np.asarray(member.predict_proba(X, **params), np.float64)
    known = np.asarray(getattr(member, "classes_", labels))
    if given.shape != (X.shape[0], len(known)):
        raise ValueError(
            f"{member_name(member)}.predict_proba returned an array of shape {given.shape} for "
            f"{X.shape[0]} rows and {len(known)} classes. It must have a row for each row of "
            "X, and a column for each of classes_."
        )
    # NaN is in no range.
    in_range = (given >= -_NO_PROBABILITY) & (given <= 1.0 + _NO_PROBABILITY)
    if not in_range.all() or (np.abs(given.sum(axis=1) - 1.0) > _NO_PROBABILITY).any():
        raise ValueError(
            f"{member_name(member)}.predict_proba returned rows that are no probabilities: "
            "each must be from 0 to 1, and their sum 1. Use a learner with probabilities, or "
            f"{otherwise}."
        )
    shares = np.zeros((len(given), len(labels)))
    shares[:, class_places(member, known, labels)] = given.clip(0.0, 1.0)
    return shares


def predicted_numbers(member: Any, X: Any, n_targets: int = 1, **params: Any) -> Floats:
    """Return what a regressor predicts, float64 of shape (n_rows, n_targets)."""
    predicted = np.asarray(member.predict(X, **params), np.float64)
    check_shape(member, predicted, n_rows_of(X), n_targets)
    return predicted.reshape(-1, n_targets)


def class_places(member: Any, given: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """Return the numbers of classes by their labels; all classes are sorted."""
    places: NDArray[np.intp] = np.searchsorted(labels, given).clip(max=len(labels) - 1)
    strange = given[labels[places] != given]
    if len(strange):
        raise ValueError(
            f"{member_name(member)} answers with the label {strange.tolist()[0]!r}, but y has "
            f"{listing(map(repr, labels.tolist()))}. It must predict labels that it was trained "
            "on: fit it on these, or leave it out."
        )
    return places


def check_shape(member: Any, given: NDArray[Any], n_rows: int, n_targets: int = 1) -> None:
    """Raise ValueError unless there are as many predictions as there should be."""
    if given.shape == (n_rows, n_targets) or (n_targets == 1 and given.shape == (n_rows,)):
        return
    answers = "one answer" if n_targets == 1 else f"{n_targets} answers"
    raise ValueError(
        f"{member_name(member)}.predict returned an array of shape {given.shape} for {n_rows} "
        f"rows. It must return {answers} for each row."
    )
