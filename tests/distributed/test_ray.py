"""Fits by actors of Ray: the models of one process, losses of actors, errors, predictions."""

import os
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow
import pytest

ray = pytest.importorskip("ray", reason="ray is not installed")

import arboost  # noqa: E402
from arboost.distributed import ray_data, ray_driver  # noqa: E402
from arboost.distributed.data import PartitionedTable  # noqa: E402
from arboost.distributed.ray_worker import RayTransport  # noqa: E402
from arboost.errors import WorkerError  # noqa: E402
from arboost.ray import DistributedFit, predict, predict_proba  # noqa: E402
from support.cluster_programs import Rounds, all_messages, waits  # noqa: E402
from support.clusters import Listener, Once, part  # noqa: E402
from support.local_programs import Parts  # noqa: E402
from support.paths import ROOT  # noqa: E402
from support.streamed import features, frame, model_bytes, written  # noqa: E402

pytestmark = [
    # Ray Data reads its own deprecated settings.
    pytest.mark.filterwarnings("ignore:`use_:DeprecationWarning:ray.data.context"),
]

TABLE = features(frame(900), "three")
VALID = features(frame(300, seed=1), "three")
ESTIMATORS = {
    "booster": lambda: arboost.GradientBoostingClassifier(
        n_estimators=12, n_iter_no_change=3, random_state=1
    ),
    "forest": lambda: arboost.RandomForestClassifier(n_estimators=4, random_state=1),
    "adaboost": lambda: arboost.AdaBoostClassifier(n_estimators=4, random_state=1),
}


@pytest.fixture(scope="module")
def _cluster():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT / "tests"))  # programs of `support`, for actors
        ray.init(
            num_cpus=3,
            include_dashboard=False,
            object_store_memory=150 << 20,
            logging_level="error",
            log_to_driver=False,
        )
    yield
    ray.shutdown()


def test_devices_are_refused():
    model = arboost.GradientBoostingClassifier(device="cuda")
    with pytest.raises(ValueError, match="device='cuda' is not allowed with Ray"):
        DistributedFit(model).fit("no_file.parquet", "three")


@pytest.fixture
def starts(_cluster, monkeypatch):
    """Names and actors of each start, which a test may kill; none may be left."""
    starts = []
    start = ray_driver.ActorGroup.start

    def note_start(self, ranks):
        lost = start(self, ranks)
        starts.append((list(self.names), list(self.actors)))
        return lost

    monkeypatch.setattr(ray_driver.ActorGroup, "start", note_start)
    yield starts
    for _, actors in starts:
        for actor in actors:
            wait_until_dead(actor)


def wait_until_dead(actor):
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            ray.get(actor.where.remote(), timeout=60)
        except ray.exceptions.RayActorError:
            return
    raise AssertionError("the actor lives")


def pid(names, rank):
    return int(names[rank].split()[-1])


def blocks(table, size):
    return ray.data.from_pandas([table[i : i + size] for i in range(0, len(table), size)])


def one_process(name):
    options = {"eval_set": (Parts([VALID]), "three")} if name == "booster" else {}
    return ESTIMATORS[name]().fit(Parts([TABLE]), "three", **options)


@pytest.mark.parametrize(
    ("name", "kind", "n_workers"),
    [
        ("booster", "dataset", 2),
        ("booster", "files", 3),
        ("forest", "dataset", 3),
        ("forest", "files", 2),
        ("adaboost", "dataset", 2),
        ("adaboost", "files", 3),
    ],
)
def test_same_bytes(starts, tmp_path, name, kind, n_workers):
    """Models of any number of actors are those of one process; some actors may have no rows."""
    if kind == "dataset":
        data, valid = blocks(TABLE, 450), blocks(VALID, 300)
    else:
        data = written(TABLE, tmp_path, [300, 200, 400])
        (tmp_path / "valid").mkdir()
        valid = [written(VALID, tmp_path / "valid", [300])]
    options = {"eval_set": [(valid, "three")]} if name == "booster" else {}
    estimator = ESTIMATORS[name]()
    fit = DistributedFit(estimator, n_workers=n_workers, timeout=30)
    assert fit.fit(data, "three", **options) is estimator
    assert len(starts[0][0]) == n_workers
    assert model_bytes(estimator, tmp_path) == model_bytes(one_process(name), tmp_path)


def test_killed_actor(starts, tmp_path):
    """A new actor gets the rows of a killed one, and training continues from the last round."""
    rounds = []

    def kill(done):
        rounds.append(done.index)
        if len(rounds) == 3:
            os.kill(pid(starts[-1][0], 1), signal.SIGKILL)

    model = ESTIMATORS["booster"]()
    fit = DistributedFit(model, n_workers=2, timeout=30)
    fit.fit(blocks(TABLE, 250), "three", eval_set=(blocks(VALID, 300), "three"), callbacks=[kill])
    assert len(starts) == 2
    assert rounds.count(rounds[0]) == 1
    assert sorted(set(rounds)) == list(range(rounds[0], rounds[-1] + 1))
    assert model_bytes(model, tmp_path) == model_bytes(one_process("booster"), tmp_path)


def run(program, n_parts=2, listener=None, **options):
    references = tuple(ray.put(part(i)) for i in range(n_parts))
    tables = {"train": PartitionedTable(references, (1,) * n_parts)}
    resources = ray_driver.FitResources(**{"n_workers": 2, "timeout": 20, **options})
    return ray_driver.run_program(program, tables, listener or Listener(), resources)


def test_messages(starts):
    """Messages of all sizes arrive in their order."""
    assert run(all_messages, 3, n_workers=3)


def test_killed_first_actor(starts):
    """Rank 0, which the driver watches, is replaced like any other."""
    kill = Listener(Once(lambda message: os.kill(message["pids"][0], signal.SIGKILL)))
    result = run(Rounds(), 3, kill)
    assert result["total"] == Rounds().expected(3)
    assert result["start"] >= 3
    before = kill.questions[0]["pids"]
    assert result["pids"][0] != before[0]
    assert result["pids"][1] == before[1]


def test_too_many_losses(starts):
    def dies(tables, context):
        if context.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        tables["train"].workers.gather(None)

    with pytest.raises(WorkerError) as caught:
        run(dies, retries=1)
    text = str(caught.value)
    assert len(starts) == 2
    assert [pid(names, 1) for names, _ in starts] == [
        int(word.split()[0]) for word in text.split("process ")[1:] if word[0].isdigit()
    ]
    assert "Worker 1 at " in text
    assert "is lost: its worker process has died." in text
    assert text.endswith("retries=1 allows no more.")


def test_hanging_actor(starts, monkeypatch):
    """An actor that stops is replaced after the time limit."""
    group = ray_driver.ActorGroup
    # The limit of silence is short; the start of an actor may take longer.
    monkeypatch.setattr(ray_driver, "ActorGroup", lambda size, n_cpus, _: group(size, n_cpus, 60))
    monkeypatch.setattr(ray_driver, "_ANSWER_LIMIT_S", 5)
    stop = Listener(Once(lambda message: os.kill(message["pids"][1], signal.SIGSTOP)))
    result = run(Rounds(), listener=stop, timeout=5)
    assert result["total"] == Rounds().expected(2)
    before = stop.questions[0]["pids"]
    assert result["pids"][0] == before[0]
    assert result["pids"][1] != before[1]
    with pytest.raises(ProcessLookupError):  # which Ray cannot end where it does not run
        os.kill(pid(starts[0][0], 1), 0)


def test_program_error(starts):
    """An error of the program is raised once, as it is."""
    table = TABLE.assign(three=np.where(np.arange(900) < 890, 1.0, np.inf))
    with pytest.raises(ValueError, match="Input y contains 10 missing or infinite") as caught:
        DistributedFit(arboost.DecisionTreeRegressor(), n_workers=2, timeout=30).fit(
            blocks(table, 450), "three"
        )
    assert isinstance(caught.value, ValueError)
    assert caught.value.__cause__ is None
    assert len(starts) == 1


def test_interrupt(starts):
    """Control-C ends a fit long before the time limit, and all actors with it."""
    pressed = []

    def press():
        pressed.append(time.monotonic())
        signal.raise_signal(signal.SIGINT)

    start = Once(lambda message: threading.Timer(0.2, press).start())
    with pytest.raises(KeyboardInterrupt):
        run(waits, 2, Listener(start), timeout=120)
    assert time.monotonic() - pressed[0] < 30


def test_no_room(starts):
    with pytest.raises(WorkerError, match="1 of 1 workers did not start within 1 seconds: each ne"):
        DistributedFit(ESTIMATORS["forest"](), n_workers=1, cpus_per_worker=64, timeout=1).fit(
            blocks(TABLE, 900), "three"
        )


@pytest.mark.usefixtures("_cluster")
def test_number_of_workers(monkeypatch):
    # Actors of earlier tests may give their CPUs back late.
    monkeypatch.setattr(ray_driver, "_SETTLE_LIMIT_S", 60)
    assert ray_driver.n_available_actors(1) == 3
    assert ray_driver.n_available_actors(2) == 1
    assert ray_driver.n_available_actors(64) == 1


@pytest.mark.usefixtures("_cluster")
def test_order_of_blocks():
    """Blocks are in the order of the rows, without those that have none."""

    def slow_first(table):
        time.sleep(0.3 * (table["i"].iloc[0] == 0))
        return table[table["i"] != 3]

    data = ray.data.from_pandas([pd.DataFrame({"i": [i]}) for i in range(6)])
    data = data.map_batches(slow_first, batch_format="pandas", batch_size=None)
    table = ray_data.table_input(30, data, "i", None)
    rows = [int(value) for one in table.rows.parts for value in ray.get(one)["i"]]
    assert rows == [0, 1, 2, 4, 5]
    assert not data.context.execution_options.preserve_order


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((TABLE, "three"), TypeError, "data is a DataFrame, but must be a Ray Dataset or paths"),
        ((None, "y"), ValueError, "'y'"),
        ((None, None), TypeError, "target=None, but the data are a Ray Dataset"),
        ((None, TABLE["three"]), TypeError, "target is a Series, but must be the name"),
        (("nowhere/*.parquet", "three"), FileNotFoundError, "nowhere"),
        (("nowhere/*.parquet", None), TypeError, "target=None, but the data are paths"),
    ],
)
@pytest.mark.usefixtures("_cluster")
def test_bad_data(arguments, error, message):
    data, target = arguments
    with pytest.raises(error, match=message):
        DistributedFit(ESTIMATORS["forest"]()).fit(
            blocks(TABLE, 450) if data is None else data, target
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_workers": 0}, "n_workers=0"),
        ({"cpus_per_worker": 0}, "cpus_per_worker=0"),
        ({"timeout": 0}, "timeout=0"),
        ({"retries": -1}, "retries=-1"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        DistributedFit(ESTIMATORS["forest"](), **options)


def table_of(data):
    return pyarrow.concat_tables(ray.get(data.to_arrow_refs())).sort_by("id")


@pytest.mark.usefixtures("_cluster")
def test_predict(tmp_path):
    model = one_process("forest")
    model.save(tmp_path / "model.arb")
    rows = TABLE.drop(columns="three").assign(id=np.arange(900))
    data = blocks(rows, 300)
    for given in (model, arboost.load(tmp_path / "model.arb"), tmp_path / "model.arb"):
        found = table_of(predict(given, data))
        assert found.column_names == [*rows.columns, "prediction"]
        np.testing.assert_array_equal(found["prediction"], model.predict(rows.drop(columns="id")))
    found = table_of(predict_proba(model, data))
    classes = np.column_stack([found[f"probability_{i}"] for i in range(3)])
    np.testing.assert_array_equal(classes, model.predict_proba(rows.drop(columns="id")))
    with pytest.raises(TypeError, match="data is a DataFrame, but must be a Ray Dataset"):
        predict(model, rows)


def test_offset_is_a_column(starts, tmp_path):
    rows = TABLE.assign(one=0.0, two=np.linspace(-1.0, 1.0, len(TABLE)), last=0.5)
    names = ["one", "two", "last"]
    known = arboost.GradientBoostingClassifier(n_estimators=3, verbose=0)
    known.fit(Parts([rows]), "three", offset=names)
    model = arboost.GradientBoostingClassifier(n_estimators=3, verbose=0)
    DistributedFit(model, n_workers=2, timeout=30).fit(blocks(rows, 450), "three", offset=names)
    assert model_bytes(model, tmp_path) == model_bytes(known, tmp_path)
    features = rows.drop(columns="three").assign(id=np.arange(len(rows)))
    found = table_of(predict(known, blocks(features, 300)))
    expected = known.predict(rows.drop(columns="three"))
    np.testing.assert_array_equal(found["prediction"], expected)


def test_messages_are_put_in_order():
    """Messages that overtake others wait for them."""
    push = SimpleNamespace(options=lambda **_: None)
    actors = (SimpleNamespace(push=push),) * 2
    transport = RayTransport(
        SimpleNamespace(rank=0, attempt=0, actors=actors, names=("a", "b"), timeout=0.1)
    )
    for number in (2, 0, 3, 1):
        transport.deliver(1, number, bytes([number]))
    assert [transport.receive(1)[0] for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(WorkerError, match="b is lost: it was silent for 1 seconds"):
        transport.receive(1)
