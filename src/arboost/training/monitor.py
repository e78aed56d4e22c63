"""Monitor of a fit: history of the metrics, best round, reason to stop.

The training loop evaluates a round and passes the results to `Monitor.after_round`, which returns
whether to stop. The monitor knows neither trees nor scores.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from arboost.errors import InputTypeError
from arboost.losses.metrics import Metric

Results = Mapping[str, Mapping[str, float]]

_RECENT = 5  # last rounds, whose durations predict the next one
_CALL_S = 0.1  # seconds of rounds between two looks at them; the progress bar is drawn as often


@dataclass(frozen=True)
class Round:
    """One finished round; callbacks get one after every round.

    Attributes
    ----------
    index : int
        Number of the round, from 0.
    total : int
        Largest number of rounds.
    seconds : float
        Time since the fit began.
    results : mapping of str to mapping of str to float
        Value of each metric on each evaluation set: ``results["validation"]["log_loss"]``.
    best_index : int or None
        The best round so far, this one included; None without an evaluation set.
    """

    index: int
    total: int
    seconds: float
    results: Results
    best_index: int | None


Callback = Callable[[Round], object]


def checked_callbacks(callbacks: Iterable[Callback]) -> tuple[Callback, ...]:
    """The callbacks as a tuple; raise TypeError unless they are functions."""
    if not isinstance(callbacks, Iterable):
        raise InputTypeError(
            f"callbacks={callbacks!r} ({type(callbacks).__name__}) is not allowed: callbacks must "
            "be a list of functions of an arboost.Round. Use callbacks=[...] for one function, too."
        )
    checked = tuple(callbacks)
    for callback in checked:
        if not callable(callback):
            raise InputTypeError(
                f"callbacks hold {callback!r} ({type(callback).__name__}), but each must be a "
                "function of an arboost.Round. Pass a list of functions."
            )
    return checked


class Monitor:
    """Monitor of one fit.

    A round is the best so far where the first metric on the last evaluation set is better than in
    the best round before by more than `tol`. The fit stops after `n_iter_no_change` rounds without
    a new best, when a callback returns True, after `total` rounds, or before a round that would
    likely end after `max_time`; the first of these that holds, in this order, is the reason.

    Parameters
    ----------
    total : int
        Largest number of rounds.
    metrics : sequence of Metric
        Metrics in the order of the results; needed where there are results.
    n_iter_no_change : int or None
        Rounds without a new best after which to stop.
    tol : float
        Least improvement that counts as a new best.
    max_time : float or None
        Seconds; at least one round is always made.
    callbacks : sequence of callables
        Each gets every `Round`; True stops the fit, None and False continue it.
    clock : callable () -> float
        Time in seconds.
    started : float or None
        Start of the fit by this clock; None for now.

    Attributes
    ----------
    total : int
    display : callable or None
        Gets a `Round` after every round, or after several that nothing else monitors.
    history : dict of str to dict of str to list of float
        Results of all rounds, by evaluation set and metric.
    best_index : int or None
        The best round; None without an evaluation set.
    stop_reason : str or None
        "n_iter_no_change", "callback NAME", "max_time", "n_estimators", or a reason of the
        algorithm; None while the fit runs.
    """

    def __init__(
        self,
        total: int,
        *,
        metrics: Sequence[Metric] = (),
        n_iter_no_change: int | None = None,
        tol: float = 0.0,
        max_time: float | None = None,
        callbacks: Sequence[Callback] = (),
        clock: Callable[[], float] = time.monotonic,
        started: float | None = None,
    ) -> None:
        self.total = total
        self._metrics = tuple(metrics)
        self._patience = n_iter_no_change
        self._tol = tol
        self._max_time = max_time
        self._callbacks = checked_callbacks(callbacks)
        self.display: Callable[[Round], None] | None = None
        self._clock = clock
        self._started = clock() if started is None else started
        self._round_ends = [clock()]
        self.history: dict[str, dict[str, list[float]]] = {}
        self.best_index: int | None = None
        self.stop_reason: str | None = None

    @property
    def best_score(self) -> float | None:
        """The first metric on the last evaluation set in the best round."""
        return None if self.best_index is None else self._monitored()[self.best_index]

    @property
    def cuts_to_best(self) -> bool:
        """Whether the model ends with the best round, as early stopping has it."""
        return self._patience is not None and self.best_index is not None

    @property
    def chosen_by(self) -> str | None:
        """Name of the metric that chose the last round; None without early stopping."""
        return self._metrics[0].name if self.cuts_to_best else None

    def begin(self) -> None:
        """Start the clock of the rounds: time before the first round predicts no duration."""
        self._round_ends = [self._clock()]

    @property
    def needs_every_round(self) -> bool:
        """Whether callbacks or metrics need every round, not only the last one of several."""
        return bool(self._callbacks or self._metrics)

    def rounds_ahead(self, n_rounds: int, *, cuts: bool = True) -> tuple[int, float]:
        """The number of rounds that may come at once after `n_rounds`, 1 or more; and their time.

        The fit stops `n_iter_no_change` rounds after the best one at the earliest, but a callback
        may stop it after any round. Later rounds are then cut off, if `cuts`.
        """
        rounds_left = self.total - n_rounds
        if self._patience is not None:
            best = n_rounds if self.best_index is None else self.best_index
            rounds_left = min(rounds_left, best + self._patience + 1 - n_rounds)
        if self._callbacks and not cuts:
            rounds_left = 1
        seconds = _CALL_S
        if self._max_time is not None:
            used = self._clock() - self._started
            seconds = min(seconds, self._max_time - used - self._slowest_round())
        return max(1, rounds_left), max(0.0, seconds)

    def after_round(
        self, index: int, results: Results, *, ago: float = 0.0, is_last: bool = True
    ) -> bool:
        """Record a round, counted from 0; return whether to stop.

        Every callback is called, even where another one or early stopping ends the fit.

        Parameters
        ----------
        index : int
        results : mapping
        ago : float
            Seconds since the end of the round.
        is_last : bool
            Whether no later round has been made; those that have been made are not cut off for the
            time limit.

        Raises
        ------
        ValueError
            A metric is not a number.
        TypeError
            A callback returns neither None nor a truth value.
        """
        self._record(index, results)
        if self._max_time is not None:
            self._round_ends = [*self._round_ends, self._clock() - ago][-_RECENT - 1 :]
        stopping = self._show(index, results, ago) if self._callbacks or self.display else None
        if self._is_stale(index):
            self.stop_reason = "n_iter_no_change"
        elif stopping is not None:
            self.stop_reason = f"callback {callback_name(stopping)}"
        elif index + 1 >= self.total:
            self.stop_reason = "n_estimators"
        elif is_last and self._would_overrun():
            self.stop_reason = "max_time"
        return self.stop_reason is not None

    def end(self, reason: str) -> bool:
        """Record that the algorithm can make no further round; return True: stop."""
        self.stop_reason = reason
        return True

    def _show(self, index: int, results: Results, ago: float) -> Callback | None:
        """Call display and callbacks; return the first callback that returned True."""
        frozen = MappingProxyType(
            {name: MappingProxyType(dict(metrics)) for name, metrics in results.items()}
        )
        seconds = self._clock() - self._started - ago
        done = Round(index, self.total, seconds, frozen, self.best_index)
        if self.display is not None:
            self.display(done)
        return stopping_callback(self._callbacks, done)

    def restore(self, history: Mapping[str, Mapping[str, Sequence[float]]], rounds: int) -> bool:
        """Record the rounds of a checkpoint; return whether that fit had stopped by itself.

        Callbacks are not called for these rounds a second time.
        """
        for index in range(rounds):
            self._record(
                index,
                {
                    name: {metric: values[index] for metric, values in metrics.items()}
                    for name, metrics in history.items()
                },
            )
        if rounds and self._is_stale(rounds - 1):
            self.stop_reason = "n_iter_no_change"
        elif rounds >= self.total:
            self.stop_reason = "n_estimators"
        return self.stop_reason is not None

    def _record(self, index: int, results: Results) -> None:
        for name, metrics in results.items():
            for metric, value in metrics.items():
                if math.isnan(value):
                    raise ValueError(
                        f"the metric {metric!r} of the evaluation set {name!r} is not a number "
                        f"(NaN) in round {index}. Look for a learning_rate that is too high, "
                        "targets of extreme size, or a metric that divides by 0."
                    )
                self.history.setdefault(name, {}).setdefault(metric, []).append(float(value))
        if results and self._is_better(index):
            self.best_index = index

    def _monitored(self) -> list[float]:
        last = list(self.history.values())[-1]
        return last[self._metrics[0].name]

    def _is_better(self, index: int) -> bool:
        if self.best_index is None:
            return True
        value, best = self._monitored()[index], self._monitored()[self.best_index]
        if self._metrics[0].greater_is_better:
            return value > best + self._tol
        return value < best - self._tol

    def _is_stale(self, index: int) -> bool:
        if self._patience is None or self.best_index is None:
            return False
        return index - self.best_index >= self._patience

    def _would_overrun(self) -> bool:
        if self._max_time is None:
            return False
        return self._round_ends[-1] - self._started + self._slowest_round() > self._max_time

    def _slowest_round(self) -> float:
        """Duration of the slowest of the last few rounds; without rounds, longer than any limit.

        Better a round too few than a deadline missed.
        """
        durations = np.diff(self._round_ends)
        return float(durations.max()) if len(durations) else math.inf


def stopping_callback(callbacks: Sequence[Callback], done: Round) -> Callback | None:
    """Call all callbacks; return the first one that returned True, or None."""
    stopping = [callback for callback in callbacks if _asks_to_stop(callback, done)]
    return stopping[0] if stopping else None


def _asks_to_stop(callback: Callback, done: Round) -> bool:
    answer = callback(done)
    if answer is None:
        return False
    if not isinstance(answer, bool | np.bool_):
        raise InputTypeError(
            f"the callback {callback_name(callback)} answered {answer!r} "
            f"({type(answer).__name__}), but an answer must be None or False to go on, or True to "
            "stop."
        )
    return bool(answer)


def callback_name(callback: Callback) -> str:
    """The name of a callback in messages."""
    return str(getattr(callback, "__name__", type(callback).__name__))
