"""ARCHITECTURE.md is true: each file and folder that it names exists, and so does each definition.

The page is read by its backticked tokens. A token that ends in .py, .h, .cpp or / is a path below
the checkout, src/arboost or cpp. An identifier right after a file, in the same token or the next
one, is defined in this file: `training/fit.py` `run_fit`, or `training/fit.py: run_fit`.
"""

import ast
import re

import pytest

from support.paths import ROOT

PAGE = ROOT / "ARCHITECTURE.md"
FOLDERS = (ROOT, ROOT / "src" / "arboost", ROOT / "cpp")
FEWEST_CLAIMS = 30

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


def test_architecture_is_true():
    text = PAGE.read_text("utf-8")
    assert len(claims(text)) >= FEWEST_CLAIMS
    assert falsehoods(text) == []


@pytest.fixture
def house(tmp_path):
    """Return the folders of a small project."""
    package, cpp = tmp_path / "src" / "arboost", tmp_path / "cpp"
    (package / "training").mkdir(parents=True)
    (package / "training" / "fit.py").write_text(
        "LIMIT = 3\n\ndef run_fit():\n    inner = 1\n\n"
        "class Fit:\n    size: int\n    def run(self): ...\n"
    )
    (cpp / "grow").mkdir(parents=True)
    (cpp / "grow" / "tree.h").write_text(
        "struct Tree {\n  int depth() const;\n};\n"
        "std::vector<int> grow_tree(const Tree& tree) {\n  return called(tree);\n}\n"
    )
    return tmp_path, package, cpp


TRUE_PAGE = """
| folder | content |
|---|---|
| `training/` | fits, with `sample_weight` and `Anything` |
| `cpp/grow/` | trees, `cpp/grow/tree*` |

1. `training/fit.py` `run_fit`: reads `X`.
2. `src/arboost/training/fit.py`: `Fit.run()` and `training/fit.py: LIMIT`, `training/fit.py Fit()`.
3. `grow/tree.h` (`grow_tree`), then `Tree::depth`; `tree.h` is no path from here: see `cpp/grow`.
4. `training/fit.py` `training/fit.py` `Fit.size`; `import arboost` and `a / b` are no paths.
"""


def test_claims():
    assert claims(TRUE_PAGE) == [
        ("training/", None),
        ("cpp/grow/", None),
        ("cpp/grow/tree*", None),
        ("training/fit.py", "run_fit"),
        ("src/arboost/training/fit.py", "Fit.run"),
        ("training/fit.py", "LIMIT"),
        ("training/fit.py", "Fit"),
        ("grow/tree.h", "grow_tree"),
        ("tree.h", None),
        ("cpp/grow", None),
        ("training/fit.py", None),
        ("training/fit.py", "Fit.size"),
    ]


def test_true_page(house):
    assert falsehoods(TRUE_PAGE, house) == ["tree.h does not exist"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("`training/loop.py`", "training/loop.py does not exist"),
        ("`trainers/`", "trainers/ does not exist"),
        ("`cpp/grow/leaf*`", "cpp/grow/leaf* does not exist"),
        ("`training/fit.py` `inner`", "training/fit.py does not define inner"),
        ("`training/fit.py` `run`", "training/fit.py does not define run"),
        ("`training/fit.py` `Fit.stop()`", "training/fit.py does not define Fit.stop"),
        ("`grow/tree.h` `called`", "grow/tree.h does not define called"),
        ("`grow/tree.h` `Tree::width`", "grow/tree.h does not define Tree::width"),
    ],
)
def test_false_pages(house, line, expected):
    assert falsehoods(f"1. {line}: a step.", house) == [expected]
