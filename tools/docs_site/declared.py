"""Public declarations: classes, functions and methods with their signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

FOREIGN = ("sklearn", "builtins", "pyspark")  # packages whose methods have their own references


@dataclass(frozen=True)
class Entry:
    """A declaration: qualified name, kind of directive, signature, docstring, members."""

    name: str
    kind: str
    signature: str
    doc: str
    members: tuple[Entry, ...] = ()
    declared: Any = field(default=None, compare=False)

    @property
    def short(self) -> str:
        """Last part of the name."""
        return self.name.rpartition(".")[2]


def signature(declared: Any) -> str:
    """Return a signature without types, and without self."""
    try:
        found = inspect.signature(declared)
    except (TypeError, ValueError):
        return "()"
    shown = []
    for name, parameter in found.parameters.items():
        default = parameter.default
        if repr(default).startswith("<"):
            default = parameter.empty if default is parameter.empty else ...
        if name != "self":
            shown.append(parameter.replace(annotation=parameter.empty, default=default))
    return str(found.replace(parameters=shown, return_annotation=found.empty))


def owner(cls: type, name: str) -> type:
    """Return the class that defines a member."""
    return next(base for base in cls.__mro__ if name in vars(base))


def is_foreign(cls: type) -> bool:
    """Return whether a class is of another package."""
    return cls.__module__.partition(".")[0] in FOREIGN


def members(cls: type) -> Iterator[tuple[str, type]]:
    """Yield the names of the public methods and properties of a class, and who defines them."""
    for name in dir(cls):
        found = inspect.getattr_static(cls, name)
        is_plain = not (callable(found) or hasattr(found, "__get__"))
        is_slot = type(found).__name__ == "member_descriptor"
        if name.startswith("_") or is_plain or is_slot or name in foreign_members(cls):
            continue
        by = owner(cls, name)
        if not is_foreign(by) and inspect.getdoc(getattr(cls, name)):
            yield name, by


def foreign_members(cls: type) -> list[str]:
    """Return the names of the public methods that an estimator has from scikit-learn."""
    if not issubclass(cls, BaseEstimator):
        return []
    names = [name for name in dir(cls) if not name.startswith("_")]
    return [
        name
        for name in names
        if re.fullmatch(r"set_\w+_request", name)
        or (callable(getattr(cls, name, None)) and is_foreign(owner(cls, name)))
    ]


def member(cls: type, name: str, qualified: str) -> Entry:
    """Return the declaration of a method or property."""
    found = inspect.getattr_static(cls, name)
    public = getattr(cls, name)
    doc = inspect.getdoc(found if isinstance(found, property) else public) or ""
    if isinstance(found, property) or not callable(public):
        return Entry(qualified, "property", "", doc)
    kind = "classmethod" if isinstance(found, classmethod) else "method"
    kind = "staticmethod" if isinstance(found, staticmethod) else kind
    return Entry(qualified, kind, signature(public), doc)


def public(declared: Any, qualified: str) -> Entry:
    """Return the declaration of a class or function, a class without its members."""
    doc = inspect.getdoc(declared) or ""
    if not isinstance(declared, type):
        return Entry(qualified, "function", signature(declared), doc, declared=declared)
    kind = "exception" if issubclass(declared, Exception) else "class"
    shown = "" if kind == "exception" else signature(declared)
    return Entry(qualified, kind, shown, doc, declared=declared)


def from_source(path: Path, module: str) -> list[Entry]:
    """Return the public declarations of a file, which is not imported: it may need packages."""
    tree = ast.parse(path.read_text("utf-8"))
    listed = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    nodes = {getattr(node, "name", ""): node for node in tree.body}
    return [_from_node(nodes[name], module) for name in listed]


def _from_node(node: Any, prefix: str) -> Entry:
    name, doc = f"{prefix}.{node.name}", ast.get_docstring(node) or ""
    if not isinstance(node, ast.ClassDef):
        return Entry(name, "function", _arguments(node), doc)
    functions = [item for item in node.body if isinstance(item, ast.FunctionDef)]
    start = next((one for one in functions if one.name == "__init__"), None)
    methods = [
        Entry(f"{name}.{one.name}", _kind(one), _arguments(one), ast.get_docstring(one) or "")
        for one in functions
        if not one.name.startswith("_") and ast.get_docstring(one)
    ]
    return Entry(name, "class", _arguments(start) if start else "()", doc, tuple(methods))


def _kind(node: ast.FunctionDef) -> str:
    names = {ast.unparse(one) for one in node.decorator_list}
    return next(
        (one for one in ("property", "classmethod", "staticmethod") if one in names), "method"
    )


def _arguments(node: ast.FunctionDef) -> str:
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for one in (*every, arguments.vararg, arguments.kwarg):
        if one is not None:
            one.annotation = None
    text = ast.unparse(arguments)
    first = (every[0].arg if every else "") if arguments.args else ""
    if first in ("self", "cls"):
        text = text.removeprefix(first).removeprefix(", ")
    return "" if _kind(node) == "property" else f"({text})"
