"""Atomic writes: orphans of killed writers, full disks."""

import os
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest

import arboost
from arboost.training.checkpoint import Checkpoint
from arboost.write import remove_orphans, replaced_file, write_file
from support.processes import run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="locks and signals of POSIX")

WRITER = """
import os, sys
from arboost import write

def wait(handle):
    os.fsync = lambda handle: None  # of the folder: nobody reads a second line
    print("writing", flush=True)
    sys.stdin.read()

os.fsync = wait
write.write_file(sys.argv[1], b"new")
"""

# Kills itself while it writes the second state.
KILLED_FIT = """
import os, signal, sys
from arboost.training.checkpoint import Checkpoint, State

checkpoint = Checkpoint(sys.argv[1])
checkpoint.load({})
checkpoint.store(State(fingerprint={}, facts={}, arrays={}))
os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
checkpoint.store(State(fingerprint={}, facts={"more": 1}, arrays={}))
"""

# A limit on the size of files stands for a full disk.
SMALL_DISK = """
import resource, sys
from arboost.write import write_file

resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))
try:
    write_file(sys.argv[1], bytes(100_000))
except OSError as error:
    print(error)
"""

X = np.arange(40.0).reshape(20, 2)


def killed(code, *arguments):
    result = subprocess.run([sys.executable, "-c", code, *arguments], check=False)
    assert result.returncode == -signal.SIGKILL


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a+b.arb"


def writer(path):
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, os.fspath(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"writing\n"
    return process


def test_orphans_of_a_killed_writer(path):
    path.write_bytes(b"old")
    with writer(path) as process:
        process.kill()
    assert len(os.listdir(path.parent)) == 3  # with its lock
    remove_orphans(path)
    assert os.listdir(path.parent) == [path.name]
    assert path.read_bytes() == b"old"


def test_a_live_writer_keeps_its_file(path):
    with writer(path) as process:
        remove_orphans(path)
        remove_orphans(path)
        process.stdin.close()
    assert process.returncode == 0
    assert path.read_bytes() == b"new"


def test_other_files_stay(path):
    others = [f"{path.name}.tmp", f"{path.name}.0123456789ab.tmp.txt", "b.arb.0123456789ab.tmp"]
    for name in others:
        (path.parent / name).write_bytes(b"mine")
    (path.parent / f"{path.name}.0123456789ab.tmp").write_bytes(b"orphan")
    remove_orphans(path)
    assert sorted(os.listdir(path.parent)) == sorted(others)


def test_file_systems_without_locks(path, monkeypatch):
    def refuse(lock, timeout=None):
        raise OSError(95, "Operation not supported")

    orphan = path.parent / f"{path.name}.0123456789ab.tmp"
    orphan.write_bytes(b"")
    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    write_file(path, b"new")
    remove_orphans(path)
    assert path.read_bytes() == b"new"
    assert orphan.exists()


def test_the_next_fit_removes_the_orphans_of_killed_ones(path):
    for _ in range(3):
        killed(KILLED_FIT, os.fspath(path))
        assert len(os.listdir(path.parent)) == 3, "each deletes the scratch file of the one before"
    checkpoint = Checkpoint(path)
    assert checkpoint.load({}).facts == {}, "the last state that was complete"
    assert os.listdir(path.parent) == [path.name]
    killed(KILLED_FIT, os.fspath(path))
    checkpoint.remove()
    assert os.listdir(path.parent) == []


def test_save_removes_orphans(path):
    (path.parent / f"{path.name}.0123456789ab.tmp").write_bytes(b"")
    arboost.DecisionTreeRegressor().fit(X, X[:, 0]).save(path)
    assert os.listdir(path.parent) == [path.name]


def test_a_full_disk(path):
    path.write_bytes(b"old")
    message = run(SMALL_DISK, os.fspath(path))
    assert "File too large (an existing file is unchanged; free disk space" in message
    assert message.endswith(f"or write to another path): '{path}'")
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == [path.name]


def test_a_full_disk_ends_no_fit(path, monkeypatch):
    """One warning; the first checkpoint stays valid until the fit is done."""
    sync, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) > 2:  # the first file and its folder
            raise OSError(28, "No space left on device")
        sync(handle)

    def stop(done):
        if done.index == 39:
            raise KeyError("stop")

    model = arboost.GradientBoostingRegressor(n_estimators=50)
    expected = model.fit(X, X[:, 0]).predict(X)
    monkeypatch.setattr(os, "fsync", full)
    with (
        pytest.warns(RuntimeWarning, match=r"after round 20: .*No space left.*a\+b\.arb") as caught,
        pytest.raises(KeyError),
    ):
        model.fit(X, X[:, 0], checkpoint=Checkpoint(path, every=10), callbacks=[stop])
    assert len(caught) == 1
    assert len(calls) == 4
    assert caught[0].filename == __file__
    assert os.listdir(path.parent) == [path.name]
    rounds = []
    note = [lambda done: rounds.append(done.index)]
    with pytest.warns(RuntimeWarning, match="The fit continues"):
        model.fit(X, X[:, 0], checkpoint=Checkpoint(path, every=10), callbacks=note)
    assert rounds[0] == 10
    np.testing.assert_array_equal(model.predict(X), expected)
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_replaced_file_keeps_its_mode(mode, path):
    """The scratch file has it before its first byte."""
    path.write_bytes(b"old")
    path.chmod(mode)
    with replaced_file(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == mode
        file.write(b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


def test_a_new_file_follows_the_umask(path):
    before = os.umask(0o027)
    try:
        write_file(path, b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_models_and_predictions_keep_the_mode_of_private_files(path):
    table, written = path.with_suffix(".csv"), path.with_suffix(".out.csv")
    table.write_text("a,b\n1,2\n3,4\n")
    model = arboost.DecisionTreeRegressor().fit(table, "b")
    for one in (path, written):
        one.touch(0o600)
    model.save(path)
    model.model_.predict_files(table, written)
    assert {stat.S_IMODE(one.stat().st_mode) for one in (path, written)} == {0o600}


def test_pipes_and_devices_stay(tmp_path):
    """A rename would put a file in their place."""
    pipe = tmp_path / "pipe.arb"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match=r"pipe\.arb': it is a device or a pipe"):
        write_file(pipe, b"new")
    assert pipe.is_fifo()
    assert os.listdir(tmp_path) == ["pipe.arb"]
