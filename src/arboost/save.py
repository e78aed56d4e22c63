"""Model <-> versioned bytes. No pickle and nothing executable inside.

    offset  bytes  what
    0       8      magic
    8       4      format version
    12      4      oldest format version whose readers understand this file
    16      8      length of the file
    24      8      length of the header
    32             header: JSON in ASCII, keys sorted
    ...            sections: one array each, in the header's order, each at a multiple of 8
    -32     32     BLAKE2b of everything before it

Numbers are little endian. The same model gives the same bytes: there is no date, no path, and
nothing of the fit that cannot change the model. Magic, lengths and checksum stay where they are in
every format version, so that a reader can always tell a damaged file from a newer one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.errors import ModelFileError
from arboost.ingest import Schema
from arboost.model import FOREST_DTYPES, Forest, Model

__all__ = ["FORMAT_VERSION", "from_bytes", "read_model", "to_bytes", "write_model"]

FORMAT_VERSION = 1  # what this code writes, and the newest that it reads
OLDEST_READER = 1  # the oldest code that reads what this code writes

# The odd first byte and the line ends show transfers that strip bits or translate text.
_MAGIC = b"\x91ARB\r\n\x1a\n"
_FRAME = struct.Struct("<8sIIQQ")
_DIGEST_SIZE = 32
_ALIGNMENT = 8

_MODEL_FIELDS = ("kind", "link", "trees_per_round", "params")
_LABEL_DTYPES = frozenset(
    ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
)


def to_bytes(model: Model) -> bytes:
    """Return the model as the bytes of a model file."""
    arrays: dict[str, NDArray[Any]] = {name: getattr(model.forest, name) for name in FOREST_DTYPES}
    arrays["base_score"] = model.base_score
    header = {name: getattr(model, name) for name in _MODEL_FIELDS}
    header["schema"] = {"names": model.schema.names, "n_features": model.schema.n_features}
    header["classes"] = _describe_classes(model.classes, arrays)
    arrays = {name: _little_endian(array) for name, array in arrays.items()}
    header["sections"] = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    text = json.dumps(header, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()

    parts = [text]
    size = _FRAME.size + len(text)
    for array in arrays.values():
        padding = -size % _ALIGNMENT
        parts += [bytes(padding), array.tobytes()]
        size += padding + array.nbytes
    size += _DIGEST_SIZE
    parts.insert(0, _FRAME.pack(_MAGIC, FORMAT_VERSION, OLDEST_READER, size, len(text)))
    body = b"".join(parts)
    return body + _digest(body)


def from_bytes(data: bytes, name: str = "the data") -> Model:
    """Return the model that the bytes hold; `name` is what errors call them.

    Raises
    ------
    ModelFileError
        The bytes are no model, are damaged, or need a newer version.
    """
    try:
        header, offset = _read_frame(data)
        arrays = _read_sections(data, header["sections"], offset)
        model = _assemble(header, arrays)
        model.validate()
    except ModelFileError as error:
        raise ModelFileError(f"cannot read {name}: {error}") from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        # The checksum was right, so these bytes were written so: by a bug, or by hand.
        what = f"its checksum is right, but its content is not ({type(error).__name__}: {error})"
        raise ModelFileError(f"cannot read {name}: {what}. Save the model again.") from error
    return model


def write_model(model: Model, path: str | os.PathLike[str]) -> None:
    """Write the model to a file; a failure leaves the file that was there before.

    The bytes go to a new file beside the old one, reach the disk, and only then take its name.
    """
    target = os.path.realpath(os.fsdecode(path))
    data = to_bytes(model)
    scratch = f"{target}.{secrets.token_hex(6)}.tmp"
    try:
        with open(scratch, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(scratch)
        raise
    _sync_folder(os.path.dirname(target))


def read_model(path: str | os.PathLike[str]) -> Model:
    """Return the model in a file; raise ModelFileError where it holds none, or a damaged one."""
    path = os.fsdecode(path)
    with open(path, "rb") as file:
        data = file.read(len(_MAGIC))
        if data == _MAGIC:
            data += file.read()
    return from_bytes(data, f"the model file {path!r}")


def _sync_folder(folder: str) -> None:
    # Without this a power cut can bring the old file back. Not every system can open a folder.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _digest(body: bytes | memoryview) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_SIZE).digest()


def _little_endian(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


def _describe_classes(
    classes: NDArray[Any] | None, arrays: dict[str, NDArray[Any]]
) -> dict[str, Any] | None:
    """Return the labels for the header; numbers go to a section, so that no bit is lost."""
    if classes is None:
        return None
    if classes.dtype.kind in "OU":
        return {"dtype": classes.dtype.newbyteorder("<").str, "values": classes.tolist()}
    arrays["classes"] = classes
    return {}


def _read_frame(data: bytes) -> tuple[dict[str, Any], int]:
    """Return the header and where it ends, after all checks that need no look inside."""
    if not data:
        raise ModelFileError("it is empty. Give the path of a file that `save` wrote.")
    if data[: len(_MAGIC)] != _MAGIC:
        found = data[: len(_MAGIC)]
        raise ModelFileError(
            f"it is no arboost model; it starts with {found!r}. "
            "Give the path of a file that `save` wrote."
        )
    if len(data) < _FRAME.size + _DIGEST_SIZE:
        raise ModelFileError(f"it was cut after {len(data)} bytes. Save or copy it again.")
    _, version, oldest_reader, size, header_size = _FRAME.unpack_from(data)
    if size != len(data):
        raise ModelFileError(
            f"it has {len(data)} bytes where its header says {size}. Save or copy it again."
        )
    body = memoryview(data)[:-_DIGEST_SIZE]
    if _digest(body) != data[-_DIGEST_SIZE:]:
        raise ModelFileError(
            "its checksum does not match its content, so some of it has changed. "
            "Save or copy it again."
        )
    if oldest_reader > FORMAT_VERSION:
        raise ModelFileError(
            f"it has format version {version} and needs a reader of version {oldest_reader} or "
            f"later; this one reads up to {FORMAT_VERSION}. Install a newer arboost."
        )
    end = _FRAME.size + header_size
    if end > len(body):
        raise ValueError(f"a header of {header_size} bytes")
    header = json.loads(data[_FRAME.size : end].decode("ascii"))
    if not isinstance(header, dict):
        raise TypeError("a header that is no table")
    return header, end


def _read_sections(
    data: bytes, sections: list[tuple[str, str, list[int]]], offset: int
) -> dict[str, NDArray[Any]]:
    """Return the arrays as read-only views of the data; no count is believed before its check."""
    end = len(data) - _DIGEST_SIZE
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, shape in sections:
        if dtype not in _LABEL_DTYPES:
            raise ValueError(f"section {name!r} of type {dtype!r}")
        if not all(type(length) is int and length >= 0 for length in shape):
            raise ValueError(f"section {name!r} of shape {shape!r}")
        offset += -offset % _ALIGNMENT
        count = math.prod(shape)
        size = count * np.dtype(dtype).itemsize
        if size > end - offset:
            raise ValueError(f"section {name!r} of {size} bytes where {end - offset} are left")
        if dtype == "|b1" and any(byte > 1 for byte in set(data[offset : offset + size])):
            raise ValueError(f"section {name!r} with a truth value that is neither 0 nor 1")
        flat = np.frombuffer(data, dtype, count, offset) if count else np.empty(0, dtype)
        arrays[name] = flat.reshape(shape).astype(flat.dtype.newbyteorder("="), copy=False)
        offset += size
    if offset != end:
        raise ValueError(f"{end - offset} bytes after the last section")
    return arrays


def _assemble(header: Mapping[str, Any], arrays: dict[str, NDArray[Any]]) -> Model:
    for name, dtype in FOREST_DTYPES.items():
        if arrays[name].dtype != dtype:
            raise ValueError(f"{name} of type {arrays[name].dtype}")
    if arrays["base_score"].dtype != np.float64:
        raise ValueError(f"base_score of type {arrays['base_score'].dtype}")
    values = {name: header[name] for name in _MODEL_FIELDS}
    for name, expected in (
        ("kind", str),
        ("link", str),
        ("trees_per_round", int),
        ("params", dict),
    ):
        if type(values[name]) is not expected:
            raise TypeError(f"{name}={values[name]!r}")
    return Model(
        forest=Forest(**{name: arrays[name] for name in FOREST_DTYPES}),
        schema=_read_schema(header["schema"]),
        base_score=arrays["base_score"],
        classes=_read_classes(header["classes"], arrays),
        **values,
    )


def _read_schema(described: Mapping[str, Any]) -> Schema:
    names, n_features = described["names"], described["n_features"]
    if type(n_features) is not int or n_features < 0:
        raise ValueError(f"{n_features!r} features")
    if names is None:
        return Schema(names=None, n_features=n_features)
    if not isinstance(names, list) or not all(type(name) is str for name in names):
        raise TypeError("feature names that are no list of strings")
    return Schema(names=tuple(names), n_features=n_features)


def _read_classes(
    described: Mapping[str, Any] | None, arrays: dict[str, NDArray[Any]]
) -> NDArray[Any] | None:
    if described is None:
        return None
    if "values" not in described:
        return arrays["classes"]
    dtype, values = described["dtype"], described["values"]
    if not isinstance(values, list) or not all(type(value) is str for value in values):
        raise TypeError("class labels that are no list of strings")
    if dtype == "|O":
        return np.array(values, dtype=object)
    labels = np.array(values, dtype=str)
    # numpy's strings have a width, and predictions keep the one that the labels had in fit. The
    # bound keeps a hostile width from asking for memory.
    width = int(dtype.removeprefix("<U"))
    needed = labels.dtype.itemsize // np.dtype("U1").itemsize
    if not needed <= width <= needed + 2**16:
        raise ValueError(f"class labels of type {dtype!r}")
    return labels.astype(f"U{width}")
