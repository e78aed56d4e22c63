"""One contestant of bench_dask.py in a fresh process: cluster, fits, figures as JSON.

Called with one JSON argument. Rows are in memory, as arrays or on the workers, and a tiny fit has
started all threads and connections before the clock starts.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster

from support import dask_chunks, dask_counters, data
from support.dask_namespaces import HUB_ADDRESS, workers_in
from support.fit_once import quality
from support.ours import Arboost
from support.peers import LightGBM, XGBoost
from support.shape import MAX_BINS, Shape, Work

TINY_ROWS = 4000


@dataclass(frozen=True)
class Job:
    """One contestant and its fits."""

    contestant: str
    folder: str
    rounds: int
    workers: int = 2  # processes of one thread; or threads of one process
    max_depth: int = 8
    namespaces: tuple[str, ...] = ()  # a network namespace for each worker

    def work(self, threads: int = 1) -> Work:
        """Return the fit as the adapters take it."""
        return Work(Shape(max_depth=self.max_depth), self.rounds, threads)


def main() -> None:
    """Run the job in argv[1] and print its figures on the last line."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    # A worker that is killed starts again, however long that takes.
    dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})
    job = Job(**json.loads(sys.argv[1]))
    print(json.dumps(CONTESTANTS[job.contestant](job)))


@contextmanager
def cluster_of(job: Job) -> Iterator[Client]:
    """Give the client of a cluster on this machine, or on the namespaces of the job."""
    options = {"threads_per_worker": 1, "memory_limit": 0, "dashboard_address": ":0"}
    if job.namespaces:
        options |= {"host": HUB_ADDRESS, "worker_dashboard_address": None}
    n_local = 0 if job.namespaces else job.workers
    with (
        LocalCluster(n_workers=n_local, processes=True, **options) as cluster,
        Client(cluster) as client,
        workers_in(job.namespaces, cluster.scheduler_address),
    ):
        client.wait_for_workers(job.workers, timeout=60)
        yield client


def fitted(job: Job, client: Client, data: Any, target: Any, **options: Any) -> tuple[float, Any]:
    """Return the seconds of a fit on the cluster, and the model."""
    from arboost.dask import DistributedFit

    estimator = Arboost().estimator(job.work())
    start = time.perf_counter()
    model = DistributedFit(estimator, client).fit(data, target, **options)
    return time.perf_counter() - start, model


def digest(model: Any) -> str:
    """Return a digest of the bytes of the model's file."""
    from arboost.models.files.model_file import to_bytes

    return blake2b(to_bytes(model.model_), digest_size=16).hexdigest()


def warm_up(job: Job, client: Client) -> None:
    """Fit a tiny part of the rows with one round."""
    fitted(replace(job, rounds=1), client, *dask_chunks.arrays(client, job.folder, TINY_ROWS))


def _process(job: Job) -> dict[str, Any]:
    """One process with as many threads as there are workers elsewhere."""
    X, y = (data.load(Path(job.folder), name) for name in "Xy")
    one = replace(job, rounds=1)
    Arboost().estimator(one.work(job.workers)).fit(X[:TINY_ROWS], y[:TINY_ROWS])
    figures: dict[str, Any] = {}
    for name, asked in _fits(job):
        estimator = Arboost().estimator(asked.work(job.workers))
        start = time.perf_counter()
        estimator.fit(X, y)
        figures |= {name: time.perf_counter() - start, "model": digest(estimator)}
    return figures


def _workers(job: Job) -> dict[str, Any]:
    """Workers with arrays; the counters are those of the last fit less those of the first."""
    with cluster_of(job) as client:
        rows = dask_chunks.arrays(client, job.folder)
        warm_up(job, client)
        if job.namespaces:
            client.run(dask_counters.watch)
        figures: dict[str, Any] = {}
        counts = []
        for name, asked in _fits(job):
            seconds, model = fitted(asked, client, *rows)
            figures |= {name: seconds, "model": digest(model)}
            if job.namespaces:
                counts.append(list(client.run(dask_counters.counted).values()))
    for name in ("bytes", "wait_seconds") if counts else ():
        first, last = (np.mean([one[name] for one in each]) for each in (counts[0], counts[-1]))
        figures[name] = float(last - first)
    return figures


def _frame(job: Job) -> dict[str, Any]:
    """Workers with a data frame, one round."""
    with cluster_of(job) as client:
        rows = dask_chunks.frame(client, job.folder)
        warm_up(job, client)
        seconds, _ = fitted(replace(job, rounds=1), client, rows, dask_chunks.TARGET)
    return {"first_seconds": seconds}


def _fits(job: Job) -> list[tuple[str, Job]]:
    """Return a fit of one round, and one of all rounds."""
    fits = [("first_seconds", replace(job, rounds=1))]
    return fits if job.rounds == 1 else [*fits, ("fit_seconds", job)]


def _counters(job: Job) -> dict[str, Any]:
    """Bytes and messages of a worker in all rounds, and the work that the formula needs."""
    from arboost import Dataset

    with cluster_of(job) as client:
        rows = dask_chunks.arrays(client, job.folder)
        client.run(dask_counters.watch)
        seconds, model = fitted(job, client, *rows)
        counts = client.run(dask_counters.counted).values()
    X, y = (data.load(Path(job.folder), name) for name in "Xy")
    codes = Dataset(X, y, max_bins=MAX_BINS).binned.codes
    slots = int(np.diff(codes.first_slot).max()) * int(codes.n_stores)  # columns are padded
    trees = dask_counters.batches_of(model.model_.forest, job.max_depth)
    large = dask_counters.are_large(trees, slots, job.workers)
    leaves = dask_counters.leaf_exchanges(model.model_.forest, job.workers)
    of_workers = [dask_counters.of_rounds(one, large, leaves) for one in counts]
    return {
        "fit_seconds": seconds,
        "slots": slots,
        "trees": trees,
        "most_bytes": max(one["bytes"] for one in of_workers),
        "sent": {name: float(np.mean([one[name] for one in of_workers])) for name in of_workers[0]},
    }


def _loss(job: Job) -> dict[str, Any]:
    """A fit, and one whose last worker is killed at half of the rounds."""
    with cluster_of(job) as client:
        rows = dask_chunks.arrays(client, job.folder)
        warm_up(job, client)
        called: list[int] = []
        seconds, model = fitted(job, client, *rows, callbacks=[lambda one: called.append(1)])
        victim = max(client.run(os.getpid).items())[1]

        def kill(done: Any) -> None:
            called.append(1)
            if len(called) == job.rounds // 2:
                os.kill(victim, signal.SIGKILL)

        called.clear()
        disturbed, other = fitted(job, client, *rows, callbacks=[kill])
        figures = {"fit_seconds": seconds, "loss_seconds": disturbed, "model": digest(model)}
        return figures | {"model_after_loss": digest(other), "rounds_called": len(called)}


def _ours(job: Job) -> dict[str, Any]:
    """arboost from chunks to the model."""
    with cluster_of(job) as client:
        rows = dask_chunks.arrays(client, job.folder)
        warm_up(job, client)
        seconds, model = fitted(job, client, *rows)
    return {"fit_seconds": seconds} | _quality(job, lambda X: model.predict_proba(X)[:, 1])


def _lightgbm(job: Job) -> dict[str, Any]:
    """LightGBM's own estimator for Dask, with the rows divided."""
    from lightgbm import DaskLGBMClassifier

    params = LightGBM().params(job.work()) | {"tree_learner": "data"}
    del params["num_threads"]  # as many as the worker has

    def fit(client: Client, rounds: int, X: Any, y: Any) -> Any:
        made = DaskLGBMClassifier(client=client, n_estimators=rounds, **_sklearn_names(params))
        return made.fit(X, y).to_local()

    seconds, model = _peer(job, fit)
    return {"fit_seconds": seconds} | _quality(job, lambda X: model.predict_proba(X)[:, 1])


def _sklearn_names(params: dict[str, Any]) -> dict[str, Any]:
    """Return LightGBM's parameters by the names of its estimators, which warn of others."""
    names = {
        "min_data_in_leaf": "min_child_samples",
        "min_sum_hessian_in_leaf": "min_child_weight",
        "lambda_l2": "reg_lambda",
        "seed": "random_state",
    }
    return {names.get(name, name): value for name, value in params.items()}


def _xgboost(job: Job) -> dict[str, Any]:
    """XGBoost's `dask.train` on a quantile matrix."""
    from xgboost import dask as xgboost_dask

    params = XGBoost().params(job.work())

    def fit(client: Client, rounds: int, X: Any, y: Any) -> Any:
        made = xgboost_dask.DaskQuantileDMatrix(client, X, y, max_bin=MAX_BINS)
        return xgboost_dask.train(client, params, made, num_boost_round=rounds)["booster"]

    seconds, model = _peer(job, fit)
    return {"fit_seconds": seconds} | _quality(job, model.inplace_predict)


def _peer(job: Job, fit: Callable[..., Any]) -> tuple[float, Any]:
    """Return the seconds of a peer's fit from chunks to the model, and the model."""
    with cluster_of(job) as client:
        rows = dask_chunks.arrays(client, job.folder)
        fit(client, 1, *dask_chunks.arrays(client, job.folder, TINY_ROWS))
        start = time.perf_counter()
        model = fit(client, job.rounds, *rows)
        return time.perf_counter() - start, model


def _quality(job: Job, predict: Callable[[np.ndarray], np.ndarray]) -> dict[str, float]:
    X, y = (data.load(Path(job.folder), name) for name in ("X_test", "y_test"))
    return quality(y, np.asarray(predict(X)))


CONTESTANTS: dict[str, Callable[[Job], dict[str, Any]]] = {
    "process": _process,
    "workers": _workers,
    "frame": _frame,
    "counters": _counters,
    "loss": _loss,
    "arboost": _ours,
    "lightgbm": _lightgbm,
    "xgboost": _xgboost,
}


if __name__ == "__main__":
    main()
