"""Training and prediction on clusters of Ray.

`DistributedFit` trains on data that no single machine has to hold: each actor keeps its own blocks
or files, and actors exchange sums by Ray's own remote calls. `predict` and `predict_proba` are lazy
functions of datasets, block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from arboost.errors import ParameterError, needs_packages

with needs_packages("ray", "arboost.ray"):
    import ray.data  # noqa: F401 - it may be installed without its extra "data"

from arboost.distributed.ray_data import table_input, with_results
from arboost.distributed.ray_driver import FitResources, run_program
from arboost.distributed.training import fit_on_cluster

__all__ = ["DistributedFit", "predict", "predict_proba"]


class DistributedFit:
    """Training of an estimator by actors of Ray.

    An actor that is lost is replaced by a new one, and training continues from the last round. An
    actor that hangs is replaced in the same way, after `timeout`.

    Parameters
    ----------
    estimator : estimator of arboost
    n_workers : int, optional
        Number of actors; by default as many as the cluster has free CPUs for, but not more than
        blocks or files.
    cpus_per_worker : float, default=1
        CPUs that Ray reserves for each actor, and threads that it trains with.
    timeout : float, default=60
        Seconds without a sign of life after which an actor counts as lost, and ten times as many
        without a message of its program; also the seconds that actors may take to start.
    retries : int, default=3
        Losses without progress in between after which the fit fails.

    Attributes
    ----------
    traffic_ : list of arboost.workers.Traffic
        After a fit, of each worker: bytes and messages sent, seconds waited, seconds in all.

    Examples
    --------
    >>> import arboost, ray
    >>> from arboost.ray import DistributedFit
    >>> data = ray.data.read_parquet("s3://bucket/table")  # doctest: +SKIP
    >>> booster = arboost.GradientBoostingClassifier()
    >>> model = DistributedFit(booster, n_workers=4).fit(data, "target")  # doctest: +SKIP
    """

    def __init__(
        self,
        estimator: Any,
        *,
        n_workers: int | None = None,
        cpus_per_worker: float = 1,
        timeout: float = 60,
        retries: int = 3,
    ) -> None:
        if n_workers is not None and n_workers < 1:
            raise ValueError(f"n_workers={n_workers} must be at least 1, or None for all CPUs.")
        if cpus_per_worker <= 0 or timeout <= 0 or retries < 0:
            raise ValueError(
                f"cpus_per_worker={cpus_per_worker} and timeout={timeout} must be above 0, and "
                f"retries={retries} must not be negative."
            )
        self._estimator = estimator
        self._resources = FitResources(n_workers, cpus_per_worker, timeout, retries)

    def fit(  # noqa: PLR0913 - the arguments of fit of the estimators
        self,
        data: Any,
        target: str | None = None,
        *,
        weight: str | None = None,
        groups: str | None = None,
        qid: str | None = None,
        offset: str | Sequence[str] | None = None,
        eval_set: Any = None,
        eval_names: Sequence[str] | None = None,
        callbacks: Iterable[Callable[[Any], object]] = (),
        checkpoint: object = None,
        memory_limit: int | str = "auto",
    ) -> Any:
        """Train the estimator, and return it.

        Parameters
        ----------
        data : ray.data.Dataset
            Its blocks are computed once, and stay in Ray's object store during the fit.
        data : str, path-like or list of them
            Files, patterns or folders that all nodes see; each file is read by one actor.
        target : str
            Name of the column to predict.
        weight : str, optional
            Name of the column of weights.
        groups : str, optional
            Name of the column of groups.
        qid : str, optional
            Name of the column of queries, of all tables, for a ranker.
        offset : str or list of str, optional
            Column with the start of the raw scores, or one for each class; of all tables.
        eval_set : tuple or list of tuples, optional
            Validation sets: (data, target) or (data, target, weight).
        eval_names : sequence of str, optional
            Names of the validation sets.
        callbacks : iterable of callable
            Called in this process.
        checkpoint : path or arboost.Checkpoint, optional
            File of this process that keeps the state of the fit.
        memory_limit : int or str, default="auto"
            Bytes of each actor.

        Raises
        ------
        WorkerError
            Too many actors are lost, or do not start.
        """
        device = getattr(self._estimator, "device", "cpu")
        if device != "cpu":
            raise ParameterError(
                f"device={device!r} is not allowed with Ray: actors reserve no GPU, and see none. "
                'Use device="cpu", or workers of Dask or Spark.',
                parameter="device",
            )
        read = partial(table_input, self._resources.timeout)
        run = partial(run_program, resources=self._resources)
        model, self.traffic_ = fit_on_cluster(
            self._estimator,
            (data, target, weight),
            read,
            run,
            callbacks=callbacks,
            checkpoint=checkpoint,
            eval_set=eval_set,
            eval_names=eval_names,
            groups=groups,
            qid=qid,
            offset=offset,
            memory_limit=memory_limit,
        )
        return model


def predict(model: Any, data: Any) -> Any:
    """Dataset with the predictions of a model, computed lazily.

    Parameters
    ----------
    model : fitted estimator, `Predictor`, or path of a model file
    data : ray.data.Dataset
        It may have more columns than the model knows.

    Returns
    -------
    ray.data.Dataset
        The rows of the data, with the further column "prediction"; for several targets, with
        "prediction_0", "prediction_1" and so on. Ray does not keep the order of rows by default, so
        predictions stay next to their rows; `select_columns` leaves others out.

    Examples
    --------
    >>> import arboost, ray
    >>> import arboost.ray
    >>> data = ray.data.read_parquet("s3://bucket/table")  # doctest: +SKIP
    >>> arboost.ray.predict("model.arb", data).write_parquet("out")  # doctest: +SKIP
    """
    return with_results(model, data, "predict")


def predict_proba(model: Any, data: Any) -> Any:
    """Dataset with the class probabilities of a model, computed lazily; see `predict`.

    The further columns are "probability_" and the name of each class.
    """
    return with_results(model, data, "predict_proba")
