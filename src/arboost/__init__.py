"""One fast tree engine with every classic ensemble on top of it.

Names are imported when they are first used: ``import arboost`` alone loads nothing, and
``arboost.load`` never loads scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arboost import plots
    from arboost.algorithms.adaboost_classifier import AdaBoostClassifier
    from arboost.algorithms.adaboost_regressor import AdaBoostRegressor
    from arboost.algorithms.bagging_classifier import BaggingClassifier
    from arboost.algorithms.bagging_regressor import BaggingRegressor
    from arboost.algorithms.cross_validation import cv
    from arboost.algorithms.decision_tree_classifier import DecisionTreeClassifier
    from arboost.algorithms.decision_tree_regressor import DecisionTreeRegressor
    from arboost.algorithms.extra_trees_classifier import ExtraTreesClassifier
    from arboost.algorithms.extra_trees_regressor import ExtraTreesRegressor
    from arboost.algorithms.gradient_boosting_classifier import GradientBoostingClassifier
    from arboost.algorithms.gradient_boosting_regressor import GradientBoostingRegressor
    from arboost.algorithms.random_forest_classifier import RandomForestClassifier
    from arboost.algorithms.random_forest_regressor import RandomForestRegressor
    from arboost.algorithms.stacking_classifier import StackingClassifier
    from arboost.algorithms.stacking_regressor import StackingRegressor
    from arboost.algorithms.voting_classifier import VotingClassifier
    from arboost.algorithms.voting_regressor import VotingRegressor
    from arboost.binning import Dataset
    from arboost.checkpoint import Checkpoint
    from arboost.errors import DataWarning, DeviceError, ModelFormatError, SchemaError
    from arboost.grids import Grid
    from arboost.losses import CustomLoss
    from arboost.metrics import Metric
    from arboost.monitor import Round
    from arboost.partial_dependence import PartialDependence
    from arboost.permutation import permutation_importances
    from arboost.serve import Predictor, load
    from arboost.verify import CounterExample, MonotoneProof

__all__ = [
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
    "Checkpoint",
    "CounterExample",
    "CustomLoss",
    "DataWarning",
    "Dataset",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "DeviceError",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "Grid",
    "Metric",
    "ModelFormatError",
    "MonotoneProof",
    "PartialDependence",
    "Predictor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "Round",
    "SchemaError",
    "StackingClassifier",
    "StackingRegressor",
    "VotingClassifier",
    "VotingRegressor",
    "__version__",
    "cv",
    "load",
    "permutation_importances",
    "plots",
]

_HOMES = {
    "AdaBoostClassifier": "arboost.algorithms.adaboost_classifier",
    "AdaBoostRegressor": "arboost.algorithms.adaboost_regressor",
    "BaggingClassifier": "arboost.algorithms.bagging_classifier",
    "BaggingRegressor": "arboost.algorithms.bagging_regressor",
    "Checkpoint": "arboost.checkpoint",
    "CounterExample": "arboost.verify",
    "CustomLoss": "arboost.losses",
    "DataWarning": "arboost.errors",
    "Dataset": "arboost.binning",
    "DecisionTreeClassifier": "arboost.algorithms.decision_tree_classifier",
    "DecisionTreeRegressor": "arboost.algorithms.decision_tree_regressor",
    "DeviceError": "arboost.errors",
    "ExtraTreesClassifier": "arboost.algorithms.extra_trees_classifier",
    "ExtraTreesRegressor": "arboost.algorithms.extra_trees_regressor",
    "GradientBoostingClassifier": "arboost.algorithms.gradient_boosting_classifier",
    "GradientBoostingRegressor": "arboost.algorithms.gradient_boosting_regressor",
    "Grid": "arboost.grids",
    "Metric": "arboost.metrics",
    "ModelFormatError": "arboost.errors",
    "MonotoneProof": "arboost.verify",
    "PartialDependence": "arboost.partial_dependence",
    "Predictor": "arboost.serve",
    "RandomForestClassifier": "arboost.algorithms.random_forest_classifier",
    "RandomForestRegressor": "arboost.algorithms.random_forest_regressor",
    "Round": "arboost.monitor",
    "SchemaError": "arboost.errors",
    "StackingClassifier": "arboost.algorithms.stacking_classifier",
    "VotingClassifier": "arboost.algorithms.voting_classifier",
    "StackingRegressor": "arboost.algorithms.stacking_regressor",
    "VotingRegressor": "arboost.algorithms.voting_regressor",
    "cv": "arboost.algorithms.cross_validation",
    "load": "arboost.serve",
    "permutation_importances": "arboost.permutation",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("arboost")
    elif name == "plots":
        value = import_module("arboost.plots")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
