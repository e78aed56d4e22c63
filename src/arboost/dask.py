"""Training and prediction on clusters of Dask.

`DistributedFit` trains on data that no single machine has to hold: each worker keeps its own
partitions, and workers exchange sums over Dask's own connections. `predict`, `predict_proba` and
`shap_values` are lazy functions of collections, partition by partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from arboost.errors import InputTypeError, ParameterError, needs_packages

with needs_packages("dask", "arboost.dask"):
    import dask  # noqa: F401
    import distributed

from arboost.distributed.dask_data import lazy_results, table_input
from arboost.distributed.dask_driver import Limits, run_program
from arboost.distributed.training import fit_on_cluster

__all__ = ["DistributedFit", "predict", "predict_proba", "shap_values"]


class DistributedFit:
    """Training of an estimator on the workers of a cluster.

    A worker that is lost is replaced by another one, or by its neighbours, and training continues
    from the last round. A worker that hangs is replaced in the same way, after `timeout`.

    Parameters
    ----------
    estimator : estimator of arboost
    client : distributed.Client, optional
        The current client by default; inside a task, that of the worker.
    workers : sequence, optional
        Addresses or names of the workers to use; by default all, but not more than partitions.
    timeout : float, default=60
        Seconds without a sign of life after which a worker counts as lost, and ten times as many
        without a message of its program.
    patience : float, default=5
        Seconds to wait for another worker after a loss. Without one, neighbours of the lost worker
        take its partitions.
    retries : int, default=3
        Losses without progress in between after which the fit fails.
    voting : int, default=0
        For tables of hundreds of features on slow networks: each worker proposes this number of
        features for a node, by its rows alone, and sums are exchanged only for the features with
        most votes, twice as many. **The model then differs from that of one process, and depends
        on the number of workers.** Only for gradient boosting; tables of at most four times as
        many features are searched as a whole. 0: all features are searched, and the model is that
        of one process.

    Attributes
    ----------
    traffic_ : list of arboost.workers.Traffic
        After a fit, of each worker: bytes and messages sent, seconds waited, seconds in all.

    Examples
    --------
    >>> import arboost, dask.array as da
    >>> from arboost.dask import DistributedFit
    >>> from distributed import Client
    >>> X = da.random.random((1000, 4), chunks=(250, 4))
    >>> y = X[:, 0] > X[:, 1]
    >>> with Client(processes=False, dashboard_address=":0") as client:
    ...     model = DistributedFit(arboost.GradientBoostingClassifier(), client).fit(X, y)
    """

    def __init__(
        self,
        estimator: Any,
        client: Any = None,
        *,
        workers: Sequence[Any] | None = None,
        timeout: float = 60,
        patience: float = 5,
        retries: int = 3,
        voting: int = 0,
    ) -> None:
        if isinstance(workers, str):
            raise InputTypeError(f"workers={workers!r} is one string. Pass a list of addresses.")
        if timeout <= 0 or patience < 0 or retries < 0:
            raise ValueError(
                f"timeout={timeout}, patience={patience} and retries={retries} must not be "
                "negative, and timeout must be above 0."
            )
        if voting < 0:
            raise ParameterError(
                f"voting={voting!r} is not allowed: it must be a number of features, or 0 to "
                "search all. Use voting=0.",
                parameter="voting",
            )
        self._voting = voting
        self._estimator, self._client, self._workers = estimator, client, workers
        self._limits = Limits(timeout, patience, retries)

    def fit(  # noqa: PLR0913 - the arguments of fit of the estimators
        self,
        data: Any,
        target: Any = None,
        *,
        weight: Any = None,
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
        data : dask.dataframe.DataFrame or dask.array.Array
            Arrays may have sparse chunks, chunks of columns, and chunks of unknown lengths.
        data : list of delayed values or futures
            Tables (pandas, Polars, PyArrow, NumPy, scipy.sparse), or tuples (X, y) or
            (X, y, weight).
        data : str, path-like or list of them
            Files, patterns or folders that all workers see; each file is read by one worker.
        target : str, or collection with the partitions of `data`
            Name of the column to predict, or its values. None where parts are tuples.
        weight : str, or collection with the partitions of `data`, optional
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
            Bytes of each worker.

        Raises
        ------
        WorkerError
            Too many workers are lost, or the scheduler is.
        """
        with _synchronous_client(self._client) as client:
            read = partial(table_input, client)
            run = partial(run_program, client, workers=self._workers, limits=self._limits)
            model, self.traffic_ = fit_on_cluster(
                self._estimator,
                (data, target, weight),
                read,
                run,
                n_votes=self._voting,
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
    """Predictions of a model, computed lazily.

    Parameters
    ----------
    model : fitted estimator, `Predictor`, or path of a model file
    data : dask.dataframe.DataFrame or dask.array.Array

    Returns
    -------
    dask.dataframe.Series, DataFrame or dask.array.Array
        With the partitions and index, or the chunks of rows, of the data. Several targets give
        columns.

    Examples
    --------
    >>> import arboost, dask.array as da
    >>> import arboost.dask
    >>> model = arboost.GradientBoostingRegressor().fit([[0], [1], [2]], [5, 5, 5])
    >>> X = da.from_array([[0], [2], [1]], chunks=(2, 1))
    >>> arboost.dask.predict(model, X)
    dask.array<_results, shape=(3,), dtype=float64, chunksize=(2,), chunktype=numpy.ndarray>
    >>> arboost.dask.predict(model, X).compute(scheduler="sync")
    array([5., 5., 5.])
    """
    return lazy_results(model, data, "predict")


def predict_proba(model: Any, data: Any) -> Any:
    """Class probabilities of a model, computed lazily; see `predict`.

    Columns of a DataFrame have the names of the classes.

    Examples
    --------
    >>> import arboost, dask.dataframe as dd, pandas as pd
    >>> import arboost.dask
    >>> frame = pd.DataFrame({"x": [0, 1]})
    >>> model = arboost.GradientBoostingClassifier().fit(frame, ["no", "yes"])
    >>> data = dd.from_pandas(frame, npartitions=2)
    >>> arboost.dask.predict_proba(model, data).compute(scheduler="sync")
        no  yes
    0  0.5  0.5
    1  0.5  0.5
    """
    return lazy_results(model, data, "predict_proba")


def shap_values(model: Any, data: Any) -> Any:
    """SHAP values of a model, computed lazily; see `predict`.

    Columns of a DataFrame have the names of the features. Several outputs need an array, and give
    one of shape (n_rows, n_features, n_outputs).

    Examples
    --------
    >>> import arboost, dask.array as da
    >>> import arboost.dask
    >>> model = arboost.DecisionTreeRegressor().fit([[0, 0], [1, 1]], [0, 2])
    >>> X = da.from_array([[0, 0], [1, 1]], chunks=(1, 2))
    >>> arboost.dask.shap_values(model, X).compute(scheduler="sync")
    array([[-1.,  0.],
           [ 1.,  0.]])
    """
    return lazy_results(model, data, "shap_values")


@contextmanager
def _synchronous_client(client: Any) -> Iterator[Any]:
    """Give the client; inside a task, that of the worker, while the task gives its slot back."""
    if client is None:
        try:
            distributed.get_worker()
        except ValueError:
            client = distributed.default_client()
        else:
            with distributed.worker_client() as client:
                yield client
            return
    if client.asynchronous:
        raise InputTypeError(
            "The client is asynchronous, but fit waits for its end. Pass a synchronous client: "
            "distributed.Client(address)."
        )
    yield client
