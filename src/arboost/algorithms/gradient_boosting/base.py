"""GradientBoosting: the fit of both boosters, from the arguments of users to the fitted model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Never, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from arboost.algorithms.estimator import EngineEstimator, category_encoding, column_options
from arboost.algorithms.gradient_boosting.recipe import check_together, make_loss, make_recipe
from arboost.algorithms.gradient_boosting.rounds import BoostingRounds
from arboost.backend import threads
from arboost.data.schema import Schema
from arboost.data.target import Task, class_factors
from arboost.data.unusual import check_pairing, warn_weight_scale
from arboost.errors import warn_caller
from arboost.losses import Loss
from arboost.model.model import Model
from arboost.names.arguments import known_arguments, public_name, refuse_arguments
from arboost.params import auto
from arboost.params.auto import AUTO, TableSize
from arboost.predictor import Predictor
from arboost.training.fit import FitJob, FitSettings, Search, run_fit
from arboost.training.held_out import GivenSet, check_validation, given_sets
from arboost.training.inputs import (
    EngineRows,
    Floats,
    loss_rows,
    target_encode_rows,
    training_rows,
    warn_one_class,
)
from arboost.training.monitor import Round, checked_callbacks
from arboost.training.rounds import FitResult, Rounds
from arboost.training.streams import StreamOptions, TableReader, group_values
from arboost.training.warm_start import (
    check_continues,
    continued_rows,
    like_previous,
    n_to_add,
    previous_model,
)

__all__ = ["GradientBoosting"]

_NOTICEABLE = 1e-3  # share of the last rounds in the gain of all


class GradientBoosting(EngineEstimator):
    """Gradient boosting of regression trees, for both tasks."""

    _NOT_RECORDED = (*EngineEstimator._NOT_RECORDED, "preset", "warm_start")
    _USUAL_ENCODING = "groups"
    preset: str
    warm_start: bool

    @known_arguments
    def fit(
        self,
        X: object,
        y: object = None,
        sample_weight: object = None,
        *,
        offset: object = None,
        X_val: object = None,
        y_val: object = None,
        sample_weight_val: object = None,
        offset_val: object = None,
        eval_set: object = None,
        eval_names: object = None,
        groups: object = None,
        init_model: object = None,
        callbacks: Iterable[Callable[[Round], object]] = (),
        checkpoint: object = None,
        memory_limit: int | str = "auto",
        cache: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on a table and a target.

        Parameters
        ----------
        X : table of shape (n_rows, n_features), or arboost.Dataset
            NumPy array, pandas, Polars or PyArrow table, anything with an Arrow C stream, matrix of
            scipy.sparse, lists or dicts. Columns are numbers, booleans, decimals, dates and
            times, or categories. NaN and None are missing values. With device="cuda" also an array
            in device memory. A Dataset brings its own y and weights.
            Or a source that is read in batches and need not fit in memory: paths of files or
            folders, patterns such as "data/*.parquet", an iterable of batches that starts again;
            y and sample_weight are then names of columns, or arrays.
        y : array of shape (n_rows,)
            Target: numbers for a regressor, labels for a classifier. Or the name of a column of X,
            which is then no feature.
        sample_weight : array of shape (n_rows,), optional
            Rows of weight 0 are left out. Or the name of a column of X, which is then no feature.
        offset : array of shape (n_rows,) or (n_rows, n_outputs), str or list of str, optional
            Start of the raw scores of each row, such as log(exposure) with loss="poisson": trees
            are added to it. K classes have an array of shape (n_rows, K). Or the name of a column
            of X, or K names, which are then no features: predictions find the column by its name.
            After a fit with an array, predictions need ``offset=`` as well.
        X_val, y_val, sample_weight_val, offset_val : as X, y, sample_weight and offset, optional
            Validation set, scored after every round and used by early stopping. Columns are
            matched by name, that of the offset, too.
        eval_set : list of (X, y), (X, y, weight) or (X, y, weight, offset), optional
            Several validation sets instead of X_val, each scored after every round; the last one
            is used by early stopping. The training table may be among them, for its learning
            curve: X itself, or equal values of X and y. It stops no fit.
        eval_names : list of str, optional
            Names of the sets in ``evals_result_``. None: "train" for the training table,
            "validation" for one other set, "validation_0", "validation_1", ... for several.
        groups : array of shape (n_rows,), optional
            Group of each row, for ``validation_split="group"``; or the name of a column of X,
            which is then no feature.
        init_model : estimator, Predictor or path of a model file, optional
            Model whose training is continued: n_estimators more rounds are added to its own.
            (``warm_start`` continues this estimator itself, up to n_estimators in all.)
        callbacks : iterable of callables
            Each gets an `arboost.Round` after every round; True stops the fit, None and False
            continue it.
        checkpoint : path or arboost.Checkpoint, optional
            File that keeps the state of the fit. A killed fit that is called again continues from
            there, and ends in the same model.
        memory_limit : int or str, default="auto"
            Memory for a fit on files or other batches: "2GB", "500MB", or a number of bytes.
            "auto": a share of the memory that the process may use. The model is the same.
        cache : path, optional
            Folder that keeps the bins of files: the next fit on the same files with the same
            columns and bins starts at once. Files that have changed are read again.

        Returns
        -------
        self
        """
        given = self._checked_params()
        validation_set = (X_val, y_val, sample_weight_val, offset_val)
        sets = given_sets((X, y, offset), validation_set, eval_set, eval_names)
        old, n_kept = self._previous(init_model, given["n_estimators"])
        if n_kept == given["n_estimators"]:
            return self
        given = like_previous(given, old)
        has_validation = any(not one.is_training for one in sets)
        stream = StreamOptions(memory_limit, cache, groups, has_validation, offset)
        rows, task = self._read((X, y, sample_weight), given, old, stream)
        held_out = self._held_out(sets, rows.schema, given, old)
        params = self._resolve(given, rows, task, has_validation=has_validation)
        settings = FitSettings.of(params)
        splits = params["n_iter_no_change"] is not None and not has_validation
        check_validation(settings.stopping, sets, splits=splits, groups=groups)
        recorded = self._recorded_params(params | {"n_estimators": given["n_estimators"]})
        if task.is_constant:
            return self._keep_one_class(X, rows.schema, task, recorded)
        loss, start = self._plan(params, task, rows.schema)
        train, validation = self._rows_of_loss(rows, held_out, task, loss, params, old)
        result = run_fit(
            FitJob(
                loss=loss,
                start=start,
                n_rounds=params["n_estimators"] - n_kept,
                settings=settings,
                record=recorded,
                train=train,
                validation=validation,
                splits=splits,
                groups=group_values(X, groups),
                stratify=task.kind == "classifier",
                search=self._search(given, rows, task, splits=splits, groups=groups),
                old=old,
                callbacks=checked_callbacks(callbacks),
                checkpoint=checkpoint,
            )
        )
        warn_weight_scale(train.weight, params["min_child_weight"], grew=result.has_splits)
        return self._keep(result, rows.schema, task, recorded)

    @property
    def estimators_(self) -> NDArray[Any]:
        """The trees, each a regressor of its part of the raw scores: (n_rounds, trees_per_round).

        The parts of all trees and the base score sum to the raw scores.
        """
        model = self._engine_model("estimators_")
        trees = np.empty(model.n_trees, dtype=object)
        trees[:] = [_one_tree(model, tree) for tree in range(model.n_trees)]
        return trees.reshape(model.n_rounds, -1) if model.n_trees else trees.reshape(0, 1)

    def _previous(self, init_model: object, n_estimators: int | str) -> tuple[Model | None, int]:
        """Return the model whose training is continued, and its rounds among n_estimators."""
        if init_model is not None:
            return previous_model(init_model), 0
        if not self.warm_start or not hasattr(self, "model_"):
            return None, 0
        if isinstance(n_estimators, str):  # "auto"
            return self.model_, 0
        return self.model_, n_estimators - n_to_add(n_estimators, self.model_.n_rounds, "rounds")

    def _read(
        self,
        given: tuple[object, object, object],
        params: dict[str, Any],
        old: Model | None,
        stream: StreamOptions,
    ) -> tuple[EngineRows, Task]:
        """Return the training rows with target encodings, and their task."""
        check_pairing(given[0], None, groups=stream.groups)
        known = None if old is None else old.schema
        needs_values = "" if old is None else "init_model or warm_start"
        X, y, weight = self._opened(given, params, stream, needs_values)
        rows = training_rows(
            X,
            y,
            weight,
            known,
            column_options(params),
            device=params["device"],
            offset=stream.offset if X is given[0] else None,  # of a source, its Dataset has it
            groups=stream.groups if X is given[0] else None,
        )
        classes = None if old is None else old.classes
        task = Task.of(self._KIND, rows.y, classes, n_threads=threads(params["n_jobs"]))
        encoding = category_encoding(params, self._USUAL_ENCODING)
        return target_encode_rows(rows, [task], known, encoding), task

    def _held_out(
        self,
        sets: Iterable[GivenSet],
        schema: Schema,
        params: dict[str, Any],
        old: Model | None,
    ) -> tuple[EngineRows, ...]:
        """Return the rows of the evaluation sets, checked."""
        read = TableReader(schema, params["device"], old is not None)
        return tuple(one.rows(read) for one in sets)

    def _rows_of_loss(
        self,
        rows: EngineRows,
        held_out: tuple[EngineRows, ...],
        task: Task,
        loss: Loss,
        params: dict[str, Any],
        old: Model | None,
    ) -> tuple[EngineRows, tuple[EngineRows, ...]]:
        """Return training and validation rows with the target of the loss and all weights."""
        check_continues(old, task.kind, params, loss.link, loss.n_outputs)
        factors = self._class_factors(params, task, rows.weight)
        train, validation = loss_rows(rows, held_out, task, loss, factors)
        return continued_rows(train, validation, old, threads(params["n_jobs"]))

    @public_name
    def predict(
        self, X: object, *, rounds: int | None = None, offset: object = None, **unknown: Never
    ) -> NDArray[Any]:
        """Return the predicted values or labels, shape (n_rows,).

        Several quantiles have a column each. `rounds` takes the first rounds of the model only.
        `offset` is that of the rows, for a model that was fitted with one: an array, a number for
        all rows, or names of columns; None takes the columns that the fit named.
        """
        if unknown:
            refuse_arguments(self.predict, unknown)
        model = self._first_rounds(rounds)
        predicted: NDArray[Any] = model.predict(X, offset=offset, n_jobs=self.n_jobs)
        return predicted

    def staged_predict(self, X: object, *, offset: object = None) -> Iterator[NDArray[Any]]:
        """Yield the result of `predict` after each round."""
        staged = self._fitted_model().staged_predict
        found: Iterator[NDArray[Any]] = staged(X, offset=offset, n_jobs=self.n_jobs)
        return found

    def _checked_params(self) -> dict[str, Any]:
        params = super()._checked_params()
        check_together(params)
        return params

    def _resolve(
        self, params: dict[str, Any], rows: EngineRows, task: Task, *, has_validation: bool
    ) -> dict[str, Any]:
        """Return the parameters of a fit to these rows, without "auto"."""
        size = _size(rows, task, params["n_jobs"])
        return auto.resolve(params, size, has_validation=has_validation)

    def _plan(
        self, params: dict[str, Any], task: Task, schema: Schema
    ) -> tuple[Loss, Callable[..., Rounds]]:
        """Return the loss of a fit, and the callable that starts its training on sets of rows."""
        loss = make_loss(params, task)
        return loss, partial(BoostingRounds, make_recipe(params, loss, schema))

    def _search(
        self, given: dict[str, Any], rows: EngineRows, task: Task, *, splits: bool, groups: object
    ) -> Search | None:
        """Return the search for the number of rounds; None for a given number or X_val."""
        if given["n_estimators"] != AUTO or not splits:
            return None
        size = _size(rows, task, given["n_jobs"])
        plan = auto.round_search(given, size, has_groups=groups is not None)
        params = auto.resolve(given, size, has_validation=False)
        params |= {"learning_rate": plan.learning_rate}
        return Search(plan, self._plan(params, task, rows.schema)[1])

    def _class_factors(
        self, params: dict[str, Any], task: Task, weight: Floats | None
    ) -> Floats | None:
        """Return the factor on the row weights of each class; None for regression."""
        if task.classes is None:
            return None
        return class_factors(
            params["class_weight"],
            task.classes,
            task.y,
            weight,
            scale_pos_weight=params["scale_pos_weight"],
        )

    def _keep_one_class(
        self, X: object, schema: Schema, task: Task, recorded: dict[str, Any]
    ) -> Self:
        """Keep the constant model of one class, and say so."""
        warn_one_class(X, [task])
        return self._keep(FitResult.of_one_class(), schema, task, recorded)

    def _keep(
        self, result: FitResult, schema: Schema, task: Task, recorded: dict[str, Any]
    ) -> Self:
        """Set the fitted attributes; nothing before this has changed the estimator."""
        if recorded["n_estimators"] == AUTO and recorded["n_iter_no_change"] is not None:
            limited = result.limited_by(self.preset)
            # The user has not set this number of rounds; preset="fast" asks for few.
            is_short = limited is not result and self.preset != "fast"
            if is_short and _still_improved(result.history):
                warn_caller(
                    f"The fit ended at the {limited.stop_reason}. The score on held-out rows still "
                    "improved.",
                    ConvergenceWarning,
                )
            result = limited
        self._keep_model(result.predictor(schema, task, recorded), schema)
        self._keep_history(result)
        return self


def _size(rows: EngineRows, task: Task, n_jobs: int | None) -> TableSize:
    counts = np.ones(1) if task.classes is None else task.class_counts(threads(n_jobs))
    balance = float(counts.min() / counts.mean())
    return TableSize(len(rows.y), rows.schema.n_features, task.n_outputs, balance)


def _still_improved(history: dict[str, dict[str, list[float]]]) -> bool:
    """Whether the last tenth of the rounds had a noticeable share in the gain of all rounds.

    Scores of noise-free rows improve forever, by less and less.
    """
    curve = next(iter(list(history.values())[-1].values()))
    recent = curve[-1] - curve[-1 - len(curve) // 10]
    return abs(recent) > _NOTICEABLE * abs(curve[-1] - curve[0])


def _one_tree(model: Predictor, tree: int) -> Predictor:
    """Return a tree as a regressor: of one value, or of the values of all outputs."""
    forest = model.forest.only(tree)
    width = forest.value.shape[1]
    changes = {
        "forest": replace(forest, output=np.zeros(1, np.int32)),
        "base_score": np.zeros(width),
        "link": "identity",
        "classes": None,
        "kind": "regressor",
        "trees_per_round": 1,
        "schema": replace(model.schema, offset=None),
    }
    return Predictor(**model.fields() | changes)
