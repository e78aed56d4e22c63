"""Memory that files can make a reader take, measured as resident memory."""

import os

import numpy as np
import pytest

import arboost
from arboost import ModelFormatError
from arboost.data.schema import Schema
from arboost.models.files import model_file, packed_trees
from arboost.models.files.container import FLOOR, FREE_FEATURES, MULTIPLE, Budget, pack
from arboost.models.predictor import Predictor
from support.memory import needs_proc, peak_of
from support.model_files import small_model, with_header

MEGABYTE = 2**20
SMALL = model_file.to_bytes(small_model(names=None))


def with_features(n_features):
    def change(header):
        header["schema"]["n_features"] = n_features

    return with_header(SMALL, change)


def with_labels(values, width):
    def change(header):
        header["classes"] = {"dtype": f"<U{width}", "values": values}

    return with_header(model_file.to_bytes(small_model(np.array(["a", "b"]))), change)


@pytest.mark.parametrize("n_features", [FREE_FEATURES + 2000, 2**33, 2**63, 10**30])
def test_columns_without_bytes_are_refused(n_features):
    data = with_features(n_features)
    with pytest.raises(ModelFormatError, match=f"{n_features} features in a file of {len(data)} b"):
        model_file.from_bytes(data)


@needs_proc
def test_methods_of_the_most_columns_take_little_memory(tmp_path):
    path = tmp_path / "model.arb"
    path.write_bytes(with_features(FREE_FEATURES))
    uses = "; model.summary(); model.to_json(); model.importances(); model.to_c()"
    action = "model = arboost.load(path)" + uses
    message, grown = peak_of(
        action, os.fspath(path), "arboost.load; import arboost.models.predictor"
    )
    assert message == "done"
    assert grown < FLOOR


@pytest.mark.parametrize("layout", model_file.LAYOUTS)
def test_models_of_many_columns_are_read(layout):
    """Tables without names may have any number of columns: the file has a byte for each."""
    n_features = FREE_FEATURES + 5000
    schema = Schema(names=None, n_features=n_features)
    data = model_file.to_bytes(small_model(schema=schema), layout)
    assert model_file.from_bytes(data).schema.n_features == n_features
    assert len(data) > 5000
    assert len(model_file.to_bytes(small_model(names=None), layout)) < 3000


@needs_proc
def test_labels_take_no_more_than_the_budget(tmp_path):
    """One label of 1 MB, or a width of 65,536 characters, times 20,000 labels."""
    path = tmp_path / "model.arb"
    others = [f"{i}" for i in range(20_000)]
    for values, width in [([*others, "x" * MEGABYTE], MEGABYTE), (others, 2**16)]:
        path.write_bytes(with_labels(values, width))
        message, grown = peak_of("arboost.load(path)", os.fspath(path), "arboost.load")
        assert "class labels of" in message
        assert grown < 64 * MEGABYTE


def zeros(n_trees, n_splits, width):
    """Return a file of valid trees in which all numbers are 0, in as few bytes as there can be."""
    forest = small_model().forest
    left = np.tile(np.r_[np.arange(1, 2 * n_splits, 2), np.zeros(n_splits + 1, int)], n_trees)
    n_nodes = len(left)
    starts = np.arange(n_trees + 1) * (2 * n_splits + 1)
    forest = type(forest)(
        tree_start=starts,
        left=left,
        feature=np.where(left, 0, -1),
        default_left=np.zeros(n_nodes, bool),
        value=np.zeros((n_nodes, width)),
        output=np.zeros(n_trees, int),
        **{name: np.zeros(n_nodes) for name in ("threshold", "gain", "cover")},
    )
    labels = np.arange(width)
    model = small_model(labels, forest=forest, base_score=np.zeros(width), link="softmax")
    header, arrays = model_file.describe(model)
    header["width"] = width
    return pack(model_file.FORMAT, header, arrays | packed_trees.to_sections(forest))


@needs_proc
def test_packed_zeros_stay_in_the_budget(tmp_path):
    path = tmp_path / "model.arb"
    data = zeros(2, 300, 2000)
    path.write_bytes(data)
    message, grown = peak_of("arboost.load(path)", os.fspath(path), "arboost.load")
    assert message == "done"
    assert grown > 150 * len(data), "numbers of 0 are cheap to store"
    assert grown < FLOOR + MULTIPLE * len(data)


def test_memory_is_counted_before_it_is_allocated():
    """Trees that would take a terabyte, with all the bytes of their structure."""
    budget = Budget(1000)
    sections = {
        "splits": np.full(1, 500, np.uint32),
        "structure": np.zeros(126, np.uint8),
    }
    with pytest.raises(ValueError, match=r"trees of .* bytes, where a file of 1000 bytes may take"):
        packed_trees.from_sections(sections, 2**27, budget)
    budget.take(FLOOR, "something")
    budget.take(1000 * MULTIPLE, "more")
    with pytest.raises(ValueError, match="a last byte of 1 bytes"):
        budget.take(1, "a last byte")


def test_a_tree_of_many_classes_is_read():
    """Leaves of 300 shares, nearly all 0: the best compression of a real model."""
    rng = np.random.default_rng(0)
    y = np.arange(300)
    tree = arboost.DecisionTreeClassifier().fit(rng.normal(size=(300, 2)), y).model_
    data = model_file.to_bytes(tree)
    assert tree.forest.value.nbytes > 30 * len(data)
    again = Predictor(**model_file.from_bytes(data).fields())
    np.testing.assert_array_equal(again.forest.value, tree.forest.value)
