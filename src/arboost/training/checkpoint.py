"""Training state <-> a checkpoint file, from which a killed fit continues.

A state is arrays (trees, scores, history), a few facts, and a fingerprint of the fit: the
parameters in clear, the data as digests. A fit resumes only from a state of its own fingerprint.
The layout is that of `container`: checked, and nothing executable inside.
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
from types import FrameType, TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.data.messages import listing
from arboost.formats.container import Format, errors_named, pack, read_file, unpack
from arboost.write import remove_orphans, write_file

__all__ = [
    "Checkpoint",
    "HeldInterrupt",
    "State",
    "WritePace",
    "digest",
    "read_bytes",
    "read_state",
    "refuse_other",
    "state_bytes",
    "state_of",
    "write_state",
]

FORMAT = Format(
    what="checkpoint",
    magic=b"\x91ARC\r\n\x1a\n",
    version=1,
    oldest_reader=1,
    source="Give the path of a checkpoint, or of no file yet.",
    remedy="Delete it to start the fit anew.",
)

_DIGEST = "blake2b:"  # prefix of the digests of data
_UPDATE_SHARE = 0.03  # of the time of a fit, for updates by time
_FIRST_UPDATE = 2.0  # seconds
_SLOW_DISK = 50e6  # bytes a second
_LONGEST_VALUE = 60  # characters of a value that messages show


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
            raise TypeError(
                f"checkpoint={self.path!r} ({type(self.path).__name__}) is not allowed: it must be "
                "a path, an arboost.Checkpoint, or None. Pass the path of a file."
            )
        if isinstance(self.every, bool) or not isinstance(self.every, int | None):
            raise TypeError(
                f"every={self.every!r} ({type(self.every).__name__}) is not allowed: it must be an "
                "integer of at least 1, or None. Leave it out."
            )
        if self.every is not None and self.every < 1:
            raise ValueError(
                f"every={self.every} is not allowed: it must be an integer of at least 1, or None. "
                "Leave it out."
            )
        folder = os.path.dirname(os.path.realpath(os.fsdecode(self.path)))
        if not os.path.isdir(folder):
            raise FileNotFoundError(
                f"checkpoint={os.fsdecode(self.path)!r} is in the folder {folder!r}, which does "
                "not exist. Make the folder first."
            )

    @classmethod
    def of(cls, given: object) -> Checkpoint | None:
        """Return the checkpoint of an argument of fit: a Checkpoint, a path, or None."""
        if given is None or isinstance(given, Checkpoint):
            return given
        return cls(given)  # type: ignore[arg-type]  # its own check says what is allowed

    def is_due(self, rounds: int, pace: WritePace) -> bool:
        """Return whether to write after so many rounds."""
        return pace.is_due() if self.every is None else rounds % self.every == 0

    def rounds_at_once(self, rounds: int) -> int | None:
        """Return the number of rounds until an update by number; None: updates are by time."""
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
        """Return the state to continue from; None where there is no file.

        Scratch files of killed fits of this path are deleted.

        Raises
        ------
        ModelFormatError
            The file is damaged, or no checkpoint.
        ValueError
            The state belongs to another fit.
        """
        remove_orphans(self.path)
        try:
            state = read_state(self.path)
        except FileNotFoundError:
            return None
        refuse_other(state.fingerprint, fingerprint, os.fsdecode(self.path))
        return state

    def store(self, state: State) -> None:
        """Write a state; a failure leaves the one that was there before."""
        write_state(state, self.path)

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
        """Return whether the time for an update may have come."""
        return self._clock() - self._since >= self._wait

    def allows(self, state: State) -> bool:
        """Return whether the first update costs little; else it is due later."""
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
        Small values for JSON: the number of rounds, names.
    arrays : dict of str to array
        Trees, scores and history.
    """

    fingerprint: Mapping[str, Any]
    facts: Mapping[str, Any]
    arrays: Mapping[str, NDArray[Any]]


def write_state(state: State, path: str | os.PathLike[str]) -> None:
    """Write a state to a file; a failure leaves the file that was there before."""
    write_file(path, state_bytes(state))


def state_bytes(state: State) -> bytes:
    """Return a state as the bytes of a file."""
    header = {"fingerprint": dict(state.fingerprint), "facts": dict(state.facts)}
    return pack(FORMAT, header, state.arrays)


def read_state(path: str | os.PathLike[str]) -> State:
    """Return the state in a file; raise ModelFormatError where it holds none, or a damaged one.

    The arrays are read-only. The fit checks that they match it.
    """
    return state_of(read_file(FORMAT, path), os.fsdecode(path))


def read_bytes(path: str | os.PathLike[str]) -> bytes | None:
    """Return the bytes of a checkpoint file; None where there is none."""
    remove_orphans(path)
    try:
        return read_file(FORMAT, path)
    except FileNotFoundError:
        return None


def state_of(content: bytes, path: str) -> State:
    """Return the state in the bytes of a file, which messages name."""
    with errors_named(FORMAT, f"the checkpoint {path!r}"):
        header, arrays = unpack(FORMAT, content)
        for name in ("fingerprint", "facts"):
            if type(header[name]) is not dict:
                raise TypeError(f"{name} of another kind")
        return State(fingerprint=header["fingerprint"], facts=header["facts"], arrays=arrays)


def digest(*arrays: NDArray[Any] | None) -> str:
    """Return a digest of arrays: of their types, shapes and bytes.

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
    ...     interrupt.asked
    False
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            # A program that ignores Ctrl-C, or handles it itself, keeps its handler.
            if before is signal.default_int_handler:
                self._before = before
                signal.signal(signal.SIGINT, self._hold)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._restore()
        if self.asked and error is None:
            raise KeyboardInterrupt

    def _hold(self, number: int, frame: FrameType | None) -> None:
        self.asked = True
        self._restore()

    def _restore(self) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None


def refuse_other(stored: Mapping[str, Any], current: Mapping[str, Any], path: str) -> None:
    """Raise ValueError with the differences unless a stored state belongs to this fit."""
    current = json.loads(json.dumps(dict(current)))  # tuples become lists, as they do in the file
    if stored == current:
        return
    differences = [
        _difference(name, stored, current)
        for name in sorted({*stored, *current})
        if (name in stored) != (name in current) or stored.get(name) != current.get(name)
    ]
    raise ValueError(
        f"the checkpoint {path!r} is of another fit. They differ in "
        f"{listing(differences)}. Make them equal to go on, delete the file to start anew, or give "
        "another path."
    )


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
