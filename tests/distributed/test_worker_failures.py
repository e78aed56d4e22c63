"""Losses of workers, clients and the scheduler."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from arboost.distributed import dask_driver
from arboost.distributed.dask_driver import Limits
from arboost.errors import WorkerError
from support.cluster_programs import DiesWith, Rounds, sleeps_and_checks, waits
from support.clusters import Listener, Once, cluster_of, part, parts, pids, run, wait_until_free
from support.paths import ROOT

pytestmark = pytest.mark.skipif(
    not hasattr(signal, "SIGSTOP"), reason="processes are killed and stopped by signals"
)


def kill(rank, sign=signal.SIGKILL):
    """Return a listener that kills the worker of a rank in the fourth round."""
    return Listener(Once(lambda message: os.kill(message["pids"][rank], sign)))


@pytest.fixture
def fresh():
    """Return the client of three workers that a test may lose."""
    with cluster_of(3) as client:
        yield client


@pytest.mark.parametrize("rank", [0, 1])
def test_a_restarted_worker_takes_the_place_of_a_lost_one(fresh, rank):
    program = Rounds()
    found = run(fresh, program, 6, kill(rank), limits=Limits(patience=20))
    assert found["total"] == program.expected(6)
    assert found["start"] >= 3  # it continues
    assert found["parts"] == [range(2), range(2, 4), range(4, 6)]  # no part has moved
    assert found["attempts"] == [1 if one == rank else 2 for one in range(3)]
    wait_until_free(fresh, 5)


def stay_lost(client):
    """Let lost workers stay lost; Dask may restart them before the loss is seen."""

    async def restart_nothing():
        return None

    for nanny in client.cluster.workers.values():
        nanny.instantiate = restart_nothing


def test_neighbours_take_the_parts_of_a_lost_worker(fresh):
    stay_lost(fresh)
    program = Rounds()
    found = run(fresh, program, 6, kill(1))
    assert found["total"] == program.expected(6)
    assert found["start"] >= 3
    assert found["parts"] == [range(3), range(3, 6)]
    assert found["attempts"] == [2, 2]
    wait_until_free(fresh, 5)


def test_a_spare_worker_takes_the_place_at_once(fresh):
    program = Rounds()
    found = run(fresh, program, 2, kill(0), limits=Limits(patience=20))
    assert found["total"] == program.expected(2)
    assert found["size"] == 2
    assert found["attempts"] == [1, 2]


class Stop:
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


def test_a_stopped_worker_is_replaced():
    program = Rounds()
    # Dask finds out by itself after five minutes, and then computes its parts again.
    with cluster_of(3) as client, Stop() as stop:
        limits = Limits(timeout=3, patience=0)
        found = run(client, program, 6, stop.listener, limits=limits)
        with pytest.raises(ProcessLookupError):  # nothing is left behind
            os.kill(stop.pid, 0)
        assert found["total"] == program.expected(6)
        assert found["start"] >= 3
        wait_until_free(client, 5)


def test_a_stopped_worker_is_named(fresh, monkeypatch):
    monkeypatch.setattr(dask_driver, "_ANSWER_LIMIT_S", 2.0)
    limits = Limits(timeout=1, patience=0, retries=0)
    addresses = {pid: address for address, pid in pids(fresh).items()}
    with Stop() as stop, pytest.raises(WorkerError, match=r"Worker 1 at .* not answer") as caught:
        run(fresh, Rounds(), 3, stop.listener, limits=limits)
    assert addresses[stop.pid] in str(caught.value)
    wait_until_free(fresh, 10)  # the worker that continues, too


def test_rows_that_are_lost_twice(fresh):
    with pytest.raises(WorkerError, match="memory") as caught:
        run(fresh, DiesWith(part=2), 3, limits=Limits(patience=20))
    assert str(caught.value).count("is lost") == 2
    wait_until_free(fresh, 5)


def test_no_worker_is_left():
    with (
        cluster_of(1) as client,
        pytest.raises(WorkerError, match=r"Worker 0 at tcp://\S+ is lost: .* No worker is left"),
    ):
        run(client, Rounds(), 2, Listener(Once(lambda _: client.cluster.scale(0))))


def test_a_killed_client(client):
    program = """
        import sys
        from distributed import Client
        from support.cluster_programs import waits
        from support.clusters import Listener, run

        client = Client(sys.argv[1])
        run(client, waits, 3, Listener(lambda message: print("running", flush=True)))
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
    assert wait_until_free(client, 20) < 15


@pytest.mark.parametrize("program", [sleeps_and_checks, waits])
def test_a_closed_scheduler(program):
    with cluster_of(2) as client:
        closing = []

        def close(_message):
            closing.append(threading.Thread(target=client.cluster.close))
            closing[0].start()

        start = time.monotonic()
        with pytest.raises(WorkerError, match=r"scheduler|closed"):
            run(client, program, 2, Listener(Once(close, 0)))
        assert time.monotonic() - start < 20
        closing[0].join(20)


def test_a_closed_worker(fresh):
    program = Rounds(20)

    def close(message):
        address = {pid: address for address, pid in pids(fresh).items()}[message["pids"][2]]
        fresh.retire_workers([address])

    found = run(fresh, program, 6, Listener(Once(close)))
    assert found["total"] == program.expected(6)
    assert found["size"] == 2


def test_two_losses_one_after_the_other(fresh):
    program, killed = Rounds(24), []

    def kill_twice(message):
        if message["round"] >= 4 + 10 * len(killed) and len(killed) < 2:
            killed.append(message["pids"][len(killed)])
            os.kill(killed[-1], signal.SIGKILL)

    found = run(fresh, program, 6, Listener(kill_twice), limits=Limits(patience=20))
    assert found["total"] == program.expected(6)
    assert found["start"] >= 14
    assert found["size"] == 3


def test_scattered_data_cannot_be_computed_again(fresh):
    held = [fresh.scatter(part(i), workers=[one]) for i, one in enumerate(fresh.nthreads())]
    with pytest.raises(WorkerError, match=r"Worker 1 at .* is lost: .* Pass delayed values"):
        run(fresh, Rounds(), tables={"train": held}, listener=kill(1))


def test_lost_parts_are_computed_again(fresh):
    stay_lost(fresh)
    program, table = Rounds(), parts(fresh, 6)
    assert run(fresh, program, tables={"train": table}, listener=kill(2))["size"] == 2
    assert run(fresh, program, tables={"train": table})["total"] == program.expected(6)
