"""Base class of losses.

The life of a loss in one fit: ``check_target`` checks y; ``start``, or with an offset
``start_from``, gives the scores of round 0;
then each round takes the derivatives at the current scores from ``gradients``, as fixed-point
integers, grows trees on them, and may replace the leaf values: by ``refit``, or in Friedman's
boosting by ``leaf_values``. ``value`` is the mean loss, which all of it minimises.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core, lazy_property

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Leaves = NDArray[np.uint32]

# A line search without a finite minimum ends here, as leaves do (cpp/loss/leaf_steps.h): e^10 moves
# any odds and any mean by more than data can tell, and scores stay finite over many rounds.
LARGEST_STEP = 10.0


@dataclass(frozen=True)
class Target:
    """Target of a fit: y as numbers (classes as 0 .. K-1), and row weights or None for 1.

    Rankings have the number of each row's query, too.
    """

    y: Floats
    weight: Floats | None
    query: Codes | None = None

    @lazy_property
    def largest_weight(self) -> float:
        """The largest weight."""
        return 1.0 if self.weight is None else float(self.weight.max())

    @lazy_property
    def queries(self) -> dict[str, core.Queries]:
        """Documents of the queries in the core, as `arboost.losses.ranking` made them."""
        return {}


@dataclass(frozen=True)
class Loss:
    """A loss: the attributes and methods that training uses.

    Attributes
    ----------
    refits_leaves : bool
        Leaf values are order statistics of the residuals, from `refit`.
    refits_friedman : bool
        Leaf values are from `refit` in Friedman's boosting.
    constant_hessian : bool
        The hessian is the weight.
    varied : bool
        Gradients differ between rows by more than sign and weight, so that gradient-based row
        sampling makes sense.
    in_core : bool
        The core alone computes the gradients.
    """

    refits_leaves = False
    refits_friedman = False
    constant_hessian = False
    varied = True
    in_core = True

    @property
    def leaf_quantiles(self) -> tuple[float, ...]:
        """Quantiles of the residuals that refitted leaves are, or start from, by output."""
        return ()

    @property
    def round_parameters(self) -> tuple[float, ...]:
        """Parameters of rounds in the core: those of the loss, unless they follow the scores."""
        nothing = np.empty(0)
        return self.parameters(Target(nothing, None), nothing.reshape(0, self.n_outputs), 1)

    @property
    def name(self) -> str:
        """Public name."""
        raise NotImplementedError

    @property
    def kernel(self) -> str:
        """Name in the core."""
        return self.name

    @property
    def link(self) -> str:
        """Name in `arboost.losses.links` of the function from raw scores to predictions."""
        return "identity"

    @property
    def n_outputs(self) -> int:
        """Number of raw scores of a row."""
        return 1

    def parameters(self, target: Target, scores: Floats, n_threads: int) -> tuple[float, ...]:
        """Parameters of the loss in the core."""
        return ()

    def check_target(self, y: Floats) -> None:
        """Raise ValueError where the loss is not defined for a value of y."""

    def start(self, target: Target) -> Floats:
        """Scores of the best constant model, shape (n_outputs,)."""
        raise NotImplementedError

    def start_from(self, target: Target, offset: Floats) -> Floats:
        """Scores of the best constant model on top of an offset, shape (n_outputs,).

        The offset has the shape (n_rows, 1) or (n_rows, n_outputs).

        Examples
        --------
        >>> from arboost.losses import Target, make
        >>> target = Target(np.array([1.0, 6.0]), None)
        >>> make("squared_error").start_from(target, np.array([[0.0], [4.0]]))
        array([1.5])
        >>> exposure = np.array([[1.0], [6.0]])
        >>> make("poisson").start_from(target, core.log(exposure)).round(12) + 0.0
        array([0.])
        """
        columns = np.broadcast_to(offset, (len(offset), self.n_outputs)).T
        starts = [self.start(Target(target.y - column, target.weight)) for column in columns]
        return np.array([start[k] for k, start in enumerate(starts)])

    def gradients(
        self,
        target: Target,
        scores: Floats,
        out: core.Gradients,
        n_threads: int,
        *,
        least_squares: bool = False,
    ) -> None:
        """Write the gradients and hessians at ``scores`` (n_rows, n_outputs) into ``out``.

        With ``least_squares`` the hessians are the weights.
        """
        core.apply_loss(
            self.kernel,
            target.y,
            target.weight,
            scores,
            out,
            n_threads,
            parameters=self.parameters(target, scores, n_threads),
            least_squares=least_squares,
            largest_weight=target.largest_weight,
        )

    def gradients_of_round(
        self,
        target: Target,
        scores: Floats,
        out: core.Gradients,
        n_threads: int,
        *,
        least_squares: bool,
        round_number: int,
    ) -> None:
        """The same in a round of a loss that the core does not know."""
        self.gradients(target, scores, out, n_threads, least_squares=least_squares)

    def refits(self, boosting: str) -> bool:
        """Whether `refit` gives the leaf values with boosting "newton" or "gradient"."""
        return self.refits_leaves or (boosting == "gradient" and self.refits_friedman)

    def leaf_values(self, sums_g: Floats, sums_h: Floats) -> Floats:
        """Steps that minimise the loss in each leaf, from its sums of gradients and hessians.

        The sums are those of `gradients` without ``least_squares``, at the scores before the step,
        in arrays of any shape.
        """
        shape = np.shape(sums_g)
        kernel, parameters = (self.kernel, self.round_parameters) if self.in_core else ("", ())
        g, h = np.ravel(sums_g), np.ravel(sums_h)
        return core.leaf_steps(kernel, parameters, self.n_outputs, g, h).reshape(shape)

    def leaf_rule(
        self, target: Target, scores: Floats, output: int, n_threads: int
    ) -> tuple[float, float | None]:
        """Statistic of the residuals in `refit`: a quantile, and Huber's delta or None."""
        raise NotImplementedError

    def refit(
        self,
        target: Target,
        scores: Floats,
        output: int,
        leaf: Leaves,
        n_nodes: int,
        n_threads: int,
    ) -> Floats:
        """Values of all nodes, shape (n_nodes,), from the residuals of one output.

        ``leaf`` is each row's node, 0xffffffff for rows to leave out; a node without rows gets 0.
        """
        alpha, delta = self.leaf_rule(target, scores, output, n_threads)
        values: Floats = core.refit_leaves(
            target.y,
            target.weight,
            scores,
            output,
            leaf,
            n_nodes,
            n_threads,
            alpha=alpha,
            delta=delta,
        )
        return values

    def value(self, target: Target, scores: Floats, n_threads: int) -> float:
        """The weighted mean loss. It does not depend on the number of threads."""
        return core.loss_value(
            self.kernel,
            target.y,
            target.weight,
            scores,
            n_threads,
            parameters=self.parameters(target, scores, n_threads),
        )


def mean(target: Target) -> float:
    """The weighted mean of y."""
    # The mean of the differences to one value: exact for constant y, and no overflow of sums.
    first = target.y[0]
    return float(first + np.average(target.y - first, weights=target.weight))


def read_only(array: Floats) -> Floats:
    """A read-only view: users' functions cannot change the training data."""
    view = array.view()
    view.flags.writeable = False
    return view
