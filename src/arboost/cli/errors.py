"""Exit codes, and errors of the library as one line with advice for the command line."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterator
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
debug_option = click.option(
    "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error."
)


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
def failures_as(kind: type[Failure], parameters: Collection[str] = ()) -> Iterator[None]:
    """Raise errors of the library in the block as failures of a kind.

    An error of a parameter or a device, or about one of `parameters`, which the user has set, is a
    wrong option. TypeErrors and RuntimeErrors without a category are bugs, not refusals.
    """
    try:
        yield
    except (BrokenPipeError, MissingPackageError):
        raise
    except (
        ValueError,
        TypeError,
        RuntimeError,
        OSError,
        ImportError,
        EOFError,
        OverflowError,
    ) as error:
        category = _category(error)
        if isinstance(error, TypeError | RuntimeError) and not category:
            raise
        is_set = getattr(error, "parameter", None) in parameters
        if is_set or category in ("parameter", "device"):
            kind = UsageFailure
        raise kind(_message(error)) from error


@contextmanager
def writing_output(path: str) -> Iterator[None]:
    """Raise errors of the operating system in the block as failures of the output."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        message = _message(error)
        if _category(error) == "data":  # an input that has gone meanwhile
            raise DataFailure(message) from error
        if error.strerror and error.filename is None:
            message = f"cannot write {path!r}: {message}"
        raise OutputFailure(message) from error


def exit_code(error: BaseException) -> ExitCode:
    """Exit code of an error."""
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
    """Message of an error on one line, without characters that move the cursor."""
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
    """Message of click as a sentence, with the command that lists the options."""
    text = error.format_message()
    text = text if text.endswith((".", "?")) else f"{text}."
    ctx: Any = getattr(error, "ctx", None)
    if ctx is None:
        return text
    return f'{text} "{ctx.command_path} --help" lists the options.'


# Parameter of a function of the library -> advice for the command line in place of that for Python.
_ADVICE = {
    "X": "Turn these columns into numbers or strings, or leave them out by --ignore.",
    "columns": "Write the files with the same columns.",
    "decimal": "Add --decimal , to read them as numbers, or --decimal . to keep them as strings.",
    "delimiter": "The first line must hold the names of all columns, and --delimiter names the "
    "character between them.",
    "format": "Rename the file, or use --format.",
    "metric": "",  # an option takes names only
    "models": "",
    "path": "Download it first.",
    "types": "Write the column in one form, or convert the file to Parquet.",
}


def _category(error: BaseException) -> str:
    """Category that an error of the library carries; empty for errors of Python."""
    return getattr(error, "category", None) or ""


def _message(error: BaseException) -> str:
    """Text of an error; that of an error of the operating system without its number."""
    if isinstance(error, OSError) and error.strerror:
        name = f": {error.filename!r}" if error.filename is not None else ""
        return f"{error.strerror}{name}"
    text = str(error) or type(error).__name__
    advice = _ADVICE.get(getattr(error, "parameter", None) or "")
    if advice is None:
        return text
    return f"{getattr(error, 'problem', text)} {advice}".rstrip()
