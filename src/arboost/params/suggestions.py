"""Unknown names of arguments, losses, metrics and attributes: refused with the name to use."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple, NoReturn, ParamSpec, TypeVar

from arboost.params.library_names import (
    LOSSES,
    METRICS,
    PARAMETERS,
    PREDICTION,
    SKLEARN_VALUES,
    VALUES,
    Row,
    by_name,
)

P = ParamSpec("P")
R = TypeVar("R")
Self = TypeVar("Self")


def new_estimator(cls: type[Self], *arguments: object, **params: object) -> Self:
    """Return an estimator without attributes; raise TypeError for unknown parameters.

    It is the ``__new__`` of estimators: scikit-learn reads the parameters of ``__init__``, which
    therefore can neither take unknown names nor answer them.
    """
    known = _constructor_names(cls.__init__)
    if known is not None and not params.keys() <= known:
        unknown = [name for name in params if name not in known]
        raise TypeError(_constructor_answers(cls, unknown))
    return object.__new__(cls)


def check_params(estimator: Any, params: Iterable[str]) -> None:
    """Raise ValueError for names that ``set_params`` of the estimator does not know.

    The first words are scikit-learn's.
    """
    known = estimator.get_params(deep=False)
    unknown = [name for name in params if name.partition("__")[0] not in known]
    if unknown:
        cls = type(estimator)
        shown = ", ".join(map(repr, unknown))
        answers = _constructor_answers(cls, unknown)
        raise ValueError(f"Invalid parameter {shown} for estimator {cls.__name__}. {answers}")


def known_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``fit``, an ``__init__`` or a function that answers unknown names of arguments."""
    known = dict.fromkeys(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args: P.args, **arguments: P.kwargs) -> R:
        if arguments and not arguments.keys() <= known.keys():
            unknown = [name for name in arguments if name not in known]
            raise TypeError(_call_answers(args, function.__name__, known, unknown))
        return function(*args, **arguments)

    return checked


def missing_attribute(model: object, name: str) -> Any:
    """Answer an attribute of other libraries; it is the ``__getattr__`` of models.

    For all other names the error is that of the attribute itself, of a property for example.
    """
    answer = attribute_suggestion(name, type(model).__name__)
    if answer is not None:
        raise AttributeError(answer)
    return object.__getattribute__(model, name)


def public_name(method: Callable[P, R]) -> Callable[P, R]:
    """Return a method whose errors name no private class, and whose help has no `unknown`.

    It costs nothing per call, for predictions of a microsecond. A method that answers unknown
    arguments takes them as ``**unknown: Never``, which type checkers refuse as well.
    """
    method.__qualname__ = method.__name__
    signature = inspect.signature(method)
    shown = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    vars(method)["__signature__"] = signature.replace(parameters=shown)
    return method


def refuse_arguments(method: Callable[..., object], names: Iterable[str]) -> NoReturn:
    """Raise TypeError for unknown arguments of a method of prediction."""
    own = list(inspect.signature(method).parameters)
    raise TypeError(" ".join(prediction_suggestion(name, method.__name__, own) for name in names))


@functools.lru_cache(maxsize=256)
def _constructor_names(init: Any) -> frozenset[str] | None:
    """Return the names of the parameters of an ``__init__``; None where it takes any name."""
    known = inspect.signature(init).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in known.values())
    return None if takes_any else frozenset(known)


def _constructor_answers(cls: type[Any], names: Iterable[str]) -> str:

    init: Any = cls.__init__
    own, other = _names(init), _names(getattr(cls, "fit", None))
    return " ".join(argument_suggestion(name, cls.__name__, own, other) for name in names)


def _call_answers(
    args: tuple[Any, ...], function: str, known: Collection[str], names: Iterable[str]
) -> str:

    own = [one for one in known if one != "self"]
    if function == "__init__":
        function = type(args[0]).__name__
    if function != "fit":
        return " ".join(argument_suggestion(name, function, own, ()) for name in names)
    cls = type(args[0])
    other = _names(cls.__init__)
    return " ".join(
        argument_suggestion(name, cls.__name__, own, other, in_fit=True) for name in names
    )


def _names(function: Any) -> list[str]:
    if function is None:
        return []
    return [name for name in inspect.signature(function).parameters if name != "self"]


_TABLE = "Pass the table itself to fit, or arboost.Dataset(X, y), whose bins several fits share."
_CLASSIFIER = "Use arboost.GradientBoostingClassifier."
_REGRESSOR = "Use arboost.GradientBoostingRegressor."
_MODULE = {
    **dict.fromkeys(["DMatrix", "QuantileDMatrix", "ExtMemQuantileDMatrix", "Pool"], _TABLE),
    **dict.fromkeys(
        ["XGBClassifier", "LGBMClassifier", "CatBoostClassifier", "HistGradientBoostingClassifier"],
        _CLASSIFIER,
    ),
    **dict.fromkeys(
        ["XGBRegressor", "LGBMRegressor", "CatBoostRegressor", "HistGradientBoostingRegressor"],
        _REGRESSOR,
    ),
    "XGBRFClassifier": "Use arboost.RandomForestClassifier.",
    "XGBRFRegressor": "Use arboost.RandomForestRegressor.",
    "Booster": "Use arboost.load(path), or the attribute model_ of a fitted estimator.",
    "load_model": "Use arboost.load(path).",
    "train": "Use arboost.GradientBoostingClassifier(...).fit(X, y), or GradientBoostingRegressor.",
}
_IMPORTANCES = "Use importances(kind)."
_TREES = "Use tree_table() for a table of all nodes, or to_json()."
_CURVES = "Estimators have evals_result_ after fit."
_OF_ENGINE = "Use model_ of a fitted estimator: its model, which arboost.load returns as well."
_ATTRIBUTES = {
    **dict.fromkeys(["get_booster", "booster_"], _OF_ENGINE),
    **dict.fromkeys(
        ["feature_importance", "get_score", "get_fscore", "get_feature_importance"], _IMPORTANCES
    ),
    **dict.fromkeys(["dump_model", "get_dump", "trees_to_dataframe"], _TREES),
    **dict.fromkeys(["evals_result", "get_evals_result"], _CURVES),
    "best_iteration": "Estimators have best_iteration_ after fit.",
    "best_ntree_limit": "Use n_iter_, the number of rounds; predict(X, rounds=...) takes fewer.",
    "calc_leaf_indexes": "Use apply(X).",
    "load_model": "Use arboost.load(path), or load(path) of the class of the estimator.",
    "save_model": "Use save(path).",
}
_SIMILARITY = 0.75  # least ratio of difflib between a name and a suggestion


def argument_suggestion(
    name: str, owner: str, own: Collection[str], other: Collection[str], *, in_fit: bool = False
) -> str:
    """Return the answer to an unknown argument.

    Parameters
    ----------
    name : str
    owner : str
        Public name of the estimator or function.
    own : collection of str
        Names of the arguments at the place of the call.
    other : collection of str
        Names of the arguments at the other place: of `fit`, or of the constructor.
    in_fit : bool
        Whether the name was passed to `fit`.

    Examples
    --------
    >>> argument_answer("eta", "Booster", ["learning_rate"], ["X", "y"])
    'eta is called learning_rate here: use Booster(learning_rate=...).'
    """
    here, there = (f"{owner}(", "fit(X, y, ") if not in_fit else ("fit(X, y, ", f"{owner}(")
    if name in other:
        kind = f"a parameter of {owner}" if in_fit else "an argument of fit"
        return f"{name} is {kind} here: use {there}{name}=...)."
    rows = _rows(PARAMETERS)
    if name in rows:
        return _row_answer(
            name, rows[name], f"{owner} has no argument", (own, here), (other, there)
        )
    found = closest_name(name, [*own, *other, *rows])
    if found is None:
        return f"{owner} has no argument {name!r}. There are {', '.join(own)}."
    start = f"{owner} has no argument {name!r}. Did you mean {found}?"
    if found in own:
        return start
    return f"{start} {argument_suggestion(found, owner, own, other, in_fit=in_fit)}"


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
    """

    name: str
    note: str
    is_close: bool = False


def suggest_parameter(name: str, known: Collection[str]) -> Suggestion | None:
    """Suggestion for the unknown name of a parameter, or None.

    Examples
    --------
    >>> suggest_parameter("eta", ["learning_rate", "max_depth"]).name
    'learning_rate'
    """
    rows = _rows(PARAMETERS)
    row = rows.get(name)
    if row is not None:
        names = [*row.ours.split(), *row.names("sklearn")] if row.ours else []
        known_name = next((ours for ours in names if ours in known), "")
        return Suggestion(known_name, row.note if known_name or not row.ours else "Leave it out.")
    close = closest_name(name, [*known, *rows])
    if close is None or close in known:
        return None if close is None else Suggestion(close, "", is_close=True)
    return suggest_parameter(close, known)


def prediction_suggestion(name: str, method: str, own: Collection[str]) -> str:
    """Return the answer to an unknown argument of a method of prediction.

    Examples
    --------
    >>> prediction_answer("ntree_limit", "predict", ["X", "rounds"])
    'ntree_limit is called rounds here: use predict(X, rounds=...).'
    """
    row = _rows(PREDICTION).get(name)
    if row is None:
        return argument_suggestion(name, method, own, ())
    if row.ours:
        return f"{name} is called {row.ours} here: use {method}(X, {row.ours}=...)."
    return f"{method} has no argument {name}. {row.note}"


def _row_answer(name: str, row: Row, without: str, *places: tuple[Collection[str], str]) -> str:
    """Return the answer of a row of parameters; a place has names and the start of a call."""
    # Estimators with scikit-learn's parameters have its names instead of ours.
    known = [*row.ours.split(), *row.names("sklearn")] if row.ours else []
    for names, call in places:
        for ours in known:
            if ours in names:
                note = f" {row.note}" if row.note else ""
                return f"{name} is called {ours} here: use {call}{ours}=...).{note}"
    if row.ours:
        return f"{without} {name}: leave it out."
    return f"{without} {name}. {row.note}"


def attribute_suggestion(name: str, owner: str) -> str | None:
    """Return the answer to an attribute of other libraries' models; None for other names.

    Examples
    --------
    >>> attribute_answer("save_model", "Predictor")
    'Predictor has no save_model. Use save(path).'
    """
    answer = _ATTRIBUTES.get(name)
    return None if answer is None else f"{owner} has no {name}. {answer}"


def module_suggestion(name: str) -> str | None:
    """Return the answer to a name of other libraries' modules; None for other names."""
    answer = _MODULE.get(name)
    return None if answer is None else f"arboost has no {name}. {answer}"


def metric_name(name: str) -> str | None:
    """Return the name here of a metric of any library, in any case; None for an unknown name.

    Examples
    --------
    >>> metric_name("AUC"), metric_name("neg_log_loss"), metric_name("ndcg")
    ('auc', 'log_loss', None)
    """
    return _metric_names().get(_plain(name))


def is_metric(name: str) -> bool:
    """Whether a name is that of a metric, or of a loss, which is a metric of its own fits."""
    return metric_name(name) is not None or name in {row.ours for row in LOSSES if row.ours}


def metric_suggestion(name: str, allowed: Sequence[str] = ()) -> str:
    """Return the answer to the unknown name of a metric, to follow a colon.

    Parameters
    ----------
    name : str
    allowed : sequence of str
        Names of the metrics that are allowed; all metrics where it is empty.
    """
    allowed = allowed or [row.ours for row in METRICS if row.ours]
    row = _rows(METRICS).get(name.partition("@")[0].partition(":")[0])
    if row is not None and not row.ours:
        return f"there is no such metric. {row.note}"
    found = closest_name(name, allowed)
    if found is not None:
        return f'there is no such metric. Did you mean "{found}"?'
    return (
        f"there is no such metric. Use one of {', '.join(allowed)}, a function of (y, score, "
        "weight), or an arboost.Metric."
    )


def loss_suggestion(name: str, allowed: Sequence[str]) -> str:
    """Return the answer to the unknown name of a loss, to follow a colon.

    Examples
    --------
    >>> loss_answer("reg:gamma", ["squared_error", "gamma"])
    'it is called "gamma" here.'
    """
    rows = _rows(LOSSES)
    plain = {_plain(one): row for one, row in rows.items()}
    row = rows.get(name) or rows.get(name.partition(":")[0]) or plain.get(_plain(name))
    if row is None:
        found = closest_name(name, allowed)
        meant = "" if found is None else f' Did you mean "{found}"?'
        return f"there is no such loss.{meant}"
    if not row.ours:
        return f"there is no such loss. {row.note}"
    called = "it" if row.ours == name else f'it is called "{row.ours}" here, and'
    if row.ours in allowed:
        return f'it is called "{row.ours}" here. {row.note}'.rstrip()
    kind = "classifier" if row.ours in ("log_loss", "exponential") else "regressor"
    return f"{called} is a loss of a {kind}."


def value_suggestion(parameter: str, value: str, options: Sequence[str]) -> str:
    """Return the answer to an unknown value of a parameter, "" where there is none."""
    ours = (VALUES | SKLEARN_VALUES).get((parameter, value))
    if ours is not None and ours in options:
        return f'"{value}" is called "{ours}" here.'
    found = closest_name(value, options)
    return "" if found is None else f'did you mean "{found}"?'


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the most similar of the known names, or None."""
    lower = {one.lower(): one for one in reversed(list(known))}
    found = get_close_matches(name.lower(), lower, 1, _SIMILARITY)
    return lower[found[0]] if found else None


def _plain(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return "".join(one for one in name.lower() if one.isalnum())


@cache
def _rows(rows: tuple[Row, ...]) -> dict[str, Row]:
    return by_name(rows)


@cache
def _metric_names() -> dict[str, str]:
    """Return the names of metrics here, by the plain names of all libraries; ours come first."""
    own = {_plain(row.ours): row.ours for row in METRICS if row.ours}
    aliases = {_plain(name): row.ours for name, row in _rows(METRICS).items() if row.ours}
    return aliases | own
