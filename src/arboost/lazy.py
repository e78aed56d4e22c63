"""Properties that are computed on first use and kept with their object, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["lazy_property"]

T = TypeVar("T")


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
