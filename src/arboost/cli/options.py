"""Options that several commands share, and the shell completion of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import wraps
from typing import Any, TypeVar, cast

import click

from arboost.cli.models import MODELS, TASKS


def complete_models(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of models that begin so."""
    from arboost.cli.models import MODELS

    return _starting(MODELS, incomplete)


def complete_parameters(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return "name=" of the parameters of the model that begin so."""
    from arboost.cli.models import MODELS, TASKS, declarations

    model = ctx.params.get("model") or next(iter(MODELS))
    if model not in MODELS:
        return []
    names = {name for task in TASKS for name in declarations(model, task)}
    name, equals, value = incomplete.partition("=")
    if equals:
        return [f"{name}={one}" for one in _starting(_options(model, name), value)]
    return _starting((f"{one}=" for one in sorted(names)), incomplete)


def complete_columns(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Return the columns of the given files that begin so; none where they cannot be read."""
    # An option that still lacks its value leaves the arguments unparsed.
    given = ctx.params.get("data") or ctx.args
    data = [path for path in given if path != "-" and not path.endswith((".arb", ".json"))]
    with suppress(Exception):  # a completion has no place for an error
        from arboost.data.source import FileFormat, open_files

        form = FileFormat(ctx.params.get("kind"), ctx.params.get("delimiter"))
        names = open_files(list(data), None, form).arrow_schema.names
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in _starting(names, last)]
    return []


def _options(model: str, name: str) -> list[str]:
    """Return the values of a choice."""
    from arboost.cli.models import TASKS, declarations

    found: list[str] = []
    for task in TASKS:
        param = declarations(model, task).get(name)
        found += getattr(param, "options", ())
        found += ["true", "false"] if type(param).__name__ == "Flag" else []
    return list(dict.fromkeys(found))


def _starting(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names that begin so; a name with a control character would be obeyed."""
    return [name for name in names if name.startswith(incomplete) and name.isprintable()]


F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("csv", "tsv", "parquet", "arrow", "jsonl")


# Section of the help -> options of all commands in it; others are the first section.
_SECTIONS = {
    "Rows and columns": (
        "held_out holdout folds refit time_column groups weight offset ignore drop_missing_target "
        "memory_limit"
    ),
    "Input": "kind delimiter decimal",
    "Run": "seed device jobs as_json quiet debug help",
}


class SectionedCommand(click.Command):
    """A command whose help shows its own options first, and common ones in sections."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of each section."""
        section_of = {name: title for title, names in _SECTIONS.items() for name in names.split()}
        found: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Options", *_SECTIONS)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                name = "help" if "--help" in param.opts else param.name or ""
                found[section_of.get(name, "Options")].append(record)
        for title, records in found.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def checked_share(
    _ctx: click.Context, _param: click.Parameter, value: float | None
) -> float | None:
    """Return a share of the rows; raise for numbers out of range, NaN among them."""
    if value is not None and not 0 <= value < 1:
        raise click.BadParameter(f"{value:g} is no share. Use a number from 0 to below 1.")
    return value


def table_arguments(function: F) -> F:
    """Add the argument `data`: one or more files, patterns, folders, or - for standard input."""
    return click.argument("data", nargs=-1, required=True, metavar="DATA...", type=click.Path())(
        function
    )


def model_argument(function: F) -> F:
    """Add the argument `model`: the path of a model file."""
    return click.argument("model", metavar="MODEL", type=click.Path())(function)


def input_options(function: F) -> F:
    """Add --format, --delimiter and --decimal; the command gets them as `form`, a FileFormat."""

    @wraps(function)
    def with_form(*args: Any, **options: Any) -> Any:
        from arboost.data.source import FileFormat

        names = ("kind", "delimiter", "decimal")
        form = FileFormat(**{name: options.pop(name) for name in names})
        return function(*args, form=form, **options)

    for option in (
        click.option(
            "--decimal",
            type=click.Choice([".", ","]),
            help="Decimal mark in CSV and TSV files.  [default: .]",
        ),
        click.option(
            "--delimiter",
            metavar="CHAR",
            callback=_checked_delimiter,
            help="Character between the columns of CSV and TSV files, such as ';'; found in the "
            "first line by default.",
        ),
        click.option(
            "--format",
            "kind",
            type=click.Choice(FORMATS),
            help="Kind of the input where its name does not tell it, for example of -.",
        ),
    ):
        option(with_form)
    return cast("F", with_form)


def _checked_delimiter(
    _ctx: click.Context, _param: click.Parameter, value: str | None
) -> str | None:
    """Return the delimiter; "tab" and the escape of shells and languages are a tab."""
    if value is None or value in ("tab", "\\t"):
        return value and "\t"
    is_allowed = value == "\t" or (len(value) == 1 and value.isascii() and value.isprintable())
    if not is_allowed or value.isalnum() or value in "\"'.+-":
        raise click.BadParameter(
            f"{value!r} is no delimiter. Use one character such as ';', '|' or ',', or tab: no "
            "letter, digit, quote, sign, point or line break."
        )
    return value


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


def output_option(text: str, *, required: bool = False) -> Callable[[F], F]:
    """Add -o / --output."""
    return click.option(
        "--output", "-o", type=click.Path(), required=required, metavar="PATH", help=text
    )


def json_option(function: F) -> F:
    """Add --json: one JSON object on the standard output instead of tables."""
    return click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON object instead of tables."
    )(function)


def quiet_option(function: F) -> F:
    """Add --quiet: no progress, messages and warnings."""
    return click.option("--quiet", "-q", is_flag=True, help="No progress, messages and warnings.")(
        function
    )


def held_out_option(function: F) -> F:
    """Add --held-out: of the training table, the rows that the model was not trained on."""
    return click.option(
        "--held-out",
        is_flag=True,
        help="Score only the rows of the training table that arboost train held out.",
    )(function)


def safe_csv_option(function: F) -> F:
    """Add --safe-csv: texts that a spreadsheet would run as formulas are escaped."""
    return click.option(
        "--safe-csv",
        is_flag=True,
        help="In CSV and TSV output: put ' before texts and names that begin with =, +, -, @, tab "
        "or carriage return, which a spreadsheet would run as formulas.",
    )(function)


def offset_option(text: str) -> Callable[[F], F]:
    """Add --offset, the columns of the offset, one for each raw score."""

    def checked(
        _ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]
    ) -> tuple[str, ...]:
        return tuple(split_names(value))

    return click.option(
        "--offset",
        multiple=True,
        metavar="COLUMN,...",
        callback=checked,
        help=text,
        shell_complete=complete_columns,
    )


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


def task_option(function: F) -> F:
    """Add --task."""
    return click.option(
        "--task", type=click.Choice(TASKS), help="Task; found from the target by default."
    )(function)


def row_options(groups: str) -> Callable[[F], F]:
    """Add --groups, with its text, --weight, --ignore and --drop-missing-target."""

    def add(function: F) -> F:
        function = click.option(
            "--drop-missing-target", is_flag=True, help="Leave out rows without a target."
        )(function)
        function = click.option(
            "--ignore",
            multiple=True,
            metavar="COLUMN,...",
            help="Columns that are no features.",
            shell_complete=complete_columns,
        )(function)
        for name, text in (("--weight", "Weights of the rows; no feature."), ("--groups", groups)):
            function = click.option(
                name, metavar="COLUMN", help=text, shell_complete=complete_columns
            )(function)
        return function

    return add


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
        from arboost.backend import checked_threads
        from arboost.cli.errors import using_parameters

        with using_parameters():
            checked_threads(value)
    return value


def run_options(function: F) -> F:
    """Add --jobs and --device."""
    return click.option(
        "--device", metavar="NAME", help="cpu (default), cuda, or cuda:1 and so on."
    )(jobs_option(function))


def split_names(values: tuple[str, ...] | str | None) -> list[str]:
    """Return names, which may be separated by commas.

    Examples
    --------
    >>> split_names(("id,name", "city"))
    ['id', 'name', 'city']
    """
    given = (values,) if isinstance(values, str) else values or ()
    return [name.strip() for one in given for name in one.split(",") if name.strip()]
