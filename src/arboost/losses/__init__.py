"""Losses, the objectives of training, with gradients and best constants; metrics and margins."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from arboost.losses.base import Loss, Target
from arboost.losses.losses import (
    AbsoluteError,
    CustomLoss,
    Exponential,
    FromFunctions,
    Gamma,
    Huber,
    Logistic,
    Poisson,
    Quantile,
    Softmax,
    SquaredError,
    Tweedie,
)

__all__ = ["CLASSIFICATION", "REGRESSION", "CustomLoss", "Loss", "Target", "make"]

REGRESSION = (
    "squared_error",
    "absolute_error",
    "huber",
    "quantile",
    "poisson",
    "gamma",
    "tweedie",
)
CLASSIFICATION = ("log_loss", "exponential")

_PLAIN: dict[str, type[Loss]] = {
    "squared_error": SquaredError,
    "absolute_error": AbsoluteError,
    "poisson": Poisson,
    "gamma": Gamma,
}


def make(
    loss: str | CustomLoss,
    *,
    n_outputs: int = 1,
    alpha: float | Sequence[float] | None = None,
    tweedie_power: float | None = None,
) -> Loss:
    """Return the loss of that name.

    Parameters
    ----------
    loss : str or CustomLoss
        One of `REGRESSION` or `CLASSIFICATION`, or functions.
    n_outputs : int
        Number of classes from three on, else 1.
    alpha : float or sequence of float
        For "quantile" the quantile, or several, ascending; for "huber" the share of rows whose
        residuals are not outliers.
    tweedie_power : float
        For "tweedie": above 1 and below 2.
    """
    if isinstance(loss, CustomLoss) or loss == "exponential":
        _require_two_classes(loss, n_outputs)
        return FromFunctions(loss) if isinstance(loss, CustomLoss) else Exponential()
    if loss == "log_loss":
        return Logistic() if n_outputs == 1 else Softmax(n_outputs)
    if loss == "quantile":
        return Quantile(_quantiles(alpha))
    if loss == "huber":
        shares = _quantiles(alpha)
        if len(shares) > 1:
            raise ValueError(f"alpha={alpha!r} is not allowed: loss='huber' has one. Use a number.")
        return Huber(shares[0])
    if loss == "tweedie":
        return Tweedie(_power(tweedie_power))
    if loss in _PLAIN:
        return _PLAIN[loss]()
    raise ValueError(
        f"loss={loss!r} is not known. Use one of {', '.join(map(repr, REGRESSION))} in a "
        f"regressor, {', '.join(map(repr, CLASSIFICATION))} in a classifier, or a CustomLoss."
    )


def _require_two_classes(loss: str | CustomLoss, n_outputs: int) -> None:
    if n_outputs > 1:
        name = loss if isinstance(loss, str) else loss.name
        raise ValueError(
            f"loss={name!r} is not allowed with {n_outputs} classes: it has one score for each "
            "row, which tells two classes apart. Use loss='log_loss'."
        )


def _quantiles(alpha: float | Sequence[float] | None) -> tuple[float, ...]:
    quantiles: tuple[float, ...] = ()
    if alpha is not None:
        quantiles = tuple(np.atleast_1d(np.asarray(alpha, np.float64)).tolist())
    rising = all(a < b for a, b in pairwise(quantiles))
    if not quantiles or not rising or not all(0.0 < a < 1.0 for a in quantiles):
        raise ValueError(
            f"alpha={alpha!r} is not allowed: a number above 0 and below 1 is needed, or for "
            "loss='quantile' several of them in rising order. Use for example alpha=0.9 or "
            "alpha=[0.1, 0.5, 0.9]."
        )
    return quantiles


def _power(tweedie_power: float | None) -> float:
    if tweedie_power is None or not 1.0 < tweedie_power < 2.0:  # noqa: PLR2004
        raise ValueError(
            f"tweedie_power={tweedie_power!r} is not allowed: it lies above 1 and below 2. Use "
            "loss='poisson' in place of 1, loss='gamma' in place of 2, or 1.5 between them."
        )
    return float(tweedie_power)
