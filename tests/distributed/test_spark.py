"""Fits and predictions on Spark: the same bytes as in one process, errors, losses, pipelines."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import arboost
from arboost.errors import WorkerError
from support.local_programs import Parts

pytest.importorskip("pyspark", reason="pyspark is not installed")
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java, which is not installed", allow_module_level=True)

from pyspark.ml import Pipeline, PipelineModel
from pyspark.ml.evaluation import BinaryClassificationEvaluator
from pyspark.ml.feature import VectorAssembler
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import arboost.spark
from arboost.spark import DistributedFit
from support.spark_programs import DyingClassifier, FailingClassifier

TESTS = Path(__file__).parents[1]
pytestmark = [
    pytest.mark.slow,
    # Of pyspark itself: its gateway leaves sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning"),
]


@pytest.fixture(scope="module")
def spark():
    """A session whose tasks are processes; ARBOOST_SPARK_MASTER may name another master."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", str(TESTS), prepend=os.pathsep)
        session = (
            SparkSession.builder.master(os.environ.get("ARBOOST_SPARK_MASTER", "local[2]"))
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.executorEnv.PYTHONPATH", str(TESTS))
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


def table(n=600, seed=0):
    random = np.random.default_rng(seed)
    number = random.normal(size=n)
    count = random.integers(0, 9, n)
    color = random.choice(["red", "green", "blue"], n)
    score = number + (color == "red") - 0.3 * count + random.normal(size=n)
    return pa.table(
        {
            "number": pa.array(number, mask=random.random(n) < 0.1),
            "count": pa.array(count, mask=random.random(n) < 0.1),
            "color": pa.array(color, mask=random.random(n) < 0.1),
            "weight": random.random(n),
            "target": np.where(score > 0, "yes", "no"),
        }
    )


TRAIN, VALID = table(), table(200, seed=1)


def frame_of(spark, rows, n_partitions=2):
    """Return a DataFrame whose partitions have consecutive rows."""
    return spark.createDataFrame(rows.to_pylist(), schema(rows), verifySchema=False).transform(
        lambda frame: spark.createDataFrame(frame.rdd.coalesce(1), frame.schema)
        if n_partitions == 1
        else frame
    )


def schema(rows):
    names = {"double": "double", "int64": "bigint", "string": "string"}
    return ", ".join(f"{field.name} {names[str(field.type)]}" for field in rows.schema)


def bytes_of(model, folder):
    model.save(folder / "model.arb")
    return (folder / "model.arb").read_bytes()
