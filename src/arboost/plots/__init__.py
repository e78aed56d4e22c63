"""Plots of models: importances, curves, calibration, residuals, SHAP values, partial dependence.

Each function draws on the given axes, or on new ones, and returns them, so that titles, limits and
colours can be changed. Models are fitted estimators or loaded models. matplotlib is needed by plots
only, and imported when one is drawn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from arboost.plots.explanations import (
        plot_importances,
        plot_partial_dependence,
        plot_shap_summary,
        plot_shap_waterfall,
    )
    from arboost.plots.predictions import plot_calibration, plot_residuals
    from arboost.plots.training import plot_bound, plot_learning_curves, plot_margins

__all__ = [
    "plot_bound",
    "plot_calibration",
    "plot_importances",
    "plot_learning_curves",
    "plot_margins",
    "plot_partial_dependence",
    "plot_residuals",
    "plot_shap_summary",
    "plot_shap_waterfall",
]

_CHAPTERS = ("explanations", "predictions", "training")  # of the plots


def __getattr__(name: str) -> object:
    if name in __all__:
        for chapter in _CHAPTERS:
            module = import_module(f"{__name__}.{chapter}")
            globals().update({key: getattr(module, key) for key in __all__ if hasattr(module, key)})
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
