"""scikit-learn's ensembles and trees on arboost's engine: changing the import line is enough.

Names, signatures and defaults are scikit-learn's. Trees, and ensembles whose `estimators_` are
trees, are registered as virtual subclasses of scikit-learn's classes, so that tools which ask for
these take them.
"""

from __future__ import annotations

import sklearn.ensemble
import sklearn.tree
from sklearn.tree import export_graphviz, export_text, plot_tree

from arboost import StackingClassifier, StackingRegressor, VotingClassifier, VotingRegressor
from arboost.compat.sklearn.ensembles import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from arboost.compat.sklearn.gradient_boosting import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
)
from arboost.compat.sklearn.hist_gradient_boosting import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

__all__ = [
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "StackingClassifier",
    "StackingRegressor",
    "VotingClassifier",
    "VotingRegressor",
    "export_graphviz",
    "export_text",
    "plot_tree",
]

# plot_tree, export_text, shap and others check for scikit-learn's own classes before they read
# `tree_`.
_WITH_TREES = ("DecisionTree", "ExtraTree", "ExtraTrees", "RandomForest", "GradientBoosting")
for _name in (name + kind for name in _WITH_TREES for kind in ("Classifier", "Regressor")):
    _module = sklearn.tree if hasattr(sklearn.tree, _name) else sklearn.ensemble
    getattr(_module, _name).register(globals()[_name])
