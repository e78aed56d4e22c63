"""Values of the parameters that are "auto", for a fit to a given number of rows.

No number of rounds fits all tables: the best one is 60 for some and 2,000 for others of the same
size. With ``n_estimators="auto"`` a search trains until the score on held-out rows stops improving;
a second fit to all rows then has the best number of rounds. Its learning rate is small, and every
tree sees a sample of the rows and columns: the best setting in benchmarks on many tables. With a
given number of rounds the other parameters have their textbook values.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["AUTO", "finds_rounds", "resolve", "search_folds"]

AUTO = "auto"

_PATIENCE = 50  # rounds without a better score that end the search
_MIN_SEARCH_ROWS = 50  # below, held-out rows are too few for a search
_ROUNDS_WITHOUT_SEARCH = 100
_MIN_SPLIT_ROWS = 5_000  # below, one split is too noisy: the search cross-validates
_FOLDS = 5

# Learning rates of a search: a lower rate is better and slower, so small tables, which are fast,
# get the lower one; in between the rate grows with the cube root of the number of rows.
_MIN_RATE, _MIN_RATE_ROWS = 0.025, 10_000
_MAX_RATE = 0.1
_MAX_RATE_ROUNDS = 100.0  # largest product of learning rate and rounds in a search
_GIVEN_RATE = 0.1

_SEARCHED = {
    "max_depth": None,
    "grow_policy": "leafwise",
    "sampling_method": "gradient_based",
    "subsample": 0.5,
    "colsample_bynode": 0.7,
    "min_child_weight": 0.1,
}
_SEARCHED_LEAVES = 31  # of trees without another limit
_SEARCHED_LAMBDA = 3.0
_EQUAL_GRADIENT_LOSSES = ("absolute_error", "quantile")  # whose gradients differ in sign only
_GIVEN = {
    "max_depth": 6,
    "grow_policy": "depthwise",
    "sampling_method": "uniform",
    "subsample": 1.0,
    "colsample_bynode": 1.0,
    "min_child_weight": 1.0,
}


def resolve(params: dict[str, Any], n_rows: int, *, has_validation: bool) -> dict[str, Any]:
    """Return the parameters of a fit to ``n_rows`` rows, with values in place of "auto".

    Examples
    --------
    >>> given = {"n_estimators": "auto", "learning_rate": "auto", "n_iter_no_change": None}
    >>> resolve(given, 10_000, has_validation=False)
    {'n_estimators': 4000, 'learning_rate': 0.025, 'n_iter_no_change': 50}
    >>> resolve(given | {"n_estimators": 200}, 10_000, has_validation=False)
    {'n_estimators': 200, 'learning_rate': 0.1, 'n_iter_no_change': None}
    """
    rounds, rate = params["n_estimators"], params["learning_rate"]
    patience = params["n_iter_no_change"]
    if rounds == AUTO and n_rows < _MIN_SEARCH_ROWS and not has_validation and patience is None:
        rounds = _ROUNDS_WITHOUT_SEARCH
    if rate == AUTO:
        rate = _searched_rate(n_rows) if rounds == AUTO else _GIVEN_RATE
    values = _SEARCHED if rounds == AUTO else _GIVEN
    chosen = {name: value for name, value in values.items() if params.get(name) == AUTO}
    if "sampling_method" in chosen and not _can_rank_rows(
        params.get("boosting"), params.get("loss")
    ):
        chosen["sampling_method"] = "uniform"
    if params.get("sampling_method") == "goss" and "subsample" in chosen:
        chosen["subsample"] = 1.0  # GOSS has top_rate and other_rate
    if rounds == AUTO:
        if "max_depth" in chosen and params["max_leaves"] is None:
            chosen["max_leaves"] = _SEARCHED_LEAVES
        if params.get("reg_lambda", 0.0) is None and params["boosting"] == "newton":
            chosen["reg_lambda"] = _SEARCHED_LAMBDA
        rounds = math.ceil(_MAX_RATE_ROUNDS / rate)
        patience = _PATIENCE if patience is None else patience
    steps = {"n_estimators": rounds, "learning_rate": rate, "n_iter_no_change": patience}
    return params | chosen | steps


def finds_rounds(
    n_estimators: int | str, n_iter_no_change: int | None, *, has_validation: bool
) -> bool:
    """Whether a search on held-out rows comes before the fit to all rows.

    Parameters
    ----------
    n_estimators : int or "auto"
        The value that was given.
    n_iter_no_change : int or None
        The value that `resolve` returned.
    has_validation : bool
        Whether ``fit`` has a validation set.
    """
    return n_estimators == AUTO and n_iter_no_change is not None and not has_validation


def search_folds(validation_split: str, n_rows: int, *, has_groups: bool) -> int | None:
    """Return the number of cross-validation folds of the search; None for one split."""
    is_plain = validation_split == "random" and not has_groups
    return min(_FOLDS, n_rows) if is_plain and n_rows < _MIN_SPLIT_ROWS else None


def _can_rank_rows(boosting: str | None, loss: object) -> bool:
    """Whether gradients differ in size between rows, and leaf values use hessians."""
    return boosting != "gradient" and loss not in _EQUAL_GRADIENT_LOSSES


def _searched_rate(n_rows: int) -> float:
    rate: float = _MIN_RATE * (n_rows / _MIN_RATE_ROWS) ** (1 / 3)
    return round(min(max(rate, _MIN_RATE), _MAX_RATE), 4)
