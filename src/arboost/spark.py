"""Training and prediction on clusters of Spark.

`DistributedFit` trains an estimator on a DataFrame: each task of one barrier stage keeps its own
partition, and tasks exchange sums over direct connections. `predict` adds predictions to a
DataFrame. `Estimator` and `Model` are the same for pipelines of pyspark.ml.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from arboost.errors import needs_packages

with needs_packages("spark", "arboost.spark"):
    import distributed  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow  # noqa: F401
    import pyspark  # noqa: F401

from pyspark import ml
from pyspark.ml import util
from pyspark.ml.param import Param, Params
from pyspark.ml.param.shared import HasLabelCol, HasPredictionCol, HasProbabilityCol, HasWeightCol
from sklearn.base import clone

from arboost.distributed import spark_data
from arboost.distributed.data import TableInput
from arboost.distributed.spark_driver import check_frame, run_stage
from arboost.distributed.training import fit_on_cluster, offset_columns
from arboost.models.predictor import load

__all__ = ["DistributedFit", "Estimator", "Model", "predict"]

_FILE = "model.arb"  # in the folder of a saved `Model`


class DistributedFit:
    """Training of an estimator by the tasks of one barrier stage.

    A task that is lost ends the stage, and the next attempt starts from the first round: with the
    same rows, the model is the same. All workers run at the same time, so Spark must not allocate
    executors dynamically. Tasks connect to each other directly, with the protocol and the TLS
    settings of the configuration of Dask on the executors.

    Parameters
    ----------
    estimator : estimator of arboost
    n_workers : int, optional
        Number of tasks, at most one for each partition. By default as many as Spark runs at the
        same time. If there are more partitions, their rows are shuffled once into fewer.
    timeout : float, default=60
        Seconds without a sign of life after which a task counts as lost, and ten times as many
        without a message of its program.
    retries : int, default=3
        Lost attempts after which another one is made.

    Examples
    --------
    >>> import arboost
    >>> from arboost.spark import DistributedFit
    >>> from pyspark.sql import SparkSession
    >>> spark = SparkSession.builder.master("local[2]").getOrCreate()  # doctest: +SKIP
    >>> frame = spark.range(1000).selectExpr("id", "id > 500 as y")  # doctest: +SKIP
    >>> model = arboost.GradientBoostingClassifier()
    >>> DistributedFit(model).fit(frame, "y")  # doctest: +SKIP
    GradientBoostingClassifier()
    """

    def __init__(
        self,
        estimator: Any,
        *,
        n_workers: int | None = None,
        timeout: float = 60,
        retries: int = 3,
    ) -> None:
        if n_workers is not None and n_workers < 1:
            raise ValueError(
                f"n_workers={n_workers} is not allowed: it must be 1 or more, or None."
            )
        if timeout <= 0 or retries < 0:
            raise ValueError(
                f"timeout={timeout} must be above 0, and retries={retries} must not be negative."
            )
        self._estimator, self._n_workers = estimator, n_workers
        self._timeout, self._retries = timeout, retries

    def fit(  # noqa: PLR0913 - the arguments of fit of the estimators
        self,
        frame: Any,
        target: str,
        *,
        weight: str | None = None,
        groups: str | None = None,
        qid: str | None = None,
        offset: str | Sequence[str] | None = None,
        eval_set: Any = None,
        eval_names: Sequence[str] | None = None,
        memory_limit: int | str = "auto",
    ) -> Any:
        """Train the estimator, and return it.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
            All columns without another role are features: strings are categories, nulls are
            missing values. Each task keeps its rows in the memory of its Python process. A frame
            that is costly to compute should be cached.
        target : str
            Column to predict.
        weight : str, optional
        groups : str, optional
            Column of groups.
        qid : str, optional
            Column of queries, of all tables, for a ranker.
        offset : str or list of str, optional
            Column with the start of the raw scores, or one for each class; of all tables.
        eval_set : tuple or list of tuples, optional
            Validation sets: (frame, target) or (frame, target, weight). They are brought to the
            driver, within ``spark.driver.maxResultSize``, and sent to all executors; the training
            frame itself is not.
        eval_names : sequence of str, optional
            Names of the validation sets.
        memory_limit : int or str, default="auto"
            Bytes of each task.

        Raises
        ------
        WorkerError
            Tasks were lost in more attempts than `retries`.
        """

        def read(data: Any, target: Any, weight: Any) -> TableInput:
            check_frame(data, "frame" if data is frame else "A frame of eval_set")
            spark_data.check_columns(data, "target", [target])
            spark_data.check_columns(data, "weight", [] if weight is None else [weight])
            spark_data.check_columns(data, "offset", offset_columns(offset))
            return TableInput(data, target, weight)

        run = partial(
            run_stage, n_workers=self._n_workers, timeout=self._timeout, retries=self._retries
        )
        model, self.traffic_ = fit_on_cluster(
            self._estimator,
            (frame, target, weight),
            read,
            run,
            eval_set=eval_set,
            eval_names=eval_names,
            groups=groups,
            qid=qid,
            offset=offset,
            memory_limit=memory_limit,
        )
        return model


def predict(model: Any, frame: Any) -> Any:
    """DataFrame with the predictions of a model, computed lazily.

    Parameters
    ----------
    model : fitted estimator, `Predictor`, or path of a model file
    frame : pyspark.sql.DataFrame
        With the columns of the fit.

    Returns
    -------
    pyspark.sql.DataFrame
        The rows and columns of `frame`, and a column "prediction": class labels as in the fit, or
        numbers. Models of classes have a column "probability", too: vectors of pyspark.ml.
    """
    check_frame(frame, "frame")
    return spark_data.with_predictions(
        spark_data.predictor_of(model), frame, None, "prediction", "probability"
    )


class _Columns(HasPredictionCol, HasProbabilityCol):
    """Parameters that an estimator and its model have in common."""

    featuresCol: Any = Param(
        Params._dummy(), "featuresCol", "plain columns, or one column of vectors"
    )

    def __init__(self) -> None:
        super().__init__()
        self._setDefault(featuresCol=None, probabilityCol="probability")

    def getFeaturesCol(self) -> str | list[str] | None:
        """Names of the features."""
        names: str | list[str] | None = self.getOrDefault(self.featuresCol)
        return names


class Estimator(ml.Estimator, _Columns, HasLabelCol, HasWeightCol):
    """Training of an estimator as a stage of a pipeline of pyspark.ml.

    Hyperparameters are those of the estimator that is passed, and not parameters of Spark.

    Parameters
    ----------
    estimator : estimator of arboost
        It stays unfitted; a clone is trained by `DistributedFit`.
    labelCol : str, default="label"
    featuresCol : str or list of str, optional
        Plain columns, or one column of vectors; by default all columns but label and weight.
    predictionCol, probabilityCol : str
        Columns that the model adds; "" for none.
    weightCol : str, optional
    offsetCol : str, optional
        Column with the start of the raw scores; the model reads it, too.
    n_workers : int, optional
        See `DistributedFit`.
    """

    offsetCol: Any = Param(Params._dummy(), "offsetCol", "column with the start of the raw scores")

    def __init__(
        self,
        estimator: Any,
        *,
        labelCol: str = "label",
        featuresCol: str | list[str] | None = None,
        predictionCol: str = "prediction",
        probabilityCol: str = "probability",
        weightCol: str | None = None,
        offsetCol: str | None = None,
        n_workers: int | None = None,
    ) -> None:
        super().__init__()
        self._estimator, self._n_workers = estimator, n_workers
        self._setDefault(weightCol=None, offsetCol=None)
        params = {
            "labelCol": labelCol,
            "featuresCol": featuresCol,
            "predictionCol": predictionCol,
            "probabilityCol": probabilityCol,
            "weightCol": weightCol,
            "offsetCol": offsetCol,
        }
        self._set(**{name: value for name, value in params.items() if value is not None})

    def _fit(self, dataset: Any) -> Model:
        check_frame(dataset, "dataset")
        label, weight = self.getLabelCol(), self.getWeightCol()
        offset: str | None = self.getOrDefault(self.offsetCol)
        role_columns = [label, *(name for name in (weight, offset) if name is not None)]
        frame = spark_data.training_columns(dataset, self.getFeaturesCol(), role_columns)
        fit = DistributedFit(clone(self._estimator), n_workers=self._n_workers)
        fitted = fit.fit(frame, label, weight=weight, offset=offset)
        model: Model = self._copyValues(Model(fitted))
        return model


class Model(ml.Model, _Columns, util.MLReadable, util.MLWritable):
    """A fitted model as a stage of a pipeline of pyspark.ml; see `Estimator`.

    Parameters
    ----------
    model : fitted estimator, `Predictor`, or path of a model file

    Attributes
    ----------
    predictor : Predictor
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.predictor = spark_data.predictor_of(model)

    def write(self) -> util.MLWriter:
        """Writer of a folder with the parameters and the file model.arb."""
        return _Writer(self)

    @classmethod
    def read(cls) -> util.MLReader[Model]:
        """Reader of a folder that `write` has written."""
        return _Reader()

    def _transform(self, dataset: Any) -> Any:
        check_frame(dataset, "dataset")
        return spark_data.with_predictions(
            self.predictor,
            dataset,
            self.getFeaturesCol(),
            self.getPredictionCol(),
            self.getProbabilityCol(),
        )


class _Writer(util.MLWriter):
    """Writer of a model to any file system of Spark."""

    def __init__(self, instance: Model) -> None:
        super().__init__()
        self._instance = instance

    def saveImpl(self, path: str) -> None:
        """Write the folder."""
        util.DefaultParamsWriter.saveMetadata(self._instance, path, self.sc)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / _FILE
            self._instance.predictor.save(file)
            content = file.read_bytes()
        target = self.sc._jvm.org.apache.hadoop.fs.Path(f"{path}/{_FILE}")
        stream = target.getFileSystem(self.sc._jsc.hadoopConfiguration()).create(target)
        stream.write(bytearray(content))
        stream.close()


class _Reader(util.MLReader):
    """Reader of a model from any file system of Spark."""

    def load(self, path: str) -> Model:
        """Load the model of a folder."""
        metadata = util.DefaultParamsReader.loadMetadata(path, self.sc)
        file = self.sparkSession.read.format("binaryFile").load(f"{path}/{_FILE}").head()
        model = Model(load(bytes(file.content)))
        model._resetUid(metadata["uid"])
        util.DefaultParamsReader.getAndSetParams(model, metadata)
        return model
