"""Output for a reader: narrow terminals, next commands, and notes that nothing is odd silently."""

import builtins

import pytest

from arboost.cli import main
from support.command_line import run

COMMANDS = [
    "evaluate labels.arb rows.csv",
    "explain labels.arb rows.csv",
    "explain prices.arb rows.csv --row 3",
    "compare rows.csv -t label --models decision_tree,baseline --folds 2",
    "train rows.csv -t label --n-estimators 3 -o new.arb",
]


@pytest.mark.parametrize("width", [80, 60, 50])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_number_is_cut(command, width, here, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    result = run(*command.split(), "-q")
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    tables = [line for line in lines if not line.startswith(("next:", "      arboost", "Binning"))]
    assert max(map(len, tables)) <= width
    cut = [word for line in lines for word in line.split() if word.endswith("…")]
    assert not [word for word in cut if any(one.isdigit() for one in word)], result.out


def test_wide_terminals_have_all_columns(here, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert "95 % interval" in run("evaluate", "labels.arb", "rows.csv", "-q").out
    assert "█" in run("explain", "labels.arb", "rows.csv", "-q").out
    monkeypatch.setenv("COLUMNS", "50")
    assert "95 % interval" not in run("evaluate", "labels.arb", "rows.csv", "-q").out


def test_next_commands_have_the_format(here):
    text = (here / "rows.csv").read_text().replace(",", "\t")
    (here / "rows.txt").write_text(text)
    options = ["--format", "csv", "--delimiter", "tab", "--decimal", "."]
    result = run("train", "rows.txt", *options, "-t", "label", "-o", "m.arb", "-m", "decision_tree")
    assert result.code == 0, result.err
    shown = "--format csv --delimiter tab --decimal ."
    assert f"arboost predict m.arb NEW.csv {shown} -o predictions.csv" in result.out
    assert f"arboost explain m.arb rows.txt {shown}\n" in result.out


def test_missing_columns_are_named_together(here):
    (here / "other.csv").write_text("size,town\n1.5,Rome\n")
    for command in ("predict labels.arb other.csv -o out.csv", "explain labels.arb other.csv"):
        result = run(*command.split())
        assert result.code == 3
        assert "other.csv has no column 'city', which the model needs." in result.err
    (here / "other.csv").write_text("x,y\n1.5,Rome\n")
    result = run("evaluate", "labels.arb", "other.csv", "-t", "y")
    assert "has no columns 'size', 'city', which the model needs." in result.err
    result = run("evaluate", "labels.arb", "other.csv")
    assert "other.csv has no column 'label', the target of the model." in result.err


def test_weights_that_are_a_feature(here):
    args = ["-t", "price", "--ignore", "label,id,when", "-o", "m.arb", "-m", "decision_tree"]
    assert run("train", "rows.csv", *args).code == 0
    result = run("evaluate", "m.arb", "rows.csv", "--weight", "w")
    assert result.code == 0, result.err


def test_times_of_strings_are_a_warning(here):
    args = ["-t", "price", "--time-column", "city", "-m", "decision_tree", "-o", "m.arb"]
    result = run("train", "rows.csv", *args)
    assert "warning: --time-column city holds strings" in result.err
    assert "alphabetical" in result.err


def test_interrupt_while_packages_are_imported(monkeypatch, capsys):
    real = builtins.__import__

    def interrupted(name, *args, **kwargs):
        if name == "click":
            raise KeyboardInterrupt
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", interrupted)
    assert main(["--help"]) == 130
    assert capsys.readouterr().err == "arboost: interrupted. Nothing was written.\n"


@pytest.mark.parametrize("command", ["train", "predict", "evaluate", "compare", "tune", "report"])
def test_help_begins_with_the_options_of_the_command(command):
    text = run(command, "--help").out
    first, second = text.index("\nOptions:"), text.index("\nInput:")
    run_options = text[text.index("\nRun:") :]
    assert first < second < text.index("\nRun:")
    assert "--help" in run_options
    assert "--quiet" in run_options
    assert "--delimiter" in text[second:]
    assert text.count("--delimiter") == 1
