"""Run tests and random fits with a core that is built with sanitizers.

Usage: python tools/sanitize.py BUILD_FOLDER [--seconds N] [--seed N] [--fits] [arguments of pytest]

BUILD_FOLDER is the folder of a build with -DARBOOST_SANITIZE=address (AddressSanitizer and UBSan)
or =thread (ThreadSanitizer). A package of its core and the Python sources is written there, and the
programs run with it and with the sanitizers' run-time libraries loaded first. Any access outside of
memory, undefined behaviour or data race ends the run with a report.

address runs the tests of file reading and tree traversal, and random fits one by one; with --fits,
or arguments of pytest, only those. thread runs several random fits at once, each with several
threads, and several predictions by each model. Each seed has a process of its own.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Tests that read files of any origin and traverse their trees.
TESTS = (
    "models/files/test_packed_trees.py",
    "models/files/test_fuzz_files.py",
    "models/files/test_fuzz_json.py",
    "models/files/test_json_model.py",
    "trees/test_leaf_distributions.py",
    "trees/test_levels.py",
    "models/files/test_mapped.py",
    "models/test_combinations.py",
    "models/test_model.py",
    "models/test_packed.py",
    "models/test_prediction.py",
    "models/files/test_model_file.py",
    "models/files/test_earlier_versions.py",
)


LIBRARIES = {"address": ("libasan.so", "libubsan.so"), "thread": ("libtsan.so",)}
FITS_AT_ONCE = 4
SHOWN_LINES = 200  # of a report
# An editable install finds arboost before PYTHONPATH does; Python imports this module at its start.
PATHS_FIRST = """\
import sys
from importlib.machinery import PathFinder

sys.meta_path.insert(0, PathFinder)
"""


def main() -> int:
    """Build the package, run tests and fits, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("--seconds", type=float, default=300, help="of CPU time for random fits")
    parser.add_argument("--seed", type=int, help="of the random fits; 0 and one of the day if none")
    parser.add_argument("--fits", action="store_true", help="no tests, random fits only")
    args, tests = parser.parse_known_args()
    build = args.build.resolve()
    kind = setting(build, "ARBOOST_SANITIZE")
    if kind not in LIBRARIES:
        raise SystemExit(f"{build} is not a build with ARBOOST_SANITIZE=address or thread")
    environment = environment_of(build, kind)
    check_core(build, kind, environment)
    status = 0
    if tests or (kind == "address" and not args.fits):
        chosen = tests or [str(ROOT / "tests" / name) for name in TESTS]
        command = [*python(kind), "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
        status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    seeds = [0, int(time.time()) // 86400] if args.seed is None else [args.seed]
    if tests or status != 0:
        return status
    with ThreadPoolExecutor() as pool:
        seconds = args.seconds / len(seeds)
        runs = [pool.submit(random_fits, build, kind, seed, seconds, environment) for seed in seeds]
        return max((run.result() for run in runs), key=abs)


def random_fits(
    build: Path, kind: str, seed: int, seconds: float, environment: dict[str, str]
) -> int:
    """Run random fits; print the report of a failure, and return the exit status."""
    options = ["--seed", str(seed), "--seconds", str(seconds)]
    if kind == "thread":
        options += ["--together", str(FITS_AT_ONCE)]
    command = [*python(kind), "-m", "support.random_fits", *options]
    log = build / f"fits-{seed}.log"
    with log.open("w") as file:
        result = subprocess.run(
            command, cwd=ROOT, env=environment, stdout=file, stderr=file, check=False
        )
    lines = log.read_text(errors="replace").splitlines()
    print("\n".join(lines[-1 if result.returncode == 0 else -SHOWN_LINES :]))
    if result.returncode != 0:
        print(f"== random fits of seed {seed} failed with status {result.returncode}: {log}")
    return result.returncode


def environment_of(build: Path, kind: str) -> dict[str, str]:
    """Return the environment of programs with the core of a build."""
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([str(package(build)), str(ROOT / "tests")]),
        "LD_PRELOAD": " ".join(runtime(setting(build, "CMAKE_CXX_COMPILER"), kind)),
        # Python keeps memory until exit, so leaks are not checked. Sizes in hostile files must
        # be refused before memory is allocated; 4 GB is more than any test needs.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=0:max_allocation_size_mb=4096",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": "halt_on_error=1",
        "PYTHONMALLOC": "malloc",  # so that Python's allocations are checked, too
    }


def python(kind: str) -> list[str]:
    """Return the command that starts Python."""
    if kind == "thread" and shutil.which("setarch"):
        return ["setarch", "--addr-no-randomize", sys.executable]  # shadow memory has fixed places
    return [sys.executable]


def check_core(build: Path, kind: str, environment: dict[str, str]) -> None:
    """End the program unless the core of the build is the one that is imported."""
    command = [*python(kind), "-c", "from arboost import _core; print(_core.__file__)"]
    imported = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(imported).is_relative_to(build):
        raise SystemExit(f"{imported} is imported instead of the core in {build}")


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
    (folder / "sitecustomize.py").write_text(PATHS_FIRST)
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    info = folder / f"arboost-{version[1]}.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(
        f"Metadata-Version: 2.1\nName: arboost\nVersion: {version[1]}\n"
    )
    return folder


def setting(build: Path, name: str) -> str:
    """Return a setting of a build."""
    cache = (build / "CMakeCache.txt").read_text()
    found = re.search(rf"^{name}:[A-Z]+=(.+)$", cache, re.MULTILINE)
    return "" if found is None else found[1]


def runtime(compiler: str, kind: str) -> list[str]:
    """Return the libraries to load first.

    The C++ library is among them: the sanitizer looks up its exception functions at the start, and
    Python itself does not load it.
    """
    found = [
        subprocess.run(
            [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in (*LIBRARIES[kind], "libstdc++.so")
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
