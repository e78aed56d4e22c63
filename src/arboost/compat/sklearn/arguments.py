"""Arguments of constructors that pass all of them on."""

from __future__ import annotations

from typing import Any, NoReturn

from arboost.errors import warn_caller

__all__ = ["arguments", "known_criterion", "refuse_load"]


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
