"""Checked parameter values, their form in model files, and records for the steps of a fit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from numbers import Integral
from typing import Any, Self

from arboost.errors import ParameterError
from arboost.params.auto import AUTO
from arboost.params.boosting import PARAMS, RANKING_LOSSES
from arboost.params.kinds import Param, is_number

# Public name of an estimator, without its task -> module and name of its table.
_TABLES = {
    "GradientBoosting": ("boosting", "BOOSTED"),
    "AdaBoost": ("adaboost", "ADABOOST"),
    "RandomForest": ("forest", "RANDOM_FOREST"),
    "ExtraTrees": ("forest", "EXTRA_TREES"),
    "DecisionTree": ("forest", "TREE"),
    "Bagging": ("ensembles", "BAGGING"),
    "Stacking": ("ensembles", "STACKING"),
    "Voting": ("ensembles", "VOTING"),
}


def declarations_of(estimator: str) -> dict[str, Param]:
    """Declarations of the parameters of an estimator by name; `estimator` is its public name.

    Examples
    --------
    >>> declarations_of("RandomForestRegressor")["n_estimators"].default
    100
    """
    prefix = re.sub("(Classifier|Regressor|Ranker)$", "", estimator)
    module, name = _TABLES[prefix]
    tables = import_module(f"arboost.params.{module}")
    table: dict[str, Param] = getattr(tables, f"{name}_{estimator.removeprefix(prefix).upper()}")
    return table


def check(values: Mapping[str, object], table: Mapping[str, Param] = PARAMS) -> dict[str, Any]:
    """The checked values of the parameters, in the form that training reads.

    Raises
    ------
    TypeError
        A value of the wrong type.
    ValueError
        A value out of range.

    Examples
    --------
    >>> check({"max_depth": None, "gamma": 1})
    {'max_depth': None, 'gamma': 1.0}
    """
    _check_names(values, table)
    return {name: table[name].check(value) for name, value in values.items()}


def _check_names(values: Mapping[str, object], table: Mapping[str, Param]) -> None:
    """Raise for misspelt names, before any number is looked at."""
    for name, value in values.items():
        if isinstance(value, str):
            table[name].check(value)
    metrics = values.get("eval_metric")
    for metric in metrics if isinstance(metrics, list | tuple) else [metrics]:
        if isinstance(metric, str):
            _check_metric(metric, values.get("loss"))


def _check_metric(metric: str, loss: object) -> None:
    """Raise ParameterError for an unknown name of a metric; the name of the loss is known."""
    from arboost.params.suggestions import is_metric, metric_suggestion, rank_metric_name

    if loss in RANKING_LOSSES and rank_metric_name(metric) is not None:
        return
    if not is_metric(metric) and metric != getattr(loss, "name", loss):
        raise ParameterError(
            f"eval_metric={metric!r} is not allowed: {metric_suggestion(metric)}",
            parameter="eval_metric",
        )


def record(values: Mapping[str, Any], table: Mapping[str, Param] = PARAMS) -> dict[str, Any]:
    """Checked values in the form of a model file: numbers, strings and lists of these.

    Examples
    --------
    >>> record({"gamma": 1.0, "eval_metric": [len]})
    {'gamma': 1.0, 'eval_metric': [{'custom': 'len'}]}
    """
    return {
        name: table[name].record(value)
        for name, value in values.items()
        if table[name].always_recorded or value != table[name].default
    }


USUAL_BINS = 255
_FEW_LEAVES = 256


@dataclass(frozen=True, kw_only=True)
class ParamRecord:
    """A record whose fields are parameters of the same names."""

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Self:
        """The record of an estimator's checked parameters.

        A field with a default is a parameter that not every estimator has.

        Examples
        --------
        >>> BinParams.of({"max_bins": 63, "tree_method": "hist", "bundling": True}).max_bins
        63
        """
        # `dataclasses.fields` would take a hundredth of a small fit.
        return cls(**{name: params[name] for name in cls.__dataclass_fields__ if name in params})


@dataclass(frozen=True, kw_only=True)
class BinParams(ParamRecord):
    """Parameters that bins and their storage depend on.

    Attributes
    ----------
    max_bins : int or "auto"
    few_leaves : bool
        Whether no tree has more than 256 leaves.
    """

    max_bins: int | str
    tree_method: str
    bundling: bool
    max_conflict_rate: float = 0.0
    device: str = "cpu"
    few_leaves: bool = False

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Self:
        """The record of an estimator's checked parameters."""
        return replace(super().of(params), few_leaves=_has_few_leaves(params))

    @property
    def sought_bins(self) -> int | str:
        """Number of bins; "auto" only where a tree may have more leaves than usual bins."""
        return USUAL_BINS if self.max_bins == AUTO and self.few_leaves else self.max_bins


def _has_few_leaves(params: Mapping[str, Any]) -> bool:
    depth: Any = params.get("max_depth")
    leaves: Any = params.get("max_leaf_nodes", params.get("max_leaves"))
    if is_number(leaves, Integral) and leaves <= _FEW_LEAVES:
        return True
    return is_number(depth, Integral) and bool(depth < _FEW_LEAVES.bit_length())


def sought_bins(params: Mapping[str, Any]) -> Any:
    """`BinParams.sought_bins` of parameters that are not checked; None without max_bins."""
    max_bins = params.get("max_bins")
    is_auto = isinstance(max_bins, str) and max_bins == AUTO
    return USUAL_BINS if is_auto and _has_few_leaves(params) else max_bins


@dataclass(frozen=True, kw_only=True)
class ValidationParams(ParamRecord):
    """Parameters that choose held-out rows among the training rows."""

    validation_split: str
    validation_fraction: float
    random_state: int


@dataclass(frozen=True, kw_only=True)
class StoppingParams(ParamRecord):
    """Parameters of the monitor of the training loop."""

    eval_metric: Any
    n_iter_no_change: int | None
    tol: float
    max_time: float | None
    verbose: int
