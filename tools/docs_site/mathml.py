"""Formulas as MathML, written at build time: browsers show them without a script."""

from __future__ import annotations

import re
from logging import ERROR, getLogger
from pathlib import Path
from typing import Any

from docutils import nodes
from math_core import LatexError, LatexToMathML
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util import logging

TAG = re.compile(r"\\tag\{([^}]*)\}")
FONT = "STIXTwoMath.woff2"
logger = logging.getLogger(__name__)
IDENTIFIER = re.compile(r"<mi>(.)</mi>")
ITALIC = {  # first letter of each alphabet: that of the italic alphabet, and their length
    "A": (0x1D434, 26),
    "a": (0x1D44E, 26),
    "\N{GREEK CAPITAL LETTER ALPHA}": (0x1D6E2, 25),
    "\N{GREEK SMALL LETTER ALPHA}": (0x1D6FC, 25),
}
converter = LatexToMathML(fancy_error=False)


def mathml(latex: str, *, display: bool, where: object = None) -> str:
    """Return a formula as MathML; a warning says why one cannot be converted."""
    try:
        return converter.convert_with_local_state(latex, displaystyle=display)
    except LatexError as error:
        logger.warning("formula %r: %s", latex, error, location=where)
        return f"<code>{latex.replace('&', '&amp;').replace('<', '&lt;')}</code>"


def visit_inline(writer: Any, node: nodes.Element) -> None:
    """Write a formula in a line."""
    writer.body.append(mathml(node.astext(), display=False, where=node))
    raise nodes.SkipNode


def visit_display(writer: Any, node: nodes.Element) -> None:
    """Write a formula of its own; a tag is its number and its anchor."""
    latex = node.astext()
    tag = TAG.search(latex)
    formula = mathml(TAG.sub("", latex).strip(), display=True, where=node)
    number = f'<span class="number">({tag[1]})</span>' if tag else ""
    anchor = f' id="eq-{tag[1]}"' if tag else ""
    writer.body.append(f'<div class="formula"{anchor}>{formula}{number}</div>\n')
    raise nodes.SkipNode


def italics(html: str) -> set[str]:
    """Return the characters by which browsers draw the variables of one letter in a page."""
    drawn = set()
    for letter in set(IDENTIFIER.findall(html)):
        for first, (italic, length) in ITALIC.items():
            if 0 <= ord(letter) - ord(first) < length:
                drawn.add(chr(italic + ord(letter) - ord(first)))
    # Unicode had an italic h before: the letter of Planck's constant.
    return {"\u210e" if letter == "\U0001d455" else letter for letter in drawn}


def write_font(app: Sphinx, error: Exception | None) -> None:
    """Write the font of formulas, with the characters that the pages use."""
    if error is not None or app.builder.name != "html":
        return
    try:
        import ziamath
        from fontTools import subset
    except ImportError as missing:
        raise ExtensionError(f"the font of formulas: {missing}") from missing
    getLogger("fontTools").setLevel(ERROR)
    pages = "".join(path.read_text("utf-8") for path in Path(app.outdir).rglob("*.html"))
    used = set(pages) | italics(pages)
    used.add("√")  # the element msqrt draws it, and no text has it
    options = subset.Options(flavor="woff2", layout_features=["*"])
    fonts = Path(ziamath.__file__).parent / "fonts"
    font = subset.load_font(str(fonts / "STIXTwoMath-Regular.ttf"), options)
    subsetter = subset.Subsetter(options)
    subsetter.populate(text="".join(used))
    subsetter.subset(font)
    subset.save_font(font, str(Path(app.outdir) / "_static" / FONT), options)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer of formulas."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    app.connect("build-finished", write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
