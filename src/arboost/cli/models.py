"""Names of models on the command line -> estimators, and the declarations of their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from arboost.params.kinds import Param


TASKS = ("classification", "regression")  # that a target tells
RANKING = "ranking"  # asked for by the column of queries
ENSEMBLES = ("bagging", "stacking", "voting")  # of whole models


@dataclass(frozen=True)
class ModelKind:
    """A model of the command line.

    Attributes
    ----------
    prefix : str
        Name of the estimators, without "Classifier", "Regressor" or "Ranker".
    text : str
        One line of help.
    tasks : tuple of str
        Tasks that have an estimator.
    """

    prefix: str
    text: str
    tasks: tuple[str, ...] = TASKS

    def class_name(self, task: str) -> str:
        """Public name of the estimator of a task."""
        if task == RANKING:
            return f"{self.prefix}Ranker"
        return self.prefix + ("Classifier" if task == TASKS[0] else "Regressor")


MODELS = {
    "gradient_boosting": ModelKind(
        "GradientBoosting", "boosted trees, rounds found by itself", (*TASKS, RANKING)
    ),
    "adaboost": ModelKind("AdaBoost", "reweighted rows, weighted vote of trees"),
    "random_forest": ModelKind("RandomForest", "mean of trees on bootstrap samples"),
    "extra_trees": ModelKind("ExtraTrees", "mean of trees with random thresholds"),
    "decision_tree": ModelKind("DecisionTree", "one tree"),
    "bagging": ModelKind("Bagging", "members on bootstrap samples"),
    "stacking": ModelKind("Stacking", "a linear model over the members' predictions"),
    "voting": ModelKind("Voting", "mean or vote of the members"),
}
# Members of stacks and votes unless `estimators` names others.
_MEMBERS = ("gradient_boosting", "random_forest", "extra_trees")


def declarations(model: str, task: str) -> dict[str, Param]:
    """Declarations of the parameters of a model, by name."""
    from arboost.params.records import declarations_of

    return declarations_of(MODELS[model].class_name(task))


def declared_anywhere() -> dict[str, Param]:
    """Declarations of all models by name; the first model's where several have it."""
    declared: dict[str, Param] = {}
    for model, kind in MODELS.items():
        for task in kind.tasks:
            declared = declarations(model, task) | declared
    return declared


def new_estimator(model: str, task: str, params: Mapping[str, Any]) -> Any:
    """Make an estimator; members of ensembles may be names of models.

    Members get the `n_jobs`, and those of stacks and votes the `random_state`, of the ensemble.

    Parameters
    ----------
    model : str
        One of `MODELS`.
    task : {"classification", "regression", "ranking"}
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
    return getattr(arboost, MODELS[model].class_name(task))(**values)


def _member(name: str, task: str, shared: Mapping[str, Any]) -> Any:
    known = declarations(name, task)
    return new_estimator(name, task, {key: shared[key] for key in shared if key in known})
