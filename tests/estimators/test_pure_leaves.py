"""Trees without limits grow until their leaves are pure, by a bin for each value where needed."""

import numpy as np
import pandas as pd
import pytest

from arboost import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    Dataset,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
    compare,
)
from arboost.workers import Share
from support.local_workers import run_workers

ROWS = 3000
LARGE = 32_769
rng = np.random.default_rng(8)
X = rng.normal(size=(ROWS, 1))
NUMBERS = rng.normal(size=ROWS)
LABELS = rng.integers(0, 3, ROWS)
FRAME = pd.DataFrame({"x": X[:, 0], "y": LABELS})


def found_bins(model):
    return model.model_.params["max_bins"]


def model_bytes(model, folder):
    model.save(folder / "model.arb")
    return (folder / "model.arb").read_bytes()


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeClassifier(),
        DecisionTreeClassifier(criterion="entropy", splitter="random"),
        DecisionTreeClassifier(max_leaf_nodes=ROWS),
        RandomForestClassifier(n_estimators=2, bootstrap=False),
        ExtraTreesClassifier(n_estimators=2),
        AdaBoostClassifier(max_depth=None),
        AdaBoostClassifier(DecisionTreeClassifier()),
        BaggingClassifier(DecisionTreeClassifier(), n_estimators=2, bootstrap=False),
        VotingClassifier([("one", DecisionTreeClassifier()), ("two", DecisionTreeClassifier())]),
    ],
    ids=lambda model: str(model)[:60],
)
def test_labels_of_training_rows_are_predicted(model):
    model.set_params(verbose=0)
    assert model.fit(X, LABELS).score(X, LABELS) == 1.0


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(),
        RandomForestRegressor(n_estimators=2, bootstrap=False),
        ExtraTreesRegressor(n_estimators=2),
        AdaBoostRegressor(max_depth=None),
        AdaBoostRegressor(max_depth=None, max_leaves=2 * ROWS),
        AdaBoostRegressor(DecisionTreeRegressor()),
    ],
    ids=lambda model: str(model)[:60],
)
def test_numbers_of_training_rows_are_predicted(model):
    model.set_params(verbose=0)
    np.testing.assert_allclose(model.fit(X, NUMBERS).predict(X), NUMBERS, rtol=1e-6)


def test_a_tree_is_that_of_all_values():
    exact = DecisionTreeClassifier(tree_method="exact").fit(X, LABELS)
    tree = DecisionTreeClassifier().fit(X, LABELS)
    np.testing.assert_array_equal(tree.model_.forest.threshold, exact.model_.forest.threshold)
    assert found_bins(tree) == 65_535


def test_several_targets():
    y = np.column_stack([np.zeros(ROWS, int), LABELS])
    tree = DecisionTreeClassifier().fit(X, y)
    np.testing.assert_array_equal(tree.predict(X), y)


def test_strings_as_labels():
    y = np.array(["ash", "beech", "cedar"])[LABELS]
    assert DecisionTreeClassifier().fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize(
    "limit", [{"max_depth": 8}, {"max_leaf_nodes": 256}, {"max_depth": 30, "max_leaf_nodes": 9}]
)
def test_trees_of_few_leaves_have_255_bins(limit, tmp_path):
    tree = DecisionTreeClassifier(**limit).fit(X, LABELS)
    usual = DecisionTreeClassifier(**limit, max_bins=255).fit(X, LABELS)
    assert model_bytes(tree, tmp_path) == model_bytes(usual, tmp_path)


def test_boosters_have_255_bins():
    assert found_bins(AdaBoostClassifier(n_estimators=2).fit(X, LABELS)) == 255
    assert found_bins(AdaBoostRegressor(n_estimators=2).fit(X, NUMBERS)) == 255


def test_255_bins_that_tell_all_rows_apart_stay(tmp_path):
    wide = np.random.default_rng(0).normal(size=(ROWS, 8))
    forest = RandomForestRegressor(n_estimators=2).fit(wide, NUMBERS)
    usual = RandomForestRegressor(n_estimators=2, max_bins=255).fit(wide, NUMBERS)
    assert model_bytes(forest, tmp_path) == model_bytes(usual, tmp_path)


def test_equal_rows_of_other_targets_need_no_more_bins():
    twice = np.repeat(np.column_stack([np.arange(ROWS / 2) // 7, np.arange(ROWS / 2) % 7]), 2, 0)
    assert len(np.unique(twice[:, 0])) < 255
    many = np.column_stack([twice, np.arange(ROWS) // 2 * 1.0])  # more values, same rows
    assert found_bins(DecisionTreeClassifier().fit(many, LABELS)) == 255


def test_large_tables_have_255_bins():
    values = np.random.default_rng(1).normal(size=(LARGE, 1))
    labels = np.arange(LARGE) % 2
    assert found_bins(DecisionTreeClassifier().fit(values, labels)) == 255
    assert found_bins(DecisionTreeClassifier().fit(values[1:], labels[1:])) == 65_535


def test_weights_of_zero_do_not_count():
    weight = np.where(np.arange(ROWS) < 200, 1.0, 0.0)
    assert found_bins(DecisionTreeClassifier().fit(X, LABELS, weight)) == 255


def test_a_dataset_has_its_bins():
    assert found_bins(DecisionTreeClassifier().fit(Dataset(X, LABELS))) == 255
    assert found_bins(DecisionTreeClassifier().fit(Dataset(X, LABELS, max_bins=40))) == 40
    data = Dataset(X, LABELS, max_bins="auto")
    assert data.max_bins == 65_535
    assert DecisionTreeClassifier().fit(data).score(X, LABELS) == 1.0
    assert Dataset(X, max_bins="auto").max_bins == 255  # without a target
    with pytest.raises(ValueError, match="max_bins=50 is not allowed: the Dataset was binned with"):
        DecisionTreeClassifier(max_bins=50).fit(data)


def test_deep_and_shallow_members_of_a_comparison_have_bins_of_their_own():
    models = {
        "deep": DecisionTreeClassifier(verbose=0),
        "shallow": DecisionTreeClassifier(max_depth=2, verbose=0),
    }
    table = np.repeat(X, 2, axis=0)
    scores = compare(table, np.repeat(LABELS, 2), models=models, metric="accuracy", verbose=0)
    by_name = {one.name: one.mean for one in scores.models}
    assert by_name["deep"] > 0.6 > by_name["shallow"]  # of most held-out rows, the twin is known


@pytest.mark.parametrize(
    "model",
    [RandomForestClassifier(n_estimators=3), ExtraTreesClassifier(n_estimators=2)],
    ids=lambda model: type(model).__name__,
)
def test_bytes_do_not_depend_on_threads_files_and_workers(model, tmp_path):
    pytest.importorskip("pyarrow")
    model.set_params(verbose=0)
    expected = model_bytes(model.set_params(n_jobs=1).fit(FRAME, "y"), tmp_path)
    assert found_bins(model) == 65_535
    for n_jobs in (2, 4):
        assert model_bytes(model.set_params(n_jobs=n_jobs).fit(FRAME, "y"), tmp_path) == expected
    FRAME.to_parquet(tmp_path / "rows.parquet")
    assert model_bytes(model.fit(str(tmp_path / "*.parquet"), "y"), tmp_path) == expected
    ends = [0, 700, 700, ROWS]

    def program(worker):
        rows = FRAME.iloc[ends[worker.rank] : ends[worker.rank + 1]]
        own = type(model)(**model.get_params()).fit(Share(lambda: [rows], worker), "y")
        folder = tmp_path / str(worker.rank)
        folder.mkdir()
        return model_bytes(own, folder)

    assert run_workers(3, program) == [expected] * 3


def test_held_out_rows_need_no_bins(tmp_path):
    """Rows that early stopping holds out have no part in the choice, of tables and of files."""
    pytest.importorskip("pyarrow")
    frame = FRAME.iloc[:400]
    frame.to_parquet(tmp_path / "rows.parquet")
    model = AdaBoostClassifier(max_depth=None, n_estimators=3, n_iter_no_change=1, verbose=0)
    expected = model_bytes(model.fit(frame, "y"), tmp_path)
    assert model_bytes(model.fit(str(tmp_path / "*.parquet"), "y"), tmp_path) == expected
