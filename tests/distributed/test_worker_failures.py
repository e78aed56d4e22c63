"""Failures of workers, clients and the scheduler.

Workers are lost while rank 0 waits for an answer of the driver, which is the test: so each loss is
in the middle of the program, and the program cannot end before it.
"""

import asyncio
import contextlib
import functools
import os
import signal
import subprocess
import sys
import textwrap
import threading
from types import SimpleNamespace

import pytest
from distributed.client import FuturesCancelledError

from arboost.distributed import dask_driver
from arboost.distributed.dask_driver import Limits, wait_for_parts
from arboost.distributed.dask_transport import is_set_within
from arboost.errors import WorkerError
from support.cluster_programs import DiesWith, Rounds, sleeps_and_checks, waits
from support.clusters import (
    Listener,
    Once,
    cluster_of,
    part,
    parts,
    pids,
    restarts_held,
    run,
    wait_for_workers,
    wait_until_free,
)
from support.paths import ROOT

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGSTOP"), reason="processes are killed and stopped by signals"
)

PROGRAM = Rounds()


def kill(rank):
    """Listener that kills the worker of a rank after the fourth round."""
    return Listener(Once(lambda message: os.kill(message["pids"][rank], signal.SIGKILL)))


def first_pids(listener):
    """Processes of the first attempt, by rank."""
    return listener.questions[0]["pids"]


@pytest.mark.parametrize("rank", [0, 1])
def test_a_restarted_worker_takes_the_place_of_a_lost_one(client, rank):
    listener = kill(rank)
    result = run(client, PROGRAM, 6, listener, limits=Limits(patience=30))
    assert result["total"] == PROGRAM.expected(6)
    assert result["start"] >= 3  # it continues
    assert result["parts"] == [range(2), range(2, 4), range(4, 6)]  # no part has moved
    stayed = [
        before == now for before, now in zip(first_pids(listener), result["pids"], strict=True)
    ]
    assert stayed == [one != rank for one in range(3)]


def test_neighbours_take_the_parts_of_a_lost_worker(client):
    listener = kill(1)
    with restarts_held(client):
        result = run(client, PROGRAM, 6, listener)
    assert result["total"] == PROGRAM.expected(6)
    assert result["start"] >= 3
    assert result["parts"] == [range(3), range(3, 6)]
    assert result["pids"] == first_pids(listener)[::2]


def test_a_spare_worker_takes_the_place_at_once(client):
    listener = kill(0)
    with restarts_held(client):
        result = run(client, PROGRAM, 2, listener, limits=Limits(patience=30))
    assert result["total"] == PROGRAM.expected(2)
    assert result["pids"][0] not in first_pids(listener)
    assert result["pids"][1] == first_pids(listener)[1]


class StoppedWorker:
    """A listener that stops the process of rank 1, which then hangs, until the end of a block."""

    def __init__(self):
        self.listener, self.pid = Listener(Once(self._stop)), None

    def _stop(self, message):
        self.pid = message["pids"][1]
        os.kill(self.pid, signal.SIGSTOP)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGCONT)


def test_a_stopped_worker_is_replaced(client, monkeypatch):
    # Dask finds out by itself after five minutes, and then computes its parts again.
    for nanny in client.cluster.workers.values():  # of its own accord it waits for 4 seconds
        monkeypatch.setattr(nanny, "kill", functools.partial(nanny.kill, 2))
    with StoppedWorker() as stopped:
        result = run(client, PROGRAM, 6, stopped.listener, limits=Limits(timeout=5, patience=30))
        with pytest.raises(ProcessLookupError):  # nothing is left behind
            os.kill(stopped.pid, 0)
    assert result["total"] == PROGRAM.expected(6)
    assert result["start"] >= 3
    assert result["pids"][1] != stopped.pid


def test_a_stopped_worker_is_named(client, monkeypatch):
    monkeypatch.setattr(dask_driver, "_ANSWER_LIMIT_S", 1.0)
    monkeypatch.setattr(dask_driver, "_RELEASE_LIMIT_S", 1.0)
    limits = Limits(timeout=2, patience=0, retries=0)
    addresses = {pid: address for address, pid in pids(client).items()}
    with StoppedWorker() as stopped:
        with pytest.raises(WorkerError, match=r"Worker 1 at .* not answer") as caught:
            run(client, PROGRAM, 3, stopped.listener, limits=limits)
        assert addresses[stopped.pid] in str(caught.value)
    wait_until_free(client)  # the worker that continues, too


def test_rows_that_are_lost_twice(client):
    # Dask gives up a worker that ends before its nanny has seen it start.
    listener = Listener(lambda _: wait_for_workers(client))
    with pytest.raises(WorkerError, match="memory") as caught:
        run(client, DiesWith(part=2), 3, listener, limits=Limits(patience=30))
    assert str(caught.value).count("is lost") == 2


def test_no_worker_is_left():
    with (
        cluster_of(1) as client,
        pytest.raises(WorkerError, match=r"Worker 0 at tcp://\S+ is lost: .* No worker is left"),
    ):
        run(client, sleeps_and_checks, 2, Listener(Once(lambda _: client.cluster.scale(0))))


def test_a_killed_client(client):
    program = """
        import sys
        from distributed import Client
        from arboost.distributed.dask_driver import Limits
        from support.cluster_programs import waits
        from support.clusters import Listener, run

        client, limits = Client(sys.argv[1]), Limits(timeout=6)
        run(client, waits, 3, Listener(lambda message: print("running", flush=True)), limits=limits)
        """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), client.scheduler.address],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
    )
    assert process.stdout.readline() == b"running\n"
    process.kill()
    process.wait(10)
    process.stdout.close()
    wait_until_free(client, 30)  # a minute sooner than where only the client is silent


@pytest.mark.parametrize("program", [sleeps_and_checks, waits])
def test_a_closed_scheduler(program):
    with cluster_of(2) as client:
        closing = []

        def close(_message):
            closing.append(threading.Thread(target=client.cluster.close))
            closing[0].start()

        # Workers close before the scheduler: with patience, the fit is still there when it does.
        limits = Limits(timeout=30, patience=30)
        with pytest.raises(WorkerError, match=r"scheduler|closed"):
            run(client, program, 2, Listener(Once(close)), limits=limits)
        closing[0].join()


def test_a_closed_worker():
    with cluster_of(2) as client:

        def close(message):
            address = {pid: address for address, pid in pids(client).items()}[message["pids"][1]]
            client.retire_workers([address])

        listener = Listener(Once(close))
        result = run(client, PROGRAM, 6, listener)
        assert result["total"] == PROGRAM.expected(6)
        assert result["pids"] == first_pids(listener)[:1]
        wait_until_free(client)


def test_two_losses_one_after_the_other(client):
    program, killed = Rounds(24, asks_after=(4, 14)), []

    def kill_twice(message):
        if message["round"] == (4, 14)[min(len(killed), 1)] and len(killed) < 2:
            killed.append(message["pids"][len(killed)])
            os.kill(killed[-1], signal.SIGKILL)

    result = run(client, program, 6, Listener(kill_twice), limits=Limits(patience=30))
    assert result["total"] == program.expected(6)
    assert result["start"] >= 14
    assert len(result["pids"]) == 3
    assert len(killed) == 2


def test_scattered_data_cannot_be_computed_again(client):
    held = [client.scatter(part(i), workers=[one]) for i, one in enumerate(client.nthreads())]
    with pytest.raises(WorkerError, match=r"Worker 1 at .* is lost: .* Pass delayed values"):
        run(client, PROGRAM, tables={"train": held}, listener=kill(1))


def test_lost_parts_are_computed_again(client):
    table = parts(client, 6)
    with restarts_held(client):
        result = run(client, PROGRAM, tables={"train": table}, listener=kill(2))
        assert len(result["pids"]) == 2
        result = run(client, PROGRAM, tables={"train": table})
        assert result["total"] == PROGRAM.expected(6)


@pytest.mark.parametrize("answers", [[True], [False, True], [False, False, "cancelled"]])
def test_lost_parts_that_futures_do_not_know_of(answers, monkeypatch):
    """The scheduler may know of a loss before the futures of the client do."""

    class Part:
        key, status = "part", "finished"

    async def wait(_futures):
        if answers[0] == "cancelled":
            raise FuturesCancelledError([])

    async def who_has(keys):
        return {key: ["worker"] * answers.pop(0) for key in keys}

    monkeypatch.setattr(dask_driver, "Future", Part)
    monkeypatch.setattr(dask_driver, "wait", wait)
    client = SimpleNamespace(scheduler=SimpleNamespace(who_has=who_has))
    expected = contextlib.nullcontext()
    if "cancelled" in answers:
        expected = pytest.raises(WorkerError, match="cannot compute them again")
    with expected:
        asyncio.run(wait_for_parts(client, {"train": [Part()]}, 10))
    assert answers in ([], ["cancelled"])


@pytest.mark.parametrize("n_steps", range(6))
def test_a_cancellation_that_comes_with_an_event(n_steps):
    """A task that waits is cancelled, at whichever step of the loop after the event."""

    async def main():
        event = asyncio.Event()
        task = asyncio.create_task(is_set_within(event, 30))
        for _ in range(5):
            await asyncio.sleep(0)
        event.set()
        for _ in range(n_steps):
            await asyncio.sleep(0)
        is_accepted = task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() == is_accepted

    asyncio.run(main())


def test_the_wait_for_an_event_ends():
    assert not asyncio.run(is_set_within(asyncio.Event(), 0.01))
