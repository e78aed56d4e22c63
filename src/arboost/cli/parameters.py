"""Parameters of estimators on the command line, read and listed by their declarations."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import click

from arboost.cli.errors import UsageFailure
from arboost.cli.models import MODELS, TASKS, all_declarations, declarations
from arboost.cli.options import SectionedCommand

_META = "arboost.parameters"
_SETTINGS = "arboost.settings"
_SETTINGS_FILE = "arboost.settings_file"
_ARGS = "arboost.arguments"
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True}
_FALSE = {"false": False, "no": False, "off": False, "0": False}
_WORDS = {"none": None, "null": None, "true": True, "false": False, "nan": float("nan")}
# Kinds whose values may be a list, written with commas.
_LISTS = (
    "BaseScore",
    "CalendarParts",
    "CategoricalFeatures",
    "Members",
    "Metrics",
    "MonotoneConstraints",
    "Quantiles",
)
# Parameters that mean nothing for one run of the command line, and the way to the same end.
_UNUSED = {
    "verbose": "use --quiet for no progress",
    "warm_start": "a command trains once",
    "flatten_transform": "a saved model has no transform",
}


class ParameterCommand(SectionedCommand):
    """A command whose unknown options are parameters of the estimator.

    They are collected in the context; `given_parameters` returns them. Declarations are imported
    when an option is none of the command's own, so help stays fast.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the parameters out of the arguments, then parse the rest."""
        ctx.meta[_ARGS] = list(args)
        own, given = self._divided(ctx, args)
        ctx.meta[_META] = given
        return super().parse_args(ctx, own)

    def _divided(self, ctx: click.Context, args: list[str]) -> tuple[list[str], dict[str, Any]]:
        options = {
            opt: param
            for param in self.get_params(ctx)
            for opt in (*param.opts, *param.secondary_opts)
            if opt.startswith("-")
        }
        own: list[str] = []
        given: dict[str, Any] = {}
        rest = iter(args)
        for token in rest:
            name, equals, value = token.partition("=")
            if token == "--":
                own += [token, *rest]
            elif name in options or not token.startswith("--"):
                own.append(token)
                param = options.get(name)
                takes_value = isinstance(param, click.Option) and not (param.is_flag or param.count)
                if takes_value and not equals:
                    own += [one for one in [next(rest, None)] if one is not None]
            else:
                key, text = self._parameter(ctx, name, value if equals else None, rest)
                given[key] = text
        return own, given

    def _parameter(self, ctx: click.Context, option: str, value: str | None, rest: Any) -> Any:
        """Return name and text of a parameter that is written as an option."""
        known = all_declarations()
        name = option[2:].replace("-", "_")
        if name.startswith("no_") and name[3:] in known and _is_flag(known[name[3:]]):
            return name[3:], "false"
        if name not in known:
            owned = [one for param in self.get_params(ctx) for one in param.opts]
            raise click.UsageError(_unknown_option(option, name, owned, known), ctx)
        if value is not None:
            return name, value
        if _is_flag(known[name]):
            return name, "true"
        following = next(rest, None)
        if following is None:
            raise click.UsageError(f"Option '{option}' requires a value.", ctx)
        return name, following


def _is_flag(param: Any) -> bool:
    return type(param).__name__ in ("Flag", "OobScore")


def _unknown_option(
    option: str, name: str, options: Iterable[str], known: Mapping[str, Any]
) -> str:
    answer = _answer(name, list(known))
    allowed = [*(one for one in options if one.startswith("--")), *map(_option, known)]
    close = get_close_matches(option, allowed, n=1, cutoff=0.75)
    if close and "is called" not in answer:
        answer = f"Did you mean {close[0]}?"
    return f"There is no option {option}. {answer}"


def _answer(name: str, known: list[str]) -> str:
    """Return the library's answer to an unknown parameter, with names of options."""
    from arboost.params.suggestions import argument_suggestion

    text = argument_suggestion(name, "arboost", known, ())
    if ". There are " in text:
        return "--help-params lists the parameters of the model."
    text = re.sub(r"^arboost has no argument '[^']*'\. ", "", text)
    text = re.sub(r"^arboost has no argument ", "There is no parameter ", text)
    text = re.sub(r"use arboost\((\w+)=\.\.\.\)", lambda hit: f"use {_option(hit[1])}", text)
    return re.sub(r"Did you mean (\w+)\?", lambda hit: f"Did you mean {_option(hit[1])}?", text)


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def read_settings(path: str, command: click.Command) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options and the parameters of a TOML file.

    Keys are long names of options, or names of parameters, which may also be in a table
    ``[parameters]``.
    """
    try:
        with open(path, "rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise UsageFailure(f"cannot read the settings {path!r}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageFailure(f"the settings {path!r} are no TOML: {error}.") from error
    own = {
        opt.lstrip("-").replace("-", "_"): param
        for param in command.params
        for opt in [*param.opts, param.name or ""]
        if param.name not in ("config", "debug", "help_params")
    }
    tables = content.pop("parameters", {})
    if not isinstance(tables, dict):
        raise UsageFailure(f"parameters in {path!r} must be a table: [parameters].")
    options: dict[str, Any] = {}
    parameters = {str(key).replace("-", "_"): value for key, value in tables.items()}
    for key, value in content.items():
        name = key.replace("-", "_")
        if name in own and own[name].name is not None:
            options[str(own[name].name)] = _option_value(own[name], value)
        else:
            parameters[name] = value
    known = all_declarations()
    for name in parameters:
        if name not in known:
            close = get_close_matches(name, own, n=1)
            answer = f"Did you mean {close[0]}?" if close else _answer(name, list(known))
            raise UsageFailure(f"the settings {path!r} have the unknown key {name!r}. {answer}")
    return options, parameters


def _option_value(param: click.Parameter, value: Any) -> Any:
    """Return the value of an option as click takes it from a default."""
    if param.multiple or param.nargs == -1:
        return [str(one) for one in (value if isinstance(value, list) else [value])]
    if isinstance(value, list):
        return ",".join(str(one) for one in value)
    return value


def _load_settings(ctx: click.Context, _param: click.Parameter, path: str | None) -> None:
    if path is not None:
        options, parameters = read_settings(path, ctx.command)
        ctx.default_map = {**(ctx.default_map or {}), **options}
        ctx.meta[_SETTINGS] = parameters
        ctx.meta[_SETTINGS_FILE] = path


def settings_files(ctx: click.Context) -> list[str]:
    """Return the path of --config, if there is one."""
    return [ctx.meta[_SETTINGS_FILE]] if _SETTINGS_FILE in ctx.meta else []


settings_option = click.option(
    "--config",
    type=click.Path(),
    is_eager=True,
    expose_value=False,
    callback=_load_settings,
    metavar="FILE",
    help="TOML file of options and parameters; the command line overrides it.",
)


def _show_params(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
    if value and not ctx.resilient_parsing:
        show_parameters(_model_in(ctx.meta[_ARGS], ctx))
        ctx.exit()


help_params_option = click.option(
    "--help-params",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_params,
    help="Show all parameters of the model and exit.",
)


def _model_in(args: list[str], ctx: click.Context) -> str:
    """Return the model of arguments that are not parsed yet."""
    model = (ctx.default_map or {}).get("model", next(iter(MODELS)))
    for token, following in zip(args, [*args[1:], ""], strict=True):
        name, equals, value = token.partition("=")
        if name in ("--model", "-m"):
            model = value if equals else following
    if model not in MODELS:
        raise click.BadParameter(f"{model!r} is not one of {', '.join(MODELS)}.", ctx)
    return str(model)


def given_parameters(ctx: click.Context, assignments: Iterable[str]) -> dict[str, Any]:
    """Return the parameters of a command line: texts, or values of a TOML file.

    Later sources win: settings, then --set and options, which must not contradict each other.
    """
    settings: dict[str, Any] = ctx.meta.get(_SETTINGS, {})
    named: dict[str, Any] = dict(ctx.meta.get(_META, {}))
    known = all_declarations()
    for one in assignments:
        key, equals, text = one.partition("=")
        name = key.strip().replace("-", "_")
        if not equals or not name:
            raise UsageFailure(f"--set {one!r} is not allowed: write --set name=value.")
        if name not in known:
            raise UsageFailure(f"--set {one!r} is not allowed. {_answer(name, list(known))}")
        if name in named and named[name] != text:
            raise UsageFailure(f"{name} is given twice: {named[name]!r} and {text!r}. Keep one.")
        named[name] = text.strip()
    return dict(settings) | named


def check_parameters(model: str, given: Mapping[str, Any], tasks: Iterable[str]) -> dict[str, Any]:
    """Return the values of parameters, read and checked by the declarations of a model.

    A value must be allowed for one of the tasks, which may not be known yet.

    Raises
    ------
    UsageFailure
        With the library's own message.
    """
    tasks = tuple(tasks)
    values = {}
    for name, text in given.items():
        if name in _UNUSED:
            raise UsageFailure(f"{name} cannot be set on the command line: {_UNUSED[name]}.")
        found = [table[name] for table in _tables(model, tasks) if name in table]
        if not found:
            raise UsageFailure(_not_of_model(name, model, tasks))
        values[name] = _checked(found, text)
    return values


def _tables(model: str, tasks: Iterable[str]) -> list[dict[str, Any]]:
    return [declarations(model, task) for task in tasks]


def _not_of_model(name: str, model: str, tasks: tuple[str, ...]) -> str:
    others = [one for one in MODELS if any(name in table for table in _tables(one, tasks))]
    if not others:
        task = " and ".join(tasks)
        return f"{name} is no parameter of {task}: leave it out, or check --task."
    known = [one for table in _tables(model, tasks) for one in table]
    close = get_close_matches(name, known, n=1)
    meant = f" Did you mean {close[0]}?" if close else ""
    return f"{name} is no parameter of {model}, but of {', '.join(others)}.{meant}"


def _checked(params: list[Any], text: Any) -> Any:
    """Return a value that one of the declarations takes; raise with the message of the first."""
    refusal: Exception | None = None
    for param in params:
        value = _value(param, text) if isinstance(text, str) else text
        if _takes_models(param):
            return _checked_models(param.name, value)
        try:
            param.check(value)
        except (ValueError, TypeError) as error:
            refusal = refusal or error
        else:
            return value
    raise UsageFailure(str(refusal)) from refusal


def _takes_models(param: Any) -> bool:
    """Whether values are estimators, which the command line knows by the names of models."""
    return type(param).__name__ in ("Learner", "Members", "FinalEstimator")


def _checked_models(name: str, value: Any) -> Any:
    """Return the names of models for the members of an ensemble."""
    if value is None and name != "estimators":
        return value
    given = value if isinstance(value, list) and name == "estimators" else [value]
    for one in given:
        if not isinstance(one, str) or one not in MODELS:
            raise UsageFailure(
                f"{name}={value!r} is not allowed: {one!r} is no model. Use one of "
                f"{', '.join(MODELS)}."
            )
    if not given or len(set(given)) < len(given):
        raise UsageFailure(f"{name}={value!r} is not allowed: name each model once.")
    return value


def _value(param: Any, text: str) -> Any:
    """Return the value of a text by the kind of its parameter."""
    kind, word = type(param).__name__, text.strip()
    if kind in ("Choice", "LossChoice", "Device"):
        return word
    if _is_flag(param):
        return (_TRUTHS | _FALSE).get(word.lower(), word)
    if word.lower() in _WORDS:
        return _WORDS[word.lower()]
    value = _literal(word) if isinstance(_number(word), str) else _number(word)
    if isinstance(value, str) and kind in _LISTS and word != "from_dtype":
        several = [_number(one.strip()) for one in word.split(",")]
        is_list = kind in ("CalendarParts", "CategoricalFeatures") and word != "auto"
        return several if len(several) > 1 or is_list else value
    return value


def _number(text: str) -> Any:
    """Return the int or float of a text, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _literal(text: str) -> Any:
    """Return the value of a JSON or TOML literal, or the text itself."""
    if text[:1] in "[{\"'":
        try:
            return json.loads(text)
        except ValueError:
            pass
        try:
            return tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            pass
    return text


_WIDTH = 100


def show_parameters(model: str) -> None:
    """Print the parameters of a model, from their declarations."""
    import shutil
    import textwrap

    width = min(shutil.get_terminal_size().columns, _WIDTH)
    tables = {task: declarations(model, task) for task in TASKS}
    names = list(dict.fromkeys(name for table in tables.values() for name in table))
    lines = [f"Parameters of --model {model} ({MODELS[model].text}):", ""]
    for name in names:
        found = [(task, table[name]) for task, table in tables.items() if name in table]
        lines += _of_parameter(name, found, width, textwrap)
    click.echo_via_pager("\n".join(lines)) if _is_terminal() else click.echo("\n".join(lines))


def _is_terminal() -> bool:
    import sys

    return sys.stdout.isatty()


def _of_parameter(name: str, found: list[tuple[str, Any]], width: int, textwrap: Any) -> list[str]:
    param = found[0][1]
    default = "" if param.default is inspect.Parameter.empty else f", default {param.default!r}"
    only = f" ({found[0][0]} only)" if len(found) == 1 else ""
    option = "--" + name.replace("_", "-")
    lines = [f"  {option} ({param.type_name}{default}){only}"]
    texts = [param.text, f"Allowed: {param.allowed}."]
    if len(found) > 1 and found[1][1] != param:
        other = found[1][1]
        if other.default != param.default:
            texts.append(f"For {found[1][0]} the default is {other.default!r}.")
        if other.text != param.text:
            texts.append(f"For {found[1][0]}: {other.text}")
    for text in texts:
        lines += textwrap.wrap(text, width - 6, initial_indent="      ", subsequent_indent="      ")
    return [*lines, ""]
