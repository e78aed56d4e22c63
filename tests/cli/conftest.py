"""A small table and models of it, made once."""

import shutil

import numpy as np
import pytest

from support.command_line import run


def _lines(n_rows=300):
    rng = np.random.default_rng(0)
    rows = ["id,size,city,when,price,label,w"]
    for i in range(n_rows):
        size, city = rng.normal(), rng.choice(["Rome", "Oslo", "Bonn"])
        price = 2 * size + (city == "Rome") + 0.1 * rng.normal()
        label = "high" if price > 0.3 else "low"
        day = f"2024-01-{1 + i * 28 // n_rows:02d}"
        rows.append(f"{i},{size:.4f},{city},{day},{price:.4f},{label},{rng.integers(1, 4)}")
    return rows


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """A folder with a table, a classifier and a regressor."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "rows.csv").write_text("\n".join(_lines()) + "\n")
    common = ["--ignore", "id,when,w", "-q", "--n-estimators", "5"]
    data = folder / "rows.csv"
    for name, target, other in (("labels.arb", "label", "price"), ("prices.arb", "price", "label")):
        result = run("train", data, "-t", target, "--ignore", other, "-o", folder / name, *common)
        assert result.code == 0, result.err
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    """A fresh current folder with copies of the table and the models."""
    for name in ("rows.csv", "labels.arb", "prices.arb"):
        shutil.copy(made / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path
