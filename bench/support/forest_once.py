"""A forest in a fresh process: fit, predict, save, and print the figures as JSON.

Called by bench_forest.py with one JSON argument. The data are in memory, the library is imported
and its threads are started (by a tiny fit) before the clock starts.
"""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from support.data import load
from support.fit_once import PeakMemory, quality

WARM_UP_ROWS = 200
PREDICTIONS = 3  # the fastest counts


@dataclass(frozen=True)
class Job:
    """One forest, and its contestant."""

    contestant: str
    folder: str
    kind: str  # "random_forest" or "extra_trees"
    task: str  # "classifier" or "regressor"
    trees: int
    threads: int
    shared_trees: int = 0  # trees of the model that predicts and is saved; 0: the timed model
    max_depth: int | None = None
    max_features: str | float | None = "default"
    max_samples: float | None = None
    oob_score: bool = False
    fits: int = 0  # above 0: only time a tree, as the best of this many fits


def main() -> None:
    """Run the job in argv[1] and print its figures on the last line."""
    job = Job(**json.loads(sys.argv[1]))
    X, y = load(Path(job.folder), "X"), load(Path(job.folder), "y")
    contestant = CONTESTANTS[job.contestant](job)
    contestant.fit(X[:WARM_UP_ROWS], y[:WARM_UP_ROWS], 20)
    found = cost(job, contestant, X, y) if job.fits else contest(job, contestant, X, y)
    print(json.dumps(found))


def contest(job: Job, contestant: Contestant, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Time and memory of the fit; score, time of a prediction and size of the saved model.

    The latter three are comparable only at equal numbers of trees, and are those of a forest of
    `shared_trees`; `last_score` is that of the full forest.
    """
    folder = Path(job.folder)
    X_test, y_test = load(folder, "X_test"), load(folder, "y_test")
    peak = PeakMemory()
    seconds, model = timed(lambda: contestant.fit(X, y, job.trees))
    figures = {"seconds": seconds, "trees": job.trees, "tree_seconds": seconds / job.trees}
    figures["peak_mb"] = peak.beyond_start_mb()
    figures["last_score"] = score(job, y_test, contestant.predict(model, X_test))
    if job.oob_score:
        figures["oob_score"] = contestant.oob_score(model)
    if job.shared_trees not in (0, job.trees):
        model = contestant.fit(X, y, job.shared_trees)
    taken = [timed(lambda: contestant.predict(model, X_test)) for _ in range(PREDICTIONS)]
    figures["predict_seconds"] = min(seconds for seconds, _ in taken)
    figures["score"] = score(job, y_test, taken[0][1])
    nodes = contestant.nodes(model)
    return figures | {"nodes": nodes, "saved_bytes": contestant.saved_bytes(model)}


def cost(job: Job, contestant: Contestant, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Time of a tree after the first (a fit of all minus a fit of one), and mean depth of rows."""
    taken: dict[int, list[float]] = {1: [], job.trees: []}
    for _ in range(job.fits):
        for trees, found in taken.items():
            seconds, model = timed(lambda trees=trees: contestant.fit(X, y, trees))
            found.append(seconds)
    seconds = (min(taken[job.trees]) - min(taken[1])) / (job.trees - 1)
    levels = contestant.levels(model)
    return {"tree_seconds": seconds, "levels": levels, "nodes": contestant.nodes(model)}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds and result of a call."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def score(job: Job, y: np.ndarray, predicted: np.ndarray) -> float:
    """Area under the ROC curve, or R2."""
    if job.task == "classifier":
        return quality(y, np.asarray(predicted, dtype=np.float64))["auc"]
    return float(1.0 - np.sum((y - predicted) ** 2) / np.sum((y - y.mean()) ** 2))


class Contestant:
    """A library; the defaults suit libraries with scikit-learn's names."""

    package: str

    def __init__(self, job: Job) -> None:
        self.job = job

    def settings(self, trees: int) -> dict[str, Any]:
        """Arguments common to the forests of scikit-learn and arboost."""
        job = self.job
        given: dict[str, Any] = {
            "n_estimators": trees,
            "max_depth": job.max_depth,
            "n_jobs": job.threads,
            "random_state": 0,
        }
        if job.max_features != "default":
            given["max_features"] = job.max_features
        if job.max_samples is not None:
            given["max_samples"] = job.max_samples
        return given | {"oob_score": True} if job.oob_score else given

    def estimator(self, library: Any, trees: int, **more: Any) -> Any:
        """The job's estimator from a module with scikit-learn's names."""
        names = {"random_forest": "RandomForest", "extra_trees": "ExtraTrees"}
        name = names[self.job.kind] + self.job.task.capitalize()
        return getattr(library, name)(**self.settings(trees), **more)

    def fit(self, X: np.ndarray, y: np.ndarray, trees: int) -> Any:
        """A fitted model."""
        raise NotImplementedError

    def predict(self, model: Any, X: np.ndarray) -> np.ndarray:
        """Probabilities of class 1, or predicted values of a regression."""
        return model.predict_proba(X)[:, 1] if self.job.task == "classifier" else model.predict(X)

    def oob_score(self, model: Any) -> float:
        """Out-of-bag accuracy or R2."""
        return float(model.oob_score_)

    def nodes(self, model: Any) -> int:
        """Number of nodes of all trees."""
        raise NotImplementedError

    def levels(self, model: Any) -> float:
        """Mean number of splits on the path of a training row."""
        raise NotImplementedError

    def saved_bytes(self, model: Any) -> int:
        """Size of the library's saved model."""
        raise NotImplementedError


class Arboost(Contestant):
    """arboost from the raw table: the fit includes binning."""

    package = "arboost"

    def fit(self, X: np.ndarray, y: np.ndarray, trees: int) -> Any:
        import arboost

        return self.estimator(arboost, trees, verbose=0).fit(X, y)

    def nodes(self, model: Any) -> int:
        return int(model.model_.forest.n_nodes)

    def levels(self, model: Any) -> float:
        forest = model.model_.forest
        passed = forest.cover[forest.left > 0].sum()
        return float(passed / forest.cover[forest.tree_start[:-1]].sum())

    def saved_bytes(self, model: Any) -> int:
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "model"
            model.model_.save(path)
            return path.stat().st_size


class ScikitLearn(Contestant):
    """scikit-learn: exact trees, saved as a pickle."""

    package = "sklearn"

    def fit(self, X: np.ndarray, y: np.ndarray, trees: int) -> Any:
        from sklearn import ensemble

        return self.estimator(ensemble, trees).fit(X, y)

    def nodes(self, model: Any) -> int:
        return sum(one.tree_.node_count for one in model.estimators_)

    def levels(self, model: Any) -> float:
        trees = [one.tree_ for one in model.estimators_]
        passed = sum(t.weighted_n_node_samples[t.children_left >= 0].sum() for t in trees)
        return float(passed / sum(t.weighted_n_node_samples[0] for t in trees))

    def saved_bytes(self, model: Any) -> int:
        return len(pickle.dumps(model, protocol=pickle.HIGHEST_PROTOCOL))


class Ydf(Contestant):
    """YDF from its own data sets: full depth, leaves of one row, averaged class probabilities.

    YDF bins only on request and then searches faster (`ydf-bins`). Its out-of-bag score is
    computed during training.
    """

    package = "ydf"
    bins = False

    def fit(self, X: np.ndarray, y: np.ndarray, trees: int) -> Any:
        import ydf

        ydf.verbose(0)
        job = self.job
        learner = ydf.RandomForestLearner(
            label="y",
            task=ydf.Task.CLASSIFICATION if job.task == "classifier" else ydf.Task.REGRESSION,
            num_trees=trees,
            max_depth=-1 if job.max_depth is None else job.max_depth,
            min_examples=1,
            winner_take_all=False,
            compute_oob_performances=job.oob_score,
            bootstrap_size_ratio=1.0 if job.max_samples is None else job.max_samples,
            discretize_numerical_columns=self.bins,
            num_threads=job.threads,
            random_seed=0,
        )
        return learner.train(self._columns(X) | {"y": y})

    def predict(self, model: Any, X: np.ndarray) -> np.ndarray:
        return model.predict(self._columns(X), num_threads=self.job.threads)

    def oob_score(self, model: Any) -> float:
        return float(model.self_evaluation().accuracy)

    def nodes(self, model: Any) -> int:
        return int(model.num_nodes())

    def saved_bytes(self, model: Any) -> int:
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "model"
            model.save(str(path))
            return sum(part.stat().st_size for part in path.rglob("*") if part.is_file())

    def _columns(self, X: np.ndarray) -> dict[str, np.ndarray]:
        return {f"x{j}": X[:, j] for j in range(X.shape[1])}


class YdfBins(Ydf):
    """YDF with 255 bins for each feature."""

    bins = True


CONTESTANTS: dict[str, type[Contestant]] = {
    "arboost": Arboost,
    "scikit-learn": ScikitLearn,
    "ydf": Ydf,
    "ydf-bins": YdfBins,
}


def installed(name: str) -> bool:
    """Whether the library of a contestant can be imported."""
    return find_spec(CONTESTANTS[name].package) is not None


if __name__ == "__main__":
    main()
