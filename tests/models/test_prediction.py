"""Prediction from hand-made and random trees, against a walk in plain Python; leaves and paths."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import arboost
from arboost.data.schema import Schema
from arboost.data.table import ingest
from arboost.losses.links import LINKS, predictions, probabilities
from arboost.models.prediction import decision_path, leaf_ids, raw_scores, staged_raw_scores
from arboost.models.predictor import Predictor
from arboost.trees.forest import Forest, depths, parents
from support.random_models import (
    ODD_CODES,
    THRESHOLDS,
    make_model,
    random_forest,
    random_table,
    walk,
)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("n_rows", [1, 7, 8, 9, 65, 300])
@pytest.mark.parametrize(("n_outputs", "width"), [(1, 1), (3, 1), (3, 3)])
def test_same_as_a_plain_walk(rng, n_outputs, width, n_rows, missing):
    forest = random_forest(rng, 12, 5, n_outputs, width)
    model = make_model(forest, 5, n_outputs)
    X = random_table(rng, n_rows, 5, missing)
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=1), walk(model, X))


@pytest.mark.parametrize("n_rows", [1, 9, 300])
@pytest.mark.parametrize(("n_outputs", "width"), [(1, 1), (3, 1), (3, 3)])
def test_sets_of_levels_same_as_a_plain_walk(rng, n_outputs, width, n_rows):
    """Level codes, and invalid codes, which are missing values."""
    forest = random_forest(rng, 12, 5, n_outputs, width, categories=[1, 3])
    model = make_model(forest, 5, n_outputs, categories=[1, 3])
    X = random_table(rng, n_rows, 5)
    X[:, [1, 3]] = rng.integers(0, 255, (n_rows, 2))
    X[:, [1, 3]] = np.where(
        rng.random((n_rows, 2)) < 0.3, rng.choice(ODD_CODES, (n_rows, 2)), X[:, [1, 3]]
    )
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=1), walk(model, X))
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=2), walk(model, X))


def test_values_exactly_at_thresholds(rng):
    model = make_model(random_forest(rng, 30, 3, 1, 1), 3, 1)
    finite = THRESHOLDS[np.isfinite(THRESHOLDS)]
    at = np.concatenate([finite, np.nextafter(finite, np.inf), np.nextafter(finite, -np.inf)])
    X = rng.choice(np.concatenate([at, THRESHOLDS]), (200, 3))
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=1), walk(model, X))


@pytest.mark.parametrize("n_threads", [2, 4])
def test_threads_do_not_matter(rng, n_threads):
    model = make_model(random_forest(rng, 50, 6, 3, 3), 6, 3)
    X = random_table(rng, 20_000, 6)
    one = raw_scores(model, X, n_threads=1)
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=n_threads), one)


def test_neighbours_do_not_matter(rng):
    model = make_model(random_forest(rng, 50, 6, 1, 1), 6, 1)
    X = random_table(rng, 500, 6)
    whole = raw_scores(model, X, n_threads=1)
    for rows in (slice(0, 1), slice(3, 20), slice(499, 500)):
        np.testing.assert_array_equal(raw_scores(model, X[rows], n_threads=1), whole[rows])


def test_many_columns(rng):
    """So many columns that a block holds few rows, and most columns are never read."""
    n_features = 5000
    model = make_model(random_forest(rng, 40, n_features, 1, 1), n_features, 1)
    X = random_table(rng, 50, n_features)
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=2), walk(model, X))


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.int64, np.uint16, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_types_and_orders(rng, dtype, order):
    model = make_model(random_forest(rng, 20, 4, 1, 1), 4, 1)
    X = np.asarray(rng.integers(0, 2, (60, 4)), dtype=dtype, order=order)
    np.testing.assert_array_equal(raw_scores(model, X, n_threads=1), walk(model, X.astype(float)))


def test_staged(rng):
    model = make_model(random_forest(rng, 12, 4, 3, 1), 4, 3, trees_per_round=3)
    X = random_table(rng, 40, 4)
    stages = list(staged_raw_scores(model, X, n_threads=1))
    assert len(stages) == model.n_rounds == 4
    for rounds, stage in enumerate(stages, start=1):
        np.testing.assert_array_equal(stage, walk(model, X, 3 * rounds))
        shorter = model.truncated(rounds)
        np.testing.assert_array_equal(stage, raw_scores(shorter, X, n_threads=1))


def test_no_trees():
    model = make_model(Forest.empty(), 2, 1)
    np.testing.assert_array_equal(model.predict([[1, 2], [3, 4]]), [-1.0, -1.0])


@pytest.mark.filterwarnings("ignore:y has one class only")
def test_one_class():
    model = Predictor(
        forest=Forest.empty(),
        schema=Schema(names=None, n_features=1),
        base_score=np.zeros(1),
        link="softmax",
        classes=np.array(["only"]),
        trees_per_round=1,
        params={},
        kind="classifier",
    )
    model.validate()
    np.testing.assert_array_equal(model.predict_proba([[1], [2]]), [[1.0], [1.0]])
    np.testing.assert_array_equal(model.predict([[1], [2]]), ["only", "only"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"left": [9, 0, 0]}, "a child outside its tree"),
        ({"feature": [7, -1, -1]}, "a split on an unknown column"),
        ({"output": [1]}, "a tree for an unknown output"),
        ({"tree_start": [0, 4]}, "trees outside the nodes"),
        ({"gain": [0, 0, 0], "threshold": [0, 0]}, "differ in length"),
        ({"value": np.zeros((3, 2))}, "leaves that do not fit"),
        ({"level_set": [1, -1, -1], "level_sets": np.zeros((1, 4))}, "an unknown set of levels"),
        ({"level_set": [0, -1, -1]}, "an unknown set of levels"),
        ({"level_set": [0, -1], "level_sets": np.zeros((1, 4))}, "differ in length"),
        ({"level_set": [0, -1, -1], "level_sets": np.zeros((1, 3))}, "differ in length"),
    ],
)
def test_core_refuses_broken_trees(changes, message):
    """Even with a forest that was not validated the core stays inside its arrays."""
    arrays = {
        "tree_start": [0, 3],
        "feature": [0, -1, -1],
        "threshold": [0, 0, 0],
        "left": [1, 0, 0],
        "default_left": [True, False, False],
        "value": np.zeros((3, 1)),
        "gain": [0, 0, 0],
        "cover": [0, 0, 0],
        "output": [0],
    }
    forest = Forest(**{name: np.array(value) for name, value in (arrays | changes).items()})
    model = make_model(Forest.empty(), 1, 1)
    object.__setattr__(model, "forest", forest)
    with pytest.raises(ValueError, match=message):
        model.predict([[0.0]])


def test_links_are_stable():
    raw = np.array([[-1000.0], [-40.0], [0.0], [40.0], [1000.0]])
    both = LINKS["logistic"](raw)
    np.testing.assert_allclose(both[1:, 1], 1 / (1 + np.exp(-raw[1:, 0])))
    np.testing.assert_array_equal(both[:, 0], both[::-1, 1])
    assert both[1, 1] > 0
    scores = np.array([[1e308, -1e308, 0.0], [700.0, 710.0, 720.0], [-5e3, -5e3, -5e3]])
    with np.errstate(over="ignore"):
        assert np.isfinite(LINKS["softmax"](scores)).all()
    np.testing.assert_allclose(LINKS["softmax"](scores[1:]).sum(axis=1), 1.0)
    assert LINKS["identity"](raw) is raw


def test_predictions_follow_probabilities(rng):
    model = make_model(random_forest(rng, 12, 4, 3, 1), 4, 3, trees_per_round=3)
    raw = raw_scores(model, random_table(rng, 200, 4), n_threads=1)
    np.testing.assert_array_equal(predictions(model, raw), probabilities(model, raw).argmax(axis=1))


def test_regressor_has_no_probabilities():
    model = make_model(Forest.empty(), 2, 1)
    refused = r"predict_proba is not available for a regressor.*Use predict"
    with pytest.raises(TypeError, match=refused):
        model.predict_proba([[1, 2]])


@pytest.mark.parametrize("n_jobs", [0, -2, 1.5, "2", True])
def test_n_jobs_is_checked(n_jobs):
    model = make_model(Forest.empty(), 2, 1)
    with pytest.raises((TypeError, ValueError), match="n_jobs="):
        model.predict([[1, 2]], n_jobs=n_jobs)


def test_copies(rng):
    model = make_model(random_forest(rng, 12, 4, 1, 1), 4, 1)
    X = random_table(rng, 40, 4)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    assert repr(pickle.loads(pickle.dumps(model))) == "Predictor(regressor, 4 features, 12 trees)"


FRAME = pd.DataFrame(
    {"a": np.arange(40.0), "b": np.arange(40.0) % 3, "c": ["x", "y"] * 20, "d": pd.Timestamp(0)}
)
LABELS = np.arange(40) % 3
NUMBERS = FRAME[["a", "b"]].to_numpy()
MODELS = [
    arboost.GradientBoostingClassifier(n_estimators=2),
    arboost.AdaBoostClassifier(n_estimators=2),
    arboost.RandomForestClassifier(2, random_state=0),
    arboost.DecisionTreeClassifier(max_depth=2),
]
METHODS = ("predict", "predict_proba", "predict_raw", "apply", "shap_values", "decision_function")


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("estimator", MODELS, ids=lambda one: type(one).__name__)
def test_every_method_and_loaded_models(estimator, named, tmp_path):
    X = FRAME if named else NUMBERS
    estimator.fit(X, LABELS)
    estimator.save(tmp_path / "model.arb")
    empty = [[], (), X[:0], *([{name: [] for name in X}, X[:0].to_dict("list")] if named else [])]
    for model in (estimator, estimator.model_, arboost.load(tmp_path / "model.arb")):
        assert model.predict_proba([]).shape == (0, 3)
        assert model.predict([]).shape == (0,)
        for method in METHODS:
            if method == "decision_function" and not hasattr(estimator, method):
                continue
            expected = getattr(model, method)(X[:0])
            for table in empty:
                actual = getattr(model, method)(table)
                assert actual.shape == expected.shape
                assert actual.dtype == expected.dtype


@pytest.mark.parametrize("kind", [arboost.BaggingClassifier, arboost.VotingClassifier])
def test_ensembles(kind, tmp_path):
    tree = arboost.DecisionTreeClassifier(max_depth=2)
    model = kind(tree if kind is arboost.BaggingClassifier else [("tree", tree)])
    for X in (FRAME, NUMBERS):
        model.fit(X, LABELS).save(tmp_path / "model.arb")
        for one in (model, arboost.load(tmp_path / "model.arb")):
            assert one.predict([]).shape == one.predict(X[:0]).shape == (0,)


@pytest.mark.parametrize("table", [[[]], {}, pd.DataFrame()], ids=["rows", "dict", "frame"])
def test_tables_without_columns_are_refused(table):
    model = arboost.GradientBoostingClassifier(n_estimators=2).fit(FRAME, LABELS)
    for one in (model, model.model_):
        with pytest.raises(ValueError, match="0 feature"):
            one.predict_proba(table)


def test_extra_keys_are_refused_as_extra_columns():
    model = arboost.GradientBoostingClassifier(n_estimators=2).fit(FRAME[["a", "b"]], LABELS)
    row = {"a": 1.0, "b": 2.0, "z": 3.0}
    tables = [row, [row], {name: [value] for name, value in row.items()}, pd.DataFrame([row])]
    for one in (model, model.model_):
        for table in tables:
            with pytest.raises(arboost.SchemaError, match=r"unseen at fit time:\n- z"):
                one.predict_proba(table)


def test_an_empty_list_is_no_table_to_fit():
    with pytest.raises(ValueError, match="Expected 2D array"):
        arboost.GradientBoostingClassifier().fit([], [])


def walked(forest, X):
    """Nodes of each row in each tree, from the root to the leaf."""
    paths = [[[] for _ in range(forest.n_trees)] for _ in X]
    for row, x in enumerate(X):
        for tree in range(forest.n_trees):
            start, node = forest.tree_start[tree], 0
            path = paths[row][tree]
            path.append(0)
            while forest.left[start + node]:
                at = start + node
                value, number = x[forest.feature[at]], forest.level_set[at]
                goes_left = forest.default_left[at]
                if number >= 0:
                    if value in range(255):
                        word = int(forest.level_sets[number, int(value) // 64])
                        goes_left = word >> (int(value) % 64) & 1
                elif not np.isnan(value):
                    goes_left = value <= forest.threshold[at]
                node = int(forest.left[at]) + (not goes_left)
                path.append(node)
    return paths


CASES = [(1, 1, 1), (3, 1, 3), (3, 3, 1)]  # outputs, width, trees of a round


@pytest.mark.parametrize("n_rows", [1, 9, 200])
@pytest.mark.parametrize(("n_outputs", "width", "per_round"), CASES)
@pytest.mark.parametrize("categories", [(), (1, 3)])
def test_leaves_and_paths(rng, n_rows, n_outputs, width, per_round, categories):
    forest = random_forest(rng, 12, 5, n_outputs, width, categories=categories)
    model = make_model(forest, 5, n_outputs, per_round, categories)
    X = random_table(rng, n_rows, 5)
    for feature in categories:
        X[:, feature] = rng.choice([*range(255), *ODD_CODES], n_rows)
    numbers = ingest(X, make_model(forest, 5, n_outputs).schema) if not categories else None
    table = numbers or raw_codes(X, model.schema)
    expected = walked(forest, X)
    actual = leaf_ids(model, table, n_threads=1)
    assert actual.dtype == np.int32
    np.testing.assert_array_equal(actual, [[path[-1] for path in row] for row in expected])

    indicator, tree_start = decision_path(model, table, n_threads=1)
    np.testing.assert_array_equal(tree_start, forest.tree_start)
    assert indicator.shape == (n_rows, forest.n_nodes)
    assert indicator.has_sorted_indices
    assert (indicator.data == 1).all()
    for row, paths in enumerate(expected):
        nodes = np.concatenate([forest.tree_start[t] + path for t, path in enumerate(paths)])
        start, end = indicator.indptr[row : row + 2]
        np.testing.assert_array_equal(indicator.indices[start:end], nodes)


def raw_codes(X, schema):
    """A table of level codes, some of them invalid."""
    table = ingest(X)
    return type(table)(table.columns, schema)


def test_same_for_any_number_of_threads(rng):
    forest = random_forest(rng, 30, 5, 1, 1, n_splits=60)
    model = make_model(forest, 5, 1)
    table = ingest(random_table(rng, 20_000, 5), model.schema)
    one, four = (leaf_ids(model, table, n_threads=n) for n in (1, 4))
    assert one.tobytes() == four.tobytes()


def test_no_trees_and_no_rows(rng):
    empty = make_model(Forest.empty(), 2, 1)
    table = ingest(np.zeros((4, 2)), empty.schema)
    assert leaf_ids(empty, table, n_threads=1).shape == (4, 0)
    indicator, tree_start = decision_path(empty, table, n_threads=1)
    assert indicator.shape == (4, 0)
    assert tree_start.tolist() == [0]
    model = make_model(random_forest(rng, 3, 2, 1, 1), 2, 1)
    no_rows = ingest(np.zeros((0, 2)), model.schema)
    assert leaf_ids(model, no_rows, n_threads=1).shape == (0, 3)
    assert decision_path(model, no_rows, n_threads=1)[0].shape == (0, model.forest.n_nodes)


def test_parents_and_depths(rng):
    forest = random_forest(rng, 20, 5, 1, 1)
    above, depth = parents(forest), depths(forest)
    expected_parent, expected_depth = np.full(forest.n_nodes, -1), np.zeros(forest.n_nodes)
    for start, end in zip(forest.tree_start[:-1], forest.tree_start[1:], strict=True):
        for node in range(start, end):
            if forest.left[node]:
                children = start + forest.left[node] + np.arange(2)
                expected_parent[children] = node
                expected_depth[children] = expected_depth[node] + 1
    np.testing.assert_array_equal(above, expected_parent)
    np.testing.assert_array_equal(depth, expected_depth)


def test_core_refuses_what_does_not_fit(rng):
    packed = make_model(random_forest(rng, 3, 2, 1, 1), 2, 1).packed
    columns = ingest(np.zeros((4, 2))).columns
    for shape in ((4, 2), (3, 3)):
        with pytest.raises(ValueError, match="one column for each tree"):
            packed.leaves(columns, np.empty(shape, np.int32), 1)
    with pytest.raises(TypeError):
        packed.leaves(columns, np.empty((4, 3), np.int64), 1)
    with pytest.raises(ValueError, match="another number of columns"):
        packed.leaves(ingest(np.zeros((4, 3))).columns, np.empty((4, 3), np.int32), 1)
