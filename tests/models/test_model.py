"""Forest and Model: read-only arrays, and the inconsistencies that `validate` refuses."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from arboost.data.schema import Schema
from arboost.models.model import Model
from arboost.trees.forest import ALL_DTYPES, FOREST_DTYPES, Forest
from support.level_sets import schema_of

#   tree 0      0        tree 1   0     tree 2    0
#             1   2                             1   2
#           3   4                                  3  4
TREES = {
    "tree_start": [0, 5, 6, 11],
    "feature": [0, 2, -1, -1, -1, -1, 1, -1, 2, -1, -1],
    "threshold": [0.5, -1.0, 0, 0, 0, 0, np.inf, 0, -np.inf, 0, 0],
    "left": [1, 3, 0, 0, 0, 0, 1, 0, 3, 0, 0],
    "default_left": [True, False, False, False, False, False, False, False, True, False, False],
    "value": [[0], [0], [3], [1], [2], [10], [0], [100], [0], [200], [300]],
    "gain": [4.0, 2.0, 0, 0, 0, 0, 1.0, 0, 0.5, 0, 0],
    "cover": [9.0, 6.0, 3, 2, 4, 9, 9, 4, 5, 2, 3],
    "output": [0, 0, 0],
}

# The same trees with feature 2 categorical: its splits, nodes 1 and 8, have level sets.
SETS = {
    "level_set": [-1, 0, -1, -1, -1, -1, -1, -1, 1, -1, -1],
    "level_sets": np.array([[5, 0, 0, 1], [0, 2**63, 2**64 - 1, 8]], np.uint64),
}


def forest(**changes):
    return Forest(**{name: np.array(values) for name, values in (TREES | changes).items()})


def model(**changes):
    fields = {
        "forest": forest(),
        "schema": Schema(names=None, n_features=3),
        "base_score": np.array([0.5]),
        "link": "identity",
        "classes": None,
        "trees_per_round": 1,
        "params": {},
        "kind": "regressor",
    }
    return Model(**(fields | changes))


MEDIAN = {"combine": "median", "tree_weights": np.array([2.0, 0.0, 1.5])}


def changed(name, position, value):
    """The trees with one number replaced."""
    values = np.array((TREES | SETS)[name], dtype=ALL_DTYPES[name])
    values[position] = value
    return {name: values}


def test_valid():
    model().validate()
    assert forest().n_trees == 3
    assert forest().n_nodes == 11
    assert forest().width == 1
    assert model().n_rounds == 3


def test_frozen():
    subject = model(**MEDIAN)
    with pytest.raises(dataclasses.FrozenInstanceError):
        subject.link = "softmax"
    for name in FOREST_DTYPES:  # the arrays of level sets are empty
        with pytest.raises(ValueError, match="read-only"):
            getattr(subject.forest, name)[0] = 0
    for scores in (subject.base_score, subject.tree_weights):
        with pytest.raises(ValueError, match="read-only"):
            scores[0] = 0


def test_freezing_leaves_the_callers_arrays_alone():
    values = np.zeros((11, 1))
    forest(value=values)
    values[0] = 1.0
    assert values.flags.writeable


def test_dtypes():
    for name, dtype in ALL_DTYPES.items():
        array = getattr(forest(), name)
        assert array.dtype == dtype
        assert array.flags.c_contiguous


def test_truncated():
    first = model().truncated(2)
    first.validate()
    assert first.n_trees == 2
    assert first.forest.n_nodes == 6
    assert model().truncated(0).n_trees == 0
    assert model().truncated(3).n_trees == 3
    model().truncated(0).validate()


def test_sets_of_levels():
    subject = forest(**SETS)
    subject.validate(n_features=3, n_outputs=1)
    assert subject.has_sets
    assert not forest().has_sets
    assert forest().level_set.tolist() == [-1] * 11
    first = subject.first(2)
    first.validate(n_features=3, n_outputs=1)
    assert first.level_sets.tolist() == SETS["level_sets"][:1].tolist()
    assert not subject.first(0).has_sets
    for parts, numbers in (
        ((first, subject), [0, 1, 2]),
        ((Forest.empty(), subject), [0, 1]),
        ((subject, Forest.empty()), [0, 1]),
    ):
        both = parts[0].joined(parts[1])
        both.validate(n_features=3, n_outputs=1)
        assert both.level_set[both.level_set >= 0].tolist() == numbers
        sets = np.concatenate([part.level_sets for part in parts])
        np.testing.assert_array_equal(both.level_sets, sets)


def test_truncated_counts_rounds():
    subject = model(
        forest=forest(output=[0, 1, 2]),
        base_score=np.zeros(3),
        link="softmax",
        kind="classifier",
        classes=np.arange(3),
        trees_per_round=3,
    )
    subject.validate()
    assert subject.n_rounds == 1
    assert subject.truncated(1).n_trees == 3


def test_joined():
    both = forest().first(2).joined(forest())
    both.validate(n_features=3, n_outputs=1)
    assert both.tree_start.tolist() == [0, 5, 6, 11, 12, 17]
    for name in FOREST_DTYPES:
        if name != "tree_start":
            parts = [getattr(forest().first(2), name), getattr(forest(), name)]
            np.testing.assert_array_equal(getattr(both, name), np.concatenate(parts))
    assert Forest.empty().joined(forest()).n_trees == 3
    assert forest().joined(Forest.empty()).tree_start.tolist() == [0, 5, 6, 11]


@pytest.mark.parametrize(
    "changes",
    [
        {"link": "exp"},
        {"link": "ordered", "base_score": np.zeros(2)},
        {"link": "logistic_of_double", "kind": "classifier", "classes": np.arange(2)},
    ],
)
def test_links(changes):
    model(**changes).validate()


def test_medians():
    subject = model(**MEDIAN)
    subject.validate()
    assert model().combine == "sum"
    assert model().tree_weights.shape == (0,)
    for rounds in range(4):
        shorter = subject.truncated(rounds)
        shorter.validate()
        assert (shorter.combine, shorter.n_trees) == ("median", rounds)
        assert shorter.tree_weights.tolist() == [2.0, 0.0, 1.5][:rounds]
    assert model().truncated(2).tree_weights.shape == (0,)
    assert subject.fields().keys() >= MEDIAN.keys()


def test_means_and_targets():
    for changes in (
        {"combine": "mean"},
        SHARES,
        SHARES | {"link": "share_of_two", "classes": np.arange(2)},
        NUMBERS,
        TARGETS,
        TARGETS | {"classes": (np.array([7]), np.array(["a", "b", "c"]))},
    ):
        subject = model(**changes)
        subject.validate()
        shorter = subject.truncated(0)
        shorter.validate()
        assert (shorter.combine, shorter.targets) == ("mean", changes.get("targets", ()))
    with pytest.raises(ValueError, match="read-only"):
        model(**TARGETS).classes[1][0] = "d"


@pytest.mark.parametrize("rounds", [-1, 4])
def test_truncated_out_of_range(rounds):
    with pytest.raises(ValueError, match=f"rounds={rounds} .*from 0 to 3"):
        model().truncated(rounds)


def test_empty_forest():
    for width in (1, 3):
        empty = Forest.empty(width)
        empty.validate(n_features=2, n_outputs=3)
        assert (empty.n_trees, empty.n_nodes, empty.width) == (0, 0, width)


BROKEN_TREES = {
    "cycle": (changed("left", 1, 1), "a child before its parent"),
    "self": (changed("left", 0, 0), "a lost node"),
    "shared child": (changed("left", 1, 1) | changed("left", 0, 3), "a lost node"),
    "child outside": (changed("left", 1, 4), "a child outside its tree"),
    "child in next tree": (changed("left", 5, 1), "a child outside its tree"),
    "far child": (changed("left", 1, 2**31 - 1), "a child outside its tree"),
    "negative child": (changed("left", 1, -1), "a negative child"),
    "two parents": (changed("left", 0, 3), "a lost node"),
    "feature": (changed("feature", 0, 3), "a split on an unknown feature"),
    "negative feature": (changed("feature", 0, -1), "a split on an unknown feature"),
    "threshold": (changed("threshold", 0, np.nan), "a threshold that is not a number"),
    "value": (changed("value", 2, np.inf), "a value that is not finite"),
    "gain": (changed("gain", 0, np.nan), "a gain that is not finite"),
    "cover": (changed("cover", 0, -1), "a negative cover"),
    "output": (changed("output", 1, 1), "an unknown output"),
    "negative output": (changed("output", 1, -1), "an unknown output"),
    "start": (changed("tree_start", 0, 1), "do not hold all nodes"),
    "end": (changed("tree_start", 3, 12), "do not hold all nodes"),
    "no nodes": (changed("tree_start", 1, 6), "a tree without nodes"),
    "backwards": (changed("tree_start", 1, 7), "a tree without nodes"),
    "short": ({"gain": np.zeros(10)}, "gain for 10 nodes"),
    "axes": ({"value": np.zeros(11)}, "value of 1 axes"),
    "starts": ({"output": np.zeros(4)}, "4 starts of 4 trees"),
    "width": ({"value": np.zeros((11, 2))}, "leaves of width 2"),
    "set": (SETS | changed("level_set", 1, 2), "not in the order of their nodes"),
    "sets in another order": (
        SETS | {"level_set": [-1, 1, *[-1] * 6, 0, -1, -1]},
        "not in the order of their nodes",
    ),
    "negative set": (SETS | changed("level_set", 1, -2), "not in the order of their nodes"),
    "one set twice": (SETS | changed("level_set", 8, 0), "not in the order of their nodes"),
    "set of nobody": (SETS | {"level_sets": np.zeros((3, 4))}, "not in the order of their nodes"),
    "no sets": ({"level_set": SETS["level_set"]}, "not in the order of their nodes"),
    "sets alone": ({"level_sets": SETS["level_sets"]}, "level_set for 0 nodes"),
    "set of a leaf": (
        SETS | {"level_set": [-1, 0, 1, *[-1] * 8]},
        "a leaf with a set of levels",
    ),
    "words": (SETS | {"level_sets": np.zeros((2, 3))}, "sets of 3 words"),
    "flat sets": (SETS | {"level_sets": np.zeros(2)}, "level_sets of 1 axes"),
    "both kinds": (
        SETS | {"level_set": [-1, 0, *[-1] * 9], "level_sets": np.zeros((1, 4))},
        "both split by sets and by thresholds",
    ),
}


CATEGORY = schema_of([0, 0, 255])


def test_sets_are_for_categories_only():
    model(forest=forest(**SETS), schema=CATEGORY).validate()
    for wrong in (model(forest=forest(**SETS)), model(schema=CATEGORY)):
        with pytest.raises(ValueError, match="sets for splits of no category"):
            wrong.validate()


@pytest.mark.parametrize(("changes", "message"), BROKEN_TREES.values(), ids=BROKEN_TREES)
def test_broken_trees(changes, message):
    with pytest.raises(ValueError, match=f"inconsistent model: .*{message}"):
        model(forest=forest(**changes)).validate()


SOFTMAX = {"kind": "classifier", "link": "softmax"}
LOGISTIC = {"kind": "classifier", "link": "logistic"}

SHARES = {"kind": "classifier", "link": "shares", "combine": "mean", "classes": np.arange(1)}
WIDE = {"forest": Forest.empty(4), "base_score": np.zeros(4), "combine": "mean"}
NUMBERS = WIDE | {"targets": (1, 1, 1, 1)}
TARGETS = WIDE | {
    "kind": "classifier",
    "link": "shares",
    "classes": (np.arange(2), np.array(["a", "b", "c"])),
    "targets": (1, 3),
}

BROKEN_MODELS = {
    "no outputs": ({"base_score": np.zeros(0)}, "no base score"),
    "base score": ({"base_score": np.array([np.nan])}, "not finite"),
    "link": ({"link": "probit"}, "the link 'probit'"),
    "kind": ({"kind": "clusterer"}, "the kind 'clusterer'"),
    "no classes": (LOGISTIC, "classes and kind"),
    "classes": ({"classes": np.arange(2)}, "classes and kind"),
    "link and kind": ({"link": "softmax"}, "link and kind"),
    "link of doubles": ({"link": "logistic_of_double"}, "link and kind"),
    "exponentials as classes": (LOGISTIC | {"link": "exp", "classes": np.arange(2)}, "link and"),
    "three of doubles": (
        LOGISTIC | {"link": "logistic_of_double", "classes": np.arange(3)},
        "3 classes",
    ),
    "outputs of doubles": (
        LOGISTIC | {"classes": np.arange(2), "base_score": np.zeros(2)},
        "link and outputs",
    ),
    "three of two": (LOGISTIC | {"classes": np.arange(3)}, "3 classes"),
    "two of one": (SOFTMAX | {"classes": np.arange(2)}, "2 classes"),
    "rounds": ({"trees_per_round": 0}, "0 trees per round"),
    "unfinished": ({"trees_per_round": 2}, "an unfinished round"),
    "names": ({"schema": Schema(names=("a",), n_features=3)}, "1 feature names"),
    "equal": ({"schema": Schema(names=("a", "b", "a"), n_features=3)}, "two features of one name"),
    "combination": ({"combine": "mode"}, "the combination 'mode'"),
    "short mean": ({"combine": "mean", "tree_weights": np.ones(2)}, "tree weights of shape"),
    "weights of a mean": ({"combine": "mean", "tree_weights": np.full(3, 2.0)}, "is not 1"),
    "shares of a sum": (SHARES | {"combine": "sum"}, "shares by sum"),
    "one share for three": (
        SHARES | {"link": "share_of_two", "classes": np.arange(3)},
        "3 classes",
    ),
    "shares and classes": (SHARES | {"classes": np.arange(2)}, "2 classes"),
    "one target": (TARGETS | {"targets": (4,)}, "a single target"),
    "target of nothing": (TARGETS | {"targets": (0, 1, 3)}, "a target without outputs"),
    "outputs of targets": (TARGETS | {"targets": (1, 2)}, "targets of 3 outputs"),
    "targets of a sum": (NUMBERS | {"combine": "sum"}, "several targets by sum"),
    "number of two outputs": (NUMBERS | {"targets": (1, 3)}, "several outputs for one number"),
    "exp of targets": (NUMBERS | {"link": "exp"}, "several targets with the link 'exp'"),
    "link of targets": (TARGETS | {"link": "softmax"}, "several targets with the link 'softmax'"),
    "classes of one": (TARGETS | {"classes": np.arange(4)}, "classes of a single target"),
    "classes of none": (TARGETS | {"targets": ()}, "classes of several targets"),
    "targets and classes": (TARGETS | {"classes": (np.arange(2),)}, "classes of 1 targets"),
    "classes of a target": (TARGETS | {"classes": (np.arange(2), np.arange(4))}, "4 classes"),
    "weighted sum": ({"tree_weights": np.ones(3)}, r"tree weights of shape \(3,\)"),
    "no weights": ({"combine": "median"}, r"tree weights of shape \(0,\)"),
    "a weight missing": (MEDIAN | {"tree_weights": np.ones(2)}, "tree weights of shape"),
    "weights as a table": (MEDIAN | {"tree_weights": np.ones((3, 1))}, "tree weights of shape"),
    "negative weight": (MEDIAN | {"tree_weights": np.array([1, -1, 1])}, "a negative tree weight"),
    "endless weight": (MEDIAN | {"tree_weights": np.array([1, np.inf, 1])}, "weight .* not finite"),
    "lost weight": (MEDIAN | {"tree_weights": np.array([1, 1, np.nan])}, "weight .* not finite"),
    "no first weight": (MEDIAN | {"tree_weights": np.array([0, 1, 1])}, "first tree without"),
    "link of a median": (MEDIAN | {"link": "exp"}, "a median with the link 'exp'"),
    "outputs of a median": (MEDIAN | {"base_score": np.zeros(2)}, "a median of 2 outputs"),
    "rounds of a median": (MEDIAN | {"trees_per_round": 3}, "several trees per round"),
    "classes of a median": (MEDIAN | LOGISTIC | {"classes": np.arange(2)}, "the link 'logistic'"),
}


@pytest.mark.parametrize(("changes", "message"), BROKEN_MODELS.values(), ids=BROKEN_MODELS)
def test_broken_models(changes, message):
    with pytest.raises(ValueError, match=message):
        model(**changes).validate()
