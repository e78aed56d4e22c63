"""Metadata of a model: the history of its fit, and JSON values of the user.

`provenance` of a model holds the history, small, rounded, and ready for JSON:

    {
      "runs": [
        {"kind": "fit", "rounds": [1, 2, ...], "best": 37,
         "curves": [{"set": "validation", "metric": "log_loss", "values": [0.61, ...]}, ...]},
        {"kind": "search", ...}
      ],
      "adaboost": {"rounds": [...], "training_error": [...], "bound": [...], "edge_bound": [...],
                   "vote_range": 21.5},
      "out_of_bag": {"trees": [...], "metric": "error", "values": [[...]]}
    }

Parts that a fit has not recorded are left out. Rounds and trees count from 1, those of continued
training from the first round that was added. Numbers that are not finite are null.

A run is one pass of the training loop; the last set of the last run is the one that "best" is about
(a search for the number of rounds counts its own rounds). "out_of_bag" has one list of values for
each target.
"""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from arboost.backend import core
from arboost.errors import InputTypeError
from arboost.losses.links import require
from arboost.models.files.container import typed, typed_fields, typed_tuple
from arboost.trees.forest import Floats

_DIGITS = 6  # significant
_MOST_POINTS = 200  # of one curve
_MOST_VALUES = 400  # of all curves of a run; each has at least _FEWEST_POINTS
_FEWEST_POINTS = 20
_VOTE_POINTS = 80  # of each of AdaBoost's three series
_OUT_OF_BAG_POINTS = 50


def run_history(
    curves: Mapping[str, Mapping[str, Sequence[float]]],
    best_index: int | None,
    *,
    n_before: int = 0,
    kind: str = "fit",
) -> dict[str, Any] | None:
    """Learning curves of one run of the training loop; None where there are none.

    Parameters
    ----------
    curves : mapping of str to mapping of str to sequence of float
        Metrics of all rounds, by evaluation set and name.
    best_index : int or None
        Best round of the run, from 0.
    n_before : int
        Number of rounds of the model whose training is continued.
    kind : {"fit", "search"}
        Whether the model has these rounds, or the search for their number had.
    """
    series = [
        (set_name, metric, values)
        for set_name, metrics in curves.items()
        for metric, values in metrics.items()
    ]
    if not series or not len(series[0][2]):
        return None
    most = min(_MOST_POINTS, max(_FEWEST_POINTS, _MOST_VALUES // len(series)))
    indices = thinned_indices(len(series[0][2]), most, best_index)
    return {
        "kind": kind,
        "rounds": [n_before + index + 1 for index in indices],
        "best": None if best_index is None else n_before + best_index + 1,
        "curves": [
            {"set": name, "metric": metric, "values": round_significant(values[i] for i in indices)}
            for name, metric, values in series
        ],
    }


def votes_history(
    training_error: Floats,
    bound: Floats,
    edge_bound: Floats,
    vote_range: float,
) -> dict[str, Any] | None:
    """History of an AdaBoost classifier, of all its rounds; None without any.

    Parameters
    ----------
    training_error, bound, edge_bound : float64 arrays of shape (n_rounds,)
        Error of the training rows and its two upper bounds after each round.
    vote_range : float
        Largest difference of the votes for two classes, of all learners together. It is the scale
        of margins, and not rounded.
    """
    if not len(training_error):
        return None
    indices = thinned_indices(len(training_error), _VOTE_POINTS)
    series = {"training_error": training_error, "bound": bound, "edge_bound": edge_bound}
    history: dict[str, Any] = {"rounds": [index + 1 for index in indices]}
    for name, values in series.items():
        rounded = round_significant(values[index] for index in indices)
        history[name] = rounded if any(value is not None for value in rounded) else None
    return history | {"vote_range": float(vote_range)}


def out_of_bag_history(
    trees: Sequence[int], metric: str, values: Sequence[Sequence[float]]
) -> dict[str, Any]:
    """Out-of-bag curve of a forest, with one list of values for each target."""
    rounded = [round_significant(series) for series in values]
    return {"trees": list(trees), "metric": metric, "values": rounded}


def out_of_bag_trees(n_trees: int) -> list[int]:
    """Numbers of trees at which a forest of n_trees measures out-of-bag rows."""
    return [index + 1 for index in thinned_indices(n_trees, _OUT_OF_BAG_POINTS)]


def history_of(runs: Iterable[dict[str, Any] | None] = (), **parts: Any) -> dict[str, Any]:
    """History of a fit from its parts, of which None are left out."""
    history = {"runs": [run for run in runs if run is not None], **parts}
    return {name: part for name, part in history.items() if part}


def provenance_of(
    n_rows: int,
    metric: str | None = None,
    best_score: float | None = None,
    history: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Metadata of a fit, for JSON.

    Parameters
    ----------
    n_rows : int
        Number of training rows.
    metric : str, optional
        Metric that chose the last round, on held-out rows.
    best_score : float, optional
        Metric of the last round; left out where no metric chose it.
    history : mapping, optional
        Result of `history_of`.
    """
    metadata: dict[str, Any] = {"version": core.version(), "rows": int(n_rows)}
    if metric is not None and best_score is not None and math.isfinite(best_score):
        metadata |= {"metric": metric, "best_score": float(best_score)}
    return with_history(metadata, history or {})


def with_history(provenance: Mapping[str, Any], history: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata of a fit with more history."""
    history = {**provenance.get("history", {}), **history}
    return {**provenance, "history": history} if history else dict(provenance)


def without_history(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata of a fit without its history, for a model of some of the trees."""
    return {name: value for name, value in provenance.items() if name != "history"}


def thinned_indices(length: int, most: int, best: int | None = None) -> list[int]:
    """Up to `most` of the indices, evenly spaced, with the first, last and best one.

    Examples
    --------
    >>> thinned_indices(11, 4, best=8)
    [0, 5, 8, 10]
    """
    if length <= most:
        return list(range(length))
    steps = most - (best is not None) - 1
    indices = {(2 * i * (length - 1) + steps) // (2 * steps) for i in range(steps + 1)}
    return sorted(indices if best is None else indices | {best})


def round_significant(values: Iterable[float]) -> list[float | None]:
    """Numbers of 6 significant digits; None for those that are not finite.

    Python rounds decimals itself, and correctly: the result does not depend on the machine.

    Examples
    --------
    >>> round_significant([2 / 3, 1234567.0, float("inf")])
    [0.666667, 1234570.0, None]
    """
    return [float(f"{x:.{_DIGITS}g}") if math.isfinite(x) else None for x in map(float, values)]


# ---- checks of a history from a file ----

_MOST_ROUNDS = 2**31
_KINDS = ("fit", "search")
_METRICS = ("error", "rmse")  # of out-of-bag predictions


def check_history(history: object) -> None:
    """Raise TypeError, LookupError or ValueError for a malformed history; None is valid.

    `arboost.models.metadata` describes the form. Other fields may come from a later version.
    """
    if history is None:
        return
    parts = typed(history, dict)
    for run in typed_tuple(parts.get("runs", []), dict):
        _check_run(run)
    if "adaboost" in parts:
        votes = typed(parts["adaboost"], dict)
        n_rounds = _check_counts(votes["rounds"])
        for name in ("training_error", "bound", "edge_bound"):
            if votes[name] is not None:
                _check_values(votes[name], n_rounds)
        vote_range = votes["vote_range"]
        _check_values([vote_range], 1)
        require(vote_range is not None and vote_range >= 0.0, f"the vote range {vote_range}")
    if "out_of_bag" in parts:
        curve = typed(parts["out_of_bag"], dict)
        n_points = _check_counts(curve["trees"])
        require(curve["metric"] in _METRICS, f"an out-of-bag {curve['metric']!r}")
        require(len(typed(curve["values"], list)) > 0, "an out-of-bag curve without values")
        for values in curve["values"]:
            _check_values(values, n_points)


def _check_run(run: Mapping[str, Any]) -> None:
    require(run["kind"] in _KINDS, f"a history of {run['kind']!r}")
    n_rounds = _check_counts(run["rounds"])
    if run["best"] is not None:
        require(run["best"] in run["rounds"], f"the best round {run['best']!r}")
    curves = typed_tuple(run["curves"], dict)
    require(curves, "a history without curves")
    for curve in curves:
        typed_fields(curve, {"set": str, "metric": str})
        _check_values(curve["values"], n_rounds)


def _check_counts(values: object) -> int:
    """Number of rounds or trees in a list; raise an error unless they ascend from 1."""
    counts = typed_tuple(values, int)
    ascend = all(count < later for count, later in pairwise(counts))
    require(counts and counts[0] >= 1 and ascend, "numbers of rounds that do not ascend")
    require(counts[-1] <= _MOST_ROUNDS, f"the round {counts[-1]}")
    return len(counts)


def _check_values(series: object, length: int) -> None:
    values = typed(series, list)
    require(len(values) == length, f"{len(values)} values for {length} rounds")
    for value in values:
        if value is not None and type(value) not in (float, int):
            raise TypeError(f"the value {value!r} in a history")
        require(value is None or math.isfinite(value), f"the value {value} in a history")


# ---- metadata of the user ----

_MOST_CHARACTERS = 2**20
_MOST_LEVELS = 20
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1  # integers


def check_metadata(metadata: object) -> None:
    """Raise TypeError or ValueError unless the value is a dict of JSON values by name.

    Texts, and the numbers of values and keys, are bounded together, so that a file that holds them
    stays readable. The message has the key of a refused value.
    """
    if not isinstance(metadata, dict):
        raise InputTypeError(
            f"metadata={reprlib.repr(metadata)} is not allowed: it must be a dict."
        )
    size, pending = 0, list[tuple[str, Any, int]]([("metadata", metadata, 0)])
    while pending:
        path, value, level = pending.pop()
        if isinstance(value, str):
            _check_text(path, value)
            size += len(value)
        elif isinstance(value, dict | list):
            size += len(value)
            if level > _MOST_LEVELS:
                raise ValueError(
                    f"{path} is not allowed: metadata has at most {_MOST_LEVELS} levels of lists "
                    "and dicts. Use fewer, or a text."
                )
        elif not _is_scalar(value):
            raise InputTypeError(
                f"{path}={_shown(value)} is not allowed: metadata is saved as JSON. Use "
                "None, True, False, a finite number (integers of 64 bits), a string, a list or a "
                "dict."
            )
        if size > _MOST_CHARACTERS:
            raise ValueError(
                f"{path} is not allowed: metadata has at most {_MOST_CHARACTERS:,} characters and "
                "values in all. Save larger data in a file, and its name here."
            )
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    raise InputTypeError(
                        f"the key {reprlib.repr(key)} in {path} is not allowed: keys of metadata "
                        "are strings."
                    )
                _check_text(f"a key in {path}", key)
                size += len(key)
        if isinstance(value, dict | list):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            pending += [(f"{path}[{reprlib.repr(key)}]", item, level + 1) for key, item in items]


def metadata_text(metadata: Mapping[str, Any], indent: int | None = None) -> str:
    """Metadata as JSON in ASCII, keys sorted, after `check_metadata`."""
    check_metadata(metadata)
    return json.dumps(metadata, sort_keys=True, allow_nan=False, indent=indent)


def _check_text(path: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{path} is not allowed: {reprlib.repr(text)} has a surrogate, half a character. "
            "Decode the text before."
        ) from None


def _shown(value: object) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:  # of an integer with more digits than Python writes
        return f"a long {type(value).__name__}"


def _is_scalar(value: object) -> bool:
    if isinstance(value, int):
        return _SMALLEST <= value <= _LARGEST
    return value is None or (isinstance(value, float) and math.isfinite(value))
