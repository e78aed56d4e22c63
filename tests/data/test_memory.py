"""Memory limits: sizes, what a process may use, and the arithmetic of the places of codes."""

import subprocess
import sys
import textwrap

import pytest

from arboost.data import memory
from arboost.data.memory import MemoryPlan, bytes_text, limit_bytes


@pytest.mark.parametrize(
    ("given", "expected"),
    [("2GB", 2 * 10**9), ("500 mb", 5 * 10**8), ("1.5GiB", 3 << 29), ("64k", 64_000), (7, 7)],
)
def test_limits(given, expected):
    assert limit_bytes(given) == expected


@pytest.mark.parametrize("given", ["", "lots", "0GB", "-1GB", 0, -5, True, 1.5, None, "1..GB"])
def test_limits_that_are_none(given):
    with pytest.raises(ValueError, match=r'it must be a size such as "2GB"'):
        limit_bytes(given)


def test_sizes_are_shown_as_limits():
    for size in (1, 999_999, 123_456_789, 2_345_678_901):
        assert size <= limit_bytes(bytes_text(size)) <= 1.1 * size + 10**6


def write(path, **values):
    path.mkdir(parents=True, exist_ok=True)
    for name, value in values.items():
        (path / name.replace("__", ".")).write_text(f"{value}\n")


def test_cgroups(tmp_path):
    write(tmp_path, memory__max="max", memory__current=5)
    write(tmp_path / "memory", memory__limit_in_bytes=900, memory__usage_in_bytes=300)
    assert memory._cgroup_rest(tmp_path)[:1] == [600]
    write(tmp_path, memory__max=700, memory__current=500)
    write(tmp_path, memory__stat="anon 100\ninactive_file 60")
    assert memory._cgroup_rest(tmp_path)[:2] == [260, 600]


def test_address_space():
    """A limit on the address space is one on the memory."""
    code = """
        import resource
        from arboost.data.memory import available_bytes
        before = available_bytes()
        resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
        print(0 < available_bytes() <= min(before, 2 << 30))
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "True\n"


def test_places():
    n_rows = 8_000_000
    plan = MemoryPlan(limit_bytes("300MB"), 100)
    state = plan.state(n_rows)
    assert state == n_rows * 36
    assert plan.codes(n_rows) >= 2 * 100 * n_rows
    with pytest.raises(ValueError, match=r"too low for 8,000,000 rows of 100 features, which need"):
        plan.stores(state, n_rows)
    assert MemoryPlan(limit_bytes("400MB"), 100).stores(state, n_rows)
    assert not MemoryPlan(limit_bytes("3GB"), 100).stores(state, n_rows)


def test_needed_memory_is_enough():
    plan = MemoryPlan(10**6, 30)
    state = plan.state(10**6)
    with pytest.raises(ValueError, match="too low") as caught:
        plan.stores(state, 10**6)
    needed = str(caught.value).partition("which need ")[2].partition(":")[0]
    assert MemoryPlan(limit_bytes(needed), 30).stores(state, 10**6)


@pytest.mark.parametrize("limit", [10**6, 10**8, 10**10])
@pytest.mark.parametrize("n_features", [1, 30, 5000])
def test_blocks_are_whole(limit, n_features):
    plan = MemoryPlan(limit, n_features)
    assert plan.block_rows % 64 == 0
    assert plan.block_rows >= 64
    assert plan.batch_rows >= 64
    assert plan.histograms(0, 1000, stored=True) > 0
