"""Any y -> classification or regression, for callers that leave the choice to the target."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["KINDS", "kind_of"]

KINDS = {"classification": "classifier", "regression": "regressor"}

_MOST_CLASSES = 20  # distinct whole numbers; more of them are amounts
_LEAST_SHARE = 5  # rows of a class, on average; fewer are amounts of a short table
_TWO_CLASSES = 2


def kind_of(y: NDArray[Any], task: object = None) -> str:
    """Return the kind of the estimators for a target: "classifier" or "regressor".

    Labels of strings and truth values are classes. Whole numbers are classes where there are two of
    them, or up to 20 with five rows each on average; all other numbers are amounts.

    Parameters
    ----------
    y : array of shape (n_rows,)
    task : {"classification", "regression"} or None
        The user's choice; None for the choice by y.

    Examples
    --------
    >>> kind_of(np.array([0, 1, 1, 0])), kind_of(np.array([1.5, 2.0])), kind_of(np.arange(100))
    ('classifier', 'regressor', 'regressor')
    """
    if task is not None:
        if not isinstance(task, str):
            raise TypeError(_message(task))
        if task not in KINDS:
            raise ValueError(_message(task))
        return KINDS[task]
    if y.dtype.kind not in "iuf":
        is_numeric = y.dtype.kind == "O" and not any(isinstance(one, str | bool) for one in y[:100])
        return "regressor" if is_numeric else "classifier"
    if y.dtype.kind == "f" and not np.array_equal(y, np.floor(y)):
        return "regressor"
    n_values = len(np.unique(y))
    few = n_values <= _TWO_CLASSES or len(y) >= _LEAST_SHARE * n_values
    return "classifier" if n_values <= _MOST_CLASSES and few else "regressor"


def _message(task: object) -> str:
    return (
        f"task={task!r} ({type(task).__name__}) is not allowed: task must be "
        f"{' or '.join(map(repr, KINDS))}, or None. Use task=None to take it from y."
    )
