"""Pages of the reference, written from the declarations of the library."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from sklearn.base import BaseEstimator

import arboost
import arboost.compat.sklearn
from docs_site import command_line, declared, docstrings, losses
from docs_site.declared import Entry
from docs_site.groups import MODULES, OTHERS, PAGES, SHARED, SHARED_PREFIXES, Page
from docs_site.markdown import directive, literal, table
from docs_site.parameters import parameter_tables

PACKAGE = Path(arboost.__file__).parent
LONG = 4  # parameters of a signature, from which on the rest is left to the tables


class Reference:
    """All reference pages: Markdown by name, and the object that each public name refers to."""

    def __init__(self) -> None:
        self.targets: dict[str, str] = {}
        self.methods: dict[tuple[type, str], str] = {}
        self.shared: dict[tuple[type, str], type] = {}
        self.pages = {page.name: page for page in (*PAGES, *_others())}
        self._place_methods()
        self.markdown = {page.name: self._page(page) for page in self.pages.values()}
        self.markdown |= {SHARED: self._shared_page(), **self._module_pages()}
        self.markdown |= {"losses": losses.page(), "command_line": command_line.page()}

    def _place_methods(self) -> None:
        """Decide where each method is described: a class of its page, or the shared page."""
        users: dict[tuple[type, str], list[tuple[str, type]]] = {}
        for page in self.pages.values():
            for cls in (one for one in page.objects() if isinstance(one, type)):
                for name, by in declared.members(cls):
                    users.setdefault((by, name), []).append((page.name, cls))
        for (by, name), used in users.items():
            if len({page for page, _ in used}) > 1 and issubclass(used[0][1], BaseEstimator):
                self.shared[by, name] = used[0][1]
                self.methods[by, name] = f"{SHARED_PREFIXES.get(by.__name__, 'estimator')}.{name}"
            else:
                self.methods[by, name] = f"{_qualified(used[0][1])}.{name}"

    def _page(self, page: Page) -> str:
        parts = [f"# {page.title}", page.text]
        parts += (
            self._class(one) if isinstance(one, type) else self._entry(_public(one))
            for one in [*page.objects(), *_results(page)]
        )
        return "\n\n".join(parts) + "\n"

    def _entry(self, entry: Entry) -> str:
        """Return a function or method."""
        self.targets[entry.name] = entry.name
        self.targets[entry.name.removeprefix("arboost.")] = entry.name
        options = {"classmethod": ":classmethod:\n\n", "staticmethod": ":staticmethod:\n\n"}
        kind = "method" if entry.kind in options else entry.kind
        content = options.get(entry.kind, "") + docstrings.body(docstrings.parse(entry.doc))
        content += "".join(f"\n{self._entry(one)}" for one in entry.members)
        return directive(f"py:{kind}", f"{entry.name}{entry.signature}", content)

    def _class(self, cls: type) -> str:
        """Return a class: text, parameters, attributes, methods."""
        entry = _public(cls)
        self.targets[entry.name.removeprefix("arboost.")] = entry.name
        self.targets[entry.name] = entry.name
        has_table = "_TABLE" in {name for base in cls.__mro__ for name in vars(base)}
        parsed = docstrings.parse(entry.doc)
        later = {
            name: parsed.sections.pop(name)
            for name in ("Attributes", "Examples")
            if name in parsed.sections
        }
        skip = ("Parameters",) if has_table else ()
        parts = [docstrings.body(parsed, skip)]
        if has_table:
            parts += parameter_tables(cls)
            entry = replace(entry, signature=_shortened(entry.signature))
        if "Attributes" in later:
            parts.append(docstrings.field_table(later["Attributes"], "attribute"))
        if "Examples" in later:
            parts.append(docstrings.examples(later["Examples"]))
        shown = {one.names for one in docstrings.fields(later.get("Attributes", ""))}
        parts += self._methods(cls, entry.name, shown)
        return directive(f"py:{entry.kind}", entry.name + entry.signature, "\n\n".join(parts))

    def _methods(self, cls: type, qualified: str, shown: set[str]) -> Iterator[str]:
        """Yield the table of the methods of a class, then those that are described here.

        Properties that are shown among the attributes are left out.
        """
        rows, here = [], []
        if issubclass(cls, Exception):
            return
        for name, by in declared.members(cls):
            if name in shown:
                continue
            target = self.methods.get((by, name), f"{qualified}.{name}")
            entry = declared.member(cls, name, f"{qualified}.{name}")
            for alias in (f"{qualified}.{name}", f"{cls.__name__}.{name}"):
                self.targets.setdefault(alias, target)
            summary = docstrings.inline(docstrings.parse(entry.doc).summary)
            rows.append((f"{{py:obj}}`{name} <{target}>`", summary))
            if target == f"{qualified}.{name}":
                here.append(entry)
        if rows:
            yield table(("method", ""), rows, "methods")
        if foreign := declared.foreign_members(cls):
            names = ", ".join(literal(name) for name in foreign)
            yield f"Methods of scikit-learn: {names}."
        yield from (self._entry(entry) for entry in here)

    def _shared_page(self) -> str:
        """Return the page of the methods that estimators of several pages have."""
        parts = [
            "# Methods of estimators",
            "Methods that many estimators have, described once. The tables of the estimators link "
            "to them.",
        ]
        titles = {"estimator": "All estimators on the engine", "classifier": "Classifiers"}
        by_prefix: dict[str, list[Entry]] = {}
        for (by, name), cls in sorted(self.shared.items(), key=lambda one: one[0][1]):
            target = self.methods[by, name]
            entry = declared.member(cls, name, target)
            by_prefix.setdefault(target.partition(".")[0], []).append(entry)
        for prefix in dict.fromkeys([*titles, *sorted(by_prefix)]):
            if prefix in by_prefix:
                parts.append(f"## {titles.get(prefix, prefix.replace('_', ' ').capitalize())}")
                parts += [self._entry(entry) for entry in by_prefix[prefix]]
        return "\n\n".join(parts) + "\n"

    def _module_pages(self) -> dict[str, str]:
        """Return the pages of the other public modules."""
        pages = {}
        for page in MODULES:
            parts = [f"# {page.title}", page.text]
            for module in page.modules:
                if len(page.modules) > 1:
                    parts.append(f"## {module}")
                parts += [self._entry(entry) for entry in _module_entries(module)]
            pages[page.name] = "\n\n".join(parts) + "\n"
        return pages


def _others() -> list[Page]:
    """Return a page of the public names that no page has."""
    placed = {name for page in (*PAGES, *MODULES) for name in page.names} | {"__version__", "plots"}
    names = [name for name in arboost.__all__ if name not in placed]
    return [replace(OTHERS, names=tuple(names))] if names else []


def _qualified(one: Any) -> str:
    is_public = getattr(arboost, one.__name__, None) is one
    return f"arboost.{one.__name__}" if is_public else one.__name__


def _public(one: Any) -> Entry:
    entry = declared.public(one, _qualified(one))
    if entry.kind != "class":
        return entry
    sections = docstrings.parse(entry.doc).sections
    fields = {
        name
        for section in ("Parameters", "Attributes")
        for one in docstrings.fields(sections.get(section, ""))
        for name in one.names.split(", ")
    }
    # A class whose arguments are not described is made by the library, not by users.
    is_made_by_users = "." in entry.name and fields >= set(inspect.signature(one).parameters)
    return entry if is_made_by_users else replace(entry, signature="")


def _shortened(signature: str) -> str:
    """Return a signature with its first parameters only."""
    parts = signature.strip("()").split(", ")
    return signature if len(parts) <= LONG else f"({', '.join(parts[:LONG])}, ...)"


@cache
def _classes() -> dict[str, str]:
    """Return the module of each public class of the package, by name."""
    found: dict[str, list[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        for name in re.findall(r"^class ([A-Z]\w+)", path.read_text("utf-8"), re.MULTILINE):
            found.setdefault(name, []).append(".".join(parts).removesuffix(".__init__"))
    return {name: modules[0] for name, modules in found.items() if len(modules) == 1}


def _results(page: Page) -> list[type]:
    """Return the classes of results that functions and methods of a page return."""
    sources = []
    for one in page.objects():
        sources.append(one)
        if isinstance(one, type):
            by = [(name, by) for name, by in declared.members(one)]
            sources += [vars(by).get(name) for name, by in by if page.has_results]
    names = set()
    for one in sources:
        annotation = getattr(one, "__annotations__", {}).get("return", "")
        names |= set(re.findall(r"\b[A-Z]\w+", str(annotation)))
    wanted = sorted(names - set(arboost.__all__) & set(_classes()) | set(page.results))
    return [getattr(import_module(_classes()[name]), name) for name in wanted if name in _classes()]


def _module_entries(name: str) -> list[Entry]:
    """Return the public declarations of a module, from its source if it cannot be imported."""
    try:
        module = import_module(name)
    except ImportError:
        return declared.from_source(PACKAGE / f"{name.rpartition('.')[2]}.py", name)
    return [_with_members(getattr(module, one), f"{name}.{one}") for one in module.__all__]


def _with_members(one: Any, qualified: str) -> Entry:
    entry = declared.public(one, qualified)
    if one.__module__.startswith("sklearn"):
        text = f"`{one.__module__.partition('._')[0]}.{one.__name__}` of scikit-learn, unchanged."
        return replace(entry, doc=text)
    if not isinstance(one, type) or issubclass(one, BaseEstimator):
        return entry
    members = [
        declared.member(one, name, f"{qualified}.{name}") for name, _ in declared.members(one)
    ]
    return replace(entry, members=tuple(members))
