"""Fits of random shape and parameters: every algorithm, tree method, criterion and storage.

Run as a program, it fits until its time is over. tools/sanitize.py runs it with a core that stops
at undefined behaviour and data races. A case depends on the seed and its number alone:

    python -m support.random_fits --seed 7 --first 12 --cases 1
"""

from __future__ import annotations

import argparse
import itertools
import threading
import time
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

import arboost as ab
from support.stored_codes import codes_in_files

FILES_EVERY = 5  # cases, one of which has its codes in a file

# Values of parameters that are left at their defaults half of the time.
COMMON = {
    "max_bins": [2, 3, 16, 255, 256, 1000],
    "bundling": [False],
}
BOOSTING = COMMON | {
    "tree_method": ["hist", "exact", "approx"],
    "sketch_scope": ["local"],
    "sketch_eps": [0.2, 0.01],
    "boosting": ["gradient"],
    "max_depth": [1, 2, 12, None],
    "max_leaves": [2, 7, 200],
    "grow_policy": ["depthwise", "leafwise"],
    "min_child_weight": [0.0, 5.0, 1e9],
    "min_samples_leaf": [2, 20],
    "gamma": [0.1, 1e9],
    "reg_lambda": [0.0, 1e-12, 1e12],
    "reg_alpha": [0.5],
    "max_delta_step": [0.1],
    "max_conflict_rate": [0.1],
    "max_cat_to_onehot": [1, 100],
    "min_cat_weight": [0.0],
    "cat_smooth": [0.0],
    "cat_l2": [0.0],
    "subsample": [0.01, 0.5],
    "sampling_method": ["uniform", "gradient_based", "goss"],
    "colsample_bytree": [0.01, 0.5],
    "colsample_bylevel": [0.5],
    "colsample_bynode": [0.3],
    "num_parallel_tree": [3],
    "rate_drop": [0.5],
    "learning_rate": [1.0, 1e-9],
    "n_iter_no_change": [2],
}
FORESTS = COMMON | {
    "tree_method": ["hist", "exact"],
    "max_depth": [1, 3, 9],
    "min_samples_split": [2, 10, 0.3],
    "min_samples_leaf": [2, 20, 0.1],
    "min_weight_fraction_leaf": [0.1],
    "max_features": [1, 0.3, "sqrt", None],
    "max_leaf_nodes": [2, 9, 500],
    "min_impurity_decrease": [0.01],
    "ccp_alpha": [0.01],
}
ENSEMBLES_OF_TREES = FORESTS | {
    "bootstrap": [True, False],
    "max_samples": [1, 0.1, 0.9],
    "oob_score": [True],
}
ADABOOST = COMMON | {
    "tree_method": ["hist", "exact"],
    "max_depth": [2, 6, None],
    "max_leaves": [2, 9],
    "min_samples_leaf": [3],
    "min_weight_fraction_leaf": [0.05],
    "resample": [True],
    "learning_rate": [0.1, 1.9],
    "n_iter_no_change": [2],
}
_CLASS_CRITERIA = ["entropy", "error", "gain_ratio"]
CLASSES = {
    "GradientBoosting": {"multi_strategy": ["multi_output_tree"], "class_weight": ["balanced"]},
    "RandomForest": {
        "criterion": _CLASS_CRITERIA,
        "class_weight": ["balanced", "balanced_subsample"],
    },
    "ExtraTrees": {"criterion": _CLASS_CRITERIA, "class_weight": ["balanced"]},
    "DecisionTree": {"criterion": _CLASS_CRITERIA, "splitter": ["random"]},
    "AdaBoost": {"algorithm": ["real", "gentle"], "criterion": ["error"]},
}
NUMBERS = {
    "GradientBoosting": {
        "loss": ["absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"],
        "alpha": [[0.1, 0.5]],
    },
    "RandomForest": {"criterion": ["poisson", "absolute_error"], "quantiles": [True]},
    "ExtraTrees": {"criterion": ["poisson", "absolute_error"], "quantiles": [True]},
    "DecisionTree": {"criterion": ["poisson", "absolute_error"], "splitter": ["random"]},
    "AdaBoost": {"loss": ["square", "exponential"]},
}
# Parameters that must be left out with a value of another.
EXCLUDED = {
    ("boosting", "gradient"): ["reg_alpha", "reg_lambda", "gamma", "max_delta_step"],
    ("sampling_method", "goss"): ["subsample"],
    ("bootstrap", False): ["oob_score", "max_samples"],
    ("criterion", "absolute_error"): ["categorical_features"],
}
PARAMS = {
    "GradientBoosting": BOOSTING,
    "RandomForest": ENSEMBLES_OF_TREES,
    "ExtraTrees": ENSEMBLES_OF_TREES,
    "DecisionTree": FORESTS,
    "AdaBoost": ADABOOST,
}


@dataclass
class Case:
    """A fit that has not run yet, and a table to predict."""

    estimator: Any
    X: Any
    y: Any
    weight: Any
    other: Any

    def __str__(self) -> str:
        kinds = "" if self.weight is None else ", weighted"
        estimator = " ".join(str(self.estimator).split())
        return f"{estimator} on {type(self.X).__name__} {self.X.shape}{kinds}"


def _column(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return a column of one kind: dense, few values, rare flags, constant, huge, ..."""
    kind = rng.integers(9)
    if kind == 0:
        return rng.integers(0, 4, n).astype(float)
    if kind in (1, 2):  # bundled, or sparse
        return np.where(rng.random(n) < 0.05, rng.integers(1, 4, n), 0).astype(float)
    if kind == 3:
        return np.full(n, rng.normal())
    if kind == 4:
        return rng.normal(size=n) * 10.0 ** rng.integers(-300, 300)
    if kind == 5:
        return rng.integers(0, 2, n).astype(float)
    return rng.normal(size=n).round(rng.integers(1, 9))


def _table(rng: np.random.Generator, n: int, n_columns: int) -> tuple[Any, list[int]]:
    """Return a table of any storage, and the indices of its categories."""
    X = np.column_stack([_column(rng, n) for _ in range(n_columns)])
    with_missing = rng.random() < 0.5
    if with_missing:
        X[rng.random(X.shape) < rng.choice([0.01, 0.5])] = np.nan
        X[:, rng.integers(n_columns)] = np.nan if rng.random() < 0.2 else 1.0
    if rng.random() < 0.2:
        return scipy.sparse.csr_array(np.where(rng.random(X.shape) < 0.8, 0.0, X)), []
    categories = []
    for column in range(n_columns):
        if rng.random() < 0.15:
            X[:, column] = rng.integers(0, rng.choice([2, 5, 60]), n)
            categories.append(column)
    if rng.random() < 0.2 and not with_missing:
        return X.astype(np.float32), categories
    return np.asfortranarray(X) if rng.random() < 0.3 else X, categories


def _target(rng: np.random.Generator, X: Any, *, classes: bool) -> np.ndarray:
    dense = X.toarray() if scipy.sparse.issparse(X) else X
    scaled = np.nan_to_num(dense[:, 0], posinf=0, neginf=0)
    signal = np.tanh(scaled / (np.abs(scaled).max() + 1e-300) * 3) + rng.normal(size=len(dense)) / 2
    if classes:
        n_classes = int(rng.choice([1, 2, 2, 3, 6]))
        return np.digitize(signal, np.linspace(-0.7, 0.7, n_classes - 1))
    kind = rng.integers(5)
    if kind == 4:  # of heavy tails
        is_huge = rng.random(len(dense)) < rng.choice([0.001, 0.1, 0.5])
        return np.exp(signal) * np.where(is_huge, 10.0 ** rng.uniform(0, 30, len(dense)), 1.0)
    if kind == 0:
        return np.exp(signal) + 0.01  # above 0, for every loss
    if kind == 1:
        return np.round(np.exp(signal) + 0.5)
    if kind == 2:
        return np.exp(signal) * 10.0 ** rng.integers(-30, 30)
    return np.full(len(dense), 2.5)


def _weight(rng: np.random.Generator, n: int) -> np.ndarray | None:
    kind = rng.integers(8)
    if kind > 3:
        return None
    weight = rng.uniform(0.1, 3.0, n)
    if kind == 1:
        weight[rng.random(n) < 0.4] = 0.0
        weight[0] = 1.0
    if kind == 2:
        weight *= 10.0 ** rng.integers(-20, 20)
    if kind == 3:
        weight[rng.integers(n, size=2)] *= 10.0 ** rng.uniform(0, 40, 2)
    return weight


def _estimator(
    rng: np.random.Generator, n_columns: int, categories: list[int], *, classes: bool, n_jobs: int
) -> Any:
    family = str(rng.choice([*PARAMS, "GradientBoosting", "GradientBoosting"]))
    kind = f"{family}{'Classifier' if classes else 'Regressor'}"
    choices = PARAMS[family] | (CLASSES if classes else NUMBERS)[family]
    share = rng.choice([0.1, 0.3, 0.6])
    params = {
        name: values[rng.integers(len(values))]
        for name, values in choices.items()
        if rng.random() < share
    }
    params |= {"verbose": 0, "random_state": int(rng.integers(99)), "n_jobs": n_jobs}
    if family != "DecisionTree":
        params["n_estimators"] = int(rng.integers(1, 7))
    if categories:
        params["categorical_features"] = categories
    free = [column for column in range(n_columns) if column not in categories]
    if rng.random() < 0.15 and free and family == "GradientBoosting":
        params["monotone_constraints"] = {free[0]: int(rng.choice([-1, 1]))}
    if rng.random() < 0.1 and family == "GradientBoosting":
        params["interaction_constraints"] = [[0], list(range(n_columns))[1:] or [0]]
    if family == "ExtraTrees":
        params.setdefault("bootstrap", False)
    if params.get("loss") != "quantile":
        params.pop("alpha", None)
    for (name, value), excluded in EXCLUDED.items():
        if params.get(name) == value:
            params = {one: params[one] for one in params if one not in excluded}
    estimator = getattr(ab, kind)(**params)
    if rng.random() < 0.1:
        params = {"n_estimators": 3, "n_jobs": n_jobs, "verbose": 0}
        return getattr(ab, f"Bagging{kind[len(family) :]}")(estimator, **params)
    return estimator


def make_case(seed: int, number: int, *, n_jobs: int = 1, most_rows: int = 3000) -> Case:
    """Return the case of a number. One in twenty has many rows: nodes that threads share."""
    rng = np.random.default_rng([seed, number])
    n = int(most_rows ** rng.uniform(0, 1)) + 1
    n_columns = int(rng.choice([1, 2, 7, 20, 90]))
    if rng.random() < 0.05:
        n, n_columns = 12 * most_rows, min(n_columns, 7)
    classes = bool(rng.random() < 0.5)
    X, categories = _table(rng, n, n_columns)
    estimator = _estimator(rng, n_columns, categories, classes=classes, n_jobs=n_jobs)
    y = _target(rng, X, classes=classes)
    if isinstance(estimator, ab.DecisionTreeRegressor) and rng.random() < 0.3:
        y = np.column_stack([y, y[::-1]])
    return Case(estimator, X, y, _weight(rng, n), X[rng.permutation(n)[: max(1, n // 3)]])


def use(model: Any, X: Any) -> None:
    """Call the methods that read the trees of a fitted estimator."""
    model.predict(X)
    if hasattr(model, "predict_proba"):
        model.predict_proba(X)
    if isinstance(model, ab.BaggingClassifier | ab.BaggingRegressor):
        return
    model.apply(X)
    if X.shape[1] < 50 and not isinstance(model, ab.AdaBoostRegressor):
        model.shap_values(X[:20])


def run(case: Case) -> bool:
    """Fit and use the model of a case; False if its parameters or target were refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            case.estimator.fit(case.X, case.y, sample_weight=case.weight)
            use(case.estimator, case.other)
        except (ValueError, TypeError) as error:
            print(f"  refused: {str(error).splitlines()[0][:150]}", flush=True)
            return False
    return True


def run_together(seed: int, number: int, n_at_once: int) -> int:
    """Fit several cases in threads of Python, and use each model in all of them. Count the fits."""
    cases = [
        make_case(seed, n_at_once * number + i, n_jobs=3, most_rows=2000) for i in range(n_at_once)
    ]
    for case in cases:
        print(f"{number}: {case}", flush=True)
    done: list[Case] = []
    errors: list[BaseException] = []

    def guarded(work: Any, arguments: Any) -> None:
        try:
            work(*arguments)
        except BaseException as error:
            errors.append(error)

    def fit(case: Case) -> None:
        if run(case):
            done.append(case)

    def at_once(work: Any, tasks: list[Any]) -> None:
        threads = [threading.Thread(target=guarded, args=(work, task)) for task in tasks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    at_once(fit, [(case,) for case in cases])
    at_once(use, [(case.estimator, case.other) for case in done for _ in range(2)])
    if errors:
        raise errors[0]
    return len(done)


def main() -> None:
    """Run cases until the time is over, or the number of cases is reached."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--cases", type=int, help="number of cases; no limit by default")
    parser.add_argument("--seconds", type=float, default=60.0, help="of CPU time")
    parser.add_argument("--together", type=int, default=1, help="fits at once, in threads")
    args = parser.parse_args()
    end = time.process_time() + args.seconds
    n_run = n_fits = 0
    for number in itertools.count(args.first):
        if time.process_time() > end or n_run == args.cases:
            break
        n_run += 1
        in_files = number % FILES_EVERY == FILES_EVERY - 1
        with codes_in_files(100 + number, 1 << 16) if in_files else nullcontext():
            if args.together > 1:
                n_fits += run_together(args.seed, number, args.together)
                continue
            case = make_case(args.seed, number)
            print(f"{number}: {case}{', codes in a file' if in_files else ''}", flush=True)
            n_fits += run(case)
    print(f"{n_fits} fits of {n_run * args.together} cases, seed {args.seed}")


if __name__ == "__main__":
    main()
