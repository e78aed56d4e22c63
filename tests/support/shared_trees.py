"""Trees on rows that workers share, and on the same rows in one process."""

import numpy as np

from arboost import _core
from arboost.workers import Workers
from support.local_workers import run_workers
from support.shared_codes import shared

PARTS = ([1.0], [1.0, 1.0], [3.0, 0.0, 0.5, 7.0, 0.0, 1.0, 2.0])


def grown(codes, gradients, width, *, sample=None, n_threads=2, **params):
    tree_params = _core.TreeParams()
    for name, value in params.items():
        setattr(tree_params, name, value)
    grower = _core.Grower(codes, width, tree_params)
    for tree in range(2):
        grower.grow(
            gradients,
            0,
            seed=5,
            tree=tree,
            rate=0.3,
            sample=sample,
            leaves_from_all_rows=params.get("max_depth") == 4,
            n_threads=n_threads,
        )
    scores = np.zeros((gradients.n_rows, width))
    grower.add_leaves(scores, 0, n_threads)
    walked = np.zeros_like(scores)
    grower.add_tree(0, 0.5, codes, None, walked, 0, n_threads)
    sums = grower.leaf_sums(gradients, 0, n_threads)
    actual = {"leaf": grower.leaf_of_row(), "scores": scores, "walked": walked, "sums": sums}
    return grower.trees() | actual


def grown_by_workers(codes, gradients, width, parts, **params):
    """Return the result of each worker."""

    def program(workers: Workers):
        return grown(shared(codes, workers, parts), gradients, width, **params)

    return run_workers(len(parts), program)


def assert_same(one, other):
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)


def sample_of(kind, gradients):
    sample = _core.Sample()
    n = gradients.n_rows
    match kind:
        case "bootstrap":
            sample.draw_with_replacement(n, n, 3, 0, 1)
        case "one side":
            sample.draw_one_side(gradients, 0.2, 0.1, 3, 0, 1)
        case "by gradient":
            sample.draw_by_gradient(gradients, 0.3, 1.0, 3, 0, 1)
        case _:
            return None
    return sample
