"""Faults while a source is read: full disks, Ctrl-C, and what is left behind."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import textwrap

import numpy as np
import pytest

from arboost import Dataset, GradientBoostingRegressor
from arboost.backend import core
from arboost.data import binned_source, memory
from arboost.data.memory import MemoryPlan


def batches(n_batches=4, after=None):
    """Return a function that yields batches, and then calls `after`."""
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=(300, 3)) for _ in range(n_batches)]

    def start():
        for part in parts:
            yield part, part[:, 0]
        if after is not None:
            after()

    return start


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Have all codes in files of a folder."""
    monkeypatch.setattr(MemoryPlan, "stores", lambda *of: True)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_scratch_files_have_no_name(scratch):
    data = Dataset.from_files(batches())
    assert data.binned.codes.is_stored
    assert list(scratch.iterdir()) == []


def test_full_disk_before_writing(scratch, monkeypatch):
    usage = type("usage", (), {"free": 1000})
    monkeypatch.setattr(memory.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(OSError, match=r"the bins of 1,200 rows need 2MB in the folder") as caught:
        GradientBoostingRegressor(n_estimators=2).fit(batches())
    assert caught.value.errno == errno.ENOSPC
    assert str(scratch) in str(caught.value)


def test_full_disk_while_writing(scratch, monkeypatch):
    class FullWriter:
        def __init__(self, *of):
            pass

        def append(self, codes):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(core, "CodesWriter", FullWriter)
    with pytest.raises(OSError, match=r"No space left on device: the bins of 1,200 rows need 2MB"):
        GradientBoostingRegressor(n_estimators=2).fit(batches())
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("at", [1, 2])
def test_interrupt_leaves_nothing(at, scratch):
    """Ctrl-C in the first pass, and in the second."""
    left = iter([None] * (at - 1))

    def interrupt():
        if next(left, "now") == "now":
            raise KeyboardInterrupt

    model = GradientBoostingRegressor(n_estimators=2)
    with pytest.raises(KeyboardInterrupt):
        model.fit(batches(after=interrupt))
    assert list(scratch.iterdir()) == []
    assert not hasattr(model, "model_")


@pytest.mark.skipif(os.name == "nt", reason="no signals there")
def test_kill_leaves_nothing(tmp_path):
    code = """
        import os, signal
        import numpy as np
        from arboost import GradientBoostingRegressor
        from arboost.data.memory import MemoryPlan

        MemoryPlan.stores = lambda *of: True
        X = np.random.default_rng(0).normal(size=(3000, 3))
        kill = lambda round: os.kill(os.getpid(), signal.SIGKILL)
        GradientBoostingRegressor(n_estimators=2).fit(lambda: [(X, X[:, 0])], callbacks=[kill])
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="mounts are listed there")
def test_folders_in_memory_are_avoided(monkeypatch):
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(memory, "_is_in_memory", lambda folder: folder == "/tmp")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: "/tmp")
    assert memory.scratch_folder() != "/tmp"
    monkeypatch.setenv("TMPDIR", "/tmp")
    assert memory.scratch_folder() == "/tmp"


def test_progress_of_both_passes(monkeypatch):
    shown = []
    bar = type(
        "Bar",
        (),
        {
            "__init__": lambda self, total, label, visible: shown.append((label, total, visible)),
            "__enter__": lambda self: self,
            "__exit__": lambda self, *of: None,
            "show": lambda self, done, results: shown.append((done, list(results["speed"]))),
        },
    )
    monkeypatch.setattr(binned_source, "Bar", bar)
    Dataset.from_files(batches())
    assert shown[0] == ("reading", 0, False)  # the number of rows is not known yet
    assert shown[5:7] == [("binning", 1200, True), (300, ["M rows/s"])]


def test_progress_by_bytes(monkeypatch, tmp_path):
    """A CSV file does not tell its number of rows, but its size."""
    shown = []
    monkeypatch.setattr(binned_source, "_MEGA", 1)
    monkeypatch.setattr(
        binned_source.Bar, "show", lambda self, done, results: shown.append((self.total, done))
    )
    (tmp_path / "rows.csv").write_text("x,y\n" + "1,2\n3,4\n" * 50)
    Dataset.from_files(str(tmp_path / "rows.csv"), target="y")
    assert shown[0] == (404, 404)
