"""The reference pages and the public names of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import arboost

SHARED = "estimators"  # page of the methods that many estimators have
SHARED_PREFIXES = {
    "EngineEstimator": "estimator",
    "ClassifierMethods": "classifier",
    "BoostedClassifierMethods": "boosted_classifier",
    "EnsembleMethods": "ensemble",
}


@dataclass(frozen=True)
class Page:
    """A page: file name, title, first sentence, public names or modules, names of results."""

    name: str
    title: str
    text: str
    names: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    has_results: bool = False

    def objects(self) -> list[Any]:
        """Return the public classes and functions that exist."""
        return [getattr(arboost, name) for name in self.names if name in arboost.__all__]


def _pair(name: str) -> tuple[str, str]:
    return f"{name}Classifier", f"{name}Regressor"


PAGES = (
    Page(
        "gradient_boosting",
        "Gradient boosting",
        "Boosters of trees, in Friedman's and in XGBoost's form. Theory: "
        "[Gradient boosting](../theory/gradient_boosting.md), "
        "[rankings](../theory/lambdamart.md).",
        (*_pair("GradientBoosting"), "GradientBoostingRanker"),
    ),
    Page(
        "adaboost",
        "AdaBoost",
        "Boosting by row weights. Theory: [AdaBoost](../theory/adaboost.md).",
        _pair("AdaBoost"),
    ),
    Page(
        "forests",
        "Forests",
        "Random forests and extra trees. Theory: [Trees and forests](../theory/forests.md).",
        (*_pair("RandomForest"), *_pair("ExtraTrees")),
    ),
    Page(
        "decision_trees",
        "Decision trees",
        "Single trees. Theory: [Trees and forests](../theory/forests.md).",
        _pair("DecisionTree"),
    ),
    Page(
        "bagging",
        "Bagging",
        "Bags of any estimator. Theory: [Bagging](../theory/bagging.md).",
        _pair("Bagging"),
    ),
    Page(
        "stacking",
        "Stacking and voting",
        "Ensembles of different estimators. Theory: [Stacking and voting](../theory/stacking.md).",
        (*_pair("Stacking"), *_pair("Voting")),
    ),
    Page(
        "models",
        "Fitted models",
        "Models without the estimator that trained them: the attribute `model_`, and the result "
        "of `arboost.load`. Use: [Save and load](../tasks/saving.md), "
        "[Serve a model](../tasks/serving.md).",
        ("load", "Predictor", "EnsemblePredictor"),
        has_results=True,
    ),
    Page(
        "data",
        "Tables",
        "Tables that are binned once, files of rows, and descriptions of tables. Use: "
        "[Any table](../tasks/tables.md).",
        ("Dataset", "TableFiles", "describe"),
        results=("ColumnDescription",),
        has_results=True,
    ),
    Page(
        "training",
        "Training",
        "Cross-validation, rounds, checkpoints, and losses and metrics of one's own. Use: "
        "[Train, stop, continue](../tasks/training.md).",
        ("cv", "Round", "Checkpoint", "CustomLoss", "Metric", "rank_metrics"),
    ),
    Page(
        "selection",
        "Comparison and tuning",
        "Ensembles on the same folds, and searches for parameters. Use: "
        "[Choose a model](../tasks/choosing_a_model.md), [Tune](../tasks/tuning.md).",
        ("compare", "Comparison", "tune", "Tuning", "infer_task"),
        has_results=True,
    ),
    Page(
        "explanations",
        "Explanations",
        "Importances, partial dependence and proofs of monotonicity; SHAP values are methods of "
        "models. Use: [Explain a model](../tasks/explaining.md).",
        (
            "permutation_importances",
            "PartialDependence",
            "Grid",
            "MonotoneProof",
            "CounterExample",
        ),
    ),
    Page(
        "report",
        "Reports",
        "One HTML page about a model and rows, and scores alone. Use: "
        "[Reports](../tasks/reports.md).",
        ("Report", "Evaluation"),
        results=("ScoreResult", "ClassResult"),
        has_results=True,
    ),
    Page(
        "errors",
        "Errors and warnings",
        "Exceptions and warnings of the library; wrong arguments are TypeError and ValueError.",
        (
            "SchemaError",
            "ModelFormatError",
            "DeviceError",
            "MissingPackageError",
            "WorkerError",
            "DataWarning",
        ),
    ),
)
OTHERS = Page("others", "Other names", "Further public names.")
MODULES = (
    Page(
        "plots",
        "Plots",
        "Functions that draw with matplotlib. Pictures: [Plots](../tasks/plots.md).",
        modules=("arboost.plots",),
    ),
    Page(
        "clusters",
        "Clusters",
        "Training and prediction on clusters. Use: [Clusters](../tasks/clusters.md).",
        modules=("arboost.dask", "arboost.ray", "arboost.spark"),
    ),
    Page(
        "compat_sklearn",
        "scikit-learn's names",
        "Classes with the names, signatures and defaults of scikit-learn. Parameters have "
        "scikit-learn's meanings; methods are those of the estimators of arboost. Use: "
        "[scikit-learn's names](../tasks/compat_sklearn.md).",
        modules=("arboost.compat.sklearn",),
    ),
)
# Order of the navigation, by part of the index page; "metrics" is a page of docs/reference.
INDEX = {
    "Estimators": [
        "gradient_boosting",
        "adaboost",
        "forests",
        "decision_trees",
        "bagging",
        "stacking",
        SHARED,
    ],
    "Models": ["models", "explanations", "plots", "report"],
    "Training": ["data", "training", "losses", "metrics", "selection"],
    "Command line, clusters, other names": ["command_line", "clusters", "compat_sklearn"],
    "Errors": ["errors", "others"],
}
