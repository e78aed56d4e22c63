"""Rows and parameters -> bins -> independent trees, grown and pruned.

Decision trees, random forests and extra trees share these steps. Gini impurity and squared error
are the engine's gain without penalties, so that every leaf holds the column means of its rows
(`ForestTarget`). The gradients are the same for all trees, which differ by the rows they are grown
on and the features that their nodes may use (Breiman 2001, "Random Forests").
"""

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from arboost.backend import core, startable_threads, threads
from arboost.data.bins import Binned
from arboost.data.cuda import device_number
from arboost.data.feature_names import monotone_directions
from arboost.data.schema import Schema
from arboost.estimators import forest_target
from arboost.estimators.estimator import EngineEstimator
from arboost.estimators.forest_target import ForestTarget
from arboost.losses.base import Floats
from arboost.models.metadata import history_of, out_of_bag_history, out_of_bag_trees, provenance_of
from arboost.models.predictor import Predictor
from arboost.params.auto import AUTO
from arboost.params.records import BinParams
from arboost.progress import Bar
from arboost.training.inputs import EngineRows, Rows
from arboost.training.out_of_bag import OutOfBagCurve, OutOfBagSums, OutOfBagTruth
from arboost.training.sets import TrainingSet, bin_rows, build_sets
from arboost.trees.forest import Forest
from arboost.trees.grower import TreeParams, grown_forest, make_grower, restore_trees
from arboost.trees.pruning import mean_decreases, pruned
from arboost.trees.samples import RowDraws, draw_size, undrawn_rows
from arboost.workers import even_ranges

# As CART has it: of two classes, and of numbers, the best of all sets of levels is one of those
# between neighbours in the order of their means (Breiman et al. 1984, theorem 4.5).
CART_LEVELS: dict[str, Any] = {
    "max_cat_to_onehot": 2,
    "max_cat_threshold": 256,
    "min_cat_weight": 0.0,
    "cat_smooth": 0.0,
    "cat_l2": 0.0,
}
_POLL_S = 0.1  # seconds between two looks at the trees that are done
_MAX_DEVICE_GROWERS = 6  # more trees at once do not fill a device any better


@dataclass(frozen=True, kw_only=True)
class TreeRows:
    """Rows of each tree: all rows with weights, or draws.

    Attributes
    ----------
    weight : float64 array of shape (n_rows,), or None
        Row weights of trees that see all rows.
    draws : RowDraws or None
        Draws with replacement, in proportion to the row weights; None for all rows.
    reweigh : callable or None
        Function from the drawn rows of a tree and their counts to weights above 0 of all training
        rows; needs draws.
    """

    weight: Floats | None = None
    draws: RowDraws | None = None
    reweigh: forest_target.Reweigh | None = None

    def total_weight(self, n_rows: int) -> float:
        """The sum of the row weights of a tree."""
        if self.draws is not None:
            return float(self.draws.n_draws)
        return float(n_rows) if self.weight is None else float(self.weight.sum())


def fit_forest(
    params: Mapping[str, Any],
    rows: EngineRows,
    target: ForestTarget,
    use: TreeRows,
    numbers: range,
    out_of_bag: OutOfBagSums | None = None,
) -> tuple[Forest, int]:
    """Grow and prune the trees of a fit; return them and the largest number of bins of a feature.

    Parameters
    ----------
    params : mapping
        Checked parameters of a tree or forest.
    rows : Rows
        With target encodings.
    target : ForestTarget
        Target of these rows.
    use : TreeRows
    numbers : range
        Numbers of the trees, which their random choices depend on.
    out_of_bag : OutOfBagSums, optional
        Sums that the unpruned trees add their out-of-bag predictions to.
    """
    n_threads = threads(params["n_jobs"])
    total_weight = use.total_weight(len(rows.y))
    tree = tree_params(params, rows.schema, target, total_weight)
    has_limit = tree.min_child_weight > 0.0 or tree.min_gain_share > 0.0 or any(tree.monotone)
    recipe = ForestRecipe(
        target=target,
        tree=tree,
        numbers=numbers,
        seed=params["random_state"],
        rows=use,
        split_weight=use.weight if has_limit else forest_target.split_weights(use.weight),
    )
    weight = use.weight if use.draws is None else use.draws.weight
    weighted = Rows(rows.source, rows.index, rows.y, forest_target.split_weights(weight))
    binned = bin_rows(weighted, BinParams.of(params), n_threads)
    data, _ = build_sets(weighted, (), binned, n_threads)
    with Bar(len(numbers), "fitting", visible=params["verbose"] > 0) as bar:
        bar.show(0)  # the bar starts with the first tree of this fit
        forest = grow_trees(recipe, data, out_of_bag, n_threads=n_threads, bar=bar)
    if params["ccp_alpha"] > 0.0:
        forest = pruned(forest, impurity_decreases(forest, target), params["ccp_alpha"])
    return forest, binned.max_bins


def with_resolved_bins(params: dict[str, Any], max_bins: int) -> dict[str, Any]:
    """The parameters of a fit with the number of bins in place of "auto"."""
    return params | {"max_bins": max_bins} if params["max_bins"] == AUTO else params


def impurity_decreases(forest: Forest, target: ForestTarget) -> Floats:
    """The decrease of impurity by each split, times the weight of its node."""
    if target.criterion == "quadratic":
        return mean_decreases(forest, 1.0 / target.gain_factor)
    return forest.gain / target.gain_factor


def tree_rows(params: Mapping[str, Any], target: ForestTarget, weight: Floats | None) -> TreeRows:
    """The rows of each tree, by the class weights and the bootstrap of the parameters."""
    draws_rows = params.get("bootstrap", False)
    class_weight = params.get("class_weight")
    by_sample = draws_rows and class_weight == "balanced_subsample"
    if target.kind == "classifier" and not by_sample:
        # Of trees that see all rows, each sample is the whole table.
        class_weight = "balanced" if class_weight == "balanced_subsample" else class_weight
        weight = forest_target.class_weights(class_weight, target.tasks, weight)
    if not draws_rows:
        return TreeRows(weight=weight)
    n_rows = len(target.tasks[0].y)
    draws = RowDraws(
        n_rows=n_rows,
        n_draws=draw_size(params["max_samples"], n_rows),
        seed=params["random_state"],
        weight=weight,
    )
    reweigh = forest_target.balanced_by_sample(target.tasks) if by_sample else None
    return TreeRows(draws=draws, reweigh=reweigh)


def out_of_bag_sums(
    params: Mapping[str, Any], rows: EngineRows, target: ForestTarget
) -> OutOfBagSums | None:
    """The sums of out-of-bag predictions, with their curve; None without oob_score."""
    if not params["oob_score"]:
        return None
    truths = [
        OutOfBagTruth(task.y, width, task.n_classes)
        for task, width in zip(target.tasks, target.widths, strict=True)
    ]
    curve = OutOfBagCurve(truths, rows.weight, out_of_bag_trees(params["n_estimators"]))
    return OutOfBagSums(len(rows.y), target.n_outputs, curve)


def forest_model(
    forest: Forest,
    rows: EngineRows,
    target: ForestTarget,
    recorded: dict[str, Any],
    out_of_bag: OutOfBagSums | None = None,
) -> Predictor:
    """The model of the trees, whose file keeps parameters and out-of-bag curve."""
    history = {}
    if out_of_bag is not None and out_of_bag.curve is not None:
        trees, errors = out_of_bag.curve.points()
        if trees:
            curve = out_of_bag_history(trees, out_of_bag.curve.metric, errors)
            history = history_of(out_of_bag=curve)
    return Predictor(
        forest=forest,
        schema=rows.schema,
        base_score=np.zeros(forest.width),
        trees_per_round=1,
        params=recorded,
        kind=target.kind,
        combine="mean",
        provenance=provenance_of(len(rows.y), history=history),
        **target.model_fields,
    )


def set_tree_attributes(estimator: EngineEstimator, model: Predictor, max_features: Any) -> None:
    """Set the attributes of a fitted tree or forest; `max_features` is the checked parameter."""
    estimator._keep_model(model, model.schema)
    estimator.n_outputs_ = max(1, len(model.targets))
    estimator.max_features_ = feature_count(max_features, model.schema.n_features)


# ---- growth parameters ----


def tree_params(
    params: Mapping[str, Any],
    schema: Schema,
    target: ForestTarget,
    total_weight: float,
) -> TreeParams:
    """The growth parameters of the engine.

    Parameters
    ----------
    params : mapping
        Checked parameters of a tree or forest.
    schema : Schema
    target : ForestTarget
    total_weight : float
        Sum of the row weights of a tree.
    """
    n_rows = len(target.tasks[0].y)
    monotone = monotone_directions(params["monotonic_cst"], schema)
    if monotone:
        _check_monotone(params["criterion"], target)
    if target.criterion == "absolute_error" and any(schema.categorical):
        raise ValueError(
            f"The column {schema.label(schema.categorical.index(True))} of X is a category, "
            'which criterion="absolute_error" cannot split: medians give levels no order. Use '
            "another criterion, or turn the column into numbers; of more than 100 levels "
            'category_encoding="mean" makes numbers.'
        )
    n_used = feature_count(params["max_features"], schema.n_features)
    least = _row_count(params["min_samples_leaf"], n_rows)
    return TreeParams(
        max_depth=params["max_depth"],
        max_leaves=params["max_leaf_nodes"],
        grow_policy="depthwise" if params["max_leaf_nodes"] is None else "leafwise",
        min_child_weight=params["min_weight_fraction_leaf"] * total_weight,
        min_samples_leaf=least,
        min_samples_split=max(_row_count(params["min_samples_split"], n_rows), 2 * least),
        min_gain_share=params["min_impurity_decrease"] * target.gain_factor,
        allow_zero_gain=True,
        criterion=target.criterion,
        target_ends=target.ends,
        random_cuts=params["splitter"] == "random",
        colsample_bynode=n_used / schema.n_features,
        monotone=tuple(monotone),
        tree_method=params["tree_method"],
        device=params["device"],
        **CART_LEVELS,
    )


def _check_monotone(criterion: str, target: ForestTarget) -> None:
    if target.criterion != "quadratic":
        raise ValueError(
            f"Monotone constraints are not allowed with criterion={criterion!r}. Use "
            f'criterion="{"gini" if target.kind == "classifier" else "squared_error"}", or no '
            "constraints."
        )
    if target.n_outputs > 1:
        raise ValueError(
            "Monotone constraints are not allowed with more than two classes or several targets "
            "(multiclass and multi-output): they are for predictions of one number. Leave them out."
        )


def feature_count(max_features: Any, n_features: int) -> int:
    """The number of features that a node draws.

    Examples
    --------
    >>> [feature_count(value, 20) for value in ("sqrt", "log2", None, 50, 0.25)]
    [4, 4, 20, 20, 5]
    """
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        return max(1, math.isqrt(n_features))
    if max_features == "log2":
        return n_features.bit_length() - 1 or 1
    if isinstance(max_features, int):
        return min(max_features, n_features)
    return max(1, int(max_features * n_features))


def _row_count(count: float, n_rows: int) -> int:
    return count if isinstance(count, int) else math.ceil(count * n_rows)


# ---- growth ----


@dataclass(frozen=True, kw_only=True, eq=False)
class ForestRecipe:
    """Recipe of independent trees.

    Attributes
    ----------
    target : ForestTarget
    tree : TreeParams
    numbers : range
        Numbers of the trees: their random choices depend on them.
    seed : int
    rows : TreeRows
    split_weight : float64 array of shape (n_rows,), or None
        `TreeRows.weight` in the search of splits (`split_weights`), where no limit of a tree is a
        weight.
    """

    target: ForestTarget
    tree: TreeParams
    numbers: range
    seed: int
    rows: TreeRows
    split_weight: Floats | None = None

    @property
    def in_parts(self) -> bool:
        """Whether trees are grown in parts, each at the scale of its rows."""
        return self.target.has_heavy_tail and not any(self.tree.monotone)

    @property
    def is_evened(self) -> bool:
        """Whether splits are searched with other weights than those of the leaf values."""
        return self.split_weight is not self.rows.weight


def grow_trees(
    recipe: ForestRecipe,
    data: TrainingSet,
    out_of_bag: OutOfBagSums | None,
    *,
    n_threads: int,
    bar: Bar,
) -> Forest:
    """The trees of a recipe; their predictions of out-of-bag rows are added to the sums.

    With as many trees as threads or more, every thread grows separate trees. The forest does not
    depend on which thread grows which tree. Where workers share the rows, and each has memory for
    the bins of all rows, each grows some of the trees; otherwise they grow every tree together.
    """
    if recipe.in_parts:
        recipe = replace(recipe, tree=replace(recipe.tree, device="cpu"))
    codes, numbers, cluster = data.binned.codes, recipe.numbers, None
    if isinstance(codes, core.SharedCodes) and _each_worker_holds_all_rows(data.binned, codes):
        cluster = codes.workers
        numbers = numbers[cluster.rank :: cluster.size]
        data = replace(data, binned=replace(data.binned, codes=codes.gather(n_threads)))
    n_growers = min(n_threads, len(numbers), _max_growers(recipe, data))
    n_growers = startable_threads(max(1, n_growers))
    weight = recipe.split_weight
    shared = None if recipe.rows.reweigh else recipe.target.gradients(weight, n_threads)
    start = partial(_TreeGrower, recipe, data, shared)
    sums = out_of_bag if cluster is None else None
    growers = [
        start(sums, n_growers=n_growers, n_threads=n_threads // n_growers) for _ in range(n_growers)
    ]
    _run_threads(growers, _TreeQueue(numbers), bar)
    if cluster is not None:
        restart = partial(start, out_of_bag, n_growers=1, n_threads=n_threads)
        growers = _exchange_trees(growers, cluster, restart)
        if out_of_bag is not None and recipe.rows.draws is not None:
            _add_out_of_bag_on_workers(growers, recipe, out_of_bag, cluster)
    return _ordered_forest(growers, data.binned, recipe, n_threads)


def _each_worker_holds_all_rows(binned: Binned, codes: core.SharedCodes) -> bool:
    """Whether every worker has room for the codes of all rows."""
    holds = binned.memory is not None and binned.memory.holds_all and not codes.is_stored
    n_holding = np.array([holds and not codes.has_sparse], np.int64)
    codes.workers.sum(n_holding)
    return int(n_holding[0]) == codes.workers.size


def _exchange_trees(
    growers: Sequence[_TreeGrower], cluster: core.Workers, start: Callable[[], _TreeGrower]
) -> list[_TreeGrower]:
    """Growers with the trees of all workers of the cluster, each started anew."""
    grown = pickle.dumps([(grower.numbers, grower.engine.trees()) for grower in growers])
    restored = []
    for packed in cluster.gather(grown):
        for numbers, trees in pickle.loads(packed):
            grower = start()
            grower.restore(numbers, trees)
            restored.append(grower)
    return restored


def _add_out_of_bag_on_workers(
    growers: Sequence[_TreeGrower],
    recipe: ForestRecipe,
    sums: OutOfBagSums,
    cluster: core.Workers,
) -> None:
    """Add the predictions of all trees for out-of-bag rows, some rows in each worker."""
    trees = {number: (grower, i) for grower in growers for i, number in enumerate(grower.numbers)}
    parts = even_ranges(len(recipe.target.tasks[0].y), cluster.size)
    worker_rows = parts[cluster.rank]
    if sums.curve is not None:
        sums.curve.part = slice(worker_rows.start, worker_rows.stop)
    for number in recipe.numbers:
        grower, tree = trees[number]
        grower.add_out_of_bag(number, tree, grower.draw(number), worker_rows)
    packed_sums = pickle.dumps(sums.rows(slice(worker_rows.start, worker_rows.stop)))
    for part, packed in zip(parts, cluster.gather(packed_sums), strict=True):
        sums.put(slice(part.start, part.stop), pickle.loads(packed))
    if sums.curve is not None:
        sums.curve.add_up(recipe.numbers.start, cluster.sum)


def _max_growers(recipe: ForestRecipe, data: TrainingSet) -> int:
    """The largest number of growers that helps; on a device each takes memory."""
    if data.binned.codes.is_stored or data.binned.is_shared:
        return 1  # threads share the rows of a window, or the messages of a worker
    device = device_number(recipe.tree.device)
    if device < 0:
        return len(recipe.numbers)
    n_rows, width = len(recipe.target.tasks[0].y), recipe.target.n_outputs
    fitting: int = core.cuda_growers_that_fit(data.binned.own_codes, n_rows, width, device)
    return min(fitting, _MAX_DEVICE_GROWERS)


class _TreeQueue:
    """Queue of tree numbers, shared by the growers."""

    def __init__(self, numbers: range) -> None:
        self._numbers = iter(numbers)
        self._lock = threading.Lock()
        self.n_done = 0

    def take(self) -> int | None:
        """The next number; None where there is none left."""
        with self._lock:
            return next(self._numbers, None)

    def close(self) -> None:
        """Empty the queue."""
        with self._lock:
            self._numbers = iter(())

    def note_done(self) -> None:
        """Count a tree."""
        with self._lock:
            self.n_done += 1


class _TreeGrower:
    """A grower with the trees that it has grown."""

    def __init__(
        self,
        recipe: ForestRecipe,
        data: TrainingSet,
        gradients: core.Gradients | None,
        out_of_bag: OutOfBagSums | None,
        *,
        n_growers: int,
        n_threads: int,
    ) -> None:
        self._recipe = recipe
        self._data = data
        self._gradients = gradients
        self._out_of_bag = out_of_bag
        self._n_threads = n_threads
        self._sample = core.Sample()
        self.engine = make_grower(data.binned, recipe.tree, recipe.target.n_outputs, data.rows)
        self.engine.expect(len(recipe.numbers) // n_growers + 1)
        self.numbers: list[int] = []
        # Under monotone constraints, leaf values may differ from means.
        sets_values = not recipe.target.is_exact and not any(recipe.tree.monotone)
        self._target = self._split_target = None  # of leaf values and, in parts, of splits
        if sets_values or recipe.is_evened:
            y = recipe.target.columns
            self._target = core.LeafTarget(y, recipe.rows.weight)
            if recipe.in_parts:
                self._split_target = core.LeafTarget(y, recipe.split_weight)
        # The device draws the rows itself where no step on the host reads them.
        draws = recipe.rows.draws
        self._draws_on_device = (
            device_number(recipe.tree.device) >= 0
            and draws is not None
            and recipe.rows.reweigh is None
        )
        self._chances = None  # equal ones
        if draws is not None and draws.weight is not None and self._draws_on_device:
            self._chances = core.DrawChances(draws.weight, n_threads)

    def restore(self, numbers: list[int], trees: dict[str, Any]) -> None:
        """Take over the trees that another grower has grown."""
        restore_trees(self.engine, self._data.binned, trees)
        self.numbers = numbers

    def work(self, queue: _TreeQueue, after_each: Callable[[], None] = lambda: None) -> None:
        """Grow trees until none is left."""
        while (number := queue.take()) is not None:
            self._grow(number)
            self.numbers.append(number)
            queue.note_done()
            after_each()

    def draw(self, number: int) -> core.Sample | None:
        """The rows of a tree; None for all."""
        draws = self._recipe.rows.draws
        if draws is None:
            return None
        if not self._draws_on_device:
            return draws.sample(number, self._n_threads, self._sample)
        self.engine.draw_with_replacement(
            self._sample, draws.n_draws, draws.seed, number, self._chances
        )
        return self._sample

    def _grow(self, number: int) -> None:
        recipe, n_threads = self._recipe, self._n_threads
        sample = self.draw(number)
        gradients = self._gradients
        if gradients is None:
            assert recipe.rows.reweigh is not None
            assert sample is not None
            weight = recipe.rows.reweigh(sample.positions(), sample.weights())
            gradients = recipe.target.gradients(weight, n_threads)
        options: Any = {"seed": recipe.seed, "tree": number, "sample": sample}
        options["n_threads"] = n_threads
        if self._split_target is not None:
            self.engine.grow_in_parts(self._split_target, **options)
        else:
            self.engine.grow(gradients, 0, rate=1.0, **options)
        if self._target is not None:
            by_medians = recipe.tree.criterion == "absolute_error"
            set_values = self.engine.set_medians if by_medians else self.engine.set_means
            set_values(self._target, sets_covers=recipe.is_evened)
        if self._out_of_bag is not None and self._draws_on_device:
            rows, values = self.engine.values_outside()
            self._out_of_bag.add(number, rows, values + recipe.target.middle)
        elif self._out_of_bag is not None and sample is not None:
            all_rows = range(len(recipe.target.tasks[0].y))
            self.add_out_of_bag(number, self.engine.n_trees - 1, sample, all_rows)

    def add_out_of_bag(
        self, number: int, tree: int, sample: core.Sample | None, part: range
    ) -> None:
        """Add the predictions of a tree for those of its out-of-bag rows that are in a part."""
        target, data = self._recipe.target, self._data
        assert sample is not None
        assert self._out_of_bag is not None
        rows = undrawn_rows(sample.positions(), len(target.tasks[0].y))
        rows = rows[slice(*np.searchsorted(rows, (part.start, part.stop)))]
        values = np.zeros((len(rows), target.n_outputs))
        if len(rows):
            table_rows = rows if data.rows is None else data.rows[rows]
            codes = data.binned.codes
            self.engine.add_tree(tree, 1.0, codes, table_rows, values, 0, self._n_threads)
        self._out_of_bag.add(number, rows, values + target.middle)


def _run_threads(growers: Sequence[_TreeGrower], queue: _TreeQueue, bar: Bar) -> None:
    """Run every grower in a thread; Ctrl-C, or a failure of one of them, ends them at once."""
    if len(growers) == 1:
        growers[0].work(queue, lambda: bar.show(queue.n_done))
        return
    gate = threading.Event()

    def work(grower: _TreeGrower) -> None:
        if not core.prepare_exceptions():
            raise MemoryError
        gate.wait()
        grower.work(queue)

    with ThreadPoolExecutor(len(growers)) as pool:
        try:
            # No grower starts before all threads have: Python waits forever for a thread that finds
            # no memory in its first lines.
            pending: set[Future[None]] = {pool.submit(work, grower) for grower in growers}
            gate.set()
            while pending:
                done, pending = wait(pending, _POLL_S, FIRST_EXCEPTION)
                for future in done:
                    future.result()
                bar.show(queue.n_done)
        except BaseException:
            queue.close()
            for grower in growers:
                grower.engine.stop()
            gate.set()
            raise


def _ordered_forest(
    growers: Sequence[_TreeGrower], binned: Binned, recipe: ForestRecipe, n_threads: int
) -> Forest:
    """The trees of all growers in the order of their numbers, with the middle added."""
    order = np.argsort([number for grower in growers for number in grower.numbers])
    engines = [grower.engine for grower in growers]
    forest = grown_forest(engines, binned, [0], order=order, n_threads=n_threads)
    target = recipe.target
    if recipe.is_evened and target.criterion == "quadratic":
        forest = replace(forest, gain=mean_decreases(forest))
    return replace(forest, value=forest.value + target.middle) if target.middle.any() else forest
