"""Check the kernels: no code for a newer CPU is reached on an older one, no miscompiled sums.

The files kernels_avx*.cpp are compiled with instructions that not every CPU has. An inline
function or a template that such a file shares with others (``std::sort`` of integers is enough) is
emitted in each of them, the linker keeps any one copy, and the program may then crash on an older
CPU. So these object files may define weak functions only in the namespace of their instruction set.

From ``lanes[j] += condition ? value : 0``, in a loop over the lanes of a small array, GCC 12.2
makes wrong sums with AVX2 and AVX-512. Masks are as fast: ``lanes[j] += value & -int{condition}``.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parent.parent / "cpp"
CONDITIONAL_SUM = re.compile(r"\[j\]\s*[+-]=[^;]*\?(?!\s*1\s*:)[^;]*:\s*0\b[^;]*;")


def conditional_sums() -> list[str]:
    """Return the places of sums in lanes that GCC 12.2 gets wrong."""
    found = []
    for path in sorted(SOURCES.rglob("*")):
        text = path.read_text(encoding="utf-8") if path.suffix in {".h", ".cpp"} else ""
        for match in CONDITIONAL_SUM.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.relative_to(SOURCES.parent)}:{line}: {match[0]}")
    return found


def shared_functions(path: Path) -> list[str]:
    """Return the readable names of the functions that other object files may define as well."""
    listing = subprocess.run(
        ["nm", "--demangle", "--defined-only", path], check=True, capture_output=True, text=True
    ).stdout
    symbols = (line.split(maxsplit=2) for line in listing.splitlines())
    own = path.name.split(".")[0].removeprefix("kernels_")  # avx2
    return [name for _, kind, name in symbols if kind == "W" and f"arboost::{own}::" not in name]


def main(build: Path) -> int:
    """Print the faults of the kernel files under a folder; return the exit status."""
    sums = conditional_sums()
    for place in sums:
        print(f"{place} GCC 12.2 makes wrong sums of this: use a mask")
    if sums:
        return 1
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
