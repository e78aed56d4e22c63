"""Python processes with the core of a chosen instruction set, shared by all tests of a session.

The core reads ARBOOST_ISA once, when it is loaded, so each instruction set needs a process of its
own. Starting one and importing scikit-learn takes longer than most programs that run in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

from support.paths import TESTS

SERVE = """
import contextlib, io, json, sys, traceback
for line in sys.stdin:
    code, sys.argv[1:] = json.loads(line)
    printed, error = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(code, "<program>", "exec"), {"__name__": "__main__"})
        except BaseException:
            error = traceback.format_exc()
    print(json.dumps([printed.getvalue(), error]), flush=True)
"""


class InstructionSets:
    """Processes by instruction set, each started at its first use."""

    def __init__(self):
        self.processes = {}

    def run(self, isa, code, *arguments):
        """Return the text that a Python program prints.

        Parameters
        ----------
        isa : str or None
            Value of ARBOOST_ISA; None leaves the choice to the library.
        code : str
            The program. It can import the modules of tests/support.
        *arguments
            Values of ``sys.argv[1:]``.
        """
        if isa not in self.processes:
            self.processes[isa] = self._start(isa)
        process = self.processes[isa]
        process.stdin.write(json.dumps([textwrap.dedent(code), [*map(str, arguments)]]) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        assert line, f"the process of instruction set {isa} ended with {process.wait()}"
        printed, error = json.loads(line)
        assert error is None, error
        return printed

    def _start(self, isa):
        env = {name: value for name, value in os.environ.items() if name != "ARBOOST_ISA"}
        if isa is not None:
            env["ARBOOST_ISA"] = isa
        env["PYTHONPATH"] = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
        return subprocess.Popen(
            [sys.executable, "-c", SERVE],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self):
        for process in self.processes.values():
            process.communicate()
