"""NumPy docstrings as Markdown."""

from __future__ import annotations

import re
import textwrap
from typing import NamedTuple

from docs_site.markdown import cell, escaped, fenced, literal, table

_HEADING = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
_MARKED = re.compile(r"(:\w+:`[^`]*`|`[^`]*`)")
_TABLES = {"Parameters": "parameter", "Attributes": "attribute", "Other Parameters": "parameter"}


class Field(NamedTuple):
    """An entry of a section: names, type and text."""

    names: str
    type_name: str
    text: str


class Docstring(NamedTuple):
    """A docstring: first line, further text, and its sections by heading."""

    summary: str
    text: str
    sections: dict[str, str]


def parse(docstring: str) -> Docstring:
    """Return the parts of a docstring."""
    head, *rest = _HEADING.split(docstring.strip())
    summary, _, text = head.strip().partition("\n\n")
    sections = dict(zip(rest[::2], (body.strip("\n") for body in rest[1::2]), strict=True))
    return Docstring(" ".join(summary.split()), text, sections)


def fields(section: str) -> list[Field]:
    """Return the entries of a section such as Parameters or Returns."""
    entries: list[Field] = []
    for block in re.split(r"\n(?=\S)", section):
        head, _, text = block.partition("\n")
        names, _, type_name = head.partition(" : ")
        entries.append(Field(names.strip(), type_name.strip(), textwrap.dedent(text).strip()))
    return entries


def inline(text: str) -> str:
    """Return running text of a docstring as Markdown: code in single backticks, roles resolved."""
    parts = _MARKED.split(text.replace("``", "`"))
    return "".join(
        _marked(part) if i % 2 else re.sub(r"([<$\\{}\[\]])", r"\\\1", part)
        for i, part in enumerate(parts)
    )


def _marked(part: str) -> str:
    """Return code as it is, and a role of reStructuredText, as in scikit-learn, as Markdown."""
    if part.startswith("`"):
        return part
    _, role, marked = part.split(":", 2)
    text = re.sub(r"\s*<[^>]*>$", "", marked.strip("`"))
    if role == "math":
        return f"${text}$"
    return text if role == "ref" else literal(text.rpartition(".")[2])


def field_table(section: str, noun: str) -> str:
    """Return the entries of a section as a table."""
    rows = [
        (
            ", ".join(literal(name) for name in one.names.split(", ")),
            escaped(one.type_name),
            inline(one.text),
        )
        for one in fields(section)
    ]
    return table((noun, "type", ""), rows, "fields")


def results(section: str) -> str:
    """Return a section of results, whose entries may have types only."""
    lines = []
    for one in fields(section):
        name, type_name = (one.names, one.type_name) if one.type_name else ("", one.names)
        is_name = re.fullmatch(r"[\w.]+", type_name)
        head = literal(type_name) if is_name else inline(type_name)
        head = f"{literal(name)}: {head}" if name else head
        lines.append(f"- {head}{'. ' if one.text else ''}{cell(inline(one.text))}")
    return "\n".join(lines) + "\n"


def body(parsed: Docstring, skip: tuple[str, ...] = ()) -> str:
    """Return a docstring as Markdown, without some of its sections."""
    parts = [inline(parsed.summary), inline(parsed.text)]
    for heading, section in parsed.sections.items():
        if heading in skip:
            continue
        if heading in _TABLES:
            parts.append(field_table(section, _TABLES[heading]))
        elif heading == "Examples":
            parts.append(examples(section))
        elif heading in ("Returns", "Yields", "Raises", "Warns"):
            parts.append(f"**{heading}**\n\n{results(section)}")
        else:
            parts.append(f"**{heading}**\n\n{inline(section)}")
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def examples(section: str) -> str:
    """Return examples: blocks of a Python session, with the text between them."""
    parts = []
    for block in re.split(r"\n\n+", section):
        is_code = block.lstrip().startswith(">>>")
        parts.append(fenced(block, "pycon") if is_code else inline(block))
    return "\n\n".join(part.rstrip() for part in parts)
