"""Forest training target, of one target or several: each leaf stores column means of its rows.

The outputs of several targets lie next to each other:

    regression       1 output    y - middle            leaf: mean of y - middle
    two classes      1 output    -1 and 1              leaf: p1 - p0
    K other classes  K outputs   1 where y = k, or 0   leaf: p_k

The gain of a column of -1 and 1 is twice the decrease of the Gini impurity, that of K columns once:
next to targets of more classes, two classes have two outputs, too.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.target import Task, class_factors
from arboost.losses.base import Floats
from arboost.models.model import Model

Reweigh = Callable[[NDArray[np.uint32], NDArray[np.float32]], Floats]

# Criteria of users -> criteria of the engine.
_ENGINE_CRITERIA = {
    "gini": "quadratic",
    "entropy": "entropy",
    "log_loss": "entropy",
    "error": "error",
    "gain_ratio": "gain_ratio",
    "squared_error": "quadratic",
    "absolute_error": "absolute_error",
    "poisson": "poisson",
}

_TWO_CLASSES = 2
_MIDDLE_BITS = 8
# Weights are evened where their sum and their mean are these multiples of a typical weight.
_COARSE_TOTAL, _UNEVEN = 2.0**24, 16.0
_OUTWEIGHED = 64.0  # of the weight of all lighter rows


@dataclass(frozen=True, kw_only=True, eq=False)
class ForestTarget:
    """Forest training target: one column per output.

    Attributes
    ----------
    tasks : tuple of Task
        One for each target, all of one kind.
    criterion : {"quadratic", "entropy", "poisson", "absolute_error", "error", "gain_ratio"}
        Split criterion of the engine.
    widths : tuple of int
        Number of outputs of each target.
    kernel : {"squared_error", "one_hot", "columns"}
        Form of `y`: values; class codes, each with an output; or a column per output.
    y : float64 array of shape (n_rows,), with columns (n_rows, n_outputs)
        Values are relative to `middle`.
    middle : float64 array of shape (n_outputs,)
        Offset that is added to the leaf values again.
    has_heavy_tail : bool
        Whether the largest values of some target are so far from the middle that trees need to be
        grown in parts, each at the scale of its rows (cpp/grow/tree_parts.h).
    """

    tasks: tuple[Task, ...]
    criterion: str
    widths: tuple[int, ...]
    kernel: str
    y: Floats
    middle: Floats
    has_heavy_tail: bool = False

    @classmethod
    def read(cls, kind: str, y: NDArray[Any], criterion: str, old: Model | None = None) -> Self:
        """The training target of a y with one or several columns.

        Parameters
        ----------
        kind : {"regressor", "classifier"}
        y : array of shape (n_rows,) or (n_rows, n_targets)
        criterion : str
            As users name it.
        old : Model, optional
            Model whose trees a warm start keeps, with its classes.
        """
        criterion = _ENGINE_CRITERIA[criterion]
        columns = [y] if y.ndim == 1 else [np.ascontiguousarray(column) for column in y.T]
        known_classes: Sequence[Any] = [None] * len(columns)
        if old is not None:
            n_targets = max(1, len(old.targets))
            if len(columns) != n_targets:
                raise ValueError(
                    f"y has {len(columns)} targets, but the trees that are kept have {n_targets}. "
                    "Pass those of the first fit, or use warm_start=False."
                )
            known_classes = (
                old.classes if isinstance(old.classes, tuple) else [old.classes] * n_targets
            )
        origin = "the first fit of warm_start"
        tasks = [
            Task.of(kind, column, classes, origin)
            for column, classes in zip(columns, known_classes, strict=True)
        ]
        if criterion == "poisson":
            for task in tasks:
                _check_counts(task.y)
        return cls.of(tasks, criterion)

    @classmethod
    def of(cls, tasks: Sequence[Task], criterion: str) -> Self:
        """The target of some tasks, whose gains count alike."""
        mixed = any((task.n_classes or 0) > _TWO_CLASSES for task in tasks)
        has_pairs = len(tasks) > 1 and (mixed or criterion != "quadratic")
        widths = tuple(
            _TWO_CLASSES if has_pairs and task.n_classes == _TWO_CLASSES else task.n_outputs
            for task in tasks
        )
        heavy = [
            task.classes is None and core.needs_parts(task.y[:, np.newaxis], criterion)
            for task in tasks
        ]
        if len(tasks) > 1:
            parts = [
                _columns(task, width, criterion, has_heavy_tail=is_heavy)
                for task, width, is_heavy in zip(tasks, widths, heavy, strict=True)
            ]
            kernel, y = "columns", np.concatenate([columns for columns, _ in parts], axis=1)
            middle = np.concatenate([middles for _, middles in parts])
        elif widths[0] > 1 or tasks[0].is_constant:
            kernel, y, middle = "one_hot", tasks[0].y, np.zeros(widths[0])
        else:
            column, middle = _columns(tasks[0], 1, criterion, has_heavy_tail=heavy[0])
            kernel, y = "squared_error", column[:, 0]
        return cls(
            tasks=tuple(tasks),
            criterion=criterion,
            widths=widths,
            kernel=kernel,
            y=y,
            middle=middle,
            has_heavy_tail=any(heavy),
        )

    @property
    def kind(self) -> str:
        """The kind of the tasks: "regressor" or "classifier"."""
        return self.tasks[0].kind

    @property
    def n_outputs(self) -> int:
        """Number of columns."""
        return len(self.middle)

    @property
    def ends(self) -> tuple[int, ...]:
        """The end of the columns of each of several targets."""
        return tuple(np.cumsum(self.widths).tolist()) if len(self.widths) > 1 else ()

    @property
    def columns(self) -> Floats:
        """A column per output, whatever the kernel; shape (n_rows, n_outputs)."""
        if self.kernel == "one_hot":
            return np.equal.outer(self.y, np.arange(self.n_outputs)).astype(np.float64)
        return self.y.reshape(-1, self.n_outputs)

    @property
    def is_exact(self) -> bool:
        """Whether gradients hold y without rounding: class codes have few values."""
        return self.kind == "classifier"

    @property
    def gain_factor(self) -> float:
        """Ratio of a split's gain to the mean decrease of impurity over the targets."""
        in_one = self.kind == "classifier" and max(self.widths) == 1
        return len(self.tasks) * (2.0 if in_one and self.criterion == "quadratic" else 1.0)

    @property
    def model_fields(self) -> dict[str, Any]:
        """Link, classes and targets of a model of these means."""
        first = self.tasks[0]
        classes: Any = first.classes
        if len(self.tasks) == 1:
            if classes is None:
                link = "identity"
            else:
                link = "shares" if self.widths[0] > 1 or first.is_constant else "share_of_two"
            return {"link": link, "classes": classes, "targets": ()}
        if classes is not None:
            classes = tuple(task.classes for task in self.tasks)
        link = "identity" if classes is None else "shares"
        return {"link": link, "classes": classes, "targets": self.widths}

    def gradients(self, weight: Floats | None, n_threads: int) -> core.Gradients:
        """The gradients g = -w y and hessians h = w, whose -G / H are means."""
        out = core.Gradients(len(self.y), self.n_outputs, by_row=self.n_outputs > 1)
        if self.kernel != "columns":
            core.apply_loss(self.kernel, self.y, weight, None, out, n_threads)
            return out
        h = np.ones_like(self.y)
        if weight is not None:
            h *= weight[:, np.newaxis]
        core.set_gradients(-self.y * h, h, out, n_threads)
        return out

    def impurity(self, weight: Floats | None) -> float:
        """The impurity of all rows by the criterion; the mean over the targets."""
        return float(np.mean([_impurity(task, self.criterion, weight) for task in self.tasks]))


def _check_counts(y: Floats) -> None:
    """Raise ValueError for values without a Poisson deviance."""
    if y.min() < 0.0:
        raise ValueError(
            f"y goes down to {y.min()}, "
            'but criterion="poisson" is for counts. Use values from 0 on, or another criterion.'
        )
    if not y.any():
        raise ValueError(
            'y is 0 in every row, but criterion="poisson" needs a value above 0. Use another '
            "criterion."
        )


def _columns(
    task: Task, n_outputs: int, criterion: str, *, has_heavy_tail: bool
) -> tuple[Floats, Floats]:
    """The columns of one target, shape (n_rows, n_outputs), and their middles."""
    if task.classes is None:
        # Counts keep their zero, which is special, and values of any magnitude their last digits.
        middle = 0.0 if has_heavy_tail or criterion == "poisson" else round_middle(task.y)
        return (task.y - middle)[:, np.newaxis], np.array([middle])
    if len(task.classes) == _TWO_CLASSES and n_outputs == 1:
        return (2.0 * task.y - 1.0)[:, np.newaxis], np.zeros(1)
    one_hot = np.equal.outer(task.y, np.arange(n_outputs)).astype(np.float64)
    return one_hot, np.zeros(n_outputs)


def _impurity(task: Task, criterion: str, weight: Floats | None) -> float:
    if task.classes is not None:
        totals = np.bincount(task.y.astype(np.intp), weight)
        shares = totals[totals > 0] / totals.sum()
        if criterion == "error":
            return float(1.0 - shares.max())
        if criterion in ("entropy", "gain_ratio"):
            return float(-np.sum(shares * core.log(shares)) / core.log(2.0))
        return float(1.0 - np.sum(shares**2))
    y = task.y
    if criterion == "absolute_error":
        order = np.argsort(y, kind="stable")
        return median_deviation(y[order], np.ones(len(y)) if weight is None else weight[order])
    mean = np.average(y, weights=weight)
    if criterion == "poisson":
        ratio = np.where(y > 0.0, y / mean, 1.0)
        return float(np.average(y * core.log(ratio), weights=weight))
    return float(np.average((y - mean) ** 2, weights=weight))


def median_deviation(y: Floats, weight: Floats) -> float:
    """The mean absolute deviation from the weighted median; y is ascending."""
    reached = np.cumsum(weight)
    median = y[np.searchsorted(reached, reached[-1] / 2)]
    return float(np.average(np.abs(y - median), weights=weight))


def round_middle(y: Floats) -> float:
    """A round number near the middle of y.

    Trees fit differences to the middle, so that their sums keep all bits. The middle has few bits
    itself: values of few digits keep theirs, and a leaf of equal values holds exactly that value.

    Examples
    --------
    >>> round_middle(np.array([100.0, 101.0, 107.0]))
    103.5
    """
    low, high = float(y.min()), float(y.max())
    if low == high:
        return low
    unit = math.ldexp(1.0, math.frexp(high - low)[1] - _MIDDLE_BITS)
    middle = round((low / 2 + high / 2) / unit) * unit if unit > 0.0 else low
    return middle if math.isfinite(middle) else 0.0


def class_weights(
    class_weight: Any, tasks: Sequence[Task], weight: Floats | None, name: str = "class_weight"
) -> Floats | None:
    """The weights of the rows times the factors of their classes; None where all are 1.

    Parameters
    ----------
    class_weight : dict, list of dict, "balanced" or None
        As the parameter's ``check`` returns it.
    tasks : sequence of Task
        One for each target; factors of several are multiplied.
    weight : float64 array of shape (n_rows,), or None
    name : str
        Name of the parameter in errors.
    """
    target_weights = class_weight if isinstance(class_weight, list) else [class_weight] * len(tasks)
    if isinstance(class_weight, dict) and len(tasks) > 1:
        raise ValueError(
            f"{name} is a dict, but y has {len(tasks)} targets. For multi-output, pass a list with "
            f'a dict for each target, or "balanced".'
        )
    if len(target_weights) != len(tasks):
        raise ValueError(
            f"{name} has {len(target_weights)} entries, but y has {len(tasks)} targets. Pass a "
            "dict for each target."
        )
    result = weight
    for target_weight, task in zip(target_weights, tasks, strict=True):
        assert task.classes is not None
        factors = class_factors(target_weight, task.classes, task.y, weight)
        if factors is not None:
            row_factors = factors[task.y.astype(np.intp)]
            with np.errstate(over="ignore", under="ignore"):
                result = row_factors if result is None else result * row_factors
    return _checked_weights(result, name)


def _checked_weights(weight: Floats | None, name: str) -> Floats | None:
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


def split_weights(weight: Floats | None) -> Floats | None:
    """The weights for the search of splits, whose integers hold light rows beside heavy ones.

    A row that outweighs all others of its node makes the gain of a split that of the lighter side
    alone, however heavy it is. So where a row has more than 64 times the weight of all lighter
    rows, the weights from there on are multiplied by a power of 2, to 64 to 128 times.

    Examples
    --------
    >>> split_weights(np.array([1.0, 2.0, 1e12, 1.0])).tolist()
    [1.0, 2.0, 465.66128730773926, 1.0]
    """
    if weight is None:
        return None
    order = np.argsort(weight, kind="stable")
    ascending = weight[order]
    lighter = np.cumsum(ascending)
    typical = ascending[(len(ascending) - 1) // 2]
    if lighter[-1] < _COARSE_TOTAL * typical or lighter[-1] < _UNEVEN * len(weight) * typical:
        return weight
    starts = np.flatnonzero(ascending[1:] > _OUTWEIGHED * lighter[:-1]) + 1
    for start, stop in itertools.pairwise([*starts.tolist(), len(ascending)]):
        below, block = math.fsum(ascending[:start]), math.fsum(ascending[start:stop])
        least = ascending[start - 1] / ascending[start]
        exponent = math.frexp(max(_OUTWEIGHED * below / block, least))[1]
        ascending[start:stop] *= math.ldexp(1.0, min(exponent, 0))
    evened = np.empty_like(weight)
    evened[order] = ascending
    return evened


def balanced_by_sample(tasks: Sequence[Task]) -> Reweigh:
    """A function that balances the class weights among the rows that a tree has drawn."""
    codes = [task.y.astype(np.intp) for task in tasks]

    def weigh(rows: NDArray[np.uint32], counts: NDArray[np.float32]) -> Floats:
        weight = np.ones(len(codes[0]))
        for class_codes in codes:
            totals = np.bincount(class_codes[rows], counts)
            present = totals > 0
            factors = np.ones(int(class_codes.max()) + 1)  # a class that was not drawn needs none
            factors[: len(totals)][present] = totals.sum() / (
                np.count_nonzero(present) * totals[present]
            )
            weight *= factors[class_codes]
        return weight

    return weigh
