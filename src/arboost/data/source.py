"""Source: rows that do not have to fit in memory, in batches, as often as a consumer asks.

    open_source(X) --> Source --batches(65536)--> Batch, Batch, Batch     pass 1
                              --batches(65536)--> Batch, Batch, Batch     pass 2, the same rows

The next batch is read in the background while the consumer works on the last one: two batches are
in memory, and what the reader of the files needs.
"""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

_STRING_BYTES = 16  # at least
_COLUMN_BYTES = 500_000  # that a reader holds for a column


@dataclass(frozen=True)
class Batch:
    """Consecutive rows of a source.

    Attributes
    ----------
    table : pyarrow.RecordBatch, or the object that the user's iterable yields
    first_row, n_rows : int
        Position of the rows in the source.
    file : str
        Name of their file, or of the source, for messages.
    bytes_read : int
        Bytes of the source that have been read by now; 0 where the source has no size.
    """

    table: Any
    first_row: int
    n_rows: int
    file: str
    bytes_read: int


class Part(NamedTuple):
    """Rows as a kind of source reads them: a table, its file, and the bytes read by now."""

    table: Any
    file: str
    bytes_read: int


class Source(ABC):
    """Restartable batches of rows; made by `open_source`.

    Parameters
    ----------
    label : str
        Name of the source in messages.
    arrow_schema : pyarrow.Schema or None
        Columns of all batches; None for iterables, whose batches are of any type.
    n_rows, n_bytes : int or None
        Number of rows, and of bytes on disk, where they are known before the first pass. After a
        whole pass, the number of rows is known.
    """

    _READS_AHEAD: ClassVar[bool] = True

    def __init__(
        self, label: str, arrow_schema: Any, n_rows: int | None = None, n_bytes: int | None = None
    ) -> None:
        self.label = label
        self.arrow_schema = arrow_schema
        self.n_rows = n_rows
        self.n_bytes = n_bytes

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the files; empty where there are none."""
        return ()

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns; None for iterables."""
        return None if self.arrow_schema is None else tuple(self.arrow_schema.names)

    @property
    def row_bytes(self) -> int | None:
        """Bytes of a row in memory, about; None for iterables."""
        if self.arrow_schema is None:
            return None
        measured = self._text_bytes
        return sum(
            max(_type_bytes(field.type), measured.get(field.name, 0)) for field in self.arrow_schema
        )

    @property
    def reader_bytes(self) -> int:
        """Bytes that the reader holds next to batches, about; 0 for iterables."""
        return 0 if self.arrow_schema is None else _COLUMN_BYTES * len(self.arrow_schema)

    @property
    def _text_bytes(self) -> Mapping[str, int]:
        """Bytes of a value of columns of strings and lists, as far as they are measured."""
        return {}

    def batches(self, batch_rows: int) -> Iterator[Batch]:
        """Yield all rows from the first on, at most `batch_rows` of them at a time.

        Objects of a user's iterable are not divided. Empty ones are left out.

        Raises
        ------
        ValueError
            A file cannot be read, or the number of rows is not that of the pass before.
        """
        first = 0
        parts = self._parts(batch_rows)
        with closing(read_ahead(parts) if self._READS_AHEAD else parts) as tables:
            for part in tables:
                for table in self._slices(part.table, batch_rows):
                    n_rows = row_count(table)
                    yield Batch(table, first, n_rows, part.file, part.bytes_read)
                    first += n_rows
        if self.n_rows is not None and first != self.n_rows:
            raise ValueError(
                f"{self.label} had {self.n_rows:,} rows, but {first:,} when it was read again. "
                "Each pass must give the same rows in the same order."
            )
        self.n_rows = first

    @abstractmethod
    def _parts(self, batch_rows: int) -> Any:
        """Return a generator of parts, from the first row on."""

    def _slices(self, table: Any, batch_rows: int) -> Iterator[Any]:
        """Yield a table in parts of at most so many rows, none of them empty."""
        for start in range(0, table.num_rows, batch_rows):
            whole = table.num_rows <= batch_rows
            yield table if whole else table.slice(start, batch_rows)


def has_fixed_size(kind: Any) -> bool:
    """Whether all values of a type of PyArrow have the same size."""
    try:
        return bool(kind.bit_width)
    except ValueError:
        return False


def _type_bytes(kind: Any) -> int:
    """Return the bytes of a value, of strings and lists the least."""
    return max(1, int(kind.bit_width) // 8) if has_fixed_size(kind) else _STRING_BYTES


def row_count(table: Any) -> int:
    """Return the number of rows of a table; that of X for a tuple (X, y) or (X, y, weight)."""
    if isinstance(table, tuple):
        return row_count(table[0])
    if hasattr(table, "num_rows"):
        return int(table.num_rows)
    if hasattr(table, "shape"):
        return int(table.shape[0])
    if isinstance(table, dict):
        return len(next(iter(table.values()), ()))
    return len(table)


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
