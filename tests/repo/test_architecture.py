"""ARCHITECTURE.md is true: each file and folder that it names exists, and so does each definition.

The page is read by its backticked tokens (support/claims.py).
"""

import pytest

from support.claims import claims, falsehoods
from support.paths import ROOT

PAGE = ROOT / "ARCHITECTURE.md"
FEWEST_CLAIMS = 30


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
