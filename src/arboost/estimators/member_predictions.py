"""Checked predictions of members: class probabilities, class votes, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from arboost.errors import listing
from arboost.losses.base import Floats

_PROBABILITY_TOLERANCE = (
    1e-3  # tolerance for probabilities outside [0, 1], and for sums other than 1
)


# Sorted labels; for several targets a list with the labels of each; None for regression.
Classes = NDArray[Any] | list[NDArray[Any]] | None
_METHODS = ("predict_proba", "decision_function", "predict")


def member_name(member: Any) -> str:
    """The name of an estimator in messages."""
    return type(member).__name__


def row_count(X: Any) -> int:
    """The number of rows of a table, or of strings in a list."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def member_one_hot(member: Any, X: Any, labels: NDArray[Any], **params: Any) -> Floats:
    """The predicted classes of a member, one-hot.

    Parameters
    ----------
    member : fitted estimator
    X : table of shape (n_rows, ...)
    labels : array of shape (n_classes,)
        All classes, sorted; a member may have been fitted on fewer.
    **params
        More arguments of the member's ``predict``.

    Returns
    -------
    float64 array of shape (n_rows, n_classes)
    """
    predicted = np.asarray(member.predict(X, **params))
    check_shape(member, predicted, row_count(X))
    chosen = np.zeros((len(predicted), len(labels)))
    chosen[np.arange(len(predicted)), class_indices(member, predicted.ravel(), labels)] = 1.0
    return chosen


def member_probabilities(
    member: Any, X: Any, labels: NDArray[Any], otherwise: str, **params: Any
) -> Floats:
    """The class probabilities of a member; 0 for classes that it was not fitted on.

    The arguments are those of `member_one_hot`; ``otherwise`` is the alternative to a learner with
    probabilities that error messages name.
    """
    predicted = np.asarray(member.predict_proba(X, **params), np.float64)
    known_classes = np.asarray(getattr(member, "classes_", labels))
    if predicted.shape != (X.shape[0], len(known_classes)):
        raise ValueError(
            f"{member_name(member)}.predict_proba returned an array of shape {predicted.shape} for "
            f"{X.shape[0]} rows and {len(known_classes)} classes. It must have one row per row of "
            "X, and one column per entry of classes_."
        )
    # NaN fails both comparisons.
    in_range = (predicted >= -_PROBABILITY_TOLERANCE) & (predicted <= 1.0 + _PROBABILITY_TOLERANCE)
    if not in_range.all() or (np.abs(predicted.sum(axis=1) - 1.0) > _PROBABILITY_TOLERANCE).any():
        raise ValueError(
            f"{member_name(member)}.predict_proba returned rows that are not probabilities: "
            "each must be from 0 to 1, and their sum 1. Use a learner with probabilities, or "
            f"{otherwise}."
        )
    shares = np.zeros((len(predicted), len(labels)))
    shares[:, class_indices(member, known_classes, labels)] = predicted.clip(0.0, 1.0)
    return shares


def member_values(member: Any, X: Any, n_targets: int = 1, **params: Any) -> Floats:
    """The predictions of a regressor, float64 of shape (n_rows, n_targets)."""
    predicted = np.asarray(member.predict(X, **params), np.float64)
    check_shape(member, predicted, row_count(X), n_targets)
    return predicted.reshape(-1, n_targets)


def class_indices(member: Any, values: NDArray[Any], labels: NDArray[Any]) -> NDArray[np.intp]:
    """The indices of labels among all classes, which are sorted."""
    indices: NDArray[np.intp] = np.searchsorted(labels, values).clip(max=len(labels) - 1)
    unknown = values[labels[indices] != values]
    if len(unknown):
        raise ValueError(
            f"{member_name(member)} predicts the label {unknown.tolist()[0]!r}, but y has "
            f"{listing(map(repr, labels.tolist()))}. It must predict labels of y: fit it on them, "
            "or leave it out."
        )
    return indices


def check_shape(member: Any, predicted: NDArray[Any], n_rows: int, n_targets: int = 1) -> None:
    """Raise ValueError unless there is one prediction per row and target."""
    if predicted.shape == (n_rows, n_targets) or (n_targets == 1 and predicted.shape == (n_rows,)):
        return
    expected = "one prediction" if n_targets == 1 else f"{n_targets} predictions"
    raise ValueError(
        f"{member_name(member)}.predict returned an array of shape {predicted.shape} for {n_rows} "
        f"rows. It must return {expected} for each row."
    )


def find_method(name: str, member: Any, requested: str, advice: str) -> str:
    """The prediction method to call on a member.

    Parameters
    ----------
    name : str
        Name of the member in the ensemble.
    member : estimator
    requested : str
        A method, or "auto" for the first of the three that the member has.
    advice : str
        Alternative that the error message names.
    """
    methods = _METHODS if requested == "auto" else (requested,)
    for method in methods:
        if callable(getattr(member, method, None)):
            return method
    raise ValueError(
        f"the member {name!r} ({member_name(member)}) has no method {' or '.join(methods)}. Use "
        f"{advice}, or another estimator."
    )


def predict_member(
    member: Any, method: str, X: Any, classes: Classes, *, by_label: bool = False
) -> NDArray[Any] | list[NDArray[Any]]:
    """The predictions of a member for the rows of X.

    Parameters
    ----------
    member : fitted estimator
    method : {"predict_proba", "decision_function", "predict"}
    X : table of shape (n_rows, ...)
    classes : Classes
    by_label : bool
        Whether the member was fitted on labels instead of class indices, as the estimator in a
        FrozenEstimator always was.

    Returns
    -------
    array of shape (n_rows,) or (n_rows, n_columns), or a list of them
        A list has one entry per target. Classes that the member was not fitted on have the
        probability 0.
    """
    predicted = getattr(member, method)(X)
    if classes is None:
        return np.asarray(predicted)
    by_label = by_label or isinstance(member, FrozenEstimator)
    known_classes = getattr(member, "classes_", None)
    if isinstance(classes, list):
        if not isinstance(predicted, list):
            return np.asarray(predicted)
        return [
            _with_all_classes(
                member, method, np.asarray(values), labels, target_classes, by_label=by_label
            )
            for values, labels, target_classes in zip(
                predicted, known_classes or classes, classes, strict=True
            )
        ]
    predicted = np.asarray(predicted)
    if method != "predict":
        return _with_all_classes(
            member, method, predicted, known_classes, classes, by_label=by_label
        )
    # Numeric labels stay; strings become class indices, which the final estimator can learn from.
    if predicted.dtype.kind in "OUS" and predicted.ndim == 1:
        return class_indices(member, predicted, classes)
    return predicted


def member_classes(member: Any, X: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """The index of the class that a member predicts for each row."""
    predicted = np.asarray(member.predict(X))
    check_shape(member, predicted, row_count(X))
    predicted = predicted.ravel()
    known_classes = np.asarray(getattr(member, "classes_", np.arange(len(classes))))
    by_label = isinstance(member, FrozenEstimator)
    if not by_label and np.isin(known_classes, np.arange(len(classes))).all():
        return predicted.astype(np.intp)
    return class_indices(member, predicted, classes)


def _with_all_classes(
    member: Any,
    method: str,
    predicted: NDArray[Any],
    known_classes: NDArray[Any] | Sequence[Any] | None,
    classes: NDArray[Any],
    *,
    by_label: bool,
) -> NDArray[Any]:
    """Return probabilities or scores with one column per class."""
    if known_classes is None or len(known_classes) >= len(classes):
        return predicted
    labels = np.asarray(known_classes)
    numbers = np.arange(len(classes))
    if by_label or not np.isin(labels, numbers).all():
        numbers = class_indices(member, labels, classes)
    else:
        numbers = labels.astype(np.intp)
    if method == "decision_function":
        missing = np.delete(classes, numbers)
        raise ValueError(
            f"{member_name(member)} was fitted on rows without the classes "
            f"{listing(map(repr, missing.tolist()))}, so its decision_function has no scores for "
            "them. Use folds with every class among the rows to train on, or "
            'stack_method="predict_proba" if the member has it.'
        )
    shares = np.zeros((len(predicted), len(classes)), predicted.dtype)
    shares[:, numbers] = predicted
    return shares
