"""Model files: same model, same bytes; every damage is detected."""

from __future__ import annotations

import io
import os
import re
import struct
from dataclasses import replace

import numpy as np
import pytest

import arboost
from arboost import ModelFormatError
from arboost.data.schema import Schema
from arboost.models.files import model_file
from arboost.models.predictor import Predictor
from arboost.trees.forest import Forest
from support.leveled import schema_of
from support.model_files import (
    CLASSES,
    DIGEST,
    assert_same,
    sealed,
    set_section,
    small_model,
    with_header,
)


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
    ("data", "found"),
    [
        (b"", "it is empty"),
        (b"PK\x03\x04 something else", r"it starts with b'PK"),
        (b"\x91ARB\n\x1a\n", "it is not an arboost model"),
        (b"\x91ARB\r\n\x1a\n" + bytes(10), "cut after 18 bytes"),
    ],
)
def test_other_files(tmp_path, data, found):
    path = tmp_path / "other.arb"
    path.write_bytes(data)
    with pytest.raises(ModelFormatError, match=found) as caught:
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
