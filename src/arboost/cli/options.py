"""Options that several commands share, as decorators of click, and the completion of their values.

A decorator that stands for several options passes them on as one object: `console_options` a
`Console`, `input_options` a `TableFormat`, `training_rows` and `scored_rows` a `RowSpec`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import wraps
from typing import Any, TypeVar, cast

import click

from arboost.cli.models import MODELS, TASKS, declarations

F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[F], F]

FORMATS = ("csv", "tsv", "parquet", "arrow", "jsonl")
_TAB = "\t"

# Section of the help -> options of all commands in it; others are the first section.
_SECTIONS = {
    "Rows and columns": (
        "held_out holdout folds refit time_column groups weight offset ignore drop_missing_target "
        "memory_limit"
    ),
    "Input": "format delimiter decimal",
    "Run": "seed device jobs as_json quiet debug help",
}


class SectionedCommand(click.Command):
    """A command whose help shows its particular options first, and common ones in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each section."""
        section_of = {name: title for title, names in _SECTIONS.items() for name in names.split()}
        records: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Options", *_SECTIONS)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                name = "help" if "--help" in param.opts else param.name or ""
                records[section_of.get(name, "Options")].append(record)
        for title, lines in records.items():
            if lines:
                with formatter.section(title):
                    formatter.write_dl(lines)


@dataclass(frozen=True)
class TableFormat:
    """How files are read where their names and first lines do not tell it."""

    format: str | None = None
    delimiter: str | None = None
    decimal: str | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of `arboost.TableFiles`."""
        return asdict(self)

    @property
    def command_line(self) -> str:
        """Options that stand for this format, to be written after paths."""
        return "".join(
            f" --{option} {'tab' if value == _TAB else shlex.quote(value)}"
            for option, value in self.arguments.items()
            if value is not None
        )


# ---- decorators ----


def _apply(function: F, *decorators: Callable[[Any], Any]) -> F:
    """Add options, the first of which comes first in the help."""
    for decorator in reversed(decorators):
        function = decorator(function)
    return function


def console_options(*, has_json: bool = True) -> Callable[[F], F]:
    """Add --json and --quiet; the command gets a `Console` as its first argument."""

    def add(function: F) -> F:
        @wraps(function)
        def with_console(*args: Any, quiet: bool, as_json: bool = False, **options: Any) -> Any:
            from arboost.cli.console import Console

            with Console(quiet=quiet, as_json=as_json) as console:
                return function(console, *args, **options)

        text = "Print one JSON object instead of tables."
        json = [click.option("--json", "as_json", is_flag=True, help=text)] if has_json else []
        text = "No progress, messages and warnings."
        quiet = click.option("--quiet", "-q", is_flag=True, help=text)
        return cast("F", _apply(with_console, *json, quiet))

    return add


def input_options(function: F) -> F:
    """Add --format, --delimiter and --decimal; the command gets them as `form`."""

    @wraps(function)
    def with_form(*args: Any, **options: Any) -> Any:
        names = ("format", "delimiter", "decimal")
        form = TableFormat(**{name: options.pop(name) for name in names})
        return function(*args, form=form, **options)

    return cast(
        "F",
        _apply(
            with_form,
            click.option(
                "--format",
                type=click.Choice(FORMATS),
                help="Kind of the input where its name does not tell it, for example of -.",
            ),
            click.option(
                "--delimiter",
                metavar="CHAR",
                callback=_checked_delimiter,
                help="Character between the columns of CSV and TSV files, such as ';'; found in "
                "the first line by default.",
            ),
            click.option(
                "--decimal",
                type=click.Choice([".", ","]),
                help="Decimal mark in CSV and TSV files.  [default: .]",
            ),
        ),
    )


def _checked_delimiter(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> str | None:
    """Delimiter; "tab" and the escape of shells and languages are a tab."""
    if value is None or value in ("tab", "\\t"):
        return value and _TAB
    is_allowed = value == _TAB or (len(value) == 1 and value.isascii() and value.isprintable())
    if not is_allowed or value.isalnum() or value in "\"'.+-":
        raise click.BadParameter(
            f"{value!r} is not a delimiter. Use one character such as ';', '|' or ',', or tab; "
            "letters, digits, quotes, signs, points and line breaks are not allowed."
        )
    return value


def training_rows(*, time: str, groups: str, offset: str | None = None) -> Callable[[F], F]:
    """Add the table, its target and task, and columns with a role; passed on as `rows`.

    `time`, `groups` and `offset` are the texts of --time-column, --groups and --offset.
    """

    def add(function: F) -> F:
        ignored = "Columns that are not features."
        return _apply(
            input_options(_with_rows(function)),
            table_arguments,
            target_option(required=True),
            click.option(
                "--task",
                type=click.Choice(TASKS),
                help="Task; found from the target by default.",
            ),
            _column_option("--time-column", time),
            _column_option("--groups", groups),
            _column_option("--weight", "Weights of the rows; not a feature."),
            *([] if offset is None else [offset_option(offset)]),
            _column_option("--ignore", ignored, multiple=True, metavar="COLUMN,..."),
            click.option(
                "--drop-missing-target", is_flag=True, help="Leave out rows without a target."
            ),
        )

    return add


def scored_rows(function: F) -> F:
    """Add a table with known targets and the columns that scores need; passed on as `rows`."""
    return _apply(
        input_options(_with_rows(function)),
        table_arguments,
        target_option(required=False),
        click.option(
            "--held-out",
            is_flag=True,
            help="Score only the rows of the training table that arboost train held out.",
        ),
        _column_option("--weight", "Weights of the rows."),
        offset_option("Offset of the rows; the model may know its columns."),
    )


def _with_rows(function: F) -> F:
    """Pass the options that are fields of a `RowSpec` on as one."""

    @wraps(function)
    def with_rows(*args: Any, **options: Any) -> Any:
        from dataclasses import fields

        from arboost.cli.rows import RowSpec

        names = {field.name for field in fields(RowSpec)} & options.keys()
        rows = RowSpec(**{name: options.pop(name) for name in names})
        return function(*args, rows=rows, **options)

    return cast("F", with_rows)


def _column_option(name: str, text: str, **options: Any) -> Callable[[F], F]:
    options = {"metavar": "COLUMN", **options}
    return click.option(name, help=text, shell_complete=complete_columns, **options)


def table_arguments(function: F) -> F:
    """Add the argument `data`: one or more files, patterns, folders, or - for standard input."""
    return click.argument("data", nargs=-1, required=True, metavar="DATA...", type=click.Path())(
        function
    )


def model_argument(function: F) -> F:
    """Add the argument `model`: the path of a model file."""
    return click.argument("model", metavar="MODEL", type=click.Path())(function)


def target_option(*, required: bool) -> Callable[[F], F]:
    """Add --target, the column to predict."""
    return click.option(
        "--target",
        "-t",
        required=required,
        metavar="COLUMN",
        help="Column to predict." if required else "Column of the target; the model may know it.",
        shell_complete=complete_columns,
    )


def offset_option(text: str) -> Callable[[F], F]:
    """Add --offset, the columns of the offset, one for each raw score."""
    return _column_option(
        "--offset",
        text,
        multiple=True,
        metavar="COLUMN,...",
        callback=lambda _ctx, _param, value: tuple(split_names(value)),
    )


def output_option(text: str, *, required: bool = False) -> Callable[[F], F]:
    """Add -o / --output."""
    return click.option(
        "--output", "-o", type=click.Path(), required=required, metavar="PATH", help=text
    )


def safe_csv_option(function: F) -> F:
    """Add --safe-csv: texts that a spreadsheet would run as formulas are escaped."""
    return click.option(
        "--safe-csv",
        is_flag=True,
        help="In CSV and TSV output: put ' before texts and names that begin with =, +, -, @, tab "
        "or carriage return, which a spreadsheet would run as formulas.",
    )(function)


def model_option(function: F) -> F:
    """Add --model, the kind of model to train."""
    return click.option(
        "--model",
        "-m",
        type=click.Choice(list(MODELS)),
        default=next(iter(MODELS)),
        show_default=True,
        metavar="NAME",
        help=f"One of {', '.join(MODELS)}.",
    )(function)


def jobs_option(function: F) -> F:
    """Add --jobs."""
    return click.option(
        "--jobs",
        "-j",
        type=int,
        metavar="N",
        callback=_checked_jobs,
        help="Number of threads; all by default.",
    )(function)


def _checked_jobs(_ctx: click.Context, _param: click.Parameter, value: int | None) -> int | None:
    if value is not None:
        from arboost.cli.errors import UsageFailure, failures_as

        with failures_as(UsageFailure):
            declarations(*next((model, task) for model in MODELS for task in TASKS))[
                "n_jobs"
            ].check(value)
    return value


def run_options(function: F) -> F:
    """Add --device and --jobs."""
    device = click.option(
        "--device", metavar="NAME", help="cpu (default), cuda, or cuda:1 and so on."
    )
    return _apply(function, device, jobs_option)


def split_names(values: Iterable[str]) -> list[str]:
    """Names, which may be separated by commas.

    Examples
    --------
    >>> split_names(("id,name", "city"))
    ['id', 'name', 'city']
    """
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


# ---- completion ----


def complete_parameters(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete "name=" by the parameters of the model, and the value of a choice."""
    model = ctx.params.get("model") or next(iter(MODELS))
    if model not in MODELS:
        return []
    tables = [declarations(model, task) for task in TASKS]
    name, equals, value = incomplete.partition("=")
    if not equals:
        names = sorted({f"{known}=" for table in tables for known in table})
        return _starting(names, incomplete)
    words = [word for table in tables if name in table for word in table[name].completions]
    return [f"{name}={word}" for word in _starting(dict.fromkeys(words), value)]


def complete_columns(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of columns of the files; none where they cannot be read."""
    # An option that still lacks its value leaves the arguments unparsed.
    paths = ctx.params.get("data") or ctx.args
    data = [path for path in paths if path != "-" and not path.endswith((".arb", ".json"))]
    with suppress(Exception):  # a completion has no place for an error
        from arboost import TableFiles

        form = TableFormat(ctx.params.get("format"), ctx.params.get("delimiter"))
        before, comma, last = incomplete.rpartition(",")
        names = TableFiles(data, **form.arguments).names
        return [f"{before}{comma}{name}" for name in _starting(names, last)]
    return []


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    """Names that begin so; a name with a control character would be obeyed by the terminal."""
    return [name for name in names if name.startswith(incomplete) and name.isprintable()]
