"""Unknown names of arguments, values, losses, metrics and attributes: refused with the name to use.

``library_names.json`` has the names of scikit-learn, XGBoost, LightGBM and CatBoost next to the
names here. Its rows also fill the pages docs/from_*.md, and a test compares them with the
signatures of the libraries. It is read when a name is unknown, or a metric goes by name.
"""

from __future__ import annotations

import functools
import inspect
import json
import pkgutil
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, NoReturn, ParamSpec, TypeVar

from arboost.errors import InputTypeError

P = ParamSpec("P")
R = TypeVar("R")
Self = TypeVar("Self")

# Titles of the libraries, by the fields of a row.
LIBRARIES = {
    "sklearn": "scikit-learn",
    "xgboost": "XGBoost",
    "lightgbm": "LightGBM",
    "catboost": "CatBoost",
}
_PARAMETER_TOPICS = (
    "boosting",
    "trees",
    "samples",
    "columns",
    "stopping",
    "run",
    "prediction",
)
_SIMILARITY = 0.75  # least ratio of difflib between a name and a suggestion


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """Known name that is spelt like a name, in any case; None where none is similar.

    Examples
    --------
    >>> closest_name("Prise", ["size", "price"])
    'price'
    """
    from difflib import get_close_matches

    by_lower_case = {spelling.lower(): spelling for spelling in reversed(list(known))}
    closest = get_close_matches(name.lower(), by_lower_case, 1, _SIMILARITY)
    return by_lower_case[closest[0]] if closest else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Sentence " Did you mean ...?" with the closest name, or nothing.

    Examples
    --------
    >>> did_you_mean("pirce", ["price", "size"])
    " Did you mean 'price'?"
    """
    closest = closest_name(name, known)
    return "" if closest is None else f" Did you mean {closest!r}?"


# ---- the table of names ----


@dataclass(frozen=True)
class Row:
    """Names of one idea in five libraries; several names are separated by spaces.

    Attributes
    ----------
    ours : str
        Names here: the first that an estimator has is its name there; "" where there is none.
    note : str
        Sentence on the use: another range of values, or the way to the same end.
    sklearn, xgboost, lightgbm, catboost : str
        Names of the libraries.
    """

    ours: str = ""
    note: str = ""
    sklearn: str = ""
    xgboost: str = ""
    lightgbm: str = ""
    catboost: str = ""

    def names(self, library: str | None = None) -> list[str]:
        """Names of one library, or of all of them."""
        libraries = LIBRARIES if library is None else (library,)
        return list(dict.fromkeys(" ".join(getattr(self, name) for name in libraries).split()))


@cache
def _names_table() -> dict[str, Any]:
    content = pkgutil.get_data("arboost.params", "library_names.json")
    table: dict[str, Any] = json.loads(content or b"")
    return table


@cache
def library_rows(topic: str) -> tuple[Row, ...]:
    """Rows of "parameters", "prediction", "losses" or "metrics"."""
    topics = _PARAMETER_TOPICS if topic == "parameters" else (topic,)
    return tuple(Row(**row) for key in topics for row in _names_table()[key])


@cache
def rows_by_name(topic: str) -> dict[str, Row]:
    """Row of each name of other libraries; the first row of a name counts.

    Examples
    --------
    >>> rows_by_name("parameters")["nthread"].ours
    'n_jobs'
    """
    by_name: dict[str, Row] = {}
    for row in library_rows(topic):
        for name in row.names():
            by_name.setdefault(name, row)
    return by_name


def library_values(table: str = "values") -> dict[tuple[str, str], str]:
    """Values of parameters that have other names here: (parameter, value) -> value here.

    "sklearn_values" has those of scikit-learn, which the pages of the other libraries leave out.
    """
    return {(parameter, value): ours for parameter, value, ours in _names_table()[table]}


# ---- names of arguments ----


class Suggestion(NamedTuple):
    """Answer to the unknown name of a parameter.

    Attributes
    ----------
    name : str
        Name to use; empty where there is none.
    note : str
        Sentence on the use, or on the way to the same end.
    is_close : bool
        Whether `name` is the closest spelling, not the name of the same idea.
    spelling : str
        The unknown name itself, where another library has it; else the closest known name, here
        or in another library.
    """

    name: str
    note: str
    is_close: bool = False
    spelling: str = ""


def suggest_parameter(name: str, *places: Collection[str]) -> Suggestion | None:
    """Suggestion for the unknown name of a parameter, given the names at one or more places.

    Examples
    --------
    >>> suggest_parameter("eta", ["learning_rate", "max_depth"]).name
    'learning_rate'
    """
    rows = rows_by_name("parameters")
    spelling = name
    if name not in rows:
        closest = closest_name(name, [known for place in places for known in place] + [*rows])
        if closest is None:
            return None
        if any(closest in place for place in places):
            return Suggestion(closest, "", is_close=True, spelling=closest)
        spelling = closest
    row = rows[spelling]
    # Estimators with scikit-learn's parameters have its names instead of ours.
    names = [*row.ours.split(), *row.names("sklearn")] if row.ours else []
    ours = next((known for place in places for known in names if known in place), "")
    note = row.note if ours or not row.ours else "Leave it out."
    return Suggestion(ours, note, spelling=spelling)


def argument_suggestion(
    name: str,
    owner: str,
    arguments: Collection[str],
    others: Collection[str] = (),
    *,
    in_fit: bool = False,
) -> str:
    """Message on an unknown argument.

    Parameters
    ----------
    name : str
    owner : str
        Public name of the estimator or function.
    arguments : collection of str
        Names of the arguments at the place of the call.
    others : collection of str
        Names of the arguments at the other place: of `fit`, or of the constructor.
    in_fit : bool
        Whether the name was passed to `fit`.

    Examples
    --------
    >>> argument_suggestion("eta", "Booster", ["learning_rate"], ["X", "y"])
    'eta is called learning_rate here: use Booster(learning_rate=...).'
    """
    here, there = (f"{owner}(", "fit(X, y, ") if not in_fit else ("fit(X, y, ", f"{owner}(")
    if name in others:
        kind = f"a parameter of {owner}" if in_fit else "an argument of fit"
        return f"{name} is {kind} here: use {there}{name}=...)."
    suggestion = suggest_parameter(name, arguments, others)
    if suggestion is None:
        return f"{owner} has no argument {name!r}. There are {', '.join(arguments)}."
    ours, note, _, spelling = suggestion
    if spelling != name:
        start = f"{owner} has no argument {name!r}. Did you mean {spelling}?"
        if spelling in arguments:
            return start
        return f"{start} {argument_suggestion(spelling, owner, arguments, others, in_fit=in_fit)}"
    if not ours:
        return f"{owner} has no argument {name}. {note}"
    call = here if ours in arguments else there
    return f"{name} is called {ours} here: use {call}{ours}=...). {note}".rstrip()


def prediction_suggestion(name: str, method: str, arguments: Collection[str]) -> str:
    """Message on an unknown argument of a method of prediction.

    Examples
    --------
    >>> prediction_suggestion("ntree_limit", "predict", ["X", "rounds"])
    'ntree_limit is called rounds here: use predict(X, rounds=...).'
    """
    row = rows_by_name("prediction").get(name)
    if row is None:
        return argument_suggestion(name, method, arguments)
    if row.ours:
        return f"{name} is called {row.ours} here: use {method}(X, {row.ours}=...)."
    return f"{method} has no argument {name}. {row.note}"


# ---- checks of names, in constructors, functions and attributes ----


def new_estimator(cls: type[Self], *arguments: object, **params: object) -> Self:
    """Estimator without attributes; TypeError for unknown parameters.

    It is the ``__new__`` of estimators: scikit-learn reads the parameters of ``__init__``, which
    therefore can neither take unknown names nor answer them.
    """
    known = _constructor_names(cls.__init__)
    if known is not None and not params.keys() <= known:
        raise InputTypeError(
            _constructor_message(cls, [name for name in params if name not in known])
        )
    return object.__new__(cls)


@functools.lru_cache(maxsize=256)
def _constructor_names(init: Any) -> frozenset[str] | None:
    """Names of the parameters of an ``__init__``; None where it takes any name."""
    known = inspect.signature(init).parameters
    takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    return None if takes_any else frozenset(known)


def check_params(estimator: Any, params: Iterable[str]) -> None:
    """Raise ValueError for names that ``set_params`` of the estimator does not know.

    The first words are scikit-learn's.
    """
    known = estimator.get_params(deep=False)
    unknown = [name for name in params if name.partition("__")[0] not in known]
    if unknown:
        cls = type(estimator)
        shown = ", ".join(map(repr, unknown))
        message = _constructor_message(cls, unknown)
        raise ValueError(f"Invalid parameter {shown} for estimator {cls.__name__}. {message}")


def known_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """``fit``, an ``__init__`` or a function, with messages on unknown names of arguments."""
    known = dict.fromkeys(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args: P.args, **arguments: P.kwargs) -> R:
        if arguments and not arguments.keys() <= known.keys():
            unknown = [name for name in arguments if name not in known]
            raise InputTypeError(_call_message(args, function, unknown))
        return function(*args, **arguments)

    return checked


def missing_attribute(model: object, name: str) -> Any:
    """Answer an attribute of other libraries; it is the ``__getattr__`` of models.

    For all other names the error is that of the attribute itself, of a property for example.
    """
    advice = _names_table()["attributes"].get(name)
    if advice is not None:
        raise AttributeError(f"{type(model).__name__} has no {name}. {advice}")
    return object.__getattribute__(model, name)


def public_name(method: Callable[P, R]) -> Callable[P, R]:
    """Method whose errors name no private class, and whose help has no `unknown`.

    It costs nothing per call, for predictions of a microsecond. A method that answers unknown
    arguments takes them as ``**unknown: Never``, which type checkers refuse as well.
    """
    method.__qualname__ = method.__name__
    signature = inspect.signature(method)
    shown = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    vars(method)["__signature__"] = signature.replace(parameters=shown)
    return method


def refuse_arguments(method: Callable[..., object], names: Iterable[str]) -> NoReturn:
    """Raise TypeError for unknown arguments of a method of prediction."""
    known = list(inspect.signature(method).parameters)
    raise InputTypeError(
        " ".join(prediction_suggestion(name, method.__name__, known) for name in names)
    )


def _constructor_message(cls: type[Any], unknown: Iterable[str]) -> str:
    parameters, arguments = _names(cls.__init__), _names(getattr(cls, "fit", None))
    return " ".join(
        argument_suggestion(name, cls.__name__, parameters, arguments) for name in unknown
    )


def _call_message(args: tuple[Any, ...], function: Any, unknown: Iterable[str]) -> str:
    arguments, owner = _names(function), function.__name__
    others: list[str] = []
    if owner in {"__init__", "fit"}:
        owner = type(args[0]).__name__
    in_fit = function.__name__ == "fit"
    if in_fit:
        others = _names(type(args[0]).__init__)
    return " ".join(
        argument_suggestion(name, owner, arguments, others, in_fit=in_fit) for name in unknown
    )


def _names(function: Any) -> list[str]:
    if function is None:
        return []
    return [name for name in inspect.signature(function).parameters if name != "self"]


def module_suggestion(name: str) -> str | None:
    """Message on a name of other libraries' modules; None for other names."""
    advice = _names_table()["module"].get(name)
    return None if advice is None else f"arboost has no {name}. {advice}"


# ---- metrics, losses and values ----


def metric_name(name: str) -> str | None:
    """Name here of a metric of any library, in any case; None for an unknown name.

    Examples
    --------
    >>> metric_name("AUC"), metric_name("neg_log_loss"), metric_name("ndcg")
    ('auc', 'log_loss', None)
    """
    return _metric_names().get(_plain(name))


@cache
def _metric_names() -> dict[str, str]:
    """Names of metrics here, by the plain names of all libraries; ours come first."""
    synonyms = {_plain(name): row.ours for name, row in rows_by_name("metrics").items() if row.ours}
    return synonyms | {_plain(name): name for name in _names_here("metrics")}


def _names_here(topic: str) -> list[str]:
    return [row.ours for row in library_rows(topic) if row.ours]


def _plain(name: str) -> str:
    """Letters and digits of a name, in lower case."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def is_metric(name: str) -> bool:
    """Whether a name is that of a metric, or of a loss, which is a metric of its own fits."""
    return metric_name(name) is not None or name in _names_here("losses")


_RANK_METRICS = {
    "ndcg": "ndcg",
    "map": "map",
    "mrr": "mrr",
    "precision": "precision",
    "pre": "precision",
    "precisionat": "precision",
    "meanaverageprecision": "map",
}


def rank_metric_name(name: str) -> str | None:
    """Name here of a metric of rankings of any library; None for any other name.

    Examples
    --------
    >>> [rank_metric_name(name) for name in ("NDCG@5", "pre@3", "NDCG:top=10", "map", "ndcg@0")]
    ['ndcg@5', 'precision@3', 'ndcg@10', 'map', None]
    """
    found = re.fullmatch(r"([a-z_]+)(?:(?:@|:top=)([1-9][0-9]{0,8}))?", name.strip().lower())
    kind = _RANK_METRICS.get(_plain(found[1])) if found else None
    if found is None or kind is None:
        return None
    return f"{kind}@{int(found[2])}" if found[2] else kind


def metric_suggestion(name: str, allowed: Sequence[str] = ()) -> str:
    """Message on the unknown name of a metric, to follow a colon.

    Parameters
    ----------
    name : str
    allowed : sequence of str
        Names of the metrics that are allowed; all metrics where it is empty.
    """
    allowed = allowed or _names_here("metrics")
    row = rows_by_name("metrics").get(name.partition("@")[0].partition(":")[0])
    if row is not None and not row.ours:
        return f"there is no such metric. {row.note}"
    closest = closest_name(name, allowed)
    if closest is not None:
        return f'there is no such metric. Did you mean "{closest}"?'
    return f"there is no such metric. Use one of {', '.join(allowed)}."


def loss_suggestion(name: str, allowed: Sequence[str]) -> str:
    """Message on the unknown name of a loss, to follow a colon.

    Examples
    --------
    >>> loss_suggestion("reg:gamma", ["squared_error", "gamma"])
    'it is called "gamma" here.'
    """
    rows = rows_by_name("losses")
    plain = {_plain(known): row for known, row in rows.items()}
    row = rows.get(name) or rows.get(name.partition(":")[0]) or plain.get(_plain(name))
    if row is None:
        closest = closest_name(name, allowed)
        meant = "" if closest is None else f' Did you mean "{closest}"?'
        return f"there is no such loss.{meant}"
    if not row.ours:
        return f"there is no such loss. {row.note}"
    if row.ours in allowed:
        return f'it is called "{row.ours}" here. {row.note}'.rstrip()
    called = "it" if row.ours == name else f'it is called "{row.ours}" here, and'
    kind = "classifier" if row.ours in ("log_loss", "exponential") else "regressor"
    return f"{called} is a loss of a {kind}."


def value_suggestion(parameter: str, value: str, options: Sequence[str]) -> str:
    """Sentence on an unknown value of a parameter, "" where there is none."""
    values = library_values() | library_values("sklearn_values")
    ours = values.get((parameter, value))
    if ours is not None and ours in options:
        return f'"{value}" is called "{ours}" here.'
    closest = closest_name(value, options)
    return "" if closest is None else f'did you mean "{closest}"?'
