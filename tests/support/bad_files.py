"""Small tables, and files that are cut off."""

import pyarrow as pa
from pyarrow import parquet

GOOD = b"a,b,y\n" + b"".join(b"%d,%d,%d\n" % (i, i % 7, i % 2) for i in range(60))
TABLE = pa.table({"a": range(60), "b": [i % 7 for i in range(60)], "y": [i % 2 for i in range(60)]})


def parquet_bytes(path, table=TABLE):
    parquet.write_table(table, path)
    return path.read_bytes()


def cut(path, data, share=0.6):
    path.write_bytes(data[: int(len(data) * share)])


def content(folder):
    return sorted((path, path.lstat().st_size) for path in folder.rglob("*"))
