"""Losses: gradients against finite differences, starts and leaf values against a minimiser."""

from __future__ import annotations

import pickle
from functools import partial

import numpy as np
import pytest
from scipy import optimize
from sklearn import metrics

from arboost import GradientBoostingRegressor, _core
from arboost.losses import CLASSIFICATION, REGRESSION, CustomLoss, Target, make
from arboost.losses.links import base_scores
from arboost.losses.metrics import find_metric
from support.loss_cases import LOSSES, ORDERED, SMOOTH, problem

NEWTON = ["logistic", "softmax", "exponential"]  # minima without a closed form, or at infinity
MINIMISED = [name for name in SMOOTH if name not in NEWTON]
each_loss = pytest.mark.parametrize("name", LOSSES)


def gradients(loss, target, scores, *, by_row=False, n_threads=1, least_squares=False):
    out = _core.Gradients(*scores.shape, by_row=by_row)
    loss.gradients(target, scores, out, n_threads, least_squares=least_squares)
    fixed = out.to_numpy().astype(float)
    return fixed[..., 0] * 2.0**-out.g_exponent, fixed[..., 1] * 2.0**-out.h_exponent


def value_of_row(name, loss, target, scores, row):
    """The weighted loss of one row, with the loss's parameters at `scores`."""
    parameters = loss.parameters(target, scores, 1)

    def value(row_scores):
        one = _core.loss_value(
            loss.kernel, target.y[[row]], None, row_scores[np.newaxis], 1, parameters=parameters
        )
        return one * target.weight[row] * (loss.n_outputs if name == "quantiles" else 1)

    return value


@each_loss
def test_gradients_are_finite_differences(name, rng):
    loss = LOSSES[name]
    target, scores = problem(name, rng)
    g, h = gradients(loss, target, scores)
    step = 1e-4
    for row in range(10):
        value = value_of_row(name, loss, target, scores, row)
        for k in range(loss.n_outputs):
            move = np.zeros(loss.n_outputs)
            move[k] = step
            up, here, down = (value(scores[row] + s * move) for s in (1, 0, -1))
            scale = max(1.0, abs(here))
            assert g[row, k] == pytest.approx((up - down) / (2 * step), abs=1e-5 * scale)
            # Softmax has twice the diagonal of its hessian: an upper bound of the matrix. Losses
            # without curvature, somewhere or everywhere, have the weight as hessian.
            second = (up - 2 * here + down) / step**2 * (2 if name == "softmax" else 1)
            expected = second if name in SMOOTH else target.weight[row]
            assert h[row, k] == pytest.approx(expected, abs=1e-4 * scale)


@each_loss
def test_least_squares_has_weights_for_hessians(name, rng):
    loss = LOSSES[name]
    target, scores = problem(name, rng)
    g, _ = gradients(loss, target, scores)
    plain, h = gradients(loss, target, scores, least_squares=True)
    np.testing.assert_array_equal(g, plain)
    np.testing.assert_allclose(h, np.tile(target.weight[:, None], loss.n_outputs), rtol=1e-8)
    _, ones = gradients(loss, Target(target.y, None), scores, least_squares=True)
    assert (ones == 1).all()


@each_loss
def test_threads_and_layout_do_not_matter(name, rng):
    loss = LOSSES[name]
    target, scores = problem(name, rng, n=50_000)
    one = gradients(loss, target, scores)
    for by_row in (False, True):
        np.testing.assert_array_equal(
            one, gradients(loss, target, scores, by_row=by_row, n_threads=4)
        )
    values = {loss.value(target, scores, n_threads) for n_threads in (1, 2, 3, 4)}
    assert len(values) == 1
    if name in ORDERED:
        leaf = rng.integers(0, 3, 50_000).astype(np.uint32)
        refit = partial(loss.refit, target, scores, 0, leaf, 3)
        np.testing.assert_array_equal(refit(1), refit(3))


def plain_values(name, y, score):
    """Losses of the rows, in plain NumPy."""
    return {
        "squared_error": lambda: (y - score) ** 2 / 2,
        "absolute_error": lambda: np.abs(y - score),
        "quantile": lambda: np.maximum(0.3 * (y - score), -0.7 * (y - score)),
        "logistic": lambda: np.logaddexp(0, score) - y * score,
        "exponential": lambda: np.exp((1 - 2 * y) * score),
    }[name]()


@each_loss
def test_values_are_those_of_others(name, rng):
    loss = LOSSES[name]
    target, scores = problem(name, rng, n=1000)
    y, score = target.y, scores[:, 0]
    power = {"poisson": 1, "gamma": 2, "tweedie": 1.4}.get(name)
    delta = np.quantile(np.abs(y - np.median(y)), 0.7)
    if power is not None:
        expected = metrics.mean_tweedie_deviance(y, np.exp(score), power=power) / 2
    elif name == "softmax":
        expected = np.mean(np.logaddexp.reduce(scores, axis=1) - scores[range(1000), y.astype(int)])
    elif name == "quantiles":
        pinball = [
            metrics.mean_pinball_loss(y, scores[:, k], alpha=a) for k, a in enumerate(loss.alphas)
        ]
        expected = np.mean(pinball)
    elif name == "huber":
        size = np.abs(y - score)
        expected = np.mean(np.where(size < delta, size**2 / 2, delta * (size - delta / 2)))
    else:
        expected = np.mean(plain_values(name, y, score))
    rtol = 1e-3 if name == "huber" else 1e-13  # a quantile between two values is a convention
    assert loss.value(Target(y, None), scores, 1) == pytest.approx(expected, rel=rtol)
    # Integer weights are repetitions of rows.
    times = rng.integers(1, 4, 1000)
    repeated = loss.value(Target(y.repeat(times), None), scores.repeat(times, axis=0), 1)
    weighted = loss.value(Target(y, times.astype(float)), scores, 1)
    assert weighted == pytest.approx(repeated, rel=1e-12)


@each_loss
@pytest.mark.parametrize("weighted", [False, True])
def test_start_is_the_best_constant(name, weighted, rng):
    loss = LOSSES[name]
    target, _ = problem(name, rng, n=301)
    target = target if weighted else Target(target.y, None)
    start = loss.start(target)
    assert start.shape == (loss.n_outputs,)

    def value(constant):
        return loss.value(target, np.tile(constant, (301, 1)), 1)

    best = optimize.minimize(value, start + 0.1, method="Nelder-Mead", options={"xatol": 1e-9})
    assert value(start) <= best.fun + 1e-12 * abs(best.fun)


def leaf_step(loss, target, scores):
    """The leaf value of one leaf with all rows."""
    g, h = gradients(loss, target, scores)
    return loss.leaf_values(g.sum(axis=0), h.sum(axis=0))


@pytest.mark.parametrize("name", MINIMISED)
def test_leaf_values_minimise_the_loss(name, rng):
    loss = LOSSES[name]
    target, scores = problem(name, rng, n=200)
    actual = optimize.minimize_scalar(lambda s: loss.value(target, scores + s, 1))
    assert leaf_step(loss, target, scores)[0] == pytest.approx(actual.x, abs=1e-5)


@pytest.mark.parametrize("name", NEWTON)
def test_leaf_values_are_newton_steps(name, rng):
    """Against differences of the mean loss; with K classes, (K - 1) / K of each class's step."""
    loss = LOSSES[name]
    target, scores = problem(name, rng, n=200)
    step, k = leaf_step(loss, target, scores), loss.n_outputs
    assert (np.abs(step) < 9).all()  # below the limit of steps
    width = 1e-3
    for output in range(k):
        move = np.eye(k)[output] * width
        up, here, down = (loss.value(target, scores + s * move, 1) for s in (1, 0, -1))
        newton = -(up - down) / 2 * width / (up - 2 * here + down)
        assert step[output] == pytest.approx((k - 1) / k * newton if k > 1 else newton, rel=1e-4)


@pytest.mark.parametrize("name", NEWTON)
def test_newton_steps_end_in_the_minimum(name, rng):
    loss = LOSSES[name]
    target, scores = problem(name, rng, n=200)
    actual = optimize.minimize(
        lambda s: loss.value(target, scores + s, 1), np.zeros(loss.n_outputs)
    )
    at = scores
    for _ in range(30):
        at = at + leaf_step(loss, target, at)
    assert loss.value(target, at, 1) == pytest.approx(actual.fun, rel=1e-9)
    assert np.abs(leaf_step(loss, target, at)).max() < 1e-6


def test_huber_goes_on_where_most_residuals_are_0():
    y = np.r_[np.zeros(95), 1.0, 2.0, 3.0, 4.0, 50.0]
    g, _ = gradients(make("huber", alpha=0.7), Target(y, None), np.zeros((100, 1)))
    assert g.ravel()[95:].tolist() == pytest.approx([-1, -2, -3, -4, -4], rel=1e-8)
    g, _ = gradients(make("huber", alpha=0.7), Target(np.zeros(5), None), np.zeros((5, 1)))
    assert (g == 0).all()


def test_starts_of_extreme_targets_are_finite():
    assert make("squared_error").start(Target(np.full(10, 1e9 + 0.1), None)) == 1e9 + 0.1
    for value in (0.0, 1.0):
        for name in ("log_loss", "exponential"):
            assert np.isfinite(make(name).start(Target(np.full(5, value), None))).all()
    assert np.isfinite(make("log_loss", n_outputs=3).start(Target(np.zeros(5), None))).all()
    assert make("huber", alpha=0.9).start(Target(np.full(5, 7.0), None)) == 7.0


@pytest.mark.parametrize(
    ("name", "score", "expected"),
    [
        ("squared_error", 1e200, 1e200),
        ("absolute_error", -1e300, -1.0),
        ("huber", 1e200, 1e200),
        ("poisson", -1e5, -1.0),
        ("poisson", 1e5, None),
        ("gamma", 1e5, 1.0),
        ("gamma", -1e5, None),
        ("tweedie", 1e5, None),
        ("tweedie", -1e5, None),
        ("logistic", 1e300, 0.0),
        ("logistic", -1e300, -1.0),
        ("exponential", 1e5, 0.0),
        ("exponential", -1e5, None),
        ("poisson", np.nan, None),
        ("exponential", np.inf, 0.0),
        ("squared_error", -np.inf, None),
        ("huber", np.inf, None),
    ],
)
def test_gradients_at_extreme_scores(name, score, expected):
    """Exact, or an error where doubles overflow. y is 1 in both rows."""
    target, scores = Target(np.ones(2), None), np.array([[0.0], [score]])
    if expected is None:
        with pytest.raises(ValueError, match="is infinite or not a number: the scores have grown"):
            gradients(LOSSES[name], target, scores)
    else:
        assert gradients(LOSSES[name], target, scores)[0][1, 0] == pytest.approx(expected)


def test_softmax_at_extreme_scores():
    loss, target = LOSSES["softmax"], Target(np.zeros(2), None)
    scores = np.array([[0.0, 0, 0, 0], [-1e300, 1e300, 0, 0]])
    g, _ = gradients(loss, target, scores)
    np.testing.assert_allclose(g[1], [-1, 1, 0, 0], atol=1e-9)
    assert loss.value(target, scores, 1) == 1e300  # mean of log 4 and 2e300


@pytest.mark.parametrize("name", ["softmax", "logistic", "poisson"])
def test_value_of_nan_scores_is_nan(name):
    scores = np.zeros((2, LOSSES[name].n_outputs))
    scores[1, -1] = np.nan
    assert np.isnan(LOSSES[name].value(Target(np.ones(2), None), scores, 1))


def test_exponentials_and_logarithms_are_exact(rng):
    """Through losses that are little else: log1p e^-x, y log y and e^x, to a few ulps."""
    for score in np.r_[rng.normal(size=200) * 30, 36.7, -37.0, 1e-9, 0.0, 700.0]:
        actual = LOSSES["logistic"].value(Target(np.zeros(1), None), np.array([[score]]), 1)
        assert actual == pytest.approx(np.logaddexp(0, score), rel=4e-16 * max(1, abs(score)))
    for y in np.r_[np.exp(rng.normal(size=200) * 100), 1.0, 2.0**0.5, 0.5**0.5, 5e-324, 1e-310]:
        actual = LOSSES["poisson"].value(Target(np.array([y]), None), np.array([[-700.0]]), 1)
        assert actual == pytest.approx(y * (np.log(y) + 699), rel=1e-15)


SCRIPT = """
import hashlib, sys
import numpy as np
from arboost import GradientBoostingRegressor, _core
from support.loss_cases import LOSSES, ORDERED, problem
digest = hashlib.sha256()
for name, loss in LOSSES.items():
    target, scores = problem(name, np.random.default_rng(0), n=3001)
    out = _core.Gradients(*scores.shape, by_row=False)
    for least_squares in (False, True):
        loss.gradients(target, scores, out, 1, least_squares=least_squares)
        digest.update(out.to_numpy().tobytes())
    digest.update(np.float64(loss.value(target, scores, 1)).tobytes())
    if name in ORDERED:
        leaf = np.arange(3001, dtype=np.uint32) % 7
        digest.update(loss.refit(target, scores, 0, leaf, 7, 1).tobytes())
print(_core.instruction_set(), digest.hexdigest())
"""


def test_instruction_sets_do_not_matter(instruction_sets):
    wishes = ("baseline", "avx2", None)
    actual = dict(instruction_sets.run(wish, SCRIPT).split() for wish in wishes)
    assert "baseline" in actual
    assert len(set(actual.values())) == 1, actual


@each_loss
def test_losses_are_values(name):
    loss = LOSSES[name]
    assert pickle.loads(pickle.dumps(loss)) == loss
    assert hash(loss) == hash(pickle.loads(pickle.dumps(loss)))
    with pytest.raises(AttributeError):
        loss.name = "another"


def test_wrong_lengths_are_refused():
    out = _core.Gradients(10, 1, by_row=False)
    with pytest.raises(ValueError, match="y has length 9, expected 10"):
        _core.apply_loss("logistic", np.zeros(9), None, np.zeros((10, 1)), out, 1)
    with pytest.raises(ValueError, match="unknown loss 'hinge'"):
        _core.apply_loss("hinge", np.zeros(10), None, np.zeros((10, 1)), out, 1)
    with pytest.raises(ValueError, match="the loss has 1 parameters, not 0"):
        _core.apply_loss("huber", np.zeros(10), None, np.zeros((10, 1)), out, 1)
    leaf = np.full(10, 3, np.uint32)
    with pytest.raises(ValueError, match="in leaf 3 of 3 nodes"):
        make("absolute_error").refit(Target(np.zeros(10), None), np.zeros((10, 1)), 0, leaf, 3, 1)


def poisson_gradients(y, score, weight):
    mean = np.exp(score)
    return weight * (mean - y), weight * mean


def poisson_start(y, weight):
    return np.log(np.average(y, weights=weight))


def poisson_value(y, score, weight):
    deviance = np.where(y > 0, y * np.log(np.where(y > 0, y, 1)), 0) - y + np.exp(score) - y * score
    return np.average(deviance, weights=weight)


CUSTOM = CustomLoss(
    name="counts",
    gradients=poisson_gradients,
    start=poisson_start,
    value=poisson_value,
    link="exp",
)


def pairs(loss, target, scores, **options):
    out = _core.Gradients(*scores.shape, by_row=False)
    loss.gradients(target, scores, out, 1, **options)
    return out.to_numpy().tolist(), out.g_exponent, out.h_exponent


@pytest.mark.parametrize("name", [*REGRESSION, *CLASSIFICATION])
def test_losses_have_their_names(name):
    loss = make(name, alpha=0.9, tweedie_power=1.5)
    assert loss.name == name
    assert loss.n_outputs == 1


def test_outputs_and_links():
    several = make("quantile", alpha=[0.1, 0.9])
    assert (several.n_outputs, several.link) == (2, "ordered")
    assert make("quantile", alpha=(0.1,)).link == "identity"
    assert make("quantile", alpha=np.array([0.1, 0.9])) == several
    assert (make("log_loss", n_outputs=3).n_outputs, make("log_loss").link) == (3, "logistic")
    assert make("tweedie", tweedie_power=1.5).link == "exp"
    assert make("exponential").link == "logistic_of_double"


def test_losses_that_refit_leaves():
    assert make("absolute_error").refits("newton")
    assert make("quantile", alpha=0.5).refits("gradient")
    assert not make("huber", alpha=0.9).refits("newton")
    assert make("huber", alpha=0.9).refits("gradient")
    assert not make("poisson").refits("gradient")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("huber", {"alpha": [0.1, 0.9]}, "loss='huber' has one"),
        ("exponential", {"n_outputs": 3}, "loss='exponential' is not allowed with 3 classes"),
        (CUSTOM, {"n_outputs": 3}, "loss='counts' is not allowed with 3 classes"),
    ],
)
def test_impossible_losses(name, options, message):
    with pytest.raises(ValueError, match=message):
        make(name, **options)


@pytest.mark.parametrize(
    ("name", "y", "message"),
    [
        ("poisson", [1.0, -2.0], "y has the value -2.0, but loss='poisson' is for values of 0"),
        ("tweedie", [1.0, -2.0], "y has the value -2.0"),
        ("tweedie", [0.0, 0.0], "y is 0 in all rows"),
        ("gamma", [1.0, 0.0], "y has the value 0.0, but loss='gamma' is for values above 0"),
    ],
)
def test_targets_outside_the_domain(name, y, message):
    loss = make(name, tweedie_power=1.5)
    with pytest.raises(ValueError, match=message):
        loss.check_target(np.array(y))
    loss.check_target(np.array([1.0, 2.0]))


def test_a_custom_loss_is_as_good_as_a_built_in_one(rng):
    y, scores = rng.poisson(2.0, 500).astype(float), rng.normal(size=(500, 1))
    for weight in (None, rng.uniform(0.5, 2, 500)):
        target, custom, built_in = Target(y, weight), make(CUSTOM), make("poisson")
        actual, expected = pairs(custom, target, scores), pairs(built_in, target, scores)
        np.testing.assert_allclose(actual[0], expected[0], atol=2)
        assert actual[1:] == expected[1:]
        squares = pairs(custom, target, scores, least_squares=True)
        assert squares[2] == pairs(built_in, target, scores, least_squares=True)[2]
        assert custom.start(target) == pytest.approx(built_in.start(target))
        assert custom.value(target, scores, 1) == pytest.approx(built_in.value(target, scores, 1))
    assert base_scores(custom.link, 1.0, custom.n_outputs).tolist() == [0.0]
    assert (custom.name, custom.link, custom.n_outputs) == ("counts", "exp", 1)
    assert pickle.loads(pickle.dumps(custom)) == custom


def test_a_custom_loss_may_leave_things_out():
    loss = make(CustomLoss(name="plain", gradients=poisson_gradients))
    target = Target(np.ones(3), None)
    assert loss.start(target).tolist() == [0.0]
    assert loss.link == "identity"
    np.testing.assert_allclose(loss.leaf_values(np.array([2.0, 0]), np.array([4.0, 0])), [-0.5, 0])
    for metric in (None, "plain"):
        with pytest.raises(ValueError, match="'plain' has no function `value`"):
            find_metric(metric, loss)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_custom_loss_cannot_change_what_it_is_given(which):
    def greedy(*arrays):
        arrays[which][:] = 7
        return arrays[0], arrays[2]

    loss = make(CustomLoss(name="greedy", gradients=greedy))
    for weight in (None, np.ones(3)):
        with pytest.raises(ValueError, match="read-only"):
            pairs(loss, Target(np.ones(3), weight), np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("gradients", "error", "message"),
    [
        (np.ones(3), TypeError, "'bad' returned a ndarray, but a pair is needed"),
        ((np.ones(3),), TypeError, "returned a tuple, but a pair"),
        ((np.ones(2), np.ones(3)), ValueError, r"first derivatives of shape \(2,\)"),
        ((np.ones(3), np.ones((3, 1))), ValueError, r"second derivatives of shape \(3, 1\)"),
        ((np.array([0, np.nan, 0]), np.ones(3)), ValueError, "first derivative nan in row 1"),
        ((np.ones(3), np.array([1, 1, np.inf])), ValueError, "second derivative inf in row 2"),
        ((np.ones(3), np.array([1, -2.0, 1])), ValueError, "second derivative -2.0 in row 1"),
    ],
)
def test_wrong_gradients_of_a_custom_loss(gradients, error, message):
    loss = make(CustomLoss(name="bad", gradients=lambda *_: gradients))
    with pytest.raises(error, match=message):
        pairs(loss, Target(np.ones(3), None), np.zeros((3, 1)))


def test_wrong_fields_of_a_custom_loss():
    with pytest.raises(ValueError, match="link='softmax' of the loss 'bad' is not allowed"):
        CustomLoss(name="bad", gradients=poisson_gradients, link="softmax")
    with pytest.raises(TypeError, match="gradients=None of the loss 'bad' is not a function"):
        CustomLoss(name="bad", gradients=None)
    with pytest.raises(TypeError, match="value=3 of the loss 'bad' is not a function"):
        CustomLoss(name="bad", gradients=poisson_gradients, value=3)
    for wrong in (np.nan, [1.0, 2.0]):
        loss = make(
            CustomLoss(name="bad", gradients=poisson_gradients, start=lambda *_, w=wrong: w)
        )
        with pytest.raises(ValueError, match="start of the loss 'bad' returned"):
            loss.start(Target(np.ones(3), None))


N = 400
RNG = np.random.default_rng(3)
OFFSET = RNG.normal(size=(N, 3))
WEIGHT = RNG.uniform(0.2, 2.0, N)
AMOUNT = RNG.gamma(2.0, size=N) * np.exp(OFFSET[:, 0])
CLASS = (RNG.random(N) < 0.3).astype(float)

CASES = {
    "squared_error": (make("squared_error"), AMOUNT, 1),
    "absolute_error": (make("absolute_error"), AMOUNT, 1),
    "quantile": (make("quantile", alpha=0.8), AMOUNT, 1),
    "quantiles": (make("quantile", alpha=[0.2, 0.8]), AMOUNT, 2),
    "poisson": (make("poisson"), np.floor(AMOUNT), 1),
    "gamma": (make("gamma"), AMOUNT, 1),
    "tweedie": (make("tweedie", tweedie_power=1.3), np.floor(AMOUNT), 1),
    "two classes": (make("log_loss"), CLASS, 1),
    "exponential": (make("exponential"), CLASS, 1),
    "three classes": (make("log_loss", n_outputs=3), CLASS + (AMOUNT > 2), 3),
}


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["equal", "weighted"])
@pytest.mark.parametrize("case", CASES)
def test_start_on_an_offset_is_the_best_constant(case, weight):
    loss, y, n_outputs = CASES[case]
    target, offset = Target(y, weight), OFFSET[:, :n_outputs].copy()
    start = loss.start_from(target, offset)
    assert start.shape == (n_outputs,)
    best = loss.value(target, offset + start, 1)
    for output in range(n_outputs):
        for step in (-1e-3, 1e-3, -0.1, 0.1):
            moved = start.copy()
            moved[output] += step
            # Between two residuals the mean pinball loss may be flat.
            assert loss.value(target, offset + moved, 1) >= best - 1e-15


def test_start_of_huber_is_that_of_the_residuals():
    target = Target(AMOUNT, WEIGHT)
    without = Target(AMOUNT - OFFSET[:, 0], WEIGHT)
    loss = make("huber", alpha=0.8)
    assert loss.start_from(target, OFFSET[:, :1]) == loss.start(without)


@pytest.mark.parametrize("case", CASES)
def test_constant_offset_is_taken_out(case):
    loss, y, n_outputs = CASES[case]
    target, offset = Target(y, WEIGHT), np.full((N, n_outputs), 0.75)
    start = loss.start_from(target, offset)
    np.testing.assert_allclose(start + 0.75, loss.start(target) + (n_outputs == 3) * 0.75)


@pytest.mark.parametrize("case", ["poisson", "gamma", "tweedie", "two classes", "exponential"])
def test_large_offsets_do_not_overflow(case):
    loss, y, _ = CASES[case]
    offset = np.where(np.arange(N) % 2 == 0, 900.0, -900.0)[:, np.newaxis]
    assert np.isfinite(loss.start_from(Target(y, None), offset)).all()


def test_no_offset_is_the_start_of_the_loss():
    loss, y, _ = CASES["poisson"]
    booster = GradientBoostingRegressor(n_estimators=1, loss="poisson")
    base_score = booster.fit(OFFSET, y).model_.base_score
    np.testing.assert_array_equal(base_score, loss.start(Target(y, None)))


def test_custom_loss_starts_where_its_function_says():
    loss = CustomLoss(
        name="half", gradients=lambda y, f, w: (w * (f - y), w), start=lambda y, w: 0.5
    )
    assert make(loss).start_from(Target(AMOUNT, None), OFFSET[:, :1]) == 0.5
