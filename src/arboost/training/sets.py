"""Training and evaluation sets: rows of a binned table with their targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data.bins import Binned, bin_table
from arboost.data.dataset import Dataset
from arboost.data.table import Table
from arboost.data.target_encoding import TargetEncodedTable
from arboost.losses import Target
from arboost.training.checkpoint import digest
from arboost.training.inputs import Part
from arboost.training.rounds import Scores

__all__ = [
    "VALIDATION",
    "EvaluationSet",
    "TrainingSet",
    "bin_part",
    "build_sets",
    "digests_of",
    "fold_sets",
]


Index = NDArray[np.uint32]


@dataclass(frozen=True)
class TrainingSet:
    """What is learnt from: rows of a binned table, and their target.

    Attributes
    ----------
    binned : Binned
    target : Target
        Of the training rows alone, in their order.
    rows : uint32 array, or None for all
        The training rows among those of the table, ascending.
    start : float64 array of shape (n_training, n_outputs), or None
        Scores of a model whose training goes on.
    first_round : int
        Rounds of that model.
    """

    binned: Binned
    target: Target
    rows: Index | None = None
    start: Scores | None = None
    first_round: int = 0


@dataclass(frozen=True)
class EvaluationSet:
    """What is looked at after every round: rows of a table that was binned with the same edges."""

    name: str
    codes: core.Codes
    target: Target
    rows: Index | None = None
    start: Scores | None = None


def digests_of(data: TrainingSet, evaluations: Sequence[EvaluationSet]) -> dict[str, str]:
    """Return fingerprints of the data that a fit is given, by what they are of."""
    codes = data.binned.codes
    found = {
        "X": digest(*codes.arrays, codes.is_category, *data.binned.edges, data.rows),
        "y": digest(data.target.y),
        "weights of the rows": digest(data.target.weight),
        "init_model": digest(data.start),
    }
    for part in evaluations:
        target = part.target
        arrays = (*part.codes.arrays, part.rows, target.y, target.weight, part.start)
        found[f"{part.name} data"] = digest(*arrays)
    return found


VALIDATION = "validation"  # what results call the evaluation set


def build_sets(
    train: Part, validation: Part | None, binned: Binned, n_threads: int
) -> tuple[TrainingSet, tuple[EvaluationSet, ...]]:
    """Return the sets of codes and targets; validation rows get codes by the training edges.

    Parameters
    ----------
    train, validation : Part
    binned : Binned
        The training rows of a table, or all rows of a Dataset.
    n_threads : int
    """
    rows = train.rows if isinstance(train.source, Dataset) else None
    training = TrainingSet(binned, train.target, rows, train.start)
    if validation is None:
        return training, ()
    source, rows = validation.source, validation.rows
    encoded_table = _encoded_table(source) if source is train.source else None
    if encoded_table is not None:
        fold = train.numbers(), validation.numbers()
        codes = _held_out_codes(encoded_table, binned, fold, n_threads)
        rows = None
    elif isinstance(source, Dataset):
        codes = binned.codes
    else:
        codes = binned.encode(source, n_threads, rows)
        rows = None
    return training, (EvaluationSet(VALIDATION, codes, validation.target, rows, validation.start),)


def fold_sets(
    part: Part, binned: Binned, fold: tuple[Index, Index], n_threads: int
) -> tuple[TrainingSet, tuple[EvaluationSet, ...]]:
    """Return the sets of one fold: some of the rows of one table to train on, others to measure.

    Parameters
    ----------
    part : Part
        Rows that the table was binned for, or some rows of a Dataset.
    binned : Binned
    fold : pair of uint32 arrays
        Numbers, among the rows of the part, of those to train on and those to hold out, ascending.
    n_threads : int
    """
    train, held_out = (part.take(rows) for rows in fold)
    if isinstance(part.source, Dataset) and part.rows is not None:
        fold = part.rows[fold[0]], part.rows[fold[1]]
    data = TrainingSet(binned, train.target, fold[0], train.start)
    rows: Index | None
    encoded_table = _encoded_table(part.source)
    if encoded_table is not None:
        rows, codes = None, _held_out_codes(encoded_table, binned, fold, n_threads)
    elif binned.is_ranked:
        rows = fold[1]
        codes = binned.codes
    else:
        # Every new tree is walked by all of them: side by side, 64 at once. Each row is held out
        # once, so that the copies of all folds together are as large as the codes.
        rows, codes = None, binned.codes.take(fold[1], n_threads)
    return data, (EvaluationSet(VALIDATION, codes, held_out.target, rows, held_out.start),)


def _encoded_table(source: Table | Dataset) -> TargetEncodedTable | None:
    """Return the table in which numbers stand for categories of many levels, where there is one."""
    table = source.encoded_table if isinstance(source, Dataset) else source
    return table if isinstance(table, TargetEncodedTable) else None


def _held_out_codes(
    table: TargetEncodedTable, binned: Binned, fold: tuple[Index, Index], n_threads: int
) -> core.Codes:
    """Return the codes of held-out rows by what training rows say of their levels."""
    return binned.encode(table.held_out(fold[0]), n_threads, table.table_rows(fold[1]))


def bin_part(part: Part, params: dict[str, Any], n_threads: int) -> Binned:
    """Return the bins of a part: those of its rows, or of the whole of a Dataset."""
    if isinstance(part.source, Dataset):
        _check_dataset(part.source, params)
        return part.source.binned
    return bin_table(
        part.source,
        max_bins=params["max_bins"],
        rows=part.rows,
        weights=part.target.weight,
        n_threads=n_threads,
        tree_method=params["tree_method"],
        bundling=params["bundling"],
        max_conflict_rate=params["max_conflict_rate"],
    )


def _check_dataset(data: Dataset, params: dict[str, Any]) -> None:
    data.binned.require(params["tree_method"])
    if params["tree_method"] != "hist":
        return
    for name in ("max_bins", "max_conflict_rate"):
        if params[name] != getattr(data, name):
            raise ValueError(
                f"{name}={params[name]} is not allowed: the Dataset was binned with "
                f"{name}={getattr(data, name)}. Make the two equal."
            )
