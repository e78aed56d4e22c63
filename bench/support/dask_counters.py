"""Bytes and messages that the workers of a cluster send in a fit, and the formula for them.

A batch of B histograms of S slots costs each of W workers (W - 1) / W of B S b bytes, where a slot
takes b bytes: 8 at most, and as few as the sums of its histogram need. The best splits of the nodes
that are searched, and numbers of rows, go to all W - 1 others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

RECORD = 96  # bytes of a best split with one sum: SplitRecord in cpp/grow/shards/worker_rows.cpp
NUMBER = 8  # bytes of a number of rows, at most


def watch(dask_worker: Any) -> None:
    """Keep the transports of all fits of a worker from now on, with their exchanges."""
    from arboost.distributed.on_worker import dask_attempt

    kept = dask_worker.watched_transports = []

    class Watched(dask_attempt.DaskTransport):
        """Transport that notes the messages between two waits: those of one exchange."""

        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.exchanges: list[dict[str, Any]] = []
            self._to: set[int] = set()
            kept.append(self)

        def send(self, rank: int, message: bytes) -> None:
            if not self._to or rank in self._to:
                self._to = set()
                self.exchanges.append(
                    {"bytes": 0, "messages": 0, "are_splits": are_splits(message)}
                )
            self._to.add(rank)
            self.exchanges[-1]["bytes"] += len(message)
            self.exchanges[-1]["messages"] += 1
            super().send(rank, message)

        def receive(self, rank: int) -> bytes:
            self._to = set()
            return super().receive(rank)

    dask_attempt.DaskTransport = Watched


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


def are_splits(message: bytes) -> bool:
    """Whether a message holds the records of best splits: their nodes ascend."""
    if not message or len(message) % RECORD:
        return False
    nodes = np.frombuffer(message, np.uint32)[:: RECORD // 4].astype(np.int64)
    return nodes[-1] < 2 * len(nodes) + 4096 and bool((np.diff(nodes) > 0).all())


def of_rounds(worker: dict[str, Any]) -> dict[str, float]:
    """Return what a worker sent in all rounds: histograms precede the splits that they give."""
    exchanges = worker["exchanges"]
    splits = [i for i, one in enumerate(exchanges) if one["are_splits"]]
    rounds = exchanges[splits[0] - 1 :]
    return {
        "bytes": sum(one["bytes"] for one in rounds),
        "messages": sum(one["messages"] for one in rounds),
        "exchanges": len(rounds),
        "batches": len(splits),
        "histogram_bytes": sum(exchanges[i - 1]["bytes"] for i in splits),
        "split_bytes": sum(exchanges[i]["bytes"] for i in splits),
    }


def built(forest: Any, max_depth: int) -> dict[str, int]:
    """Return the histograms, searched nodes and batches of all trees, grown level by level.

    Of two children, the histogram of one is built; those of the last level have none.
    """
    depth = np.zeros(forest.n_nodes, int)
    found = {"histograms": forest.n_trees, "searched": forest.n_trees, "batches": forest.n_trees}
    for begin, end in zip(forest.tree_start[:-1], forest.tree_start[1:], strict=True):
        own = depth[begin:end]
        splits = np.flatnonzero(forest.left[begin:end])
        for node in splits:
            left = forest.left[begin + node]
            own[left : left + 2] = own[node] + 1
        with_histograms = own[splits][own[splits] < max_depth - 1]
        found["histograms"] += len(with_histograms)
        found["searched"] += 2 * len(with_histograms)
        found["batches"] += len(np.unique(with_histograms))
    return {name: int(value) for name, value in found.items()}


def predicted(work: dict[str, int], slots: int, workers: int, slot_bytes: float) -> float:
    """Return the bytes that one of the workers sends, by the formula."""
    histograms = (workers - 1) / workers * work["histograms"] * slots * slot_bytes
    others = work["searched"] * RECORD + work["histograms"] * NUMBER
    return histograms + (workers - 1) * others
