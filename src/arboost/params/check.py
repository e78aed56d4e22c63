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
    _check_names(values, table)
    return {name: table[name].check(value) for name, value in values.items()}


def _check_names(values: Mapping[str, object], table: Mapping[str, Param]) -> None:
    """Raise for misspelt names, before any number is looked at."""
    for name, value in values.items():
        if isinstance(value, str):
            table[name].check(value)
    metrics = values.get("eval_metric")
    for metric in metrics if isinstance(metrics, list | tuple) else [metrics]:
        if isinstance(metric, str):
            _check_metric(metric, values.get("loss"))


def _check_metric(metric: str, loss: object) -> None:
    """Raise ValueError for the name of no metric; the name of the loss is one."""
    from arboost.names.answers import is_metric, metric_answer

    if not is_metric(metric) and metric != getattr(loss, "name", loss):
        raise ValueError(f"eval_metric={metric!r} is not allowed: {metric_answer(metric)}")


def record(values: Mapping[str, Any], table: Mapping[str, Param] = PARAMS) -> dict[str, Any]:
    """Return checked values in the form of a model file: numbers, strings and lists of these.

    Examples
    --------
    >>> record({"gamma": 1.0, "eval_metric": [len]})
    {'gamma': 1.0, 'eval_metric': [{'custom': 'len'}]}
    """
    return {
        name: table[name].record(value)
        for name, value in values.items()
        if table[name].always_recorded or value != table[name].default
    }
