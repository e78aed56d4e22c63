"""The run of a command line: help without imports, exit codes, completion, signals, terminals."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

import pytest
from click.shell_completion import ShellComplete

from arboost.cli.commands import COMMANDS, cli
from arboost.cli.errors import EXIT_CODES
from support.command_line import run

HEAVY = ("numpy", "rich", "pyarrow", "sklearn", "arboost._core", "pandas", "scipy")


def _python(*args, **options):
    command = [sys.executable, "-m", "arboost", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


POSIX = pytest.mark.skipif(sys.platform == "win32", reason="bash, signals and terminals of POSIX")


class TestHelp:
    def test_imports_click_only(self):
        code = (
            "import sys\nfrom arboost.cli import main\n"
            f"for line in [[], *([name] for name in {list(COMMANDS)!r})]:\n"
            "    code = main([*line, '--help'])\n"
            f"    loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
            "    assert (code, loaded) == (0, []), line\n"
        )
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    def test_commands_and_exit_codes(self):
        text = run("--help").out
        for name in COMMANDS:
            assert f"  {name} " in text
        for code in EXIT_CODES:
            assert f"\n  {int(code)} " in text

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_has_help(self, name):
        result = run(name, "-h")
        assert result.code == 0
        assert f"Usage: arboost {name}" in result.out
        assert "--debug" in result.out

    def test_version(self):
        assert run("--version").out.startswith("arboost 0.")

    def test_no_command(self):
        assert run().out == run("--help").out


class TestProcess:
    def test_exit_codes(self, made, tmp_path):
        good = ("predict", made / "labels.arb", made / "rows.csv", "-o", tmp_path / "o.csv")
        assert _python(*good).returncode == 0
        assert _python("predict", made / "labels.arb", "nothing.csv", "-o", "-").returncode == 3

    def test_debug_shows_the_traceback(self):
        result = run("predict", "no.arb", "no.csv", "-o", "-", "--debug")
        assert "Traceback" in result.err
        assert result.err.splitlines()[-1].startswith("arboost: ")

    def test_unexpected_error(self, monkeypatch, here):
        def broken(*args, **options):
            raise AttributeError("nothing\nhere")

        monkeypatch.setattr("arboost.load", broken)
        result = run("inspect", "labels.arb")
        assert result.code == 1
        assert result.err.count("\n") == 1
        assert "AttributeError: nothing here" in result.err

    def test_without_the_extra(self):
        code = (
            "import sys\nsys.modules['click'] = None\nfrom arboost.cli import main\n"
            "raise SystemExit(main([]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "pip install 'arboost[cli]'" in done.stderr

    @POSIX
    def test_closed_pipe(self, made):
        line = f"{sys.executable} -m arboost predict labels.arb rows.csv -o - -q"
        done = subprocess.run(
            ["bash", "-c", f"{line} | true; echo ${{PIPESTATUS[0]}}"],
            capture_output=True,
            text=True,
            check=True,
            cwd=made,
        )
        assert done.stderr == ""
        assert done.stdout.strip() in ("0", "141")  # all of it may fit into the pipe

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a device of Linux")
    def test_full_standard_output(self, made):
        for args in (["inspect", "labels.arb"], ["predict", "labels.arb", "rows.csv", "-o", "-"]):
            line = f"{sys.executable} -m arboost {' '.join(args)} -q > /dev/full"
            done = subprocess.run(
                ["bash", "-c", line], capture_output=True, text=True, check=False, cwd=made
            )
            assert done.returncode == 5, done
            assert done.stderr.count("\n") == 1
            assert "No space left on device" in done.stderr

    @POSIX
    def test_closed_streams(self, made):
        line = f"{sys.executable} -m arboost inspect labels.arb >&- 2>&-"
        done = subprocess.run(["bash", "-c", line], check=False, cwd=made)
        assert done.returncode == 0

    def test_terminal_of_few_characters(self, made):
        args = ("explain", "labels.arb", "rows.csv", "--row", "1", "-q")
        done = _python(*args, cwd=made, env={**os.environ, "PYTHONIOENCODING": "ascii"})
        assert done.returncode == 0, done.stderr
        assert "#" in done.stdout
        assert "?" not in done.stdout

    def test_file_names_cannot_move_the_cursor(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        result = run("train", "a\x1b[2J\nb.csv", "-t", "y")
        assert result.code == 3
        assert result.err.count("\n") == 1
        assert "\x1b" not in result.err

    def test_interrupt_in_process(self, here, monkeypatch):
        def interrupted(*args, **options):
            raise KeyboardInterrupt

        monkeypatch.setattr("arboost.cli.training._Fits.fit", interrupted)
        result = run("train", "rows.csv", "-t", "label", "-q")
        assert (result.code, result.err.count("\n")) == (130, 1)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A table on which a fit takes some seconds."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    values = rng.normal(size=(100_000, 10))
    table = pa.table({f"x{i}": values[:, i] for i in range(10)} | {"y": values.sum(axis=1)})
    folder = tmp_path_factory.mktemp("large")
    parquet.write_table(table, folder / "rows.parquet")
    return folder


@POSIX
class TestSignals:
    @pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    def test_fit_ends_without_a_file(self, sent, code, large, tmp_path):
        shutil.copy(large / "rows.parquet", tmp_path)
        command = [sys.executable, "-m", "arboost", "train", "rows.parquet", "-t", "y"]
        options = ["-o", "model.arb", "--n-estimators", "100000", "--holdout", "0"]
        process = subprocess.Popen(
            [*command, *options], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        line = process.stderr.readline()  # the table is read
        while "task:" not in line:
            line = process.stderr.readline()
        time.sleep(0.5)
        process.send_signal(sent)
        _, err = process.communicate(timeout=60)
        # Python ends itself by the signal where Ctrl-C meets an `exec` of an import: shells show
        # 130 then, too.
        assert process.returncode in (code, -sent), err
        assert err.splitlines()[-1].endswith("Nothing was written.")
        assert os.listdir(tmp_path) == ["rows.parquet"]


def _in_terminal(args, cwd, columns=80):
    """Return the exit code, and the output in a terminal of this width."""
    import fcntl
    import pty
    import struct
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color"}
    for name in ("COLUMNS", "LINES", "NO_COLOR"):
        environment.pop(name, None)
    process = subprocess.Popen(
        [sys.executable, "-m", "arboost", *args],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=cwd,
        env=environment,
        close_fds=True,
    )
    os.close(follower)
    found = b""
    while True:
        ready, _, _ = select.select([leader], [], [], 60)
        try:
            data = os.read(leader, 65536) if ready else b""
        except OSError:  # the other end is closed
            data = b""
        if not data:
            break
        found += data
    os.close(leader)
    return process.wait(60), found.decode()


@POSIX
class TestTerminal:
    def test_progress_moves_and_goes_away(self, large, tmp_path):
        shutil.copy(large / "rows.parquet", tmp_path)
        args = ["train", "rows.parquet", "-t", "y", "-o", "m.arb", "--n-estimators", "150"]
        code, text = _in_terminal(args, tmp_path)
        assert code == 0, text
        assert "fitting" in text
        assert "\x1b[?25l" in text  # the cursor is hidden while the bar moves
        assert "\x1b[?25h" in text
        assert "150" in text
        assert "RMSE" in text

    def test_quiet(self, made):
        code, text = _in_terminal(["inspect", "rows.csv", "--json", "-q"], made)
        assert code == 0
        assert json.loads(text)["rows"] == 300


class TestCompletion:
    def _complete(self, words, incomplete):
        complete = ShellComplete(cli, {}, "arboost", "_ARBOOST_COMPLETE")
        return [item.value for item in complete.get_completions(words, incomplete)]

    def test_names(self, here):
        assert "train" in self._complete([], "tr")
        assert self._complete(["train", "rows.csv", "--model"], "random") == ["random_forest"]
        assert "learning_rate=" in self._complete(["train", "rows.csv", "--set"], "learn")
        words = ["train", "rows.csv", "--model", "random_forest", "--set"]
        assert self._complete(words, "subsam") == []
        words = ["train", "rows.csv", "--set"]
        assert self._complete(words, "grow_policy=leaf") == ["grow_policy=leafwise"]
        assert self._complete(["train", "rows.csv", "--target"], "la") == ["label"]
        assert "--holdout" in self._complete(["train"], "--hold")

    @pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
    def test_scripts(self, shell):
        result = run("completion", shell)
        assert result.code == 0
        assert "_ARBOOST_COMPLETE" in result.out

    def test_runs_in_the_process(self):
        variables = {"_ARBOOST_COMPLETE": "bash_complete", "COMP_WORDS": "arboost tr"}
        done = _python(env={**os.environ, **variables, "COMP_CWORD": "1"})
        assert "train" in done.stdout
