"""Pages of the gallery: one an example, and the page of thumbnails."""

from __future__ import annotations

from docs_site.markdown import directive, fenced
from write_gallery import Example, groups

LINES = 9  # of the output, on the card of an example without a picture


def page(example: Example) -> str:
    """Return the page of an example: text, picture, code, output."""
    parts = [f"# {example.title}", example.text]
    if example.picture:
        parts.append(f"![{example.title}]({example.picture.name})")
    parts.append(fenced(example.code, "python"))
    if example.output:
        parts += ["## Output", fenced(example.output, "text")]
    parts.append(f"[Download the script](../files/examples/{example.name}.py)")
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def card(example: Example) -> str:
    """Return the card of an example: picture or output, and title."""
    if example.picture:
        shown = f"[![{example.title}]({example.picture.name})]({example.name}.md)"
    elif example.output:
        shown = fenced("\n".join(example.output.splitlines()[:LINES]), "text")
    else:
        shown = example.text
    return directive("container", "card", f"{shown}\n\n[{example.title}]({example.name}.md)\n")


def index() -> str:
    """Return the page of thumbnails."""
    parts = [
        "# Gallery",
        "One short script a topic: code, output and picture. The scripts are in the folder "
        "`examples` of the repository; the tests run them and compare their output.",
    ]
    for group, examples in groups().items():
        cards = "\n".join(card(example) for example in examples)
        parts += [f"## {group}", directive("container", "cards", cards)]
    return "\n\n".join(parts) + "\n"


def pages() -> dict[str, str]:
    """Return the pages of the gallery by name."""
    every = [example for examples in groups().values() for example in examples]
    return {"index": index(), **{example.name: page(example) for example in every}}
