"""Plots of models: importances, curves, calibration, residuals, SHAP values, partial dependence.

Each function draws on the given axes, or on new ones, and returns them, so that titles, limits and
colours can be changed. Models are fitted estimators or loaded models. matplotlib is needed by plots
only, and imported when one is drawn.
"""

from arboost.pictures.plots.adaboost import plot_bound, plot_margins
from arboost.pictures.plots.calibration import plot_calibration
from arboost.pictures.plots.importances import plot_importances
from arboost.pictures.plots.learning_curves import plot_learning_curves
from arboost.pictures.plots.partial_dependence import plot_partial_dependence
from arboost.pictures.plots.residuals import plot_residuals
from arboost.pictures.plots.shap_summary import plot_shap_summary
from arboost.pictures.plots.shap_waterfall import plot_shap_waterfall

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
