"""Classify handwritten digits: train, compare, save, load in a new process, predict.

The data are the 1,797 scanned digits (8 x 8 pixels, ten classes) that come with scikit-learn.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import arboost

# The program of a service: NumPy and the model file, no training code.
SERVE = """
import sys
import numpy as np
import arboost

model = arboost.load(sys.argv[1])
np.save(sys.argv[3], model.predict_proba(np.load(sys.argv[2])))
print("loaded without scikit-learn:", "sklearn" not in sys.modules)
"""


def fit_all(X, y):
    """Return the fitted models by name, ours last."""
    models = {
        "most frequent digit": DummyClassifier(),
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        # One tree per round for all ten digits, with vector leaves.
        "arboost": arboost.GradientBoostingClassifier(
            n_estimators=1000,
            learning_rate=0.03,
            min_child_weight=0.1,
            multi_strategy="multi_output_tree",
            verbose=1,
        ),
    }
    for name, model in models.items():
        start = time.perf_counter()
        model.fit(X, y)
        print(f"{name}: trained in {time.perf_counter() - start:.2f} s")
    return models


def print_scores(models, X, y):
    """Print the scores of all models on held-out rows."""
    print(f"\n{len(X)} held-out rows       accuracy   log loss")
    for name, model in models.items():
        probabilities = model.predict_proba(X)
        accuracy = accuracy_score(y, probabilities.argmax(axis=1))
        print(f"{name:<24} {accuracy:>8.1%}   {log_loss(y, probabilities):>8.3f}")


def predict_elsewhere(model, X):
    """Return the class probabilities that a new process computes from the saved model."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = folder / "digits.arb", folder / "rows.npy", folder / "probabilities.npy"
        model.save(paths[0])
        np.save(paths[1], X)
        size = paths[0].stat().st_size
        print(f"\nsaved {paths[0].name}, {size / 1e6:.1f} MB", flush=True)
        subprocess.run([sys.executable, "-c", SERVE, *map(str, paths)], check=True)
        return np.load(paths[2])


def main():
    """Run the demonstration."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    models = fit_all(X_train, y_train)
    print_scores(models, X_test, y_test)
    here = models["arboost"].predict_proba(X_test)
    if not np.array_equal(predict_elsewhere(models["arboost"], X_test), here):
        raise SystemExit("the loaded and the fitted model differ in their predictions")
    print("the loaded model has the same predictions, to the last bit")


if __name__ == "__main__":
    main()
