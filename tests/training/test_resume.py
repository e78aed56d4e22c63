"""Checkpointed training, with a chaotic recurrence instead of trees so that every bit matters."""

from __future__ import annotations

import signal

import numpy as np
import pytest

from arboost import ModelFormatError
from arboost.losses.metrics import Metric
from arboost.training.checkpoint import (
    Checkpoint,
    State,
    WritePace,
    digest,
    read_state,
    write_state,
)
from arboost.training.monitor import Monitor
from arboost.training.resume import Keeper, fingerprint

LOSS = Metric("loss", lambda y, score, weight: 0.0)
PARAMS = {"learning_rate": 0.1, "n_estimators": 30}


class Killed(BaseException):
    """Simulated kill: a BaseException that no code catches."""


class Training:
    """Scores that depend on all earlier scores, and weights that later rounds change."""

    def __init__(self):
        self.weights = np.empty(0)
        self.scores = np.array([[0.1], [0.7]])

    def run_rounds(self, limit=1):
        self.scores[:] = 3.9 * self.scores * (1.0 - self.scores)  # chaotic: every bit matters
        self.weights[::3] *= 0.9
        self.weights = np.append(self.weights, 1.0)

    @property
    def n_rounds(self):
        return len(self.weights)

    def state(self):
        return {"weights": self.weights, "scores_0": self.scores}

    def last_state(self):
        return self.state

    def restore(self, state):
        self.scores[:] = state["scores_0"]
        self.weights = state["weights"].copy()


def fit(checkpoint=None, *, kill_at=None, total=30, params=PARAMS, interrupt_at=None, **options):
    """Run a minimal training loop; return all results that determine a model."""
    training = Training()
    monitor = Monitor(total, metrics=[LOSS], **options)
    with Keeper(checkpoint, lambda: fingerprint(params, {"y": digest(np.zeros(3))})) as keeper:
        best, stop = keeper.resume(training, monitor)
        while not stop:
            if training.n_rounds == interrupt_at:
                signal.raise_signal(signal.SIGINT)
            training.run_rounds()
            loss = float(training.scores[0, 0])
            stop = monitor.after_round(training.n_rounds - 1, {"validation": {"loss": loss}})
            if monitor.is_best:
                best = training.weights.copy()
            keeper.after_round(training, monitor, best)
            if training.n_rounds == kill_at:
                raise Killed
    return (
        training.scores.tobytes(),
        training.weights.tobytes(),
        best.tobytes(),
        monitor.history,
        monitor.best_index,
        monitor.stop_reason,
    )


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.arc"


@pytest.mark.parametrize("options", [{}, {"n_iter_no_change": 9}], ids=["all", "early"])
@pytest.mark.parametrize("every", [1, 4, 10])
@pytest.mark.parametrize("kill_at", [1, 3, 4, 9, 12, 20])
def test_killed_and_resumed_is_as_uninterrupted(path, kill_at, every, options):
    whole = fit(**options)
    checkpoint = Checkpoint(path, every=every)
    rounds = len(whole[3]["validation"]["loss"])
    if kill_at < rounds:
        with pytest.raises(Killed):
            fit(checkpoint, kill_at=kill_at, **options)
        assert path.exists() == (kill_at >= every)
    assert fit(checkpoint, **options) == whole
    assert not path.exists()


def test_killed_twice(path):
    checkpoint = Checkpoint(path, every=3)
    for kill_at in (7, 15):
        with pytest.raises(Killed):
            fit(checkpoint, kill_at=kill_at)
    assert read_state(path).arrays["weights"].shape == (15,)
    assert fit(checkpoint) == fit()


def test_more_rounds_than_the_killed_fit_was_to_have(path):
    with pytest.raises(Killed):
        fit(Checkpoint(path, every=10), kill_at=25)
    assert fit(Checkpoint(path), total=50, params=PARAMS | {"n_estimators": 50}) == fit(total=50)


def test_fewer_rounds_than_the_killed_fit_has(path):
    with pytest.raises(Killed):
        fit(Checkpoint(path, every=10), kill_at=25)
    with pytest.raises(ValueError, match=r"has 20 rounds, but n_estimators=15"):
        fit(Checkpoint(path), total=15)


def test_ctrl_c_keeps_the_round_it_meets(path):
    checkpoint = Checkpoint(path, every=1000)
    with pytest.raises(KeyboardInterrupt):
        fit(checkpoint, interrupt_at=6)
    assert len(read_state(path).arrays["weights"]) == 7
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert fit(checkpoint) == fit()


def test_ctrl_c_without_a_checkpoint_is_not_held():
    with pytest.raises(KeyboardInterrupt):
        fit(interrupt_at=6)


def test_time_budget_leaves_the_file_for_another_fit(path):
    class Clock:
        now = 0.0

        def __call__(self):
            self.now += 1.0
            return self.now

    checkpoint = Checkpoint(path, every=1000)
    first = fit(checkpoint, max_time=12.0, clock=Clock())
    assert first[-1] == "max_time"
    assert path.exists()
    assert fit(checkpoint) == fit()
    assert not path.exists()


def test_error_keeps_the_file(path):
    def fail(done):
        if done.index == 14:
            raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError, match="out of luck"):
        fit(Checkpoint(path, every=5), callbacks=[fail])
    assert len(read_state(path).arrays["weights"]) == 10


def test_other_parameters_are_refused(path):
    with pytest.raises(Killed):
        fit(Checkpoint(path, every=10), kill_at=25)
    with pytest.raises(ValueError, match=r"learning_rate \(0.1 there, 0.2 now\)"):
        fit(Checkpoint(path), params=PARAMS | {"learning_rate": 0.2})


def spoil(path, change):
    """Rewrite a state with changed contents, as a valid file."""
    state = read_state(path)
    arrays, facts = dict(state.arrays), dict(state.facts)
    change(arrays, facts)
    write_state(type(state)(fingerprint=state.fingerprint, facts=facts, arrays=arrays), path)


SPOILT = {
    "no scores": lambda arrays, facts: arrays.pop("scores_0"),
    "few scores": lambda arrays, facts: arrays.update(scores_0=np.zeros((1, 1))),
    "other scores": lambda arrays, facts: arrays.update(scores_0=np.zeros((2, 1), np.float32)),
    "flat scores": lambda arrays, facts: arrays.update(scores_0=np.zeros(2)),
    "long best": lambda arrays, facts: arrays.update(best=np.zeros(99)),
    "no history": lambda arrays, facts: arrays.pop("history_0_0"),
    "short history": lambda arrays, facts: arrays.update(history_0_0=np.zeros(3)),
    "no number": lambda arrays, facts: arrays.update(history_0_0=np.full(20, np.nan)),
    "no facts": lambda arrays, facts: facts.clear(),
    "odd facts": lambda arrays, facts: facts.update(history=5),
    "other metric": lambda arrays, facts: facts.update(history=[["validation", ["x"]]]),
}


@pytest.mark.parametrize("change", SPOILT.values(), ids=SPOILT)
def test_hostile_states(path, change):
    with pytest.raises(Killed):
        fit(Checkpoint(path, every=10), kill_at=25)
    spoil(path, change)
    with pytest.raises(ModelFormatError, match="cannot read the checkpoint"):
        fit(Checkpoint(path))


def weighted(y, score):
    return score


def test_fingerprint():
    first = fingerprint(
        {"eval_metric": ["auc", weighted, LOSS], "constraints": {1: -1}, "t": (1,)}, {}
    )
    assert first["eval_metric"] == ["auc", "function weighted", "Metric loss"]
    assert first["constraints"] == {"1": -1}
    assert first["t"] == [1]
    assert fingerprint({"n_jobs": 1, "verbose": 2, "max_time": 3.0}, {}) == fingerprint({}, {})
    assert "X" in fingerprint({}, {"X": digest(np.zeros(1))})


def test_updates_by_time_take_a_small_share(path):
    """Rounds of 0.1 s, updates of 1 s: a written one is 33 s old at most, and they take 3 %."""
    clock = [0.0]
    pace, written, spent = WritePace(lambda: clock[0]), [], 0.0
    state = State(fingerprint={}, facts={}, arrays={"scores_0": np.zeros(8)})
    for _ in range(10_000):
        clock[0] += 0.1
        if pace.is_due() and pace.allows(state):
            written.append(clock[0])
            with pace.measured():
                clock[0] += 1.0
                spent += 1.0
    assert written[0] == pytest.approx(2.0)
    assert max(np.diff(written)) < 1.0 + 1 / 0.03 + 0.2
    assert spent < 0.031 * clock[0]


def test_the_cost_of_the_first_update_is_estimated(path):
    clock = [0.0]
    pace = WritePace(lambda: clock[0])
    state = State(fingerprint={}, facts={}, arrays={"scores_0": np.zeros(1_250_000)})  # 0.2 s
    clock[0] = 2.5
    assert pace.is_due()
    assert not pace.allows(state)
    assert not pace.is_due()
    clock[0] = 6.7
    assert pace.is_due()
    assert pace.allows(state)


def test_short_fits_write_nothing_by_default(path):
    fit(Checkpoint(path), kill_at=None)
    with pytest.raises(Killed):
        fit(Checkpoint(path), kill_at=25)
    assert not path.exists()
    with pytest.raises(KeyboardInterrupt):
        fit(Checkpoint(path), interrupt_at=6)
    assert len(read_state(path).arrays["weights"]) == 7
    assert fit(Checkpoint(path)) == fit()
