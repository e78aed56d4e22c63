"""Fuzzing of models in JSON."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

import arboost
from arboost.models.files.json_model import from_json
from support.damage import places, random_of, replaced
from support.hostile_models import FILES, VALUES, read_or_refuse, use

CASES = int(os.environ.get("ARBOOST_FUZZ_CASES", "40"))
FILES = [path for path in FILES if "-v4-" in path.stem]
files = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@files
def test_hostile_values(path):
    document = json.loads(arboost.load(path).to_json())
    rng = random_of(path, "json")
    actual = [place for place in places(document) if place]
    # Most places are numbers of nodes: as many cases are for all other places.
    rest = [place for place in actual if len(place) < 4]
    for case in range(CASES):
        chosen = actual if case % 2 else rest
        place = chosen[int(rng.integers(len(chosen)))]
        changed = replaced(document, place, VALUES[int(rng.integers(len(VALUES)))])
        model = read_or_refuse(from_json, json.dumps(changed))
        if model is not None:
            use(model)


@files
def test_missing_keys(path):
    document = json.loads(arboost.load(path).to_json())
    for key in document:
        rest = {name: value for name, value in document.items() if name != key}
        model = read_or_refuse(from_json, json.dumps(rest))
        if model is not None:
            use(model)


@files
def test_damaged_text(path):
    text = arboost.load(path).to_json()
    rng = random_of(path, "text")
    assert text.endswith("}\n")
    for length in rng.integers(0, len(text) - 2, CASES):
        assert read_or_refuse(from_json, text[:length]) is None
    for _ in range(CASES):
        damaged = bytearray(text.encode())
        damaged[rng.integers(len(damaged))] = int(rng.integers(256))
        model = read_or_refuse(from_json, bytes(damaged))
        if model is not None:
            use(model)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '"arboost model"',
        "[" * 200_000,
        '{"format": ' * 100_000,
        '{"format": "arboost model"}',
        '{"format": "arboost model", "version": 1e400}',
        '{"format": "arboost model", "version": ' + "9" * 10_000 + "}",
        '{"format": "arboost model", "version": true}',
        '{"format": "arboost model", "version": 4, "trees": 7}',
        b"\xff\xfe{",
        b"{\x00",
        "{" + " " * 1000,
        np.random.default_rng(0).bytes(1000),
    ],
    ids=repr,
)
def test_no_models(text):
    assert read_or_refuse(from_json, text) is None


def test_newer_version():
    text = arboost.load(FILES[0]).to_json().replace('"version": 4', '"version": 7', 1)
    with pytest.raises(arboost.ModelFormatError, match="Install a newer arboost"):
        from_json(text)
