"""One search for parameters in a fresh process: print its figures as JSON.

Called by bench_tune.py with one JSON argument. The data are in memory, the libraries are imported
and their threads are started (by a tiny search) before the clock starts.

LightGBM runs under Optuna with the sampler, pruner, steps, early stopping and held-out rows of
`arboost.tune`, and ends with a fit of the best trial to all rows, as that does.
"""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from support.data import load
from support.fit_once import quality

WARM_UP_ROWS = 500
MOST_RATE_ROUNDS, RATE_PATIENCE, PATIENCE = 30.0, 2.5, (10, 50)  # of arboost's preset "good"
# arboost's name -> LightGBM's
NAMES = {
    "learning_rate": "learning_rate",
    "max_leaves": "num_leaves",
    "min_child_weight": "min_sum_hessian_in_leaf",
    "min_samples_leaf": "min_data_in_leaf",
    "reg_lambda": "lambda_l2",
    "reg_alpha": "lambda_l1",
    "subsample": "bagging_fraction",
    "colsample_bytree": "feature_fraction",
    "colsample_bynode": "feature_fraction_bynode",
}
# arboost's default parameters, which are its first trial.
FIRST = {
    "learning_rate": 0.05,
    "max_leaves": 31,
    "min_child_weight": 0.1,
    "min_samples_leaf": 1,
    "reg_lambda": 3.0,
    "reg_alpha": 0.0,
    "subsample": 0.5,
    "colsample_bytree": 1.0,
    "colsample_bynode": 0.7,
}


@dataclass(frozen=True)
class Job:
    """One search, and its contestant."""

    contestant: str
    folder: str
    threads: int
    trials: int
    share: float = 0.2
    proposed: tuple[dict[str, Any], ...] = ()  # parameters of each trial; none: Optuna's own


def main() -> None:
    """Run the job in argv[1] and print its figures on the last line."""
    warnings.simplefilter("ignore")
    job = Job(**json.loads(sys.argv[1]))
    folder = Path(job.folder)
    X, y = load(folder, "X"), load(folder, "y")
    search = ours if job.contestant == "arboost" else theirs
    search(replace(job, trials=2, proposed=()), X[:WARM_UP_ROWS], y[:WARM_UP_ROWS])
    start = time.perf_counter()
    figures, predict = search(job, X, y)
    figures = {"seconds": time.perf_counter() - start} | figures
    shares = np.asarray(predict(load(folder, "X_test")), dtype=np.float64)
    print(json.dumps(figures | quality(load(folder, "y_test"), shares)))


def held_out(n_rows: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Return training rows and held-out rows, the same for all contestants."""
    order = np.random.default_rng(0).permutation(n_rows)
    n_held_out = round(share * n_rows)
    return np.sort(order[n_held_out:]), np.sort(order[:n_held_out])


def ours(job: Job, X: np.ndarray, y: np.ndarray) -> tuple[dict[str, Any], Any]:
    """Search with `arboost.tune`."""
    import arboost

    found = arboost.tune(
        arboost.GradientBoostingClassifier(random_state=0, verbose=0),
        X,
        y,
        trials=job.trials,
        folds=[held_out(len(y), job.share)],
        n_jobs=job.threads,
        verbose=0,
    )
    states = [one["state"] for one in found.trials]
    figures = {
        "score": found.score,
        "pruned": states.count("pruned"),
        "proposed": [one["params"] for one in found.trials],
        "rounds": found.params["n_estimators"],
    }
    return figures, lambda rows: found.estimator.predict_proba(rows)[:, 1]


def theirs(job: Job, X: np.ndarray, y: np.ndarray) -> tuple[dict[str, Any], Any]:
    """Search with Optuna around LightGBM."""
    import lightgbm as lgb
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    prunes, shares_bins = "no pruning" not in job.contestant, "one Dataset" in job.contestant
    at_once = job.threads if "in parallel" in job.contestant else 1  # trials
    train, rows = held_out(len(y), job.share)
    X_train, y_train, X_val, y_val = X[train], y[train], X[rows], y[rows]
    shared = lightgbm_sets(X_train, y_train, X_val, y_val) if shares_bins else None

    def objective(trial: optuna.Trial) -> float:
        given = proposals(trial) if trial.number else FIRST
        params, rate = lightgbm_params(given, job.threads // at_once), given["learning_rate"]
        data = shared or lightgbm_sets(X_train, y_train, X_val, y_val)
        patience = min(max(math.ceil(RATE_PATIENCE / rate), PATIENCE[0]), PATIENCE[1])
        calls = [lgb.early_stopping(patience, verbose=False)]
        if prunes and trial.number:
            calls.append(Pruning(trial, rate))
        n_rounds = math.ceil(MOST_RATE_ROUNDS / rate)
        model = lgb.train(params, data[0], n_rounds, valid_sets=[data[1]], callbacks=calls)
        trial.set_user_attr("rounds", model.best_iteration)
        return model.best_score["valid_0"]["binary_logloss"]

    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=0), pruner=optuna.pruners.MedianPruner(5, 2)
    )
    for params in job.proposed:
        study.enqueue_trial(params)
    study.optimize(objective, n_trials=job.trials, n_jobs=at_once)
    best = study.best_trial
    params = lightgbm_params(best.params if best.number else FIRST, job.threads)
    model = lgb.train(params, lgb.Dataset(X, y), best.user_attrs["rounds"])
    states = [one.state.name for one in study.trials]
    figures = {
        "score": best.value,
        "pruned": states.count("PRUNED"),
        "rounds": best.user_attrs["rounds"],
    }
    return figures, model.predict


class Pruning:
    """Callback of LightGBM that reports the best score after every unit of progress."""

    before_iteration = False
    order = 20

    def __init__(self, trial: Any, rate: float) -> None:
        self.trial, self.rate, self.best, self.step = trial, rate, math.inf, 0

    def __call__(self, env: Any) -> None:
        import optuna

        self.best = min(self.best, env.evaluation_result_list[0][2])
        step = int((env.iteration + 1) * self.rate)
        if step == self.step:
            return
        self.step = step
        self.trial.report(self.best, step)
        if self.trial.should_prune():
            raise optuna.TrialPruned


def proposals(trial: Any) -> dict[str, Any]:
    """Return the parameters of a trial, from the ranges that arboost declares."""
    from arboost.params.boosting import BOOSTED_CLASSIFIER

    found = {}
    for name in NAMES:
        search = BOOSTED_CLASSIFIER[name].search
        suggest = trial.suggest_int if isinstance(search.low, int) else trial.suggest_float
        found[name] = suggest(name, search.low, search.high, log=search.log)
    return found


def lightgbm_params(given: dict[str, Any], threads: int) -> dict[str, Any]:
    """Return parameters under LightGBM's names."""
    return {NAMES[name]: value for name, value in given.items()} | {
        "objective": "binary",
        "metric": "binary_logloss",
        "bagging_freq": 1,
        "num_threads": threads,
        "verbosity": -1,
        "feature_pre_filter": False,
    }


def lightgbm_sets(X: np.ndarray, y: np.ndarray, X_val: np.ndarray, y_val: np.ndarray) -> Any:
    """Return training and validation data of LightGBM."""
    import lightgbm as lgb

    options = {"feature_pre_filter": False, "verbosity": -1}
    train = lgb.Dataset(X, y, params=options, free_raw_data=False)
    return train, lgb.Dataset(X_val, y_val, reference=train, free_raw_data=False)


if __name__ == "__main__":
    main()
