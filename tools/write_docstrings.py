"""Write the parameter texts of params.py into the docstrings of the estimators.

    python tools/write_docstrings.py            rewrite the files that differ
    python tools/write_docstrings.py --check    change nothing; fail where a file differs

The text goes between the heading "Parameters" and the heading "Attributes" of each class in
src/arboost/algorithms, in the order of the class's ``__init__``.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from arboost.params import PARAMS  # noqa: E402  (the tool works on the checkout, not an install)

WIDTH = 100
SECTION = re.compile(r"(    Parameters\n    -{10}\n)(.*?)(    Attributes\n    -{10}\n)", re.DOTALL)


def describe(name: str, default: str) -> str:
    """Return one parameter as a NumPy docstring has it."""
    param = PARAMS[name]
    text = textwrap.fill(param.text, WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8)
    return f"    {name} : {param.type_name}, default={default}\n{text}\n"


def section(init: ast.FunctionDef) -> str:
    """Return the parameters of one class."""
    names = [argument.arg for argument in init.args.kwonlyargs]
    defaults = [ast.unparse(node).replace("'", '"') for node in init.args.kw_defaults if node]
    return "".join(map(describe, names, defaults)) + "\n"


def rewritten(source: str) -> str:
    """Return the source with all parameter sections as params.py has them."""
    lines = source.splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):
        if not isinstance(node, ast.ClassDef):
            continue
        inits = [item for item in node.body if getattr(item, "name", None) == "__init__"]
        docstring = node.body[0]
        if not inits or not isinstance(docstring, ast.Expr):
            continue
        first, last = docstring.lineno - 1, docstring.end_lineno
        text = section(inits[0])
        block = "".join(lines[first:last])
        block = SECTION.sub(lambda found, text=text: found[1] + text + found[3], block)
        lines[first:last] = [block]
    return "".join(lines)


def main() -> int:
    """Rewrite or check; return 1 where the check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail on a difference")
    check = parser.parse_args().check
    stale = []
    for path in sorted((ROOT / "src/arboost/algorithms").glob("*.py")):
        source = path.read_text(encoding="utf-8")
        fresh = rewritten(source)
        if fresh == source:
            continue
        stale.append(path.relative_to(ROOT))
        if not check:
            path.write_text(fresh, encoding="utf-8")
    for path in stale:
        print(f"{path}: {'differs from params.py' if check else 'rewritten'}")
    if stale and check:
        print("Run: python tools/write_docstrings.py")
    return int(bool(stale) and check)


if __name__ == "__main__":
    sys.exit(main())
