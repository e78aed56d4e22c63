"""Pieces of Markdown: tables, code, directives of MyST."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

# Names and values in plain sentences: n_estimators="auto", X_val, max_leaves=31, --set x=1.
_CODE = re.compile(
    r"(?<![\w`\"'./])([A-Za-z]\w*=(?:\"[^\"]*\"|'[^']*'|\[[^\]]*\]|[\w.+-]*\w)"
    r"|[A-Za-z]\w*_\w*|--[a-z][\w-]*|\"[\w ./:*-]+\")(?![\w`])"
)


def fenced(text: str, language: str) -> str:
    """Return a block of code."""
    return f"```{language}\n{text.rstrip()}\n```\n"


def literal(text: str) -> str:
    """Return text as inline code; its bars do not end a cell of a table."""
    ticks = "``" if "`" in text else "`"
    return f"{ticks}{text}{ticks}".replace("|", "\\|")


def cell(text: str) -> str:
    """Return text as a cell of a table: one line, without bars."""
    return re.sub(r"(?<!\\)\|", "\\|", " ".join(text.split()))


def sentence(text: str) -> str:
    """Return a plain sentence with its names and values as code, and nothing else as markup."""
    parts = re.split(_CODE, escaped(text))
    return "".join(literal(part) if i % 2 else part for i, part in enumerate(parts))


def escaped(text: str) -> str:
    """Return text in which no character is markup of Markdown."""
    return re.sub(r"([*<$\\{}\[\]])", r"\\\1", text)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """Return a table; with a kind, a directive that gives the table this class."""
    lines = [head, ["---"] * len(head), *rows]
    text = "".join(f"| {' | '.join(cell(one) for one in line)} |\n" for line in lines)
    return directive("table", "", f":class: {kind}\n\n{text}") if kind else text


def directive(name: str, argument: str, content: str) -> str:
    """Return a directive of MyST around content that may have directives itself."""
    inner = max((len(run) for run in re.findall(r"^:{3,}", content, re.MULTILINE)), default=2)
    fence = ":" * (inner + 1)
    return f"{fence}{{{name}}} {argument}\n{content.rstrip()}\n{fence}\n"
