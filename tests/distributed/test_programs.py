"""Programs on a cluster that loses no worker."""

import _thread
import threading
import time

import numpy as np
import pytest
from distributed import wait

from arboost.distributed.dask_driver import Limits
from arboost.errors import WorkerError
from support.cluster_programs import (
    FailsOn,
    Rounds,
    all_messages,
    asks,
    fails_with_picky,
    rows_in_order,
    sleeps_and_checks,
    waits,
)
from support.clusters import Listener, Once, parts, run, wait_until_free


@pytest.mark.parametrize("n_parts", [2, 3])
def test_messages_keep_their_order(client, n_parts):
    assert run(client, all_messages, n_parts)


@pytest.mark.parametrize("n_parts", [1, 2, 8])
def test_rows_keep_their_order(client, n_parts):
    found, numbers = run(client, rows_in_order, n_parts)["train"]
    np.testing.assert_array_equal(found, np.arange(10 * n_parts))
    assert len(numbers) == min(n_parts, 3)  # never more workers than parts
    assert [part for one in numbers for part in one] == list(range(n_parts))


def test_a_table_may_have_fewer_parts_than_workers_or_none(client):
    tables = {
        "train": parts(client, 5),
        "validation_0": parts(client, 1),
        "validation_1": [],
    }
    found = run(client, rows_in_order, tables=tables)
    assert [len(rows) for rows, _ in found.values()] == [50, 10, 0]


def test_empty_parts(client):
    empty = client.submit(np.empty, (0, 1))
    tables = {"train": [empty, *parts(client, 2), empty]}
    assert len(run(client, rows_in_order, tables=tables)["train"][0]) == 20


def test_data_stays_where_it_is(client):
    workers = list(client.nthreads())
    placed = [client.submit(np.ones, (2, 1), workers=[workers[i]], pure=False) for i in (2, 0, 1)]
    wait(placed)
    held = client.who_has(placed)
    assert run(client, places_of_data, tables={"train": placed}) == [
        held[future.key] for future in placed
    ]


def places_of_data(tables, desk):
    share = tables["train"]
    keys = share.X._keys
    here = share.X._worker.address
    assert all(key in share.X._worker.data for key in keys)
    return share.workers.gather((here,))


def test_chosen_workers(client):
    address = list(client.nthreads())[1]
    found = run(client, rows_in_order, 4, workers=[address])["train"][1]
    assert found == [range(4)]
    assert len(run(client, rows_in_order, 4, workers=[0, 2])["train"][1]) == 2  # names
    with pytest.raises(WorkerError, match="none of the given workers"):
        run(client, rows_in_order, 4, workers=["tcp://10.1.1.1:1"])


def test_questions_and_messages(client):
    listener = Listener()
    first, second = run(client, asks, 2, listener)
    assert first == ("answer to", "one")
    assert second == ("answer to", {"two": 2})
    assert listener.questions == ["one", {"two": 2}]
    shown = [message["round"] for message in listener.messages]
    assert shown == sorted(shown)
    assert shown[-1] == 99  # the newest wins
    assert len(shown) < 10


def test_messages_arrive_while_the_program_runs(client):
    listener, program = Listener(), Rounds(n_rounds=10, pause=0.11)
    assert run(client, program, 3, listener)["total"] == program.expected(3)
    assert len(listener.messages) >= 5


@pytest.mark.parametrize("ranks", [(0,), (1,), (1, 2)])
def test_an_error_of_the_program_is_raised_once(client, ranks, capfd):
    start = time.monotonic()
    with pytest.raises(KeyError, match="a bad column") as caught:
        run(client, FailsOn(ranks, KeyError("a bad column")), 3)
    assert time.monotonic() - start < 3
    assert any(f"Worker {ranks[0]} at" in note for note in caught.value.__notes__)
    assert capfd.readouterr().err == ""


def test_an_error_of_a_rank_that_nobody_waits_for(client):
    with pytest.raises(KeyError, match="a bad column"):
        run(client, FailsOn((2,), KeyError("a bad column"), n_meetings=0), 3)


def test_an_error_that_cannot_be_pickled(client):
    with pytest.raises(RuntimeError, match="PickyError: one and two"):
        run(client, fails_with_picky, 3)


def test_an_error_of_the_data(client):
    bad = client.submit(int, "no number")
    with pytest.raises(ValueError, match="no number"):
        run(client, rows_in_order, tables={"train": [*parts(client, 1), bad]})


def test_an_error_of_the_listener_cancels(client):
    def fail(_message):
        raise LookupError("a bad callback")

    with pytest.raises(LookupError, match="a bad callback"):
        run(client, Rounds(1000), 3, Listener(fail))
    assert wait_until_free(client, 5) < 5


def test_fits_at_the_same_time_and_busy_slots(client):
    tables = [parts(client, 3) for _ in range(2)]
    wait([future for table in tables for future in table])
    sleeping = client.map(time.sleep, [3] * 3, pure=False)  # all slots are taken
    program, results = Rounds(10), []

    def fit(table):
        results.append(run(client, program, tables={"train": table})["total"])

    threads = [threading.Thread(target=fit, args=(table,)) for table in tables]
    start = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == [program.expected(3)] * 2
    assert time.monotonic() - start < 2.5
    wait(sleeping)


@pytest.mark.parametrize("program", [sleeps_and_checks, waits])
def test_an_interrupt_frees_the_workers(client, program):
    timer = []

    def interrupt(_message):
        timer.append(threading.Timer(0.3, _thread.interrupt_main))
        timer[0].start()

    with pytest.raises(KeyboardInterrupt):
        run(client, program, 3, Listener(Once(interrupt, 0)))
    assert wait_until_free(client, 5) < 3
    timer[0].join()


def test_silence_is_an_error(client):
    """Of a worker that gives signs of life, but sends no message."""
    with pytest.raises(WorkerError, match="silent for 5 seconds"):
        run(client, waits, 2, limits=Limits(timeout=0.5, patience=0, retries=0))


def test_inside_a_task(client):
    assert client.submit(fit_in_task, pure=False).result(timeout=30) == 1


def fit_in_task():
    import dask.array as da

    import arboost
    from arboost.dask import DistributedFit

    X = da.random.random((60, 2), chunks=(20, 2))
    booster = arboost.GradientBoostingRegressor(n_estimators=1, verbose=0)
    return DistributedFit(booster).fit(X, X[:, 0]).model_.n_rounds
