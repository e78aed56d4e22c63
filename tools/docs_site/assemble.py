"""The source folder of the site: pages of docs/ with links for the site, and generated pages."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

from docs_site import gallery
from docs_site.groups import INDEX
from docs_site.reference import Reference

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
CODE = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
FILE_NAME = re.compile(r"\[[\w./-]+\.md\](\(([^)#\s]+\.md)[^)]*\))")
LINK = re.compile(r"(\]\()([^)\s]+)(\))")
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
REPOSITORY = re.compile(r"<!-- repository only -->.*?<!-- end -->\n", re.DOTALL)
IMAGES = (".svg", ".png", ".jpg")

# Pages of the site that are files outside docs/.
OUTSIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "developers/architecture.md",
    "CONTRIBUTING.md": "developers/contributing.md",
    "SECURITY.md": "developers/security.md",
    "CHANGELOG.md": "changelog.md",
    "bench/README.md": "benchmarks/running.md",
    "bench": "benchmarks/running.md",
    "bench/results": "benchmarks/index.md",
    "examples": "gallery/index.md",
}
TITLES = {"bench/README.md": "# Running the benchmarks"}  # on the site
# Parts of the site, in the order of the navigation; a name without a page yet is left out.
PARTS = (
    "tutorial",
    "tasks/index",
    "theory/index",
    "reference/index",
    "gallery/index",
    "benchmarks/index",
    "developers/index",
    "changelog",
)


def prose(page: str) -> list[tuple[str, bool]]:
    """Return the parts of a page, and whether each is a block of code."""
    parts, end = [], 0
    for block in CODE.finditer(page):
        parts += [(page[end : block.start()], False), (block[0], True)]
        end = block.end()
    return [*parts, (page[end:], False)]


def links(page: str) -> list[str]:
    """Return the links of a page, in order."""
    found = (LINK.findall(text) for text, is_code in prose(page) if not is_code)
    return [link for links in found for _, link, _ in links]


class Source:
    """The source folder while it is filled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def write(self, name: str, text: str) -> None:
        """Write a page."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")

    def page(self, name: str, origin: Path, text: str) -> None:
        """Write a page whose links are relative to the file that it comes from.

        A link whose text is a file name gets the title of the page.
        """

        def moved(found: re.Match[str]) -> str:
            return found[1] + self.link(found[2], name, origin) + found[3]

        def titled(found: re.Match[str]) -> str:
            target = origin.parent / found[2]
            text = title(target.read_text("utf-8")) if target.exists() else found[2]
            return f"[{text}]{found[1]}"

        parts = (
            part if is_code else LINK.sub(moved, FILE_NAME.sub(titled, part))
            for part, is_code in prose(text)
        )
        self.write(name, "".join(parts))

    def link(self, link: str, page: str, origin: Path) -> str:
        """Return a link of a page for the site."""
        name, mark, heading = link.partition("#")
        if not name or ":" in name:
            return link
        target = Path(os.path.normpath(origin.parent / name))
        inside = target.relative_to(ROOT).as_posix()
        if inside in OUTSIDE:
            inside = OUTSIDE[inside]
        elif inside.startswith("examples/") and inside.endswith(".py"):
            inside = f"gallery/{target.stem}.md"
        elif inside.startswith("docs/") and target.suffix != ".py":
            inside = inside.removeprefix("docs/")
            inside = f"{inside}/index.md" if target.is_dir() else inside
        else:
            self.copy(target, f"files/{inside}")
            inside = f"files/{inside}"
        return os.path.relpath(inside, Path(page).parent).replace(os.sep, "/") + mark + heading

    def copy(self, origin: Path, name: str) -> None:
        """Copy a file that pages link to."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(origin, path)

    def copy_docs(self) -> None:
        """Copy the pages and pictures of docs/, and the pages outside of it."""
        for path in sorted(DOCS.rglob("*")):
            name = path.relative_to(DOCS).as_posix()
            if path.suffix == ".md":
                self.page(name, path, path.read_text("utf-8"))
            elif path.suffix in IMAGES:
                self.copy(path, name)
        for origin, name in OUTSIDE.items():
            if origin.endswith(".md") and origin != "README.md":
                text = (ROOT / origin).read_text("utf-8")
                self.page(
                    name, ROOT / origin, TITLE.sub(TITLES.get(origin, r"\g<0>"), text, count=1)
                )

    def navigation(self) -> None:
        """Append the hidden tables of contents, in the order of the links of index pages."""
        tops = [part for part in PARTS if (self.folder / f"{part}.md").exists()]
        self._contents("index.md", tops)
        for top in tops:
            if top.endswith("/index"):
                self._contents(f"{top}.md", self.linked(f"{top}.md"))

    def linked(self, index: str) -> list[str]:
        """Return the pages of a folder that its index page links to, in order."""
        folder = (self.folder / index).parent
        found = links((self.folder / index).read_text("utf-8"))
        pages = dict.fromkeys(link.partition("#")[0] for link in found)
        names = [page.removesuffix(".md") for page in pages if "/" not in page and ".md" in page]
        return [name for name in names if name != "index" and (folder / f"{name}.md").exists()]

    def _contents(self, index: str, names: list[str]) -> None:
        path = self.folder / index
        contents = "\n".join(["```{toctree}", ":hidden:", ":titlesonly:", "", *names, "```", ""])
        path.write_text(f"{path.read_text('utf-8')}\n{contents}", "utf-8")


def title(page: str) -> str:
    """Return the title of a page."""
    return TITLE.search(page)[1]


def reference_index(reference: Reference, metrics: str) -> str:
    """Return the list of the reference pages, by part."""
    pages = {**reference.markdown, "metrics": metrics}
    lines = []
    for part, names in INDEX.items():
        lines += [f"## {part}", ""]
        for name in names:
            if name in pages:
                text = ", ".join(f"`{one}`" for one in listed(reference, name))
                lines.append(f"- [{title(pages[name])}]({name}.md){': ' if text else ''}{text}")
        lines.append("")
    return "\n".join(lines)


def listed(reference: Reference, name: str) -> list[str]:
    """Return the public names of a reference page."""
    page = reference.pages.get(name)
    return [f"arboost.{one.__name__}" for one in page.objects()] if page else []


def assemble(folder: Path) -> None:
    """Fill the source folder of the site."""
    source = Source(folder)
    source.copy_docs()
    reference = Reference()
    for name, text in reference.markdown.items():
        if reference.pages.get(name) is None or reference.pages[name].objects():
            source.write(f"reference/{name}.md", text)
    index = folder / "reference" / "index.md"
    made = reference_index(reference, (DOCS / "reference" / "metrics.md").read_text("utf-8"))
    text = REPOSITORY.sub("", index.read_text("utf-8"))
    index.write_text(text.replace("<!-- pages -->", made), "utf-8")
    for name, text in gallery.pages().items():
        source.write(f"gallery/{name}.md", text)
        if name != "index":
            source.copy(ROOT / "examples" / f"{name}.py", f"files/examples/{name}.py")
    source.navigation()
    (folder / "names.json").write_text(json.dumps(reference.targets), "utf-8")
