"""What a forest is to learn, of one target or several: columns whose means leaves hold.

Each target has outputs of its own, and those of several lie side by side in every leaf:

    numbers          1 output    y - middle            leaf: mean of y - middle
    two classes      1 output    -1 and 1              leaf: p1 - p0
    K other classes  K outputs   1 where y = k, or 0   leaf: p_k

The gain of the first kind of classes is twice the decrease of Gini's impurity, that of the second
kind once: beside targets with more classes, two classes have two outputs, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.target import Task, class_factors

__all__ = ["Goal", "Targets", "Weigh", "balanced_by_sample", "class_weights", "middle_of"]

Floats = NDArray[np.float64]
Weigh = Callable[[NDArray[np.uint32], NDArray[np.float32]], Floats]

_TWO_CLASSES = 2
_MIDDLE_BITS = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Goal:
    """What the leaves of the trees hold means of.

    Attributes
    ----------
    kernel : {"squared_error", "one_hot", "columns"}
        Numbers; numbers of classes, each of which has an output; or a column for each output.
    y : float64 array of shape (n_rows,), with columns (n_rows, n_outputs)
        Of the training rows; numbers relative to their middle.
    n_outputs : int
    middle : float64 array of shape (n_outputs,)
        What is added to the values of the leaves again.
    is_exact : bool
        Whether gradients hold y as it is: classes, unlike numbers, have few values.
    """

    kernel: str
    y: Floats
    n_outputs: int
    middle: Floats
    is_exact: bool

    def gradients(self, weight: Floats | None, n_threads: int) -> core.Gradients:
        """Return g = -w y and h = w, whose -G / H are means."""
        out = core.Gradients(len(self.y), self.n_outputs, by_row=self.n_outputs > 1)
        if self.kernel != "columns":
            core.apply_loss(self.kernel, self.y, weight, None, out, n_threads)
            return out
        h = np.ones_like(self.y)
        if weight is not None:
            h *= weight[:, np.newaxis]
        core.set_gradients(-self.y * h, h, out, n_threads)
        return out


@dataclass(frozen=True)
class Targets:
    """One target or several of one kind.

    Attributes
    ----------
    tasks : tuple of Task
    criterion : {"quadratic", "entropy", "poisson", "absolute_error"}
        What splits make small, as trees call it.
    pairs : bool
        Whether two classes have two outputs instead of one.
    """

    tasks: tuple[Task, ...]
    criterion: str
    pairs: bool = False

    @classmethod
    def of(cls, tasks: Sequence[Task], criterion: str) -> Self:
        """Return targets whose gains count alike."""
        mixed = any((task.n_classes or 0) > _TWO_CLASSES for task in tasks)
        return cls(tuple(tasks), criterion, len(tasks) > 1 and (mixed or criterion == "entropy"))

    @property
    def kind(self) -> str:
        """Numbers or classes: a regressor or a classifier."""
        return self.tasks[0].kind

    @property
    def n_outputs(self) -> tuple[int, ...]:
        """Outputs of each target."""
        return tuple(self._width(task) for task in self.tasks)

    @property
    def gain_factor(self) -> float:
        """What the gain of a split is, times the decrease of impurity as a mean over targets."""
        in_one = self.kind == "classifier" and max(self.n_outputs) == 1
        return len(self.tasks) * (2.0 if in_one and self.criterion == "quadratic" else 1.0)

    def _width(self, task: Task) -> int:
        is_pair = self.pairs and task.n_classes == _TWO_CLASSES
        return _TWO_CLASSES if is_pair else task.n_outputs

    @property
    def answer(self) -> dict[str, Any]:
        """What the means stand for, in the fields of a model."""
        first = self.tasks[0]
        classes: Any = first.classes
        if len(self.tasks) == 1:
            if classes is None:
                link = "identity"
            else:
                link = "shares" if self.n_outputs[0] > 1 or first.is_constant else "share_of_two"
            return {"link": link, "classes": classes, "targets": ()}
        if classes is not None:
            classes = tuple(task.classes for task in self.tasks)
        link = "identity" if classes is None else "shares"
        return {"link": link, "classes": classes, "targets": self.n_outputs}

    def impurity(self, weight: Floats | None) -> float:
        """Return the impurity of all rows by the criterion; the mean over the targets."""
        return float(np.mean([_impurity(task, self.criterion, weight) for task in self.tasks]))

    def goal(self) -> Goal:
        """Return what trees fit."""
        is_exact = self.kind == "classifier"
        if len(self.tasks) > 1:
            pairs = zip(self.tasks, self.n_outputs, strict=True)
            found = (_columns(*pair, self.criterion) for pair in pairs)
            columns, middles = zip(*found, strict=True)
            y, middle = np.concatenate(columns, axis=1), np.concatenate(middles)
            kernel, n_outputs = "columns", len(middle)
        elif self.n_outputs[0] > 1 or self.tasks[0].is_constant:
            kernel, y, n_outputs = "one_hot", self.tasks[0].y, self.n_outputs[0]
            middle = np.zeros(n_outputs)
        else:
            column, middle = _columns(self.tasks[0], 1, self.criterion)
            kernel, y, n_outputs = "squared_error", column[:, 0], 1
        return Goal(kernel=kernel, y=y, n_outputs=n_outputs, middle=middle, is_exact=is_exact)


def _columns(task: Task, n_outputs: int, criterion: str) -> tuple[Floats, Floats]:
    """Return what trees fit for one target, shape (n_rows, n_outputs), and the middles."""
    if task.classes is None:
        middle = 0.0 if criterion == "poisson" else middle_of(task.y)  # whose zero is special
        return (task.y - middle)[:, np.newaxis], np.array([middle])
    if len(task.classes) == _TWO_CLASSES and n_outputs == 1:
        return (2.0 * task.y - 1.0)[:, np.newaxis], np.zeros(1)
    one_hot = np.equal.outer(task.y, np.arange(n_outputs)).astype(np.float64)
    return one_hot, np.zeros(n_outputs)


def _impurity(task: Task, criterion: str, weight: Floats | None) -> float:
    if task.classes is not None:
        totals = np.bincount(task.y.astype(np.intp), weight)
        shares = totals[totals > 0] / totals.sum()
        if criterion == "entropy":
            return float(-np.sum(shares * np.log2(shares)))
        return float(1.0 - np.sum(shares**2))
    y = task.y
    mean = np.average(y, weights=weight)
    if criterion == "poisson":
        ratio = np.where(y > 0.0, y / mean, 1.0)
        return float(np.average(y * np.log(ratio), weights=weight))
    if criterion == "absolute_error":
        order = np.argsort(y, kind="stable")
        reached = np.cumsum(np.ones(len(y)) if weight is None else weight[order])
        median = y[order[np.searchsorted(reached, reached[-1] / 2)]]
        return float(np.average(np.abs(y - median), weights=weight))
    return float(np.average((y - mean) ** 2, weights=weight))


def middle_of(y: Floats) -> float:
    """Return a round number near the middle of y.

    What trees fit are differences to it, so that their sums keep all bits. It has few bits itself:
    then numbers with few digits keep theirs, and a leaf of equal ones holds exactly that number.

    Examples
    --------
    >>> middle_of(np.array([100.0, 101.0, 107.0]))
    103.5
    """
    low, high = float(y.min()), float(y.max())
    if low == high:
        return low
    unit = math.ldexp(1.0, math.frexp(high - low)[1] - _MIDDLE_BITS)
    middle = round((low / 2 + high / 2) / unit) * unit if unit > 0.0 else low
    return middle if math.isfinite(middle) else 0.0


def class_weights(
    given: Any, tasks: Sequence[Task], weight: Floats | None, name: str = "class_weight"
) -> Floats | None:
    """Return the weights of the rows times the factors of their classes; None where all are 1.

    Parameters
    ----------
    given : dict, list of dict, "balanced" or None
        As the parameter's ``check`` returns it.
    tasks : sequence of Task
        One for each target; factors of several are multiplied.
    weight : float64 array of shape (n_rows,), or None
    name : str
        What errors call the parameter.
    """
    several = given if isinstance(given, list) else [given] * len(tasks)
    if isinstance(given, dict) and len(tasks) > 1:
        raise ValueError(
            f"{name} is a dict, but y has {len(tasks)} targets. For multi-output, pass a list with "
            f'a dict for each target, or "balanced".'
        )
    if len(several) != len(tasks):
        raise ValueError(
            f"{name} has {len(several)} entries, but y has {len(tasks)} targets. Pass a dict for "
            "each target."
        )
    result = weight
    for one, task in zip(several, tasks, strict=True):
        assert task.classes is not None
        factors = class_factors(one, task.classes, task.y, weight)
        if factors is not None:
            of_row = factors[task.y.astype(np.intp)]
            with np.errstate(over="ignore", under="ignore"):
                result = of_row if result is None else result * of_row
    return _usable(result, name)


def _usable(weight: Floats | None, name: str) -> Floats | None:
    if weight is None:
        return None
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not weight.all() or not np.isfinite(total):
        raise ValueError(
            f"{name} times sample_weight goes from {weight.min()} to {weight.max()}, which "
            "floating point cannot hold or add up. Only ratios of weights matter much: bring them "
            "nearer to 1."
        )
    return weight


def balanced_by_sample(tasks: Sequence[Task]) -> Weigh:
    """Return what makes the classes weigh the same among the rows that a tree has drawn."""
    codes = [task.y.astype(np.intp) for task in tasks]

    def weigh(rows: NDArray[np.uint32], counts: NDArray[np.float32]) -> Floats:
        weight = np.ones(len(codes[0]))
        for of_target in codes:
            totals = np.bincount(of_target[rows], counts)
            present = totals > 0
            factors = np.ones(int(of_target.max()) + 1)  # a class that was not drawn needs none
            factors[: len(totals)][present] = totals.sum() / (
                np.count_nonzero(present) * totals[present]
            )
            weight *= factors[of_target]
        return weight

    return weigh
