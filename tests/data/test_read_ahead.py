"""Reading ahead: a thread computes the next item, and ends with its caller."""

import threading
import time

import pytest

from arboost.data import source as read_ahead_module
from arboost.data.source import read_ahead


def wait_for(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def counted(n_items, made, closed):
    try:
        for item in range(n_items):
            made.append((item, threading.current_thread()))
            yield item
    finally:
        closed.append(threading.current_thread())


def test_one_item_ahead():
    made, closed = [], []
    items = read_ahead(counted(5, made, closed))
    assert next(items) == 0
    wait_for(lambda: len(made) == 2)
    time.sleep(0.02)
    assert len(made) == 2  # the third one waits until the second is taken
    assert list(items) == [1, 2, 3, 4]
    assert {thread for _, thread in made} == set(closed)
    assert threading.current_thread() not in closed


def test_close_ends_the_thread():
    made, closed = [], []
    before = threading.active_count()
    items = read_ahead(counted(5, made, closed))
    next(items)
    items.close()
    assert len(closed) == 1
    assert threading.active_count() == before


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_are_those_of_the_caller(error):
    def failing():
        yield 1
        raise error("no more")

    items = read_ahead(failing())
    assert next(items) == 1
    with pytest.raises(error, match="no more"):
        next(items)
    assert list(items) == []


def test_nothing_to_read():
    assert list(read_ahead(iter([]))) == []


@pytest.mark.parametrize(
    ("of", "name"), [(threading.Thread, "start"), (read_ahead_module._Slot, "stop")]
)
def test_an_interrupt_leaves_no_thread(of, name, monkeypatch):
    """Ctrl-C while the thread starts, or while it is told to end."""
    step = getattr(of, name)

    def interrupted(self):
        if threading.current_thread() is not threading.main_thread():
            return step(self)
        if name == "start":
            step(self)
        raise KeyboardInterrupt

    made, closed = [], []
    before = threading.active_count()
    items = read_ahead(counted(5, made, closed))
    with monkeypatch.context() as patch:
        patch.setattr(of, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            all(items.close() for _ in items)
    wait_for(lambda: threading.active_count() == before)
    assert len(closed) == 1
