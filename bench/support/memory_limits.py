"""Hard memory limits of a process: address space, and a memory cgroup."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Names of the files of a group, in version 2 and in version 1.
_LIMIT = ("memory.max", "memory.limit_in_bytes")
_PEAK = ("memory.peak", "memory.max_usage_in_bytes")


def limit_address_space(more: int) -> None:
    """Limit the growth of the address space of this process to a number of bytes."""
    import resource  # not on Windows

    most = int(address_space_mb("VmSize") * 2**20) + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def address_space_mb(field: str) -> float:
    """Return the address space of this process, VmSize now or VmPeak at most, in MiB; Linux."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


@contextmanager
def memory_group(parent: Path, limit: int) -> Iterator[Path]:
    """Make a memory cgroup with a limit in bytes inside another one, and remove it at the end.

    The page cache of its processes counts, but is reclaimed when the limit is reached.
    """
    group = parent / f"arboost_bench_{os.getpid()}"
    group.mkdir()
    try:
        _file(group, _LIMIT).write_text(str(limit))
        yield group
    finally:
        group.rmdir()


def join(group: Path) -> None:
    """Move this process into a group. Memory that it has already stays with the old one."""
    (group / "cgroup.procs").write_text(str(os.getpid()))


def peak_mb(group: Path) -> float:
    """Return the highest use of memory in a group, in MiB."""
    return int(_file(group, _PEAK).read_text()) / 2**20


def _file(group: Path, names: tuple[str, ...]) -> Path:
    for name in names:
        if (group / name).exists():
            return group / name
    raise SystemExit(f"{group} is no memory cgroup: it has none of the files {', '.join(names)}")
