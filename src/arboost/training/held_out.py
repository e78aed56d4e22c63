"""Held-out rows of a fit: which of the training rows find the number of rounds or stop it early."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.params.auto import search_folds
from arboost.training.inputs import Part
from arboost.training.splits import Split, folds, split

__all__ = ["check_validation", "groups_of", "search_splits", "split_rows"]


def check_validation(params: dict[str, Any], *, has_validation: bool, groups: object) -> None:
    """Raise ValueError where arguments of fit and parameters of validation do not fit together."""
    splits = not has_validation and params["n_iter_no_change"] is not None
    if groups is not None and not splits:
        reason = "X_val is given" if has_validation else "n_iter_no_change=None asks for none"
        raise ValueError(
            f"groups are for the automatic split of validation rows, but {reason}. Leave out "
            "groups."
        )
    if params["eval_metric"] is not None and not has_validation and not splits:
        raise ValueError(
            f"eval_metric={params['eval_metric']!r} has no rows to be measured on. Pass X_val and "
            "y_val, or set n_iter_no_change for an automatic split."
        )


def split_rows(part: Part, params: dict[str, Any], kind: str, groups: object) -> tuple[Part, Part]:
    """Set validation rows aside; `groups` has an entry for each row that fit was given."""
    if groups is not None:
        groups = groups_of(groups, part.source.n_rows, part.rows)
    chosen = _split(part, params, groups, stratify=kind == "classifier")
    training, validation = (part.take(rows) for rows in chosen)
    return training, validation


def search_splits(
    part: Part, params: dict[str, Any], kind: str, groups: object
) -> tuple[Split, ...]:
    """Return the parts of the training rows that the number of rounds is to be found on."""
    y, seed = part.target.y, params["random_state"]
    # A class of one row cannot be on both sides: then the rounds are found by the others.
    stratify = kind == "classifier" and np.bincount(y.astype(np.intp)).min() > 1
    n_folds = search_folds(params["validation_split"], len(y), has_groups=groups is not None)
    if n_folds is not None:
        return tuple(folds(y, n_folds, seed=seed, stratify=stratify))
    if groups is not None:
        groups = groups_of(groups, part.source.n_rows, part.rows)
    return (_split(part, params, groups, stratify=stratify),)


def _split(part: Part, params: dict[str, Any], groups: object, *, stratify: bool) -> Split:
    how = params["validation_split"]
    return split(
        part.target.y,
        how=how,
        fraction=params["validation_fraction"],
        seed=params["random_state"],
        stratify=stratify and how == "random",
        groups=groups,
    )


def groups_of(groups: object, n_rows: int, kept: NDArray[np.uint32] | None) -> NDArray[Any]:
    """Return the groups of the rows that count, of groups for all rows that were given."""
    given = np.asarray(groups)
    if given.shape != (n_rows,):
        raise ValueError(
            f"groups have the shape {given.shape}, but X has {n_rows} rows. Pass one group for "
            "each row."
        )
    return given if kept is None else given[kept]
