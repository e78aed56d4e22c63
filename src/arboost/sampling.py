"""Which rows a tree sees: all of them, or a sample that the core draws anew for every tree.

A row's fate is a hash of seed, draw and its position, so it depends on nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from arboost.backend import core

__all__ = ["RowSampling"]


@dataclass(frozen=True, kw_only=True)
class RowSampling:
    """A share of the rows for every tree.

    Attributes
    ----------
    method : {"uniform", "gradient_based"}
        Each row with the same probability; or in proportion to the norm sqrt(g^2 + lambda h^2) of
        its gradient, and then weighed by the inverse of its probability.
    rate : float
        Share of the rows, in (0, 1].
    reg_lambda : float
        The lambda of the norm.
    """

    method: str = "uniform"
    rate: float = 1.0
    reg_lambda: float = 1.0

    @property
    def leaves_from_all_rows(self) -> bool:
        """Whether only splits are chosen by the sample, and leaves hold what all rows say.

        A tree of many leaves on few rows learns their noise, and the weights of rare rows make it
        worse. Values from all rows cost one pass, and leave only the choice of splits to chance.
        """
        return self.method == "gradient_based"

    def draw(
        self, gradients: core.Gradients, out: core.Sample, *, seed: int, draw: int, n_threads: int
    ) -> core.Sample | None:
        """Return sample number ``draw`` of the rows, in ``out``; or None for all of them."""
        if self.rate >= 1.0:
            return None
        if self.method == "uniform":
            out.draw(gradients.n_rows, self.rate, seed, draw, n_threads)
        else:
            out.draw_by_gradient(gradients, self.rate, self.reg_lambda, seed, draw, n_threads)
        return out
