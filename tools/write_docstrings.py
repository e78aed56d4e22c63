"""Write the parameter tables into the docstrings and signatures of the estimators.

    python tools/write_docstrings.py            rewrite the files that differ
    python tools/write_docstrings.py --check    change nothing; fail where a file differs

A class in src/arboost/estimators names its table of parameters as the class attribute ``_TABLE``
and lists its parameters, in order, in ``__init__``. The tool fills in the rest: type and default of
each parameter in the signature, and between the headings "Parameters" and "Attributes" of the
docstring its type, default and sentence. To add a parameter, write its bare name into ``__init__``
and run the tool.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import sys
import textwrap
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


def default(param: Param) -> str | None:
    """Return the default as source code; None for a parameter without a default."""
    if param.default is inspect.Parameter.empty:
        return None
    if param.default != param.default:
        return 'float("nan")'
    return f'"{param.default}"' if isinstance(param.default, str) else repr(param.default)


def described(param: Param) -> str:
    """Return the entry of a parameter in a NumPy docstring."""
    margin = " " * 8
    lines = textwrap.wrap(param.text, WIDTH - len(margin), break_on_hyphens=False)
    text = "\n".join(margin + line for line in lines)
    value = default(param)
    tail = "" if value is None else f", default={value}"
    return f"    {param.name} : {param.type_name}{tail}\n{text}\n"


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
            name = ast.unparse(item.value)
            return next(getattr(module, name) for module in MODULES if hasattr(module, name))
    return None


def rewritten(source: str) -> str:
    """Return the source with the signatures and sections of the parameter tables."""
    lines = source.splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):
        table = table_of(node) if isinstance(node, ast.ClassDef) else None
        if table is None:
            continue
        init = next(item for item in node.body if getattr(item, "name", None) == "__init__")
        positional = init.args.args[1:]
        listed = [table[argument.arg] for argument in (*positional, *init.args.kwonlyargs)]
        lines[init.lineno - 1 : init.body[0].lineno - 1] = [signature(listed, len(positional))]
        docstring = node.body[0]
        first, last = docstring.lineno - 1, docstring.end_lineno
        text = "".join(map(described, listed)) + "\n"
        block = "".join(lines[first:last])
        block = SECTION.sub(lambda found, text=text: found[1] + text + found[3], block)
        lines[first:last] = [block]
    return "".join(lines)


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
