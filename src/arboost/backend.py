"""The compiled core, the number of threads, and properties that are computed on first use."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, Generic, Self, TypeVar, overload

import arboost._core as core
from arboost.params.records import check

__all__ = [
    "checked_threads",
    "core",
    "in_caller_context",
    "lazy_property",
    "startable_threads",
    "threads",
]


def threads(n_jobs: int | None) -> int:
    """Number of threads: ``n_jobs``, or for None and -1 all of this process."""
    return core.available_threads() if n_jobs is None or n_jobs == -1 else n_jobs


def checked_threads(n_jobs: object) -> int:
    """Number of threads for a user's ``n_jobs``; raise for an invalid value."""
    return threads(check({"n_jobs": n_jobs})["n_jobs"])


def startable_threads(n_threads: int) -> int:
    """Number of Python threads that the system can start now: at most `n_threads`, at least 1.

    Executors fail where they cannot start all of their threads: they are to get this number.
    """
    if n_threads <= 1:
        return 1
    gate, started = threading.Event(), []
    try:
        for _ in range(n_threads):
            thread = threading.Thread(target=gate.wait)
            thread.start()
            started.append(thread)
    except RuntimeError:  # "can't start new thread"
        pass
    finally:
        gate.set()
        for thread in started:
            thread.join()
    return max(len(started), 1)


T = TypeVar("T")


def in_caller_context(task: Callable[..., T]) -> Callable[..., T]:
    """A task that runs in other threads with the context and configuration of the calling one."""
    from sklearn import config_context, get_config

    config, context = get_config(), copy_context()

    def run(*arguments: Any) -> T:
        with config_context(**config):
            # Only one thread at a time may run in a context.
            return context.copy().run(task, *arguments)

    return run


class lazy_property(Generic[T]):  # noqa: N801  # used as a decorator, like `property`
    """Property whose value is kept in the `__dict__` of the object from its first use on.

    `functools.cached_property` of Python 3.11 computes under one lock for all objects. A process
    that is forked meanwhile has the lock, but not the thread that would release it. Here threads
    that come at once may each compute the value, and all of them get the one that is kept first.

    Examples
    --------
    >>> class Circle:
    ...     @lazy_property
    ...     def area(self) -> float:
    ...         return 3.0
    >>> circle = Circle()
    >>> circle.area, vars(circle)
    (3.0, {'area': 3.0})
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        value: T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value
