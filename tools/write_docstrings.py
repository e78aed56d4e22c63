"""Write the texts of parameters and of arguments of ``fit`` into the docstrings of the estimators.

    python tools/write_docstrings.py            rewrite the files that differ
    python tools/write_docstrings.py --check    change nothing; fail where a file differs

A class in src/arboost/estimators names its table of parameters as the class attribute ``_TABLE``
and lists its parameters, in order, in ``__init__``. The tool fills in the rest: type and default of
each parameter in the signature, and between the headings "Parameters" and "Attributes" of the
docstring its type, default and sentence. To add a parameter, write its bare name into ``__init__``
and run the tool. The texts of the arguments of ``fit`` are in tools/fit_arguments.toml.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
import textwrap
import tomllib
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from arboost.params.kinds import Param  # noqa: E402  (of the checkout, not an install)

# Modules of the tables that classes name.
MODULES = [
    import_module(f"arboost.params.{path.stem}")
    for path in sorted((ROOT / "src/arboost/params").glob("[!_]*.py"))
]
FILES = sorted((ROOT / "src/arboost/estimators").rglob("*.py"))
WIDTH = 100
SECTION = re.compile(r"(    Parameters\n    -{10}\n)(.*?)(    Attributes\n    -{10}\n)", re.DOTALL)
FIT_SECTION = re.compile(
    r"(        Parameters\n        -{10}\n)(.*?)(\n        Returns\n)", re.DOTALL
)
FIT = tomllib.loads((ROOT / "tools/fit_arguments.toml").read_text("utf-8"))


def default(param: Param) -> str | None:
    """Return the default as source code; None for a parameter without a default."""
    if param.default is inspect.Parameter.empty:
        return None
    if param.default != param.default:
        return 'float("nan")'
    return f'"{param.default}"' if isinstance(param.default, str) else repr(param.default)


def described(param: Param) -> str:
    """Return the entry of a parameter in a NumPy docstring."""
    value = default(param)
    tail = "" if value is None else f", default={value}"
    return f"    {param.name} : {param.type_name}{tail}\n{wrapped(param.text, 8)}"


def wrapped(text: str, indent: int) -> str:
    """Return indented lines, each line of the text wrapped by itself."""
    lines = [
        line
        for paragraph in text.strip().splitlines()
        for line in textwrap.wrap(paragraph, WIDTH - indent, break_on_hyphens=False)
    ]
    return "".join(f"{' ' * indent}{line}\n" for line in lines)


def fit_section(names: list[str]) -> str:
    """Return the section "Parameters" of a docstring of ``fit``."""
    entries = [FIT["arguments"][name] for name in names]
    texts = [wrapped(entry["text"].format(**FIT["phrases"]), 12) for entry in entries]
    return "".join(
        f"        {entry['name']}\n{text}" for entry, text in zip(entries, texts, strict=True)
    )


def signature(listed: list[Param], n_positional: int) -> str:
    """Return the head of ``__init__``; the first ``n_positional`` parameters are positional."""
    lines = []
    for param in listed:
        value = default(param)
        tail = "" if value is None else f" = {value}"
        lines.append(f"        {param.name}: {param.annotation}{tail},")
    lines.insert(n_positional, "        *,")
    head = ["    def __init__(", "        self,"]
    return "".join(f"{line}\n" for line in (*head, *lines, "    ) -> None:"))


def table_of(node: ast.ClassDef) -> Mapping[str, Param] | None:
    """Return the parameter table that a class names as ``_TABLE``, or None."""
    for item in node.body:
        target = item.target if isinstance(item, ast.AnnAssign) else None
        if isinstance(item, ast.Assign):
            target = item.targets[0]
        if isinstance(target, ast.Name) and target.id == "_TABLE" and item.value is not None:
            name = ast.unparse(item.value).rpartition(".")[2]  # of a module, or imported by name
            return next(getattr(module, name) for module in MODULES if hasattr(module, name))
    return None


def rewritten(source: str) -> str:
    """Return the source with the signatures and sections of the parameter tables."""
    lines = source.splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):
        if not isinstance(node, ast.ClassDef):
            continue
        if node.name in FIT["fits"]:
            fit = next(item for item in node.body if getattr(item, "name", None) == "fit")
            replace(lines, fit.body[0], FIT_SECTION, fit_section(FIT["fits"][node.name]))
        table = table_of(node)
        if table is None:
            continue
        init = next(item for item in node.body if getattr(item, "name", None) == "__init__")
        positional = init.args.args[1:]
        listed = [table[argument.arg] for argument in (*positional, *init.args.kwonlyargs)]
        lines[init.lineno - 1 : init.body[0].lineno - 1] = [signature(listed, len(positional))]
        replace(lines, node.body[0], SECTION, "".join(map(described, listed)) + "\n")
    return "".join(lines)


def replace(lines: list[str], docstring: ast.stmt, section: re.Pattern[str], text: str) -> None:
    """Replace the section of a docstring in the lines of its file."""
    first, last = docstring.lineno - 1, docstring.end_lineno
    block = "".join(lines[first:last])
    lines[first:last] = [section.sub(lambda match: match[1] + text + match[3], block)]


def main() -> int:
    """Rewrite or check the files; return 1 if the check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail on a difference")
    check = parser.parse_args().check
    stale = []
    for path in FILES:
        source = path.read_text(encoding="utf-8")
        fresh = rewritten(source)
        if fresh == source:
            continue
        stale.append(path.relative_to(ROOT))
        if not check:
            path.write_text(fresh, encoding="utf-8")
    for path in stale:
        print(f"{path}: {'differs from the parameter tables' if check else 'rewritten'}")
    if stale and check:
        print("Run: python tools/write_docstrings.py")
    return int(bool(stale) and check)


if __name__ == "__main__":
    sys.exit(main())
