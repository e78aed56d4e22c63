"""Pictures of trees: no overlap, safe for any name, and bars and edges in proportion."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import cache

import numpy as np
import pytest
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextPath

from arboost.plots.trees import tree_svg, tree_text
from support.drawn_trees import HOSTILE, full_tree, lines, model_of, names_schema, stump

SVG = "{http://www.w3.org/2000/svg}"


def test_hostile_names(rng):
    classes = np.array(
        [f"{name}|{i}" for i, name in enumerate(HOSTILE) if "\x00" not in name], object
    )
    model = model_of(
        full_tree(rng, 4, len(HOSTILE), width=len(classes)),
        names_schema(*HOSTILE),
        classes=classes,
    )
    picture = tree_svg(model)
    assert picture.isascii()
    root = ET.fromstring(picture)
    assert {element.tag for element in root.iter()} == {
        SVG + tag for tag in ("svg", "title", "rect", "g", "text", "path")
    }
    text = "".join(root.itertext())
    assert "<script>" in text
    assert "line\\nbreak\\ttab" in text
    assert "null\\x00 and bell\\x07" in text
    assert len(lines(model)) == 2 + 31  # no name breaks a line
    tree_text(model).encode()  # no surrogates are left


@cache
def text_width(text, size, font):
    return TextPath((0, 0), text, size=size, prop=font).get_extents().width


def boxes_of(root):
    """Return the rectangles of nodes and texts, with the text widths of a wide font."""
    wide, bold = (FontProperties(family="DejaVu Sans", weight=one) for one in ("normal", "bold"))
    rects, texts = [], []
    for group in root.iter(SVG + "g"):
        box = group.find(SVG + "rect")
        x, y, w, h = (float(box.get(one)) for one in ("x", "y", "width", "height"))
        rects.append((x, y, x + w, y + h))
    for element in root.iter(SVG + "text"):
        font = bold if element.get("font-weight") == "600" else wide
        size = float(element.get("font-size"))
        text = element.text.replace("$", r"\$")
        width = text_width(text, size, font) if text else 0.0
        share = {"start": 0.0, "middle": 0.5, "end": 1.0}[element.get("text-anchor")]
        x, y = float(element.get("x")) - share * width, float(element.get("y"))
        texts.append((x, y - 0.75 * size, x + width, y + 0.22 * size))
    return rects, texts


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


@pytest.mark.parametrize("depth", [1, 2, 4, 5])
@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("names", ["short", "long"])
def test_nothing_overlaps(rng, depth, width, names):
    labels = {"short": "abcd", "long": ["mean concave points (worst)", "i", "WIDE NAME", "x (cm)"]}
    classes = np.array(["versicolor", "No", "MAMMALS OF THE SEA"]) if width == 3 else None
    forest = full_tree(rng, depth, 4, width)
    model = model_of(forest, names_schema(*labels[names]), classes=classes)
    root = ET.fromstring(tree_svg(model, max_depth=4))
    rects, texts = boxes_of(root)
    stubs = 16 if depth == 5 else 0
    assert len(rects) == 2 ** (min(depth, 4) + 1) - 1 + stubs
    canvas = (0.0, 0.0, float(root.get("width")), float(root.get("height")))
    for one in [*rects, *texts]:
        assert canvas[0] <= one[0] and one[2] <= canvas[2]  # noqa: PT018
        assert canvas[1] <= one[1] and one[3] <= canvas[3]  # noqa: PT018
    for i, one in enumerate(rects):
        assert not any(overlap(one, other) for other in rects[:i])
    for i, one in enumerate(texts):
        assert not any(overlap(one, other) for other in texts[:i])
        inside = [rect for rect in rects if overlap(one, rect)]
        assert len(inside) <= 1
        for rect in inside:  # a text is in its box, or in none
            assert rect[0] <= one[0] and one[2] <= rect[2]  # noqa: PT018
            assert rect[1] <= one[1] and one[3] <= rect[3]  # noqa: PT018
    assert sum(any(overlap(one, rect) for rect in rects) for one in texts) == 2 * len(rects)


def test_texts_fit_in_any_font(rng):
    """Every text names a length that is within its box: viewers fit any font to it."""
    names = names_schema("price (million EUR)", "illicit", "WMWM @%", "価格")
    root = ET.fromstring(tree_svg(model_of(full_tree(rng, 3, 4), names)))
    for element in root.iter(SVG + "text"):
        assert element.get("lengthAdjust") == "spacingAndGlyphs"
        assert float(element.get("textLength")) > 0
    for group in root.iter(SVG + "g"):
        width = float(group.find(SVG + "rect").get("width"))
        for element in group.iter(SVG + "text"):
            assert float(element.get("textLength")) <= width - 2 * 8


def test_edges_lead_from_parents_to_children(rng):
    model = model_of(full_tree(rng, 3, 4), names_schema(*"abcd"))
    root = ET.fromstring(tree_svg(model))
    rects, _ = boxes_of(root)
    for path in root.iter(SVG + "path"):
        x0, y0, *_, x1, y1 = map(float, re.findall(r"-?[\d.]+", path.get("d")))
        (top,) = [r for r in rects if abs(r[3] - y0) < 0.2 and abs((r[0] + r[2]) / 2 - x0) < 0.2]
        (low,) = [r for r in rects if abs(r[1] - y1) < 0.2 and abs((r[0] + r[2]) / 2 - x1) < 0.2]
        assert top[1] < low[1]
    assert len(list(root.iter(SVG + "path"))) == 14


def test_edge_width_grows_with_cover():
    model = model_of(stump([[0.0], [1.0], [2.0]], cover=(100, 99, 1)), names_schema("a"))
    left, right = re.findall(
        r'stroke-width="([\d.]+)"/>\n', re.sub("<rect[^>]*>", "", tree_svg(model))
    )[:2]
    assert float(left) > 5 * float(right)


def test_bars_are_class_probabilities():
    value = [[0.5, 0.25, 0.25], [0.998, 0.0, 0.002], [0.0, 1.0, 0.0]]
    model = model_of(stump(value), names_schema("age"), classes=np.array(["a", "b", "c"]))
    picture = tree_svg(model)
    root = ET.fromstring(picture)
    for group, shares in zip(root.iter(SVG + "g"), value, strict=True):
        bars = group.findall(SVG + "rect")[1:]
        widths = np.array([float(bar.get("width")) for bar in bars])
        np.testing.assert_allclose(widths / widths.sum(), [s for s in shares if s], atol=1e-3)
    assert "a &gt;99%" in picture  # 100 % only where it is exact


def test_dots_are_positions_of_values():
    picture = tree_svg(model_of(stump([[0.5], [-1e308], [1e308]]), names_schema("a")))
    root = ET.fromstring(picture)
    places = []
    for group in root.iter(SVG + "g"):
        line, dot = group.find(SVG + "line"), group.find(SVG + "circle")
        ends = float(line.get("x1")), float(line.get("x2"))
        places.append((float(dot.get("cx")) - ends[0]) / (ends[1] - ends[0]))
    assert places[0] == pytest.approx(0.5, abs=0.01)
    assert places[1] < 0.06
    assert places[2] > 0.94
