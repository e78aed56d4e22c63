"""Forms of a forest in a file: arboost's packed sections, and plain arrays under compressors.

All forms share arboost's container, with its header, checksum and atomic write, and the check of
the trees after loading. So only the coding of the arrays differs.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from arboost.models.files import packed_trees
from arboost.models.files.container import naming_errors, pack, read_file, unpack, write_file
from arboost.models.files.model_file import FORMAT
from arboost.models.model import Model
from arboost.trees.forest import ALL_DTYPES, Forest

Encode = Callable[[Forest], tuple[dict[str, Any], dict[str, np.ndarray]]]
Decode = Callable[[dict[str, Any], dict[str, np.ndarray]], Forest]


@dataclass(frozen=True)
class Codec:
    """A compressor of bytes; `decompress` gets the size of the result."""

    compress: Callable[[bytes], bytes]
    decompress: Callable[[bytes, int], bytes]


@dataclass(frozen=True)
class Form:
    """Forest <-> header and sections of the container."""

    encode: Encode
    decode: Decode

    def save(self, model: Model, path: Path) -> None:
        """Write the model's forest to a file."""
        write_file(path, pack(FORMAT, *self.encode(model.forest)))

    def load(self, model: Model, path: Path) -> Forest:
        """Return the forest in a file, checked against the model's features and outputs."""
        with naming_errors(FORMAT, path.name):
            forest = self.decode(*unpack(FORMAT, read_file(FORMAT, path)))
            schema = model.schema
            categorical = np.array(schema.categorical, np.bool_) if schema.levels else None
            forest.validate(schema.n_features, model.n_outputs, categorical)
        return forest


def forms() -> dict[str, Form]:
    """Every form by name; zstd is left out where the package zstandard is not installed."""
    found = {"packed": Form(_pack, _unpack), "arrays": Form(_arrays, _forest)}
    for name, codec in _codecs().items():
        found[f"arrays, {name}"] = compressed(codec, shuffle=False)
        found[f"shuffled, {name}"] = compressed(codec, shuffle=True)
    return found


def _codecs() -> dict[str, Codec]:
    found = {"zlib 6": Codec(lambda data: zlib.compress(data, 6), _inflate)}
    if find_spec("zstandard") is None:
        print("zstd: left out, not installed (pip install zstandard)")
        return found
    import zstandard

    decompressor = zstandard.ZstdDecompressor()
    for level in (3, 19):
        compress = zstandard.ZstdCompressor(level=level).compress
        found[f"zstd {level}"] = Codec(compress, decompressor.decompress)
    return found


def _inflate(data: bytes, size: int) -> bytes:
    return zlib.decompress(data, bufsize=max(size, 1))


def compressed(codec: Codec, *, shuffle: bool) -> Form:
    """The form with each array compressed on its own.

    `shuffle` stores the first bytes of all numbers, then the second bytes, and so on: exponents
    next to exponents, high bytes of small integers next to each other.
    """

    def encode(forest: Forest) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        shapes, sections = {}, {}
        for name, array in _arrays(forest)[1].items():
            shapes[name] = array.shape
            data = _shuffled(array) if shuffle else array.tobytes()
            sections[name] = np.frombuffer(codec.compress(data), np.uint8)
        return {"shapes": shapes}, sections

    def decode(header: dict[str, Any], sections: dict[str, np.ndarray]) -> Forest:
        arrays = {}
        for name, dtype in ALL_DTYPES.items():
            shape = header["shapes"][name]
            size = dtype.itemsize * int(np.prod(shape))
            data = codec.decompress(sections[name].data, size)
            flat = _unshuffled(data, dtype) if shuffle else np.frombuffer(data, dtype)
            arrays[name] = flat.reshape(shape)
        return Forest(**arrays)

    return Form(encode, decode)


def _shuffled(array: np.ndarray) -> bytes:
    return array.reshape(-1, 1).view(np.uint8).T.tobytes()


def _unshuffled(data: bytes, dtype: np.dtype[Any]) -> np.ndarray:
    planes = np.frombuffer(data, np.uint8).reshape(dtype.itemsize, -1)
    return np.ascontiguousarray(planes.T).view(dtype)[:, 0]


def _arrays(forest: Forest) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    return {}, {name: getattr(forest, name) for name in ALL_DTYPES}


def _forest(_header: dict[str, Any], sections: dict[str, np.ndarray]) -> Forest:
    return Forest(**{name: sections[name] for name in ALL_DTYPES})


def _pack(forest: Forest) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    return {"width": forest.width}, packed_trees.to_sections(forest)


def _unpack(header: dict[str, Any], sections: dict[str, np.ndarray]) -> Forest:
    return packed_trees.from_sections(sections, header["width"])


def same(one: Forest, other: Forest) -> bool:
    """Whether two forests have the same bytes."""
    return all(
        getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in ALL_DTYPES
    )
