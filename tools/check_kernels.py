"""Check the kernels: no code for a newer CPU is reached on an older one, no miscompiled sums.

The files kernels_avx*.cpp are compiled with instructions that not every CPU has. An inline
function or a template that such a file shares with others (``std::sort`` of integers is enough) is
emitted in each of them, the linker keeps any one copy, and the program may then crash on an older
CPU. So these object files may define functions that the linker merges (ELF and Mach-O: weak, COFF:
of sections that any other may stand for) only in the namespace of their instruction set.

From ``lanes[j] += condition ? value : 0``, in a loop over the lanes of a small array, GCC 12.2
makes wrong sums with AVX2 and AVX-512. Masks are as fast: ``lanes[j] += value & -int{condition}``.
"""

import re
import struct
import sys
from collections.abc import Iterator
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
    """Return the functions that other object files may define as well, by their symbols."""
    data = path.read_bytes()
    if data[:4] == b"\x7fELF":
        names = elf_functions(data)
    elif data[:4] == b"\xcf\xfa\xed\xfe":
        names = macho_functions(data)
    elif data[:2] == b"\x64\x86":
        names = coff_functions(data)
    else:
        raise ValueError(f"{path} is no object file for x86-64")
    own = path.name.split(".")[0].removeprefix("kernels_")  # avx2
    # arboost::avx2 in names of either kind, spelled out or as a repeated part.
    in_own = re.compile(rf"(7arboost|S\w*_){len(own)}{own}|@{own}@(arboost@|\d)")
    return [name for name in names if not in_own.search(name)]


def text_at(data: bytes, start: int) -> str:
    """Return the zero-terminated text at an offset."""
    return data[start : data.index(b"\0", start)].decode()


def elf_functions(data: bytes) -> Iterator[str]:
    """Yield the weak functions that an ELF file defines."""
    symbol_table, function, weak = 2, 2, 2
    (first,) = struct.unpack_from("<Q", data, 40)
    size, n = struct.unpack_from("<HH", data, 58)
    # Type, offset, number of bytes, and linked section.
    sections = [struct.unpack_from("<4xI16xQQI", data, first + i * size) for i in range(n)]
    for kind, start, n_bytes, link in sections:
        for at in range(start, start + n_bytes if kind == symbol_table else start, 24):
            name, info, section = struct.unpack_from("<IBxH", data, at)
            if section and info & 15 == function and info >> 4 == weak:
                yield text_at(data, sections[link][1] + name)


def macho_functions(data: bytes) -> Iterator[str]:
    """Yield the weak functions that a Mach-O file defines."""
    segment, symbol_table, weak, code = 25, 2, 0x80, 0x80000400
    at, has_code = 32, [False]  # by section, from 1 on
    for _ in range(struct.unpack_from("<I", data, 16)[0]):
        command, n_bytes = struct.unpack_from("<II", data, at)
        if command == segment:
            for i in range(struct.unpack_from("<I", data, at + 64)[0]):
                (flags,) = struct.unpack_from("<I", data, at + 72 + i * 80 + 64)
                has_code.append(flags & code != 0)
        elif command == symbol_table:
            symbols, n, texts = struct.unpack_from("<III", data, at + 8)
        at += n_bytes
    for i in range(n):
        name, kind, section, flags = struct.unpack_from("<IBBH", data, symbols + i * 16)
        if kind & 14 == 14 and has_code[section] and flags & weak:
            yield text_at(data, texts + name)


def coff_functions(data: bytes) -> Iterator[str]:
    """Yield the functions of a COFF file of which the linker keeps any one."""
    external, section_symbol, code, only_one = 2, 3, 0x20, 1
    n_sections, symbols, n = struct.unpack_from("<2xH4xII", data)
    texts = symbols + n * 18
    (n_optional,) = struct.unpack_from("<H", data, 16)
    flags = [
        struct.unpack_from("<I", data, 20 + n_optional + i * 40 + 36) for i in range(n_sections)
    ]
    chosen: dict[int, int] = {}  # how the linker chooses, by section
    at = symbols
    while at < texts:
        zeros, name, value, section, kind, n_more = struct.unpack_from("<IIIhxxBB", data, at)
        is_code = section > 0 and flags[section - 1][0] & code != 0
        if kind == section_symbol and value == 0 and n_more:
            chosen[section] = data[at + 18 + 14]
        elif kind == external and is_code and chosen.get(section, 0) > only_one:
            short = data[at : at + 8].rstrip(b"\0").decode()
            yield short if zeros else text_at(data, texts + name)
        at += 18 * (1 + n_more)


def main(build: Path) -> int:
    """Print the faults of the kernel files under a folder; return the exit status."""
    sums = conditional_sums()
    for place in sums:
        print(f"{place} GCC 12.2 makes wrong sums of this: use a mask")
    if sums:
        return 1
    if not any(build.rglob("kernels_baseline*.o*")):
        print(f"{build} holds no object files of the kernels: nothing could be checked")
        return 1
    found = {path: shared_functions(path) for path in build.rglob("kernels_avx*.o*")}
    for path, names in found.items():
        for name in names:
            print(f"{path.name}: {name} is shared with code for older CPUs:")
            print("  force it inline, or give it internal linkage")
    return int(any(found.values()))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
