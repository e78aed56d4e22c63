"""Search spaces: parameter declarations, or a user's ranges -> distributions of Optuna.

A parameter that the estimator sets to another value than its default is the user's choice, and is
not searched unless the user's space names it.
"""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from optuna import distributions

from arboost.errors import InputTypeError
from arboost.estimators.folds import arboost_estimators
from arboost.params.kinds import Param
from arboost.params.suggestions import check_params, closest_name

Space = dict[str, distributions.BaseDistribution]

_PAIR = 2
_TREE_NAMES = ("max_depth", "max_leaves", "min_samples_leaf")


def declared_space(estimator: Any) -> Space:
    """Search space in the declarations of an estimator's parameters.

    Members of arboost bring theirs, as ``name__parameter``.
    """
    space = {
        f"{prefix}{name}": distribution
        for prefix, owner in arboost_estimators(estimator)
        for name, distribution in _declared_distributions(owner)
    }
    if not space:
        raise ValueError(
            f"{type(estimator).__name__} has no parameters with a declared search space that are "
            "at their defaults. Pass space={...}, for example space={'max_depth': (2, 8)}."
        )
    return space


def user_space(space: object, estimator: Any) -> Space:
    """A user's search space, checked.

    Parameters
    ----------
    space : mapping
        Names of parameters, and for each a distribution of Optuna, a pair (low, high), or a list
        of values.
    estimator : estimator
        Declared parameters check the values, and say whether a range is logarithmic.
    """
    if not isinstance(space, Mapping) or not space:
        raise InputTypeError(
            f"space={space!r} ({type(space).__name__}) is not allowed: it must be a dict of "
            "parameter names, with a pair (low, high), a list of values or an Optuna distribution "
            "for each. Use space=None for the declared ranges."
        )
    known = estimator.get_params(deep=True)
    unknown = [name for name in space if name not in known]
    if unknown:
        _refuse_unknown(unknown[0], estimator, known)
    return {
        name: _user_distribution(name, values, _find_param(estimator, name))
        for name, values in space.items()
    }


def _refuse_unknown(name: str, estimator: Any, known: Mapping[str, Any]) -> None:
    """Raise ValueError for a parameter that is not there, with the nearest name."""
    owners = [pair for pair in arboost_estimators(estimator) if name.startswith(pair[0])]
    for prefix, owner in sorted(owners, key=lambda pair: -len(pair[0])):
        check_params(owner, [name[len(prefix) :]])
    nested = next((known_name for known_name in known if known_name.endswith(f"__{name}")), None)
    near = nested or closest_name(str(name), known)
    meant = f"Did you mean {near!r}?" if near else f"There are {', '.join(sorted(known))}."
    raise ValueError(
        f"space names {name!r}, which is not a parameter of {type(estimator).__name__}. {meant}"
    )


def _declared_distributions(owner: Any) -> Iterator[tuple[str, distributions.BaseDistribution]]:
    """Yield the parameters of one estimator that are searched, and their distributions."""
    values = owner.get_params(deep=False)
    table: Mapping[str, Param] = owner._TABLE
    has_own_trees = values.get("estimator") is None
    for name, value in values.items():
        param = table.get(name)
        search = None if param is None else param.search
        if param is None or search is None or not _is_default(value, param):
            continue
        # Parameters of the engine's trees have no meaning for other learners.
        if not has_own_trees and name in _TREE_NAMES:
            continue
        if search.applies(values):
            if search.choices:
                yield name, distributions.CategoricalDistribution(search.choices)
            else:
                yield name, _range_distribution(search.low, search.high, log=search.log)


def _is_default(value: Any, param: Param) -> bool:
    return type(value) is type(param.default) and bool(value == param.default)


def _range_distribution(low: float, high: float, *, log: bool) -> distributions.BaseDistribution:
    if isinstance(low, numbers.Integral) and isinstance(high, numbers.Integral):
        return distributions.IntDistribution(int(low), int(high), log=log)
    return distributions.FloatDistribution(float(low), float(high), log=log)


def _user_distribution(
    name: str, values: Any, declared: Param | None
) -> distributions.BaseDistribution:
    """Distribution of the values that a user names for a parameter; raise for other types."""
    if isinstance(values, distributions.BaseDistribution):
        _check_values(declared, _distribution_values(values))
        return values
    if isinstance(values, list) and values:
        _check_values(declared, values)
        with warnings.catch_warnings():  # Optuna warns of values that databases cannot hold
            warnings.simplefilter("ignore")
            return distributions.CategoricalDistribution(values)
    is_pair = isinstance(values, tuple) and len(values) == _PAIR
    if not is_pair or not all(map(_is_number, values)) or not values[0] < values[1]:
        raise ValueError(
            f"space[{name!r}]={values!r} ({type(values).__name__}) is not allowed: it must be a "
            "pair (low, high) of numbers with low < high, a list of values, or an Optuna "
            f"distribution. Use for example space={{{name!r}: {_example(declared)}}}."
        )
    _check_values(declared, values)
    search = None if declared is None else declared.search
    return _range_distribution(*values, log=search is not None and search.log and values[0] > 0)


def _example(declared: Param | None) -> str:
    search = None if declared is None else declared.search
    if search is None:
        return "[...]"
    return repr(list(search.choices)) if search.choices else f"({search.low:g}, {search.high:g})"


def _check_values(declared: Param | None, values: Iterable[Any]) -> None:
    """Raise TypeError or ValueError for a value that the parameter does not allow."""
    if declared is not None:
        for value in values:
            declared.check(value)


def _distribution_values(distribution: Any) -> tuple[Any, ...]:
    if hasattr(distribution, "choices"):
        return tuple(distribution.choices)
    return distribution.low, distribution.high


def _find_param(estimator: Any, name: str) -> Param | None:
    """Declaration of a parameter, also of a member's; None for other libraries."""
    for prefix, owner in arboost_estimators(estimator):
        if name.startswith(prefix) and name[len(prefix) :] in owner._TABLE:
            param: Param = owner._TABLE[name[len(prefix) :]]
            return param
    return None


def _is_number(value: object) -> bool:
    is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_real and math.isfinite(float(value))  # type: ignore[arg-type]
