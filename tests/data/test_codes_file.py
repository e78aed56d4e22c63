"""Binned tables in files: the same codes, whole files only, errors of the system as they are."""

import errno
import itertools
import os
import tempfile

import numpy as np
import pytest

from arboost.backend import core


def table(n=1000, seed=0, width=1):
    """Return a table of numbers, with few values, missing ones and a bundle."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 9))
    X[:, 1] = rng.integers(3, size=n)
    X[::7, 2] = np.nan
    X[:, 3:6] = np.eye(3)[rng.integers(3, size=n)]
    columns = core.Columns(n)
    for column in X.T:
        columns.add(np.ascontiguousarray(column))
    edges = core.quantiles(columns, None, None, 40 if width == 1 else 300, 1)
    plan = core.plan_storage(columns, None, edges, 1, [], bundling=True, max_conflict_rate=0.0)
    return core.encode(columns, None, edges, 1, [], plan)


def write(parts, window_rows=100, path=None):
    with tempfile.TemporaryFile() if path is None else open(path, "w+b") as file:
        writer = core.CodesWriter(file.fileno(), window_rows)
        for part in parts:
            writer.append(part)
        return writer.finish()


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("window_rows", [1, 64, 333, 5000])
def test_rows_come_back(width, window_rows):
    codes = table(width=width)
    stored = write([codes], window_rows)
    assert stored.is_stored
    assert not codes.is_stored
    for rows in (None, np.array([0, 3, 499, 998], np.uint32), np.array([], np.uint32)):
        expected = codes.to_numpy() if rows is None else codes.to_numpy()[rows]
        np.testing.assert_array_equal(stored.take(rows, 2).to_numpy(), expected)
    assert stored.shared_columns == codes.shared_columns
    np.testing.assert_array_equal(stored.first_slot, codes.first_slot)


def test_parts_are_one_table():
    codes = table()
    cuts = [0, 1, 130, 130, 700, 1000]
    parts = [codes.take(np.arange(a, b, dtype=np.uint32), 1) for a, b in itertools.pairwise(cuts)]
    stored = write(parts)
    np.testing.assert_array_equal(stored.take(None, 1).to_numpy(), codes.to_numpy())
    np.testing.assert_array_equal(stored.has_missing, codes.has_missing)
    assert stored.arrays == write([codes], 64).arrays  # the checksum of the rows


def test_missing_values_of_a_later_part():
    full = table()
    numbers = core.Columns(4)
    numbers.add(np.array([1.0, 2.0, 3.0, 4.0]))
    gaps = core.Columns(4)
    gaps.add(np.array([1.0, np.nan, 3.0, 4.0]))
    edges = [np.array([1.5, 2.5])]
    stored = write([core.encode(one, None, edges, 1) for one in (numbers, gaps)])
    assert stored.has_missing.tolist() == [1]
    assert stored.take(None, 1).to_numpy().T.tolist() == [[0, 1, 2, 2, 0, 3, 2, 2]]
    assert full.has_missing.tolist()[2] == 1


def test_a_finished_file_is_opened(tmp_path):
    codes = table()
    write([codes], 64, tmp_path / "codes")
    with (tmp_path / "codes").open("rb") as file:
        opened = core.open_codes(file.fileno())
    np.testing.assert_array_equal(opened.take(None, 1).to_numpy(), codes.to_numpy())
    assert opened.shared_columns == codes.shared_columns


def test_damaged_files_are_refused(tmp_path):
    path, codes = tmp_path / "codes", table(200)
    write([codes], 64, path)
    whole = path.read_bytes()
    padding = range(200 * codes.by_row.strides[0], 200 * codes.by_row.strides[0] + 64)
    for at in set(range(0, len(whole), 37)) - set(padding):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with path.open("rb") as file, pytest.raises(ValueError, match="damaged"):
            core.open_codes(file.fileno())
    for size in (0, 10, 31, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with path.open("rb") as file, pytest.raises(ValueError, match="damaged"):
            core.open_codes(file.fileno())


def checksum(data, first_word=0):
    """Return the sum of a file of codes for some bytes, whose first word is one of the rows."""
    words = np.frombuffer(data + bytes(-len(data) % 8), np.uint64)
    with np.errstate(over="ignore"):
        places = np.arange(first_word, first_word + len(words), dtype=np.uint64)
        places = places * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
        mixed = ((words ^ places) * np.uint64(0xD6E8FEB86659FD93)) ^ (words >> np.uint64(29))
        return int(mixed.sum(dtype=np.uint64))


def forge(whole, codes, at, value, size=1):
    """Return a file of one window with other bytes and the checksums of these bytes."""
    data = bytearray(whole)
    data[at : at + size] = int(value).to_bytes(size, "little")
    first = len(codes.to_numpy()) * codes.by_row.strides[0]
    data[-40:-32] = checksum(bytes(data[:first])).to_bytes(8, "little")
    data[-8:] = checksum(bytes(data[first + 64 : -32])).to_bytes(8, "little")
    return bytes(data)


@pytest.mark.parametrize("width", [1, 2])
def test_forged_codes_are_refused(width, tmp_path):
    """Codes without a bin would be written out of bounds: no checksum keeps them out."""
    path, codes = tmp_path / "codes", table(300, width=width)
    write([codes], 300, path)
    whole, stride = path.read_bytes(), codes.by_row.strides[0]
    n_slots = np.diff(codes.first_slot).tolist()
    for store, n_codes in enumerate(n_slots):
        at = 123 * stride + width * store
        path.write_bytes(forge(whole, codes, at, n_codes - 1, width))
        with path.open("rb") as file:
            core.open_codes(file.fileno())
        if n_codes == 256:
            continue
        for value in (n_codes, 256**width - 1):
            path.write_bytes(forge(whole, codes, at, value, width))
            with path.open("rb") as file, pytest.raises(ValueError, match="damaged"):
                core.open_codes(file.fileno())


def test_forged_descriptions_never_write_out_of_bounds(tmp_path):
    """Any changed byte of the description is an error, or a table that can be read."""
    path, codes = tmp_path / "codes", table(64)
    write([codes], 64, path)
    whole, n_refused = path.read_bytes(), 0
    begin = 64 * codes.by_row.strides[0] + 64
    for at in range(begin, len(whole) - 40, 3):
        for value in (whole[at] ^ 1, 255):
            path.write_bytes(forge(whole, codes, at, value))
            with path.open("rb") as file:
                try:
                    opened = core.open_codes(file.fileno(), 1)
                except (ValueError, MemoryError):
                    n_refused += 1
                    continue
                found = opened.take(None, 1).to_numpy()
                assert (found < opened.n_bins + opened.has_missing).all()
    assert n_refused > 100


def test_writers_refuse_other_tables():
    codes = table()
    with tempfile.TemporaryFile() as file:
        writer = core.CodesWriter(file.fileno(), 64)
        with pytest.raises(ValueError, match="no rows"):
            writer.finish()
        writer.append(codes)
        with pytest.raises(ValueError, match="another layout"):
            writer.append(table(seed=1))
        stored = writer.finish()
        with pytest.raises(ValueError, match="finished"):
            writer.append(codes)
        with pytest.raises(ValueError, match="in memory"):
            core.CodesWriter(file.fileno(), 64).append(stored)
        with pytest.raises(ValueError, match="at least one row"):
            core.CodesWriter(file.fileno(), 0)


def test_views_need_memory():
    stored = write([table()])
    for read in (lambda: stored.by_row, lambda: stored.by_column, stored.to_numpy):
        with pytest.raises(ValueError, match="in a file"):
            read()
    with pytest.raises(ValueError, match="must ascend"):
        stored.take(np.array([5, 3], np.uint32), 1)


def test_system_errors_are_oserrors(tmp_path):
    with pytest.raises(OSError, match="file of codes") as caught:
        core.CodesWriter(12345, 64)
    assert caught.value.errno == errno.EBADF
    path = tmp_path / "codes"
    path.touch()
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(OSError, match="writing the file of codes"):
            core.CodesWriter(descriptor, 64).append(table())
    finally:
        os.close(descriptor)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_disk_is_an_error():
    descriptor = os.open("/dev/full", os.O_RDWR)
    try:
        with pytest.raises(OSError, match="writing the file of codes") as caught:
            core.CodesWriter(descriptor, 64).append(table())
        assert caught.value.errno == errno.ENOSPC
    finally:
        os.close(descriptor)


def test_a_file_cut_short_is_an_error(tmp_path):
    path = tmp_path / "codes"
    stored = write([table()], 64, path)
    os.truncate(path, 500)
    with pytest.raises(OSError, match="reading the file of codes"):
        stored.take(None, 1)


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="no advice on the cache of files")
def test_rows_that_the_system_evicts_are_read_past_its_cache(tmp_path):
    rng = np.random.default_rng(0)
    columns = core.Columns(100_000)
    for _ in range(64):
        columns.add(rng.integers(200, size=100_000).astype(np.float32))
    edges = core.quantiles(columns, None, None, 255, 2)
    codes = core.encode(columns, None, edges, 2)
    path = tmp_path / "codes"
    stored = write([codes], 40_000, path)
    with path.open("rb") as file:
        os.fsync(file.fileno())
        for _ in range(4):
            np.testing.assert_array_equal(stored.take(None, 2).by_row, codes.by_row)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    os.truncate(path, 1000)
    with pytest.raises(OSError, match="reading the file of codes"):
        stored.take(None, 2)
