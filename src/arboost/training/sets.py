"""Evaluation sets and held-out rows: arguments of ``fit`` -> rows -> codes with their targets."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, cast

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.data import feature_names
from arboost.data.binned_source import SourceTable
from arboost.data.bins import AnyCodes, Binned, bin_for_purity, bin_table
from arboost.data.dataset import Dataset
from arboost.data.passes import SourceLevels
from arboost.data.source import is_source
from arboost.data.table import Table
from arboost.data.target import check_pairing
from arboost.data.target_encoding import TargetEncodedTable
from arboost.errors import InputTypeError, ParameterError, error_prefix
from arboost.losses.base import Floats, Target
from arboost.params.auto import AUTO, SEARCH_FOLDS
from arboost.params.records import BinParams, StoppingParams, ValidationParams
from arboost.training import inputs
from arboost.training.checkpoint import digest
from arboost.training.splits import Index, Split, check_divisible, folds, split

TRAINING = "train"  # name of the training table in results


# ---- evaluation sets in the arguments of fit ----


@dataclass(frozen=True)
class EvaluationArguments:
    """Arguments of `fit` for one evaluation set.

    Attributes
    ----------
    name : str
        Name in results.
    X, y, weight, offset : object
    X_name, all_names : str
        Names of the arguments in messages: of X, and of all four.
    is_training : bool
        Whether X is the training table itself, which cannot stop a fit.
    qid : object
        Query of each row, for rankings, or the name of a column.
    """

    name: str
    X: object
    y: object
    weight: object
    X_name: str
    all_names: str
    is_training: bool = False
    offset: object = None
    qid: object = None

    def rows(self, read: Callable[[object], inputs.TableT]) -> inputs.Rows[inputs.TableT]:
        """The rows, checked, of the table that `read` makes of X."""
        if isinstance(self.X, Dataset):
            raise InputTypeError(
                f"{self.X_name} is a Dataset, which holds bins of its own instead of values. Pass "
                "the table it was made from."
            )
        if isinstance(read, inputs.TableReader) and is_source(self.X):
            with error_prefix(self.all_names):
                streamed = read.rows(self.X, self.y, self.weight, self.offset, self.qid)
            return cast(inputs.Rows[inputs.TableT], replace(streamed, name=self.name))
        with error_prefix(self.all_names):
            check_pairing(self.X, None, sample_weight=self.weight, offset=self.offset)
            X, y, _ = feature_names.split_target(self.X, self.y)
            X, offset = feature_names.split_offset(X, self.offset)
            qid = inputs.group_values(X, self.qid, "qid")
            X, weight, _ = feature_names.split_row_columns(X, self.weight, self.qid, "qid")
        with error_prefix(self.X_name):
            table = read(X)
        if table.n_rows == 0:
            raise ValueError(
                f"{self.X_name} has no rows. Pass rows to validate on, or leave out {self.X_name}."
            )
        names, row_offset = feature_names.offset_names(self.offset), None
        if names is not None:
            with error_prefix(self.all_names):
                row_offset = feature_names.offset_values(offset, table.n_rows, names)
        rows = inputs.table_rows(table, y, weight, self.all_names, offset=row_offset)
        if self.qid is not None:
            with error_prefix(self.all_names):
                rows = rows.of_queries(qid)
        return replace(rows, name=self.name)

    def with_offset(self, offset: object) -> EvaluationArguments:
        """The set with its offset, given that of the training rows.

        Columns that were named for the training rows are those of the set as well.
        """
        names = feature_names.offset_names(offset)
        if names is None and self.offset is not None:
            raise ValueError(
                f"{self.all_names}: an offset came without that of the training rows. Pass offset "
                "too, or neither."
            )
        if names is None or self.offset is not None:
            return self
        if names == () and not self.is_training:
            where = "offset_val" if self.X_name == "X_val" else "a fourth entry, (X, y, w, offset)"
            raise ValueError(
                f"{self.all_names}: offset is an array, which says nothing about these rows. Pass "
                f"{where}, or name a column by offset."
            )
        return replace(self, offset=offset)


def evaluation_arguments(
    training: tuple[object, ...],
    validation: tuple[object, ...],
    eval_set: object = None,
    eval_names: object = None,
) -> tuple[EvaluationArguments, ...]:
    """The evaluation sets in the arguments of fit, the training rows first.

    Parameters
    ----------
    training : tuple
        X and y of the training rows, and their offset where the algorithm starts from one. A set
        of the same X, or of equal values, is the training table.
    validation : tuple
        X_val, y_val, sample_weight_val, and then offset_val, too.
    eval_set : list of pairs (X, y), triples (X, y, weight) or (X, y, weight, offset), or one
    eval_names : list of str, or None
        Names of the sets of `eval_set`; None: "train" for the training table, "validation" for one
        other set, "validation_0", "validation_1" and so on for several.
    """
    sets = _sets(training[:2], validation, eval_set, eval_names)
    for offset in training[2:]:
        X, start = training[0], offset
        if offset is None and isinstance(X, Dataset) and X.offset is not None:
            start = list(X.schema.offset or ()) or X.offset
        sets = tuple(arguments.with_offset(start) for arguments in sets)
    return sets


def _sets(
    training: tuple[object, ...], validation: tuple[object, ...], eval_set: Any, eval_names: Any
) -> tuple[EvaluationArguments, ...]:
    """The evaluation sets, without the offset of the training rows."""
    if eval_set is None:
        if eval_names is not None:
            raise ParameterError(
                f"eval_names={eval_names!r} came without eval_set. Pass both.",
                parameter="eval_names",
            )
        return _validation_set(*validation)
    if any(argument is not None for argument in validation):
        raise ValueError(
            "eval_set came together with X_val, y_val or sample_weight_val, its short form. Pass "
            "eval_set alone: it holds pairs (X, y) or triples (X, y, weight)."
        )
    entries = _entries(eval_set, len(validation))
    are_training = [
        entry[0] is training[0] or all(map(_are_equal, entry[:2], training)) for entry in entries
    ]
    if eval_names is None:
        names = _default_names(are_training)
    else:
        names = _checked_names(eval_names, len(entries))
    sets = [
        EvaluationArguments(
            name=names[i],
            X=X,
            y=y,
            weight=weight,
            offset=offset,
            X_name=f"X of eval_set[{i}]",
            all_names=f"eval_set[{i}]",
            is_training=are_training[i],
        )
        for i, (X, y, weight, offset) in enumerate(entries)
    ]
    return tuple(sorted(sets, key=lambda arguments: not arguments.is_training))


def _are_equal(first: Any, second: Any) -> bool:
    """Whether two tables or targets are of one type and have the same values."""
    if first is second:
        return True
    if type(first) is not type(second):
        return False
    if isinstance(first, str | list):
        try:
            return bool(first == second)
        except ValueError:  # lists of arrays
            return False
    if isinstance(first, np.ndarray):
        can_be_nan = first.dtype.kind in "fc"
        # The first rows of other tables of this shape are different, most often.
        return first.shape == second.shape and all(
            np.array_equal(first[rows], second[rows], equal_nan=can_be_nan)
            for rows in (slice(1), slice(None))
        )
    equals = getattr(first, "equals", None)  # of pandas, Polars and PyArrow
    return equals is not None and bool(equals(second))


def _validation_set(
    X_val: object, y_val: object, sample_weight_val: object, offset_val: object = None
) -> tuple[EvaluationArguments, ...]:
    """The set of the short form; raise ValueError where X_val or y_val is missing."""
    arguments = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val}
    arguments["offset_val"] = offset_val
    names = [name for name, value in arguments.items() if value is not None]
    if names and (X_val is None or y_val is None):
        missing = "X_val" if X_val is None else "y_val"
        raise ValueError(
            f"{' and '.join(names)} came without {missing}: validation needs both X_val and y_val. "
            f"Pass {missing} too, or none of them."
        )
    if not names:
        return ()
    return (
        EvaluationArguments(
            name=inputs.VALIDATION,
            X=X_val,
            y=y_val,
            weight=sample_weight_val,
            offset=offset_val,
            X_name="X_val",
            all_names="X_val, y_val, sample_weight_val",
        ),
    )


def _entries(eval_set: Any, most: int) -> list[tuple[Any, Any, Any, Any]]:
    """X, y, weight and offset of each set, which has at most `most` of them."""
    sets = eval_set
    if isinstance(sets, tuple) and sets and not isinstance(sets[0], tuple | list):
        sets = [sets]  # one pair, not in a list
    is_list = isinstance(sets, list | tuple) and sets
    if not is_list or not all(isinstance(entry, tuple | list) for entry in sets):
        raise InputTypeError(
            f"eval_set={reprlib.repr(eval_set)} ({type(eval_set).__name__}) is not allowed: it "
            "must be a list of pairs (X, y) or triples (X, y, weight). Use for example "
            "eval_set=[(X_train, y_train), (X_val, y_val)]."
        )
    for i, entry in enumerate(sets):
        if not 2 <= len(entry) <= most:  # noqa: PLR2004 - X and y
            allowed = ("(X, y)", "(X, y, weight)", "(X, y, weight, offset)")[: most - 1]
            raise ValueError(
                f"eval_set[{i}] has {len(entry)} entries, but a set is {' or '.join(allowed)}. "
                "Pass each set as a tuple."
            )
    return [(*entry, None, None)[:4] for entry in sets]


def _default_names(are_training: Sequence[bool]) -> list[str]:
    number = iter(range(len(are_training)))
    is_single = are_training.count(False) == 1
    return [
        TRAINING
        if is_training
        else inputs.VALIDATION
        if is_single
        else f"{inputs.VALIDATION}_{next(number)}"
        for is_training in are_training
    ]


def _checked_names(eval_names: object, n_sets: int) -> list[str]:
    names: list[Any] = list(eval_names) if isinstance(eval_names, list | tuple) else [None]
    if not all(isinstance(name, str) for name in names):
        raise InputTypeError(
            f"eval_names={eval_names!r} ({type(eval_names).__name__}) is not allowed: it must be a "
            "list of strings. Pass a name for each set of eval_set."
        )
    if len(set(names)) < len(names) or len(names) != n_sets:
        raise ParameterError(
            f"eval_names={names!r} is not allowed: eval_set has {n_sets} sets. Pass as many names, "
            "all different.",
            parameter="eval_names",
        )
    return names


def check_validation(
    params: StoppingParams, sets: Sequence[EvaluationArguments], *, splits: bool, groups: object
) -> None:
    """Raise ValueError where arguments of fit contradict the parameters of validation.

    `splits` says whether held-out rows are taken of the training rows.
    """
    if groups is not None and not splits:
        set_names = [arguments.X_name for arguments in sets if not arguments.is_training]
        reason = f"{set_names[-1]} is given" if set_names else "n_iter_no_change=None asks for none"
        raise ParameterError(
            f"groups are for the automatic split of validation rows, but {reason}. Leave out "
            "groups.",
            parameter="groups",
        )
    if splits and any(arguments.name == inputs.VALIDATION for arguments in sets):
        raise ValueError(
            f"eval_names holds {inputs.VALIDATION!r}, the name of the held-out rows of early "
            "stopping. Use another name for the training rows."
        )
    if params.eval_metric is not None and not sets and not splits:
        raise ParameterError(
            f"eval_metric={params.eval_metric!r} has no rows to be measured on. Pass X_val and "
            "y_val, or set n_iter_no_change for an automatic split.",
            parameter="eval_metric",
        )


# ---- held-out rows of the training rows ----


@dataclass(frozen=True)
class RowSplitter(Generic[inputs.TableT]):
    """Splits of the training rows into rows to train on and held-out rows.

    Attributes
    ----------
    rows : Rows
    params : ValidationParams
    groups : array or None
        Group of each row given to fit.
    stratify : bool
        Whether held-out rows keep the shares of the classes.
    """

    rows: inputs.Rows[inputs.TableT]
    params: ValidationParams
    groups: object = None
    stratify: bool = False

    def divide(self) -> tuple[inputs.Rows[inputs.TableT], inputs.Rows[inputs.TableT]]:
        """Training and validation rows."""
        train, held_out = self._split(stratify=self.stratify)
        return self.rows.take(train), self.rows.take(held_out)

    def search_splits(self, n_folds: int | None) -> tuple[Split, ...]:
        """Splits on which the number of rounds is searched.

        `n_folds` is the number of folds of a cross-validation that are trained; None: one split.
        """
        y = self.rows.y
        check_divisible(len(y))
        if n_folds is None:
            return (self._split(stratify=self._can_stratify),)
        n_all = min(SEARCH_FOLDS, len(y))
        all_folds = folds(y, n_all, seed=self.params.random_state, stratify=self._can_stratify)
        return tuple(all_folds[:n_folds])

    def other_splits(self, n_folds: int) -> tuple[Split, ...]:
        """Splits other than the one of `search_splits`: folds, or the rows before the last.

        Rows in the order of time have two: that split, and the same share of rows before it.
        """
        if self.params.validation_split == "time":
            train, held_out = self._split(stratify=False)
            start = len(train) - len(held_out)
            last = train, held_out
            return (last, (train[:start], train[start:])) if start > 0 else (last,)
        groups = self._row_groups()
        if groups is not None:
            n_folds = min(n_folds, len(np.unique(groups)))
        stratify = groups is None and self._can_stratify
        seed = self.params.random_state
        return tuple(folds(self.rows.y, n_folds, seed=seed, stratify=stratify, groups=groups))

    def _split(self, *, stratify: bool) -> Split:
        return split(
            self.rows.y,
            how=self.params.validation_split,
            fraction=self.params.validation_fraction,
            seed=self.params.random_state,
            stratify=stratify and self.params.validation_split == "random",
            groups=self._row_groups(),
        )

    @property
    def _can_stratify(self) -> bool:
        # A class of one row cannot be on both sides: then splits ignore the classes.
        return self.stratify and bool(np.bincount(self.rows.y.astype(np.intp)).min() > 1)

    def _row_groups(self) -> NDArray[Any] | None:
        if self.groups is None:
            return None
        source, groups = self.rows.source, self.groups
        if isinstance(source, Dataset) and source.groups is not None:
            groups = source.groups  # of the rows of nonzero weight
        return groups_of(groups, source.n_rows, self.rows.index)


def groups_of(groups: object, n_rows: int, index: Index | None) -> NDArray[Any]:
    """The groups of some rows, given the groups of all rows."""
    array = np.asarray(groups)
    if array.shape != (n_rows,):
        raise ValueError(
            f"groups have the shape {array.shape}, but X has {n_rows} rows. Pass one group for "
            "each row."
        )
    return array if index is None else array[index]


# ---- sets of codes and targets ----


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
    start: Floats | None = None
    offset: Floats | None = None
    first_round: int = 0


@dataclass(frozen=True)
class EvaluationSet:
    """Rows that metrics are taken on after every round, binned with the training edges."""

    codes: AnyCodes
    target: Target
    rows: Index | None = None
    start: Floats | None = None
    offset: Floats | None = None
    name: str = inputs.VALIDATION

    @property
    def own_codes(self) -> core.Codes:
        """Codes of the rows in this process."""
        return self.codes.own if isinstance(self.codes, core.SharedCodes) else self.codes


def digests_of(data: TrainingSet, evaluations: Sequence[EvaluationSet]) -> dict[str, str]:
    """Digests of the arrays of a fit, by name."""
    codes = data.binned.codes
    digests = {
        "X": digest(*_arrays(codes), codes.is_category, *data.binned.edges, data.rows),
        "y": digest(data.target.y),
        "weights of the rows": digest(data.target.weight),
        **({} if data.target.query is None else {"qid": digest(data.target.query)}),
        "init_model": digest(data.start),
    }
    if data.offset is not None:
        offsets = (data.offset, *(part.offset for part in evaluations))
        digests["offset"] = digest(*offsets)
    for part in evaluations:
        target = part.target
        arrays = (*_arrays(part.codes), part.rows, target.y, target.weight, part.start)
        arrays += () if target.query is None else (target.query,)
        digests[f"{part.name} data"] = digest(*arrays)
    return digests


def _arrays(codes: AnyCodes) -> Sequence[NDArray[Any]]:
    """The codes of a table; of one that workers share, their checksum."""
    if isinstance(codes, core.SharedCodes):
        return [np.array([codes.n_rows, codes.checksum()], np.uint64)]
    return codes.arrays


def build_sets(
    train: inputs.EngineRows,
    validation: Sequence[inputs.EngineRows],
    binned: Binned,
    n_threads: int,
) -> tuple[TrainingSet, tuple[EvaluationSet, ...]]:
    """The sets of codes and targets; validation rows get codes by the training edges.

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
    if encoded is not None and any(part.source is train.source for part in validation):
        binned = replace(binned, group_order=encoded.group_order(_positions(train)))
    training = TrainingSet(binned, train.target, rows, train.start, train.offset)
    return training, tuple(_evaluation_set(train, part, binned, n_threads) for part in validation)


def _evaluation_set(
    train: inputs.EngineRows, validation: inputs.EngineRows, binned: Binned, n_threads: int
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
    elif isinstance(source, SourceTable):
        codes = source.encode(binned, n_threads)
    else:
        codes = binned.encode(source, n_threads, rows)
        rows = None
    start, offset = validation.start, validation.offset
    return EvaluationSet(codes, validation.target, rows, start, offset, validation.name)


def fold_sets(
    part: inputs.EngineRows, binned: Binned, fold: tuple[Index, Index], n_threads: int
) -> tuple[TrainingSet, tuple[EvaluationSet, ...]]:
    """The sets of one fold: its training rows and its held-out rows, of one binned table.

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
    elif binned.tree_method == "exact" or binned.codes.is_stored:
        rows = fold[1]
        codes = binned.codes
    else:
        # All held-out rows walk every new tree, contiguous rows 512 at once. Each row is held out
        # once, so that the copies of all folds together are as large as the codes.
        rows, codes = None, binned.codes.take(fold[1], n_threads)
    start, offset = held_out.start, held_out.offset
    return data, (EvaluationSet(codes, held_out.target, rows, start, offset),)


def _encoded(source: Table | Dataset) -> TargetEncodedTable | None:
    """The table with target encodings, where there is one."""
    table = source.encoded_table if isinstance(source, Dataset) else source
    return table if isinstance(table, TargetEncodedTable) else None


def _positions(rows: inputs.EngineRows) -> Index:
    """The positions of these rows among the source's rows of nonzero weight."""
    assert rows.index is not None
    table = rows.source
    if not isinstance(table, TargetEncodedTable) or table.rows is None:
        return rows.index
    return np.searchsorted(table.rows, rows.index).astype(np.uint32)


def _held_out_codes(
    table: TargetEncodedTable, binned: Binned, fold: tuple[Index, Index], n_threads: int
) -> AnyCodes:
    """The codes of held-out rows, their levels encoded from the training rows only."""
    if isinstance(table, SourceLevels):
        return table.held_out_codes(binned, fold, n_threads)
    return binned.encode(table.held_out(fold[0]), n_threads, table.table_rows(fold[1]))


def bin_rows(rows: inputs.EngineRows, params: BinParams, n_threads: int) -> Binned:
    """The bins of some rows of a table, or the bins that a Dataset has."""
    if isinstance(rows.source, Dataset):
        _check_dataset(rows.source, params)
        return rows.source.binned
    max_bins = params.sought_bins
    make = partial(_bin_table, rows, rows.source, params, n_threads)
    if isinstance(max_bins, int):
        return make(max_bins)
    return bin_for_purity(make, lambda: (rows.y, None), (rows.source, rows.index))


def recorded_bins(rows: inputs.EngineRows, params: BinParams) -> int | str:
    """The number of bins for the model file; "auto" where training rows decide."""
    if isinstance(rows.source, Dataset) and params.max_bins == AUTO and params.few_leaves:
        return rows.source.max_bins
    return params.sought_bins


def _bin_table(
    rows: inputs.EngineRows, table: Table, params: BinParams, n_threads: int, max_bins: int
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
        value, dataset_value = getattr(params, name), getattr(data, name)
        if value not in (dataset_value, AUTO):
            raise ParameterError(
                f"{name}={value} is not allowed: the Dataset was binned with "
                f"{name}={dataset_value}. Make "
                "the two equal.",
                parameter=name,
            )
