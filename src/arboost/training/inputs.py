"""Arguments of ``fit`` -> `Rows`, checked: rows of nonzero weight with their target and weights.

X, y, sample_weight, offset ────▶ Rows ─┬─(split)─▶ TrainingSet
eval_set; X_val, y_val ─────────▶ Rows ─┴─────────▶ EvaluationSet

Files, queries and iterables become a `Dataset` first, read in batches.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, Self, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from arboost.backend import threads
from arboost.data import feature_names
from arboost.data.batch_rows import EdgeRows
from arboost.data.bins import APPROX_BYTES, BATCH_METHODS
from arboost.data.dataset import Dataset
from arboost.data.memory import RowState
from arboost.data.schema import Schema
from arboost.data.source import is_source
from arboost.data.table import ColumnOptions, Table, ingest
from arboost.data.target import Task, check_pairing, class_factors, encode_labels, target, weights
from arboost.data.target_encoding import encoded_features, target_encode, without_target_encoding
from arboost.errors import ParameterError, error_prefix, warn_once
from arboost.losses.base import Codes, Floats, Loss, Target
from arboost.losses.links import check_offset
from arboost.losses.ranking import check_query_weights, query_codes
from arboost.params.auto import AUTO
from arboost.params.records import BinParams, ValidationParams
from arboost.training.splits import Index, split

_TWO_CLASSES = 2
VALIDATION = "validation"  # name of the validation set in results
NO_OFFSET = object()


class AnyTable(Protocol):
    """A table that rows belong to."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        ...

    @property
    def schema(self) -> Schema:
        """Columns."""
        ...


T = TypeVar("T", bound=np.generic)
TableT = TypeVar("TableT", bound=AnyTable)
TableT_co = TypeVar("TableT_co", bound=AnyTable, covariant=True)


@dataclass(frozen=True, eq=False)
class Rows(Generic[TableT_co]):
    """Rows of a table with their target and weights; `fit` takes rows of a Dataset for X.

    Attributes
    ----------
    source : Table, Dataset, or a table that estimators read
    index : uint32 array, or None for all
        Positions of the rows in the source, ascending.
    y : array of shape (n_rows,) or (n_rows, n_targets)
        Labels or values as the user gave them; float64 as losses read it after `weighted_rows`.
    weight : float64 array of shape (n_rows,), or None
        Weights above 0.
    start : float64 array of shape (n_rows, n_outputs), or None
        Raw scores of the model whose training is continued, with the offset.
    offset : float64 array of shape (n_rows, 1) or (n_rows, n_outputs), or None
        Part of the raw scores that is known before training.
    query : int64 array of shape (n_rows,), or None
        Number of each row's query, for rankings.
    name : str
        Name of an evaluation set in results.
    """

    source: TableT_co
    index: Index | None
    y: NDArray[Any]
    weight: Floats | None = None
    start: Floats | None = None
    offset: Floats | None = None
    query: Codes | None = None
    name: str = VALIDATION

    @property
    def schema(self) -> Schema:
        """Columns of the source, and whether there is an offset."""
        schema = self.source.schema
        if self.offset is None or schema.offset is not None:
            return schema
        return replace(schema, offset=())

    @property
    def target(self) -> Target:
        """Target and weights as losses read them."""
        return Target(self.y, self.weight, self.query)

    def take(self, positions: Index) -> Self:
        """Some of the rows, by their positions among these."""

        def select(array: NDArray[T] | None) -> NDArray[T] | None:
            return None if array is None else array[positions]

        return replace(
            self,
            index=positions if self.index is None else self.index[positions],
            y=self.y[positions],
            weight=select(self.weight),
            start=select(self.start),
            offset=select(self.offset),
            query=select(self.query),
        )

    def of_queries(self, qid: object, argument: str = "qid") -> Self:
        """The rows with the queries of all rows of the table."""
        index, n_rows = self.index, self.source.n_rows
        codes = query_codes(qid, n_rows, argument)
        query = codes if index is None or len(index) == len(codes) else codes[index]
        check_query_weights(query, self.weight)
        return replace(self, query=query)

    def started(self, scores: Floats) -> Self:
        """The rows with the raw scores of a model for all rows of the source."""
        start = scores if self.index is None else scores[self.index]
        return replace(self, start=start if self.offset is None else start + self.offset)


EngineRows = Rows[Table | Dataset]


# ---- training rows ----


def training_rows(  # noqa: PLR0913 - the arguments of fit that tell the rows
    X: object,
    y: object,
    sample_weight: object,
    schema: Schema | None = None,
    options: ColumnOptions | None = None,
    *,
    several: bool = False,
    device: str = "cpu",
    offset: object = NO_OFFSET,
    groups: object = None,
    groups_name: str = "groups",
) -> EngineRows:
    """The training rows, checked.

    Parameters
    ----------
    X, y, sample_weight
        As `fit` takes them.
    schema : Schema, optional
        Schema of the model whose training is continued.
    options : ColumnOptions, optional
        Options of the columns in the parameters.
    several : bool
        Whether y may have several columns.
    device : str
        Device of the fit, which may hold X.
    offset
        As `fit` takes it; `NO_OFFSET` for an algorithm that takes none.
    groups
        As `fit` takes it: the column that it names is not used as a feature.
    groups_name : str
        Its name in messages.
    """
    options = ColumnOptions() if options is None else options
    if isinstance(X, Dataset | Rows):
        return _dataset_rows(
            X,
            y,
            sample_weight,
            schema,
            options,
            several=several,
            offset=offset,
            groups=groups,
        )
    if schema is not None:
        _check_schema(options, schema)
    offset = None if offset is NO_OFFSET else offset
    check_pairing(X, y, sample_weight=sample_weight, offset=offset)
    X, y, target_name = feature_names.split_target(X, y)
    X, values = feature_names.split_offset(X, offset)
    X, sample_weight, row_columns = feature_names.split_row_columns(
        X, sample_weight, groups, groups_name
    )
    # At prediction, levels become their stored encodings; training rows are encoded anew.
    known = None if schema is None else without_target_encoding(schema)
    table = ingest(X, known, options=options, device=device)
    names = _offset_columns(offset, schema)
    schema = replace(
        table.schema,
        target=table.schema.target if target_name is None else target_name,
        offset=names,
        row_columns=row_columns or table.schema.row_columns,
    )
    table = replace(table, schema=schema)
    if table.n_rows == 0:  # without a schema, ingest says so itself
        raise ValueError("X has no rows. Pass at least one row to train on.")
    row_offset = None if names is None else feature_names.offset_values(values, table.n_rows, names)
    return table_rows(table, y, sample_weight, several=several, offset=row_offset)


def _dataset_rows(
    data: Dataset | Rows[Any],
    y: object,
    sample_weight: object,
    schema: Schema | None,
    options: ColumnOptions,
    *,
    several: bool,
    offset: object,
    groups: object,
) -> EngineRows:
    """The rows of a Dataset, or some of them, with a target and weights that may be others."""
    _refuse_names(sample_weight=sample_weight, groups=groups)
    if schema is not None:
        raise ValueError(
            "X is a Dataset, which holds bins instead of values, but init_model must score the "
            "values. Pass the table that the Dataset was made from."
        )
    if offset is NO_OFFSET and data.offset is not None:
        raise ValueError(
            "the Dataset has an offset, which only gradient boosting starts from. Make a Dataset "
            "without offset for other algorithms."
        )
    if isinstance(data, Rows):
        options.check_follows(data.source.column_options, "the Dataset")
        return data
    options.check_follows(data.column_options, "the Dataset")
    labels = data.y if y is None and data.y is not None else None
    if labels is None:
        labels = target(y, data.n_rows, several=several)
    weight = data.sample_weight
    if sample_weight is not None:
        weight = check_weight_sum(weights(sample_weight, data.n_rows))
    if weight is not None and not weight.all():
        raise ValueError(
            f"sample_weight is 0 in {np.count_nonzero(weight == 0)} rows, but the rows of a "
            "Dataset are binned already and cannot be left out. Pass these weights to Dataset."
        )
    row_offset = data._offset_of(None if offset is NO_OFFSET else offset)
    return Rows(data, None, labels, weight, offset=row_offset)


def _offset_columns(offset: object, schema: Schema | None) -> tuple[str, ...] | None:
    """The columns of the offset, which the model whose training is continued may need."""
    names = feature_names.offset_names(offset)
    if schema is not None and schema.offset is not None and names is None:
        raise ValueError(
            "offset is None, but the model whose training is continued was fitted with an "
            "offset. Pass the offset of these rows, or offset=0."
        )
    return names


def _refuse_names(**values: object) -> None:
    """Raise ValueError for values of the rows of a Dataset that are the name of a column."""
    for argument, value in values.items():
        if isinstance(value, str):
            raise ValueError(
                f"{argument}={value!r} names a column, but X is a Dataset, which holds bins. Pass "
                "an array, or name the column of weights in Dataset(X, y, sample_weight=...)."
            )


def target_encode_rows(
    rows: EngineRows, tasks: Sequence[Task], known: Schema | None, encoding: str
) -> EngineRows:
    """The rows with target encodings of the categories of many levels.

    Parameters
    ----------
    rows : Rows
    tasks : sequence of Task
        With the targets of these rows as losses read them.
    known : Schema or None
        Schema of the model whose training is continued.
    encoding : {"groups", "mean"}
        Of features that have none in the known schema.
    """
    source = rows.source
    if isinstance(source, Dataset):
        _check_numbers(source, rows.y, tasks[0].n_classes)
        return rows
    table = target_encode(
        source,
        [(task.y, task.n_classes) for task in tasks],
        encoding=encoding,
        weight=rows.weight,
        rows=rows.index,
        known=known,
    )
    return rows if table is source else replace(rows, source=table)


def loss_rows(
    rows: Rows[TableT],
    held_out: Sequence[Rows[TableT]],
    task: Task,
    loss: Loss,
    factors: Floats | None,
) -> tuple[Rows[TableT], tuple[Rows[TableT], ...]]:
    """Training and validation rows with the target of the loss and the class weights."""
    loss.check_target(task.y)

    def check(part: Rows[TableT]) -> Rows[TableT]:
        y = task.encode(part.y, _argument("y", part.name))
        check_offset(part.offset, loss.n_outputs, loss.link, _argument("offset", part.name))
        # Some losses need a value above 0, which few validation rows may not have.
        loss.check_target(np.append(y, task.y.max()))
        return weighted_rows(part, y, factors)

    check_offset(rows.offset, loss.n_outputs, loss.link)
    return weighted_rows(rows, task.y, factors), tuple(map(check, held_out))


def _argument(name: str, set_name: str) -> str:
    """The name of an argument on an evaluation set in messages."""
    return f"{name}_val" if set_name == VALIDATION else f"{name} of the set {set_name!r}"


def weighted_rows(rows: Rows[TableT], y: Floats, factors: Floats | None) -> Rows[TableT]:
    """Rows with the target of the losses and weights times the factors of their classes.

    Parameters
    ----------
    rows : Rows
    y : float64 array of shape (n_rows,)
        Class codes, or values.
    factors : float64 array of shape (n_classes,), or None
    """
    weight = rows.weight
    if factors is not None:
        class_factors = factors[y.astype(np.intp)]
        with np.errstate(over="ignore", under="ignore"):
            weight = class_factors if weight is None else weight * class_factors
        if not weight.all():
            raise ValueError(
                f"class weights down to {factors.min()} times sample_weight are 0 in floating "
                "point. Only ratios of weights matter much: scale them up."
            )
    weight = check_weight_sum(weight, "class weights times sample_weight")
    return replace(rows, y=y, weight=weight)


def _check_schema(options: ColumnOptions, schema: Schema) -> None:
    """Raise ValueError where column options contradict the schema of a fitted model."""
    encoded = {
        "mean" if levels.groups is None else "groups"
        for levels in schema.levels
        if levels is not None and levels.is_encoded
    }
    encoding = encoded.pop() if len(encoded) == 1 else options.category_encoding
    known = replace(options, missing=schema.missing, category_encoding=encoding)
    options.check_follows(known, "init_model")
    named = options.categories(schema.columns, schema.n_columns)
    numeric = [schema.label(i) for i in sorted(named) if schema.levels_of(i) is None]
    if numeric:
        raise ParameterError(
            f"categorical_features names {', '.join(numeric)}, but init_model was fitted on "
            "numbers there. Leave them out, or train a new model.",
            parameter="categorical_features",
        )


def _check_numbers(data: Dataset, y: NDArray[Any], n_classes: int | None) -> None:
    """Raise ValueError where the target encoding of a Dataset comes from another target."""
    schema = data.binned.schema
    features = encoded_features(schema)
    if not features:
        return
    encoded = f"column {schema.label(features[0])} of the Dataset has numbers for its many levels"
    if y is not data.y and not np.array_equal(y, cast(Any, data.y)):
        raise ValueError(
            f"{encoded}, which come from the y that it was made with, but another y was passed to "
            "fit. Leave out y, or make a Dataset with this one."
        )
    if n_classes is not None and n_classes > _TWO_CLASSES and data.level_classes is None:
        raise ValueError(
            f"{encoded}, which take y for a number, but y has {n_classes} classes. Pass the table "
            "itself to fit, or make the Dataset with labels that are strings."
        )


def warn_one_class(X: object, tasks: Sequence[Task]) -> None:
    """Warn where the only target has a single class; samples of members (`Rows`) may have one."""
    if isinstance(X, Rows) or len(tasks) > 1 or len(tasks[0].y) == 1:
        return
    if tasks[0].is_constant:
        (label,) = cast(Any, tasks[0].classes).tolist()
        warn_once(
            f"y has one class only, {label!r}: the model always predicts it. Pass rows of at least "
            "two classes.",
            "classes",
        )


def table_rows(
    table: TableT,
    y: object,
    sample_weight: object,
    names: str = "",
    *,
    several: bool = False,
    offset: Floats | None = None,
) -> Rows[TableT]:
    """The rows of nonzero weight of a table, with y and weights checked.

    Messages begin with the names of the arguments of `fit`, where there are any.
    """
    with error_prefix(names) if names else nullcontext():
        labels = target(y, table.n_rows, several=several)
        weight = check_weight_sum(weights(sample_weight, table.n_rows))
    rows = Rows(table, None, labels, weight, offset=offset)
    if weight is None or weight.all():
        return rows
    return rows.take(np.flatnonzero(weight).astype(np.uint32))


def check_weight_sum(weight: Floats | None, name: str = "sample_weight") -> Floats | None:
    """The weights; raise ValueError where their sum is infinite."""
    if weight is not None:
        with np.errstate(over="ignore"):
            total = weight.sum()
        if not np.isfinite(total):
            raise ValueError(
                f"the sum of {name} is {total}: its largest value, {weight.max()}, is too large "
                f"for {len(weight)} rows. Only ratios of weights matter much: scale them down."
            )
    return weight


# ---- sources, which are read in batches ----


@dataclass(frozen=True)
class SourceOptions:
    """Arguments of ``fit`` for sources.

    Attributes
    ----------
    memory_limit : int or str
    cache : path or None
    groups : str, array or None
        Groups of the rows; a string is a column of the source.
    offset : str, list of str, numbers or None
    has_validation : bool
        Whether there are evaluation sets that stop a fit early.
    """

    memory_limit: int | str = "auto"
    cache: str | os.PathLike[str] | None = None
    groups: object = None
    has_validation: bool = False
    offset: object = None

    def check_unused(self) -> None:
        """Raise ParameterError where an argument for sources is passed with a table."""
        for name, unused in (("memory_limit", "auto"), ("cache", None)):
            value = getattr(self, name)
            if value != unused:
                raise ParameterError(
                    f"{name}={value!r} is for files and other sources of batches, but X is a table "
                    "in memory. Leave it out, or pass the path of the files.",
                    parameter=name,
                )


def group_values(X: object, groups: object, argument: str = "groups") -> object:
    """The groups of the rows of a table, which may name a column; of a source unchanged."""
    if not isinstance(groups, str) or is_source(X):
        return groups
    return feature_names.split_offset(X, groups, argument)[1]


@dataclass(frozen=True)
class TableReader:
    """Reader of evaluation sets: tables, and sources that are read in batches.

    Attributes
    ----------
    schema : Schema
        Columns of the fit.
    device : str
    continued : bool
        Whether the training of another model is continued, which must score the values.
    """

    schema: Schema
    device: str
    continued: bool = False

    def __call__(self, X: object) -> Table:
        """A table with the columns of the fit."""
        return ingest(X, self.schema, device=self.device)

    def rows(
        self, X: object, y: object, weight: object, offset: object, qid: object
    ) -> Rows[Table]:
        """The rows of a source, which are encoded when bins are known."""
        from arboost.data.batch_rows import RowColumns
        from arboost.data.binned_source import read_evaluation

        if self.continued:
            raise ValueError(
                "evaluation sets that are read in batches are not allowed with init_model or "
                "warm_start: the old model must score their values. Pass a table."
            )
        table, values = read_evaluation(X, RowColumns(y, weight, qid, offset), self.schema)
        if values.y is None:
            raise ValueError("the target y is None. Pass the name of a column.")
        rows = Rows(table, None, values.y, values.weight, offset=values.offset)
        return rows if values.groups is None else rows.of_queries(values.groups)


def resolve_input(
    arguments: tuple[object, object, object],
    params: Mapping[str, Any],
    source: SourceOptions,
    *,
    kind: str,
    options: ColumnOptions,
    needs_values: str = "",
) -> tuple[object, object, object]:
    """X, y and sample_weight as they are; or the Dataset of a source, None and None.

    Parameters
    ----------
    arguments : tuple
        X, y and sample_weight, as ``fit`` takes them.
    params : mapping
        Checked parameters of the estimator.
    source : SourceOptions
    kind : {"regressor", "classifier"}
    options : ColumnOptions
        With the encoding of the algorithm in place of "auto".
    needs_values : str
        Arguments or parameters of the fit that need the values of all rows; "" for none.
    """
    X, y, sample_weight = arguments
    if not is_source(X):
        source.check_unused()
        return arguments
    from arboost.data.batch_rows import BinningSpec, RowColumns
    from arboost.data.binned_source import bin_source

    bins = BinParams.of(params)
    _check_source_fit(bins, needs_values)
    spec = BinningSpec(
        columns=RowColumns(y, sample_weight, source.groups, source.offset),
        options=options,
        tree_method=bins.tree_method,
        tree_bytes=(
            APPROX_BYTES[params["sketch_scope"]] if bins.tree_method == "approx" else (0, 0)
        ),
        bundling=bins.bundling,
        n_threads=threads(params["n_jobs"]),
        kind=kind,
        edge_rows=_edge_rows(params, source, kind),
        needs_memory=_needs_memory(params),
        row_state=_row_state(params),
    )
    table, binned = bin_source(
        X,
        spec,
        max_bins=bins.sought_bins,
        memory_limit=source.memory_limit,
        cache=source.cache,
        verbose=params["verbose"],
    )
    return Dataset._of_source(table, binned, options), None, None


def _edge_rows(params: Mapping[str, Any], source: SourceOptions, kind: str) -> EdgeRows | None:
    """The rows and weights that edges come from, as in a fit on a table; None: all.

    Held-out rows of early stopping have no part in them, and class weights count.
    """
    training = weights = held_out = None
    if (
        params.get("n_iter_no_change") is not None
        and params["n_estimators"] != AUTO
        and not source.has_validation
    ):
        held_out = ValidationParams.of(params)
        training = partial(_rows_not_held_out, held_out, kind)
    factors = params.get("class_weight"), params.get("scale_pos_weight", 1.0)
    if factors[0] == "balanced_subsample":
        factors = None if params.get("bootstrap", False) else "balanced", 1.0
    if kind == "classifier" and factors != (None, 1.0):
        weights = partial(_class_weights, *factors)
    if training is None and weights is None:
        return None
    return EdgeRows(training, weights, repr((held_out, None if weights is None else factors)))


def _rows_not_held_out(
    params: ValidationParams, kind: str, y: NDArray[Any], groups: NDArray[Any] | None
) -> NDArray[np.uint32]:
    """The rows that early stopping does not hold out."""
    return split(
        encode_labels(y)[1] if kind == "classifier" else y,
        how=params.validation_split,
        fraction=params.validation_fraction,
        seed=params.random_state,
        stratify=kind == "classifier" and params.validation_split == "random",
        groups=groups,
    )[0]


def _class_weights(
    class_weight: Any, scale_pos_weight: float, y: NDArray[Any], weight: Floats | None
) -> Floats | None:
    """The weights of rows times the factors of their classes."""
    classes, codes = encode_labels(y)
    factors = class_factors(class_weight, classes, codes, weight, scale_pos_weight=scale_pos_weight)
    if factors is None:
        return weight
    row_factors = factors[codes.astype(np.intp)]
    return row_factors if weight is None else weight * row_factors


def _needs_memory(params: Mapping[str, Any]) -> str:
    """The parameter of a fit that needs all codes in memory; "" for none."""
    if params.get("device", "cpu") != "cpu":
        return f"device={params['device']!r}"
    if params.get("criterion") == "absolute_error":
        return "criterion='absolute_error'"
    if (
        params["max_depth"] is None
        and params.get("max_leaves", params.get("max_leaf_nodes")) is None
    ):
        return "max_depth=None"
    return ""


def _row_state(params: Mapping[str, Any]) -> RowState:
    """The bytes of a row in training, measured; forests grow a tree in each thread."""
    if "ccp_alpha" in params:  # trees and forests
        n_trees = min(threads(params["n_jobs"]), params.get("n_estimators", 1))
        return RowState(output=8 + 16 * n_trees, other=32 * n_trees - 24)
    if "truncation_level" in params:  # rankers: order, two copies of gains, queries, gradients
        return RowState(other=64)
    if "boosting" in params:
        return RowState()
    return RowState(output=40, other=16)  # AdaBoost: scores, votes, their product, two gradients


def _check_source_fit(bins: BinParams, needs_values: str) -> None:
    """Raise ValueError for fits that need the whole table."""
    advice = "Read the table first, for example by pandas.read_parquet, and fit on it"
    if bins.tree_method not in BATCH_METHODS:
        raise ParameterError(
            f"tree_method={bins.tree_method!r} is not allowed where X is read in batches: it sorts "
            'all values. Use tree_method="hist" or tree_method="approx". Or: '
            f"{advice[0].lower()}{advice[1:]}.",
            parameter="tree_method",
        )
    if bins.max_conflict_rate > 0:
        raise ParameterError(
            f"max_conflict_rate={bins.max_conflict_rate} is not allowed where X is read in "
            "batches: bundles would depend on them. Use max_conflict_rate=0.0.",
            parameter="max_conflict_rate",
        )
    if needs_values:
        raise ValueError(
            f"{needs_values} is not allowed where X is read in batches: it needs the values of all "
            f"rows. {advice}."
        )
