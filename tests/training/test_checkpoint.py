"""Checkpoints: round trips, detection of damage, and refusal of states of other fits."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import struct
import threading

import numpy as np
import pytest

from arboost import ModelFormatError
from arboost.losses.metrics import Metric
from arboost.training.checkpoint import (
    Checkpoint,
    CheckpointWriter,
    HeldInterrupt,
    State,
    WritePace,
    digest,
    fingerprint,
)
from arboost.training.monitor import Monitor

DIGEST = 32
FINGERPRINT = {"learning_rate": 0.1, "max_depth": None, "y": digest(np.arange(3.0)), "k": [1, 2]}


def state(**changes):
    fields = {
        "fingerprint": FINGERPRINT,
        "facts": {"rounds": 7, "names": ["validation"]},
        "arrays": {
            "scores": np.array([[1 / 3], [-0.0], [np.inf], [5e-324]]),
            "left": np.array([1, 0, 0], np.int32),
            "default_left": np.array([True, False, True]),
            "nothing": np.empty((0, 3)),
            "bytes": np.array([[1, 2], [3, 255]], np.uint8),
        },
    }
    return State(**(fields | changes))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.arc"


def sealed(data):
    body = bytearray(data[:-DIGEST])
    body[16:24] = struct.pack("<Q", len(data))
    return bytes(body) + hashlib.blake2b(body, digest_size=DIGEST).digest()


def with_header(data, change):
    (size,) = struct.unpack_from("<Q", data, 24)
    header = json.loads(data[32 : 32 + size])
    change(header)
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    text += b" " * ((size - len(text)) % 8)
    return sealed(data[:24] + struct.pack("<Q", len(text)) + text + data[32 + size :])


def test_round_trip(path):
    Checkpoint(path).store(state())
    again = State.from_bytes(path.read_bytes(), str(path))
    assert again.fingerprint == FINGERPRINT
    assert again.facts == {"rounds": 7, "names": ["validation"]}
    assert list(again.arrays) == list(state().arrays)
    for name, array in state().arrays.items():
        assert again.arrays[name].dtype == array.dtype
        assert again.arrays[name].shape == array.shape
        assert again.arrays[name].tobytes() == array.tobytes()
    first = path.read_bytes()
    Checkpoint(path).store(again)
    assert path.read_bytes() == first


def test_failed_write_leaves_the_old_state(path, monkeypatch):
    Checkpoint(path).store(state())
    before = path.read_bytes()

    def no_space(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        Checkpoint(path).store(state(facts={}))
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


def test_every_flipped_byte_and_every_truncation_is_noticed():
    data = state().to_bytes()
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x80
        for content in (bytes(damaged), data[:position]):
            with pytest.raises(ModelFormatError, match=r"cannot read the checkpoint 'fit.arc'"):
                State.from_bytes(content, "fit.arc")


def test_model_file_is_refused(path):
    path.write_bytes(b"\x91ARB\r\n\x1a\n" + bytes(100))
    with pytest.raises(ModelFormatError, match="it is not an arboost checkpoint"):
        Checkpoint(path).load(FINGERPRINT)


def set_section(**changes):
    def change(header):
        for section in header["sections"]:
            if section[0] == "scores":
                section[1] = changes.get("dtype", section[1])
                section[2] = changes.get("shape", section[2])

    return change


HOSTILE = {
    "huge shape": set_section(shape=[2**62]),
    "negative shape": set_section(shape=[-4]),
    "pickled type": set_section(dtype="|O"),
    "no sections": lambda header: header.update(sections=[]),
    "no facts": lambda header: header.pop("facts"),
    "facts of another kind": lambda header: header.update(facts=[1]),
    "fingerprint of another kind": lambda header: header.update(fingerprint="x"),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_headers(path, change):
    Checkpoint(path).store(state())
    path.write_bytes(with_header(path.read_bytes(), change))
    with pytest.raises(ModelFormatError, match="Delete it to start the fit anew"):
        State.from_bytes(path.read_bytes(), str(path))


def test_load(path):
    checkpoint = Checkpoint(path)
    assert checkpoint.load(FINGERPRINT) is None
    checkpoint.store(state())
    assert checkpoint.load(FINGERPRINT).facts["rounds"] == 7
    assert checkpoint.load(FINGERPRINT | {"k": (1, 2)}).facts["rounds"] == 7
    checkpoint.remove()
    assert checkpoint.load(FINGERPRINT) is None
    checkpoint.remove()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.3}, r"differ in learning_rate \(0.1 there, 0.3 now\)\. Make"),
        ({"max_depth": 6}, r"max_depth \(None there, 6 now\)"),
        ({"y": digest(np.arange(4.0))}, r"differ in y\. Make"),
        ({"k": [1, 3]}, r"k \(\[1, 2\] there, \[1, 3\] now\)"),
        ({"new": "x" * 100}, r"new \(not given there, 'x{59}\.\.\. now\)"),
        ({"learning_rate": 0.3, "max_depth": 1}, r"0.3 now\), max_depth \("),
    ],
)
def test_state_of_another_fit(path, changes, message):
    Checkpoint(path).store(state())
    with pytest.raises(ValueError, match=message):
        Checkpoint(path).load(FINGERPRINT | changes)
    assert path.exists()


def test_parameter_of_another_version(path):
    Checkpoint(path).store(state())
    with pytest.raises(ValueError, match=r"max_depth \(None there, not given now\)"):
        Checkpoint(path).load({key: FINGERPRINT[key] for key in FINGERPRINT if key != "max_depth"})


@pytest.mark.parametrize(
    "arrays",
    [
        (np.zeros(4, np.float32),),
        (np.zeros((2, 1)),),
        (np.array([0.0, -0.0]),),
        (np.zeros(2), None),
        (np.zeros(1), np.zeros(1)),
        (None,),
        (),
    ],
    ids=repr,
)
def test_digest_tells_arrays_apart(arrays):
    assert digest(np.zeros(2)) != digest(*arrays)


def test_digest_is_of_the_values_not_of_their_layout():
    values = np.arange(12.0).reshape(3, 4)
    assert digest(values) == digest(np.asfortranarray(values)) == digest(values.astype(">f8"))


def test_due_rounds(path):
    checkpoint = Checkpoint(path, every=4)
    pace = WritePace()
    assert [rounds for rounds in range(1, 13) if checkpoint.is_due(rounds, pace)] == [4, 8, 12]
    assert [checkpoint.rounds_at_once(rounds) for rounds in (0, 1, 3, 4)] == [4, 3, 1, 4]
    by_time = Checkpoint(path)
    assert by_time.every is None
    assert by_time.rounds_at_once(7) is None
    assert not by_time.is_due(10, pace)


def test_argument_of_fit(path):
    assert Checkpoint.of(None) is None
    assert Checkpoint.of(path) == Checkpoint(path)
    assert Checkpoint.of(str(path)) == Checkpoint(str(path))
    own = Checkpoint(path, every=3)
    assert Checkpoint.of(own) is own


@pytest.mark.parametrize("given", [3, True, b"path", ["a"]], ids=repr)
def test_no_path(given):
    with pytest.raises(TypeError, match=r"checkpoint=.* must be a path, an arboost.Checkpoint"):
        Checkpoint.of(given)


@pytest.mark.parametrize(
    ("every", "error"), [(0, ValueError), (-1, ValueError), (2.0, TypeError), (True, TypeError)]
)
def test_every(path, every, error):
    with pytest.raises(error, match=r"every=.* must be an integer of at least 1"):
        Checkpoint(path, every=every)


def test_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"does not exist\. Make the folder first"):
        Checkpoint(tmp_path / "no" / "fit.arc")


def test_interrupt_is_held_until_the_end():
    steps = []

    def work():
        with HeldInterrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
            assert interrupt.requested
            steps.append("the round ends")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["the round ends"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_second_interrupt_is_not_held():
    steps = []

    def work():
        with HeldInterrupt():
            signal.raise_signal(signal.SIGINT)
            steps.append("once")
            signal.raise_signal(signal.SIGINT)
            steps.append("twice")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert steps == ["once"]


def test_nothing_is_held_without_an_interrupt():
    with HeldInterrupt() as interrupt:
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    assert not interrupt.requested
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_handlers_stay(monkeypatch):
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        with HeldInterrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [signal.SIGINT]
    assert not interrupt.requested


def test_threads_hold_nothing():
    asked = []

    def work():
        with HeldInterrupt() as interrupt:
            asked.append(interrupt.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert asked == [False]


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
    with CheckpointWriter(
        checkpoint, lambda: fingerprint(params, {"y": digest(np.zeros(3))})
    ) as keeper:
        best, stop = keeper.resume(training, monitor)
        while not stop:
            if training.n_rounds == interrupt_at:
                signal.raise_signal(signal.SIGINT)
            training.run_rounds()
            loss = float(training.scores[0, 0])
            stop = monitor.after_round(training.n_rounds - 1, {"validation": {"loss": loss}})
            if monitor.best_index == training.n_rounds - 1:
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
    assert State.from_bytes(path.read_bytes(), str(path)).arrays["weights"].shape == (15,)
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
    assert len(State.from_bytes(path.read_bytes(), str(path)).arrays["weights"]) == 7
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
    assert len(State.from_bytes(path.read_bytes(), str(path)).arrays["weights"]) == 10


def test_other_parameters_are_refused(path):
    with pytest.raises(Killed):
        fit(Checkpoint(path, every=10), kill_at=25)
    with pytest.raises(ValueError, match=r"learning_rate \(0.1 there, 0.2 now\)"):
        fit(Checkpoint(path), params=PARAMS | {"learning_rate": 0.2})


def spoil(path, change):
    """Rewrite a state with changed contents, as a valid file."""
    state = State.from_bytes(path.read_bytes(), str(path))
    arrays, facts = dict(state.arrays), dict(state.facts)
    change(arrays, facts)
    Checkpoint(path).store(type(state)(fingerprint=state.fingerprint, facts=facts, arrays=arrays))


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
    assert len(State.from_bytes(path.read_bytes(), str(path)).arrays["weights"]) == 7
    assert fit(Checkpoint(path)) == fit()
