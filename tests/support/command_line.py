"""Command lines of arboost, run in this process: exit code, standard output and standard error."""

import io
import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass

from arboost.cli import main


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str
    raw: bytes


def run(*args, stdin=b""):
    """Run a command line; no stream is a terminal."""
    out, err = io.BytesIO(), io.BytesIO()
    with _streams(io.BytesIO(stdin), out, err):
        code = main([os.fspath(one) for one in args])
    shown = out.getvalue().decode(errors="replace")
    return Result(int(code), shown, err.getvalue().decode(), out.getvalue())


@contextmanager
def _streams(stdin, out, err):
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(stdin, encoding="utf-8")
    sys.stdout = io.TextIOWrapper(out, encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(err, encoding="utf-8", write_through=True)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            stream.detach()
        sys.stdin, sys.stdout, sys.stderr = before


def run_failing(*args, stdin=b""):
    """Run a command line that must fail: one line on the standard error, nothing on the other."""
    result = run(*args, stdin=stdin)
    assert result.out == "", result
    lines = result.err.splitlines()
    assert len(lines) == 1, result
    assert lines[0].startswith("arboost: "), result
    assert "Traceback" not in result.err
    assert "unexpected error" not in result.err, result
    return result.code, lines[0]
