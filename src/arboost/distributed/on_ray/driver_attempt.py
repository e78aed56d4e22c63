"""One attempt of a fit as the driver sees it: start all programs, watch them, collect their ends.

driver ──prepare──▶ all ranks ──run──▶ all ranks ··· outcomes
└─────watch────▶ rank 0, again and again: messages, questions ◀──▶ listener
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import ray
from ray.exceptions import RayError

from arboost.distributed.on_ray.crew import Crew, cause_of
from arboost.distributed.on_ray.orders import Orders, TableBlocks, dumps
from arboost.distributed.program import Listener
from arboost.distributed.reports import Done, Lost, News, Outcome, silence_of

__all__ = ["DriverAttempt"]

_PATIENCE = 2.0  # seconds that rank 0 may hold a call until it has news
_ANSWER = 10.0  # seconds that an actor may take to answer once a program has ended
_SLICE = 0.5  # seconds between looks at the clock
_TOUCH = 2.0  # seconds between calls to the other ranks
_PAUSE = 0.1  # seconds after a call that failed

Outcomes = dict[int, Outcome | Lost]


class _Asked(NamedTuple):
    """A call to a rank, and its time."""

    answer: Any
    time: float


class DriverAttempt:
    """An attempt; all methods are for the caller's thread.

    Parameters
    ----------
    crew : Crew
    number : int
    listener : Listener
    timeout : float
        Seconds of silence after which an actor counts as lost.
    """

    def __init__(self, crew: Crew, number: int, listener: Listener, timeout: float) -> None:
        self._crew, self._number, self._listener = crew, number, listener
        self._timeout, self._heard = timeout, 0.0
        self._asked: dict[int, _Asked] = {}  # for a sign of life, by rank
        self._outcomes: Outcomes = {}
        self._runs: dict[Any, int] = {}  # references of outcomes that are not there yet -> ranks

    def run(self, program: bytes, shares: Iterable[Mapping[str, TableBlocks]]) -> Outcomes:
        """Return the outcome of each rank.

        Parameters
        ----------
        program : bytes
        shares : iterable of mapping of str to TableBlocks
            Tables of each rank.
        """
        crew, outcomes = self._crew, self._outcomes
        references = {}
        for rank, tables in enumerate(shares):
            orders = Orders(
                attempt=self._number,
                rank=rank,
                actors=tuple(crew.actors),
                names=tuple(crew.names),
                program=program,
                tables=tables,
                n_threads=crew.n_threads,
                timeout=self._timeout,
            )
            references[crew.call(rank, "prepare", orders)] = rank
        progress = self._answers(references, self._timeout)
        if outcomes:
            # No program has started, so the others have nothing to report.
            return outcomes
        known = [rank for rank in sorted(progress) if progress[rank] is not None]
        holder = max(known, key=progress.__getitem__, default=None)
        self._runs = {
            actor.run.remote(self._number, holder): rank for rank, actor in enumerate(crew.actors)
        }
        self._watch()
        if not isinstance(outcomes.get(0), Done):
            self._cancel()
        self._last_ends(_ANSWER if isinstance(outcomes.get(0), Done) else self._timeout)
        return outcomes

    def _watch(self) -> None:
        """Pass messages to the listener until rank 0 has a result, or a rank has failed."""
        watching, self._heard = self._ask_news(None), time.monotonic()
        while time.monotonic() - self._heard < self._timeout + _PATIENCE:
            ready, _ = ray.wait([*self._runs, watching], num_returns=1, timeout=_SLICE)
            if watching in ready:
                watching = self._ask_news(self._pass_on(watching))
            elif ready:
                rank = self._runs[ready[0]]
                if rank == 0:
                    self._pass_on(watching)  # messages before the last one
                self._end(ready[0])
                if rank == 0 or not isinstance(self._outcomes[rank], Done):
                    return
            if self._has_silent_rank():
                return
        self._lose(0, silence_of(self._timeout))

    def _has_silent_rank(self) -> bool:
        """Ask the other ranks for a sign of life; whether one of them is lost without it."""
        now = time.monotonic()
        for rank in sorted({*self._runs.values()} - {0}):
            asked = self._asked.get(rank)
            if asked is not None and not ray.wait([asked.answer], timeout=0)[0]:
                if now - asked.time > self._timeout:
                    self._lose(rank, silence_of(self._timeout))
                    return True
            elif asked is None or now - asked.time > _TOUCH:
                self._asked[rank] = _Asked(self._crew.call(rank, "where"), now)
        return False

    def _ask_news(self, answer: tuple[int, bytes] | None) -> Any:
        return self._crew.call(0, "watch", self._number, answer, _PATIENCE)

    def _pass_on(self, watching: Any) -> tuple[int, bytes] | None:
        """Pass news of rank 0 to the listener, and return its answer to a question."""
        try:
            news: News = ray.get(watching, timeout=_PATIENCE)
        except RayError:
            # The outcome tells the cause; until it is there, calls would fail without a pause.
            time.sleep(_PAUSE)
            return None
        self._show(news)
        answer = None
        if news.question is not None:
            number, message = news.question
            answer = number, dumps(self._listener.answer(pickle.loads(message)))
        self._heard = time.monotonic()
        return answer

    def _show(self, news: News) -> None:
        if news.shown is not None:
            self._listener.shown(pickle.loads(news.shown))

    def _cancel(self) -> None:
        """End the programs of all ranks that still run; those that do not answer are lost."""
        reason = "Another worker is lost, or has failed."
        calls = {
            self._crew.call(rank, "cancel", self._number, reason): rank
            for rank in self._runs.values()
        }
        self._answers(calls, _ANSWER)

    def _answers(self, calls: Mapping[Any, int], limit: float) -> dict[int, Any]:
        """Return the answers to calls of ranks; ranks that do not answer are lost."""
        if not calls:
            return {}
        answers = {}
        ready, late = ray.wait(list(calls), num_returns=len(calls), timeout=limit)
        for reference in late:
            self._lose(calls[reference], f"it did not answer for {limit:g} seconds")
        for reference in ready:
            try:
                answers[calls[reference]] = ray.get(reference, timeout=limit)
            except RayError as error:
                self._lose(calls[reference], cause_of(error), is_hanging=False)
        return answers

    def _last_ends(self, limit: float) -> None:
        """Collect the outcomes of all ranks that still run."""
        if self._runs:
            ready, _ = ray.wait(list(self._runs), num_returns=len(self._runs), timeout=limit)
            for reference in ready:
                self._end(reference)
        for rank in list(self._runs.values()):
            self._lose(rank, f"its program did not end within {limit:g} seconds")

    def _end(self, run: Any) -> None:
        """Take the outcome of a rank whose program has ended."""
        rank = self._runs.pop(run)
        try:
            news: News = ray.get(run, timeout=self._timeout)
        except RayError as error:
            self._outcomes[rank] = Lost(cause_of(error))
            return
        self._show(news)
        self._outcomes[rank] = news.outcome or Lost("it has given the attempt up")

    def _lose(self, rank: int, cause: str, *, is_hanging: bool = True) -> None:
        self._outcomes[rank] = Lost(cause)
        if is_hanging:
            self._crew.hanging.add(rank)
        self._runs = {run: other for run, other in self._runs.items() if other != rank}
