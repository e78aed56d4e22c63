"""Parameters of estimators on the command line, read and listed by their declarations.

``--learning-rate 0.05``, ``--learning_rate 0.05``, ``--set learning_rate=0.05`` and a line of a
TOML file are one parameter. Its kind, range, text and messages are those of ``arboost.params``.
`ModelSpec` has the options that all commands share that train a model.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import click

from arboost.cli import options as opt
from arboost.cli.console import Console
from arboost.cli.errors import UsageFailure
from arboost.cli.model_files import check_model_output, default_model_path
from arboost.cli.models import MODELS, RANKING, TASKS, declarations, declared_anywhere
from arboost.cli.tables import InputTable, RowSpec, open_table, refuse_input

if TYPE_CHECKING:
    from arboost.params.kinds import Param

# Keys of the context of a command.
_PARAMETERS = "arboost.parameters"
_SETTINGS = "arboost.settings"
_SETTINGS_FILE = "arboost.settings_file"
_ARGS = "arboost.arguments"
# Parameters that mean nothing for one run of the command line, and the way to the same end.
_UNUSED = {
    "verbose": "use --quiet for no progress",
    "warm_start": "a command trains once",
    "flatten_transform": "a saved model has no transform",
}
_WIDTH = 100  # of the list of parameters


# ---- parameters as options ----


class ParameterCommand(opt.SectionedCommand):
    """A command whose unknown options are parameters of the estimator.

    They are collected in the context for `parameters_of`. Declarations are imported when an option
    is none of the command, so help stays fast.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the parameters out of the arguments, then parse the rest."""
        ctx.meta[_ARGS] = list(args)
        options = {
            name: param
            for param in self.get_params(ctx)
            for name in (*param.opts, *param.secondary_opts)
            if name.startswith("-")
        }
        of_command: list[str] = []
        parameters: dict[str, str] = {}
        rest = iter(args)
        for token in rest:
            option, equals, value = token.partition("=")
            if token == "--":
                of_command += [token, *rest]
            elif option in options or not token.startswith("--"):
                of_command.append(token)
                param = options.get(option)
                takes_value = isinstance(param, click.Option) and not (param.is_flag or param.count)
                if takes_value and not equals:
                    of_command += [text for text in [next(rest, None)] if text is not None]
            else:
                name, text = _parameter(ctx, option, value if equals else None, options)
                text = next(rest, None) if text is None else text
                if text is None:
                    raise click.UsageError(f"Option '{option}' requires a value.", ctx)
                parameters[name] = text
        ctx.meta[_PARAMETERS] = parameters
        return super().parse_args(ctx, of_command)


def _parameter(
    ctx: click.Context, option: str, value: str | None, options: Iterable[str]
) -> tuple[str, str | None]:
    """Parameter that is written as an option, and its value; None where it is the next word."""
    known = declared_anywhere()
    name = _parameter_name(option)
    if name in known:
        return name, "true" if value is None and known[name].is_flag else value
    positive = name.removeprefix("no_")
    if positive in known and known[positive].is_flag:
        return positive, "false"
    advice = _advice(name, known, options)
    raise click.UsageError(f"There is no option {option}. {advice}", ctx)


def _parameter_name(option: str) -> str:
    return option.strip().lstrip("-").replace("-", "_")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _advice(name: str, known: Collection[str], options: Iterable[str] = ()) -> str:
    """Advice for the unknown name of a parameter, with names of options."""
    from arboost.params.suggestions import closest_name, suggest_parameter

    suggestion = suggest_parameter(name, known)
    if suggestion is None or suggestion.is_close:
        close = closest_name(_option(name), [*options, *map(_option, known)])
        if close is None:
            return "--help-params lists the parameters of the model."
        return f"Did you mean {close}?"
    if suggestion.name:
        called = f"{name} is called {suggestion.name} here: use {_option(suggestion.name)}."
        return f"{called} {suggestion.note}".rstrip()
    return f"There is no parameter {name}. {suggestion.note}"


# ---- settings: options and parameters of a TOML file ----


def _load_settings(ctx: click.Context, _param: click.Parameter, path: str | None) -> None:
    if path is not None:
        options, parameters = _read_settings(path, ctx.command)
        ctx.default_map = {**(ctx.default_map or {}), **options}
        ctx.meta[_SETTINGS] = parameters
        ctx.meta[_SETTINGS_FILE] = path


def _read_settings(path: str, command: click.Command) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the options and the parameters of a TOML file.

    Keys are long names of options, or names of parameters, which may also be in a table
    ``[parameters]``.
    """
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise UsageFailure(f"cannot read the settings {path!r}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageFailure(f"the settings {path!r} are not TOML: {error}.") from error
    options_by_key = {
        _parameter_name(key): param
        for param in command.params
        for key in [*param.opts, param.name or ""]
        if param.name not in ("config", "debug", "help_params")
    }
    table = content.pop("parameters", {})
    if not isinstance(table, dict):
        raise UsageFailure(f"parameters in {path!r} must be a table: [parameters].")
    options: dict[str, Any] = {}
    parameters = {_parameter_name(key): value for key, value in table.items()}
    for key, value in content.items():
        param = options_by_key.get(_parameter_name(key))
        if param is None or param.name is None:
            parameters[_parameter_name(key)] = value
        else:
            options[param.name] = _option_value(param, value)
    known = declared_anywhere()
    for name in parameters:
        if name not in known:
            advice = _advice(name, known, map(_option, options_by_key))
            raise UsageFailure(f"the settings {path!r} have the unknown key {name!r}. {advice}")
    return options, parameters


def _option_value(param: click.Parameter, value: Any) -> Any:
    """Value of an option as click takes it from a default."""
    if param.multiple or param.nargs == -1:
        return [str(item) for item in (value if isinstance(value, list) else [value])]
    return ",".join(map(str, value)) if isinstance(value, list) else value


_settings_option = click.option(
    "--config",
    type=click.Path(),
    is_eager=True,
    expose_value=False,
    callback=_load_settings,
    metavar="FILE",
    help="TOML file of options and parameters; the command line overrides it.",
)


# ---- values ----


def parameters_of(ctx: click.Context, assignments: Iterable[str]) -> dict[str, Any]:
    """Parameters of a command line: texts, or values of a TOML file.

    Later sources win: settings, then --set and options, which must not contradict each other.
    """
    settings: dict[str, Any] = ctx.meta.get(_SETTINGS, {})
    named: dict[str, Any] = dict(ctx.meta.get(_PARAMETERS, {}))
    known = declared_anywhere()
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        name = _parameter_name(key)
        if not equals or not name:
            raise UsageFailure(f"--set {assignment!r} is not allowed: write --set name=value.")
        if name not in known:
            raise UsageFailure(f"--set {assignment!r} is not allowed. {_advice(name, known)}")
        if name in named and named[name] != text:
            raise UsageFailure(f"{name} is set twice: {named[name]!r} and {text!r}. Keep one.")
        named[name] = text.strip()
    return settings | named


def check_parameters(
    model: str, parameters: Mapping[str, Any], tasks: Iterable[str]
) -> dict[str, Any]:
    """Values of parameters, read and checked by the declarations of a model.

    A value must be allowed for one of the tasks, which may not be known yet.

    Raises
    ------
    UsageFailure
        With the message of the declaration.
    """
    tables = {task: declarations(model, task) for task in tasks}
    values = {}
    for name, text in parameters.items():
        if name in _UNUSED:
            raise UsageFailure(f"{name} cannot be set on the command line: {_UNUSED[name]}.")
        declared = [table[name] for table in tables.values() if name in table]
        if not declared:
            raise UsageFailure(_not_of_model(name, model, tables))
        values[name] = _checked(declared, text)
    return values


def _not_of_model(name: str, model: str, tables: Mapping[str, Mapping[str, Any]]) -> str:
    from arboost.params.suggestions import closest_name

    others = [kind for kind in MODELS if any(name in declarations(kind, task) for task in tables)]
    if not others:
        task = " and ".join(tables)
        return f"{name} is not a parameter of {task}: leave it out, or check --task."
    close = closest_name(name, [known for table in tables.values() for known in table])
    meant = f" Did you mean {close}?" if close else ""
    return f"{name} is not a parameter of {model}, but of {', '.join(others)}.{meant}"


def _checked(declared: list[Param], text: Any) -> Any:
    """Value that one of the declarations takes; raise with the message of the first."""
    refusal: Exception | None = None
    for param in declared:
        value = param.parse(text) if isinstance(text, str) else text
        if param.takes_estimators:
            return _checked_models(param.name, value)
        try:
            param.check(value)
        except (ValueError, TypeError) as error:
            refusal = refusal or error
        else:
            return value
    raise UsageFailure(str(refusal)) from refusal


def _checked_models(name: str, value: Any) -> Any:
    """Names of models for the members of an ensemble."""
    if value is None and name != "estimators":
        return value
    names = value if isinstance(value, list) and name == "estimators" else [value]
    for model in names:
        if not isinstance(model, str) or model not in MODELS:
            raise UsageFailure(
                f"{name}={value!r} is not allowed: {model!r} is not a model. Use one of "
                f"{', '.join(MODELS)}."
            )
    if not names or len(set(names)) < len(names):
        raise UsageFailure(f"{name}={value!r} is not allowed: name each model once.")
    return value


# ---- list of parameters ----


def _show_params(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
    if value and not ctx.resilient_parsing:
        text = _parameter_list(_model_in(ctx.meta[_ARGS], ctx))
        (click.echo_via_pager if sys.stdout.isatty() else click.echo)(text)
        ctx.exit()


_help_params_option = click.option(
    "--help-params",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_params,
    help="Show all parameters of the model and exit.",
)


def _model_in(args: list[str], ctx: click.Context) -> str:
    """Model of arguments that are not parsed yet."""
    model = (ctx.default_map or {}).get("model", next(iter(MODELS)))
    for token, following in zip(args, [*args[1:], ""], strict=True):
        name, equals, value = token.partition("=")
        if name in ("--model", "-m"):
            model = value if equals else following
    if model not in MODELS:
        raise click.BadParameter(f"{model!r} is not one of {', '.join(MODELS)}.", ctx)
    return str(model)


def _parameter_list(model: str) -> str:
    """Parameters of a model: name, type, default, allowed values and text."""
    import shutil
    import textwrap

    width = min(shutil.get_terminal_size().columns, _WIDTH) - 6
    tables = {task: declarations(model, task) for task in MODELS[model].tasks}
    lines = [f"Parameters of --model {model} ({MODELS[model].text}):", ""]
    for name in dict.fromkeys(name for table in tables.values() for name in table):
        declared = {task: table[name] for task, table in tables.items() if name in table}
        (task, param), *others = declared.items()
        default = f", default {param.default!r}" if param.has_default else ""
        only = "" if others else f" ({task} only)"
        lines.append(f"  {_option(name)} ({param.type_name}{default}){only}")
        texts = [param.text, f"Allowed: {param.allowed}."]
        for task, second in others:
            if second.default != param.default:
                texts.append(f"For {task} the default is {second.default!r}.")
            if second.text != param.text:
                texts.append(f"For {task}: {second.text}")
        lines += [f"      {line}" for text in texts for line in textwrap.wrap(text, width)]
        lines.append("")
    return "\n".join(lines)


def _complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    """Complete "name=" by the parameters of the model, and the value of a choice."""
    model = ctx.params.get("model") or next(iter(MODELS))
    if model not in MODELS:
        return []
    tables = [declarations(model, task) for task in MODELS[model].tasks]
    name, equals, value = incomplete.partition("=")
    if not equals:
        names = sorted({f"{key}=" for table in tables for key in table})
        return opt.starting_with(incomplete, names)
    words = [word for table in tables if name in table for word in table[name].completions]
    return [f"{name}={word}" for word in opt.starting_with(value, dict.fromkeys(words))]


# ---- commands that train a model ----


def training_options(
    *, time: str, groups: str, assignments: str, ranks: bool = False
) -> opt.Decorator:
    """Add the table with the roles of its columns, the model, its file and its parameters.

    `time`, `groups` and `assignments` are the texts of --time-column, --groups and --set; `ranks`
    says whether the command trains rankers.
    """
    return opt.combined_options(
        opt.training_rows(time=time, groups=groups, has_offset=True, ranks=ranks),
        opt.output_option("Model file, .arb or .json; the name of the data with .arb by default."),
        click.option(
            "--model",
            "-m",
            type=click.Choice(list(MODELS)),
            default=next(iter(MODELS)),
            show_default=True,
            metavar="NAME",
            help=f"One of {', '.join(MODELS)}.",
        ),
        click.option(
            "--set",
            "assignments",
            multiple=True,
            metavar="NAME=VALUE",
            help=assignments,
            shell_complete=_complete,
        ),
        _settings_option,
        _help_params_option,
    )


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """Options of a command that trains a model, under their names.

    Attributes
    ----------
    rows : RowSpec
    model, output : str
    parameters : mapping of str to object
        Parameters of the estimator, as texts or values of a TOML file.
    settings : list of str
        Path of --config, if there is one.
    """

    rows: RowSpec
    model: str
    output: str
    parameters: Mapping[str, Any]
    settings: list[str]

    @classmethod
    def of_options(
        cls, ctx: click.Context, rows: RowSpec, parameters: Mapping[str, Any], **options: Any
    ) -> Self:
        """Checked options of a command line; raise UsageFailure for contradictions."""
        output = options.pop("output")
        spec = cls(
            rows=rows,
            output=default_model_path(rows.data) if output is None else output,
            parameters=parameters,
            settings=[ctx.meta[_SETTINGS_FILE]] if _SETTINGS_FILE in ctx.meta else [],
            **options,
        )
        spec.check()
        return spec

    def check(self) -> None:
        """Raise UsageFailure for options that do not fit together, and wrong parameters."""
        if self.rows.offset and self.model != "gradient_boosting":
            raise UsageFailure(
                f"--offset is for gradient_boosting, whose trees are added to it, but the model is "
                f"{self.model}. Leave it out, or use --model gradient_boosting."
            )
        self.rows.check()
        if RANKING in (self.rows.task, self.asked_task[0]):
            self._check_ranking()
        task = self.rows.task if self.rows.qid is None else RANKING
        self.values(TASKS if task is None else (task,))
        check_model_output(self.output, self.model)

    def _check_ranking(self) -> None:
        """Raise UsageFailure for a ranking without queries, or by a model of other tasks."""
        if self.rows.qid is None:
            raise UsageFailure(
                f"{self.asked_task[1]} is for ranking, which needs the query of each row. Add "
                "--qid COLUMN to arboost train."
            )
        if RANKING not in MODELS[self.model].tasks:
            raise UsageFailure(
                f"--qid is for rankings, which {self.model} does not learn. Use --model "
                "gradient_boosting."
            )
        if self.rows.task not in (None, RANKING):
            raise UsageFailure(
                f"--qid is for --task ranking, but the task is {self.rows.task}. Use --groups for "
                "rows that belong together."
            )

    def values(self, tasks: tuple[str, ...]) -> dict[str, Any]:
        """Values of the parameters, allowed for one of the tasks."""
        parameters, of_members = dict(self.parameters), {}
        if self.model == "voting" and "random_state" in parameters:
            seed = {"random_state": parameters.pop("random_state")}
            of_members = check_parameters("random_forest", seed, tasks)
        return check_parameters(self.model, parameters, tasks) | of_members

    @property
    def asked_task(self) -> tuple[str | None, str]:
        """Task that the options ask for, and the option: --task, or a parameter of one task."""
        if self.rows.qid is not None:
            return RANKING, "--qid"
        if self.rows.task is not None:
            return self.rows.task, "--task"
        for name, text in self.parameters.items():
            allowed = [task for task in MODELS[self.model].tasks if self._allows(name, task)]
            if len(allowed) == 1:
                return allowed[0], f"{name}={text}"
        return None, ""

    def _allows(self, name: str, task: str) -> bool:
        if name not in declarations(self.model, task):
            return name == "random_state"  # of the members of a vote
        try:
            check_parameters(self.model, {name: self.parameters[name]}, (task,))
        except UsageFailure:
            return False
        return True

    def open_table(self, console: Console, *outputs: str) -> InputTable:
        """Open the table; raise OutputFailure for an output that is one of the files to read."""
        source = open_table(console, self.rows.data, self.rows.form)
        for path in (self.output, *outputs):
            refuse_input(path, [*source.files.paths, *self.settings])
        return source
