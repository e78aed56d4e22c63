"""Constraints by name or index become constraints by index, or a clear refusal."""

from __future__ import annotations

import numpy as np
import pytest

from arboost.data.feature_names import interaction_groups, monotone_directions
from arboost.data.schema import Schema
from arboost.params.boosting import PARAMS

NAMED = Schema(names=("age", "height", "income"), n_features=3)
BARE = Schema(names=None, n_features=3)


def monotone(given, schema=NAMED):
    return monotone_directions(PARAMS["monotone_constraints"].check(given), schema)


def interactions(given, schema=NAMED):
    return interaction_groups(PARAMS["interaction_constraints"].check(given), schema)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, []),
        ({}, []),
        ([], []),
        ({"age": 1}, [1, 0, 0]),
        ({"income": -1, "age": 0}, [0, 0, -1]),
        ({2: -1, "age": 1}, [1, 0, -1]),
        ({np.int64(1): np.int8(1)}, [0, 1, 0]),
        ([0, 0, 0], []),
        ((1, 0, -1), [1, 0, -1]),
        (np.array([0, -1, 0]), [0, -1, 0]),
    ],
)
def test_monotone(given, expected):
    assert monotone(given) == expected


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"weight": 1}, "does not have: 'weight'; .*named 'age', 'height', 'income'"),
        ({3: 1}, "does not have: 3; .*0 to 2"),
        ({-1: 1}, "does not have: -1"),
        ({"age": 1, 0: 1}, "'age' twice"),
        ([1, 0], "2 entries, but X has 3 features"),
    ],
)
def test_monotone_refused(given, words):
    with pytest.raises(ValueError, match=f"monotone_constraints .*{words}"):
        monotone(given)


def test_names_of_a_table_without_names():
    with pytest.raises(ValueError, match="'age'; X has no column names, only the indices 0 to 2"):
        monotone({"age": 1}, BARE)
    assert monotone({1: 1}, BARE) == [0, 1, 0]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, []),
        ([["age", "height"]], [[0, 1], [2]]),
        ([["age", "height"], ["height", "income"]], [[0, 1], [1, 2]]),
        ([{2, 0}, ("height", "height")], [[0, 2], [1]]),
        ([np.array([1, 2])], [[1, 2], [0]]),
        ([["income", 2]], [[2], [0], [1]]),
        ("no_interactions", [[0], [1], [2]]),
        ("pairwise", [[0, 1], [0, 2], [1, 2]]),
    ],
)
def test_interactions(given, expected):
    assert interactions(given) == expected


@pytest.mark.parametrize("word", ["pairwise", "no_interactions"])
def test_one_feature_has_no_pairs(word):
    assert interactions(word, Schema(names=None, n_features=1)) == [[0]]


def test_interactions_refused():
    with pytest.raises(ValueError, match=r"interaction_constraints .* not have: 7, 'weight'; "):
        interactions([["age", "weight", 7]])
