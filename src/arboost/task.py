"""What is to be learnt: numbers or classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Task"]

_TWO_CLASSES = 2


@dataclass(frozen=True)
class Task:
    """What is to be learnt: the target as the losses read it, and the labels it stands for."""

    kind: str
    y: NDArray[np.float64]
    classes: NDArray[Any] | None = None

    @property
    def n_classes(self) -> int | None:
        """Number of classes; None for numbers."""
        return None if self.classes is None else len(self.classes)

    @property
    def n_outputs(self) -> int:
        """Scores that tell the classes apart; 1 for numbers, and for two classes."""
        n_classes = self.n_classes
        return 1 if n_classes is None or n_classes == _TWO_CLASSES else n_classes

    @property
    def is_constant(self) -> bool:
        """Whether there is nothing to learn: one class."""
        return self.classes is not None and len(self.classes) == 1
