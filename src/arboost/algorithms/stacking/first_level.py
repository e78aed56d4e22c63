"""The first level of a stack: folds, what members say of rows they have not seen, and its columns.

    rows   0 ............ n
    fold 0 |held|         |
    fold 1      |held|    |
    fold 2           |held|

For each row, the final estimator learns from the answers of members that were not fitted on it.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from arboost.algorithms.members.answers import Classes
from arboost.algorithms.members.tables import narwhals_frame
from arboost.data.messages import listing
from arboost.data.scipy_sparse import is_sparse
from arboost.training import splits
from arboost.training.splits import Split

__all__ = ["by_row", "folds", "held_out_rows", "member_columns", "with_table"]

Answers = NDArray[Any] | list[NDArray[Any]]  # a list of several targets

_TWO_CLASSES = 2
_USUAL_FOLDS = 5
_TABLE_DIMENSIONS = 2


def folds(
    cv: Any, X: Any, y: NDArray[Any], *, is_classifier: bool, groups: object = None
) -> list[Split]:
    """Return pairs of rows to train on and rows to hold out, ascending; no row is in both.

    Parameters
    ----------
    cv : int, splitter, iterable of pairs, or None
    X : table
        Some splitters look at it.
    y : array of shape (n_rows,) or (n_rows, n_targets)
    is_classifier : bool
        Whether a number of folds spreads the classes evenly.
    groups : array of shape (n_rows,), optional
        Group of each row, never divided by a number of folds; for splitters that read groups.
    """
    is_number = cv is None or isinstance(cv, numbers.Integral)
    if groups is not None and is_number:
        found = splits.folds(y, _USUAL_FOLDS if cv is None else cv, groups=groups, name="cv")
    else:
        if groups is not None and not hasattr(cv, "split"):
            raise ValueError(
                "groups are given, but cv lists its rows already. Leave out groups, or pass a "
                "number of folds."
            )
        # A copy: the generator of a splitter that draws is left as it is for the next fit.
        splitter = deepcopy(check_cv(cv, y, classifier=is_classifier))
        pairs = splitter.split(X, y, None if groups is None else np.asarray(groups))
        found = splits.folds(y, list(pairs), name="cv")
    _check_held_out_once(found, len(y))
    return found


def _check_held_out_once(splits: Sequence[Split], n_rows: int) -> None:
    times = np.bincount(np.concatenate([held_out for _, held_out in splits]), minlength=n_rows)
    often = np.flatnonzero(times > 1)
    if len(often):
        raise ValueError(
            f"cv holds out {len(often)} rows more than once, such as {listing(often.tolist(), 3)}, "
            "but the final estimator learns from each row once. Use a splitter that holds out a "
            "row at most once, such as KFold or TimeSeriesSplit."
        )


def held_out_rows(splits: Sequence[Split], n_rows: int) -> NDArray[np.intp] | None:
    """Return the rows that are held out in some fold, ascending; None where all are."""
    rows = np.sort(np.concatenate([held_out for _, held_out in splits])).astype(np.intp)
    return None if len(rows) == n_rows else rows


def by_row(name: str, parts: Sequence[Answers], splits: Sequence[Split]) -> Answers:
    """Return the answers of a member's folds as one, in the order of the rows.

    Parameters
    ----------
    name : str
        The member's.
    parts : sequence of answers
        Of the rows that each fold holds out.
    splits : sequence of Split
    """
    order = np.argsort(np.concatenate([held_out for _, held_out in splits]), kind="stable")
    if isinstance(parts[0], list):
        return [
            _joined(name, [part[target] for part in parts], order)
            for target in range(len(parts[0]))
        ]
    return _joined(name, parts, order)


def _joined(name: str, parts: Sequence[Any], order: NDArray[np.intp]) -> NDArray[Any]:
    shapes = list(dict.fromkeys(part.shape[1:] for part in parts))
    if len(shapes) > 1:
        raise ValueError(
            f"the member {name!r} has answers of the shapes {listing(shapes)} a row in different "
            "folds, but they must be alike. Use folds in which every class is there to train on."
        )
    joined: NDArray[Any] = np.concatenate(parts)[order]
    return joined


def member_columns(answer: Answers, method: str, classes: Classes) -> NDArray[Any]:
    """Return what the final estimator sees of a member, shape (n_rows, n_columns).

    The first column of two probabilities is left out: it is 1 less the other.
    """
    if isinstance(answer, list):
        return np.hstack([one[:, 1:] for one in answer])
    if answer.ndim == 1:
        return answer.reshape(-1, 1)
    is_of_two = isinstance(classes, np.ndarray) and len(classes) == _TWO_CLASSES
    return answer[:, 1:] if is_of_two and method == "predict_proba" else answer


def with_table(columns: Sequence[NDArray[Any]], X: Any, names: Sequence[str]) -> Any:
    """Return columns of members and then those of X.

    Parameters
    ----------
    columns : sequence of arrays of shape (n_rows, n_columns)
    X : table of shape (n_rows, n_features)
    names : sequence of str
        Of the members' columns.

    Returns
    -------
    array of numbers; sparse where X is
        A frame with a column that is no number stays a frame: the final estimator may know what
        to do with categories.
    """
    if is_sparse(X):
        from scipy import sparse

        return sparse.hstack([*columns, X], format=X.format)
    if len(getattr(X, "shape", ())) != _TABLE_DIMENSIONS:
        raise ValueError(
            "passthrough=True puts the columns of X beside those of the members, but X is no table "
            "of rows and columns. Use passthrough=False."
        )
    table = np.asarray(X)
    if table.dtype.kind in "biuf" or not hasattr(X, "columns"):
        return np.hstack([*columns, table])
    named = dict(zip(names, np.hstack(columns).T, strict=True))
    if hasattr(X, "iloc"):  # pandas
        return _with_frame(named, X)
    import narwhals.stable.v2 as nw

    frame = narwhals_frame(X)
    first = nw.from_dict(named, backend=frame.implementation)
    return nw.concat([first, frame], how="horizontal").to_native()


def _with_frame(named: Mapping[str, NDArray[Any]], X: Any) -> Any:
    """Return a pandas frame with columns of members, and then those of X.

    They are put side by side by their places: an index may have a label twice.
    """
    if not all(isinstance(name, str) for name in X.columns):  # an estimator takes names of one kind
        X = X.set_axis([f"x{i}" for i in range(X.shape[1])], axis="columns")
    frame = X.copy(deep=False)
    for place, (name, column) in enumerate(named.items()):
        frame.insert(place, name, column)
    return frame
