"""Names of models on the command line -> estimators, and the declarations of their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arboost.params.kinds import Param

TASKS = ("classification", "regression")


@dataclass(frozen=True)
class ModelKind:
    """A model of the command line.

    Attributes
    ----------
    name : str
        Name on the command line.
    prefix : str
        Name of the estimators, without "Classifier" or "Regressor".
    module : str
        Module of ``arboost.params`` with the declarations.
    tables : tuple of str
        Names of the declarations of classifier and regressor there.
    text : str
        One line of help.
    """

    name: str
    prefix: str
    module: str
    tables: tuple[str, str]
    text: str

    def class_name(self, task: str) -> str:
        """Return the public name of the estimator of a task."""
        return self.prefix + ("Classifier" if task == TASKS[0] else "Regressor")


def _kind(name: str, module: str, table: str, text: str) -> ModelKind:
    prefix = "".join(word.title() for word in name.split("_")).replace("Adaboost", "AdaBoost")
    tables = (f"{table}_CLASSIFIER", f"{table}_REGRESSOR")
    return ModelKind(name, prefix, module, tables, text)


MODELS = {
    kind.name: kind
    for kind in (
        _kind("gradient_boosting", "boosting", "BOOSTED", "boosted trees, rounds found by itself"),
        _kind("adaboost", "adaboost", "ADABOOST", "reweighted rows, weighted vote of trees"),
        _kind("random_forest", "forest", "RANDOM_FOREST", "mean of trees on bootstrap samples"),
        _kind("extra_trees", "forest", "EXTRA_TREES", "mean of trees with random thresholds"),
        _kind("decision_tree", "forest", "TREE", "one tree"),
        _kind("bagging", "ensembles", "BAGGING", "members on bootstrap samples"),
        _kind("stacking", "ensembles", "STACKING", "a linear model over the members' predictions"),
        _kind("voting", "ensembles", "VOTING", "mean or vote of the members"),
    )
}
# Members of stacks and votes unless `estimators` names others.
_MEMBERS = ("gradient_boosting", "random_forest", "extra_trees")


def declarations(model: str, task: str) -> dict[str, Param]:
    """Return the declarations of the parameters of a model, by name."""
    kind = MODELS[model]
    module = import_module(f"arboost.params.{kind.module}")
    table: dict[str, Param] = getattr(module, kind.tables[TASKS.index(task)])
    return table


def all_declarations() -> dict[str, Param]:
    """Return the declarations of all models by name; the first model's where several have it."""
    found: dict[str, Param] = {}
    for model in MODELS:
        for task in TASKS:
            found = declarations(model, task) | found
    return found


def new_estimator(model: str, task: str, params: Mapping[str, Any]) -> Any:
    """Return an estimator; members of ensembles may be names of models.

    Members get the `n_jobs`, and those of stacks and votes the `random_state`, of the ensemble.

    Parameters
    ----------
    model : str
        One of `MODELS`.
    task : {"classification", "regression"}
    params : mapping of str to object
        Estimators among them are names of `MODELS`.
    """
    import arboost

    values = dict(params)
    passed_on: tuple[str, ...] = ("n_jobs", "random_state")
    shared = {name: values[name] for name in passed_on if name in values}
    if model in ("stacking", "voting"):
        if model == "voting":
            values.pop("random_state", None)
            if task == TASKS[0]:
                values.setdefault("voting", "soft")
        names = values.pop("estimators", _MEMBERS)
        names = [names] if isinstance(names, str) else names
        values["estimators"] = [(name, _member(name, task, shared)) for name in names]
    for name in ("estimator", "final_estimator"):
        if isinstance(values.get(name), str):
            values[name] = _member(values[name], task, shared)
    estimator = getattr(arboost, MODELS[model].class_name(task))
    return estimator(**values)


def _member(name: str, task: str, shared: Mapping[str, Any]) -> Any:
    known = declarations(name, task)
    return new_estimator(name, task, {key: one for key, one in shared.items() if key in known})
