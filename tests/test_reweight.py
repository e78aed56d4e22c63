"""Distributions over rows: against NumPy, at extreme scores, and for any threads and machine."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arboost import _core
from leveled import table_of
from reference import Settings
from test_grow import TREE_ARRAYS, core_params, encode, wide_problem
from test_sampling import gradients_of

SIZES = [1, 2, 255, 256, 257, 8192, 8193, 30_000]


def problem(n, n_classes, seed=0, spread=2.0):
    """Classes, weights some of which are 0, and scores some of which are equal."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n).astype(float)
    weight = rng.exponential(size=n) * (rng.random(n) < 0.9) + (np.arange(n) == 0)
    scores = rng.normal(size=(n, 1 if n_classes == 2 else n_classes)) * spread
    scores[rng.random(n) < 0.2] = 0.0
    return y, weight, scores


def plain_margins(y, scores):
    if scores.shape[1] == 1:
        return (2 * y - 1) * scores[:, 0]
    return scores[np.arange(len(y)), y.astype(int)]


def plain_error(y, weight, scores):
    votes = scores[:, 0] > 0 if scores.shape[1] == 1 else scores.argmax(axis=1)
    return np.average(votes != y, weights=weight)


def distribution(y, weight, scores, n_threads=1):
    out = np.full(len(y), np.nan)
    log_loss, error = _core.class_distribution(y, weight, scores, out, n_threads)
    return out, log_loss, error


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("n_classes", [2, 3, 7])
@pytest.mark.parametrize("weighted", [False, True])
def test_distributions_are_exponentials_of_margins(n, n_classes, weighted):
    y, weight, scores = problem(n, n_classes)
    weight = weight if weighted else None
    found, log_loss, error = distribution(y, weight, scores)
    s = np.ones(n) if weight is None else weight
    expected = s * np.exp(-plain_margins(y, scores))
    np.testing.assert_allclose(found, expected / expected.mean(), rtol=1e-12)
    assert log_loss == pytest.approx(np.log(expected.sum() / s.sum()), rel=1e-12, abs=1e-14)
    assert error == pytest.approx(plain_error(y, weight, scores), rel=1e-12)
    assert (found[s == 0] == 0).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_errors_are_shares_of_the_distribution(n, n_classes):
    y, weight, votes = problem(n, n_classes)
    error = _core.weighted_error(y, weight, votes, 1)
    assert error == pytest.approx(plain_error(y, weight, votes), rel=1e-12)
    right = (2 * y - 1)[:, np.newaxis] if n_classes == 2 else np.eye(n_classes)[y.astype(int)]
    assert _core.weighted_error(y, weight, right, 1) == 0
    assert _core.weighted_error(y, weight, -right, 1) == 1


def test_ties_go_to_the_first_class():
    y = np.array([0.0, 1.0, 2.0])
    assert _core.weighted_error(y, np.array([1.0, 2, 4]), np.zeros((3, 3)), 1) == 6 / 7
    assert _core.weighted_error(y[:2], np.array([1.0, 2]), np.zeros((2, 1)), 1) == 2 / 3
    assert _core.weighted_error(y, np.ones(3), np.tile([0.0, 1, 1], (3, 1)), 1) == 2 / 3


def test_scores_of_0_give_the_weights_back():
    y, weight, _ = problem(20_000, 2)
    found, log_loss, _ = distribution(y, weight, np.zeros((20_000, 1)))
    assert log_loss == 0
    np.testing.assert_allclose(found, weight / weight.mean(), rtol=1e-15)


@given(st.integers(0, 2**32), st.floats(-300, 300), st.sampled_from([2, 4]))
def test_a_shift_of_all_margins_is_a_factor_of_the_loss(seed, shift, n_classes):
    y, weight, scores = problem(50, n_classes, seed, spread=1.0)
    one, log_loss, _ = distribution(y, weight, scores)
    sign = (2 * y - 1)[:, np.newaxis] if n_classes == 2 else 1.0
    other, moved, _ = distribution(y, weight, scores + shift * sign)
    np.testing.assert_allclose(other, one, rtol=1e-10)
    assert moved == pytest.approx(log_loss - shift, abs=1e-10)


@pytest.mark.parametrize("size", [800.0, 1e5, 1e300])
def test_extreme_margins_neither_overflow_nor_vanish(size):
    n = 20_000  # several chunks: the largest weights lie in one of them
    scores = np.full((n, 1), size)
    scores[12_345] = -size
    found, log_loss, error = distribution(np.ones(n), None, scores)
    assert found[12_345] == n
    assert found.sum() == pytest.approx(n)
    assert log_loss == pytest.approx(size - np.log(n))
    assert error == 1 / n
    for all_alike in (size, -size):
        found, log_loss, _ = distribution(np.ones(n), None, np.full((n, 1), all_alike))
        assert (found == 1).all()
        assert log_loss == pytest.approx(-all_alike)


def test_rows_that_weigh_nothing_do_not_count():
    """Not even for the scale: all others would underflow next to the row of weight 0."""
    y, scores = np.ones(3), np.array([[-1e4], [0.0], [-np.log(3)]])
    found, log_loss, error = distribution(y, np.array([0.0, 1, 1]), scores)
    np.testing.assert_allclose(found, [0, 3 / 4, 9 / 4], rtol=1e-14)
    assert log_loss == pytest.approx(np.log(2))
    assert error == 1
    many = np.r_[np.zeros(10_000), 1.0]  # a whole chunk of them
    found, *_ = distribution(np.ones(10_001), many, np.linspace(-900, 900, 10_001)[:, np.newaxis])
    assert found[-1] == 10_001
    assert (found[:-1] == 0).all()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda a: a["scores"].__setitem__((7, -1), np.nan), "a score is infinite .* in row 7"),
        (lambda a: a["scores"].__setitem__((7, 0), np.inf), "a score is infinite .* in row 7"),
        (lambda a: a["scores"].__setitem__((7, 0), -np.inf), "a score is infinite .* in row 7"),
        (lambda a: a["y"].__setitem__(3, 5), "y is 5.* in row 3, not a class of 0 to"),
        (lambda a: a["y"].__setitem__(3, 0.5), "y is 0.5.* in row 3, not a class of 0 to"),
        (lambda a: a["y"].__setitem__(3, -1), "y is -1.* in row 3, not a class of 0 to"),
        (lambda a: a["y"].__setitem__(3, np.nan), "y is .*nan.* in row 3, not a class of 0 to"),
        (lambda a: a["weight"].__setitem__(2, -1e-9), "weight of row 2 is -.* from 0 on"),
        (lambda a: a["weight"].__setitem__(2, np.nan), "weight of row 2 is .*nan"),
        (lambda a: a["weight"].__setitem__(2, np.inf), "weight of row 2 is inf"),
        (lambda a: a["weight"].fill(0), "no row has a weight above 0"),
        (lambda a: a["weight"].fill(1e308), "sum of the weights is too large or too small"),
        (lambda a: a["weight"].fill(5e-324), "sum of the weights is too large or too small"),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_values_that_mean_nothing_are_refused(change, match, n_classes):
    arrays = dict(zip(("y", "weight", "scores"), problem(10, n_classes), strict=True))
    change(arrays)
    y, weight, scores = arrays.values()
    with pytest.raises(ValueError, match=match):
        distribution(y, weight, scores)
    with pytest.raises(ValueError, match=match):
        _core.weighted_error(y, weight, scores, 1)


def test_sizes_that_do_not_fit_are_refused():
    y, weight, scores = problem(10, 2)
    out = np.zeros(10)
    with pytest.raises(ValueError, match="weight has length 9, expected 10"):
        _core.class_distribution(y, weight[:9], scores, out, 1)
    with pytest.raises(ValueError, match="scores has length 9, expected 10"):
        _core.class_distribution(y, None, scores[:9], out, 1)
    with pytest.raises(ValueError, match="out has length 9, expected 10"):
        _core.class_distribution(y, None, scores, out[:9], 1)
    with pytest.raises(ValueError, match="there is no row"):
        _core.class_distribution(y[:0], None, scores[:0], out[:0], 1)
    with pytest.raises(ValueError, match="the scores have no column"):
        _core.class_distribution(y, None, np.zeros((10, 0)), out, 1)
    with pytest.raises(ValueError, match="`out` is one of the arrays"):
        _core.class_distribution(y, weight, scores, weight, 1)
    with pytest.raises(ValueError, match="scores has length 9, expected 10"):
        _core.weighted_error(y, weight, scores[:9], 1)


def results(n_threads):
    """Bytes of everything this file is about."""
    for n_classes in (2, 5):
        y, weight, scores = problem(50_000, n_classes)
        for s in (None, weight):
            found, *numbers = distribution(y, s, scores, n_threads)
            yield found.tobytes()
            yield np.array(numbers).tobytes()
        yield np.float64(_core.weighted_error(y, weight, scores, n_threads)).tobytes()


@pytest.mark.parametrize("n_threads", [2, 3, 5])
def test_threads_do_not_matter(n_threads):
    assert list(results(n_threads)) == list(results(1))


SCRIPT = """
import hashlib, sys
sys.path.insert(0, sys.argv[1])
from arboost import _core
from test_reweight import results
digest = hashlib.sha256()
for part in results(1):
    digest.update(part)
print(_core.instruction_set(), digest.hexdigest())
"""


def test_instruction_sets_do_not_matter():
    def run(wish):
        chosen = {} if wish is None else {"ARBOOST_ISA": wish}
        command = [sys.executable, "-c", SCRIPT, os.path.dirname(__file__)]
        answer = subprocess.run(
            command, env={**os.environ, **chosen}, check=True, capture_output=True, text=True
        )
        return answer.stdout.split()

    found = dict(run(wish) for wish in ("baseline", "avx2", None))
    assert "baseline" in found
    assert len(set(found.values())) == 1, found


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
        grower.restore(found)  # which checks that sets belong to splits


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
