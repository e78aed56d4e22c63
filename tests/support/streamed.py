"""Tables of all kinds of columns, and their files."""

import numpy as np
import pandas as pd

N_ROWS = 1500


def frame(n_rows=N_ROWS, seed=0):
    """Return a table of all kinds of columns, with missing values, and three targets."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "real": rng.normal(size=n_rows),
            "narrow": rng.normal(size=n_rows).astype(np.float32),
            "few": rng.integers(0, 4, n_rows).astype(np.int8),
            "flag": rng.random(n_rows) < 0.2,
            "holes": np.where(rng.random(n_rows) < 0.3, np.nan, rng.normal(size=n_rows)),
            "city": rng.choice(["Bonn", "Köln", "", "Aachen", None], n_rows),
            "kind": pd.Categorical(rng.choice(["u", "v", "w"], n_rows)),
            "when": pd.date_range("2020-01-01", periods=n_rows, freq="min"),
            "weight": rng.integers(0, 3, n_rows).astype(np.float64),
        }
    )
    sizes = ["small", "medium", "large", "huge"]
    table["size"] = pd.Categorical.from_codes(table["few"], sizes, ordered=True)
    table["day"] = table["when"].dt.strftime("%Y-%m-%d %H:%M").astype(object)
    score = table["real"] * 2 + table["few"] + (table["city"] == "Bonn")
    table["number"] = score + rng.normal(size=n_rows)
    table["two"] = np.where(score > 1, "yes", "no")
    table["three"] = np.digitize(score, [0, 2])
    return table


def features(table, target):
    return table.drop(columns=[one for one in ("number", "two", "three") if one != target])


def written(table, folder, sizes):
    """Write a table as Parquet files of the given numbers of rows; return their pattern."""
    import pyarrow
    from pyarrow import parquet

    first = 0
    for number, size in enumerate(sizes):
        part = pyarrow.Table.from_pandas(table.iloc[first : first + size], preserve_index=False)
        parquet.write_table(part, folder / f"part{number}.parquet", row_group_size=300)
        first += size
    assert first == len(table)
    return str(folder / "*.parquet")


def model_bytes(model, tmp_path):
    path = tmp_path / "model.arb"
    model.save(path)
    return path.read_bytes()
