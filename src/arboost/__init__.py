"""One fast tree engine with every classic ensemble on top of it.

Public names are imported on first use: ``import arboost`` alone imports no dependency, and
``arboost.load`` never imports scikit-learn.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arboost import plots
    from arboost.algorithms.adaboost.classifier import AdaBoostClassifier
    from arboost.algorithms.adaboost.regressor import AdaBoostRegressor
    from arboost.algorithms.bagging.bagging import BaggingClassifier, BaggingRegressor
    from arboost.algorithms.cross_validation import cv
    from arboost.algorithms.forests.decision_tree import (
        DecisionTreeClassifier,
        DecisionTreeRegressor,
    )
    from arboost.algorithms.forests.extra_trees import ExtraTreesClassifier, ExtraTreesRegressor
    from arboost.algorithms.forests.random_forest import (
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from arboost.algorithms.gradient_boosting.classifier import GradientBoostingClassifier
    from arboost.algorithms.gradient_boosting.regressor import GradientBoostingRegressor
    from arboost.algorithms.stacking.stacking import StackingClassifier, StackingRegressor
    from arboost.algorithms.stacking.voting import VotingClassifier, VotingRegressor
    from arboost.data.dataset import Dataset
    from arboost.ensemble_predictor import EnsemblePredictor
    from arboost.errors import (
        DataWarning,
        DeviceError,
        MissingPackageError,
        ModelFormatError,
        SchemaError,
        WorkerError,
    )
    from arboost.explain.grids import Grid
    from arboost.explain.monotone import CounterExample, MonotoneProof
    from arboost.explain.partial_dependence import PartialDependence
    from arboost.explain.permutation import permutation_importances
    from arboost.losses import CustomLoss
    from arboost.losses.metrics import Metric
    from arboost.model_selection.compare import compare
    from arboost.model_selection.comparison import Comparison
    from arboost.model_selection.tune import tune
    from arboost.model_selection.tuning import Tuning
    from arboost.pictures.description import describe
    from arboost.predictor import Predictor, load
    from arboost.report.report import Report
    from arboost.training.checkpoint import Checkpoint
    from arboost.training.monitor import Round

__all__ = [
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
    "Checkpoint",
    "Comparison",
    "CounterExample",
    "CustomLoss",
    "DataWarning",
    "Dataset",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "DeviceError",
    "EnsemblePredictor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "Grid",
    "Metric",
    "MissingPackageError",
    "ModelFormatError",
    "MonotoneProof",
    "PartialDependence",
    "Predictor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "Report",
    "Round",
    "SchemaError",
    "StackingClassifier",
    "StackingRegressor",
    "Tuning",
    "VotingClassifier",
    "VotingRegressor",
    "WorkerError",
    "__version__",
    "compare",
    "cv",
    "describe",
    "load",
    "permutation_importances",
    "plots",
    "tune",
]

_MODULES = {
    "AdaBoostClassifier": "arboost.algorithms.adaboost.classifier",
    "AdaBoostRegressor": "arboost.algorithms.adaboost.regressor",
    "BaggingClassifier": "arboost.algorithms.bagging.bagging",
    "BaggingRegressor": "arboost.algorithms.bagging.bagging",
    "Checkpoint": "arboost.training.checkpoint",
    "Comparison": "arboost.model_selection.comparison",
    "CounterExample": "arboost.explain.monotone",
    "CustomLoss": "arboost.losses",
    "DataWarning": "arboost.errors",
    "Dataset": "arboost.data.dataset",
    "DecisionTreeClassifier": "arboost.algorithms.forests.decision_tree",
    "DecisionTreeRegressor": "arboost.algorithms.forests.decision_tree",
    "DeviceError": "arboost.errors",
    "EnsemblePredictor": "arboost.ensemble_predictor",
    "ExtraTreesClassifier": "arboost.algorithms.forests.extra_trees",
    "ExtraTreesRegressor": "arboost.algorithms.forests.extra_trees",
    "GradientBoostingClassifier": "arboost.algorithms.gradient_boosting.classifier",
    "GradientBoostingRegressor": "arboost.algorithms.gradient_boosting.regressor",
    "Grid": "arboost.explain.grids",
    "Metric": "arboost.losses.metrics",
    "MissingPackageError": "arboost.errors",
    "ModelFormatError": "arboost.errors",
    "MonotoneProof": "arboost.explain.monotone",
    "PartialDependence": "arboost.explain.partial_dependence",
    "Predictor": "arboost.predictor",
    "RandomForestClassifier": "arboost.algorithms.forests.random_forest",
    "RandomForestRegressor": "arboost.algorithms.forests.random_forest",
    "Report": "arboost.report.report",
    "Round": "arboost.training.monitor",
    "SchemaError": "arboost.errors",
    "StackingClassifier": "arboost.algorithms.stacking.stacking",
    "StackingRegressor": "arboost.algorithms.stacking.stacking",
    "Tuning": "arboost.model_selection.tuning",
    "VotingClassifier": "arboost.algorithms.stacking.voting",
    "VotingRegressor": "arboost.algorithms.stacking.voting",
    "WorkerError": "arboost.errors",
    "compare": "arboost.model_selection.compare",
    "cv": "arboost.algorithms.cross_validation",
    "describe": "arboost.pictures.description",
    "load": "arboost.predictor",
    "permutation_importances": "arboost.explain.permutation",
    "tune": "arboost.model_selection.tune",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = import_module("arboost._core").version()
    elif name == "plots":
        value = import_module("arboost.plots")
    elif name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
    else:
        from arboost.names.answers import module_answer

        message = module_answer(name) or f"module {__name__!r} has no attribute {name!r}"
        # From the two arguments, Python's tracebacks suggest the closest name.
        raise AttributeError(message, name=name, obj=sys.modules[__name__])
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
