"""Data for the benchmarks: one documented generator.

A problem is a folder of four arrays (X, y, X_test, y_test), written once per run
and loaded by every contestant before its clock starts.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

SEED = 20240607


def higgs_like(rows: int, features: int, seed: int = SEED) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels shaped like the HIGGS set: X float32 (rows, features), y int32.

    Columns come in turns of seven, as momentum, angle, tag and mass columns do:
    log-normal, two normals, uniform angle, Student t (3 degrees), four discrete
    levels, two distant normals, and a noisy product of two earlier columns. The
    label is drawn from the logistic of a sum of steps, products and waves, so that
    no tree can be perfect and best-first and level order both find something.
    """
    rng = np.random.default_rng(seed)
    X = np.empty((rows, features), dtype=np.float32)
    for j in range(features):
        X[:, j] = _column(rng, X, j)
    y = rng.random(rows) < 1.0 / (1.0 + np.exp(-_score(X)))
    return X, y.astype(np.int32)


def _column(rng: np.random.Generator, X: np.ndarray, j: int) -> np.ndarray:
    """Values of column j; the last kind of a turn reads columns before it."""
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


def _score(X: np.ndarray) -> np.ndarray:
    """Log odds of each row: every turn of seven columns speaks, later ones less."""
    score = np.full(len(X), -0.2)
    features = X.shape[1]
    for turn, first in enumerate(range(0, features - 6, 7)):
        pt, eta, phi, tail, tag, mode, mass = X[:, first : first + 7].T
        part = 1.2 * np.tanh(mass - 1.3) * np.sign(mode)
        part += 0.8 * np.cos(phi) * np.minimum(pt, 3.0)
        part += 0.6 * (np.abs(eta) < 1.0) * (tag >= 2.0)
        part -= 0.5 * np.clip(tail, -3.0, 3.0) * (pt > 1.0)
        score += part * 0.75**turn
    return score


def generate(folder: Path, rows: int, features: int, test_rows: int = 100_000) -> Path:
    """Write a generated problem to `folder`; the held-out rows come last."""
    X, y = higgs_like(rows + test_rows, features)
    return _write(folder, X, y, rows)


def _write(folder: Path, X: np.ndarray, y: np.ndarray, rows: int) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    parts = {"X": X[:rows], "y": y[:rows], "X_test": X[rows:], "y_test": y[rows:]}
    for name, values in parts.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(values))
    return folder
