"""Real tables for `bench_real.py`: the data sets of a folder, and the split of one table.

The folder has a `MANIFEST.md` whose tables name each data set, its rows, task and
natural split, and one file for each: `<name>.parquet` (column `target`, categories as
strings) or `<name>.npz` (CSR arrays `data`, `indices`, `indptr`, `shape` and `target`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20240607
TEST_ROWS = 20_000
TRAIN_SHARE = 0.75  # where the manifest gives no number of training rows
MANY_COLUMNS = 1000
# Largest number of training rows: keeps the run at about half an hour on two cores. CatBoost's
# default of 1,000 rounds takes most of it, above all with many classes and categories.
CAPS = {
    "binary": 10_000,
    "regression": 10_000,
    "multiclass": 5_000,
    "multiclass with categories": 1_000,
    "many columns": 5_000,
}


@dataclass(frozen=True)
class DataSet:
    """One data set of the folder, as described by the manifest."""

    name: str
    path: Path
    task: str  # binary, multiclass or regression
    rows: int
    features: int
    categories: int  # columns of text
    n_train: int | None  # rows of the natural training part, at the head of the table
    in_time: bool  # rows are in order of time

    def training_part(self) -> int:
        """Rows before the test part, in the natural order or in a random one."""
        return self.n_train or int(self.rows * TRAIN_SHARE)

    def training_rows(self, limit: int | None) -> int:
        """Number of training rows; `limit` replaces the cap of the task."""
        kind = self.task
        if self.features > MANY_COLUMNS:
            kind = "many columns"
        elif self.task == "multiclass" and self.categories:
            kind = "multiclass with categories"
        return min(CAPS[kind] if limit is None else limit, self.training_part())


def data_sets(folder: Path) -> list[DataSet]:
    """Data sets of the manifest whose file exists; ranking is treated as regression."""
    tasks = {"binary": "binary", "multiclass": "multiclass", "ranking": "regression"}
    found = []
    for line in _manifest_lines(folder / "MANIFEST.md"):
        files = [folder / f"{line['name']}.{ending}" for ending in ("parquet", "npz")]
        split = line["n_train / order"]
        word = line["task"].split()[0].strip(",")
        found += [
            DataSet(
                name=line["name"],
                path=path,
                task=tasks.get(word, "regression"),
                rows=int(line["rows"].replace(",", "")),
                features=int(line["features"].replace(",", "")),
                categories=int(line["categoricals"]),
                n_train=int(split) if split.isdigit() else None,
                in_time=split == "time",
            )
            for path in files
            if path.exists()
        ]
    return found


def _manifest_lines(path: Path) -> list[dict[str, str]]:
    """Lines of all tables of the manifest: cells by column name."""
    lines, head = [], []
    for text in path.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in text.strip().strip("|").split("|")]
        if not text.startswith("|") or set("".join(cells)) <= {"-", ":"}:
            continue
        if cells[0] == "name":
            head = cells
        else:
            lines.append(dict(zip(head, cells, strict=True)))
    return lines


def split(data: DataSet, seed: int, rows: int, folder: Path) -> Path:
    """Write one problem to `folder`: `rows` training rows and at most 20,000 test rows.

    A natural split (given number of rows, or the last quarter in time) is kept, and `seed` draws
    rows from both parts; otherwise `seed` also draws the parts. Test rows of classes without
    training rows are dropped. Classes get the labels 0, 1, ... without gaps.
    """
    table, y = _read(data)
    rng = np.random.default_rng([SEED, seed])
    first = data.training_part()
    if data.in_time or data.n_train:
        train = rng.permutation(first)[:rows]
        test = first + rng.permutation(len(y) - first)[:TEST_ROWS]
    else:
        order = rng.permutation(len(y))
        train, test = order[:first][:rows], order[first:][:TEST_ROWS]
    if data.task == "regression":
        y_train, y_test, n_classes = y[train].astype(np.float64), y[test].astype(np.float64), 0
    else:
        classes, y_train = np.unique(y[train], return_inverse=True)
        test = test[np.isin(y[test], classes)]
        y_test, n_classes = np.searchsorted(classes, y[test]), len(classes)
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows_of, target in (("train", train, y_train), ("test", test, y_test)):
        _write(folder / name, table, rows_of)
        np.save(folder / f"y_{name}.npy", target)
    (folder / "problem.json").write_text(json.dumps({"task": data.task, "n_classes": n_classes}))
    return folder


def _read(data: DataSet) -> tuple[Any, np.ndarray]:
    """The table (a DataFrame or a CSR matrix) and the target."""
    if data.path.suffix == ".parquet":
        import pandas as pd

        table = pd.read_parquet(data.path)
        return table, table.pop("target").to_numpy()
    from scipy import sparse

    with np.load(data.path) as arrays:
        parts = (arrays["data"].astype(np.float32), arrays["indices"], arrays["indptr"])
        return sparse.csr_matrix(parts, shape=arrays["shape"]), arrays["target"]


def _write(path: Path, table: Any, rows: np.ndarray) -> None:
    if hasattr(table, "iloc"):
        table.iloc[rows].reset_index(drop=True).to_parquet(path.with_suffix(".parquet"))
    else:
        from scipy import sparse

        sparse.save_npz(path.with_suffix(".npz"), table[rows], compressed=False)


@dataclass(frozen=True)
class Problem:
    """Input of a contestant: data frames or CSR matrices, targets, task and number of classes."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    task: str
    n_classes: int

    @property
    def sparse(self) -> bool:
        """Whether X is a CSR matrix."""
        return not hasattr(self.X, "iloc")


def load(folder: Path) -> Problem:
    """The problem written by `split`."""
    tables = []
    for name in ("train", "test"):
        if (folder / f"{name}.npz").exists():
            from scipy import sparse

            tables.append(sparse.load_npz(folder / f"{name}.npz"))
        else:
            import pandas as pd

            tables.append(pd.read_parquet(folder / f"{name}.parquet"))
    about = json.loads((folder / "problem.json").read_text())
    y, y_test = (np.load(folder / f"y_{name}.npy") for name in ("train", "test"))
    return Problem(tables[0], y, tables[1], y_test, **about)
