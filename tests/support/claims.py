"""Claims of pages about the code: the paths and definitions that backticked tokens name.

A token that ends in .py, .h, .cpp or / is a path below the checkout, src/arboost or cpp. An
identifier right after a file, in the same token or the next one, is defined in this file:
`training/fit.py` `run_fit`, or `training/fit.py: run_fit`.
"""

import ast
import re

from support.paths import ROOT

FOLDERS = (ROOT, ROOT / "src" / "arboost", ROOT / "cpp")

PATH = r"(?:[\w.-]+/)*(?:[\w.-]+\.(?:py|h|cpp)|[\w.-]+/)|cpp/[\w./*-]+"
NAME = r"[A-Za-z_]\w*(?:(?:\.|::)\w+)*(?:\(\))?"
TOKEN = re.compile(rf"(?P<path>{PATH})(?::?\s+(?P<name>{NAME}))?")
CPP_SCOPE = r"\b(?:struct|class|enum|namespace)\s+{name}\b|\b{name}::"
# A type or namespace; or a name after a return type, before the parenthesis of its parameters.
CPP_DEFINITION = (
    r"\b(?:struct|class|enum|concept|using|namespace)\s+{name}\b"
    r"|^(?!\s*(?:return|throw|else|new)\b)[^\n=;(){{}}]*[\w>&*\]][\s&*]+(?:\w+::)*{name}\s*\("
)
NEXT_NAME = re.compile(rf"[\s:(]*`(?P<name>{NAME})`")


def claims(text):
    """Return the pairs (path, name) of a page; the name is None for a path alone."""
    found = []
    for line in text.splitlines():
        for token in re.finditer(r"`([^`]+)`", line):
            match = TOKEN.fullmatch(token[1])
            if match is None:
                continue
            path, name = match["path"], match["name"]
            following = NEXT_NAME.match(line, token.end())
            if name is None and following is not None and not TOKEN.fullmatch(following["name"]):
                name = following["name"]
            found.append((path, None if name is None else name.removesuffix("()")))
    return found


def python_names(text):
    """Return the functions, classes, constants and Class.member names of a module."""

    def names(body):
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name
            elif isinstance(node, ast.ClassDef):
                yield node.name
                yield from (f"{node.name}.{member}" for member in names(node.body))
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (target.id for target in targets if isinstance(target, ast.Name))

    return set(names(ast.parse(text).body))


def defines(path, name):
    """Return whether a source file defines a name."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        return name in python_names(text)
    *scopes, last = re.split(r"\.|::", name)
    return bool(re.search(CPP_DEFINITION.format(name=last), text, re.MULTILINE)) and all(
        re.search(CPP_SCOPE.format(name=scope), text) for scope in scopes
    )


def falsehoods(text, folders=FOLDERS):
    """Return a sentence for each claim of a page that is not true."""
    wrong = []
    for path, name in claims(text):
        places = [place for folder in folders for place in folder.glob(path)]
        if not places:
            wrong.append(f"{path} does not exist")
        elif name is not None and not any(
            place.is_file() and defines(place, name) for place in places
        ):
            wrong.append(f"{path} does not define {name}")
    return wrong
