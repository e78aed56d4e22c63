"""The next item of an iterator, computed in the background."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import Any, Generic, TypeVar

__all__ = ["read_ahead"]

T = TypeVar("T")

_LOST_SECONDS = 1.0  # after which a thread notices a reader that an interrupt ended


def read_ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """Yield the items; a thread computes the next one while the caller works on the last one.

    One item at most waits for the caller, and the thread begins with the next one only when that
    is taken. Closing the generator, or an error of the caller, ends the thread before it returns;
    errors of `items` are raised in the caller. Ctrl-C may come between any two steps, even while
    the thread starts or is told to end: the thread ends with the generator.
    """
    reader = _Reader()
    slot = _Slot[T](weakref.ref(reader))
    thread = threading.Thread(target=slot.fill, args=(items,), name="arboost-reader", daemon=True)
    try:
        thread.start()
        while True:
            found = slot.take()
            if not found:
                return
            yield found.pop()
    finally:
        del reader
        slot.stop()
        with suppress(RuntimeError):  # of a thread whose start was interrupted
            thread.join()


class _Reader:
    """Object that lives as long as the generator reads."""


class _Slot(Generic[T]):
    """Room for one item between a thread that reads and one that works."""

    def __init__(self, reader: Callable[[], _Reader | None]) -> None:
        self._reader = reader
        self._changed = threading.Condition()
        self._items: list[T] = []
        self._is_done = False
        self._error: BaseException | None = None

    def fill(self, items: Iterator[T]) -> None:
        """Put one item after the other into the slot, until the end or `stop`."""
        try:
            for item in items:
                if not self._put(item):
                    break
                del item  # the slot, and then the caller, has the only reference
        except BaseException as error:  # raised again by `take`
            self._error = error
        finally:
            _close(items)
            self.stop()

    def take(self) -> list[T]:
        """Return the next item, in a list; an empty list after the last one."""
        with self._changed:
            self._changed.wait_for(lambda: self._items or self._is_done)
            if self._items:
                taken, self._items = self._items, []
                self._changed.notify_all()
                return taken
        if self._error is not None:
            raise self._error
        return []

    def stop(self) -> None:
        """Let the thread end after the item it works on."""
        with self._changed:
            self._is_done = True
            self._changed.notify_all()

    def _put(self, item: T) -> bool:
        """Put an item and wait until it is taken; return False after `stop`."""
        with self._changed:
            self._items = [item]
            del item
            self._changed.notify_all()
            while self._items and not self._is_done and self._reader() is not None:
                self._changed.wait(_LOST_SECONDS)
            return not self._is_done and self._reader() is not None


def _close(items: Any) -> None:
    """Close a generator, in the thread that ran it."""
    close = getattr(items, "close", None)
    if close is not None:
        close()
