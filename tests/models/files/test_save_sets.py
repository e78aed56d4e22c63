"""Model files with level sets: nothing is lost, and invalid content is refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from arboost import ModelFormatError
from arboost.models.files import model_file
from arboost.models.predictor import Predictor
from support.model_files import (
    DIGEST,
    assert_same,
    model_with_sets,
    rename_section,
    sealed,
    set_section,
    unchecked,
    with_header,
)


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
