"""Print the requirements of groups in pyproject.toml, one per line, for ``pip install -r``.

Groups: ``build`` (to build without isolation), ``run``, or the name of an extra.
"""

import sys
import tomllib
from pathlib import Path


def requirements(group: str) -> list[str]:
    """Return the requirement strings of one group."""
    pyproject = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
    if group == "build":
        # Without isolation, pip does not install the two programs that the build backend runs.
        return [*pyproject["build-system"]["requires"], "cmake>=3.18", "ninja>=1.5"]
    if group == "run":
        return pyproject["project"]["dependencies"]
    return pyproject["project"]["optional-dependencies"][group]


if __name__ == "__main__":
    print(*(line for group in sys.argv[1:] for line in requirements(group)), sep="\n")
