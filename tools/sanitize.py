"""Run tests with a core that AddressSanitizer and UBSan watch.

Usage: python tools/sanitize.py BUILD_FOLDER [arguments of pytest]

BUILD_FOLDER is that of a build with -DARBOOST_SANITIZE=ON. A package of its core and the Python
sources is put there, and the tests run with the compiler's run-time library loaded before all
others. Any access outside of memory, and anything undefined, ends the run with a report.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What reads bytes that may come from anywhere, and what walks what was read.
TESTS = (
    "formats/test_packed_trees.py",
    "formats/test_fuzz_files.py",
    "formats/test_fuzz_json.py",
    "formats/test_json_model.py",
    "model/test_leaf_distributions.py",
    "grow/test_levels.py",
    "formats/test_mapped.py",
    "model/test_median.py",
    "model/test_model.py",
    "model/test_packed.py",
    "model/test_predict.py",
    "formats/test_model_file.py",
    "formats/test_save_means.py",
    "formats/test_save_medians.py",
    "formats/test_save_sets.py",
    "formats/test_save_values.py",
    "formats/test_saved_models.py",
)


def main() -> int:
    """Make the package, run the tests and return their exit status."""
    build = Path(sys.argv[1]).resolve()
    wanted = sys.argv[2:] or [str(ROOT / "tests" / name) for name in TESTS]
    environment = os.environ | {
        "PYTHONPATH": str(package(build)),
        "LD_PRELOAD": " ".join(runtime(compiler(build))),
        # Python keeps memory until its end: that is no leak of ours. Sizes that hostile files name
        # are to be refused before anybody asks for the memory; 4 GB is more than any test needs.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=0:max_allocation_size_mb=4096",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # so that what Python allocates is watched, too
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *wanted]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def package(build: Path) -> Path:
    """Return a folder for the module path, with the sources and the core of this build."""
    folder = build / "package"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(
        ROOT / "src",
        folder,
        ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__", "*.egg-info"),
    )
    for core in build.glob("_core*.so"):
        shutil.copy(core, folder / "arboost")
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    info = folder / f"arboost-{version[1]}.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: arboost\nVersion: {version[1]}\n"
    )
    return folder


def compiler(build: Path) -> str:
    """Return the compiler of a build."""
    cache = (build / "CMakeCache.txt").read_text()
    found = re.search(r"^CMAKE_CXX_COMPILER:[A-Z]+=(.+)$", cache, re.MULTILINE)
    assert found is not None
    return found[1]


def runtime(compiler: str) -> list[str]:
    """Return the libraries to load first.

    That of C++ is among them, because the sanitizer looks for what throws exceptions when it
    starts, and Python itself has no C++.
    """
    names = ("libasan.so", "libubsan.so", "libstdc++.so")
    found = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in names
    ]
    missing = [name for name in found if not os.path.isabs(name)]
    if missing:
        raise SystemExit(
            f"{compiler} has no {', '.join(missing)}, which watches memory. Use g++: "
            "CXX=g++ make sanitize."
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
