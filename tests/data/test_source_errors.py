"""Sources that cannot be fitted on, and faults while one is read: full disks, Ctrl-C, kills."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import textwrap

import numpy as np
import pandas as pd
import pytest

from arboost import Dataset, DecisionTreeRegressor, ExtraTreesRegressor, GradientBoostingRegressor
from arboost.backend import core
from arboost.data import binned_source, memory
from arboost.data.memory import MemoryPlan
from arboost.errors import SchemaError
from support.streamed import N_ROWS, features, frame, written

pytest.importorskip("pyarrow")


def test_columns_that_change():
    good = pd.DataFrame({"a": [1.0, 2.0], "y": [1.0, 2.0]})
    bad = good.rename(columns={"a": "b"})
    with pytest.raises(SchemaError, match=r"batch 1 .*lacks the columns 'a' and has the col"):
        GradientBoostingRegressor().fit(lambda: [good, bad], "y")
    bad = good.assign(a=["x", "y"])
    with pytest.raises(SchemaError, match="'a' of X holds strings, but numbers in batches be"):
        GradientBoostingRegressor().fit(lambda: [good, bad], "y")


def test_source_that_changes():
    rng = np.random.default_rng(0)

    def batches():
        X = rng.normal(size=(50, 2))
        yield X, X[:, 0]

    with pytest.raises(ValueError, match="changed between two passes over it: other values"):
        GradientBoostingRegressor().fit(batches)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"tree_method": "exact"}, "tree_method='exact' is not allowed where X is read in"),
        ({"max_conflict_rate": 0.1}, "max_conflict_rate=0.1 is not allowed where X is read"),
    ],
)
def test_refused_before_reading(params, message):
    def batches():
        raise AssertionError

    with pytest.raises(ValueError, match=message):
        GradientBoostingRegressor(**params).fit(batches)


def test_continued_training_is_refused_before_reading():
    X = np.arange(40.0).reshape(-1, 1)
    model = GradientBoostingRegressor(n_estimators=2).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="init_model or warm_start is not allowed where X is"):
        GradientBoostingRegressor().fit(lambda: 1 / 0, init_model=model)


def test_limit_that_is_too_low():
    X = np.arange(8000.0).reshape(2000, 4)
    with pytest.raises(ValueError, match=r"memory_limit='1MB' is too low for 2,000 rows of 4"):
        GradientBoostingRegressor().fit(lambda: [(X, X[:, 0])], memory_limit=1000)
    with pytest.raises(ValueError, match=r"memory_limit='lots' is not allowed: it must be a s"):
        GradientBoostingRegressor().fit(lambda: [(X, X[:, 0])], memory_limit="lots")
    with pytest.raises(ValueError, match=r"memory_limit='1GB' is for files and other sources"):
        GradientBoostingRegressor().fit(X, X[:, 0], memory_limit="1GB")


def test_fits_that_need_codes_in_memory(monkeypatch):
    monkeypatch.setattr(MemoryPlan, "stores", lambda *of: True)
    X = np.arange(40.0).reshape(-1, 1)
    with pytest.raises(ValueError, match="max_depth=None needs the bins of all rows in memory"):
        ExtraTreesRegressor().fit(lambda: [(X, X[:, 0])])
    with pytest.raises(ValueError, match="criterion='absolute_error' needs the bins of all"):
        DecisionTreeRegressor(criterion="absolute_error").fit(lambda: [(X, X[:, 0])])


def test_unknown_names(tmp_path):
    pattern = written(features(frame(), "number"), tmp_path, [N_ROWS])
    with pytest.raises(ValueError, match=r"y='numberz' names no column of X.*Did you mean 'num"):
        GradientBoostingRegressor().fit(pattern, "numberz")
    with pytest.raises(ValueError, match="weight='w' names no column of X"):
        GradientBoostingRegressor().fit(pattern, "number", "w")


def test_no_target(tmp_path):
    pattern = written(features(frame(), "number"), tmp_path, [N_ROWS])
    with pytest.raises(ValueError, match=r"the target y is None\. Pass the name of a column"):
        GradientBoostingRegressor().fit(pattern)


def test_weights_that_are_all_zero():
    X = np.arange(40.0).reshape(-1, 1)
    with pytest.raises(ValueError, match="All values of sample_weight are zero"):
        GradientBoostingRegressor().fit(lambda: [(X, X[:, 0], X[:, 0] * 0)])


def test_no_rows():
    with pytest.raises(ValueError, match="X has no rows"):
        GradientBoostingRegressor().fit(lambda: [], np.zeros(0))


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
