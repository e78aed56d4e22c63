"""Answers to unknown names: the name here, the way to the same end, or the closest spelling."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from functools import cache

from arboost.names.losses_and_metrics import LOSSES, METRICS
from arboost.names.parameters import PARAMETERS, SKLEARN_VALUES, VALUES
from arboost.names.row import Row, by_name
from arboost.names.run_parameters import PREDICTION

__all__ = [
    "argument_answer",
    "attribute_answer",
    "is_metric",
    "loss_answer",
    "metric_answer",
    "metric_name",
    "module_answer",
    "prediction_answer",
    "value_answer",
]

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


def argument_answer(
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
    found = _closest(name, [*own, *other, *rows])
    if found is None:
        return f"{owner} has no argument {name!r}. There are {', '.join(own)}."
    start = f"{owner} has no argument {name!r}. Did you mean {found}?"
    if found in own:
        return start
    return f"{start} {argument_answer(found, owner, own, other, in_fit=in_fit)}"


def prediction_answer(name: str, method: str, own: Collection[str]) -> str:
    """Return the answer to an unknown argument of a method of prediction.

    Examples
    --------
    >>> prediction_answer("ntree_limit", "predict", ["X", "rounds"])
    'ntree_limit is called rounds here: use predict(X, rounds=...).'
    """
    row = _rows(PREDICTION).get(name)
    if row is None:
        return argument_answer(name, method, own, ())
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


def attribute_answer(name: str, owner: str) -> str | None:
    """Return the answer to an attribute of other libraries' models; None for other names.

    Examples
    --------
    >>> attribute_answer("save_model", "Predictor")
    'Predictor has no save_model. Use save(path).'
    """
    answer = _ATTRIBUTES.get(name)
    return None if answer is None else f"{owner} has no {name}. {answer}"


def module_answer(name: str) -> str | None:
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


def metric_answer(name: str, allowed: Sequence[str] = ()) -> str:
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
    found = _closest(name, allowed)
    if found is not None:
        return f'there is no such metric. Did you mean "{found}"?'
    return (
        f"there is no such metric. Use one of {', '.join(allowed)}, a function of (y, score, "
        "weight), or an arboost.Metric."
    )


def loss_answer(name: str, allowed: Sequence[str]) -> str:
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
        found = _closest(name, allowed)
        meant = "" if found is None else f' Did you mean "{found}"?'
        return f"there is no such loss.{meant}"
    if not row.ours:
        return f"there is no such loss. {row.note}"
    called = "it" if row.ours == name else f'it is called "{row.ours}" here, and'
    if row.ours in allowed:
        return f'it is called "{row.ours}" here. {row.note}'.rstrip()
    kind = "classifier" if row.ours in ("log_loss", "exponential") else "regressor"
    return f"{called} is a loss of a {kind}."


def value_answer(parameter: str, value: str, options: Sequence[str]) -> str:
    """Return the answer to an unknown value of a parameter, "" where there is none."""
    ours = (VALUES | SKLEARN_VALUES).get((parameter, value))
    if ours is not None and ours in options:
        return f'"{value}" is called "{ours}" here.'
    found = _closest(value, options)
    return "" if found is None else f'did you mean "{found}"?'


def _closest(name: str, known: Iterable[str]) -> str | None:
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
