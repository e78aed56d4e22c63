"""Table -> bin edges -> bin codes: the only form of the features in training.

Code of x = number of edges strictly below x, so that ``x <= edges[b]`` exactly where code <= b.
With ``tree_method="hist"`` there are at most ``max_bins`` bins. With "exact" there is an edge
between any two neighbouring values, and codes are ranks. With "approx" there are at most
``MOST_BINS``, of which trees propose a few: a bin for each value where there are fewer values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.cuda import device_number
from arboost.data.levels import Floats, Index
from arboost.data.schema import Schema, part_edges
from arboost.data.table import Table
from arboost.data.target import encode_labels, varying_weights
from arboost.errors import warn_caller
from arboost.params.records import USUAL_BINS

AnyCodes = core.Codes | core.SharedCodes


TREE_METHODS = ("hist", "exact", "approx")
BATCH_METHODS = ("hist", "approx")  # of sources that are read in batches
MOST_BINS = 65_535  # of a feature whose codes take two bytes
# By `sketch_scope`, bytes that approximate trees need: of a cell in memory, proposed codes by row
# and by column, or an order of the rows and rows in it; of a column, edges, and hessians and
# proposed bins by code, or in files also three histograms.
APPROX_BYTES = {"global": (4, 28 << 16), "local": (12, 76 << 16)}
_MOST_PURE_ROWS = 32_768  # largest table whose values may all have bins by max_bins="auto"
_DEVICE_CELLS = 1 << 21  # fewer are encoded by the CPU before a device has started


class GrowMemory(NamedTuple):
    """Memory for the growth of trees.

    Attributes
    ----------
    histograms, samples : int
        Bytes of histograms, and of samples of codes in a file.
    holds_all : bool
        Whether the codes of all workers fit in the memory of this one, too.
    """

    histograms: int
    samples: int
    holds_all: bool = False


@dataclass(frozen=True)
class Binned:
    """Bin codes of a table, its bin edges, and the schema of its columns.

    ``codes`` are bin codes, or ``core.Ranks``, where every value has a rank of its own, or
    ``core.SharedCodes``, where the rows are divided among workers.
    ``group_order`` has the groups of levels of some features in the order of their mean targets
    over the training rows of a fold; the groups of all others are in their own order.
    ``tree_method`` is the one that the codes are for.
    ``memory`` is the memory for trees under a memory limit; None: the core's defaults.
    ``max_bins`` is the largest number of bins of a feature, for the tree method "hist".
    """

    codes: AnyCodes
    edges: tuple[Floats, ...]
    schema: Schema
    group_order: Mapping[int, NDArray[np.uint8]] = field(default_factory=dict)
    memory: GrowMemory | None = None
    tree_method: str = "hist"
    max_bins: int = USUAL_BINS

    @property
    def grouped(self) -> dict[int, tuple[list[int], list[int]]]:
        """Ordered groups and shared groups of each category that is split by groups of levels."""
        groups = {}
        for feature, levels in enumerate(self.schema.levels):
            if levels is not None and levels.shared_groups is not None:
                order = self.group_order.get(feature, np.arange(levels.n_set_codes))
                groups[feature] = order.tolist(), levels.shared_groups.tolist()
        return groups

    @property
    def is_shared(self) -> bool:
        """Whether the rows are divided among workers."""
        return isinstance(self.codes, core.SharedCodes)

    @property
    def own_codes(self) -> core.Codes:
        """Codes of the rows in this process: all, or those of one worker."""
        return self.codes.own if isinstance(self.codes, core.SharedCodes) else self.codes

    def require(self, tree_method: str) -> None:
        """Raise ValueError unless the codes are those of the given tree method."""
        if self.tree_method != tree_method:
            raise ValueError(
                f'the Dataset was made for tree_method="{self.tree_method}", but the estimator has '
                f'tree_method="{tree_method}". Make it with '
                f'Dataset(..., tree_method="{tree_method}").'
            )

    def encode(self, table: Table, n_threads: int, rows: Index | None = None) -> core.Codes:
        """Codes of all or some rows of another table with the same columns."""
        categorical = self.codes.is_category.astype(bool).tolist()
        return core.encode(table.values, rows, list(self.edges), n_threads, categorical)


def bin_table(
    table: Table,
    *,
    max_bins: int,
    rows: Index | None,
    weights: Floats | None,
    n_threads: int,
    tree_method: str = "hist",
    bundling: bool = True,
    max_conflict_rate: float = 0.0,
    device: str = "cpu",
) -> Binned:
    """Binned rows of a table: ranks with the tree method "exact", else bins.

    Every level of a category is a bin, in the order of level codes, even if no row has it.

    Parameters
    ----------
    table : Table
    max_bins : int
        Largest number of bins of a feature with "hist", from 2 to 65535, not counting missing
        values.
    rows : uint32 array, or None for all
        Rows to use, ascending.
    weights : float64 array, or None
        One weight above 0 for each used row; bins have about equal weights.
    n_threads : int
        The result does not depend on it.
    tree_method : "hist", "exact" or "approx"
    bundling : bool
        Whether features share stored columns with "hist".
    max_conflict_rate : float
        Share of the rows in which features of a bundle may conflict.
    device : str
        Device of the fit, which encodes large tables of the host. The codes are the same.
    """
    n_levels = table.schema.n_levels
    if tree_method == "exact":
        ranks = core.rank(table.columns, rows, n_threads, list(n_levels))
        warn_constant_columns(table, rows, ranks.edges)
        return Binned(ranks, tuple(ranks.edges), table.schema, tree_method=tree_method)
    if tree_method == "approx":
        max_bins = MOST_BINS
    weights = varying_weights(weights)
    fixed = fixed_edges(table.schema, max_bins)
    if fixed:
        numeric = [feature for feature in range(table.schema.n_features) if feature not in fixed]
        numeric_edges = iter(
            core.quantiles(table.values.select(numeric), rows, weights, max_bins, n_threads)
        )
        edges = [
            fixed[feature] if feature in fixed else next(numeric_edges)
            for feature in range(table.schema.n_features)
        ]
    else:
        edges = core.quantiles(table.values, rows, weights, max_bins, n_threads)
    warn_constant_columns(table, rows, edges)
    categorical = [n > 0 for n in n_levels]
    plan = core.StoragePlan()
    if tree_method == "hist":
        plan = storage_plan(
            table.values,
            rows,
            edges,
            categorical=categorical,
            bundling=bundling,
            max_conflict_rate=max_conflict_rate,
            n_threads=n_threads,
        )
    number, n_rows = device_number(device), table.n_rows if rows is None else len(rows)
    on_host = isinstance(table.values, core.Columns) and not table.values.has_sparse
    if number >= 0 and n_rows * len(edges) >= _DEVICE_CELLS and on_host:
        codes = core.encode_on(number, table.columns, rows, edges, n_threads, categorical, plan)
    else:
        codes = core.encode(table.values, rows, edges, n_threads, categorical, plan)
    return Binned(codes, tuple(edges), table.schema, tree_method=tree_method, max_bins=max_bins)


def bin_for_purity(
    make: Callable[[int], Binned],
    truth: Callable[[], tuple[NDArray[Any] | None, Index | None]],
    values: tuple[Table, Index | None] | None = None,
) -> Binned:
    """Binned rows for ``max_bins="auto"``: trees can grow until their leaves are pure.

    There are 255 bins; or, on up to 32,768 rows, a bin for each value, where 255 bins put rows of
    different targets together although their values differ.

    Parameters
    ----------
    make : callable
        Returns the binned rows for a largest number of bins.
    truth : callable
        Returns the target of all rows, None where it is not known, and the positions of the rows
        that trees are grown on, None for all. Called after `make`.
    values : tuple, optional
        The table, and the positions of its binned rows: it spares bins that would not help.
    """
    usual = make(USUAL_BINS)
    if (
        usual.tree_method != "hist"
        or max((len(edges) for edges in usual.edges), default=0) < USUAL_BINS - 1
    ):
        return usual
    y, rows = truth()
    n_rows = usual.codes.n_rows if rows is None else len(rows)
    if y is None or n_rows > _MOST_PURE_ROWS:
        return usual
    targets = _target_columns(y)
    mixed = _mixed_rows(usual, targets, rows)
    if len(mixed) == 0 or (values is not None and not _differ(*values, mixed, targets)):
        return usual
    fine = make(MOST_BINS)
    return fine if len(_mixed_rows(fine, targets, rows)) < len(mixed) else usual


def _differ(
    table: Table,
    kept_rows: Index | None,
    mixed: Index,
    targets: Floats,
) -> bool:
    """Whether the values of mixed rows tell some of them apart."""
    rows = mixed if kept_rows is None else kept_rows[mixed]
    edges = core.quantiles(table.values, rows, None, MOST_BINS, 1)
    keys = core.encode(table.values, rows, edges, 1).row_keys()
    return len(core.mixed_rows(keys, targets[mixed])) < len(mixed)


def _target_columns(y: NDArray[Any]) -> Floats:
    """A number for each target of each row, equal where the targets are equal."""
    columns = y.reshape(len(y), -1).T
    numbers = [
        column if column.dtype.kind == "f" else encode_labels(column)[1] for column in columns
    ]
    return np.ascontiguousarray(np.stack(numbers, axis=1), dtype=np.float64)


def _mixed_rows(binned: Binned, targets: Floats, rows: Index | None) -> Index:
    """Rows, among the given ones, that have the codes of a row with other targets."""
    keys = binned.own_codes.row_keys()
    if isinstance(binned.codes, core.SharedCodes):
        parts = binned.codes.workers.gather(keys.tobytes())
        keys = np.frombuffer(b"".join(parts), np.uint64)
    if rows is not None:
        keys, targets = keys[rows], targets[rows]
    return core.mixed_rows(keys, targets)


def fixed_edges(schema: Schema, max_bins: int) -> dict[int, Floats]:
    """Edges that do not depend on the rows: of categories and calendar parts."""
    edges = {i: np.arange(0.5, n - 1) for i, n in enumerate(schema.n_levels) if n > 0}
    parts = enumerate(schema.parts, schema.n_columns)
    return edges | {i: part_edges(part, max_bins) for i, (_, part) in parts}


def storage_plan(
    columns: core.Columns | core.DeviceColumns,
    rows: Index | None,
    edges: Sequence[Floats],
    *,
    categorical: Sequence[bool] = (),
    bundling: bool = True,
    max_conflict_rate: float = 0.0,
    n_threads: int = 1,
) -> core.StoragePlan:
    """Storage plan of a table's codes: bundles, shared columns and sparse columns.

    The plan is made from about 30,000 rows, chosen by a hash; ``core.encode`` sees all rows, and
    stores columns that do not fit the plan on their own.

    Parameters
    ----------
    columns : core.Columns or core.DeviceColumns
    rows : uint32 array, or None for all
        Rows to use, ascending.
    edges : sequence of float64 arrays
        Bin edges of each column.
    categorical : sequence of bool
        Whether each column holds level codes; empty for no categories.
    bundling : bool
        False stores every column on its own, and sparse ones sparsely.
    max_conflict_rate : float
        Share of all rows in which more than one feature of a bundle may differ from its most
        frequent code. The first of them, in the order of the table, is then kept; the others get
        their most frequent code.
    n_threads : int
        The result does not depend on it.

    Examples
    --------
    >>> import numpy as np
    >>> from arboost.data.table import ingest
    >>> kind = np.arange(1000) % 3
    >>> one_hot = (kind[:, None] == np.arange(3)).astype(float)
    >>> one_hot[kind != 0] = one_hot[kind != 0] * (np.arange(1000)[kind != 0] % 5 == 0)[:, None]
    >>> plan = storage_plan(ingest(one_hot[:, 1:]).columns, None, [np.array([0.5])] * 2)
    >>> plan.digits
    [[0, 1]]
    """
    return core.plan_storage(
        columns, rows, list(edges), n_threads, list(categorical), bundling, max_conflict_rate
    )


_FEWEST_ROWS = 2  # fewer are always constant


def warn_constant_columns(table: Table, rows: Index | None, edges: Sequence[Floats]) -> None:
    """Warn where no column can be split: all are constant, or have no values.

    Parameters
    ----------
    table : Table
    rows : uint32 array, or None for all
        Training rows.
    edges : sequence of float64 arrays
        Bin edges of each column.
    """
    n_rows = table.n_rows if rows is None else len(rows)
    if n_rows < _FEWEST_ROWS or any(map(len, edges)):
        return
    kinds = set()
    for feature in range(table.schema.n_features):
        column = table.columns.read(feature)
        missing = np.isnan(column if rows is None else column[rows])
        if missing.any() and not missing.all():
            return  # a split can separate the missing values
        kinds.add(bool(missing.all()))
    if not kinds:
        return
    fault = "all values of X are missing" if kinds == {True} else "all columns of X are constant"
    warn_caller(
        f"{fault} in the {n_rows} training rows, so there is nothing to split on, and the model "
        "predicts a constant. Check how X was read, and the parameter `missing`."
    )
