"""Header and arrays <-> one checksummed file. No pickle and nothing executable inside.

    offset  bytes  content
    0       8      magic: the kind of file
    8       4      format version
    12      4      oldest format version whose readers understand this file
    16      8      length of the file
    24      8      length of the header
    32             header: JSON in ASCII, keys sorted
    ...            sections: one array each, in the header's order, each at a multiple of 8
    -32     32     BLAKE2b of everything before it

Numbers are little endian. The same content gives the same bytes. Magic, lengths and checksum stay
where they are in every format version, so that a reader can always tell a damaged file from a
newer one.

No file makes a reader allocate memory out of proportion to its size. Packed numbers can be 64 to a
byte, and the labels of classes and the columns without names need no bytes at all, so that a few
bytes can claim any amount of memory. A reader counts memory before it allocates it (`Budget`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from arboost.errors import ModelFormatError

T = TypeVar("T")
Data = bytes | mmap.mmap

_FRAME = struct.Struct("<8sIIQQ")
_DIGEST_SIZE = 32
_ALIGNMENT = 8
_LONGEST = 300  # characters of a quoted error message
DTYPES = frozenset(
    ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8")
)


@dataclass(frozen=True)
class Format:
    """A kind of file.

    Attributes
    ----------
    what : str
        Its name in messages: "model".
    magic : bytes
        The first 8 bytes. A first byte above 127 and line ends show transfers that strip bits or
        translate text.
    version : int
        The format version that this code writes, and the newest that it reads. Older readers do not
        understand its files.
    source : str
        Advice in messages about a file of another kind.
    remedy : str
        Advice in messages about a damaged file.
    """

    what: str
    magic: bytes
    version: int
    source: str
    remedy: str


def pack(kind: Format, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Bytes of a file; the header must be JSON, and gets the key "sections"."""
    stored = {
        name: np.asarray(array, array.dtype.newbyteorder("<"), order="C")
        for name, array in arrays.items()
    }
    sections = [[name, array.dtype.str, array.shape] for name, array in stored.items()]
    header = {**header, "sections": sections}
    text = json.dumps(header, sort_keys=True, allow_nan=False, separators=(",", ":")).encode()
    parts = [text]
    size = _FRAME.size + len(text)
    for array in stored.values():
        padding = -size % _ALIGNMENT
        parts += [bytes(padding), array.tobytes()]
        size += padding + array.nbytes
    size += _DIGEST_SIZE
    parts.insert(0, _FRAME.pack(kind.magic, kind.version, kind.version, size, len(text)))
    body = b"".join(parts)
    return body + _digest(body)


def unpack(kind: Format, data: Data) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays, read-only views of the data: bytes, or a mapped file.

    To be called inside `naming_errors`, which turns its errors into messages.
    """
    header, offset = _read_frame(kind, data)
    return header, _read_sections(data, header["sections"], offset)


@contextlib.contextmanager
def naming_errors(
    kind: Format, name: str, problem: str = "its checksum is right, but its content is not"
) -> Iterator[None]:
    """Turn any error of invalid content into a ModelFormatError that names the file."""
    try:
        yield
    except ModelFormatError as error:
        raise ModelFormatError(f"cannot read {name}: {error}") from None
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        # Under a right checksum, such bytes were written by a bug, or by hand.
        text = str(error)  # in a hostile file as long as the file
        text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
        cause = f"{problem} ({type(error).__name__}: {text})"
        raise ModelFormatError(f"cannot read {name}: {cause}. {kind.remedy}") from error


def read_file(
    kind: Format, path: str | os.PathLike[str], other_starts: tuple[bytes, ...] = ()
) -> bytes:
    """Bytes of a file; only the first of a file of another kind.

    Files that start with one of `other_starts`, after white space, are read in full, too.
    """
    with open(os.fsdecode(path), "rb") as file:
        data = file.read(len(kind.magic))
        if data == kind.magic or data.lstrip().startswith(other_starts):
            if not file.seekable():
                return data + file.read()
            file.seek(0)  # cheaper than joining the bytes
            data = file.read()
    return data


def map_file(kind: Format, path: str | os.PathLike[str]) -> Data:
    """Memory-mapped file: pages are read on use, and shared between processes.

    For a file of another kind the result is its first bytes.
    """
    with open(os.fsdecode(path), "rb") as file:
        data = file.read(len(kind.magic))
        if data == kind.magic:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return data


def _digest(body: bytes | memoryview) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_SIZE).digest()


def _read_frame(kind: Format, data: Data) -> tuple[dict[str, Any], int]:
    """Header and offset of its end, after all checks of the frame."""
    if not data:
        raise ModelFormatError(f"it is empty. {kind.source}")
    if data[: len(kind.magic)] != kind.magic:
        raise ModelFormatError(
            f"it is not an arboost {kind.what}: it starts with {data[: len(kind.magic)]!r}. "
            f"{kind.source}"
        )
    if len(data) < _FRAME.size + _DIGEST_SIZE:
        raise ModelFormatError(f"it was cut after {len(data)} bytes. {kind.remedy}")
    _, version, oldest_reader, size, header_size = _FRAME.unpack_from(data)
    if size != len(data):
        raise ModelFormatError(
            f"it has {len(data)} bytes where its header says {size}. {kind.remedy}"
        )
    body = memoryview(data)[:-_DIGEST_SIZE]
    if _digest(body) != data[-_DIGEST_SIZE:]:
        raise ModelFormatError(
            f"its checksum does not match its content, so some of it has changed. {kind.remedy}"
        )
    if oldest_reader > kind.version:
        raise ModelFormatError(
            f"it has format version {version} and needs a reader of version {oldest_reader} or "
            f"later; this one reads up to {kind.version}. Install a newer arboost."
        )
    end = _FRAME.size + header_size
    if end > len(body):
        raise ValueError(f"a header of {header_size} bytes")
    header = json.loads(data[_FRAME.size : end].decode("ascii"))
    if not isinstance(header, dict):
        raise TypeError("a header that is not a table")
    return header, end


def _read_sections(
    data: Data, sections: list[tuple[str, str, list[int]]], offset: int
) -> dict[str, NDArray[Any]]:
    """Arrays as read-only views of the data; every count is checked before use."""
    end = len(data) - _DIGEST_SIZE
    arrays: dict[str, NDArray[Any]] = {}
    for name, dtype, shape in sections:
        if dtype not in DTYPES:
            raise ValueError(f"section {name!r} of type {dtype!r}")
        if not all(type(length) is int and length >= 0 for length in shape):
            raise ValueError(f"section {name!r} of shape {shape!r}")
        offset += -offset % _ALIGNMENT
        count = math.prod(shape)
        size = count * np.dtype(dtype).itemsize
        if size > end - offset:
            raise ValueError(f"section {name!r} of {size} bytes where {end - offset} are left")
        flat = np.frombuffer(data, dtype, count, offset) if count else np.empty(0, dtype)
        if dtype == "|b1" and count and flat.view(np.uint8).max() > 1:
            raise ValueError(f"section {name!r} with a truth value that is neither 0 nor 1")
        arrays[name] = flat.reshape(shape).astype(flat.dtype.newbyteorder("="), copy=False)
        offset += size
    if offset != end:
        raise ValueError(f"{end - offset} bytes after the last section")
    return arrays


# ---- values of a header ----


def typed(value: object, expected: type[T], name: str = "a value") -> T:
    """Value of a header; raise TypeError for another type."""
    if type(value) is not expected:
        raise TypeError(f"{name}={value!r} instead of a {expected.__name__}")
    return value


def typed_fields(header: Mapping[str, Any], types: Mapping[str, type]) -> dict[str, Any]:
    """Fields of a header; raise TypeError for a value of another type."""
    return {name: typed(header[name], expected, name) for name, expected in types.items()}


def typed_tuple(values: object, item: type[T], name: str = "a value") -> tuple[T, ...]:
    """List of a header, whose items are of one type."""
    return tuple(typed(value, item, name) for value in typed(values, list, name))


# ---- memory ----

# Twice the 512 bytes of doubles that a byte of a packed file can hold; the largest one measured is
# 200, for a tree of 1,000 classes.
MULTIPLE = 1024
FLOOR = 64 * 2**20  # bytes that any file may take
FREE_FEATURES = 2**16  # columns without a byte in the file


class Budget:
    """Memory that is left to the reader of a file.

    Parameters
    ----------
    size : int
        Bytes of the file.

    Examples
    --------
    >>> Budget(1000).take(2**40, "trees")
    Traceback (most recent call last):
      ...
    ValueError: trees of 1099511627776 bytes, where a file of 1000 bytes may take 68132864
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._left = self._limit = FLOOR + MULTIPLE * size

    def take(self, n_bytes: int, part: str) -> None:
        """Count memory that is about to be allocated; raise ValueError beyond the budget."""
        if n_bytes > self._left:
            raise ValueError(
                f"{part} of {n_bytes} bytes, where a file of {self._size} bytes may take "
                f"{self._limit}"
            )
        self._left -= n_bytes

    def check_features(self, n_features: int) -> None:
        """Raise ValueError where a file is too small for its number of columns."""
        if n_features > FREE_FEATURES + self._size:
            raise ValueError(f"{n_features} features in a file of {self._size} bytes")
