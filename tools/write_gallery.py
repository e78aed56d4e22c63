"""Run the examples and store their output and pictures in docs/gallery.

    python tools/write_gallery.py            run all examples
    python tools/write_gallery.py NAME ...   run some of them

An example is a script in examples/ whose docstring is a title and a paragraph. It prints text,
stored as NAME.txt, and may write the picture NAME.svg or NAME.png to the current folder. The table
of docs/gallery/index.md is written as well.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
GALLERY = ROOT / "docs" / "gallery"
SUFFIXES = (".svg", ".png")
TIMED = ("demo",)  # their output has times, and is not stored

# Groups and the order of their examples in the gallery.
GROUPS = {
    "First steps": ["demo", "classification", "regression"],
    "Tables and targets": ["categories", "imbalance", "time_order", "quantile_intervals"],
    "Training": ["cross_validation", "tuning", "warm_start", "custom_loss", "monotone"],
    "Ensembles": ["comparison", "adaboost_theory", "forest_oob", "stacking"],
    "Explanations": ["shap_row", "report_page"],
    "Models in use": ["serving", "export", "larger_than_memory"],
}
OTHERS = "Further examples"  # group of examples that no group names

STYLE = """\
svg.hashsalt: arboost
svg.fonttype: none
font.family: sans-serif
font.sans-serif: DejaVu Sans, Arial, Helvetica, sans-serif
savefig.bbox: tight
savefig.dpi: 110
"""
# A picture of the same data has the same bytes on every day.
FIXED = {"MPLBACKEND": "Agg", "SOURCE_DATE_EPOCH": "0", "PYTHONWARNINGS": "error"}


@dataclass(frozen=True)
class Example:
    """An example: title and text of its docstring, its code, and the stored results."""

    name: str
    title: str
    text: str
    code: str

    @property
    def picture(self) -> Path | None:
        """Path of the stored picture, if there is one."""
        paths = (GALLERY / f"{self.name}{suffix}" for suffix in SUFFIXES)
        return next((path for path in paths if path.exists()), None)

    @property
    def output(self) -> str:
        """Stored output, or nothing."""
        path = GALLERY / f"{self.name}.txt"
        return path.read_text("utf-8") if path.exists() else ""


def read(path: Path) -> Example:
    """Return the example of a script; refuse one without a title and a paragraph."""
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    title, _, text = (ast.get_docstring(tree) or "").partition("\n\n")
    if not text or "\n" in title or not title.endswith("."):
        raise ValueError(
            f"{path.name} has no docstring of a title, one line that ends in a full stop, and a "
            "paragraph. Write both: the gallery shows them."
        )
    first = tree.body[0]
    code = "\n".join(source.splitlines()[first.end_lineno :]).strip("\n") + "\n"
    return Example(path.stem, title.rstrip("."), re.sub(r"(?<!\n)\n(?!\n)", " ", text), code)


def groups() -> dict[str, list[Example]]:
    """Return all examples by group, in the order of the gallery."""
    found = {path.stem: path for path in sorted(EXAMPLES.glob("[!_]*.py"))}
    listed = {name for names in GROUPS.values() for name in names}
    named = {**GROUPS, OTHERS: [name for name in found if name not in listed]}
    examples = {
        group: [read(found[name]) for name in names if name in found]
        for group, names in named.items()
    }
    return {group: members for group, members in examples.items() if members}


def run(name: str, folder: Path) -> str:
    """Run an example in a folder; return its output."""
    style = folder / "matplotlibrc"
    style.write_text(STYLE, "utf-8")
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        cwd=folder,
        env={**os.environ, **FIXED, "MATPLOTLIBRC": str(style)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"examples/{name}.py failed:\n{done.stderr}")
    return done.stdout


def store(name: str) -> None:
    """Run an example and store its output and picture."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        output = run(name, folder)
        GALLERY.mkdir(exist_ok=True)
        if name not in TIMED:
            (GALLERY / f"{name}.txt").write_text(output, "utf-8")
        for suffix in SUFFIXES:
            if (folder / f"{name}{suffix}").exists():
                picture = (folder / f"{name}{suffix}").read_bytes()
                (GALLERY / f"{name}{suffix}").write_bytes(picture)
                print(f"{name}{suffix}: {len(picture) / 1e3:.0f} kB")


def table() -> str:
    """Return the examples as headings and lists of Markdown."""
    lines = []
    for group, examples in groups().items():
        lines += [f"## {group}", ""]
        for example in examples:
            lines.append(f"- [{example.title}](../../examples/{example.name}.py)")
        lines.append("")
    return "\n".join(lines)


def write_index() -> None:
    """Write the list of examples into docs/gallery/index.md."""
    path = GALLERY / "index.md"
    marked = re.compile(r"(<!-- examples -->\n).*?(<!-- end -->)", re.DOTALL)
    page = path.read_text("utf-8")
    path.write_text(marked.sub(lambda found: f"{found[1]}{table()}{found[2]}", page), "utf-8")


def main() -> int:
    """Run the examples that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="names of examples; all by default")
    names = parser.parse_args().names
    for name in names or [path.stem for path in sorted(EXAMPLES.glob("[!_]*.py"))]:
        store(name)
    write_index()
    return 0


if __name__ == "__main__":
    sys.exit(main())
