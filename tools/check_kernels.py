"""Check that no code built for a newer CPU can be reached on an older one.

The files kernels_avx*.cpp are compiled with instructions that not every CPU has. An inline
function or a template that such a file shares with others (``std::sort`` of integers is enough) is
emitted in each of them, the linker keeps any one copy, and the program may then crash on an older
CPU. So these object files may define weak functions only in the namespace of their instruction set.
"""

import shutil
import subprocess
import sys
from pathlib import Path


def shared_functions(path: Path) -> list[str]:
    """Return the readable names of the functions that other object files may define as well."""
    listing = subprocess.run(
        ["nm", "--demangle", "--defined-only", path], check=True, capture_output=True, text=True
    ).stdout
    symbols = (line.split(maxsplit=2) for line in listing.splitlines())
    own = path.name.split(".")[0].removeprefix("kernels_")  # avx2
    return [name for _, kind, name in symbols if kind == "W" and f"arboost::{own}::" not in name]


def main(build: Path) -> int:
    """Print the shared functions of all kernel files under a folder; return the exit status."""
    if shutil.which("nm") is None:
        print("nm is not here: kernels not checked")
        return 0
    if not any(build.rglob("kernels_baseline*.o")):
        print(f"{build} holds no object files of the kernels: nothing could be checked")
        return 1
    found = {path: shared_functions(path) for path in build.rglob("kernels_avx*.o")}
    for path, names in found.items():
        for name in names:
            print(f"{path.name}: {name} is shared with code for older CPUs:")
            print("  force it inline, or give it internal linkage")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
