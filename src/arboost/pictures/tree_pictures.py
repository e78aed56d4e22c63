"""Pictures of single trees: as text, as SVG that notebooks show, and for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from arboost.model.model import Model
from arboost.params.kinds import Integer
from arboost.pictures.tree_svg import answer_text, drawn, edge_labels
from arboost.pictures.tree_words import Answer, Style, TreeWords, columns_of

__all__ = ["TreePicture", "dot", "tree_dot", "tree_svg", "tree_text"]


_MAX_DEPTH = Integer(
    name="max_depth",
    default=None,
    low=0,
    optional=True,
    text="Splits above the nodes that are shown.",
    advice="Use max_depth=None for no limit.",
)
_MOST_SHARES = 8  # columns of classes that fit a line


class TreePicture(str):
    """SVG text that notebooks show as a picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


def tree_text(
    model: Model,
    tree: int = 0,
    *,
    max_depth: int | None = 10,
    precision: int = 4,
    max_levels: int = 8,
    show_missing: bool = True,
) -> str:
    """Return a tree as indented text: a line for each node, with its rows and what it says.

    Each line tells what its rows have in common below the line that it hangs on; leaves have a
    star. With trees that are averaged it shows what the tree alone would answer, with those that
    are added up what it adds.

    Parameters
    ----------
    model : Model
        An estimator's ``model_``, or what `arboost.load` returns.
    tree : int, default=0
    max_depth : int or None, default=10
        How many splits deep to go; None for all.
    precision : int, default=4
        Significant digits of thresholds and values.
    max_levels : int, default=8
        Levels of a category that are named before the rest is counted.
    show_missing : bool, default=True
        Whether to say where missing values go, which all trees know even if no value was missing.

    Examples
    --------
    >>> import arboost
    >>> X, y = [[15], [18], [21], [30]], [1.0, 1.0, 4.0, 7.0]
    >>> model = arboost.GradientBoostingRegressor(learning_rate=1.0, reg_lambda=0.0).fit(X, y)
    >>> print(tree_text(model.model_, show_missing=False))
    tree 0 of 100: 3 leaves, depth 2
    node                   cover  value
      0  all rows              4      0
      1* ├─ x0 <= 19.5         2  -2.25
      2  └─ x0 > 19.5          2   2.25
      3*    ├─ x0 <= 25.5      1   0.75
      4*    └─ x0 > 25.5       1   3.75
    """
    words = TreeWords(model, tree, Style(precision, max_levels, show_missing))
    limit = _limit(max_depth, words)
    rows = list(_rows(words, limit))
    return "\n".join([words.headline, *_aligned(rows)])


def tree_svg(
    model: Model,
    tree: int = 0,
    *,
    max_depth: int | None = 4,
    precision: int = 4,
    show_missing: bool = True,
) -> TreePicture:
    """Return a tree as SVG: a string, which notebooks show as a picture.

    A box has the question of a split or the answer of a leaf, and a bar: the shares of the classes,
    or the place of the value between the smallest and the largest. Edges are wide where many rows
    go. More is told where the mouse rests.

    Parameters
    ----------
    model : Model
        An estimator's ``model_``, or what `arboost.load` returns.
    tree : int, default=0
    max_depth : int or None, default=4
        How many splits deep to go; None for all.
    precision : int, default=4
        Significant digits of thresholds and values.
    show_missing : bool, default=True
        Whether to say where missing values go, which all trees know even if no value was missing.

    Examples
    --------
    >>> import arboost
    >>> model = arboost.GradientBoostingRegressor().fit([[15], [18], [21]], [1.0, 1.0, 4.0]).model_
    >>> picture = tree_svg(model)
    >>> picture.startswith("<svg")
    True

    To keep it, write it to a file: ``pathlib.Path("tree.svg").write_text(picture)``.
    """
    style = Style(precision, show_missing=show_missing, at_most="\N{LESS-THAN OR EQUAL TO}")
    words = TreeWords(model, tree, style)
    return TreePicture(drawn(words, _limit(max_depth, words)))


def tree_dot(
    model: Model,
    tree: int = 0,
    *,
    max_depth: int | None = None,
    precision: int = 4,
    show_missing: bool = True,
) -> str:
    r"""Return a tree in the language of Graphviz, which draws it as a picture of any format.

    Parameters
    ----------
    model : Model
        An estimator's ``model_``, or what `arboost.load` returns.
    tree : int, default=0
    max_depth : int or None, default=None
        How many splits deep to go; None for all.
    precision : int, default=4
        Significant digits of thresholds and values.
    show_missing : bool, default=True
        Whether to say where missing values go, which all trees know even if no value was missing.

    Examples
    --------
    >>> import arboost
    >>> model = arboost.GradientBoostingRegressor().fit([[15], [18], [21]], [1.0, 1.0, 4.0]).model_
    >>> print(tree_dot(model, show_missing=False).splitlines()[4])
      0 [label="x0 <= 19.5\n0\ncover 3"];
    """
    words = TreeWords(model, tree, Style(precision, show_missing=show_missing))
    return dot(words, _limit(max_depth, words))


def _limit(max_depth: int | None, words: TreeWords) -> int:
    limit = _MAX_DEPTH.check(max_depth)
    return limit if isinstance(limit, int) else int(words.depth.max())


def _rows(words: TreeWords, limit: int) -> Iterator[tuple[str, ...]]:
    """Yield the cells of the table, line by line."""
    yield ("node", "", "cover", *(header for one in words.answers for header in _headers(one)))
    # Node, its parent, what stands before its line and before those of its children.
    waiting = [(0, -1, "", "")]
    while waiting:
        node, parent, lead, indent = waiting.pop()
        text = "all rows" if parent < 0 else words.condition(node, parent)
        left = int(words.left[node])
        cells = (cell for one in words.answers for cell in _cells(words, one, node))
        mark = " " if left else "*"
        yield (f"{node}{mark}", lead + text, words.number(words.cover[node]), *cells)
        if left and words.depth[node] == limit:
            yield ("", f"{indent}└─ ... {words.n_leaves[node]} leaves", "")
        elif left:
            waiting.append((left + 1, node, f"{indent}└─ ", f"{indent}   "))
            waiting.append((left, node, f"{indent}├─ ", f"{indent}│  "))


def _headers(answer: Answer) -> Iterator[str]:
    title = f"{answer.title} " if answer.title else ""
    if not answer.is_share:
        yield from answer.headers
        return
    yield f"{title}class"
    yield from answer.headers if len(answer.headers) <= _MOST_SHARES else ["share"]


def _cells(words: TreeWords, answer: Answer, node: int) -> Iterator[str]:
    numbers = answer.numbers[node]
    if not answer.is_share:
        yield from map(words.number, numbers)
        return
    best = int(answer.best[node])
    yield answer.headers[best]
    shown = numbers if len(numbers) <= _MOST_SHARES else numbers[best : best + 1]
    yield from (f"{share:.1%}" for share in shown)


def _aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield lines with the cells below each other: words to the left, all others to the right."""
    n_columns = len(rows[0])
    filled = [row + ("",) * (n_columns - len(row)) for row in rows]
    widths = [max(columns_of(row[i]) for row in filled) for i in range(n_columns)]
    for row in filled:
        cells = []
        for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - columns_of(cell))
            cells.append(cell + space if i == 1 else space + cell)
        yield f"{cells[0]} {'  '.join(cells[1:])}".rstrip()


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
