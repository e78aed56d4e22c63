"""Check the order of the folders of the C++ core.

A file may include headers of its own folder and of folders before it in ``FOLDERS``. Headers are
named by their path from cpp/, and no two of them share a name.

Usage: python tools/check_includes.py [folder of the C++ files, else cpp/]
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

FOLDERS = (
    "base",  # types, memory, threads, random bits
    "cuda",  # devices, their memory, run-time compilation of kernels
    "cuda/kernels",  # what all kernels share
    "table",  # columns of the user's table, and the binned table
    "tree",  # split rules, rows of a tree, views of a forest
    "tree/bits",  # leaves of 512 rows at once, by bit masks
    "bin/edges",  # values to edges
    "bin/codes",  # values and edges to codes
    "bin/stream",  # the same for tables that come in batches
    "bin/device",  # the same for tables in the memory of a CUDA device
    "bin/device/kernels",
    "bin",  # ranks, proposals for a round, target statistics
    "loss",
    "grow/search",  # kernels: sums of a node to its best split
    "grow/kernels",  # the other kernels of growing, and their table
    "grow/trees",  # parameters, nodes, grown trees
    "grow/sample",  # row and feature samples of a tree
    "grow/policy",  # order, limits and shape of a tree; the seam to its rows
    "grow/rounds",  # scores, gradients and samples between trees; the seam to rounds of boosting
    "grow/rows",  # rows of the nodes, and sums over them
    "grow/split",  # search of a node's best split
    "grow/memory",  # rows in memory, grown by threads
    "grow/shards",  # rows in parts, each held by a worker
    "grow/stored",  # rows of a table in a file
    "grow/device/records",  # records that the host and kernels exchange
    "grow/device/table",  # codes and trees in the memory of a CUDA device
    "grow/device/rounds",  # scores, gradients and evaluation sets there
    "grow/device/kernels",
    "grow/device/kernels/search",
    "grow/device/kernels/forests",
    "grow/device",  # rows of the nodes there
    "grow",
    "reweight",
    "predict/bits",  # prediction of small trees by bit masks
    "predict",
    "predict/device",  # prediction on a CUDA device
    "predict/device/kernels",
    "predict/quantiles",  # medians of trees, quantiles of leaves
    "explain/shap",
    "explain/device",  # SHAP values on a CUDA device
    "explain/device/kernels",
    "explain",
    "save",
    "cuda/programs",  # kernels that are compiled together
    "isa",  # kernels of all stages for each instruction set
    "bindings",
)
HEADERS = {".h", ".cuh"}
SOURCES = {*HEADERS, ".cpp", ".cu"}
INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')


def sources(root: Path) -> list[Path]:
    """Return the C++ files under a folder, as paths from there."""
    return sorted(path.relative_to(root) for path in root.rglob("*") if path.suffix in SOURCES)


def wrong_includes(root: Path, path: Path) -> Iterator[str]:
    """Yield one message for each forbidden include of a file."""
    folder = path.parent.as_posix()
    if folder not in FOLDERS:
        yield f"{path.as_posix()}: the folder {folder} is not in FOLDERS of tools/check_includes.py"
        return
    lines = (root / path).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        if (match := INCLUDE.match(line)) is None:
            continue
        header = Path(match[1])
        where = f'{path.as_posix()}:{number}: #include "{match[1]}"'
        if not (root / header).is_file() or header.parent.as_posix() not in FOLDERS:
            yield f"{where}: not the path of a header from {root.name}/"
        elif FOLDERS.index(header.parent.as_posix()) > FOLDERS.index(folder):
            yield f"{where}: {header.parent.as_posix()} comes after {folder}"


def shared_names(paths: list[Path]) -> Iterator[str]:
    """Yield one message for each file name of several headers."""
    headers = defaultdict(list)
    for path in paths:
        if path.suffix in HEADERS:
            headers[path.name].append(path.as_posix())
    for same in headers.values():
        if len(same) > 1:
            yield f"headers of one name: {', '.join(same)}"


def main(root: Path) -> int:
    """Print the faults of the files under a folder; return the exit status."""
    paths = sources(root)
    found = [message for path in paths for message in wrong_includes(root, path)]
    found += shared_names(paths)
    print("\n".join(found) if found else f"{len(paths)} C++ files: includes go one way")
    return int(bool(found))


if __name__ == "__main__":
    default = Path(__file__).resolve().parent.parent / "cpp"
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else default))
