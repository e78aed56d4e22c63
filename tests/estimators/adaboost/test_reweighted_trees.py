"""Core support for trees on weighted rows: gradients without scores, and dropped trees."""

from __future__ import annotations

import numpy as np
import pytest

from arboost import _core
from support.core_trees import TREE_ARRAYS, core_params, encode, gradients_of, wide_problem
from support.level_sets import table_of
from support.reference import Settings
from support.row_weights import problem


def real_gradients(loss, y, weight, scores, n_outputs, *, by_row=False, n_threads=1):
    out = _core.Gradients(len(y), n_outputs, by_row=by_row)
    _core.apply_loss(loss, y, weight, scores, out, n_threads)
    fixed = out.to_numpy().astype(float)
    return fixed[..., 0] * 2.0**-out.g_exponent, fixed[..., 1] * 2.0**-out.h_exponent


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("scored", [False, True])
def test_one_hot_is_squared_error_of_each_class(by_row, scored):
    y, weight, scores = problem(10_000, 4)
    given_scores = scores if scored else None
    for s in (None, weight):
        found = real_gradients("one_hot", y, s, given_scores, 4, by_row=by_row, n_threads=3)
        for k in range(4):
            column = None if given_scores is None else scores[:, [k]].copy()
            own = real_gradients("squared_error", (y == k).astype(float), s, column, 1)
            np.testing.assert_allclose(found[0][:, [k]], own[0], atol=1e-7)
            np.testing.assert_allclose(found[1][:, [k]], own[1], atol=1e-7)
    value = _core.loss_value("one_hot", y, weight, scores, 2)
    squares = ((np.eye(4)[y.astype(int)] - scores) ** 2).sum(axis=1) / 2
    assert value == pytest.approx(np.average(squares, weights=weight), rel=1e-12)


@pytest.mark.parametrize("loss", ["squared_error", "one_hot"])
def test_no_scores_are_scores_of_0(loss):
    y, weight, _ = problem(10_000, 3)
    outputs = 1 if loss == "squared_error" else 3
    for s in (None, weight):
        zeros = np.zeros((len(y), outputs))
        g, h = real_gradients(loss, y, s, None, outputs)
        expected_g, expected_h = real_gradients(loss, y, s, zeros, outputs)
        np.testing.assert_allclose(g, expected_g, atol=1e-8)
        np.testing.assert_allclose(h, expected_h, atol=1e-8)


def test_other_losses_need_scores():
    out = _core.Gradients(5, 1, by_row=False)
    with pytest.raises(ValueError, match="only squared_error and one_hot"):
        _core.apply_loss("logistic", np.zeros(5), None, None, out, 1)
    with pytest.raises(ValueError, match="y has length 4, expected 5"):
        _core.apply_loss("squared_error", np.zeros(4), None, None, out, 1)
    with pytest.raises(ValueError, match="weight has length 4, expected 5"):
        _core.apply_loss("squared_error", np.zeros(5), np.ones(4), None, out, 1)


def grower_of(n_trees, outputs=1):
    codes, n_bins, g, h = wide_problem(n=2000, outputs=outputs)
    grower = _core.Grower(encode(codes, n_bins), outputs, core_params(Settings(max_depth=4)))
    for tree in range(n_trees):
        gradients = gradients_of(g * (tree + 1) + tree, h)
        grower.grow(gradients, 0, seed=0, tree=tree, rate=1.0, n_threads=1)
    return grower


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_last_tree_is_the_end_of_all_trees(outputs):
    grower = grower_of(3, outputs)
    everything, last = grower.trees(), grower.last_tree()
    n = grower.n_nodes
    assert last["value"].shape == (n, outputs)
    np.testing.assert_array_equal(last["value"].ravel(), everything["value"][-n * outputs :])
    np.testing.assert_array_equal(last["cover"], everything["cover"][-n:])
    np.testing.assert_array_equal(last["left"], everything["left"][-n:])


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_dropped_tree_leaves_no_trace(outputs):
    dropped, never = grower_of(3, outputs), grower_of(2, outputs)
    dropped.drop_last()
    assert dropped.n_trees == 2
    for name in (*TREE_ARRAYS, "tree_start", "set"):
        assert dropped.trees()[name].tobytes() == never.trees()[name].tobytes()


def test_sets_of_levels_are_dropped_with_their_tree():
    rng = np.random.default_rng(0)
    codes = table_of(rng.integers(0, 9, (500, 2)).astype(float), [9, 0])
    grower = _core.Grower(codes, 1, core_params(Settings(max_depth=3, min_child_weight=0)))
    before = []
    for tree in range(3):
        before.append(grower.trees())
        gradients = gradients_of(rng.normal(size=(500, 1)), np.ones((500, 1)))
        grower.grow(gradients, 0, seed=0, tree=tree, rate=1.0, n_threads=1)
    assert len(grower.trees()["sets"]) > len(before[2]["sets"]) > len(before[1]["sets"]) > 0
    for expected in reversed(before):
        grower.drop_last()
        found = grower.trees()
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name])
        grower.restore(found)  # restore checks that every level set belongs to a split


def test_the_leaves_of_a_dropped_tree_are_not_taken_for_those_of_another():
    grower = grower_of(2)
    grower.drop_last()
    scores = np.zeros((2000, 1))
    with pytest.raises(ValueError, match="rows are not known"):
        grower.add_leaves(scores, 0, 1)
    with pytest.raises(ValueError, match="rows are not known"):
        grower.leaf_of_row()
    grower.drop_last()
    with pytest.raises(ValueError, match="no tree has been grown"):
        grower.drop_last()
    with pytest.raises(ValueError, match="no tree has been grown"):
        grower.last_tree()
