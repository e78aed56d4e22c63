"""Programs on a cluster that loses no worker."""

import _thread
import threading
from pathlib import Path

import numpy as np
import pytest
from distributed import Event, wait

from arboost.distributed import worker
from arboost.distributed.dask_driver import Limits
from arboost.errors import WorkerError
from support.cluster_programs import (
    FailsOn,
    Rounds,
    ShowsUntilSeen,
    all_messages,
    asks,
    fails_with_picky,
    rows_in_order,
    sleeps_and_checks,
    waits,
)
from support.clusters import Listener, Once, parts, run


@pytest.mark.parametrize("n_parts", [2, 3])
def test_messages_keep_their_order(client, n_parts):
    assert run(client, all_messages, n_parts)


@pytest.mark.parametrize("n_parts", [1, 2, 8])
def test_rows_keep_their_order(client, n_parts):
    rows, numbers = run(client, rows_in_order, n_parts)["train"]
    np.testing.assert_array_equal(rows, np.arange(10 * n_parts))
    assert len(numbers) == min(n_parts, 3)  # never more workers than parts
    assert [part for one in numbers for part in one] == list(range(n_parts))


def test_a_table_may_have_fewer_parts_than_workers_or_none(client):
    tables = {
        "train": parts(client, 5),
        "validation_0": parts(client, 1),
        "validation_1": [],
    }
    results = run(client, rows_in_order, tables=tables)
    assert [len(rows) for rows, _ in results.values()] == [50, 10, 0]


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


def places_of_data(tables, context):
    share = tables["train"]
    keys = share.X._keys
    here = share.X._worker.address
    assert all(key in share.X._worker.data for key in keys)
    return share.workers.gather((here,))


def test_chosen_workers(client):
    address = list(client.nthreads())[1]
    assert run(client, rows_in_order, 4, workers=[address])["train"][1] == [range(4)]
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
    assert len(shown) < 25  # of 51


def test_messages_arrive_while_the_program_runs(client, tmp_path):
    listener = Listener(lambda message: Path(tmp_path, str(message["round"])).touch())
    run(client, ShowsUntilSeen(str(tmp_path)), 3, listener)
    assert [message["round"] for message in listener.messages] == [0, 1, 2]


@pytest.mark.parametrize("ranks", [(0,), (1,), (1, 2)])
def test_an_error_of_the_program_is_raised_once(client, ranks, capfd):
    with pytest.raises(KeyError, match="a bad column") as caught:
        run(client, FailsOn(ranks, KeyError("a bad column")), 3)
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


@pytest.mark.parametrize("program", [waits, Rounds()])
def test_an_error_of_the_listener_cancels(client, program):
    """Of `show` and of `answer`."""

    def fail(_message):
        raise LookupError("a bad callback")

    with pytest.raises(LookupError, match="a bad callback"):
        run(client, program, 3, Listener(fail))


def test_fits_at_the_same_time_and_busy_slots(client):
    tables = [parts(client, 3) for _ in range(2)]
    wait([future for table in tables for future in table])
    sleeping = client.map(wait_for_event, ["fits are done"] * 3, pure=False)  # in all slots
    program, results = Rounds(), []

    def fit(table):
        results.append(run(client, program, tables={"train": table})["total"])

    threads = [threading.Thread(target=fit, args=(table,)) for table in tables]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [program.expected(3)] * 2
    assert not any(future.done() for future in sleeping)
    Event("fits are done", client).set()
    wait(sleeping)


def wait_for_event(name):
    Event(name).wait(timeout=250)


@pytest.mark.parametrize("program", [sleeps_and_checks, waits])
def test_an_interrupt_frees_the_workers(client, program):
    timer = []

    def interrupt(_message):
        timer.append(threading.Timer(0.3, _thread.interrupt_main))
        timer[0].start()

    with pytest.raises(KeyboardInterrupt):
        run(client, program, 3, Listener(Once(interrupt)))
    timer[0].join()


def test_silence_is_an_error(client):
    """Of a worker that gives signs of life, but sends no message."""
    before = worker.STALL_FACTOR
    client.run(set_stall_factor, 0.5)
    try:
        with pytest.raises(WorkerError, match="silent for 2 seconds"):
            run(client, waits, 2, limits=Limits(timeout=4, patience=0, retries=0))
    finally:
        client.run(set_stall_factor, before)


def set_stall_factor(factor):
    worker.STALL_FACTOR = factor


def test_inside_a_task(client):
    assert client.submit(fit_in_task, pure=False).result() == 1


def fit_in_task():
    import dask.array as da

    import arboost
    from arboost.dask import DistributedFit

    X = da.random.random((60, 2), chunks=(20, 2))
    booster = arboost.GradientBoostingRegressor(n_estimators=1, verbose=0)
    return DistributedFit(booster).fit(X, X[:, 0]).model_.n_rounds
