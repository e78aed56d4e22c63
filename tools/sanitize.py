"""Run tests with a core that is built with AddressSanitizer and UBSan.

Usage: python tools/sanitize.py BUILD_FOLDER [arguments of pytest]

BUILD_FOLDER is the folder of a build with -DARBOOST_SANITIZE=ON. A package of its core and the
Python sources is written there, and the tests run with the sanitizers' run-time libraries loaded
first. Any out-of-bounds access or undefined behaviour ends the run with a report.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Tests that read files of any origin and traverse their trees.
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
    """Build the package, run the tests and return their exit status."""
    build = Path(sys.argv[1]).resolve()
    arguments = sys.argv[2:] or [str(ROOT / "tests" / name) for name in TESTS]
    environment = os.environ | {
        "PYTHONPATH": str(package(build)),
        "LD_PRELOAD": " ".join(runtime(compiler(build))),
        # Python keeps memory until exit, so leaks are not checked. Sizes in hostile files must
        # be refused before memory is allocated; 4 GB is more than any test needs.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=0:max_allocation_size_mb=4096",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONMALLOC": "malloc",  # so that Python's allocations are checked, too
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def package(build: Path) -> Path:
    """Return a folder for PYTHONPATH, with the sources and the core of this build."""
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

    The C++ library is among them: the sanitizer looks up its exception functions at the start, and
    Python itself does not load it.
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
            f"{compiler} has no {', '.join(missing)}, which the sanitizers need. Use g++: "
            "CXX=g++ make sanitize."
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
