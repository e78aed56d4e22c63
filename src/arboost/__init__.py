"""Gradient boosting, AdaBoost and random forests on one fast C++ engine.

Public names are imported on first use: ``import arboost`` alone imports no dependency, and
``arboost.load`` never imports scikit-learn.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arboost import plots
    from arboost.data.dataset import Dataset
    from arboost.data.description import describe
    from arboost.data.table_files import TableFiles
    from arboost.errors import (
        DataWarning,
        DeviceError,
        MissingPackageError,
        ModelFormatError,
        SchemaError,
        WorkerError,
    )
    from arboost.estimators.adaboost.adaboost import AdaBoostClassifier, AdaBoostRegressor
    from arboost.estimators.bagging import BaggingClassifier, BaggingRegressor
    from arboost.estimators.cross_validation import cv
    from arboost.estimators.decision_tree import DecisionTreeClassifier, DecisionTreeRegressor
    from arboost.estimators.folds import infer_task
    from arboost.estimators.forests import (
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from arboost.estimators.gradient_boosting import (
        GradientBoostingClassifier,
        GradientBoostingRegressor,
    )
    from arboost.estimators.ranker import GradientBoostingRanker
    from arboost.estimators.stacking import StackingClassifier, StackingRegressor
    from arboost.estimators.voting import VotingClassifier, VotingRegressor
    from arboost.losses.losses import CustomLoss
    from arboost.losses.metrics import Metric
    from arboost.losses.ranking import rank_metrics
    from arboost.models.ensemble import EnsemblePredictor
    from arboost.models.importances import permutation_importances
    from arboost.models.monotone import CounterExample, MonotoneProof
    from arboost.models.partial_dependence import Grid, PartialDependence
    from arboost.models.predictor import Predictor, load
    from arboost.report.evaluation import Evaluation
    from arboost.report.report import Report
    from arboost.selection.compare import compare
    from arboost.selection.comparison import Comparison
    from arboost.selection.tune import Tuning, tune
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
    "Evaluation",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRanker",
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
    "TableFiles",
    "Tuning",
    "VotingClassifier",
    "VotingRegressor",
    "WorkerError",
    "__version__",
    "compare",
    "cv",
    "describe",
    "infer_task",
    "load",
    "permutation_importances",
    "plots",
    "rank_metrics",
    "tune",
]

_MODULES = {  # of the public names
    name: f"arboost.{module}"
    for module, names in {
        "data.dataset": "Dataset",
        "data.description": "describe",
        "data.table_files": "TableFiles",
        "errors": "DataWarning DeviceError MissingPackageError ModelFormatError SchemaError "
        "WorkerError",
        "estimators.adaboost.adaboost": "AdaBoostClassifier AdaBoostRegressor",
        "estimators.bagging": "BaggingClassifier BaggingRegressor",
        "estimators.cross_validation": "cv",
        "estimators.decision_tree": "DecisionTreeClassifier DecisionTreeRegressor",
        "estimators.folds": "infer_task",
        "estimators.forests": "ExtraTreesClassifier ExtraTreesRegressor RandomForestClassifier "
        "RandomForestRegressor",
        "estimators.gradient_boosting": "GradientBoostingClassifier GradientBoostingRegressor",
        "estimators.ranker": "GradientBoostingRanker",
        "estimators.stacking": "StackingClassifier StackingRegressor",
        "estimators.voting": "VotingClassifier VotingRegressor",
        "losses": "CustomLoss",
        "losses.metrics": "Metric",
        "losses.ranking": "rank_metrics",
        "models.ensemble": "EnsemblePredictor",
        "models.importances": "permutation_importances",
        "models.monotone": "CounterExample MonotoneProof",
        "models.partial_dependence": "Grid PartialDependence",
        "models.predictor": "Predictor load",
        "report.evaluation": "Evaluation",
        "report.report": "Report",
        "selection.compare": "compare",
        "selection.comparison": "Comparison",
        "selection.tune": "Tuning tune",
        "training.checkpoint": "Checkpoint",
        "training.monitor": "Round",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        value: object = import_module("arboost._core").version()
    elif name == "plots":
        value = import_module("arboost.plots")
    elif name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
    else:
        from arboost.params.suggestions import module_suggestion

        message = module_suggestion(name) or f"module {__name__!r} has no attribute {name!r}"
        # From the two arguments, Python's tracebacks suggest the closest name.
        raise AttributeError(message, name=name, obj=sys.modules[__name__])
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
