"""Build the site of the documentation: python tools/docs_site [--folder build].

Pages of docs/ and generated pages go to build/site_source, the site to build/site. Any warning is
an error.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE.parent), str(ROOT / "src")]

from docs_site.assemble import assemble  # noqa: E402  (of the checkout)


def build(source: Path, site: Path, scratch: Path) -> int:
    """Write the source folder and build the site; return the exit status of Sphinx."""
    from sphinx.cmd.build import main as sphinx

    assemble(source)
    for old in (site, scratch):
        shutil.rmtree(old, ignore_errors=True)
    options = ["-b", "html", "-c", str(HERE), "-d", str(scratch), "-q", "-W", "--keep-going"]
    return sphinx([*options, "-j", "auto", str(source), str(site)])


def main() -> int:
    """Build the site and print the path of its first page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("build"), help="folder of the site")
    folder = parser.parse_args().folder
    status = build(folder / "site_source", folder / "site", folder / "site_cache")
    if status == 0:
        print((folder / "site" / "index.html").as_posix())
    return status


if __name__ == "__main__":
    sys.exit(main())
