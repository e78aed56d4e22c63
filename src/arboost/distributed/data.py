"""Training data of a cluster: files that workers read, and consecutive parts for each rank.

parts     0 1 2 3 4 5 6 7
ranks     0 0 0 1 1 2 2 2      balanced by bytes
ranks     0 0 0 0 2 2 2 2      1 is lost: its neighbours share its parts, no other part moves
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

from arboost.data.files import DataPath, find_files, is_path
from arboost.errors import InputTypeError

# ---- tables ----


@dataclass(frozen=True)
class TableInput:
    """A table as the user has passed it, and the names of the columns that are not features.

    Attributes
    ----------
    rows : Any
        Parts of the table, as its cluster needs them.
    target, weight : str or None
        Columns of the tables; None where parts are tuples.
    owner : object or None
        Parts live as long as it.
    """

    rows: Any
    target: Hashable | None
    weight: Hashable | None
    owner: object = None


@dataclass(frozen=True)
class TableParts:
    """Consecutive parts of a table: references of the cluster to its data, or paths of files.

    Attributes
    ----------
    numbers : range
        Numbers of the parts among all parts of the table.
    parts : tuple
    are_paths : bool
    """

    numbers: range
    parts: tuple[Any, ...]
    are_paths: bool


@dataclass(frozen=True)
class PartitionedTable:
    """All parts of a table, in the order of its rows.

    Attributes
    ----------
    parts : tuple
        References of the cluster to its data, or paths of files.
    sizes : tuple of int
        Bytes of each part, about.
    are_paths : bool
    """

    parts: tuple[Any, ...]
    sizes: tuple[int, ...]
    are_paths: bool = False

    @classmethod
    def of_files(cls, paths: Sequence[str]) -> PartitionedTable:
        """Table of files, which this machine may not see."""
        sizes = (os.path.getsize(path) if os.path.exists(path) else 1 for path in paths)
        return cls(tuple(paths), tuple(sizes), are_paths=True)

    def slice(self, numbers: range) -> TableParts:
        """Some of the parts."""
        return TableParts(numbers, self.parts[numbers.start : numbers.stop], self.are_paths)


# ---- files ----


def require_column_names(kind: str, **columns: Any) -> None:
    """Raise TypeError unless target and weight are names of columns; only the weight may be None.

    Parameters
    ----------
    kind : str
        Kind of the data, for messages: "paths".
    **columns : Any
        Target and weight.
    """
    for name, column in columns.items():
        if column is not None and not isinstance(column, str):
            raise InputTypeError(
                f"{name} is a {type(column).__name__}, but must be the name of a column where the "
                f"data are {kind}."
            )
    if columns["target"] is None:
        raise InputTypeError(f"target=None, but the data are {kind}. Pass the name of its column.")


def resolve_files(
    data: Any, ask_worker: Callable[[list[Any]], list[DataPath] | Exception], instead: str
) -> list[str]:
    """Files of paths; those that this machine does not see are found by a worker.

    Parameters
    ----------
    data : str, path-like or list of them
    ask_worker : callable
        Result of `try_find_files` on a worker.
    instead : str
        Advice where files are in folders of partition keys, which workers do not read.
    """
    paths = [data] if is_path(data) else list(data)
    try:
        files = [
            DataPath(os.path.abspath(file.path), os.path.abspath(file.base))
            for file in find_files(paths)
        ]
    except FileNotFoundError:
        answer = ask_worker(paths)
        if isinstance(answer, Exception):
            raise answer from None
        files = answer
    for file in files:
        if "=" in os.path.relpath(os.path.dirname(file.path), file.base or "."):
            raise ValueError(
                f"{file.path!r} is in a folder of partition keys, which workers do not read by "
                f"themselves. {instead}"
            )
    return [file.path for file in files]


def try_find_files(paths: list[Any]) -> list[DataPath] | Exception:
    """Files, or the error: clusters would log a traceback of one that is raised."""
    try:
        return find_files(paths)
    except (OSError, ValueError) as error:
        return error


# ---- parts of each rank ----


def balanced_ranges(weights: Sequence[float], n_ranks: int) -> list[range]:
    """Consecutive parts of about equal weight for each rank.

    No rank is without a part if there are enough of them.

    Examples
    --------
    >>> balanced_ranges([1, 1, 1, 1, 4, 1], 3)
    [range(0, 3), range(3, 4), range(4, 6)]
    >>> balanced_ranges([1], 2)
    [range(0, 1), range(1, 1)]
    """
    n_parts = len(weights)
    if n_parts <= n_ranks:
        return [range(min(rank, n_parts), min(rank + 1, n_parts)) for rank in range(n_ranks)]
    before = [0.0, *accumulate(weights)]
    bounds = [0]
    for rank in range(1, n_ranks):
        goal = before[-1] * rank / n_ranks
        # At least one part for this rank, and for each of those that follow.
        allowed = range(bounds[-1] + 1, n_parts - (n_ranks - rank) + 1)
        bounds.append(min(allowed, key=lambda bound: abs(before[bound] - goal)))
    bounds.append(n_parts)
    return [range(first, last) for first, last in pairwise(bounds)]


def workers_near_data(
    ranges: Sequence[range],
    weights: Sequence[float],
    holders: Sequence[Sequence[str]],
    workers: Sequence[str],
) -> list[str]:
    """Worker for each range, chosen so that few bytes have to be moved.

    Parameters
    ----------
    ranges : sequence of range
        Parts of each rank.
    weights : sequence of float
        Bytes of each part.
    holders : sequence of sequence of str
        Workers that hold each part.
    workers : sequence of str
        At least as many workers as ranges.
    """
    held: dict[tuple[int, str], float] = {}
    for rank, parts in enumerate(ranges):
        for part in parts:
            for worker in holders[part]:
                held[rank, worker] = held.get((rank, worker), 0.0) + weights[part]
    known = set(workers)
    chosen: dict[int, str] = {}
    for rank, worker in sorted(held, key=lambda pair: (-held[pair], pair)):
        if rank not in chosen and worker in known:
            chosen[rank] = worker
            known.discard(worker)
    free = (worker for worker in workers if worker in known)
    return [chosen[rank] if rank in chosen else next(free) for rank in range(len(ranges))]


def ranges_without(
    lost: Sequence[int],
    tables: Mapping[str, Sequence[range]],
    weights: Mapping[str, Sequence[float]],
) -> dict[str, list[range]]:
    """Parts of the ranks that remain, in their order.

    Parts of lost ranks go to the neighbours on both sides, about half of the weight to each.

    Examples
    --------
    >>> ranges = [range(0, 2), range(2, 6), range(6, 7)]
    >>> ranges_without([1], {"train": ranges}, {"train": [1] * 7})
    {'train': [range(0, 4), range(4, 7)]}
    >>> ranges_without([2, 1], {"train": ranges}, {"train": [1] * 7})
    {'train': [range(0, 7)]}
    """
    return {name: _merged(set(lost), tables[name], weights[name]) for name in tables}


def _merged(lost: set[int], ranges: Sequence[range], weights: Sequence[float]) -> list[range]:
    remaining = [rank for rank in range(len(ranges)) if rank not in lost]
    bounds = [ranges[0].start]
    for left, right in pairwise(remaining):
        hole = range(ranges[left].stop, ranges[right].start)
        half = balanced_ranges([weights[part] for part in hole], 2)[0]
        bounds.append(hole.start + len(half))
    bounds.append(ranges[-1].stop)
    return [range(first, last) for first, last in pairwise(bounds)]
