"""Plots of models: importances, curves, calibration, residuals, SHAP values, partial dependence.

Each function draws on the given axes, or on new ones, and returns them, so that titles, limits and
colours can be changed. Models are fitted estimators or loaded models. matplotlib is needed by plots
only, and imported when one is drawn.
"""

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
