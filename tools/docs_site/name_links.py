"""Links from public names in running text to the reference."""

from __future__ import annotations

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

NAME = re.compile(r"[A-Za-z_][\w.]*")
NO_LINKS = (nodes.reference, nodes.title, addnodes.pending_xref, addnodes.desc_signature)


def is_reference(name: str) -> bool:
    """Return whether a name in code is meant as a public one: dotted, or a class."""
    return bool(NAME.fullmatch(name)) and ("." in name or name[0].isupper())


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Wrap inline code that is a public name into a reference to its description."""
    targets: dict[str, str] = json.loads((Path(app.srcdir) / "names.json").read_text("utf-8"))
    for node in list(doctree.findall(nodes.literal)):
        name = node.astext().removesuffix("()")
        inside = node.parent
        while inside is not None and not isinstance(inside, NO_LINKS):
            inside = inside.parent
        if inside is not None or name not in targets or not is_reference(name):
            continue
        link = addnodes.pending_xref(
            "", refdomain="py", reftype="obj", reftarget=targets[name], refexplicit=True
        )
        link["refwarn"] = True
        node.replace_self(link)
        link += node


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the links."""
    app.connect("doctree-read", link_names)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
