"""PyArrow, imported when a source is opened; files, and errors with the name of the file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from arboost.errors import needs_packages
from arboost.sources.paths import compression_of

__all__ = ["check_encoding", "naming_file", "open_bytes", "require_pyarrow"]

# Byte order marks; UTF-32 before UTF-16, whose mark is the begin of its own.
_MARKS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_UTF16_WITHOUT_MARK = re.compile(rb"(?:[^\0]\0){2}|(?:\0[^\0]){2}")


def require_pyarrow(asked: str) -> None:
    """Raise MissingPackageError where PyArrow is not installed."""
    with needs_packages("files", asked):
        import pyarrow  # noqa: F401


@contextmanager
def naming_file(path: str, advice: str) -> Iterator[None]:
    """Raise errors of PyArrow as ValueError with the name of the file and advice.

    Errors of the operating system keep their type, and memory errors are not of the file.
    """
    import pyarrow

    try:
        yield
    except MemoryError:
        raise
    except UnicodeDecodeError as error:
        raise ValueError(
            f"The file {path!r} cannot be read: invalid UTF8 data. Save it as UTF-8."
        ) from error
    except (pyarrow.ArrowException, OSError, EOFError) as error:
        cause = str(error).partition("\n")[0].rstrip(".")
        if isinstance(error, OSError) and error.errno is not None:
            raise type(error)(f"The file {path!r} cannot be read: {cause}.") from error
        raise ValueError(f"The file {path!r} cannot be read: {cause}. {advice}") from error


def open_bytes(path: str) -> Any:
    """Return a binary file object of a file, decompressed by its name."""
    import pyarrow

    return pyarrow.input_stream(path, compression=compression_of(path))


def check_encoding(head: bytes, path: str) -> None:
    """Raise ValueError for a text file whose first bytes are those of UTF-16 or UTF-32."""
    name = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
    if name is None and _UTF16_WITHOUT_MARK.match(head):
        name = "UTF-16LE" if head[0] else "UTF-16BE"
    if name is not None:
        raise ValueError(
            f"The file {path!r} is in {name}, but text files are read as UTF-8. Convert it, for "
            f"example with iconv -f {name} -t UTF-8, or save it as CSV UTF-8 in a spreadsheet."
        )
