"""The monitor: best round, stop reasons, callbacks, and rounds of a resumed fit."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from arboost.losses.metrics import Metric
from arboost.training.monitor import Monitor, Round


def nothing(y, score, weight):
    return 0.0


LOSS, ERROR = Metric("loss", nothing), Metric("error", nothing)
GAIN = Metric("gain", nothing, greater_is_better=True)


class Clock:
    """Clock that tests set."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def run(monitor, values, name="validation", metric="loss"):
    """Pass one metric value per round until the monitor stops; return the number of rounds."""
    for index, value in enumerate(values):
        if monitor.after_round(index, {name: {metric: value}}):
            return index + 1
    return len(values)


def test_stops_after_rounds_without_a_new_best():
    monitor = Monitor(100, metrics=[LOSS], n_iter_no_change=3)
    assert run(monitor, [5.0, 4.0, 4.5, 4.2, 3.0, 3.1, 3.2, 3.0, 0.0]) == 8
    assert monitor.best_index == 4
    assert monitor.best_score == 3.0
    assert monitor.stop_reason == "n_iter_no_change"
    assert monitor.cuts_to_best
    assert monitor.history == {"validation": {"loss": [5.0, 4.0, 4.5, 4.2, 3.0, 3.1, 3.2, 3.0]}}


def test_greater_is_better():
    monitor = Monitor(100, metrics=[GAIN], n_iter_no_change=2)
    assert run(monitor, [0.1, 0.5, 0.4, 0.5, 9.0], metric="gain") == 4
    assert monitor.best_index == 1


@pytest.mark.parametrize(("tol", "best", "rounds"), [(0.0, 4, 5), (0.1, 2, 5), (0.5, 0, 4)])
def test_tol(tol, best, rounds):
    """An improvement of at most tol does not count, even if several add up to more."""
    monitor = Monitor(5, metrics=[LOSS], n_iter_no_change=3, tol=tol)
    assert run(monitor, [1.0, 0.91, 0.82, 0.75, 0.73]) == rounds
    assert monitor.best_index == best


def test_without_early_stopping_the_best_is_known_but_nothing_is_cut():
    monitor = Monitor(4, metrics=[LOSS])
    assert run(monitor, [3.0, 1.0, 2.0, 2.0]) == 4
    assert monitor.best_index == 1
    assert not monitor.cuts_to_best
    assert monitor.stop_reason == "n_estimators"


def test_without_evaluation_sets():
    monitor = Monitor(2, n_iter_no_change=1)
    assert not monitor.after_round(0, {})
    assert monitor.best_index is None
    assert monitor.after_round(1, {})
    assert (monitor.best_index, monitor.best_score, monitor.history) == (None, None, {})
    assert not monitor.cuts_to_best


def test_first_metric_of_the_last_set_decides():
    monitor = Monitor(10, metrics=[LOSS, ERROR], n_iter_no_change=2)
    for index, value in enumerate([2.0, 1.0, 1.5, 1.5]):
        stop = monitor.after_round(
            index,
            {
                "train": {"loss": -index, "error": -index},
                "validation": {"loss": value, "error": -index},
            },
        )
        assert stop == (index == 3)
    assert monitor.best_index == 1
    assert monitor.history["train"]["error"] == [0, -1, -2, -3]


def test_best_round_after_each_round():
    """With dropout, training keeps the tree weights of the best round."""
    monitor = Monitor(10, metrics=[LOSS])
    actual = []
    for index, value in enumerate([3.0, 2.0, 2.5, 1.0, 1.0]):
        monitor.after_round(index, {"validation": {"loss": value}})
        actual.append(monitor.best_index)
    assert actual == [0, 1, 1, 3, 3]


def test_not_a_number():
    monitor = Monitor(10, metrics=[LOSS])
    monitor.after_round(0, {"validation": {"loss": 1.0}})
    with pytest.raises(
        ValueError, match=r"metric 'loss' .* set 'validation' .* \(NaN\) in round 1"
    ):
        monitor.after_round(1, {"validation": {"loss": math.nan}})


def test_infinity_is_only_very_bad():
    monitor = Monitor(10, metrics=[LOSS], n_iter_no_change=2)
    assert run(monitor, [math.inf, math.inf, math.inf]) == 3
    assert monitor.best_index == 0


def test_callbacks_get_every_round():
    clock = Clock()
    rounds = []
    monitor = Monitor(3, metrics=[LOSS], callbacks=[rounds.append], clock=clock, started=90.0)
    for index in range(3):
        clock.now += 1.0
        monitor.after_round(index, {"validation": {"loss": 1.0 + index}})
    assert rounds == [
        Round(index, 3, 11.0 + index, {"validation": {"loss": 1.0 + index}}, 0)
        for index in range(3)
    ]


def test_round_is_frozen():
    rounds = []
    Monitor(1, metrics=[LOSS], callbacks=[rounds.append]).after_round(0, {"v": {"loss": 1.0}})
    with pytest.raises(dataclasses.FrozenInstanceError):
        rounds[0].index = 5
    with pytest.raises(TypeError):
        rounds[0].results["v"]["loss"] = 0.0
    with pytest.raises(TypeError):
        rounds[0].results["w"] = {}


def test_every_callback_is_called_whoever_stops():
    called = []

    def first(done):
        called.append("first")

    def second(done):
        called.append("second")
        return done.index == 1

    def third(done):
        called.append("third")
        return np.bool_(done.index == 1)

    monitor = Monitor(10, callbacks=[first, second, third])
    assert not monitor.after_round(0, {})
    assert monitor.after_round(1, {})
    assert called == ["first", "second", "third"] * 2
    assert monitor.stop_reason == "callback second"


def test_callback_is_called_in_the_round_that_stops_early():
    rounds = []
    monitor = Monitor(10, metrics=[LOSS], n_iter_no_change=1, callbacks=[rounds.append])
    assert run(monitor, [1.0, 2.0]) == 2
    assert len(rounds) == 2
    assert monitor.stop_reason == "n_iter_no_change"


@pytest.mark.parametrize("answer", [0, 1, "stop", [], 1.0], ids=repr)
def test_other_answers(answer):
    def odd_one(done):
        return answer

    with pytest.raises(TypeError, match=r"callback odd_one answered .* None or False to go on"):
        Monitor(10, callbacks=[odd_one]).after_round(0, {})


def test_callback_must_be_a_function():
    with pytest.raises(TypeError, match="callbacks hold 3"):
        Monitor(10, callbacks=[3])


def test_time_budget_stops_before_the_round_that_would_overrun():
    clock = Clock()
    monitor = Monitor(1000, max_time=10.0, clock=clock)
    rounds = 0
    while not monitor.after_round(rounds, {}):
        clock.now += 1.5
        rounds += 1
    assert monitor.stop_reason == "max_time"
    assert clock.now - 100.0 == 9.0  # a further round would end at 10.5 s


def test_time_budget_counts_what_came_before_the_rounds():
    clock = Clock()
    monitor = Monitor(1000, max_time=10.0, clock=clock, started=93.0)
    clock.now += 1.0
    assert not monitor.after_round(0, {})  # 8 of 10 s used; the next round may take 1 s
    clock.now += 1.5
    assert monitor.after_round(1, {})


def test_time_budget_expects_the_slowest_of_the_last_rounds():
    clock = Clock()
    monitor = Monitor(1000, max_time=10.0, clock=clock)
    for index, seconds in enumerate([4.0, 1.0, 0.5, 0.4]):
        clock.now += seconds
        # Finally 5.9 s are used and the slowest round took 4 s: 9.9 s is within the budget.
        assert not monitor.after_round(index, {})
    clock.now += 0.2
    assert monitor.after_round(4, {})


def test_time_before_the_rounds_does_not_say_how_long_they_take():
    clock = Clock()
    monitor = Monitor(1000, max_time=10.0, clock=clock)
    clock.now += 6.0  # binning
    monitor.begin()
    clock.now += 0.5
    assert not monitor.after_round(0, {})


def test_time_budget_always_makes_one_round():
    clock = Clock()
    monitor = Monitor(1000, max_time=0.001, clock=clock)
    clock.now += 5.0
    assert monitor.after_round(0, {})
    assert monitor.stop_reason == "max_time"


VALUES = [5.0, 4.0, 4.5, 4.2, 3.0, 3.1, 3.2, 3.0, 0.0]


@pytest.mark.parametrize("rounds", range(9))
def test_restored_monitor_goes_on_as_if_never_stopped(rounds):
    whole = Monitor(100, metrics=[LOSS], n_iter_no_change=3)
    last = run(whole, VALUES)
    called = []
    monitor = Monitor(100, metrics=[LOSS], n_iter_no_change=3, callbacks=[called.append])
    stopped = monitor.restore({"validation": {"loss": VALUES[:rounds]}}, rounds)
    assert stopped == (rounds >= last)
    assert called == []
    index = rounds
    while not stopped:
        stopped = monitor.after_round(index, {"validation": {"loss": VALUES[index]}})
        index += 1
    assert monitor.best_index == whole.best_index
    assert monitor.stop_reason == whole.stop_reason
    assert monitor.history == whole.history


def test_restore_of_a_finished_fit():
    monitor = Monitor(3)
    assert monitor.restore({}, 3)
    assert monitor.stop_reason == "n_estimators"


def test_rounds_that_are_sure_to_follow():
    """No result of them can stop the fit before the last."""
    assert Monitor(30, metrics=[LOSS]).rounds_ahead(10)[0] == 20
    assert Monitor(30).rounds_ahead(30)[0] == 1
    with_callback = Monitor(30, callbacks=[lambda round_: None])
    assert with_callback.rounds_ahead(0)[0] == 30  # those after a stop are cut off
    assert with_callback.rounds_ahead(0, cuts=False)[0] == 1
    monitor = Monitor(30, metrics=[LOSS], n_iter_no_change=4)
    values, done = [5.0, 4.0, 3.0, 6.0, 6.0, 2.0] + [7.0] * 10, 0
    assert monitor.rounds_ahead(0)[0] == 5  # the first round is the best of one
    for index, value in enumerate(values):
        if index == done:
            done += monitor.rounds_ahead(index)[0]
        stop = monitor.after_round(index, {"validation": {"loss": value}})
        assert not stop or index + 1 == done
        if stop:
            break
    assert (done, monitor.stop_reason) == (10, "n_iter_no_change")


def test_time_of_several_rounds():
    """Rounds that come at once end before the limit, if none is slower than those before."""
    now = [100.0]
    monitor = Monitor(30, max_time=5.0, clock=lambda: now[0])
    assert monitor.rounds_ahead(0) == (30, 0.0)  # nothing is known: one round
    now[0] += 1.0
    assert not monitor.after_round(0, {})
    assert monitor.rounds_ahead(1) == (29, 0.1)
    now[0] += 2.99
    assert not monitor.after_round(1, {}, ago=2.0, is_last=False)
    assert not monitor.after_round(2, {}, ago=1.0, is_last=False)
    assert not monitor.after_round(3, {})
    assert monitor.rounds_ahead(4)[1] == pytest.approx(0.01)
    now[0] += 1.0
    assert not monitor.after_round(4, {}, is_last=False)  # it has been made
    assert monitor.after_round(5, {})
    assert monitor.stop_reason == "max_time"


def test_seconds_of_rounds_are_those_of_their_ends():
    now, seconds = [10.0], []
    callbacks = [lambda done: seconds.append(done.seconds)]
    monitor = Monitor(30, callbacks=callbacks, clock=lambda: now[0])
    now[0] += 4.0
    monitor.after_round(0, {}, ago=3.0, is_last=False)
    monitor.after_round(1, {})
    assert seconds == [1.0, 4.0]
