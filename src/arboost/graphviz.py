"""A tree in words -> DOT, the language of Graphviz. No package is needed to write it."""

from __future__ import annotations

from collections.abc import Iterator

from arboost.svg import answer_text, edge_labels
from arboost.tree_words import TreeWords

__all__ = ["dot"]

_MOST_LETTERS = 40  # of a name
_FONT = 'fontname="Helvetica,Arial,sans-serif"'


def dot(words: TreeWords, max_depth: int) -> str:
    """Return a tree down to a depth as a directed graph."""
    lines = [
        "digraph tree {",
        f"  graph [label={_quoted(words.headline)}, labelloc=t, {_FONT}];",
        f'  node [shape=box, style="rounded", {_FONT}];',
        f"  edge [{_FONT}];",
        *_statements(words, max_depth),
        "}",
    ]
    return "\n".join(lines)


def _statements(words: TreeWords, max_depth: int) -> Iterator[str]:
    waiting = [0]
    for node in waiting:
        left = int(words.left[node])
        answer, cover = answer_text(words, node), f"cover {words.number(words.cover[node])}"
        if not left:
            label = _quoted(answer, cover)
            yield f'  {node} [label={label}, style="rounded,filled", fillcolor="#e8eef4"];'
            continue
        question = words.question(node, shortest=_MOST_LETTERS)
        yield f"  {node} [label={_quoted(question, answer, cover)}];"
        if words.depth[node] == max_depth:
            leaves = _quoted(f"{words.n_leaves[node]} leaves")
            yield f'  below{node} [label={leaves}, style="rounded,dashed"];'
            yield f"  {node} -> below{node};"
            continue
        for child, label in zip((left, left + 1), edge_labels(words, node), strict=True):
            waiting.append(child)
            yield f"  {node} -> {child} [label={_quoted(label)}];"


def _quoted(*lines: str) -> str:
    r"""Return lines as a string of DOT, in which nothing but the breaks between them is special.

    Examples
    --------
    >>> print(_quoted('a "b"', "c\\d &lt;"))
    "a \"b\"\nc\\d &amp;lt;"
    """
    escapes = (("\\", "\\\\"), ('"', '\\"'), ("&", "&amp;"))
    escaped = []
    for line in lines:
        text = line
        for char, instead in escapes:
            text = text.replace(char, instead)
        escaped.append(text)
    return '"' + "\\n".join(escaped) + '"'
