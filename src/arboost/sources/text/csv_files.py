"""One CSV or TSV file, maybe compressed -> record batches.

About 40 blocks of a file are in memory.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arboost.sources.arrow import naming_file
from arboost.sources.files import DAMAGED, DataFile, file_stamp
from arboost.sources.paths import compression_of
from arboost.sources.text.csv_dialect import CsvDialect, check_decimals, find_dialect

__all__ = ["CsvFile", "conversion"]

# Two threads parse a file as fast in blocks of 1 MB as in larger ones, in less memory.
_BLOCK_BYTES = 1 << 20
_BLOCKS = 40
_OTHER_TYPE = (
    "Types of CSV columns are those of the first block of each file, of 1 MB. Write the column in "
    "one form, convert the file to Parquet, or pass a pyarrow.dataset.Dataset with types of your "
    "own."
)


# Cells without a value, in columns of any type: those of pandas, so that a file has one reading.
_NAMES = "NA N/A n/a <NA> #NA #N/A NULL null None NaN nan -NaN -nan"
_ERRORS = "1.#IND 1.#QNAN -1.#IND -1.#QNAN"
_MISSING = ["", "#N/A N/A", *_NAMES.split(), *_ERRORS.split()]


def conversion(
    dialect: CsvDialect, types: Mapping[str, Any] | None = None, columns: Sequence[str] = ()
) -> Any:
    """Return PyArrow's options for the values of CSV files: types by name, and columns to read."""
    from pyarrow import csv

    return csv.ConvertOptions(
        column_types=dict(types or {}),
        include_columns=list(columns),
        null_values=_MISSING,
        strings_can_be_null=True,
        decimal_point=dialect.decimal_point,
    )


@dataclass(frozen=True)
class CsvFile(DataFile):
    """A CSV or TSV file; the types of its columns are those of its first block.

    Attributes
    ----------
    dialect : CsvDialect
    """

    dialect: CsvDialect

    @classmethod
    def open(
        cls, path: str, kind: str = "csv", delimiter: str | None = None, decimal: str | None = None
    ) -> CsvFile:
        """Return the file, whose first block is read; `find_dialect` has the arguments."""
        import pyarrow

        stamp = file_stamp(path)
        with naming_file(path, DAMAGED), pyarrow.OSFile(path) as raw:
            dialect = find_dialect(path, kind, delimiter, decimal)
            with _stream(raw, path, dialect) as reader:
                reader.schema.names  # noqa: B018  # raises where names are not UTF-8
                for block in reader:
                    check_decimals(block, dialect, path)
                    break
                return cls(path, reader.schema, None, stamp, dialect)

    def reader_bytes(self, columns: Collection[str]) -> int:
        """Return the bytes of the blocks that are in memory, as text and parsed."""
        return min(_BLOCKS * _BLOCK_BYTES, 3 * self.n_bytes)

    def read(self, columns: list[str], schema: Any, batch_rows: int) -> Iterator[tuple[Any, int]]:
        """Yield record batches of about `batch_rows` rows, with the types of the schema."""
        types = {name: schema.field(name).type for name in columns}
        is_plain = compression_of(self.path) is None
        blocks: list[Any] = []
        n_rows = 0
        with naming_file(self.path, _OTHER_TYPE):
            # A block has few rows; consumers work better on larger batches.
            for block, n_bytes in self._scan(types) if is_plain else self._decompress(types):
                blocks.append(block)
                n_rows += block.num_rows
                if n_rows >= batch_rows:
                    yield _joined(blocks), n_bytes
                    blocks, n_rows = [], 0
            if n_rows:
                yield _joined(blocks), self.n_bytes

    def _scan(self, types: dict[str, Any]) -> Iterator[tuple[Any, int]]:
        """Yield blocks and the bytes read by now; all threads parse them."""
        import pyarrow
        from pyarrow import csv, dataset, fs

        form = dataset.CsvFileFormat(
            csv.ParseOptions(delimiter=self.dialect.delimiter),
            default_fragment_scan_options=dataset.CsvFragmentScanOptions(
                conversion(self.dialect), csv.ReadOptions(block_size=_BLOCK_BYTES)
            ),
        )
        fragment = form.make_fragment(os.path.abspath(self.path), fs.LocalFileSystem())
        # Columns that are not read need a type, too.
        every = {name: types.get(name, kind) for name, kind in _types(self.schema).items()}
        scanner = fragment.scanner(
            schema=pyarrow.schema(list(every.items())),
            columns=list(types),
            batch_readahead=1,
            fragment_readahead=1,
        )
        for number, block in enumerate(scanner.to_batches(), 1):
            yield block, min(number * _BLOCK_BYTES, self.n_bytes)

    def _decompress(self, types: dict[str, Any]) -> Iterator[tuple[Any, int]]:
        """Yield blocks and the bytes read by now; the scanner knows only some compressions."""
        import pyarrow

        with (
            pyarrow.OSFile(self.path) as raw,
            _stream(raw, self.path, self.dialect, types) as reader,
        ):
            for block in reader:
                yield block, self.n_bytes if raw.closed else raw.tell()


def _stream(raw: Any, path: str, dialect: CsvDialect, types: dict[str, Any] | None = None) -> Any:
    """Return PyArrow's reader of blocks of a file that is open."""
    import pyarrow
    from pyarrow import csv

    compression = compression_of(path)
    return csv.open_csv(
        raw if compression is None else pyarrow.CompressedInputStream(raw, compression),
        csv.ReadOptions(block_size=_BLOCK_BYTES),
        csv.ParseOptions(delimiter=dialect.delimiter),
        conversion(dialect, types, list(types or ())),
    )


def _types(schema: Any) -> dict[str, Any]:
    return dict(zip(schema.names, schema.types, strict=True))


def _joined(batches: list[Any]) -> Any:
    """Return record batches as one."""
    import pyarrow

    return pyarrow.Table.from_batches(batches).combine_chunks().to_batches()[0]
