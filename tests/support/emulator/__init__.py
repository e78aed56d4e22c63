"""A CUDA device on the CPU: the driver's functions, and the kernels as fibers.

The kernels' sources are compiled by the compiler of the host into a library with the name of
CUDA's driver. Once it is loaded, the core finds it under that name instead of a driver, and all
code of the device runs: slowly, in a fixed order, with garbage in new memory and checks around
each array. Tests of the device need no GPU, and races aside, they see what a GPU would show;
`shuffled` shows races within a block, too, and results that depend on the order of the blocks.
"""

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from support.paths import ROOT

_HERE = Path(__file__).parent
_OPTIONS = [
    *("-std=c++20", "-O2", "-g", "-shared", "-fPIC", "-ffp-contract=off", "-U_FORTIFY_SOURCE"),
    *("-fno-semantic-interposition", "-Wno-unknown-pragmas", "-DARBOOST_ISA=device"),
    "-Wl,-soname,libcuda.so.1,-Bsymbolic",
]
_SUFFIXES = {".h", ".cuh", ".cu", ".cpp"}
_KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s+)?(\w+)\(")


@cache
def load():
    """Return the emulator, loaded in place of CUDA's driver; None where it cannot be built."""
    compiler = os.environ.get("CXX") or shutil.which("c++")
    if sys.platform != "linux" or not compiler or not (ROOT / "cpp").is_dir():
        return None
    library = ctypes.CDLL(str(_built(compiler)))
    for name in ("used_memory", "sent_bytes", "fetched_bytes"):
        getattr(library, f"emulator_{name}").restype = ctypes.c_size_t
    library.emulator_set_memory.argtypes = [ctypes.c_size_t]
    library.emulator_lose_device_after.argtypes = [ctypes.c_long]
    library.emulator_shuffle.argtypes = [ctypes.c_uint]
    return library


@contextmanager
def shuffled(seed: int) -> Iterator[None]:
    """Run blocks, warps and lanes in a random order of this seed, above 0."""
    library = load()
    library.emulator_shuffle(seed)
    try:
        yield
    finally:
        library.emulator_shuffle(0)


def _built(compiler):
    """Return the path of the library, built if these sources were not built before."""
    folders = [ROOT / "cpp", _HERE]
    sources = [p for folder in folders for p in sorted(folder.rglob("*")) if p.suffix in _SUFFIXES]
    digest = hashlib.sha256(" ".join([compiler, *_OPTIONS]).encode())
    for path in sources:
        digest.update(path.read_bytes())
    folder = Path(tempfile.gettempdir()) / f"arboost-emulator-{digest.hexdigest()[:16]}"
    library = folder / "libcuda.so.1"
    if library.exists():
        return library
    with tempfile.TemporaryDirectory() as scratch:
        names = [name for path in sources if path.suffix == ".cu" for name in _kernels(path)]
        Path(scratch, "kernels.inc").write_text("\n".join(f"KERNEL({name})" for name in names))
        includes = [f"-I{place}" for place in (ROOT / "cpp", _HERE, scratch)]
        built = Path(scratch, "libcuda.so.1")
        files = [str(_HERE / "driver.cpp"), str(_HERE / "threads.cpp")]
        subprocess.run([compiler, *_OPTIONS, *includes, "-o", str(built), *files], check=True)
        folder.mkdir(exist_ok=True)
        copy = folder / f"{os.getpid()}.so"
        shutil.copy(built, copy)
        copy.rename(library)  # at once, beside other processes
    return library


def _kernels(path):
    """Return the names of a source's kernels."""
    return _KERNEL.findall(path.read_text(encoding="utf-8"))
