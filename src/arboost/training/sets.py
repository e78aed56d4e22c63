"""Training and evaluation sets: rows of a binned table with their targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.bins import AnyCodes, Binned, bin_for_purity, bin_table
from arboost.data.dataset import Dataset
from arboost.data.stream.evaluation import StreamedTable
from arboost.data.stream.levels import StreamedLevels
from arboost.data.table import Table
from arboost.data.target_encoding import TargetEncodedTable
from arboost.losses import Target
from arboost.params.auto import AUTO
from arboost.params.records import BinParams
from arboost.training.checkpoint import digest
from arboost.training.inputs import VALIDATION, EngineRows, Index
from arboost.training.rounds import Scores

__all__ = [
    "EvaluationSet",
    "TrainingSet",
    "bin_rows",
    "build_sets",
    "digests_of",
    "fold_sets",
    "recorded_bins",
]


@dataclass(frozen=True)
class TrainingSet:
    """Training rows of a binned table, with their target.

    Attributes
    ----------
    binned : Binned
    target : Target
        Of the training rows alone, in their order.
    rows : uint32 array, or None for all
        The training rows among those of the table, ascending.
    start : float64 array of shape (n_training, n_outputs), or None
        Raw scores of the model whose training is continued, with the offset.
    offset : float64 array of shape (n_training, 1) or (n_training, n_outputs), or None
        Added to the base score where no model is continued.
    first_round : int
        Number of rounds of that model.
    """

    binned: Binned
    target: Target
    rows: Index | None = None
    start: Scores | None = None
    offset: Scores | None = None
    first_round: int = 0


@dataclass(frozen=True)
class EvaluationSet:
    """Rows that metrics are taken on after every round, binned with the training edges."""

    codes: AnyCodes
    target: Target
    rows: Index | None = None
    start: Scores | None = None
    offset: Scores | None = None
    name: str = VALIDATION

    @property
    def own_codes(self) -> core.Codes:
        """Codes of the rows in this process."""
        return self.codes.own if isinstance(self.codes, core.SharedCodes) else self.codes


def digests_of(data: TrainingSet, evaluations: Sequence[EvaluationSet]) -> dict[str, str]:
    """Return digests of the arrays of a fit, by name."""
    codes = data.binned.codes
    found = {
        "X": digest(*_arrays(codes), codes.is_category, *data.binned.edges, data.rows),
        "y": digest(data.target.y),
        "weights of the rows": digest(data.target.weight),
        "init_model": digest(data.start),
    }
    if data.offset is not None:
        offsets = (data.offset, *(part.offset for part in evaluations))
        found["offset"] = digest(*offsets)
    for part in evaluations:
        target = part.target
        arrays = (*_arrays(part.codes), part.rows, target.y, target.weight, part.start)
        found[f"{part.name} data"] = digest(*arrays)
    return found


def _arrays(codes: AnyCodes) -> Sequence[NDArray[Any]]:
    """Return the codes of a table; of one that workers share, their checksum."""
    if isinstance(codes, core.SharedCodes):
        return [np.array([codes.n_rows, codes.checksum()], np.uint64)]
    return codes.arrays


def build_sets(
    train: EngineRows, validation: Sequence[EngineRows], binned: Binned, n_threads: int
) -> tuple[TrainingSet, tuple[EvaluationSet, ...]]:
    """Return the sets of codes and targets; validation rows get codes by the training edges.

    Parameters
    ----------
    train : Rows
    validation : sequence of Rows
    binned : Binned
        The training rows of a table, or all rows of a Dataset.
    n_threads : int
    """
    rows = train.index if isinstance(train.source, Dataset) else None
    encoded = _encoded(train.source)
    if encoded is not None and any(one.source is train.source for one in validation):
        binned = replace(binned, group_order=encoded.group_order(_positions(train)))
    training = TrainingSet(binned, train.target, rows, train.start, train.offset)
    return training, tuple(_evaluation_set(train, one, binned, n_threads) for one in validation)


def _evaluation_set(
    train: EngineRows, validation: EngineRows, binned: Binned, n_threads: int
) -> EvaluationSet:
    codes: AnyCodes
    source, rows = validation.source, validation.index
    encoded = _encoded(source) if source is train.source else None
    if encoded is not None:
        fold = _positions(train), _positions(validation)
        codes = _held_out_codes(encoded, binned, fold, n_threads)
        rows = None
    elif isinstance(source, Dataset):
        codes = binned.codes
    elif isinstance(source, StreamedTable):
        codes = source.encode(binned, n_threads)
    else:
        codes = binned.encode(source, n_threads, rows)
        rows = None
    start, offset = validation.start, validation.offset
    return EvaluationSet(codes, validation.target, rows, start, offset, validation.name)


def fold_sets(
    part: EngineRows, binned: Binned, fold: tuple[Index, Index], n_threads: int
) -> tuple[TrainingSet, tuple[EvaluationSet, ...]]:
    """Return the sets of one fold: its training rows and its held-out rows, of one binned table.

    Parameters
    ----------
    part : Rows
        Rows that the table was binned for, or some rows of a Dataset.
    binned : Binned
    fold : pair of uint32 arrays
        Positions of the training rows and of the held-out rows in the part, ascending.
    n_threads : int
    """
    train, held_out = (part.take(rows) for rows in fold)
    if isinstance(part.source, Dataset) and part.index is not None:
        fold = part.index[fold[0]], part.index[fold[1]]
    rows: Index | None
    codes: AnyCodes
    encoded = _encoded(part.source)
    if encoded is not None:
        binned = replace(binned, group_order=encoded.group_order(fold[0]))
    data = TrainingSet(binned, train.target, fold[0], train.start, train.offset)
    if encoded is not None:
        rows, codes = None, _held_out_codes(encoded, binned, fold, n_threads)
    elif binned.is_ranked or binned.codes.is_stored:
        rows = fold[1]
        codes = binned.codes
    else:
        # All held-out rows walk every new tree, contiguous rows 512 at once. Each row is held out
        # once, so that the copies of all folds together are as large as the codes.
        rows, codes = None, binned.codes.take(fold[1], n_threads)
    start, offset = held_out.start, held_out.offset
    return data, (EvaluationSet(codes, held_out.target, rows, start, offset),)


def _encoded(source: Table | Dataset) -> TargetEncodedTable | None:
    """Return the table with target encodings, where there is one."""
    table = source.encoded_table if isinstance(source, Dataset) else source
    return table if isinstance(table, TargetEncodedTable) else None


def _positions(rows: EngineRows) -> Index:
    """Return the positions of these rows among the source's rows of nonzero weight."""
    assert rows.index is not None
    table = rows.source
    if not isinstance(table, TargetEncodedTable) or table.rows is None:
        return rows.index
    return np.searchsorted(table.rows, rows.index).astype(np.uint32)


def _held_out_codes(
    table: TargetEncodedTable, binned: Binned, fold: tuple[Index, Index], n_threads: int
) -> AnyCodes:
    """Return the codes of held-out rows, their levels encoded from the training rows only."""
    if isinstance(table, StreamedLevels):
        return table.held_out_codes(binned, fold, n_threads)
    return binned.encode(table.held_out(fold[0]), n_threads, table.table_rows(fold[1]))


def bin_rows(rows: EngineRows, params: BinParams, n_threads: int) -> Binned:
    """Return the bins of some rows of a table, or the bins that a Dataset has."""
    if isinstance(rows.source, Dataset):
        _check_dataset(rows.source, params)
        return rows.source.binned
    sought = params.sought_bins
    make = partial(_bin_table, rows, rows.source, params, n_threads)
    if isinstance(sought, int):
        return make(sought)
    return bin_for_purity(make, lambda: (rows.y, None), (rows.source, rows.index))


def recorded_bins(rows: EngineRows, params: BinParams) -> int | str:
    """Return the number of bins for the model file; "auto" where training rows decide."""
    if isinstance(rows.source, Dataset) and params.max_bins == AUTO and params.few_leaves:
        return rows.source.max_bins
    return params.sought_bins


def _bin_table(
    rows: EngineRows, table: Table, params: BinParams, n_threads: int, max_bins: int
) -> Binned:
    return bin_table(
        table,
        max_bins=max_bins,
        rows=rows.index,
        weights=rows.weight,
        n_threads=n_threads,
        tree_method=params.tree_method,
        bundling=params.bundling,
        max_conflict_rate=params.max_conflict_rate,
        device=params.device,
    )


def _check_dataset(data: Dataset, params: BinParams) -> None:
    data.binned.require(params.tree_method)
    if params.tree_method != "hist":
        return
    for name in ("max_bins", "max_conflict_rate"):
        given, own = getattr(params, name), getattr(data, name)
        if given not in (own, AUTO):
            raise ValueError(
                f"{name}={given} is not allowed: the Dataset was binned with {name}={own}. Make "
                "the two equal."
            )
