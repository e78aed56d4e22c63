"""The training program in threads: the model of one process, whatever the parts and the losses."""

from itertools import pairwise

import numpy as np
import pytest

import arboost
from arboost.distributed.training import TrainingListener, TrainingProgram, finish_fit
from arboost.params import auto
from support.cluster_fits import FITS, estimator_of, expected_bytes, options_of, table_of
from support.local_programs import Parts, run_program
from support.streamed import features, frame, model_bytes

pytestmark = pytest.mark.filterwarnings("ignore::arboost.DataWarning")

# Bounds of the parts of each worker, as shares of the rows; some workers have none.
PARTITIONS = {
    "one": [[0.0, 0.3, 1.0]],
    "two": [[0.0, 0.51], [0.51, 0.6, 1.0]],
    "three": [[0.0, 0.1], [0.1, 0.11, 0.9], [0.9, 1.0]],
    "five, some empty": [[0.0, 0.0], [0.0, 0.2, 0.3], [], [0.3, 0.99], [0.99, 1.0]],
}


def parts_of(table, partition):
    """Return the tables of each worker."""
    n = len(table)
    return [[table.iloc[int(n * a) : int(n * b)] for a, b in pairwise(of)] for of in partition]


def fitted(name, partition, losses=(), callbacks=(), checkpoint=None):
    """Return the model of workers in threads."""
    table, target, weight, validates = table_of(name)
    tables, columns = {"train": parts_of(table, partition)}, {"train": (target, weight)}
    if validates:
        tables["validation_0"] = parts_of(table.iloc[::3], partition)
        columns["validation_0"] = (target, weight)
    estimator = estimator_of(name)
    program = TrainingProgram(
        estimator,
        columns,
        options_of(name),
        eval_tables=("validation_0",) if validates else (),
        has_callbacks=bool(callbacks),
        checkpoint=checkpoint,
    )
    results = run_program(program, tables, TrainingListener(callbacks, 0), losses)
    return finish_fit(estimator, results[0])


@pytest.mark.parametrize("partition", PARTITIONS.values(), ids=PARTITIONS.keys())
@pytest.mark.parametrize("name", FITS)
def test_same_model(name, partition, tmp_path):
    assert model_bytes(fitted(name, partition), tmp_path) == expected_bytes(name, tmp_path)


@pytest.mark.parametrize("losses", [[(0, 0.8)], [(2, 0.1), (1, 0.6)]], ids=str)
@pytest.mark.parametrize("name", FITS)
def test_losses(name, losses, tmp_path):
    model = fitted(name, PARTITIONS["three"], losses)
    assert model_bytes(model, tmp_path) == expected_bytes(name, tmp_path)


@pytest.mark.parametrize("losses", [(), [(1, 0.6)]], ids=str)
@pytest.mark.parametrize("partition", [PARTITIONS["three"], PARTITIONS["five, some empty"]])
def test_second_look(partition, losses, tmp_path, monkeypatch):
    """A search that looks twice: the first one ends after 18 rounds, the second after 47."""
    monkeypatch.setattr(auto, "_FIRST_STEPS", 8.0)
    estimator = arboost.GradientBoostingClassifier(
        preset="fast", max_depth=2, learning_rate=0.3, validation_split="time"
    )
    monkeypatch.setitem(FITS, "twice", ("two", estimator, {"weight": "weight"}))
    model = fitted("twice", partition, losses)
    assert model.n_iter_ == 47
    assert model_bytes(model, tmp_path) == expected_bytes("twice", tmp_path)


def test_callbacks(tmp_path):
    rounds = []

    def stop_after_third(done):
        rounds.append((done.index, done.results))
        return done.index == 2

    model = fitted("evaluation set", PARTITIONS["two"], callbacks=[stop_after_third])
    assert [index for index, _ in rounds] == [0, 1, 2]
    assert set(rounds[0][1]["validation"]) == {"auc", "log_loss"}
    assert model.stop_reason_ == "callback stop_after_third"


def test_checkpoint_of_a_client(tmp_path):
    """A fit that its client interrupts continues from the file, with other workers."""
    path = tmp_path / "fit.arc"

    def interrupt(done):
        if done.index == 2:
            raise KeyboardInterrupt

    checkpoint = arboost.Checkpoint(path, every=1)
    with pytest.raises(KeyboardInterrupt):
        fitted("two classes", PARTITIONS["two"], callbacks=[interrupt], checkpoint=checkpoint)
    assert path.exists()
    seen = []
    model = fitted(
        "two classes",
        PARTITIONS["three"],
        callbacks=[lambda done: seen.append(done.index)],
        checkpoint=checkpoint,
    )
    assert seen == [2, 3]
    assert not path.exists()
    assert model_bytes(model, tmp_path) == expected_bytes("two classes", tmp_path)


def test_checkpoint_of_other_rows(tmp_path):
    checkpoint = arboost.Checkpoint(tmp_path / "fit.arc", every=1)

    def interrupt(done):
        if done.index == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted("regression", PARTITIONS["two"], callbacks=[interrupt], checkpoint=checkpoint)
    with pytest.raises(ValueError, match="another fit"):
        fitted("weights", PARTITIONS["two"], checkpoint=checkpoint)


def test_time_limit(tmp_path, monkeypatch):
    """Workers whose clocks differ stop after the same round; no file is left."""
    monkeypatch.chdir(tmp_path)
    table = features(frame(700), "number")
    estimator = arboost.GradientBoostingRegressor(n_estimators=100_000, max_time=0.3, verbose=0)
    program = TrainingProgram(estimator, {"train": ("number", None)}, {})
    parts = parts_of(table, PARTITIONS["three"])
    results = run_program(program, {"train": parts}, TrainingListener((), 0))
    rounds = {result.attributes["model_"].n_rounds for result in results}
    assert len(rounds) == 1
    assert 1 <= rounds.pop() < 100_000
    assert not list(tmp_path.iterdir())


def test_warnings_reach_the_client():
    table = features(frame(200), "number")
    table["key"] = [f"row {i}" for i in range(200)]
    estimator = arboost.GradientBoostingRegressor(n_estimators=1, verbose=0)
    program = TrainingProgram(estimator, {"train": ("number", None)}, {})
    parts = parts_of(table, PARTITIONS["two"])
    results = run_program(program, {"train": parts}, TrainingListener((), 0))
    with pytest.warns(arboost.DataWarning, match="key"):
        finish_fit(estimator, results[0])


def test_out_of_bag_scores(tmp_path):
    table = features(frame(500), "two").drop(columns="weight")
    forest = arboost.RandomForestClassifier(n_estimators=12, oob_score=True, random_state=3)
    expected = arboost.RandomForestClassifier(**forest.get_params()).fit(Parts([table]), "two")
    program = TrainingProgram(forest, {"train": ("two", None)}, {})
    parts = parts_of(table, PARTITIONS["three"])
    results = run_program(program, {"train": parts}, TrainingListener((), 0))
    found = finish_fit(forest, results[0])
    assert found.oob_score_ == expected.oob_score_
    np.testing.assert_array_equal(found.oob_decision_function_, expected.oob_decision_function_)
    assert found.model_.provenance == expected.model_.provenance
    assert found.model_.provenance["history"]["out_of_bag"]["trees"] == list(range(1, 13))


def test_voting():
    """Workers that vote find good splits with less traffic, all of them the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 120))
    y = X[:, 7] + 2 * X[:, 80] * (X[:, 3] > 0) + 0.1 * rng.normal(size=4000)
    parts = [[(X[:1500], y[:1500])], [(X[1500:], y[1500:])]]
    models, sent = [], []
    for n_votes in (0, 3):
        estimator = arboost.GradientBoostingRegressor(n_estimators=20, max_depth=4, verbose=0)
        program = TrainingProgram(estimator, {"train": (None, None)}, {}, n_votes=n_votes)
        results = run_program(program, {"train": parts}, TrainingListener((), 0))
        forests = [result.attributes["model_"].forest for result in results]
        np.testing.assert_array_equal(forests[0].value, forests[1].value)
        sent.append(results[0].traffic[0].n_bytes)
        models.append(finish_fit(estimator, results[0]))
    assert sent[1] < sent[0] / 3
    errors = [np.mean((model.predict(X) - y) ** 2) for model in models]
    assert errors[1] < 1.2 * errors[0]


THREADED = {
    "plain": {},
    "samples": {"subsample": 0.5},
    "goss": {"sampling_method": "goss", "learning_rate": 0.5},
    "leaf sizes": {"min_samples_leaf": 20, "grow_policy": "leafwise", "max_leaves": 15},
    "vector leaves": {"multi_strategy": "multi_output_tree"},
    "dropout": {"rate_drop": 0.5},
    "line search": {"boosting": "gradient", "line_search": "round"},
}


@pytest.mark.parametrize("n_votes", [0, 1])
@pytest.mark.parametrize("params", THREADED.values(), ids=THREADED.keys())
def test_threads_make_no_difference(params, n_votes, tmp_path):
    """40,000 rows of three classes in two workers, each of 1, 2 and 4 threads."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 8)).astype(np.float32)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.5]).astype(np.float64)
    parts = [[(X[:25_000], y[:25_000])], [(X[25_000:], y[25_000:])]]
    options = {"n_estimators": 3, "max_depth": 5, "verbose": 0, **params}

    def by_workers(n_jobs):
        estimator = arboost.GradientBoostingClassifier(n_jobs=n_jobs, **options)
        program = TrainingProgram(estimator, {"train": (None, None)}, {}, n_votes=n_votes)
        results = run_program(program, {"train": parts}, TrainingListener((), 0))
        return model_bytes(finish_fit(estimator, results[0]), tmp_path)

    models = {by_workers(n_jobs) for n_jobs in (1, 2, 4)}
    assert len(models) == 1
    if n_votes == 0:
        expected = arboost.GradientBoostingClassifier(n_jobs=1, **options).fit(X, y)
        assert models == {model_bytes(expected, tmp_path)}
