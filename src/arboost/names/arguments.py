"""Unknown names of arguments: refused with the name here, by constructors and functions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any, NoReturn, ParamSpec, TypeVar

__all__ = [
    "check_params",
    "known_arguments",
    "missing_attribute",
    "new_estimator",
    "public_name",
    "refuse_arguments",
]

P = ParamSpec("P")
R = TypeVar("R")
Self = TypeVar("Self")


def new_estimator(cls: type[Self], *arguments: object, **params: object) -> Self:
    """Return an estimator without attributes; raise TypeError for unknown parameters.

    It is the ``__new__`` of estimators: scikit-learn reads the parameters of ``__init__``, which
    therefore can neither take unknown names nor answer them.
    """
    known = _constructor_names(cls.__init__)
    if known is not None and not params.keys() <= known:
        unknown = [name for name in params if name not in known]
        raise TypeError(_constructor_answers(cls, unknown))
    return object.__new__(cls)


def check_params(estimator: Any, params: Iterable[str]) -> None:
    """Raise ValueError for names that ``set_params`` of the estimator does not know.

    The first words are scikit-learn's.
    """
    known = estimator.get_params(deep=False)
    unknown = [name for name in params if name.partition("__")[0] not in known]
    if unknown:
        cls = type(estimator)
        shown = ", ".join(map(repr, unknown))
        answers = _constructor_answers(cls, unknown)
        raise ValueError(f"Invalid parameter {shown} for estimator {cls.__name__}. {answers}")


def known_arguments(function: Callable[P, R]) -> Callable[P, R]:
    """Return ``fit``, an ``__init__`` or a function that answers unknown names of arguments."""
    known = dict.fromkeys(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args: P.args, **arguments: P.kwargs) -> R:
        if arguments and not arguments.keys() <= known.keys():
            unknown = [name for name in arguments if name not in known]
            raise TypeError(_call_answers(args, function.__name__, known, unknown))
        return function(*args, **arguments)

    return checked


def missing_attribute(model: object, name: str) -> Any:
    """Answer an attribute of other libraries; it is the ``__getattr__`` of models.

    For all other names the error is that of the attribute itself, of a property for example.
    """
    from arboost.names.answers import attribute_answer

    answer = attribute_answer(name, type(model).__name__)
    if answer is not None:
        raise AttributeError(answer)
    return object.__getattribute__(model, name)


def public_name(method: Callable[P, R]) -> Callable[P, R]:
    """Return a method whose errors name no private class, and whose help has no `unknown`.

    It costs nothing per call, for predictions of a microsecond. A method that answers unknown
    arguments takes them as ``**unknown: Never``, which type checkers refuse as well.
    """
    method.__qualname__ = method.__name__
    signature = inspect.signature(method)
    shown = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    vars(method)["__signature__"] = signature.replace(parameters=shown)
    return method


def refuse_arguments(method: Callable[..., object], names: Iterable[str]) -> NoReturn:
    """Raise TypeError for unknown arguments of a method of prediction."""
    from arboost.names.answers import prediction_answer

    own = list(inspect.signature(method).parameters)
    raise TypeError(" ".join(prediction_answer(name, method.__name__, own) for name in names))


@functools.lru_cache(maxsize=256)
def _constructor_names(init: Any) -> frozenset[str] | None:
    """Return the names of the parameters of an ``__init__``; None where it takes any name."""
    known = inspect.signature(init).parameters
    takes_any = any(one.kind is one.VAR_KEYWORD for one in known.values())
    return None if takes_any else frozenset(known)


def _constructor_answers(cls: type[Any], names: Iterable[str]) -> str:
    from arboost.names.answers import argument_answer

    init: Any = cls.__init__
    own, other = _names(init), _names(getattr(cls, "fit", None))
    return " ".join(argument_answer(name, cls.__name__, own, other) for name in names)


def _call_answers(
    args: tuple[Any, ...], function: str, known: Collection[str], names: Iterable[str]
) -> str:
    from arboost.names.answers import argument_answer

    own = [one for one in known if one != "self"]
    if function == "__init__":
        function = type(args[0]).__name__
    if function != "fit":
        return " ".join(argument_answer(name, function, own, ()) for name in names)
    cls = type(args[0])
    other = _names(cls.__init__)
    return " ".join(argument_answer(name, cls.__name__, own, other, in_fit=True) for name in names)


def _names(function: Any) -> list[str]:
    if function is None:
        return []
    return [name for name in inspect.signature(function).parameters if name != "self"]
