"""Keeper of a fit: writes its state to a checkpoint from time to time, and restores it.

    with Keeper(checkpoint, describe) as keeper:
        best, stop = keeper.resume(training, monitor)
        while not stop:
            ... one more round ...
            keeper.after_round(training, monitor, best)

A state holds everything that the next round depends on, bit for bit: the resumed fit ends in the
model of an uninterrupted one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.errors import warn_caller
from arboost.formats.container import errors_named
from arboost.training.checkpoint import FORMAT, Checkpoint, HeldInterrupt, State, WritePace
from arboost.training.monitor import Monitor

__all__ = ["Keeper", "Resumable", "fingerprint"]

Weights = NDArray[np.float64]

# Parameters of when to stop and how to run do not change a round.
_FREE = ("n_estimators", "max_time", "device", "n_jobs", "verbose")


class Resumable(Protocol):
    """A training with `n_rounds` rounds, whose state can be stored and restored."""

    n_rounds: int

    @property
    def weights(self) -> Weights:
        """Factor of each round."""
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """Return all that the next round depends on, apart from data and parameters."""
        ...

    def last_state(self) -> Callable[[], dict[str, NDArray[Any]]]:
        """Return a function that returns the state of this round, even in the middle of the next.

        It needs no other worker; where scores follow from the trees, they may be left out.
        """
        ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state, so that the next round is the one that would have followed it."""
        ...


class Keeper:
    """Checkpoints of one fit; without a checkpoint it does nothing.

    The first Ctrl-C waits until the round has ended and its state is written. When the block ends
    without an error the file is deleted, unless the time limit ended the fit: another fit may then
    continue. A state that cannot be written is a warning, once: the fit is worth more than its
    checkpoint, and the previous state stays valid.

    Parameters
    ----------
    checkpoint : Checkpoint or None
    describe : callable () -> mapping
        Returns the fingerprint of the fit; called only with a checkpoint.
    stays : bool
        Whether the file is kept when the fit is done.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | None = None,
        describe: Callable[[], Mapping[str, Any]] = dict,
        *,
        stays: bool = False,
    ) -> None:
        self._checkpoint = checkpoint
        compares = checkpoint is not None and checkpoint.compares
        self._fingerprint = describe() if compares else {}
        self._pace = WritePace()
        self._interrupt = HeldInterrupt()
        self._is_done = True
        self._stays = stays
        self._has_warned = False

    def __enter__(self) -> Self:
        if self._checkpoint is not None:
            self._interrupt.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._checkpoint is None:
            return
        if error is None and self._is_done and not self._stays:
            self._checkpoint.remove()
        self._interrupt.__exit__(kind, error, trace)

    @property
    def has_checkpoint(self) -> bool:
        """Whether the state is written to a file."""
        return self._checkpoint is not None

    def rounds_at_once(self, rounds: int) -> int | None:
        """Return the number of rounds after which `after_round` must be called; None: any."""
        return None if self._checkpoint is None else self._checkpoint.rounds_at_once(rounds)

    def resume(self, training: Resumable, monitor: Monitor) -> tuple[Weights, bool]:
        """Restore the state of the checkpoint file, if there is one.

        Returns
        -------
        best : float64 array
            Factors of the rounds at the best round.
        stop : bool
            Whether nothing is left to do.

        Raises
        ------
        ModelFormatError
            The file is damaged, or no checkpoint.
        ValueError
            It belongs to another fit, or has more rounds than this one is to have.
        """
        checkpoint = self._checkpoint
        state = None if checkpoint is None else checkpoint.load(self._fingerprint)
        if checkpoint is None or state is None:
            return training.weights, False
        path = os.fsdecode(checkpoint.path)
        name = f"the checkpoint {path!r}"
        with errors_named(FORMAT, name):
            rounds = _check(state, training.state())
        if rounds > monitor.total:
            raise ValueError(
                f"{name} has {rounds} rounds, but n_estimators={monitor.total}. Raise "
                "n_estimators, or delete the file to start anew."
            )
        with errors_named(FORMAT, name):
            known = {key: state.arrays[key] for key in training.state() if key in state.arrays}
            training.restore(known)
            stopped = monitor.restore(_history(state, rounds), rounds)
        return state.arrays["best"].copy(), stopped

    def after_round(self, training: Resumable, monitor: Monitor, best: Weights) -> None:
        """Write the state when it is due; raise a delayed KeyboardInterrupt."""
        if self._checkpoint is None:
            return
        out_of_time = monitor.stop_reason == "max_time"
        self._is_done = not out_of_time
        is_due = (
            self._checkpoint.is_due(training.n_rounds, self._pace) and monitor.stop_reason is None
        )
        is_last = out_of_time or self._interrupt.asked
        if is_due or is_last:
            state = self._state(training.state(), monitor, best)
            if is_last or self._checkpoint.every is not None or self._pace.allows(state):
                self._store(self._checkpoint, state, training.n_rounds)
        if self._interrupt.asked:
            raise KeyboardInterrupt

        def take() -> Callable[[], State]:
            last = training.last_state()
            return lambda: self._state(last(), monitor, best)

        self._checkpoint.note_round(training.n_rounds, take)

    def _store(self, checkpoint: Checkpoint, state: State, rounds: int) -> None:
        try:
            with self._pace.measured():
                checkpoint.store(state)
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                warn_caller(
                    f"the checkpoint could not be written after round {rounds}: {error}. The fit "
                    "continues; if it is interrupted, it can resume from the last checkpoint that "
                    "was written, if any.",
                    RuntimeWarning,
                )

    def _state(
        self, training: Mapping[str, NDArray[Any]], monitor: Monitor, best: Weights
    ) -> State:
        arrays = {**training, "best": best}
        for i, metrics in enumerate(monitor.history.values()):
            for j, values in enumerate(metrics.values()):
                arrays[f"history_{i}_{j}"] = np.array(values)
        facts = {"history": [[name, list(of)] for name, of in monitor.history.items()]}
        return State(fingerprint=self._fingerprint, facts=facts, arrays=arrays)


def fingerprint(params: Mapping[str, Any], digests: Mapping[str, str]) -> dict[str, Any]:
    """Return the fingerprint of a fit: its parameters, the version, and digests of its data.

    Functions and objects count by their names: a changed function of the same name is not noticed.

    Examples
    --------
    >>> from arboost.training.checkpoint import digest
    >>> found = fingerprint({"gamma": 1.0, "n_jobs": 2}, {"y": digest(np.zeros(3))})
    >>> sorted(found)
    ['arboost', 'gamma', 'y']
    """
    kept = {name: value for name, value in params.items() if name not in _FREE}
    plain: dict[str, Any] = json.loads(json.dumps(kept, default=_name))
    return {**plain, **digests, "arboost": core.version()}


def _name(thing: object) -> str:
    name = getattr(thing, "name", None) or getattr(thing, "__qualname__", None)
    return f"{type(thing).__name__} {name}" if name else type(thing).__name__


def _check(state: State, fresh: Mapping[str, NDArray[Any]]) -> int:
    """Return the number of rounds of a stored state; raise unless its arrays are of this fit."""
    for name, array in fresh.items():
        if name.startswith("scores") and "scores_0" not in state.arrays:
            continue  # they follow from the trees
        stored = state.arrays[name]
        if stored.dtype != array.dtype or stored.ndim != array.ndim:
            raise ValueError(f"{name} of type {stored.dtype} and shape {stored.shape}")
        if name.startswith("scores") and stored.shape != array.shape:
            raise ValueError(f"{name} of shape {stored.shape}")
    weights, best = state.arrays["weights"], state.arrays["best"]
    if best.dtype != np.float64 or best.ndim != 1 or len(best) > len(weights):
        raise ValueError(f"best of type {best.dtype} and shape {best.shape}")
    return len(weights)


def _history(state: State, rounds: int) -> dict[str, dict[str, list[float]]]:
    history: dict[str, dict[str, list[float]]] = {}
    for i, (name, metrics) in enumerate(state.facts["history"]):
        history[str(name)] = {}
        for j, metric in enumerate(metrics):
            values = state.arrays[f"history_{i}_{j}"]
            if values.shape != (rounds,) or values.dtype != np.float64 or np.isnan(values).any():
                raise ValueError(f"results of type {values.dtype} and shape {values.shape}")
            history[str(name)][str(metric)] = values.tolist()
    return history
