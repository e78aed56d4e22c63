"""Custom losses, as NumPy functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from arboost.backend import core
from arboost.losses.base import Floats, Loss, Target, newton_steps, read_only
from arboost.model.links import LINKS

__all__ = ["CustomLoss", "FromFunctions"]


@dataclass(frozen=True, kw_only=True)
class CustomLoss:
    """A loss as NumPy functions, for the parameter ``loss`` of an estimator.

    The functions get float64 arrays with one entry for each row: ``y`` (classes as 0 and 1),
    ``score``, the sum of the trees, and ``weight``, which is 1 where no weights were given. The
    arrays are read-only.

    Attributes
    ----------
    name : str
        Name of the loss in results and error messages.
    gradients : function of (y, score, weight)
        Returns two arrays of shape (n_rows,): first and second derivatives of each row's loss by
        its score, multiplied by its weight. Second derivatives may not be negative.
    start : function of (y, weight), optional
        Returns the score at which training starts; without the function, 0.
    value : function of (y, score, weight), optional
        Returns the weighted mean loss; without it, early stopping needs an ``eval_metric``.
    link : str, default="identity"
        Function from scores to predictions: "identity", "exp", or for classifiers "logistic" or
        "logistic_of_double".

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import CustomLoss
    >>> def gradients(y, score, weight):
    ...     wave = np.tanh(score - y)
    ...     return weight * wave, weight * (1 - wave**2)
    >>> CustomLoss(name="log_cosh", gradients=gradients).name
    'log_cosh'
    """

    name: str
    gradients: Callable[[Floats, Floats, Floats], tuple[Floats, Floats]]
    start: Callable[[Floats, Floats], float] | None = None
    value: Callable[[Floats, Floats, Floats], float] | None = None
    link: str = "identity"

    def __post_init__(self) -> None:
        if self.link not in _ALLOWED_LINKS:
            raise ValueError(
                f"link={self.link!r} of the loss {self.name!r} is not allowed. Use one of "
                f"{', '.join(map(repr, _ALLOWED_LINKS))}."
            )
        for field in ("gradients", "start", "value"):
            function = getattr(self, field)
            if not callable(function) and (field == "gradients" or function is not None):
                raise TypeError(
                    f"{field}={function!r} of the loss {self.name!r} is not a function. "
                    "Pass a function of NumPy arrays."
                )


_ALLOWED_LINKS = tuple(name for name in LINKS if name not in ("softmax", "ordered"))


@dataclass(frozen=True)
class FromFunctions(Loss):
    """A custom loss with the interface of `Loss`."""

    functions: CustomLoss

    in_core = False

    @property
    def name(self) -> str:
        """The user's name of the loss."""
        return self.functions.name

    @property
    def link(self) -> str:
        """The user's link."""
        return self.functions.link

    def start(self, target: Target) -> Floats:
        """The user's start score, or 0."""
        if self.functions.start is None:
            return np.zeros(1)
        score = np.asarray(self.functions.start(read_only(target.y), _weights(target)), np.float64)
        if score.size != 1 or not np.isfinite(score).all():
            raise ValueError(
                f"start of the loss {self.name!r} returned {score.tolist()!r}, but training starts "
                "from one finite number. Correct the function, or leave it out to start from 0."
            )
        return score.reshape(1)

    def gradients(
        self,
        target: Target,
        scores: Floats,
        out: core.Gradients,
        n_threads: int,
        *,
        least_squares: bool = False,
    ) -> None:
        """Write the user's gradients and hessians into ``out``, after checks."""
        y, score, weight = read_only(target.y), read_only(scores[:, 0]), _weights(target)
        pair: object = self.functions.gradients(y, score, weight)
        if not isinstance(pair, tuple | list) or len(pair) != 2:  # noqa: PLR2004
            raise TypeError(
                f"gradients of the loss {self.name!r} returned a {type(pair).__name__}, but a "
                "pair is needed: first and second derivatives."
            )
        g = self._checked(pair[0], "first", len(target.y))
        h = self._checked(weight if least_squares else pair[1], "second", len(target.y))
        if h.min() < 0:
            row = int(h.argmin())
            raise ValueError(
                f"gradients of the loss {self.name!r} returned the second derivative "
                f"{float(h[row])!r} in row {row}, but none may be negative. Return a bound such as "
                "its absolute value, or 1."
            )
        core.set_gradients(g.reshape(-1, 1), h.reshape(-1, 1), out, n_threads)

    def leaf_values(self, sums_g: Floats, sums_h: Floats) -> Floats:
        """One Newton step."""
        return newton_steps(sums_g, sums_h)

    def value(self, target: Target, scores: Floats, n_threads: int) -> float:
        """The user's mean loss."""
        if self.functions.value is None:
            raise ValueError(
                f"the loss {self.name!r} has no function `value`, so there is nothing to watch. "
                "Give it one, or name another eval_metric."
            )
        y, score = read_only(target.y), read_only(scores[:, 0])
        return float(self.functions.value(y, score, _weights(target)))

    def _checked(self, array: object, which: str, n_rows: int) -> Floats:
        try:
            values = np.ascontiguousarray(array, np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"gradients of the loss {self.name!r} returned {which} derivatives that are not "
                f"numbers ({error}). Return NumPy arrays of numbers."
            ) from error
        if values.shape != (n_rows,):
            raise ValueError(
                f"gradients of the loss {self.name!r} returned {which} derivatives of shape "
                f"{values.shape}, but one number for each row is needed: ({n_rows},)."
            )
        # Minimum and maximum show NaN and infinity without a mask of all rows.
        if not (np.isfinite(values.min()) and np.isfinite(values.max())):
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ValueError(
                f"gradients of the loss {self.name!r} returned the {which} derivative "
                f"{float(values[row])!r} in row {row}, but all must be finite. Correct the "
                "function, or use a smaller learning_rate."
            )
        return values


def _weights(target: Target) -> Floats:
    """Row weights as an array; that of equal weights takes no memory."""
    if target.weight is None:
        return np.broadcast_to(1.0, target.y.shape)
    return read_only(target.weight)
