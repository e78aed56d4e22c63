"""Files as sources: order, columns, partitions, and errors that name the file."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from arboost.data.source import is_source, open_source
from arboost.errors import SchemaError


def table(first, n_rows, **others):
    rows = np.arange(first, first + n_rows)
    return pa.table({"row": rows, "x": rows.astype(np.float32), **others})


def whole(source, batch_rows=7):
    batches = list(source.batches(batch_rows))
    assert [batch.first_row for batch in batches] == [
        sum(batch.n_rows for batch in batches[:i]) for i in range(len(batches))
    ]
    assert all(0 < batch.n_rows == batch.table.num_rows <= batch_rows for batch in batches)
    return pa.Table.from_batches([batch.table for batch in batches], source.arrow_schema)


@pytest.fixture
def parts(tmp_path):
    for number in range(12):
        pq.write_table(table(10 * number, 10), tmp_path / f"part{number}.parquet")
    return tmp_path


@pytest.mark.parametrize("pattern", ["*.parquet", "", "part*", "**/*.parquet"])
def test_rows_are_in_the_natural_order_of_the_files(parts, pattern):
    source = open_source(f"{parts}/{pattern}")
    assert source.names == ("row", "x")
    assert source.n_rows == 120
    assert source.n_bytes == sum(path.stat().st_size for path in parts.iterdir())
    for _ in range(2):
        assert whole(source).equals(table(0, 120))


def test_batches(parts):
    source = open_source(parts)
    batches = list(source.batches(6))
    assert [batch.n_rows for batch in batches[:3]] == [5, 5, 5]
    assert batches[2].file == str(parts / "part1.parquet")
    assert [batch.bytes_read for batch in batches] == sorted(batch.bytes_read for batch in batches)
    assert batches[-1].bytes_read == source.n_bytes


def test_a_list_keeps_its_order(parts):
    source = open_source([parts / "part3.parquet", f"{parts}/part1*.parquet"])
    rows = whole(source)["row"].to_pylist()
    assert rows[:1] + rows[10::10] == [30, 10, 100, 110]


def test_columns(parts):
    assert whole(open_source(parts, ["x"])).column_names == ["x"]
    assert whole(open_source(parts, ["x", "row"])).column_names == ["x", "row"]
    with pytest.raises(SchemaError, match=r"no column 'rows' in the file .*part0.* mean 'row'\?"):
        open_source(parts, ["rows"])


def test_hive_partitions(tmp_path):
    for year in (2023, 2024):
        for place in ("a b", "c"):
            folder = tmp_path / "run=1" / f"year={year}" / f"place={place}"
            folder.mkdir(parents=True)
            pq.write_table(table(0, 2), folder / "part.parquet")
    found = whole(open_source(tmp_path / "run=1"))
    assert found.schema.types == [pa.int64(), pa.float32(), pa.int32(), pa.string()]
    assert found["year"].to_pylist() == [2023] * 4 + [2024] * 4
    assert found["place"].to_pylist() == ["a b"] * 2 + ["c"] * 2 + ["a b"] * 2 + ["c"] * 2
    assert whole(open_source(f"{tmp_path}/run=1/year=*/place=c/*", ["year"])).column_names == [
        "year"
    ]
    assert open_source(tmp_path).names == ("row", "x", "run", "year", "place")
    pq.write_table(table(0, 2), tmp_path / "part.parquet")
    with pytest.raises(SchemaError, match=r"run=1.* has the column 'run'|has no column 'run'"):
        open_source(tmp_path)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (table(0, 3).drop_columns("x"), "has no column 'x', which .*part0.parquet' has"),
        (table(0, 3).rename_columns(["row", "X1"]), "has no column 'x'"),
        (table(0, 3, z=[1, 2, 3]), "has the column 'z', which"),
        (table(0, 3).set_column(1, "x", [["a", "b", "c"]]), "'x' is of type string in the file"),
        (table(0, 3).set_column(1, "x", [[1.0, 2.0, 3.0]]), "type double .* but of type float in"),
    ],
)
def test_schema_drift(parts, other, message):
    pq.write_table(other, parts / "part5.parquet")
    with pytest.raises(SchemaError, match=message) as caught:
        open_source(parts)
    assert "part5.parquet" in str(caught.value)


def test_columns_that_all_files_have(parts):
    pq.write_table(table(50, 10, z=[1] * 10).select(["z", "x", "row"]), parts / "part5.parquet")
    assert whole(open_source(parts, ["row", "x"])).equals(table(0, 120))


def test_types_of_the_same_values(tmp_path):
    """Columns without a value, and other layouts of strings, are no drift."""
    values = [[None, None], ["a", "b"], ["c", None]]
    types = [pa.null(), pa.string(), pa.large_string()]
    for number, (column, kind) in enumerate(zip(values, types, strict=True)):
        pq.write_table(pa.table({"s": pa.array(column, kind)}), tmp_path / f"{number}.parquet")
    assert whole(open_source(tmp_path))["s"].to_pylist() == [None, None, "a", "b", "c", None]


def test_levels_of_files(tmp_path):
    for number, index in enumerate((pa.int8(), pa.int16())):
        column = pa.array([f"level {number}", None]).cast(pa.dictionary(index, pa.string()))
        pq.write_table(pa.table({"c": column}), tmp_path / f"{number}.parquet")
    assert whole(open_source(tmp_path))["c"].to_pylist() == ["level 0", None, "level 1", None]


def test_damaged_files(parts):
    path = parts / "part5.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    with pytest.raises(ValueError, match=r"part5.parquet' cannot be read: .*Write|write it again"):
        open_source(parts)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=r"part5.parquet' is empty: it has 0 bytes"):
        open_source(parts)
    pq.write_table(table(50, 0), path)
    assert open_source(parts).n_rows == 110


def test_files_that_change(parts):
    source = open_source(parts)
    pq.write_table(table(50, 11), parts / "part5.parquet")
    with pytest.raises(ValueError, match=r"part5.parquet' has changed"):
        whole(source)


def test_no_such_files(parts):
    with pytest.raises(FileNotFoundError, match=r"No file matches the pattern .*\*\.csv"):
        open_source(f"{parts}/*.csv")
    with pytest.raises(FileNotFoundError, match="There is no file or folder"):
        open_source(parts / "part99.parquet")
    (parts / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="has no file whose name ends in one of"):
        open_source(parts / "empty")
    with pytest.raises(ValueError, match="is an address, but only local files"):
        open_source("s3://bucket/part.parquet")


def test_other_files(parts):
    (parts / "notes.txt").write_text("no data")
    (parts / "_SUCCESS.parquet").write_text("")
    assert open_source(parts).n_rows == 120  # other kinds are left out of folders
    with pytest.raises(ValueError, match=r"notes.txt' is of an unknown kind"):
        open_source(f"{parts}/*")
    with pytest.raises(ValueError, match=r"part1.parquet' is there twice"):
        open_source([parts / "part1.parquet", f"{parts}/part*.parquet"])


def test_paths_are_sources(parts):
    assert is_source("data.csv")
    assert is_source(parts)
    assert is_source([parts / "part1.parquet", "a.parquet"])
    for X in ([], [[1, 2]], ["a", 1], np.zeros((2, 2)), table(0, 1), {"x": [1]}, None, 3):
        assert not is_source(X)


def test_the_reader_ends_with_the_consumer(parts):
    import threading

    before = threading.active_count()
    batches = open_source(parts).batches(3)
    next(batches)
    assert threading.active_count() == before + 1
    batches.close()
    assert threading.active_count() == before


def test_row_groups_are_not_decoded_as_a_whole(tmp_path):
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.normal(size=1_000_000) for i in range(2)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=1_000_000)
    before = pa.total_allocated_bytes()
    most = max(pa.total_allocated_bytes() for _ in open_source(tmp_path).batches(10_000))
    assert most - before < 0.5 * 2 * 8 * 1_000_000


def test_row_groups_that_fit_a_batch(tmp_path):
    """Small row groups are read together, large ones in equal parts."""
    pq.write_table(table(0, 100), tmp_path / "a.parquet", row_group_size=12)
    sizes = {
        n: [batch.n_rows for batch in open_source(tmp_path).batches(n)] for n in (7, 12, 30, 200)
    }
    assert sizes == {7: [6] * 16 + [4], 12: [12] * 8 + [4], 30: [24] * 3 + [28], 200: [100]}
    for n in sizes:
        assert whole(open_source(tmp_path), n).equals(table(0, 100))


def test_bytes_of_a_row(tmp_path):
    columns = {"a": pa.array([1.0], pa.float32()), "b": [1], "c": [True], "d": ["text"]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert open_source(tmp_path).row_bytes == 4 + 8 + 1 + 16


def test_a_file_that_goes(parts):
    source = open_source(parts)
    (parts / "part5.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"part5\.parquet"):
        whole(source)


def test_damaged_pages(tmp_path):
    """A damage between header and footer is found when the rows are read."""
    path = tmp_path / "a.parquet"
    pq.write_table(table(0, 10_000), path, compression="gzip")
    content = bytearray(path.read_bytes())
    content[60:3000] = bytes(2940)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.parquet' cannot be read: .*write it again"):
        whole(open_source(path), 20_000)
