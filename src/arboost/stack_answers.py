"""What members say of rows: their answers in one order of classes, whatever classes they have seen.

Members of a classifier are fitted on the numbers of the classes, 0 .. K-1. Those that were fitted
before know the labels themselves, and a member that was fitted on few rows may lack a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator

from arboost.data.messages import listing
from arboost.member_answers import check_shape, class_places, member_name, n_rows_of

__all__ = ["Classes", "answers", "class_votes", "find_method"]

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
