"""scikit-learn's ensembles and trees on arboost's engine: changing the import line is enough.

Names, signatures and defaults are scikit-learn's. Classes are registered as virtual subclasses of
those of scikit-learn, so that tools which ask for its classes take them.
"""

from __future__ import annotations

import sklearn.ensemble
import sklearn.tree
from sklearn.tree import export_graphviz, export_text, plot_tree

from arboost.algorithms.stacking.stacking import StackingClassifier, StackingRegressor
from arboost.algorithms.stacking.voting import VotingClassifier, VotingRegressor
from arboost.compat.sklearn.ensembles import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
)
from arboost.compat.sklearn.forests import (
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
from arboost.compat.sklearn.trees import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
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

# plot_tree, export_text, shap and others ask for scikit-learn's classes.
for _name in __all__:
    for _module in (sklearn.ensemble, sklearn.tree):
        if isinstance(getattr(_module, _name, None), type):
            getattr(_module, _name).register(globals()[_name])
