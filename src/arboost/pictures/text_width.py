"""Widths of text in pictures: in the font that is meant, and at most in the fonts of the list.

Boxes are as wide as the widest font of the list needs. Each text also names its width in Helvetica
(and Arial and Liberation Sans, which have the same widths): SVG viewers with any other font fit
their glyphs to it.
"""

from __future__ import annotations

from functools import cache

from arboost.pictures.tree_words import display_width

__all__ = ["text_width", "widest_text"]

_BOLD = 1.06  # factor on the widths of plain text

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


def text_width(words: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a text in Helvetica of a font size; other alphabets are estimated."""
    return size * (_BOLD if bold else 1.0) * sum(_WIDTHS.get(char) or _em(char) for char in words)


def widest_text(words: str, size: float, *, bold: bool = False) -> float:
    """Return an upper bound of the width of a text in the fonts of the list."""
    return size * (_BOLD if bold else 1.0) * sum(map(_em, words))


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
