"""The first level of a stack: folds, out-of-fold predictions of the members, and their columns.

    rows   0 ............ n
    fold 0 |held|         |
    fold 1      |held|    |
    fold 2           |held|

The final estimator is fitted on out-of-fold predictions: those of members that were not fitted on
the row.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils import get_tags

from arboost.algorithms.members.answers import Classes
from arboost.algorithms.members.tables import narwhals_frame
from arboost.data.features.column_names import unique_names
from arboost.data.messages import listing
from arboost.data.scipy_sparse import is_sparse
from arboost.training.splits import Split
from arboost.training.splits import folds as make_folds

__all__ = [
    "check_passthrough",
    "held_out_rows",
    "member_columns",
    "out_of_fold",
    "stacking_folds",
    "with_table",
]

Predictions = NDArray[Any] | list[NDArray[Any]]  # a list has one entry per target

_TWO_CLASSES = 2
_USUAL_FOLDS = 5
_TABLE_DIMENSIONS = 2


def stacking_folds(
    cv: Any, X: Any, y: NDArray[Any], *, is_classifier: bool, groups: object = None
) -> list[Split]:
    """Return pairs of rows to train on and held-out rows, ascending and disjoint.

    Parameters
    ----------
    cv : int, splitter, iterable of pairs, or None
    X : table
        Read by some splitters.
    y : array of shape (n_rows,) or (n_rows, n_targets)
    is_classifier : bool
        Whether a number of folds is stratified by class.
    groups : array of shape (n_rows,), optional
        Group of each row, never divided by a number of folds; for splitters that read groups.
    """
    is_number = cv is None or isinstance(cv, numbers.Integral)
    if groups is not None and is_number:
        found = make_folds(y, _USUAL_FOLDS if cv is None else cv, groups=groups, name="cv")
    else:
        if groups is not None and not hasattr(cv, "split"):
            raise ValueError(
                "groups are given, but cv lists its rows already. Leave out groups, or pass a "
                "number of folds."
            )
        # A copy: the random generator of the user's splitter stays unchanged for the next fit.
        splitter = deepcopy(check_cv(cv, y, classifier=is_classifier))
        pairs = splitter.split(X, y, None if groups is None else np.asarray(groups))
        found = make_folds(y, list(pairs), name="cv")
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
    """Return the rows that are held out in any fold, ascending; None if all rows are."""
    rows = np.sort(np.concatenate([held_out for _, held_out in splits])).astype(np.intp)
    return None if len(rows) == n_rows else rows


def out_of_fold(name: str, parts: Sequence[Predictions], splits: Sequence[Split]) -> Predictions:
    """Return the out-of-fold predictions of a member, in the order of the rows.

    Parameters
    ----------
    name : str
        Name of the member.
    parts : sequence of predictions
        Predictions for the held-out rows of each fold.
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
            f"the predictions of the member {name!r} have different shapes per row in different "
            f"folds: {listing(shapes)}. Use folds with every class among the rows to train on."
        )
    joined: NDArray[Any] = np.concatenate(parts)[order]
    return joined


def member_columns(predictions: Predictions, method: str, classes: Classes) -> NDArray[Any]:
    """Return the columns of a member for the final estimator, shape (n_rows, n_columns).

    The first of two class probabilities is left out: it is 1 minus the second.
    """
    if isinstance(predictions, list):
        return np.hstack([one[:, 1:] for one in predictions])
    if predictions.ndim == 1:
        return predictions.reshape(-1, 1)
    is_binary = isinstance(classes, np.ndarray) and len(classes) == _TWO_CLASSES
    return predictions[:, 1:] if is_binary and method == "predict_proba" else predictions


def check_passthrough(final: Any, X: Any) -> None:
    """Raise ValueError where X has missing values, and scikit-learn's final estimator takes none.

    Of a pipeline or a search the first estimator that gets the rows counts; estimators of other
    libraries may take more than their tags say.
    """
    name = type(final).__name__
    while not isinstance(final, str | None):
        inner = final.steps[0][1] if hasattr(final, "steps") else getattr(final, "estimator", None)
        if not hasattr(inner, "fit"):
            break
        final = inner
    is_known = type(final).__module__.startswith("sklearn.")
    if not is_known or get_tags(final).input_tags.allow_nan or not _has_missing(X):
        return
    raise ValueError(
        f"passthrough=True hands the missing values (NaN) of X to final_estimator={name}, which "
        "takes none. Use passthrough=False, impute them (make_pipeline(SimpleImputer(), ...)), or "
        "use a final estimator that takes missing values, such as GradientBoosting of arboost."
    )


def _has_missing(X: Any) -> bool:
    """Whether a table of numbers has missing values."""
    if is_sparse(X):
        return bool(np.isnan(X.data).any())
    if hasattr(X, "isna"):  # pandas
        return bool(X.isna().to_numpy().any())
    array = np.asarray(X)
    return bool(array.dtype.kind == "f" and np.isnan(array).any())


def with_table(columns: Sequence[NDArray[Any]], X: Any, names: Sequence[str]) -> Any:
    """Return the columns of the members, followed by the columns of X.

    Parameters
    ----------
    columns : sequence of arrays of shape (n_rows, n_columns)
    X : table of shape (n_rows, n_features)
    names : sequence of str
        Names of the members' columns.

    Returns
    -------
    array of numbers, or a sparse matrix if X is one
        A frame with non-numeric columns stays a frame: the final estimator may take categories.
    """
    if is_sparse(X):
        from scipy import sparse

        return sparse.hstack([*columns, X], format=X.format)
    if len(getattr(X, "shape", ())) != _TABLE_DIMENSIONS:
        raise ValueError(
            "passthrough=True appends the columns of X to those of the members, but X is no table "
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
    """Return a pandas frame with the columns of the members, followed by the columns of X.

    Rows are aligned by position: an index may repeat a label.
    """
    if not all(isinstance(name, str) for name in X.columns):  # names must all be strings
        names = unique_names(list(X.columns)) or [f"x{i}" for i in range(X.shape[1])]
        X = X.set_axis(names, axis="columns")
    frame = X.copy(deep=False)
    for place, (name, column) in enumerate(named.items()):
        frame.insert(place, name, column)
    return frame
