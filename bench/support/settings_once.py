"""One library in a process of its own: fits the setting named on each line of its input.

Started by bench_settings.py with the name of the library, and numbers of rows, rounds and threads.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from support.settings import SETTINGS, Setting, Table, table_of
from support.shape import LEARNING_RATE, MAX_BINS


def ours(setting: Setting, table: Table, rounds: int, threads: int) -> Callable[[], Any]:
    """Return a fit of arboost on binned data."""
    import arboost

    classes = setting.target.endswith("classes")
    kind = arboost.GradientBoostingClassifier if classes else arboost.GradientBoostingRegressor
    params = {
        "n_estimators": rounds,
        "learning_rate": LEARNING_RATE,
        "min_child_weight": 1.0,
        "reg_lambda": 1.0,
        "colsample_bynode": 1.0,
        "subsample": 1.0,
        "sampling_method": "uniform",
        "max_bins": MAX_BINS,
        "n_jobs": threads,
        "verbose": 0,
        **setting.shape,
        **setting.ours,
    }
    data = arboost.Dataset(
        table.X,
        table.y,
        sample_weight=table.weight,
        max_bins=params["max_bins"],
        categorical_features=list(table.categories),
        n_jobs=threads,
    )
    model = kind(**params, categorical_features=list(table.categories))
    return lambda: model.fit(data)


def peers(setting: Setting, table: Table, rounds: int, threads: int) -> Callable[[], Any]:
    """Return a fit of LightGBM on binned data."""
    import lightgbm

    params = {
        "objective": "binary",
        "learning_rate": LEARNING_RATE,
        "num_leaves": 255,
        "min_data_in_leaf": 1,
        "min_sum_hessian_in_leaf": 1.0,
        "lambda_l2": 1.0,
        "max_bin": MAX_BINS,
        "feature_pre_filter": False,
        "num_threads": threads,
        "verbosity": -1,
        **setting.peers,
    }
    data = lightgbm.Dataset(
        table.X,
        table.y,
        weight=table.weight,
        categorical_feature=list(table.categories) or "auto",
        params=params,
    ).construct()
    return lambda: lightgbm.train(params, data, rounds)


def main() -> None:
    """Time fits until the input ends; a library keeps the data of its last setting."""
    library, *numbers = sys.argv[1:]
    rows, rounds, threads = map(int, numbers)
    prepared: tuple[str, Callable[[], Any]] | None = None
    for line in sys.stdin:
        name = line.strip()
        if prepared is None or prepared[0] != name:
            setting = SETTINGS[name]
            make = ours if library == "arboost" else peers
            prepared = name, make(setting, table_of(setting, rows), rounds, threads)
        start = time.perf_counter()
        prepared[1]()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
