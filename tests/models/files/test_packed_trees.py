"""Packed trees: every bit is restored, and every invalid section is refused."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arboost import ModelFormatError
from arboost.backend import core
from arboost.models.files import model_file, packed_trees
from arboost.models.files.container import Budget, pack, unpack
from arboost.models.predictor import Predictor
from arboost.trees.forest import ALL_DTYPES, Forest
from support.mean_models import mean_of
from support.memory import needs_proc, peak_of
from support.model_files import small_model
from support.random_models import make_model, random_forest
from support.scrambled_models import MODELS, scrambled

NUMBERS = st.one_of(
    st.integers(0, 3),
    st.integers(0, 2**64 - 1),
    st.integers(0, 63).flatmap(lambda bit: st.just(2**bit)),
)


@given(st.lists(NUMBERS, max_size=200), st.integers(0, 130))
def test_bits_come_back(numbers, n_zeros):
    array = np.array([*numbers, *[0] * n_zeros, *numbers], np.uint64)
    packed = core.pack_bits(array)
    np.testing.assert_array_equal(core.unpack_bits(packed, len(array)), array)
    np.testing.assert_array_equal(core.pack_bits(array), packed)
    with pytest.raises(ValueError, match="fewer bytes than blocks"):
        core.unpack_bits(packed, len(array) + 2**60)
    with pytest.raises(ValueError, match="another number of bytes"):
        core.unpack_bits(np.append(packed, np.uint8(0)), len(array))


@pytest.mark.parametrize("width", range(65))
def test_all_widths(width):
    largest = np.uint64(2**width - 1)
    array = np.full(150, largest)
    array[::3] = largest >> np.uint64(1)
    packed = core.pack_bits(array)
    assert len(packed) == 3 + 2 * 8 * width + -(-22 * width // 8)
    np.testing.assert_array_equal(core.unpack_bits(packed, 150), array)


def test_bits_of_strange_bytes():
    for packed, count in (([65], 1), ([255], 1), ([8], 1), ([1, 1, 1], 8), ([], 1), ([0], 0)):
        with pytest.raises(ValueError, match=r"bytes|64 bits"):
            core.unpack_bits(np.array(packed, np.uint8), count)
    assert core.unpack_bits(np.array([1, 7], np.uint8), 3).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="bits after the last number"):
        core.unpack_bits(np.array([1, 15], np.uint8), 3)


def assert_equal_bits(forest, again):
    for name in ALL_DTYPES:
        left, right = getattr(forest, name), getattr(again, name)
        assert (left.dtype, left.shape) == (right.dtype, right.shape)
        assert left.tobytes() == right.tobytes(), name


DOUBLES = [0.0, -0.0, 1.0, -1.0, 1 / 3, 1e300, -1e-300, 5e-324, 2.0**53, 2.0**53 - 1, 7.0]


@settings(max_examples=200, deadline=None)
@given(seed=st.integers(0, 10**6), width=st.sampled_from([1, 3]), few=st.booleans())
def test_every_bit_comes_back(seed, width, few):
    """For few or many distinct numbers, integers or not, also in unused entries of leaves."""
    rng = np.random.default_rng(seed)
    forest = random_forest(rng, 9, 5, 3, width, n_splits=40, categories=[1, 3])
    if rng.integers(2):
        forest = scrambled(rng, forest)
    n = forest.n_nodes
    changes = {
        "value": rng.choice(DOUBLES, (n, width)) if few else rng.normal(size=(n, width)),
        "gain": rng.choice(DOUBLES, n) if few else rng.normal(size=n),
        "cover": rng.integers(0, 9, n) if few else rng.random(n),
    }
    if not few:
        changes["threshold"] = rng.normal(size=n)
    forest = replace(forest, **changes)
    forest.validate(5, 3)
    sections = packed_trees.to_sections(forest)
    again = packed_trees.from_sections(sections, width, Budget(2**20))
    assert_equal_bits(forest, again)
    other = packed_trees.to_sections(again)
    assert sections.keys() == other.keys()
    assert all(np.array_equal(sections[name], other[name]) for name in sections)


@pytest.mark.parametrize("width", [1, 4])
def test_empty_forest(width):
    forest = Forest.empty(width)
    assert_equal_bits(
        forest, packed_trees.from_sections(packed_trees.to_sections(forest), width, Budget(2**20))
    )


def grown_forest(n_trees, width=1, depth=9):
    """Full trees on features of 50 values, whose splits follow from their leaves."""
    rng = np.random.default_rng(5)
    n = 2 ** (depth + 1) - 1
    split = np.tile(np.arange(n) < 2**depth - 1, n_trees)
    left = np.where(split, np.tile(1 + 2 * np.arange(n), n_trees), 0).astype(np.int32)
    cover = np.where(split, 0.0, rng.integers(1, 5, n * n_trees))
    classes = rng.integers(0, max(width, 2), n * n_trees)
    codes = np.c_[2 * classes - 1] if width == 1 else np.eye(width)[classes]
    value, gain = np.where(split[:, None], 0.0, codes), np.zeros(n * n_trees)
    tree_start = n * np.arange(n_trees + 1)
    core.derive_splits(tree_start, left, cover=cover, value=value, gain=gain)
    return Forest(
        tree_start=tree_start,
        feature=np.where(split, rng.integers(0, 20, n * n_trees), -1),
        threshold=np.where(split, rng.integers(0, 50, n * n_trees) / 7, 0.0),
        left=left,
        default_left=split & (rng.random(n * n_trees) < 0.5),
        value=value,
        gain=gain,
        cover=cover,
        output=np.zeros(n_trees),
    )


@pytest.mark.parametrize(("width", "most"), [(1, 1.9), (5, 3.0)])
def test_bytes_of_a_node(width, most):
    """Compare scikit-learn's trees: 64 bytes a node, and 8 for each class."""
    forest = grown_forest(20, width)
    model = make_model(Forest.empty(width), 20, width)
    model = mean_of(model, forest=forest)
    size = len(pickle.dumps(model))
    assert abs(size - len(model_file.to_bytes(model))) < 200  # pickles hold the same bytes
    assert size / forest.n_nodes < most
    assert_equal_bits(forest, pickle.loads(pickle.dumps(model)).forest)


def test_derived_numbers():
    """Sums and means by hand: the root of three leaves with 1, 2 and 4 rows."""
    left = np.array([1, 0, 3, 0, 0], np.int32)
    cover, value = np.array([0.0, 1, 0, 2, 4]), np.array([[0.0], [1], [0], [1 / 2], [-1]])
    gain = np.zeros(5)
    core.derive_splits(np.array([0, 5]), left, cover=cover, value=value, gain=gain)
    assert cover.tolist() == [7, 1, 6, 2, 4]
    assert value[[0, 2], 0].tolist() == [-2 / 7, -3 / 6]
    assert gain[2] == (1 * 1 * 4 + 4 * 4 * 2) / (2 * 4) - 3 * 3 / 6
    assert gain[0] == (1 * 1 * 6 + 3 * 3 * 1) / (1 * 6) - 2 * 2 / 7


@pytest.mark.parametrize("left", [[9, 0, 0], [-1, 0, 0], [2, 0, 0], [0, 1, 0]])
def test_deriving_refuses_broken_trees(left):
    numbers = {"cover": np.zeros(3), "value": np.zeros((3, 1)), "gain": np.zeros(3)}
    with pytest.raises(ValueError, match="a child outside its tree"):
        core.derive_splits(np.array([0, 3]), np.array(left, np.int32), **numbers)
    with pytest.raises(ValueError, match="trees outside the nodes"):
        core.derive_splits(np.array([0, 4]), np.array([1, 0, 0], np.int32), **numbers)


def test_models_have_what_they_are_for():
    assert MODELS["sets"].forest.has_sets
    assert "order" in packed_trees.to_sections(MODELS["order"].forest)
    assert "order" not in packed_trees.to_sections(MODELS["sets"].forest)
    assert len(MODELS["targets"].classes) == 2


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_damage_is_noticed(model):
    data = model_file.to_bytes(model)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        for broken in (bytes(damaged), data[:position]):
            with pytest.raises(ModelFormatError):
                model_file.from_bytes(broken)


def with_sections(model, **changes):
    """The file of the model with some sections replaced, or left out for None."""
    header, arrays = unpack(model_file.FORMAT, model_file.to_bytes(model))
    header.pop("sections")
    header["width"] = changes.pop("width", header["width"])
    arrays |= {name.replace("__", " of "): array for name, array in changes.items()}
    kept = {name: array for name, array in arrays.items() if array is not None}
    return pack(model_file.FORMAT, header, kept)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_flipped_bytes_under_a_right_checksum(model):
    """A forest that passes the checks behind the checksum can be traversed."""
    for name, array in packed_trees.to_sections(model.forest).items():
        for position in range(array.nbytes):
            for mask in (0x01, 0x20, 0x80, 0xFF):
                damaged = bytearray(array.tobytes())
                damaged[position] ^= mask
                changed = np.frombuffer(damaged, array.dtype).reshape(array.shape)
                try:
                    actual = model_file.from_bytes(with_sections(model, **{name: changed}))
                except ModelFormatError:
                    continue
                X = np.array([[0.0] * actual.schema.n_features, [7.0] * actual.schema.n_features])
                assert Predictor(**actual.fields()).predict_raw(X).shape == (2, actual.n_outputs)


def bits(*numbers):
    return core.pack_bits(np.array(numbers, np.uint64))


def moved_to(name, number):
    """The section that gives the split of the first tree another number."""
    forest = MODELS["small"].forest
    numbers = {"cover": forest.cover.copy(), "value": forest.value.copy(), "gain": np.zeros(4)}
    core.derive_splits(forest.tree_start, forest.left, **numbers)
    return core.pack_bits(packed_trees._distance(np.array([number]), numbers[name][:1].ravel()))


HOSTILE = {
    "no structure": {"structure": None},
    "long structure": {"structure": np.zeros(2, np.uint8)},
    "all leaves": {"structure": np.zeros(1, np.uint8)},
    "splits elsewhere": {"structure": np.array([8], np.uint8)},
    "more splits": {"splits": np.array([1, 1], np.uint32)},
    "very many splits": {"splits": np.array([1, 2**32 - 1], np.uint32)},
    "splits of another type": {"splits": np.array([1, 0])},
    "order": {"order": bits(1)},
    "far order": {"order": bits(2**63)},
    "feature": {"feature": bits(3)},
    "no feature": {"feature": bits(0)},
    "far feature": {"feature": bits(2**63)},
    "many features": {"feature": bits(2, 2)},
    "far feature of a leaf": {"feature__leaves": bits(0, 0, 2**31)},
    "default": {"default_left": bits(2)},
    "set of a leaf": {"by_set__leaves": bits(1, 0, 0)},
    "set": {"by_set": bits(1)},
    "sets of nobody": {"level_sets": np.zeros((1, 4), np.uint64)},
    "threshold": {"threshold": np.array([np.nan])},
    "thresholds": {"threshold": np.zeros(2)},
    "threshold of nobody": {
        "threshold": bits(1),
        "thresholds": np.zeros(2),
        "thresholds_of": np.array([1, 1], np.uint32),
    },
    "other thresholds": {
        "threshold": bits(0),
        "thresholds": np.zeros(1),
        "thresholds_of": np.array([0, 2], np.uint32),
    },
    "no thresholds": {
        "threshold": bits(0),
        "thresholds": np.zeros(0),
        "thresholds_of": np.zeros(0, np.uint32),
    },
    "few leaf values": {"value__leaves": np.zeros(2)},
    "endless leaf values": {"value__leaves": np.full(3, np.inf)},
    "leaf values as table": {"value__leaves": np.zeros((3, 1))},
    "outside of the table": {"value__leaves": bits(0, 1, 2), "value__leaves, table": np.zeros(2)},
    "empty table": {"value__leaves": bits(0, 0, 0), "value__leaves, table": np.zeros(0)},
    "integers in the table": {"value__leaves": bits(0, 0, 0), "value__leaves, table": np.arange(2)},
    "large cover": {"cover__leaves": bits(1, 1, 2**53)},
    "endless value": {"value": moved_to("value", np.inf)},
    "no value": {"value": moved_to("value", np.nan)},
    "negative cover": {"cover": moved_to("cover", -1.0)},
    "few gains": {"gain": bits()},
    "gains of 65 bits": {"gain": np.array([65, *[0] * 9], np.uint8)},
    "output": {"output": np.array([0, 1], np.int32)},
    "outputs": {"output": np.zeros(1, np.int32)},
    "width": {"width": 2},
    "no width": {"width": 0},
    "width as truth": {"width": True},
    "huge width": {"width": 2**70},
    "large width": {"width": 2**61},
}


@pytest.mark.parametrize("changes", HOSTILE.values(), ids=HOSTILE)
def test_hostile_sections(changes):
    with pytest.raises(ModelFormatError, match=r"^cannot read it: "):
        model_file.from_bytes(with_sections(MODELS["small"], **changes), "it")


def test_unchanged_sections_are_read():
    """Unchanged sections are read: the tests above find the change, nothing else."""
    again = model_file.from_bytes(with_sections(MODELS["small"]))
    assert_equal_bits(MODELS["small"].forest, again.forest)


@needs_proc
def test_counts_cost_no_memory(tmp_path):
    """A file of a kilobyte that claims trees of billions of nodes."""
    splits = np.full(100, 2**32 - 1, np.uint32)
    data = with_sections(MODELS["small"], splits=splits, output=np.zeros(100, np.int32))
    path = tmp_path / "model.arb"
    path.write_bytes(data)
    message, grown = peak_of("arboost.load(path)", str(path), "arboost.load")
    assert "the structure of 858993459100 nodes in 1 bytes" in message
    assert grown < 2**24


def test_broken_forests_are_not_written():
    forest = replace(MODELS["small"].forest, left=np.array([3, 0, 0, 0]))
    with pytest.raises(ValueError, match="a child outside its tree"):
        model_file.to_bytes(mean_of(small_model(forest=forest)))
