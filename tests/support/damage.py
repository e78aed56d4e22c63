"""Damage to bytes and documents: positions and replacements."""

from __future__ import annotations

import copy

import numpy as np


def random_of(path, purpose):
    return np.random.default_rng([*path.stem.encode(), *purpose.encode()])


def places(value, path=()):
    """Yield the paths of all values in nested dicts and lists."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    if isinstance(value, dict | list):
        for key, below in inner:
            if isinstance(below, dict | list):
                yield from places(below, (*path, key))
            else:
                yield (*path, key)


def replaced(document, place, value):
    """Return a copy with another value at a path."""
    document = copy.deepcopy(document)
    at = document
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = value
    return document
