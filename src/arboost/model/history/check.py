"""Checks of the history of a fit, as files claim it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from arboost.model.outputs import require

__all__ = ["check_history"]

_MOST_ROUNDS = 2**31
_KINDS = ("fit", "search")
_METRICS = ("error", "rmse")  # of out-of-bag predictions


def check_history(history: object) -> None:
    """Raise TypeError, LookupError or ValueError for a malformed history; None is no history.

    `arboost.model.history.record` describes the form. Other fields may come from a later version.
    """
    if history is None:
        return
    parts = _table(history)
    for run in _list(parts.get("runs", [])):
        _check_run(_table(run))
    if "adaboost" in parts:
        votes = _table(parts["adaboost"])
        n_rounds = _check_counts(votes["rounds"])
        for name in ("training_error", "bound", "edge_bound"):
            if votes[name] is not None:
                _check_values(votes[name], n_rounds)
        vote_range = votes["vote_range"]
        _check_values([vote_range], 1)
        require(vote_range is not None and vote_range >= 0.0, f"the vote range {vote_range}")
    if "out_of_bag" in parts:
        curve = _table(parts["out_of_bag"])
        n_points = _check_counts(curve["trees"])
        require(curve["metric"] in _METRICS, f"an out-of-bag {curve['metric']!r}")
        require(len(_list(curve["values"])) > 0, "an out-of-bag curve without values")
        for values in curve["values"]:
            _check_values(values, n_points)


def _check_run(run: Mapping[str, Any]) -> None:
    require(run["kind"] in _KINDS, f"a history of {run['kind']!r}")
    n_rounds = _check_counts(run["rounds"])
    if run["best"] is not None:
        require(run["best"] in run["rounds"], f"the best round {run['best']!r}")
    require(len(_list(run["curves"])) > 0, "a history without curves")
    for curve in map(_table, run["curves"]):
        for name in ("set", "metric"):
            if type(curve[name]) is not str:
                raise TypeError(f"a {name} named {curve[name]!r}")
        _check_values(curve["values"], n_rounds)


def _check_counts(given: object) -> int:
    """Return the number of rounds or trees in a list; raise an error unless they ascend from 1."""
    counts = _list(given)
    if not all(type(count) is int for count in counts):
        raise TypeError("numbers of rounds that are no integers")
    ascend = all(one < next_one for one, next_one in pairwise(counts))
    require(bool(counts) and counts[0] >= 1 and ascend, "numbers of rounds that do not ascend")
    require(counts[-1] <= _MOST_ROUNDS, f"the round {counts[-1]}")
    return len(counts)


def _check_values(given: object, length: int) -> None:
    values = _list(given)
    require(len(values) == length, f"{len(values)} values for {length} rounds")
    for value in values:
        if value is not None and type(value) not in (float, int):
            raise TypeError(f"the value {value!r} in a history")
        require(value is None or math.isfinite(value), f"the value {value} in a history")


def _list(given: object) -> list[Any]:
    if not isinstance(given, list):
        raise TypeError(f"{given!r} where a history has a list")
    return given


def _table(given: object) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise TypeError(f"{given!r} where a history has a table")
    return given
