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
    method : {"uniform", "gradient_based", "goss"}
        Each row with the same probability; or in proportion to the norm sqrt(g^2 + lambda h^2) of
        its gradient, and then weighed by the inverse of its probability; or those of the largest
        gradients, with a sample of all others that is weighed up to their number (Ke et al. 2017,
        "LightGBM", section 3). For the last, gradients count alone: the paper's are first-order,
        and with hessians in the norm the rows of uncertain answers would not be the largest.
    rate : float
        Share of the rows, in (0, 1]; always 1 with "goss".
    reg_lambda : float
        The lambda of the norm.
    top_rate, other_rate : float
        With "goss": shares of the rows that are kept for their gradients, and by chance.
    full_rounds : int
        With "goss": rounds at the start that see all rows, because first gradients say little.
    ordered_leaves : bool
        Values of leaves are order statistics, which know nothing of the weights of a sample.
    """

    method: str = "uniform"
    rate: float = 1.0
    reg_lambda: float = 1.0
    top_rate: float = 0.2
    other_rate: float = 0.1
    full_rounds: int = 0
    ordered_leaves: bool = False

    @property
    def leaves_from_all_rows(self) -> bool:
        """Whether only splits are chosen by the sample, and leaves hold what all rows say.

        A tree of many leaves on few rows learns their noise, and the weights of rare rows make it
        worse. Values from all rows cost one pass, and leave only the choice of splits to chance.
        "goss" has its amplified sample in the leaves as well, as published.
        """
        return self.method == "gradient_based" or (self.method == "goss" and self.ordered_leaves)

    def draw(
        self,
        gradients: core.Gradients,
        out: core.Sample,
        *,
        seed: int,
        round_: int,
        draw: int,
        n_threads: int,
    ) -> core.Sample | None:
        """Return sample number ``draw`` of the rows, in ``out``; or None for all of them.

        ``round_`` is the number of earlier rounds, those of a model that is trained on included.
        """
        if self.method == "goss":
            if round_ < self.full_rounds:
                return None
            out.draw_one_side(gradients, self.top_rate, self.other_rate, seed, draw, n_threads)
        elif self.rate >= 1.0:
            return None
        elif self.method == "uniform":
            out.draw(gradients.n_rows, self.rate, seed, draw, n_threads)
        else:
            out.draw_by_gradient(gradients, self.rate, self.reg_lambda, seed, draw, n_threads)
        return out
