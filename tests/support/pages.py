"""Blocks of code of the pages: Python and command lines, run in the order of the page."""

import contextlib
import doctest
import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from support.paths import ROOT

PAGES = sorted((ROOT / "docs").rglob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXIT = re.compile(r"\s+# exits with (\d+)$")
FILE = re.compile(r"# ([\w.-]+\.\w+)\n")
FILES = ("toml", "csv", "json")  # written where their first line is a comment with a name


def prose(text):
    """Return the text of a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """A command line of a page: the line, its exit code, and the output on the page."""

    line: str
    code: int
    output: str


def blocks(text):
    """Return language and content of each block of code."""
    return BLOCK.findall(text)


def commands(block):
    """Return the command lines of a block; a line that ends in a backslash is continued."""
    found = []
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        joined = re.sub(r" \\\n\s*", " ", part)
        line, _, output = joined.partition("\n")
        fails = EXIT.search(line)
        code = int(fails[1]) if fails else 0
        found.append(Command(EXIT.sub("", line), code, output.rstrip()))
    return found


def matches(expected, printed):
    """Return whether output is as on the page: "..." is any text, runs of space are one."""
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    return doctest.OutputChecker().check_output(f"{expected}\n", f"{printed.rstrip()}\n", flags)


def run_command(command):
    """Run an `arboost` command in this process; check its exit code and output."""
    from arboost.cli import main

    out, both = io.StringIO(), io.StringIO()

    class Tee(io.StringIO):
        def write(self, text):
            both.write(text)
            return out.write(text)

    with contextlib.redirect_stdout(Tee()), contextlib.redirect_stderr(both):
        code = main(shlex.split(command.line)[1:])
    assert code == command.code, f"$ {command.line}\n{both.getvalue()}"
    shown = out.getvalue(), both.getvalue()
    if command.output and not any(matches(command.output, printed) for printed in shown):
        raise AssertionError(f"$ {command.line}\nprinted:\n{both.getvalue()}")


def run_python(code, name, names):
    """Run a block of Python; its output is that of its comments "# prints:"."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, name, "exec"), names)
    expected = re.findall(r"^# prints: ?(.*)$", code, re.MULTILINE)
    assert printed.getvalue().splitlines() == expected


def run_page(page):
    """Run all blocks of a page, in the current folder; return the number of those that ran."""
    names, n_run = {}, 0
    for number, (language, content) in enumerate(blocks(page.read_text("utf-8"))):
        written = FILE.match(content)
        if language == "python":
            run_python(content, f"{page.name}, block {number}", names)
        elif language in FILES and written:
            Path(written[1]).write_text(content, "utf-8")
        elif language == "console":
            for command in commands(content):
                if command.line.startswith("arboost "):
                    run_command(command)
        else:
            continue
        n_run += 1
    return n_run
