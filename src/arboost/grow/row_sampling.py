"""Row sampling for boosting: all rows, or a new sample for every tree, drawn by the core.

Each row is drawn by a hash of seed, draw and its position, so it depends on nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from arboost.backend import core

__all__ = ["RowSampling"]


@dataclass(frozen=True, kw_only=True)
class RowSampling:
    """Row sampling scheme of a fit.

    Attributes
    ----------
    method : {"uniform", "gradient_based", "goss"}
        Rows of equal probability; or of probability in proportion to the norm sqrt(g^2 + lambda
        h^2) of the gradient, with the inverse probability as weight; or the rows of the largest
        gradients and a sample of the others, weighted up to their number (Ke et al. 2017,
        "LightGBM", section 3).
        "goss" uses first-order gradients only, as the paper does: with hessians in the norm, rows
        of uncertain predictions would not be the largest.
    rate : float
        Share of the rows, in (0, 1]; always 1 with "goss".
    reg_lambda : float
        The lambda of the norm.
    top_rate, other_rate : float
        With "goss": shares of the rows that are kept for their gradients, and at random.
    full_rounds : int
        With "goss": number of first rounds on all rows, because first gradients say little.
    ordered_leaves : bool
        Leaf values are order statistics, which ignore the weights of a sample.
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
        """Whether leaf values come from all rows, and only splits from the sample.

        A tree of many leaves on few rows fits their noise, and large weights of rare rows make it
        worse. Leaf values from all rows cost one pass, and leave only the splits to chance. "goss"
        takes leaf values from its weighted sample, as published.
        """
        return self.method == "gradient_based" or (self.method == "goss" and self.ordered_leaves)

    def in_core(self) -> core.RowSampling:
        """Return the scheme for rounds in the core, whose draws are those of `draw`."""
        found = core.RowSampling()
        found.method = getattr(core.SamplingMethod, self.method)
        for name in ("rate", "reg_lambda", "top_rate", "other_rate", "full_rounds"):
            setattr(found, name, getattr(self, name))
        found.leaves_from_all_rows = self.leaves_from_all_rows
        return found

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
        """Return sample number ``draw`` of the rows, in ``out``; or None for all rows.

        ``round_`` is the number of earlier rounds, those before a warm start included.
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
