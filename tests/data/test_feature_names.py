"""Feature indices of features by name or index, for constraints, categories and explanations."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import GradientBoostingRegressor, Grid
from arboost.data.feature_names import feature_indices, interaction_groups, monotone_directions
from arboost.data.schema import Schema
from arboost.data.table import ColumnOptions
from arboost.params.boosting import PARAMS

NAMED = Schema(names=("age", "height", "income"), n_features=3)
BARE = Schema(names=None, n_features=3)


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ([], []),
        (["height", "age", "height"], [1, 0, 1]),
        ([0, 2, -1, -3, np.int32(1), np.uint8(2)], [0, 2, 2, 0, 1, 2]),
    ],
)
def test_indices(features, expected):
    assert feature_indices(features, NAMED.names, 3, parameter="features") == expected


@pytest.mark.parametrize("feature", [3, -4, "weight", True, np.True_, 1.0, None, ("age",)])
def test_features_that_do_not_exist(feature):
    with pytest.raises(ValueError, match="features names features that the model does not have: "):
        feature_indices([0, feature], NAMED.names, 3, parameter="features", owner="the model")


def test_a_close_name_is_suggested():
    with pytest.raises(ValueError, match=r"does not have: 'heightx'; .*Did you mean 'height'\?"):
        feature_indices(["heightx"], NAMED.names, 3, parameter="features")
    with pytest.raises(ValueError, match="Use those"):
        feature_indices(["xyz"], NAMED.names, 3, parameter="features")


@pytest.mark.parametrize("feature", ["age", 3, -4, False])
def test_the_same_features_are_refused_everywhere(feature):
    table = np.arange(12.0).reshape(4, 3)
    model = GradientBoostingRegressor(n_estimators=1).fit(table, np.arange(4.0)).model_
    for refused in (
        lambda: ColumnOptions([feature, 0]).categories(None, 3),
        lambda: monotone_directions([[feature, 1]], BARE),
        lambda: interaction_groups([[feature, 0]], BARE),
        lambda: model.partial_dependence(table, feature),
        lambda: model.partial_dependence(table, 0, grid=Grid(values={feature: [1.0]})),
    ):
        with pytest.raises(ValueError, match=f"does not have: {feature!r}; .* 0 to 2"):
            refused()


def test_negative_indices_are_accepted_everywhere():
    table = np.arange(12.0).reshape(4, 3)
    model = GradientBoostingRegressor(n_estimators=1).fit(table, np.arange(4.0)).model_
    assert ColumnOptions([-1]).categories(None, 3) == {2}
    assert monotone_directions([[-1, 1]], BARE) == [0, 0, 1]
    assert interaction_groups([[-1, 0]], BARE) == [[0, 2], [1]]
    assert model.partial_dependence(table, -1, grid=Grid(values={-1: [1.0, 2.0]})).features == (2,)


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
        ({-1: -1, -3: 1}, [1, 0, -1]),
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
        ({"weight": 1}, "does not have: 'weight'; .*the names 'age', 'height', 'income'"),
        ({3: 1}, "does not have: 3; .*0 to 2"),
        ({-4: 1}, "does not have: -4; "),
        ({"age": 1, 0: 1}, "'age' twice"),
        ({2: 1, -1: 1}, "'income' twice"),
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
        ([["income", 2, -1]], [[2], [0], [1]]),
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
