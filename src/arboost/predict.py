"""Model + table -> raw scores -> link -> answer.

Raw scores are float64 of shape (n_rows, n_outputs): the base score plus the trees in their order,
or plus their weighted median. They depend neither on the number of threads nor on which rows are
predicted together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.binning import Dataset
from arboost.ingest import Table, ingest
from arboost.links import LINKS
from arboost.model import Model

__all__ = [
    "Answering",
    "answer",
    "probabilities",
    "raw_scores",
    "staged_raw_scores",
    "table_scores",
    "tree_values",
]


class Answering(Protocol):
    """What is known of a model whose raw scores are to become answers."""

    @property
    def kind(self) -> str:
        """A regressor or a classifier, in one word."""
        ...

    @property
    def link(self) -> str:
        """By its name in `arboost.links`."""
        ...

    @property
    def classes(self) -> NDArray[Any] | None:
        """Labels; None for regression."""
        ...

    @property
    def n_outputs(self) -> int:
        """Raw scores of a row."""
        ...


def raw_scores(model: Model, X: object, *, n_threads: int) -> NDArray[np.float64]:
    """Return the raw scores of the rows of X."""
    return table_scores(model, _read(model, X), n_threads=n_threads)


def table_scores(model: Model, table: Table, *, n_threads: int) -> NDArray[np.float64]:
    """Return the raw scores of the rows of a table that has the columns of the model's schema."""
    if model.combine == "median":
        return _median_scores(model, table, model.n_trees, n_threads)
    scores = _start(model, table)
    _add_trees(model, table, scores, range(model.n_trees), n_threads)
    return scores


def tree_values(model: Model, table: Table, *, n_threads: int) -> NDArray[np.float64]:
    """Return what each tree says of the rows of a table, shape (n_rows, n_trees)."""
    values = np.zeros((table.n_rows, model.n_trees))
    forest = replace(model.forest, output=np.arange(model.n_trees, dtype=np.int32))
    core.traverse(
        columns=table.columns,
        forest=forest,
        out=values,
        tree_begin=0,
        tree_end=model.n_trees,
        n_threads=n_threads,
    )
    return values


def staged_raw_scores(model: Model, X: object, *, n_threads: int) -> Iterator[NDArray[np.float64]]:
    """Yield the raw scores after each round, each in an array of its own."""
    table = _read(model, X)
    if model.combine == "median":
        for n_trees in range(1, model.n_trees + 1):
            yield _median_scores(model, table, n_trees, n_threads)
        return
    scores = _start(model, table)
    for first in range(0, model.n_trees, model.trees_per_round):
        _add_trees(model, table, scores, range(first, first + model.trees_per_round), n_threads)
        yield scores.copy()


def probabilities(model: Answering, raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities, shape (n_rows, n_classes), that the raw scores mean."""
    if model.kind != "classifier":
        raise TypeError(
            f"predict_proba was asked of a {model.kind}: only a classifier has probabilities. "
            "Use predict."
        )
    return LINKS[model.link](raw)


def answer(model: Answering, raw: NDArray[np.float64]) -> NDArray[Any]:
    """Return the values (regression) or the most likely labels that the raw scores mean."""
    if model.classes is None:
        values = LINKS[model.link](raw)
        return values[:, 0] if model.n_outputs == 1 else values
    # The links keep the order of the scores, so the most likely class needs no exp.
    best = raw.argmax(axis=1) if model.link == "softmax" else (raw[:, 0] > 0).astype(np.intp)
    labels: NDArray[Any] = model.classes[best]
    return labels


def _read(model: Model, X: object) -> Table:
    if isinstance(X, Dataset):
        raise TypeError(
            "X is a Dataset, which holds bins instead of values. Pass the table it was made from."
        )
    return ingest(X, model.schema)


def _start(model: Model, table: Table) -> NDArray[np.float64]:
    scores = np.empty((table.n_rows, model.n_outputs))
    scores[:] = model.base_score
    return scores


def _add_trees(
    model: Model, table: Table, scores: NDArray[np.float64], trees: range, n_threads: int
) -> None:
    core.traverse(
        columns=table.columns,
        forest=model.forest,
        out=scores,
        tree_begin=trees.start,
        tree_end=trees.stop,
        n_threads=n_threads,
    )


def _median_scores(model: Model, table: Table, n_trees: int, n_threads: int) -> NDArray[np.float64]:
    scores = _start(model, table)
    if n_trees:
        core.traverse_median(
            columns=table.columns,
            forest=model.forest,
            weights=model.tree_weights,
            out=scores,
            tree_end=n_trees,
            n_threads=n_threads,
        )
    return scores
