"""Fits on files in processes of their own: under a hard memory limit, and killed in each phase."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from support.processes import ForkServer

pa = pytest.importorskip("pyarrow")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of address space")

START = """
import os, signal, sys
import numpy as np
import arboost
from arboost.data.memory import MemoryPlan

def fit(folder, **params):
    model = arboost.GradientBoostingRegressor(n_estimators=3, max_depth=4, n_jobs=1)
    return model.fit(f"{folder}/*.parquet", "y", **params)
"""


def write_files(folder: Path, n_rows: int, n_columns: int) -> None:
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    folder.mkdir()
    for part in range(3):
        X = rng.normal(size=(n_columns, n_rows // 3))
        columns = {f"x{i}": column for i, column in enumerate(X)}
        table = pa.table(columns | {"y": X[0] + X[1] * X[2]})
        parquet.write_table(table, folder / f"{part}.parquet", use_dictionary=False)


def run(code: str, *args: object, scratch: Path, **environment: str):
    """Run code after `START`, with a folder for scratch files."""
    scratch.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, "-c", START + textwrap.dedent(code), *map(str, args)],
        env=os.environ | {"TMPDIR": str(scratch)} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_limit_holds(tmp_path):
    """The address space is limited: the whole table does not fit, and the model is the same."""
    write_files(tmp_path / "data", 600_000, 60)  # 288 MB of values
    code = """
    import resource
    folder, saved, way = sys.argv[1:]
    small = arboost.GradientBoostingRegressor(n_estimators=1)
    small.fit(np.arange(9.0).reshape(-1, 1), np.arange(9.0))  # imports all that a fit needs
    import pyarrow.parquet
    used = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + 330_000_000,) * 2)
    if way == "files":
        fit(folder, memory_limit="200MB").save(saved)
    else:
        small.fit(np.random.default_rng(0).random((600_000, 60)), np.arange(600_000.0))
    """
    # Allocators reserve addresses beyond their memory: 64 MB a thread, and a gigabyte for PyArrow.
    limits = {
        "MALLOC_ARENA_MAX": "1",
        "OMP_NUM_THREADS": "1",
        "ARROW_DEFAULT_MEMORY_POOL": "system",
    }
    table, files = (
        run(code, tmp_path / "data", tmp_path / "limited", way, scratch=tmp_path / "tmp", **limits)
        for way in ("table", "files")
    )
    assert table.returncode == 1, "the limit is none"
    assert "MemoryError" in table.stderr
    assert files.returncode == 0, files.stderr
    code = "fit(sys.argv[1]).save(sys.argv[2])"
    free = run(code, tmp_path / "data", tmp_path / "free", scratch=tmp_path / "tmp")
    assert free.returncode == 0, free.stderr
    assert (tmp_path / "limited").read_bytes() == (tmp_path / "free").read_bytes()


# Code that makes a fit end at the call of `kill`.
PHASES = {
    "first pass": "after_batches(1, 1)",
    "second pass": "after_batches(2, 1)",
    "end of the second pass": "after_batches(2, 3)",
    "before the cache has a description": """
from arboost.data.cache import SourceCache
SourceCache.write = lambda *of: kill()
""",
    "training": """
import arboost.training.fit
arboost.training.fit.run_training_loop = lambda *of: kill()
""",
}
KILL = """
number = getattr(signal, sys.argv[3])

def kill():
    os.kill(os.getpid(), number)

def after_batches(which, n):
    from arboost.data.source import Source
    passes, read = [], Source.batches

    def batches(self, batch_rows):
        passes.append(0)
        for i, batch in enumerate(read(self, batch_rows)):
            yield batch
            if len(passes) == which and i + 1 == n:
                kill()

    Source.batches = batches
"""
STORED = """
MemoryPlan.keeps = lambda *of: False
MemoryPlan.stores = lambda *of: True
MemoryPlan.batch_rows = 1000
MemoryPlan.block_rows = 640
"""
FIT = "fit(sys.argv[1], cache=sys.argv[4] or None).save(sys.argv[2])"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files") / "data"
    write_files(folder, 3000, 4)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = ForkServer(tmp_path_factory.mktemp("server"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def expected(data, server, tmp_path_factory):
    folder = tmp_path_factory.mktemp("expected")
    done = server.run(START + FIT, data, folder / "model", "", "")
    assert done.returncode == 0, done.stderr
    return (folder / "model").read_bytes()


CASES = [(phase, cached, "SIGKILL") for phase in PHASES for cached in (False, True)]
CASES.remove(("before the cache has a description", False, "SIGKILL"))
CASES += [("end of the second pass", True, "SIGTERM"), ("training", False, "SIGINT")]


@pytest.mark.parametrize(("phase", "cached", "number"), CASES)
def test_nothing_is_left_and_nothing_is_lost(
    phase, cached, number, data, expected, server, tmp_path
):
    cache = tmp_path / "cache" if cached else ""
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    args = data, tmp_path / "model", number, cache
    killed = server.run(START + KILL + PHASES[phase] + STORED + FIT, *args, TMPDIR=str(scratch))
    assert killed.returncode != 0
    assert killed.returncode in (-getattr(signal, number), 1), killed.stderr
    assert not (tmp_path / "model").exists()
    assert list(scratch.iterdir()) == []
    again = server.run(START + STORED + FIT, *args, TMPDIR=str(scratch))
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "model").read_bytes() == expected
    assert list(scratch.iterdir()) == []
    if cached:
        names = sorted(path.suffix for path in cache.iterdir())
        assert names == [".codes", ".lock", ".npz"]


def test_disk_that_is_full(data, tmp_path):
    """A file system of 64 kB; where none can be mounted, a limit of the size of files."""
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)]
    is_mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
    try:
        done = run(
            ("" if is_mounted else limit) + STORED + FIT,
            data,
            tmp_path / "model",
            "",
            "",
            scratch=small,
        )
        assert list(small.iterdir()) == []
    finally:
        if is_mounted:
            subprocess.run(["umount", str(small)], check=True)
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("OSError")
    assert str(small) in last
    assert "Free disk space" in last
    assert not (tmp_path / "model").exists()
