"""What estimators say of rows, checked: class probabilities, votes for a class, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from arboost.data.messages import listing
from arboost.losses.base import Floats

__all__ = [
    "Classes",
    "answers",
    "check_shape",
    "class_choice",
    "class_places",
    "class_shares",
    "class_votes",
    "find_method",
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


# Labels, sorted; of several targets those of each; None for numbers.
Classes = NDArray[Any] | list[NDArray[Any]] | None

_METHODS = ("predict_proba", "decision_function", "predict")


def find_method(name: str, member: Any, wanted: str, advice: str) -> str:
    """Return the method that a member is asked by.

    Parameters
    ----------
    name : str
        The member's own.
    member : estimator
    wanted : str
        A method, or "auto" for the first that it has.
    advice : str
        What messages tell to use instead.
    """
    asked = _METHODS if wanted == "auto" else (wanted,)
    for method in asked:
        if callable(getattr(member, method, None)):
            return method
    raise ValueError(
        f"the member {name!r} ({member_name(member)}) has no method {' or '.join(asked)}. Use "
        f"{advice}, or another estimator."
    )


def answers(
    member: Any, method: str, X: Any, classes: Classes, *, by_label: bool = False
) -> NDArray[Any] | list[NDArray[Any]]:
    """Return what a member says of the rows of X.

    Parameters
    ----------
    member : fitted estimator
    method : {"predict_proba", "decision_function", "predict"}
    X : table of shape (n_rows, ...)
    classes : Classes
    by_label : bool
        Whether the member was fitted on labels instead of the numbers of the classes, as one in a
        FrozenEstimator always was.

    Returns
    -------
    array of shape (n_rows,) or (n_rows, n_columns), or a list of them
        A list is that of several targets. Classes that the member has not seen have the
        probability 0.
    """
    given = getattr(member, method)(X)
    if classes is None:
        return np.asarray(given)
    by_label = by_label or isinstance(member, FrozenEstimator)
    known = getattr(member, "classes_", None)
    if isinstance(classes, list):
        if not isinstance(given, list):
            return np.asarray(given)
        return [
            _in_order(member, method, np.asarray(one), labels, of_target, by_label=by_label)
            for one, labels, of_target in zip(given, known or classes, classes, strict=True)
        ]
    given = np.asarray(given)
    if method != "predict":
        return _in_order(member, method, given, known, classes, by_label=by_label)
    # Numbers can stand for themselves; other labels cannot be learnt from.
    if given.dtype.kind in "OUS" and given.ndim == 1:
        return class_places(member, given, classes)
    return given


def class_votes(member: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the number of the class that a member predicts for each row."""
    predicted = np.asarray(member.predict(X))
    check_shape(member, predicted, n_rows_of(X))
    predicted = predicted.ravel()
    known = np.asarray(getattr(member, "classes_", np.arange(len(classes))))
    by_label = isinstance(member, FrozenEstimator)
    if not by_label and np.isin(known, np.arange(len(classes))).all():
        return predicted.astype(np.intp)
    return class_places(member, predicted, classes)


def _in_order(
    member: Any,
    method: str,
    given: NDArray[Any],
    known: NDArray[Any] | Sequence[Any] | None,
    classes: NDArray[Any],
    *,
    by_label: bool,
) -> NDArray[Any]:
    """Return probabilities or scores with a column for each class."""
    if known is None or len(known) >= len(classes):
        return given
    labels = np.asarray(known)
    numbers = np.arange(len(classes))
    if by_label or not np.isin(labels, numbers).all():
        numbers = class_places(member, labels, classes)
    else:
        numbers = labels.astype(np.intp)
    if method == "decision_function":
        missing = np.delete(classes, numbers)
        raise ValueError(
            f"{member_name(member)} was fitted on rows without the classes "
            f"{listing(map(repr, missing.tolist()))}, so that its decision_function has no scores "
            "for them. Use folds in which every class is there to train on, or "
            'stack_method="predict_proba" where it has probabilities.'
        )
    shares = np.zeros((len(given), len(classes)), given.dtype)
    shares[:, numbers] = given
    return shares
