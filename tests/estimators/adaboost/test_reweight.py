"""Row distributions: equal to NumPy's, at extreme scores, for any threads and instruction set."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arboost import _core
from support.row_weights import problem

SIZES = [1, 2, 255, 256, 257, 8192, 8193, 30_000]


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
    n = 20_000  # several chunks, one of which has the largest weight
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
    """Rows of weight 0 do not affect the scale, where they would make all others underflow."""
    y, scores = np.ones(3), np.array([[-1e4], [0.0], [-np.log(3)]])
    found, log_loss, error = distribution(y, np.array([0.0, 1, 1]), scores)
    np.testing.assert_allclose(found, [0, 3 / 4, 9 / 4], rtol=1e-14)
    assert log_loss == pytest.approx(np.log(2))
    assert error == 1
    many = np.r_[np.zeros(10_000), 1.0]  # a chunk of rows of weight 0
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
    with pytest.raises(ValueError, match="to be written is one of those"):
        _core.class_distribution(y, weight, scores, weight, 1)
    with pytest.raises(ValueError, match="scores has length 9, expected 10"):
        _core.weighted_error(y, weight, scores[:9], 1)


KINDS = {
    "linear": lambda d: d,
    "square": np.square,
    "exponential": lambda d: 1 - np.exp(-d),
}
each_kind = pytest.mark.parametrize("kind", KINDS)


def predicted(n, seed=0):
    """Return target, predictions and a distribution with zeros, some of them at large errors."""
    rng = np.random.default_rng(seed)
    y, prediction = rng.normal(size=n) * 5, rng.normal(size=n)
    d = rng.exponential(size=n) * (np.abs(y - prediction) < 12) * (rng.random(n) < 0.9)
    d[0] = 1
    return y, prediction, d / d.sum()


def losses_of(y, prediction, d, kind, n_threads=1):
    out = np.full(len(y), np.nan)
    return out, _core.r2_losses(y, prediction, d, kind, out, n_threads)


@each_kind
@pytest.mark.parametrize("n", SIZES)
def test_losses_of_r2_are_shares_of_the_largest_error(n, kind):
    y, prediction, d = predicted(n)
    found, mean = losses_of(y, prediction, d, kind)
    error = np.abs(y - prediction)
    expected = KINDS[kind](np.minimum(error / error[d > 0].max(), 1))
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)
    assert mean == pytest.approx(d @ expected, rel=1e-12)
    assert losses_of(y, prediction, 7 * d, kind)[1] == pytest.approx(mean, rel=1e-12)
    assert found[d > 0].max() == pytest.approx(KINDS[kind](1.0))


@each_kind
def test_perfect_predictions_have_no_loss(kind):
    y, _, d = predicted(300)
    found, mean = losses_of(y, y, d, kind)
    assert mean == 0
    assert (found == 0).all()
    prediction = np.where(d == 0, y + 9, y)  # errors only on rows of weight 0
    found, mean = losses_of(y, prediction, d, kind)
    assert mean == 0
    assert (found[d > 0] == 0).all()


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("log_beta", [0.0, -0.5, -40.0, 3.0])
def test_rows_of_little_loss_lose_their_share(n, log_beta):
    y, prediction, d = predicted(n)
    losses, _ = losses_of(y, prediction, d, "linear")
    expected = d * np.exp(log_beta * (1 - losses))
    _core.r2_reweight(losses, log_beta, d, 1)
    np.testing.assert_allclose(d, expected / expected.sum(), rtol=1e-12)
    assert d.sum() == pytest.approx(1, rel=1e-12)


def test_a_distribution_is_never_used_up():
    """Repeated factors of e^-300 do not underflow: the distribution is normalised each time."""
    d = np.full(20_000, 1 / 20_000)
    for _ in range(10):
        _core.r2_reweight(np.zeros(20_000), -300.0, d, 2)
    np.testing.assert_allclose(d, 1 / 20_000, rtol=1e-12)
    losses = np.zeros(20_000)
    losses[15_000] = 1
    for _ in range(10):
        _core.r2_reweight(losses, -300.0, d, 2)
    assert d[15_000] == 1
    assert d.sum() == 1
    _core.r2_reweight(1 - losses, -300.0, d, 2)  # all other rows are 0, and remain 0
    assert d[15_000] == 1
    assert (np.delete(d, 15_000) == 0).all()


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("y", np.nan, "error of row 3 is .*nan, but it must be finite"),
        ("prediction", np.inf, "error of row 3 is inf, but it must be finite"),
        ("distribution", -1e-9, "weight of row 3 is -0.*from 0 on"),
        ("distribution", np.nan, "weight of row 3 is .*nan"),
        ("distribution", np.inf, "weight of row 3 is inf"),
        ("distribution", 0.0, "no row has a weight above 0"),
    ],
)
def test_errors_that_mean_nothing_are_refused(name, value, match):
    arrays = {"y": np.arange(5.0), "prediction": np.zeros(5), "distribution": np.ones(5) / 5}
    arrays[name][slice(None) if value == 0 else 3] = value
    for kind in KINDS:
        with pytest.raises(ValueError, match=match):
            losses_of(*arrays.values(), kind)


@pytest.mark.parametrize(
    ("losses", "log_beta", "d", "match"),
    [
        ([0, 1.5], -1, [0.5, 0.5], "loss of row 1 is 1.5.* from 0 to 1"),
        ([0, -0.5], -1, [0.5, 0.5], "loss of row 1 is -0.5.* from 0 to 1"),
        ([np.nan, 0], -1, [0.5, 0.5], "loss of row 0 is .*nan"),
        ([0, 0], np.nan, [0.5, 0.5], "is .*nan.* from -300 to 300"),
        ([0, 0], -301, [0.5, 0.5], "is -301.* from -300 to 300: use a smaller learning_rate"),
        ([0, 0], -1, [0.5, -0.5], "weight of row 1 is -0.5"),
        ([0, 0], -1, [0.5, np.nan], "weight of row 1 is .*nan"),
        ([0, 0], -1, [0, 0], "no row has a weight above 0"),
        ([0, 0], -1, [1e-200, 0], "sum of the weights is too large or too small"),
        ([0], -1, [0.5, 0.5], "distribution has length 2, expected 1"),
        ([], -1, [], "there is no row"),
    ],
)
def test_a_refused_step_leaves_the_distribution_alone(losses, log_beta, d, match):
    before = np.asarray(d, float)
    after = before.copy()
    with pytest.raises(ValueError, match=match):
        _core.r2_reweight(np.asarray(losses, float), log_beta, after, 1)
    np.testing.assert_array_equal(before, after)


def test_sizes_and_kinds_of_r2_that_do_not_fit_are_refused():
    y, prediction, d = predicted(10)
    out = np.zeros(10)
    with pytest.raises(ValueError, match="kind is 'huber', not 'linear', 'square' or"):
        _core.r2_losses(y, prediction, d, "huber", out, 1)
    with pytest.raises(ValueError, match="prediction has length 9, expected 10"):
        _core.r2_losses(y, prediction[:9], d, "linear", out, 1)
    with pytest.raises(ValueError, match="distribution has length 9, expected 10"):
        _core.r2_losses(y, prediction, d[:9], "linear", out, 1)
    with pytest.raises(ValueError, match="out has length 9, expected 10"):
        _core.r2_losses(y, prediction, d, "linear", out[:9], 1)
    with pytest.raises(ValueError, match="to be written is one of those"):
        _core.r2_losses(y, prediction, d, "linear", prediction, 1)
    with pytest.raises(ValueError, match="there is no row"):
        _core.r2_losses(y[:0], prediction[:0], d[:0], "linear", out[:0], 1)


def results(n_threads):
    """Yield the bytes of all results tested in this file, and of gradients without scores."""
    y, weight, scores = problem(50_000, 5)
    for loss, outputs in (("one_hot", 5), ("squared_error", 1)):
        for given_scores in (None, scores[:, :outputs].copy()):
            out = _core.Gradients(50_000, outputs, by_row=True)
            _core.apply_loss(loss, y, weight, given_scores, out, n_threads)
            yield out.to_numpy().tobytes()
    for n_classes in (2, 5):
        y, weight, scores = problem(50_000, n_classes)
        for s in (None, weight):
            found, *numbers = distribution(y, s, scores, n_threads)
            yield found.tobytes()
            yield np.array(numbers).tobytes()
        yield np.float64(_core.weighted_error(y, weight, scores, n_threads)).tobytes()
    y, prediction, d = predicted(50_000)
    for kind in KINDS:
        losses, mean = losses_of(y, prediction, d, kind, n_threads)
        yield losses.tobytes()
        yield np.float64(mean).tobytes()
        _core.r2_reweight(losses, -1.7, d, n_threads)
        yield d.tobytes()


@pytest.mark.parametrize("n_threads", [2, 3, 5])
def test_threads_do_not_matter(n_threads):
    assert list(results(n_threads)) == list(results(1))


SCRIPT = """
import hashlib, sys
from arboost import _core
from estimators.adaboost.test_reweight import results
digest = hashlib.sha256()
for part in results(1):
    digest.update(part)
print(_core.instruction_set(), digest.hexdigest())
"""


def test_instruction_sets_do_not_matter(instruction_sets):
    wishes = ("baseline", "avx2", None)
    found = dict(instruction_sets.run(wish, SCRIPT).split() for wish in wishes)
    assert "baseline" in found
    assert len(set(found.values())) == 1, found
