"""Pictures of single trees: as text, as SVG for notebooks, as DOT for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator

from arboost.models.model import Model
from arboost.models.tree_nodes import NodeValues, TextStyle, TreeFormatter, display_width
from arboost.params.kinds import Integer
from arboost.plots.tree_svg import edge_labels, render_svg, value_text

_MAX_DEPTH = Integer(
    name="max_depth",
    default=None,
    low=0,
    optional=True,
    text="Depth of the deepest nodes that are shown.",
    advice="Use max_depth=None for no limit.",
)
_MOST_CLASSES = 8  # columns of class probabilities that fit a line


class TreePicture(str):
    """SVG text that notebooks render as a picture."""

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
    """Return a tree as indented text: one line per node with its condition, cover and value.

    A line gives the condition by which rows of the parent node reach the node; leaves have a star.
    The values of averaged trees are the predictions of the tree alone, those of summed trees its
    contribution to the raw scores.

    Parameters
    ----------
    model : Model
        An estimator's ``model_``, or the result of `arboost.load`.
    tree : int, default=0
    max_depth : int or None, default=10
        Depth of the deepest nodes shown; None for all.
    precision : int, default=4
        Significant digits of thresholds and values.
    max_levels : int, default=8
        Levels of a category that are listed by name; the rest is counted.
    show_missing : bool, default=True
        Whether to show the direction of missing values, which every split has, even if no training
        value was missing.

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
    words = TreeFormatter(model, tree, TextStyle(precision, max_levels, show_missing))
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
    """Return a tree as an SVG string, which notebooks render as a picture.

    A box has the condition of a split or the value of a leaf, and a bar: the class probabilities,
    or the position of the value between the smallest and the largest. The width of an edge grows
    with the cover of its child. Tooltips show the other statistics of a node.

    Parameters
    ----------
    model : Model
        An estimator's ``model_``, or the result of `arboost.load`.
    tree : int, default=0
    max_depth : int or None, default=4
        Depth of the deepest nodes shown; None for all.
    precision : int, default=4
        Significant digits of thresholds and values.
    show_missing : bool, default=True
        Whether to show the direction of missing values, which every split has, even if no training
        value was missing.

    Examples
    --------
    >>> import arboost
    >>> model = arboost.GradientBoostingRegressor().fit([[15], [18], [21]], [1.0, 1.0, 4.0]).model_
    >>> picture = tree_svg(model)
    >>> picture.startswith("<svg")
    True

    To save the picture: ``pathlib.Path("tree.svg").write_text(picture)``.
    """
    style = TextStyle(precision, show_missing=show_missing, at_most="\N{LESS-THAN OR EQUAL TO}")
    words = TreeFormatter(model, tree, style)
    return TreePicture(render_svg(words, _limit(max_depth, words)))


def tree_dot(
    model: Model,
    tree: int = 0,
    *,
    max_depth: int | None = None,
    precision: int = 4,
    show_missing: bool = True,
) -> str:
    r"""Return a tree in DOT, the language of Graphviz, which renders many picture formats.

    Parameters
    ----------
    model : Model
        An estimator's ``model_``, or the result of `arboost.load`.
    tree : int, default=0
    max_depth : int or None, default=None
        Depth of the deepest nodes shown; None for all.
    precision : int, default=4
        Significant digits of thresholds and values.
    show_missing : bool, default=True
        Whether to show the direction of missing values, which every split has, even if no training
        value was missing.

    Examples
    --------
    >>> import arboost
    >>> model = arboost.GradientBoostingRegressor().fit([[15], [18], [21]], [1.0, 1.0, 4.0]).model_
    >>> print(tree_dot(model, show_missing=False).splitlines()[4])
      0 [label="x0 <= 19.5\n0\ncover 3"];
    """
    words = TreeFormatter(model, tree, TextStyle(precision, show_missing=show_missing))
    return dot(words, _limit(max_depth, words))


def _limit(max_depth: int | None, words: TreeFormatter) -> int:
    limit = _MAX_DEPTH.check(max_depth)
    return limit if isinstance(limit, int) else int(words.depth.max())


def _rows(words: TreeFormatter, limit: int) -> Iterator[tuple[str, ...]]:
    """Yield the cells of the text, line by line."""
    yield ("node", "", "cover", *(header for one in words.node_values for header in _headers(one)))
    # Node, its parent, the prefix of its line and of the lines of its children.
    waiting = [(0, -1, "", "")]
    while waiting:
        node, parent, lead, indent = waiting.pop()
        text = "all rows" if parent < 0 else words.condition(node, parent)
        left = int(words.left[node])
        cells = (cell for one in words.node_values for cell in _cells(words, one, node))
        mark = " " if left else "*"
        yield (f"{node}{mark}", lead + text, words.number(words.cover[node]), *cells)
        if left and words.depth[node] == limit:
            yield ("", f"{indent}└─ ... {words.n_leaves[node]} leaves", "")
        elif left:
            waiting.append((left + 1, node, f"{indent}└─ ", f"{indent}   "))
            waiting.append((left, node, f"{indent}├─ ", f"{indent}│  "))


def _headers(values: NodeValues) -> Iterator[str]:
    title = f"{values.title} " if values.title else ""
    if not values.is_share:
        yield from values.headers
        return
    yield f"{title}class"
    yield from values.headers if len(values.headers) <= _MOST_CLASSES else ["share"]


def _cells(words: TreeFormatter, values: NodeValues, node: int) -> Iterator[str]:
    numbers = values.numbers[node]
    if not values.is_share:
        yield from map(words.value, numbers)
        return
    best = int(values.best[node])
    yield values.headers[best]
    shown = numbers if len(numbers) <= _MOST_CLASSES else numbers[best : best + 1]
    yield from (f"{share:.1%}" for share in shown)


def _aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    """Yield lines of aligned cells: conditions to the left, all other columns to the right."""
    n_columns = len(rows[0])
    filled = [row + ("",) * (n_columns - len(row)) for row in rows]
    widths = [max(display_width(row[i]) for row in filled) for i in range(n_columns)]
    for row in filled:
        cells = []
        for i, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - display_width(cell))
            cells.append(cell + space if i == 1 else space + cell)
        yield f"{cells[0]} {'  '.join(cells[1:])}".rstrip()


_MAX_NAME = 40  # characters
_FONT = 'fontname="Helvetica,Arial,sans-serif"'


def dot(words: TreeFormatter, max_depth: int) -> str:
    """Return a tree down to a depth as a directed graph in DOT."""
    lines = [
        "digraph tree {",
        f"  graph [label={_quoted(words.headline)}, labelloc=t, {_FONT}];",
        f'  node [shape=box, style="rounded", {_FONT}];',
        f"  edge [{_FONT}];",
        *_statements(words, max_depth),
        "}",
    ]
    return "\n".join(lines)


def _statements(words: TreeFormatter, max_depth: int) -> Iterator[str]:
    waiting = [0]
    for node in waiting:
        left = int(words.left[node])
        value, cover = value_text(words, node), f"cover {words.number(words.cover[node])}"
        if not left:
            label = _quoted(value, cover)
            yield f'  {node} [label={label}, style="rounded,filled", fillcolor="#e8eef4"];'
            continue
        question = words.question(node, max_name=_MAX_NAME)
        yield f"  {node} [label={_quoted(question, value, cover)}];"
        if words.depth[node] == max_depth:
            leaves = _quoted(f"{words.n_leaves[node]} leaves")
            yield f'  below{node} [label={leaves}, style="rounded,dashed"];'
            yield f"  {node} -> below{node};"
            continue
        for child, label in zip((left, left + 1), edge_labels(words, node), strict=True):
            waiting.append(child)
            yield f"  {node} -> {child} [label={_quoted(label)}];"


def _quoted(*lines: str) -> str:
    r"""Return lines as a string literal of DOT.

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
