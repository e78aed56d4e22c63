"""Fit random models on a cluster of Dask whose workers are killed, and compare them byte for byte.

Usage: python tools/soak_dask.py [--fits N] [--seed N] [--first N] [--limit SECONDS]

Each fit has a random table, estimator and parameters, which depend on the seed and its number
alone. It runs three times: in one process, on three workers, and on three workers of which a random
one is killed at a random moment of the time that the second run took. All three models must have
the same bytes. A loss is seen where the fit had to start another attempt; the others came too late,
or before the workers had begun. The exit status is 1 where models differ, where a fit fails, or
where one takes longer than the limit: then the stacks of all threads are printed.
"""

from __future__ import annotations

import argparse
import faulthandler
import logging
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

import arboost as ab
from arboost.dask import DistributedFit
from arboost.distributed import dask_driver
from arboost.models.files.model_file import to_bytes

N_WORKERS = 3
N_PARTITIONS = 7
TARGET = "target"
TARGETS = ("number", "two", "three")
# Kinds of fits, one after the other, and the parameters that make them.
KINDS: dict[str, dict[str, Any]] = {
    "booster": {},
    "subsample": {"subsample": 0.6, "colsample_bytree": 0.7},
    "goss": {"sampling_method": "goss"},
    "dart": {"rate_drop": 0.2},
    "early stopping": {"n_iter_no_change": 5},
    "forest": {},
    "AdaBoost": {},
}


class Whole:
    """A source of one table. Unlike X and y, it tells the model the name of its target."""

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = table

    def __iter__(self) -> Iterator[pd.DataFrame]:
        yield self._table


@dataclass
class Case:
    """A fit: estimator, table and, for early stopping, a validation set."""

    name: str
    estimator: Callable[[], Any]
    table: pd.DataFrame
    valid: pd.DataFrame | None = None

    def alone(self) -> bytes:
        """Return the model of one process."""
        options = {} if self.valid is None else {"eval_set": [(Whole(self.valid), TARGET)]}
        return to_bytes(self.estimator().fit(Whole(self.table), TARGET, **options).model_)

    def on_workers(self, client: Client) -> Callable[[], bytes]:
        """Return a function that fits on the workers, whose rows are in memory."""
        data = dd.from_pandas(self.table, npartitions=N_PARTITIONS, sort=False).persist()
        options = {}
        if self.valid is not None:
            rows = dd.from_pandas(self.valid, npartitions=2, sort=False).persist()
            options["eval_set"] = [(rows, TARGET)]
        fit = DistributedFit(self.estimator(), client, timeout=60)
        return lambda: to_bytes(fit.fit(data, TARGET, **options).model_)


@dataclass
class Report:
    """Results of all fits so far."""

    n_fits: int = 0
    n_equal: int = 0
    n_losses: int = 0
    longest: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.n_fits} fits, {self.n_equal} equal, {self.n_losses} losses seen, "
            f"longest {self.longest:.1f} s"
        )


def random_table(
    rng: np.random.Generator, target: str, n_rows: int, n_numbers: int
) -> pd.DataFrame:
    """Return a table of several kinds of columns, with missing values, and its target."""
    table = pd.DataFrame({f"x{j}": rng.normal(size=n_rows) for j in range(n_numbers)})
    table["narrow"] = rng.normal(size=n_rows).astype(np.float32)
    table["few"] = rng.integers(0, 4, n_rows)
    table["holes"] = np.where(rng.random(n_rows) < 0.3, np.nan, rng.normal(size=n_rows))
    table["city"] = pd.Categorical(rng.choice(["Aachen", "Bonn", "Ulm"], n_rows))
    score = 2 * table["x0"] * table["x1"] + table["few"] + (table["city"] == "Bonn")
    score += rng.normal(size=n_rows)
    values = {"number": score, "two": (score > 1).astype(int), "three": np.digitize(score, [0, 2])}
    table[TARGET] = values[target]
    return table


def random_case(seed: int, number: int) -> Case:
    """Return one of the fits."""
    rng, pick = np.random.default_rng([seed, number]), random.Random(f"{seed}, {number}")
    name = list(KINDS)[number % len(KINDS)]
    target = pick.choice(TARGETS[1:] if name == "AdaBoost" else TARGETS)
    n_rows, n_numbers = pick.choice([300, 3000, 20_000]), pick.randint(2, 12)
    table = random_table(rng, target, n_rows, n_numbers)
    valid = random_table(rng, target, 2000, n_numbers) if name == "early stopping" else None
    role = "Regressor" if target == "number" else "Classifier"
    made = {"forest": f"RandomForest{role}", "AdaBoost": "AdaBoostClassifier"}.get(
        name, f"GradientBoosting{role}"
    )
    params = {
        **KINDS[name],
        "n_jobs": 1,
        "random_state": pick.randrange(1000),
        "verbose": 0,
        "max_bins": pick.choice([16, 63, 255]),
        "n_estimators": pick.randint(10, 80),
        "max_depth": pick.choice([2, 4, 7]),
    }
    if made.startswith("Gradient"):
        params["learning_rate"] = pick.choice([0.1, 0.3])
        params["grow_policy"] = pick.choice(["depthwise", "leafwise"])
    words = f"{name}, {target}, {n_rows} rows, {params['n_estimators']} trees"
    return Case(words, lambda: getattr(ab, made)(**params), table, valid)


@contextmanager
def attempts_counted() -> Iterator[list[int]]:
    """Give a list that gets the number of each attempt of the fits in this block."""
    made, numbers = dask_driver.DriverAttempt, []

    def counted(calls: Any, fit: str, number: int, *others: Any) -> Any:
        numbers.append(number)
        return made(calls, fit, number, *others)

    dask_driver.DriverAttempt = counted
    try:
        yield numbers
    finally:
        dask_driver.DriverAttempt = made


def kill_after(delay: float, pid: int) -> threading.Timer:
    """Kill a process after some seconds, unless the timer is cancelled."""

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    timer = threading.Timer(delay, kill)
    timer.daemon = True
    timer.start()
    return timer


def clocked(work: Callable[[], bytes]) -> tuple[float, bytes]:
    """Return the seconds of a fit and its model."""
    start = time.perf_counter()
    model = work()
    return time.perf_counter() - start, model


def check(case: Case, client: Client, pick: random.Random, report: Report) -> str:
    """Fit three times; return the result in words."""
    client.wait_for_workers(N_WORKERS, timeout=60)
    expected = case.alone()
    work = case.on_workers(client)
    seconds, undisturbed = clocked(work)
    victim = pick.choice(sorted(client.run(os.getpid).values()))
    delay = pick.random() * seconds
    with attempts_counted() as attempts:
        timer = kill_after(delay, victim)
        try:
            took, disturbed = clocked(work)
        finally:
            timer.cancel()
    losses, same = max(attempts), undisturbed == expected == disturbed
    report.n_fits += 1
    report.n_equal += same
    report.n_losses += losses
    report.longest = max(report.longest, took)
    where = "" if undisturbed == expected else " without a loss"
    verdict = "equal" if same else f"DIFFERENT{where}"
    return f"{verdict}, {losses} losses, killed at {delay:.2f} of {seconds:.2f} s, {took:.2f} s"


def main() -> None:
    """Run the fits and print the summary."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--fits", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first fit")
    parser.add_argument("--limit", type=float, default=120, help="seconds of all runs of a fit")
    args = parser.parse_args()
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    # A LocalCluster looks 15 seconds after a loss whether the worker is back, and gives it up if
    # not: because it starts slowly, or because it has been killed again meanwhile.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})
    report, n_failed = Report(), 0
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(n_workers=N_WORKERS, **options) as cluster, Client(cluster) as client:
        for number in range(args.first, args.first + args.fits):
            case = random_case(args.seed, number)
            print(f"{number}: {case.name}: ", end="", flush=True)
            faulthandler.dump_traceback_later(args.limit, exit=True)
            try:
                result = check(case, client, random.Random(f"{args.seed}; {number}"), report)
            except Exception as error:  # one that fails is no reason to skip the others
                report.n_fits += 1
                n_failed += 1
                result = f"FAILED, {type(error).__name__}: {error}"
            print(result, flush=True)
        print(report, flush=True)
        faulthandler.dump_traceback_later(args.limit, exit=True)
        client.wait_for_workers(N_WORKERS)
    faulthandler.cancel_dump_traceback_later()
    raise SystemExit(report.n_equal < report.n_fits or n_failed > 0)


if __name__ == "__main__":
    main()
