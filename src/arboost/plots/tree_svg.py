"""Tree as SVG: boxes of the nodes, edges between them, and widths of text.

Tidy layout of Reingold and Tilford (1981): subtrees are as close to each other as their outlines
allow, and a parent is centred over its children. A box is at least as wide as the label of the edge
into it, so nothing can overlap:

        +----------------+
        | question       |      lines of a box, from top to bottom: condition of a split or value
        | ====bar======  |      of a leaf; a bar for each target; value and cover
        | value, cover   |
        +----------------+
         /              \
     yes |              | no or missing
        box            box
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from xml.sax.saxutils import escape

import numpy as np

from arboost.models.tree_nodes import MOST_BARS, TreeFormatter
from arboost.plots.palette import class_colours, tinted, value_colour
from arboost.text import display_width, shortened

_BOLD_FACTOR = 1.06  # factor on the widths of plain text

# Widths of Helvetica's characters in thousandths of an em.
_HELVETICA = {
    222: "ijl",
    260: "|",
    278: " !,./:;I[\\]ft",
    334: "-()`r{}",
    389: "'\"*",
    500: "Jckvxyzs",
    556: "#$0123456789?L_abdeghnopqu",
    584: "+<=>~^",
    611: "FTZ",
    667: "&ABEKPSVXY",
    722: "CDHNRUw",
    778: "GOQ",
    833: "Mm",
    889: "%",
    944: "W",
    1015: "@",
}
_WIDTHS = {char: width / 1000 for width, chars in _HELVETICA.items() for char in chars}

# Upper bounds of character widths in ems, over all fonts of the list.
_NARROW, _WIDE = frozenset("fijlrt.,:;'|!()[]{}/ -I"), frozenset("mwMW%@")
_NARROW_EM, _USUAL_EM, _CAPITAL_EM, _WIDE_EM, _ASIAN_EM = 0.36, 0.6, 0.76, 1.06, 1.1


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Width of a text in Helvetica of a font size; other alphabets are estimated."""
    return (
        size
        * (_BOLD_FACTOR if bold else 1.0)
        * sum(_WIDTHS.get(char) or _em(char) for char in text)
    )


def widest_text(text: str, size: float, *, bold: bool = False) -> float:
    """Upper bound of the width of a text in the fonts of the list."""
    return size * (_BOLD_FACTOR if bold else 1.0) * sum(map(_em, text))


@cache
def _em(char: str) -> float:
    if char in _NARROW:
        return _NARROW_EM
    if char in _WIDE:
        return _WIDE_EM
    if display_width(char) > 1:
        return _ASIAN_EM
    is_usual = char.isascii() and (char.islower() or char.isdigit())
    return _USUAL_EM if is_usual else _CAPITAL_EM


_FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
_BIG, _SMALL = 13.0, 11.0  # font sizes
_INK, _GREY, _LINE, _EDGE = "#1f2328", "#5f6670", "#b6bcc5", "#ccd1d8"

_PAD, _GAP, _ROOM = 10.0, 14.0, 46.0  # inside boxes, between them, and between levels
_MARGIN = 16.0
_BAR = 7.0
MAX_NAME = 22  # characters; of names in boxes
_MOST_LEGENDS = 12
_EDGE_WIDTH = 9.0

_BOLD_WEIGHT = 600
_DOT = " \N{MIDDLE DOT} "


def render_svg(nodes: TreeFormatter, max_depth: int) -> str:
    """Picture of a tree down to a depth, in ASCII, valid in any file encoding."""
    boxes = _boxes(nodes, max_depth)
    _place(boxes)
    heading = _Heading(nodes)
    left = min(box.x - box.width / 2 for box in boxes.values())
    right = max(box.x + box.width / 2 for box in boxes.values())
    width = max(right - left, heading.width) + 2 * _MARGIN
    box_height = boxes[0].height
    # A tree that is narrower than the heading is centred.
    shift = _MARGIN - left + (width - 2 * _MARGIN - (right - left)) / 2
    for box in boxes.values():
        box.x += shift
        box.y = _MARGIN + heading.height + box.level * (box_height + _ROOM)
    height = max(box.y + box.height for box in boxes.values()) + _MARGIN
    size = f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{_FONT}">',
        f"<title>{escape(nodes.headline)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        *heading.parts(),
        *(part for box in boxes.values() for part in _edges(nodes, box, boxes)),
        *(part for box in boxes.values() for part in box.parts(nodes)),
        "</svg>",
    ]
    return "\n".join(parts).encode("ascii", "xmlcharrefreplace").decode()


@dataclass
class _Box:
    """A node, or a stub for a subtree that is not shown."""

    node: int
    level: int
    head: str
    foot: str
    hint: str
    bars: Sequence[_Bar] = ()
    label: str = ""  # of the edge into the box
    is_leaf: bool = False
    is_stub: bool = False
    children: tuple[int, ...] = ()  # keys of boxes
    x: float = 0.0  # of the centre
    y: float = 0.0
    height: float = 0.0
    width: float = field(init=False)

    def __post_init__(self) -> None:
        inside = max(widest_text(self.head, _BIG, bold=True), widest_text(self.foot, _SMALL))
        self.width = max(inside + 2 * _PAD, 2 * (widest_text(self.label, _SMALL) + 10), 84.0)
        self.height = _BIG + _SMALL + (_BAR + 4) * len(self.bars) + 2 * _PAD + 5

    def parts(self, nodes: TreeFormatter) -> Iterator[str]:
        """Yield the SVG elements."""
        left = self.x - self.width / 2
        dash = ' stroke-dasharray="3 3"' if self.is_stub else ""
        colour = self.bars[0].colour if self.is_leaf and self.bars else _LINE
        fill = tinted(colour) if self.is_leaf else "#ffffff"
        yield f"<g><title>{escape(self.hint)}</title>"
        yield (
            f'<rect x="{left:.1f}" y="{self.y:.1f}" width="{self.width:.1f}" '
            f'height="{self.height:.1f}" rx="6" fill="{fill}" stroke="{colour}" '
            f'stroke-width="{1.5 if self.is_leaf else 1}"{dash}/>'
        )
        line = self.y + _PAD + _BIG - 2
        yield _text(self.head, (self.x, line), _BIG, _INK, weight=_BOLD_WEIGHT)
        top = line + 7
        for bar in self.bars:
            yield from bar.parts(left + _PAD, top, self.width - 2 * _PAD)
            top += _BAR + 4
        yield _text(self.foot, (self.x, top + _SMALL), _SMALL, _GREY)
        yield "</g>"


@dataclass(frozen=True)
class _Bar:
    """Class probabilities as a stacked bar, or a value as a dot on a line."""

    shares: tuple[float, ...]
    colours: tuple[str, ...]
    position: float | None = None  # of the dot, from 0 to 1

    @property
    def colour(self) -> str:
        """Colour of the largest class probability, or of the dot."""
        return self.colours[int(np.argmax(self.shares))]

    def parts(self, left: float, top: float, width: float) -> Iterator[str]:
        """Yield the SVG elements."""
        if self.position is not None:
            middle, radius = top + _BAR / 2, _BAR / 2
            at = left + radius + self.position * (width - 2 * radius)
            line = f'x1="{left:.1f}" x2="{left + width:.1f}" y1="{middle:.1f}" y2="{middle:.1f}"'
            yield f'<line {line} stroke="{_LINE}" stroke-width="1.5"/>'
            circle = f'cx="{at:.1f}" cy="{middle:.1f}" r="{radius + 1:.1f}"'
            yield f'<circle {circle} fill="{self.colour}" stroke="#ffffff"/>'
            return
        total = sum(self.shares) or 1.0
        for share, colour in zip(self.shares, self.colours, strict=True):
            part = width * share / total
            if part > 0:
                box = f'x="{left:.2f}" y="{top:.1f}" width="{part:.2f}" height="{_BAR}"'
                yield f'<rect {box} fill="{colour}"/>'
            left += part


class _Heading:
    """Heading: index and size of the tree, and the legend of the colours."""

    def __init__(self, nodes: TreeFormatter) -> None:
        self._title = nodes.headline
        shares = [values for values in nodes.node_values if values.is_share]
        names = max((values.headers for values in shares), key=len, default=())
        named = zip(names[:_MOST_LEGENDS], class_colours(len(names)), strict=False)
        self._keys = [(shortened(name, MAX_NAME), colour) for name, colour in named]
        if len(names) > _MOST_LEGENDS:
            self._keys.append((f"{len(names) - _MOST_LEGENDS} more", "#ffffff"))
        if len(shares) > 1:  # a colour has another class for each target: no legend
            self._keys = []
        if not shares:
            low, high = map(nodes.signed, nodes.node_values[0].range)
            self._keys = [
                (f"lowest {low}", value_colour(0.0)),
                (f"highest {high}", value_colour(1.0)),
            ]
        keys = sum(22 + widest_text(name, _SMALL) + 12 for name, _ in self._keys)
        self.width = max(widest_text(self._title, _BIG, bold=True), keys)
        self.height = 2 * _BIG + (2 * _SMALL if self._keys else 0)

    def parts(self) -> Iterator[str]:
        """Yield the SVG elements."""
        line = _MARGIN + _BIG - 2
        yield _text(self._title, (_MARGIN, line), _BIG, _INK, weight=_BOLD_WEIGHT, anchor="start")
        left, line = _MARGIN, line + 2 * _SMALL
        for name, colour in self._keys:
            box = f'x="{left:.1f}" y="{line - 9:.1f}" width="10" height="10" rx="2"'
            yield f'<rect {box} fill="{colour}"/>'
            yield _text(name, (left + 16, line), _SMALL, _INK, anchor="start")
            left += 22 + widest_text(name, _SMALL) + 12


def _boxes(nodes: TreeFormatter, max_depth: int) -> dict[int, _Box]:
    """Boxes by node, parents before their children."""
    boxes: dict[int, _Box] = {}
    waiting = [(0, "")]
    for node, label in waiting:
        left, level = int(nodes.left[node]), int(nodes.depth[node])
        cover = f"cover {nodes.number(nodes.cover[node])}"
        value = nodes.short_value(node)
        box = _Box(
            node,
            level,
            head=nodes.question(node) if left else value,
            foot=f"{value}{_DOT}{cover}" if left else cover,
            hint=_hint(nodes, node),
            bars=tuple(_bars(nodes, node)),
            label=label,
            is_leaf=not left,
        )
        boxes[node] = box
        if left and level < max_depth:
            box.children = (left, left + 1)
            waiting += zip(box.children, nodes.edge_labels(node), strict=True)
        elif left:
            count = f"{nodes.n_leaves[node]} leaves"
            stub = -node - 1
            boxes[stub] = _Box(
                stub, level + 1, "\N{HORIZONTAL ELLIPSIS}", count, count, is_stub=True
            )
            box.children = (stub,)
    return boxes


def _hint(nodes: TreeFormatter, node: int) -> str:
    """Tooltip of a node: conditions, gain, cover and values."""
    lines = [f"node {node}"]
    if nodes.left[node]:
        child = int(nodes.left[node])
        lines.append(f"left: {nodes.condition(child, node)}")
        lines.append(f"right: {nodes.condition(child + 1, node)}")
        lines.append(f"gain: {nodes.number(nodes.gain[node])}")
    lines.append(f"cover: {nodes.number(nodes.cover[node])}")
    for values in nodes.node_values:
        title = f"{values.title}, " if values.title else ""
        for name, value in zip(values.headers, values.numbers[node], strict=True):
            text = f"{value:.1%}" if values.is_share else nodes.value(value)
            lines.append(f"{title}{name}: {text}")
    return "\n".join(lines)


def _bars(nodes: TreeFormatter, node: int) -> Iterator[_Bar]:
    """Yield a bar for each target: one scale for its outputs, which are scores of the same kind."""
    for values in nodes.node_values[:MOST_BARS]:
        if values.is_share:
            shares = tuple(values.numbers[node].tolist())
            yield _Bar(shares, class_colours(len(shares)))
            continue
        low, high = values.range
        for value in values.numbers[node, :MOST_BARS].tolist():
            # Halves, because the difference of two doubles may overflow.
            span = high / 2 - low / 2
            position = (value / 2 - low / 2) / span if span > 0 else 0.5
            yield _Bar((1.0,), (value_colour(position),), position)


def _place(boxes: dict[int, _Box]) -> None:
    """Set the centres of all boxes, parents over their children."""
    # Left and right end of each level of a subtree, relative to the centre of its root.
    outlines: dict[int, list[tuple[float, float]]] = {}
    offset: dict[int, float] = {}
    for key, box in reversed(boxes.items()):
        outline = [(-box.width / 2, box.width / 2)]
        below = [outlines.pop(child) for child in box.children]
        if len(below) == 2:  # noqa: PLR2004
            gaps = (end - start for (_, end), (start, _) in zip(*below, strict=False))
            shift = (max(gaps) + _GAP) / 2
            left = [(a - shift, b - shift) for a, b in below[0]]
            right = [(a + shift, b + shift) for a, b in below[1]]
            shared = [(a, b) for (a, _), (_, b) in zip(left, right, strict=False)]
            outline += shared + max(left, right, key=len)[len(shared) :]
            offset[box.children[0]], offset[box.children[1]] = -shift, shift
        elif below:
            outline += below[0]
            offset[box.children[0]] = 0.0
        outlines[key] = outline
    for box in boxes.values():
        for child in box.children:
            boxes[child].x = box.x + offset[child]


def _edges(nodes: TreeFormatter, box: _Box, boxes: dict[int, _Box]) -> Iterator[str]:
    total = max(float(nodes.cover[0]), np.finfo(float).tiny)
    bottom = box.y + box.height
    for side, key in enumerate(box.children):
        child = boxes[key]
        share = 0.0 if child.is_stub else float(nodes.cover[child.node]) / total
        width = 1.0 + (_EDGE_WIDTH - 1.0) * min(share, 1.0)
        bend = bottom + _ROOM * 0.55
        curve = (
            f"M{box.x:.1f} {bottom:.1f}C{box.x:.1f} {bend:.1f} {child.x:.1f} "
            f"{bottom + _ROOM * 0.2:.1f} {child.x:.1f} {child.y:.1f}"
        )
        style = f'fill="none" stroke="{_EDGE}" stroke-width="{width:.1f}"'
        yield f'<path d="{curve}" {style}/>'
        if child.label:
            away = 4.0 + width / 2
            position = (child.x + (away if side else -away), child.y - 6)
            yield _text(child.label, position, _SMALL, _GREY, anchor="start" if side else "end")


def _text(
    text: str,
    position: tuple[float, float],
    size: float,
    colour: str,
    *,
    weight: int = 400,
    anchor: str = "middle",
) -> str:
    x, y = position
    style = f'font-size="{size:g}" fill="{colour}" font-weight="{weight}" text-anchor="{anchor}"'
    if text:  # fonts other than those that boxes are made for are fitted to this length
        length = text_width(text, size, bold=weight >= _BOLD_WEIGHT)
        style += f' textLength="{length:.1f}" lengthAdjust="spacingAndGlyphs"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>'
