"""Losses of regression and classification, and custom losses.

F is the raw score; the formulas are in cpp/loss/losses.h. Leaf values are those of Friedman (2001),
sections 4.1 to 4.6, and for the losses with a log link the exact minimisers: the leaf's sums of w y
and w e^F follow from G and H.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from arboost.backend import core
from arboost.errors import InputTypeError, ParameterError
from arboost.losses.base import Floats, Loss, Target, mean, read_only
from arboost.losses.links import LINKS
from arboost.params.boosting import BOOSTED_CLASSIFIER, BOOSTED_REGRESSOR

# Of the iterations for best constants; Newton's method ends after a few of them.
_MOST_STEPS = 100
_SMALLEST_STEP = 1e-12


# ---- regression ----


@dataclass(frozen=True)
class SquaredError(Loss):
    """(y - F)^2 / 2; its best constant is the mean."""

    name = "squared_error"
    constant_hessian = True

    def start(self, target: Target) -> Floats:
        """The mean."""
        return np.array([mean(target)])


@dataclass(frozen=True)
class Quantile(Loss):
    """The pinball loss of one or more quantiles, ascending, with one output each."""

    alphas: tuple[float, ...]

    name = "quantile"
    refits_leaves = True
    refits_friedman = True
    constant_hessian = True
    varied = False

    @property
    def link(self) -> str:
        """Identity for one quantile; several quantiles are sorted within each row."""
        return "identity" if len(self.alphas) == 1 else "ordered"

    @property
    def n_outputs(self) -> int:
        """Number of quantiles."""
        return len(self.alphas)

    @property
    def leaf_quantiles(self) -> tuple[float, ...]:
        """The quantiles."""
        return self.alphas

    def parameters(self, target: Target, scores: Floats, n_threads: int) -> tuple[float, ...]:
        """The quantiles."""
        return self.alphas

    def start(self, target: Target) -> Floats:
        """The quantiles of y."""
        return np.array([_quantile(target, None, alpha) for alpha in self.alphas])

    def leaf_rule(
        self, target: Target, scores: Floats, output: int, n_threads: int
    ) -> tuple[float, float | None]:
        """Quantiles of the residuals in each leaf."""
        return self.alphas[output], None


@dataclass(frozen=True)
class AbsoluteError(Quantile):
    """|y - F|; its best constant is the median."""

    alphas: tuple[float, ...] = (0.5,)

    name = "absolute_error"

    def parameters(self, target: Target, scores: Floats, n_threads: int) -> tuple[float, ...]:
        """No parameters."""
        return ()


@dataclass(frozen=True)
class Huber(Loss):
    """Squared error up to delta, absolute error beyond (Friedman 2001, algorithm 4).

    Delta is the ``alpha`` quantile of the |residuals|, updated each round. The mean loss has one
    delta for all rounds, that of residuals to the median, so that rounds can be compared.
    """

    alpha: float

    name = "huber"
    refits_friedman = True
    constant_hessian = True
    leaf_quantiles = (0.5,)

    @property
    def round_parameters(self) -> tuple[float, ...]:
        """The quantile that delta is, since delta follows the residuals."""
        return (self.alpha,)

    def start(self, target: Target) -> Floats:
        """The median, moved by Newton's method to the minimum of the mean loss."""
        score = _quantile(target, None, 0.5)
        delta = self._delta(target, np.full((len(target.y), 1), score), 1)

        def slope(score: float) -> tuple[float, float]:
            residual = target.y - score
            mean_slope = np.average(residual.clip(-delta, delta), weights=target.weight)
            return mean_slope, np.average(np.abs(residual) <= delta, weights=target.weight)

        bounds = target.y.min(), target.y.max()
        return np.array([_zero_between(slope, score, *bounds, unit=delta)])

    def parameters(self, target: Target, scores: Floats, n_threads: int) -> tuple[float, ...]:
        """Delta of the residuals at these scores."""
        return (self._delta(target, scores, n_threads),)

    def leaf_rule(
        self, target: Target, scores: Floats, output: int, n_threads: int
    ) -> tuple[float, float | None]:
        """Median of the residuals, plus the mean distance from it, clipped to delta."""
        return 0.5, self._delta(target, scores, n_threads)

    def value(self, target: Target, scores: Floats, n_threads: int) -> float:
        """The weighted mean loss with the delta of residuals to the median."""
        median = _quantile(target, None, 0.5, n_threads)
        middle = np.full((len(target.y), 1), median)
        delta = self._delta(target, middle, n_threads)
        return core.loss_value(
            self.kernel, target.y, target.weight, scores, n_threads, parameters=(delta,)
        )

    def _delta(self, target: Target, scores: Floats, n_threads: int) -> float:
        delta = _quantile(target, scores, self.alpha, n_threads)
        if delta > 0:
            return delta
        # Where most residuals are 0, a delta of 0 would make all gradients 0.
        missed = target.y != scores[:, 0]
        if not missed.any():
            return 0.0
        weight = None if target.weight is None else target.weight[missed]
        return _quantile(Target(target.y[missed], weight), scores[missed], self.alpha, n_threads)


def _quantile(target: Target, scores: Floats | None, alpha: float, n_threads: int = 1) -> float:
    """The weighted quantile of y, or of |y - score| if scores are given."""
    return core.residual_quantile(
        target.y,
        target.weight,
        scores,
        alpha=alpha,
        absolute=scores is not None,
        n_threads=n_threads,
    )


def _zero_between(
    function: Callable[[float], tuple[float, float]],
    score: float,
    low: float,
    high: float,
    *,
    unit: float | None = None,
) -> float:
    """Zero of a falling function between two bounds, by Newton's method.

    Parameters
    ----------
    function : callable
        Returns the value, and the slope without its sign.
    score, low, high : float
        Start, and bounds of the zero.
    unit : float, optional
        Scale of the smallest step; None: the score, and at least 1.
    """
    for _ in range(_MOST_STEPS):
        value, slope = function(score)
        low, high = (score, high) if value > 0 else (low, score)
        moved = score + value / slope if slope > 0 else high
        if not low <= moved <= high:
            moved = low + (high - low) / 2
        scale = max(1.0, abs(score)) if unit is None else unit
        if abs(moved - score) <= _SMALLEST_STEP * scale:
            break
        score = float(moved)
    return score


@dataclass(frozen=True)
class LogLink(Loss):
    """Base of losses with a log link: the mean is e^F, the best constant the log mean of y.

    The variance of y is in proportion to its mean to the `power`.
    """

    link = "exp"

    @property
    def power(self) -> float:
        """Power of the mean that the variance of y is in proportion to."""
        raise NotImplementedError

    def start(self, target: Target) -> Floats:
        """The logarithm of the mean."""
        return np.array([core.log(mean(target))])

    def start_from(self, target: Target, offset: Floats) -> Floats:
        """log(sum w y e^((1-p) offset) / sum w e^((2-p) offset)), p the power."""
        above = _log_sum(target, target.y, (1.0 - self.power) * offset[:, 0])
        below = _log_sum(target, np.ones(len(offset)), (2.0 - self.power) * offset[:, 0])
        return np.array([above - below])

    def check_target(self, y: Floats) -> None:
        """Raise ValueError unless y is 0 or more, and not 0 in all rows."""
        lowest = float(y.min())
        if lowest < 0:
            raise ParameterError(
                f"y has the value {lowest!r}, but loss={self.name!r} is for values of 0 or more. "
                "Use another loss, or shift y.",
                parameter="loss",
            )
        if not y.any():
            raise ParameterError(
                f"y is 0 in all rows, but loss={self.name!r} needs values above 0: the logarithm "
                "of their mean is where training starts. Use another loss, or look at y.",
                parameter="loss",
            )


@dataclass(frozen=True)
class Poisson(LogLink):
    """Half the Poisson deviance of y and e^F."""

    name = "poisson"
    power = 1.0


@dataclass(frozen=True)
class Gamma(LogLink):
    """Half the gamma deviance of y and e^F."""

    name = "gamma"
    power = 2.0

    def check_target(self, y: Floats) -> None:
        """Raise ValueError unless y is above 0."""
        lowest = float(y.min())
        if lowest <= 0:
            raise ParameterError(
                f"y has the value {lowest!r}, but loss='gamma' is for values above 0. Use "
                "loss='tweedie' for values some of which are 0.",
                parameter="loss",
            )


@dataclass(frozen=True)
class Tweedie(LogLink):
    """Half the Tweedie deviance of y and e^F, power between 1 (Poisson) and 2 (gamma)."""

    tweedie_power: float

    name = "tweedie"

    @property
    def power(self) -> float:
        """The power of the loss."""
        return self.tweedie_power

    def parameters(self, target: Target, scores: Floats, n_threads: int) -> tuple[float, ...]:
        """The power."""
        return (self.tweedie_power,)


def _log_sum(target: Target, factor: Floats, exponent: Floats) -> float:
    """log(sum w factor e^exponent) without overflow."""
    highest = float(exponent.max())
    terms = core.exp(exponent - highest) * factor
    total = float(terms.sum() if target.weight is None else (terms * target.weight).sum())
    return highest + core.log(total)


# ---- classification ----

# Log-odds of a class of no row, or of every row, would be infinite; this far out a probability
# differs from 0 or 1 by less than the precision of a double.
_LARGEST_LOG_ODDS = 36.0


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + e^F) - y F for y in {0, 1}; its best constant is log(p / (1 - p))."""

    name = "log_loss"
    kernel = "logistic"
    link = "logistic"

    def start(self, target: Target) -> Floats:
        """The log-odds."""
        return np.array([_log_odds(target)])

    def start_from(self, target: Target, offset: Floats) -> Floats:
        """The constant with which the mean probability is the share of the second class.

        It is between the log-odds of y minus the largest and minus the smallest offset.
        """
        log_odds = _log_odds(target)
        low, high = log_odds - float(offset.max()), log_odds - float(offset.min())
        share = float(np.average(target.y, weights=target.weight))

        def gap(score: float) -> tuple[float, float]:
            p = LINKS[self.link](offset + score)[:, 1]
            mean_gap = share - float(np.average(p, weights=target.weight))
            return mean_gap, float(np.average(p * (1 - p), weights=target.weight))

        return np.array([_zero_between(gap, low + (high - low) / 2, low, high)])


@dataclass(frozen=True)
class Softmax(Loss):
    """log sum_k e^F_k - F_y for y in {0 .. K-1}; its best constants are log p_k."""

    n_classes: int

    name = "log_loss"
    kernel = "softmax"
    link = "softmax"

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return self.n_classes

    def start(self, target: Target) -> Floats:
        """Logarithms of the class shares."""
        if target.weight is None:
            counts = core.class_counts(target.y, self.n_classes, 1)
        else:
            counts = np.bincount(target.y.astype(np.intp), target.weight, self.n_classes)
        shares: Floats = counts / counts.sum()
        return core.log(shares).clip(min=-_LARGEST_LOG_ODDS)

    def start_from(self, target: Target, offset: Floats) -> Floats:
        """Constants with which the mean probabilities are the shares of the classes.

        Iterative scaling: each step adds the logarithm of the ratio of both, and lowers the loss.
        """
        log_shares = self.start(target)
        scores = log_shares.copy()
        for _ in range(_MOST_STEPS):
            p = LINKS[self.link](offset + scores)
            means = np.average(p, axis=0, weights=target.weight)
            steps = log_shares - core.log(means).clip(min=-_LARGEST_LOG_ODDS)
            if float(np.abs(steps).max()) <= _SMALLEST_STEP:
                break
            scores = scores + steps
        return scores


@dataclass(frozen=True)
class Exponential(Loss):
    """e^(-s F) for s = 2 y - 1, y in {0, 1}; its best constant is log(p / (1 - p)) / 2."""

    name = "exponential"
    link = "logistic_of_double"

    def start(self, target: Target) -> Floats:
        """Half the log-odds."""
        return np.array([_log_odds(target) / 2])

    def start_from(self, target: Target, offset: Floats) -> Floats:
        """Half the logarithm of the ratio of both classes' losses at the offset."""
        second = _log_sum(target, target.y, -offset[:, 0])
        first = _log_sum(target, 1.0 - target.y, offset[:, 0])
        return np.array([np.clip(second - first, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS) / 2])


@dataclass(frozen=True)
class ClassExponential(Loss):
    """e^(-F_y) for y in {0 .. K-1} and scores whose sum is 0: SAMME's loss.

    It only evaluates scores: gradient boosting does not use it, and it has no gradients or start.
    """

    n_classes: int

    name = "exponential"
    link = "softmax"

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return self.n_classes

    def value(self, target: Target, scores: Floats, n_threads: int) -> float:
        """The weighted mean loss. It does not depend on the number of threads."""
        unused = np.empty(len(target.y))
        log_loss, _ = core.class_distribution(target.y, target.weight, scores, unused, n_threads)
        return core.exp(log_loss)


def _log_odds(target: Target) -> float:
    """The weighted log-odds of the second class."""
    p = float(np.average(target.y, weights=target.weight))
    log_odds = core.log(p) - core.log1p(-p)
    return float(np.clip(log_odds, -_LARGEST_LOG_ODDS, _LARGEST_LOG_ODDS))


# ---- custom losses ----


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
                raise InputTypeError(
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

    def start_from(self, target: Target, offset: Floats) -> Floats:
        """The user's start score; it does not depend on the offset."""
        return self.start(target)

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
            raise InputTypeError(
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

    def value(self, target: Target, scores: Floats, n_threads: int) -> float:
        """The user's mean loss."""
        assert self.functions.value is not None  # metrics check it
        y, score = read_only(target.y), read_only(scores[:, 0])
        return float(self.functions.value(y, score, _weights(target)))

    def _checked(self, array: object, which: str, n_rows: int) -> Floats:
        try:
            values = np.ascontiguousarray(array, np.float64)
        except (TypeError, ValueError) as error:
            raise InputTypeError(
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


# ---- losses by name ----

REGRESSION = BOOSTED_REGRESSOR["loss"].completions
CLASSIFICATION = BOOSTED_CLASSIFIER["loss"].completions
_WITHOUT_PARAMETERS: dict[str, type[Loss]] = {
    "squared_error": SquaredError,
    "absolute_error": AbsoluteError,
    "poisson": Poisson,
    "gamma": Gamma,
}


def make(
    loss: str | CustomLoss,
    *,
    n_outputs: int = 1,
    alpha: float | Sequence[float] = (),
    tweedie_power: float = 1.5,
) -> Loss:
    """The loss of a checked name, or of a user's functions.

    Parameters
    ----------
    loss : str or CustomLoss
    n_outputs : int
        Number of classes from three on, else 1.
    alpha : float or sequence of float
        For "quantile" the quantile, or several, ascending; for "huber" the share of rows whose
        residuals are not outliers.
    tweedie_power : float
        For "tweedie": above 1 and below 2.
    """
    if isinstance(loss, CustomLoss) or loss == "exponential":
        name = loss if isinstance(loss, str) else loss.name
        if n_outputs > 1:
            raise ParameterError(
                f"loss={name!r} is not allowed with {n_outputs} classes: it has one score for each "
                "row, which tells two classes apart. Use loss='log_loss'.",
                parameter="loss",
            )
        return FromFunctions(loss) if isinstance(loss, CustomLoss) else Exponential()
    if loss == "log_loss":
        return Logistic() if n_outputs == 1 else Softmax(n_outputs)
    alphas = tuple(np.atleast_1d(np.asarray(alpha, np.float64)).tolist())
    if loss == "quantile":
        return Quantile(alphas)
    if loss == "huber":
        if len(alphas) > 1:
            raise ParameterError(
                f"alpha={alpha!r} is not allowed: loss='huber' has one. Use a number.",
                parameter="alpha",
            )
        return Huber(alphas[0])
    return Tweedie(tweedie_power) if loss == "tweedie" else _WITHOUT_PARAMETERS[loss]()
