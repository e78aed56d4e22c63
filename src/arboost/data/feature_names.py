"""Constraints by feature name or index -> constraints by feature index.

The values are checked before (``params/``); here their features are found among those of the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from typing import Any

from arboost.data.messages import listing
from arboost.data.schema import Schema

__all__ = ["feature_label", "interaction_groups", "monotone_directions"]


def monotone_directions(
    given: list[Any] | None, schema: Schema, name: str = "monotone_constraints"
) -> list[int]:
    """Return -1, 0 or 1 for each feature; an empty list where no feature is constrained.

    Parameters
    ----------
    given : list of directions, list of [feature, direction], or None
        As the parameter's ``check`` returns it.
    schema : Schema
        Features of the table.
    name : str
        What errors call the constraints.

    Examples
    --------
    >>> monotone_directions([["b", -1]], Schema(names=("a", "b"), n_features=2))
    [0, -1]
    """
    if given is None:
        return []
    directions = [0] * schema.n_features
    if given and isinstance(given[0], list):
        places = _places((feature for feature, _ in given), schema, name)
        if len(set(places)) < len(places):
            twice = next(place for place in places if places.count(place) > 1)
            raise ValueError(
                f"{name} names the feature {feature_label(twice, schema)!r} twice, by name and by "
                "index. Give each feature once."
            )
        for place, (_, direction) in zip(places, given, strict=True):
            directions[place] = direction
    elif given:
        if len(given) != schema.n_features:
            raise ValueError(
                f"{name} has {len(given)} entries, but X has {schema.n_features} features. Give "
                "one of -1, 0 and 1 for each feature, or a dict with the constrained ones."
            )
        directions = list(given)
    for place, direction in enumerate(directions):
        if direction and schema.levels_of(place) is not None:
            raise ValueError(
                f"{name} names the feature {feature_label(place, schema)!r}, but that is a "
                "category, whose levels have no order. Leave it out, or pass it as numbers."
            )
    return directions if any(directions) else []


def interaction_groups(given: str | list[Any] | None, schema: Schema) -> list[list[int]]:
    """Return groups of features that may meet on a path; an empty list where all may.

    A feature that is in no group becomes a group of its own: it may be used, but meets no other.

    Examples
    --------
    >>> interaction_groups([["c", "a"]], Schema(names=("a", "b", "c"), n_features=3))
    [[0, 2], [1]]
    >>> interaction_groups("pairwise", Schema(names=None, n_features=3))
    [[0, 1], [0, 2], [1, 2]]
    """
    if given is None:
        return []
    features = range(schema.n_features)
    if isinstance(given, str):
        size = 2 if given == "pairwise" else 1
        return [list(group) for group in combinations(features, min(size, len(features)))]
    groups = [sorted(set(_places(group, schema, "interaction_constraints"))) for group in given]
    grouped = {feature for group in groups for feature in group}
    return groups + [[feature] for feature in features if feature not in grouped]


def feature_label(place: int, schema: Schema) -> str | int:
    """Return the name of a feature, or its index where the table had no names."""
    return place if schema.names is None else schema.names[place]


def _places(features: Iterable[str | int], schema: Schema, name: str) -> list[int]:
    """Return the index of each feature, or say which of them do not exist."""
    wanted = list(features)
    by_name = {} if schema.names is None else {name: i for i, name in enumerate(schema.names)}
    unknown = [
        feature
        for feature in wanted
        if (
            feature not in by_name
            if isinstance(feature, str)
            else not 0 <= feature < schema.n_features
        )
    ]
    if unknown:
        shown = listing(map(repr, unknown))
        if schema.names is None and any(isinstance(feature, str) for feature in unknown):
            known = f"X has no column names, only the indices 0 to {schema.n_features - 1}"
        else:
            names = f" named {listing(map(repr, by_name))}" if by_name else ""
            known = f"X has the features 0 to {schema.n_features - 1}{names}"
        raise ValueError(
            f"{name} names features that X does not have: {shown}; {known}. Use those."
        )
    return [by_name[feature] if isinstance(feature, str) else feature for feature in wanted]
