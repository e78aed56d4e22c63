"""CSV files with other delimiters and decimal commas, in every command that reads tables."""

import pytest

from support.command_line import run, run_failing

TRAIN = ["-t", "label", "--ignore", "id,when,price,w", "--n-estimators", "5"]
SAID = "are separated by ';'"


@pytest.fixture
def semicolons(here):
    """The table with semicolons between columns; the same with decimal commas."""
    text = (here / "rows.csv").read_text().replace(",", ";")
    (here / "semicolons.csv").write_text(text)
    (here / "commas.csv").write_text(text.replace(".", ","))
    return here


def _train(data, *args):
    result = run("train", data, *TRAIN, *args)
    assert result.code == 0, result.err
    return result


@pytest.mark.parametrize("limit", [[], ["--memory-limit", "1GB"]], ids=["memory", "batches"])
@pytest.mark.parametrize(
    ("data", "options"),
    [
        ("semicolons.csv", []),
        ("semicolons.csv", ["--delimiter", ";"]),
        ("commas.csv", ["--decimal", ","]),
        ("commas.csv", ["--delimiter", ";", "--decimal", ","]),
    ],
)
def test_same_model_as_with_commas(data, options, limit, semicolons):
    _train("rows.csv", "-o", "one.arb", *limit)
    result = _train(data, "-o", "two.arb", *options, *limit)
    assert (semicolons / "one.arb").read_bytes() == (semicolons / "two.arb").read_bytes()
    assert result.err.count(f"the columns of {data} {SAID}") == ("--delimiter" not in options)


@pytest.mark.parametrize(
    "command",
    [
        "evaluate prices.arb DATA",
        "explain prices.arb DATA",
        "explain prices.arb DATA --row 3",
        "explain prices.arb DATA -o out.csv",
        "predict prices.arb DATA -o out.csv --keep id",
        "report prices.arb DATA -o out.html --train DATA",
        "inspect DATA",
        "compare DATA -t price --ignore label --models decision_tree --folds 2",
        "tune DATA -t price --ignore label -m decision_tree --trials 2",
    ],
)
def test_every_command_finds_the_delimiter(command, semicolons):
    (semicolons / "other").mkdir()
    (semicolons / "semicolons.csv").rename(semicolons / "other" / "rows.csv")
    found = []
    for data in ("rows.csv", "other/rows.csv"):
        result = run(*command.replace("DATA", data).split())
        assert result.code == 0, result.err
        assert (SAID in result.err) == (data != "rows.csv")
        written = semicolons / "out.csv"
        found.append(written.read_text() if written.exists() else result.out)
    if not command.startswith(("compare", "tune")):  # which print times
        assert found[0] == found[1]


def test_standard_input(semicolons):
    text = (semicolons / "commas.csv").read_bytes()
    args = ("prices.arb", "-", "--format", "csv", "--decimal", ",", "-o", "-")
    piped = run("predict", *args, stdin=text)
    assert f"the columns of the standard input {SAID}" in piped.err
    assert piped.out == run("predict", "prices.arb", "rows.csv", "-o", "-").out


def test_predictions_have_commas_and_points(semicolons):
    run("predict", "prices.arb", "commas.csv", "--decimal", ",", "-o", "out.csv", "--keep", "id")
    first, second = (semicolons / "out.csv").read_text().splitlines()[:2]
    assert first == '"id","prediction"'
    assert "." in second


@pytest.mark.parametrize("tab", ["tab", r"\t", "\t"])
def test_names_of_the_tab(tab, semicolons):
    text = (semicolons / "rows.csv").read_text().replace(",", "\t")
    (semicolons / "tabs.csv").write_text(text)
    assert run("inspect", "tabs.csv", "--delimiter", tab).code == 0


@pytest.mark.parametrize("value", ["", ";;", '"', "'", "\n", "\r", "é", "a", "1", ".", "-"])
def test_bad_delimiters(value, semicolons):
    code, line = run_failing("inspect", "semicolons.csv", "-q", "--delimiter", value)
    assert code == 2
    assert "is not a delimiter. Use one character" in line


@pytest.mark.parametrize(
    ("line", "code", "part"),
    [
        ("inspect semicolons.csv --decimal x", 2, "--decimal"),
        ("inspect commas.csv", 3, "Add --decimal , to read them as numbers, or --decimal ."),
        ("predict prices.arb commas.csv -o out.csv", 3, "Add --decimal , to read them"),
        ("train semicolons.csv -t label --delimiter |", 3, "--delimiter names the character"),
        ("train semicolons.csv -t label --delimiter ,", 3, "--delimiter names the character"),
        ("train both.csv -t y", 3, "--delimiter names the character"),
        ("train ragged.csv -t y", 3, "line 3: it has 1 value, but the header has 2 columns"),
        ("train unquoted.csv -t y --decimal ,", 3, "line 2: it has 3 values"),
        ("predict prices.arb integers.csv -o out.csv", 3, "line 120002, column 2 ('size')"),
        (
            "predict prices.arb integers.csv -o out.csv",
            3,
            "Add --decimal , to read them as numbers",
        ),
        ("train integers.csv -t size", 3, "'size' of the file 'integers.csv' holds numbers with"),
        ("train rows.parquet -t y --delimiter ;", 2, "is for CSV and TSV files"),
        ("train rows.parquet -t y --decimal ,", 2, "is for CSV and TSV files"),
    ],
)
def test_wrong_dialects(line, code, part, semicolons):
    from pyarrow import csv, parquet

    parquet.write_table(csv.read_csv("rows.csv"), "rows.parquet")
    (semicolons / "both.csv").write_text("a;b|y\n1;2|3\n")
    (semicolons / "ragged.csv").write_text("a;y\n1;2\n3\n")
    (semicolons / "unquoted.csv").write_text("a,y\n1,5,2\n")
    rows = "".join(f"{i};{i};Rome\n" for i in range(120_000))  # more than a block
    (semicolons / "integers.csv").write_text(f"id;size;city\n{rows}0;1,5;Oslo\n")
    found, message = run_failing(*line.split(), "-q")
    assert found == code, message
    assert part in message
