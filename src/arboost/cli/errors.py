"""Exit codes, and errors of the library as one line with the remedy."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from arboost.cli.console import plain_text
from arboost.errors import MissingPackageError


class ExitCode(enum.IntEnum):
    """Exit codes of the process."""

    FINE = 0
    UNEXPECTED = 1
    USAGE = 2
    DATA = 3
    MODEL = 4
    OUTPUT = 5
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


EXIT_CODES = {
    ExitCode.FINE: "done",
    ExitCode.UNEXPECTED: "unexpected error; --debug shows the traceback",
    ExitCode.USAGE: "wrong option or parameter, or a package is not installed",
    ExitCode.DATA: "data missing, malformed or with other columns",
    ExitCode.MODEL: "model file missing, damaged or not fit for the task",
    ExitCode.OUTPUT: "output cannot be written",
    ExitCode.INTERRUPTED: "interrupted by Ctrl-C",
    ExitCode.BROKEN_PIPE: "reader of the output is gone",
    ExitCode.TERMINATED: "ended by SIGTERM",
}


class Failure(Exception):  # noqa: N818  # a failure of the user's input, not of the program
    """An error with a message for the user; subclasses have the exit code."""

    code = ExitCode.UNEXPECTED


class UsageFailure(Failure):
    """A wrong option or parameter."""

    code = ExitCode.USAGE


class DataFailure(Failure):
    """Data that cannot be read or used."""

    code = ExitCode.DATA


class ModelFailure(Failure):
    """A model file that cannot be read or used."""

    code = ExitCode.MODEL


class OutputFailure(Failure):
    """An output that cannot be written."""

    code = ExitCode.OUTPUT


class Terminated(BaseException):
    """SIGTERM or SIGHUP, as an exception."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def reading_data() -> Iterator[None]:
    """Errors of the block are of the data: exit code 3."""
    with _as(DataFailure):
        yield


@contextmanager
def reading_model() -> Iterator[None]:
    """Errors of the block are of the model: exit code 4."""
    with _as(ModelFailure):
        yield


@contextmanager
def using_parameters() -> Iterator[None]:
    """Errors of the block are of parameters: exit code 2."""
    with _as(UsageFailure):
        yield


@contextmanager
def writing_output(path: str) -> Iterator[None]:
    """Errors of the operating system in the block are of the output: exit code 5."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        message = _message(error)
        if "cannot be read" in message:  # an input that has gone meanwhile
            raise DataFailure(message) from error
        if path not in message:
            message = f"cannot write {path!r}: {message}"
        raise OutputFailure(message) from error


@contextmanager
def _as(failure: type[Failure]) -> Iterator[None]:
    try:
        yield
    except (BrokenPipeError, MissingPackageError):
        raise
    except (ValueError, TypeError, OSError, ImportError, EOFError, OverflowError) as error:
        if isinstance(error, TypeError) and not str(error).endswith("."):
            raise  # of Python, not of the library, whose messages are sentences: a bug
        raise failure(_message(error)) from error


def exit_code(error: BaseException) -> ExitCode:
    """Return the exit code of an error."""
    if isinstance(error, Failure):
        return error.code
    if isinstance(error, click.UsageError | MissingPackageError):
        return ExitCode.USAGE
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return ExitCode.INTERRUPTED
    if isinstance(error, Terminated):
        return ExitCode.TERMINATED
    if isinstance(error, OSError):  # of the standard output: all others are failures by now
        return ExitCode.OUTPUT
    return ExitCode.UNEXPECTED


def one_line(error: BaseException, code: ExitCode) -> str:
    """Return the message of an error, on one line, without characters that move the cursor."""
    if code == ExitCode.INTERRUPTED:
        text = "interrupted. Nothing was written."
    elif code == ExitCode.TERMINATED:
        text = "terminated. Nothing was written."
    elif isinstance(error, click.ClickException):
        text = _usage(error)
    elif isinstance(error, Failure | MissingPackageError):
        text = _message(error)
    elif isinstance(error, OSError):
        text = f"cannot write the output: {_message(error)}."
    elif isinstance(error, MemoryError):
        text = (
            "not enough memory. Use fewer rows or columns, or --memory-limit to train on files "
            "in batches."
        )
    else:
        text = (
            f"unexpected error: {type(error).__name__}: {_message(error)} Run the command again "
            "with --debug for the traceback, and report it."
        )
    return plain_text(text)


def _usage(error: click.ClickException) -> str:
    ctx: Any = getattr(error, "ctx", None)
    asked = f' "{ctx.command_path} --help" lists the options.' if ctx is not None else ""
    text = error.format_message()
    text = text if text.endswith((".", "?")) else f"{text}."
    return text if "--help" in text else f"{text}{asked}"


# Advice of the library for Python -> advice for the command line.
_ADVICE = {
    "Write decimal points, or pass a pyarrow.dataset.Dataset with a decimal mark of your own": (
        "Add --decimal , to read them as numbers, or --decimal . to keep them as strings"
    ),
    ", or pass a pyarrow.dataset.Dataset with types of your own": "",
    ", or pass a pyarrow.dataset.Dataset": ", or use --format",
    "Pass a pyarrow.dataset.Dataset, which reads from file systems of other machines": (
        "Download it first"
    ),
    ", a function of (y, score, weight), or an arboost.Metric": "",
    ", or name the columns that all have in `columns`": "",
    ", or name the columns to read in `columns`": "",
    ", or leave it out by `columns`": "",
    " (in Polars by X.unnest)": "",
    "; or drop them": "; or use --ignore",
}


def _message(error: BaseException) -> str:
    """Return the text of an error; those of the operating system without their number."""
    if isinstance(error, OSError) and error.strerror:
        name = f": {error.filename!r}" if error.filename is not None else ""
        return f"{error.strerror}{name}"
    text = str(error) or type(error).__name__
    for given, meant in _ADVICE.items():
        text = text.replace(given, meant)
    return text
