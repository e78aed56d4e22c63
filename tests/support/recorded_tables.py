"""Tables and targets of the recorded fits.

All values come from integer hashes and + - * / alone, so that the tables have the same bytes on
every machine and with every version of NumPy.
"""

from functools import cache

import numpy as np
import pandas as pd
import scipy.sparse as sp

N_ROWS = 600


def uniform(n, stream):
    """Return n numbers in [0, 1): splitmix64 of their index."""
    with np.errstate(over="ignore"):
        z = np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z += np.uint64(stream) * np.uint64(0xD1B54A32D192ED03)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) / 2.0**53


@cache
def numbers():
    """Return a table of six columns, two of them with missing values."""
    X = np.column_stack([uniform(N_ROWS, column) for column in range(6)])
    X[:, 3] = np.floor(X[:, 3] * 12)
    X[uniform(N_ROWS, 20) < 0.1, 1] = np.nan
    X[uniform(N_ROWS, 21) < 0.3, 4] = np.nan
    return X


@cache
def flags():
    """Return a table whose columns share storage: exclusive flags and columns of few values."""
    which = np.floor(uniform(N_ROWS, 30) * 20).astype(int)
    exclusive = np.eye(20)[which]
    few = np.floor(np.column_stack([uniform(N_ROWS, 31 + k) for k in range(4)]) * 3)
    return np.hstack([exclusive, few, numbers()[:, :2]])


@cache
def sparse():
    """Return a sparse table of 40 columns."""
    X = np.column_stack([uniform(N_ROWS, 50 + k) for k in range(40)])
    X[X > 0.08] = 0.0
    return sp.csr_matrix(X)


@cache
def frame():
    """Return a data frame with categories of few and of many levels, dates and booleans."""
    u = [uniform(N_ROWS, 100 + k) for k in range(6)]
    color = np.array(["red", "green", "blue", "black"], dtype=object)[(u[0] * 4).astype(int)]
    color[u[5] < 0.05] = None
    day = np.datetime64("2024-01-01") + (u[2] * 700).astype(int).astype("timedelta64[D]")
    return pd.DataFrame(
        {
            "color": color,
            "shop": pd.Categorical([f"s{int(v * 30)}" for v in u[1]]),
            "city": [f"c{int(v * 170)}" for v in u[3]],
            "day": day,
            "open": u[4] < 0.7,
            "size": numbers()[:, 0],
        }
    )


@cache
def signal():
    X = np.nan_to_num(numbers(), nan=0.5)
    smooth = 3.0 * X[:, 0] + X[:, 1] * X[:, 2] - 2.0 * (X[:, 4] > 0.6) + 0.2 * X[:, 3]
    return smooth + 0.5 * uniform(N_ROWS, 40)


@cache
def framed_signal():
    table = frame()
    color = table["color"].map({"red": 1.0, "green": 0.2, "blue": -0.4}).fillna(0.0).to_numpy()
    city = table["city"].str.slice(1).astype(float).to_numpy()
    return signal() + color + 2.0 * (np.mod(city, 7.0) < 3.0)


def two_classes():
    return (signal() > 2.6).astype(int)


def three_classes():
    return np.digitize(signal(), [2.0, 3.2])


def counts():
    return np.floor(np.maximum(signal(), 0.0) * 1.5)


def heavy_tail():
    """Return the signal with values that are far from all others, and from each other."""
    y = signal().copy()
    y[[17, 90, 91, 200]] = 3e13, -4e8, -4e8 - 1.0, 5e5
    return y


def huge_weights():
    weight = weights()
    weight[[50, 51, 300]] = 1e12, 3e12, 1e21
    return weight


def weights():
    return 0.25 + np.floor(uniform(N_ROWS, 41) * 8) / 4
