"""Training on files that do not fit in memory.

The script writes a folder of Parquet files. `fit` takes the pattern of their names and the name of
the target: it reads batches, keeps one byte per cell, and stays within a memory limit. The model
equals that of the table in memory, byte for byte, and predictions go from files to a file.
"""

import tempfile
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from arboost import GradientBoostingClassifier

flights = pd.read_csv(Path(__file__).parent / "data/flights.csv.gz")

with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    for month, rows in flights.groupby("month"):
        rows.to_parquet(folder / f"month{month:02d}.parquet", index=False)
    files = str(folder / "month*.parquet")
    print(f"{len(list(folder.iterdir()))} files, {len(flights)} rows")

    model = GradientBoostingClassifier(n_estimators=100, random_state=0)
    model.fit(files, "late", memory_limit="500MB")
    in_memory = GradientBoostingClassifier(n_estimators=100, random_state=0)
    in_memory.fit(flights, "late")
    print("same model as of the table in memory:", model.to_json() == in_memory.to_json())

    out = folder / "predictions.parquet"
    n_rows = model.predict_files(
        files, out, method="predict_proba", columns_to_keep=["airline", "dest"]
    )
    written = pq.read_table(out)
    print(f"{n_rows} predictions in columns {', '.join(written.column_names)}")
    print(written.slice(0, 3).to_pandas().round(3).to_string(index=False))
