"""The program that trains an estimator on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from arboost.distributed.program import Desk
from arboost.workers import Share

__all__ = ["TrainingListener", "TrainingProgram", "finish"]


@dataclass(frozen=True)
class TrainingProgram:
    """Stand-in: it counts the rows of each table, until training on shares is here.

    Attributes
    ----------
    estimator : estimator
    columns : mapping of str to tuple
        Names of the target and weight columns of each table; None where parts are tuples.
    options : mapping of str to Any
        Arguments of `DistributedFit.fit`: groups, eval_names, checkpoint, memory_limit, and
        has_callbacks.
    """

    estimator: Any
    columns: Mapping[str, tuple[Hashable | None, Hashable | None]]
    options: Mapping[str, Any]

    def __call__(self, tables: Mapping[str, Share], desk: Desk) -> object:
        """Return the number of rows of each table."""
        from arboost.sources.opening import open_source

        counts = {}
        for name, share in tables.items():
            source = open_source(share.X)
            rows = sum(batch.n_rows for batch in source.batches(65536))
            counts[name] = sum(share.workers.gather(rows))
        if self.options["has_callbacks"] and desk.rank == 0:
            desk.ask(counts)
        return counts


class TrainingListener:
    """The client's side of the program.

    Parameters
    ----------
    callbacks : iterable of callable
    """

    def __init__(self, callbacks: Iterable[Callable[[Any], object]]) -> None:
        self._callbacks = list(callbacks)

    def shown(self, message: Any) -> None:
        """Take progress."""

    def answer(self, message: Any) -> object:
        """Call the callbacks."""
        return [callback(message) for callback in self._callbacks]


def finish(estimator: Any, result: Any) -> Any:
    """Return the estimator with the result of the program."""
    estimator.n_rows_ = result
    return estimator
