"""Held-out rows of a fit: the training rows that find the number of rounds, or stop a fit early."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.params.auto import search_folds
from arboost.params.records import StoppingParams, ValidationParams
from arboost.training.inputs import Index, Rows, SourceT
from arboost.training.splits import Split, check_divisible, folds, split

__all__ = ["check_validation", "groups_of", "search_splits", "split_rows"]


def check_validation(params: StoppingParams, *, has_validation: bool, groups: object) -> None:
    """Raise ValueError where arguments of fit contradict the parameters of validation."""
    splits = not has_validation and params.n_iter_no_change is not None
    if groups is not None and not splits:
        reason = "X_val is given" if has_validation else "n_iter_no_change=None asks for none"
        raise ValueError(
            f"groups are for the automatic split of validation rows, but {reason}. Leave out "
            "groups."
        )
    if params.eval_metric is not None and not has_validation and not splits:
        raise ValueError(
            f"eval_metric={params.eval_metric!r} has no rows to be measured on. Pass X_val and "
            "y_val, or set n_iter_no_change for an automatic split."
        )


def split_rows(
    rows: Rows[SourceT], params: ValidationParams, groups: object, *, stratify: bool
) -> tuple[Rows[SourceT], Rows[SourceT]]:
    """Return training and validation rows; `groups` has an entry for each row given to fit."""
    train, held_out = _split(rows, params, groups, stratify=stratify)
    return rows.take(train), rows.take(held_out)


def search_splits(
    rows: Rows[SourceT], params: ValidationParams, groups: object, *, stratify: bool
) -> tuple[Split, ...]:
    """Return the splits of the training rows that the number of rounds is searched on."""
    y = rows.y
    check_divisible(len(y))
    # A class of one row cannot be on both sides: then the split ignores the classes.
    stratify = stratify and np.bincount(y.astype(np.intp)).min() > 1
    n_folds = search_folds(params.validation_split, len(y), has_groups=groups is not None)
    if n_folds is not None:
        return tuple(folds(y, n_folds, seed=params.random_state, stratify=stratify))
    return (_split(rows, params, groups, stratify=stratify),)


def _split(
    rows: Rows[SourceT], params: ValidationParams, groups: object, *, stratify: bool
) -> Split:
    if groups is not None:
        groups = groups_of(groups, rows.source.n_rows, rows.index)
    return split(
        rows.y,
        how=params.validation_split,
        fraction=params.validation_fraction,
        seed=params.random_state,
        stratify=stratify and params.validation_split == "random",
        groups=groups,
    )


def groups_of(groups: object, n_rows: int, index: Index | None) -> NDArray[Any]:
    """Return the groups of some rows, given the groups of all rows."""
    given = np.asarray(groups)
    if given.shape != (n_rows,):
        raise ValueError(
            f"groups have the shape {given.shape}, but X has {n_rows} rows. Pass one group for "
            "each row."
        )
    return given if index is None else given[index]
