"""`describe`: the use of each column as fits have it, in lines that fit, all of it escaped."""

import warnings
import xml.etree.ElementTree as ET

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import arboost
from arboost import text as texts
from arboost.text import cut_to_width, display_width

N_ROWS = 300
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "id": np.arange(N_ROWS),
        "a very long name of a column that goes on and on": RNG.normal(size=N_ROWS),
        "city": ["Rome", "Oslo", None] * 100,
        "shop": [f"shop {i}" for i in RNG.integers(0, 150, N_ROWS)],
        "zip": ["00184", "0150"] * 150,
        "order": [f"o{i}" for i in range(N_ROWS)],
        "day": pd.date_range("2024-01-01", periods=N_ROWS),
        "seven": 7,
        "nothing": None,
        "holes": [1.5, np.nan, 0.25] * 100,
        "<b>価格</b>\n&": ["<script>", "x"] * 150,
    }
)
N_SHOPS = TABLE["shop"].nunique()


def described(X, **options):
    return {column.name: column for column in arboost.describe(X, **options).columns}


def test_columns():
    found = described(TABLE)
    assert list(found) == list(TABLE)
    facts = {
        name: (one.type, one.n_distinct, one.n_missing, one.use) for name, one in found.items()
    }
    assert facts["id"] == ("number", N_ROWS, 0, "key-like: 0 to 299")
    assert facts["city"] == ("category", 2, 100, "sets of levels: Oslo, Rome")
    assert facts["shop"][:3] == ("category", N_SHOPS, 0)
    assert facts["shop"][3].startswith("target encoding: shop ")
    assert facts["zip"][3] == "sets of levels, numbers as strings: 00184, 0150"
    assert facts["order"] == ("category", N_ROWS, 0, "ignored: all distinct")
    assert facts["day"] == ("datetime", N_ROWS, 0, "2024-01-01 to 2024-10-26, with weekday")
    assert facts["seven"] == ("number", 1, 0, "constant: 7")
    assert facts["nothing"] == ("category", 0, N_ROWS, "empty")
    assert facts["holes"] == ("number", 2, 100, "0.25 to 1.5")


def test_a_fit_does_what_is_described():
    y = RNG.normal(size=N_ROWS)
    with pytest.warns(arboost.DataWarning) as caught:
        model = arboost.DecisionTreeRegressor().fit(TABLE, y).model_
    assert str(caught[0].message).splitlines() == list(arboost.describe(TABLE).notes)
    for i, column in enumerate(described(TABLE).values()):
        levels = model.schema.levels_of(i)
        assert (levels is not None) == (column.type == "category")
        if levels is not None:
            encoded = levels.statistic is not None
            assert encoded == column.use.startswith("target encoding")
            assert (len(levels) == 0) == (column.use in ("empty", "ignored: all distinct"))


def test_options_and_other_tables():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert described(TABLE, categorical_features=["seven"])["seven"].use == "constant: 7"
        assert described([[1.0], [-9.0], [2.0]], missing=-9.0)["x0"].n_missing == 1
        assert arboost.describe(pl.from_pandas(TABLE)).columns == arboost.describe(TABLE).columns
    matrix = sparse.csr_array([[0.0, 2.0], [0.0, 0.0], [5.0, np.nan]])
    first, second = described(matrix).values()
    assert (first.n_distinct, first.n_missing, first.use) == (2, 0, "0 to 5")
    assert (second.n_distinct, second.n_missing, second.use) == (2, 1, "0 to 2")
    with pytest.raises(TypeError, match="read_csv"):
        arboost.describe("table.csv")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_lines_fit(width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    text = repr(arboost.describe(TABLE))
    assert max(map(display_width, text.splitlines())) <= width
    lines = text.splitlines()
    assert lines[0] == "300 rows, 11 columns"
    heads = lines[1]
    for line in lines[2:13]:
        end = heads.index("distinct") + len("distinct")
        taken = 0
        cut = ""
        for char in line:  # characters may be two columns wide
            taken += display_width(char)
            if taken > end:
                break
            cut += char
        assert cut[-1].isdigit(), line


def test_html_is_escaped():
    root = ET.fromstring(arboost.describe(TABLE)._repr_html_())
    cells = [cell.text or "" for cell in root.iter("td")]
    assert "<b>価格</b>\\n&" in cells
    assert any("<script>" in cell for cell in cells)
    assert not list(root.iter("script"))
    assert not list(root.iter("b"))


def test_wide_tables_are_cut():
    found = arboost.describe(np.zeros((2, 250)))
    assert len(found.columns) == 250
    assert repr(found).splitlines()[-1] == "  and 50 more columns"
    assert "and 50 more columns" in found._repr_html_()


def mixed_tables():
    names, cities = ["x", "code", "city"], ["Rome", "Oslo"]
    rows = [(1.0, "a", cities[0]), (2.0, 3, cities[1]), (3.0, None, cities[0]), (4.0, "a", None)]
    frame = pd.DataFrame(rows, columns=names, dtype=object)
    yield "pandas", frame.astype({"x": float})
    yield "dict", {name: [row[i] for row in rows] for i, name in enumerate(names)}
    yield "dicts", [dict(zip(names, row, strict=True)) for row in rows]
    yield "array", frame.to_numpy()


@pytest.mark.parametrize(("kind", "table"), list(mixed_tables()))
def test_a_mixed_column_is_described_and_not_raised(kind, table):
    with pytest.raises(TypeError, match="values of several kinds"):
        arboost.DecisionTreeRegressor().fit(table, range(4))
    found = arboost.describe(table)
    assert [one.type for one in found.columns] == ["number", "mixed", "category"]
    mixed = found.columns[1]
    assert mixed.name == ("x1" if kind == "array" else "code")
    assert (mixed.n_distinct, mixed.n_missing) == (2, 1)
    assert mixed.use == "refused by fit: str, int"
    assert found.n_rows == 4
    (note,) = found.notes
    assert "'a' (str) and 3 (int)" in note
    assert "Turn all of them into strings, or all into numbers" in note


def test_other_refusals_are_raised():
    with pytest.raises(ValueError, match="different lengths"):
        arboost.describe({"a": [1, 2], "b": [1, 2, 3]})
    with pytest.raises(ValueError, match="0 sample"):
        arboost.describe(pd.DataFrame({"a": []}))


@pytest.mark.parametrize("text", ["a plain text", "価格が高い", "e\u0301te\u0301 価", "a  b  c"])
def test_texts_are_cut_to_a_width(text):
    for width in range(1, display_width(text)):
        kept = cut_to_width(text, width)[:-1]
        assert text.startswith(kept)
        assert display_width(kept) < width
        following = text[len(kept) :].lstrip()[0]
        spaces = len(text[len(kept) :]) - len(text[len(kept) :].lstrip())
        assert display_width(kept) + spaces + display_width(following) >= width
    assert cut_to_width(text, display_width(text)) == text


def test_each_character_of_a_long_value_is_measured_twice_at_most(monkeypatch):
    measured = []
    monkeypatch.setattr(texts, "_width_of_char", lambda char: measured.append(char) or 1)
    long = "x" * 20_000
    described = arboost.describe(pd.DataFrame({"text": [long, "b"] * 20}))
    assert max(map(len, str(described).splitlines())) <= 100
    assert len(measured) < 3 * len(long)
