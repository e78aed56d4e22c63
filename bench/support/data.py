"""Data for the benchmarks: documented generators of dense and sparse tables.

A problem is a folder of four arrays (X, y, X_test, y_test), written once per run
and loaded by every contestant before its clock starts. X may be a sparse matrix.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

SEED = 20240607


def higgs_like(rows: int, features: int, seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels shaped like the HIGGS set: X float32 (rows, features), y int32.

    Columns repeat in groups of seven, similar to momentum, angle, tag and mass columns: log-normal,
    mixture of two normals with one mean, uniform angle, Student t (3 degrees of freedom), four
    discrete levels, mixture of two distant normals, and a noisy product of two earlier columns. The
    label is drawn from the logistic of a sum of steps, products and waves: no tree is perfect, and
    both best-first and level order find structure.
    """
    rng = np.random.default_rng(seed)
    X = np.empty((rows, features), dtype=np.float32)
    for j in range(features):
        X[:, j] = _column(rng, X, j)
    y = rng.random(rows) < 1.0 / (1.0 + np.exp(-log_odds(X)))
    return X, y.astype(np.int32)


def _column(rng: np.random.Generator, X: np.ndarray, j: int) -> np.ndarray:
    """Values of column j; the last column of a group reads earlier ones."""
    rows = len(X)
    match j % 7:
        case 0:
            values = rng.lognormal(0.0, 0.5, rows)
        case 1:
            values = rng.normal(0.0, np.where(rng.random(rows) < 0.3, 2.0, 0.8))
        case 2:
            values = rng.uniform(-np.pi, np.pi, rows)
        case 3:
            values = rng.standard_t(3, rows)
        case 4:
            values = rng.choice([0.0, 1.0, 2.0, 3.0], rows, p=[0.5, 0.25, 0.15, 0.1])
        case 5:
            values = rng.normal(np.where(rng.random(rows) < 0.5, -1.5, 1.0), 1.0)
        case _:
            values = X[:, j - 6] * (1.0 + 0.3 * X[:, j - 2]) + rng.normal(0.0, 0.3, rows)
    return values


def log_odds(X: np.ndarray) -> np.ndarray:
    """Log odds of each row: a sum over groups of seven columns, later groups weighing less."""
    score = np.full(len(X), -0.2)
    features = X.shape[1]
    for group, first in enumerate(range(0, features - 6, 7)):
        pt, eta, phi, tail, tag, mode, mass = X[:, first : first + 7].T
        part = 1.2 * np.tanh(mass - 1.3) * np.sign(mode)
        part += 0.8 * np.cos(phi) * np.minimum(pt, 3.0)
        part += 0.6 * (np.abs(eta) < 1.0) * (tag >= 2.0)
        part -= 0.5 * np.clip(tail, -3.0, 3.0) * (pt > 1.0)
        score += part * 0.75**group
    return score


def generate(folder: Path, rows: int, features: int, test_rows: int = 100_000) -> Path:
    """Write a generated problem to `folder`; the held-out rows come last."""
    X, y = higgs_like(rows + test_rows, features)
    return _write(folder, X, y, rows)


def regression(folder: Path, rows: int, features: int, test_rows: int = 100_000) -> Path:
    """Write a regression problem: the same columns, their log odds plus standard normal noise."""
    X, _ = higgs_like(rows + test_rows, features)
    noise = np.random.default_rng(SEED + 1).normal(size=len(X))
    return _write(folder, X, log_odds(X) + noise, rows)


def one_hot(
    folder: Path, rows: int, columns: int = 50, levels: int = 100, test_rows: int = 100_000
) -> Path:
    """Write a sparse problem: `columns` categories of `levels` levels each, one-hot, as CSR.

    The probability of level k is proportional to 1 / (k + 3), a skew as in real tables. The log
    odds are a sum of level effects, with later columns weighing less, and of effects of pairs of
    levels in neighbouring columns.
    """
    rng = np.random.default_rng(SEED)
    total = rows + test_rows
    share = 1.0 / (np.arange(levels) + 3.0)
    chosen = np.empty((total, columns), dtype=np.int32)
    score = np.full(total, -0.3)
    for j in range(columns):
        chosen[:, j] = rng.choice(levels, total, p=share / share.sum())
        score += 0.8 * 0.95**j * rng.normal(size=levels)[chosen[:, j]]
        if j % 2:
            pairs = rng.normal(size=(levels, levels))
            score += 0.5 * 0.95**j * pairs[chosen[:, j - 1], chosen[:, j]]
    places = chosen + levels * np.arange(columns, dtype=np.int32)
    X = _csr(places, np.ones(places.size, dtype=np.float32), columns * levels)
    y = rng.random(total) < 1.0 / (1.0 + np.exp(-score))
    return _write(folder, X, y.astype(np.int32), rows)


def scattered(
    folder: Path, rows: int, columns: int = 10_000, stored: int = 10, test_rows: int = 100_000
) -> Path:
    """Write a sparse problem: `stored` values in random columns of each row, as in word counts.

    The first columns are stored more often than the last, so that trees find structure.
    """
    rng = np.random.default_rng(SEED)
    total = rows + test_rows
    drawn = (columns * rng.random((total, stored)) ** 2).astype(np.int32)
    drawn.sort(axis=1)
    # A column drawn twice moves to the next one; rows that overflow take the last columns.
    for k in range(1, stored):
        drawn[:, k] = np.maximum(drawn[:, k], drawn[:, k - 1] + 1)
    over = drawn[:, -1] >= columns
    drawn[over] = np.arange(columns - stored, columns, dtype=np.int32)
    values = rng.geometric(0.6, drawn.size).astype(np.float32)
    effect = rng.normal(size=columns)
    score = (effect[drawn] * np.minimum(values.reshape(drawn.shape), 3.0)).sum(axis=1)
    y = rng.random(total) < 1.0 / (1.0 + np.exp(-score))
    return _write(folder, _csr(drawn, values, columns), y.astype(np.int32), rows)


def _csr(places: np.ndarray, values: np.ndarray, columns: int) -> Any:
    """A CSR matrix with the same number of stored values in each row."""
    from scipy import sparse

    rows, stored = places.shape
    start = np.arange(rows + 1, dtype=np.int64) * stored
    return sparse.csr_matrix((values, places.reshape(-1), start), shape=(rows, columns))


def _write(folder: Path, X: Any, y: np.ndarray, rows: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    parts = {"X": X[:rows], "y": y[:rows], "X_test": X[rows:], "y_test": y[rows:]}
    for name, values in parts.items():
        if isinstance(values, np.ndarray):
            np.save(folder / f"{name}.npy", np.ascontiguousarray(values))
        else:
            from scipy import sparse

            sparse.save_npz(folder / f"{name}.npz", values, compressed=False)
    return folder


def load(folder: Path, name: str) -> Any:
    """The array or sparse matrix `name` of a problem."""
    if (folder / f"{name}.npz").exists():
        from scipy import sparse

        return sparse.load_npz(folder / f"{name}.npz")
    return np.load(folder / f"{name}.npy")
