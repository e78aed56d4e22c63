"""Warnings of many fits on one table: each once, after the last fit."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from sklearn.exceptions import ConvergenceWarning

from arboost.errors import warn_caller, warnings_collected

__all__ = ["warnings_once"]


@contextmanager
def warnings_once() -> Iterator[None]:
    """Collect the warnings of the block, and issue each once at its end.

    Messages that differ in numbers only, such as the rows of a fold, are one. Warnings of other
    libraries, and those on too few rounds of one of many models, are dropped.
    """
    with warnings.catch_warnings(), warnings_collected() as collected:
        warnings.simplefilter("ignore", UserWarning)
        yield
    said = set()
    for message, category in collected:
        text = re.sub(r"\d+", "0", message)
        if text not in said and not issubclass(category, ConvergenceWarning):
            said.add(text)
            warn_caller(message, category)
