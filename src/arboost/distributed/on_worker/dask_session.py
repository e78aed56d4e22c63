"""A worker's side of fits: its post takes orders of clients, and runs programs in threads.

    client ──prepare, begin, watch, cancel, release──▶ scheduler ──▶ Post ──▶ Attempt: a thread

A program has a thread of its own, so it takes no slot of Dask's tasks, and fits that run at the
same time do not wait for each other. The client watches all workers. A worker that has heard
nothing from it for some seconds asks the scheduler whether the client is still there.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from tornado.ioloop import PeriodicCallback

from arboost.distributed.on_worker.dask_attempt import Attempt
from arboost.distributed.on_worker.dask_transport import STREAM
from arboost.distributed.records import CALL, News, Orders, dumps, loads

__all__ = ["Post", "open_post"]

_GUARD = 0.5  # seconds between looks at the fits of a worker
_DOUBT = 5.0  # seconds without a word of the client after which the scheduler is asked for it
_SILENCE = 60.0  # seconds without a word of the client after which a fit is given up


@dataclass
class _Fit:
    """A fit on this worker, from attempt to attempt."""

    client: str
    kept: dict[str, Any] = field(default_factory=dict)
    attempt: Attempt | None = None
    best: tuple[int, object] | None = None
    heard: float = field(default_factory=time.monotonic)


class Post:
    """Fits of one Dask worker; an extension of it that stays when the fits have ended.

    All methods are for the IO loop.

    Parameters
    ----------
    worker : distributed.Worker

    Attributes
    ----------
    fits : dict
        Fits by their ids.
    """

    def __init__(self, worker: Any) -> None:
        self._worker = worker
        self.fits: dict[str, _Fit] = {}
        self._guard = PeriodicCallback(self._look, 1000 * _GUARD)
        self._calls: dict[str, Callable[..., Awaitable[object]]] = {
            "prepare": self._prepare,
            "begin": self._begin,
            "watch": self._watch,
            "cancel": self._cancel,
            "release": self._release,
        }

    async def call(self, name: str, arguments: bytes) -> dict[str, bytes]:
        """Answer a call of a client."""
        try:
            answer = await self._calls[name](*loads(arguments))
        except Exception as error:
            # The program may be of modules that this worker lacks: the client raises it.
            answer = error
        return {"answer": dumps(answer)}

    async def stream(self, comm: Any, fit: str, attempt: int, rank: int) -> None:
        """Read the messages of another worker until its last one."""
        found = self._find(fit, attempt)
        if found is None:
            comm.abort()
            return
        await found.transport.read(rank, comm)

    async def _prepare(self, orders: Orders) -> None:
        """Make the place of this worker in an attempt, so that others can send to it."""
        fit = self.fits.setdefault(orders.place.fit, _Fit(orders.client))
        fit.heard = time.monotonic()
        if fit.attempt is not None and fit.attempt.is_running:
            raise RuntimeError("The program of the last attempt has not ended.")
        if fit.attempt is not None and fit.attempt.best is not None:
            fit.best = fit.attempt.best
        fit.attempt = Attempt(self._worker, orders, fit.kept, fit.best)
        self._worker.periodic_callbacks[CALL] = self._guard
        self._guard.start()

    async def _begin(self, fit: str, attempt: int) -> None:
        found = self._find(fit, attempt)
        if found is None:
            raise RuntimeError("The attempt was not prepared.")
        found.start()

    async def _watch(
        self, fit: str, attempt: int, answer: tuple[int, bytes] | None, patience: float
    ) -> News:
        """Return news of an attempt as soon as there are any, at the latest after `patience`."""
        found = self._find(fit, attempt)
        if found is None:
            return News(is_known=False)
        self.fits[fit].heard = time.monotonic()
        news = await found.news(answer, patience)
        if fit in self.fits:
            self.fits[fit].heard = time.monotonic()
        return news

    async def _cancel(self, fit: str, reason: str) -> None:
        found = self.fits.get(fit)
        if found is not None and found.attempt is not None:
            found.attempt.cancel(reason)

    async def _release(self, fit: str) -> None:
        """Forget a fit; a program that still runs ends at its next look at the transport."""
        await self._cancel(fit, "The fit has ended.")
        self.fits.pop(fit, None)
        if not self.fits:
            self._guard.stop()
            self._worker.periodic_callbacks.pop(CALL, None)

    def _find(self, fit: str, attempt: int) -> Attempt | None:
        found = self.fits.get(fit)
        if found is None or found.attempt is None or found.attempt.place.attempt != attempt:
            return None
        return found.attempt

    async def _look(self) -> None:
        """Give up fits whose client is gone."""
        for name, fit in list(self.fits.items()):
            silence = time.monotonic() - fit.heard
            if silence > _SILENCE or (silence > _DOUBT and await self._is_gone(fit.client)):
                await self._cancel(name, "The fit was cancelled: its client is gone.")
                await self._release(name)

    async def _is_gone(self, client: str) -> bool:
        """Whether the scheduler has seen the client leave."""
        try:
            events = await asyncio.wait_for(self._worker.scheduler.events(topic=client), _DOUBT)
        except (TimeoutError, OSError):
            return False
        actions = [event.get("action") for _, event in events if isinstance(event, dict)]
        known = [action for action in actions if action in ("add-client", "remove-client")]
        return bool(known) and known[-1] == "remove-client"


def open_post(dask_worker: Any) -> None:
    """Make the post of a Dask worker and its two handlers, if it has none yet."""
    if CALL not in dask_worker.extensions:
        post = dask_worker.extensions[CALL] = Post(dask_worker)
        dask_worker.handlers[CALL] = post.call
        dask_worker.handlers[STREAM] = post.stream
