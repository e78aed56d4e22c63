"""Checked parameter values for training, and their record for model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from arboost.params.boosting import PARAMS
from arboost.params.kinds import Param

__all__ = ["check", "record"]


def check(values: Mapping[str, object], table: Mapping[str, Param] = PARAMS) -> dict[str, Any]:
    """Return the checked values of the parameters, in the form that training reads.

    Raises
    ------
    TypeError
        A value of the wrong type.
    ValueError
        A value out of range.

    Examples
    --------
    >>> check({"max_depth": None, "gamma": 1})
    {'max_depth': None, 'gamma': 1.0}
    """
    return {name: table[name].check(value) for name, value in values.items()}


def record(values: Mapping[str, Any], table: Mapping[str, Param] = PARAMS) -> dict[str, Any]:
    """Return checked values in the form of a model file: numbers, strings and lists of these.

    Examples
    --------
    >>> record({"gamma": 1.0, "eval_metric": [len]})
    {'gamma': 1.0, 'eval_metric': [{'custom': 'len'}]}
    """
    return {name: table[name].record(value) for name, value in values.items()}
