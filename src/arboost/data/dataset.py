"""Dataset: a binned table with its target and weights, shared by fits, folds and members."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import threads
from arboost.data import feature_names, target_encoding
from arboost.data.bins import (
    APPROX_BYTES,
    BATCH_METHODS,
    TREE_METHODS,
    Binned,
    bin_for_purity,
    bin_table,
)
from arboost.data.levels import Floats
from arboost.data.schema import Schema
from arboost.data.table import ColumnOptions, ingest
from arboost.data.target import check_pairing, target
from arboost.data.target import weights as checked_weights
from arboost.data.target_encoding import TargetEncodedTable
from arboost.errors import ParameterError
from arboost.params.boosting import PARAMS
from arboost.params.forest import AUTO_BINS
from arboost.params.suggestions import known_arguments

if TYPE_CHECKING:
    from arboost.data.batch_rows import SketchedTable


def _column_options(**values: Any) -> ColumnOptions:
    encoding = values.pop("category_encoding")
    allowed = target_encoding.ENCODINGS
    if encoding not in allowed:
        raise ParameterError(
            f"category_encoding is {encoding!r}, but it must be one of {', '.join(allowed)}.",
            parameter="category_encoding",
        )
    checked = {name: PARAMS[name].check(value) for name, value in values.items()}
    return ColumnOptions(**checked, category_encoding=encoding)


def _check_tree_method(tree_method: str, allowed: Sequence[str], where: str = "") -> None:
    if tree_method not in allowed:
        raise ParameterError(
            f"tree_method is {tree_method!r}, but {where}it must be one of {', '.join(allowed)}.",
            parameter="tree_method",
        )


class Dataset:
    """A table that is binned once and accepted by every ``fit``.

    Rows of weight 0 are dropped first, so they have no effect.

    Parameters
    ----------
    X : table of shape (n_rows, n_features)
        NumPy array, pandas, Polars or PyArrow table, anything with an Arrow C stream, matrix of
        scipy.sparse, lists or dicts; or an array in device memory, which is binned there. NaN and
        None are missing values.
    y : array of shape (n_rows,), optional
        Target: numbers or labels. Or the name of a column of X; the column is then not used as a
        feature. Required if a category has more than 100 levels.
    sample_weight : array of shape (n_rows,), float or str, optional
        Weights of at least 0. Or the name of a column of X; the column is then not used as a
        feature.
    offset : array of shape (n_rows,) or (n_rows, n_outputs), str or list of str, optional
        Start of the raw scores in gradient boosting. Or names of columns of X; the columns are then
        not used as features.
    max_bins : int or "auto", default=255
        Largest number of bins of a feature, not counting missing values; above 255 a bin code
        takes two bytes. "auto": 255, or a bin for each value where trees need them for pure
        leaves, as in forests. Only for the tree method "hist".
    tree_method : {"hist", "exact", "approx"}, default="hist"
        Tree method that the table is prepared for: bins for "hist"; the ranks of all values for
        "exact", at 8 bytes per cell and 8 per distinct value; up to 65,535 bins of a feature for
        "approx", at 4 bytes per cell.
    bundling : bool, default=True
        Whether features share stored columns: exclusive feature bundling (EFB), and several
        columns of few values in one byte. Only for the tree method "hist".
    max_conflict_rate : float, default=0.0
        Share of the rows in which two features of a bundle may both differ from their most
        frequent value; only the first of them is then kept.
    categorical_features : "from_dtype", or list of str, int or bool, default="from_dtype"
        Additional categories, whatever their type.
    missing : float, default=float("nan")
        Number that means missing, in addition to NaN.
    category_encoding : {"groups", "mean"}, default="groups"
        Encoding of categories of more than 100 levels by their targets: sets of at most 255 groups
        of levels, or one number, the mean target of a level.
    date_format : str, dict, or None, default="auto"
        Format of dates in strings, for all columns or by column.
    calendar_parts : "auto", list of str, or None, default="auto"
        Calendar parts of dates that are features next to them; see the estimators.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use.

    Attributes
    ----------
    binned : Binned
        Codes, edges and schema.
    y : array of shape (n_kept,), or None
    sample_weight : float64 array of shape (n_kept,), or None
    offset : float64 array of shape (n_kept, 1) or (n_kept, n_outputs), or None
    groups : array of shape (n_kept,), or None
        Groups of the rows of `from_files`.
    max_bins : int
    max_conflict_rate : float
    tree_method : str
    column_options : arboost.data.table.ColumnOptions
        The parameters on columns.
    encoded_table : TargetEncodedTable or None
        The table itself, where a category is target-encoded: held-out rows need another encoding.
    level_classes : int or None
        Number of classes of y that the target encoding was made for; None where y is numeric, or
        no category is target-encoded.
    n_rows, n_features : int
        Numbers of kept rows and of features, derived ones included.

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import Dataset
    >>> data = Dataset(np.array([[1.0, 0.0], [2.0, np.nan], [4.0, 1.0]]), y=[0, 1, 1])
    >>> data.n_rows, data.n_features
    (3, 2)
    >>> [edges.tolist() for edges in data.binned.edges]
    [[1.5, 3.0], [0.5]]
    >>> data.binned.codes.to_numpy().tolist()
    [[0, 0], [1, 2], [2, 1]]
    """

    @known_arguments
    def __init__(
        self,
        X: object,
        y: object = None,
        *,
        sample_weight: object = None,
        offset: object = None,
        max_bins: int | str = 255,
        tree_method: str = "hist",
        bundling: bool = True,
        max_conflict_rate: float = 0.0,
        categorical_features: str | Sequence[Any] = "from_dtype",
        missing: float = float("nan"),
        category_encoding: str = "groups",
        date_format: str | Mapping[Any, str] | None = "auto",
        calendar_parts: str | Sequence[str] | None = "auto",
        n_jobs: int | None = None,
    ) -> None:
        most: Any = AUTO_BINS.check(max_bins)
        PARAMS["bundling"].check(bundling)
        PARAMS["max_conflict_rate"].check(max_conflict_rate)
        _check_tree_method(tree_method, TREE_METHODS)
        PARAMS["n_jobs"].check(n_jobs)
        self.column_options: ColumnOptions = _column_options(
            categorical_features=categorical_features,
            missing=missing,
            category_encoding=category_encoding,
            date_format=date_format,
            calendar_parts=calendar_parts,
        )
        check_pairing(X, y, sample_weight=sample_weight, offset=offset)
        X, y, name = feature_names.split_target(X, y)
        X, offset_given = feature_names.split_offset(X, offset)
        X, sample_weight, row_columns = feature_names.split_row_columns(X, sample_weight)
        table = ingest(X, options=self.column_options, device=None)
        names = feature_names.offset_names(offset)
        schema = replace(table.schema, target=name, offset=names, row_columns=row_columns)
        table = replace(table, schema=schema)
        start = (
            None
            if names is None
            else feature_names.offset_values(offset_given, table.n_rows, names)
        )
        labels = None if y is None else target(y, table.n_rows)
        weight = checked_weights(sample_weight, table.n_rows)
        rows = None
        if weight is not None and not weight.all():
            rows = np.flatnonzero(weight).astype(np.uint32)
            weight = weight[rows]
            labels = None if labels is None else labels[rows]
            start = None if start is None else start[rows]
        self.level_classes: int | None = None
        if target_encoding.features_to_encode(table.schema):
            numbers, self.level_classes = target_encoding.label_target(labels, table.schema)
            table = target_encoding.target_encode(
                table,
                [(numbers, self.level_classes)],
                encoding=category_encoding,
                weight=weight,
                rows=rows,
            )
        self.encoded_table: TargetEncodedTable | None = (
            table if isinstance(table, TargetEncodedTable) else None
        )
        make = partial(
            bin_table,
            table,
            rows=rows,
            weights=weight,
            n_threads=threads(n_jobs),
            tree_method=tree_method,
            bundling=bundling,
            max_conflict_rate=max_conflict_rate,
        )
        self.binned: Binned = (
            bin_for_purity(
                lambda n_bins: make(max_bins=n_bins), lambda: (labels, None), (table, rows)
            )
            if isinstance(most, str)
            else make(max_bins=most)
        )
        self.y: NDArray[Any] | None = labels
        self.sample_weight: Floats | None = weight
        self.offset: Floats | None = start
        self.groups: NDArray[Any] | None = None
        self.max_bins: int = self.binned.max_bins if isinstance(most, str) else most
        self.max_conflict_rate: float = max_conflict_rate
        self.tree_method: str = tree_method

    @classmethod
    @known_arguments
    def from_files(
        cls,
        X: object,
        target: object = None,
        *,
        weight: object = None,
        groups: object = None,
        offset: object = None,
        columns: Sequence[str] | None = None,
        memory_limit: int | str = "auto",
        cache: str | os.PathLike[str] | None = None,
        max_bins: int | str = 255,
        tree_method: str = "hist",
        bundling: bool = True,
        categorical_features: str | Sequence[Any] = "from_dtype",
        missing: float = float("nan"),
        category_encoding: str = "groups",
        date_format: str | Mapping[Any, str] | None = "auto",
        calendar_parts: str | Sequence[str] | None = "auto",
        verbose: int = 1,
        n_jobs: int | None = None,
    ) -> Dataset:
        """Dataset of rows that need not fit in memory, read in batches.

        It is the same as the Dataset of the whole table, whatever the files, batches and limit.

        Parameters
        ----------
        X : path or list of paths, or another source of batches
            Files, folders, patterns such as "data/*.parquet", or anything else that `fit` reads in
            batches. It is read twice.
        target : str or array of shape (n_rows,), optional
            Column of X to predict, which is then not a feature; or its values.
        weight : str or array of shape (n_rows,), optional
            Column of X with the weights, which is then not a feature; or the weights.
        groups : str or array of shape (n_rows,), optional
            Column of X with the group of each row, which is then not a feature; or the groups. They
            are the attribute `groups`, for ``fit(..., groups=data.groups)``.
        offset : str or list of str, or array of shape (n_rows,) or (n_rows, n_outputs), optional
            Columns of X with the start of the raw scores, which are not features; or its values.
        columns : list of str, optional
            Features to read; None: all other columns.
        memory_limit : int or str, default="auto"
            Memory of the fit: "2GB", "500MB", or a number of bytes. "auto": a share of the memory
            that the process may use.
        cache : path, optional
            Folder that keeps the bins of files: the next call with the same files, columns and
            parameters starts at once. Files that have changed are read again.
        tree_method : {"hist", "approx"}, default="hist"
            Tree method that the table is prepared for.
        max_bins, bundling, categorical_features, missing, category_encoding, date_format, \
calendar_parts, n_jobs
            As in `Dataset`.
        verbose : int, default=1
            Whether reading for more than about a second draws a progress bar.
        """
        from arboost.data.batch_rows import BinningSpec, RowColumns
        from arboost.data.binned_source import bin_source

        most: Any = AUTO_BINS.check(max_bins)
        PARAMS["bundling"].check(bundling)
        PARAMS["n_jobs"].check(n_jobs)
        _check_tree_method(tree_method, BATCH_METHODS, "for files ")
        options = _column_options(
            categorical_features=categorical_features,
            missing=missing,
            category_encoding=category_encoding,
            date_format=date_format,
            calendar_parts=calendar_parts,
        )
        spec = BinningSpec(
            columns=RowColumns(target, weight, groups, offset),
            options=options,
            tree_method=tree_method,
            tree_bytes=APPROX_BYTES["global"] if tree_method == "approx" else (0, 0),
            bundling=bundling,
            n_threads=threads(n_jobs),
        )
        table, binned = bin_source(
            X,
            spec,
            max_bins=most,
            memory_limit=memory_limit,
            columns=columns,
            cache=cache,
            verbose=verbose,
        )
        return cls._of_source(table, binned, options)

    @classmethod
    def _of_source(cls, table: SketchedTable, binned: Binned, options: ColumnOptions) -> Dataset:
        """Dataset of a source that has been read."""
        data = cls.__new__(cls)
        data.column_options = options
        data.level_classes, data.encoded_table = table.level_classes, table.encoded_table
        data.binned = binned
        data.y, data.sample_weight, data.groups, data.offset = table.rows
        data.max_bins, data.max_conflict_rate = binned.max_bins, 0.0
        data.tree_method = binned.tree_method
        return data

    def _offset_of(self, offset: object) -> Floats | None:
        """Offset of all rows: that of the Dataset, or the array given to ``fit``."""
        names = feature_names.offset_names(offset)
        if names is None:
            return self.offset
        if names:
            raise ParameterError(
                f"offset={offset!r} names a column, but X is a Dataset, which holds bins. Name the "
                "column in Dataset(X, y, offset=...), or pass an array.",
                parameter="offset",
            )
        if self.offset is not None:
            raise ValueError("offset was passed, but the Dataset has an offset. Leave it out.")
        return feature_names.offset_values(offset, self.n_rows)

    @property
    def schema(self) -> Schema:
        """Columns of the table."""
        return self.binned.schema

    @property
    def n_rows(self) -> int:
        """Number of rows of nonzero weight."""
        return int(self.binned.codes.n_rows)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.binned.codes.n_features)

    def __repr__(self) -> str:
        kind = f"max_bins={self.max_bins}"
        if self.tree_method != "hist":
            kind = f"tree_method={self.tree_method!r}"
        return f"Dataset({self.n_rows} rows, {self.n_features} features, {kind})"
