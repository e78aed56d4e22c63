"""Sources given to ``fit``: files, queries and iterables become a `Dataset`, read in batches."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import threads
from arboost.data.bins import APPROX_BYTES, STREAMED_METHODS
from arboost.data.dataset import Dataset
from arboost.data.feature_names import split_offset
from arboost.data.schema import Schema
from arboost.data.stream.memory import RowState
from arboost.data.stream.rows import EdgeRows
from arboost.data.table import ColumnOptions, Table, ingest
from arboost.data.target import class_factors, encode_labels
from arboost.params.auto import AUTO
from arboost.params.records import BinParams, ValidationParams
from arboost.sources.opening import is_source
from arboost.training.inputs import Floats, Rows
from arboost.training.splits import split

__all__ = ["StreamOptions", "TableReader", "group_values", "opened"]


@dataclass(frozen=True)
class StreamOptions:
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
        """Raise ValueError where an argument for sources is given with a table."""
        given: dict[str, object] = {}
        if self.memory_limit != "auto":
            given["memory_limit"] = self.memory_limit
        if self.cache is not None:
            given["cache"] = self.cache
        for name, value in given.items():
            raise ValueError(
                f"{name}={value!r} is for files and other sources of batches, but X is a table in "
                "memory. Leave it out, or pass the path of the files."
            )


def group_values(X: object, groups: object) -> object:
    """Return the groups of the rows of a table, which may name a column; of a source as given."""
    if not isinstance(groups, str) or is_source(X):
        return groups
    return split_offset(X, groups, "groups")[1]


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
        """Return a table with the columns of the fit."""
        return ingest(X, self.schema, device=self.device)

    def rows(self, X: object, y: object, weight: object, offset: object) -> Rows[Table]:
        """Return the rows of a source, which are encoded when bins are known."""
        from arboost.data.stream.evaluation import read_evaluation

        if self.continued:
            raise ValueError(
                "evaluation sets that are read in batches are not allowed with init_model or "
                "warm_start: the old model must score their values. Pass a table."
            )
        table, rows = read_evaluation(X, y, weight, self.schema, offset)
        if rows.y is None:
            raise ValueError("the target y is None. Pass the name of a column.")
        return Rows(table, None, rows.y, rows.weight, offset=rows.offset)


def opened(
    given: tuple[object, object, object],
    params: Mapping[str, Any],
    stream: StreamOptions,
    *,
    kind: str,
    options: ColumnOptions,
    needs_values: str = "",
) -> tuple[object, object, object]:
    """Return X, y and sample_weight; of a source, its Dataset and no more.

    Parameters
    ----------
    given : tuple
        X, y and sample_weight, as ``fit`` takes them.
    params : mapping
        Checked parameters of the estimator.
    stream : StreamOptions
    kind : {"regressor", "classifier"}
    options : ColumnOptions
        With the encoding of the algorithm in place of "auto".
    needs_values : str
        Arguments or parameters of the fit that need the values of all rows; "" for none.
    """
    X, y, sample_weight = given
    if not is_source(X):
        stream.check_unused()
        return given
    from arboost.data.stream.rows import RowColumns
    from arboost.data.stream.source_table import read_table

    bins = BinParams.of(params)
    _check_streams(bins, needs_values)
    table, binned = read_table(
        X,
        RowColumns(y, sample_weight, stream.groups, stream.offset),
        options=options,
        max_bins=bins.sought_bins,
        tree_method=bins.tree_method,
        tree_bytes=(
            APPROX_BYTES[params["sketch_scope"]] if bins.tree_method == "approx" else (0, 0)
        ),
        bundling=bins.bundling,
        n_threads=threads(params["n_jobs"]),
        memory_limit=stream.memory_limit,
        cache=stream.cache,
        kind=kind,
        edge_rows=_edge_rows(params, stream, kind),
        needs_memory=_needs_memory(params),
        row_state=_row_state(params),
        verbose=params["verbose"],
    )
    return Dataset._of_stream(table, binned, options), None, None


def _edge_rows(params: Mapping[str, Any], stream: StreamOptions, kind: str) -> EdgeRows | None:
    """Return the rows and weights that edges come from, as in a fit on a table; None: all.

    Held-out rows of early stopping have no part in them, and class weights count.
    """
    training = weights = held_out = None
    if (
        params.get("n_iter_no_change") is not None
        and params["n_estimators"] != AUTO
        and not stream.has_validation
    ):
        held_out = ValidationParams.of(params)
        training = partial(_training_rows, held_out, kind)
    given = params.get("class_weight"), params.get("scale_pos_weight", 1.0)
    if given[0] == "balanced_subsample":
        given = None if params.get("bootstrap", False) else "balanced", 1.0
    if kind == "classifier" and given != (None, 1.0):
        weights = partial(_class_weights, *given)
    if training is None and weights is None:
        return None
    return EdgeRows(training, weights, repr((held_out, None if weights is None else given)))


def _training_rows(
    params: ValidationParams, kind: str, y: NDArray[Any], groups: NDArray[Any] | None
) -> NDArray[np.uint32]:
    """Return the rows that early stopping does not hold out."""
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
    """Return the weights of rows times the factors of their classes."""
    classes, codes = encode_labels(y)
    factors = class_factors(class_weight, classes, codes, weight, scale_pos_weight=scale_pos_weight)
    if factors is None:
        return weight
    of_class = factors[codes.astype(np.intp)]
    return of_class if weight is None else weight * of_class


def _needs_memory(params: Mapping[str, Any]) -> str:
    """Return the parameter of a fit that needs all codes in memory; "" for none."""
    if params.get("criterion") == "absolute_error":
        return "criterion='absolute_error'"
    if (
        params["max_depth"] is None
        and params.get("max_leaves", params.get("max_leaf_nodes")) is None
    ):
        return "max_depth=None"
    return ""


def _row_state(params: Mapping[str, Any]) -> RowState:
    """Return the bytes of a row in training, measured; forests grow a tree in each thread."""
    if "ccp_alpha" in params:  # trees and forests
        n_trees = min(threads(params["n_jobs"]), params.get("n_estimators", 1))
        return RowState(output=8 + 16 * n_trees, other=32 * n_trees - 24)
    if "boosting" in params:
        return RowState()
    return RowState(output=40, other=16)  # AdaBoost: scores, votes, their product, two gradients


def _check_streams(bins: BinParams, needs_values: str) -> None:
    """Raise ValueError for fits that need the whole table."""
    advice = "Read the table first, for example by pandas.read_parquet, and fit on it"
    if bins.tree_method not in STREAMED_METHODS:
        raise ValueError(
            f"tree_method={bins.tree_method!r} is not allowed where X is read in batches: it sorts "
            'all values. Use tree_method="hist" or tree_method="approx". Or: '
            f"{advice[0].lower()}{advice[1:]}."
        )
    if bins.device != "cpu":
        raise ValueError(
            f"device={bins.device!r} is not allowed where X is read in batches. Use "
            f'device="cpu". Or: {advice[0].lower()}{advice[1:]}.'
        )
    if bins.max_conflict_rate > 0:
        raise ValueError(
            f"max_conflict_rate={bins.max_conflict_rate} is not allowed where X is read in "
            "batches: bundles would depend on them. Use max_conflict_rate=0.0."
        )
    if needs_values:
        raise ValueError(
            f"{needs_values} is not allowed where X is read in batches: it needs the values of all "
            f"rows. {advice}."
        )
