"""The next item of an iterator, computed in the background."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from typing import Any, Generic, TypeVar

__all__ = ["read_ahead"]

T = TypeVar("T")


def read_ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """Yield the items; a thread computes the next one while the caller works on the last one.

    One item at most waits for the caller, and the thread begins with the next one only when that
    is taken. Closing the generator, or an error of the caller, ends the thread before it returns;
    errors of `items` are raised in the caller.
    """
    slot = _Slot[T]()
    thread = threading.Thread(target=slot.fill, args=(items,), name="arboost-reader", daemon=True)
    thread.start()
    try:
        while True:
            found = slot.take()
            if not found:
                return
            yield found.pop()
    finally:
        slot.stop()
        thread.join()


class _Slot(Generic[T]):
    """Room for one item between a thread that reads and one that works."""

    def __init__(self) -> None:
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
            self._changed.wait_for(lambda: not self._items or self._is_done)
            return not self._is_done


def _close(items: Any) -> None:
    """Close a generator, in the thread that ran it."""
    close = getattr(items, "close", None)
    if close is not None:
        close()
