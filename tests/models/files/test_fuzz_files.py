"""Fuzzing of model files, with wrong and with right checksums."""

from __future__ import annotations

import json
import os
import struct

import numpy as np
import pytest

from arboost.models.files import model_file
from arboost.models.files.container import pack, unpack
from support.damage import places, random_of, replaced
from support.hostile_models import FILES, VALUES, read_or_refuse, use
from support.model_files import DIGEST, sealed

CASES = int(os.environ.get("ARBOOST_FUZZ_CASES", "60"))  # per kind of damage and file
files = pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)


@pytest.mark.parametrize(
    "path", [path for path in FILES if "forest_quantiles" in path.stem or "-binary" in path.stem]
)
def test_all_truncations(path):
    data = path.read_bytes()
    for length in range(len(data)):
        assert read_or_refuse(model_file.from_bytes, data[:length]) is None


@files
def test_flipped_bits(path):
    data, rng = path.read_bytes(), random_of(path, "bits")
    for _ in range(CASES):
        damaged = bytearray(data)
        damaged[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        assert read_or_refuse(model_file.from_bytes, bytes(damaged)) is None


@files
def test_flipped_bits_under_a_right_checksum(path):
    data, rng = path.read_bytes(), random_of(path, "sealed")
    survivors = 0
    for _ in range(CASES):
        damaged = bytearray(data)
        for _ in range(int(rng.integers(1, 4))):
            damaged[rng.integers(len(data) - DIGEST)] ^= 1 << int(rng.integers(8))
        model = read_or_refuse(model_file.from_bytes, sealed(bytes(damaged)))
        if model is not None:
            survivors += 1
            use(model)
    assert survivors < CASES


@files
def test_truncated_under_a_right_checksum(path):
    data, rng = path.read_bytes(), random_of(path, "short")
    for length in rng.integers(32, len(data) - DIGEST, CASES // 4):
        short = data[:length]
        assert read_or_refuse(model_file.from_bytes, sealed(short + data[-DIGEST:])) is None


def hostile_numbers(rng, array):
    """The section with other content: extremes, noise, another length."""
    flat = array.ravel().copy()
    raw = flat.view(np.uint8)
    kind = int(rng.integers(6))
    if kind == 0:
        raw[:] = rng.choice([0, 1, 64, 65, 127, 128, 255])
    elif kind == 1:
        raw[:] = rng.integers(0, 256, len(raw))
    elif kind == 2 and len(flat):
        extremes = [np.nan, np.inf, -1, 0, 2**31, 1e308] if flat.dtype.kind == "f" else [0, 1, 255]
        flat[rng.integers(len(flat))] = flat.dtype.type(rng.choice(extremes))
    elif kind == 3:
        return flat[: int(rng.integers(len(flat) + 1))]
    elif kind == 4:
        return np.concatenate([flat, flat, flat])
    else:
        return rng.permutation(array) if array.ndim else array
    if array.dtype == np.bool_:
        flat = raw & 1 > 0
    return flat.reshape(array.shape)


@files
def test_hostile_sections(path):
    data, rng = path.read_bytes(), random_of(path, "sections")
    header, arrays = unpack(model_file.FORMAT, data)
    header.pop("sections")
    names = list(arrays)
    for _ in range(CASES):
        changed = dict(arrays)
        name, other = rng.choice(names, 2)
        kind = int(rng.integers(6))
        if kind == 0:
            changed[name], changed[other] = changed[other], changed[name]
        elif kind == 1:
            del changed[name]
        elif kind == 2:
            dtype = rng.choice(["u1", "i4", "u4", "i8", "f8", "?"])
            with np.errstate(all="ignore"):
                changed[name] = changed[name].astype(dtype)
        else:
            changed[name] = hostile_numbers(rng, changed[name])
        model = read_or_refuse(model_file.from_bytes, pack(model_file.FORMAT, header, changed))
        if model is not None:
            use(model)


@files
def test_hostile_headers(path):
    data, rng = path.read_bytes(), random_of(path, "header")
    (size,) = struct.unpack_from("<Q", data, 24)
    header = json.loads(data[32 : 32 + size])
    actual = [place for place in places(header) if place]
    for _ in range(CASES):
        place = actual[int(rng.integers(len(actual)))]
        changed = replaced(header, place, VALUES[int(rng.integers(len(VALUES)))])
        text = json.dumps(changed).encode()
        text += b" " * ((size - len(text)) % 8)
        head = data[:24] + struct.pack("<Q", len(text))
        model = read_or_refuse(model_file.from_bytes, sealed(head + text + data[32 + size :]))
        if model is not None:
            use(model)


COUNTS = {
    "n_features": lambda header, n: header["schema"].update(n_features=n),
    "width": lambda header, n: header.update(width=n),
    "trees_per_round": lambda header, n: header.update(trees_per_round=n),
    "targets": lambda header, n: header.update(targets=[n]),
    "rows of a section": lambda header, n: header["sections"][0].__setitem__(2, [n]),
    "columns of a section": lambda header, n: header["sections"][0].__setitem__(2, [1, n]),
    "no rows of a section": lambda header, n: header["sections"][0].__setitem__(2, [0, n]),
}


@pytest.mark.parametrize("change", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize("count", [2**20, 2**31 - 1, 2**31, 2**40, 2**61, 2**63, 2**64, 2**200])
def test_hostile_counts(change, count):
    for path in FILES:
        data = path.read_bytes()
        (size,) = struct.unpack_from("<Q", data, 24)
        header = json.loads(data[32 : 32 + size])
        change(header, count)
        text = json.dumps(header).encode()
        text += b" " * ((size - len(text)) % 8)
        head = data[:24] + struct.pack("<Q", len(text))
        model = read_or_refuse(model_file.from_bytes, sealed(head + text + data[32 + size :]))
        if model is not None:
            use(model)


def test_files_as_they_are_are_used():
    """Undamaged files are read: the tests above find the damage, nothing else."""
    for path in FILES:
        use(read_or_refuse(model_file.from_bytes, path.read_bytes()))
