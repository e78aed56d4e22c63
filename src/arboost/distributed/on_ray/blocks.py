"""Blocks of a Ray Dataset on an actor -> restartable iterable of tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, ObjectLostError

from arboost.errors import WorkerError

__all__ = ["ActorBlocks"]

_SLICE = 0.5  # seconds after which a wait looks whether the fit is over


class ActorBlocks:
    """Tables in Ray's object store, in their order; each pass asks for them again.

    Blocks of this machine are not copied. Others are brought by Ray, one at a time.

    Parameters
    ----------
    references : tuple of ray.ObjectRef
    timeout : float
        Seconds that Ray may take for a block.
    check : callable
        Raises if the fit is over.
    """

    def __init__(
        self, references: tuple[Any, ...], timeout: float, check: Callable[[], None]
    ) -> None:
        self._references, self._timeout, self._check = references, timeout, check

    def __iter__(self) -> Iterator[Any]:
        return map(self._block, self._references)

    def _block(self, reference: Any) -> Any:
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                return ray.get(reference, timeout=_SLICE)
            except GetTimeoutError:
                self._check()
                if time.monotonic() > deadline:
                    raise WorkerError(
                        f"A block of the dataset was not there within {self._timeout:g} seconds. "
                        "Check the nodes of the cluster, or pass a larger timeout."
                    ) from None
            except ObjectLostError as error:
                raise WorkerError(
                    f"A block of the dataset is lost with its node ({type(error).__name__}), and "
                    "Ray cannot compute it again. Pass files, which actors read themselves."
                ) from None
