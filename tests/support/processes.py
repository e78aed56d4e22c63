"""Fresh Python processes, and the modules that they must not load."""

from __future__ import annotations

import subprocess
import sys
import textwrap

HEAVY = (
    "sklearn",
    "scipy",
    "pandas",
    "polars",
    "pyarrow",
    "narwhals",
    "tqdm",
    "dask",
    "filelock",
    "platformdirs",
)


def run(code, *arguments):
    program = textwrap.dedent(code)
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()
