"""Messages between the actors of a fit, by remote calls of Ray.

    program: send ──push.remote──▶ Ray ──▶ actor's thread for messages ──inbox──▶ program: receive

Ray delivers each call once, but calls that carry large messages may be overtaken by others. Numbers
put them back in order.
"""

from __future__ import annotations

import threading

from arboost.distributed.inboxes import InboxTransport
from arboost.distributed.on_ray.orders import Orders

__all__ = ["MESSAGES", "RayTransport"]

MESSAGES = "messages"  # concurrency group of the calls that carry messages


class RayTransport(InboxTransport):
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
        names = orders.names
        super().__init__(
            orders.rank, len(names), orders.timeout, lambda rank: names[rank], has_signs=False
        )
        self._attempt = orders.attempt
        self._pushes = [
            actor.push.options(num_returns=0, concurrency_group=MESSAGES) for actor in orders.actors
        ]
        self._n_sent = [0] * self.size
        self._n_delivered = [0] * self.size
        self._early: list[dict[int, bytes]] = [{} for _ in range(self.size)]  # by number
        self._lock = threading.Lock()

    def send(self, rank: int, message: bytes) -> None:
        """Send a message to another actor, without waiting for it."""
        self._count(message)
        self._pushes[rank].remote(self._attempt, self.rank, self._n_sent[rank], message)
        self._n_sent[rank] += 1

    def deliver(self, rank: int, number: int, message: bytes) -> None:
        """Take a message of another actor, by its number; for any thread."""
        with self._lock:
            early = self._early[rank]
            early[number] = message
            while self._n_delivered[rank] in early:
                self._inboxes.put(rank, early.pop(self._n_delivered[rank]))
                self._n_delivered[rank] += 1
