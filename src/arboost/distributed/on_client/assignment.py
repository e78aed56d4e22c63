"""Parts of tables -> ranks: each rank has consecutive parts, in the order of the ranks.

    parts     0 1 2 3 4 5 6 7
    ranks     0 0 0 1 1 2 2 2      balanced by bytes
    ranks     0 0 0 0 2 2 2 2      1 is lost: its neighbours share its parts, no other part moves

All functions are pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise

__all__ = ["balanced", "near_data", "without"]


def balanced(weights: Sequence[float], n_ranks: int) -> list[range]:
    """Return consecutive parts of about equal weight for each rank.

    Each rank has a part as long as there are enough of them.

    Examples
    --------
    >>> balanced([1, 1, 1, 1, 4, 1], 3)
    [range(0, 3), range(3, 4), range(4, 6)]
    >>> balanced([1], 2)
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


def near_data(
    ranges: Sequence[range],
    weights: Sequence[float],
    holders: Sequence[Sequence[str]],
    workers: Sequence[str],
) -> list[str]:
    """Return a worker for each range, so that many bytes are there already.

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


def without(
    lost: Sequence[int],
    tables: Mapping[str, Sequence[range]],
    weights: Mapping[str, Sequence[float]],
) -> dict[str, list[range]]:
    """Return the parts of the ranks that remain, in their order.

    Parts of lost ranks go to the neighbours on both sides, about half of the weight to each.

    Examples
    --------
    >>> ranges = [range(0, 2), range(2, 6), range(6, 7)]
    >>> without([1], {"train": ranges}, {"train": [1] * 7})
    {'train': [range(0, 4), range(4, 7)]}
    >>> without([2, 1], {"train": ranges}, {"train": [1] * 7})
    {'train': [range(0, 7)]}
    """
    return {name: _without(set(lost), tables[name], weights[name]) for name in tables}


def _without(lost: set[int], ranges: Sequence[range], weights: Sequence[float]) -> list[range]:
    remaining = [rank for rank in range(len(ranges)) if rank not in lost]
    bounds = [ranges[0].start]
    for left, right in pairwise(remaining):
        hole = range(ranges[left].stop, ranges[right].start)
        half = balanced([weights[part] for part in hole], 2)[0]
        bounds.append(hole.start + len(half))
    bounds.append(ranges[-1].stop)
    return [range(first, last) for first, last in pairwise(bounds)]
