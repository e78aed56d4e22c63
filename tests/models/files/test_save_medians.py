"""Model files of medians: nothing is lost, and invalid content is refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import arboost
from arboost import ModelFormatError
from arboost.models.files import model_file
from arboost.models.predictor import Predictor
from arboost.trees.forest import Forest
from support.model_files import (
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


@pytest.mark.parametrize("model", [small_model(), model_with_sets()], ids=["plain", "sets"])
def test_round_trip(model, tmp_path):
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


HOSTILE = {
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


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_headers(change):
    data = with_header(model_file.to_bytes(median_of(small_model())), change)
    with pytest.raises(ModelFormatError, match=r"^cannot read it: "):
        model_file.from_bytes(data, "it")


@pytest.mark.parametrize("weights", [[0, 1], [1, -1], [1, np.nan], [np.inf, 1], [0, 0], [1]])
def test_hostile_weights(weights):
    data = unchecked(median_of(small_model(), np.array(weights, float)))
    with pytest.raises(ModelFormatError, match=r"^cannot read it: .*(weight)"):
        model_file.from_bytes(data, "it")


def test_flipped_bytes_under_a_right_checksum():
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
