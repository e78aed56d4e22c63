"""Write the sources of the CUDA kernels as a C++ file; the build runs it.

Kernels are compiled at run time, in several programs: each file that a file of ``cuda/programs/``
includes is one, except ``all.cu``. Those of one file are a group. The core carries the text of
each program and of every header that a program includes, and the names of its kernels.

Usage: python tools/embed_kernels.py FOLDER OUTPUT, with the folder of the C++ files, cpp/.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

STANDARD_HEADERS = ("bit", "cstddef", "cstdint", "cstring", "limits")  # in cuda/kernels/std/
INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(")
LONGEST_LITERAL = 15_000  # bytes; MSVC allows 16,380

FILE = """\
// Written by tools/embed_kernels.py.
#include "cuda/kernel_sources.h"

namespace arboost::cuda {{
namespace {{

constexpr Header headers[] = {{
{headers}}};
{kernels}constexpr KernelProgram programs[] = {{
{programs}}};

}}  // namespace

std::span<const KernelProgram> kernel_programs() {{
  return programs;
}}
std::span<const Header> kernel_headers() {{
  return headers;
}}

}}  // namespace arboost::cuda
"""


def included(root: Path, path: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of a file and of those that it includes, itself or through others."""
    waiting, seen = [path], {path}
    while waiting:
        name = waiting.pop(0)
        text = (root / name).read_text(encoding="utf-8")
        yield name, text
        for other in INCLUDE.findall(text):
            if other not in seen:
                seen.add(other)
                waiting.append(other)


def literal(text: str) -> str:
    """Return a text as raw string literals, which the compiler joins."""
    parts, lines = [""], text.splitlines(keepends=True)
    for line in lines:
        if len((parts[-1] + line).encode()) > LONGEST_LITERAL:
            parts.append("")
        parts[-1] += line
    return "\n".join(f'R"arboost({part})arboost"' for part in parts)


def embedded(root: Path) -> str:
    """Return the C++ file for the kernels under a folder."""
    headers: dict[str, str] = {}
    kernels, programs = "", ""
    for path in sorted((root / "cuda" / "programs").glob("*.cu")):
        if path.name == "all.cu":
            continue
        for source in INCLUDE.findall(path.read_text(encoding="utf-8")):
            name, texts = Path(source).stem, dict(included(root, source))
            headers |= texts
            names = [kernel for text in texts.values() for kernel in KERNEL.findall(text)]
            listed = "".join(f'"{kernel}", ' for kernel in names)
            kernels += f"constexpr const char* {name}_kernels[] = {{{listed}}};\n"
            text = literal(f'#include "{source}"\n')
            programs += f'    {{"{name}", "{path.stem}", {text}, {name}_kernels}},\n'
    for name in STANDARD_HEADERS:
        headers[name] = (root / "cuda" / "kernels" / "std" / name).read_text(encoding="utf-8")
    rows = "".join(f'    {{"{name}", {literal(text)}}},\n' for name, text in headers.items())
    return FILE.format(headers=rows, kernels=kernels, programs=programs)


def main(root: Path, output: Path) -> None:
    """Write the file where it differs, so that nothing is compiled in vain."""
    text = embedded(root)
    if not output.is_file() or output.read_text(encoding="utf-8") != text:
        output.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
