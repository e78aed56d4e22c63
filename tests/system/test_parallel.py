"""Threads: forked children, several Python threads at once, Ctrl-C, CPU limits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from arboost import GradientBoostingClassifier, _core
from arboost.models.model import Model
from arboost.workers import Workers
from support.core_trees import encode, gradients_of

BIG_ENOUGH_FOR_THREADS = 30_000


def table(n=BIG_ENOUGH_FOR_THREADS, features=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    return X, (X[:, 0] * X[:, 1] + rng.normal(size=n) > 0).astype(int)


def fit_bytes(X, y, n_jobs, tmp_path):
    model = GradientBoostingClassifier(n_estimators=5, n_jobs=n_jobs).fit(X, y)
    path = tmp_path / f"{threading.get_ident()}-{os.getpid()}-{n_jobs}.arb"
    model.save(path)
    return path.read_bytes()


def can_fork(test):
    """Skip a test where processes cannot fork.

    Newer Pythons warn that forking a process with threads may hang; the tests show that it does
    not.
    """
    test = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")(test)
    return pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")(test)


def forked(check):
    """Return whether a check holds in a forked child."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if check() else 1)
        except BaseException:
            os._exit(2)
    return exit_code_of(child) == 0


def exit_code_of(child):
    """Return the exit code of a child process; fail where it hangs."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid == child:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return pytest.fail("the forked child hangs")


@can_fork
def test_fit_in_a_forked_child_after_a_threaded_fit(tmp_path):
    X, y = table()
    expected = fit_bytes(X, y, 2, tmp_path)
    assert forked(lambda: fit_bytes(X, y, 2, tmp_path) == expected)


class ForkingTransport:
    """The other worker sends what it gets; once armed, the process forks, and both calls end."""

    rank, size, armed = 0, 2, False

    def send(self, rank, message):
        self.message = bytes(message)

    def receive(self, rank):
        if not self.armed:
            return self.message
        time.sleep(0.1)  # until the other threads of the call sleep
        self.child = os.fork()
        raise ConnectionError


@can_fork
@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_child_forked_within_a_call_of_the_core_has_threads():
    """The call ends in the child, too, and gives none back that the child's pool has not lent."""
    X, y = table()
    codes = encode(np.digitize(X, np.arange(-2, 3)), [6] * X.shape[1])
    transport = ForkingTransport()
    shared = _core.SharedCodes(codes, 0, 2 * len(X), Workers(transport).core, 0)
    gradients = gradients_of(np.r_[y, y][:, None] - 0.5, np.ones((2 * len(X), 1)))
    grower = _core.Grower(shared, 1, _core.TreeParams())
    transport.armed = True
    with pytest.raises(ConnectionError):
        grower.grow(gradients, 0, seed=1, tree=0, rate=0.1, n_threads=2)
    if transport.child == 0:
        try:
            GradientBoostingClassifier(n_estimators=2, n_jobs=2).fit(X, y)
            os._exit(len(os.listdir("/proc/self/task")))
        except BaseException:
            os._exit(100)
    assert exit_code_of(transport.child) == 2


@can_fork
def test_first_predictions_of_a_child_forked_during_those_of_another_model(monkeypatch):
    """The child has no thread that would finish what the parent's thread has begun."""
    X, y = table(200)
    models = [GradientBoostingClassifier(n_estimators=2).fit(X, y) for _ in range(3)]
    expected, busy = models[0].predict(X[:1]), models[1].model_
    has_begun, may_end = threading.Event(), threading.Event()
    row_model = Model._row_model

    def slow_row_model(self, missing):
        if self is busy:
            has_begun.set()
            may_end.wait(120)
        return row_model(self, missing)

    monkeypatch.setattr(Model, "_row_model", slow_row_model)
    thread = threading.Thread(target=lambda: busy.row)
    thread.start()
    try:
        assert has_begun.wait(60)
        assert forked(lambda: models[2].predict(X[:1]) == expected)
    finally:
        may_end.set()
        thread.join()


def test_fits_in_four_threads_at_once(tmp_path):
    X, y = table()
    expected = fit_bytes(X, y, 2, tmp_path)
    results = [b""] * 4

    def work(i):
        results[i] = fit_bytes(X, y, 2, tmp_path)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_stops_a_long_fit():
    """One tree of this fit takes seconds and all take an hour: the core must check for signals."""
    code = """
        import numpy as np, sys
        from arboost import GradientBoostingRegressor
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(300_000, 30)), rng.normal(size=300_000)
        model = GradientBoostingRegressor(n_estimators=1000, max_depth=None, min_child_weight=0)
        print("fitting", flush=True)
        try:
            model.fit(X, y)
        except KeyboardInterrupt:
            print("interrupted", hasattr(model, "model_"), flush=True)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "fitting\n"
    time.sleep(2)
    child.send_signal(signal.SIGINT)
    out, _ = child.communicate(timeout=60)
    assert out == "interrupted False\n"


@pytest.mark.parametrize("isa", ["baseline", "avx2"])
def test_every_instruction_set_gives_the_same_bytes(isa, tmp_path, instruction_sets):
    code = """
        import sys, numpy as np
        from arboost import AdaBoostClassifier, AdaBoostRegressor
        from arboost import GradientBoostingClassifier, _core
        rng = np.random.default_rng(0)
        X = rng.normal(size=(40_000, 6))
        X[rng.random(X.shape) < 0.1] = np.nan
        y = np.digitize(np.nan_to_num(X[:, 0]) + rng.normal(size=len(X)), [-0.5, 0.5])
        for strategy in ("one_output_per_tree", "multi_output_tree"):
            model = GradientBoostingClassifier(n_estimators=3, multi_strategy=strategy)
            model.fit(X, y).save(sys.argv[1] + strategy)
        model = GradientBoostingClassifier(n_estimators=3, reg_alpha=0.5).fit(X, y > 0)
        model.save(sys.argv[1] + "binary")
        drawn = {"subsample": 0.2, "sampling_method": "gradient_based"}
        model = GradientBoostingClassifier(n_estimators=4, **drawn).fit(X, y > 0)
        model.save(sys.argv[1] + "drawn")
        one_side = {"sampling_method": "goss", "learning_rate": 0.5}
        model = GradientBoostingClassifier(n_estimators=4, **one_side).fit(X, y)
        model.save(sys.argv[1] + "one_side")
        bound = {"subsample": 0.5, "monotone_constraints": {0: 1}, "rate_drop": 0.5}
        model = GradientBoostingClassifier(n_estimators=6, **bound).fit(X, y > 0)
        model.save(sys.argv[1] + "bound")
        for algorithm in ("discrete", "real", "gentle"):
            for name, labels in (("two", y > 0), ("three", y)):
                model = AdaBoostClassifier(n_estimators=3, algorithm=algorithm, max_depth=2)
                model.fit(X, labels).save(sys.argv[1] + algorithm + name)
        model = AdaBoostClassifier(n_estimators=3, resample=True).fit(X, y)
        model.save(sys.argv[1] + "resampled")
        for loss in ("linear", "square", "exponential"):
            model = AdaBoostRegressor(n_estimators=3, loss=loss, resample=loss == "square")
            model.fit(X, np.nan_to_num(X[:, 0] * X[:, 1]) + y).save(sys.argv[1] + loss)
        print(_core.instruction_set())
    """
    seen = []
    for name, wish in ((isa, isa), ("best", None)):
        (tmp_path / name).mkdir()
        seen.append(instruction_sets.run(wish, code, f"{tmp_path / name}{os.sep}"))
    for path in (tmp_path / "best").iterdir():
        assert path.read_bytes() == (tmp_path / isa / path.name).read_bytes(), (path.name, seen)


def test_available_threads_honours_the_affinity_mask():
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("no affinity masks on this system")
    assert 1 <= _core.available_threads() <= len(os.sched_getaffinity(0))


# Rows, n_jobs and threads that the fit starts. Those that start some come last: their threads stay.
STARTED = [(30_000, 1, 0), (200, 8, 0), (30_000, 3, 2)]


@pytest.fixture(scope="module")
def threads_started():
    """Return threads started by each fit of a fresh process, without threads of earlier fits."""
    code = f"""
        import numpy as np, re
        from arboost import GradientBoostingRegressor
        def n_threads():
            return int(re.search(r"Threads:\\s+(\\d+)", open("/proc/self/status").read())[1])
        import sklearn.base
        for rows, n_jobs, _ in {STARTED}:
            rng = np.random.default_rng(0)
            X, y = rng.normal(size=(rows, 8)), rng.normal(size=rows)
            model = GradientBoostingRegressor(n_estimators=3, n_jobs=n_jobs)
            before = n_threads()
            model.fit(X, y)
            print(n_threads() - before)
    """
    run = [sys.executable, "-c", textwrap.dedent(code)]
    out = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    return dict(zip(STARTED, map(int, out.split()), strict=True))


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="reads /proc")
@pytest.mark.parametrize(("rows", "n_jobs", "started"), STARTED)
def test_n_jobs_is_honoured_and_small_fits_start_no_thread(rows, n_jobs, started, threads_started):
    assert threads_started[rows, n_jobs, started] == started
