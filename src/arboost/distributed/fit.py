"""Estimator, training data and arguments of `fit` -> fitted estimator, on any cluster."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Protocol, TypeVar

from arboost.distributed.program import Listener, Program
from arboost.distributed.training import (
    TRAIN,
    FittedState,
    TrainingListener,
    TrainingProgram,
    check_estimator,
    eval_sets,
    finish,
    offset_columns,
)
from arboost.training.checkpoint import Checkpoint
from arboost.training.monitor import checked_callbacks
from arboost.workers import Traffic

__all__ = ["NamedColumns", "fit_on_cluster"]

_FORWARDED = ("eval_names", "groups", "memory_limit", "offset")  # arguments of `fit` as they are


class NamedColumns(Protocol):
    """A table of a cluster, and the names of the columns that are no features."""

    @property
    def target(self) -> Hashable | None: ...  # noqa: D102

    @property
    def weight(self) -> Hashable | None: ...  # noqa: D102


Input = TypeVar("Input", bound=NamedColumns)


def fit_on_cluster(
    estimator: Any,
    data: tuple[Any, Any, Any],
    given: Mapping[str, Any],
    read: Callable[[Any, Any, Any], Input],
    run: Callable[[Program, Mapping[str, Input], Listener], FittedState],
    *,
    n_votes: int = 0,
) -> tuple[Any, list[Traffic]]:
    """Train an estimator on a cluster; return it, and the traffic of each worker.

    Parameters
    ----------
    estimator : estimator of arboost
    data : tuple
        Training data, target and weight.
    given : mapping of str to Any
        Further arguments of `DistributedFit.fit` by name.
    read : callable
        Returns the table of data, target and weight.
    run : callable
        Returns the result of a program on tables, whose messages go to a listener.
    n_votes : int
        Features that each worker proposes for a node; 0: all features are searched.
    """
    offset_columns(given["offset"])
    callbacks = checked_callbacks(given["callbacks"])
    evaluated = eval_sets(given["eval_set"])
    checkpoint = Checkpoint.of(given["checkpoint"])
    checked = {
        "callbacks": callbacks or None,
        "checkpoint": checkpoint,
        "eval_set": evaluated or None,
    }
    used = check_estimator(estimator, {**given, **checked})
    _check_voting(estimator, n_votes)
    inputs = {TRAIN: read(*data)}
    names = []
    for i, one in enumerate(evaluated):
        # The training data itself may be among them, for its learning curve.
        names.append(TRAIN if one[0] is data[0] else f"validation_{i}")
        if one[0] is not data[0]:
            inputs[names[-1]] = read(*one)
    listener = TrainingListener(callbacks, estimator.verbose)
    program = TrainingProgram(
        estimator=estimator,
        columns={name: (one.target, one.weight) for name, one in inputs.items()},
        options={name: used[name] for name in _FORWARDED if name in used},
        eval_tables=tuple(names),
        has_callbacks=bool(callbacks),
        checkpoint=checkpoint,
        n_votes=n_votes,
    )
    result = run(program, inputs, listener)
    listener.close()
    return finish(estimator, result), result.traffic


def _check_voting(estimator: Any, n_votes: int) -> None:
    """Raise ValueError for trees of CART, which may need the sums of any feature."""
    from arboost.algorithms.gradient_boosting.base import GradientBoosting

    if n_votes and not isinstance(estimator, GradientBoosting):
        raise ValueError(
            f"voting={n_votes} is not allowed with a {type(estimator).__name__}: it is for "
            "gradient boosting. Use voting=0."
        )
