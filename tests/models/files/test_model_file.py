"""Model files: same model, same bytes; every damage is detected."""

from __future__ import annotations

import copy
import io
import os
import pickle
import re
import struct
from dataclasses import replace

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import arboost
from arboost import ModelFormatError
from arboost.backend import core
from arboost.data.schema import Schema
from arboost.models.files import model_file
from arboost.models.files.container import pack, unpack
from arboost.models.files.packed_trees import pack_distributions
from arboost.models.predictor import Predictor
from arboost.trees.forest import Forest
from support.level_sets import schema_of
from support.mean_models import mean_of, votes_model
from support.model_files import (
    CLASSES,
    DIGEST,
    WEIGHTS,
    assert_same,
    median_of,
    model_with_sets,
    rename_section,
    sealed,
    set_section,
    small_model,
    unchecked,
    with_header,
)
from support.random_models import make_model, random_forest, random_table


@pytest.mark.parametrize("classes", [None, *CLASSES], ids=str)
def test_round_trip(classes):
    model = small_model(classes)
    data = model_file.to_bytes(model)
    again = model_file.from_bytes(data)
    assert_same(model, again)
    assert model_file.to_bytes(again) == data


@pytest.mark.parametrize(
    "names", [None, ("", " "), ("\n", "\ud800"), ('[<:"{', "\U0001f333"), ("x", "X")], ids=repr
)
def test_names_round_trip(names):
    model = small_model(names=names)
    assert_same(model, model_file.from_bytes(model_file.to_bytes(model)))


def test_empty_forest_round_trip():
    model = small_model(forest=Forest.empty())
    assert_same(model, model_file.from_bytes(model_file.to_bytes(model)))


@pytest.mark.parametrize("layout", model_file.LAYOUTS)
def test_schemas_round_trip(layout):
    for schema in (
        schema_of([5, 0]),
        Schema(names=None, n_features=2, missing=-9.0),
        Schema(names=None, n_features=2, units=("datetime", "")),
    ):
        forest = replace(small_model().forest, feature=np.array([1, -1, -1, -1]))
        model = small_model(schema=schema, forest=forest)
        data = model_file.to_bytes(model, layout)
        assert struct.unpack_from("<II", data, 8) == (4, 4)
        assert_same(model, model_file.from_bytes(data))


def test_layouts():
    with pytest.raises(ValueError, match="layout='zip' is not allowed"):
        model_file.to_bytes(small_model(), "zip")
    broken = small_model(forest=replace(small_model().forest, left=np.array([3, 0, 0, 0])))
    with pytest.raises(ValueError, match="a child outside its tree"):
        model_file.to_bytes(broken, "arrays")


def test_loaded_arrays_are_frozen():
    model = model_file.from_bytes(model_file.to_bytes(small_model()))
    with pytest.raises(ValueError, match="read-only"):
        model.forest.value[0] = 1.0


def test_file_round_trip(tmp_path):
    model = Predictor(**small_model().fields())
    path = tmp_path / "model.arb"
    model.save(path)
    assert_same(model, arboost.load(path))
    assert_same(model, arboost.load(str(path)))
    assert path.read_bytes() == model_file.to_bytes(model)
    assert os.listdir(tmp_path) == ["model.arb"]


def test_every_flipped_byte_is_noticed():
    data = model_file.to_bytes(small_model(np.array(["no", "yes"])))
    for position in range(len(data)):
        for mask in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[position] ^= mask
            with pytest.raises(ModelFormatError):
                model_file.from_bytes(bytes(damaged))


def test_every_truncation_is_noticed():
    data = model_file.to_bytes(small_model())
    for length in range(len(data)):
        with pytest.raises(ModelFormatError):
            model_file.from_bytes(data[:length])


def test_flipped_bytes_under_a_right_checksum():
    """The checks behind the checksum find such damage, or it only changes numbers."""
    data = model_file.to_bytes(small_model(np.array(["no", "yes"]), names=None))
    for position in range(len(data) - DIGEST):
        for mask in (0x01, 0x20, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[position] ^= mask
            try:
                model = model_file.from_bytes(sealed(bytes(damaged)))
            except ModelFormatError:
                continue
            X = np.full((2, model.schema.n_features), np.nan)
            assert Predictor(**model.fields()).predict_proba(X).shape == (2, 2)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is empty"),
        (b"PK\x03\x04 something else", r"it starts with b'PK"),
        (b"\x91ARB\n\x1a\n", "it is not an arboost model"),
        (b"\x91ARB\r\n\x1a\n" + bytes(10), "cut after 18 bytes"),
    ],
)
def test_other_files(tmp_path, data, message):
    path = tmp_path / "other.arb"
    path.write_bytes(data)
    with pytest.raises(ModelFormatError, match=message) as caught:
        arboost.load(path)
    assert str(path) in str(caught.value)


def test_cut_file_says_both_lengths():
    data = model_file.to_bytes(small_model())
    with pytest.raises(ModelFormatError, match=f"has {len(data) - 1} bytes .* says {len(data)}"):
        model_file.from_bytes(data[:-1])


def test_longer_file():
    with pytest.raises(ModelFormatError, match="Save or copy it again"):
        model_file.from_bytes(model_file.to_bytes(small_model()) + b"\n")


def test_newer_version_refuses():
    data = bytearray(model_file.to_bytes(small_model()))
    data[8:16] = struct.pack("<II", 8, 7)
    with pytest.raises(
        ModelFormatError, match=r"format version 8 and needs .* 7 or later"
    ) as caught:
        model_file.from_bytes(sealed(bytes(data)))
    assert "Install a newer arboost" in str(caught.value)


def test_newer_version_that_old_readers_understand():
    data = bytearray(model_file.to_bytes(small_model()))
    data[8:12] = struct.pack("<I", 7)
    assert_same(small_model(), model_file.from_bytes(sealed(bytes(data))))


HOSTILE = {
    "huge shape": set_section("threshold", shape=[2**62]),
    "many axes": set_section("threshold", shape=[2**40, 2**40, 2**40]),
    "nothing times much": set_section("threshold", shape=[0, 2**70]),
    "negative shape": set_section("threshold", shape=[-4]),
    "fractional shape": set_section("threshold", shape=[4.0]),
    "pickled type": set_section("threshold", dtype="|O"),
    "other type": set_section("threshold", dtype="<i8"),
    "no sections": lambda header: header.update(sections=[]),
    "sections of another kind": lambda header: header.update(sections=3),
    "no schema": lambda header: header.pop("schema"),
    "schema of another kind": lambda header: header.update(schema=[1]),
    "negative features": lambda header: header["schema"].update(n_features=-1),
    "one name": lambda header: header["schema"].update(names=["a"]),
    "equal names": lambda header: header["schema"].update(names=["a", "a"]),
    "number as name": lambda header: header["schema"].update(names=["a", 1]),
    "link": lambda header: header.update(link="probit"),
    "link as list": lambda header: header.update(link=["identity"]),
    "kind": lambda header: header.update(kind="classifier"),
    "rounds": lambda header: header.update(trees_per_round=0),
    "half a round": lambda header: header.update(trees_per_round=4),
    "truth as number": lambda header: header.update(trees_per_round=True),
    "params": lambda header: header.update(params=[]),
    "classes": lambda header: header.update(classes={"dtype": "<U999999999", "values": ["a", "b"]}),
    "narrow classes": lambda header: header.update(classes={"dtype": "<U1", "values": ["aa", "b"]}),
    "odd classes": lambda header: header.update(classes={"dtype": 5, "values": ["aa", "b"]}),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_headers(change):
    data = with_header(model_file.to_bytes(small_model()), change)
    with pytest.raises(ModelFormatError, match=r"^cannot read it: "):
        model_file.from_bytes(data, "it")


def test_deeply_nested_header():
    data = model_file.to_bytes(small_model())
    text = b"[" * 200_000
    head = data[:24] + struct.pack("<Q", len(text))
    with pytest.raises(ModelFormatError):
        model_file.from_bytes(sealed(head + text + data[-DIGEST:]))


def test_truth_values_are_checked():
    forest = replace(small_model().forest, default_left=np.ones(4, dtype=bool))
    data = bytearray(model_file.to_bytes(small_model(forest=forest), "arrays"))
    data[data.index(forest.default_left.tobytes())] = 2
    with pytest.raises(ModelFormatError, match="neither 0 nor 1"):
        model_file.from_bytes(sealed(bytes(data)))


def test_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.arb"
    path.write_bytes(b"old")

    def no_space(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        model_file.write_model(small_model(), path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["model.arb"]


def test_save_through_a_link(tmp_path):
    target, link = tmp_path / "real.arb", tmp_path / "link.arb"
    target.write_bytes(b"old")
    link.symlink_to(target)
    model_file.write_model(small_model(), link)
    assert link.is_symlink()
    assert_same(small_model(), model_file.from_bytes(target.read_bytes()))


def test_paths():
    with pytest.raises(FileNotFoundError):
        arboost.load("no such file.arb")
    with pytest.raises(TypeError, match="a path, bytes or an open file, but got a int"):
        arboost.load(3)
    with pytest.raises(TypeError):
        model_file.write_model(small_model(), None)


def test_content_in_place_of_a_path(tmp_path):
    model = Predictor(**small_model().fields())
    for name in ("model.arb", "model.json", "MODEL.JSON"):
        path = tmp_path / name
        model.save(path)
        data = path.read_bytes()
        assert data.startswith(b"{") == name.lower().endswith("json")
        for content in (path, data, bytearray(data), memoryview(data), io.BytesIO(data)):
            assert model_file.to_bytes(arboost.load(content)) == model_file.to_bytes(model)
        with path.open("rb") as file:
            assert model_file.to_bytes(arboost.load(file)) == model_file.to_bytes(model)
    with path.open(encoding="ascii") as file:
        assert model_file.to_bytes(arboost.load(file)) == model_file.to_bytes(model)
    with pytest.raises(ModelFormatError, match="cannot read the data: it is empty"):
        arboost.load(b"")
    with pytest.raises(TypeError, match="mmap=True is not allowed with a bytes"):
        arboost.load(data, mmap=True)
    with pytest.raises(ValueError, match=r"layout='arrays' is not allowed with .*model\.json"):
        model.save(tmp_path / "model.json", layout="arrays")


def test_folder(tmp_path):
    with pytest.raises(IsADirectoryError, match=re.escape(f"{tmp_path}': it is a folder. Give")):
        model_file.write_model(small_model(), tmp_path)
    with pytest.raises(FileNotFoundError, match=r"new.a\.arb': the folder .*new' does not exist"):
        model_file.write_model(small_model(), tmp_path / "new" / "a.arb")
    assert not os.listdir(tmp_path)


def test_failed_write_names_the_file(tmp_path, monkeypatch):
    def fail(handle):
        raise OSError(28, "No space left on device", "model.arb.0123.tmp")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=r"No space left on device \(.*free disk .*'.*model\.arb'$"):
        model_file.write_model(small_model(), tmp_path / "model.arb")
    assert not os.listdir(tmp_path)


LABELS = (np.array(["no", "yes"]), np.array([1.5, 2.5, 3.5]), np.array([7]))


def several_targets():
    values = np.random.default_rng(0).random((3, 5))
    return votes_model(values, classes=LABELS, targets=(1, 3, 1))


def assert_kept(model):
    data = model_file.to_bytes(model)
    assert struct.unpack_from("<II", data, 8) == (4, 4)
    again = model_file.from_bytes(data)
    assert_same(mean_of(model), mean_of(again))  # all but link, classes and targets
    for name in ("combine", "targets", "link", "kind"):
        assert getattr(again, name) == getattr(model, name)
    assert type(again.classes) is type(model.classes)
    assert model_file.to_bytes(again) == data
    assert pickle.loads(pickle.dumps(model)).params == model.params
    return again


def test_round_trip_of_means(rng):
    for width in (1, 3):
        forest = random_forest(rng, 12, 5, 3, width, categories=[1, 3])
        model = mean_of(make_model(forest, 5, 3, trees_per_round=3, categories=[1, 3]))
        again = assert_kept(model)
        X = random_table(rng, 50, 5)
        scores = Predictor(**again.fields()).predict_raw(X)
        assert scores.tobytes() == model.predict_raw(X).tobytes()
    assert_kept(mean_of(small_model()))
    assert_kept(mean_of(small_model(forest=Forest.empty())))


def test_targets_round_trip():
    again = assert_kept(several_targets())
    for labels, expected in zip(again.classes, LABELS, strict=True):
        assert labels.dtype == expected.dtype
        np.testing.assert_array_equal(labels, expected)


HOSTILE_MEANS = {
    "sum": lambda header: header.update(combine="sum"),
    "median": lambda header: header.update(combine="median"),
    "targets of nobody": lambda header: header.update(targets=[1, 3]),
    "no targets": lambda header: header.pop("targets"),
    "target": lambda header: header.update(targets=5),
    "truth as target": lambda header: header.update(targets=[True, 3, 1]),
    "negative target": lambda header: header.update(targets=[-1, 3, 3]),
    "huge target": lambda header: header.update(targets=[2**70, 3, 1]),
    "other targets": lambda header: header.update(targets=[3, 1, 1]),
    "classes of one": lambda header: header["classes"].pop(),
    "classes": lambda header: header.update(classes={}),
    "nested classes": lambda header: header.update(classes=[[{}]]),
}


@pytest.mark.parametrize("change", HOSTILE_MEANS.values(), ids=HOSTILE_MEANS)
def test_hostile_headers_of_means(change):
    data = with_header(model_file.to_bytes(several_targets()), change)
    with pytest.raises(ModelFormatError, match=r"^cannot read it: "):
        model_file.from_bytes(data, "it")


@pytest.mark.parametrize("model", [small_model(), model_with_sets()], ids=["plain", "sets"])
def test_round_trip_of_medians(model, tmp_path):
    model = median_of(model)
    data = model_file.to_bytes(model)
    assert struct.unpack_from("<II", data, 8) == (4, 4)
    again = model_file.from_bytes(data)
    assert_same(model, again)
    assert again.combine == "median"
    assert again.tree_weights.tobytes() == WEIGHTS.tobytes()
    assert model_file.to_bytes(again) == data
    model.save(tmp_path / "model.arb")
    assert repr(arboost.load(tmp_path / "model.arb")) == repr(model)


def test_truncated_round_trip():
    for rounds in range(3):
        model = median_of(small_model()).truncated(rounds)
        assert model_file.from_bytes(model_file.to_bytes(model)).tree_weights.tolist() == [
            *WEIGHTS[:rounds]
        ]
    empty = median_of(small_model(forest=Forest.empty()), np.empty(0))
    assert_same(empty, model_file.from_bytes(model_file.to_bytes(empty)))


HOSTILE_MEDIANS = {
    "combination": lambda header: header.update(combine="mode"),
    "mean with weights": lambda header: header.update(combine="mean"),
    "sum with weights": lambda header: header.update(combine="sum"),
    "sum by default": lambda header: header.pop("combine"),
    "combination as list": lambda header: header.update(combine=["median"]),
    "no combination": lambda header: header.update(combine=None),
    "no weights": rename_section("tree_weights", "other"),
    "whole weights": set_section("tree_weights", dtype="<i8"),
    "short weights": set_section("tree_weights", shape=[1]),
    "weights as a table": set_section("tree_weights", shape=[2, 1]),
    "link": lambda header: header.update(link="exp"),
    "rounds": lambda header: header.update(trees_per_round=2),
}


@pytest.mark.parametrize("change", HOSTILE_MEDIANS.values(), ids=HOSTILE_MEDIANS)
def test_hostile_headers_of_medians(change):
    data = with_header(model_file.to_bytes(median_of(small_model())), change)
    with pytest.raises(ModelFormatError, match=r"^cannot read it: "):
        model_file.from_bytes(data, "it")


@pytest.mark.parametrize("weights", [[0, 1], [1, -1], [1, np.nan], [np.inf, 1], [0, 0], [1]])
def test_hostile_weights(weights):
    data = unchecked(median_of(small_model(), np.array(weights, float)))
    with pytest.raises(ModelFormatError, match=r"^cannot read it: .*(weight)"):
        model_file.from_bytes(data, "it")


def test_flipped_bytes_of_medians():
    data = model_file.to_bytes(median_of(small_model(names=None)))
    for position in range(len(data) - DIGEST):
        for mask in (0x01, 0x20, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[position] ^= mask
            try:
                model = model_file.from_bytes(sealed(bytes(damaged)))
            except ModelFormatError:
                continue
            X = np.full((2, model.schema.n_features), np.nan)
            assert Predictor(**model.fields()).predict_raw(X).shape == (2, 1)


def test_sets_of_levels_round_trip():
    model = model_with_sets()
    data = model_file.to_bytes(model)
    assert struct.unpack_from("<II", data, 8) == (4, 4)
    again = model_file.from_bytes(data)
    assert_same(model, again)
    assert model_file.to_bytes(again) == data
    assert again.forest.level_sets.tolist() == [[9, 0, 2**63, 1]]


HOSTILE_SETS = {
    "unknown set": {"level_set": [1, -1, -1, -1]},
    "far set": {"level_set": [2**31 - 1, -1, -1, -1]},
    "negative set": {"level_set": [-(2**31), -1, -1, -1]},
    "set of a leaf": {"level_set": [-1, 0, -1, -1]},
    "short": {"level_set": [0, -1]},
    "no nodes": {"level_set": []},
    "axes": {"level_set": [[0], [-1], [-1], [-1]]},
    "words": {"level_sets": [[1, 2, 3]]},
    "flat": {"level_sets": [1]},
    "more sets": {"level_sets": [[0] * 4] * 2},
}


@pytest.mark.parametrize("changes", HOSTILE_SETS.values(), ids=HOSTILE_SETS)
def test_hostile_sets(changes):
    data = unchecked(model_with_sets(**changes))
    with pytest.raises(ModelFormatError, match=r"^cannot read it: "):
        model_file.from_bytes(data, "it")


@pytest.mark.parametrize(
    "change",
    [
        set_section("level_sets", dtype="<i8"),
        set_section("level_sets", shape=[4]),
        set_section("level_set", dtype="<u4"),
        set_section("level_set", shape=[2, 2]),
        rename_section("level_set", "other"),
        rename_section("level_sets", "other"),
        rename_section("level_sets", "level_set"),
    ],
)
def test_hostile_headers_of_sets(change):
    data = with_header(model_file.to_bytes(model_with_sets(), "arrays"), change)
    with pytest.raises(ModelFormatError, match=r"^cannot read it: "):
        model_file.from_bytes(data, "it")


@pytest.mark.filterwarnings("ignore:None of the 1 values")
@pytest.mark.parametrize("layout", model_file.LAYOUTS)
def test_flipped_bytes_of_sets_under_a_right_checksum(layout):
    data = model_file.to_bytes(model_with_sets(), layout)
    for position in range(len(data) - DIGEST):
        for mask in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[position] ^= mask
            try:
                model = model_file.from_bytes(sealed(bytes(damaged)))
            except ModelFormatError:
                continue
            X = np.array([[np.nan] * model.schema.n_features, [7.0] * model.schema.n_features])
            assert Predictor(**model.fields()).predict_raw(X).shape == (2, model.n_outputs)


DOUBLES = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.integers(-(2**40), 2**40).map(float),
    st.integers(-1000, 1000).map(lambda k: k * 2.0**-30),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 2.0**1023, -(2.0**971), 1.7976931348623157e308]),
)


@given(st.lists(DOUBLES, max_size=200))
def test_scaled_doubles_come_back(numbers):
    array = np.array(numbers, np.float64)
    packed = core.pack_scaled(array)
    again = core.unpack_scaled(packed, len(array))
    np.testing.assert_array_equal(again.view(np.uint64), array.view(np.uint64))
    with pytest.raises(ValueError, match="fewer bytes than blocks"):
        core.unpack_scaled(packed, len(array) + 2**60)
    with pytest.raises(ValueError, match="bytes"):
        core.unpack_scaled(np.append(packed, np.uint8(0)), len(array))


def test_scaled_doubles_are_small():
    """Multiples of a unit take the bits of the multiples."""
    array = np.arange(6400.0) * 2.0**-200
    assert len(core.pack_scaled(array)) < 6400 * 14 / 8 + 400


def test_units_that_there_are_not():
    for exponent in (-1075, 972, 32766):
        packed = np.append(
            np.array([exponent], "<i2").view(np.uint8), core.pack_bits(np.array([2], np.uint64))
        )
        with pytest.raises(ValueError, match="a unit that doubles do not have"):
            core.unpack_scaled(packed.astype(np.uint8), 1)


X = np.random.default_rng(3).normal(size=(150, 3))
Y = X[:, 0] + np.round(X[:, 1])
ROW_WEIGHTS = np.random.default_rng(4).integers(0, 4, 150)
QUANTILES = [0.0, 0.25, 0.9, 1.0]


def quantile_forest(weight=None, cls=arboost.RandomForestRegressor):
    forest = cls(n_estimators=4, quantiles=True, min_samples_leaf=3, random_state=0)
    return forest.fit(X, Y, weight)


@pytest.mark.parametrize("weight", [None, ROW_WEIGHTS], ids=["equal", "weights"])
@pytest.mark.parametrize("cls", [arboost.RandomForestRegressor, arboost.ExtraTreesRegressor])
def test_quantiles_of_a_loaded_model(cls, weight, tmp_path):
    forest = quantile_forest(weight, cls)
    expected = forest.predict_quantiles(X, QUANTILES)
    forest.save(tmp_path / "packed.arb")
    forest.model_.save(tmp_path / "arrays.arb", layout="arrays")
    forest.model_.to_json(tmp_path / "model.json")
    for name in ("packed.arb", "arrays.arb", "model.json"):
        model = arboost.load(tmp_path / name)
        actual = model.predict_quantiles(X, QUANTILES)
        assert actual.tobytes() == expected.tobytes()
        np.testing.assert_array_equal(model.predict_quantiles(X, 0.25), expected[:, 1])
        assert model_file.to_bytes(model) == (tmp_path / "packed.arb").read_bytes()
    assert pickle.loads(pickle.dumps(forest)).predict_quantiles(X, QUANTILES).tobytes() == (
        expected.tobytes()
    )


def test_quantiles_of_fewer_trees():
    model = quantile_forest().model_
    short = model.truncated(2)
    short.validate()
    again = model_file.from_bytes(model_file.to_bytes(short))
    assert len(again.distributions.tree_start) == 2 + 1
    with pytest.raises(ValueError, match="Fit with quantiles=True"):
        arboost.GradientBoostingRegressor().fit(X, Y).model_.predict_quantiles(X)
    tree = quantile_forest().estimators_[0].model_
    assert tree.distributions is None
    tree.validate()


def with_distributions(**changes):
    model = quantile_forest(ROW_WEIGHTS).model_
    header, arrays = unpack(model_file.FORMAT, model_file.to_bytes(model))
    header.pop("sections")
    distributions = replace(model.distributions)
    for name, change in changes.items():
        array = getattr(distributions, name).copy()
        change(array)
        distributions = replace(distributions, **{name: array})
    return pack(model_file.FORMAT, header, arrays | pack_distributions(distributions))


def put(place, value):
    def change(array):
        array[place] = value

    return change


HOSTILE_VALUES = {
    "rank": {"rank": put(0, 10**6)},
    "order of ranks": {"rank": put(0, 149)},
    "value": {"values": put(0, np.nan)},
    "order of values": {"values": put(0, 1e9)},
    "share": {"upto": put(0, 2**44 + 1)},
    "less than all": {"upto": lambda upto: upto.__ifloordiv__(2)},
    "shares": {"upto": put(slice(None), 0)},
}


@pytest.mark.parametrize("changes", HOSTILE_VALUES.values(), ids=HOSTILE_VALUES)
def test_hostile_distributions(changes):
    with pytest.raises(arboost.ModelFormatError, match=r"^cannot read it: "):
        model_file.from_bytes(with_distributions(**changes), "it")


def test_unchanged_distributions_are_read():
    assert model_file.from_bytes(with_distributions()).distributions is not None


LABELED_FITS = np.digitize(Y, [-0.5, 0.5])
ESTIMATORS = [
    (arboost.GradientBoostingRegressor(n_estimators=3), Y),
    (arboost.GradientBoostingClassifier(n_estimators=3), LABELED_FITS),
    (arboost.AdaBoostClassifier(n_estimators=3), LABELED_FITS),
    (arboost.AdaBoostClassifier(n_estimators=3, algorithm="real"), LABELED_FITS > 0),
    (arboost.AdaBoostRegressor(n_estimators=3, random_state=0), Y),
    (arboost.AdaBoostRegressor(n_estimators=3, aggregation="mean"), Y),
    (arboost.DecisionTreeRegressor(max_depth=3), Y),
    (arboost.DecisionTreeClassifier(max_depth=3), LABELED_FITS),
    (arboost.RandomForestRegressor(n_estimators=3, quantiles=True, random_state=0), Y),
    (arboost.RandomForestClassifier(n_estimators=3, random_state=0), LABELED_FITS),
    (arboost.ExtraTreesRegressor(n_estimators=3, random_state=0), np.c_[Y, Y]),
    (
        arboost.ExtraTreesClassifier(n_estimators=3, random_state=0),
        np.c_[LABELED_FITS, LABELED_FITS > 0],
    ),
    (arboost.BaggingRegressor(n_estimators=3, random_state=0), Y),
]


@pytest.mark.parametrize(("estimator", "y"), ESTIMATORS, ids=lambda one: type(one).__name__)
def test_pickles_hold_the_bytes_of_files(estimator, y, tmp_path):
    """Also pickles of joblib: their content is checked on reading."""
    fitted = clone(estimator).fit(X, y)
    joblib.dump(fitted, tmp_path / "model.joblib")
    others = [
        pickle.loads(pickle.dumps(fitted)),
        joblib.load(tmp_path / "model.joblib"),
        copy.deepcopy(fitted),
    ]
    for other in others:
        np.testing.assert_array_equal(other.predict(X), fitted.predict(X))
    if hasattr(fitted, "model_"):
        data = pickle.dumps(fitted)
        place = data.index(model_file.FORMAT.magic)
        damaged = bytearray(data)
        damaged[place + 100] ^= 1
        with pytest.raises(arboost.ModelFormatError, match="the pickled model"):
            pickle.loads(bytes(damaged))
        assert model_file.to_bytes(others[0].model_) == model_file.to_bytes(fitted.model_)


def test_provenance():
    model = arboost.GradientBoostingRegressor(
        n_estimators=20, n_iter_no_change=2, validation_fraction=0.3
    ).fit(X, Y)
    metadata = model.model_.provenance
    assert metadata["version"] == arboost.__version__
    assert metadata["rows"] <= 150
    assert metadata["best_score"] == model.best_score_
    assert isinstance(metadata["metric"], str)
    assert model_file.from_bytes(model_file.to_bytes(model.model_)).provenance == metadata
    forest = arboost.RandomForestRegressor(n_estimators=2).fit(X, Y)
    assert forest.model_.provenance == {"version": arboost.__version__, "rows": 150}


def test_provenance_that_is_none():
    model = arboost.GradientBoostingRegressor(n_estimators=2).fit(X, Y).model_
    header, arrays = unpack(model_file.FORMAT, model_file.to_bytes(model))
    header.pop("sections")
    header["provenance"] = [1]
    with pytest.raises(arboost.ModelFormatError, match="provenance="):
        model_file.from_bytes(pack(model_file.FORMAT, header, arrays))


def test_sums_take_few_bytes():
    """A booster's node takes at most a third of its size in arrays."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(5000, 8))
    y = table[:, 0] * table[:, 1] + rng.normal(size=5000)
    for estimator in (
        arboost.GradientBoostingRegressor(n_estimators=40, max_depth=6, learning_rate=0.07),
        arboost.GradientBoostingClassifier(n_estimators=40, max_depth=6, reg_lambda=3.0),
    ):
        target = y if isinstance(estimator, arboost.GradientBoostingRegressor) else y > 0
        model = estimator.fit(table, target).model_
        packed, arrays = (len(model_file.to_bytes(model, layout)) for layout in model_file.LAYOUTS)
        assert packed < arrays / 2.8
        header, sections = unpack(model_file.FORMAT, model_file.to_bytes(model))
        assert header["width"] == 1
        rate = 1 / np.sqrt(sections["shrinkage"][1])
        assert abs(rate / model.params["learning_rate"] - 1) < 0.01
