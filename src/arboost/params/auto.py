"""What "auto" means: numbers in place of the word.

No number of rounds fits all tables: the best one is 60 for some and 2,000 for others of the same
size. With ``n_estimators="auto"`` rounds are made until rows that were set aside say stop; then the
fit begins anew, on all rows, for as many rounds as were best. Steps are small then, and every tree
sees a part of the rows and columns, which benchmarks on many tables like best. With a number of
rounds the other parameters are what the textbook has.
"""

from __future__ import annotations

import math
from typing import Any

__all__ = ["AUTO", "finds_rounds", "resolve", "search_folds"]

AUTO = "auto"

_PATIENCE = 50  # rounds without a better score that end the search
_FEWEST_ROWS = 50  # below, what is set aside says nothing
_FIXED_ROUNDS = 100  # then
_FOLDED_ROWS = 5_000  # below, one part that is set aside is too small to trust: all rows take turns
_FOLDS = 5

# Learning rates of searched rounds: a lower rate is better and slower, so few rows, which are fast,
# get the lower one; in between it grows with the cube root of the rows.
_LOWEST_RATE, _ITS_ROWS = 0.025, 10_000
_HIGHEST_RATE = 0.1
_LONGEST_PATH = 100.0  # learning rate times rounds: further no search goes
_RATE = 0.1  # where rounds are given

# Where rounds are searched, and where they are given.
_SEARCHED = {
    "max_depth": None,
    "grow_policy": "leafwise",
    "sampling_method": "gradient_based",
    "subsample": 0.5,
    "colsample_bynode": 0.7,
    "min_child_weight": 0.1,
}
_LEAVES = 31  # of trees without another limit
_LAMBDA = 3.0
_ONE_SIZE = ("absolute_error", "quantile")  # losses whose gradients differ in sign only
_GIVEN = {
    "max_depth": 6,
    "grow_policy": "depthwise",
    "sampling_method": "uniform",
    "subsample": 1.0,
    "colsample_bynode": 1.0,
    "min_child_weight": 1.0,
}


def resolve(params: dict[str, Any], n_rows: int, *, has_validation: bool) -> dict[str, Any]:
    """Return the parameters of a fit to so many rows, without the word "auto".

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
    if rounds == AUTO and n_rows < _FEWEST_ROWS and not has_validation and patience is None:
        rounds = _FIXED_ROUNDS
    if rate == AUTO:
        rate = _rate_of_rows(n_rows) if rounds == AUTO else _RATE
    usual = _SEARCHED if rounds == AUTO else _GIVEN
    chosen = {name: value for name, value in usual.items() if params.get(name) == AUTO}
    if "sampling_method" in chosen and not _ranks_rows(params):
        chosen["sampling_method"] = "uniform"
    if params.get("sampling_method") == "goss" and "subsample" in chosen:
        chosen["subsample"] = 1.0  # it has shares of its own
    if rounds == AUTO:
        if "max_depth" in chosen and params["max_leaves"] is None:
            chosen["max_leaves"] = _LEAVES
        if params.get("reg_lambda", 0.0) is None and params["boosting"] == "newton":
            chosen["reg_lambda"] = _LAMBDA
        rounds = math.ceil(_LONGEST_PATH / rate)
        patience = _PATIENCE if patience is None else patience
    steps = {"n_estimators": rounds, "learning_rate": rate, "n_iter_no_change": patience}
    return params | chosen | steps


def finds_rounds(given: dict[str, Any], resolved: dict[str, Any], *, has_validation: bool) -> bool:
    """Return whether rounds are found on rows set aside, for a fit to all rows after that."""
    is_open = given["n_estimators"] == AUTO and resolved["n_iter_no_change"] is not None
    return is_open and not has_validation


def search_folds(params: dict[str, Any], n_rows: int, groups: object) -> int | None:
    """Return the number of folds that take turns in being set aside; None for one part, once."""
    plain = params["validation_split"] == "random" and groups is None
    return _FOLDS if plain and n_rows < _FOLDED_ROWS else None


def _ranks_rows(params: dict[str, Any]) -> bool:
    """Return whether some rows have larger gradients than others, and hessians."""
    return params.get("boosting") != "gradient" and params.get("loss") not in _ONE_SIZE


def _rate_of_rows(n_rows: int) -> float:
    grown: float = _LOWEST_RATE * (n_rows / _ITS_ROWS) ** (1 / 3)
    return round(min(max(grown, _LOWEST_RATE), _HIGHEST_RATE), 4)
