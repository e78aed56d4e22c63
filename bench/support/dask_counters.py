"""Bytes and messages that the workers of a cluster send in a fit, and the formula for them.

A large batch of B histograms of S slots costs each of W workers (W - 1) / W of B S b bytes, where a
slot takes b bytes: 8 at most, and as few as the sums of its histogram need; the best splits of the
nodes that are searched go to all W - 1 others. A small batch costs (W - 1) B S b bytes and no
splits. Numbers of rows go to all others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

RECORD = 96  # bytes of a best split with one sum: SplitRecord in cpp/grow/shards/worker_rows.cpp
NUMBER = 8  # bytes of a number of rows, at most
FEW = 2048  # numbers that go to all others at once: few_numbers in cpp/base/collective.cpp
SMALL = 1 << 16  # slots that go to all others at once: few_numbers in the same file


def watch(dask_worker: Any) -> None:
    """Keep the transports of all fits of a worker from now on, with their exchanges."""
    from arboost.distributed import dask_worker as worker_module

    transports = dask_worker.watched_transports = []

    class Watched(worker_module.DaskTransport):
        """Transport that notes the messages between two waits: those of one exchange."""

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.exchanges: list[dict[str, Any]] = []
            self._to: set[int] = set()
            transports.append(self)

        def send(self, rank: int, message: bytes) -> None:
            if not self._to or rank in self._to:
                self._to = set()
                self.exchanges.append({"bytes": 0, "messages": 0})
            self._to.add(rank)
            self.exchanges[-1]["bytes"] += len(message)
            self.exchanges[-1]["messages"] += 1
            super().send(rank, message)

        def receive(self, rank: int) -> bytes:
            self._to = set()
            return super().receive(rank)

    worker_module.DaskTransport = Watched


def counted(dask_worker: Any) -> dict[str, Any]:
    """Return the counters of the newest fit of a worker."""
    newest = dask_worker.watched_transports[-1]
    return {
        "rank": newest.rank,
        "bytes": newest.n_bytes,
        "messages": newest.n_messages,
        "wait_seconds": newest.seconds,
        "exchanges": newest.exchanges,
    }


def of_rounds(
    worker: dict[str, Any], trees: list[list[bool]], leaves: list[int]
) -> dict[str, float]:
    """Return the bytes and messages of a worker in all rounds.

    `trees` has, for each tree and batch, whether it is large; `leaves` has the exchanges for the
    sums of its leaves. An exchange for the scale of a tree comes first, then histograms of a batch
    and, of a large one, its splits, then sums of leaves. The last exchange of a fit is that of the
    counters.
    """
    n_exchanges = sum(1 + len(tree) + sum(tree) for tree in trees) + sum(leaves)
    rounds = worker["exchanges"][-n_exchanges - 1 : -1]
    histograms, at = 0, 0
    for tree, n_last in zip(trees, leaves, strict=True):
        at += 1
        for is_large in tree:
            histograms += rounds[at]["bytes"]
            at += 1 + is_large
        at += n_last
    return {
        "bytes": sum(one["bytes"] for one in rounds),
        "messages": sum(one["messages"] for one in rounds),
        "exchanges": len(rounds),
        "batches": sum(map(len, trees)),
        "histogram_bytes": histograms,
    }


def batches_of(forest: Any, max_depth: int) -> list[list[int]]:
    """Return the histograms of each batch of each tree, grown level by level.

    Of two children, the histogram of one is built; those of the last level have none.
    """
    depth, found = np.zeros(forest.n_nodes, int), []
    for begin, end in zip(forest.tree_start[:-1], forest.tree_start[1:], strict=True):
        own = depth[begin:end]
        splits = np.flatnonzero(forest.left[begin:end])
        for node in splits:
            left = forest.left[begin + node]
            own[left : left + 2] = own[node] + 1
        with_histograms = own[splits][own[splits] < max_depth - 1]
        found.append([1, *np.bincount(with_histograms).tolist()])
    return found


def leaf_exchanges(forest: Any, workers: int) -> list[int]:
    """Return the exchanges for the sums of the leaves of each tree: many are added in parts."""
    n_sums = 2 * np.diff(forest.tree_start)
    return [2 if n * (workers - 1) > FEW else 1 for n in n_sums.tolist()]


def are_large(trees: list[list[int]], slots: int, workers: int) -> list[list[bool]]:
    """Return for each batch whether its histograms are divided among the workers."""
    return [[(workers - 1) * n * slots > SMALL for n in tree] for tree in trees]


def slots_sent(trees: list[list[int]], slots: int, workers: int) -> float:
    """Return the slots that one of the workers sends in all batches."""
    large = are_large(trees, slots, workers)
    return sum(
        n * slots * (workers - 1) / (workers if is_large else 1)
        for tree, of_tree in zip(trees, large, strict=True)
        for n, is_large in zip(tree, of_tree, strict=True)
    )


def others_sent(trees: list[list[int]], slots: int, workers: int) -> float:
    """Return the bytes of best splits and numbers of rows that one of the workers sends."""
    large = are_large(trees, slots, workers)
    splits = sum(
        (2 * n if place > 0 else 1) * is_large
        for tree, of_tree in zip(trees, large, strict=True)
        for place, (n, is_large) in enumerate(zip(tree, of_tree, strict=True))
    )
    numbers = sum(map(sum, trees))
    return (workers - 1) * (splits * RECORD + numbers * NUMBER)
