"""Parameters of scikit-learn's estimators: constructors, and tables that check the values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np

from arboost.errors import warn_caller
from arboost.params.boosting import RUN
from arboost.params.compound_kinds import (
    CategoricalFeatures,
    ClassWeight,
    CountOrShare,
    Directions,
    FeatureCount,
    MonotoneConstraints,
)
from arboost.params.kinds import Choice, Flag, Fraction, Integer, Param, Real, by_name
from arboost.params.records import check


def arguments(names: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of ``__init__`` among its local names, which `locals` gives."""
    return {name: value for name, value in names.items() if name not in ("self", "__class__")}


def known_criterion(criterion: Any) -> Any:
    """Return a criterion of regression trees; "friedman_mse" has always been squared error."""
    if not isinstance(criterion, str) or criterion != "friedman_mse":
        return criterion
    warn_caller(
        'criterion="friedman_mse" is deprecated in scikit-learn: it is squared error. Use '
        'criterion="squared_error".',
        FutureWarning,
    )
    return "squared_error"


def refuse_load(cls: type) -> NoReturn:
    """Raise TypeError: a model file does not keep enough for an estimator of this class."""
    raise TypeError(
        f"{cls.__name__}.load is not there: model files keep neither the parameters nor the "
        "attributes of this class. Use arboost.load(path) for the model, or pickle for the "
        "estimator."
    )


@dataclass(frozen=True, kw_only=True)
class MonotonicCst(MonotoneConstraints):
    """Directions by feature, of which arrays may be of whole floats."""

    def check(self, value: object) -> Directions | None:
        """Return plain lists; ``fit`` looks the features up."""
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            whole = value.astype(np.int8)
            if not np.array_equal(whole, value):
                raise ValueError(self.message(value))
            value = whole
        return super().check(value)


MONOTONIC_CST = MonotonicCst(
    name="monotonic_cst",
    default=None,
    text="",
    advice="Use for example monotonic_cst=[1, 0, -1], an entry for each feature.",
)


def with_floats(table: Mapping[str, Param]) -> dict[str, Param]:
    """Return a table of parameters whose `monotonic_cst` takes floats, too."""
    return {**table, "monotonic_cst": MONOTONIC_CST}


@dataclass(frozen=True, kw_only=True)
class Init(Param):
    """An estimator of the first predictions, "zero", or None."""

    method: str
    allowed: ClassVar[str]
    type_name: ClassVar[str] = 'estimator, "zero" or None'
    annotation: ClassVar[str] = "Any"

    def check(self, value: object) -> Any:
        """Return the estimator unchanged."""
        methods = [callable(getattr(value, name, None)) for name in ("fit", self.method)]
        is_zero = isinstance(value, str) and value == "zero"
        if value is None or is_zero or (not isinstance(value, type) and all(methods)):
            return value
        raise ValueError(
            f"init={value!r} is not allowed: init must be an estimator with the methods fit and "
            f'{self.method}, "zero", or None. Use init=None for the best constant.'
        )


@dataclass(frozen=True, kw_only=True)
class EarlyStopping(Flag):
    """True, False or "auto"."""

    allowed: ClassVar[str] = 'True, False or "auto"'

    def check(self, value: object) -> Any:
        """Return the truth value, or "auto"."""
        return value if isinstance(value, str) and value == "auto" else super().check(value)


@dataclass(frozen=True, kw_only=True)
class Scoring(Param):
    """Name of a scorer of scikit-learn, "loss", a scorer, or None for the estimator's score."""

    allowed: ClassVar[str] = 'the name of a scorer of scikit-learn, "loss", a callable, or None'

    def check(self, value: object) -> Any:
        """Return the name or scorer unchanged; the fit looks the name up."""
        if value is not None and not isinstance(value, str) and not callable(value):
            raise TypeError(self.message(value))
        return value


@dataclass(frozen=True, kw_only=True)
class OptionalCategories(CategoricalFeatures):
    """Features by name, index or mask, "from_dtype", or None."""

    def check(self, value: object) -> Any:
        """Return None, "from_dtype" or a plain list."""
        return None if value is None else super().check(value)


@dataclass(frozen=True, kw_only=True)
class HeldOutRows(CountOrShare):
    """A number of rows, a share of them, or None."""

    def check(self, value: object) -> Any:
        """Return the number, the share or None."""
        return None if value is None else super().check(value)


@dataclass(frozen=True, kw_only=True)
class Verbosity(Integer):
    """A number of at least 0, or a truth value."""

    def check(self, value: object) -> Any:
        """Return the number."""
        return int(value) if isinstance(value, bool) else super().check(value)


def _integer(name: str, default: int | None, low: int, *, optional: bool = False) -> Integer:
    return Integer(name=name, default=default, low=low, optional=optional, text="")


def _real(name: str, default: float, low: float = 0.0, *, low_open: bool = False) -> Real:
    return Real(name=name, default=default, low=low, low_open=low_open, text="")


_RUN = by_name(
    Flag(name="warm_start", default=False, text=""),
    Verbosity(name="verbose", default=0, low=0, text=""),
) | {"random_state": RUN["random_state"]}

_GRADIENT = (
    by_name(
        _real("learning_rate", 0.1, low_open=True),
        _integer("n_estimators", 100, 1),
        Fraction(name="subsample", default=1.0, low_open=True, text=""),
        CountOrShare(name="min_samples_split", default=2, low=2, text=""),
        CountOrShare(name="min_samples_leaf", default=1, share_open=True, text=""),
        Fraction(name="min_weight_fraction_leaf", default=0.0, high=0.5, text=""),
        _integer("max_depth", 3, 1, optional=True),
        _real("min_impurity_decrease", 0.0),
        FeatureCount(name="max_features", default=None, text=""),
        _integer("max_leaf_nodes", None, 2, optional=True),
        Fraction(name="validation_fraction", default=0.1, low_open=True, high_open=True, text=""),
        _integer("n_iter_no_change", None, 1, optional=True),
        _real("tol", 1e-4),
        _real("ccp_alpha", 0.0),
    )
    | _RUN
)

GRADIENT_CLASSIFIER: dict[str, Param] = _GRADIENT | by_name(
    Choice(name="loss", default="log_loss", options=("log_loss", "exponential"), text=""),
    Init(name="init", default=None, method="predict_proba", text=""),
)
GRADIENT_REGRESSOR: dict[str, Param] = _GRADIENT | by_name(
    Choice(
        name="loss",
        default="squared_error",
        options=("squared_error", "absolute_error", "huber", "quantile"),
        text="",
    ),
    Init(name="init", default=None, method="predict", text=""),
    Fraction(name="alpha", default=0.9, low_open=True, high_open=True, text=""),
)

_HIST = (
    by_name(
        _real("learning_rate", 0.1, low_open=True),
        _integer("max_iter", 100, 1),
        _integer("max_leaf_nodes", 31, 2, optional=True),
        _integer("max_depth", None, 1, optional=True),
        _integer("min_samples_leaf", 20, 1),
        _real("l2_regularization", 0.0),
        Fraction(name="max_features", default=1.0, low_open=True, text=""),
        Integer(name="max_bins", default=255, low=2, high=255, text=""),
        OptionalCategories(name="categorical_features", default="from_dtype", text=""),
        MONOTONIC_CST,
        EarlyStopping(name="early_stopping", default="auto", text=""),
        Scoring(name="scoring", default="loss", text=""),
        HeldOutRows(name="validation_fraction", default=0.1, share_open=True, text=""),
        _integer("n_iter_no_change", 10, 1),
        _real("tol", 1e-7),
    )
    | _RUN
)

HIST_CLASSIFIER: dict[str, Param] = _HIST | by_name(
    Choice(name="loss", default="log_loss", options=("log_loss",), text=""),
    ClassWeight(name="class_weight", default=None, text=""),
)
HIST_REGRESSOR: dict[str, Param] = _HIST | by_name(
    Choice(
        name="loss",
        default="squared_error",
        options=("squared_error", "absolute_error", "gamma", "poisson", "quantile"),
        text="",
    ),
    Fraction(name="quantile", default=None, low_open=True, high_open=True, optional=True, text=""),
)


def engine_params(table: Mapping[str, Param], **given: Any) -> dict[str, Any]:
    """Return checked parameters of the engine's booster: those given, else its defaults."""
    given = {"calendar_parts": None} | given  # scikit-learn has no derived features
    params = {name: given.get(name, param.default) for name, param in table.items()}
    del params["monotonic_cst"]  # the engine's name is monotone_constraints
    return check(params, table)
