"""Model + table -> raw scores -> link -> predictions.

Raw scores are float64 of shape (n_rows, n_outputs): the base score plus the sum of the trees in
their order, their mean or their weighted median. They depend neither on the number of threads nor
on which rows are predicted together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from arboost.backend import core
from arboost.cuda.devices import device_number
from arboost.data.dataset import Dataset
from arboost.data.feature_names import split_offset, split_target
from arboost.data.table import Table, ingest
from arboost.data.target import weights
from arboost.model.links import LINKS
from arboost.model.model import Model, total_weight
from arboost.model.on_device import (
    combination,
    cuda_forest,
    refuse_device,
    scores_of_columns,
)
from arboost.model.one_row import encoded_row
from arboost.model.outputs import (
    ALL_CLASS_LINKS,
    Labels,
    OutputSpec,
    Probabilities,
    check_classifier,
    read_offset,
    target_parts,
)
from arboost.names.arguments import missing_attribute

__all__ = [
    "AsEstimator",
    "decision",
    "predictions",
    "predictions_of_row",
    "probabilities",
    "probabilities_of_row",
    "raw_scores",
    "raw_scores_of_row",
    "read_table",
    "staged_raw_scores",
    "table_scores",
    "tree_values",
]


def raw_scores(
    model: Model, X: object, offset: object = None, *, n_threads: int
) -> NDArray[np.float64]:
    """Return the raw scores of the rows of X, with their offset."""
    table = read_table(model, split_offset(X, offset)[0])
    added = read_offset(model, X, table.n_rows, offset)
    scores = table_scores(model, table, n_threads=n_threads)
    return scores if added is None else scores + added


def _row_of(model: Model, X: object) -> tuple[core.RowModel | None, object]:
    """Return the predictor of single rows, and X in its form; (None, X) where there is none."""
    if model.row is not None:
        return model.row, X  # it has the last word on X
    if model.schema.names is None or model.encoded_row is None:
        return None, X
    row = encoded_row(X, model.schema)
    return (None, X) if row is None else (model.encoded_row, row)


def raw_scores_of_row(model: Model, X: object) -> NDArray[np.float64] | None:
    """Return the result of `raw_scores` if X is a single row that needs no `ingest`; else None."""
    row, X = _row_of(model, X)
    return None if row is None else row.raw(X)


def predictions_of_row(model: Model, X: object) -> NDArray[Any] | None:
    """Return the result of `predictions` if X is such a row; else None."""
    row, X = (None, X) if model.targets else _row_of(model, X)
    if row is None:
        return None
    if model.classes is None:
        return row.values(X)
    number = row.likeliest(X)
    return None if number < 0 else model.classes[number : number + 1].copy()


def probabilities_of_row(model: Model, X: object) -> NDArray[np.float64] | None:
    """Return the result of `probabilities` if X is such a row; else None."""
    if model.targets or model.classes is None:
        return None
    row, X = _row_of(model, X)
    return None if row is None else row.answers(X)


def table_scores(model: Model, table: Table, *, n_threads: int) -> NDArray[np.float64]:
    """Return the raw scores of the rows of a table by the model's schema, without offset."""
    if isinstance(table.values, core.DeviceColumns):
        copied: NDArray[np.float64] = scores_of_columns(model, table.values).to_numpy()
        return copied
    if model.device != "cpu":
        scores = np.empty((table.n_rows, model.n_outputs))
        forest = cuda_forest(model, device_number(model.device))
        forest.scores(table.columns, **combination(model), out=scores, n_threads=n_threads)
        return scores
    if model.combine == "median":
        return _median_scores(model, table, model.n_trees, n_threads)
    scores = _start(model, table)
    model.packed.traverse(columns=table.columns, out=scores, n_threads=n_threads)
    return _mean(model, scores, model.n_rounds) if model.combine == "mean" else scores


def tree_values(model: Model, table: Table, *, n_threads: int) -> NDArray[np.float64]:
    """Return the leaf value of each row in each tree, shape (n_rows, n_trees)."""
    refuse_device(model, "tree_values")
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


def tree_scores(model: Model, table: Table, tree: int, *, n_threads: int) -> NDArray[np.float64]:
    """Return the leaf values of each row in one tree, shape (n_rows, n_outputs)."""
    refuse_device(model, "tree_scores")
    scores = np.zeros((table.n_rows, model.n_outputs))
    _add_trees(model, table, scores, range(tree, tree + 1), n_threads)
    return scores


def staged_raw_scores(
    model: Model, X: object, offset: object = None, *, n_threads: int
) -> Iterator[NDArray[np.float64]]:
    """Yield the raw scores after each round, each in an array of its own."""
    refuse_device(model, "staged_raw")
    table = read_table(model, split_offset(X, offset)[0])
    if model.combine == "median":
        for n_trees in range(1, model.n_trees + 1):
            yield _median_scores(model, table, n_trees, n_threads)
        return
    added = read_offset(model, X, table.n_rows, offset)
    scores = _start(model, table)
    for first in range(0, model.n_trees, model.trees_per_round):
        _add_trees(model, table, scores, range(first, first + model.trees_per_round), n_threads)
        rounds = first // model.trees_per_round + 1
        staged = _mean(model, scores, rounds) if model.combine == "mean" else scores.copy()
        yield staged if added is None else staged + added


class AsEstimator:
    """Attributes and methods of fitted estimators of scikit-learn, for loaded models.

    They need ``kind``, ``classes``, ``schema`` and ``predict``.
    """

    if not TYPE_CHECKING:  # for type checkers, unknown names are errors
        __getattr__ = missing_attribute

    @property
    def classes_(self: Any) -> Any:
        """Class labels, as estimators have them; AttributeError for regression."""
        if self.classes is None:
            raise AttributeError("classes_ is there for classifiers only, but this is a regressor.")
        return list(self.classes) if isinstance(self.classes, tuple) else self.classes

    @property
    def n_features_in_(self: Any) -> int:
        """Number of columns of the table in fit."""
        count: int = self.schema.n_columns
        return count

    @property
    def feature_names_in_(self: Any) -> NDArray[Any]:
        """Names of the columns in fit; AttributeError for a table without names."""
        if self.schema.columns is None:
            raise AttributeError("feature_names_in_ is not there: the table of fit had no names.")
        return np.array(self.schema.columns, dtype=object)

    def score(self: Any, X: Any, y: Any, sample_weight: Any = None, **options: Any) -> float:
        """Return the accuracy of the labels, or R^2 of the values, as `score` of estimators.

        y may name a column of X; `options` are those of `predict`.
        """
        features, y, _ = split_target(X, y)
        predicted = self.predict(X if options.get("offset") else features, **options)
        truth = np.asarray(y).reshape(predicted.shape)
        weight = weights(sample_weight, len(predicted))
        if self.kind == "classifier":
            is_right = (predicted == truth).reshape(len(truth), -1).all(axis=1)
            return float(np.average(is_right, weights=weight))
        truth, predicted = (
            np.asarray(one, float).reshape(len(y), -1) for one in (truth, predicted)
        )
        mean = np.average(truth, axis=0, weights=weight)
        error, spread = (
            np.average((truth - other) ** 2, axis=0, weights=weight) for other in (predicted, mean)
        )
        shares = np.where(error == 0.0, 0.0, 1.0)  # of a constant truth: R^2 is 0, or 1 if exact
        np.divide(error, spread, out=shares, where=spread > 0.0)
        return float(np.mean(1.0 - shares))

    def decision_function(self: Any, X: object, **options: Any) -> NDArray[np.float64]:
        """Return the raw scores of a classifier, as `decision_function` of estimators.

        The shape is (n_rows,) for two classes, else (n_rows, n_classes); `options` are those of
        `predict_raw`. Forests and trees have probabilities alone.
        """
        if self.kind != "classifier" or self.link in ("share_of_two", "shares"):
            raise TypeError(
                "decision_function is there for boosted classifiers only. Use predict, or "
                "predict_proba of a classifier."
            )
        return decision(self.predict_raw(X, **options))


def decision(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return raw scores as `decision_function` gives them: a vector where there is one output."""
    return raw.ravel() if raw.shape[1] == 1 else raw


def probabilities(model: OutputSpec, raw: NDArray[np.float64]) -> Probabilities:
    """Return the class probabilities of raw scores, shape (n_rows, n_classes).

    For several targets the result is a list of such arrays.
    """
    check_classifier(model)
    if model.targets:
        return [LINKS[link](columns) for link, _, columns in _by_target(model, raw)]
    return LINKS[model.link](raw)


def predictions(model: OutputSpec, raw: NDArray[np.float64]) -> NDArray[Any]:
    """Return the predicted values (regression) or the most likely labels of raw scores.

    Their shape is (n_rows,), or (n_rows, n_targets) for several targets.
    """
    if model.classes is None:
        values = LINKS[model.link](raw)
        return values[:, 0] if model.n_outputs == 1 else values
    if isinstance(model.classes, tuple):
        parts = [_likeliest(*part) for part in _by_target(model, raw)]
        # Labels of different dtypes would become strings.
        kinds = {part.dtype.kind for part in parts}
        return np.stack(parts if len(kinds) == 1 else [part.astype(object) for part in parts], 1)
    return _likeliest(model.link, model.classes, raw)


def _likeliest(link: str, classes: Labels, raw: NDArray[np.float64]) -> Labels:
    # Links are monotone, so the most likely class needs no exp.
    by_output = link in ALL_CLASS_LINKS
    labels: Labels = classes[raw.argmax(axis=1) if by_output else (raw[:, 0] > 0).astype(np.intp)]
    return labels


def _by_target(
    model: OutputSpec, raw: NDArray[np.float64]
) -> Iterator[tuple[str, Labels, NDArray[np.float64]]]:
    """Yield link, labels and raw scores of each target of a classifier."""
    for link, labels, first, n_outputs in target_parts(model):
        yield link, labels, raw[:, first : first + n_outputs]


def read_table(model: Model, X: object, name: str = "X") -> Table:
    """Return X as a table by the model's schema; error messages call it `name`."""
    if isinstance(X, Dataset):
        raise TypeError(
            f"{name} is a Dataset, which holds bins instead of values. Pass the table it was made "
            "from."
        )
    return ingest(X, model.schema)


def _start(model: Model, table: Table) -> NDArray[np.float64]:
    scores = np.zeros((table.n_rows, model.n_outputs))
    if model.combine != "mean":
        scores[:] = model.base_score
    return scores


def _mean(model: Model, sums: NDArray[np.float64], rounds: int) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = sums / total_weight(model, rounds)
    scores += model.base_score
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
