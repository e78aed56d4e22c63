"""Options that several commands share, as decorators of click, and the completion of their values.

A decorator that stands for several options passes them on as one object: `console_options` a
`Console`, `input_options` a `TableFormat`, `training_rows` and `scored_rows` a `RowSpec`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import fields
from functools import wraps
from typing import Any

import click

from arboost.cli.console import Console
from arboost.cli.errors import UsageFailure, debug_option, failures_as
from arboost.cli.models import MODELS, RANKING, TASKS, declarations
from arboost.cli.tables import TAB, RowSpec, TableFormat

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

FORMATS = ("csv", "tsv", "parquet", "arrow", "jsonl")

# Section of the help -> options of all commands in it; others are the first section.
_SECTIONS = {
    "Rows and columns": (
        "held_out holdout folds refit time_column groups qid weight offset ignore "
        "drop_missing_target memory_limit"
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


# ---- decorators ----


def combined_options(*decorators: Callable[[Any], Any]) -> Decorator:
    """Decorator that adds all options, the first of which comes first in the help."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for decorator in reversed(decorators):
            function = decorator(function)
        return function

    return add


def _passed_as(name: str, record: type[Any]) -> Decorator:
    """Decorator that passes on the options that are fields of a record as one argument."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_record(*args: Any, **options: Any) -> Any:
            names = {field.name for field in fields(record)} & options.keys()
            options[name] = record(**{field: options.pop(field) for field in names})
            return function(*args, **options)

        return with_record

    return add


def console_options(*, has_json: bool = True) -> Decorator:
    """Add --json, --quiet and --debug; the command gets a `Console` as its first argument."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def with_console(*args: Any, quiet: bool, as_json: bool = False, **options: Any) -> Any:
            console = Console(quiet=quiet, as_json=as_json)
            with console.warnings_as_lines():
                return function(console, *args, **options)

        return with_console

    text = "Print one JSON object instead of tables."
    json = [click.option("--json", "as_json", is_flag=True, help=text)] if has_json else []
    return combined_options(
        *json,
        click.option("--quiet", "-q", is_flag=True, help="No progress, messages and warnings."),
        debug_option,
        add,
    )


def _checked_delimiter(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> str | None:
    """Delimiter; "tab" and the escape of shells and languages are a tab."""
    if value is None or value in ("tab", "\\t"):
        return value and TAB
    is_allowed = value == TAB or (len(value) == 1 and value.isascii() and value.isprintable())
    if not is_allowed or value.isalnum() or value in "\"'.+-":
        raise click.BadParameter(
            f"{value!r} is not a delimiter. Use one character such as ';', '|' or ',', or tab; "
            "letters, digits, quotes, signs, points and line breaks are not allowed."
        )
    return value


# The command gets them as `form`.
input_options = combined_options(
    click.option(
        "--format",
        type=click.Choice(FORMATS),
        help="Format of the input, if its name does not show it, as for -.",
    ),
    click.option(
        "--delimiter",
        metavar="CHAR",
        callback=_checked_delimiter,
        help="Character between the columns of CSV and TSV files, such as ';'; found in the first "
        "line by default.",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        help="Decimal mark in CSV and TSV files.  [default: .]",
    ),
    _passed_as("form", TableFormat),
)

model_argument = click.argument("model", metavar="MODEL", type=click.Path())

table_arguments = click.argument(
    "data", nargs=-1, required=True, metavar="DATA...", type=click.Path()
)


def complete_columns(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete the names of columns of the files; none where they cannot be read."""
    # An option that still lacks its value leaves the arguments unparsed.
    paths = ctx.params.get("data") or ctx.args
    data = [path for path in paths if path != "-" and not path.endswith((".arb", ".json"))]
    with suppress(Exception):  # a completion has no place for an error
        from arboost import TableFiles

        form = TableFormat(ctx.params.get("format"), ctx.params.get("delimiter"))
        before, comma, last = incomplete.rpartition(",")
        names = TableFiles(data, **vars(form)).names
        return [f"{before}{comma}{name}" for name in starting_with(last, names)]
    return []


def starting_with(incomplete: str, names: Iterable[str]) -> list[str]:
    """Names that begin so; a name with a control character would be obeyed by the terminal."""
    return [name for name in names if name.startswith(incomplete) and name.isprintable()]


def column_option(*names: str, text: str, **options: Any) -> Decorator:
    """Option whose value is the name of a column."""
    options = {"metavar": "COLUMN", **options}
    return click.option(*names, help=text, shell_complete=complete_columns, **options)


def target_option(*, required: bool) -> Decorator:
    """Add --target, the column to predict."""
    text = "Column to predict." if required else "Column of the target; the model may know it."
    return column_option("--target", "-t", text=text, required=required)


def split_names(values: Iterable[str]) -> list[str]:
    """Names, which may be separated by commas.

    Examples
    --------
    >>> split_names(("id,name", "city"))
    ['id', 'name', 'city']
    """
    return [name.strip() for value in values for name in value.split(",") if name.strip()]


def offset_option(text: str) -> Decorator:
    """Add --offset, the columns of the offset, one for each raw score."""
    return column_option(
        "--offset",
        text=text,
        multiple=True,
        metavar="COLUMN,...",
        callback=lambda _ctx, _param, value: tuple(split_names(value)),
    )


def training_rows(
    *, time: str, groups: str, has_offset: bool = False, ranks: bool = False
) -> Decorator:
    """Add the table, its target and task, and columns with a role; passed on as `rows`.

    `time` and `groups` are the texts of --time-column and --groups; `ranks` adds --qid.
    """
    tasks = (*TASKS, RANKING) if ranks else TASKS
    queries = "Query of each row, for --task ranking; whole queries are held out."
    task = "Task; inferred from the target by default."
    offset = (
        "Start of the raw scores, such as the log of an exposure; not a feature. Several for "
        "classes."
    )
    ignored = "Columns that are not features."
    dropped = "Leave out rows without a target."
    return combined_options(
        table_arguments,
        target_option(required=True),
        click.option("--task", type=click.Choice(tasks), help=task),
        *([column_option("--qid", text=queries)] if ranks else []),
        column_option("--time-column", text=time),
        column_option("--groups", text=groups),
        column_option("--weight", text="Weights of the rows; not a feature."),
        *([offset_option(offset)] if has_offset else []),
        column_option("--ignore", text=ignored, multiple=True, metavar="COLUMN,..."),
        click.option("--drop-missing-target", is_flag=True, help=dropped),
        input_options,
        _passed_as("rows", RowSpec),
    )


# A table with known targets and the columns that scores need; the command gets them as `rows`.
scored_rows = combined_options(
    table_arguments,
    target_option(required=False),
    click.option(
        "--held-out",
        is_flag=True,
        help="Score only the rows of the training table that arboost train held out.",
    ),
    column_option("--weight", text="Weights of the rows."),
    offset_option("Offset of the rows; the model may know its columns."),
    input_options,
    _passed_as("rows", RowSpec),
)


def output_option(text: str, **options: Any) -> Decorator:
    """Add -o / --output."""
    return click.option("--output", "-o", type=click.Path(), metavar="PATH", help=text, **options)


safe_csv_option = click.option(
    "--safe-csv",
    is_flag=True,
    help="In CSV and TSV output: put ' before texts and names that begin with =, +, -, @, tab or "
    "carriage return, which a spreadsheet would run as formulas.",
)


def _checked_jobs(_ctx: click.Context, _param: click.Parameter, value: int | None) -> int | None:
    if value is not None:
        with failures_as(UsageFailure):
            declarations(next(iter(MODELS)), TASKS[0])["n_jobs"].check(value)
    return value


jobs_option = click.option(
    "--jobs",
    "-j",
    type=int,
    metavar="N",
    callback=_checked_jobs,
    help="Number of threads; all by default.",
)

run_options = combined_options(
    click.option("--device", metavar="NAME", help="cpu (default), cuda, or cuda:1 and so on."),
    jobs_option,
)
