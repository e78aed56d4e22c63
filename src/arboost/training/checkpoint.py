"""Training state <-> a checkpoint file, from which a killed fit continues.

A state is arrays (trees, scores, history), a few values, and a fingerprint of the fit: the
parameters in clear, the data as digests. A fit resumes only from a state of its own fingerprint,
and ends in the model of an uninterrupted one. The layout is that of `container`: checked, and
nothing executable inside.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.errors import InputTypeError, ParameterError, listing, warn_caller
from arboost.losses.base import Floats
from arboost.models.files.container import Format, naming_errors, pack, read_file, unpack
from arboost.params.kinds import Integer
from arboost.training.monitor import Monitor
from arboost.write import remove_orphans, write_file

FORMAT = Format(
    what="checkpoint",
    magic=b"\x91ARC\r\n\x1a\n",
    version=1,
    source="Give the path of a checkpoint, or of no file yet.",
    remedy="Delete it to start the fit anew.",
)

_DIGEST = "blake2b:"  # prefix of the digests of data
_UPDATE_SHARE = 0.03  # of the time of a fit, for updates by time
_FIRST_UPDATE = 2.0  # seconds
_SLOW_DISK = 50e6  # bytes a second
_LONGEST_VALUE = 60  # characters of a value that messages show
_EVERY = Integer(name="every", default=None, low=1, optional=True, text="", advice="Leave it out.")


@dataclass(frozen=True)
class Checkpoint:
    """File that keeps the state of a fit, and the interval of its updates.

    A fit that finds the file continues from it, and ends in the same model as an uninterrupted fit.
    The file is deleted when the fit is done.

    Parameters
    ----------
    path : str or path-like
        A file; its folder must exist.
    every : int or None, default=None
        Rounds between two updates. None: as often as updates take 3 percent of the time of the fit,
        the first one after 2 seconds at the earliest; a killed fit loses the time since the last
        one. Ctrl-C writes once more, at the end of the current round.

    Examples
    --------
    >>> from arboost import Checkpoint
    >>> Checkpoint("fit.arc", every=50).every
    50
    """

    path: str | os.PathLike[str]
    every: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike):
            raise InputTypeError(
                f"checkpoint={self.path!r} ({type(self.path).__name__}) is not allowed: it must be "
                "a path, an arboost.Checkpoint, or None. Pass the path of a file."
            )
        _EVERY.check(self.every)
        folder = os.path.dirname(os.path.realpath(os.fsdecode(self.path)))
        if not os.path.isdir(folder):
            raise FileNotFoundError(
                f"checkpoint={os.fsdecode(self.path)!r} is in the folder {folder!r}, which does "
                "not exist. Make the folder first."
            )

    @classmethod
    def of(cls, argument: object) -> Checkpoint | None:
        """The checkpoint of an argument of fit: a Checkpoint, a path, or None."""
        if argument is None or isinstance(argument, Checkpoint):
            return argument
        return cls(argument)  # type: ignore[arg-type]  # which the constructor checks

    def is_due(self, rounds: int, pace: WritePace) -> bool:
        """Whether to write after this number of rounds."""
        return pace.is_due() if self.every is None else rounds % self.every == 0

    def rounds_at_once(self, rounds: int) -> int | None:
        """The number of rounds until an update by number; None: updates are by time."""
        return None if self.every is None else self.every - rounds % self.every

    @property
    def compares(self) -> bool:
        """Whether a state is compared with the fingerprint of the fit."""
        return True

    def note_round(self, rounds: int, take: Callable[[], Callable[[], State]]) -> None:
        """Take note of a finished round, which workers of a cluster go back to; a file needs none.

        `take` is called at once, or not at all; the function that it returns gives the state, even
        in the middle of the next round.
        """

    def load(self, fingerprint: Mapping[str, Any]) -> State | None:
        """The state to continue from; None where there is no file.

        Scratch files of killed fits of this path are deleted.

        Raises
        ------
        ModelFormatError
            The file is damaged, or no checkpoint.
        ValueError
            The state belongs to another fit.
        """
        content = read_bytes(self.path)
        if content is None:
            return None
        state = State.from_bytes(content, os.fsdecode(self.path))
        state.check_fit(fingerprint, os.fsdecode(self.path))
        return state

    def store(self, state: State) -> None:
        """Write a state; a failure leaves the one that was there before."""
        write_file(self.path, state.to_bytes())

    def remove(self) -> None:
        """Delete the file, if there is one, and scratch files of killed fits."""
        remove_orphans(self.path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)


class WritePace:
    """Times of updates that take a small share of the time of a fit.

    After an update of s seconds the next one is due when s is 3 percent of the time since. The cost
    of the first one is estimated from its bytes, for a slow disk.

    Parameters
    ----------
    clock : callable () -> float
        Seconds since any moment.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._since = clock()
        self._wait: float = _FIRST_UPDATE
        self._has_cost = False

    def is_due(self) -> bool:
        """Whether the time for an update may have come."""
        return self._clock() - self._since >= self._wait

    def allows(self, state: State) -> bool:
        """Whether the first update costs little; else it is due later."""
        if not self._has_cost:
            n_bytes = sum(array.nbytes for array in state.arrays.values())
            self._wait = max(_FIRST_UPDATE, n_bytes / _SLOW_DISK / _UPDATE_SHARE)
        return self.is_due()

    @contextlib.contextmanager
    def measured(self) -> Iterator[None]:
        """Measure an update in the block."""
        begin = self._clock()
        try:
            yield
        finally:
            self._since = self._clock()
            self._wait = max(_FIRST_UPDATE, (self._since - begin) / _UPDATE_SHARE)
            self._has_cost = True


@dataclass(frozen=True, eq=False, kw_only=True)
class State:
    """State of a fit between two rounds.

    Attributes
    ----------
    fingerprint : dict
        Parameters in clear, and digests of the data.
    facts : dict
        Small values for JSON: the names of the history's sets and metrics.
    arrays : dict of str to array
        Trees, scores and history.
    """

    fingerprint: Mapping[str, Any]
    facts: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]

    def to_bytes(self) -> bytes:
        """The bytes of a file."""
        header = {"fingerprint": dict(self.fingerprint), "facts": dict(self.facts)}
        return pack(FORMAT, header, self.arrays)

    @classmethod
    def from_bytes(cls, content: bytes, path: str) -> Self:
        """The state in the bytes of a file, which messages name; its arrays are read-only.

        The fit checks that they match it.

        Raises
        ------
        ModelFormatError
            The bytes are damaged, or not those of a checkpoint.
        """
        with naming_errors(FORMAT, f"the checkpoint {path!r}"):
            header, arrays = unpack(FORMAT, content)
            for name in ("fingerprint", "facts"):
                if type(header[name]) is not dict:
                    raise TypeError(f"{name} of another kind")
            return cls(fingerprint=header["fingerprint"], facts=header["facts"], arrays=arrays)

    def check_fit(self, fingerprint: Mapping[str, Any], path: str) -> None:
        """Raise ParameterError with the differences unless the state belongs to this fit."""
        current = json.loads(json.dumps(dict(fingerprint)))  # tuples become lists, as in the file
        if self.fingerprint == current:
            return
        differences = [
            _difference(name, self.fingerprint, current)
            for name in sorted({*self.fingerprint, *current})
            if (name in self.fingerprint) != (name in current)
            or self.fingerprint.get(name) != current.get(name)
        ]
        raise ParameterError(
            f"the checkpoint {path!r} is of another fit. They differ in "
            f"{listing(differences)}. Make them equal to go on, delete the file to start anew, or "
            "give another path.",
            parameter="checkpoint",
        )


def read_bytes(path: str | os.PathLike[str]) -> bytes | None:
    """The bytes of a checkpoint file; None where there is none."""
    remove_orphans(path)
    try:
        return read_file(FORMAT, path)
    except FileNotFoundError:
        return None


def digest(*arrays: NDArray[Any] | None) -> str:
    """A digest of arrays: of their types, shapes and bytes.

    Examples
    --------
    >>> digest(np.zeros(2)) == digest(np.zeros(2)), digest(np.zeros(2)) == digest(np.zeros((2, 1)))
    (True, False)
    """
    result = hashlib.blake2b(digest_size=16)
    for array in arrays:
        if array is None:
            result.update(b"none;")
            continue
        stored = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
        result.update(f"{stored.dtype.str}{stored.shape};".encode())
        result.update(stored.reshape(-1).view(np.uint8).data)
    return f"{_DIGEST}{result.hexdigest()}"


class HeldInterrupt:
    """Delay of the first Ctrl-C until the round has ended and its state is written.

    A second Ctrl-C interrupts at once. In threads other than the main one, where Python delivers no
    signals, nothing is held.

    Examples
    --------
    >>> with HeldInterrupt() as interrupt:
    ...     interrupt.requested
    False
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            # A program that ignores Ctrl-C, or handles it itself, keeps its handler.
            if before is signal.default_int_handler:
                self._before = before
                signal.signal(signal.SIGINT, self._hold)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._restore()
        if self.requested and error is None:
            raise KeyboardInterrupt

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self._restore()

    def _restore(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None


def _difference(name: str, stored: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    texts = []
    for fingerprint in (stored, current):
        if name not in fingerprint:
            texts.append("not given")
        elif str(fingerprint[name]).startswith(_DIGEST):
            return name  # a digest would say nothing to anybody
        else:
            text = repr(fingerprint[name])
            more = len(text) > _LONGEST_VALUE
            texts.append(f"{text[:_LONGEST_VALUE]}..." if more else text)
    return f"{name} ({texts[0]} there, {texts[1]} now)"


# Parameters of when to stop and where to run do not change a round.
_NOT_COMPARED = ("n_estimators", "max_time", "device", "n_jobs", "verbose")


# ---- states of a fit, written and restored ----


class Resumable(Protocol):
    """A training with `n_rounds` rounds, whose state can be stored and restored."""

    n_rounds: int

    @property
    def weights(self) -> Floats:
        """Factor of each round."""
        ...

    def state(self) -> dict[str, NDArray[Any]]:
        """All that the next round depends on, apart from data and parameters."""
        ...

    def last_state(self) -> Callable[[], dict[str, NDArray[Any]]]:
        """A function that returns the state of this round, even in the middle of the next.

        It needs no other worker; where scores follow from the trees, they may be left out.
        """
        ...

    def restore(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Restore a state, so that the next round is the one that would have followed it."""
        ...


class CheckpointWriter:
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
    keep_file : bool
        Whether the file stays when the fit is done.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | None = None,
        describe: Callable[[], Mapping[str, Any]] = dict,
        *,
        keep_file: bool = False,
    ) -> None:
        self._checkpoint = checkpoint
        compares = checkpoint is not None and checkpoint.compares
        self._fingerprint = describe() if compares else {}
        self._pace = WritePace()
        self._interrupt = HeldInterrupt()
        self._is_done = True
        self._keep_file = keep_file
        self._has_warned = False

    def __enter__(self) -> Self:
        if self._checkpoint is not None:
            self._interrupt.__enter__()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._checkpoint is None:
            return
        if error is None and self._is_done and not self._keep_file:
            self._checkpoint.remove()
        self._interrupt.__exit__(kind, error, trace)

    @property
    def has_file(self) -> bool:
        """Whether the state is written to a file."""
        return self._checkpoint is not None

    def rounds_at_once(self, rounds: int) -> int | None:
        """The number of rounds after which `after_round` must be called; None: any."""
        return None if self._checkpoint is None else self._checkpoint.rounds_at_once(rounds)

    def resume(self, training: Resumable, monitor: Monitor) -> tuple[Floats, bool]:
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
        with naming_errors(FORMAT, name):
            rounds = _check(state, training.state())
        if rounds > monitor.total:
            raise ParameterError(
                f"{name} has {rounds} rounds, but n_estimators={monitor.total}. Raise "
                "n_estimators, or delete the file to start anew.",
                parameter="n_estimators",
            )
        with naming_errors(FORMAT, name):
            known = {key: state.arrays[key] for key in training.state() if key in state.arrays}
            training.restore(known)
            stopped = monitor.restore(_history(state, rounds), rounds)
        return state.arrays["best"].copy(), stopped

    def after_round(self, training: Resumable, monitor: Monitor, best: Floats) -> None:
        """Write the state when it is due; raise a delayed KeyboardInterrupt."""
        if self._checkpoint is None:
            return
        out_of_time = monitor.stop_reason == "max_time"
        self._is_done = not out_of_time
        is_due = (
            self._checkpoint.is_due(training.n_rounds, self._pace) and monitor.stop_reason is None
        )
        is_last = out_of_time or self._interrupt.requested
        if is_due or is_last:
            state = self._state(training.state(), monitor, best)
            if is_last or self._checkpoint.every is not None or self._pace.allows(state):
                self._store(self._checkpoint, state, training.n_rounds)
        if self._interrupt.requested:
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

    def _state(self, training: Mapping[str, NDArray[Any]], monitor: Monitor, best: Floats) -> State:
        arrays = {**training, "best": best}
        for i, metrics in enumerate(monitor.history.values()):
            for j, values in enumerate(metrics.values()):
                arrays[f"history_{i}_{j}"] = np.array(values)
        facts = {"history": [[name, list(metrics)] for name, metrics in monitor.history.items()]}
        return State(fingerprint=self._fingerprint, facts=facts, arrays=arrays)


def fingerprint(params: Mapping[str, Any], digests: Mapping[str, str]) -> dict[str, Any]:
    """The fingerprint of a fit: its parameters, the version, and digests of its data.

    Functions and objects count by their names: a changed function of the same name is not noticed.

    Examples
    --------
    >>> sorted(fingerprint({"gamma": 1.0, "n_jobs": 2}, {"y": digest(np.zeros(3))}))
    ['arboost', 'gamma', 'y']
    """
    compared = {name: value for name, value in params.items() if name not in _NOT_COMPARED}
    plain: dict[str, Any] = json.loads(json.dumps(compared, default=_name))
    return {**plain, **digests, "arboost": core.version()}


def _name(thing: object) -> str:
    name = getattr(thing, "name", None) or getattr(thing, "__qualname__", "")
    return f"{type(thing).__name__} {name}".rstrip()


def _check(state: State, fresh: Mapping[str, NDArray[Any]]) -> int:
    """The number of rounds of a stored state; raise unless its arrays are of this fit."""
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
