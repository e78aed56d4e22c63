"""Draw the pictures of docs/tasks/plots.md: python docs/images/make_plots.py [folder].

The same versions of the libraries give the same files.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split

from arboost import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
    plots,
)


def draw() -> dict[str, Any]:
    """Return the axes of each picture, drawn as on the page."""
    data = load_diabetes(as_frame=True, scaled=False)
    X = data.data.assign(sex=data.data["sex"].map({1: "a", 2: "b"}))
    X_train, X_test, y_train, y_test = train_test_split(X, data.target, random_state=0)
    model = GradientBoostingRegressor(n_estimators=300, learning_rate=0.05, n_iter_no_change=20)
    sets = [(X_train, y_train), (X_test, y_test)]
    model.fit(X_train, y_train, eval_set=sets, eval_names=["train", "validation"])
    forest = RandomForestRegressor(300, quantiles=True, random_state=0, verbose=0)
    forest.fit(X_train, y_train)

    data = load_breast_cancer(as_frame=True)
    labels = data.target_names[data.target]
    rows = train_test_split(data.data, labels, random_state=0)
    classifier = GradientBoostingClassifier(n_estimators=100).fit(rows[0], rows[2])
    return {
        "importances": plots.plot_importances(classifier, n_features=8),
        "learning_curves": plots.plot_learning_curves(model),
        "calibration": plots.plot_calibration(classifier, rows[1], rows[3], n_bins=5),
        "residuals": plots.plot_residuals(forest, X_test, y_test),
        "shap_summary": plots.plot_shap_summary(model, X_test),
        "shap_waterfall": plots.plot_shap_waterfall(model, X_test.iloc[[0]]),
    }


def main(folder: Path) -> None:
    """Write all pictures."""
    mpl.use("Agg")
    # Names inside the files are hashes with this salt.
    with mpl.rc_context({"svg.hashsalt": "arboost"}):
        for name, axes in draw().items():
            path = folder / f"plots_{name}.svg"
            axes.figure.savefig(path, metadata={"Date": None})
            print(path)
        pyplot.close("all")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
