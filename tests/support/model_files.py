"""Small models, and model files with a changed header or content."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import replace

import numpy as np

from arboost.data.schema import Schema
from arboost.models.files import model_file
from arboost.models.files.container import pack
from arboost.models.model import Model
from arboost.models.predictor import Predictor
from arboost.trees.forest import ALL_DTYPES, Forest
from support.level_sets import schema_of

DIGEST = 32


def small_model(classes=None, names=("a", "b"), **changes):
    """Return a model of two trees: one split with two leaves, and a single leaf."""
    forest = Forest(
        tree_start=np.array([0, 3, 4]),
        feature=np.array([1, -1, -1, -1]),
        threshold=np.array([0.5, 0.0, 0.0, 0.0]),
        left=np.array([1, 0, 0, 0]),
        default_left=np.array([True, False, False, False]),
        value=np.array([[0.0], [1 / 3], [-2.5], [1e-300]]),
        gain=np.array([4.0, 0.0, 0.0, 0.0]),
        cover=np.array([5.0, 2.0, 3.0, 5.0]),
        output=np.array([0, 0]),
    )
    fields = {
        "forest": forest,
        "schema": Schema(names=names, n_features=2),
        "base_score": np.array([0.1]),
        "link": "identity" if classes is None else "logistic",
        "classes": classes,
        "trees_per_round": 1,
        "params": {"learning_rate": 0.1, "max_depth": None, "random_state": 0},
        "kind": "regressor" if classes is None else "classifier",
    }
    return Model(**(fields | changes))


def assert_same(first: Model, second: Model) -> None:
    for name in ALL_DTYPES:
        left, right = getattr(first.forest, name), getattr(second.forest, name)
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)
    np.testing.assert_array_equal(first.base_score, second.base_score)
    assert first.schema == second.schema
    assert first.params == second.params
    for name in ("link", "kind", "trees_per_round"):
        assert getattr(first, name) == getattr(second, name)
    if first.classes is None:
        assert second.classes is None
    else:
        assert first.classes.dtype == second.classes.dtype
        np.testing.assert_array_equal(first.classes, second.classes)


def sealed(data: bytes) -> bytes:
    """Return the file with corrected length and checksum."""
    body = bytearray(data[:-DIGEST])
    body[16:24] = struct.pack("<Q", len(data))
    return bytes(body) + hashlib.blake2b(body, digest_size=DIGEST).digest()


def with_header(data: bytes, change) -> bytes:
    """Return the file with a changed header, otherwise valid."""
    (size,) = struct.unpack_from("<Q", data, 24)
    header = json.loads(data[32 : 32 + size])
    change(header)
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    # The sections start at a multiple of 8, so the header keeps its length modulo 8.
    text += b" " * ((size - len(text)) % 8)
    head = data[:24] + struct.pack("<Q", len(text))
    return sealed(head + text + data[32 + size :])


def unchecked(model: Model) -> bytes:
    """Return the file of a possibly invalid model, in plain arrays."""
    header, arrays = model_file.describe(model)
    arrays |= {name: getattr(model.forest, name) for name in ALL_DTYPES}
    return pack(model_file.FORMAT, header, arrays)


CLASSES = [
    np.array([0, 1]),
    np.array([-5, 7], dtype=np.int8),
    np.array([1, 2], dtype=np.uint64),
    np.array([False, True]),
    np.array([0.0, 1.0]),
    np.array([1.0, 3.0], dtype=np.float32),
    np.array(["no", "yes"]),
    np.array(["a", "b"], dtype="<U9"),
    np.array(["ja", "n\u00f6 \U0001f333 \x00x"], dtype=object),
    np.array(["", "x"], dtype=object),
]


def set_section(name, dtype=None, shape=None):
    def change(header):
        for section in header["sections"]:
            if section[0] == name:
                section[1:] = [dtype or section[1], shape or section[2]]

    return change


def model_with_sets(**changes):
    """Return the small model with a level set in place of the threshold."""
    sets = {"level_set": [0, -1, -1, -1], "level_sets": [[9, 0, 2**63, 1]], **changes}
    model = small_model()
    arrays = {name: np.array(values, ALL_DTYPES[name]) for name, values in sets.items()}
    schema = schema_of([0, 200])
    return replace(model, forest=replace(model.forest, **arrays), schema=schema)


def rename_section(name, other):
    def change(header):
        for section in header["sections"]:
            if section[0] == name:
                section[0] = other

    return change


WEIGHTS = np.array([1 / 3, 5e-324])


def median_of(model, weights=WEIGHTS):
    return Predictor(**(model.fields() | {"combine": "median", "tree_weights": weights}))
