"""PyArrow, imported when a source is opened; files, and errors with the name of the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from arboost.errors import needs_packages
from arboost.sources.paths import compression_of

__all__ = ["naming_file", "open_bytes", "require_pyarrow"]


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
