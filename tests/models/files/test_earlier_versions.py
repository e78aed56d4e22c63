"""Files of all earlier versions are read forever, and give the same predictions."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

import arboost
from arboost.models.files.model_file import FORMAT
from support.paths import MODELS

FILES = sorted(MODELS.glob("*.arb"))


def test_there_are_files():
    versions = {struct.unpack_from("<I", path.read_bytes(), 8)[0] for path in FILES}
    assert versions == set(range(1, FORMAT.version + 1))


def table_of(expected):
    """The rows as a list, or as a data frame where columns have names and types."""
    if "names" not in expected:
        return expected["rows"]
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(expected["rows"], columns=expected["names"])
    return table.astype(dict.fromkeys(expected.get("times", ()), "datetime64[ns]"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_old_files_give_the_same_predictions(path):
    expected = json.loads(path.with_suffix(".json").read_text())
    model, table = arboost.load(path), table_of(expected)
    np.testing.assert_array_equal(model.predict_raw(table), expected["raw"])
    assert model.predict(table).tolist() == expected["answers"]
    if "quantiles" in expected:
        actual = model.predict_quantiles(table, expected["quantiles"])
        np.testing.assert_array_equal(actual, expected["of quantiles"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_old_files_can_be_written_again(path, tmp_path):
    """In the current format, in both layouts and as JSON; a current file with the same bytes."""
    model, again = arboost.load(path), tmp_path / "again.arb"
    model.save(again)
    if struct.unpack_from("<I", path.read_bytes(), 8)[0] >= 4:  # both versions are written
        assert again.read_bytes() == path.read_bytes()
    model.to_json(tmp_path / "again.json")
    model.save(tmp_path / "arrays.arb", layout="arrays")
    for other in (
        arboost.load(again),
        arboost.load(tmp_path / "again.json"),
        arboost.load(tmp_path / "arrays.arb", mmap=True),
    ):
        other.save(tmp_path / "other.arb")
        assert (tmp_path / "other.arb").read_bytes() == again.read_bytes()
