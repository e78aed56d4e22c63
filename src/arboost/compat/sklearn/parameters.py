"""Parameters of scikit-learn's estimators: constructors, and tables that check the values."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar, Concatenate, NoReturn, ParamSpec

import numpy as np
from numpy.typing import NDArray

from arboost.errors import InputTypeError, warn_caller
from arboost.params import kinds
from arboost.params.boosting import MONOTONIC_CST, RUN

Floats = NDArray[np.float64]
P = ParamSpec("P")


def constructor(
    original: Callable[P, object], target: type[Any] | Collection[str], **fixed: Any
) -> Callable[Concatenate[Any, P], None]:
    """``__init__`` with the parameters and defaults of a class of the installed scikit-learn.

    Parameters that arboost does not have are not among them, and are refused like unknown ones.

    Parameters
    ----------
    original : type
        Class of scikit-learn; editors take the signature from it.
    target : type or collection of str
        Estimator of arboost whose ``__init__`` takes the values; or names of parameters, which are
        then attributes.
    **fixed
        Values of parameters of arboost that scikit-learn does not have.
    """
    init: Any = target.__init__ if isinstance(target, type) else None
    names = target if init is None else inspect.signature(init).parameters
    signature = inspect.signature(vars(original)["__init__"])
    parameters = signature.parameters.items()
    signature = signature.replace(
        parameters=[
            parameter
            for name, parameter in parameters
            if name == "self" or (name in names and name not in fixed)
        ]
    )

    def construct(self: Any, /, *args: P.args, **params: P.kwargs) -> None:
        try:
            values = signature.bind(self, *args, **params)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None
        values.apply_defaults()
        del values.arguments["self"]
        if init is None:
            vars(self).update(values.arguments)
            return
        if "criterion" in values.arguments:
            values.arguments["criterion"] = _check_criterion(values.arguments["criterion"])
        init(self, **values.arguments, **fixed)

    construct.__name__ = construct.__qualname__ = "__init__"
    vars(construct)["__signature__"] = signature
    return construct


class NotLoadable:
    """An estimator that model files do not restore."""

    @classmethod
    def load(cls, path: object, *, mmap: bool = False) -> NoReturn:
        """Raise TypeError: files keep neither the parameters nor the attributes of this class."""
        raise InputTypeError(
            f"{cls.__name__}.load is not there: model files keep neither the parameters nor the "
            "attributes of this class. Use arboost.load(path) for the model, or pickle for the "
            "estimator."
        )


def _check_criterion(criterion: Any) -> Any:
    """Criterion of regression trees; "friedman_mse" has always been squared error."""
    if not isinstance(criterion, str) or criterion != "friedman_mse":
        return criterion
    warn_caller(
        'criterion="friedman_mse" is deprecated in scikit-learn: it is squared error. Use '
        'criterion="squared_error".',
        FutureWarning,
    )
    return "squared_error"


@dataclass(frozen=True, kw_only=True)
class Init(kinds.Param):
    """An estimator of the first predictions, "zero", or None."""

    method: str
    allowed: ClassVar[str]
    type_name: ClassVar[str] = 'estimator, "zero" or None'
    annotation: ClassVar[str] = "Any"

    def check(self, value: object) -> Any:
        """Estimator unchanged."""
        methods = [callable(getattr(value, name, None)) for name in ("fit", self.method)]
        is_zero = isinstance(value, str) and value == "zero"
        if value is None or is_zero or (not isinstance(value, type) and all(methods)):
            return value
        raise ValueError(
            f"init={value!r} is not allowed: init must be an estimator with the methods fit and "
            f'{self.method}, "zero", or None. Use init=None for the best constant.'
        )


@dataclass(frozen=True, kw_only=True)
class EarlyStopping(kinds.Flag):
    """True, False or "auto"."""

    allowed: ClassVar[str] = 'True, False or "auto"'

    def check(self, value: object) -> Any:
        """Truth value, or "auto"."""
        return value if isinstance(value, str) and value == "auto" else super().check(value)


@dataclass(frozen=True, kw_only=True)
class Scoring(kinds.Param):
    """Name of a scorer of scikit-learn, "loss", a scorer, or None for the estimator's score."""

    allowed: ClassVar[str] = 'the name of a scorer of scikit-learn, "loss", a callable, or None'

    def check(self, value: object) -> Any:
        """Name or scorer unchanged; the fit looks the name up."""
        if value is not None and not isinstance(value, str) and not callable(value):
            raise self.type_error(value)
        return value


@dataclass(frozen=True, kw_only=True)
class OptionalCategories(kinds.CategoricalFeatures):
    """Features by name, index or mask, "from_dtype", or None."""

    def check(self, value: object) -> Any:
        """Return None, "from_dtype" or a plain list."""
        return None if value is None else super().check(value)


def _integer(name: str, default: int | None, low: int, *, optional: bool = False) -> kinds.Integer:
    return kinds.Integer(name=name, default=default, low=low, optional=optional, text="")


def _real(name: str, default: float, low: float = 0.0, *, low_open: bool = False) -> kinds.Real:
    return kinds.Real(name=name, default=default, low=low, low_open=low_open, text="")


_RUN = kinds.by_name(
    kinds.Flag(name="warm_start", default=False, text=""),
    kinds.Verbosity(name="verbose", default=0, text=""),
) | {"random_state": RUN["random_state"]}

_GRADIENT = (
    kinds.by_name(
        _real("learning_rate", 0.1, low_open=True),
        _integer("n_estimators", 100, 1),
        kinds.Fraction(name="subsample", default=1.0, low_open=True, text=""),
        kinds.CountOrShare(name="min_samples_split", default=2, low=2, text=""),
        kinds.CountOrShare(name="min_samples_leaf", default=1, share_open=True, text=""),
        kinds.Fraction(name="min_weight_fraction_leaf", default=0.0, high=0.5, text=""),
        _integer("max_depth", 3, 1, optional=True),
        _real("min_impurity_decrease", 0.0),
        kinds.FeatureCount(name="max_features", default=None, text=""),
        _integer("max_leaf_nodes", None, 2, optional=True),
        kinds.Fraction(
            name="validation_fraction", default=0.1, low_open=True, high_open=True, text=""
        ),
        _integer("n_iter_no_change", None, 1, optional=True),
        _real("tol", 1e-4),
        _real("ccp_alpha", 0.0),
    )
    | _RUN
)

GRADIENT_CLASSIFIER: dict[str, kinds.Param] = _GRADIENT | kinds.by_name(
    kinds.Choice(name="loss", default="log_loss", options=("log_loss", "exponential"), text=""),
    Init(name="init", default=None, method="predict_proba", text=""),
)
GRADIENT_REGRESSOR: dict[str, kinds.Param] = _GRADIENT | kinds.by_name(
    kinds.Choice(
        name="loss",
        default="squared_error",
        options=("squared_error", "absolute_error", "huber", "quantile"),
        text="",
    ),
    Init(name="init", default=None, method="predict", text=""),
    kinds.Fraction(name="alpha", default=0.9, low_open=True, high_open=True, text=""),
)

_HIST = (
    kinds.by_name(
        _real("learning_rate", 0.1, low_open=True),
        _integer("max_iter", 100, 1),
        _integer("max_leaf_nodes", 31, 2, optional=True),
        _integer("max_depth", None, 1, optional=True),
        _integer("min_samples_leaf", 20, 1),
        _real("l2_regularization", 0.0),
        kinds.Fraction(name="max_features", default=1.0, low_open=True, text=""),
        kinds.Integer(name="max_bins", default=255, low=2, high=255, text=""),
        OptionalCategories(name="categorical_features", default="from_dtype", text=""),
        MONOTONIC_CST,
        EarlyStopping(name="early_stopping", default="auto", text=""),
        Scoring(name="scoring", default="loss", text=""),
        kinds.CountOrShare(
            name="validation_fraction", default=0.1, share_open=True, optional=True, text=""
        ),
        _integer("n_iter_no_change", 10, 1),
        _real("tol", 1e-7),
    )
    | _RUN
)

HIST_CLASSIFIER: dict[str, kinds.Param] = _HIST | kinds.by_name(
    kinds.Choice(name="loss", default="log_loss", options=("log_loss",), text=""),
    kinds.ClassWeight(name="class_weight", default=None, text=""),
)
HIST_REGRESSOR: dict[str, kinds.Param] = _HIST | kinds.by_name(
    kinds.Choice(
        name="loss",
        default="squared_error",
        options=("squared_error", "absolute_error", "gamma", "poisson", "quantile"),
        text="",
    ),
    kinds.Fraction(
        name="quantile", default=None, low_open=True, high_open=True, optional=True, text=""
    ),
)
