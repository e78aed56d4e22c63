"""One attempt of a fit as the client sees it: start all workers, watch them, collect their ends."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

from arboost.distributed.on_client.calls import Calls, SilentError, UnreachableError
from arboost.distributed.on_client.crew import Crew, TableOfParts
from arboost.distributed.records import Done, News, Orders, Outcome, Place, TableParts
from arboost.distributed.reports import Lost, silence_of

__all__ = ["ClientAttempt"]

_START = 30.0  # seconds that a worker may take to take its orders
_LONG = 2.0  # seconds that rank 0 may hold a call of the client until it has news
_TOUCH = 2.0  # seconds between calls to the other ranks
_ANSWER = 10.0  # seconds that a worker may take to answer once a program has ended
_LOOK = 0.5  # seconds between looks at the clock
_TRIES = 3  # calls to a worker that is still in the cluster


class Board(Protocol):
    """Takes messages of the program."""

    def show(self, message: bytes) -> None:
        """Take a message of `Desk.show`."""
        ...

    def ask(self, message: bytes) -> asyncio.Future[bytes]:
        """Return the future answer to a message of `Desk.ask`."""
        ...


class ClientAttempt:
    """An attempt; all methods are for the client's IO loop.

    Parameters
    ----------
    calls : Calls
    fit : str
    number : int
    crew : Crew
    board : Board
    """

    def __init__(self, calls: Calls, fit: str, number: int, crew: Crew, board: Board) -> None:
        self._calls, self._fit, self._number = calls, fit, number
        self._crew, self._board = crew, board
        self._is_ending = asyncio.Event()
        self._heard: dict[int, float] = {}  # times of the last answers, by rank

    async def run(
        self,
        program: bytes,
        tables: Mapping[str, TableOfParts],
        holder: int | None,
        timeout: float,
    ) -> dict[int, Outcome | Lost]:
        """Return the outcome of each rank."""
        outcomes = await self._all(
            self._prepare(rank, program, tables, holder, timeout) for rank in self._ranks
        )
        if not outcomes:
            outcomes = await self._all(self._call(rank, "begin") for rank in self._ranks)
        watchers = {
            asyncio.create_task(self._watch(rank, timeout)): rank
            for rank in self._ranks
            if rank not in outcomes
        }
        try:
            why = "could not be started" if outcomes else await self._first_end(watchers)
            self._is_ending.set()
            cancelling = asyncio.ensure_future(self._cancel(why, outcomes))
            outcomes |= await self._last_ends(watchers, _ANSWER if why is None else timeout)
            cancelling.cancel()
        finally:
            for task in watchers:
                task.cancel()
            await asyncio.gather(*watchers, return_exceptions=True)
        return outcomes

    @property
    def _ranks(self) -> range:
        return range(len(self._crew.addresses))

    async def _first_end(self, watchers: dict[asyncio.Task[Outcome | Lost], int]) -> str | None:
        """Wait until rank 0 has a result, or a rank has failed; return why the others must end."""
        pending = set(watchers)
        while pending:
            ended, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                outcome = task.result()
                if isinstance(outcome, Done) and watchers[task] == 0:
                    return None
                if not isinstance(outcome, Done):
                    return "is lost, or has failed"
        return None

    async def _last_ends(
        self, watchers: Mapping[asyncio.Task[Outcome | Lost], int], limit: float
    ) -> dict[int, Outcome | Lost]:
        """Return the outcomes of all watched ranks.

        A worker that answers may take until the limit to end its program, one that does not is
        given up sooner.
        """
        start = time.monotonic()
        outcomes: dict[int, Outcome | Lost] = {}
        while len(outcomes) < len(watchers):
            waiting = [task for task, rank in watchers.items() if rank not in outcomes]
            ended, pending = await asyncio.wait(waiting, timeout=_LOOK)
            outcomes |= {watchers[task]: task.result() for task in ended}
            now = time.monotonic()
            for rank in (watchers[task] for task in pending):
                if now - max(start, self._heard.get(rank, start)) > _ANSWER:
                    silence = (
                        f"it did not answer for {now - self._heard.get(rank, start):.0f} seconds"
                    )
                    outcomes[rank] = Lost(silence, is_silent=True)
                elif now - start > max(limit, _ANSWER):
                    outcomes[rank] = Lost(f"its program did not end within {limit:g} seconds")
        return outcomes

    async def _cancel(self, why: str | None, outcomes: Mapping[int, Outcome | Lost]) -> None:
        """End the programs of all ranks, unless they end by themselves."""
        if why is not None:
            await self._all(
                self._call(rank, "cancel", f"Another worker {why}.")
                for rank in self._ranks
                if rank not in outcomes
            )

    async def _all(self, starts: Any) -> dict[int, Outcome | Lost]:
        """Run one call to each rank; return the ranks that could not be reached."""
        results = await asyncio.gather(*starts)
        return {rank: lost for rank, lost in results if lost is not None}

    async def _prepare(
        self,
        rank: int,
        program: bytes,
        tables: Mapping[str, TableOfParts],
        holder: int | None,
        timeout: float,
    ) -> tuple[int, Lost | None]:
        addresses = self._crew.addresses
        shares = {}
        for name, table in tables.items():
            numbers = self._crew.ranges[name][rank]
            keys = table.keys[numbers.start : numbers.stop]
            shares[name] = TableParts(numbers, keys, table.are_paths)
        place = Place(self._fit, self._number, rank, addresses)
        orders = Orders(place, self._calls.client.id, program, shares, holder, timeout)

        async def prepare() -> None:
            await self._calls.open(addresses[rank], _START)
            await self._calls.call(addresses[rank], "prepare", orders, limit=_START)

        return await self._reached(rank, prepare())

    async def _call(self, rank: int, name: str, *arguments: object) -> tuple[int, Lost | None]:
        """Call a rank's post with the fit, and the attempt or other arguments."""
        given = arguments or (self._number,)
        address = self._crew.addresses[rank]
        limit = _START if name == "begin" else _ANSWER
        return await self._reached(
            rank, self._calls.call(address, name, self._fit, *given, limit=limit)
        )

    async def _reached(
        self, rank: int, calling: Coroutine[Any, Any, Any]
    ) -> tuple[int, Lost | None]:
        try:
            await calling
        except UnreachableError as error:
            return rank, Lost(str(error), isinstance(error, SilentError))
        return rank, None

    async def _watch(self, rank: int, timeout: float) -> Outcome | Lost:
        """Watch a rank until its program has ended, and pass its messages on."""
        address, answer = self._crew.addresses[rank], None
        tries = 0
        while True:
            try:
                news: News = await self._calls.call(
                    address,
                    "watch",
                    self._fit,
                    self._number,
                    answer,
                    _LONG if rank == 0 or self._is_ending.is_set() else 0.0,
                    limit=timeout + _LONG,
                )
            except SilentError:
                return Lost(silence_of(timeout), is_silent=True)
            except UnreachableError as error:
                tries += 1
                if tries >= _TRIES or address not in await self._calls.workers():
                    return Lost(str(error))
                await asyncio.sleep(0.5)
                continue
            tries, self._heard[rank] = 0, time.monotonic()
            if not news.is_known:
                return Lost("it was restarted, or has given the fit up")
            if news.shown is not None:
                self._board.show(news.shown)
            if news.outcome is not None:
                return news.outcome
            answer = None if news.question is None else await self._answer(address, news.question)
            if rank != 0 and not self._is_ending.is_set():
                await self._pause()

    async def _answer(self, address: str, question: tuple[int, bytes]) -> tuple[int, bytes]:
        """Return the caller's answer; keep in touch with the worker meanwhile."""
        number, message = question
        answer = self._board.ask(message)
        while not (await asyncio.wait([answer], timeout=_TOUCH))[0]:
            with contextlib.suppress(UnreachableError):  # the next call to it will tell
                await self._calls.call(
                    address, "watch", self._fit, self._number, None, 0.0, limit=_START
                )
        return number, answer.result()

    async def _pause(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._is_ending.wait(), _TOUCH)
