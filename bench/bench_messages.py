"""How fast are messages between two Dask workers?

Two processes of this machine, with one thread each. "one way" is half of a message and its reply;
"exchange" is a round in which both send at the same time, as in a reduction.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

from arboost.distributed.dask_driver import run_program
from arboost.distributed.worker import WorkerContext
from arboost.workers import Share
from support import harness

SIZES = {100: 2000, 100_000: 500, 4_000_000: 50, 40_000_000: 5}  # bytes -> messages


class Silent:
    """A listener of a program that neither shows nor asks."""

    def show(self, message: Any) -> None:
        """Drop a message."""

    def answer(self, message: Any) -> object:
        """Return nothing."""


def messages(tables: Mapping[str, Share], context: WorkerContext) -> dict[int, tuple[float, float]]:
    """Seconds of a message one way, and of an exchange, by size."""
    transport = tables["train"].workers._transport
    other, seconds = 1 - context.rank, {}
    for size, repeats in SIZES.items():
        message = bytes(size)
        start = time.perf_counter()
        for _ in range(repeats):
            if context.rank == 0:
                transport.send(other, message)
            transport.receive(other)
            if context.rank == 1:
                transport.send(other, message)
        middle = time.perf_counter()
        for _ in range(repeats):
            transport.send(other, message)
            transport.receive(other)
        end = time.perf_counter()
        seconds[size] = (middle - start) / repeats / 2, (end - middle) / repeats
    return seconds


def report(args: argparse.Namespace, runs: Sequence[Mapping[int, tuple[float, float]]]) -> None:
    """Print and save the best figures of several runs."""
    best = {size: [min(run[size][i] for run in runs) for i in range(2)] for size in SIZES}
    rows = [
        (size, one_way * 1e3, size / one_way / 1e6, exchange * 1e3)
        for size, (one_way, exchange) in best.items()
    ]
    harness.show("messages", ("bytes", "one way ms", "MB/s", "exchange ms"), rows)
    harness.save(args, {str(size): seconds for size, seconds in best.items()})


def main() -> None:
    """Measure, print and save the figures."""
    parser = harness.parser(__doc__, "messages")
    args = harness.parse(parser)
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        runs = []
        for _ in range(args.repeats):
            parts = client.scatter([np.zeros((1, 1)), np.ones((1, 1))])
            runs.append(run_program(client, messages, {"train": parts}, Silent()))
    report(args, runs)


if __name__ == "__main__":
    main()
