"""Memory limit of a fit -> place of batches and codes: in memory, or in a file."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar, NamedTuple

from arboost.backend import core
from arboost.errors import ParameterError

AUTO = "auto"
_SHARE = 0.7  # of the memory that the process may use
_SIZE = r"(?i)\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*(?:([KMGT])(i?))?B?\s*"
_LEAST_HISTOGRAMS = 16 << 20
_MOST_HISTOGRAMS = 512 << 20  # the default of the core
_SAMPLED_ROWS = 200_000
_TREE_BYTES = 12  # of a row: element of 8 bytes, leaf
_MEMORY_TREE_BYTES = 12  # of a row in memory: another element, and marks of threads
_FEWEST_ROWS = 64  # of a batch
_BATCHES = 4  # read ahead, waiting, in work, not yet released; its strings in the core are another
_ENCODING_BYTES = 40  # of a row, while one category is target-encoded
_LARGEST_BLOCK = 16 << 20
_SMALLEST_BLOCK = 1 << 20
_LARGEST_BATCH = 32 << 20


# ---- memory limits ----


def limit_bytes(memory_limit: object) -> int:
    """A memory limit in bytes; "auto" is a share of the memory that may be used.

    Examples
    --------
    >>> limit_bytes("2GB"), limit_bytes("500 MB"), limit_bytes("1GiB")
    (2000000000, 500000000, 1073741824)
    """
    if memory_limit == AUTO:
        return int(_SHARE * available_bytes())
    if isinstance(memory_limit, int) and not isinstance(memory_limit, bool) and memory_limit > 0:
        return memory_limit
    match = re.fullmatch(_SIZE, memory_limit) if isinstance(memory_limit, str) else None
    if match is not None:
        number, prefix, is_binary = match.groups()
        power = 0 if prefix is None else "KMGT".index(prefix.upper()) + 1
        n_bytes = float(number) * (1024 if is_binary else 1000) ** power
        if n_bytes >= 1:
            return int(n_bytes)
    raise ParameterError(
        f"memory_limit={memory_limit!r} is not allowed: it must be a size such as "
        '"2GB" or "500MB", a number of bytes, or "auto".',
        parameter="memory_limit",
    )


def bytes_text(size: float) -> str:
    """A size as `limit_bytes` reads it, rounded up.

    Examples
    --------
    >>> bytes_text(1_234_567), bytes_text(2_100_000_000)
    ('2MB', '2.1GB')
    """
    if size >= 10**9:
        return f"{-(-size // 10**8) / 10:g}GB"
    return f"{-(-size // 10**6):g}MB"


def available_bytes() -> int:
    """Memory that this process may still use: free memory, cgroup and address space."""
    limits = [_free_memory(), *_cgroup_rest(), *_address_space_rest()]
    known = [limit for limit in limits if limit is not None]
    return max(0, min(known)) if known else 2 << 30


def _free_memory() -> int | None:
    with suppress(OSError, ValueError):
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return None


def _cgroup_rest(root: Path = Path("/sys/fs/cgroup")) -> list[int]:
    """Memory that the cgroups of this process leave, of version 2 and of version 1."""
    rest = []
    pairs = [
        (root / "memory.max", root / "memory.current"),
        (root / "memory" / "memory.limit_in_bytes", root / "memory" / "memory.usage_in_bytes"),
    ]
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
            controllers, path = line.split(":", 2)[1:]
            group = root / path.lstrip("/")
            if controllers == "":
                pairs += [
                    (folder / "memory.max", folder / "memory.current")
                    for folder in (group, *group.parents)
                ]
            elif "memory" in controllers.split(","):
                group = root / "memory" / path.lstrip("/")
                pairs.append((group / "memory.limit_in_bytes", group / "memory.usage_in_bytes"))
    for limit, usage in pairs:
        with suppress(OSError, ValueError):
            # "max" means no limit. The page cache counts as used, but can be reclaimed.
            rest.append(int(limit.read_text()) - int(usage.read_text()) + _page_cache(usage.parent))
    return rest


def _page_cache(cgroup: Path) -> int:
    with suppress(OSError, ValueError, StopIteration):
        lines = (cgroup / "memory.stat").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("inactive_file "))
    return 0


def _address_space_rest() -> list[int]:
    if sys.platform == "win32":
        return []
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return []
    used = 0
    with suppress(OSError, ValueError):
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[0]
        used = int(pages) * os.sysconf("SC_PAGE_SIZE")
    return [soft - used]


# ---- plan of a fit ----


class RowState(NamedTuple):
    """Bytes of a row in training: for each output (score, gradients), and others than the tree's.

    The defaults are those of gradient boosting.
    """

    output: int = 16
    other: int = 0


BOOSTING_STATE = RowState()


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes of a fit on the columns of a table, under a limit.

    Attributes
    ----------
    limit : int
    n_features : int
    width : int
        Bytes of a code: 1, or 2 above 255 bins.
    source_row : int or None
        Bytes of a row of the source; None: 8 a cell.
    other_rows : int
        Rows of other workers, whose target, weights and scores are here, too.
    tree_bytes : tuple of int
        Bytes of a cell that trees need next to codes in memory, and of a column in any case.
    row_state : RowState
    reader : int
        Bytes of the reader of the source, apart from batches.
    largest_batch : int
        Bytes of the largest batch so far.
    levels : int
        Bytes of the levels of all categories, with their hash tables.
    n_encoded : int
        Number of target-encoded categories.
    """

    limit: int
    n_features: int
    width: int = 1
    source_row: int | None = None
    other_rows: int = 0
    tree_bytes: tuple[int, int] = (0, 0)
    row_state: RowState = BOOSTING_STATE
    reader: int = 0
    largest_batch: int = 0
    levels: int = 0
    n_encoded: int = 0

    def state(self, n_rows: int, *, n_outputs: int = 1, row_bytes: int = 8) -> int:
        """Bytes of all rows next to codes in a file; `row_bytes`: target and weights."""
        outputs = self.row_state.other + self.row_state.output * n_outputs
        rows = (n_rows + self.other_rows) * (row_bytes + _TREE_BYTES + outputs)
        return rows + self.n_features * self.tree_bytes[1] + self.levels

    def codes(self, n_rows: int) -> int:
        """Bytes of codes in memory."""
        return 2 * n_rows * (self.n_features * self.width + 4)  # rows are padded to 8 bytes

    def reading(self, n_rows: int, row_bytes: int = 8) -> int:
        """Bytes of the first pass: target and weights, sample, batches, levels."""
        # Between two batches the sample has up to a quarter more rows.
        sample = 10 * min(n_rows, _SAMPLED_ROWS) * self.n_features
        rows = (n_rows + self.other_rows) * row_bytes
        return rows + sample + self._batches + 5 * self.levels // 2

    def encoding(self, n_rows: int, row_bytes: int = 8, codes: int = 0) -> int:
        """Bytes of the second pass: target, encodings, batches, levels and codes."""
        encoding = max(8 * self.n_encoded, _ENCODING_BYTES) if self.n_encoded else 0
        rows = (n_rows + self.other_rows) * row_bytes + n_rows * encoding
        return rows + self._batches + 2 * self.levels + codes

    @property
    def _batches(self) -> int:
        n_batches = _BATCHES + (self.levels > 0)
        # PyArrow's allocator keeps up to a third more than the reader holds.
        return n_batches * max(self.batch, self.largest_batch) + 4 * self.reader // 3

    @property
    def block(self) -> int:
        """Bytes of a block of a file of codes, two of which are in memory."""
        return max(_SMALLEST_BLOCK, min(_LARGEST_BLOCK, self.limit // 32))

    @property
    def block_rows(self) -> int:
        """Rows per block, a multiple of 64."""
        return max(64, self.block // self._stride // 64 * 64)

    @property
    def _stride(self) -> int:
        """Bytes of a row in a file of codes, a multiple of 8."""
        return (self.n_features * self.width + 7) // 8 * 8

    @property
    def batch(self) -> int:
        """Bytes of a batch of the source, of which four or five are in memory."""
        return max(_SMALLEST_BLOCK, min(_LARGEST_BATCH, self.limit // 24))

    @property
    def batch_rows(self) -> int:
        """Rows per batch."""
        row_bytes = 8 * self.n_features if self.source_row is None else self.source_row
        return max(_FEWEST_ROWS, min(1 << 18, self.batch // max(1, row_bytes)))

    def keeps(self, n_bytes: int, n_rows: int) -> bool:
        """Whether batches of `n_bytes` fit in memory next to both passes over `n_rows` rows."""
        row_bytes = 8 + 20 * self.n_encoded
        state = self.state(n_rows, row_bytes=row_bytes)
        batch_bytes = 4 * n_bytes // 3  # with what PyArrow's allocator keeps
        return batch_bytes + self._most_in_memory(state, n_rows, row_bytes) <= self.limit

    def file(self, n_rows: int) -> int:
        """Bytes of a file of codes, an upper bound."""
        return n_rows * self._stride + (1 << 20)

    def in_memory(self, state: int, n_rows: int) -> int:
        """Bytes of a fit with its codes in memory."""
        tree_bytes = _MEMORY_TREE_BYTES + self.n_features * self.tree_bytes[0]
        return state + self.codes(n_rows) + n_rows * tree_bytes + _LEAST_HISTOGRAMS

    def stores(self, state: int, n_rows: int, row_bytes: int = 8) -> bool:
        """Whether codes have to be in a file; raise ValueError where even so the limit is low."""
        if self._most_in_memory(state, n_rows, row_bytes) <= self.limit:
            return False
        self._require(
            lambda plan: plan._most_in_file(state, n_rows, row_bytes),
            f"{n_rows:,} rows of {self.n_features} features, which need",
            f"{state // max(1, n_rows + self.other_rows)} bytes a row for target, scores, "
            "gradients and trees, and blocks, sample, columns of the reader, levels and histograms",
        )
        return True

    def check_passes(self, n_rows: int, n_read: int) -> None:
        """Raise ValueError where the passes over all rows take more than the limit.

        `n_read` rows have been read, which the levels are from.
        """
        batch, levels = max(self.batch, self.largest_batch), self.levels
        parts = [f"sample, batches of {bytes_text(batch)}"]
        parts.append(f"columns of the reader ({bytes_text(self.reader)})")
        parts.append(f"{self.n_encoded} categories to encode")
        parts.append(f"levels of the first {n_read:,} rows ({bytes_text(levels)})")
        if n_read < n_rows and levels:
            whole = replace(self, levels=levels * n_rows // max(1, n_read))
            parts[-1] += f"; {bytes_text(whole._passes(n_rows))} if new levels go on as before"
        self._require(
            lambda plan: plan._passes(n_rows),
            f"reading {n_rows:,} rows of {self.n_features} features, which needs at least",
            ", ".join(parts),
        )

    def _passes(self, n_rows: int) -> int:
        """Bytes of both passes, without codes."""
        return max(self.reading(n_rows), self.encoding(n_rows, 8 + 20 * self.n_encoded))

    def _require(self, needs: Callable[[MemoryPlan], int], purpose: str, parts: str) -> None:
        """Raise ValueError with the bytes needed where they are more than the limit."""
        needed = self.limit
        while needed < (more := needs(replace(self, limit=needed))):
            needed = more  # blocks and batches grow with the limit, by less
        if needed > self.limit:
            raise ParameterError(
                f"memory_limit={bytes_text(self.limit)!r} is too low for {purpose} "
                f"{bytes_text(needed)}: {parts}. Raise memory_limit, or train on fewer rows or "
                "columns; keys and free text are columns to drop.",
                parameter="memory_limit",
            )

    def _most_in_memory(self, state: int, n_rows: int, row_bytes: int) -> int:
        """Bytes of the passes and of the fit with codes in memory."""
        encoding = self.encoding(n_rows, row_bytes, self.codes(n_rows))
        return max(self.in_memory(state, n_rows), self.reading(n_rows, row_bytes), encoding)

    def _most_in_file(self, state: int, n_rows: int, row_bytes: int) -> int:
        """Bytes of the passes and of the fit with codes in a file."""
        fit = state + 2 * self.block + _LEAST_HISTOGRAMS
        encoding = self.encoding(n_rows, row_bytes, 2 * self.block)
        return max(fit, self.reading(n_rows, row_bytes), encoding)

    def histograms(self, state: int, n_rows: int, *, stored: bool) -> int:
        """Bytes for histograms: those left, or half of them next to codes in a file."""
        if stored:
            left = (self.limit - state - 2 * self.block) // 2
        else:
            left = self.limit - self.in_memory(state, n_rows) + _LEAST_HISTOGRAMS
        return max(_LEAST_HISTOGRAMS, min(_MOST_HISTOGRAMS, left))

    def samples(self, state: int, n_rows: int) -> int:
        """Bytes for rows of a sample, copied to memory from codes in a file."""
        used = state + 2 * self.block + self.histograms(state, n_rows, stored=True)
        return max(0, self.limit - used)


# ---- codes in memory or in a file ----

OTHER_SCRATCH = "choose another folder by the environment variable TMPDIR, or raise memory_limit"
OTHER_CACHE = "choose another folder for cache, or leave out cache"
_SINK_LIMIT = 256 << 20  # memory limit, by which blocks have 8 MiB


class MemorySink:
    """Codes in memory."""

    rows_only: ClassVar[bool] = False

    def __init__(self, n_rows: int, n_threads: int) -> None:
        self._parts, self._n_threads = core.CodesParts(n_rows), n_threads

    def append(self, codes: core.Codes) -> None:
        """Add the codes of the next rows."""
        self._parts.append(codes, self._n_threads)

    def finish(self) -> core.Codes:
        """Codes of all rows."""
        return self._parts.finish()


class FileSink:
    """Codes in a file, by default one without a name in the folder for scratch files.

    Parameters
    ----------
    n_rows, window_rows : int
        Number of all rows, and of those that are in memory at once later.
    n_bytes : int
        Size of the file, an upper bound.
    path : Path, optional
        Path of the file, which then reaches the disk.
    """

    rows_only: ClassVar[bool] = True

    def __init__(
        self, n_rows: int, window_rows: int, n_bytes: int, path: Path | None = None
    ) -> None:
        self._path = path
        folder = scratch_folder() if path is None else str(path.parent)
        advice = OTHER_SCRATCH if path is None else OTHER_CACHE
        self._errors = partial(folder_errors, folder, n_rows, n_bytes, advice)
        with self._errors():
            if shutil.disk_usage(folder).free < n_bytes:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            with tempfile.TemporaryFile(dir=folder) if path is None else open(path, "w+b") as file:
                self._writer = core.CodesWriter(file.fileno(), window_rows)

    def append(self, codes: core.Codes) -> None:
        """Add the codes of the next rows."""
        with self._errors():
            self._writer.append(codes)

    def finish(self) -> core.Codes:
        """Codes of all rows, which stay in the file."""
        with self._errors():
            codes = self._writer.finish()
            if self._path is not None:
                with open(self._path, "rb") as file:
                    os.fsync(file.fileno())
        return codes


def sink_like(codes: core.Codes, n_rows: int, n_threads: int) -> MemorySink | FileSink:
    """A sink of the same kind as other codes, for `n_rows` rows of their features."""
    if not codes.is_stored or n_rows == 0:
        return MemorySink(n_rows, n_threads)
    plan = MemoryPlan(_SINK_LIMIT, int(codes.n_features), int(codes.width))
    return FileSink(n_rows, plan.block_rows, plan.file(n_rows))


@contextmanager
def folder_errors(folder: str, n_rows: int, n_bytes: int, advice: str) -> Iterator[None]:
    """Put the folder, the needed bytes and advice into errors of the file system."""
    try:
        yield
    except OSError as error:
        number = error.errno or errno.EIO
        message = (
            f"{os.strerror(number)}: the bins of {n_rows:,} rows need {bytes_text(n_bytes)} in "
            f"the folder {folder!r}. Free disk space, {advice}"
        )
        raise OSError(number, message) from error


def scratch_folder() -> str:
    """Folder for scratch files; not one in memory where there is another."""
    folder = tempfile.gettempdir()
    if "TMPDIR" not in os.environ and _is_in_memory(folder):
        others = [other for other in ("/var/tmp", os.getcwd()) if os.access(other, os.W_OK)]
        return next((other for other in others if not _is_in_memory(other)), folder)
    return folder


def _is_in_memory(folder: str) -> bool:
    """Whether a folder is on a file system in memory."""
    if sys.platform != "linux":
        return False
    mount_of_folder, real = "", os.path.realpath(folder)
    kinds = {}
    with suppress(OSError):
        for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines():
            _, mount, kind = line.split()[:3]
            kinds[mount] = kind
            if (real + "/").startswith(mount.rstrip("/") + "/") and len(mount) >= len(
                mount_of_folder
            ):
                mount_of_folder = mount
    return kinds.get(mount_of_folder) in ("tmpfs", "ramfs")
