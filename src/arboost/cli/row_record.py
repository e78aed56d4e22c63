"""Rows of a training by the hashes of their values: which were trained on, which were held out.

A row is the values of the features and the target. Its hash depends neither on the kind of file nor
on the order of rows and columns: numbers are compared as single-precision floats unless they are
whole, times in microseconds, categories by value, and an empty text is a missing value.

`provenance["split"]` of a model has two sets of rows, each of bounded size:

    {"target": "price", "repeated": 0.01,
     "held_out": {"rows": 1636, "below": "ffff...", "range": 107216896, "kept": 1636,
                  "keys": "base64"},
     "trained": {...}}

A set keeps the rows with the smallest hashes, up to `below`: 16,384 held-out and 4,096 trained rows
at most. A kept row is a number below `range`, 2 ** 16 times the number of kept rows, so another row
passes for one of the set with a probability of 0.0015 %; rows that were trained on never pass for
held-out ones. `keys` are the numbers, 2.25 bytes each: all rows take up to 61 kB of a file.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from arboost.cli.errors import ModelFailure
from arboost.cli.model_files import SPLIT

Hashes = NDArray[np.uint64]

_MOST_HELD_OUT, _MOST_TRAINED = 1 << 14, 1 << 12  # rows that a file keeps
_MOST_SAMPLED = 1 << 18  # rows of a sample that is not in a file
_LARGEST = (1 << 64) - 1
_LOW_BITS = np.uint64(16)
_SPREAD = 1 << 16  # numbers for each kept row
_CHUNK = 1 << 16  # rows that are hashed at a time
_MISSING = np.uint64(0x6D697373696E6721)
_EXACT = float(1 << 53)
_HALF = np.uint64(32)


class RowSample:
    """The rows of the smallest hashes among all that were added.

    Attributes
    ----------
    n_rows : int
        Number of rows that were added.
    below : int
        Largest hash that the sample would keep.
    hashes : uint64 array
        Distinct hashes, ascending.
    counts : int64 array
        Number of rows of each.
    """

    def __init__(self, hashes: Hashes | None = None) -> None:
        self.n_rows = 0
        self.below = _LARGEST
        self.hashes, self.counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        if hashes is not None:
            self.add(hashes)

    def add(self, hashes: Hashes) -> None:
        """Add rows."""
        self.n_rows += len(hashes)
        distinct, counts = np.unique(hashes[hashes <= np.uint64(self.below)], return_counts=True)
        both = np.concatenate([self.hashes, distinct])
        self.hashes, places = np.unique(both, return_inverse=True)
        weights = np.concatenate([self.counts, counts])
        self.counts = np.bincount(places, weights, len(self.hashes)).astype(np.int64)
        if len(self.hashes) > _MOST_SAMPLED:
            self.hashes = self.hashes[:_MOST_SAMPLED].copy()
            self.counts = self.counts[:_MOST_SAMPLED].copy()
            self.below = int(self.hashes[-1])

    def without(self, second: RowSample) -> RowSample:
        """Sample without the rows whose values occur in a second sample."""
        rest = RowSample()
        rest.below = min(self.below, second.below)
        rest.n_rows = self.n_rows
        chosen = ~np.isin(self.hashes, second.hashes) & (self.hashes <= np.uint64(rest.below))
        rest.hashes, rest.counts = self.hashes[chosen], self.counts[chosen]
        return rest


@dataclass(frozen=True)
class RowSet:
    """Some rows, by their hashes.

    Attributes
    ----------
    n_rows : int
        Number of all rows, kept or not.
    below : int
        Largest hash of the kept rows.
    spread : int
        Kept rows are numbers below it.
    keys : uint64 array
        The numbers, ascending.
    """

    n_rows: int
    below: int
    spread: int
    keys: Hashes

    @classmethod
    def of(cls, sample: RowSample, most: int) -> RowSet:
        """Set of the rows of a sample, at most `most` of them."""
        hashes = sample.hashes[:most]
        is_whole = len(hashes) == len(sample.hashes)
        below = sample.below if is_whole else int(hashes[-1])
        spread = _SPREAD * max(len(hashes), 1)
        return cls(sample.n_rows, below, spread, np.unique(_scaled(hashes, spread)))

    def refusing(self, hashes: Hashes) -> RowSet:
        """Set without the numbers of these rows, which are outside of it."""
        taken = _scaled(hashes[self.covers(hashes)], self.spread)
        return replace(self, keys=self.keys[~np.isin(self.keys, taken)])

    def covers(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Whether the set would keep each row."""
        return hashes <= np.uint64(self.below)

    def has(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Whether each row is among the kept rows."""
        is_kept = np.zeros(len(hashes), np.bool_)
        if len(self.keys):
            covered = np.flatnonzero(self.covers(hashes))
            numbers = _scaled(hashes[covered], self.spread)
            positions = np.minimum(np.searchsorted(self.keys, numbers), len(self.keys) - 1)
            is_kept[covered] = self.keys[positions] == numbers
        return is_kept

    def to_json(self) -> dict[str, Any]:
        """Set as JSON, for the provenance of a model."""
        keys = base64.b64encode(_packed(self.keys, self.spread)).decode("ascii")
        return {
            "rows": self.n_rows,
            "below": f"{self.below:016x}",
            "range": self.spread,
            "kept": len(self.keys),
            "keys": keys,
        }

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> RowSet:
        """Set of `to_json`; raise ValueError, TypeError or LookupError for other values."""
        numbers = [value[name] for name in ("rows", "range", "kept")]
        if any(type(number) is not int for number in numbers):
            raise TypeError("a set of rows without numbers")
        (n_rows, spread, n_keys), below = numbers, int(value["below"], 16)
        is_allowed = _SPREAD <= spread <= _SPREAD * _MOST_HELD_OUT and 0 <= below <= _LARGEST
        if not is_allowed or not 0 <= n_keys <= n_rows:
            raise ValueError(f"a set of {n_keys} of {n_rows} rows in {spread} numbers")
        keys = _unpacked(base64.b64decode(value["keys"], validate=True), n_keys)
        return cls(n_rows, below, spread, keys)


@dataclass(frozen=True)
class RowRecord:
    """Rows of a training.

    Attributes
    ----------
    target : str
    repeated : float
        Share of the trained rows whose values occur in several rows.
    held_out, trained : RowSet
        No row of the first has the values of a row of the second.
    """

    target: str
    repeated: float
    held_out: RowSet
    trained: RowSet

    @classmethod
    def of(cls, target: str, trained: RowSample, held_out: RowSample | None = None) -> RowRecord:
        """Record of a training by samples of its rows."""
        total, twice = trained.counts.sum(), trained.counts[trained.counts > 1].sum()
        new_rows = RowSample() if held_out is None else held_out.without(trained)
        return cls(
            target,
            round(float(twice / max(total, 1)), 4),
            RowSet.of(new_rows, _MOST_HELD_OUT).refusing(trained.hashes),
            RowSet.of(trained, _MOST_TRAINED),
        )

    def to_json(self) -> dict[str, Any]:
        """Record as JSON, for the provenance of a model."""
        return {
            "target": self.target,
            "repeated": self.repeated,
            "held_out": self.held_out.to_json(),
            "trained": self.trained.to_json(),
        }

    @classmethod
    def of_model(cls, model: Any) -> RowRecord | None:
        """Record of a model; None for a model without one."""
        value = model.provenance.get(SPLIT)
        if value is None:
            return None
        try:
            sets = [RowSet.of_json(value[name]) for name in ("held_out", "trained")]
            return cls(str(value["target"]), float(value["repeated"]), *sets)
        except (LookupError, TypeError, ValueError) as error:
            raise ModelFailure(
                f"the model file has a damaged record of its rows ({error}). Train it again."
            ) from error

    def trained_share(self, hashes: Hashes) -> float:
        """Share of rows that the model was trained on, estimated from those that are covered."""
        covered = hashes[self.trained.covers(hashes)]
        return float(self.trained.has(covered).mean()) if len(covered) else 0.0


def row_hashes(table: Any, columns: Sequence[str]) -> Hashes:
    """Hash of each row of a table of PyArrow over some columns.

    Examples
    --------
    >>> import pyarrow
    >>> first = pyarrow.table({"x": [1, 2], "y": ["a", None]})
    >>> second = pyarrow.table({"y": ["a", ""], "x": [1.0, 2.0]})
    >>> bool((row_hashes(first, ["x", "y"]) == row_hashes(second, ["y", "x"])).all())
    True
    """
    sums = np.zeros(table.num_rows, np.uint64)
    texts: dict[str, int] = {}
    for start in range(0, table.num_rows, _CHUNK):
        part = table.slice(start, _CHUNK)
        total = sums[start : start + _CHUNK]
        for name in columns:
            salt = np.uint64(_text_hash(name))
            total += _mixed(_values(part.column(name), texts) ^ salt)
    return _mixed(sums)


def _values(column: Any, texts: dict[str, int]) -> Hashes:
    """Hash of each value of a column; `texts` caches those of texts."""
    column = column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if types.is_date(kind) or types.is_timestamp(kind):
        column = column.cast(pyarrow.timestamp("us", getattr(kind, "tz", None)), safe=False)
        column = column.cast(pyarrow.int64())
    elif types.is_time(kind) or types.is_duration(kind):
        unit = pyarrow.time64("us") if types.is_time(kind) else pyarrow.duration("us")
        column = column.cast(unit, safe=False).cast(pyarrow.int64())
    kind = column.type
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if is_number or types.is_decimal(kind):
        return _numbers(column)
    if types.is_nested(kind):
        return np.zeros(len(column), np.uint64)
    if types.is_null(kind):
        return np.full(len(column), _MISSING)
    encoded = pc.dictionary_encode(column)
    labels = [str(value) for value in encoded.dictionary.to_pylist()]
    for text in labels:
        if text not in texts:
            texts[text] = _text_hash(text) if text else int(_MISSING)
    hashes = np.array([*(texts[text] for text in labels), _MISSING], np.uint64)
    codes = pc.fill_null(encoded.indices, len(hashes) - 1).to_numpy(zero_copy_only=False)
    value_hashes: Hashes = hashes[codes]
    return value_hashes


def _numbers(column: Any) -> Hashes:
    if column.type == pyarrow.float16():
        column = column.cast(pyarrow.float32())
    values = column.cast(pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False) + 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        single = values.astype(np.float32).astype(np.float64)
        is_whole = (values == np.floor(values)) & (np.abs(values) <= _EXACT)
    is_whole |= np.isinf(single)
    hashes = _mixed(np.where(is_whole, values, single).view(np.uint64))
    hashes[np.isnan(values)] = _MISSING
    return hashes


def _text_hash(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def _mixed(values: Hashes) -> Hashes:
    """Values under the bijection of splitmix64."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _scaled(hashes: Hashes, spread: int) -> Hashes:
    """Hashes, mixed again, as numbers below `spread`, which is below 2 ** 32."""
    return ((_mixed(hashes) >> _HALF) * np.uint64(spread)) >> _HALF


def _packed(keys: Hashes, spread: int) -> bytes:
    """Ascending numbers in the code of Elias and Fano: low 16 bits, then the rest in unary.

    n numbers below 2 ** 16 * n take 2.25 bytes each.
    """
    bits = np.zeros((spread >> int(_LOW_BITS)) + len(keys), np.uint8)
    bits[(keys >> _LOW_BITS).astype(np.intp) + np.arange(len(keys))] = 1
    return keys.astype("<u2").tobytes() + np.packbits(bits).tobytes()


def _unpacked(data: bytes, n_keys: int) -> Hashes:
    """Numbers of `_packed`; raise ValueError for other bytes."""
    low = np.frombuffer(data[: 2 * n_keys], "<u2").astype(np.uint64)
    places = np.flatnonzero(np.unpackbits(np.frombuffer(data[2 * n_keys :], np.uint8)))
    if len(low) != n_keys or len(places) != n_keys:
        raise ValueError("numbers of rows that cannot be read")
    high = (places - np.arange(n_keys)).astype(np.uint64)
    return (high << _LOW_BITS) | low
