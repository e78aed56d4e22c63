"""One fast tree engine with every classic ensemble on top of it.

Names are imported when they are first used: ``import arboost`` alone loads nothing, and
``arboost.load`` never loads scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arboost.algorithms.gradient_boosting import (
        GradientBoostingClassifier,
        GradientBoostingRegressor,
    )
    from arboost.binning import Dataset
    from arboost.errors import DataWarning, DeviceError, ModelFileError, SchemaError
    from arboost.serve import Predictor, load

__all__ = [
    "DataWarning",
    "Dataset",
    "DeviceError",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "ModelFileError",
    "Predictor",
    "SchemaError",
    "__version__",
    "load",
]

_HOMES = {
    "DataWarning": "arboost.errors",
    "Dataset": "arboost.binning",
    "DeviceError": "arboost.errors",
    "GradientBoostingClassifier": "arboost.algorithms.gradient_boosting",
    "GradientBoostingRegressor": "arboost.algorithms.gradient_boosting",
    "ModelFileError": "arboost.errors",
    "Predictor": "arboost.serve",
    "SchemaError": "arboost.errors",
    "load": "arboost.serve",
}


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        value: object = version("arboost")
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
