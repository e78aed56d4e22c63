"""Paths of training data -> files, each of which one worker of a cluster reads."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from arboost.sources.paths import Found, find_files, is_path

__all__ = ["files_found", "refuse_other_than_names", "try_to_find"]


def refuse_other_than_names(kind: str, **columns: Any) -> None:
    """Raise TypeError unless target and weight are names of columns; only the weight may be None.

    Parameters
    ----------
    kind : str
        Kind of the data, for messages: "paths".
    **columns : Any
        Target and weight.
    """
    for name, column in columns.items():
        if column is not None and not isinstance(column, str):
            raise TypeError(
                f"{name} is a {type(column).__name__}, but must be the name of a column where the "
                f"data are {kind}."
            )
    if columns["target"] is None:
        raise TypeError(f"target=None, but the data are {kind}. Pass the name of its column.")


def files_found(
    data: Any, ask_worker: Callable[[list[Any]], list[Found] | Exception], instead: str
) -> list[str]:
    """Return the files of paths; those that this machine does not see are found by a worker.

    Parameters
    ----------
    data : str, path-like or list of them
    ask_worker : callable
        Returns the result of `try_to_find` on a worker.
    instead : str
        Advice where files are in folders of partition keys, which workers do not read.
    """
    given = [data] if is_path(data) else list(data)
    try:
        found = find_files(given)
    except FileNotFoundError:
        answer = ask_worker(given)
        if isinstance(answer, Exception):
            raise answer from None
        found = answer
    else:
        found = [Found(os.path.abspath(one.path), os.path.abspath(one.base)) for one in found]
    for file in found:
        if "=" in os.path.relpath(os.path.dirname(file.path), file.base or "."):
            raise ValueError(
                f"{file.path!r} is in a folder of partition keys, which workers do not read by "
                f"themselves. {instead}"
            )
    return [file.path for file in found]


def try_to_find(given: list[Any]) -> list[Found] | Exception:
    """Return the files, or the error: clusters would log a traceback of one that is raised."""
    try:
        return find_files(given)
    except (OSError, ValueError) as error:
        return error
