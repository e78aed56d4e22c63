"""The table of commands, and the run of a command line: errors become one line and a code."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from types import FrameType
from typing import Any

import click

from arboost.cli.errors import EXIT_CODES, ExitCode, Terminated, debug_option, exit_code, one_line
from arboost.errors import needs_packages

# Name -> one line of help. A command is the function of this name in the module of this name, which
# is imported when the command runs: the list of commands costs nothing.
COMMANDS = {
    "train": "Train a model on a table and save it.",
    "predict": "Write the predictions of a model for a table.",
    "evaluate": "Score a model on a table with known targets.",
    "compare": "Train every ensemble on the same folds of a table.",
    "tune": "Search for the best parameters of a model, and save it.",
    "explain": "Importances of the features, and SHAP values of rows.",
    "report": "Write one page about a model: scores, errors, explanations.",
    "inspect": "Show the content of a model file, or the columns of a table.",
    "convert": "Write a model as .arb, JSON, C header or ONNX.",
    "completion": "Print the completion script of a shell.",
}
_MODULES = {"convert": "inspect", "completion": "commands"}  # of other names than the command's
_NAME = "arboost"
_COMPLETION = "_ARBOOST_COMPLETE"  # set by the completion script of a shell
_SHELLS = {
    "bash": 'eval "$(arboost completion bash)"  in ~/.bashrc',
    "zsh": 'eval "$(arboost completion zsh)"  in ~/.zshrc',
    "fish": "arboost completion fish > ~/.config/fish/completions/arboost.fish",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Command of a name, whose module is imported; None for another name."""
        if name not in COMMANDS:
            return None
        module = import_module(f"arboost.cli.{_MODULES.get(name, name)}")
        command: click.Command = getattr(module, name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Command of the first argument; raise with the nearest name."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from arboost.params.suggestions import closest_name

            close = closest_name(name, COMMANDS)
            advice = f"Did you mean {close!r}?" if close else f"Use one of {', '.join(COMMANDS)}."
            raise click.UsageError(f"There is no command {name!r}. {advice}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit codes."""
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), text) for code, text in EXIT_CODES.items()])


def _show_version(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
    if value and not ctx.resilient_parsing:
        import arboost

        click.echo(f"arboost {arboost.__version__}")
        ctx.exit()


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version.",
)
def cli() -> None:
    """Tree ensembles from the command line.

    arboost train data.csv --target price -o model.arb

    arboost predict model.arb new.csv -o predictions.csv

    Tables are CSV, TSV, Parquet, Arrow, Feather or JSON lines files, also several, patterns and
    folders; - is the standard input. "arboost COMMAND --help" has the options of a command.
    """


@click.command(
    help="Print the completion script of a shell.\n\n\b\n"
    + "\n".join(f"{shell}: {advice}" for shell, advice in _SHELLS.items())
)
@click.argument("shell", metavar="SHELL", type=click.Choice(list(_SHELLS)))
@debug_option
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, _NAME, _COMPLETION).source())


def run(args: Sequence[str]) -> int:
    """Run a command line and return its exit code. Errors are one line on the standard error."""
    debug = "--debug" in args
    _open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError, ValueError):  # characters that a terminal lacks become "?"
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    with _terminated_by_exception():
        try:
            with needs_packages("cli", "The command line"):
                _invoke(list(args))
            sys.stdout.flush()  # while a closed pipe can still be answered
        except click.exceptions.Exit as stop:
            return stop.exit_code
        except BrokenPipeError:
            _drop_output()
            return ExitCode.BROKEN_PIPE
        except SystemExit as stop:  # of Rich, whose answer to a closed pipe it is; of completion
            if isinstance(stop.__context__, BrokenPipeError):
                return ExitCode.BROKEN_PIPE
            return stop.code if isinstance(stop.code, int) else ExitCode.FINE
        except BaseException as error:
            if debug:
                traceback.print_exc()
            code = exit_code(error)
            _write_error(one_line(error, code))
            if isinstance(error, OSError):  # of the standard output
                _drop_output()
            return code
    return ExitCode.FINE


def _invoke(args: list[str]) -> None:
    """Run a command; click's own `main` would write lines of its own after an error."""
    if _COMPLETION in os.environ:
        cli.main(args, prog_name=_NAME, complete_var=_COMPLETION)
    else:
        with cli.make_context(_NAME, args or ["--help"]) as ctx:
            cli.invoke(ctx)


def _open_missing_streams() -> None:
    """Give a process that was started without output streams some that go nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _drop_output() -> None:
    """Let Python's own flush at the end of the process go nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_error(line: str) -> None:
    with suppress(OSError, ValueError):
        click.echo(f"arboost: {line}", err=True)


@contextmanager
def _terminated_by_exception() -> Iterator[None]:
    """Raise `Terminated` at SIGTERM and SIGHUP, so that scratch files are removed."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise Terminated(number)

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {}
    with suppress(ValueError):  # not in the main thread
        for name in names:
            number = getattr(signal, name)
            if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores SIGHUP
                before[number] = signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
