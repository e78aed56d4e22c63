"""Fits and predictions on Spark: the same bytes as in one process, errors, losses, pipelines."""

import os
import pickle
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest
from sklearn.base import clone

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
from pyspark.sql import functions as F  # noqa: N812 - the name of all users of Spark

import arboost.spark
from arboost.distributed.spark_driver import regroup
from arboost.spark import DistributedFit
from support.spark_programs import DyingClassifier, FailingClassifier

TESTS = Path(__file__).parents[1]
pytestmark = [
    # Of pyspark itself: its gateway leaves sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed <socket.socket:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
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
            .config("spark.sql.shuffle.partitions", "4")
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
    names = {"double": "double", "int64": "bigint", "string": "string"}
    schema = ", ".join(f"{field.name} {names[str(field.type)]}" for field in rows.schema)
    tuples = [tuple(row.values()) for row in rows.to_pylist()]
    return spark.createDataFrame(spark.sparkContext.parallelize(tuples, n_partitions), schema)


def bytes_of(model):
    return pickle.dumps(model.model_)  # the bytes of its file


def booster(**params):
    return arboost.GradientBoostingClassifier(n_estimators=12, random_state=0, **params)


ESTIMATORS = {
    "forest": arboost.RandomForestClassifier(n_estimators=5, random_state=0),
    "adaboost": arboost.AdaBoostClassifier(n_estimators=5, random_state=0),
}


@pytest.fixture(scope="module")
def train(spark):
    return frame_of(spark, TRAIN).cache()


def test_booster(spark, train):
    options = {"n_iter_no_change": 2}
    valid = frame_of(spark, VALID, 3)
    model = booster(learning_rate=0.9, **options)
    sets = [(valid, "target", "weight"), (train, "target", "weight")]
    fitted = DistributedFit(model, timeout=30).fit(
        train, "target", weight="weight", eval_set=sets, eval_names=["valid", "train"]
    )
    assert fitted is model
    source = Parts([TRAIN])
    alone = booster(learning_rate=0.9, **options).fit(
        source,
        "target",
        "weight",
        eval_set=[(Parts([VALID]), "target", "weight"), (source, "target", "weight")],
        eval_names=["valid", "train"],
    )
    assert alone.model_.n_rounds < 12
    assert bytes_of(fitted) == bytes_of(alone)
    assert fitted.evals_result_ == alone.evals_result_


@pytest.mark.parametrize("name", ESTIMATORS)
def test_other_estimators(train, name):
    fitted = DistributedFit(clone(ESTIMATORS[name])).fit(train, "target")
    alone = clone(ESTIMATORS[name]).fit(Parts([TRAIN]), "target")
    assert bytes_of(fitted) == bytes_of(alone)


@pytest.mark.parametrize("kind", ["many", "empty", "union", "one_worker"])
def test_partitions(spark, kind):
    frames = {
        "many": lambda: frame_of(spark, TRAIN, 7),
        "empty": lambda: frame_of(spark, TRAIN).where("weight < 2 and spark_partition_id() = 1"),
        "union": lambda: frame_of(spark, TRAIN, 1).union(frame_of(spark, VALID, 1)),
        "one_worker": lambda: frame_of(spark, TRAIN),
    }
    rows = {"empty": TRAIN.slice(300), "union": pa.concat_tables([TRAIN, VALID])}.get(kind, TRAIN)
    n_workers = 1 if kind == "one_worker" else None
    fitted = DistributedFit(booster(), n_workers=n_workers).fit(frames[kind](), "target")
    # Early rows have a say in the order of sums and in that of levels.
    assert bytes_of(fitted) == bytes_of(booster().fit(Parts([rows]), "target"))


def test_rows_keep_their_order(spark):
    rows = regroup(spark.range(0, 1000, 1, 7).cache(), 7, 3)
    parts = rows.groupBy(F.spark_partition_id()).agg(F.collect_list("id")).collect()
    assert len(parts) == 3
    assert [i for row in sorted(parts) for i in row[1]] == list(range(1000))


def test_lost_task(spark, train, tmp_path):
    (tmp_path / "one").touch()
    model = DyingClassifier(n_estimators=12, random_state=0)
    model.folder = str(tmp_path)
    DistributedFit(model).fit(train, "target")  # far from the end of its timeout
    assert not list(tmp_path.glob("*"))
    assert bytes_of(model) == bytes_of(booster().fit(Parts([TRAIN]), "target"))
    for i in range(2):
        (tmp_path / str(i)).touch()
    with pytest.raises(WorkerError, match="has failed 2 times, because tasks were lost"):
        DistributedFit(model, retries=1).fit(train, "target")


def test_stopped_task(train, tmp_path):
    (tmp_path / "one").touch()
    model = DyingClassifier(n_estimators=12, random_state=0)
    model.folder, model.signal = str(tmp_path), signal.SIGSTOP
    DistributedFit(model, timeout=5).fit(train, "target")
    assert not list(tmp_path.glob("*"))
    assert bytes_of(model) == bytes_of(booster().fit(Parts([TRAIN]), "target"))
    end = time.monotonic() + 20
    while stopped := [
        child.pid
        for child in psutil.Process().children(recursive=True)
        if child.status() == psutil.STATUS_STOPPED
    ]:
        assert time.monotonic() < end, f"{stopped} is left behind"
        time.sleep(0.2)


def test_errors_of_programs(train):
    with pytest.raises(ValueError, match="n_estimators=-1") as caught:
        DistributedFit(arboost.GradientBoostingClassifier(n_estimators=-1)).fit(train, "target")
    assert any("Task 0" in note for note in caught.value.__notes__)
    with pytest.raises(KeyError, match="only here"):
        DistributedFit(FailingClassifier()).fit(train, "target")


def test_bad_arguments(spark, train):
    with pytest.raises(ValueError, match="n_workers=0"):
        DistributedFit(booster(), n_workers=0)
    with pytest.raises(ValueError, match="timeout=0"):
        DistributedFit(booster(), timeout=0)
    with pytest.raises(ValueError, match="more than the 2 tasks"):
        DistributedFit(booster(), n_workers=3).fit(train, "target")
    with pytest.raises(ValueError, match="target='none' is not a column"):
        DistributedFit(booster()).fit(train, "none")
    with pytest.raises(TypeError, match="frame is a Table"):
        DistributedFit(booster()).fit(TRAIN, "target")
    with pytest.raises(TypeError, match="does not train on a cluster"):
        DistributedFit(object()).fit(train, "target")
    with pytest.raises(ValueError, match="column 'prediction' already"):
        arboost.spark.predict(TRAINED, train.withColumn("prediction", F.lit(1)))
    with pytest.raises(ValueError, match="'number' is not a column"):
        arboost.spark.predict(TRAINED, train.drop("number"))
    with pytest.raises(TypeError, match="model is a int"):
        arboost.spark.predict(1, train)


FEATURES = TRAIN.drop(["weight", "target"])
TRAINED = booster().fit(FEATURES, TRAIN["target"].to_numpy())


def test_predictions(train, tmp_path):
    found = arboost.spark.predict(TRAINED, train).collect()
    assert [row.prediction for row in found] == TRAINED.predict(FEATURES).tolist()
    shares = np.array([row.probability.toArray() for row in found])
    np.testing.assert_array_equal(shares, TRAINED.predict_proba(FEATURES))
    assert [row.color for row in found] == TRAIN["color"].to_pylist()
    TRAINED.save(tmp_path / "model.arb")
    again = arboost.spark.predict(tmp_path / "model.arb", train).collect()
    assert again == found


def test_numbers(spark, train):
    X, y = np.arange(20.0).reshape(10, 2), np.arange(20.0).reshape(10, 2)
    frame = spark.createDataFrame(X.tolist(), "a double, b double")
    one = arboost.DecisionTreeRegressor().fit(X, y[:, 0])
    assert [row.prediction for row in arboost.spark.predict(one, frame).collect()] == list(y[:, 0])
    assert arboost.spark.predict(one, frame).columns == ["a", "b", "prediction"]
    two = arboost.DecisionTreeRegressor().fit(X, y)
    assert [row.prediction for row in arboost.spark.predict(two, frame).collect()] == y.tolist()


def test_pipeline_of_vectors(spark, train, tmp_path):
    frame = train.select(
        F.coalesce("number", F.lit(float("nan"))).alias("number"),
        "weight",
        (F.col("target") == "yes").cast("double").alias("label"),
    )
    assembler = VectorAssembler(
        inputCols=["number", "weight"], outputCol="features", handleInvalid="keep"
    )
    stage = arboost.spark.Estimator(booster(), featuresCol="features")
    model = Pipeline(stages=[assembler, stage]).fit(frame)
    rows = pa.Table.from_pylist([row.asDict() for row in frame.collect()])
    alone = booster().fit(Parts([rows]), "label")
    assert bytes_of_model(model.stages[-1]) == bytes_of(alone)
    scored = model.transform(frame)
    assert [row.prediction for row in scored.collect()] == alone.predict(rows).tolist()
    evaluator = BinaryClassificationEvaluator(rawPredictionCol="probability")
    assert evaluator.evaluate(scored) > 0.7
    model.write().overwrite().save(str(tmp_path / "pipeline"))
    loaded = PipelineModel.load(str(tmp_path / "pipeline"))
    again = loaded.transform(frame).select("probability").collect()
    assert again == scored.select("probability").collect()
    (file,) = (tmp_path / "pipeline").glob("stages/*/model.arb")
    assert arboost.load(file).n_rounds == 12


def test_estimator_of_plain_columns(train):
    stage = arboost.spark.Estimator(
        booster(),
        labelCol="target",
        weightCol="weight",
        featuresCol=["color", "number"],
        predictionCol="guess",
        probabilityCol="",
    )
    model = stage.fit(train)
    kept = TRAIN.select(["color", "number", "target", "weight"])
    alone = booster().fit(Parts([kept]), "target", "weight")
    assert bytes_of_model(model) == bytes_of(alone)
    scored = model.transform(train)
    assert scored.columns == [*train.columns, "guess"]
    assert [row.guess for row in scored.collect()] == alone.predict(kept.drop("weight")).tolist()
    other = stage.fit(train, {stage.predictionCol: "other"})
    assert other.getPredictionCol() == "other"


def test_offset_is_a_column(spark):
    rows = TRAIN.append_column("start", pa.array(np.linspace(-1.0, 1.0, TRAIN.num_rows)))
    frame = frame_of(spark, rows)
    alone = booster().fit(Parts([rows]), "target", offset="start")
    model = DistributedFit(booster()).fit(frame, "target", offset="start")
    assert bytes_of(model) == bytes_of(alone)
    found = arboost.spark.predict(model, frame).collect()
    assert [row.prediction for row in found] == alone.predict(rows.drop("target")).tolist()
    stage = arboost.spark.Estimator(booster(), labelCol="target", offsetCol="start")
    assert bytes_of_model(stage.fit(frame)) == bytes_of(alone)
    with pytest.raises(ValueError, match="offset='begin' is not a column"):
        DistributedFit(booster()).fit(frame, "target", offset="begin")
    with pytest.raises(ValueError, match="offset='start' is not a column"):
        arboost.spark.predict(model, frame.drop("start"))


def bytes_of_model(model):
    return pickle.dumps(model.predictor)
