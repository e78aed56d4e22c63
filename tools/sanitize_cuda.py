"""Run small fits of each kind on a GPU under compute-sanitizer.

Usage: python tools/sanitize_cuda.py [options of compute-sanitizer]

memcheck ends the run at an access outside of memory, racecheck at a race in shared memory. Without
a GPU or without compute-sanitizer, of CUDA's toolkit, nothing is checked, and a line says so.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from arboost.backend import core
from arboost.data.cuda import device_number
from arboost.errors import DeviceError

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Run both tools, and return the exit status."""
    try:
        device_number("cuda")
        found = len(core.cuda_devices()) > 0
    except DeviceError:
        found = False
    sanitizer = shutil.which("compute-sanitizer") or shutil.which(
        "compute-sanitizer", path="/usr/local/cuda/bin"
    )
    if not found or sanitizer is None:
        print(f"no {'compute-sanitizer' if found else 'GPU'}: the kernels are not checked")
        return 0
    environment = os.environ | {"PYTHONPATH": str(ROOT / "tests")}
    fits = [sys.executable, "-m", "support.device_fits"]
    for tool in ("memcheck", "racecheck"):
        print(f"== {tool}", flush=True)
        options = ["--tool", tool, "--error-exitcode", "1", *sys.argv[1:]]
        done = subprocess.run([sanitizer, *options, *fits], env=environment, check=False)
        if done.returncode != 0:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())
