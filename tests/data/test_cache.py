"""Bins of files in a folder: the next fit reads them instead of the files."""

import errno
import multiprocessing
import os
import shutil

import numpy as np
import pandas as pd
import pytest

import arboost
from arboost import Dataset, GradientBoostingClassifier, GradientBoostingRegressor
from arboost.data import binned_source, memory
from arboost.data.memory import MemoryPlan
from support.processes import run

parquet = pytest.importorskip("pyarrow.parquet")

N_ROWS = 700


def write(folder, seed=0):
    """Write two Parquet files; return their pattern."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "a": rng.normal(size=N_ROWS),
            "b": rng.choice(["x", "y", None], N_ROWS),
            "many": [f"k{one}" for one in rng.zipf(1.3, N_ROWS) % 300],
            "when": pd.date_range("2021-01-01", periods=N_ROWS),
            "w": rng.integers(0, 3, N_ROWS).astype(float),
            "y": rng.normal(size=N_ROWS),
            "label": rng.choice(["yes", "no"], N_ROWS),
        }
    )
    table.iloc[:400].to_parquet(folder / "one.parquet", index=False)
    table.iloc[400:].to_parquet(folder / "two.parquet", index=False)
    return str(folder / "*.parquet")


def model_bytes(model, tmp_path):
    model.save(tmp_path / "model.arb")
    return (tmp_path / "model.arb").read_bytes()


@pytest.fixture
def passes(monkeypatch):
    """List the labels of all passes over sources."""
    seen = []
    start = binned_source._CachedBatches.__call__
    monkeypatch.setattr(
        binned_source._CachedBatches,
        "__call__",
        lambda self, label: (seen.append(label), start(self, label))[1],
    )
    return seen


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("preset", ["fast", None])
def test_second_fit_reads_the_cache(stored, preset, tmp_path, passes, monkeypatch):
    if stored:
        monkeypatch.setattr(MemoryPlan, "stores", lambda *of: True)
    pattern, cache = write(tmp_path), tmp_path / "cache"
    params = {"n_estimators": 3} if preset is None else {"preset": preset}
    model = GradientBoostingRegressor(max_depth=3, **params)
    expected = model_bytes(model.fit(pattern, "y", "w"), tmp_path)
    del passes[:]
    assert model_bytes(model.fit(pattern, "y", "w", cache=cache), tmp_path) == expected
    assert passes == ["reading", "reading levels", "binning"]
    del passes[:]
    assert model_bytes(model.fit(pattern, "y", "w", cache=cache), tmp_path) == expected
    assert passes == []
    assert not list(cache.glob("*.tmp"))


def test_resumed_fits_read_no_file(tmp_path, passes, monkeypatch):
    monkeypatch.setattr(MemoryPlan, "stores", lambda *of: True)
    pattern, cache = write(tmp_path), tmp_path / "cache"
    model = GradientBoostingRegressor(n_estimators=6, max_depth=3)
    expected = model_bytes(model.fit(pattern, "y", "w"), tmp_path)

    def interrupt(done):
        if done.index == 3:
            raise KeyboardInterrupt

    checkpoint = arboost.Checkpoint(tmp_path / "checkpoint", every=1)
    with pytest.raises(KeyboardInterrupt):
        model.fit(pattern, "y", "w", cache=cache, checkpoint=checkpoint, callbacks=[interrupt])
    del passes[:]
    rounds = []
    model.fit(
        pattern,
        "y",
        "w",
        cache=cache,
        checkpoint=checkpoint,
        callbacks=[lambda done: rounds.append(done.index)],
    )
    assert model_bytes(model, tmp_path) == expected
    assert passes == []
    assert rounds[0] > 0


def test_labels_and_other_parameters(tmp_path, passes):
    pattern, cache = write(tmp_path), str(tmp_path / "cache")
    model = GradientBoostingClassifier(n_estimators=2)
    expected = model_bytes(model.fit(pattern, "label", cache=cache), tmp_path)
    assert model_bytes(model.fit(pattern, "label", cache=cache), tmp_path) == expected
    assert passes.count("reading") == 1
    model.set_params(max_bins=20).fit(pattern, "label", cache=cache)
    assert passes.count("reading") == 2
    Dataset.from_files(pattern, "y", columns=["a"], cache=cache)
    Dataset.from_files(pattern, "y", columns=["a"], cache=cache)
    assert passes.count("reading") == 3


def test_changed_files_are_read_again(tmp_path, passes):
    pattern, cache = write(tmp_path), tmp_path / "cache"
    model = GradientBoostingRegressor(n_estimators=2)
    first = model_bytes(model.fit(pattern, "y", cache=cache), tmp_path)
    write(tmp_path, seed=1)
    changed = model_bytes(model.fit(pattern, "y", cache=cache), tmp_path)
    assert changed != first
    assert model_bytes(model.fit(pattern, "y"), tmp_path) == changed
    assert len(list(cache.glob("*.codes"))) == 1


def write_with_the_times_of_before(path):
    """Write other values of the same size, and put the time of the last change back."""
    status, data = path.stat(), path.read_bytes()
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def exchange(path):
    """Put another file of the same size and time in the place of a file."""
    other = path.with_suffix(".other")
    shutil.copy2(path, other)
    os.replace(other, path)


@pytest.mark.skipif(os.name == "nt", reason="times and inodes of POSIX")
@pytest.mark.parametrize("change", [write_with_the_times_of_before, exchange])
def test_files_changed_behind_their_times_are_read_again(change, tmp_path, passes):
    pattern, cache = write(tmp_path), tmp_path / "cache"
    model = GradientBoostingRegressor(n_estimators=2).fit(pattern, "y", cache=cache)
    del passes[:]
    change(tmp_path / "two.parquet")
    model.fit(pattern, "y", cache=cache)
    assert "reading" in passes


def test_entries_of_other_versions_are_replaced(tmp_path, passes, monkeypatch):
    pattern, cache = write(tmp_path), tmp_path / "cache"
    model = GradientBoostingRegressor(n_estimators=2).fit(pattern, "y", cache=cache)
    del passes[:]
    monkeypatch.setattr("arboost.data.cache.core.version", lambda: "99.0")
    model.fit(pattern, "y", cache=cache)
    assert "reading" in passes
    assert len(list(cache.glob("*.codes"))) == 1


@pytest.mark.parametrize("suffix", ["codes", "npz"])
@pytest.mark.parametrize("harm", ["cut", "flip", "delete"])
def test_damaged_cache_is_written_again(suffix, harm, tmp_path, passes):
    pattern, cache = write(tmp_path), tmp_path / "cache"
    model = GradientBoostingRegressor(n_estimators=2)
    expected = model_bytes(model.fit(pattern, "y", cache=cache), tmp_path)
    (path,) = cache.glob(f"*.{suffix}")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 255
    if harm == "delete":
        path.unlink()
    else:
        path.write_bytes(data[: len(data) // 3] if harm == "cut" else data)
    if (suffix, harm) == ("npz", "delete"):
        model.fit(pattern, "y", cache=cache)
    else:
        with pytest.warns(arboost.DataWarning, match="is damaged .* It is written again"):
            model.fit(pattern, "y", cache=cache)
    assert model_bytes(model, tmp_path) == expected
    del passes[:]
    model.fit(pattern, "y", cache=cache)
    assert passes == []


@pytest.mark.parametrize("name", ["y", "weight", "edges 0", "codes 2", "levels"])
def test_arrays_of_another_table_are_refused(name, tmp_path):
    """Sizes and level codes are compared before the core reads them."""
    pattern, cache = write(tmp_path), tmp_path / "cache"
    model = GradientBoostingRegressor(n_estimators=2)
    expected = model_bytes(model.fit(pattern, "y", "w", cache=cache), tmp_path)
    (path,) = cache.glob("*.npz")
    with np.load(path) as parts:
        arrays = {key: parts[key] for key in parts.files}
    if name == "levels":
        arrays["codes 2"][7] = 10**6
    else:
        arrays[name] = arrays[name][:-1]
    np.savez(path, **arrays)
    with pytest.warns(arboost.DataWarning, match="is damaged .* It is written again"):
        model.fit(pattern, "y", "w", cache=cache)
    assert model_bytes(model, tmp_path) == expected


def test_leftovers_of_killed_writers_are_removed(tmp_path):
    pattern, cache = write(tmp_path), tmp_path / "cache"
    model = GradientBoostingRegressor(n_estimators=2).fit(pattern, "y", cache=cache)
    (codes,) = cache.glob("*.codes")
    left = codes.with_suffix(".codes.tmp")
    left.write_bytes(b"part")
    write(tmp_path, seed=1)
    model.fit(pattern, "y", cache=cache)
    assert not left.exists()


def test_errors_leave_nothing(tmp_path, monkeypatch):
    pattern, cache = write(tmp_path), tmp_path / "cache"

    def interrupt(*of, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr("arboost.data.passes._encode", interrupt)
    with pytest.raises(KeyboardInterrupt):
        GradientBoostingRegressor(n_estimators=2).fit(pattern, "y", cache=cache)
    assert {path.suffix for path in cache.iterdir()} == {".lock"}


def test_a_full_folder_is_found_before_writing(tmp_path, monkeypatch):
    pattern, cache = write(tmp_path), tmp_path / "cache"
    usage = type("usage", (), {"free": 1000})
    monkeypatch.setattr(memory.shutil, "disk_usage", lambda folder: usage)
    message = r"the bins of 700 rows need 2MB in the folder .*another folder for cache, or leave"
    with pytest.raises(OSError, match=message) as caught:
        GradientBoostingRegressor(n_estimators=2).fit(pattern, "y", cache=cache)
    assert caught.value.errno == errno.ENOSPC
    assert str(cache) in str(caught.value)
    assert {path.suffix for path in cache.iterdir()} == {".lock"}


@pytest.mark.skipif(os.name == "nt", reason="limits of POSIX")
@pytest.mark.parametrize("largest", [3_000, 12_000])
def test_a_folder_that_becomes_full_keeps_nothing(largest, tmp_path):
    """A limit on the size of files stands for a full disk: of the codes, of the description."""
    code = """
        import resource, sys
        from arboost import GradientBoostingRegressor
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
        try:
            GradientBoostingRegressor(n_estimators=2).fit(sys.argv[1], "y", cache=sys.argv[2])
        except OSError as error:
            print(error)
    """
    pattern, cache = write(tmp_path), tmp_path / "cache"
    message = run(code, pattern, str(cache), str(largest))
    assert "File too large: the bins of 700 rows need" in message
    assert "choose another folder for cache, or leave out cache" in message
    assert {path.suffix for path in cache.iterdir()} == {".lock"}


def fit_in_process(pattern, cache, path):
    GradientBoostingRegressor(n_estimators=2, n_jobs=1).fit(pattern, "y", cache=cache).save(path)


@pytest.mark.skipif(os.name == "nt", reason="processes start slowly there")
def test_two_processes_share_a_cache(tmp_path):
    pattern, cache = write(tmp_path), str(tmp_path / "cache")
    context = multiprocessing.get_context("fork")
    paths = [tmp_path / "one.arb", tmp_path / "two.arb"]
    both = [context.Process(target=fit_in_process, args=(pattern, cache, path)) for path in paths]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_cache_is_for_files():
    X = np.arange(40.0).reshape(-1, 1)
    with pytest.raises(ValueError, match="only bins of files are kept"):
        GradientBoostingRegressor().fit(lambda: [(X, X[:, 0])], cache="folder")
    with pytest.raises(ValueError, match="cache='folder' is for files and other sources"):
        GradientBoostingRegressor().fit(X, X[:, 0], cache="folder")
