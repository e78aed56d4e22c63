"""Independent trees: each on rows of its own, all at once, their mean the answer.

Gini's impurity and squared error are the engine's own gain without penalties, so that every leaf
holds the mean of what is fitted over its rows: numbers, or one column of 0 and 1 for each class (of
two classes one column of -1 and 1). The gradients are the same for all trees, which differ by the
rows they are grown on and the features that their nodes may use (Breiman 2001, "Random Forests").
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from arboost.algorithms.forests.targets import Goal, Weigh
from arboost.backend import core
from arboost.data.bins import Binned
from arboost.grow.bootstrap import RowDraws, Unseen, others
from arboost.grow.grower import TreeParams, grown_forest, make_grower
from arboost.model.forest import Forest
from arboost.training.progress import Bar
from arboost.training.sets import TrainingSet

__all__ = ["ForestRecipe", "grow_trees"]

Floats = NDArray[np.float64]

_WAIT = 0.1  # seconds between two looks at the trees that are done


@dataclass(frozen=True, kw_only=True, eq=False)
class ForestRecipe:
    """What makes a forest.

    Attributes
    ----------
    goal : Goal
    tree : TreeParams
    n_trees : int
    seed : int
    first_tree : int
        Number of the first tree: random choices depend on a tree's number.
    weight : float64 array of shape (n_rows,), or None
        Of the training rows, for trees that see all of them.
    draws : RowDraws or None
        How rows are drawn, with replacement; None for trees on all rows.
    weigh : callable or None
        Returns the weights of the training rows, which are above 0, for a tree from the rows that
        it has drawn and how often each was; needs draws.
    """

    goal: Goal
    tree: TreeParams
    n_trees: int
    seed: int
    first_tree: int = 0
    weight: Floats | None = None
    draws: RowDraws | None = None
    weigh: Weigh | None = None


def grow_trees(
    recipe: ForestRecipe, data: TrainingSet, unseen: Unseen | None, *, n_threads: int, bar: Bar
) -> Forest:
    """Return the trees of a recipe; what they say of unseen rows is added where it is asked for.

    With as many trees as threads or more, every thread grows trees of its own. The forest does not
    depend on who grows which.
    """
    goal = recipe.goal
    n_workers = min(n_threads, recipe.n_trees)
    n_inner = n_threads // n_workers
    shared = None if recipe.weigh else goal.gradients(recipe.weight, n_threads)
    queue = _Queue(recipe.first_tree, recipe.n_trees)
    workers = [
        _Worker(recipe, data, shared, unseen, n_workers=n_workers, n_threads=n_inner)
        for _ in range(n_workers)
    ]
    if n_workers == 1:
        workers[0].work(queue, lambda: bar.show(queue.n_done))
    else:
        _work_together(workers, queue, bar)
    return _in_order(workers, data.binned, goal, n_threads)


class _Queue:
    """The numbers of the trees, handed out one by one."""

    def __init__(self, first: int, n_trees: int) -> None:
        self._next = first
        self._end = first + n_trees
        self._lock = threading.Lock()
        self.n_done = 0

    def take(self) -> int | None:
        """Return the next number; None where there is none left."""
        with self._lock:
            if self._next >= self._end:
                return None
            self._next += 1
            return self._next - 1

    def close(self) -> None:
        """Hand out nothing more."""
        with self._lock:
            self._end = self._next

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
        unseen: Unseen | None,
        *,
        n_workers: int,
        n_threads: int,
    ) -> None:
        self._recipe = recipe
        self._data = data
        self._gradients = gradients
        self._unseen = unseen
        self._n_threads = n_threads
        self.grower = make_grower(data.binned, recipe.tree, recipe.goal.n_outputs, data.rows)
        self.grower.expect(recipe.n_trees // n_workers + 1)
        self.numbers: list[int] = []
        # Under constraints values may be other than means.
        self._sets_values = not recipe.goal.is_exact and not any(recipe.tree.monotone)

    def work(self, queue: _Queue, after_each: Callable[[], None] = lambda: None) -> None:
        """Grow trees until none is left."""
        while (number := queue.take()) is not None:
            self._grow(number)
            self.numbers.append(number)
            queue.note_done()
            after_each()

    def _grow(self, number: int) -> None:
        recipe, n_threads = self._recipe, self._n_threads
        sample = None if recipe.draws is None else recipe.draws.sample(number, n_threads)
        gradients = self._gradients
        if gradients is None:
            assert recipe.weigh is not None
            assert sample is not None
            weight = recipe.weigh(sample.positions(), sample.weights())
            gradients = recipe.goal.gradients(weight, n_threads)
        self.grower.grow(
            gradients,
            0,
            seed=recipe.seed,
            tree=number,
            rate=1.0,
            sample=sample,
            n_threads=n_threads,
        )
        if self._sets_values:
            y = recipe.goal.y.reshape(-1, recipe.goal.n_outputs)
            by_medians = recipe.tree.criterion == "absolute_error"
            set_values = self.grower.set_medians if by_medians else self.grower.set_means
            set_values(y, recipe.weight, sample)
        if self._unseen is not None and sample is not None:
            self._ask(number, sample)

    def _ask(self, number: int, sample: core.Sample) -> None:
        """Add what the last tree says of the rows it has not seen."""
        draws, goal, data = self._recipe.draws, self._recipe.goal, self._data
        assert draws is not None
        assert self._unseen is not None
        rows = others(sample.positions(), draws.n_rows)
        values = np.zeros((len(rows), goal.n_outputs))
        if len(rows):
            of_table = rows if data.rows is None else data.rows[rows]
            codes, last = data.binned.codes, self.grower.n_trees - 1
            self.grower.add_tree(last, 1.0, codes, of_table, values, 0, self._n_threads)
        self._unseen.add(number, rows, values + goal.middle)


def _work_together(workers: Sequence[_Worker], queue: _Queue, bar: Bar) -> None:
    """Let every worker have a thread. Ctrl-C ends them after the trees they are at."""
    with ThreadPoolExecutor(len(workers)) as pool:
        pending: set[Future[None]] = {pool.submit(worker.work, queue) for worker in workers}
        try:
            while pending:
                done, pending = wait(pending, _WAIT, FIRST_EXCEPTION)
                for future in done:
                    future.result()
                bar.show(queue.n_done)
        finally:
            queue.close()


def _in_order(workers: Sequence[_Worker], binned: Binned, goal: Goal, n_threads: int) -> Forest:
    """Return the trees of all workers in the order of their numbers, with the values they mean."""
    numbers = [number for worker in workers for number in worker.numbers]
    growers = [worker.grower for worker in workers]
    forest = grown_forest(growers, binned, [0], order=np.argsort(numbers), n_threads=n_threads)
    return replace(forest, value=forest.value + goal.middle) if goal.middle.any() else forest
