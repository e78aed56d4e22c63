"""One row of a frame of 21 columns: times of predictions in each form, as JSON on the last line.

Called by bench_predict.py with one JSON argument. The columns are numbers, integers, strings and a
time; every form must give the same prediction.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import polars as pl

from arboost import GradientBoostingRegressor
from support.predict_once import best

N_ROWS = 2000
N_TRIED = 200


def main() -> None:
    """Run the job in argv[1] and print the seconds of a call for each form of a row."""
    job = json.loads(sys.argv[1])
    frame = table()
    y = frame["x0"] + frame["c0"].eq("red")
    model = GradientBoostingRegressor(n_estimators=job["rounds"], n_jobs=job["threads"])
    model.fit(frame, y)
    polars = pl.from_pandas(frame)
    forms = {
        "pandas": [frame.iloc[[i]] for i in range(N_TRIED)],
        "polars": [polars[i : i + 1] for i in range(N_TRIED)],
        "dict": [frame.iloc[i].to_dict() for i in range(N_TRIED)],
        "pandas row": [frame.iloc[i] for i in range(N_TRIED)],
    }
    expected = model.predict(frame)[:N_TRIED]
    figures = {}
    for name, rows in forms.items():
        if not np.array_equal(np.concatenate([model.predict(row) for row in rows]), expected):
            raise SystemExit(f"rows as {name} have other predictions")
        figures[name] = best(model.predict, rows, job["repeats"])
    print(json.dumps(figures | {"seconds": figures["pandas"]}))


def table() -> pd.DataFrame:
    """Return the frame: 12 floats, 4 integers, 4 columns of strings and one of times."""
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.normal(size=N_ROWS) for i in range(12)}
    columns |= {f"i{i}": rng.integers(0, 50, N_ROWS) for i in range(4)}
    colours = ["red", "green", "blue", "black"]
    columns |= {f"c{i}": rng.choice(colours, N_ROWS) for i in range(4)}
    columns["day"] = pd.date_range("2024-01-01", periods=N_ROWS, freq="h")
    return pd.DataFrame(columns)


if __name__ == "__main__":
    main()
