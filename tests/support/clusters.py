"""Clusters of Dask in processes of this machine, and what is left on their workers."""

from __future__ import annotations

import contextlib
import os
import threading
import time

import dask
import numpy as np
from distributed import Client, LocalCluster

from arboost.distributed.dask_driver import Limits, run_program
from arboost.distributed.dask_transport import CALL, STREAM

QUICK = Limits(timeout=30, patience=0)


@contextlib.contextmanager
def cluster_of(n_workers, **options):
    """Give the client of a cluster of one-thread workers in processes."""
    cluster = LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=True,
        dashboard_address=":0",
        memory_limit="1GiB",
        **options,
    )
    # By default a worker that is down 15 seconds after a loss, perhaps a later one, is given up.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})
    with patient, cluster, Client(cluster) as client:
        yield client


def wait_for_workers(client, seconds=60):
    """Wait until all workers that a test has killed run again, and their nannies know it."""
    nannies = client.cluster.workers.values()
    end = time.monotonic() + seconds
    while {nanny.worker_address for nanny in nannies} != _running(client):
        assert time.monotonic() < end, [nanny.status for nanny in nannies]
        time.sleep(0.05)


def _running(client):
    """Addresses of the workers that run, as the scheduler knows them."""
    workers = client.sync(client.scheduler.identity)["workers"]
    return {address for address, worker in workers.items() if worker["status"] == "running"}


@contextlib.contextmanager
def restarts_held(client):
    """Let lost workers stay lost until the end of a block; Dask may be faster than the fit."""
    nannies = client.cluster.workers.values()

    async def restart_nothing():
        return None

    for nanny in nannies:
        nanny.instantiate = restart_nothing
    try:
        yield
    finally:
        for nanny in nannies:
            del nanny.instantiate
            if not nanny.is_alive():
                client.cluster.sync(nanny.instantiate)


class Listener:
    """Keeps the messages of a program; `on_message` is called with each of them, shown or asked."""

    def __init__(self, on_message=None):
        self.messages, self.questions, self._on_message = [], [], on_message

    def show(self, message):
        self.messages.append(message)
        if self._on_message is not None:
            self._on_message(message)

    def answer(self, message):
        self.questions.append(message)
        if self._on_message is not None:
            self._on_message(message)
        return ("answer to", message)


class Once:
    """A function of a message that does something at the first message."""

    def __init__(self, action):
        self._action = action

    def __call__(self, message):
        if self._action is not None:
            action, self._action = self._action, None
            action(message)


def run(client, program, n_parts=None, listener=None, **options):
    """Run a program on parts of 10 rows: part i has the values 10 i, ..., 10 i + 9."""
    tables = options.pop("tables", None) or {"train": parts(client, n_parts)}
    options.setdefault("limits", QUICK)
    return run_program(client, program, tables, listener or Listener(), **options)


def parts(client, n_parts):
    return client.map(part, range(n_parts), pure=False)


def part(i):
    return np.arange(10.0 * i, 10.0 * (i + 1)).reshape(-1, 1)


def _remains(dask_worker):
    """Fits, threads, callbacks and connections of arboost on a worker."""
    extension = dask_worker.extensions.get(CALL)
    fits = [] if extension is None else list(extension.fits)
    threads = [t.name for t in threading.enumerate() if t.name.startswith("arboost-")]
    callbacks = [name for name in dask_worker.periodic_callbacks if name == CALL]
    comms = [op for op in dask_worker._comms.values() if op == STREAM]
    return [*fits, *threads, *callbacks, *comms]


def wait_until_free(client, seconds=60):
    """Wait until no worker has anything of a fit."""
    start = time.monotonic()
    while True:
        remains = {address: left for address, left in client.run(_remains).items() if left}
        if not remains:
            return
        assert time.monotonic() < start + seconds, remains
        time.sleep(0.02)


def pids(client):
    """Process ids of the workers by address."""
    return client.run(os.getpid)
