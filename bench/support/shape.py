"""The work of every contestant, and the protocol of its adapter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

LEARNING_RATE = 0.1
MAX_BINS = 255


@dataclass(frozen=True)
class Shape:
    """Shape of every tree: best-first with `max_leaves`, or by level with `max_depth`."""

    max_leaves: int | None = None
    max_depth: int | None = None

    @property
    def leafwise(self) -> bool:
        """Whether the leaf with the best gain is split first."""
        return self.max_leaves is not None

    def __str__(self) -> str:
        """Text for tables."""
        if self.leafwise:
            return f"{self.max_leaves} leaves best-first"
        return f"depth {self.max_depth} by level"


@dataclass(frozen=True)
class Work:
    """One fit: shape of the trees, rounds, threads, and the adapter's variant."""

    shape: Shape
    rounds: int
    threads: int
    variant: str = "default"


class Peer(Protocol):
    """Adapter of one library."""

    package: str  # name to import
    distributions: tuple[str, ...]  # names to install; the first found gives the version
    variants: tuple[str, ...]  # settings that do not change the result; the fastest counts

    def supports(self, shape: Shape) -> bool: ...
    def bin(self, X: np.ndarray, y: np.ndarray, work: Work) -> Any: ...
    def train(self, data: Any, work: Work) -> Any: ...
    def predict(self, model: Any, X: np.ndarray) -> np.ndarray: ...
