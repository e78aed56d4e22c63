"""Independent trees, each on rows of its own, grown by all threads at once.

Gini impurity and squared error are the engine's own gain without penalties, so that every leaf
holds the column means of its rows (`ForestTarget`). The gradients are the same for all trees, which
differ by the rows they are grown on and the features that their nodes may use (Breiman 2001,
"Random Forests").
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from arboost.algorithms.forests.targets import ForestTarget, Reweigh
from arboost.backend import core, startable
from arboost.cuda.devices import device_number
from arboost.data.bins import Binned
from arboost.grow.bootstrap import RowDraws, others
from arboost.grow.grower import TreeParams, grown_forest, make_grower, restore_trees
from arboost.grow.pruning import mean_decreases
from arboost.model.forest import Forest
from arboost.progress import Bar
from arboost.training.out_of_bag import OutOfBagSums
from arboost.training.sets import TrainingSet
from arboost.workers import spread

__all__ = ["ForestRecipe", "grow_trees"]

Floats = NDArray[np.float64]

_WAIT = 0.1  # seconds between two looks at the trees that are done
_DEVICE_WORKERS = 6  # more trees at once do not fill a device any better


@dataclass(frozen=True, kw_only=True, eq=False)
class ForestRecipe:
    """Recipe of independent trees.

    Attributes
    ----------
    target : ForestTarget
    tree : TreeParams
    n_trees : int
    seed : int
    first_tree : int
        Number of the first tree: random choices depend on a tree's number.
    weight : float64 array of shape (n_rows,), or None
        Of the training rows, for trees that see all of them.
    split_weight : float64 array of shape (n_rows,), or None
        The same in the search of splits (`split_weights`), where no limit of a tree is a weight.
    draws : RowDraws or None
        Draws with replacement; None for trees on all rows.
    reweigh : callable or None
        Returns the weights of the training rows, above 0, for a tree, from the rows that it has
        drawn and their counts; needs draws.
    """

    target: ForestTarget
    tree: TreeParams
    n_trees: int
    seed: int
    first_tree: int = 0
    weight: Floats | None = None
    split_weight: Floats | None = None
    draws: RowDraws | None = None
    reweigh: Reweigh | None = None

    @property
    def in_parts(self) -> bool:
        """Whether trees are grown in parts, each at the scale of its rows."""
        return self.target.has_heavy_tail and not any(self.tree.monotone)

    @property
    def is_evened(self) -> bool:
        """Whether the search of splits has weights of its own."""
        return self.split_weight is not self.weight


def grow_trees(
    recipe: ForestRecipe,
    data: TrainingSet,
    out_of_bag: OutOfBagSums | None,
    *,
    n_threads: int,
    bar: Bar,
) -> Forest:
    """Return the trees of a recipe; their predictions of out-of-bag rows are added to the sums.

    With as many trees as threads or more, every thread grows trees of its own. The forest does not
    depend on who grows which. Where workers share the rows, and each has room for the bins of all,
    each grows some of the trees on all rows; otherwise they grow every tree together.
    """
    if recipe.in_parts:
        recipe = replace(recipe, tree=replace(recipe.tree, device="cpu"))
    target = recipe.target
    shared_codes = data.binned.codes
    if isinstance(shared_codes, core.SharedCodes) and _all_hold_all(data.binned, shared_codes):
        return _grow_divided(recipe, data, shared_codes, out_of_bag, n_threads=n_threads, bar=bar)
    n_workers = startable(min(n_threads, recipe.n_trees, _most_workers(recipe, data)))
    n_inner = n_threads // n_workers
    shared = None if recipe.reweigh else target.gradients(recipe.split_weight, n_threads)
    numbers = range(recipe.first_tree, recipe.first_tree + recipe.n_trees)
    workers = [
        _Worker(recipe, data, shared, out_of_bag, n_workers=n_workers, n_threads=n_inner)
        for _ in range(n_workers)
    ]
    _run(workers, _Queue(numbers), bar)
    return _in_order(workers, data.binned, recipe, n_threads)


def _run(workers: Sequence[_Worker], queue: _Queue, bar: Bar) -> None:
    """Grow the trees of a queue, each worker in a thread of its own."""
    if len(workers) == 1:
        workers[0].work(queue, lambda: bar.show(queue.n_done))
    else:
        _work_together(workers, queue, bar)


def _all_hold_all(binned: Binned, codes: core.SharedCodes) -> bool:
    """Whether every worker has room for the codes of all rows."""
    holds = binned.memory is not None and binned.memory.holds_all and not codes.is_stored
    n_holding = np.array([holds and not codes.has_sparse], np.int64)
    codes.workers.sum(n_holding)
    return int(n_holding[0]) == codes.workers.size


def _grow_divided(
    recipe: ForestRecipe,
    data: TrainingSet,
    codes: core.SharedCodes,
    out_of_bag: OutOfBagSums | None,
    *,
    n_threads: int,
    bar: Bar,
) -> Forest:
    """Return the trees of a recipe, of which each worker of the cluster grows some on all rows."""
    cluster, numbers = codes.workers, range(recipe.first_tree, recipe.first_tree + recipe.n_trees)
    own = numbers[cluster.rank :: cluster.size]
    data = replace(data, binned=replace(data.binned, codes=codes.gather(n_threads)))
    n_workers = startable(max(1, min(n_threads, len(own))))
    options = {"n_workers": n_workers, "n_threads": n_threads // n_workers}
    shared = None if recipe.reweigh else recipe.target.gradients(recipe.split_weight, n_threads)
    workers = [_Worker(recipe, data, shared, None, **options) for _ in range(n_workers)]
    _run(workers, _Queue(own), bar)
    grown = pickle.dumps([(worker.numbers, worker.grower.trees()) for worker in workers])
    everywhere = []
    for packed in cluster.gather(grown):
        for of_worker, trees in pickle.loads(packed):
            worker = _Worker(recipe, data, shared, out_of_bag, n_workers=1, n_threads=n_threads)
            restore_trees(worker.grower, data.binned, trees)
            worker.numbers = of_worker
            everywhere.append(worker)
    if out_of_bag is not None and recipe.draws is not None:
        _add_own_out_of_bag(everywhere, numbers, recipe.draws.n_rows, out_of_bag, cluster)
    return _in_order(everywhere, data.binned, recipe, n_threads)


def _add_own_out_of_bag(
    workers: Sequence[_Worker],
    numbers: range,
    n_rows: int,
    sums: OutOfBagSums,
    cluster: core.Workers,
) -> None:
    """Add the predictions of all trees for out-of-bag rows, some rows in each worker."""
    places = {number: (worker, i) for worker in workers for i, number in enumerate(worker.numbers)}
    parts = spread(n_rows, cluster.size)
    own = parts[cluster.rank]
    if sums.curve is not None:
        sums.curve.part = slice(own.start, own.stop)
    for number in numbers:
        worker, tree = places[number]
        worker.add_out_of_bag(number, tree, own)
    found = pickle.dumps(sums.rows(slice(own.start, own.stop)))
    for part, packed in zip(parts, cluster.gather(found), strict=True):
        sums.put(slice(part.start, part.stop), pickle.loads(packed))
    if sums.curve is not None:
        sums.curve.add_up(numbers.start, cluster.sum)


def _most_workers(recipe: ForestRecipe, data: TrainingSet) -> int:
    """Return the largest number of workers that helps; on a device each takes memory."""
    if data.binned.codes.is_stored or data.binned.is_shared:
        return 1  # threads share the rows of a window, or the messages of a worker
    device = device_number(recipe.tree.device)
    if device < 0:
        return recipe.n_trees
    n_rows, width = len(recipe.target.tasks[0].y), recipe.target.n_outputs
    fitting: int = core.cuda_growers_that_fit(data.binned.own_codes, n_rows, width, device)
    return min(fitting, _DEVICE_WORKERS)


class _Queue:
    """Queue of tree numbers, shared by the workers."""

    def __init__(self, numbers: range) -> None:
        self._numbers = iter(numbers)
        self._lock = threading.Lock()
        self.n_done = 0

    def take(self) -> int | None:
        """Return the next number; None where there is none left."""
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


class _Worker:
    """A grower with the trees that it has grown."""

    def __init__(
        self,
        recipe: ForestRecipe,
        data: TrainingSet,
        gradients: core.Gradients | None,
        out_of_bag: OutOfBagSums | None,
        *,
        n_workers: int,
        n_threads: int,
    ) -> None:
        self._recipe = recipe
        self._data = data
        self._gradients = gradients
        self._out_of_bag = out_of_bag
        self._n_threads = n_threads
        self._sample = core.Sample()
        self.grower = make_grower(data.binned, recipe.tree, recipe.target.n_outputs, data.rows)
        self.grower.expect(recipe.n_trees // n_workers + 1)
        self.numbers: list[int] = []
        # Under monotone constraints, leaf values may differ from means.
        sets_values = not recipe.target.is_exact and not any(recipe.tree.monotone)
        self._y = recipe.target.columns if sets_values or recipe.is_evened else None
        # Where nothing here asks for the rows of a tree, the device draws them itself.
        self._draws_on_device = (
            device_number(recipe.tree.device) >= 0
            and recipe.draws is not None
            and recipe.draws.weight is None
            and recipe.reweigh is None
            and out_of_bag is None
            and self._y is None
        )

    def work(self, queue: _Queue, after_each: Callable[[], None] = lambda: None) -> None:
        """Grow trees until none is left."""
        while (number := queue.take()) is not None:
            self._grow(number)
            self.numbers.append(number)
            queue.note_done()
            after_each()

    def _draw(self, number: int) -> core.Sample | None:
        """Return the rows of a tree; None for all."""
        draws = self._recipe.draws
        if draws is None:
            return None
        if not self._draws_on_device:
            return draws.sample(number, self._n_threads, self._sample)
        self.grower.draw_with_replacement(self._sample, draws.n_draws, draws.seed, number)
        return self._sample

    def _grow(self, number: int) -> None:
        recipe, n_threads = self._recipe, self._n_threads
        sample = self._draw(number)
        gradients = self._gradients
        if gradients is None:
            assert recipe.reweigh is not None
            assert sample is not None
            weight = recipe.reweigh(sample.positions(), sample.weights())
            gradients = recipe.target.gradients(weight, n_threads)
        options: Any = {"seed": recipe.seed, "tree": number, "sample": sample}
        options["n_threads"] = n_threads
        if recipe.in_parts:
            assert self._y is not None
            self.grower.grow_in_parts(self._y, recipe.split_weight, **options)
        else:
            self.grower.grow(gradients, 0, rate=1.0, **options)
        if self._y is not None:
            by_medians = recipe.tree.criterion == "absolute_error"
            set_values = self.grower.set_medians if by_medians else self.grower.set_means
            set_values(self._y, recipe.weight, sample)
        if recipe.weight is not None and recipe.is_evened:
            self.grower.set_covers(recipe.weight, sample)
        if self._out_of_bag is not None and sample is not None:
            all_rows = range(len(recipe.target.tasks[0].y))
            self._add_out_of_bag(number, self.grower.n_trees - 1, sample, all_rows)

    def add_out_of_bag(self, number: int, tree: int, part: range) -> None:
        """Add the predictions of a tree for those of its out-of-bag rows that are in a part."""
        sample = self._draw(number)
        assert sample is not None
        self._add_out_of_bag(number, tree, sample, part)

    def _add_out_of_bag(self, number: int, tree: int, sample: core.Sample, part: range) -> None:
        draws, target, data = self._recipe.draws, self._recipe.target, self._data
        assert draws is not None
        assert self._out_of_bag is not None
        rows = others(sample.positions(), draws.n_rows)
        rows = rows[slice(*np.searchsorted(rows, (part.start, part.stop)))]
        values = np.zeros((len(rows), target.n_outputs))
        if len(rows):
            of_table = rows if data.rows is None else data.rows[rows]
            codes = data.binned.codes
            self.grower.add_tree(tree, 1.0, codes, of_table, values, 0, self._n_threads)
        self._out_of_bag.add(number, rows, values + target.middle)


def _work_together(workers: Sequence[_Worker], queue: _Queue, bar: Bar) -> None:
    """Run every worker in a thread; Ctrl-C, or a failure of one of them, ends them at once."""
    gate = threading.Event()

    def work(worker: _Worker) -> None:
        if not core.prepare_exceptions():
            raise MemoryError
        gate.wait()
        worker.work(queue)

    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            # No worker starts before all threads have: Python waits forever for a thread that finds
            # no memory in its first lines.
            pending: set[Future[None]] = {pool.submit(work, worker) for worker in workers}
            gate.set()
            while pending:
                done, pending = wait(pending, _WAIT, FIRST_EXCEPTION)
                for future in done:
                    future.result()
                bar.show(queue.n_done)
        except BaseException:
            queue.close()
            for worker in workers:
                worker.grower.stop()
            gate.set()
            raise


def _in_order(
    workers: Sequence[_Worker], binned: Binned, recipe: ForestRecipe, n_threads: int
) -> Forest:
    """Return the trees of all workers in the order of their numbers, with the middle added."""
    numbers = [number for worker in workers for number in worker.numbers]
    growers = [worker.grower for worker in workers]
    forest = grown_forest(growers, binned, [0], order=np.argsort(numbers), n_threads=n_threads)
    target = recipe.target
    if recipe.is_evened and target.criterion == "quadratic":
        forest = replace(forest, gain=mean_decreases(forest))
    return replace(forest, value=forest.value + target.middle) if target.middle.any() else forest
