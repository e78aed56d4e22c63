"""The runner of the blocks of pages: it fails where a page is wrong."""

import pytest

from support import pages

COMMANDS = """\
$ arboost inspect \\
    model.arb --json
{...}

$ pip install arboost
$ arboost train no.csv --target y  # exits with 3
"""


def write(folder, text):
    page = folder / "page.md"
    page.write_text(text, "utf-8")
    return page


def test_commands_of_a_block():
    first, second, third = pages.commands(COMMANDS)
    assert first == pages.Command("arboost inspect model.arb --json", 0, "{...}")
    assert second == pages.Command("pip install arboost", 0, "")
    assert third == pages.Command("arboost train no.csv --target y", 3, "")


def test_output_of_a_command():
    assert pages.matches("score  ...\ndone", "score 0.25\n...\ndone\n")
    assert pages.matches("a\n...\nz", "a\nb\nc\nz")
    assert not pages.matches("score 0.25", "score 0.26")


def test_python_prints_its_comments(tmp_path):
    good = write(tmp_path, "```python\nprint(1 + 1)\n# prints: 2\n```\n```py\n1 / 0\n```\n")
    assert pages.run_page(good) == 1
    wrong = write(tmp_path, "```python\nprint(1 + 1)\n# prints: 3\n```\n")
    with pytest.raises(AssertionError):
        pages.run_page(wrong)


def test_files_of_a_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = "```toml\n# a.toml\nx = 1\n```\n```toml\nx = 2\n```\n"
    assert pages.run_page(write(tmp_path, page)) == 1
    assert (tmp_path / "a.toml").read_text("utf-8") == "# a.toml\nx = 1\n"


def test_command_lines_of_a_page(tmp_path, monkeypatch):
    pytest.importorskip("click")
    monkeypatch.chdir(tmp_path)
    assert (
        pages.run_page(write(tmp_path, "```console\n$ arboost --version\narboost ...\n```\n")) == 1
    )
    fails = "```console\n$ arboost train no.csv --target y{}\n```\n"
    assert pages.run_page(write(tmp_path, fails.format("  # exits with 3"))) == 1
    with pytest.raises(AssertionError, match=r"no\.csv"):
        pages.run_page(write(tmp_path, fails.format("")))
    with pytest.raises(AssertionError, match="printed"):
        pages.run_page(write(tmp_path, "```console\n$ arboost --version\nother\n```\n"))
