"""Gradient boosting: the fit from arguments to model, and the two estimators."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Never, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from arboost.backend import core, threads
from arboost.data.cuda import refuse_logarithms
from arboost.data.feature_names import split_target
from arboost.data.schema import Schema
from arboost.data.target import Task, check_pairing, warn_weight_scale
from arboost.errors import warn_caller
from arboost.estimators import boosting_rounds
from arboost.estimators.estimator import (
    EngineEstimator,
    category_encoding,
    read_rows,
    store_arguments,
)
from arboost.losses.base import Floats, Loss
from arboost.losses.links import decision
from arboost.losses.losses import CustomLoss
from arboost.losses.metrics import Metric
from arboost.models.model import Model
from arboost.models.predictor import Predictor
from arboost.params import auto
from arboost.params.boosting import BOOSTED_CLASSIFIER, BOOSTED_REGRESSOR
from arboost.params.suggestions import known_arguments, public_name, refuse_arguments
from arboost.training import fit as fits
from arboost.training import inputs, loop, monitor
from arboost.training.sets import EvaluationArguments, check_validation, evaluation_arguments

_NOTICEABLE_GAIN = 1e-3  # share of the last rounds in the gain of all


@dataclass(frozen=True, kw_only=True)
class FitArguments:
    """Arguments of `fit`; `rows` are X, y and sample_weight."""

    rows: tuple[object, object, object]
    offset: object
    groups: object
    sets: tuple[EvaluationArguments, ...]
    init_model: object
    callbacks: Iterable[Callable[[monitor.Round], object]]
    checkpoint: object
    memory_limit: int | str
    cache: str | os.PathLike[str] | None


class GradientBoosting(EngineEstimator):
    """Gradient boosting of regression trees, for all tasks."""

    _NOT_RECORDED = (*EngineEstimator._NOT_RECORDED, "preset", "warm_start")
    _DEFAULT_ENCODING = "groups"
    _FIXED: ClassVar[Mapping[str, Any]] = {}  # values of parameters that the estimator has not
    _GROUPS = "groups"  # name of the argument of `fit` with groups that stay whole
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
        callbacks: Iterable[Callable[[monitor.Round], object]] = (),
        checkpoint: object = None,
        memory_limit: int | str = "auto",
        cache: str | os.PathLike[str] | None = None,
    ) -> Self:
        """Train on a table and a target.

        Parameters
        ----------
        X : table of shape (n_rows, n_features), or arboost.Dataset
            NumPy array, pandas, Polars or PyArrow table, anything with an Arrow C stream, matrix of
            scipy.sparse, lists or dicts. Columns are numbers, booleans, decimals, dates and times,
            or categories. NaN and None are missing values. With device="cuda" also an array in
            device memory. A Dataset brings its own y and weights.
            Or a source that is read in batches and need not fit in memory: paths of files or
            folders, patterns such as "data/*.parquet", an iterable of batches that can be read
            again; y and sample_weight are then names of columns, or arrays.
        y : array of shape (n_rows,)
            Target: numbers for a regressor, labels for a classifier. Or the name of a column of X;
            the column is then not used as a feature.
        sample_weight : array of shape (n_rows,), optional
            Rows of weight 0 are left out. Or the name of a column of X; the column is then not used
            as a feature.
        offset : array of shape (n_rows,) or (n_rows, n_outputs), str or list of str, optional
            Start of the raw scores of each row, such as log(exposure) with loss="poisson": trees
            are added to it. K classes have an array of shape (n_rows, K). Or the name of a column
            of X, or K names: these columns are then not used as features, and predictions find them
            by name. After a fit with an array, predictions need ``offset=`` as well.
        X_val, y_val, sample_weight_val, offset_val : as X, y, sample_weight and offset, optional
            Validation set, scored after every round and used by early stopping. Columns, including
            that of the offset, are matched by name.
        eval_set : list of (X, y), (X, y, weight) or (X, y, weight, offset), optional
            Several validation sets instead of X_val, each scored after every round; the last one is
            used by early stopping. The training table may be among them, for its learning curve: X
            itself, or equal values of X and y. It never stops a fit.
        eval_names : list of str, optional
            Names of the sets in ``evals_result_``. None: "train" for the training table,
            "validation" for one other set, "validation_0", "validation_1", ... for several.
        groups : array of shape (n_rows,), optional
            Group of each row, for ``validation_split="group"``. Or the name of a column of X; the
            column is then not used as a feature.
        init_model : estimator, Predictor or path of a model file, optional
            Model whose training is continued by n_estimators more rounds. (``warm_start`` continues
            this estimator itself, up to n_estimators in all.)
        callbacks : iterable of callables
            Each gets an `arboost.Round` after every round; True stops the fit, None and False
            continue it.
        checkpoint : path or arboost.Checkpoint, optional
            File that keeps the state of the fit. A killed fit that is called again continues from
            there, and ends in the same model.
        memory_limit : int or str, default="auto"
            Memory for a fit on files or other batches: "2GB", "500MB", or a number of bytes.
            "auto": a share of the memory that the process may use. The model does not depend on it.
        cache : path, optional
            Folder that keeps the bins of files: the next fit on the same files with the same
            columns and bins starts at once. Files that have changed are read again.

        Returns
        -------
        self
        """
        return self._fit(
            FitArguments(
                rows=(X, y, sample_weight),
                offset=offset,
                groups=groups,
                sets=evaluation_arguments(
                    (X, y, offset),
                    (X_val, y_val, sample_weight_val, offset_val),
                    eval_set,
                    eval_names,
                ),
                init_model=init_model,
                callbacks=callbacks,
                checkpoint=checkpoint,
                memory_limit=memory_limit,
                cache=cache,
            )
        )

    def _fit(self, given: FitArguments) -> Self:
        """The whole fit; rankers have queries for groups."""
        requested, sets, groups = self._checked_params(), given.sets, given.groups
        old, n_kept = self._previous(given.init_model, requested["n_estimators"])
        if n_kept == requested["n_estimators"]:
            return self
        requested = fits.like_previous(requested, old)
        has_validation = any(not part.is_training for part in sets)
        stream = inputs.SourceOptions(
            given.memory_limit, given.cache, groups, has_validation, given.offset
        )
        rows, task = self._read(given.rows, requested, old, stream)
        read = inputs.TableReader(rows.schema, requested["device"], old is not None)
        held_out = tuple(part.rows(read) for part in sets)
        params = self._resolve(requested, rows, task, has_validation=has_validation)
        settings = fits.FitSettings.of(params)
        splits = params["n_iter_no_change"] is not None and not has_validation
        split_groups = None if self._GROUPS == "qid" else groups
        check_validation(settings.stopping, sets, splits=splits, groups=split_groups)
        recorded = self._recorded_params(params | {"n_estimators": requested["n_estimators"]})
        if task.is_constant:
            inputs.warn_one_class(given.rows[0], [task])
            return self._keep(loop.FitResult.of_one_class(), rows.schema, task, recorded)
        loss, start = self._plan(params, task, rows.schema)
        fits.check_continues(old, task.kind, params, loss.link, loss.n_outputs)
        factors = self._class_factors(params, task, rows.weight)
        train, validation = inputs.loss_rows(rows, held_out, task, loss, factors)
        train, validation = fits.continued_rows(train, validation, old, settings.n_threads)
        result = fits.run_fit(
            fits.FitJob(
                loss=loss,
                start=start,
                n_rounds=params["n_estimators"] - n_kept,
                settings=settings,
                record=recorded,
                train=train,
                validation=validation,
                splits=splits,
                groups=inputs.group_values(given.rows[0], groups, self._GROUPS),
                stratify=task.kind == "classifier",
                search=self._search(requested, rows, task, splits=splits, groups=groups),
                old=old,
                callbacks=monitor.checked_callbacks(given.callbacks),
                checkpoint=given.checkpoint,
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
        trees[:] = [one_tree(model, tree) for tree in range(model.n_trees)]
        return trees.reshape(model.n_rounds, -1) if model.n_trees else trees.reshape(0, 1)

    def _previous(self, init_model: object, n_estimators: int | str) -> tuple[Model | None, int]:
        """The model whose training is continued, and its rounds among n_estimators."""
        if init_model is not None:
            return fits.previous_model(init_model), 0
        if not self.warm_start or not hasattr(self, "model_"):
            return None, 0
        if isinstance(n_estimators, str):  # "auto"
            return self.model_, 0
        n_rounds = self.model_.n_rounds
        return self.model_, n_estimators - fits.number_to_add(n_estimators, n_rounds, "rounds")

    def _read(
        self,
        arrays: tuple[object, object, object],
        params: dict[str, Any],
        old: Model | None,
        stream: inputs.SourceOptions,
    ) -> tuple[inputs.EngineRows, Task]:
        """The training rows with target encodings, and their task."""
        check_pairing(arrays[0], None, **{self._GROUPS: stream.groups})
        schema = None if old is None else old.schema
        needs_values = "" if old is None else "init_model or warm_start"
        X, y, weight = self._resolve_input(arrays, params, stream, needs_values)
        # A source has become a Dataset, which has the other values of its rows.
        offset, groups = (stream.offset, stream.groups) if X is arrays[0] else (None, None)
        rows = read_rows(
            (X, y, weight),
            params,
            schema,
            offset=offset,
            groups=groups,
            groups_name=self._GROUPS,
        )
        classes = None if old is None else old.classes
        task = Task.of(self._KIND, rows.y, classes, n_threads=threads(params["n_jobs"]))
        encoding = category_encoding(params, self._DEFAULT_ENCODING)
        return inputs.target_encode_rows(rows, [task], schema, encoding), task

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
        predicted: Iterator[NDArray[Any]] = staged(X, offset=offset, n_jobs=self.n_jobs)
        return predicted

    def _checked_params(self) -> dict[str, Any]:
        params = {**super()._checked_params(), **self._FIXED}
        boosting_rounds.check_combinations(params)
        return params

    def _resolve(
        self, params: dict[str, Any], rows: inputs.EngineRows, task: Task, *, has_validation: bool
    ) -> dict[str, Any]:
        """The parameters of a fit to these rows, without "auto"."""
        size = _table_size(rows, task, params["n_jobs"])
        return auto.resolve(params, size, has_validation=has_validation)

    def _plan(
        self, params: dict[str, Any], task: Task, schema: Schema
    ) -> tuple[Loss, Callable[..., loop.Rounds]]:
        """The loss of a fit, and the callable that starts its training on sets of rows."""
        loss = boosting_rounds.make_loss(params, task)
        recipe = boosting_rounds.make_recipe(params, loss, schema)
        return loss, partial(boosting_rounds.BoostingRounds, recipe)

    def _search(
        self,
        requested: dict[str, Any],
        rows: inputs.EngineRows,
        task: Task,
        *,
        splits: bool,
        groups: object,
    ) -> fits.Search | None:
        """The search for the number of rounds; None for a given number or X_val."""
        if requested["n_estimators"] != auto.AUTO or not splits:
            return None
        size = _table_size(rows, task, requested["n_jobs"])
        plan = auto.round_search(requested, size, has_groups=groups is not None)
        params = auto.resolve(requested, size, has_validation=False)
        params |= {"learning_rate": plan.learning_rate}
        return fits.Search(plan, self._plan(params, task, rows.schema)[1])

    def _keep(
        self, result: loop.FitResult, schema: Schema, task: Task, recorded: dict[str, Any]
    ) -> Self:
        """Set the fitted attributes; nothing before this has changed the estimator."""
        if recorded["n_estimators"] == auto.AUTO and recorded["n_iter_no_change"] is not None:
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


def _table_size(rows: inputs.EngineRows, task: Task, n_jobs: int | None) -> auto.TableSize:
    counts = np.ones(1) if task.classes is None else task.class_counts(threads(n_jobs))
    balance = float(counts.min() / counts.mean())
    return auto.TableSize(len(rows.y), rows.schema.n_features, task.n_outputs, balance)


def _still_improved(history: dict[str, dict[str, list[float]]]) -> bool:
    """Whether the last tenth of the rounds had a noticeable share in the gain of all rounds.

    Scores of noise-free rows improve forever, by less and less.
    """
    curve = next(iter(list(history.values())[-1].values()))
    recent = curve[-1] - curve[-1 - len(curve) // 10]
    return abs(recent) > _NOTICEABLE_GAIN * abs(curve[-1] - curve[0])


def one_tree(model: Predictor, tree: int) -> Predictor:
    """A tree as a regressor: of one value, or of the values of all outputs."""
    forest = model.forest.single_tree(tree)
    width = forest.value.shape[1]
    return replace(
        model,
        forest=replace(forest, output=np.zeros(1, np.int32)),
        base_score=np.zeros(width),
        link="identity",
        classes=None,
        kind="regressor",
        trees_per_round=1,
        schema=replace(model.schema, offset=None),
    )


class GradientBoostingClassifier(ClassifierMixin, GradientBoosting):
    """Gradient boosting for classification: logistic loss for two classes, softmax for more.

    Parameters
    ----------
    n_estimators : int or str, default="auto"
        Number of boosting rounds; with early stopping the largest number. "auto" finds the best
        number on held-out rows (folds below 5,000 rows), then trains on all rows; with X_val it
        stops early on X_val. With fewer than 50 rows and neither X_val nor n_iter_no_change, "auto"
        means 100 rounds and the textbook defaults.
    learning_rate : float or str, default="auto"
        Factor on the values of every tree: smaller needs more rounds and overfits later. "auto":
        0.1; with n_estimators="auto", 0.1 in the search for rounds and 0.1 or, where 600 rounds
        take about a second, 0.05 in the fit; with preset="fast", 0.1 in both; with preset="best",
        0.025 in both up to 10,000 rows, rising to 0.1 at 640,000.
    preset : {"fast", "good", "best"}, default="good"
        How hard a fit with n_estimators="auto" tries: "fast", "good" and "best" search up to 150,
        300 and 4,000 rounds. See the table of presets on the page on tuning.
    loss : str or arboost.CustomLoss, default="log_loss"
        Loss to minimise: log_loss; for two classes also exponential, AdaBoost's loss; or an
        arboost.CustomLoss.
    boosting : {"newton", "gradient"}, default="newton"
        Steps of the trees: XGBoost's second-order steps with their penalties, or Friedman's
        least-squares trees on the gradient with the loss's own minimum in each leaf.
    line_search : {"leaf", "round"}, default="leaf"
        With boosting="gradient": a step length for each leaf, the minimum of the loss there, or one
        for all trees of a round, whose leaves keep the mean negative gradients (Friedman's
        algorithm 1 in its general form).
    tree_method : {"hist", "exact", "approx"}, default="hist"
        Candidates for splits: the bin edges of a histogram, all distinct values, or the quantiles
        of a hessian-weighted sketch.
    sketch_eps : float, default=0.004
        Rank error of the sketch of tree_method="approx", as a share of the total hessian: about 1 /
        sketch_eps candidates for each feature.
    sketch_scope : {"global", "local"}, default="global"
        Whether tree_method="approx" proposes candidates once per round or in every node.
    max_bins : int, default=255
        Largest number of bins of a feature with tree_method="hist", not counting missing values;
        above 255 a bin code takes two bytes.
    bundling : bool, default=True
        Whether features share stored columns with tree_method="hist": exclusive feature bundling
        (EFB), and several columns of few values in one byte. The model does not depend on it while
        max_conflict_rate is 0.
    max_conflict_rate : float, default=0.0
        Share of the rows in which two features of a bundle may both differ from their most frequent
        value; only the first of them is then kept.
    max_depth : int or str or None, default="auto"
        Largest number of splits between the root of a tree and a leaf; None sets no limit. "auto":
        6; with n_estimators="auto", None, and max_leaves=31 unless max_leaves is given.
    max_leaves : int or None, default=None
        Largest number of leaves of a tree; None sets no limit.
    grow_policy : {"auto", "depthwise", "leafwise"}, default="auto"
        Order of the splits: nodes nearest to the root first, or the largest gain first. "auto":
        depthwise; with n_estimators="auto", leafwise.
    min_child_weight : float or str, default="auto"
        Smallest sum of hessians (with boosting="gradient", of weights) in each child of a split.
        "auto": 1; with n_estimators="auto", 0.1.
    min_samples_leaf : int or str, default="auto"
        Smallest number of training rows in each child of a split. "auto": 1; with
        n_estimators="auto" and loss="quantile" 5 / min(alpha, 1 - alpha) (the geometric mean over
        several quantiles), and at most a tenth of the rows.
    gamma : float, default=0.0
        Gain that a split must exceed.
    reg_lambda : float or None, default=None
        L2 penalty on the leaf values. None: 1; with n_estimators="auto", 3, or 1 for leaves of
        several values; with boosting="gradient", which has no penalties, 0.
    reg_alpha : float, default=0.0
        L1 penalty on the leaf values.
    max_delta_step : float, default=0.0
        Largest absolute leaf value before the learning rate; 0 sets no limit.
    max_cat_to_onehot : int, default=4
        Largest number of levels of a category in a node for one-vs-rest splits; more levels are
        sorted by their mean gradients and split into two sets.
    max_cat_threshold : int, default=64
        Largest number of levels in the smaller of the two sets that a sorted category is split
        into.
    min_cat_weight : float, default=10.0
        Smallest hessian in a node of a level that a sorted category places by itself; all rarer
        levels stay together.
    cat_smooth : float, default=30.0
        Hessian added to each level's before levels are sorted, so that rare levels do not come
        first or last by chance.
    cat_l2 : float, default=30.0
        L2 penalty in addition to reg_lambda, in the gain of splits of sorted categories.
    subsample : float or str, default="auto"
        Share of the training rows that each tree is grown on. "auto": 1; with n_estimators="auto",
        0.5 unless sampling_method="goss".
    sampling_method : {"auto", "uniform", "gradient_based", "goss"}, default="auto"
        Sampling of rows. uniform: equal probabilities. gradient_based: probabilities in proportion
        to the regularised gradient, with inverse-probability weights; samples choose the splits,
        all rows set the leaf values. goss: LightGBM's GOSS, the rows of the largest gradients and a
        reweighted sample of the others, after 1 / learning_rate rounds on all rows. "auto":
        uniform; with n_estimators="auto", gradient_based, except with boosting="gradient" and the
        losses absolute_error and quantile.
    top_rate : float, default=0.2
        With sampling_method="goss": share of the training rows that are kept for their large
        gradients.
    other_rate : float, default=0.1
        With sampling_method="goss": share of the training rows that are drawn from all others.
    colsample_bytree : float or str, default="auto"
        Share of the features that each tree may use. "auto": 1; with n_estimators="auto", 6 /
        sqrt(n_features), at least 0.1 and at most 1.
    colsample_bylevel : float, default=1.0
        Share of the tree's features that each level may use.
    colsample_bynode : float or str, default="auto"
        Share of the level's features that each node may use. "auto": 1; with n_estimators="auto",
        0.7.
    categorical_features : "from_dtype", or list of str, int or bool, default="from_dtype"
        Additional categories, whatever their type: names, indices or a mask of columns.
        "from_dtype": only columns of strings, and of the categorical types of pandas, Polars and
        Arrow, which are always categories.
    category_encoding : {"auto", "groups", "mean"}, default="auto"
        Encoding of categories of more than 100 levels by their targets: sets of at most 255 groups,
        of which each frequent level is one and rare levels of similar means share the others; or
        one number, the mean target of a level. "auto": groups in gradient boosting, the mean in all
        other algorithms; a Dataset has its own.
    date_format : str, dict, or None, default="auto"
        Format of dates in strings, for all columns or by column: "iso" (year first), "dayfirst",
        "monthfirst", or a format of strptime such as "%d.%m.%y". "auto": year first, and day or
        month first where the values of a column leave no doubt. None: dates in strings are
        categories.
    calendar_parts : "auto", list of str, or None, default="auto"
        Calendar parts of dates that are features next to them: "hour", "weekday", "month" and
        "dayofyear". "auto": those that repeat, the hour in dates of more than a day, the weekday of
        more than a week, the others of more than a year. None: no parts.
    missing : float, default=float("nan")
        Number that means missing in all numeric columns, such as -999, or 0 in sparse tables; NaN,
        None and NA are always missing.
    monotone_constraints : dict, sequence of {-1, 0, 1}, or None, default=None
        Direction of features, by name or index: predictions may only rise (1) or only fall (-1); a
        sequence has an entry for each feature, 0 for no constraint.
    monotonic_cst : dict, sequence of {-1, 0, 1}, or None, default=None
        scikit-learn's name of monotone_constraints.
    interaction_constraints : list of groups, "pairwise", "no_interactions", or None, default=None
        Groups of features, by name or index, that may share a path from root to leaf; a feature in
        no group shares its paths with no other.
    num_parallel_tree : int, default=1
        Number of trees per round, each grown on its own sample of rows and columns, and averaged:
        above 1, a random forest in every round.
    warm_start : bool, default=False
        Whether a fit of a fitted estimator adds rounds to its own, up to n_estimators in all; with
        n_estimators="auto", as many more as held-out rows ask for.
    rate_drop : float, default=0.0
        DART: share of the earlier trees that a round drops from its gradients; 0: boosting without
        dropout.
    skip_drop : float, default=0.0
        DART: probability that a round drops no tree.
    one_drop : bool, default=False
        DART: whether a round with dropout drops at least one tree.
    sample_type : {"uniform", "weighted"}, default="uniform"
        DART: whether trees are dropped with equal probabilities or in proportion to their weights.
    normalize_type : {"tree", "forest"}, default="tree"
        DART: whether the new tree gets the weight of each dropped tree, or of all of them together.
    base_score : float, list of float, or None, default=None
        Prediction before the first tree: a value of y, or the probability of the second of two
        classes; for three or more classes a list of their probabilities, or 0 for raw scores of 0;
        None: estimated from the data.
    scale_pos_weight : float, default=1.0
        With two classes: factor on the row weights of the second class.
    class_weight : dict, "balanced" or None, default=None
        Factors on the row weights by label, 1 for labels that are not named; "balanced" gives all
        classes the same total weight.
    multi_strategy : {"auto", "one_output_per_tree", "multi_output_tree"}, default="auto"
        With three or more classes: one tree per class in every round, or one tree whose leaves hold
        a value for each class. "auto": one_output_per_tree; with n_estimators="auto",
        multi_output_tree unless the table is small (up to about 0.5 s for 600 rounds) or a class
        has less than a quarter of the rows of the average class.
    eval_metric : str, callable, arboost.Metric, list of these, or None, default=None
        Metrics on the validation set after each round; early stopping uses the first. None: the
        loss.
    n_iter_no_change : int or None, default=None
        Early stopping: number of rounds without a better validation score after which training
        stops and the best round is kept; None trains all rounds, or with n_estimators="auto" is 2.5
        / learning_rate, from 10 to 50; with preset="fast", 1 / learning_rate, from 5 to 50; with
        preset="best", 50.
    tol : float, default=0.0
        Early stopping: smallest improvement of the score that counts.
    validation_fraction : float, default=0.1
        Early stopping without X_val: share of the training rows that is held out.
    validation_split : {"random", "group", "time"}, default="random"
        Early stopping without X_val: choice of the held-out rows: random (stratified by class for
        classifiers), whole groups, or the last rows.
    max_time : float or None, default=None
        Number of seconds after which no further round starts; None sets no limit.
    device : str, default="cpu"
        Device that trees are grown on: "cpu", "cuda", or "cuda:1" and so on for other CUDA devices
        than the first. The model does not depend on it.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. The model does not depend
        on it.
    random_state : int, RandomState or None, default=0
        Seed of every random choice; None: a new seed for each fit.
    verbose : bool or int, default=1
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    n_classes_ : int
        Number of classes.
    model_ : arboost.Predictor
        The fitted model, which can be saved and runs without scikit-learn.
    estimators_ : array of shape (n_rounds, trees_per_round)
        The trees, each an arboost.Predictor of its part of the raw scores.
    n_iter_ : int
        Number of rounds of the model; with early stopping up to the best one.
    best_iteration_ : int or None
        Best round on the last validation set, from 0; None without one.
    best_score_ : float or None
        First metric in that round.
    evals_result_ : dict
        Learning curves by set and metric, a value for each round:
        ``evals_result_["validation"]["log_loss"]``.
        With n_estimators="auto" the curves of "validation" are those of the search for the number
        of rounds. Its learning rate may be twice that of the model: each round then counts two.
    stop_reason_ : str
        Why training ended: "n_estimators", "n_iter_no_change", "max_time" or "callback NAME".
        The limit of an automatic fit is 'most rounds of preset="good": set preset="best" for more'.
    n_features_in_ : int
        Number of columns in `fit`.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, where all of them are strings.
    feature_importances_ : array of shape (n_features_in_,)
        Share of each feature in the total gain of all splits.

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingClassifier
    >>> X = np.arange(100).reshape(-1, 1)
    >>> y = np.where(X[:, 0] < 50, "low", "high")
    >>> model = GradientBoostingClassifier().fit(X, y)
    >>> model.predict([[10], [90]])
    array(['low', 'high'], dtype='<U4')
    """

    _KIND = "classifier"
    _TABLE = BOOSTED_CLASSIFIER

    def __init__(
        self,
        *,
        n_estimators: int | str = "auto",
        learning_rate: float | str = "auto",
        preset: str = "good",
        loss: str | CustomLoss = "log_loss",
        boosting: str = "newton",
        line_search: str = "leaf",
        tree_method: str = "hist",
        sketch_eps: float = 0.004,
        sketch_scope: str = "global",
        max_bins: int = 255,
        bundling: bool = True,
        max_conflict_rate: float = 0.0,
        max_depth: int | str | None = "auto",
        max_leaves: int | None = None,
        grow_policy: str = "auto",
        min_child_weight: float | str = "auto",
        min_samples_leaf: int | str = "auto",
        gamma: float = 0.0,
        reg_lambda: float | None = None,
        reg_alpha: float = 0.0,
        max_delta_step: float = 0.0,
        max_cat_to_onehot: int = 4,
        max_cat_threshold: int = 64,
        min_cat_weight: float = 10.0,
        cat_smooth: float = 30.0,
        cat_l2: float = 30.0,
        subsample: float | str = "auto",
        sampling_method: str = "auto",
        top_rate: float = 0.2,
        other_rate: float = 0.1,
        colsample_bytree: float | str = "auto",
        colsample_bylevel: float = 1.0,
        colsample_bynode: float | str = "auto",
        categorical_features: str | Sequence[Any] = "from_dtype",
        category_encoding: str = "auto",
        date_format: str | Mapping[Any, str] | None = "auto",
        calendar_parts: str | Sequence[str] | None = "auto",
        missing: float = float("nan"),
        monotone_constraints: Mapping[Any, int] | Sequence[int] | None = None,
        monotonic_cst: Mapping[Any, int] | Sequence[int] | None = None,
        interaction_constraints: str | Sequence[Iterable[Any]] | None = None,
        num_parallel_tree: int = 1,
        warm_start: bool = False,
        rate_drop: float = 0.0,
        skip_drop: float = 0.0,
        one_drop: bool = False,
        sample_type: str = "uniform",
        normalize_type: str = "tree",
        base_score: float | Sequence[float] | None = None,
        scale_pos_weight: float = 1.0,
        class_weight: Mapping[Any, float] | str | None = None,
        multi_strategy: str = "auto",
        eval_metric: str | Callable[..., float] | Metric | Sequence[Any] | None = None,
        n_iter_no_change: int | None = None,
        tol: float = 0.0,
        validation_fraction: float = 0.1,
        validation_split: str = "random",
        max_time: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: int | RandomState | None = 0,
        verbose: bool | int = 1,
    ) -> None:
        store_arguments(self, locals())

    @public_name
    def predict_proba(
        self, X: object, *, rounds: int | None = None, offset: object = None, **unknown: Never
    ) -> Floats:
        """Return the class probabilities, shape (n_rows, n_classes), in the order of ``classes_``.

        The probabilities of a row sum to 1. `rounds` and `offset` are those of `predict`.
        """
        if unknown:
            refuse_arguments(self.predict_proba, unknown)
        model = self._first_rounds(rounds)
        probabilities = model.predict_proba(X, offset=offset, n_jobs=self.n_jobs)
        assert not isinstance(probabilities, list)  # there is one target
        return probabilities

    def predict_log_proba(self, X: object, *, offset: object = None) -> Floats:
        """Return the logarithms of `predict_proba`; those of 0 are -inf."""
        refuse_logarithms(X)
        return core.log(self.predict_proba(X, offset=offset))

    @public_name
    def decision_function(
        self, X: object, *, rounds: int | None = None, offset: object = None, **unknown: Never
    ) -> Floats:
        """Return the raw scores: shape (n_rows,) for two classes, else (n_rows, n_classes)."""
        if unknown:
            refuse_arguments(self.decision_function, unknown)
        model = self._first_rounds(rounds)
        return decision(model.predict_raw(X, offset=offset, n_jobs=self.n_jobs))

    def staged_predict_proba(self, X: object, *, offset: object = None) -> Iterator[Floats]:
        """Yield the result of `predict_proba` after each round."""
        staged = self._fitted_model().staged_predict_proba
        probabilities: Iterator[Any] = staged(X, offset=offset, n_jobs=self.n_jobs)
        return probabilities

    def staged_decision_function(self, X: object, *, offset: object = None) -> Iterator[Floats]:
        """Yield the result of `decision_function` after each round."""
        staged = self._fitted_model().staged_raw(X, offset=offset, n_jobs=self.n_jobs)
        return map(decision, staged)

    @public_name
    def score(
        self, X: object, y: object, sample_weight: object = None, *, offset: object = None
    ) -> float:
        """Return the accuracy of the predictions.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        y : array of shape (n_rows,), or the name of a column of X
        sample_weight : array of shape (n_rows,), optional
        offset
            As `predict` takes it.
        """
        from sklearn.metrics import accuracy_score  # slow to import

        X, y, _ = split_target(X, y)
        predicted = self.predict(X, offset=offset)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))


class GradientBoostingRegressor(RegressorMixin, GradientBoosting):
    """Gradient boosting for regression: means, medians, counts, positive amounts and quantiles.

    Parameters
    ----------
    n_estimators : int or str, default="auto"
        Number of boosting rounds; with early stopping the largest number. "auto" finds the best
        number on held-out rows (folds below 5,000 rows), then trains on all rows; with X_val it
        stops early on X_val. With fewer than 50 rows and neither X_val nor n_iter_no_change, "auto"
        means 100 rounds and the textbook defaults.
    learning_rate : float or str, default="auto"
        Factor on the values of every tree: smaller needs more rounds and overfits later. "auto":
        0.1; with n_estimators="auto", 0.1 in the search for rounds and 0.1 or, where 600 rounds
        take about a second, 0.05 in the fit; with preset="fast", 0.1 in both; with preset="best",
        0.025 in both up to 10,000 rows, rising to 0.1 at 640,000.
    preset : {"fast", "good", "best"}, default="good"
        How hard a fit with n_estimators="auto" tries: "fast", "good" and "best" search up to 150,
        300 and 4,000 rounds. See the table of presets on the page on tuning.
    loss : str or arboost.CustomLoss, default="squared_error"
        Loss to minimise: squared_error, absolute_error, huber, quantile; poisson, gamma or tweedie
        for a mean above 0; or an arboost.CustomLoss.
    alpha : float or list of float, default=0.9
        With loss="quantile": the quantile to predict, or several, whose predictions never cross.
        With loss="huber": the share of errors with a squared loss.
    tweedie_power : float, default=1.5
        With loss="tweedie": power of the mean that the variance is proportional to.
    boosting : {"newton", "gradient"}, default="newton"
        Steps of the trees: XGBoost's second-order steps with their penalties, or Friedman's
        least-squares trees on the gradient with the loss's own minimum in each leaf.
    line_search : {"leaf", "round"}, default="leaf"
        With boosting="gradient": a step length for each leaf, the minimum of the loss there, or one
        for all trees of a round, whose leaves keep the mean negative gradients (Friedman's
        algorithm 1 in its general form).
    tree_method : {"hist", "exact", "approx"}, default="hist"
        Candidates for splits: the bin edges of a histogram, all distinct values, or the quantiles
        of a hessian-weighted sketch.
    sketch_eps : float, default=0.004
        Rank error of the sketch of tree_method="approx", as a share of the total hessian: about 1 /
        sketch_eps candidates for each feature.
    sketch_scope : {"global", "local"}, default="global"
        Whether tree_method="approx" proposes candidates once per round or in every node.
    max_bins : int, default=255
        Largest number of bins of a feature with tree_method="hist", not counting missing values;
        above 255 a bin code takes two bytes.
    bundling : bool, default=True
        Whether features share stored columns with tree_method="hist": exclusive feature bundling
        (EFB), and several columns of few values in one byte. The model does not depend on it while
        max_conflict_rate is 0.
    max_conflict_rate : float, default=0.0
        Share of the rows in which two features of a bundle may both differ from their most frequent
        value; only the first of them is then kept.
    max_depth : int or str or None, default="auto"
        Largest number of splits between the root of a tree and a leaf; None sets no limit. "auto":
        6; with n_estimators="auto", None, and max_leaves=31 unless max_leaves is given.
    max_leaves : int or None, default=None
        Largest number of leaves of a tree; None sets no limit.
    grow_policy : {"auto", "depthwise", "leafwise"}, default="auto"
        Order of the splits: nodes nearest to the root first, or the largest gain first. "auto":
        depthwise; with n_estimators="auto", leafwise.
    min_child_weight : float or str, default="auto"
        Smallest sum of hessians (with boosting="gradient", of weights) in each child of a split.
        "auto": 1; with n_estimators="auto", 0.1.
    min_samples_leaf : int or str, default="auto"
        Smallest number of training rows in each child of a split. "auto": 1; with
        n_estimators="auto" and loss="quantile" 5 / min(alpha, 1 - alpha) (the geometric mean over
        several quantiles), and at most a tenth of the rows.
    gamma : float, default=0.0
        Gain that a split must exceed.
    reg_lambda : float or None, default=None
        L2 penalty on the leaf values. None: 1; with n_estimators="auto", 3, or 1 for leaves of
        several values; with boosting="gradient", which has no penalties, 0.
    reg_alpha : float, default=0.0
        L1 penalty on the leaf values.
    max_delta_step : float, default=0.0
        Largest absolute leaf value before the learning rate; 0 sets no limit.
    max_cat_to_onehot : int, default=4
        Largest number of levels of a category in a node for one-vs-rest splits; more levels are
        sorted by their mean gradients and split into two sets.
    max_cat_threshold : int, default=64
        Largest number of levels in the smaller of the two sets that a sorted category is split
        into.
    min_cat_weight : float, default=10.0
        Smallest hessian in a node of a level that a sorted category places by itself; all rarer
        levels stay together.
    cat_smooth : float, default=30.0
        Hessian added to each level's before levels are sorted, so that rare levels do not come
        first or last by chance.
    cat_l2 : float, default=30.0
        L2 penalty in addition to reg_lambda, in the gain of splits of sorted categories.
    subsample : float or str, default="auto"
        Share of the training rows that each tree is grown on. "auto": 1; with n_estimators="auto",
        0.5 unless sampling_method="goss".
    sampling_method : {"auto", "uniform", "gradient_based", "goss"}, default="auto"
        Sampling of rows. uniform: equal probabilities. gradient_based: probabilities in proportion
        to the regularised gradient, with inverse-probability weights; samples choose the splits,
        all rows set the leaf values. goss: LightGBM's GOSS, the rows of the largest gradients and a
        reweighted sample of the others, after 1 / learning_rate rounds on all rows. "auto":
        uniform; with n_estimators="auto", gradient_based, except with boosting="gradient" and the
        losses absolute_error and quantile.
    top_rate : float, default=0.2
        With sampling_method="goss": share of the training rows that are kept for their large
        gradients.
    other_rate : float, default=0.1
        With sampling_method="goss": share of the training rows that are drawn from all others.
    colsample_bytree : float or str, default="auto"
        Share of the features that each tree may use. "auto": 1; with n_estimators="auto", 6 /
        sqrt(n_features), at least 0.1 and at most 1.
    colsample_bylevel : float, default=1.0
        Share of the tree's features that each level may use.
    colsample_bynode : float or str, default="auto"
        Share of the level's features that each node may use. "auto": 1; with n_estimators="auto",
        0.7.
    categorical_features : "from_dtype", or list of str, int or bool, default="from_dtype"
        Additional categories, whatever their type: names, indices or a mask of columns.
        "from_dtype": only columns of strings, and of the categorical types of pandas, Polars and
        Arrow, which are always categories.
    category_encoding : {"auto", "groups", "mean"}, default="auto"
        Encoding of categories of more than 100 levels by their targets: sets of at most 255 groups,
        of which each frequent level is one and rare levels of similar means share the others; or
        one number, the mean target of a level. "auto": groups in gradient boosting, the mean in all
        other algorithms; a Dataset has its own.
    date_format : str, dict, or None, default="auto"
        Format of dates in strings, for all columns or by column: "iso" (year first), "dayfirst",
        "monthfirst", or a format of strptime such as "%d.%m.%y". "auto": year first, and day or
        month first where the values of a column leave no doubt. None: dates in strings are
        categories.
    calendar_parts : "auto", list of str, or None, default="auto"
        Calendar parts of dates that are features next to them: "hour", "weekday", "month" and
        "dayofyear". "auto": those that repeat, the hour in dates of more than a day, the weekday of
        more than a week, the others of more than a year. None: no parts.
    missing : float, default=float("nan")
        Number that means missing in all numeric columns, such as -999, or 0 in sparse tables; NaN,
        None and NA are always missing.
    monotone_constraints : dict, sequence of {-1, 0, 1}, or None, default=None
        Direction of features, by name or index: predictions may only rise (1) or only fall (-1); a
        sequence has an entry for each feature, 0 for no constraint.
    monotonic_cst : dict, sequence of {-1, 0, 1}, or None, default=None
        scikit-learn's name of monotone_constraints.
    interaction_constraints : list of groups, "pairwise", "no_interactions", or None, default=None
        Groups of features, by name or index, that may share a path from root to leaf; a feature in
        no group shares its paths with no other.
    num_parallel_tree : int, default=1
        Number of trees per round, each grown on its own sample of rows and columns, and averaged:
        above 1, a random forest in every round.
    warm_start : bool, default=False
        Whether a fit of a fitted estimator adds rounds to its own, up to n_estimators in all; with
        n_estimators="auto", as many more as held-out rows ask for.
    rate_drop : float, default=0.0
        DART: share of the earlier trees that a round drops from its gradients; 0: boosting without
        dropout.
    skip_drop : float, default=0.0
        DART: probability that a round drops no tree.
    one_drop : bool, default=False
        DART: whether a round with dropout drops at least one tree.
    sample_type : {"uniform", "weighted"}, default="uniform"
        DART: whether trees are dropped with equal probabilities or in proportion to their weights.
    normalize_type : {"tree", "forest"}, default="tree"
        DART: whether the new tree gets the weight of each dropped tree, or of all of them together.
    base_score : float, list of float, or None, default=None
        Prediction before the first tree: a value of y, or the probability of the second of two
        classes; for three or more classes a list of their probabilities, or 0 for raw scores of 0;
        None: estimated from the data.
    eval_metric : str, callable, arboost.Metric, list of these, or None, default=None
        Metrics on the validation set after each round; early stopping uses the first. None: the
        loss.
    n_iter_no_change : int or None, default=None
        Early stopping: number of rounds without a better validation score after which training
        stops and the best round is kept; None trains all rounds, or with n_estimators="auto" is 2.5
        / learning_rate, from 10 to 50; with preset="fast", 1 / learning_rate, from 5 to 50; with
        preset="best", 50.
    tol : float, default=0.0
        Early stopping: smallest improvement of the score that counts.
    validation_fraction : float, default=0.1
        Early stopping without X_val: share of the training rows that is held out.
    validation_split : {"random", "group", "time"}, default="random"
        Early stopping without X_val: choice of the held-out rows: random (stratified by class for
        classifiers), whole groups, or the last rows.
    max_time : float or None, default=None
        Number of seconds after which no further round starts; None sets no limit.
    device : str, default="cpu"
        Device that trees are grown on: "cpu", "cuda", or "cuda:1" and so on for other CUDA devices
        than the first. The model does not depend on it.
    n_jobs : int or None, default=None
        Number of threads; None and -1 take all that this process may use. The model does not depend
        on it.
    random_state : int, RandomState or None, default=0
        Seed of every random choice; None: a new seed for each fit.
    verbose : bool or int, default=1
        Whether fits of more than about a second draw a progress bar in terminals and notebooks;
        numbers above 0 are True.

    Attributes
    ----------
    model_ : arboost.Predictor
        The fitted model, which can be saved and runs without scikit-learn.
    estimators_ : array of shape (n_rounds, trees_per_round)
        The trees, each an arboost.Predictor of its part of the raw scores.
    n_iter_ : int
        Number of rounds of the model; with early stopping up to the best one.
    best_iteration_ : int or None
        Best round on the last validation set, from 0; None without one.
    best_score_ : float or None
        First metric in that round.
    evals_result_ : dict
        Learning curves by set and metric, a value for each round:
        ``evals_result_["validation"]["squared_error"]``.
        With n_estimators="auto" the curves of "validation" are those of the search for the number
        of rounds. Its learning rate may be twice that of the model: each round then counts two.
    stop_reason_ : str
        Why training ended: "n_estimators", "n_iter_no_change", "max_time" or "callback NAME".
        The limit of an automatic fit is 'most rounds of preset="good": set preset="best" for more'.
    n_features_in_ : int
        Number of columns in `fit`.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, where all of them are strings.
    feature_importances_ : array of shape (n_features_in_,)
        Share of each feature in the total gain of all splits.

    Examples
    --------
    >>> import numpy as np
    >>> from arboost import GradientBoostingRegressor
    >>> X = np.arange(100).reshape(-1, 1)
    >>> y = np.where(X[:, 0] < 50, 1.0, 3.0)
    >>> model = GradientBoostingRegressor().fit(X, y)
    >>> model.predict([[10], [90]]).round(3)
    array([1., 3.])
    """

    _KIND = "regressor"
    _TABLE = BOOSTED_REGRESSOR

    def __init__(
        self,
        *,
        n_estimators: int | str = "auto",
        learning_rate: float | str = "auto",
        preset: str = "good",
        loss: str | CustomLoss = "squared_error",
        alpha: float | Sequence[float] = 0.9,
        tweedie_power: float = 1.5,
        boosting: str = "newton",
        line_search: str = "leaf",
        tree_method: str = "hist",
        sketch_eps: float = 0.004,
        sketch_scope: str = "global",
        max_bins: int = 255,
        bundling: bool = True,
        max_conflict_rate: float = 0.0,
        max_depth: int | str | None = "auto",
        max_leaves: int | None = None,
        grow_policy: str = "auto",
        min_child_weight: float | str = "auto",
        min_samples_leaf: int | str = "auto",
        gamma: float = 0.0,
        reg_lambda: float | None = None,
        reg_alpha: float = 0.0,
        max_delta_step: float = 0.0,
        max_cat_to_onehot: int = 4,
        max_cat_threshold: int = 64,
        min_cat_weight: float = 10.0,
        cat_smooth: float = 30.0,
        cat_l2: float = 30.0,
        subsample: float | str = "auto",
        sampling_method: str = "auto",
        top_rate: float = 0.2,
        other_rate: float = 0.1,
        colsample_bytree: float | str = "auto",
        colsample_bylevel: float = 1.0,
        colsample_bynode: float | str = "auto",
        categorical_features: str | Sequence[Any] = "from_dtype",
        category_encoding: str = "auto",
        date_format: str | Mapping[Any, str] | None = "auto",
        calendar_parts: str | Sequence[str] | None = "auto",
        missing: float = float("nan"),
        monotone_constraints: Mapping[Any, int] | Sequence[int] | None = None,
        monotonic_cst: Mapping[Any, int] | Sequence[int] | None = None,
        interaction_constraints: str | Sequence[Iterable[Any]] | None = None,
        num_parallel_tree: int = 1,
        warm_start: bool = False,
        rate_drop: float = 0.0,
        skip_drop: float = 0.0,
        one_drop: bool = False,
        sample_type: str = "uniform",
        normalize_type: str = "tree",
        base_score: float | Sequence[float] | None = None,
        eval_metric: str | Callable[..., float] | Metric | Sequence[Any] | None = None,
        n_iter_no_change: int | None = None,
        tol: float = 0.0,
        validation_fraction: float = 0.1,
        validation_split: str = "random",
        max_time: float | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: int | RandomState | None = 0,
        verbose: bool | int = 1,
    ) -> None:
        store_arguments(self, locals())

    @public_name
    def score(
        self, X: object, y: object, sample_weight: object = None, *, offset: object = None
    ) -> float:
        """Return R^2 of the predictions; of several quantiles the mean of their D^2.

        D^2 of a quantile is ``sklearn.metrics.d2_pinball_score``: 1 is perfect, and 0 the score of
        the quantile of y without any features. A single quantile has R^2, as in scikit-learn.

        Parameters
        ----------
        X : table of shape (n_rows, n_features)
        y : array of shape (n_rows,), or the name of a column of X
        sample_weight : array of shape (n_rows,), optional
        offset
            As `predict` takes it.
        """
        from sklearn.metrics import d2_pinball_score, r2_score  # slow to import

        X, y, _ = split_target(X, y)
        alphas = self._fitted_model().params["alpha"]
        predicted = self.predict(X, offset=offset)
        if not isinstance(alphas, list):
            return float(r2_score(y, predicted, sample_weight=sample_weight))
        scores = [
            d2_pinball_score(y, column, sample_weight=sample_weight, alpha=alpha)
            for alpha, column in zip(alphas, predicted.T, strict=True)
        ]
        return float(np.mean(scores))
