"""Processes of Python: fresh ones, modules that these must not load, and forks after imports."""

from __future__ import annotations

import json
import os
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


# Waits for programs, and runs each one in a fork of itself: in a process that ends as any other.
SERVE = """
import json, os, signal, sys
import pyarrow.dataset, pyarrow.parquet, sklearn.base, sklearn.utils.validation
import arboost.backend
for line in sys.stdin:
    code, sys.argv[1:], environment, output, error, seconds = json.loads(line)
    if os.fork() == 0:
        break
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
else:
    sys.exit()
for path, stream in (output, sys.stdout), (error, sys.stderr):
    os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream.fileno())
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.environ.update(environment)
signal.alarm(seconds)
exec(compile(code, "<program>", "exec"), {"__name__": "__main__"})
"""


class ForkServer:
    """A process that has imported what fits need, which takes longer than most programs."""

    def __init__(self, folder, **environment):
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE],
            env=os.environ | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, code, *arguments, timeout=120, **environment):
        """Run a program in a new process that has the imports already."""
        output, error = self.folder / "output", self.folder / "error"
        for path in output, error:
            path.write_text("")
        request = [
            textwrap.dedent(code),
            [*map(str, arguments)],
            environment,
            str(output),
            str(error),
            timeout,
        ]
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        status = int(self.process.stdout.readline())
        return subprocess.CompletedProcess(code, status, output.read_text(), error.read_text())

    def close(self):
        self.process.communicate()
