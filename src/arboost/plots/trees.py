"""Single trees as text, as SVG for notebooks, and as DOT for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from arboost.models.tree_nodes import NodeValues, TextStyle, TreeFormatter
from arboost.params import Integer
from arboost.plots.tree_svg import MAX_NAME, render_svg
from arboost.text import display_width, padded

if TYPE_CHECKING:
    from arboost.models.model import Model

_MAX_DEPTH = Integer(
    name="max_depth",
    default=None,
    low=0,
    optional=True,
    text="Depth of the deepest nodes that are shown.",
    advice="Use max_depth=None for no limit.",
)
_MOST_CLASSES = 8  # columns of class probabilities that fit a line
_MAX_DOT_NAME = 40  # characters
_FONT = 'fontname="Helvetica,Arial,sans-serif"'


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
    """Tree as indented text, `arboost.Predictor.tree_text`.

    A line gives the condition by which rows of the parent node reach the node; leaves have a star.
    Of the levels of a category, `max_levels` are listed by name; the rest is counted.

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
    nodes = TreeFormatter(model, tree, TextStyle(precision, max_levels, show_missing=show_missing))
    rows = list(_rows(nodes, _limit(max_depth, nodes)))
    return "\n".join([nodes.headline, *_aligned(rows)])


def tree_svg(
    model: Model,
    tree: int = 0,
    *,
    max_depth: int | None = 4,
    precision: int = 4,
    show_missing: bool = True,
) -> TreePicture:
    """Tree as SVG, `arboost.Predictor.tree_svg`.

    A box has the condition of a split or the value of a leaf, and a bar: the class probabilities,
    or the position of the value between the smallest and the largest. The width of an edge grows
    with the cover of its child. Tooltips show the other statistics of a node.

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
    nodes = TreeFormatter(model, tree, style, max_name=MAX_NAME)
    return TreePicture(render_svg(nodes, _limit(max_depth, nodes)))


def tree_dot(
    model: Model,
    tree: int = 0,
    *,
    max_depth: int | None = None,
    precision: int = 4,
    show_missing: bool = True,
) -> str:
    r"""Tree in DOT, `arboost.Predictor.tree_dot`.

    Examples
    --------
    >>> import arboost
    >>> model = arboost.GradientBoostingRegressor().fit([[15], [18], [21]], [1.0, 1.0, 4.0]).model_
    >>> print(tree_dot(model, show_missing=False).splitlines()[4])
      0 [label="x0 <= 19.5\n0\ncover 3"];
    """
    style = TextStyle(precision, show_missing=show_missing)
    nodes = TreeFormatter(model, tree, style, max_name=_MAX_DOT_NAME)
    lines = [
        "digraph tree {",
        f"  graph [label={_quoted(nodes.headline)}, labelloc=t, {_FONT}];",
        f'  node [shape=box, style="rounded", {_FONT}];',
        f"  edge [{_FONT}];",
        *_statements(nodes, _limit(max_depth, nodes)),
        "}",
    ]
    return "\n".join(lines)


def _limit(max_depth: int | None, nodes: TreeFormatter) -> int:
    limit = _MAX_DEPTH.check(max_depth)
    return limit if isinstance(limit, int) else int(nodes.depth.max())


def _rows(nodes: TreeFormatter, limit: int) -> Iterator[tuple[str, ...]]:
    """Yield the cells of the text, line by line."""
    heads = (head for values in nodes.node_values for head in _heads(values))
    yield ("node", "", "cover", *heads)
    # Node, its parent, the prefix of its line and of the lines of its children.
    waiting = [(0, -1, "", "")]
    while waiting:
        node, parent, lead, indent = waiting.pop()
        text = "all rows" if parent < 0 else nodes.condition(node, parent)
        left = int(nodes.left[node])
        cells = (cell for values in nodes.node_values for cell in _cells(nodes, values, node))
        mark = " " if left else "*"
        yield (f"{node}{mark}", lead + text, nodes.number(nodes.cover[node]), *cells)
        if left and nodes.depth[node] == limit:
            yield ("", f"{indent}└─ ... {nodes.n_leaves[node]} leaves", "")
        elif left:
            waiting.append((left + 1, node, f"{indent}└─ ", f"{indent}   "))
            waiting.append((left, node, f"{indent}├─ ", f"{indent}│  "))


def _heads(values: NodeValues) -> Iterator[str]:
    title = f"{values.title} " if values.title else ""
    if values.is_share:
        yield f"{title}class"
    has_columns = not values.is_share or len(values.headers) <= _MOST_CLASSES
    yield from values.headers if has_columns else ["share"]


def _cells(nodes: TreeFormatter, values: NodeValues, node: int) -> Iterator[str]:
    numbers = values.numbers[node]
    if not values.is_share:
        yield from map(nodes.value, numbers)
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
        cells = [padded(row[i], width, to_right=i != 1) for i, width in enumerate(widths)]
        yield f"{cells[0]} {'  '.join(cells[1:])}".rstrip()


def _statements(nodes: TreeFormatter, limit: int) -> Iterator[str]:
    waiting = [0]
    for node in waiting:
        left = int(nodes.left[node])
        value, cover = nodes.short_value(node), f"cover {nodes.number(nodes.cover[node])}"
        if not left:
            label = _quoted(value, cover)
            yield f'  {node} [label={label}, style="rounded,filled", fillcolor="#e8eef4"];'
            continue
        yield f"  {node} [label={_quoted(nodes.question(node), value, cover)}];"
        if nodes.depth[node] == limit:
            leaves = _quoted(f"{nodes.n_leaves[node]} leaves")
            yield f'  below{node} [label={leaves}, style="rounded,dashed"];'
            yield f"  {node} -> below{node};"
            continue
        for child, label in zip((left, left + 1), nodes.edge_labels(node), strict=True):
            waiting.append(child)
            yield f"  {node} -> {child} [label={_quoted(label)}];"


def _quoted(*lines: str) -> str:
    r"""String literal of DOT.

    Examples
    --------
    >>> print(_quoted('a "b"', "c\\d &lt;"))
    "a \"b\"\nc\\d &amp;lt;"
    """
    escapes = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;"})
    return '"' + "\\n".join(line.translate(escapes) for line in lines) + '"'
