"""Tables of parameters from their declarations, one table a group."""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from arboost.params import adaboost, boosting, forest
from arboost.params import boosting as shared
from arboost.params.kinds import Param
from docs_site.markdown import escaped, literal, sentence, table

OWN = "Main parameters"
# The first table that has a name decides on its group; names of none are the estimator's own.
GROUPS: list[tuple[str, Collection[str]]] = [
    ("Boosting rounds", {**boosting._BOOSTING, **adaboost._COMMON}),
    ("Split search", boosting._SPLITS),
    ("Trees", boosting._TREES),
    ("Categories", shared.LEVELS),
    ("Columns", shared.COLUMNS),
    ("Trees", forest._TREE),
    ("Sampling", ["bootstrap", "bootstrap_features", "resample", *boosting._SAMPLING]),
    ("Sampling", ["max_samples", "oob_score"]),
    ("Dropout", boosting._DROPOUT),
    ("Validation and early stopping", {**shared.VALIDATION, **boosting._STOPPING}),
    ("Run", ["device", *shared.RUN]),
]
ROUNDS = ("GradientBoosting", "AdaBoost")  # estimators whose n_estimators are rounds


def group_of(name: str, cls: type) -> str:
    """Return the group of a parameter of an estimator."""
    if name == "oob_score":
        return "Sampling"
    group = next((group for group, names in GROUPS if name in names), OWN)
    return OWN if group == "Boosting rounds" and not cls.__name__.startswith(ROUNDS) else group


def grouped(cls: type) -> dict[str, list[Param]]:
    """Return the parameters of an estimator by group, the estimator's own first."""
    declared: Mapping[str, Param] = cls._TABLE  # type: ignore[attr-defined]
    groups: dict[str, list[Param]] = {OWN: []}
    for name in inspect.signature(cls).parameters:
        groups.setdefault(group_of(name, cls), []).append(declared[name])
    order = list(dict.fromkeys([OWN, *(group for group, _ in GROUPS)]))
    return {group: groups[group] for group in order if groups.get(group)}


def default(param: Param) -> str:
    """Return the default as code; nothing for a parameter that must be given."""
    if param.default is inspect.Parameter.empty:
        return "required"
    value: Any = param.default
    return literal(f'"{value}"' if isinstance(value, str) else repr(value))


def parameter_table(params: list[Param]) -> str:
    """Return a table of parameters."""
    rows = [
        (
            f"{literal(param.name)} *{escaped(param.type_name)}*",
            default(param),
            sentence(param.allowed),
            sentence(param.text),
        )
        for param in params
    ]
    return table(("parameter", "default", "range", ""), rows, "parameters")


def parameter_tables(cls: type) -> Iterator[str]:
    """Yield the heading and the table of each group of an estimator."""
    for group, params in grouped(cls).items():
        yield f"**{group}**\n\n{parameter_table(params)}"
