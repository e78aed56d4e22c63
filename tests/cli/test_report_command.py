"""``arboost report``: a page of files, its options, and its errors."""

import json
import webbrowser

import pytest

from support.command_line import run, run_failing


def test_page_is_written(here):
    result = run("report", "labels.arb", "rows.csv", "-o", "page.html", "--train", "rows.csv")
    assert result.code == 0, result.err
    assert "wrote page.html" in result.err
    text = (here / "page.html").read_text()
    assert '"target":"label"' in text
    assert '"n_train_rows":300' in text


def test_default_output_and_json(here):
    result = run(
        *("report", "prices.arb", "rows.csv", "--segment", "city", "--weight", "w", "--json"),
        *("--title", "Prices"),
    )
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert found["output"] == "report.html"
    assert found["bytes"] == (here / "report.html").stat().st_size
    assert found["rows"] == 300
    assert set(found["scores"]) == {"RMSE", "MAE", "R²"}
    assert "<title>Prices</title>" in (here / "report.html").read_text()


def test_two_models(here):
    result = run("report", "prices.arb", "rows.csv", "--compare", "prices.arb", "-q")
    assert result.code == 0, result.err
    assert result.err == ""
    assert '"comparison":{"names"' in (here / "report.html").read_text()


@pytest.mark.parametrize(
    ("model", "shown"),
    [
        ("gradient_boosting", '"note":"Recorded during the fit'),
        ("adaboost", '"theory":{"kind":"adaboost"'),
        ("random_forest", '"forest":{"oob":{"x":[1,'),
    ],
)
def test_page_shows_the_history_of_the_fit(model, shown, here):
    columns = ("--ignore", "id,when,w,price")
    result = run("train", "rows.csv", "-t", "label", "-m", model, *columns, "-q", "-o", "model.arb")
    assert result.code == 0, result.err
    assert run("report", "model.arb", "rows.csv", "-q").code == 0
    assert shown in (here / "report.html").read_text()


def test_page_is_opened(here, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: bool(opened.append(address)) or True)
    assert run("report", "prices.arb", "rows.csv", "--open", "-q").code == 0
    assert opened == [(here / "report.html").resolve().as_uri()]
    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    result = run("report", "prices.arb", "rows.csv", "--open")
    assert result.code == 0
    assert "no browser could be started" in result.err


def test_wrong_command_lines(here):
    before = sorted(here.iterdir())
    for code, text, arguments in (
        (2, "must end in .html", ["labels.arb", "rows.csv", "-o", "page.txt"]),
        (2, "--segment names 'zz'", ["labels.arb", "rows.csv", "--segment", "zz"]),
        (2, "n_jobs=-5", ["labels.arb", "rows.csv", "--jobs", "-5"]),
        (3, "no file or folder 'no.csv'", ["labels.arb", "no.csv"]),
        (3, "'zz'", ["labels.arb", "rows.csv", "--target", "zz", "-q"]),
        (4, "not an arboost model", ["labels.arb", "rows.csv", "--compare", "rows.csv"]),
        (4, "no.arb", ["no.arb", "rows.csv"]),
        (5, "does not exist", ["labels.arb", "rows.csv", "-o", "no/page.html"]),
    ):
        found, line = run_failing("report", *arguments, "-q")
        assert (found, text in line) == (code, True), line
    found, line = run_failing("report", "labels.arb", "rows.csv", "--compare", "prices.arb", "-q")
    assert found == 3
    assert "compare is a regressor" in line
    assert sorted(here.iterdir()) == before
