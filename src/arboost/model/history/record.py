"""History of a fit, as `provenance` of a model keeps it: small, rounded, and ready for JSON.

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

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "history_of",
    "out_of_bag_history",
    "out_of_bag_trees",
    "run_history",
    "significant",
    "thinned",
    "votes_history",
    "with_history",
    "without_history",
]

Floats = NDArray[np.float64]

_DIGITS = 6  # significant
_MOST_POINTS = 200  # of one curve
_MOST_VALUES = 400  # of all curves of a run, as long as each has _FEWEST_POINTS
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
    """Return the learning curves of one run of the training loop; None where there are none.

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
    series = [(name, metric, of) for name, by in curves.items() for metric, of in by.items()]
    if not series or not len(series[0][2]):
        return None
    most = min(_MOST_POINTS, max(_FEWEST_POINTS, _MOST_VALUES // len(series)))
    places = thinned(len(series[0][2]), most, best_index)
    return {
        "kind": kind,
        "rounds": [n_before + place + 1 for place in places],
        "best": None if best_index is None else n_before + best_index + 1,
        "curves": [
            {"set": name, "metric": metric, "values": significant(of[place] for place in places)}
            for name, metric, of in series
        ],
    }


def votes_history(
    training_error: Floats,
    bound: Floats,
    edge_bound: Floats,
    vote_range: float,
) -> dict[str, Any] | None:
    """Return the history of an AdaBoost classifier, of all its rounds; None without any.

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
    places = thinned(len(training_error), _VOTE_POINTS)
    series = {"training_error": training_error, "bound": bound, "edge_bound": edge_bound}
    found: dict[str, Any] = {"rounds": [place + 1 for place in places]}
    for name, values in series.items():
        shown = significant(values[place] for place in places)
        found[name] = shown if any(value is not None for value in shown) else None
    return found | {"vote_range": float(vote_range)}


def out_of_bag_history(
    trees: Sequence[int], metric: str, values: Sequence[Sequence[float]]
) -> dict[str, Any]:
    """Return the out-of-bag curve of a forest, with one list of values for each target."""
    shown = [significant(of) for of in values]
    return {"trees": list(trees), "metric": metric, "values": shown}


def out_of_bag_trees(n_trees: int) -> list[int]:
    """Return the numbers of trees at which a forest of so many measures out-of-bag rows."""
    return [place + 1 for place in thinned(n_trees, _OUT_OF_BAG_POINTS)]


def history_of(runs: Iterable[dict[str, Any] | None] = (), **parts: Any) -> dict[str, Any]:
    """Return the history of a fit from its parts, of which None are left out."""
    found = {"runs": [run for run in runs if run is not None], **parts}
    return {name: part for name, part in found.items() if part}


def with_history(provenance: Mapping[str, Any], history: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata of a fit with more history."""
    full = {**provenance.get("history", {}), **history}
    return {**provenance, "history": full} if full else dict(provenance)


def without_history(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata of a fit without its history, for a model of some of the trees."""
    return {name: value for name, value in provenance.items() if name != "history"}


def thinned(length: int, most: int, best: int | None = None) -> list[int]:
    """Return at most so many of the indices, evenly spaced, with the first, last and best one.

    Examples
    --------
    >>> thinned(11, 4, best=8)
    [0, 5, 8, 10]
    """
    if length <= most:
        return list(range(length))
    steps = most - (best is not None) - 1
    places = {(2 * i * (length - 1) + steps) // (2 * steps) for i in range(steps + 1)}
    return sorted(places if best is None else places | {best})


def significant(values: Iterable[float]) -> list[float | None]:
    """Return numbers of 6 significant digits; None for those that are not finite.

    Python rounds decimals itself, and correctly: the result does not depend on the machine.

    Examples
    --------
    >>> significant([2 / 3, 1234567.0, float("inf")])
    [0.666667, 1234570.0, None]
    """
    return [float(f"{x:.{_DIGITS}g}") if math.isfinite(x) else None for x in map(float, values)]
