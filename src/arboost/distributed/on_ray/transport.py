"""Messages between the actors of a fit, by remote calls of Ray.

    program: send ──push.remote──▶ Ray ──▶ actor's thread for messages ──inbox──▶ program: receive

Ray delivers each call once, but calls that carry large messages may be overtaken by others. Numbers
put them back in order.
"""

from __future__ import annotations

import threading

from arboost.distributed.inboxes import Inboxes
from arboost.distributed.on_ray.orders import Orders

__all__ = ["MESSAGES", "RayTransport"]

MESSAGES = "messages"  # concurrency group of the calls that carry messages


class RayTransport:
    """`Transport` of one attempt on one actor.

    Parameters
    ----------
    orders : Orders

    Attributes
    ----------
    n_bytes, n_messages : int
        Sent so far.
    """

    def __init__(self, orders: Orders) -> None:
        self.rank, self.size = orders.rank, len(orders.actors)
        self.n_bytes = self.n_messages = 0
        self._attempt = orders.attempt
        self._inboxes = Inboxes(self.size, orders.timeout, lambda rank: orders.names[rank])
        self._pushes = [
            actor.push.options(num_returns=0, concurrency_group=MESSAGES) for actor in orders.actors
        ]
        self._n_sent = [0] * self.size
        self._n_delivered = [0] * self.size
        self._early: list[dict[int, bytes]] = [{} for _ in range(self.size)]  # by number
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        """Time that `receive` waited so far."""
        return self._inboxes.seconds

    @property
    def lost(self) -> dict[int, str]:
        """Silent actors by rank, with the cause of each."""
        return self._inboxes.lost

    @property
    def has_raised(self) -> bool:
        """Whether the program has been told that the attempt is over."""
        return self._inboxes.has_raised

    def send(self, rank: int, message: bytes) -> None:
        """Send a message to another actor, without waiting for it."""
        self._inboxes.check()
        self.n_bytes += len(message)
        self.n_messages += 1
        self._pushes[rank].remote(self._attempt, self.rank, self._n_sent[rank], message)
        self._n_sent[rank] += 1

    def receive(self, rank: int) -> bytes:
        """Return the next message of another actor.

        Raises
        ------
        WorkerError
            The actor was silent for too long, or the attempt is over.
        """
        message: bytes = self._inboxes.next(rank)
        return message

    def check(self) -> None:
        """Raise WorkerError if the attempt is over."""
        self._inboxes.check()

    def end(self, reason: str) -> None:
        """End all waits of the program; for any thread. The first reason counts."""
        self._inboxes.end(reason)

    def deliver(self, rank: int, number: int, message: bytes) -> None:
        """Take a message of another actor, by its number; for any thread."""
        with self._lock:
            early = self._early[rank]
            early[number] = message
            while self._n_delivered[rank] in early:
                self._inboxes.put(rank, early.pop(self._n_delivered[rank]))
                self._n_delivered[rank] += 1
