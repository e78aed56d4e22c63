"""Check the contents of the wheels and source archives of a folder, and the wheels' size."""

import sys
import tarfile
import zipfile
from pathlib import Path

LARGEST_WHEEL = 3_600_000  # bytes, of which the core takes 2.3 MB and the report page 0.2 MB
IN_WHEEL = (
    "arboost/__init__.py",
    "arboost/py.typed",
    "arboost/_core.pyi",
    "arboost/report/page/template.html",
    "arboost/report/page/theme.css",
    "arboost/report/page/page.js",
    "arboost/report/page/vendor/d3.min.js",
    "arboost/report/page/vendor/plot.min.js",
)
IN_SOURCE = (
    "CMakeLists.txt",
    "LICENSE",
    "README.md",
    "cpp/base/types.h",
    "src/arboost/__init__.py",
)


def wheel_faults(path: Path) -> list[str]:
    """Return the faults of a wheel, one sentence each."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    faults = [f"{name} is missing" for name in IN_WHEEL if name not in names]
    if not any(
        Path(name).name.startswith("_core.") and name.endswith((".so", ".pyd")) for name in names
    ):
        faults.append("the compiled core is missing")
    faults += [
        f"{name} does not belong there"
        for name in names
        if not name.startswith(("arboost/", "arboost-")) or name.endswith((".cpp", ".h", ".pyc"))
    ]
    if path.stat().st_size > LARGEST_WHEEL:
        faults.append(f"{path.stat().st_size} bytes are more than {LARGEST_WHEEL}")
    return faults


def source_faults(path: Path) -> list[str]:
    """Return the faults of a source archive, one sentence each."""
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    faults = [f"{name} is missing" for name in IN_SOURCE if name not in names]
    return faults + [
        f"{name} does not belong there"
        for name in names
        if name.startswith((".venv", "build/", "dist/")) or name.endswith((".so", ".pyd", ".pyc"))
    ]


def main(folder: Path) -> int:
    """Print the faults of all files in the folder; return the exit status."""
    found = {path: wheel_faults(path) for path in folder.glob("*.whl")}
    found |= {path: source_faults(path) for path in folder.glob("*.tar.gz")}
    for path, faults in found.items():
        print(
            f"{path}: {path.stat().st_size / 1e6:.2f} MB",
            *(faults or ["no faults"]),
            sep="\n  ",
        )
    return int(not found or any(found.values()))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
